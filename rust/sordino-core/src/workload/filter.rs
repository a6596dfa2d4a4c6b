//! Filters of a series, on a ring or with ends.

use crate::transform::fourier::convolve;

/// `out_i = Σ_j h_j x_{(i−j) mod N}`.
pub(super) fn apply_circular(kernel: &[f64], x: &[f64], out: &mut [f64]) {
    let n = kernel.len();
    let full = convolve(x, kernel, 2 * n);
    for (i, slot) in out.iter_mut().enumerate() {
        *slot = full[i] + full[i + n];
    }
}

/// `out_t = Σ_j h_j x_{t+center−j}`: without rounding where all that came before counts alike, of whole numbers.
pub(super) fn apply_linear(kernel: &[f64], center: usize, x: &[f64], out: &mut [f64]) {
    if center == 0 && kernel.len() >= x.len() && kernel.iter().all(|h| *h == kernel[0]) {
        let mut sum = 0.0;
        for (slot, value) in out.iter_mut().zip(x) {
            sum += value;
            *slot = kernel[0] * sum;
        }
        return;
    }
    let full = convolve(x, kernel, out.len() + center);
    out.copy_from_slice(&full[center..]);
}

/// Row `t` of a filter on a ring.
pub(super) fn write_circular_row(kernel: &[f64], t: usize, row: &mut [f64]) {
    let len = kernel.len();
    for (j, h) in kernel.iter().enumerate() {
        row[(t + len - j) % len] = *h;
    }
}

/// Row `t` of a filter with ends; `row` comes as zeros.
pub(super) fn write_linear_row(kernel: &[f64], center: usize, t: usize, row: &mut [f64]) {
    for (j, h) in kernel.iter().enumerate() {
        if let Some(slot) = (t + center).checked_sub(j).and_then(|i| row.get_mut(i)) {
            *slot = *h;
        }
    }
}

/// Squared norms of the rows of a filter with ends.
pub(super) fn linear_row_squares(kernel: &[f64], center: usize, out: &mut [f64]) {
    // Row t uses the taps with 0 ≤ t + center − j < len.
    let len = out.len();
    let mut sums = vec![0.0];
    for h in kernel {
        sums.push(sums[sums.len() - 1] + h * h);
    }
    for (t, slot) in out.iter_mut().enumerate() {
        let last = (t + center + 1).min(kernel.len());
        let first = (t + center + 1).saturating_sub(len).min(last);
        *slot = sums[last] - sums[first];
    }
}
