//! The `k`-ary tree with subtraction (Andersson, Pagh, Steiner & Torkamani, "Count on your elders: Laplace vs
//! Gaussian noise", FORC 2025): a prefix is written in balanced digits, `−(k−1)/2 … (k−1)/2`, `k` odd.
//!
//! A negative digit takes away nodes beyond the step: their noise is used before they close. Under pure differential
//! privacy that is sound for adaptive streams too: for every fixed transcript the input is a fixed stream, and
//! `noise ↦ noise − Cδ`, a bijection between the noise that leads to the transcript from either neighbour, changes
//! the density by `e^{±ε}` at most. (For Gaussian noise this argument is not available, and it is not offered.)

use super::Process;
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use zeroize::Zeroize;

/// Noise of the nodes in use.
#[derive(Debug, Clone)]
pub(in crate::stream) struct SubtractionTree {
    quarter_units: u64,
    branching: u64,
    steps: u64,
    /// Signed sum of a level's nodes, by level and coordinate.
    sums: Vec<i64>,
    /// Noise of the nodes that were taken away ahead of time, by level, node and coordinate.
    ahead: Vec<i64>,
    last: Vec<i64>,
}

impl SubtractionTree {
    pub(crate) fn new(branching: u32, levels: u32, dim: usize, quarter_units: u64) -> Self {
        let half = (branching as usize - 1) / 2;
        Self {
            quarter_units,
            branching: branching.into(),
            steps: 0,
            sums: vec![0; levels as usize * dim],
            ahead: vec![0; levels as usize * half * dim],
            last: vec![0; dim],
        }
    }
}

impl Process for SubtractionTree {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        let (dim, k) = (row.len(), self.branching);
        let half = (k - 1) / 2;
        self.steps += 1;
        let mut width = 1u64; // k^level
        for (level, sum) in self.sums.chunks_exact_mut(dim).enumerate() {
            // The multiple of k^level that is nearest to the step, before and now.
            let nearest = |step: u64| (step + (width - 1) / 2) / width;
            let (before, now) = (nearest(self.steps - 1), nearest(self.steps));
            if before == now {
                break;
            }
            let ahead = &mut self.ahead[level * half as usize * dim..][..half as usize * dim];
            let parent = (now + half) / k;
            if (before + half) / k == parent {
                if before < parent * k {
                    let node = (half - (parent * k - before)) as usize;
                    for (sum, noise) in sum.iter_mut().zip(&ahead[node * dim..][..dim]) {
                        *sum += noise;
                    }
                } else {
                    source.fill(row, self.quarter_units);
                    for (sum, noise) in sum.iter_mut().zip(&*row) {
                        *sum += noise;
                    }
                }
            } else {
                sum.fill(0);
                for noise in ahead.chunks_exact_mut(dim) {
                    source.fill(noise, self.quarter_units);
                    for (sum, noise) in sum.iter_mut().zip(&*noise) {
                        *sum -= noise;
                    }
                }
            }
            width = width.saturating_mul(k);
        }
        for (c, (v, last)) in row.iter_mut().zip(&mut self.last).enumerate() {
            let sum: i64 = self.sums.iter().skip(c).step_by(dim).sum();
            *v = sum - *last;
            *last = sum;
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.steps);
        out.integers(&self.sums);
        out.integers(&self.ahead);
        out.integers(&self.last);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        self.steps = input.u64()?;
        replace(&mut self.sums, input.integers()?)?;
        replace(&mut self.ahead, input.integers()?)?;
        replace(&mut self.last, input.integers()?)
    }

    fn wipe(&mut self) {
        self.sums.zeroize();
        self.ahead.zeroize();
        self.last.zeroize();
    }
}
