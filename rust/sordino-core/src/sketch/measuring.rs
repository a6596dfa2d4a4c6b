//! The sketch of a signal given by its coefficients: what recoveries invert.

use super::{Matrix, Operator, sparse};
use crate::error::Error;
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
    /// [`Error::InvalidParameter`] if the basis has another dimension.
    pub fn new(sketch: &'a Operator, basis: &'a dyn Basis) -> Result<Self, Error> {
        if basis.len() < sketch.cells() || basis.len() > sketch.padded() {
            return Err(Error::invalid("basis", "must have as many elements as there are cells"));
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

/// The columns of some cells of a sparse sketch, `Φ/√c`: of a signal that is zero elsewhere.
#[derive(Debug)]
pub struct Candidates<'a> {
    sketch: &'a Operator,
    stored: sparse::Stored,
    count: usize,
}

impl<'a> Candidates<'a> {
    /// Those of listed cells.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the sketch is not sparse, or a cell does not exist.
    pub fn new(sketch: &'a Operator, cells: &[u64]) -> Result<Self, Error> {
        let Matrix::Sparse(columns) = &sketch.matrix else {
            return Err(Error::invalid("sketch", "candidates are columns of a sparse sketch"));
        };
        if cells.iter().any(|cell| *cell >= sketch.cells() as u64) {
            return Err(Error::invalid("candidates", "must be below the number of keys"));
        }
        Ok(Self { sketch, stored: columns.stored_of(cells), count: cells.len() })
    }

    /// `2·row + 1` for a plus, `2·row` for a minus: of every entry, column by column.
    pub fn entries(&self) -> &[u32] {
        self.stored.entries()
    }
}

impl recovery::Operator for Candidates<'_> {
    fn rows(&self) -> usize {
        self.sketch.measurements()
    }

    fn columns(&self) -> usize {
        self.count
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        self.stored.forward(x, out);
        self.sketch.normalize(out);
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        self.stored.adjoint(y, out);
        self.sketch.normalize(out);
    }
}

/// Another operator beside a multiple of the identity: numbers that something else has spoilt have a column of their own,
/// so that `λ‖·‖₁` of both is Huber's loss.
#[derive(Debug)]
pub struct Robust<'a> {
    candidates: &'a Candidates<'a>,
    size: f64,
}

impl<'a> Robust<'a> {
    /// Columns of a norm `size` for single numbers, behind those of the candidates.
    pub fn new(candidates: &'a Candidates<'a>, size: f64) -> Self {
        Self { candidates, size }
    }
}

impl recovery::Operator for Robust<'_> {
    fn rows(&self) -> usize {
        self.candidates.rows()
    }

    fn columns(&self) -> usize {
        self.candidates.columns() + self.rows()
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        let (keys, own) = x.split_at(self.candidates.columns());
        self.candidates.apply(keys, out);
        out.iter_mut().zip(own).for_each(|(out, own)| *out += self.size * own);
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        let (keys, own) = out.split_at_mut(self.candidates.columns());
        self.candidates.adjoint(y, keys);
        own.iter_mut().zip(y).for_each(|(own, y)| *own = self.size * y);
    }
}
