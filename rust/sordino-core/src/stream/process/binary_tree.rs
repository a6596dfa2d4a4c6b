//! The binary tree: every prefix is a sum of closed nodes, one for each bit of the step.
//!
//! `T_t = Σ` of the estimates of the nodes of `t`'s binary expansion. A node's own measurement is its estimate in
//! the plain tree (Chan, Shi & Song 2011; Dwork, Naor, Pitassi & Rothblum 2010). With averaging (Honaker 2015, from
//! below) a node of height `h` has `a·own + (1 − a)(left + right)`, `a = 2^h/(2^{h+1} − 1)`. What neighbours measure
//! cancels in `own − left − right`, so the rounded combination is a post-processing of measured integers.

use super::Process;
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use zeroize::Zeroize;

/// Bits of the weight `a`.
const WEIGHT_BITS: u32 = 32;

/// `2^32·a` for a node of height `h`, to the nearest.
pub(in crate::stream) fn own_weight(height: u32) -> i64 {
    let (numerator, denominator) = (1u128 << (height + WEIGHT_BITS), (1u128 << (height + 1)) - 1);
    ((numerator + denominator / 2) / denominator) as i64
}

/// Noise of the nodes that wait for their sibling.
#[derive(Debug, Clone)]
pub(in crate::stream) struct BinaryTree {
    quarter_units: u64,
    averaged: bool,
    steps: u64,
    /// By height and coordinate.
    waiting: Vec<i64>,
    /// Noise of the sum published last.
    last: Vec<i64>,
}

impl BinaryTree {
    pub(crate) fn new(levels: u32, averaged: bool, dim: usize, quarter_units: u64) -> Self {
        Self { quarter_units, averaged, steps: 0, waiting: vec![0; levels as usize * dim], last: vec![0; dim] }
    }
}

impl Process for BinaryTree {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        let dim = row.len();
        let closed = self.steps.trailing_ones() as usize;
        source.fill(row, self.quarter_units); // the leaf, or the one node that counts
        if self.averaged {
            let mut own = vec![0; if closed > 0 { dim } else { 0 }];
            for height in 0..closed {
                source.fill(&mut own, self.quarter_units);
                let weight = i128::from(own_weight(height as u32 + 1));
                let left = &self.waiting[height * dim..][..dim];
                for ((estimate, own), left) in row.iter_mut().zip(&own).zip(left) {
                    let children = *estimate + left;
                    *estimate = children + ((weight * i128::from(own - children)) >> WEIGHT_BITS) as i64;
                }
            }
        }
        self.steps += 1;
        self.waiting[closed * dim..][..dim].copy_from_slice(row);
        for (c, (v, last)) in row.iter_mut().zip(&mut self.last).enumerate() {
            let sum: i64 = (0..64 - self.steps.leading_zeros() as usize)
                .filter(|height| self.steps >> height & 1 == 1)
                .map(|height| self.waiting[height * dim + c])
                .sum();
            *v = sum - *last;
            *last = sum;
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.steps);
        out.integers(&self.waiting);
        out.integers(&self.last);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        self.steps = input.u64()?;
        replace(&mut self.waiting, input.integers()?)?;
        replace(&mut self.last, input.integers()?)
    }

    fn wipe(&mut self) {
        self.waiting.zeroize();
        self.last.zeroize();
    }
}
