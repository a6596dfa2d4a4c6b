//! The Fourier transform of a product of cyclic groups, and exact convolution on it.

use super::exact::{Limbs, nearest};
use super::fourier::rounding_levels;
use crate::error::Error;
use crate::scratch::COMPLEX;
use num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Lines of an inner axis that are gathered together.
const COLUMNS: usize = 16;

/// Order of a cyclic factor, its forward and its inverse transform.
type Axis = (usize, Arc<dyn Fft<f64>>, Arc<dyn Fft<f64>>);

/// Complex transforms along every axis of `Z_{n_1} × … × Z_{n_k}`, row-major, unnormalised.
#[derive(Clone)]
pub(crate) struct GroupFourier {
    axes: Vec<Axis>,
    len: usize,
}

impl std::fmt::Debug for GroupFourier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GroupFourier({:?})", self.axes.iter().map(|axis| axis.0).collect::<Vec<_>>())
    }
}

impl GroupFourier {
    pub(crate) fn new(radices: &[usize]) -> Self {
        let mut planner = FftPlanner::new();
        let axes = radices.iter().map(|n| (*n, planner.plan_fft_forward(*n), planner.plan_fft_inverse(*n))).collect();
        Self { axes, len: radices.iter().product() }
    }

    /// In place; `inverse` leaves the factor `N`.
    pub(crate) fn process(&self, x: &mut [Complex<f64>], inverse: bool) {
        let mut stride = self.len;
        for (n, forward, backward) in &self.axes {
            let outer = stride;
            stride /= n;
            let fft = if inverse { backward } else { forward };
            let mut scratch = COMPLEX.take(fft.get_inplace_scratch_len());
            if stride == 1 {
                fft.process_with_scratch(x, &mut scratch);
                continue;
            }
            let mut lines = COMPLEX.take(n * COLUMNS.min(stride));
            for block in x.chunks_exact_mut(outer) {
                for start in (0..stride).step_by(COLUMNS) {
                    let width = COLUMNS.min(stride - start);
                    let lines = &mut lines[..n * width];
                    for (i, row) in block.chunks_exact(stride).enumerate() {
                        for (c, value) in row[start..start + width].iter().enumerate() {
                            lines[c * n + i] = *value;
                        }
                    }
                    fft.process_with_scratch(lines, &mut scratch);
                    for (i, row) in block.chunks_exact_mut(stride).enumerate() {
                        for (c, value) in row[start..start + width].iter_mut().enumerate() {
                            *value = lines[c * n + i];
                        }
                    }
                }
            }
        }
    }

    /// Spectrum of a real function.
    pub(crate) fn spectrum(&self, x: &[f64]) -> Vec<Complex<f64>> {
        let mut spectrum: Vec<Complex<f64>> = x.iter().map(|v| Complex::new(*v, 0.0)).collect();
        self.process(&mut spectrum, false);
        spectrum
    }

    /// `irfft(spectrum(x)·transfer)` for a result known to be real.
    pub(crate) fn filter(&self, x: &[f64], transfer: impl Fn(usize) -> Complex<f64>) -> Vec<f64> {
        let mut spectrum = self.spectrum(x);
        let inverse = 1.0 / self.len as f64;
        for (k, value) in spectrum.iter_mut().enumerate() {
            *value = *value * transfer(k) * inverse;
        }
        self.process(&mut spectrum, true);
        spectrum.iter().map(|v| v.re).collect()
    }
}

/// Exact convolution with an integer kernel on the group, two limbs to a complex transform.
#[derive(Debug, Clone)]
pub(crate) struct ExactGroupConvolution {
    transform: GroupFourier,
    levels: f64,
    spectrum: Vec<Complex<f64>>,
    kernel_norm: f64,
    kernel_sum: u128,
}

