//! The standard normal distribution: probabilities of tails and of the centre, and the quantile.

use std::f64::consts::PI;

/// Where the power series hands over to the continued fraction.
const FAR: f64 = 3.0;

/// Depth of the continued fraction: relative error below 1e-16 from `FAR` on.
const DEPTH: u32 = 80;

/// `φ(z)`.
fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// `Φ(z) − 1/2 = φ(z) Σ_k z^{2k+1}/(1·3⋯(2k+1))`, all terms positive, for `0 ≤ z < FAR`.
fn half_centre(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > 1e-18 * sum {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    density(z) * sum
}

/// `P(Z > z)` for `z ≥ 0`. From `FAR` on by Laplace's continued fraction `φ(z)/(z + 1/(z + 2/(z + …)))`.
pub(super) fn tail(z: f64) -> f64 {
    if z < FAR {
        0.5 - half_centre(z)
    } else {
        density(z) / (1..=DEPTH).rev().fold(z, |rest, k| z + f64::from(k) / rest)
    }
}

/// `ln P(|Z| ≤ z)` for `z > 0`.
pub(super) fn log_centre(z: f64) -> f64 {
    if z < FAR { (2.0 * half_centre(z)).ln() } else { (-2.0 * tail(z)).ln_1p() }
}

/// The `z ≥ 0` with `P(Z > z) = q`, for `0 < q ≤ 1/2`.
///
/// Newton's iteration for `ln P(Z > z) = ln q`, a concave and falling function: its tangents lie above it, so from
/// `z = √(−2 ln q)`, where the tail is below `q`, the iterates fall to the solution.
pub(super) fn upper_quantile(q: f64) -> f64 {
    let mut z = (-2.0 * q.ln()).sqrt();
    for _ in 0..60 {
        let above = tail(z);
        let step = (above / q).ln() * above / density(z);
        z += step;
        if step.abs() <= 1e-16 * z {
            break;
        }
    }
    z.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_agree_with_the_error_function() {
        for k in 0..400 {
            let z = f64::from(k) * 0.09;
            let expected = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
            assert!((tail(z) / expected - 1.0).abs() < 1e-12, "{z}");
        }
        for k in 1..800 {
            let z = f64::from(k) * 0.01;
            let expected = libm::erf(z / std::f64::consts::SQRT_2).ln();
            assert!((log_centre(z) - expected).abs() < 1e-14 * (1.0 + expected.abs()), "{z}");
        }
        // Where `erf` is 1 to double precision.
        assert!((log_centre(9.0) / (-2.0 * tail(9.0)) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn quantiles() {
        // Tables to sixteen digits.
        let known = [
            (0.25, 0.674_489_750_196_081_7),
            (0.1, 1.281_551_565_544_600_4),
            (0.025, 1.959_963_984_540_054),
            (0.005, 2.575_829_303_548_900_4),
            (1e-6, 4.753_424_308_822_899),
            (1e-9, 5.997_807_015_007_687),
        ];
        for (q, z) in known {
            assert!((upper_quantile(q) - z).abs() < 1e-12 * z, "{q}: {}", upper_quantile(q));
        }
        assert!(upper_quantile(0.5).abs() < 1e-15);
        for k in 1..1000 {
            let q = 10f64.powf(-0.3 * f64::from(k));
            if q < 0.5 {
                assert!((tail(upper_quantile(q)) / q - 1.0).abs() < 1e-11 * (1.0 - q.ln()), "{q}");
            }
        }
    }
}
