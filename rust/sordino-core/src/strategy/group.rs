//! The Fourier mechanism on a product of cyclic groups: symmetric convolution with spectrum `√|λ|`.

use super::{Encoded, Encoding, Geometry, Input, Strategy, integers, not_in_row_space, table};
use crate::error::Error;
use crate::transform::fourier::rounding_levels;
use crate::transform::group::{ExactGroupConvolution, GroupFourier};
use crate::unit::Unit;
use crate::upper::Upper;
use num_complex::Complex;

/// Bits of the rounded kernel.
const KERNEL_BITS: i32 = 22;

/// The optimal Gaussian strategy of a convolution over a finite abelian group.
#[derive(Debug)]
pub(super) struct Group {
    transform: GroupFourier,
    levels: f64,
    spectrum: Vec<Complex<f64>>,
    kernel: Vec<i64>,
    kernel_spectrum: Vec<f64>,
    convolution: ExactGroupConvolution,
}

impl Group {
    pub(super) fn new(radices: &[usize], kernel: &[f64]) -> Self {
        let transform = GroupFourier::new(radices);
        let len = kernel.len() as f64;
        let mut spectrum = transform.spectrum(kernel);
        let levels: f64 = radices.iter().map(|n| rounding_levels(*n)).sum();
        let floor = 2e-15 * levels.max(1.0) * len.sqrt() * kernel.iter().map(|h| h * h).sum::<f64>().sqrt();
        for value in &mut spectrum {
            if value.norm() <= floor {
                *value = Complex::default();
            }
        }
        let mut root: Vec<Complex<f64>> = spectrum.iter().map(|v| Complex::new(v.norm().sqrt(), 0.0)).collect();
        transform.process(&mut root, true);
        let norm = root.iter().map(|v| v.re * v.re).sum::<f64>().sqrt();
        let rounded = |i: usize| (root[i].re * 2f64.powi(KERNEL_BITS) / norm).round() as i64;
        // Symmetric to the bit: take each entry and its negative from the lower index.
        let kernel: Vec<i64> = (0..root.len()).map(|i| rounded(i.min(negated(i, radices)))).collect();
        let values: Vec<f64> = kernel.iter().map(|k| *k as f64).collect();
        let kernel_spectrum = transform.spectrum(&values).iter().map(|v| v.re).collect();
        let convolution = ExactGroupConvolution::new(radices, &kernel);
        Self { transform, levels, spectrum, kernel, kernel_spectrum, convolution }
    }

    fn norm_squared(&self) -> u128 {
        self.kernel.iter().map(|k| u128::from(k.unsigned_abs()).pow(2)).sum()
    }

    fn vanishes(&self, k: usize) -> bool {
        self.spectrum[k] == Complex::default()
    }
}

/// Index of `−a`.
fn negated(index: usize, radices: &[usize]) -> usize {
    let (mut rest, mut out, mut place) = (index, 0, 1);
    for n in radices.iter().rev() {
        out += (n - rest % n) % n * place;
        place *= n;
        rest /= n;
    }
    out
}

impl Strategy for Group {
    fn measured_len(&self) -> usize {
        self.kernel.len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L2
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let square = self.norm_squared();
        let column = Upper::integer(square).sqrt();
        let pair = || {
            // Autocorrelation over the group, in floating point with a generous bound.
            let mut power: Vec<Complex<f64>> =
                self.kernel_spectrum.iter().map(|k| Complex::new(k * k / self.kernel.len() as f64, 0.0)).collect();
            self.transform.process(&mut power, true);
            let least = power[1..].iter().map(|v| v.re).fold(f64::INFINITY, f64::min);
            if least.is_finite() {
                let square = square as f64;
                let error = square * 1e-13 * self.levels.max(1.0);
                Upper::rounded(2.0 * (square - least) + 4.0 * error, 4).sqrt()
            } else {
                Upper::ZERO
            }
        };
        Ok(unit.from_columns(column, pair))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        Ok(Encoding::Exact { max_abs: self.convolution.magnitude(max_abs)? })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.convolution.apply(table(x)?, max_abs, integers(out));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let transfer = |k: usize| {
            if self.vanishes(k) { Complex::default() } else { self.spectrum[k] / self.kernel_spectrum[k] }
        };
        out.copy_from_slice(&self.transform.filter(y, transfer));
    }

    fn variances(&self, out: &mut [f64]) {
        let total: f64 = (0..self.kernel.len())
            .filter(|k| !self.vanishes(*k))
            .map(|k| self.spectrum[k].norm_sqr() / self.kernel_spectrum[k].powi(2))
            .sum();
        out.fill(total / self.kernel.len() as f64);
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(self.transform.filter(x, |k| Complex::new(self.kernel_spectrum[k], 0.0)))
    }

    /// The kernel is symmetric: the same convolution.
    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.multiplied(y)
    }

    fn ideal_mean_square(&self) -> Option<f64> {
        let mean = self.spectrum.iter().map(|v| v.norm()).sum::<f64>() / self.kernel.len() as f64;
        Some(mean * mean)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let scale = row.iter().map(|v| v * v).sum::<f64>().sqrt() * (row.len() as f64).sqrt();
        let spectrum = self.transform.spectrum(row);
        if (0..row.len()).any(|k| self.vanishes(k) && spectrum[k].norm() > 1e-9 * scale) {
            return Err(not_in_row_space());
        }
        Ok(self
            .transform
            .filter(row, |k| Complex::new(if self.vanishes(k) { 0.0 } else { 1.0 / self.kernel_spectrum[k] }, 0.0)))
    }
}
