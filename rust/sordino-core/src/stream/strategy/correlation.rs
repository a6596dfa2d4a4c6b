//! Sensitivity of Toeplitz strategies to units that take part many times, whatever the signs of the kernel.

use crate::stream::participation::Participation;
use crate::transform::fourier::RealFourier;
use crate::upper::Upper;
use num_complex::Complex;

/// Slack of the autocorrelation, relative to lag 0: far above the error of a transform of 2^24 doubles.
const SLACK: f64 = 1e-11;

/// Upper bound of `‖Σ_j c_{·−t_j}‖₂` over all `t_j` at least `separation` apart.
///
/// `‖·‖² ≤ Σ_{i,j} g(|t_i − t_j|)`, `g` the autocorrelation of `|c|`; the `l`-th neighbour is at least `l·separation`
/// away, so `m g(0) + 2 Σ_l (m − l) max_{L ≥ l·separation} g(L)` bounds it. `tail` bounds `‖c‖₂` beyond the entries
/// given; `norm` bounds all of `‖c‖₂`. Never more than `m` times the norm.
pub(super) fn pattern_norm(kernel: &[f64], tail: f64, norm: Upper, pattern: &Participation, steps: u64) -> Upper {
    let count = pattern.count(steps);
    let triangle = norm * Upper::integer(count.into());
    if count == 1 || kernel.is_empty() {
        return triangle;
    }
    let lags = autocorrelation(kernel);
    let total = norm.get() * norm.get();
    let extra = SLACK * total + tail * (2.0 * norm.get() + tail);
    let mut furthest = lags;
    for lag in (0..furthest.len() - 1).rev() {
        furthest[lag] = furthest[lag].max(furthest[lag + 1]);
    }
    let mut square = count as f64 * total;
    let mut far = count - 1; // neighbours beyond the entries given
    for l in 1..count {
        let Some(g) = usize::try_from(l * pattern.separation()).ok().and_then(|lag| furthest.get(lag)) else { break };
        square += 2.0 * (count - l) as f64 * (g.max(0.0) + extra);
        far -= 1;
    }
    square += far as f64 * (far + 1) as f64 * extra;
    triangle.min(Upper::rounded(square * (1.0 + 1e-12), 1).sqrt())
}

/// `Σ_i |c_i c_{i+L}|` for every lag `L`.
fn autocorrelation(kernel: &[f64]) -> Vec<f64> {
    let len = (2 * kernel.len()).next_power_of_two();
    let transform = RealFourier::new(len);
    let mut padded: Vec<f64> = kernel.iter().map(|c| c.abs()).collect();
    padded.resize(len, 0.0);
    let mut power: Vec<Complex<f64>> =
        transform.spectrum(&padded).iter().map(|v| Complex::new(v.norm_sqr() / len as f64, 0.0)).collect();
    transform.inverse(&mut power, &mut padded);
    padded.truncate(kernel.len());
    padded
}

/// Longest stream whose exchanges are followed one by one.
pub(super) const MOST_EXCHANGED: usize = 1 << 13;

/// Upper bound of `‖C(e_a − e_b)‖₂` and `‖C e_a‖₂` for the lower triangular Toeplitz matrix with this kernel.
///
/// `G_aa + G_bb − 2 G_ab`, `G_ab = Σ_{m < n − b} c_m c_{m + b − a}` for a ≤ b, every pair of columns in turn.
pub(super) fn exchange_norm(kernel: &[f64]) -> Upper {
    let n = kernel.len();
    let sums = |lag: usize| {
        kernel.iter().zip(&kernel[lag..]).scan(0.0, |sum, (a, b)| {
            *sum += a * b;
            Some(*sum)
        })
    };
    let squares: Vec<f64> = sums(0).collect();
    let mut worst = squares[n - 1];
    for lag in 1..n {
        // The k-th sum is of columns that end k + 1 and k + 1 + lag entries before the last.
        for (k, product) in sums(lag).enumerate() {
            worst = worst.max(squares[k] + squares[k + lag] - 2.0 * product);
        }
    }
    let size: f64 = squares[n - 1];
    Upper::rounded(worst + 1e-11 * size, 1).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_exchange_exceeds_the_bound_and_one_attains_it(kernel in prop::collection::vec(-1.0f64..1.0, 1..12)) {
            let n = kernel.len();
            let column = |a: usize| -> Vec<f64> {
                (0..n).map(|t| if t >= a { kernel[t - a] } else { 0.0 }).collect()
            };
            let norm = |v: Vec<f64>| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let mut worst = norm(column(0));
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
                worst = worst.max(norm(column(a).iter().zip(column(b)).map(|(x, y)| x - y).collect()));
            }
            let bound = exchange_norm(&kernel).get();
            prop_assert!(worst <= bound && bound <= worst * (1.0 + 1e-9) + 1e-5, "{worst} {bound}");
        }

        #[test]
        fn no_pattern_exceeds_the_bound(
            kernel in prop::collection::vec(-1.0f64..1.0, 1..12),
            gaps in prop::collection::vec(0usize..4, 0..5),
            separation in 1usize..4,
        ) {
            let norm = kernel.iter().map(|c| c * c).sum::<f64>().sqrt();
            prop_assume!(norm > 1e-3);
            let count = gaps.len() + 1;
            let pattern = Participation::new(count as u64, 1, separation as u64).unwrap();
            let bound = pattern_norm(&kernel, 0.0, Upper::rounded(norm, 8), &pattern, 1000).get();
            let mut sum = vec![0.0; 200];
            let mut position = 0;
            for gap in std::iter::once(0).chain(gaps.iter().map(|gap| gap + separation)) {
                position += gap;
                for (i, c) in kernel.iter().enumerate() {
                    sum[position + i] += c;
                }
            }
            let found = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
            prop_assert!(found <= bound, "{found} {bound}");
        }
    }
}
