//! Counts of the points in the cells of a coarse grid: the pure baseline of smooth queries.

use super::{FeatureMap, MOST_FEATURES, Norms, Weights};
use crate::error::Error;
use crate::upper::Upper;

/// Cells of equal size, row-major.
#[derive(Debug)]
pub struct Cells {
    counts: Vec<usize>,
}

impl Cells {
    /// So many cells on every axis.
    ///
    /// # Errors
    /// If there are none, or more than 2^26.
    pub fn new(counts: Vec<usize>) -> Result<Self, Error> {
        let total = counts.iter().try_fold(1usize, |product, count| product.checked_mul(*count));
        if counts.is_empty() || !total.is_some_and(|total| (1..=MOST_FEATURES).contains(&total)) {
            return Err(Error::invalid("cells", "must be positive, with at most 2^26 in all"));
        }
        Ok(Self { counts })
    }
}

impl FeatureMap for Cells {
    fn dimension(&self) -> usize {
        self.counts.len()
    }

    fn features(&self) -> usize {
        self.counts.iter().product()
    }

    fn bits(&self) -> u32 {
        0
    }

    fn largest(&self) -> f64 {
        1.0
    }

    fn add(&self, points: &[f64], sums: &mut [i64]) {
        for point in points.chunks_exact(self.counts.len()) {
            let cell = point.iter().zip(&self.counts).fold(0, |cell, (u, count)| {
                let place = ((u + 1.0) / 2.0 * *count as f64) as usize;
                cell * count + place.min(count - 1)
            });
            sums[cell] += 1;
        }
    }

    fn norms(&self, weights: &Weights, l1: bool) -> Result<Norms, Error> {
        if *weights != Weights::Uniform {
            return Err(Error::Unsupported("cells of a histogram have equal weights".into()));
        }
        let two = Upper::exact(2.0);
        let moved = if self.features() == 1 { Upper::ZERO } else { two };
        Ok(Norms { column: Upper::exact(1.0), pair: if l1 { moved } else { moved.sqrt() } })
    }

    fn describe(&self, words: &mut Vec<u64>) {
        words.push(2);
        words.extend(self.counts.iter().map(|count| *count as u64));
    }
}
