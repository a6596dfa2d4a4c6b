//! All ranges of any length by their balanced root, Gaussian noise.
//!
//! `W = AᵀA` has the entries `min(i, j)(n + 1 − max(i, j))`: `n + 1` times the inverse of the second difference, with
//! sines for eigenvectors. With `S = W^{1/2}` and `s` its diagonal, `B = S^{1/2} diag(s)^{−1/2}` has unit columns, and
//! its error is at most 1.00074 times `Σ s_j²`, which no strategy beats (see [`crate::optimize::ranges_diagonal`]).
//!
//! What is measured is `K D` in exact integers: `D` the rounded column weights, and `K_ij = k(i − j) − k(i + j)` the
//! odd part of a circular convolution of period `M = 2(n + 1)` with a rounded even kernel. Odd sequences are invariant
//! under it and `K²` acts on them through `ρ = k ⊛ k`, so `|b_j|² = D_j²(ρ(0) − ρ(2j))`, exactly. Decoding divides by
//! the spectrum of the rounded kernel.

use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, table};
use crate::error::Error;
use crate::optimize::{ranges_diagonal, sine_values};
use crate::scratch::INTEGERS;
use crate::transform::exact::ExactConvolution;
use crate::transform::fourier::RealFourier;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;
use rayon::prelude::*;

/// Bits of the largest column weight.
const WEIGHT_BITS: i32 = 12;
/// Bits of the kernel for a short series; half a bit more each time that it doubles, since the smallest mode is.
const KERNEL_BITS: u32 = 13;

/// `B x = K D x`.
#[derive(Debug)]
pub(super) struct Balanced {
    workload: Workload,
    /// `D_1 … D_n`.
    weights: Vec<i64>,
    /// `ρ(0) … ρ(M − 1)`.
    correlation: Vec<i64>,
    convolution: ExactConvolution,
    ring: RealFourier,
    /// Spectrum of the kernel at the modes `0 … n + 1`; both ends are no modes of odd sequences.
    spectrum: Vec<f64>,
}

