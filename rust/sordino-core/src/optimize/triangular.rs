//! A square factorisation rotated to lower triangular form, for streams.
//!
//! `C = P B` with orthogonal `P` has the column norms and the errors of `B`, and `C` lower triangular means that
//! coordinate t of `C x` needs only the first t inputs; with `C` and the queries `A` lower triangular, so is the
//! decoding `A C^{-1}`, and privacy extends to adaptive streams (Denisov et al. 2022, Theorem 2.1). `P` is the QL
//! factorisation: `B J = Q R` with the order of columns reversed by `J`, `C = J R J`, rows signed so that the
//! diagonal is positive. `CᵀC = BᵀB` has exactly one such solution.

use super::factorization::column_bound;
use super::linear_algebra::{
    Matrix, divide_by_lower, from_rows, largest, residual, scale_columns, scale_rows, squared_rows, to_rows,
    upper_factor,
};
use crate::error::Error;

/// Largest accepted entry of `D C − A` relative to the largest entry of `A`.
const RECONSTRUCTION: f64 = 1e-12;

/// `A = D C` with `C` lower triangular, and `D` too if `A` is.
#[derive(Debug, Clone, PartialEq)]
pub struct Triangular {
    /// Number of cells, n.
    pub size: usize,
    /// `C`, n × n, row by row: positive diagonal, zeros above it, column norms at most 1.
    pub strategy: Vec<f64>,
    /// `D = A C^{-1}`, n × n, row by row.
    pub decode: Vec<f64>,
    /// Standard deviation of each answer at noise multiplier 1: the row norms of `D`.
    pub stderrs: Vec<f64>,
}

/// Rotates the invertible strategy `B` (n × n, row by row) for square queries `A`, and scales it so that its largest
/// column norm is 1.
///
/// # Errors
/// If a length does not match, or `B` is not numerically invertible.
pub fn triangular(size: usize, strategy: &[f64], queries: &[f64]) -> Result<Triangular, Error> {
    let square = size.checked_mul(size).ok_or_else(|| Error::Overflow("the matrix is too large".into()))?;
    Error::check_len("strategy", square, strategy.len())?;
    Error::check_len("queries", square, queries.len())?;
    let queries = from_rows(size, size, queries);
    let mut rotated = rotate(&from_rows(size, size, strategy));
    let bound = column_bound(&rotated);
    scale_columns(&mut rotated, |_| 1.0 / bound);
    let decode = divide_by_lower(queries.clone(), &rotated);
    let error = residual(&decode, &rotated, &queries);
    if error.is_nan() || error > RECONSTRUCTION * largest(&queries) {
        return Err(Error::invalid("strategy", "is not invertible in double precision"));
    }
    Ok(Triangular {
        size,
        strategy: to_rows(&rotated),
        stderrs: squared_rows(&decode).into_iter().map(f64::sqrt).collect(),
        decode: to_rows(&decode),
    })
}

/// The lower triangular `C` with positive diagonal and `CᵀC = BᵀB`.
fn rotate(strategy: &Matrix) -> Matrix {
    let n = strategy.ncols();
    let reversed = Matrix::from_fn(n, n, |i, j| strategy[(i, n - 1 - j)]);
    let upper = upper_factor(&reversed);
    let mut lower = Matrix::from_fn(n, n, |i, j| if j <= i { upper[(n - 1 - i, n - 1 - j)] } else { 0.0 });
    let signs: Vec<f64> = (0..n).map(|i| lower[(i, i)].signum()).collect();
    scale_rows(&mut lower, |i| signs[i]);
    lower
}
