//! Buffers whose coefficients change from step to step: `P_t = h_tᵀ a`, `a ← Φ_t (a + v_t 1)`.
//!
//! `C̃_ts = h_tᵀ Φ_{t−1} ⋯ Φ_s 1` below a unit diagonal, noise `σ r_t` at step `t`. Gains and passages are numbers of
//! `[0, 1)` in units of `2^-32`; buffers have [`FRACTION`] bits after the binary point.

use super::buffered::share;
use super::{FRACTION, Held, Process, saturate, scaled_up};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::optimize;
use crate::stream::state::{Reader, Writer};
use std::sync::Arc;
use zeroize::Zeroize;

/// The buffers of every coordinate, and the step.
#[derive(Debug, Clone)]
pub(in crate::stream) struct TimeVarying {
    quarter_units: u64,
    tables: Arc<optimize::TimeVarying>,
    held: Held,
}

impl TimeVarying {
    pub(crate) fn new(tables: Arc<optimize::TimeVarying>, dim: usize, quarter_units: u64) -> Self {
        let held = Held::new(dim * tables.states());
        Self { quarter_units, tables, held }
    }
}

impl Process for TimeVarying {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        let (tables, step) = (&*self.tables, self.held.step);
        source.fill(row, scaled_up(self.quarter_units, tables.noise()[step]));
        self.held.step += 1;
        let (gains, passages) = (tables.gains(step), tables.passages(step));
        for (k, buffers) in row.iter_mut().zip(self.held.buffers.chunks_exact_mut(tables.states())) {
            let mut sum = 1i128 << (FRACTION - 1);
            for (a, gain) in buffers.iter().zip(gains) {
                sum += share(*a, u64::from(*gain) << 32);
            }
            let v = i128::from(*k) - (sum >> FRACTION);
            for (a, passage) in buffers.iter_mut().zip(passages) {
                *a = share(*a + (v << FRACTION), u64::from(*passage) << 32);
            }
            *k = saturate(v);
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn step(&self) -> Option<u64> {
        Some(self.held.step as u64)
    }

    fn save(&self, out: &mut Writer) {
        self.held.save(out);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        self.held.load(input, self.tables.steps())
    }

    fn wipe(&mut self) {
        self.held.buffers.zeroize();
    }
}
