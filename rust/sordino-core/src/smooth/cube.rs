//! The declared bounds of the points.

use crate::error::Error;

/// Bounds of every coordinate, declared, never read from data; points outside are moved to the nearest inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Cube {
    bounds: Vec<(f64, f64)>,
}

impl Cube {
    /// # Errors
    /// If there are no bounds, or some are not finite, not rising, or further apart than the largest number.
    pub fn new(bounds: Vec<(f64, f64)>) -> Result<Self, Error> {
        let good = |(low, high): &(f64, f64)| low.is_finite() && (high - low).is_finite() && low < high;
        if bounds.is_empty() || !bounds.iter().all(good) {
            return Err(Error::invalid("bounds", "must be finite with lower below upper, one pair a coordinate"));
        }
        Ok(Self { bounds })
    }

    /// Number of coordinates.
    pub fn dimension(&self) -> usize {
        self.bounds.len()
    }

    /// The bounds.
    pub fn bounds(&self) -> &[(f64, f64)] {
        &self.bounds
    }

    /// Moves points, row-major, to `[-1, 1]^d`: `2 (x − low)/(high − low) − 1`, clipped. Of every point alone.
    pub fn standardize(&self, points: &[f64], out: &mut [f64]) {
        let rows = points.chunks_exact(self.dimension()).zip(out.chunks_exact_mut(self.dimension()));
        for (point, out) in rows {
            for ((u, x), (low, high)) in out.iter_mut().zip(point).zip(&self.bounds) {
                *u = (2.0 * ((x.clamp(*low, *high) - low) / (high - low)) - 1.0).clamp(-1.0, 1.0);
            }
        }
    }
}
