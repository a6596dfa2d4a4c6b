//! A sketch in place of the table: `B = Φ`, `k × n` signs and zeros, `k` far below `n`.
//!
//! Source: Li, Zhang, Winslett & Yang 2011, Section 3 (the compressive mechanism), with the exact sensitivities of the
//! integer sketch ([`crate::sketch`]) and any of its constructions. Recovery ([`crate::estimate::recovery`]) is
//! post-processing by the caller: here are what is measured and what its noise means.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, table};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::sketch::Operator;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use std::sync::Arc;

/// A sketch of a table as data: answers are those of the workload on the recovered table.
#[derive(Debug, Clone)]
pub struct Compression {
    /// What is answered.
    pub workload: Workload,
    /// What is measured.
    pub operator: Arc<Operator>,
    /// Gaussian or Laplace noise.
    pub law: NoiseLaw,
    /// Number of coefficients that the recovery keeps.
    pub sparsity: usize,
}

impl Compression {
    /// Builds the strategy; the same description gives the same strategy.
    ///
    /// # Errors
    /// If the sketch is of another number of cells, or the sparsity is 0 or more than half the measurements.
    pub fn build(&self) -> Result<Box<dyn Strategy>, Error> {
        let workload = self.workload.clone().validated()?;
        workload.listed()?;
        let cells = workload
            .input_len()
            .ok_or_else(|| Error::Unsupported("the full domain is too large for a table of its cells".into()))?;
        if cells != self.operator.cells() {
            return Err(Error::invalid("sketch", "must have as many cells as the workload"));
        }
        if self.sparsity == 0 || 2 * self.sparsity > self.operator.measurements() {
            return Err(Error::invalid("sparsity", "must be from 1 to half the number of measurements"));
        }
        let geometry = if self.law == NoiseLaw::Gaussian { Geometry::L2 } else { Geometry::L1 };
        Ok(Box::new(Compressive { workload, operator: Arc::clone(&self.operator), geometry, sparsity: self.sparsity }))
    }
}

/// Sensitivity of a sketch whose entries are 1, -1 and 0.
pub(super) fn sensitivity(operator: &Operator, geometry: &Geometry, unit: Unit) -> Upper {
    let l1 = *geometry == Geometry::L1;
    let column = Upper::integer(operator.column_entries() as u128);
    unit.from_columns(if l1 { column } else { column.sqrt() }, || operator.pair_norm(l1))
}

#[derive(Debug)]
struct Compressive {
    workload: Workload,
    operator: Arc<Operator>,
    geometry: Geometry,
    sparsity: usize,
}

impl Strategy for Compressive {
    fn measured_len(&self) -> usize {
        self.operator.measurements()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        Ok(sensitivity(&self.operator, &self.geometry, unit))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        // Every entry of the sketch is 1, -1 or 0.
        (self.operator.cells() as u64)
            .checked_mul(max_abs)
            .filter(|bound| *bound < 1 << 60)
            .map(|max_abs| Encoding::Exact { max_abs })
            .ok_or_else(|| Error::Overflow("the sketch overflows; declare a smaller max_value".into()))
    }

    fn steps(&self) -> Vec<Run> {
        vec![Run { step: 1, len: self.measured_len() }]
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let out = integers(out);
        match x {
            Input::Sums(sums) => {
                // Clamping each sum brings no two sketches further apart.
                let bound = (self.operator.cells() as i64).saturating_mul(i64::try_from(max_abs).unwrap_or(i64::MAX));
                Error::check_len("sketch", out.len(), sums.len())?;
                out.iter_mut().zip(sums.clamped(bound)).for_each(|(slot, sum)| *slot = sum);
            }
            Input::Sparse { cells, nonzero } => {
                out.fill(0);
                for cell in nonzero {
                    self.operator.add_column(*cell, cells[*cell], out);
                }
            }
            _ => {
                out.fill(0);
                self.operator.add_table(table(x)?, out);
            }
        }
        Ok(())
    }

    /// The answers on the back-projection `Φᵀy/c`: what a linear estimate can do, before any recovery.
    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let mut cells = vec![0.0; self.operator.cells()];
        self.operator.adjoint(y, &mut cells);
        let scale = (self.operator.column_entries() as f64).sqrt().recip();
        for cell in &mut cells {
            *cell *= scale;
        }
        self.workload.apply(&cells, out);
    }

    /// Noise alone, for data of this sparsity whose support is found: each coefficient has the variance of a
    /// measurement over `c`, times `k/(k − S)` for fitting `S` of them together, spread evenly over the cells.
    fn variances(&self, out: &mut [f64]) {
        let (k, s) = (self.operator.measurements() as f64, self.sparsity as f64);
        let noise = if self.geometry == Geometry::L1 { 2.0 } else { 1.0 };
        let coefficient = noise / self.operator.column_entries() as f64 * k / (k - s);
        let cell = coefficient * s / self.operator.cells() as f64;
        self.workload.row_squares(out);
        for variance in out {
            *variance *= cell;
        }
    }

    fn weights(&self, _row: &[f64]) -> Result<Vec<f64>, Error> {
        Err(Error::Unsupported("a sketch has no unbiased answers: ask the recovered table".into()))
    }
}
