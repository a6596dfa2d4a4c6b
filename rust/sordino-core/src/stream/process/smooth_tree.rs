//! The smooth binary tree (Andersson & Pagh, "A smooth binary mechanism for efficient private continual
//! observation", `NeurIPS` 2023): only leaves whose labels have `ones` ones are used.
//!
//! A prefix ends before a leaf, and is the sum of the left siblings on the ones of its label: `ones` nodes at every
//! step, the same variance always. An item is in the left nodes on the zeros of its own label, `height − ones`.

use super::Process;
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use zeroize::Zeroize;

/// The next larger integer with as many ones (Gosper).
fn next_label(label: u64) -> u64 {
    let lowest = label & label.wrapping_neg();
    let ripple = label + lowest;
    ripple | (((label ^ ripple) >> 2) / lowest)
}

/// Noise of the left node at every bit of the label.
#[derive(Debug, Clone)]
pub(in crate::stream) struct SmoothTree {
    quarter_units: u64,
    label: u64,
    /// By bit and coordinate.
    nodes: Vec<i64>,
    last: Vec<i64>,
}

impl SmoothTree {
    pub(crate) fn new(height: u32, ones: u32, dim: usize, quarter_units: u64) -> Self {
        let label = (1 << ones) - 1;
        Self { quarter_units, label, nodes: vec![0; height as usize * dim], last: vec![0; dim] }
    }
}

impl Process for SmoothTree {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        let dim = row.len();
        let label = next_label(self.label);
        let highest = (label ^ self.label).ilog2();
        self.label = label;
        for bit in (0..=highest as usize).filter(|bit| label >> bit & 1 == 1) {
            source.fill(&mut self.nodes[bit * dim..][..dim], self.quarter_units);
        }
        for (c, (v, last)) in row.iter_mut().zip(&mut self.last).enumerate() {
            let bits = (0..64).filter(|bit| label >> bit & 1 == 1);
            let sum: i64 = bits.map(|bit| self.nodes[bit * dim + c]).sum();
            *v = sum - *last;
            *last = sum;
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.label);
        out.integers(&self.nodes);
        out.integers(&self.last);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        self.label = input.u64()?;
        replace(&mut self.nodes, input.integers()?)?;
        replace(&mut self.last, input.integers()?)
    }

    fn wipe(&mut self) {
        self.nodes.zeroize();
        self.last.zeroize();
    }
}
