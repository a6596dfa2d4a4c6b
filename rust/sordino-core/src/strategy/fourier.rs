//! The Fourier mechanism with Gaussian noise: the symmetric convolution `C` with spectrum `√|λ|`.
//!
//! The strategy `D U` (real orthonormal Fourier basis `U`, weights `d_k² ∝ |λ_k|`) has the least
//! Gaussian error for every circulant workload, mean and maximum. Gaussian noise is rotation
//! invariant, so `C = Uᵀ D U`, a convolution, has the same error and can be encoded in exact
//! integers: its kernel, normalised, is rounded to `K = round(2^q·c)`. Decoding multiplies by
//! `λ_k/K̂_k`, which undoes `K` exactly, rounding of the kernel included.
//!
//! Filters with boundaries are embedded in a circle of exactly `2N`, and decoded by least squares
//! on the `N` inputs ([`LeastSquares`]).

use super::least_squares::{LeastSquares, OnCircle};
use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, not_in_row_space, table};
use crate::error::Error;
use crate::transform::exact::{ExactConvolution, convolution_error};
use crate::transform::fourier::{RealFourier, rounding_levels, transform_error};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Fewest and most bits of the rounded kernel.
const KERNEL_BITS: RangeInclusive<u32> = 20..=30;
/// Accepted growth of the mean squared error by rounding the kernel.
const KERNEL_LOSS: f64 = 1e-7;

/// A filter as a circulant: its spectrum, and how inputs and outputs sit on the circle.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    pub transform: RealFourier,
    /// Length of the circle: `N`, or `2N` with boundaries.
    pub len: usize,
    /// Number of inputs and of outputs.
    pub inputs: usize,
    /// Half spectrum `λ_k`.
    pub spectrum: Vec<Complex<f64>>,
    /// Taps and center of a filter with boundaries.
    pub linear: Option<(Vec<f64>, usize)>,
}

impl Circle {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let (signal, inputs, linear) = match workload {
            Workload::Circular { kernel } => (kernel.clone(), kernel.len(), None),
            Workload::Histogram { len } => {
                let mut signal = vec![0.0; *len];
                signal[0] = 1.0;
                (signal, *len, None)
            }
            Workload::Linear { kernel, len, center } => {
                let mut signal = vec![0.0; 2 * len];
                for (j, h) in kernel.iter().enumerate() {
                    // Lags of `len` and more never join an input to an output.
                    if j < center + len && *center < j + len {
                        signal[(2 * len + j - center) % (2 * len)] = *h;
                    }
                }
                (signal, *len, Some((kernel.clone(), *center)))
            }
            _ => return Err(Error::Unsupported("the Fourier mechanism on a line serves filters".into())),
        };
        let transform = RealFourier::new(signal.len());
        let mut spectrum = transform.spectrum(&signal);
        // Coefficients that vanish in exact arithmetic come out as rounding noise: they are zero.
        let floor = transform_error(signal.len())
            * (signal.len() as f64).sqrt()
            * signal.iter().map(|h| h * h).sum::<f64>().sqrt();
        for value in &mut spectrum {
            if value.norm() <= floor {
                *value = Complex::default();
            }
        }
        Ok(Self { len: signal.len(), transform, inputs, spectrum, linear })
    }

    /// `(1/L) Σ_k |λ_k|` over the whole circle.
    pub(super) fn mean_magnitude(&self) -> f64 {
        self.transform.sum(|k| self.spectrum[k].norm()) / self.len as f64
    }

    /// The function on the circle with this real half spectrum: autocorrelations from powers.
    pub(super) fn lags(&self, power: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut spectrum: Vec<Complex<f64>> =
            (0..self.transform.spectrum_len()).map(|k| Complex::new(power(k) / self.len as f64, 0.0)).collect();
        let mut lags = vec![0.0; self.len];
        self.transform.inverse(&mut spectrum, &mut lags);
        lags
    }

    /// Row `answer` of the circulant.
    pub(super) fn row(&self, answer: usize) -> Vec<f64> {
        // (Cx)_t = Σ_i c_{t−i} x_i: the kernel reversed, its first entry at t.
        let turn = |k: usize| {
            let angle = -std::f64::consts::TAU * ((k * answer) % self.len) as f64 / self.len as f64;
            Complex::from_polar(1.0, angle)
        };
        let mut spectrum: Vec<Complex<f64>> =
            self.spectrum.iter().enumerate().map(|(k, v)| v.conj() * turn(k) / self.len as f64).collect();
        let mut row = vec![0.0; self.len];
        self.transform.inverse(&mut spectrum, &mut row);
        row
    }

    fn pad(&self, row: &[f64]) -> Vec<Complex<f64>> {
        self.transform.spectrum(row)
    }
}

