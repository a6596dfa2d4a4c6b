//! Fourier coefficients in the real orthonormal basis under Laplace or spherical Laplace noise.
//!
//! Built for completeness and comparison: Gaussian noise beats these under approximate privacy, and
//! noise on the input beats them under pure privacy unless few frequencies matter. Filters with ends are decoded by
//! least squares on their inputs ([`LeastSquares`]), weighted by the variances of the coordinates.

use super::fourier::Circle;
use super::least_squares::{LeastSquares, OnCircle};
use super::{Encoded, Encoding, Geometry, Input, Strategy, floats, not_in_row_space, table};
use crate::error::Error;
use crate::order::by_key;
use crate::parallel::largest_of;
use crate::transform::fourier::{UNIT_ROUNDOFF, transform_error};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;
use std::sync::OnceLock;

/// Up to this many inputs of a filter with ends its answers are decoded by least squares; above, read off the circle,
/// which saves seconds of planning and mostly loses less than a thousandth of the error, and a tenth of it for averages
/// as wide as a good part of the input.
const LEAST_SQUARES: usize = 1 << 16;
/// Up to this many entries of `B` the ℓ1 sensitivity is the exact maximum over positions.
const EXACT_MAXIMUM: usize = 1 << 26;

/// How privacy is shared among coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Independent Laplace noise, least error under pure privacy: `d_k ∝ |λ_k|^{2/3}`.
    Independent,
    /// Independent Laplace noise with the Gaussian weights `d_k ∝ |λ_k|^{1/2}`, to be calibrated by
    /// composition.
    Composed,
    /// Planar Laplace noise on each pair of a frequency.
    Planar,
    /// Spherical Laplace noise on blocks of geometrically growing size, largest coefficients first.
    Grouped,
}

/// One measured real coordinate: frequency, and whether the sine part.
#[derive(Debug, Clone, Copy)]
struct Coordinate {
    frequency: usize,
    sine: bool,
    weight: f64,
    /// Of unit noise.
    variance: f64,
}

/// Weighted coefficients of the real orthonormal Fourier basis.
#[derive(Debug)]
pub(super) struct FourierBasis {
    measured: Measured,
    geometry: Geometry,
    least_squares: Option<LeastSquares>,
    /// The same beyond [`LEAST_SQUARES`], when further queries are first asked.
    further: OnceLock<Option<LeastSquares>>,
    /// The largest norm of a column.
    norm: OnceLock<f64>,
}

/// `B = D U`, `D` the weights.
#[derive(Debug)]
struct Measured {
    circle: Circle,
    coordinates: Vec<Coordinate>,
}

impl Measured {
    /// `√(1/N)` for 0 and N/2, `√(2/N)` for pairs.
    fn amplitude(&self, frequency: usize) -> f64 {
        (self.circle.transform.multiplicity(frequency) / self.circle.len as f64).sqrt()
    }

    /// `Uᵀ` of the coordinates times `scale`, as a half spectrum to be inverted.
    fn half_spectrum(&self, y: &[f64], scale: impl Fn(&Coordinate) -> f64) -> Vec<Complex<f64>> {
        let mut spectrum = vec![Complex::default(); self.circle.transform.spectrum_len()];
        for (c, value) in self.coordinates.iter().zip(y) {
            let part = value * scale(c) / (self.amplitude(c.frequency) * self.circle.len as f64);
            if c.sine { spectrum[c.frequency].im = -part } else { spectrum[c.frequency].re = part }
        }
        spectrum
    }

    /// `Uᵀ` of the coordinates times `scale`, one number an input.
    fn gathered(&self, y: &[f64], scale: impl Fn(&Coordinate) -> f64) -> Vec<f64> {
        let mut spectrum = self.half_spectrum(y, scale);
        let mut out = vec![0.0; self.circle.len];
        self.circle.transform.inverse(&mut spectrum, &mut out);
        out.truncate(self.circle.inputs);
        out
    }

    fn least_squares(&self) -> Option<LeastSquares> {
        let mut symbol = vec![0.0; self.circle.transform.spectrum_len()];
        for c in &self.coordinates {
            symbol[c.frequency] = c.weight * c.weight / c.variance;
        }
        LeastSquares::new(&self.circle, |k| symbol[k], self)
    }

    /// `D⁻² B row`: weights of the answer that the circle gives to a row of its own length.
    fn weights_on_circle(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let spectrum = self.circle.transform.spectrum(row);
        let scale = row.iter().map(|v| v * v).sum::<f64>().sqrt() * (self.circle.len as f64).sqrt();
        let missed = |k: usize| self.circle.spectrum[k] == Complex::default() && spectrum[k].norm() > 1e-9 * scale;
        if (0..spectrum.len()).any(missed) {
            return Err(not_in_row_space());
        }
        let weighted = self.multiply(row);
        Ok(weighted.iter().zip(&self.coordinates).map(|(v, c)| v / (c.weight * c.weight)).collect())
    }
}

