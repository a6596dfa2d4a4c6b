//! All ranges and running sums of any length, intervals, and unions of them with cells and a few other queries, by their balanced
//! root, Gaussian noise.
//!
//! `W = AᵀA` is a multiple of the inverse of a second difference, with sines or cosines for eigenvectors. With
//! `S = W^{1/2}` and `s` its diagonal, `B = S^{1/2} diag(s)^{−1/2}` has unit columns, and its error is at most 1.00074
//! (ranges) or 1.0054 (running sums) times `Σ s_j²`, which no strategy beats (see [`crate::optimize::root_diagonal`]). Of
//! unions without common modes the diagonal of `W` in sines, in cosines or in those of reflected cells, of which a constant is
//! one, stands for its eigenvalues, whichever is best.
//!
//! What is measured is `K D` in exact integers: `D` the rounded column weights, and `K_ij = k(i − j) − k(i + j)` (sines)
//! or `k(i − j) + k(i + j − 1)` (cosines) a circular convolution of sequences with that symmetry by a rounded kernel that
//! has it too. They are an invariant subspace on which `K²` acts through `ρ = k ⊛ k`, so `b_i·b_j` is `D_i D_j(ρ(i − j) −
//! ρ(i + j))` or `D_i D_j(ρ(i − j) + ρ(i + j − 1))`, of cosines half of it, exactly. Decoding divides by the spectrum of the
//! rounded kernel.

mod kernel;
mod steps;
#[cfg(test)]
mod tests;
mod variances;

pub(super) use kernel::Precision;

use super::boxes::{Boxes, long_axes, one_by_one};
use super::merged::on_merged_cells;
use super::{Encoded, Encoding, Geometry, Input, Strategy, table};
use crate::error::Error;
use crate::optimize::{Line, Symmetry};
use crate::parallel::largest_of;
use crate::scratch::INTEGERS;
use crate::transform::exact::{ExactConvolution, Limits};
use crate::transform::fourier::{RealFourier, UNIT_ROUNDOFF, made};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, each};
use kernel::{correlation, lags, rounded_kernel, spectrum};
use std::sync::OnceLock;
use steps::in_steps;

/// Longest series: a release holds some eighty numbers a cell.
const MAX_LEN: usize = 1 << 23;
/// Longest series for which all pairs of columns are compared.
const MAX_PAIRS: usize = 1 << 12;
/// `B x = K D x`.
#[derive(Debug, Clone)]
pub(super) struct Balanced {
    workload: Workload,
    /// How much the squared errors of each part of a union count in the mean; empty where all are alike.
    part_weights: Vec<f64>,
    symmetry: Symmetry,
    weight_bits: u32,
    /// `D_1 … D_n`.
    weights: Vec<i64>,
    /// `ρ(0) … ρ(M/2)`.
    correlation: Vec<i64>,
    /// `k(0) … k(M/2)`.
    kernel: Vec<i64>,
    /// `K` as a convolution of both images of the cells, on a ring where nothing that is read wraps around: what it takes, and
    /// itself where something is encoded.
    limits: Limits,
    convolution: OnceLock<ExactConvolution>,
    ring: RealFourier,
    /// Eigenvalues of `K` by modes of the ring of `M`, infinite where no such sequence has one.
    spectrum: Vec<f64>,
    /// Largest `|b_j|²`.
    column_squared: i128,
}

/// The balanced root of a union of ranges, running sums, cells and a few other queries of one line of cells, whose squared
/// errors count with `weights`, one a part. Gaussian noise.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads, or too many cells.
pub fn balanced_union(workload: &Workload, weights: &[f64]) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    on_merged_cells(&workload, |own| Ok(Box::new(Balanced::new(own, Some(weights), Precision::Full)?)))
}

/// Coordinates `−n … n` of both images of the cells.
fn images(len: usize) -> usize {
    2 * len + 1
}

/// A ring on which nothing that is read wraps around.
fn ring_len(len: usize) -> usize {
    (3 * len + 1).next_power_of_two()
}

/// The lags that join an image to a cell, those from 0 first.
fn read_lags(kernel: &[i64], len: usize) -> impl Iterator<Item = i64> {
    lags(kernel, images(len), len)
}

impl Balanced {
    /// The root of queries whose squared errors count with `weights`, one for each part of a union.
    pub(super) fn new(workload: &Workload, weights: Option<&[f64]>, precision: Precision) -> Result<Self, Error> {
        let line = Line::of(workload, weights)?;
        if line.len > MAX_LEN {
            return Err(Error::Unsupported(format!("the balanced root serves up to {MAX_LEN} cells")));
        }
        let weights = weights.unwrap_or_default();
        let symmetries = line.symmetries();
        let mut roots = symmetries.iter().map(|symmetry| Self::of(workload, weights, &line, *symmetry, precision));
        let best = roots.next().expect("a line has a symmetry")?;
        if symmetries.len() == 1 {
            return Ok(best);
        }
        // One by one: long roots are not held together.
        let mut best = (best.mean_square(), best);
        for root in roots {
            let root = root?;
            let own = root.mean_square();
            if own.total_cmp(&best.0).is_lt() {
                best = (own, root);
            }
        }
        Ok(best.1)
    }