/// The optimal Gaussian strategy of a filter.
#[derive(Debug)]
pub(super) struct Fourier {
    measured: Measured,
    /// `λ/K̂`, 0 where `λ = 0`: from measurements to answers on the ring.
    transfer: Vec<Complex<f64>>,
    convolution: ExactConvolution,
    least_squares: Option<LeastSquares>,
}

/// The convolution with the integer kernel `K`.
#[derive(Debug)]
struct Measured {
    circle: Circle,
    kernel: Vec<i64>,
    /// Its real half spectrum.
    spectrum: Vec<f64>,
}

impl OnCircle for Measured {
    fn multiply(&self, x: &[f64]) -> Vec<f64> {
        self.circle.transform.filter(x, |k| Complex::new(self.spectrum[k], 0.0))
    }

    /// The kernel is symmetric and the noise white: `Bᵀy` is the same convolution.
    fn project(&self, y: &[f64]) -> Vec<f64> {
        let mut out = self.multiply(y);
        out.truncate(self.circle.inputs);
        out
    }
}

impl Fourier {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let circle = Circle::new(workload)?;
        let ideal = circle.mean_magnitude().powi(2);
        let (kernel, kernel_spectrum) = fewest_bits(KERNEL_BITS, KERNEL_LOSS, |bits| {
            let kernel = rounded_kernel(&circle, bits);
            let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
            let spectrum: Vec<f64> = circle.pad(&values).iter().map(|v| v.re).collect();
            let norm2: f64 = values.iter().map(|v| v * v).sum();
            let squares = circle.transform.sum(|k| ratio2(circle.spectrum[k], spectrum[k])) / circle.len as f64;
            (squares * norm2 / ideal - 1.0, (kernel, spectrum))
        });
        let convolution = ExactConvolution::new(&kernel, circle.inputs);
        let transfer = circle
            .spectrum
            .iter()
            .zip(&kernel_spectrum)
            .map(|(lambda, k)| if *lambda == Complex::default() { *lambda } else { lambda / k })
            .collect();
        let measured = Measured { circle, kernel, spectrum: kernel_spectrum };
        let least_squares = LeastSquares::new(&measured.circle, |k| measured.spectrum[k].powi(2), &measured);
        Ok(Self { measured, transfer, convolution, least_squares })
    }

    /// Exact `‖K‖₂²`.
    fn norm_squared(&self) -> u128 {
        self.measured.kernel.iter().map(|k| u128::from(k.unsigned_abs()).pow(2)).sum()
    }

    /// Upper bound of `max_{i≠j} ‖b_i − b_j‖²= 2(r_0 − min r_m)` over the lags in use.
    fn pair_squared(&self) -> f64 {
        let Measured { circle, spectrum, .. } = &self.measured;
        let lags = circle.lags(|k| spectrum[k].powi(2));
        let least = lags[1..].iter().take(circle.inputs.saturating_sub(1)).copied().fold(f64::INFINITY, f64::min);
        let square = self.norm_squared() as f64;
        let error = 2.0 * square * convolution_error(rounding_levels(circle.len));
        if least.is_finite() { 2.0 * (square - least) * (1.0 + 1e-12) + 2.0 * error } else { 0.0 }
    }

    /// Weights of the answer that the circle gives to a row of its own length.
    fn weights_on_circle(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let Measured { circle, spectrum, .. } = &self.measured;
        let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        let tolerance = 1e-9 * norm * (circle.len as f64).sqrt();
        for (lambda, value) in circle.spectrum.iter().zip(circle.pad(row)) {
            if *lambda == Complex::default() && value.norm() > tolerance {
                return Err(not_in_row_space());
            }
        }
        Ok(circle.transform.filter(row, |k| {
            let zero = circle.spectrum[k] == Complex::default();
            Complex::new(if zero { 0.0 } else { 1.0 / spectrum[k] }, 0.0)
        }))
    }
}

