//! Buffers whose coefficients change from step to step: the least error of sums and averages, with its bound.

use super::{StreamStrategy, largest, of_every_step};
use crate::error::Error;
use crate::optimize;
use crate::stream::filter::Filter;
use crate::stream::participation::Participation;
use crate::stream::process::{self, FRACTION, Process};
use crate::stream::state::Writer;
use crate::upper::Upper;
use std::sync::Arc;

/// `C` as rounded, with what it does.
#[derive(Debug)]
pub(in crate::stream) struct TimeVarying {
    tables: Arc<optimize::TimeVarying>,
    norm: Upper,
    variances: Vec<f64>,
}

impl TimeVarying {
    /// Sensitivity and errors of a factorization.
    pub(crate) fn new(factors: optimize::TimeVarying) -> Self {
        let (norm, variances) = (factors.column_norm(), factors.running_variances());
        Self { tables: Arc::new(factors), norm, variances }
    }
}

impl StreamStrategy for TimeVarying {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        self.norm * Upper::integer(pattern.count(steps).into())
    }

    fn rounding(&self, _steps: u64) -> Upper {
        self.tables.rounding(FRACTION).sqrt()
    }

    fn largest_scale(&self) -> f64 {
        largest(self.tables.noise())
    }

    fn falling_products(&self) -> bool {
        // Gains of a step are at most 1 together, and every passage on the way to a step is less than 1.
        true
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        of_every_step(filter, steps, &self.variances)
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::TimeVarying::new(Arc::clone(&self.tables), dim, quarter_units))
    }

    fn parameters(&self, out: &mut Writer) {
        for t in 0..self.tables.steps() {
            for value in self.tables.gains(t).iter().chain(self.tables.passages(t)) {
                out.u64((*value).into());
            }
        }
        out.dyadic(self.tables.noise().iter().copied());
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        16 * self.tables.states() as u64
    }

    fn operations(&self, _steps: u64) -> f64 {
        4.0 * self.tables.states() as f64 + 2.0
    }
}
