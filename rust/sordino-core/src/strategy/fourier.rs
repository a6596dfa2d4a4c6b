//! The Fourier mechanism with Gaussian noise: the symmetric convolution `C` with spectrum `√|λ|`.
//!
//! The strategy `D U` (real orthonormal Fourier basis `U`, weights `d_k² ∝ |λ_k|`) has the least
//! Gaussian error for every circulant workload, mean and maximum. Gaussian noise is rotation
//! invariant, so `C = Uᵀ D U`, a convolution, has the same error and can be encoded in exact
//! integers: its kernel, normalised, is rounded to `K = round(2^q·c)`. Decoding multiplies by
//! `λ_k/K̂_k`, which undoes `K` exactly, rounding of the kernel included.
//!
//! Filters with boundaries are embedded in a circle of exactly `2N`, and decoded by least squares
//! on the `N` inputs ([`LeastSquares`]). Where no answer reads beyond an end, circles of `N` and of whole numbers of the
//! windows are tried as well, and decoded on the circle: windows of a part of the series have less error there.
//!
//! Several filters of one series, with weights `w_p` of their squared errors, have `AᵀWA` with the spectrum
//! `Σ_p w_p |λ_pk|²`: its root stands for `|λ_k|`, and each filter is read off by its own `λ_pk/K̂_k`.

use super::least_squares::{LeastSquares, OnCircle};
use super::merged::on_merged_windows;
use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, not_in_row_space, probe, table};
use crate::error::Error;
use crate::order::sorted_by_key;
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

/// What squared errors must fall to for a circle that leaves out frequencies: other queries may ask for them.
const WORTH: f64 = 0.98;

/// Half spectra, one a filter.
type Spectra = Vec<Vec<Complex<f64>>>;