    fn of(
        workload: &Workload,
        weights: &[f64],
        line: &Line,
        symmetry: Symmetry,
        precision: Precision,
    ) -> Result<Self, Error> {
        let (len, part_weights) = (line.len, weights.to_vec());
        let values = line.root_values(symmetry);
        let ring = RealFourier::new(symmetry.period(len));
        let (kernel_bits, weight_bits) = precision.bits(symmetry, &values);
        let (kernel, mut scales): (_, Vec<f64>) = rayon::join(
            || rounded_kernel(&ring, line, symmetry, &values, kernel_bits),
            || line.diagonal(symmetry, &values).iter().map(|s| s.sqrt().recip()).collect(),
        );
        if let Some(steps) = variances::steps(workload) {
            in_steps(&mut scales, steps, symmetry);
        }
        let largest = scales.iter().fold(0.0f64, |most, d| most.max(*d));
        let weights = scales.iter().map(|d| (d / largest * 2f64.powi(weight_bits as i32)).round() as i64).collect();
        let (correlation, spectrum) =
            rayon::join(|| correlation(symmetry, &kernel), || spectrum(&ring, symmetry, len, &kernel));
        let correlation = correlation?;
        let spectrum = spectrum.ok_or_else(|| Error::Unsupported("too many cells for the balanced root".into()))?;
        let mut root = Self {
            workload: workload.clone(),
            part_weights,
            symmetry,
            weight_bits,
            weights,
            correlation,
            limits: Limits::new(read_lags(&kernel, len), ring_len(len), images(len)),
            kernel,
            convolution: OnceLock::new(),
            ring,
            spectrum,
            column_squared: 0,
        };
        root.column_squared = largest_of(len, &|j| root.product(j, j));
        Ok(root)
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    fn convolution(&self) -> &ExactConvolution {
        made(&self.convolution, || {
            let mut ring = vec![0; ring_len(self.len())];
            let (ahead, before) = (images(self.len()), self.len() - 1);
            let lags: Vec<i64> = read_lags(&self.kernel, self.len()).collect();
            ring[..ahead].copy_from_slice(&lags[..ahead]);
            let end = ring.len();
            ring[end - before..].copy_from_slice(&lags[ahead..]);
            ExactConvolution::new(&ring, ahead)
        })
    }

    /// `K` on images that are at most so large, all around the ring.
    fn wide_sums(&self, images: &[i64], largest: u64) -> Vec<i128> {
        let mut ring = vec![0; ring_len(self.len())];
        self.convolution().apply(images, largest, &mut ring);
        ring
    }

    /// Mean of what is known of each part, weighted as their answers are.
    fn mean_of(&self, of_parts: impl Iterator<Item = f64>) -> f64 {
        let parts = self.workload.parts();
        if parts.len() == 1 {
            return of_parts.sum();
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for (k, (part, value)) in parts.iter().zip(of_parts).enumerate() {
            let weight = self.part_weights.get(k).unwrap_or(&1.0) * part.answers_weight();
            sum += weight * value;
            weights += weight;
        }
        sum / weights
    }

    /// Mean squared error for one record: what symmetries are compared by.
    fn mean_square(&self) -> f64 {
        self.mean_of(self.workload.parts().iter().map(|part| self.part_mean(part))) * self.column_squared as f64
    }

    /// Largest `|b_j|²`, and how far `b_i·b_j` may fall below zero.
    pub(super) fn squares(&self) -> (Upper, Upper) {
        let upper = |value: i128| Upper::integer(value.unsigned_abs());
        (upper(self.column_squared), upper((-self.least_product()).max(0)))
    }

    /// `B^{-T} row`.
    pub(super) fn solve_transposed(&self, row: &[f64]) -> Vec<f64> {
        self.divide(&self.weighted(row))
    }

    /// `B^{-1} y`.
    pub(super) fn estimate(&self, y: &[f64]) -> Vec<f64> {
        self.weighted(&self.divide(y))
    }

    /// Bound of `D x`.
    fn weighted_bound(&self, max_abs: u64) -> Result<u64, Error> {
        let overflow = || Error::Overflow("the weighted cells overflow; declare a smaller max_value".into());
        max_abs.checked_mul(1 << self.weight_bits).ok_or_else(overflow)
    }

    /// `K^{-1} v`.
    fn divide(&self, v: &[f64]) -> Vec<f64> {
        self.symmetry.times(&self.ring, v, |k| self.spectrum[k].recip())
    }

    /// `K v`.
    fn filtered(&self, v: &[f64]) -> Vec<f64> {
        self.symmetry.times(&self.ring, v, |k| if self.spectrum[k].is_finite() { self.spectrum[k] } else { 0.0 })
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
            Symmetry::Reflected => weight * (at(i.abs_diff(j)) + at(i + j + 1)),
        }
    }

    /// Upper bound of `|b_i − b_j|²`, exact for short series.
    fn pair_squared(&self) -> i128 {
        if self.len() > MAX_PAIRS {
            return 2 * (self.column_squared - self.least_product());
        }
        let norms: Vec<i128> = (0..self.len()).map(|j| self.product(j, j)).collect();
        let apart = |i: usize| (0..i).map(|j| norms[i] + norms[j] - 2 * self.product(i, j)).max().unwrap_or(0);
        largest_of(self.len(), &apart)
    }

    /// What `b_i·b_j` is at least. The second lag, or half a period less it, is never nearer to 0 than the first, and `ρ`
    /// falls but for what was rounded: by at most its largest rise. Of reflected sequences both lags add.
    fn least_product(&self) -> i128 {
        let (mut least, mut rise) = (self.correlation[0], 0);
        for value in &self.correlation {
            rise = rise.max(i128::from(*value) - i128::from(least));
            least = least.min(*value);
        }
        let least = if self.symmetry == Symmetry::Reflected { 2 * i128::from(least) } else { -rise };
        let weights = self.weights.iter().map(|d| i128::from(*d));
        let weight = if least < 0 { weights.max() } else { weights.min() }.unwrap_or(0);
        least * weight * weight
    }
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
        Ok(unit.from_columns(norm(self.column_squared), || norm(self.pair_squared())))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let largest = self.weighted_bound(max_abs)?;
        if let Ok(max_abs) = self.limits.magnitude(largest) {
            return Ok(Encoding::Exact { max_abs });
        }
        // Wide sums are exact, and rounded once to doubles: half a unit of the last place of each, of their norm in all.
        let max_abs = self.limits.wide_magnitude(largest)? as f64 * (1.0 + 1e-15);
        let norm = self.spectrum.iter().filter(|v| v.is_finite()).fold(0.0f64, |most, v| most.max(*v)) * (1.0 + 1e-9);
        let error = UNIT_ROUNDOFF * norm * largest as f64 * (self.len() as f64).sqrt();
        Ok(Encoding::Float { error_l2: Upper::rounded(error, 8), max_abs })
    }