impl OnCircle for Measured {
    fn multiply(&self, x: &[f64]) -> Vec<f64> {
        let spectrum = self.circle.transform.spectrum(x);
        self.coordinates
            .iter()
            .map(|c| {
                let value = spectrum[c.frequency];
                c.weight * self.amplitude(c.frequency) * if c.sine { -value.im } else { value.re }
            })
            .collect()
    }

    fn project(&self, y: &[f64]) -> Vec<f64> {
        self.gathered(y, |c| c.weight / c.variance)
    }
}

impl FourierBasis {
    pub(super) fn new(workload: &Workload, sharing: Sharing) -> Result<Self, Error> {
        let circle = Circle::new(workload, None)?;
        let magnitudes: Vec<f64> = circle.spectrum.iter().map(|v| v.norm()).collect();
        let magnitude = |k: usize| magnitudes[k];
        let mut frequencies: Vec<usize> =
            (0..circle.transform.spectrum_len()).filter(|k| circle.spectrum[*k] != Complex::default()).collect();
        by_key(&mut frequencies, &|k| -magnitude(k));
        let width = |k: usize| circle.transform.multiplicity(k) as usize;
        // Blocks of frequencies that share one radius.
        let blocks: Vec<&[usize]> = match sharing {
            Sharing::Grouped => geometric_blocks(&frequencies),
            _ => frequencies.chunks(1).collect(),
        };
        let (mut coordinates, mut lens) = (Vec::new(), Vec::new());
        for block in blocks {
            let dimension: usize = block.iter().map(|k| width(*k)).sum();
            let mass: f64 = block.iter().map(|k| width(*k) as f64 * magnitude(*k)).sum();
            let variance = match sharing {
                Sharing::Independent | Sharing::Composed => 2.0,
                Sharing::Planar | Sharing::Grouped => dimension as f64 + 1.0,
            };
            for &frequency in block {
                let weight = match sharing {
                    Sharing::Independent => magnitude(frequency).powf(2.0 / 3.0),
                    Sharing::Composed => magnitude(frequency).sqrt(),
                    // a_g ∝ (√S_g·(m_g + 1))^{1/3} on top of the Gaussian weights inside the block.
                    Sharing::Planar | Sharing::Grouped => {
                        (mass.sqrt() * (dimension as f64 + 1.0)).cbrt() * magnitude(frequency).sqrt()
                    }
                };
                coordinates.push(Coordinate { frequency, sine: false, weight, variance });
                if width(frequency) == 2 {
                    coordinates.push(Coordinate { frequency, sine: true, weight, variance });
                }
            }
            lens.push(dimension as u32);
        }
        let largest = coordinates.iter().fold(0.0f64, |m, c| m.max(c.weight));
        for c in &mut coordinates {
            c.weight /= largest;
        }
        let geometry = match sharing {
            Sharing::Independent | Sharing::Composed => Geometry::L1,
            Sharing::Planar | Sharing::Grouped => Geometry::Blocks(lens),
        };
        let measured = Measured { circle, coordinates };
        let least_squares = (measured.circle.inputs <= LEAST_SQUARES).then(|| measured.least_squares()).flatten();
        Ok(Self { measured, geometry, least_squares, further: OnceLock::new(), norm: OnceLock::new() })
    }

    /// `|b_ij|` for position `j`: the column of the strategy. `turns` is [`Self::turns`].
    fn column_at<'a>(&'a self, position: usize, turns: &'a [(f64, f64)]) -> impl Iterator<Item = f64> + 'a {
        self.measured.coordinates.iter().map(move |c| {
            let (sin, cos) = turns[c.frequency * position % turns.len()];
            (c.weight * self.measured.amplitude(c.frequency) * if c.sine { sin } else { cos }).abs()
        })
    }

    /// Sine and cosine of every multiple of a turn over `N`.
    fn turns(&self) -> Vec<(f64, f64)> {
        let n = self.measured.circle.len;
        (0..n).map(|k| (std::f64::consts::TAU * k as f64 / n as f64).sin_cos()).collect()
    }

