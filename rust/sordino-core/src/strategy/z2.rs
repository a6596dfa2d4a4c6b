//! Convolutions over `Z_2^d`: integer-weighted characters by the Walsh-Hadamard transform.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, not_in_row_space, table};
use crate::error::Error;
use crate::transform::hadamard::walsh_hadamard;
use crate::unit::Unit;
use crate::upper::Upper;

/// Bits of the largest weight.
const WEIGHT_BITS: i32 = 22;

/// Characters `χ_s` measured with weights `w_s`: `B = diag(w)·H`.
#[derive(Debug, Clone)]
pub(super) struct Z2 {
    spectrum: Vec<f64>,
    weights: Vec<u64>,
    geometry: Geometry,
    ideal: f64,
    /// Of [`Strategy::refined`], one a run of characters.
    factors: Vec<f64>,
}

impl Z2 {
    /// Gaussian: `w_s² ∝ |λ_s|`. Laplace: `w_s ∝ |λ_s|^{2/3}`.
    pub(super) fn new(kernel: &[f64], geometry: Geometry) -> Self {
        let mut spectrum = kernel.to_vec();
        walsh_hadamard(&mut spectrum);
        let n = spectrum.len() as f64;
        let floor = 1e-15 * n.log2().max(1.0) * kernel.iter().map(|h| h.abs()).sum::<f64>();
        spectrum.iter_mut().filter(|v| v.abs() <= floor).for_each(|v| *v = 0.0);
        let power = if geometry == Geometry::L2 { 0.5 } else { 2.0 / 3.0 };
        let largest = spectrum.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let weights = spectrum
            .iter()
            .map(|v| {
                let weight = ((v.abs() / largest).powf(power) * 2f64.powi(WEIGHT_BITS)).round() as u64;
                if *v == 0.0 { 0 } else { weight.max(1) }
            })
            .collect();
        let ideal = if geometry == Geometry::L2 {
            (spectrum.iter().map(|v| v.abs()).sum::<f64>() / n).powi(2)
        } else {
            2.0 * spectrum.iter().map(|v| v.abs().powf(2.0 / 3.0)).sum::<f64>().powi(3) / (n * n)
        };
        Self { spectrum, weights, geometry, ideal, factors: Vec::new() }
    }
}

impl Strategy for Z2 {
    fn measured_len(&self) -> usize {
        self.weights.len()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        if self.geometry == Geometry::L1 {
            let column = Upper::integer(self.weights.iter().map(|w| u128::from(*w)).sum());
            return Ok(unit.from_columns(column, || column + column));
        }
        let squares: Vec<i128> = self.weights.iter().map(|w| i128::from(*w) * i128::from(*w)).collect();
        let column: i128 = squares.iter().sum();
        // ⟨b_i, b_j⟩ = Σ_s w_s² χ_s(i ⊕ j): exact integers.
        let pair = || {
            let mut products = squares;
            walsh_hadamard(&mut products);
            let least = products[1..].iter().min().copied().unwrap_or(column);
            Upper::integer((2 * (column - least)) as u128).sqrt()
        };
        Ok(unit.from_columns(Upper::integer(column as u128).sqrt(), pair))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let largest = self.weights.iter().max().copied().unwrap_or(0);
        let bound = u128::from(largest) * u128::from(max_abs) * self.weights.len() as u128;
        if bound >= 1 << 60 {
            return Err(Error::Overflow("the characters overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        Run::merged(self.weights.iter().map(|step| (*step).max(1)))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self { factors: factors.to_vec(), ..self.clone() }))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let out = integers(out);
        out.copy_from_slice(table(x)?);
        walsh_hadamard(out);
        out.iter_mut().zip(&self.weights).for_each(|(v, w)| *v *= *w as i64);
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let n = y.len() as f64;
        for (slot, ((value, lambda), weight)) in out.iter_mut().zip(y.iter().zip(&self.spectrum).zip(&self.weights)) {
            *slot = if *weight == 0 { 0.0 } else { value * lambda / (*weight as f64 * n) };
        }
        walsh_hadamard(out);
    }

    fn variances(&self, out: &mut [f64]) {
        let n = self.weights.len() as f64;
        let each = self.spectrum.iter().zip(&self.weights).zip(self.unit_variances());
        let total: f64 = each
            .filter(|((_, w), _)| **w > 0)
            .map(|((lambda, w), variance)| (lambda / *w as f64).powi(2) * variance)
            .sum();
        out.fill(total / (n * n));
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let mut out = x.to_vec();
        walsh_hadamard(&mut out);
        out.iter_mut().zip(&self.weights).for_each(|(v, w)| *v *= *w as f64);
        Some(out)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut out: Vec<f64> = y.iter().zip(&self.weights).map(|(v, w)| v * *w as f64).collect();
        walsh_hadamard(&mut out);
        Some(out)
    }

    fn ideal_mean_square(&self) -> Option<f64> {
        Some(self.ideal)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let mut spectrum = row.to_vec();
        walsh_hadamard(&mut spectrum);
        let n = row.len() as f64;
        let scale = row.iter().map(|v| v.abs()).sum::<f64>();
        spectrum
            .iter()
            .zip(&self.weights)
            .map(|(value, w)| match *w {
                0 if value.abs() > 1e-9 * scale => Err(not_in_row_space()),
                0 => Ok(0.0),
                w => Ok(value / (w as f64 * n)),
            })
            .collect()
    }
}
