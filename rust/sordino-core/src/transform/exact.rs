//! Exact cyclic convolution of integers by floating-point transforms with a proved error below 1/2.
//!
//! The input is cut into balanced limbs of `b` bits. For transforms of length `2^n` the error of
//! each entry of a limb's convolution is at most (C. Percival, "Rapid multiplication modulo the sum
//! and difference of highly composite numbers", Math. Comp. 72 (2003), Thm 5.1)
//!
//! `‖x‖₂·‖K‖₂·((1+u)^{3n} (1+u√5)^{3n+1} (1+β)^{3n} − 1)`, `β` the error of the twiddle factors.
//!
//! The number of limbs is the least for which this, with `n` raised by the real packing and `β = 7u`
//! (measured: below 6u for powers of two), stays below 0.4; the rounded entry is then the integer. Lengths that are no power of two are
//! convolved linearly at a power of two and folded.

use super::fourier::{RealFourier, UNIT_ROUNDOFF, rounding_levels};
use crate::error::Error;
use crate::parallel::in_pieces;
use crate::scratch::{COMPLEX, REALS, Scratch};
use num_complex::Complex;
use rayon::prelude::*;
use std::ops::{AddAssign, Shl};

/// Convolutions at or above this length run their limbs in parallel.
const PARALLEL_LEN: usize = 1 << 14;

/// Error of a twiddle factor in units of roundoff: rustfft takes sine and cosine of a rounded angle.
const TWIDDLE_ERROR: f64 = 7.0;

/// Error bound of one entry of a real cyclic convolution, per `‖x‖₂·‖K‖₂`.
pub(crate) fn convolution_error(levels: f64) -> f64 {
    let exponent = 3.0 * levels * UNIT_ROUNDOFF
        + (3.0 * levels + 1.0) * 5f64.sqrt() * UNIT_ROUNDOFF
        + 3.0 * levels * TWIDDLE_ERROR * UNIT_ROUNDOFF;
    exponent.exp_m1() * (1.0 + 1e-9)
}

/// How an input is cut: `count` balanced digits of `bits` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limbs {
    pub count: u32,
    pub bits: u32,
}

impl Limbs {
    /// The fewest limbs for which every entry rounds correctly; `None` if even single bits do not.
    pub(super) fn choose(max_abs: u64, len: usize, kernel_norm: f64, levels: f64) -> Option<Self> {
        let total = 65 - max_abs.leading_zeros(); // sign included
        (1..=total).find_map(|count| {
            let bits = total.div_ceil(count);
            let digit = 2f64.powi(bits as i32 - 1) + 1.0;
            let norms = kernel_norm * digit * (len as f64).sqrt();
            // By Cauchy-Schwarz `norms` also bounds the entries, which `nearest` takes below 2^50.
            (convolution_error(levels) * norms < 0.4 && norms < 2f64.powi(50)).then_some(Self { count, bits })
        })
    }

    /// One limb or two for which every entry rounds correctly, of `len` numbers with this norm.
    fn of_norm(norm: f64, len: usize, kernel_norm: f64, levels: f64) -> Option<Self> {
        let rounds =
            |norm: f64| convolution_error(levels) * norm * kernel_norm < 0.4 && norm * kernel_norm < 2f64.powi(50);
        let low = |bits: u32| 2f64.powi(bits as i32 - 1) * (len as f64).sqrt();
        let two = |bits: &u32| rounds(low(*bits)) && rounds((norm + low(*bits)) / 2f64.powi(*bits as i32));
        if rounds(norm) {
            return Some(Self { count: 1, bits: 0 });
        }
        (1..32).rev().find(two).map(|bits| Self { count: 2, bits })
    }

    /// Digit `index` of `x = Σ digit_i·2^(bits·i)`, in `[−2^(bits−1), 2^(bits−1)]`.
    ///
    /// Adding `Σ_{i<index} 2^(bits·i + bits − 1)` makes plain digits of balanced ones; the sum stays
    /// below 2^63 for `|x| < 2^61`.
    pub(super) fn digit(self, x: i64, index: u32) -> f64 {
        let carry: i64 = (0..index).map(|i| 1i64 << (self.bits * i + self.bits - 1)).sum();
        let shifted = (x + carry) >> (self.bits * index);
        if index + 1 == self.count {
            shifted as f64
        } else {
            let half = 1i64 << (self.bits - 1);
            (((shifted + half) & ((1 << self.bits) - 1)) - half) as f64
        }
    }
}

