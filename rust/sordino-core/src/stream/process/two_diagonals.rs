//! Two diagonals around a buffered Toeplitz matrix: `P_t = s_t Σ ω_i a_i`, `a_i ← θ_i a_i + d_t v_t`.
//!
//! `C̃_ts = s_t T_{t−s} d_s` below a unit diagonal, noise `σ r_t` at step `t`; `s`, `d`, `r` are tables of 24 bits.

use super::buffered::scaled;
use super::{FRACTION, Held, Process, saturate, scaled_up};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer};
use crate::toeplitz::{Diagonal, Dyadic};
use std::sync::Arc;
use zeroize::Zeroize;

/// The public tables of a strategy.
#[derive(Debug, PartialEq)]
pub(in crate::stream) struct Tables {
    pub mu: Vec<Dyadic>,
    pub omega: Vec<Dyadic>,
    /// `s_t`: what the fed back sum is multiplied by.
    pub scale: Diagonal,
    /// `d_t`: what past noise is multiplied by.
    pub weight: Diagonal,
    /// `r_t`: noise of a step over the noise of scale 1.
    pub noise: Diagonal,
}

/// The buffers of every coordinate, and the step.
#[derive(Debug, Clone)]
pub(in crate::stream) struct TwoDiagonals {
    quarter_units: u64,
    tables: Arc<Tables>,
    held: Held,
}

impl TwoDiagonals {
    pub(crate) fn new(tables: Arc<Tables>, dim: usize, quarter_units: u64) -> Self {
        let held = Held::new(dim * tables.mu.len());
        Self { quarter_units, tables, held }
    }
}

impl Process for TwoDiagonals {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        let (tables, step) = (&*self.tables, self.held.step);
        source.fill(row, scaled_up(self.quarter_units, tables.noise.get(step)));
        self.held.step += 1;
        if tables.mu.is_empty() {
            return; // without buffers nothing is fed back
        }
        let (scale, weight) = (tables.scale.get(step), tables.weight.get(step));
        for (k, buffers) in row.iter_mut().zip(self.held.buffers.chunks_exact_mut(tables.mu.len())) {
            let sum: i128 = buffers.iter().zip(&tables.omega).map(|(a, omega)| scaled(*a, *omega)).sum();
            let v = i128::from(*k) - ((scaled(sum, scale) + (1 << (FRACTION - 1))) >> FRACTION);
            let weighted = scaled(v << FRACTION, weight);
            for (a, mu) in buffers.iter_mut().zip(&tables.mu) {
                *a += weighted - scaled(*a, *mu);
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
        self.held.load(input, self.tables.scale.len())
    }

    fn wipe(&mut self) {
        self.held.buffers.zeroize();
    }
}
