//! The rounded kernel of a balanced root, with the symmetry of its sequences, and its autocorrelation.

use crate::error::Error;
use crate::optimize::Symmetry;
use crate::transform::exact::ExactConvolution;
use crate::transform::fourier::RealFourier;
use num_complex::Complex;

/// How finely the matrix is rounded to integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::strategy) enum Precision {
    /// All bits are there for one axis.
    Full,
    /// Several axes share them.
    Shared,
}

impl Precision {
    /// Bits of the largest column weight.
    pub(super) fn weight_bits(self) -> u32 {
        if self == Self::Full { 12 } else { 10 }
    }

    /// Bits of the kernel: half a bit more each time that the series doubles, since the smallest mode is.
    pub(super) fn kernel_bits(self, len: usize) -> u32 {
        (usize::BITS - len.leading_zeros()).div_ceil(2) + if self == Self::Full { 12 } else { 8 }
    }
}

impl Symmetry {
    pub(super) fn period(self, len: usize) -> usize {
        match self {
            Self::Sine => 2 * (len + 1),
            Self::Cosine => 4 * len + 2,
        }
    }

    /// Coordinate of the other image of cell `j` among `−n … n`, and whether it has the other sign.
    pub(super) fn image(self, j: usize) -> (isize, bool) {
        match self {
            Self::Sine => (-(j as isize), true),
            Self::Cosine => (1 - j as isize, false),
        }
    }

    /// How often a cell is met on the ring, over how often in `K`.
    pub(super) fn meetings(self) -> f64 {
        if self == Self::Sine { 1.0 } else { 2.0 }
    }

    /// The least lag with the same value of the kernel, and whether the sign differs.
    fn folded(self, lag: usize, period: usize) -> (usize, bool) {
        let lag = (lag % period).min(period - lag % period);
        let half = period / 2;
        if self == Self::Cosine && 2 * lag > half { (half - lag, true) } else { (lag, false) }
    }
}

/// The kernel at lags `−(behind − 1)` to `ahead − 1`, on a ring of the next power of two from `least`.
pub(super) fn lags(kernel: &[i64], ahead: usize, behind: usize, least: usize) -> Vec<i64> {
    let mut lags = vec![0; least.next_power_of_two()];
    let len = lags.len();
    lags[..ahead].copy_from_slice(&kernel[..ahead]);
    for lag in 1..behind {
        lags[len - lag] = kernel[lag];
    }
    lags
}

/// `ρ = k ⊛ k` on the ring, from 0 to half of it.
pub(super) fn correlation(symmetry: Symmetry, kernel: &[i64]) -> Result<Vec<i64>, Error> {
    let (period, half) = (kernel.len(), kernel.len() / 2);
    let (summed, times, ring) = match symmetry {
        Symmetry::Sine => (period, 1, lags(kernel, half + 1, period, period + half)),
        // Both factors change their sign after half a period: twice the sum over one half. The largest lag and its
        // negative have the same value, and may share its place.
        Symmetry::Cosine => (half, 2, lags(kernel, half, half, period - 2)),
    };
    let most = kernel.iter().fold(0, |most, k| k.unsigned_abs().max(most));
    let part = ExactConvolution::new(&ring, summed);
    part.magnitude(times as u64 * most)?;
    let mut out = vec![0; ring.len()];
    part.apply(&kernel[..summed], most, &mut out);
    out.truncate(half + 1);
    for value in &mut out {
        *value *= times;
    }
    if symmetry == Symmetry::Cosine {
        out[half] = -out[0];
    }
    Ok(out)
}

/// Eigenvalues of `K` for `len` cells by modes of the ring, infinite where no such sequence has one; `None` if one is not
/// positive.
pub(super) fn spectrum(ring: &RealFourier, symmetry: Symmetry, len: usize, kernel: &[i64]) -> Option<Vec<f64>> {
    let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
    let mut spectrum: Vec<f64> = ring.spectrum(&values).iter().map(|v| v.re).collect();
    for (k, value) in spectrum.iter_mut().enumerate() {
        let mode = if symmetry == Symmetry::Sine { (1..=len).contains(&k) } else { k % 2 == 1 && k < 2 * len };
        *value = if mode { *value / symmetry.meetings() } else { f64::INFINITY };
    }
    spectrum.iter().all(|v| *v > 0.0).then_some(spectrum)
}

/// `2^bits c`, rounded, for the kernel `c` of norm 1 on the ring whose spectrum is the root of these values of `S`.
pub(super) fn rounded_kernel(ring: &RealFourier, symmetry: Symmetry, values: &[f64], bits: u32) -> Vec<i64> {
    let mut spectrum = vec![Complex::default(); ring.spectrum_len()];
    match symmetry {
        Symmetry::Sine => spectrum[1..].iter_mut().zip(values).for_each(|(slot, v)| slot.re = v.sqrt()),
        Symmetry::Cosine => {
            spectrum.iter_mut().skip(1).step_by(2).zip(values).for_each(|(slot, v)| slot.re = v.sqrt());
        }
    }
    let norm = (ring.sum(|k| spectrum[k].norm_sqr()) / ring.len() as f64).sqrt();
    let scale = 2f64.powi(bits as i32) / (norm * ring.len() as f64);
    for value in &mut spectrum {
        *value *= scale;
    }
    let mut kernel = vec![0.0; ring.len()];
    ring.inverse(&mut spectrum, &mut kernel);
    // Exactly symmetric, whatever the transform rounded.
    let rounded = |lag: usize| {
        let (least, negative) = symmetry.folded(lag, ring.len());
        let value = kernel[least].round() as i64;
        if negative { -value } else { value }
    };
    (0..ring.len()).map(rounded).collect()
}
