//! The sketch of a signal given by its coefficients: what recoveries invert.

use super::{Operator, sparse};
use crate::estimate::recovery;
use crate::scratch::REALS;
use crate::transform::Basis;

/// `A = (Φ/√c) Ψ`: unit columns on average, of as many coefficients as the basis has.
#[derive(Debug)]
pub struct Measuring<'a> {
    sketch: &'a Operator,
    basis: &'a dyn Basis,
    stored: Option<sparse::Stored>,
}

impl<'a> Measuring<'a> {
    /// A sketch and a basis of its cells, or of the next power of two of them.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`](crate::error::Error) if the basis has another dimension.
    pub fn new(sketch: &'a Operator, basis: &'a dyn Basis) -> Result<Self, crate::error::Error> {
        if basis.len() < sketch.cells() || basis.len() > sketch.padded() {
            return Err(crate::error::Error::invalid("basis", "must have as many elements as there are cells"));
        }
        Ok(Self { sketch, basis, stored: sketch.stored() })
    }
}

impl recovery::Operator for Measuring<'_> {
    fn rows(&self) -> usize {
        self.sketch.measurements()
    }

    fn columns(&self) -> usize {
        self.basis.len()
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        let mut signal = REALS.take(x.len());
        signal.copy_from_slice(x);
        self.basis.synthesize(&mut signal);
        match &self.stored {
            Some(columns) => {
                columns.forward(&signal, out);
                self.sketch.normalize(out);
            }
            None => self.sketch.apply(&signal, out),
        }
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        match &self.stored {
            Some(columns) => {
                columns.adjoint(y, out);
                self.sketch.normalize(out);
            }
            None => self.sketch.adjoint(y, out),
        }
        self.basis.analyze(out);
    }
}
