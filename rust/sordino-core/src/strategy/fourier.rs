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
//!
//! Several filters of one series, with weights `w_p` of their squared errors, have `AᵀWA` with the spectrum
//! `Σ_p w_p |λ_pk|²`: its root stands for `|λ_k|`, and each filter is read off by its own `λ_pk/K̂_k`.

use super::least_squares::{LeastSquares, OnCircle};
use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, not_in_row_space, probe, table};
use crate::error::Error;
use crate::transform::exact::{ExactConvolution, convolution_error};
use crate::transform::fourier::{RealFourier, rounding_levels, transform_error};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::tail::rest;
use crate::workload::{Workload, each};
use num_complex::Complex;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// Fewest and most bits of the rounded kernel.
const KERNEL_BITS: RangeInclusive<u32> = 20..=30;
/// Accepted growth of the mean squared error by rounding the kernel.
const KERNEL_LOSS: f64 = 1e-7;

/// Half spectra, one a filter.
type Spectra = Vec<Vec<Complex<f64>>>;

/// A filter as a circulant: its spectrum, and how inputs and outputs sit on the circle.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    pub transform: RealFourier,
    /// Length of the circle: `N`, or `2N` with boundaries.
    pub len: usize,
    /// Number of inputs and of outputs.
    pub inputs: usize,
    /// Half spectrum `λ_k`; of several filters the root of the sum of their weighted squares.
    pub spectrum: Vec<Complex<f64>>,
    /// What is answered, where the filters have boundaries.
    pub linear: Option<Workload>,
}

/// The filter of which a part asks all answers or the later ones: cells are the filter of one tap.
fn filter_of(part: &Workload, circular: bool) -> Workload {
    match part.whole().1 {
        Workload::Histogram { len } if circular => {
            Workload::Circular { kernel: std::iter::once(1.0).chain(std::iter::repeat(0.0)).take(*len).collect() }
        }
        Workload::Histogram { len } => Workload::Linear { kernel: vec![1.0], len: *len, center: 0 },
        own => own.clone(),
    }
}

