//! Exact cyclic convolution of wide integers with a fixed integer kernel.
//!
//! Kernel and input are both cut into balanced digits of `b` bits; products of equal weight are added as
//! spectra, so `n` input and `k` kernel digits cost `n` forward and `n + k − 1` inverse transforms. By the
//! bound of [`super::exact`] an entry of one weight is off by at most
//! `convolution_error·√len·2^(b−1)·Σ_j ‖K_j‖₂`, kept below 0.4.

use super::exact::{convolution_error, nearest};
use super::fourier::{RealFourier, rounding_levels};
use crate::parallel::collected;
use num_complex::Complex;

/// Convolutions at or above this length run their transforms in parallel.
const PARALLEL_LEN: usize = 1 << 14;
/// The size of digits is chosen for inputs of this many bits: noise of streams.
const TYPICAL_BITS: u32 = 48;
/// Widest digit.
const MAX_DIGIT: u32 = 24;

/// Convolution of up to `input_len` wide integers with a fixed kernel on a ring of a power of two.
#[derive(Debug)]
pub(crate) struct WideConvolution {
    input_len: usize,
    bits: u32,
    transform: RealFourier,
    /// Spectrum of each digit of the kernel, the lowest first.
    spectra: Vec<Vec<Complex<f64>>>,
}

/// Takes the lowest balanced digit of `bits` bits, in `[−2^(bits−1), 2^(bits−1))`, off `x`.
fn take_digit(x: &mut i128, bits: u32) -> f64 {
    let unused = 128 - bits;
    let digit = *x << unused >> unused;
    *x = (*x - digit) >> bits;
    digit as f64
}

/// How many balanced digits hold `|x| ≤ max_abs`: the least `n` with `max_abs ≤ 2^(bits·n − 2)`.
///
/// `n` digits reach `(2^(bits−1) − 1)(2^(bits·n) − 1)/(2^bits − 1) ≥ 2^(bits·n − 2)` for two bits or more
/// and two digits or more, or three bits.
fn digits_for(max_abs: u128, bits: u32) -> u32 {
    (128 - max_abs.leading_zeros() + 2).div_ceil(bits)
}

impl WideConvolution {
    /// The kernel's length is the ring's, a power of two of at least 2; entries below 2^53.
    pub(crate) fn new(kernel: &[i64], input_len: usize) -> Self {
        let transform = RealFourier::new(kernel.len());
        let max_abs = kernel.iter().map(|k| k.unsigned_abs()).max().unwrap_or(0);
        let cut = |bits: u32| -> Vec<Vec<f64>> {
            let mut rest: Vec<i128> = kernel.iter().map(|k| i128::from(*k)).collect();
            (0..digits_for(u128::from(max_abs), bits))
                .map(|_| rest.iter_mut().map(|k| take_digit(k, bits)).collect())
                .collect()
        };
        // One level more than a single product covers the additions of spectra.
        let error = convolution_error(rounding_levels(kernel.len()) + 1.0);
        let fits = |digits: &[Vec<f64>], bits: u32| {
            let norms: f64 = digits.iter().map(|d| d.iter().map(|v| v * v).sum::<f64>().sqrt()).sum();
            let norms = norms * (input_len as f64).sqrt() * 2f64.powi(bits as i32 - 1) * (1.0 + 1e-9);
            error * norms < 0.4 && norms < 2f64.powi(50)
        };
        let (bits, digits) = (3..=MAX_DIGIT)
            .map(|bits| (bits, cut(bits)))
            .filter(|(bits, digits)| fits(digits, *bits))
            .min_by_key(|(bits, digits)| {
                let inputs = TYPICAL_BITS.div_ceil(*bits);
                // Wider digits are better for wider inputs.
                (2 * inputs + digits.len() as u32, MAX_DIGIT - bits)
            })
            .expect("three bits are exact at every length that memory holds");
        let spectra = digits.iter().map(|digit| transform.spectrum(digit)).collect();
        Self { input_len, bits, transform, spectra }
    }

