//! Bounds on the hereditary discrepancy of queries, and signs of low discrepancy.
//!
//! `herdisc(A) = max_S min_{χ ∈ {−1,1}^S} ‖A_S χ‖_∞` over sets `S` of cells. With `γ₂(A)`, the error of the best
//! strategy for the worst query, `γ₂(A)/O(log min(m, n)) ≤ herdisc(A) ≤ O(√log m)·γ₂(A)` (Matoušek, Nikolov & Talwar
//! 2020). Up to such factors it is the error that privacy costs (Muthukrishnan & Nikolov 2012).
//!
//! **Below**: the largest entry (one cell), and the determinant and spectral bounds of `lower_bounds/`, the latter also
//! with the weights of the queries that prove `γ₂`.
//!
//! **Above**, from any factorisation `A = L B` with columns `|b_j| ≤ 1` and rows `l_i` of `L`. Each holds for every
//! `S`.
//!
//! * The Gram–Schmidt walk draws signs for which `y = Σ_j χ_j b_j` is subgaussian, `E exp⟨y, v⟩ ≤ exp(|v|²/2)`
//!   (`coloring.rs`). So `P(|⟨l_i, y⟩| ≥ s) ≤ 2 exp(−s²/(2|l_i|²))`, and if these sum to less than 1 some signs have
//!   discrepancy below `s`: at most `√(2 ln 2m)·max_i|l_i|`.
//! * Banaszczyk (1998): some signs put `y` into `5K` for a convex body `K` of Gaussian measure at least 1/2. For
//!   `K = {y : |⟨l_i, y⟩| ≤ t max_i|l_i| for all i}` the measure is at least `P(|Z| ≤ t)^m` (Šidák 1967), which is
//!   1/2 at `t_m = Φ^{-1}((1 + 2^{−1/m})/2)`. This gives `5 t_m max_i|l_i|`, larger than the first for every `m`.
//!
//! The best factorisation has `max_i|l_i| = γ₂(A)`.

mod coloring;

pub use coloring::{Coloring, coloring};

use super::factorization::{Optimized, SLACK};
use super::linear_algebra::{from_rows, largest, residual, squared_columns, squared_rows};
use super::lower_bounds::{DeterminantBound, SpectralBound, determinant_bound, spectral_bound};
use super::normal::upper_quantile;
use super::queries::Queries;
use super::range::distinct_rows;
use crate::error::Error;
use std::f64::consts::LN_2;

/// Largest accepted entry of `L B − A`, relative to the largest entry of `A`.
const RECONSTRUCTION: f64 = 1e-8;

/// An interval around the hereditary discrepancy, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscrepancyBounds {
    /// The largest of the lower bounds.
    pub lower: f64,
    /// The least of the upper bounds.
    pub upper: f64,
    /// The largest entry of the queries, a lower bound.
    pub entry: f64,
    /// Lower bound from determinants.
    pub determinant: DeterminantBound,
    /// Lower bound from singular values, all queries weighted alike.
    pub uniform: SpectralBound,
    /// Lower bound from singular values, queries weighted as the strategy's own lower bound weights them.
    pub weighted: SpectralBound,
    /// Upper bound from the Gram–Schmidt walk.
    pub walk: f64,
    /// Upper bound `5 t_m max_i|l_i|` from Banaszczyk's theorem.
    pub banaszczyk: f64,
}

/// Bounds from a strategy for these queries; the one of `worst_strategy` gives the best.
///
/// # Errors
/// If the strategy is not one of these queries, or singular values do not converge.
pub fn hereditary_discrepancy(queries: Queries<'_>, found: &Optimized) -> Result<DiscrepancyBounds, Error> {
    let (a, scale) = queries.scaled();
    let (m, n, r) = (a.nrows(), a.ncols(), found.rank);
    check_shape(queries, found)?;
    Error::check_len("decode", m * r, found.decode.len())?;
    let strategy = from_rows(r, n, &found.strategy);
    let scaled: Vec<f64> = found.decode.iter().map(|l| l / scale).collect();
    let decode = from_rows(m, r, &scaled);
    let difference = residual(&decode, &strategy, &a);
    if difference.is_nan() || difference > RECONSTRUCTION * largest(&a) {
        return Err(Error::invalid("strategy", "and its decoding do not reconstruct these queries"));
    }
    // Equal or opposite rows have the same discrepancy, and zero rows none.
    let kept = distinct_rows(&a);
    let column = squared_columns(&strategy).into_iter().fold(0.0, f64::max).sqrt();
    let rows = squared_rows(&decode);
    let norms: Vec<f64> = kept.iter().map(|i| rows[*i].sqrt() * column).collect();
    let longest = norms.iter().copied().fold(0.0, f64::max);
    // `A` is `L B` up to the difference, and signs add it up over the cells.
    let rounded = |value: f64| (value * (1.0 + SLACK) + n as f64 * difference) * scale;
    let walk = rounded(union_bound(&norms, longest));
    let banaszczyk = rounded(5.0 * half_measure(norms.len()) * longest);

    let entry = largest(&a) * scale;
    let most = m.min(n);
    let determinant = determinant_bound(queries, most)?;
    let uniform = spectral_bound(queries, most, None)?;
    let weighted = spectral_bound(queries, most, Some(&found.query_weights))?;
    let lower = entry.max(determinant.discrepancy).max(uniform.value).max(weighted.value);
    let upper = walk.min(banaszczyk);
    Ok(DiscrepancyBounds { lower, upper, entry, determinant, uniform, weighted, walk, banaszczyk })
}

/// Fails unless the strategy has the shape of one for these queries.
fn check_shape(queries: Queries<'_>, found: &Optimized) -> Result<(), Error> {
    Error::check_len("decode", queries.rows(), found.rows)?;
    Error::check_len("strategy", found.rank * queries.columns(), found.strategy.len())
}

/// `t_m = Φ^{-1}((1 + 2^{−1/m})/2)`: `m` slabs of half-width `t_m` have Gaussian measure at least 1/2.
fn half_measure(m: usize) -> f64 {
    upper_quantile(-(-LN_2 / m as f64).exp_m1() / 2.0)
}

/// An `s`, almost the least, with `Σ_i 2 exp(−s²/(2 norm_i²)) < 1`, for norms up to `longest`.
fn union_bound(norms: &[f64], longest: f64) -> f64 {
    let expected = |s: f64| norms.iter().map(|norm| 2.0 * (-0.5 * (s / norm).powi(2)).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, longest * (2.0 * (2.0 * norms.len() as f64 + 1.0).ln()).sqrt());
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if expected(middle) < 1.0 { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_the_upper_bounds() {
        // 5 t_m, by an independent quantile.
        for (m, expected) in [(1, 3.372_448_750_980_409), (64, 12.750_049_371_981_13), (2080, 17.940_140_774_808_874)] {
            assert!((5.0 * half_measure(m) / expected - 1.0).abs() < 1e-12, "{m}");
        }
        for m in [1, 2, 3, 10, 100, 10_000, 1_000_000] {
            let walk = union_bound(&vec![3.0; m], 3.0);
            let closed = 3.0 * (2.0 * (2.0 * m as f64).ln()).sqrt();
            assert!((walk / closed - 1.0).abs() < 1e-12 && walk < 3.0 * 5.0 * half_measure(m), "{m}");
        }
        // Shorter rows hardly count.
        let mixed = union_bound(&[1.0, 0.1, 0.1], 1.0);
        assert!((mixed - (2.0 * 2f64.ln()).sqrt()).abs() < 1e-12, "{mixed}");
    }
}