/// A filter as a circulant: its spectrum, and how inputs and outputs sit on the circle.
#[derive(Debug, Clone)]
pub(super) struct Circle {
    pub transform: RealFourier,
    /// Length of the circle: `N`, `2N` with boundaries, or in between.
    pub len: usize,
    /// Number of inputs and of outputs.
    pub inputs: usize,
    /// Half spectrum `λ_k`; of several filters the root of the sum of their weighted squares.
    pub spectrum: Vec<Complex<f64>>,
    /// What is answered by least squares on the inputs.
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
    /// The circle of a filter; of one with ends perhaps a given one, on which nothing that is asked for wraps around.
    pub(super) fn new(workload: &Workload, ring: Option<usize>) -> Result<Self, Error> {
        let (signal, inputs, linear) = match workload {
            Workload::Circular { kernel } => (kernel.clone(), kernel.len(), None),
            Workload::Linear { kernel, len, center } => {
                let period = ring.unwrap_or(2 * len);
                let mut signal = vec![0.0; period];
                for (j, h) in kernel.iter().enumerate() {
                    // Lags of `len` and more never join an input to an output.
                    if j < center + len && *center < j + len {
                        signal[(period + j - center) % period] = *h;
                    }
                }
                (signal, *len, ring.is_none().then(|| workload.clone()))
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
    fn together(workload: &Workload, weights: &[f64], ring: Option<usize>) -> Result<(Self, Spectra), Error> {
        let parts = workload.parts();
        let circular = parts.iter().any(|part| matches!(part, Workload::Circular { .. }));
        let mut circles =
            parts.iter().map(|part| Self::new(&filter_of(part, circular), ring)).collect::<Result<Vec<_>, _>>()?;
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

/// The strategy of filters of one series, cells among them, whose squared errors count with `weights`, one a part; where
/// circles differ, or cells are in all windows, that of less error for the unit.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads, and for filters on a ring beside others with ends.
pub fn fourier_filters(workload: &Workload, weights: &[f64], unit: Unit) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    workload.listed()?;
    Error::check_len("weights", workload.parts().len(), weights.len())?;
    let build = |own: &Workload| -> Result<Box<dyn Strategy>, Error> {
        Ok(Box::new(Fourier::on_best_circle(own, weights, unit)?))
    };
    let Some(merged) = on_merged_windows(&workload, build)? else { return build(&workload) };
    if !matches!(unit, Unit::AddRemove { per_cell: Some(_), .. }) {
        return Ok(merged);
    }
    // What a cell may change by is less than what those that are one may.
    let plain = build(&workload)?;
    let squares = |strategy: &dyn Strategy| squares(strategy, &workload, weights, unit);
    Ok(if squares(&*merged)? < squares(&*plain)? { merged } else { plain })
}

/// Weighted squared errors of all answers at noise multiplier 1.
fn squares(strategy: &dyn Strategy, workload: &Workload, weights: &[f64], unit: Unit) -> Result<f64, Error> {
    let mut variances = vec![0.0; workload.answers_len()];
    strategy.variances(&mut variances);
    let (mut rest, mut sum) = (&variances[..], 0.0);
    for (part, weight) in workload.parts().iter().zip(weights) {
        let (own, after) = rest.split_at(part.answers_len());
        rest = after;
        sum += weight * own.iter().sum::<f64>();
    }
    Ok(sum * strategy.sensitivity(unit)?.get().powi(2))
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

/// Rings on which no answer wraps around, where none reads beyond an end: as long as the series, and as whole numbers of the
/// windows, of which many coefficients vanish.
fn closer_rings(workload: &Workload) -> Vec<usize> {
    let taps = |part: &Workload| match part {
        Workload::Histogram { len } => Some((*len, 1)),
        Workload::Tail { first, of } => match &**of {
            Workload::Linear { kernel, len, center: 0 } => {
                let taps = kernel.iter().rposition(|tap| *tap != 0.0).map_or(1, |last| last + 1);
                (taps <= first + 1).then_some((*len, taps))
            }
            _ => None,
        },
        _ => None,
    };
    let Some(found) = workload.parts().iter().map(taps).collect::<Option<Vec<_>>>() else { return Vec::new() };
    found.iter().map(|(len, taps)| len.next_multiple_of(*taps)).chain([found[0].0]).collect()
}

impl Fourier {
    pub(super) fn new(workload: &Workload, weights: &[f64]) -> Result<Self, Error> {
        Self::on_circle(Circle::together(workload, weights, None)?, workload, weights)
    }

    fn on_best_circle(workload: &Workload, weights: &[f64], unit: Unit) -> Result<Self, Error> {
        let found = Self::new(workload, weights)?;
        let of = |own: &Self| squares(own, workload, weights, unit);
        let closer = closer_rings(workload).into_iter().map(|len| Circle::together(workload, weights, Some(len)));
        let closer = sorted_by_key(closer.collect::<Result<Vec<_>, _>>()?, |(circle, _)| circle.mean_magnitude());
        match closer.into_iter().next().map(|circle| Self::on_circle(circle, workload, weights)) {
            Some(Ok(own)) if of(&own)? < WORTH * of(&found)? => Ok(own),
            _ => Ok(found),
        }
    }

    fn on_circle(
        (circle, mut transfers): (Circle, Spectra),
        workload: &Workload,
        weights: &[f64],
    ) -> Result<Self, Error> {
        let ideal = circle.mean_magnitude().powi(2);
        let root = root_kernel(&circle);
        let (kernel, kernel_spectrum) = fewest_bits(KERNEL_BITS, KERNEL_LOSS, |bits| {
            let kernel = rounded(&root, bits);
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
        if parts > 1 && found.least_squares.is_none() && !probe::decodes(&found.workload, cells, &answered) {
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
    let fails = |loss: f64| loss.partial_cmp(&accepted).is_none_or(Ordering::is_gt); // also where it is no number
    if fails(loss) {
        while fails(loss) && bits < last {
            bits += 1;
            (loss, made) = make(bits);
        }
        return made;
    }
    while bits > first + 1 {
        let (fewer, candidate) = make(bits - 1);
        if fails(fewer) {
            break;
        }
        (bits, made) = (bits - 1, candidate);
    }
    made
}

/// `|λ/K̂|²`, 0 where `λ = 0`.
fn ratio2(lambda: Complex<f64>, kernel: f64) -> f64 {
    if lambda == Complex::default() { 0.0 } else { lambda.norm_sqr() / (kernel * kernel) }
}

/// The normalised kernel with spectrum `√|λ|`.
fn root_kernel(circle: &Circle) -> Vec<f64> {
    let mut root: Vec<Complex<f64>> = circle.spectrum.iter().map(|v| Complex::new(v.norm().sqrt(), 0.0)).collect();
    let mut kernel = vec![0.0; circle.len];
    circle.transform.inverse(&mut root, &mut kernel);
    let norm = kernel.iter().map(|v| v * v).sum::<f64>().sqrt();
    for value in &mut kernel {
        *value /= norm;
    }
    kernel
}

/// `round(2^bits·c)`, symmetric to the bit.
fn rounded(root: &[f64], bits: u32) -> Vec<i64> {
    let (factor, len) = (2f64.powi(bits as i32), root.len());
    let mut kernel: Vec<i64> = root.iter().map(|v| (v * factor).round() as i64).collect();
    for j in 1..len.div_ceil(2) {
        kernel[len - j] = kernel[j];
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
        let (circle, parts) = (&self.measured.circle, self.workload.parts());
        // Where as many answers of each filter are asked for.
        let even = parts.len() == 1 || parts.iter().all(|part| part.whole().0 == 0);
        let mean = || circle.mean_magnitude().powi(2) / self.weights.iter().sum::<f64>();
        (even && circle.linear.is_none()).then(mean)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(window: usize, len: usize) -> Workload {
        let whole = Workload::Linear { kernel: vec![1.0; window], len, center: 0 };
        Workload::Tail { first: window - 1, of: Box::new(whole) }
    }

    /// Windows that lie in the series, by the ring of the cells or by one of twice as many: answers, variances, weights and
    /// the norms of columns, against what is written out.
    #[test]
    fn windows_without_ends_have_the_better_ring() {
        let cells = Workload::Histogram { len: 40 };
        let union = Workload::Union { parts: vec![windows(20, 40), cells.clone(), windows(7, 40)] };
        let cases = [
            (windows(20, 40), vec![1.0], Some(true)),
            (windows(21, 40), vec![1.0], Some(true)),
            (windows(13, 40), vec![1.0], Some(true)),
            (windows(3, 40), vec![1.0], Some(false)),
            (windows(40, 40), vec![1.0], Some(true)),
            (windows(1, 40), vec![1.0], None),
            (Workload::Linear { kernel: vec![1.0; 20], len: 40, center: 0 }, vec![1.0], Some(false)),
            (
                Workload::Union {
                    parts: vec![windows(3, 40), Workload::Linear { kernel: vec![1.0; 3], len: 40, center: 1 }],
                },
                vec![1.0, 2.0],
                Some(false),
            ),
            (union, vec![1.0, 0.1, 3.0], None),
        ];
        for (workload, weights, on_cells) in cases {
            let ends = Fourier::new(&workload, &weights).unwrap();
            let [one, replaced] = [Unit::add_remove(1, None).unwrap(), Unit::replace_one(1).unwrap()];
            let found = Fourier::on_best_circle(&workload, &weights, one).unwrap();
            let other = Fourier::on_best_circle(&workload, &weights, replaced).unwrap();
            assert!(
                squares(&found, &workload, &weights, one).unwrap() <= squares(&ends, &workload, &weights, one).unwrap()
            );
            assert!(
                squares(&other, &workload, &weights, replaced).unwrap()
                    <= squares(&ends, &workload, &weights, replaced).unwrap()
            );
            assert!(on_cells.is_none_or(|own| own == (found.measured.circle.len < 80)));
            for strategy in [found, other, ends] {
                let encode = |x: &[i64]| {
                    let mut units = vec![0; strategy.measured_len()];
                    strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
                    units.into_iter().map(|unit| unit as f64).collect::<Vec<f64>>()
                };
                let x: Vec<i64> = (0..40).map(|j| j * 37 % 101 - 20).collect();
                let y = encode(&x);
                let (mut answers, mut variances) =
                    (vec![0.0; workload.answers_len()], vec![0.0; workload.answers_len()]);
                strategy.decode(&y, &mut answers);
                strategy.variances(&mut variances);
                for t in 0..answers.len() {
                    let row = workload.row(t).unwrap();
                    let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
                    assert!((answers[t] - truth).abs() < 1e-8 * (1.0 + truth.abs()), "{t}: {} {truth}", answers[t]);
                    for own in [strategy.answer_weights(t, &row).unwrap(), strategy.weights(&row).unwrap()] {
                        let read: f64 = own.iter().zip(&y).map(|(w, y)| w * y).sum();
                        assert!((read - truth).abs() < 1e-8 * (1.0 + truth.abs()));
                        let variance: f64 = own.iter().map(|w| w * w).sum();
                        assert!((variance / variances[t] - 1.0).abs() < 1e-8, "{t}: {variance} {}", variances[t]);
                    }
                }
                let columns: Vec<Vec<f64>> =
                    (0..40).map(|j| encode(&(0..40).map(|i| i64::from(i == j)).collect::<Vec<_>>())).collect();
                let norm = |column: &[f64]| column.iter().map(|v| v * v).sum::<f64>().sqrt();
                let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                let declared = |unit: Unit| strategy.sensitivity(unit).unwrap().get() * (1.0 + 1e-12);
                for a in &columns {
                    assert!(declared(one) >= norm(a));
                    assert!(columns.iter().all(|b| declared(replaced) >= apart(a, b)));
                }
            }
        }
    }
}
