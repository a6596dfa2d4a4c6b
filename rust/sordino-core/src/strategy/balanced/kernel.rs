//! The rounded kernel of a balanced root, with the symmetry of its sequences, and its autocorrelation.

use crate::error::Error;
use crate::optimize::{Line, Symmetry};
use crate::transform::exact::own_products;
use crate::transform::fourier::RealFourier;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Cells beyond which a kernel is found in less time without a transform.
const LONG: usize = 1 << 12;
/// Terms of a power series in numbers up to 1/4.
const TERMS: usize = 28;

/// Bits that a constant may add: squares of all entries of long kernels have room for them.
const MOST_MORE_BITS: f64 = 6.0;
/// Where weights of 12 bits begin to lose by it.
const ROUNDED: f64 = 1e-5;

/// How finely the matrix is rounded to integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::strategy) enum Precision {
    /// All bits are there for one axis.
    Full,
    /// Several axes share them.
    Shared,
}

impl Precision {
    /// Bits of the kernel, and of the largest column weight.
    ///
    /// Those of the kernel are half a bit more each time that the series doubles, since the smallest mode is. A constant that
    /// counts most takes more: of the kernel as its share of the norm does, of the weights as what their rounding makes of it
    /// counts in the smallest mode.
    pub(super) fn bits(self, symmetry: Symmetry, values: &[f64]) -> (u32, u32) {
        let len = values.len();
        let (kernel, weight) = if self == Self::Full { (12, 12) } else { (8, 10) };
        let kernel = kernel + (usize::BITS - len.leading_zeros()).div_ceil(2);
        if symmetry != Symmetry::Reflected {
            return (kernel, weight);
        }
        let (constant, rest) = (values[0], values[1..].iter().sum::<f64>());
        let least = values.iter().fold(f64::INFINITY, |least, v| least.min(*v));
        let more = |ratio: f64| (0.5 * ratio.log2()).ceil().clamp(0.0, MOST_MORE_BITS) as u32;
        (kernel + more(1.0 + constant / rest), weight + more(constant / least * ROUNDED))
    }
}

impl Symmetry {
    /// Coordinate of the other image of cell `j` among `−n … n`, and whether it has the other sign.
    pub(super) fn image(self, j: usize) -> (isize, bool) {
        match self {
            Self::Sine => (-(j as isize), true),
            Self::Cosine | Self::Reflected => (1 - j as isize, false),
        }
    }

    /// How often a cell is met on the ring, over how often in `K`.
    pub(super) fn meetings(self) -> f64 {
        if self == Self::Cosine { 2.0 } else { 1.0 }
    }
}

/// The kernel at lags from 0 to so many, less one, and at as many as are needed before.
pub(super) fn lags(kernel: &[i64], ahead: usize, behind: usize) -> impl Iterator<Item = i64> {
    let period = 2 * (kernel.len() - 1);
    (0..ahead).chain((1..behind).rev()).map(move |lag| kernel[lag.min(period - lag)])
}