impl Circle {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let (signal, inputs, linear) = match workload {
            Workload::Circular { kernel } => (kernel.clone(), kernel.len(), None),
            Workload::Linear { kernel, len, center } => {
                let mut signal = vec![0.0; 2 * len];
                for (j, h) in kernel.iter().enumerate() {
                    // Lags of `len` and more never join an input to an output.
                    if j < center + len && *center < j + len {
                        signal[(2 * len + j - center) % (2 * len)] = *h;
                    }
                }
                (signal, *len, Some(workload.clone()))
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

    /// The circle of several filters of one series, and the half spectra of each.
    fn together(workload: &Workload, weights: &[f64]) -> Result<(Self, Spectra), Error> {
        let parts = workload.parts();
        let circular = parts.iter().any(|part| matches!(part, Workload::Circular { .. }));
        let mut circles =
            parts.iter().map(|part| Self::new(&filter_of(part, circular))).collect::<Result<Vec<_>, _>>()?;
        let spectra: Spectra = circles.iter().map(|circle| circle.spectrum.clone()).collect();
        let mut circle = circles.swap_remove(0);
        if circles.iter().any(|other| (other.len, other.inputs) != (circle.len, circle.inputs)) {
            return Err(Error::Unsupported("filters on a ring go with others on it, those with ends likewise".into()));
        }
        if parts.len() > 1 {
            let weighted = |k: usize| {
                let own = |(spectrum, weight): (&Vec<Complex<f64>>, &f64)| weight * spectrum[k].norm_sqr();
                Complex::new(spectra.iter().zip(weights).map(own).sum::<f64>().sqrt(), 0.0)
            };
            circle.spectrum = (0..circle.spectrum.len()).map(weighted).collect();
        }
        circle.linear = circle.linear.map(|_| workload.clone());
        Ok((circle, spectra))
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

    /// Row `answer` of the circulant with a half spectrum.
    pub(super) fn row(&self, spectrum: &[Complex<f64>], answer: usize) -> Vec<f64> {
        // (Cx)_t = Σ_i c_{t−i} x_i: the kernel reversed, its first entry at t.
        let turn = |k: usize| {
            let angle = -std::f64::consts::TAU * ((k * answer) % self.len) as f64 / self.len as f64;
            Complex::from_polar(1.0, angle)
        };
        let mut spectrum: Vec<Complex<f64>> =
            spectrum.iter().enumerate().map(|(k, v)| v.conj() * turn(k) / self.len as f64).collect();
        let mut row = vec![0.0; self.len];
        self.transform.inverse(&mut spectrum, &mut row);
        row
    }

    fn pad(&self, row: &[f64]) -> Vec<Complex<f64>> {
        self.transform.spectrum(row)
    }
}

/// The optimal Gaussian strategy of a filter, or of several of one series.
#[derive(Debug)]
pub(super) struct Fourier {
    workload: Workload,
    /// Of the squared errors of each filter.
    weights: Vec<f64>,
    measured: Measured,
    /// Of each filter `λ/K̂`, 0 where `λ = 0`: from measurements to answers on the ring.
    transfers: Spectra,
    convolution: ExactConvolution,
    least_squares: Option<LeastSquares>,
}

/// The strategy of several filters of one series, cells among them, whose squared errors count with `weights`, one a part.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads, and for filters on a ring beside others with ends.
pub fn fourier_union(workload: &Workload, weights: &[f64]) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    workload.listed()?;
    Error::check_len("weights", workload.parts().len(), weights.len())?;
    Ok(Box::new(Fourier::new(&workload, weights)?))
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
    pub(super) fn new(workload: &Workload, weights: &[f64]) -> Result<Self, Error> {
        let (circle, mut transfers) = Circle::together(workload, weights)?;
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
        for transfer in &mut transfers {
            let each = transfer.iter_mut().zip(&kernel_spectrum);
            each.filter(|(lambda, _)| **lambda != Complex::default()).for_each(|(lambda, k)| *lambda /= k);
        }
        let measured = Measured { circle, kernel, spectrum: kernel_spectrum };
        let least_squares = LeastSquares::new(&measured.circle, |k| measured.spectrum[k].powi(2), &measured);
        let (workload, weights) = (workload.clone(), weights.to_vec());
        let found = Self { workload, weights, measured, transfers, convolution, least_squares };
        // A frequency that hardly counts in the sum may be lost in rounding, and be all that a part asks for.
        let (parts, cells) = (found.workload.parts().len(), found.measured.circle.inputs);
        let answered = |x: &[f64], out: &mut [f64]| found.decode(&found.measured.multiply(x), out);
        if parts > 1 && found.least_squares.is_none() && !probe::decodes(&found.workload, cells, answered) {
            return Err(Error::Unsupported(
                "these filters are too different for one strategy in double precision".into(),
            ));
        }
        Ok(found)
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

    /// Calls `visit` with the transfer and the answers on the circle of every filter, those that are asked for kept.
    fn each_filter(&self, out: &mut [f64], visit: impl Fn(&[Complex<f64>], &mut [f64])) {
        let mut transfers = self.transfers.iter();
        each(self.workload.parts(), out, |part, piece| {
            let transfer = transfers.next().expect("one a part");
            rest(part.whole().0, piece, |all| visit(transfer, all));
        });
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
        } else {
            self.each_filter(out, |transfer, answers| {
                if answers.len() == circle.len {
                    answers.copy_from_slice(y);
                    circle.transform.filter_in_place(answers, |k| transfer[k]);
                } else {
                    answers.copy_from_slice(&circle.transform.filter(y, |k| transfer[k])[..answers.len()]);
                }
            });
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let Measured { circle, .. } = &self.measured;
        match &self.least_squares {
            Some(least_squares) => least_squares.variances(out),
            None => self.each_filter(out, |transfer, answers| {
                answers.fill(circle.transform.sum(|k| transfer[k].norm_sqr()) / circle.len as f64);
            }),
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
        circle.linear.is_none().then(|| circle.mean_magnitude().powi(2) / self.weights.iter().sum::<f64>())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        match &self.least_squares {
            Some(least_squares) => least_squares.combination(row, &self.measured),
            None => self.weights_on_circle(row),
        }
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        if self.least_squares.is_some() {
            return self.weights(row);
        }
        let (part, answer) = self.workload.part_of(answer);
        let (first, _) = self.workload.parts()[part].whole();
        let Measured { circle, spectrum, .. } = &self.measured;
        let own: Vec<_> = self.transfers[part].iter().zip(spectrum).map(|(transfer, k)| transfer * k).collect();
        self.weights_on_circle(&circle.row(&own, first + answer))
    }
}