/// What is made with the fewest bits that lose no more than `accepted`, or with the most bits.
///
/// A bit more divides what rounding loses by four: so it is known from the first loss about where to look.
pub(super) fn fewest_bits<T>(bits: RangeInclusive<u32>, accepted: f64, make: impl Fn(u32) -> (f64, T)) -> T {
    let (first, last) = (*bits.start(), *bits.end());
    let (loss, made) = make(first);
    if loss <= accepted || first == last {
        return made;
    }
    let more = (0.5 * (loss / accepted).log2()).ceil();
    let mut bits = if more.is_finite() { (first + more.clamp(1.0, 64.0) as u32).min(last) } else { last };
    let (mut loss, mut made) = make(bits);
    // A loss that is no number is not accepted either.
    while loss.partial_cmp(&accepted).is_none_or(Ordering::is_gt) && bits < last {
        bits += 1;
        (loss, made) = make(bits);
    }
    while bits > first + 1 && loss <= accepted {
        let (fewer, candidate) = make(bits - 1);
        if fewer > accepted {
            break;
        }
        (bits, loss, made) = (bits - 1, fewer, candidate);
    }
    made
}

/// `|λ/K̂|²`, 0 where `λ = 0`.
fn ratio2(lambda: Complex<f64>, kernel: f64) -> f64 {
    if lambda == Complex::default() { 0.0 } else { lambda.norm_sqr() / (kernel * kernel) }
}

/// `round(2^bits·c)`, `c` the normalised kernel with spectrum `√|λ|`, symmetric to the bit.
fn rounded_kernel(circle: &Circle, bits: u32) -> Vec<i64> {
    let mut root: Vec<Complex<f64>> = circle.spectrum.iter().map(|v| Complex::new(v.norm().sqrt(), 0.0)).collect();
    let mut c = vec![0.0; circle.len];
    circle.transform.inverse(&mut root, &mut c);
    let norm = c.iter().map(|v| v * v).sum::<f64>().sqrt();
    let factor = 2f64.powi(bits as i32) / norm;
    let mut kernel: Vec<i64> = c.iter().map(|v| (v * factor).round() as i64).collect();
    for j in 1..circle.len.div_ceil(2) {
        kernel[circle.len - j] = kernel[j];
    }
    kernel
}

impl Strategy for Fourier {
    fn measured_len(&self) -> usize {
        self.measured.circle.len
    }

    fn geometry(&self) -> Geometry {
        Geometry::L2
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let column = Upper::integer(self.norm_squared()).sqrt();
        let pair = || Upper::rounded(self.pair_squared(), 4).sqrt();
        // ‖Bδ‖ ≤ ‖B‖·‖δ‖₂ is sharper when no cell takes many records.
        let largest = self.measured.spectrum.iter().fold(0.0f64, |m, k| m.max(k.abs()));
        let len = self.measured.circle.len;
        let error = transform_error(len) * (len as f64).sqrt() * column.get();
        let spectral = Upper::rounded(largest + error, 4) * Upper::integer(unit.l2_squared(len)).sqrt();
        Ok(unit.from_columns(column, pair).min(spectral))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        Ok(Encoding::Exact { max_abs: self.convolution.magnitude(max_abs)? })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.convolution.apply(table(x)?, max_abs, integers(out));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let Measured { circle, .. } = &self.measured;
        if let Some(least_squares) = &self.least_squares {
            least_squares.decode(y, &self.measured, out);
        } else if out.len() == circle.len {
            out.copy_from_slice(y);
            circle.transform.filter_in_place(out, |k| self.transfer[k]);
        } else {
            out.copy_from_slice(&circle.transform.filter(y, |k| self.transfer[k])[..out.len()]);
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let Measured { circle, spectrum, .. } = &self.measured;
        match &self.least_squares {
            Some(least_squares) => least_squares.variances(out),
            None => out.fill(circle.transform.sum(|k| ratio2(circle.spectrum[k], spectrum[k])) / circle.len as f64),
        }
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(self.measured.multiply(x))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.measured.project(y))
    }

    fn ideal_mean_square(&self) -> Option<f64> {
        let circle = &self.measured.circle;
        circle.linear.is_none().then(|| circle.mean_magnitude().powi(2))
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        match &self.least_squares {
            Some(least_squares) => least_squares.combination(row, &self.measured),
            None => self.weights_on_circle(row),
        }
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        match self.least_squares {
            Some(_) => self.weights(row),
            None => self.weights_on_circle(&self.measured.circle.row(answer)),
        }
    }
}
