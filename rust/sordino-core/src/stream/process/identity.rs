//! Fresh noise for every item: `C = I`.

use super::Process;
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer};

/// `v_t = k_t`.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Identity {
    pub quarter_units: u64,
}

impl Process for Identity {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, self.quarter_units);
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, _out: &mut Writer) {}

    fn load(&mut self, _input: &mut Reader<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn wipe(&mut self) {}
}