impl ExactGroupConvolution {
    pub(crate) fn new(radices: &[usize], kernel: &[i64]) -> Self {
        let transform = GroupFourier::new(radices);
        let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
        let squares: f64 = values.iter().map(|k| k * k).sum();
        Self {
            spectrum: transform.spectrum(&values),
            transform,
            levels: radices.iter().map(|n| rounding_levels(*n)).sum(),
            kernel_norm: squares.sqrt() * (1.0 + 1e-9),
            kernel_sum: kernel.iter().map(|k| u128::from(k.unsigned_abs())).sum(),
        }
    }

    fn limbs(&self, max_abs: u64) -> Option<Limbs> {
        // A packed pair has at most √2 times the norm of its larger limb.
        Limbs::choose(max_abs, self.spectrum.len(), self.kernel_norm * 1.5, self.levels)
    }

    /// As [`super::exact::ExactConvolution::magnitude`].
    pub(crate) fn magnitude(&self, max_abs: u64) -> Result<u64, Error> {
        let bound = self.kernel_sum.saturating_mul(u128::from(max_abs));
        let fits = bound < 1 << 60 && self.limbs(max_abs).is_some();
        fits.then_some(bound as u64).ok_or_else(|| {
            Error::Overflow(format!(
                "exact group convolution of entries up to {max_abs} overflows; declare a smaller max_value"
            ))
        })
    }

    pub(crate) fn apply(&self, x: &[i64], max_abs: u64, out: &mut [i64]) {
        let limbs = self.limbs(max_abs).expect("checked when the plan was fitted");
        let inverse = 1.0 / x.len() as f64;
        out.fill(0);
        for index in (0..limbs.count).step_by(2) {
            let second = |value: i64| if index + 1 < limbs.count { limbs.digit(value, index + 1) } else { 0.0 };
            let mut packed: Vec<Complex<f64>> =
                x.iter().map(|value| Complex::new(limbs.digit(*value, index), second(*value))).collect();
            self.transform.process(&mut packed, false);
            for (value, kernel) in packed.iter_mut().zip(&self.spectrum) {
                *value = *value * kernel * inverse;
            }
            self.transform.process(&mut packed, true);
            for (slot, value) in out.iter_mut().zip(&packed) {
                *slot += nearest(value.re) << (limbs.bits * index);
                if index + 1 < limbs.count {
                    *slot += nearest(value.im) << (limbs.bits * (index + 1));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExactGroupConvolution;
    use proptest::prelude::*;

    fn coordinates(mut index: usize, radices: &[usize]) -> Vec<usize> {
        let mut digits: Vec<usize> = radices
            .iter()
            .rev()
            .map(|n| {
                let digit = index % n;
                index /= n;
                digit
            })
            .collect();
        digits.reverse();
        digits
    }

    fn naive(radices: &[usize], kernel: &[i64], x: &[i64]) -> Vec<i64> {
        (0..x.len())
            .map(|i| {
                let a = coordinates(i, radices);
                (0..x.len())
                    .map(|j| {
                        let b = coordinates(j, radices);
                        let index =
                            radices.iter().enumerate().fold(0, |k, (axis, n)| k * n + (a[axis] + n - b[axis]) % n);
                        kernel[index] * x[j]
                    })
                    .sum()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn matches_the_integer_oracle(
            radices in prop::collection::vec(1usize..7, 1..4), scale in 1u32..26, seed in any::<u64>(),
        ) {
            let len: usize = radices.iter().product();
            let mut state = seed | 1;
            let mut next = |bits: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state as i64) >> (63 - bits)
            };
            let kernel: Vec<i64> = (0..len).map(|_| next(20)).collect();
            let x: Vec<i64> = (0..len).map(|_| next(scale)).collect();
            let exact = ExactGroupConvolution::new(&radices, &kernel);
            exact.magnitude(1 << scale).unwrap();
            let mut out = vec![0; len];
            exact.apply(&x, 1 << scale, &mut out);
            prop_assert_eq!(out, naive(&radices, &kernel, &x));
        }
    }
}