    /// The largest ℓ1 norm of a column, exact up to rounding, or the bound that all columns share.
    fn largest_l1(&self) -> f64 {
        if self.measured.circle.inputs.saturating_mul(self.measured.coordinates.len()) > EXACT_MAXIMUM {
            return self.uniform_l1();
        }
        let turns = self.turns();
        let most = largest_of(self.measured.circle.inputs, &|j| self.column_at(j, &turns).sum::<f64>());
        // Sines and cosines of rounded angles are off by at most 2^-50 each.
        most + self.uniform_l1() * 2f64.powi(-49)
    }

    /// `Σ_k d_k·amplitude·(1 or √2)`: every column is below it.
    fn uniform_l1(&self) -> f64 {
        self.measured
            .coordinates
            .iter()
            .filter(|c| !c.sine)
            .map(|c| {
                c.weight
                    * self.measured.amplitude(c.frequency)
                    * self.measured.circle.transform.multiplicity(c.frequency).sqrt()
            })
            .sum()
    }

    /// Column of norms: `Σ_blocks ‖block of b_j‖₂`, the same for every position.
    fn block_norm(&self, lens: &[u32]) -> f64 {
        let mut rest = &self.measured.coordinates[..];
        lens.iter()
            .map(|len| {
                let (block, tail) = rest.split_at(*len as usize);
                rest = tail;
                block
                    .iter()
                    .filter(|c| !c.sine)
                    .map(|c| (c.weight * self.measured.amplitude(c.frequency)).powi(2))
                    .sum::<f64>()
                    .sqrt()
            })
            .sum()
    }
}

/// Cuts a sorted list into blocks of 1, 2, 4, … frequencies.
fn geometric_blocks(frequencies: &[usize]) -> Vec<&[usize]> {
    let mut blocks = Vec::new();
    let (mut rest, mut size) = (frequencies, 1);
    while !rest.is_empty() {
        let (block, tail) = rest.split_at(size.min(rest.len()));
        blocks.push(block);
        rest = tail;
        size *= 2;
    }
    blocks
}

impl Strategy for FourierBasis {
    fn measured_len(&self) -> usize {
        self.measured.coordinates.len()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let slack = 1.0 + 8.0 * UNIT_ROUNDOFF * (self.measured.coordinates.len() as f64 + 16.0);
        let norm = *self.norm.get_or_init(|| match &self.geometry {
            Geometry::Blocks(lens) => self.block_norm(lens),
            _ => self.largest_l1(),
        });
        let column = Upper::rounded(norm * slack, 2);
        Ok(unit.from_columns(column, || column + column))
    }

    fn column(&self, cell: usize) -> Option<Vec<f64>> {
        Some(self.column_at(cell, &self.turns()).collect())
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        // B is a rotation with weights at most 1; the input has at most this norm.
        let norm = (self.measured.circle.inputs as f64).sqrt() * max_abs as f64 * (1.0 + 1e-9);
        let relative = transform_error(self.measured.circle.len) + 8.0 * UNIT_ROUNDOFF;
        Ok(Encoding::Float { error_l2: Upper::rounded(norm * relative, 4), max_abs: norm })
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let values: Vec<f64> = table(x)?.iter().map(|v| *v as f64).collect();
        floats(out).copy_from_slice(&self.measured.multiply(&values));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        if let Some(least_squares) = &self.least_squares {
            return least_squares.decode(y, &self.measured, out);
        }
        let circle = &self.measured.circle;
        let mut spectrum = self.measured.half_spectrum(y, |c| 1.0 / c.weight);
        for (value, lambda) in spectrum.iter_mut().zip(&circle.spectrum) {
            *value *= lambda;
        }
        let mut full = vec![0.0; circle.len];
        circle.transform.inverse(&mut spectrum, &mut full);
        out.copy_from_slice(&full[..out.len()]);
    }

