//! The square root of a causal filter: `A = BC`, both factors lower triangular Toeplitz, Gaussian noise.
//!
//! For running sums `C = B = (1 − z)^{−1/2}` (Fichtenberger, Henzinger & Upadhyay 2023): the variance of
//! answer `t` is `S_t·S_n` at unit noise ratio, `S_t = Σ_{k<t} (C(2k,k)/4^k)²`. Other filters take the outer factor
//! of their transfer function, see [`crate::toeplitz::outer`]. What is measured is the convolution with the
//! kernel rounded to `K = round(2^q·c)`, in exact integers; decoding divides by `K`, rounding included.

use super::fourier::fewest_bits;
use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, probe, table};
use crate::error::Error;
use crate::scratch::INTEGERS;
use crate::toeplitz::outer::{dyadic, outer_factor};
use crate::toeplitz::series::{binomial, inverse, multiply, square_root};
use crate::transform::exact::{ExactConvolution, convolution_error};
use crate::transform::fourier::{RealFourier, rounding_levels, transform_error};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;
use std::sync::OnceLock;

/// Fewest and most bits of the rounded kernel.
const KERNEL_BITS: std::ops::RangeInclusive<u32> = 20..=30;
/// Accepted growth of the largest variance by rounding the kernel.
const KERNEL_LOSS: f64 = 1e-7;
/// Accuracy of the outer factor: the error is stationary there, so its square is what is lost.
const OUTER_TOLERANCE: f64 = 1e-5;
/// Longer series are served by closed forms and roots of the series only.
const OUTER_LEN: usize = 1 << 18;

/// `B x = K * x`, the first `n` terms.
#[derive(Debug)]
pub(super) struct SquareRoot {
    kernel: Vec<i64>,
    /// `H/K`: from measurements to answers.
    decoder: Vec<f64>,
    /// `1/K`.
    inverse: Vec<f64>,
    /// On a ring of at least `2n`, so that nothing wraps.
    convolution: ExactConvolution,
    ring: RealFourier,
    decoder_spectrum: Vec<Complex<f64>>,
    /// Of the kernel on the ring.
    kernel_spectrum: OnceLock<Vec<Complex<f64>>>,
}

fn squared_norm(v: &[f64]) -> f64 {
    v.iter().map(|c| c * c).sum()
}

/// `1/C`, `H/C` and its largest variance with `‖C‖ = 1`, attained at the last answer: `‖H/C‖₂²·‖C‖₂²`.
fn decoders(taps: &[f64], factor: &[f64]) -> (f64, [Vec<f64>; 2]) {
    let inverse = inverse(factor, factor.len());
    let decoder = multiply(taps, &inverse, factor.len());
    (squared_norm(&decoder) * squared_norm(factor), [inverse, decoder])
}

/// The factor of least largest variance among those that are known, `c_0 = 1`, and that variance.
fn factor(taps: &[f64], len: usize) -> (f64, Vec<f64>) {
    let ratio = taps.get(1).map_or(0.0, |h| h / taps[0]);
    // Taps that end early are no power series of a decay, but those beyond the series never matter.
    let decays = taps.windows(2).all(|pair| (pair[0] * ratio - pair[1]).abs() <= 1e-12 * pair[1].abs());
    if taps[0] != 0.0 && taps.len() == len && decays {
        let root = binomial(ratio, -0.5, len);
        // H/C = h_0 C.
        return ((taps[0] * squared_norm(&root)).powi(2), root);
    }
    let delay = taps.iter().position(|h| *h != 0.0).unwrap_or(0);
    let monic: Vec<f64> = taps[delay..].iter().map(|h| h / taps[delay]).collect();
    let mut candidates = vec![square_root(&monic, len)];
    if len <= OUTER_LEN {
        candidates.insert(0, outer_factor(taps, len, OUTER_TOLERANCE));
    }
    candidates
        .into_iter()
        .map(|c| (decoders(taps, &c).0, c))
        .filter(|(variance, c)| variance.is_finite() && c.iter().all(|v| v.abs() < 2f64.powi(20)))
        .chain([(squared_norm(taps), binomial(0.0, 1.0, len))])
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("the identity is among them")
}