    fn wide(&self, max_abs: u64) -> Option<f64> {
        Some(self.limits.wide_magnitude(self.weighted_bound(max_abs).ok()?).ok()? as f64)
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let cells = table(x)?;
        let n = self.len();
        // Coordinates −n … n.
        let mut images = INTEGERS.take(images(n));
        images.fill(0);
        for (j, (x, d)) in (1..).zip(cells.iter().zip(&self.weights)) {
            let (other, negative) = self.symmetry.image(j);
            images[n + j] = x * d;
            images[(n as isize + other) as usize] = if negative { -x * d } else { x * d };
        }
        let largest = self.weighted_bound(max_abs)?;
        match out {
            Encoded::Exact(units) => {
                let mut ring = INTEGERS.take(ring_len(n));
                self.convolution().apply(&images, largest, &mut ring);
                units.copy_from_slice(&ring[n + 1..=2 * n]);
            }
            Encoded::Float(values) => {
                let sums = self.wide_sums(&images, largest);
                values.iter_mut().zip(&sums[n + 1..]).for_each(|(slot, sum)| *slot = *sum as f64);
            }
            Encoded::Wide(values) => values.copy_from_slice(&self.wide_sums(&images, largest)[n + 1..=2 * n]),
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.estimate(y), out);
    }

    fn variances(&self, out: &mut [f64]) {
        each(self.workload.parts(), out, |part, piece| self.part_variances(part, piece));
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let parts: Vec<_> = self.workload.parts().iter().map(|part| self.part_spread(part)).collect();
        let largest = parts.iter().try_fold(0.0f64, |most, (_, own)| Some(most.max((*own)?)));
        Some((self.mean_of(parts.iter().map(|(mean, _)| *mean)), largest))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.estimate(y))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let weighted: Vec<f64> = x.iter().zip(&self.weights).map(|(v, d)| v * *d as f64).collect();
        Some(self.filtered(&weighted))
    }

    /// `K` is symmetric.
    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.filtered(y).iter().zip(&self.weights).map(|(v, d)| v * *d as f64).collect())
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        let axis = match long_axes(boxes.shape).as_slice() {
            [axis] if self.len() <= MAX_PAIRS => *axis,
            _ => return one_by_one(self, boxes),
        };
        Ok(self.between(boxes.each().map(|(first, last)| (first[axis], last[axis] + 1))))
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.solve_transposed(row))
    }
}
