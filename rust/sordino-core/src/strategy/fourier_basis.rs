//! Fourier coefficients in the real orthonormal basis under Laplace or spherical Laplace noise.
//!
//! Built for completeness and comparison: Gaussian noise beats these under approximate privacy, and
//! noise on the input beats them under pure privacy unless few frequencies matter.

use super::fourier::Circle;
use super::{Encoded, Encoding, Geometry, Input, Strategy, floats, not_in_row_space, table};
use crate::error::Error;
use crate::transform::fourier::{UNIT_ROUNDOFF, transform_error};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use num_complex::Complex;

/// Up to this length the ℓ1 sensitivity is the exact maximum over positions.
const EXACT_MAXIMUM: usize = 4096;

/// How privacy is shared among coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
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
}

/// Weighted coefficients of the real orthonormal Fourier basis.
#[derive(Debug)]
pub(super) struct FourierBasis {
    circle: Circle,
    coordinates: Vec<Coordinate>,
    geometry: Geometry,
}

impl FourierBasis {
    pub fn new(workload: &Workload, sharing: Sharing) -> Result<Self, Error> {
        let circle = Circle::new(workload)?;
        let mut frequencies: Vec<usize> =
            (0..circle.transform.spectrum_len()).filter(|k| circle.spectrum[*k] != Complex::default()).collect();
        let magnitude = |k: usize| circle.spectrum[k].norm();
        frequencies.sort_by(|a, b| magnitude(*b).total_cmp(&magnitude(*a)).then(a.cmp(b)));
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
            for &frequency in block {
                let weight = match sharing {
                    Sharing::Independent => magnitude(frequency).powf(2.0 / 3.0),
                    Sharing::Composed => magnitude(frequency).sqrt(),
                    // a_g ∝ (√S_g·(m_g + 1))^{1/3} on top of the Gaussian weights inside the block.
                    Sharing::Planar | Sharing::Grouped => {
                        (mass.sqrt() * (dimension as f64 + 1.0)).cbrt() * magnitude(frequency).sqrt()
                    }
                };
                coordinates.push(Coordinate { frequency, sine: false, weight });
                if width(frequency) == 2 {
                    coordinates.push(Coordinate { frequency, sine: true, weight });
                }
            }
            lens.push(dimension as u32);
        }
        let largest = coordinates.iter().fold(0.0f64, |m, c| m.max(c.weight));
        coordinates.iter_mut().for_each(|c| c.weight /= largest);
        let geometry = match sharing {
            Sharing::Independent | Sharing::Composed => Geometry::L1,
            Sharing::Planar | Sharing::Grouped => Geometry::Blocks(lens),
        };
        Ok(Self { circle, coordinates, geometry })
    }

    /// `√(1/N)` for 0 and N/2, `√(2/N)` for pairs.
    fn amplitude(&self, frequency: usize) -> f64 {
        (self.circle.transform.multiplicity(frequency) / self.circle.len as f64).sqrt()
    }

    /// `|b_ij|` for position `j`: the column of the strategy.
    fn column_at(&self, position: usize) -> Vec<f64> {
        let n = self.circle.len;
        self.coordinates
            .iter()
            .map(|c| {
                let angle = std::f64::consts::TAU * ((c.frequency * position) % n) as f64 / n as f64;
                let value = if c.sine { angle.sin() } else { angle.cos() };
                (c.weight * self.amplitude(c.frequency) * value).abs()
            })
            .collect()
    }

    /// `Σ_k d_k·amplitude·(1 or √2)`: every column is below it.
    fn uniform_l1(&self) -> f64 {
        self.coordinates
            .iter()
            .filter(|c| !c.sine)
            .map(|c| c.weight * self.amplitude(c.frequency) * self.circle.transform.multiplicity(c.frequency).sqrt())
            .sum()
    }

    /// Column of norms: `Σ_blocks ‖block of b_j‖₂`, the same for every position.
    fn block_norm(&self, lens: &[u32]) -> f64 {
        let mut rest = &self.coordinates[..];
        lens.iter()
            .map(|len| {
                let (block, tail) = rest.split_at(*len as usize);
                rest = tail;
                block
                    .iter()
                    .filter(|c| !c.sine)
                    .map(|c| (c.weight * self.amplitude(c.frequency)).powi(2))
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
        self.coordinates.len()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let slack = 1.0 + 8.0 * UNIT_ROUNDOFF * (self.coordinates.len() as f64 + 16.0);
        let norm = match &self.geometry {
            Geometry::Blocks(lens) => self.block_norm(lens),
            _ if self.circle.len <= EXACT_MAXIMUM => {
                // Sines and cosines of rounded angles are off by at most 2^-50 each.
                let error = self.uniform_l1() * 2f64.powi(-49);
                (0..self.circle.inputs).map(|j| self.column_at(j).iter().sum::<f64>()).fold(0.0, f64::max) + error
            }
            _ => self.uniform_l1(),
        };
        let column = Upper::rounded(norm * slack, 2);
        Ok(unit.from_columns(column, column + column))
    }

    fn column(&self, cell: usize) -> Option<Vec<f64>> {
        Some(self.column_at(cell))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        // B is a rotation with weights at most 1; the input has at most this norm.
        let norm = (self.circle.inputs as f64).sqrt() * max_abs as f64 * (1.0 + 1e-9);
        let relative = transform_error(self.circle.len) + 8.0 * UNIT_ROUNDOFF;
        Ok(Encoding::Float { error_l2: Upper::rounded(norm * relative, 4), max_abs: norm })
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let values: Vec<f64> = table(x)?.iter().map(|v| *v as f64).collect();
        let spectrum = self.circle.transform.spectrum(&values);
        for (slot, c) in floats(out).iter_mut().zip(&self.coordinates) {
            let value = spectrum[c.frequency];
            *slot = c.weight * self.amplitude(c.frequency) * if c.sine { -value.im } else { value.re };
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let mut spectrum = vec![Complex::default(); self.circle.transform.spectrum_len()];
        for (c, value) in self.coordinates.iter().zip(y) {
            let part = value / (c.weight * self.amplitude(c.frequency) * self.circle.len as f64);
            if c.sine { spectrum[c.frequency].im = -part } else { spectrum[c.frequency].re = part }
        }
        for (value, lambda) in spectrum.iter_mut().zip(&self.circle.spectrum) {
            *value *= lambda;
        }
        let mut full = vec![0.0; self.circle.len];
        self.circle.transform.inverse(&mut spectrum, &mut full);
        out.copy_from_slice(&full[..out.len()]);
    }

    fn variances(&self, out: &mut [f64]) {
        // Every pair has equal variances, so each answer has the mean.
        let unit = self.unit_variances();
        let total: f64 = self
            .coordinates
            .iter()
            .zip(unit)
            .map(|(c, v)| v * self.circle.spectrum[c.frequency].norm_sqr() / (c.weight * c.weight))
            .sum();
        out.fill(total / self.circle.len as f64);
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let spectrum = self.circle.transform.spectrum(row);
        let scale = row.iter().map(|v| v * v).sum::<f64>().sqrt() * (self.circle.len as f64).sqrt();
        let missed = |k: usize| self.circle.spectrum[k] == Complex::default() && spectrum[k].norm() > 1e-9 * scale;
        if (0..spectrum.len()).any(missed) {
            return Err(not_in_row_space());
        }
        Ok(self
            .coordinates
            .iter()
            .map(|c| {
                let value = spectrum[c.frequency];
                let part = if c.sine { -value.im } else { value.re };
                part * self.amplitude(c.frequency) / c.weight
            })
            .collect())
    }
}
