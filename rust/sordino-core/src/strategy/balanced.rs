//! All ranges, and running sums, of any length by their balanced root, Gaussian noise.
//!
//! `W = AᵀA` is a multiple of the inverse of a second difference, with sines or cosines for eigenvectors. With
//! `S = W^{1/2}` and `s` its diagonal, `B = S^{1/2} diag(s)^{−1/2}` has unit columns, and its error is at most 1.00074
//! (ranges) or 1.0054 (running sums) times `Σ s_j²`, which no strategy beats (see [`crate::optimize::root_diagonal`]).
//!
//! What is measured is `K D` in exact integers: `D` the rounded column weights, and `K_ij = k(i − j) − k(i + j)` (sines)
//! or `k(i − j) + k(i + j − 1)` (cosines) a circular convolution of sequences with that symmetry by a rounded kernel that
//! has it too. They are an invariant subspace on which `K²` acts through `ρ = k ⊛ k`, so `b_i·b_j` is `D_i D_j(ρ(i − j) −
//! ρ(i + j))` or `D_i D_j(ρ(i − j) + ρ(i + j − 1))/2`, exactly. Decoding divides by the spectrum of the rounded kernel.

use super::tree::prefix_or_cells;
use super::{Encoded, Encoding, Geometry, Input, Strategy, table};
use crate::error::Error;
use crate::optimize::{cosine_values, root_diagonal, sine_values};
use crate::scratch::INTEGERS;
use crate::transform::exact::ExactConvolution;
use crate::transform::fourier::{RealFourier, UNIT_ROUNDOFF, convolve};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;
use rayon::prelude::*;

/// How finely the matrix is rounded to integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Precision {
    /// All bits are there for one axis.
    Full,
    /// Several axes share them.
    Shared,
}

impl Precision {
    /// Bits of the largest column weight.
    fn weight_bits(self) -> u32 {
        if self == Self::Full { 12 } else { 10 }
    }

    /// Bits of the kernel: half a bit more each time that the series doubles, since the smallest mode is.
    fn kernel_bits(self, len: usize) -> u32 {
        (usize::BITS - len.leading_zeros()).div_ceil(2) + if self == Self::Full { 12 } else { 8 }
    }
}

/// Longest series: exact convolutions hold a dozen arrays of its length.
const MAX_LEN: usize = 1 << 21;
/// Longest series for which all pairs of columns are compared.
const MAX_PAIRS: usize = 1 << 12;
/// Longest block of a sum over halves that is written out.
const DIRECT: usize = 64;

/// Which sequences on the ring stand for the cells `1 … n`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Symmetry {
    /// Odd about 0 and `n + 1`, period `2(n + 1)`.
    Sine,
    /// Even about 1/2 and odd about `n + 1`, period `4n + 2`.
    Cosine,
}

impl Symmetry {
    fn period(self, len: usize) -> usize {
        match self {
            Self::Sine => 2 * (len + 1),
            Self::Cosine => 4 * len + 2,
        }
    }

    /// Coordinate of the other image of cell `j` among `−n … n`, and whether it has the other sign.
    fn image(self, j: usize) -> (isize, bool) {
        match self {
            Self::Sine => (-(j as isize), true),
            Self::Cosine => (1 - j as isize, false),
        }
    }

    /// How often a cell is met on the ring, over how often in `K`.
    fn meetings(self) -> f64 {
        if self == Self::Sine { 1.0 } else { 2.0 }
    }

    /// The least lag with the same value of the kernel, and whether the sign differs.
    fn folded(self, lag: usize, period: usize) -> (usize, bool) {
        let lag = (lag % period).min(period - lag % period);
        let half = period / 2;
        if self == Self::Cosine && 2 * lag > half { (half - lag, true) } else { (lag, false) }
    }
}

