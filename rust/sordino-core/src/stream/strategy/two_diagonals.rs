//! Two diagonals around a buffered Toeplitz matrix.

use super::{StreamStrategy, of_every_step};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::participation::Participation;
use crate::stream::process::{self, FRACTION, Process, Tables};
use crate::stream::state::Writer;
use crate::toeplitz;
use crate::upper::Upper;
use std::sync::Arc;

/// `C = diag(1/r)(I + S L D)` as rounded.
#[derive(Debug)]
pub(in crate::stream) struct TwoDiagonals {
    tables: Arc<Tables>,
    norm: Upper,
    rounding: Upper,
    largest_scale: f64,
    variances: Vec<f64>,
}

impl TwoDiagonals {
    /// Tables, sensitivity and errors of a factorization.
    pub(crate) fn new(factors: toeplitz::TwoDiagonals) -> Self {
        let (variances, (norm, rounding)) =
            rayon::join(|| factors.running_variances(), || (factors.column_norm(), rounding(&factors)));
        let largest_scale = factors.noise().values().fold(0.0, f64::max);
        let (kernel, [scale, weight, noise]) = factors.into_parts();
        let tables = Tables { mu: kernel.mu().to_vec(), omega: kernel.omega().to_vec(), scale, weight, noise };
        Self { tables: Arc::new(tables), norm, rounding, largest_scale, variances }
    }
}

/// Two floors a step in a buffer, one in each product, one in the scaled sum.
fn rounding(factors: &toeplitz::TwoDiagonals) -> Upper {
    let kernel = factors.kernel();
    let held: f64 = kernel.omega().iter().zip(kernel.mu()).map(|(w, m)| 2.0 * w.value() / m.value() + 1.0).sum();
    let unit = 2f64.powi(-(FRACTION as i32));
    let steps = factors.scale().values().zip(factors.noise().values());
    let square: f64 = steps.map(|(s, r)| ((1.0 + unit * (s * held + 1.0)) / r).powi(2)).sum();
    Upper::rounded(square * (1.0 + 1e-9), 1).sqrt()
}

impl StreamStrategy for TwoDiagonals {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        self.norm * Upper::integer(pattern.count(steps).into())
    }

    fn rounding(&self, _steps: u64) -> Upper {
        self.rounding
    }

    fn largest_scale(&self) -> f64 {
        self.largest_scale
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        of_every_step(filter, steps, &self.variances)
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::TwoDiagonals::new(Arc::clone(&self.tables), dim, quarter_units))
    }

    fn parameters(&self, out: &mut Writer) {
        let tables = &*self.tables;
        for part in [&tables.mu, &tables.omega] {
            out.dyadic(part.iter().copied());
        }
        for diagonal in [&tables.scale, &tables.weight, &tables.noise] {
            out.dyadic(diagonal.iter());
        }
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        16 * self.tables.mu.len() as u64
    }

    fn operations(&self, _steps: u64) -> f64 {
        4.0 * self.tables.mu.len() as f64 + 4.0
    }
}
