//! The factor `C` of least error for a general causal filter: outer (minimum phase), `|C|² = |H|` on the circle.
//!
//! With `B = H/C` both factors are causal and, on an infinite horizon, the maximum and the mean error are
//! both `(1/2π)∫|H(e^{iθ})|dθ`; no factorization does better asymptotically (nuclear norm and Avram-Parter;
//! see Henzinger, Upadhyay & Upadhyay 2023 and Kalinin & Steiner 2023). The square root of the power series
//! is the same where `H` has no zero inside the disk, and explodes elsewhere.
//!
//! `C = exp(½ĥ_0 + Σ_{j>0} ĥ_j z^j)` with `ĥ` the Fourier coefficients of `½·log|H|²` (the cepstrum; Oppenheim &
//! Schafer, ch. 12), on a ring that is refined until the coefficients stand still. A mechanism uses the
//! *rounded* `C` as it is, so accuracy here is a matter of error, never of privacy.

use crate::transform::fourier::RealFourier;
use num_complex::Complex;

/// Finest ring, unless the filter itself needs a finer one.
const FINEST: usize = 1 << 20;
/// Smallest magnitude on the circle, relative to the largest.
const FLOOR: f64 = 1e-15;
/// Largest phase between neighbours on the ring for which turns can be counted.
const SAFE_PHASE: f64 = std::f64::consts::FRAC_PI_4;

/// The first `len` coefficients `c_0 = 1, c_1, …` of the outer factor of the filter with these taps.
///
/// The ring is doubled until the coefficients change by less than `tolerance`, relative, or it has 2^20
/// points (more if the filter or `len` is longer than an eighth or a quarter of that). Zeros of `H` on the
/// circle make the cepstrum decay slowly: then it stops there.
pub(crate) fn outer_factor(taps: &[f64], len: usize, tolerance: f64) -> Vec<f64> {
    let mut ring = (8 * taps.len()).max(4 * len).max(1 << 10).next_power_of_two();
    let finest = FINEST.max(2 * ring);
    let mut coarse = on_ring(taps, ring);
    loop {
        ring *= 2;
        let mut fine = on_ring(taps, ring);
        let norm = |c: &[f64]| c.iter().map(|v| v * v).sum::<f64>().sqrt();
        fine.truncate(len);
        let change: Vec<f64> = fine.iter().zip(&coarse).map(|(a, b)| a - b).collect();
        if norm(&change) <= tolerance * norm(&fine) || ring >= finest {
            return fine;
        }
        coarse = fine;
    }
}

/// `(1/2π)∫|H(e^{iθ})|dθ`: the asymptotic optimum of the error, and the limit of the nuclear-norm bound.
#[cfg(test)]
pub(crate) fn mean_magnitude(taps: &[f64]) -> f64 {
    let mut ring = (16 * taps.len()).max(1 << 10).next_power_of_two();
    let finest = FINEST.max(2 * ring);
    let mean = |ring: usize| {
        let transform = RealFourier::new(ring);
        let spectrum = transform.spectrum(taps);
        transform.sum(|k| spectrum[k].norm()) / ring as f64
    };
    let mut coarse = mean(ring);
    loop {
        ring *= 2;
        let fine = mean(ring);
        if (fine - coarse).abs() <= 1e-12 * fine || ring >= finest {
            return fine;
        }
        coarse = fine;
    }
}

/// `K = round(2^bits·c)`; `K_0 = 2^bits` where `c_0 = 1`.
pub(crate) fn dyadic(coefficients: &[f64], bits: u32) -> Vec<i64> {
    let scale = 2f64.powi(bits as i32);
    coefficients.iter().map(|c| (c * scale).round() as i64).collect()
}

/// The rounded outer factor for use as a strategy, or `C = 1` where `1/K` would not be stable.
pub(crate) fn outer_kernel(taps: &[f64], len: usize, bits: u32, tolerance: f64) -> Vec<i64> {
    let kernel = dyadic(&outer_factor(taps, len, tolerance), bits);
    if is_stable(&kernel) {
        return kernel;
    }
    let mut identity = vec![0; len];
    identity[0] = 1 << bits;
    identity
}