impl SquareRoot {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let Workload::Linear { kernel: taps, len, center: 0 } = workload else {
            return Err(Error::Unsupported("the square root serves causal filters".into()));
        };
        let len = *len;
        let taps = &taps[..taps.len().min(len)];
        if taps.iter().all(|h| *h == 0.0) {
            return Err(Error::Unsupported("no tap meets the series".into()));
        }
        let (least, ideal) = factor(taps, len);
        let (kernel, [inverse, decoder]) = fewest_bits(KERNEL_BITS, KERNEL_LOSS, |bits| {
            let kernel = dyadic(&ideal, bits);
            let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
            let (variance, decoders) = decoders(taps, &values);
            (variance / least - 1.0, (kernel, decoders))
        });
        let ring = RealFourier::new((2 * len).next_power_of_two());
        let mut padded = kernel.clone();
        padded.resize(ring.len(), 0);
        let convolution = ExactConvolution::new(&padded, len);
        let decoder_spectrum = ring.spectrum(&decoder);
        let kernel_spectrum = OnceLock::new();
        let found = Self { kernel, decoder, inverse, convolution, ring, decoder_spectrum, kernel_spectrum };
        // Inverses that grow with the steps lose the digits of what cancels.
        let answered = |x: &[f64], out: &mut [f64]| {
            found.decode(&found.filtered(x, |k| found.spectrum()[k]), out);
        };
        if !probe::decodes(workload, len, &answered) {
            return Err(Error::Unsupported("this filter has no square root in double precision".into()));
        }
        Ok(found)
    }

    /// Exact `‖K‖₂²`, the squared norm of the first and largest column.
    fn norm_squared(&self) -> u128 {
        self.kernel.iter().map(|k| u128::from(k.unsigned_abs()).pow(2)).sum()
    }

    fn spectrum(&self) -> &[Complex<f64>] {
        let values = || self.kernel.iter().map(|k| *k as f64).collect::<Vec<_>>();
        self.kernel_spectrum.get_or_init(|| self.ring.spectrum(&values()))
    }

    /// The convolution with this half spectrum, the first terms.
    fn filtered(&self, x: &[f64], transfer: impl Fn(usize) -> Complex<f64>) -> Vec<f64> {
        let mut out = self.ring.filter(x, transfer);
        out.truncate(self.kernel.len());
        out
    }

    /// Upper bound of `max_{i≠j} ‖b_i − b_j‖²`.
    ///
    /// For `j = i + d` it is `Σ_{s<n−i} (K_s − K_{s−d})²`, a sum that is longest for `i = 0`: there it is
    /// `Σ_{s<n} K_s² + Σ_{s<n−d} K_s² − 2·Σ_s K_s K_{s+d}`.
    fn pair_squared(&self) -> f64 {
        let n = self.kernel.len();
        let mut power: Vec<Complex<f64>> =
            self.spectrum().iter().map(|v| Complex::new(v.norm_sqr() / self.ring.len() as f64, 0.0)).collect();
        let mut lags = vec![0.0; self.ring.len()];
        self.ring.inverse(&mut power, &mut lags);
        let total = self.norm_squared();
        let mut shorter = total;
        let mut largest = 0.0f64;
        for d in 1..n {
            shorter -= u128::from(self.kernel[n - d].unsigned_abs()).pow(2);
            largest = largest.max((total + shorter) as f64 - 2.0 * lags[d]);
        }
        let error = 2.0 * total as f64 * convolution_error(rounding_levels(self.ring.len()));
        if n > 1 { largest * (1.0 + 1e-12) + 2.0 * error } else { 0.0 }
    }

    /// Upper bound of the operator norm: `B` is a corner of the circulant on the ring.
    fn spectral(&self) -> Upper {
        let largest = self.spectrum().iter().fold(0.0f64, |m, v| m.max(v.norm()));
        let norm = Upper::integer(self.norm_squared()).sqrt().get();
        Upper::rounded(largest + transform_error(self.ring.len()) * (self.ring.len() as f64).sqrt() * norm, 4)
    }

    /// Upper bound for `‖δ‖₁ ≤ records`, `‖δ‖_∞ ≤ cell`, if the kernel is non-negative and falls.
    ///
    /// The maximum is at a vertex: `p = ⌊records/cell⌋` entries of `cell`, one of the remainder. `⟨b_i, b_j⟩` is
    /// at most the autocorrelation `r_{|i−j|}`, which is non-negative and falls with the kernel, so by Riesz'
    /// rearrangement inequality (Hardy, Littlewood & Pólya, Thm 371) neighbouring cells are the worst:
    /// `‖K * (cell, …, cell, remainder)‖₂`, not cut off at `n`.
    fn neighbouring(&self, records: u32, cell: u32) -> Option<Upper> {
        if self.kernel[self.kernel.len() - 1] < 0 || self.kernel.windows(2).any(|pair| pair[0] < pair[1]) {
            return None;
        }
        let n = self.kernel.len();
        let full = (records / cell) as usize;
        let (count, rest) = if full < n { (full, u128::from(records % cell)) } else { (n, 0) };
        let mut sums = vec![0u128];
        for k in &self.kernel {
            sums.push(sums[sums.len() - 1] + u128::from(k.unsigned_abs()));
        }
        let square = (0..n + count).fold(Upper::ZERO, |square, m| {
            let window = sums[(m + 1).min(n)] - sums[(m + 1).saturating_sub(count).min(n)];
            let last =
                m.checked_sub(count).and_then(|s| self.kernel.get(s)).map_or(0, |k| u128::from(k.unsigned_abs()));
            let value = Upper::integer(u128::from(cell) * window + rest * last);
            square + value * value
        });
        Some(square.sqrt())
    }
}

