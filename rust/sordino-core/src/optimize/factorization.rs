//! The result of an optimisation: a factorisation `A = L B` and its certificate.

use super::linear_algebra::{
    Matrix, largest, residual, scale_columns, scale_rows, singular_values, squared_columns, squared_rows, to_rows,
};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;

/// Relative slack of lower bounds: more than the backward error of singular values up to rank 1000.
pub(super) const SLACK: f64 = 1e-12;

/// Largest accepted entry of `L B − A`, relative to the largest entry of `A`.
const RECONSTRUCTION: f64 = 1e-10;

/// A strategy `B`, its decoding `L` with `L B = A`, and bounds on the least error of any strategy.
///
/// Errors are standard deviations at noise multiplier 1 (noise of standard deviation 1 on every coordinate of
/// `B x`, sensitivity at most 1). Multiply them by the noise multiplier.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimized {
    /// Number of queries, m.
    pub rows: usize,
    /// Number of cells, n.
    pub columns: usize,
    /// Rank of the queries, r: coordinates that are measured.
    pub rank: usize,
    /// `B`, r × n, row by row; every column has Euclidean norm at most 1.
    pub strategy: Vec<f64>,
    /// `L`, m × r, row by row.
    pub decode: Vec<f64>,
    /// Weights `u` of the queries, sum 1: half of the proof of `lower` (for the mean error, the weights asked for).
    pub query_weights: Vec<f64>,
    /// Weights `v` of the cells, sum 1: the other half.
    pub cell_weights: Vec<f64>,
    /// No strategy has a smaller error than this: `‖diag(√u) A diag(√v)‖_*`, rounded down.
    pub lower: f64,
    /// The error of this strategy.
    pub upper: f64,
    /// `upper/lower − 1`.
    pub gap: f64,
    /// Evaluations of the program.
    pub iterations: usize,
}

/// A proven lower bound.
pub(super) struct Lower {
    pub query_weights: Vec<f64>,
    pub cell_weights: Vec<f64>,
    pub value: f64,
}

impl Optimized {
    /// Checks and normalises a factorisation. `error` reads the error off `L`; all are those of `a`,
    /// and are multiplied by `scale`.
    pub(super) fn new(
        a: &Matrix,
        scale: f64,
        (mut strategy, mut decode): (Matrix, Matrix),
        error: impl Fn(&Matrix) -> f64,
        bound: Lower,
        iterations: usize,
    ) -> Result<Self, Error> {
        let norm = column_bound(&strategy);
        normalise(a, &mut strategy, &mut decode, norm)?;
        let upper = error(&decode);
        scale_columns(&mut decode, |_| scale);
        Ok(Self {
            rows: a.nrows(),
            columns: a.ncols(),
            rank: strategy.nrows(),
            strategy: to_rows(&strategy),
            decode: to_rows(&decode),
            query_weights: bound.query_weights,
            cell_weights: bound.cell_weights,
            lower: bound.value * scale,
            upper: upper * scale,
            gap: upper / bound.value - 1.0,
            iterations,
        })
    }
}

/// Divides `B` by the norm, multiplies `L` by it, and checks that `L B = A`.
pub(super) fn normalise(a: &Matrix, strategy: &mut Matrix, decode: &mut Matrix, norm: f64) -> Result<(), Error> {
    scale_rows(strategy, |_| 1.0 / norm);
    scale_columns(decode, |_| norm);
    let difference = residual(decode, strategy, a);
    if difference.is_nan() || difference > RECONSTRUCTION * largest(a) {
        return Err(Error::Unsupported(
            "the queries are too ill-conditioned for a factorisation in double precision".into(),
        ));
    }
    Ok(())
}

/// An upper bound on the column norms of `B` that survives a division of `B` by it, entry by entry.
pub(super) fn column_bound(strategy: &Matrix) -> f64 {
    let norm = squared_columns(strategy).into_iter().fold(0.0, f64::max).sqrt();
    norm * (1.0 + UNIT_ROUNDOFF * (strategy.nrows() as f64 + 8.0))
}

/// What a search says whose singular values are not found.
pub(super) fn not_converged() -> Error {
    Error::Unsupported("the singular values of the queries did not converge".into())
}

/// `√(Σ ω_i ‖l_i‖²)` over the rows of a decoding, from `√ω`.
pub(super) fn weighted_norm(decode: &Matrix, roots: &[f64]) -> f64 {
    squared_rows(decode).iter().zip(roots).map(|(n, root)| n * root * root).sum::<f64>().sqrt()
}

/// `‖M‖_*` rounded down.
pub(super) fn nuclear_norm_below(matrix: &Matrix) -> Option<f64> {
    Some(singular_values(matrix)?.iter().sum::<f64>() * (1.0 - SLACK))
}

/// Weights of all from the weights of some, zero elsewhere.
pub(super) fn spread(len: usize, indices: &[usize], weights: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; len];
    for (index, weight) in indices.iter().zip(weights) {
        all[*index] = *weight;
    }
    all
}