/// `ρ = k ⊛ k` on the ring, like the kernel from 0 to half of it.
///
/// On a ring of q that is half as long for cosines, where signs of odd lags make the kernel even and of that period. Of
/// what is between 0 and q/2, e, with its mirror, the sum is `c(l) + c(q − l) + 2 a(l)`, c and a the products of e with
/// itself by sums and differences of places.
pub(super) fn correlation(symmetry: Symmetry, kernel: &[i64]) -> Result<Vec<i64>, Error> {
    let half = kernel.len() - 1;
    let (q, len) = match symmetry {
        Symmetry::Cosine => (half, half / 2),
        _ => (2 * half, half - 1),
    };
    let signed = |lag: usize, value: i64| if symmetry == Symmetry::Cosine && lag % 2 == 1 { -value } else { value };
    let inner: Vec<i64> = (1..=len).map(|lag| signed(lag, kernel[lag])).collect();
    let [sums, differences] =
        own_products(&inner).ok_or_else(|| Error::Overflow("the products of the kernel overflow".into()))?;
    let e = |lag: usize| if lag == 0 { 0 } else { *inner.get(lag - 1).unwrap_or(&0) };
    let c = |sum: usize| if sum < 2 { 0 } else { *sums.get(sum - 2).unwrap_or(&0) };
    // What the kernel has at 0, and at half of an even ring.
    let ends = [(0, kernel[0]), (half, if symmetry == Symmetry::Cosine { 0 } else { kernel[half] })];
    let at = |lag: usize| {
        let between: i64 = ends.iter().map(|(end, value)| 2 * value * e(lag.abs_diff(*end))).sum();
        let own = match lag {
            0 => ends.iter().map(|(_, value)| value * value).sum(),
            _ if lag == half => 2 * ends[0].1 * ends[1].1,
            _ => 0,
        };
        c(lag) + c(q - lag) + 2 * differences.get(lag).unwrap_or(&0) + between + own
    };
    Ok(match symmetry {
        Symmetry::Sine | Symmetry::Reflected => (0..=half).map(at).collect(),
        // Over both halves of its own ring the sum is twice that; it changes its sign after half of it.
        Symmetry::Cosine => {
            let first: Vec<i64> = (0..=len).map(|lag| 2 * signed(lag, at(lag))).collect();
            let second = first.iter().rev().map(|value| -value);
            first.iter().copied().chain(second).collect()
        }
    })
}

/// Eigenvalues of `K` for `len` cells by modes of the ring, infinite where no such sequence has one; `None` if one is not
/// positive.
pub(super) fn spectrum(ring: &RealFourier, symmetry: Symmetry, len: usize, kernel: &[i64]) -> Option<Vec<f64>> {
    let mut spectrum = ring.even(&kernel.iter().map(|k| *k as f64).collect::<Vec<_>>());
    for (k, value) in spectrum.iter_mut().enumerate() {
        *value = if symmetry.mode(len, k).is_some() { *value / symmetry.meetings() } else { f64::INFINITY };
    }
    spectrum.iter().all(|v| *v > 0.0).then_some(spectrum)
}

/// `2^bits c`, rounded, for the kernel `c` of norm 1 on the ring whose spectrum is the root of these values of `S`, from
/// 0 to half of it. Only what is rounded is ever measured, and read: the errors of `c` before make no other.
pub(super) fn rounded_kernel(
    ring: &RealFourier,
    line: &Line,
    symmetry: Symmetry,
    values: &[f64],
    bits: u32,
) -> Vec<i64> {
    let half = ring.len() / 2;
    // Cosines change their sign after half of the ring: exactly, whatever was rounded.
    let last = if symmetry == Symmetry::Cosine { half / 2 } else { half };
    // Modes come in pairs, all but one whose frequency is 0.
    let norm = (2.0 * values.iter().sum::<f64>() / ring.len() as f64).sqrt();
    let scale = 2f64.powi(bits as i32) / (norm * ring.len() as f64);
    let kernel = if line.is_single() && values.len() > LONG {
        fractional_kernel(symmetry, ring.len(), last)
    } else {
        let mut spectrum = vec![0.0; ring.spectrum_len()];
        for (k, slot) in spectrum.iter_mut().enumerate() {
            *slot = symmetry.mode(values.len(), k).map_or(0.0, |mode| values[mode].sqrt());
        }
        ring.even(&spectrum)
    };
    let mut rounded: Vec<i64> = kernel[..=last].iter().map(|value| (value * scale).round() as i64).collect();
    if symmetry == Symmetry::Cosine {
        rounded.extend((last + 1..=half).map(|lag| half - lag).map(|lag| -(kernel[lag] * scale).round() as i64));
    }
    rounded
}