impl Strategy for SquareRoot {
    fn measured_len(&self) -> usize {
        self.kernel.len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L2
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let column = Upper::integer(self.norm_squared()).sqrt();
        let general = unit.from_columns(column, || Upper::rounded(self.pair_squared(), 4).sqrt());
        let Unit::AddRemove { records, per_cell: Some(cell), .. } = unit else { return Ok(general) };
        // ‖Bδ‖ ≤ ‖B‖·‖δ‖₂ is what helps a kernel with signs.
        let spectral = || self.spectral() * Upper::integer(unit.l2_squared(self.ring.len())).sqrt();
        Ok(general.min(self.neighbouring(records, cell).unwrap_or_else(spectral)))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        Ok(Encoding::Exact { max_abs: self.convolution.magnitude(max_abs)? })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let mut ring = INTEGERS.take(self.ring.len());
        self.convolution.apply(table(x)?, max_abs, &mut ring);
        let out = integers(out);
        out.copy_from_slice(&ring[..out.len()]);
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&self.filtered(y, |k| self.decoder_spectrum[k]));
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let spectrum = self.spectrum();
        Some(self.filtered(x, |k| spectrum[k]))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let spectrum = self.spectrum();
        Some(self.filtered(y, |k| spectrum[k].conj()))
    }

    fn variances(&self, out: &mut [f64]) {
        let mut sum = 0.0;
        for (slot, b) in out.iter_mut().zip(&self.decoder) {
            sum += b * b;
            *slot = sum;
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // Bᵀ is upper triangular Toeplitz: the same solve, backwards.
        let backwards: Vec<f64> = row.iter().rev().copied().collect();
        let mut weights = multiply(&backwards, &self.inverse, row.len());
        weights.reverse();
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(taps: Vec<f64>, len: usize) -> SquareRoot {
        SquareRoot::new(&Workload::Linear { kernel: taps, len, center: 0 }).unwrap()
    }

    /// Standard deviation at step `t` is `√(S_t·S_n)`; `S_1024 = 3.272554`.
    #[test]
    fn running_sums_have_the_known_error() {
        let n = 1024;
        let strategy = strategy(vec![1.0; n], n);
        let sensitivity = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
        let mut variances = vec![0.0; n];
        strategy.variances(&mut variances);
        let mut sums = Vec::new();
        let mut sum = 0.0;
        for c in binomial(1.0, -0.5, n) {
            sum += c * c;
            sums.push(sum);
        }
        for (t, variance) in variances.iter().enumerate() {
            let std = sensitivity * variance.sqrt();
            assert!((std / (sums[t] * sums[n - 1]).sqrt() - 1.0).abs() < 1e-6);
        }
        assert!((sensitivity * variances[n - 1].sqrt() - 3.272_554).abs() < 2e-6);
    }

    /// Decay, a window, a zero inside the disk, a delay, a growing filter: close to or better than the asymptote.
    #[test]
    fn other_filters_stay_below_their_asymptote() {
        let n = 512;
        for taps in [
            (0..n).map(|j| 0.9f64.powi(j as i32)).collect(),
            (0..n).map(|j| (j as f64 + 1.0).powi(-2)).collect(),
            vec![1.0 / 7.0; 7],
            vec![1.0, 2.0],
            vec![0.0, 0.0, 3.0, 1.0],
            vec![1.0, -1.0],
            vec![1.0, -2.0, 1.0],
        ] {
            let optimum = crate::toeplitz::outer::mean_magnitude(&taps);
            let strategy = strategy(taps.clone(), n);
            let sensitivity = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
            let mut variances = vec![0.0; n];
            strategy.variances(&mut variances);
            let largest = sensitivity * variances[n - 1].sqrt();
            assert!(largest < optimum * 1.001, "{taps:?}: {largest} {optimum}");
        }
        // Sums of sums: C = (1 − z)^{−1}.
        let ramp: Vec<f64> = (1..=n).map(|j| j as f64).collect();
        let double = strategy(ramp.clone(), n);
        assert!(factor(&ramp, n).0 <= (n * n) as f64 * (1.0 + 1e-9));
        assert!(double.kernel[0] > 0);
    }

    /// Capped contributions: every way to spread them over the cells of a short series, against the bound.
    #[test]
    fn neighbouring_cells_are_the_worst() {
        let n = 7;
        let strategy = strategy(vec![1.0; n], n);
        let norm = |delta: &[f64]| {
            (0..n)
                .map(|t| (0..=t).map(|i| strategy.kernel[t - i] as f64 * delta[i]).sum::<f64>().powi(2))
                .sum::<f64>()
                .sqrt()
        };
        for (records, cell) in [(2u32, 1u32), (3, 1), (5, 2), (6, 2), (9, 1), (20, 2)] {
            let declared = strategy.sensitivity(Unit::add_remove(records, Some(cell)).unwrap()).unwrap().get();
            let mut largest = 0.0f64;
            let levels = 2 * cell + 1;
            for code in 0..levels.pow(n as u32) {
                let delta: Vec<f64> =
                    (0..n as u32).map(|i| f64::from(code / levels.pow(i) % levels) - f64::from(cell)).collect();
                if delta.iter().map(|v| v.abs()).sum::<f64>() <= f64::from(records) {
                    largest = largest.max(norm(&delta));
                }
            }
            assert!(declared >= largest * (1.0 - 1e-12), "{records} {cell}: {declared} {largest}");
            assert!(declared <= largest * 1.35, "{records} {cell}: {declared} {largest}");
        }
    }
}