/// Whether `Σ K_j z^j` has no zero in the closed unit disk, so that the series of `1/K` decays.
///
/// Proved for `K_0 > K_1 ≥ K_2 ≥ … ≥ 0` (Eneström-Kakeya: `|(1 − z)K(z)| > 0` for `|z| ≤ 1`, `z ≠ 1`).
/// Otherwise the turns of `K` around the circle are counted (argument principle) on a ring refined until no
/// step turns by more than an eighth; `false` if none is fine enough.
pub(crate) fn is_stable(kernel: &[i64]) -> bool {
    let end = kernel.iter().rposition(|k| *k != 0).map_or(0, |last| last + 1);
    let kernel = &kernel[..end];
    match kernel {
        [] | [0, ..] => return false,
        [_] => return true,
        _ => {}
    }
    if kernel[0] > kernel[1] && kernel[end - 1] > 0 && kernel.windows(2).all(|pair| pair[0] >= pair[1]) {
        return true;
    }
    let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
    let mut ring = (8 * end).next_power_of_two();
    let finest = FINEST.max(2 * ring);
    while ring <= finest {
        let spectrum = RealFourier::new(ring).spectrum(&values);
        // Half of the circle: the other half is its mirror image.
        let steps = spectrum.windows(2).map(|pair| (pair[1] * pair[0].conj()).arg());
        let (widest, turn) = steps.fold((0.0f64, 0.0), |(widest, turn), step| (widest.max(step.abs()), turn + step));
        if widest <= SAFE_PHASE && spectrum.iter().all(|v| *v != Complex::default()) {
            return turn.abs() < std::f64::consts::FRAC_PI_2;
        }
        ring *= 2;
    }
    false
}