    fn variances(&self, out: &mut [f64]) {
        if let Some(least_squares) = &self.least_squares {
            return least_squares.variances(out);
        }
        // Every pair has equal variances, so each answer has the mean.
        let Measured { circle, coordinates } = &self.measured;
        let total: f64 = coordinates
            .iter()
            .map(|c| c.variance * circle.spectrum[c.frequency].norm_sqr() / (c.weight * c.weight))
            .sum();
        out.fill(total / circle.len as f64);
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(self.measured.multiply(x))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.measured.gathered(y, |c| c.weight))
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let further = || self.further.get_or_init(|| self.measured.least_squares()).as_ref();
        let Some(least_squares) = self.least_squares.as_ref().or_else(further) else {
            return self.measured.weights_on_circle(row);
        };
        let mut weights = least_squares.combination(row, &self.measured)?;
        weights.iter_mut().zip(&self.measured.coordinates).for_each(|(w, c)| *w /= c.variance);
        Ok(weights)
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        match self.least_squares {
            Some(_) => self.weights(row),
            None => self.measured.weights_on_circle(&self.measured.circle.row(&self.measured.circle.spectrum, answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    const BITS: u32 = 200;

    /// `2^BITS·cos(2πk/n)` and sine, by Taylor series after reduction to an exact fraction of a turn.
    fn turn(k: usize, n: usize) -> (BigInt, BigInt) {
        // Machin: pi = 16 atan(1/5) - 4 atan(1/239).
        let atan = |x: u32| {
            let (mut sum, mut term, mut j) = (BigInt::ZERO, (BigInt::from(1) << (BITS + 40)) / x, 1u32);
            while term != BigInt::ZERO {
                if j % 4 == 1 {
                    sum += &term / j;
                } else {
                    sum -= &term / j;
                }
                term /= x * x;
                j += 2;
            }
            sum
        };
        let tau: BigInt = (atan(5) * 16 - atan(239) * 4) * 2;
        let angle = tau * k / n;
        let (mut cos, mut sin) = (BigInt::ZERO, BigInt::ZERO);
        let mut term = BigInt::from(1) << (BITS + 40);
        for j in 0u32..200 {
            match j % 4 {
                0 => cos += &term,
                1 => sin += &term,
                2 => cos -= &term,
                _ => sin -= &term,
            }
            term = ((term * &angle) >> (BITS + 40)) / (j + 1);
        }
        (cos >> 40u32, sin >> 40u32)
    }

    fn to_f64(value: &BigInt, bits: u32) -> f64 {
        // 120 bits keep the relative error far below that of a double.
        let excess = value.magnitude().bits().saturating_sub(120);
        let (shift, top) = (excess as i32, value >> excess);
        let high: BigInt = &top >> 60u32;
        let low: BigInt = &top - (&high << 60u32);
        let part = |v: BigInt| i128::try_from(v).unwrap() as f64;
        (part(high) * 2f64.powi(60) + part(low)) * 2f64.powi(shift - bits as i32)
    }

    /// The bound of `encoding` against 200-bit arithmetic, on flat, alternating, single and pseudo-random
    /// inputs at the limit, for lengths that take each of the transform's algorithms.
    #[test]
    fn encoding_error_against_a_200_bit_oracle() {
        for n in [1usize, 2, 12, 64, 97, 100, 128] {
            let workload = Workload::Circular { kernel: (0..n).map(|j| 0.9f64.powi(j as i32)).collect() };
            let turns: Vec<_> = (0..n).map(|i| turn(i, n)).collect();
            for sharing in [Sharing::Independent, Sharing::Grouped] {
                let basis = FourierBasis::new(&workload, sharing).unwrap();
                let max_abs = (1i64 << 24) - 1;
                let inputs: [Vec<i64>; 4] = [
                    vec![max_abs; n],
                    (0..n).map(|i| if i % 2 == 0 { max_abs } else { -max_abs }).collect(),
                    (0..n).map(|i| if i == n / 3 { max_abs } else { 0 }).collect(),
                    (0..n as i64).map(|i| (i * 2_654_435_761) % max_abs).collect(),
                ];
                let Encoding::Float { error_l2, .. } = basis.encoding(max_abs as u64).unwrap() else { panic!() };
                for x in inputs {
                    let mut out = vec![0.0; basis.measured_len()];
                    basis.encode(Input::Cells(&x), max_abs as u64, Encoded::Float(&mut out)).unwrap();
                    let mut squares = 0.0;
                    for (c, value) in basis.measured.coordinates.iter().zip(&out) {
                        let sum: BigInt = x
                            .iter()
                            .enumerate()
                            .map(|(i, v)| {
                                let (cos, sin) = &turns[c.frequency * i % n];
                                if c.sine { sin * *v } else { cos * *v }
                            })
                            .sum();
                        // amplitude = sqrt(multiplicity/n), to 2^-BITS.
                        let ratio: BigInt =
                            (BigInt::from(basis.measured.circle.transform.multiplicity(c.frequency) as u32)
                                << (2 * BITS))
                                / n;
                        let exact = sum * ratio.sqrt();
                        // weight is the double itself: 2^-80 multiples are exact here.
                        let weight = BigInt::from((c.weight * 2f64.powi(80)) as i128);
                        let exact = exact * weight;
                        let computed = BigInt::from((value * 2f64.powi(60)) as i128) << (2 * BITS + 20);
                        squares += to_f64(&(computed - exact), 2 * BITS + 80).powi(2);
                    }
                    assert!(squares.sqrt() <= error_l2.get(), "n = {n}: {} above {}", squares.sqrt(), error_l2.get());
                }
            }
        }
    }
}