/// The nearest integer of `|value| < 2^51`: adding `1.5·2^52` leaves it in the low bits.
#[inline]
pub(super) fn nearest(value: f64) -> i64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    (value + MAGIC).to_bits() as i64 - MAGIC.to_bits() as i64
}

/// What can be convolved with a kernel, by its norms.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    input_len: usize,
    /// Of the transforms.
    len: usize,
    kernel_norm: f64,
    kernel_sum: u128,
}

impl Limits {
    /// Of a kernel on `Z_cyclic`, of which zeros may be left out. Entries must be below 2^53 in magnitude.
    pub(crate) fn new(kernel: impl Iterator<Item = i64>, cyclic: usize, input_len: usize) -> Self {
        let len = if cyclic.is_power_of_two() && cyclic > 1 {
            cyclic
        } else {
            (cyclic + input_len).next_power_of_two().max(2)
        };
        let (mut squares, mut kernel_sum) = (0.0, 0u128);
        for k in kernel {
            squares += k as f64 * k as f64;
            kernel_sum += u128::from(k.unsigned_abs());
        }
        Self { input_len, len, kernel_norm: squares.sqrt() * (1.0 + 1e-9), kernel_sum }
    }

    fn limbs(&self, max_abs: u64) -> Option<Limbs> {
        Limbs::choose(max_abs, self.input_len, self.kernel_norm, rounding_levels(self.len))
    }

    /// Largest magnitude of an output entry, if inputs up to `max_abs` convolve exactly in `i64`.
    ///
    /// # Errors
    /// [`Error::Overflow`] otherwise.
    pub(crate) fn magnitude(&self, max_abs: u64) -> Result<u64, Error> {
        let bound = self.kernel_sum.saturating_mul(u128::from(max_abs));
        let fits = bound < 1 << 60 && self.limbs(max_abs).is_some();
        fits.then_some(bound as u64).ok_or_else(|| self.too_large(max_abs))
    }

    /// Largest magnitude of an output entry, if inputs up to `max_abs` convolve exactly in `i128`.
    ///
    /// # Errors
    /// [`Error::Overflow`] otherwise.
    pub(crate) fn wide_magnitude(&self, max_abs: u64) -> Result<u128, Error> {
        let fits = max_abs < 1 << 60 && self.limbs(max_abs).is_some();
        let bound = self.kernel_sum.saturating_mul(u128::from(max_abs));
        (fits && bound < 1 << 120).then_some(bound).ok_or_else(|| self.too_large(max_abs))
    }

    fn too_large(&self, max_abs: u64) -> Error {
        Error::Overflow(format!(
            "exact convolution of {} entries up to {max_abs} overflows; declare a smaller max_value",
            self.input_len
        ))
    }
}

/// Convolution with a fixed integer kernel on `Z_cyclic`.
#[derive(Debug, Clone)]
pub(crate) struct ExactConvolution {
    cyclic: usize,
    limits: Limits,
    transform: RealFourier,
    spectrum: Vec<Complex<f64>>,
}

impl ExactConvolution {
    /// Kernel entries must be below 2^53 in magnitude.
    pub(crate) fn new(kernel: &[i64], input_len: usize) -> Self {
        let limits = Limits::new(kernel.iter().copied(), kernel.len(), input_len);
        let transform = RealFourier::new(limits.len);
        let spectrum = transform.spectrum(&kernel.iter().map(|k| *k as f64).collect::<Vec<_>>());
        Self { cyclic: kernel.len(), limits, transform, spectrum }
    }

    /// See [`Limits::magnitude`].
    pub(crate) fn magnitude(&self, max_abs: u64) -> Result<u64, Error> {
        self.limits.magnitude(max_abs)
    }