    /// Adds entries `first..` of the cyclic convolution of the kernel with `x` to `out`.
    ///
    /// Exact as long as the sums fit `i128`; the number of transforms depends on the largest magnitude.
    pub(crate) fn add_to<'a>(&self, x: &[i128], first: usize, out: impl Iterator<Item = &'a mut i128>) {
        debug_assert!(x.len() <= self.input_len);
        let largest = x.iter().map(|v| v.unsigned_abs()).max().unwrap_or(0);
        if largest == 0 {
            return;
        }
        let count = digits_for(largest, self.bits) as usize;
        let mut rest = x.to_vec();
        let digits: Vec<Vec<f64>> =
            (0..count).map(|_| rest.iter_mut().map(|v| take_digit(v, self.bits)).collect()).collect();
        let parallel = self.transform.len() >= PARALLEL_LEN;
        let spectra: Vec<Vec<Complex<f64>>> = if parallel {
            collected(count, &|k| self.transform.spectrum(&digits[k]))
        } else {
            digits.iter().map(|digit| self.transform.spectrum(digit)).collect()
        };
        let weight = |weight: usize| self.weight(&spectra, weight);
        let weights = 0..count + self.spectra.len() - 1;
        let parts: Vec<Vec<f64>> =
            if parallel { collected(weights.len(), &weight) } else { weights.map(weight).collect() };
        for (i, slot) in out.enumerate() {
            // From the highest weight down: Σ part·2^(bits·weight).
            *slot += parts.iter().rev().fold(0, |sum, part| (sum << self.bits) + i128::from(nearest(part[first + i])));
        }
    }

    /// `Σ_{i+j=weight} x_i ⊛ K_j`.
    fn weight(&self, spectra: &[Vec<Complex<f64>>], weight: usize) -> Vec<f64> {
        let scale = 1.0 / self.transform.len() as f64;
        let mut sum = vec![Complex::default(); self.transform.spectrum_len()];
        for (i, x) in spectra.iter().enumerate() {
            let Some(kernel) = weight.checked_sub(i).and_then(|j| self.spectra.get(j)) else { continue };
            for ((slot, x), k) in sum.iter_mut().zip(x).zip(kernel) {
                *slot += x * k;
            }
        }
        for slot in &mut sum {
            *slot *= scale;
        }
        let mut out = vec![0.0; self.transform.len()];
        self.transform.inverse(&mut sum, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_recompose(x in -(1i128 << 100)..1 << 100, bits in 3u32..=MAX_DIGIT) {
            let mut rest = x;
            let count = digits_for(x.unsigned_abs(), bits);
            let digits: Vec<f64> = (0..count).map(|_| take_digit(&mut rest, bits)).collect();
            prop_assert_eq!(rest, 0);
            prop_assert!(digits.iter().all(|d| d.abs() <= 2f64.powi(bits as i32 - 1)));
            let sum = digits.iter().rev().fold(0i128, |sum, d| (sum << bits) + *d as i128);
            prop_assert_eq!(sum, x);
        }

        #[test]
        fn matches_the_integer_oracle(
            log in 1u32..8, kernel_bits in 1u32..31, input_bits in 1u32..90, seed in any::<u64>(),
        ) {
            let len = 1usize << log;
            let mut state = u128::from(seed) << 1 | 1;
            let mut next = |bits: u32| {
                state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(seed.into());
                (state as i128) >> (127 - bits)
            };
            let kernel: Vec<i64> = (0..len).map(|_| next(kernel_bits) as i64).collect();
            let x: Vec<i128> = (0..len / 2).map(|_| next(input_bits)).collect();
            let mut out = vec![7i128; len];
            WideConvolution::new(&kernel, len / 2).add_to(&x, 0, out.iter_mut());
            for (i, value) in out.iter().enumerate() {
                let sum: i128 = x.iter().enumerate().map(|(j, v)| v * i128::from(kernel[(i + len - j) % len])).sum();
                prop_assert_eq!(*value, sum + 7);
            }
        }
    }

    /// Inputs at the limit, all aligned with the kernel, against sums in closed form.
    #[test]
    fn large_adversarial_inputs() {
        let len = 1usize << 17;
        let kernel: Vec<i64> = (0..len).map(|j| if j % 2 == 0 { 1 << 30 } else { 1 - (1 << 30) }).collect();
        let exact = WideConvolution::new(&kernel, len / 2);
        let top = (1i128 << 66) - 1;
        let x: Vec<i128> = (0..len / 2).map(|i| if i % 2 == 0 { top } else { -top }).collect();
        let mut out = vec![0i128; len / 2];
        exact.add_to(&x, len / 2, out.iter_mut());
        // Even lags meet equal signs: half of the products are (2^30)·top, half (2^30 − 1)·top.
        let (half, q) = (len as i128 / 4, 1i128 << 30);
        for (i, value) in out.iter().enumerate() {
            let sign = if i % 2 == 0 { 1 } else { -1 };
            assert_eq!(*value, sign * top * half * (2 * q - 1));
        }
    }
}
