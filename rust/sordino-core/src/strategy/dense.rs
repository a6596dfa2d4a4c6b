//! Noise on the answers of any matrix: `B = A`.

use super::columns::sensitivity;
use super::{Encoded, Encoding, Geometry, Input, Strategy, floats, integers, not_in_row_space, table};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use nalgebra::{DMatrix, DVector, Dyn, SVD};
use rayon::prelude::*;
use std::sync::OnceLock;

/// A matrix measured row by row: exact if its entries are integers times a power of two.
#[derive(Debug)]
pub(super) struct Dense {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
    /// `entries = integers·2^exponent`, if all are below 2^31.
    integers: Option<(Vec<i64>, i32)>,
    geometry: Geometry,
    /// Singular values of `Aᵀ`, when further queries are first asked.
    transposed: OnceLock<SVD<f64, Dyn, Dyn>>,
}

impl Dense {
    pub fn new(rows: usize, columns: usize, entries: &[f64], geometry: Geometry) -> Self {
        let integers = (-60..=60).rev().find_map(|exponent| {
            let factor = 2f64.powi(-exponent);
            entries
                .iter()
                .map(|a| {
                    let scaled = a * factor;
                    (scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(31)).then_some(scaled as i64)
                })
                .collect::<Option<Vec<_>>>()
                .map(|integers| (integers, exponent))
        });
        Self { rows, columns, entries: entries.to_vec(), integers, geometry, transposed: OnceLock::new() }
    }

    /// The measured matrix as floats.
    fn measured(&self) -> Vec<f64> {
        match &self.integers {
            Some((integers, _)) => integers.iter().map(|a| *a as f64).collect(),
            None => self.entries.clone(),
        }
    }

    /// What an answer is worth of a measured number.
    fn factor(&self) -> f64 {
        self.integers.as_ref().map_or(1.0, |(_, exponent)| 2f64.powi(*exponent))
    }
}

impl Strategy for Dense {
    fn measured_len(&self) -> usize {
        self.rows
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let matrix = self.measured();
        let column = |j: usize| (0..self.rows).map(|i| matrix[i * self.columns + j]).collect();
        let columns: Vec<Vec<f64>> = (0..self.columns).map(column).collect();
        Ok(sensitivity(&columns, &self.geometry, unit))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let matrix = self.measured();
        let fullest =
            matrix.chunks_exact(self.columns).map(|row| row.iter().map(|a| a.abs()).sum::<f64>()).fold(0.0, f64::max);
        let magnitude = fullest * max_abs as f64 * (1.0 + 1e-9);
        if self.integers.is_some() {
            return if magnitude < 2f64.powi(60) {
                Ok(Encoding::Exact { max_abs: magnitude as u64 + 1 })
            } else {
                Err(Error::Overflow("the answers overflow; declare a smaller max_value".into()))
            };
        }
        // Each dot product loses at most (n + 1)·u·Σ|a||x|.
        let total: f64 = matrix
            .chunks_exact(self.columns)
            .map(|row| row.iter().map(|a| a.abs()).sum::<f64>().powi(2))
            .sum::<f64>()
            .sqrt();
        let error = total * max_abs as f64 * UNIT_ROUNDOFF * (self.columns as f64 + 4.0) * (1.0 + 1e-9);
        Ok(Encoding::Float { error_l2: Upper::rounded(error, 4), max_abs: magnitude })
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let x = table(x)?;
        if let Some((matrix, _)) = &self.integers {
            integers(out)
                .par_iter_mut()
                .zip(matrix.par_chunks_exact(self.columns))
                .for_each(|(slot, row)| *slot = row.iter().zip(x).map(|(a, v)| a * v).sum());
        } else {
            floats(out)
                .par_iter_mut()
                .zip(self.entries.par_chunks_exact(self.columns))
                .for_each(|(slot, row)| *slot = row.iter().zip(x).map(|(a, v)| a * *v as f64).sum());
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let factor = self.factor();
        out.iter_mut().zip(y).for_each(|(slot, value)| *slot = value * factor);
    }

    fn variances(&self, out: &mut [f64]) {
        let factor = self.factor();
        out.fill(factor * factor * if self.geometry == Geometry::L1 { 2.0 } else { 1.0 });
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // Least squares by the pseudo-inverse, and a check that the row was reached.
        let matrix = self.transposed.get_or_init(|| {
            let entries = self.measured();
            let columns_by_rows = DMatrix::from_column_slice(self.columns, self.rows, &entries);
            columns_by_rows.svd(true, true)
        });
        let target = DVector::from_column_slice(row);
        let cutoff = matrix.singular_values.max() * 1e-12;
        let weights = matrix.solve(&target, cutoff).map_err(|_| not_in_row_space())?;
        let entries = self.measured();
        let reached = DMatrix::from_column_slice(self.columns, self.rows, &entries) * &weights;
        if (reached - &target).norm() > 1e-9 * target.norm() {
            return Err(not_in_row_space());
        }
        Ok(weights.as_slice().to_vec())
    }
}
