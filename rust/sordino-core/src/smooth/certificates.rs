//! Certified ranges of trigonometric polynomials, from their values on grids.
//!
//! With `u = cos θ` Chebyshev sums are cosine polynomials. On `M` intervals of `[0, π]` a polynomial `F` of degree `N < M`
//! in an angle satisfies `‖F‖_∞ ≤ max_grid |F| / cos(πN/(2M))`: between its largest value and the nearest point of the grid,
//! at most `π/(2M)` away, it cannot fall faster than the cosine of the same height (Ehlich & Zeller 1964; M. Riesz's
//! form of Bernstein's inequality). With several angles the factors multiply. Taken around the middle of the range on the
//! grid, the allowance is a share of half the range.

use crate::linear_algebra as la;
use std::f64::consts::PI;

/// Values on a grid of several angles.
const MOST_GRID: usize = 1 << 22;
/// Intervals a degree: what is allowed for on each axis is `1/cos(π/2/intervals) − 1`.
const FINEST: usize = 256;
const COARSEST: usize = 8;

/// The range of values on a grid, extended to all angles: `overshoot` is the product of the `1/cos`, `error` bounds the
/// errors of the values.
fn extended((low, high): (f64, f64), overshoot: f64, error: f64) -> (f64, f64) {
    let middle = f64::midpoint(low, high);
    let radius = (high - low) / 2.0 * overshoot * (1.0 + 1e-12) + 2.0 * error;
    (middle - radius, middle + radius)
}

fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

fn overshoot(degree: usize, intervals: usize) -> f64 {
    (PI * degree as f64 / (2.0 * intervals as f64)).cos().recip()
}

/// Lower and upper bound of `Σ_k a_k cos kθ`.
pub(super) fn cosine_range(coefficients: &[f64]) -> (f64, f64) {
    let degree = coefficients.len() - 1;
    let intervals = (FINEST * degree).next_power_of_two().max(1 << 14);
    let mut padded = vec![0.0; 2 * intervals];
    padded[..=degree].copy_from_slice(coefficients);
    let transform = realfft::RealFftPlanner::<f64>::new().plan_fft_forward(2 * intervals);
    let mut spectrum = transform.make_output_vec();
    // The lengths are those that the plan asks for.
    if transform.process(&mut padded, &mut spectrum).is_err() {
        let most: f64 = coefficients.iter().map(|a| a.abs()).sum();
        return (-most, most);
    }
    let norm = coefficients.iter().map(|a| a * a).sum::<f64>().sqrt();
    let error = f64::EPSILON * 8.0 * (2.0 * intervals as f64).log2() * (2.0 * intervals as f64).sqrt() * norm;
    extended(range(spectrum.iter().map(|value| value.re)), overshoot(degree, intervals), error)
}

/// For `k(u, v) = Σ_a ψ_a(u) ψ_a(v)`, `ψ = Γ T`: an upper bound of `k(u, u)` and a lower bound of `k(u, v)`.
pub(super) fn kernel_range(degree: usize, mixing: &[f64]) -> (f64, f64) {
    let features = mixing.len() / degree;
    let row_sums = mixing.chunks_exact(degree).map(|row| row.iter().map(|entry| entry.abs()).sum::<f64>());
    let error = row_sums.map(|sum| sum * sum).sum::<f64>() * (degree as f64 + 8.0) * 4.0 * f64::EPSILON;
    // Features × (intervals + 1), stored by columns.
    let transposed: Vec<f64> = (0..degree).flat_map(|k| mixing.iter().skip(k).step_by(degree).copied()).collect();
    let on_grid = |intervals: usize| -> Vec<f64> {
        let cosines: Vec<f64> =
            (0..=intervals).flat_map(|i| (0..degree).map(move |k| cosine(i * k, intervals))).collect();
        let mut grid = vec![0.0; features * (intervals + 1)];
        la::product_into(&mut grid, &transposed, &cosines, degree);
        grid
    };
    // Of k(u, u), which hardly moves, a coarse grid says enough.
    let fine = (32 * degree).max(1 << 10);
    let squares = on_grid(fine).chunks_exact(features).map(|column| la::inner(column, column)).collect::<Vec<_>>();
    let squared = extended(range(squares), overshoot(2 * (degree - 1), fine), error).1;
    let intervals = (32 * degree).clamp(2048, (16 * degree).max(4096));
    let grid = on_grid(intervals);
    let mut products = Vec::new();
    let mut found = (f64::INFINITY, f64::NEG_INFINITY);
    let transposed: Vec<f64> = (0..features).flat_map(|a| grid.iter().skip(a).step_by(features).copied()).collect();
    for strip in grid.chunks(64 * features) {
        products.resize(strip.len() / features * (intervals + 1), 0.0);
        // (intervals + 1) × features times features × strip.
        la::product_into(&mut products, &transposed, strip, features);
        let (low, high) = range(products.iter().copied());
        found = (found.0.min(low), found.1.max(high));
    }
    let both = overshoot(degree - 1, intervals).powi(2);
    (squared, extended(found, both, error).0)
}

