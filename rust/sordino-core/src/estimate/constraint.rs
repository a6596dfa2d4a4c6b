//! What is publicly known of the data.

use super::simplex::project_simplex;
use crate::error::Error;

/// A polytope `X` of weights `x` of the columns.
///
/// `n` is public, or was bought with privacy budget: read from the data, it would be published by the projection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constraint {
    /// `x ≥ 0`, `Σ x = n`: the total is known.
    Total(f64),
    /// `x ≥ 0`, `Σ x ≤ n`: a bound on the total is known.
    AtMost(f64),
    /// `Σ |x| ≤ n`.
    Absolute(f64),
}

/// A vertex of `X/n`: a column, its opposite, or the origin. (In the ball the origin is not a vertex, but a good
/// place to start.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Vertex {
    Column(usize),
    Opposite(usize),
    Origin,
}

impl Vertex {
    /// The column, and what it is multiplied by.
    pub(super) fn signed(self) -> Option<(usize, f64)> {
        match self {
            Self::Column(j) => Some((j, 1.0)),
            Self::Opposite(j) => Some((j, -1.0)),
            Self::Origin => None,
        }
    }

    /// The slope along this vertex, given those along all columns.
    pub(super) fn slope(self, slopes: &[f64]) -> f64 {
        self.signed().map_or(0.0, |(j, sign)| sign * slopes[j])
    }
}

impl Constraint {
    /// The number n.
    pub(super) fn size(self) -> f64 {
        let (Self::Total(n) | Self::AtMost(n) | Self::Absolute(n)) = self;
        n
    }

    pub(super) fn check(self) -> Result<(), Error> {
        let n = self.size();
        if n.is_finite() && n >= 0.0 {
            return Ok(());
        }
        Err(Error::invalid("n", format!("must be finite and not negative, got {n}")))
    }

    pub(super) fn has_origin(self) -> bool {
        !matches!(self, Self::Total(_))
    }

    /// The steeper vertex along column `j` of this slope, and its own slope.
    pub(super) fn descending(self, j: usize, slope: f64) -> (Vertex, f64) {
        if matches!(self, Self::Absolute(_)) && slope > 0.0 {
            (Vertex::Opposite(j), -slope)
        } else {
            (Vertex::Column(j), slope)
        }
    }

    /// Replaces `x` by the nearest vector in `X`; n is not 0, or `X` has the origin.
    pub(super) fn nearest(self, x: &mut [f64]) {
        let n = self.size();
        if n == 0.0 {
            return x.fill(0.0);
        }
        match self {
            Self::Total(_) => project_simplex(x, n),
            Self::AtMost(_) => {
                for v in x.iter_mut() {
                    *v = v.max(0.0);
                }
                if x.iter().sum::<f64>() > n {
                    project_simplex(x, n);
                }
            }
            Self::Absolute(_) => {
                if x.iter().map(|v| v.abs()).sum::<f64>() > n {
                    let signed = x.to_vec();
                    for v in x.iter_mut() {
                        *v = v.abs();
                    }
                    project_simplex(x, n);
                    x.iter_mut().zip(signed).for_each(|(v, of)| *v = v.copysign(of));
                }
            }
        }
    }

    /// The least slope of any vertex.
    pub(super) fn least_slope(self, slopes: &[f64]) -> f64 {
        let origin = if self.has_origin() { 0.0 } else { f64::INFINITY };
        slopes.iter().fold(origin, |least, slope| self.descending(0, *slope).1.min(least))
    }
}
