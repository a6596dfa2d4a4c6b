//! Any lower triangular strategy: `P_t = ⌊Σ_{s<t} C̃_ts v_s + ½⌋` by exact integer dots.
//!
//! `C̃` has a unit diagonal and entries in units of `2^-30`; the noise of step `t` is `σ r_t`.

use super::{Process, saturate, scaled_up};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, corrupt};
use crate::toeplitz::Dyadic;
use std::sync::Arc;
use zeroize::Zeroize;

/// Bits after the binary point of an entry.
pub(in crate::stream) const ENTRY_BITS: u32 = 30;

/// The public matrix: rows below the diagonal one after the other, and the noise of every step.
#[derive(Debug, PartialEq)]
pub(in crate::stream) struct Rows {
    pub entries: Vec<i64>,
    pub noise: Vec<Dyadic>,
}

impl Rows {
    /// Row `t` below the diagonal.
    pub(crate) fn row(&self, t: usize) -> &[i64] {
        &self.entries[t * t.saturating_sub(1) / 2..][..t]
    }
}

/// All past noise.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Dense {
    quarter_units: u64,
    rows: Arc<Rows>,
    dim: usize,
    /// By coordinate, `n` places each.
    history: Vec<i128>,
    step: usize,
}

impl Dense {
    pub(crate) fn new(rows: Arc<Rows>, dim: usize, quarter_units: u64) -> Self {
        let history = vec![0; dim * rows.noise.len()];
        Self { quarter_units, rows, dim, history, step: 0 }
    }
}

impl Process for Dense {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, scaled_up(self.quarter_units, self.rows.noise[self.step]));
        let entries = self.rows.row(self.step);
        let steps = self.rows.noise.len();
        for (k, history) in row.iter_mut().zip(self.history.chunks_exact_mut(steps)) {
            let sum: i128 = entries.iter().zip(&*history).map(|(c, v)| i128::from(*c) * v).sum();
            let v = i128::from(*k) - ((sum + (1 << (ENTRY_BITS - 1))) >> ENTRY_BITS);
            history[self.step] = v;
            *k = saturate(v);
        }
        self.step += 1;
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn step(&self) -> Option<u64> {
        Some(self.step as u64)
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.step as u64);
        for history in self.history.chunks_exact(self.rows.noise.len()) {
            out.wide(&history[..self.step]);
        }
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        let (step, steps) = (input.u64()? as usize, self.rows.noise.len());
        if step > steps {
            return Err(corrupt());
        }
        for c in 0..self.dim {
            let history = input.wide()?;
            if history.len() != step {
                return Err(corrupt());
            }
            self.history[c * steps..][..step].copy_from_slice(&history);
        }
        self.step = step;
        Ok(())
    }

    fn wipe(&mut self) {
        self.history.zeroize();
    }
}
