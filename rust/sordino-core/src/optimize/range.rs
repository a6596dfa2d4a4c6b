//! A matrix on its column space: `A = Q R` with orthonormal columns in `Q` and `R` of full row rank.
//!
//! Errors do not change: `L B = A` if and only if `(Qᵀ L) B = R`, and the part of `L` outside the range of `Q` only
//! adds error.

use super::factorization::not_converged;
use super::linear_algebra::{
    Matrix, product, scale_columns, select_columns, singular_values, thin_singular, transpose, transposed_product,
};
use crate::error::Error;
use std::collections::HashSet;

/// Singular values below this fraction of the largest are zero.
const RANK_TOLERANCE: f64 = 1e-12;

/// `A = Q R`.
#[derive(Debug)]
pub(super) struct Range {
    /// `Q`; `None` is the identity (`A` has full row rank).
    pub basis: Option<Matrix>,
    /// `R`, all columns.
    pub coordinates: Matrix,
    /// Columns that constrain: not zero, and neither equal nor opposite to an earlier one.
    pub active: Vec<usize>,
    /// `R` on the active columns.
    pub reduced: Matrix,
}

impl Range {
    /// Reduces a matrix that is not zero.
    pub(super) fn new(a: &Matrix) -> Result<Self, Error> {
        let active = distinct_columns(a);
        let small = select_columns(a, &active);
        let full = small.nrows() <= small.ncols() && {
            let values = singular_values(&small).ok_or_else(not_converged)?;
            values.last() > values.first().map(|s| s * RANK_TOLERANCE).as_ref()
        };
        if full {
            return Ok(Self { basis: None, coordinates: a.clone(), active, reduced: small });
        }
        let (left, values, _) = thin_singular(&small).ok_or_else(not_converged)?;
        let rank = values.iter().filter(|s| **s > RANK_TOLERANCE * values[0]).count();
        let basis = select_columns(&left, &(0..rank).collect::<Vec<_>>());
        let coordinates = transposed_product(&basis, a);
        let reduced = select_columns(&coordinates, &active);
        Ok(Self { basis: Some(basis), coordinates, active, reduced })
    }

    /// `Q X`.
    pub(super) fn embed(&self, x: Matrix) -> Matrix {
        match &self.basis {
            Some(basis) => product(basis, &x),
            None => x,
        }
    }

    /// `R diag(√v)` for weights of the active columns, without those of weight zero.
    pub(super) fn weighted(&self, weights: &[f64]) -> Matrix {
        let some: Vec<usize> = (0..weights.len()).filter(|j| weights[*j] != 0.0).collect();
        let mut weighted =
            if some.len() == weights.len() { self.reduced.clone() } else { select_columns(&self.reduced, &some) };
        scale_columns(&mut weighted, |j| weights[some[j]].sqrt());
        weighted
    }
}

/// Columns that are not zero and neither equal nor opposite to an earlier one.
fn distinct_columns(a: &Matrix) -> Vec<usize> {
    let mut seen = HashSet::new();
    (0..a.ncols())
        .filter(|j| {
            let column = a.col_as_slice(*j);
            // Up to sign: the first non-zero entry made positive; `+ 0.0` turns −0 into 0.
            let Some(lead) = column.iter().find(|v| **v != 0.0) else { return false };
            seen.insert(column.iter().map(|v| (v * lead.signum() + 0.0).to_bits()).collect::<Vec<_>>())
        })
        .collect()
}

/// Rows that are not zero and neither equal nor opposite to an earlier one.
pub(super) fn distinct_rows(a: &Matrix) -> Vec<usize> {
    distinct_columns(&transpose(a))
}

#[cfg(test)]
mod tests {
    use super::super::linear_algebra::{from_rows, residual};
    use super::*;

    #[test]
    fn rank_and_distinct_columns() {
        let rows = [1.0, -1.0, 0.0, 2.0, 1.0, 2.0, -2.0, -0.0, 4.0, 0.0, 3.0, -3.0, 0.0, 6.0, 1.0];
        let a = from_rows(3, 5, &rows);
        let range = Range::new(&a).unwrap();
        assert_eq!((range.reduced.nrows(), range.active.as_slice()), (2, [0, 3, 4].as_slice()));
        assert!(residual(range.basis.as_ref().unwrap(), &range.coordinates, &a) < 1e-14);
        let square = from_rows(2, 2, &[1.0, 0.0, 1.0, 1.0]);
        assert!(Range::new(&square).unwrap().basis.is_none());
        assert_eq!(distinct_rows(&from_rows(3, 2, &[1.0, 2.0, 0.0, 0.0, -1.0, -2.0])), [0]);
    }
}
