//! The strategy of least mean squared error among all Gaussian matrix mechanisms.
//!
//! Minimise `‖D L‖_F · max_j ‖B e_j‖` over `L B = A`, `D = diag(√ω)` for weights `ω` of the queries that sum to 1
//! (Li et al. 2010, the matrix mechanism). With `D A = Q R` and weights `v` of the columns, the dual is
//!
//! `max_v ‖R diag(√v)‖_*`,
//!
//! concave in `v`, and at any `v` the singular values `s` and left vectors `E` of `R diag(√v)` give the strategy
//! `B = diag(s)^{-1/2} Eᵀ R` and its decoding `L = D^{-1} Q E diag(s)^{1/2}`, with no division by `v`
//! (Denisov et al. 2022; Yuan, Yang, Zhang & Hao 2016). The error of that strategy is
//! `(Σ s · max_j n_j)^{1/2}`, `n_j = ‖B e_j‖²`, and `Σ_j v_j n_j = Σ s`: at the optimum all `n_j` with `v_j > 0` are equal.

use super::accelerated::{Point, Problem, start};
use super::factorization::{Lower, Optimized, not_converged, nuclear_norm_below, spread, weighted_norm};
use super::linear_algebra::{
    Matrix, Precision, left_singular, scale_columns, scale_rows, squared_columns, transposed_product,
};
use super::queries::Queries;
use super::range::Range;
use super::working_set::solve_mean;
use super::{Progress, Target};
use crate::error::Error;

/// The program on the column space.
pub(super) struct Mean<'a>(pub(super) &'a Range);

impl Mean<'_> {
    /// `E`, `s` at these weights.
    pub(super) fn spectrum(&self, weights: &[f64], precision: Precision) -> Option<(Matrix, Vec<f64>)> {
        let (vectors, values) = left_singular(&self.0.weighted(weights), precision)?;
        values.iter().all(|s| *s > 0.0).then_some((vectors, values))
    }
}

/// `diag(s)^{-1/2} Eᵀ R`.
pub(super) fn strategy(vectors: &Matrix, values: &[f64], coordinates: &Matrix) -> Matrix {
    let mut strategy = transposed_product(vectors, coordinates);
    scale_rows(&mut strategy, |i| 1.0 / values[i].sqrt());
    strategy
}

impl Problem for Mean<'_> {
    fn simplices(&self) -> Vec<usize> {
        vec![self.0.active.len()]
    }

    fn evaluate(&self, weights: &[f64], precision: Precision) -> Option<Point> {
        let (vectors, values) = self.spectrum(weights, precision)?;
        let gains = squared_columns(&strategy(&vectors, &values, &self.0.reduced));
        let total: f64 = values.iter().sum();
        let upper = (total * gains.iter().copied().fold(0.0, f64::max)).sqrt();
        Some(Point { objective: total, lower: total, upper, gains })
    }
}

/// The strategy of least root mean squared error `(Σ_i ω_i Var_i / Σ ω)^{1/2}` over the queries, all weights equal
/// unless given, with a certified bound below every strategy.
///
/// Stops when `gap` is certified, after `target.iterations`, or when `progress(iteration, gap)` breaks; the best so
/// far is returned with its own gap.
///
/// # Errors
/// If a weight is not positive and finite, or the queries are too ill-conditioned for double precision.
pub fn mean_strategy(
    queries: Queries<'_>,
    weights: Option<&[f64]>,
    target: Target,
    progress: Progress<'_>,
) -> Result<Optimized, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let roots = roots(a.nrows(), weights)?;
    let mut weighted = a.clone();
    scale_rows(&mut weighted, |i| roots[i]);
    let range = Range::new(&weighted)?;
    let start = start(target, a.ncols(), &[(0, &range.active)])?;
    let solution =
        solve_mean(&range, Target { start: start.as_deref(), ..target }, progress).ok_or_else(not_converged)?;
    let lower = Lower {
        query_weights: roots.iter().map(|root| root * root).collect(),
        cell_weights: spread(a.ncols(), &range.active, &solution.lower.weights),
        value: nuclear_norm_below(&range.weighted(&solution.lower.weights)).ok_or_else(not_converged)?,
    };
    let (vectors, values) =
        Mean(&range).spectrum(&solution.upper.weights, Precision::Careful).ok_or_else(not_converged)?;
    let factors = factors(&range, (vectors, &values), &roots);
    Optimized::new(&a, scale, factors, |decode| weighted_norm(decode, &roots), lower, solution.iterations)
}

/// The strategy of a spectrum on the column space, and its decoding `D^{-1} Q E diag(s)^{1/2}`, from `√ω`.
pub(super) fn factors(range: &Range, (vectors, values): (Matrix, &[f64]), roots: &[f64]) -> (Matrix, Matrix) {
    let encode = strategy(&vectors, values, &range.coordinates);
    let mut decode = vectors;
    scale_columns(&mut decode, |i| values[i].sqrt());
    let mut decode = range.embed(decode);
    scale_rows(&mut decode, |i| 1.0 / roots[i]);
    (encode, decode)
}

/// `√ω` for weights that sum to 1.
pub(super) fn roots(rows: usize, weights: Option<&[f64]>) -> Result<Vec<f64>, Error> {
    let Some(weights) = weights else { return Ok(vec![(1.0 / rows as f64).sqrt(); rows]) };
    Error::check_len("weights", rows, weights.len())?;
    let total: f64 = weights.iter().sum();
    if weights.iter().any(|w| w.is_nan() || *w <= 0.0) || !total.is_finite() {
        return Err(Error::invalid("weights", "must be positive and finite; leave out queries that do not count"));
    }
    Ok(weights.iter().map(|w| (w / total).sqrt()).collect())
}