/// `Σ_k |2 sin(πk/P)|^{−1/2} cos(2πhk/P)` over the modes k of a symmetry, for the lags h from 0 to the last.
///
/// Without a ring the kernel is that of a sum of order 1/4 (Hosking 1981): `γ(0) = Γ(1/2)/Γ(3/4)²`, `γ(h + 1) = γ(h) (h +
/// 1/4)/(h + 3/4)`, which is `(2πh)^{−1/2} (1 − 1/(64 h²))` far away. What the ring adds are its values at `|h + qL|` for `q ≠ 0`,
/// which are power series of `h/L` in zeta functions at 1/2 and 5/2: by Hurwitz's formula also where their sum has no limit and
/// the mode 0 is left out. Of odd modes every other is taken off, `L = P/2`.
fn fractional_kernel(symmetry: Symmetry, period: usize, last: usize) -> Vec<f64> {
    let len = if symmetry == Symmetry::Cosine { 0.5 * period as f64 } else { period as f64 };
    let term = |s: f64| match symmetry {
        Symmetry::Cosine => -alternating_zeta(s),
        _ => alternating_zeta(s) / (1.0 - 2f64.powf(1.0 - s)),
    };
    // `2 (s)_{2k}/(2k)! ζ(s + 2k)` are the coefficients of `(h/L)^{2k}`.
    let mut series = [0.0; TERMS];
    for (s, weight) in [(0.5, 1.0), (2.5, -1.0 / (64.0 * len * len))] {
        let mut rising = 2.0 * weight;
        for (k, slot) in series.iter_mut().enumerate() {
            let k = 2.0 * k as f64;
            *slot += rising * term(s + k);
            rising *= (s + k) * (s + k + 1.0) / ((k + 1.0) * (k + 2.0));
        }
    }
    let mut own = 1.180_340_599_016_096_2;
    let mut kernel: Vec<f64> = (0..=last)
        .map(|h| {
            let here = own;
            own *= (h as f64 + 0.25) / (h as f64 + 0.75);
            here
        })
        .collect();
    let factor = (2.0 * PI * len).sqrt().recip();
    for (h, value) in kernel.iter_mut().enumerate() {
        let square = (h as f64 / len).powi(2);
        let images = series.iter().rev().fold(0.0, |sum, coefficient| sum * square + coefficient);
        // No sequence has the mode of alternating signs.
        *value = len * (*value + factor * images) - if h % 2 == 0 { 1.0 } else { -1.0 } * FRAC_1_SQRT_2;
    }
    kernel
}

/// `Σ_{k≥1} (−1)^{k−1} k^{−s}` (Cohen, Rodriguez Villegas & Zagier 2000, Algorithm 1).
fn alternating_zeta(s: f64) -> f64 {
    let n = 24;
    let d = (3.0 + 8f64.sqrt()).powi(n);
    let d = f64::midpoint(d, d.recip());
    let (mut b, mut c, mut sum) = (-1.0, -d, 0.0);
    for k in 0..n {
        c = b - c;
        sum += c * f64::from(k + 1).powf(-s);
        b *= f64::from(k + n) * f64::from(k - n) / ((f64::from(k) + 0.5) * f64::from(k + 1));
    }
    sum / d
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn kernels_of_long_lines_are_those_of_their_spectrum() {
        assert!((alternating_zeta(2.0) - PI * PI / 12.0).abs() < 1e-15);
        for len in [500, 4097] {
            let sums = Workload::Linear { kernel: vec![1.0; len], len, center: 0 };
            for (symmetry, workload) in [(Symmetry::Sine, Workload::Ranges { len }), (Symmetry::Cosine, sums)] {
                let line = Line::of(&workload, None).unwrap();
                let (ring, values) = (RealFourier::new(symmetry.period(len)), line.root_values(symmetry));
                let mut spectrum = vec![0.0; ring.spectrum_len()];
                for (k, value) in values.iter().enumerate() {
                    spectrum[if symmetry == Symmetry::Sine { k + 1 } else { 2 * k + 1 }] = value.sqrt();
                }
                let known = ring.even(&spectrum);
                let found =
                    fractional_kernel(symmetry, ring.len(), if symmetry == Symmetry::Sine { len + 1 } else { len });
                for (a, b) in found.iter().zip(&known) {
                    assert!((a - b).abs() < 1e-10 * known[0], "{len} {symmetry:?}: {a} {b}");
                }
            }
        }
    }
}