/// The outer factor on a ring of `len` points, aliased in time and cepstrum.
fn on_ring(taps: &[f64], len: usize) -> Vec<f64> {
    let transform = RealFourier::new(len);
    let spectrum = transform.spectrum(taps);
    let slopes = transform.spectrum(&taps.iter().enumerate().map(|(j, h)| j as f64 * h).collect::<Vec<_>>());
    let largest = spectrum.iter().fold(0.0f64, |m, v| m.max(v.norm()));
    let scale = 1.0 / len as f64;
    // A simple zero on a point of the ring: the mean of log|1 − z| over the ring is 0, as it should be,
    // if the vanishing factor counts as 1/len, for the product of the others is len.
    let mut logs: Vec<Complex<f64>> = spectrum
        .iter()
        .zip(&slopes)
        .map(|(h, slope)| h.norm().max(slope.norm() * scale).max(largest * FLOOR))
        .map(|magnitude| Complex::new(0.5 * magnitude.ln() * scale, 0.0))
        .collect();
    let mut cepstrum = vec![0.0; len];
    transform.inverse(&mut logs, &mut cepstrum);
    // Causal part: the constant is dropped, for it is the norm; positive lags count twice.
    cepstrum[0] = 0.0;
    for value in &mut cepstrum[1..len / 2] {
        *value *= 2.0;
    }
    cepstrum[len / 2 + 1..].fill(0.0);
    let mut factor: Vec<Complex<f64>> = transform.forward(&mut cepstrum).iter().map(|v| v.exp() * scale).collect();
    let mut coefficients = cepstrum;
    transform.inverse(&mut factor, &mut coefficients);
    coefficients[0] = 1.0;
    coefficients
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toeplitz::series::{binomial, inverse, multiply, square_root};
    use proptest::prelude::*;

    /// `‖B‖₂‖C‖₂` of the series to this many terms.
    fn error(taps: &[f64], factor: &[f64], len: usize) -> f64 {
        let decoder = multiply(taps, &inverse(factor, len), len);
        let squares = |v: &[f64]| v.iter().map(|c| c * c).sum::<f64>();
        (squares(&decoder) * squares(&factor[..len])).sqrt()
    }

    /// `(2/π)·K(m)` by the arithmetic-geometric mean: `K(m) = π/(2·agm(1, √(1 − m)))`.
    fn elliptic(m: f64) -> f64 {
        let (mut a, mut b) = (1.0, (1.0 - m).sqrt());
        for _ in 0..40 {
            (a, b) = (f64::midpoint(a, b), (a * b).sqrt());
        }
        1.0 / a
    }

    /// `H = 1 + 2z` has its zero inside: the root of the series explodes, the outer factor is `√(1 + z/2)`.
    #[test]
    fn zeros_inside_are_reflected() {
        let taps = [1.0, 2.0];
        let outer = outer_factor(&taps, 64, 1e-13);
        for (c, closed) in outer.iter().zip(binomial(-0.5, 0.5, 64)) {
            assert!((c - closed).abs() < 1e-14);
        }
        assert!((mean_magnitude(&taps) - 2.1271).abs() < 5e-5);
        assert!((error(&taps, &outer, 64) - mean_magnitude(&taps)).abs() < 1e-9);
        let exploding = square_root(&taps, 40);
        assert!(exploding[39].abs() > 1e6);
        assert!(!is_stable(&dyadic(&exploding[..20], 20)));
        assert!(is_stable(&outer_kernel(&taps, 64, 30, 1e-12)));
    }

    #[test]
    fn exponential_decay_is_the_closed_form() {
        for (gamma, optimum) in [(0.9, 1.4518), (0.99, 2.1369)] {
            let taps: Vec<f64> = binomial(gamma, -1.0, 4096);
            let outer = outer_factor(&taps, 2000, 1e-12);
            for (c, closed) in outer.iter().zip(binomial(gamma, -0.5, 2000)) {
                assert!((c - closed).abs() < 1e-10, "{c} {closed}");
            }
            let limit = elliptic(gamma * gamma);
            assert!((limit - optimum).abs() < 5e-5);
            assert!((mean_magnitude(&taps) - limit).abs() < 1e-9);
            assert!((error(&taps, &outer, 2000) - limit).abs() < 1e-9);
        }
    }

    /// Zeros on the circle, on and off the points of the ring.
    #[test]
    #[ignore = "seconds; run by `make test-slow`"]
    fn moving_averages_reach_the_table() {
        for (window, optimum) in [(16, 2.113), (64, 2.675), (256, 3.237), (1024, 3.799), (4096, 4.361)] {
            assert!((mean_magnitude(&vec![1.0; window]) - optimum).abs() < 6e-4, "{window}");
        }
        for window in [16, 23, 100] {
            let taps = vec![1.0; window];
            let len = 20 * window;
            let outer = outer_factor(&taps, len, 1e-9);
            // (1 − z^W)^{1/2}(1 − z)^{−1/2}
            let mut comb = vec![0.0; len];
            for (j, c) in binomial(1.0, 0.5, 20).into_iter().enumerate() {
                comb[j * window] = c;
            }
            let closed = multiply(&comb, &binomial(1.0, -0.5, len), len);
            let worst = outer.iter().zip(&closed).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-4, "{window}: {worst}");
            let (got, limit) = (error(&taps, &outer, len), mean_magnitude(&taps));
            assert!((got / limit - 1.0).abs() < 5e-3, "{window}: {got} {limit}");
            assert!((got / error(&taps, &closed, len) - 1.0).abs() < 1e-6);
            assert!(is_stable(&dyadic(&outer, 30)), "{window}");
        }
    }

    #[test]
    fn stability() {
        assert!(is_stable(&[4, 3, 3, 1]) && is_stable(&[2]) && is_stable(&[4, -3, 0, 0]) && is_stable(&[-4, 3]));
        assert!(!is_stable(&[]) && !is_stable(&[0, 1]) && !is_stable(&[1, 2]) && !is_stable(&[3, -4]));
        assert!(!is_stable(&[1, 1]), "a zero on the circle");
        assert_eq!(outer_kernel(&[1.0, -1.0], 3, 4, 1e-3)[0], 16);
        let root = dyadic(&binomial(1.0, -0.5, 5000), 20);
        assert!(is_stable(&root));
        // Prepending a zero inside the disk to a stable kernel.
        let spoiled: Vec<i64> = (0..root.len()).map(|j| root[j] - if j > 0 { 2 * root[j - 1] } else { 0 }).collect();
        assert!(!is_stable(&spoiled));
    }

    proptest! {
        /// Factors with known zeros: those inside are reflected, `|C|² = |H|` up to the norm.
        #[test]
        fn outer_factors_have_the_right_magnitude_and_no_zero_inside(
            zeros in prop::collection::vec((0.2..0.85f64, any::<bool>(), any::<bool>()), 1..6),
        ) {
            let mut taps = vec![1.0];
            let mut reflected = vec![1.0];
            for (r, inside, negative) in zeros {
                let r = if negative { -r } else { r };
                taps = multiply(&taps, &if inside { [r, -1.0] } else { [1.0, -r] }, taps.len() + 1);
                reflected = multiply(&reflected, &[1.0, -r], reflected.len() + 1);
            }
            let outer = outer_factor(&taps, 200, 1e-12);
            for (c, closed) in outer.iter().zip(square_root(&reflected, 200)) {
                prop_assert!((c - closed).abs() < 1e-9);
            }
            prop_assert!(is_stable(&dyadic(&outer, 30)));
        }
    }
}