impl Balanced {
    pub fn new(workload: &Workload) -> Result<Self, Error> {
        let Workload::Ranges { len } = workload else {
            return Err(Error::Unsupported("the balanced root in closed form serves all ranges".into()));
        };
        let ring = RealFourier::new(2 * (len + 1));
        let bits = KERNEL_BITS + (usize::BITS - len.leading_zeros()).div_ceil(2);
        let kernel = rounded_kernel(&ring, sine_values(*len).map(f64::sqrt), bits);
        let scales: Vec<f64> = ranges_diagonal(*len).iter().map(|s| s.sqrt().recip()).collect();
        let largest = scales.iter().fold(0.0f64, |most, d| most.max(*d));
        let weights = scales.iter().map(|d| (d / largest * 2f64.powi(WEIGHT_BITS)).round() as i64).collect();
        let convolution = ExactConvolution::new(&kernel, kernel.len());
        let most = kernel.iter().fold(0, |most, k| k.unsigned_abs().max(most));
        convolution.magnitude(most)?;
        let mut correlation = vec![0; kernel.len()];
        convolution.apply(&kernel, most, &mut correlation);
        let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
        let mut spectrum: Vec<f64> = ring.spectrum(&values).iter().map(|v| v.re).collect();
        (spectrum[0], spectrum[len + 1]) = (f64::INFINITY, f64::INFINITY);
        if spectrum.iter().any(|v| v.is_nan() || *v <= 0.0) {
            return Err(Error::Unsupported("too many cells for the balanced root".into()));
        }
        Ok(Self { workload: workload.clone(), weights, correlation, convolution, ring, spectrum })
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    /// The odd extension on the ring of something for each cell.
    fn extended<T: Copy + Default + std::ops::Neg<Output = T>>(
        ring: &mut [T],
        cells: impl ExactSizeIterator<Item = T>,
    ) {
        let len = ring.len();
        ring[0] = T::default();
        ring[len / 2] = T::default();
        for (j, value) in cells.enumerate() {
            ring[j + 1] = value;
            ring[len - 1 - j] = -value;
        }
    }

    /// `K^{-power} v` for odd sequences.
    fn divide(&self, v: &[f64], power: i32) -> Vec<f64> {
        let mut ring = vec![0.0; self.ring.len()];
        Self::extended(&mut ring, v.iter().copied());
        self.ring.filter_in_place(&mut ring, |k| Complex::new(self.spectrum[k].powi(-power), 0.0));
        ring[1..=v.len()].to_vec()
    }

    fn weighted(&self, v: &[f64]) -> Vec<f64> {
        v.iter().zip(&self.weights).map(|(v, d)| v / *d as f64).collect()
    }

    /// `b_i·b_j = D_i D_j(ρ(i − j) − ρ(i + j))`, exactly; cells count from 0.
    fn product(&self, i: usize, j: usize) -> i128 {
        let at = |lag: usize| i128::from(self.correlation[lag % self.ring.len()]);
        i128::from(self.weights[i]) * i128::from(self.weights[j]) * (at(i.abs_diff(j)) - at(i + j + 2))
    }

    /// Largest `|b_j|²`.
    fn column_squared(&self) -> i128 {
        (0..self.len()).map(|j| self.product(j, j)).max().unwrap_or(0)
    }

    /// Largest `|b_i − b_j|²`.
    fn pair_squared(&self) -> i128 {
        let norms: Vec<i128> = (0..self.len()).map(|j| self.product(j, j)).collect();
        let pairs = (0..self.len())
            .into_par_iter()
            .map(|i| (0..i).map(|j| norms[i] + norms[j] - 2 * self.product(i, j)).max().unwrap_or(0));
        pairs.max().unwrap_or(0)
    }

    /// `M_ij` of the covariance `D^{-1} K^{-2} D^{-1}` of the cells, as its kernel on the ring.
    fn covariance(&self) -> Vec<f64> {
        let mut half: Vec<Complex<f64>> =
            self.spectrum.iter().map(|v| Complex::new((v * v * self.ring.len() as f64).recip(), 0.0)).collect();
        let mut kernel = vec![0.0; self.ring.len()];
        self.ring.inverse(&mut half, &mut kernel);
        kernel
    }
}

/// `2^bits c`, rounded, for the even `c` of norm 1 on the ring with the spectrum `values` at the modes `1, 2, …`.
fn rounded_kernel(ring: &RealFourier, values: impl Iterator<Item = f64>, bits: u32) -> Vec<i64> {
    let values: Vec<f64> = values.collect();
    let norm = (2.0 * values.iter().map(|v| v * v).sum::<f64>() / ring.len() as f64).sqrt();
    let scale = 2f64.powi(bits as i32) / (norm * ring.len() as f64);
    let mut spectrum = vec![Complex::default(); ring.spectrum_len()];
    for (slot, value) in spectrum[1..].iter_mut().zip(values) {
        slot.re = value * scale;
    }
    let mut kernel = vec![0.0; ring.len()];
    ring.inverse(&mut spectrum, &mut kernel);
    // Exactly even, whatever the transform rounded.
    let len = kernel.len();
    (0..len).map(|d| kernel[d.min(len - d)].round() as i64).collect()
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
        let largest = max_abs
            .checked_mul(1 << WEIGHT_BITS)
            .ok_or_else(|| Error::Overflow("the weighted cells overflow; declare a smaller max_value".into()))?;
        Ok(Encoding::Exact { max_abs: self.convolution.magnitude(largest)? })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let cells = table(x)?;
        let mut ring = INTEGERS.take(self.ring.len());
        let mut product = INTEGERS.take(self.ring.len());
        Self::extended(&mut ring, cells.iter().zip(&self.weights).map(|(x, d)| x * d));
        self.convolution.apply(&ring, max_abs << WEIGHT_BITS, &mut product);
        integers(out).copy_from_slice(&product[1..=cells.len()]);
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.weighted(&self.divide(y, 1)), out);
    }

    /// Blocks of the covariance, each from those of one cell less: `O(n²)` for the `n(n + 1)/2` ranges.
    fn variances(&self, out: &mut [f64]) {
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

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.divide(&self.weighted(row), 1))
    }
}
