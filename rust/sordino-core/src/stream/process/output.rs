//! Fresh noise for every running sum: `C = A`, so that `v_t = k_t − k_{t−1}`.

use super::Process;
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, replace};
use zeroize::Zeroize;

/// The noise of the last published sum.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Output {
    quarter_units: u64,
    last: Vec<i64>,
}

impl Output {
    pub(crate) fn new(dim: usize, quarter_units: u64) -> Self {
        Self { quarter_units, last: vec![0; dim] }
    }
}

impl Process for Output {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, self.quarter_units);
        for (k, last) in row.iter_mut().zip(&mut self.last) {
            // Noise is clipped at 3·2^61: twice that saturates, and is clamped in what is published.
            let v = k.saturating_sub(*last);
            *last = *k;
            *k = v;
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        out.integers(&self.last);
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        replace(&mut self.last, input.integers()?)
    }

    fn wipe(&mut self) {
        self.last.zeroize();
    }
}