    /// `out = K ⊛ x`, exactly, for `|x_i| ≤ max_abs` accepted by [`Limits::magnitude`], or for wide sums by
    /// [`Limits::wide_magnitude`].
    pub(crate) fn apply<T>(&self, x: &[i64], max_abs: u64, out: &mut [T])
    where
        T: Copy + Default + Send + From<i64> + Shl<u32, Output = T> + AddAssign,
    {
        let limbs = self.limits.limbs(max_abs).expect("checked when the plan was fitted");
        let convolve = |index: u32| {
            let mut buffer = REALS.take(self.limits.len);
            let (digits, padding) = buffer.split_at_mut(x.len());
            for (slot, value) in digits.iter_mut().zip(x) {
                *slot = limbs.digit(*value, index);
            }
            padding.fill(0.0);
            self.transform.filter_in_place(&mut buffer, |k| self.spectrum[k]);
            buffer
        };
        let fold = |buffer: &[f64], shift: u32, out: &mut [T]| {
            for ring in buffer.chunks(self.cyclic) {
                let covered = &mut out[..ring.len()];
                in_pieces(covered, PARALLEL_LEN, &|first, out| {
                    for (slot, value) in out.iter_mut().zip(&ring[first..]) {
                        *slot += T::from(nearest(*value)) << shift;
                    }
                });
            }
        };
        out.fill(T::default());
        if self.limits.len >= PARALLEL_LEN && limbs.count > 1 {
            let parts: Vec<Scratch<f64>> = (0..limbs.count).into_par_iter().map(convolve).collect();
            for (index, part) in parts.iter().enumerate() {
                fold(part, limbs.bits * index as u32, out);
            }
        } else {
            for index in 0..limbs.count {
                fold(&convolve(index), limbs.bits * index, out);
            }
        }
    }
}

