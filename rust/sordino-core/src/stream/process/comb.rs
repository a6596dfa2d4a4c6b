//! Noise for sliding windows: `C = T(z)·G(z^W)`, `T` buffered Toeplitz, `G = 1 − Σ w_i z/(1 − φ_i z)`.
//!
//! With `u = T v`: `u_t = v_t + Σ ω_i a_i`, and `h_i`, one for each of the `W` phases, sums `φ_i^{j−1} u_{t−jW}`;
//! `v_t = k_t − (Σ ω_i a_i − Σ w_i h_{i, t mod W})`. Both loops have all poles inside the circle, so rounding stays
//! bounded; the polynomial form of the same `C` would let it grow.

use super::buffered::scaled;
use super::{FRACTION, Process, saturate};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use crate::toeplitz::Dyadic;
use zeroize::Zeroize;

/// Two sets of buffers for every coordinate: `d` for `T`, `d·W` for the comb.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Comb {
    quarter_units: u64,
    mu: Vec<Dyadic>,
    omega: Vec<Dyadic>,
    decay: Vec<Dyadic>,
    gain: Vec<Dyadic>,
    buffers: Vec<i128>,
    /// `h` by phase, coordinate, pole.
    phases: Vec<i128>,
    phase: usize,
}

impl Comb {
    /// `decay`: `1 − φ_i`; `gain`: `w_i`.
    pub(crate) fn new(
        (mu, omega): (&[Dyadic], &[Dyadic]),
        (decay, gain): (&[Dyadic], &[Dyadic]),
        window: usize,
        dim: usize,
        quarter_units: u64,
    ) -> Self {
        Self {
            quarter_units,
            mu: mu.to_vec(),
            omega: omega.to_vec(),
            decay: decay.to_vec(),
            gain: gain.to_vec(),
            buffers: vec![0; dim * mu.len()],
            phases: vec![0; window * dim * decay.len()],
            phase: 0,
        }
    }
}

impl Process for Comb {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, self.quarter_units);
        let width = row.len() * self.decay.len();
        let phases = &mut self.phases[self.phase * width..][..width];
        let coordinates = self.buffers.chunks_exact_mut(self.mu.len()).zip(phases.chunks_exact_mut(self.decay.len()));
        for (k, (buffers, held)) in row.iter_mut().zip(coordinates) {
            let near: i128 = buffers.iter().zip(&self.omega).map(|(a, omega)| scaled(*a, *omega)).sum();
            let far: i128 = held.iter().zip(&self.gain).map(|(h, gain)| scaled(*h, *gain)).sum();
            let v = i128::from(*k) - ((near - far + (1 << (FRACTION - 1))) >> FRACTION);
            for (a, mu) in buffers.iter_mut().zip(&self.mu) {
                *a += (v << FRACTION) - scaled(*a, *mu);
            }
            let u = (v << FRACTION) + near;
            for (h, decay) in held.iter_mut().zip(&self.decay) {
                *h += u - scaled(*h, *decay);
            }
            *k = saturate(v);
        }
        self.phase = if (self.phase + 1) * width == self.phases.len() { 0 } else { self.phase + 1 };
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.phase as u64);
        out.wide(&self.buffers);
        out.wide(&self.phases);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        self.phase = input.u64()? as usize;
        replace(&mut self.buffers, input.wide()?)?;
        replace(&mut self.phases, input.wide()?)
    }

    fn wipe(&mut self) {
        self.buffers.zeroize();
        self.phases.zeroize();
    }
}
