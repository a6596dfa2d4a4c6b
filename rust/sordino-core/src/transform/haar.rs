//! Orthonormal Haar wavelets, in place, O(n): the mean first, then differences, coarse to fine.

use crate::scratch::REALS;
use crate::upper::Upper;
use std::f64::consts::FRAC_1_SQRT_2;

/// `x ← Ψᵀ x`; the length is a power of two.
pub(super) fn analyze(x: &mut [f64]) {
    let mut details = REALS.take(x.len() / 2);
    let mut half = x.len() / 2;
    while half > 0 {
        for i in 0..half {
            let (a, b) = (x[2 * i], x[2 * i + 1]);
            x[i] = (a + b) * FRAC_1_SQRT_2;
            details[i] = (a - b) * FRAC_1_SQRT_2;
        }
        x[half..2 * half].copy_from_slice(&details[..half]);
        half /= 2;
    }
}

/// `c ← Ψ c`.
pub(super) fn synthesize(c: &mut [f64]) {
    let mut means = REALS.take(c.len() / 2);
    let mut half = 1;
    while half < c.len() {
        let (low, high) = c[..2 * half].split_at_mut(half);
        means[..half].copy_from_slice(low);
        // The lower half of the output only needs means that are saved and details that are still there.
        for i in 0..half / 2 {
            (low[2 * i], low[2 * i + 1]) = pair(means[i], high[i]);
        }
        if half == 1 {
            (low[0], high[0]) = pair(means[0], high[0]);
        } else {
            for i in half / 2..half {
                let at = 2 * i - half;
                (high[at], high[at + 1]) = pair(means[i], high[i]);
            }
        }
        half *= 2;
    }
}

fn pair(mean: f64, detail: f64) -> (f64, f64) {
    ((mean + detail) * FRAC_1_SQRT_2, (mean - detail) * FRAC_1_SQRT_2)
}

/// `max_j ‖Ψᵀ e_j‖₁ = n^{-1/2} + Σ_{l=1}^{log2 n} 2^{-l/2}`, at most `1 + √2`: a cell meets one wavelet a level.
pub(super) fn column_l1(len: usize) -> Upper {
    let levels = len.trailing_zeros();
    let sum = (len as f64).sqrt().recip() + (1..=levels).map(|l| 0.5f64.powf(f64::from(l) / 2.0)).sum::<f64>();
    Upper::rounded(sum, 4 * levels + 8)
}