/// A lower bound of `Σ_m a_m φ_m` with coefficients of all indices below `sizes`, row-major; `None` if the grid that
/// would show it is too large.
pub(super) fn lower_bound(sizes: &[usize], coefficients: &[f64]) -> Option<f64> {
    let degrees: Vec<usize> = sizes.iter().map(|size| size - 1).collect();
    let points =
        |fineness: usize| degrees.iter().try_fold(1usize, |product, degree| product.checked_mul(fineness * degree + 1));
    let fits = |fineness: &usize| points(*fineness).is_some_and(|points| points <= MOST_GRID);
    let fineness = std::iter::successors(Some(FINEST), |f| Some(f / 2)).take_while(|f| *f >= COARSEST).find(fits)?;
    let (mut values, mut inner, mut factor) = (coefficients.to_vec(), 1, 1.0);
    for degree in degrees.iter().rev() {
        let intervals = fineness * degree;
        if *degree > 0 {
            let cosines: Vec<f64> =
                (0..=intervals).flat_map(|i| (0..=*degree).map(move |k| cosine(i * k, intervals))).collect();
            values = la::along_axis(&la::from_rows(intervals + 1, degree + 1, &cosines), false, &values, inner);
            factor *= overshoot(*degree, intervals);
        }
        inner *= intervals + 1;
    }
    let most: f64 = coefficients.iter().map(|a| a.abs()).sum();
    let terms: usize = sizes.iter().sum();
    Some(extended(range(values), factor, most * (terms as f64 + 8.0) * 4.0 * f64::EPSILON).0)
}

/// `cos(π·numerator/denominator)`, with the angle reduced exactly.
fn cosine(numerator: usize, denominator: usize) -> f64 {
    let turn = 2 * denominator;
    let rest = if denominator == 0 { 0 } else { numerator % turn };
    (PI * rest as f64 / denominator.max(1) as f64).cos()
}

#[cfg(test)]
mod tests {
    use super::{cosine_range, kernel_range, lower_bound};
    use proptest::prelude::*;
    use std::f64::consts::PI;

    fn value(a: &[f64], theta: f64) -> f64 {
        a.iter().enumerate().map(|(k, a)| a * (k as f64 * theta).cos()).sum()
    }

    #[test]
    fn the_least_value_of_equal_cosines_is_known() {
        // κ_3 = 1/8 at cos θ = -1/4: 1 + x + 2x² − 1.
        let (low, high) = cosine_range(&[1.0; 3]);
        assert!((low + 0.125).abs() < 1e-6 && low <= -0.125, "{low}");
        assert!((high - 3.0).abs() < 1e-5 && high >= 3.0);
    }

    proptest! {
        #[test]
        fn ranges_contain_every_value(a in prop::collection::vec(-1.0f64..1.0, 1..12), theta in 0.0f64..PI) {
            let (low, high) = cosine_range(&a);
            prop_assert!(low <= value(&a, theta) && value(&a, theta) <= high);
            let least = (0..20_000).map(|i| value(&a, f64::from(i) * PI / 19_999.0)).fold(f64::INFINITY, f64::min);
            prop_assert!(low >= least - 1e-5 * (high - low) - 1e-9);
        }

        #[test]
        fn bounds_of_several_angles_hold(
            a in prop::collection::vec(-1.0f64..1.0, 12), theta in 0.0f64..PI, phi in 0.0f64..PI,
        ) {
            let bound = lower_bound(&[3, 4], &a).unwrap();
            let at: f64 = (0..12).map(|i| a[i] * ((i / 4) as f64 * theta).cos() * ((i % 4) as f64 * phi).cos()).sum();
            prop_assert!(bound <= at);
        }

        #[test]
        fn kernels_stay_in_their_range(gamma in prop::collection::vec(-1.0f64..1.0, 8), u in 0.0f64..PI, v in 0.0f64..PI) {
            let (squared, least) = kernel_range(4, &gamma);
            let k = |u: f64, v: f64| gamma.chunks(4).map(|row| value(row, u) * value(row, v)).sum::<f64>();
            prop_assert!(k(u, u) <= squared && least <= k(u, v));
        }
    }

    #[test]
    fn what_is_too_large_has_no_grid() {
        assert!(lower_bound(&[2; 30], &[0.0; 1]).is_none());
    }
}
