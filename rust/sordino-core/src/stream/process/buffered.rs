//! Buffered linear Toeplitz noise: `C = 1 + Σ ω_i z/(1 − θ_i z)`, `d` integers a coordinate.
//!
//! `P_t = ⌊2^-F·Σ⌊ω_i a_i⌋ + ½⌋`, `v_t = k_t − P_t`, `a_i ← a_i − ⌊μ_i a_i⌋ + 2^F·v_t`, `μ_i = 1 − θ_i`. Each floor errs
//! by less than 1; over two histories the fed back sums differ from `Σ_s C_ts (v_s − v'_s)` by less than
//! `1 + 2^-F (Σ ω_i/μ_i + d)`.

use super::{FRACTION, Process, saturate};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use crate::toeplitz::Dyadic;
use zeroize::Zeroize;

/// `⌊a·factor⌋`; products stay below 2^127 by the shifts that [`crate::stream::strategy`] admits.
#[inline]
pub(super) fn scaled(a: i128, factor: Dyadic) -> i128 {
    (a * i128::from(factor.mantissa())) >> factor.shift()
}

/// A number up to 1 in units of 2^-64; 1 itself becomes 1 − 2^-64, far below the slack of every sensitivity.
fn fraction(value: Dyadic) -> u64 {
    (u128::from(value.mantissa()) << (64 - value.shift())).min(u128::from(u64::MAX)) as u64
}

/// `⌊a·fraction⌋`: half the work of [`scaled`].
#[inline]
pub(super) fn share(a: i128, fraction: u64) -> i128 {
    let low = (u128::from(a as u64) * u128::from(fraction)) >> 64;
    (a >> 64) * i128::from(fraction) + low as i128
}

/// The buffers `a_i` of every coordinate.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Buffered {
    quarter_units: u64,
    /// In units of 2^-64.
    mu: Vec<u64>,
    omega: Vec<u64>,
    buffers: Vec<i128>,
}

impl Buffered {
    pub(crate) fn new(mu: &[Dyadic], omega: &[Dyadic], dim: usize, quarter_units: u64) -> Self {
        let fractions = |values: &[Dyadic]| values.iter().map(|value| fraction(*value)).collect();
        Self { quarter_units, mu: fractions(mu), omega: fractions(omega), buffers: vec![0; dim * mu.len()] }
    }

    /// The sum of the next `steps` numbers of a process of one coordinate: its noise is drawn many steps at a time.
    pub(crate) fn sum(&mut self, source: &mut NoiseSource, steps: u64) -> i128 {
        let (mut noise, mut sum, mut left) = ([0; AT_ONCE], 0, steps);
        while left > 0 {
            let noise = &mut noise[..left.min(AT_ONCE as u64) as usize];
            source.fill(noise, self.quarter_units);
            for k in &*noise {
                sum += i128::from(colour(&mut self.buffers, &self.mu, &self.omega, *k));
            }
            left -= noise.len() as u64;
        }
        sum
    }
}

/// Steps of one coordinate whose noise is drawn together.
const AT_ONCE: usize = 512;

/// `v_t` of one coordinate from `k_t`.
#[inline]
fn colour(buffers: &mut [i128], mu: &[u64], omega: &[u64], k: i64) -> i64 {
    let mut sum = 1i128 << (FRACTION - 1);
    for (a, omega) in buffers.iter().zip(omega) {
        sum += share(*a, *omega);
    }
    let v = i128::from(k) - (sum >> FRACTION);
    for (a, mu) in buffers.iter_mut().zip(mu) {
        *a += (v << FRACTION) - share(*a, *mu);
    }
    saturate(v)
}

impl Process for Buffered {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, self.quarter_units);
        for (k, buffers) in row.iter_mut().zip(self.buffers.chunks_exact_mut(self.mu.len())) {
            *k = colour(buffers, &self.mu, &self.omega, *k);
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.wide(&self.buffers);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        replace(&mut self.buffers, input.wide()?)
    }

    fn wipe(&mut self) {
        self.buffers.zeroize();
    }
}
