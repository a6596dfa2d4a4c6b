//! Symmetric weights, and the weight of a cut.

use crate::error::Error;

/// Gains below this, relative to the sum of all absolute weights, are rounding.
const ROUNDING: f64 = 1e-13;

/// Symmetric weights of `n ≥ 2` vertices.
pub(super) struct Graph<'a> {
    pub(super) weights: &'a [f64],
    pub(super) n: usize,
    /// Smaller differences of cuts are rounding.
    pub(super) rounding: f64,
}

impl<'a> Graph<'a> {
    pub(super) fn new(weights: &'a [f64], n: usize) -> Result<Self, Error> {
        if n < 2 {
            return Err(Error::invalid("n", format!("a cut needs two vertices, not {n}")));
        }
        let entries = n.checked_mul(n).ok_or_else(|| Error::invalid("n", "too many vertices"))?;
        Error::check_len("weights", entries, weights.len())?;
        let total: f64 = weights.iter().map(|w| w.abs()).sum();
        if !(4.0 * total).is_finite() {
            return Err(Error::invalid("weights", "expected finite numbers with a finite sum"));
        }
        let graph = Self { weights, n, rounding: ROUNDING * total };
        let symmetric = |i: usize| (0..i).all(|j| weights[i * n + j] == weights[j * n + i]);
        if !(0..n).all(|i| weights[i * n + i] == 0.0 && symmetric(i)) {
            return Err(Error::invalid("weights", "expected a symmetric matrix with a zero diagonal"));
        }
        Ok(graph)
    }

    pub(super) fn row(&self, v: usize) -> &'a [f64] {
        &self.weights[v * self.n..(v + 1) * self.n]
    }

    /// `w(S)`, by the definition.
    pub(super) fn cut(&self, side: &[bool]) -> f64 {
        let out = |v: usize| -> f64 { self.row(v).iter().zip(side).filter(|(_, s)| !**s).map(|(w, _)| w).sum() };
        (0..self.n).filter(|v| side[*v]).map(out).sum()
    }
}
