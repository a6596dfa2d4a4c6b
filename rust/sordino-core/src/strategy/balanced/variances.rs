//! Variances of the answers of a balanced root: blocks of the covariance of the cells, summed.

use super::Balanced;
use crate::transform::fourier::convolve;
use num_complex::Complex;

/// Longest block of a sum over halves that is written out.
const DIRECT: usize = 64;

impl Balanced {
    /// The covariance `K^{-2}` as its kernel on the ring.
    fn covariance(&self) -> Vec<f64> {
        let mut half: Vec<Complex<f64>> = self
            .spectrum
            .iter()
            .map(|v| Complex::new(self.symmetry.meetings() / (v * v * self.ring.len() as f64), 0.0))
            .collect();
        let mut kernel = vec![0.0; self.ring.len()];
        self.ring.inverse(&mut half, &mut kernel);
        kernel
    }

    /// Blocks of the covariance, each from those of one cell less: `O(n²)` for the `n(n + 1)/2` ranges.
    pub(super) fn range_variances(&self, out: &mut [f64]) {
        let (n, kernel) = (self.len(), self.covariance());
        let inverse: Vec<f64> = self.weights.iter().map(|d| (*d as f64).recip()).collect();
        // Sums of the covariance of a cell with those before it, down to the first cell of the range.
        let mut before = vec![0.0; n];
        let mut end = out.len();
        for first in (0..n).rev() {
            let ranges = &mut out[end - (n - first)..end];
            let mut sum = 0.0;
            for last in first..n {
                let entry = inverse[first] * inverse[last] * (kernel[last - first] - kernel[first + last + 2]);
                if last == first {
                    sum += entry;
                } else {
                    before[last] += entry;
                    let own = inverse[last] * inverse[last] * (kernel[0] - kernel[(2 * last + 2) % kernel.len()]);
                    sum += 2.0 * before[last] + own;
                }
                ranges[last - first] = sum;
            }
            end -= n - first;
        }
    }

    /// Leading blocks of the covariance: the part of `i − j` is a convolution, that of `i + j` one for each half of halves.
    pub(super) fn prefix_variances(&self, tap: f64, out: &mut [f64]) {
        let (n, kernel) = (self.len(), self.covariance());
        let inverse: Vec<f64> = self.weights.iter().map(|d| (*d as f64).recip()).collect();
        let mut lags = kernel[..n].to_vec();
        lags[0] = 0.0;
        let mut before = convolve(&inverse, &lags, n);
        add_sums_before(&inverse, &kernel[1..], 0, &mut before);
        let mut sum = 0.0;
        for (t, slot) in out.iter_mut().enumerate() {
            sum += inverse[t] * (2.0 * before[t] + inverse[t] * (kernel[0] + kernel[2 * t + 1]));
            *slot = tap * tap * sum;
        }
    }
}

/// `out[t] += Σ_{a<t} values[a]·kernel[2·offset + a + t]` for the values and sums from `offset` on.
pub(super) fn add_sums_before(values: &[f64], kernel: &[f64], offset: usize, out: &mut [f64]) {
    if values.len() <= DIRECT {
        for t in 1..values.len() {
            out[t] += (0..t).map(|a| values[a] * kernel[2 * offset + a + t]).sum::<f64>();
        }
        return;
    }
    let middle = values.len() / 2;
    let (first, second) = values.split_at(middle);
    let (early, late) = out.split_at_mut(middle);
    let backwards: Vec<f64> = first.iter().rev().copied().collect();
    let needed = middle - 1 + late.len();
    let sums = convolve(&backwards, &kernel[2 * offset + middle..2 * offset + middle + needed], needed);
    late.iter_mut().zip(&sums[middle - 1..]).for_each(|(slot, sum)| *slot += sum);
    rayon::join(
        || add_sums_before(first, kernel, offset, early),
        || add_sums_before(second, kernel, offset + middle, late),
    );
}