/// `Σ_i x_i x_{l−i}` and `Σ_i x_i x_{i+l}` of all sums and differences l of places, exactly; `None` of numbers too large.
pub(crate) fn own_products(x: &[i64]) -> Option<[Vec<i64>; 2]> {
    let sums = (2 * x.len()).saturating_sub(1);
    let transform = RealFourier::new(sums.next_power_of_two().max(2));
    let norm = x.iter().map(|v| *v as f64 * *v as f64).sum::<f64>().sqrt() * (1.0 + 1e-9);
    // No product is larger than the squared norm.
    let limbs =
        Limbs::of_norm(norm, x.len(), norm, rounding_levels(transform.len())).filter(|_| norm < 2f64.powi(30))?;
    let spectrum = transform.spectrum(&x.iter().map(|v| *v as f64).collect::<Vec<_>>());
    let products = |index: u32| {
        let (mut digits, mut own) = (REALS.take(transform.len()), COMPLEX.take(transform.spectrum_len()));
        digits.iter_mut().zip(x).for_each(|(slot, v)| *slot = limbs.digit(*v, index));
        digits[x.len()..].fill(0.0);
        transform.forward_into(&mut digits, &mut own);
        let inverse = |len: usize, times: fn(Complex<f64>, Complex<f64>) -> Complex<f64>| {
            let scale = (transform.len() as f64).recip();
            let (mut product, mut out) = (COMPLEX.take(own.len()), REALS.take(transform.len()));
            for ((slot, a), b) in product.iter_mut().zip(&*own).zip(&spectrum) {
                *slot = times(*a, *b) * scale;
            }
            transform.inverse(&mut product, &mut out);
            out[..len].iter().map(|v| nearest(*v) << (limbs.bits * index)).collect::<Vec<_>>()
        };
        rayon::join(|| inverse(sums, |a, b| a * b), || inverse(x.len(), |a, b| a.conj() * b))
    };
    let add = |mut all: Vec<i64>, more: Vec<i64>| {
        all.iter_mut().zip(more).for_each(|(slot, value)| *slot += value);
        all
    };
    if limbs.count == 1 {
        return Some(products(0).into());
    }
    let (low, high) = rayon::join(|| products(0), || products(1));
    Some([add(low.0, high.0), add(low.1, high.1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(kernel: &[i64], x: &[i64]) -> Vec<i64> {
        let n = kernel.len();
        let mut out = vec![0i64; n];
        for (j, value) in x.iter().enumerate() {
            for (i, slot) in out.iter_mut().enumerate() {
                *slot += kernel[(i + n - j % n) % n] * value;
            }
        }
        out
    }

    #[test]
    fn oracle_on_a_known_case() {
        assert_eq!(naive(&[1, 2, 0], &[1, 1, 1]), [3, 3, 3]);
        assert_eq!(naive(&[1, 2, 0, 0], &[0, 0, 0, 5]), [10, 0, 0, 5]);
    }

    #[test]
    fn nearest_integer() {
        for value in [0.0, 0.25, -0.25, 1.75, -1.75, 2f64.powi(50) - 0.25, -(2f64.powi(50)) + 0.25] {
            assert_eq!(nearest(value), value.round() as i64);
        }
    }

    proptest! {
        #[test]
        fn limbs_recompose(x in -(1i64 << 55)..1 << 55, count in 1u32..9) {
            let limbs = Limbs { count, bits: 57u32.div_ceil(count) };
            let sum: i128 = (0..count).map(|i| (limbs.digit(x, i) as i128) << (limbs.bits * i)).sum();
            // One limb of 57 bits is rounded by the cast to f64; the planner never asks for it.
            prop_assume!(limbs.bits <= 53);
            prop_assert_eq!(sum, i128::from(x));
            for i in 0..count {
                prop_assert!(limbs.digit(x, i).abs() <= 2f64.powi(limbs.bits as i32 - 1) + 1.0);
            }
        }

        /// In one limb and in two.
        #[test]
        fn own_products_are_those_of_the_numbers(len in 1usize..70, scale in 1u32..24, seed in any::<u64>()) {
            let mut state = seed | 1;
            let x: Vec<i64> = (0..len).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state as i64) >> (63 - scale)
            }).collect();
            let [sums, differences] = own_products(&x).unwrap();
            let at = |l: usize| (0..len).filter(|i| l >= *i && l - i < len).map(|i| x[i] * x[l - i]).sum::<i64>();
            prop_assert_eq!(sums, (0..2 * len - 1).map(at).collect::<Vec<_>>());
            prop_assert_eq!(differences, (0..len).map(|l| (l..len).map(|i| x[i] * x[i - l]).sum()).collect::<Vec<i64>>());
        }

        #[test]
        fn matches_the_integer_oracle(
            len in 1usize..70, input in 1usize..70, scale in 0u32..24, seed in any::<u64>(),
        ) {
            let input = input.min(len);
            let mut state = seed | 1;
            let mut next = |bits: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state as i64) >> (63 - bits)
            };
            let kernel: Vec<i64> = (0..len).map(|_| next(21)).collect();
            let x: Vec<i64> = (0..input).map(|_| next(scale)).collect();
            let exact = ExactConvolution::new(&kernel, input);
            let max_abs = 1u64 << scale;
            exact.magnitude(max_abs).unwrap();
            let mut out = vec![1; len];
            exact.apply(&x, max_abs, &mut out);
            prop_assert_eq!(out, naive(&kernel, &x));
        }
    }

    /// Worst-case inputs (all at the limit, alternating, aligned with the kernel) at a large size,
    /// against exact wrapping arithmetic by a number-theoretic oracle: sums of differences.
    #[test]
    fn large_adversarial_inputs() {
        let n = 1usize << 16;
        // A kernel with a known convolution: K = all ones times c, plus one tap.
        let mut kernel = vec![1i64 << 12; n];
        kernel[1] += 1 << 20;
        let max_abs = 1i64 << 24;
        for pattern in 0..3 {
            let x: Vec<i64> = (0..n)
                .map(|i| match pattern {
                    0 => max_abs,
                    1 => {
                        if i % 2 == 0 {
                            max_abs
                        } else {
                            -max_abs
                        }
                    }
                    _ => (i as i64 * 2_654_435_761) % max_abs,
                })
                .collect();
            let total: i64 = x.iter().sum();
            let exact = ExactConvolution::new(&kernel, n);
            exact.magnitude(max_abs as u64).unwrap();
            let mut out = vec![0; n];
            exact.apply(&x, max_abs as u64, &mut out);
            for i in 0..n {
                let expected = (total << 12) + (x[(i + n - 1) % n] << 20);
                assert_eq!(out[i], expected);
            }
        }
        assert!(ExactConvolution::new(&kernel, n).magnitude(1 << 45).is_err());
    }
}
