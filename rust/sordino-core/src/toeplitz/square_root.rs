//! The square root of counting, `(1 − z)^{−1/2}`: the yardstick of every prefix-sum strategy.

use std::f64::consts::{LN_2, PI};

/// Euler's constant.
const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

/// Up to here the sum is taken term by term; beyond, the expansion's first dropped term is below 1e-20.
const DIRECT: u64 = 256;

/// `f(k) = C(2k, k)/4^k` for `k < n`: the coefficients of `(1 − z)^{−1/2}`, which is both `B` and `C` of
/// the square-root factorization (Fichtenberger, Henzinger & Upadhyay 2023).
pub fn square_root_coefficients(n: usize) -> Vec<f64> {
    std::iter::successors(Some((1.0, 1.0)), |(value, k)| Some((value * (2.0 * k - 1.0) / (2.0 * k), k + 1.0)))
        .map(|(value, _)| value)
        .take(n)
        .collect()
}

/// `S_t = Σ_{k<t} f(k)²`, relative error below 1e-14.
///
/// The square-root factorization of `t` steps has both error norms `√S_t`, so its `MaxSE` is `S_t`
/// itself. These are Landau's constants `G_{t−1}`; with `M = t − 1/4`,
/// `π S_t = ln M + γ + 4 ln 2 + 11/(192M²) − 1541/(122880M⁴) + 63433/(8257536M⁶) − …`
/// (even powers only: the sum by the midpoint Euler-Maclaurin formula, the terms by Stirling's).
pub fn square_root_norm_squared(t: u64) -> f64 {
    if t <= DIRECT {
        return square_root_coefficients(t as usize).iter().map(|f| f * f).sum();
    }
    let middle = t as f64 - 0.25;
    let square = 1.0 / (middle * middle);
    let series = square * (11.0 / 192.0 - square * (1541.0 / 122_880.0 - square * 63433.0 / 8_257_536.0));
    (middle.ln() + EULER_GAMMA + 4.0 * LN_2 + series) / PI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        for (t, value, digits) in [
            (1, 1.0, 1e-15),
            (2, 1.25, 1e-15),
            (4, 1.488_281, 5e-7),
            (16, 1.943_879, 5e-7),
            (1024, 3.272_554, 5e-7),
            (65536, 4.596_444, 5e-7),
            (1 << 20, 5.478_988, 5e-7),
        ] {
            assert!((square_root_norm_squared(t) - value).abs() <= digits, "{t}");
        }
        assert_eq!(square_root_coefficients(4), [1.0, 0.5, 0.375, 0.3125]);
    }

    /// Term by term in fixed point, exact to 2^-78, against the expansion.
    #[test]
    fn expansion_matches_the_sum() {
        const POINT: u32 = 100;
        let (mut term, mut sum, mut lost) = (1u128 << POINT, 0.0f64, 0.0f64);
        for k in 1..=1u64 << 22 {
            let value = term as f64 / 2f64.powi(POINT as i32);
            // Compensated summation.
            let add = value * value - lost;
            let next = sum + add;
            lost = (next - sum) - add;
            sum = next;
            if k <= 1024 || k.is_power_of_two() || k % 100_003 == 0 {
                let closed = square_root_norm_squared(k);
                assert!((closed / sum - 1.0).abs() < 1e-14, "{k}: {closed} {sum}");
            }
            term = term * u128::from(2 * k - 1) / u128::from(2 * k);
        }
    }

    #[test]
    fn closed_bounds_hold() {
        let constant = (EULER_GAMMA + 4.0 * LN_2) / PI;
        assert!((constant - 1.066_275_853_2).abs() < 1e-10);
        for t in (1..2000).chain((11..44).map(|k| 1 << k)) {
            let (norm, t) = (square_root_norm_squared(t), t as f64);
            assert!(norm <= 1.0 + ((4.0 * t - 1.0) / 3.0).ln() / PI + 1e-14);
            assert!(norm < constant + t.ln() / PI + 1e-14);
        }
    }
}