/// `B x = K D x`.
#[derive(Debug)]
pub(super) struct Balanced {
    workload: Workload,
    symmetry: Symmetry,
    weight_bits: u32,
    /// `D_1 … D_n`.
    weights: Vec<i64>,
    /// `ρ(0) … ρ(M/2)`.
    correlation: Vec<i64>,
    /// `K` as a convolution of both images of the cells, on a ring where nothing that is read wraps around.
    convolution: ExactConvolution,
    images: usize,
    ring: RealFourier,
    /// Eigenvalues of `K` by modes of the ring of `M`, infinite where no such sequence has one.
    spectrum: Vec<f64>,
}

impl Balanced {
    pub fn new(workload: &Workload, precision: Precision) -> Result<Self, Error> {
        let (len, symmetry) = match workload {
            Workload::Ranges { len } => (*len, Symmetry::Sine),
            _ => match prefix_or_cells(workload)? {
                (len, true) => (len, Symmetry::Cosine),
                _ => return Err(Error::Unsupported("cells need no balanced root: measure them".into())),
            },
        };
        if len > MAX_LEN {
            return Err(Error::Unsupported(format!("the balanced root serves up to {MAX_LEN} cells")));
        }
        let ring = RealFourier::new(symmetry.period(len));
        let kernel = rounded_kernel(&ring, symmetry, len, precision.kernel_bits(len));
        let weight_bits = precision.weight_bits();
        let scales: Vec<f64> = root_diagonal(workload)?.iter().map(|s| s.sqrt().recip()).collect();
        let largest = scales.iter().fold(0.0f64, |most, d| most.max(*d));
        let weights = scales.iter().map(|d| (d / largest * 2f64.powi(weight_bits as i32)).round() as i64).collect();
        let most = kernel.iter().fold(0, |most, k| k.unsigned_abs().max(most));
        let correlation = correlation(symmetry, &kernel, most)?;
        let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
        let mut spectrum: Vec<f64> = ring.spectrum(&values).iter().map(|v| v.re).collect();
        for (k, value) in spectrum.iter_mut().enumerate() {
            let mode = if symmetry == Symmetry::Sine { (1..=len).contains(&k) } else { k % 2 == 1 && k < 2 * len };
            *value = if mode { *value / symmetry.meetings() } else { f64::INFINITY };
        }
        if spectrum.iter().any(|v| v.is_nan() || *v <= 0.0) {
            return Err(Error::Unsupported("too many cells for the balanced root".into()));
        }
        // Lags from −(n − 1) to 2n.
        let mut lags = vec![0; (3 * len + 1).next_power_of_two()];
        lags[..=2 * len].copy_from_slice(&kernel[..=2 * len]);
        let end = lags.len();
        for lag in 1..len {
            lags[end - lag] = kernel[lag];
        }
        let images = 2 * len + 1;
        let convolution = ExactConvolution::new(&lags, images);
        Ok(Self {
            workload: workload.clone(),
            symmetry,
            weight_bits,
            weights,
            correlation,
            convolution,
            images,
            ring,
            spectrum,
        })
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    /// Largest `|b_j|²`, and how far `b_i·b_j` may fall below zero.
    pub fn squares(&self) -> (Upper, Upper) {
        let upper = |value: i128| Upper::integer(value.unsigned_abs());
        (upper(self.column_squared()), upper(self.opposed()))
    }

    /// `B^{-T} row`.
    pub fn solve_transposed(&self, row: &[f64]) -> Vec<f64> {
        self.divide(&self.weighted(row))
    }

    /// Bound of `D x`.
    fn weighted_bound(&self, max_abs: u64) -> Result<u64, Error> {
        let overflow = || Error::Overflow("the weighted cells overflow; declare a smaller max_value".into());
        max_abs.checked_mul(1 << self.weight_bits).ok_or_else(overflow)
    }

    /// `K^{-1} v`.
    fn divide(&self, v: &[f64]) -> Vec<f64> {
        let mut ring = vec![0.0; self.ring.len()];
        let (period, half) = (self.ring.len(), self.ring.len() / 2);
        for (j, value) in (1..).zip(v) {
            match self.symmetry {
                Symmetry::Sine => (ring[j], ring[period - j]) = (*value, -value),
                Symmetry::Cosine => {
                    // The images about 1/2, and those of both about n + 1.
                    (ring[j], ring[(period + 1 - j) % period]) = (*value, *value);
                    (ring[half + 1 - j], ring[half + j]) = (-value, -value);
                }
            }
        }
        self.ring.filter_in_place(&mut ring, |k| Complex::new(self.spectrum[k].recip(), 0.0));
        ring[1..=v.len()].to_vec()
    }

    fn weighted(&self, v: &[f64]) -> Vec<f64> {
        v.iter().zip(&self.weights).map(|(v, d)| v / *d as f64).collect()
    }

    /// `b_i·b_j`, exactly; cells count from 0.
    fn product(&self, i: usize, j: usize) -> i128 {
        let period = self.ring.len();
        let at = |lag: usize| i128::from(self.correlation[(lag % period).min(period - lag % period)]);
        let weight = i128::from(self.weights[i]) * i128::from(self.weights[j]);
        match self.symmetry {
            Symmetry::Sine => weight * (at(i.abs_diff(j)) - at(i + j + 2)),
            Symmetry::Cosine => weight * i128::midpoint(at(i.abs_diff(j)), at(i + j + 1)),
        }
    }

    /// Largest `|b_j|²`.
    fn column_squared(&self) -> i128 {
        (0..self.len()).map(|j| self.product(j, j)).max().unwrap_or(0)
    }

    /// Upper bound of `|b_i − b_j|²`, exact for short series.
    fn pair_squared(&self) -> i128 {
        if self.len() > MAX_PAIRS {
            return 2 * (self.column_squared() + self.opposed());
        }
        let norms: Vec<i128> = (0..self.len()).map(|j| self.product(j, j)).collect();
        let pairs = (0..self.len())
            .into_par_iter()
            .map(|i| (0..i).map(|j| norms[i] + norms[j] - 2 * self.product(i, j)).max().unwrap_or(0));
        pairs.max().unwrap_or(0)
    }

    /// How far `b_i·b_j` may fall below zero. The second lag, or half a period less it, is never nearer to 0 than the
    /// first, and `ρ` falls but for what was rounded: by at most its largest rise.
    fn opposed(&self) -> i128 {
        let (mut least, mut rise) = (self.correlation[0], 0);
        for value in &self.correlation {
            rise = rise.max(i128::from(*value) - i128::from(least));
            least = least.min(*value);
        }
        let weight = self.weights.iter().fold(0, |most, d| most.max(i128::from(*d)));
        rise * weight * weight
    }

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
    fn range_variances(&self, out: &mut [f64]) {
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
    fn prefix_variances(&self, tap: f64, out: &mut [f64]) {
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
fn add_sums_before(values: &[f64], kernel: &[f64], offset: usize, out: &mut [f64]) {
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

/// `ρ = k ⊛ k` on the ring, from 0 to half of it.
fn correlation(symmetry: Symmetry, kernel: &[i64], most: u64) -> Result<Vec<i64>, Error> {
    let (period, half) = (kernel.len(), kernel.len() / 2);
    let mut out;
    if symmetry == Symmetry::Sine {
        let whole = ExactConvolution::new(kernel, period);
        whole.magnitude(most)?;
        out = vec![0; period];
        whole.apply(kernel, most, &mut out);
    } else {
        // Both factors change their sign after half a period: twice the sum over one half.
        let mut lags = vec![0; period.next_power_of_two()];
        let last = lags.len() - 1;
        for lag in 0..half {
            lags[lag] = kernel[lag];
            lags[(last + 1 - lag) & last] = kernel[lag];
        }
        let part = ExactConvolution::new(&lags, half);
        part.magnitude(2 * most)?;
        out = vec![0; lags.len()];
        part.apply(&kernel[..half], most, &mut out);
        for value in &mut out {
            *value *= 2;
        }
        out[half] = -out[0];
    }
    out.truncate(half + 1);
    Ok(out)
}

/// `2^bits c`, rounded, for the kernel `c` of norm 1 on the ring whose spectrum is the root of that of `S`.
fn rounded_kernel(ring: &RealFourier, symmetry: Symmetry, len: usize, bits: u32) -> Vec<i64> {
    let mut spectrum = vec![Complex::default(); ring.spectrum_len()];
    match symmetry {
        Symmetry::Sine => spectrum[1..].iter_mut().zip(sine_values(len)).for_each(|(slot, v)| slot.re = v.sqrt()),
        Symmetry::Cosine => {
            spectrum.iter_mut().skip(1).step_by(2).zip(cosine_values(len)).for_each(|(slot, v)| slot.re = v.sqrt());
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

impl Strategy for Balanced {
    fn measured_len(&self) -> usize {
        self.len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L2
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let norm = |square: i128| Upper::integer(square.unsigned_abs()).sqrt();
        Ok(unit.from_columns(norm(self.column_squared()), || norm(self.pair_squared())))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let largest = self.weighted_bound(max_abs)?;
        if let Ok(max_abs) = self.convolution.magnitude(largest) {
            return Ok(Encoding::Exact { max_abs });
        }
        // Wide sums are exact, and rounded once to doubles: half a unit of the last place of each, of their norm in all.
        let max_abs = self.convolution.wide_magnitude(largest)? as f64 * (1.0 + 1e-15);
        let norm = self.spectrum.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(*v)) * (1.0 + 1e-9);
        let error = UNIT_ROUNDOFF * norm * largest as f64 * (self.len() as f64).sqrt();
        Ok(Encoding::Float { error_l2: Upper::rounded(error, 8), max_abs })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let cells = table(x)?;
        let n = self.len();
        // Coordinates −n … n.
        let mut images = INTEGERS.take(self.images);
        images.fill(0);
        for (j, (x, d)) in (1..).zip(cells.iter().zip(&self.weights)) {
            let (other, negative) = self.symmetry.image(j);
            images[n + j] = x * d;
            images[(n as isize + other) as usize] = if negative { -x * d } else { x * d };
        }
        let (ring_len, largest) = ((3 * n + 1).next_power_of_two(), self.weighted_bound(max_abs)?);
        match out {
            Encoded::Exact(units) => {
                let mut ring = INTEGERS.take(ring_len);
                self.convolution.apply(&images, largest, &mut ring);
                units.copy_from_slice(&ring[n + 1..=2 * n]);
            }
            Encoded::Float(values) => {
                let mut ring = vec![0i128; ring_len];
                self.convolution.apply(&images, largest, &mut ring);
                values.iter_mut().zip(&ring[n + 1..]).for_each(|(slot, sum)| *slot = *sum as f64);
            }
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.weighted(&self.divide(y)), out);
    }

    fn variances(&self, out: &mut [f64]) {
        match &self.workload {
            Workload::Linear { kernel, .. } => self.prefix_variances(kernel[0], out),
            _ => self.range_variances(out),
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.solve_transposed(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(symmetry: Symmetry, len: usize) -> Workload {
        match symmetry {
            Symmetry::Sine => Workload::Ranges { len },
            Symmetry::Cosine => Workload::Linear { kernel: vec![1.0; len], len, center: 0 },
        }
    }

    fn encode(strategy: &Balanced, x: &[i64], max_abs: u64) -> Vec<f64> {
        let mut units = vec![0i64; x.len()];
        let mut values = vec![0.0; x.len()];
        if let Encoding::Exact { .. } = strategy.encoding(max_abs).unwrap() {
            strategy.encode(Input::Cells(x), max_abs, Encoded::Exact(&mut units)).unwrap();
            units.iter().map(|v| *v as f64).collect()
        } else {
            strategy.encode(Input::Cells(x), max_abs, Encoded::Float(&mut values)).unwrap();
            values
        }
    }

    /// Products of columns of the integer matrix, as written out, against those from its kernel.
    #[test]
    fn products_of_columns_are_exact() {
        for symmetry in [Symmetry::Sine, Symmetry::Cosine] {
            for len in [1, 2, 3, 8, 13, 64] {
                let strategy = Balanced::new(&workload(symmetry, len), Precision::Full).unwrap();
                let columns: Vec<Vec<i128>> = (0..len)
                    .map(|j| {
                        let unit: Vec<i64> = (0..len).map(|i| i64::from(i == j)).collect();
                        encode(&strategy, &unit, 1).iter().map(|v| *v as i128).collect()
                    })
                    .collect();
                for i in 0..len {
                    for j in 0..len {
                        let product: i128 = columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum();
                        assert_eq!(strategy.product(i, j), product, "{symmetry:?} {len} {i} {j}");
                        assert!(-product <= strategy.opposed(), "{symmetry:?} {len} {i} {j}");
                    }
                }
            }
        }
    }

    /// Cells so large that sums need more than 64 bits: rounded once.
    #[test]
    fn wide_sums_are_rounded_once() {
        for symmetry in [Symmetry::Sine, Symmetry::Cosine] {
            let (len, max_abs) = (37, 1i64 << 45);
            let strategy = Balanced::new(&workload(symmetry, len), Precision::Full).unwrap();
            assert!(matches!(strategy.encoding(max_abs as u64).unwrap(), Encoding::Float { .. }));
            let x: Vec<i64> =
                (0..len).map(|j| if j % 3 == 0 { max_abs } else { -max_abs + 77_777_777 * j as i64 }).collect();
            let got = encode(&strategy, &x, max_abs as u64);
            let mut known = vec![0i128; len];
            for (j, x) in x.iter().enumerate() {
                let unit: Vec<i64> = (0..len).map(|i| i64::from(i == j)).collect();
                let column = encode(&strategy, &unit, 1);
                known.iter_mut().zip(&column).for_each(|(sum, c)| *sum += *c as i128 * i128::from(*x));
            }
            assert_eq!(got, known.iter().map(|v| *v as f64).collect::<Vec<_>>());
        }
    }

    /// Root mean squared errors at noise multiplier 4.224679 that were found by other means, and those of longer series
    /// over their bound.
    #[test]
    fn known_errors() {
        let cases = [(Symmetry::Sine, 128, 10.9807), (Symmetry::Sine, 1024, 14.8506), (Symmetry::Cosine, 365, 11.1466)];
        for (symmetry, len, known) in cases {
            let workload = workload(symmetry, len);
            let strategy = Balanced::new(&workload, Precision::Full).unwrap();
            let mut variances = vec![0.0; workload.answers_len()];
            strategy.variances(&mut variances);
            let column = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
            let rmse = 4.224_679 * column * (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
            assert!((rmse / known - 1.0).abs() < 4e-4, "{symmetry:?} {len}: {rmse}");
        }
    }

    /// Sums over halves against sums as they are written.
    #[test]
    fn sums_before_are_those_written_out() {
        let entry = |k: usize| ((k * 7919 + 13) % 101) as f64 / 50.0 - 1.0;
        for len in [1, 64, 65, 200, 513] {
            let (values, kernel): (Vec<f64>, Vec<f64>) =
                ((0..len).map(entry).collect(), (0..2 * len).map(|k| entry(k + 5)).collect());
            let mut out = vec![0.5; len];
            add_sums_before(&values, &kernel, 0, &mut out);
            for t in 0..len {
                let known = 0.5 + (0..t).map(|a| values[a] * kernel[a + t]).sum::<f64>();
                assert!((out[t] - known).abs() < 1e-10, "{len} {t}");
            }
        }
    }
}
