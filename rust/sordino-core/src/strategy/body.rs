//! The norm of the symmetric hull of a strategy's columns.

use crate::error::Error;
use crate::polytope::Polytope;
use crate::upper::Upper;
use std::sync::Arc;

/// `K = {B w : ‖w‖₁ ≤ 1}` for a matrix `B = 2^-exponent·G` in fixed point.
#[derive(Debug, Clone)]
pub struct Body {
    polytope: Arc<Polytope>,
    exponent: i32,
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.exponent == other.exponent
            && (Arc::ptr_eq(&self.polytope, &other.polytope) || self.polytope == other.polytope)
    }
}

impl Body {
    /// The body of `count` columns in `rank` dimensions; entries row by row, in units of `2^-exponent`.
    ///
    /// # Errors
    /// If the rank is too large for exact noise, or the columns do not span the space.
    pub(super) fn new(rank: usize, count: usize, entries: &[i64], exponent: i32) -> Result<Self, Error> {
        Ok(Self { polytope: Arc::new(Polytope::new(rank, count, entries, None)?), exponent })
    }

    /// The polytope, in units of `2^-exponent`.
    pub(crate) fn polytope(&self) -> (&Polytope, i32) {
        (&self.polytope, self.exponent)
    }

    /// `max ‖z‖_K` over the Euclidean unit ball, an upper bound.
    pub(super) fn largest_on_the_ball(&self) -> Upper {
        Upper::rounded(1.0 / self.polytope.inradius(), 2).scaled(self.exponent)
    }

    /// `max ‖z‖₂` over the body, an upper bound.
    pub(super) fn radius(&self) -> Upper {
        let (mantissa, exponent) = self.polytope.radius();
        Upper::integer(u128::from(mantissa)).scaled(exponent - self.exponent)
    }

    /// Upper bound of the variance of a linear function of the noise (norm scale 1) that is at most `reach` on the body.
    ///
    /// The noise is `ρ V`, `E ρ² = (r+1)(r+2)`, `V` uniform in the body. A linear function of `V` is symmetric and
    /// unimodal (Brunn-Minkowski) on an interval, so its variance is at most that of the uniform law, `reach²/3`.
    pub(super) fn variance(&self, reach: f64) -> f64 {
        let rank = self.polytope.rank() as f64;
        (rank + 1.0) * (rank + 2.0) / 3.0 * reach * reach
    }
}
