//! The spectral bound (Nikolov, Talwar & Zhang 2013, section 3.3): the least singular value of some columns.
//!
//! For weights `u` of the queries that sum to 1 and any set `S` of `k` cells, let
//!
//! `s(S) = √k·σ_min(diag(√u) A_S)`.
//!
//! **Hereditary discrepancy.** For all signs, `‖A_S χ‖_∞² ≥ Σ_i u_i (A_S χ)_i² ≥ k·σ_min²`: herdisc ≥ `s(S)`.
//!
//! **Any private mechanism.** If `M` is `(ε, δ)`-private under adding or removing a record, some database of at most
//! `k` records, one in a cell of `S`, has
//!
//! `E Σ_i u_i (M(x) − A x)_i² ≥ s(S)²·(1 − δ)eᵋ/(1 + eᵋ)²`.
//!
//! Proof. Draw `x` uniformly from `{0, 1}^S`. The least-squares estimate `z` of `x` from `M(x)` in the weights `u`
//! has `σ_min²|z − x|² ≤ Σ_i u_i(M(x) − A x)_i²`, so it is enough that no estimate of a fair bit, the others known,
//! has a mean squared error below `(1 − δ)eᵋ/(1 + eᵋ)²`. The two laws of `M` are images of those of the canonical
//! private bit (Kairouz, Oh & Viswanath 2015): with probability `δ` it is told, else it is told with odds `eᵋ`, and
//! the posterior variance is `eᵋ/(1 + eᵋ)²`.
//!
//! With `t` copies of each record, `M` is `(tε, δ(e^{tε} − 1)/(eᵋ − 1))`-private for them and the error is `t²` times
//! that of such a mechanism: put these in the formula, multiply by `t²`, and keep `kt` within the size `n` of the
//! databases. Best is `tε ≈ 2.4`, where the factor is `0.44/ε²` if `δ` is negligible: `|S| ≤ εn/2.4` in place of the
//! paper's `|S| ≤ εn`.
//!
//! Sets are prefixes of the columns in the order of pivoted orthogonalisation.

use super::super::factorization::{SLACK, not_converged};
use super::super::linear_algebra::{Matrix, leading, pivoted_columns, scale_rows, select_columns, singular_values};
use super::super::queries::Queries;
use super::{TIE, check_most, normalised};
use crate::error::Error;

/// Cells that are far from dependent.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectralBound {
    /// The cells `S`.
    pub columns: Vec<usize>,
    /// `√|S|·σ_min(diag(√u) A_S)`: the hereditary discrepancy is at least this.
    ///
    /// With uniform weights it is `(specLB/m)^{1/2}`, which bounds the root mean squared error; with others the largest
    /// standard deviation, as the documentation of the file says.
    pub value: f64,
}

/// The largest `√|S|·σ_min(diag(√u) A_S)` found with at most `most` cells; `u` are the weights of the queries divided
/// by their sum, uniform unless given. Those of `Optimized::query_weights` for the worst query are a good choice.
///
/// # Errors
/// If `most` is zero, a weight is negative, all are zero, or singular values do not converge.
pub fn spectral_bound(
    queries: Queries<'_>,
    most: usize,
    query_weights: Option<&[f64]>,
) -> Result<SpectralBound, Error> {
    check_most(most)?;
    let m = queries.rows();
    let weights = query_weights.map_or_else(|| Ok(vec![1.0 / m as f64; m]), |w| normalised("query_weights", m, w))?;
    let (mut a, scale) = queries.scaled();
    scale_rows(&mut a, |i| weights[i].sqrt());
    let (mut order, upper) = pivoted_columns(&a);
    order.truncate(largest_prefix(&upper, most.min(upper.nrows()).min(upper.ncols()))?);
    let value = least_below(&select_columns(&a, &order))? * (order.len() as f64).sqrt();
    Ok(SpectralBound { columns: order, value: value * scale })
}

/// `σ_min` rounded down, for at least as many rows as columns.
fn least_below(matrix: &Matrix) -> Result<f64, Error> {
    let values = singular_values(matrix).ok_or_else(not_converged)?;
    Ok((values[values.len() - 1] - SLACK * values[0]).max(0.0) * (1.0 - SLACK))
}

/// The `k ≤ most` of the largest `√k·σ_min` of the first `k` columns of an upper triangular matrix.
///
/// `σ_min` falls with `k`, so all sizes between `a` and `b` stay below `√(b − 1)·σ_min(a)`: intervals that cannot win
/// are skipped, and few singular value decompositions are needed.
fn largest_prefix(upper: &Matrix, most: usize) -> Result<usize, Error> {
    let least = |k: usize| least_below(&leading(upper, k));
    let value = |k: usize, least: f64| (k as f64).sqrt() * least;
    let first = least(1)?;
    let mut best = (1, first);
    let improve = |best: &mut (usize, f64), k: usize, least: f64| {
        if value(k, least) > best.1 * (1.0 + TIE) {
            *best = (k, value(k, least));
        }
    };
    if most > 1 {
        improve(&mut best, most, least(most)?);
    }
    let mut intervals = vec![(1, first, most)];
    while let Some((low, above, high)) = intervals.pop() {
        if high <= low + 1 || value(high - 1, above) <= best.1 * (1.0 + TIE) {
            continue;
        }
        let middle = usize::midpoint(low, high);
        let inside = least(middle)?;
        improve(&mut best, middle, inside);
        intervals.push((middle, inside, high));
        intervals.push((low, above, middle));
    }
    Ok(best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn skipped_sizes_could_not_win() {
        let mut state = 1u64;
        for trial in 0..60 {
            let size = 1 + trial % 24;
            let upper = Matrix::from_fn(size, size, |i, j| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let noise = (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5;
                // Diagonals that fall at different rates: the best size is anywhere.
                match i.cmp(&j) {
                    Ordering::Less => 0.3 * noise,
                    Ordering::Equal => (1.0 + i as f64).powf(-0.3 * f64::from(trial as u32 % 5)),
                    Ordering::Greater => 0.0,
                }
            });
            let value = |k: usize| (k as f64).sqrt() * least_below(&leading(&upper, k)).unwrap();
            for most in [1, size.div_ceil(2), size] {
                let expected = (1..=most).map(value).fold(0.0, f64::max);
                assert!(value(largest_prefix(&upper, most).unwrap()) >= expected * (1.0 - 1e-8), "{trial} {most}");
            }
        }
    }
}
