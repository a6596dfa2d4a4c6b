//! Noise on the input: `B = I`, answers `A(x + noise)`.

use super::boxes::volume;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, table};
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;

/// The identity strategy for any workload whose domain is a table.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    workload: Workload,
    len: usize,
    geometry: Geometry,
}

impl Identity {
    pub(super) fn new(workload: &Workload, geometry: Geometry) -> Result<Self, Error> {
        let len = workload
            .input_len()
            .ok_or_else(|| Error::Unsupported("the full domain is too large for noise on every cell".into()))?;
        Ok(Self { workload: workload.clone(), len, geometry })
    }
}

impl Strategy for Identity {
    fn measured_len(&self) -> usize {
        self.len
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        Ok(match self.geometry {
            Geometry::L2 => Upper::integer(unit.l2_squared(self.len)).sqrt(),
            _ => Upper::integer(u128::from(unit.l1())),
        })
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        Ok(Encoding::Exact { max_abs })
    }

    fn steps(&self) -> Vec<Run> {
        vec![Run { step: 1, len: self.measured_len() }]
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let out = integers(out);
        if let (Input::Codes(codes), Some(radices)) = (x, self.workload.record_levels()) {
            let all: Vec<usize> = (0..radices.len()).collect();
            super::records::count(codes, &radices, &all, out);
            let limit = i64::try_from(max_abs).unwrap_or(i64::MAX);
            for count in out.iter_mut() {
                *count = (*count).min(limit);
            }
        } else {
            out.copy_from_slice(table(x)?);
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(y, out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.workload.row_squares(out);
        if self.geometry == Geometry::L1 {
            for v in out.iter_mut() {
                *v *= 2.0;
            }
        }
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let (mean, largest) = self.workload.row_squares_spread();
        let noise = self.geometry.white();
        Some((noise * mean, Some(noise * largest)))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(y.to_vec())
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(x.to_vec())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(y.to_vec())
    }

    fn box_variance(&self, _shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        Ok(self.geometry.white() * volume(first, last))
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(row.to_vec())
    }
}
