//! Sketches: random linear maps from a large table to few numbers, made from a public seed and never stored.
//!
//! | file | concept |
//! |---|---|
//! | `words.rs` | public pseudo-random words, the same everywhere |
//! | `bernoulli.rs` | dense signs |
//! | `hadamard.rs` | subsampled randomised Hadamard transform |
//! | `sparse.rs` | a few signs a column |
//! | `accumulator.rs` | [`Sketch`]: integer sums that grow, merge and travel |
//! | `measuring.rs` | [`Measuring`]: a sketch of a signal given by its coefficients in a basis; [`Candidates`]: of some cells alone |
//!
//! In integers every entry is 1, −1 or 0, and all columns have the same number `c` of entries that are not zero: `k` for
//! dense signs and for Hadamard rows, `s` for sparse columns. So for `‖x − x'‖₁ ≤ 1` the sums of neighbours differ by at
//! most `c` in ℓ1 and `√c` in ℓ2, and both are attained, whatever the seed. Divided by `√c` the columns have unit norm:
//! then the sensitivities are `√c` and 1.
//!
//! Source: dense and sparse signs: Achlioptas 2003, Kane & Nelson 2014 (Section 1.1, block construction); Hadamard rows:
//! Ailon & Chazelle 2009; as private measurements: Li, Zhang, Winslett & Yang 2011 (Section 3.2), in ℓ1 with the
//! sensitivity `√k` of their `1/√k` signs.

mod accumulator;
mod bernoulli;
mod hadamard;
mod measuring;
mod sparse;
#[cfg(test)]
mod tests;
mod words;

pub use accumulator::Sketch;
pub use measuring::{Candidates, Measuring, Robust};
pub use words::VERSION;

use crate::error::Error;
use crate::scratch::{INTEGERS, REALS};
use crate::upper::Upper;
use crate::workload::MAX_LEN;
use bernoulli::Number;

/// Most cells of a sparse sketch, which nobody lists.
const MOST_KEYS: usize = 1 << 53;
/// Most entries of a sparse column.
const MOST_NONZEROS: u32 = 64;
/// Most numbers of a sketch.
const MOST_MEASUREMENTS: usize = 1 << 22;
/// Entries of sparse columns that a recovery keeps: 64 MB.
const MOST_STORED: usize = 1 << 24;
/// Word operations that may be spent on comparing all pairs of columns.
const PAIR_WORK: usize = 1 << 31;

/// What a sketch is made of. Kinds are never removed or re-meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Independent signs.
    Bernoulli,
    /// Rows of a Hadamard matrix under random signs of its columns.
    Hadamard,
    /// This many signs a column, one in each of as many blocks of rows.
    Sparse {
        /// Entries a column, from 1 to 64.
        nonzeros: u32,
    },
}

#[derive(Debug, Clone)]
enum Matrix {
    Bernoulli(bernoulli::Signs),
    Hadamard(hadamard::Rows),
    Sparse(sparse::Columns),
}

/// A `k × n` matrix `Φ` of signs and zeros. Two operators are equal if they were made from the same arguments.
#[derive(Debug, Clone)]
pub struct Operator {
    kind: Kind,
    cells: usize,
    measurements: usize,
    seed: u64,
    matrix: Matrix,
}

impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.cells, self.measurements, self.seed)
            == (other.kind, other.cells, other.measurements, other.seed)
    }
}

impl Eq for Operator {}

impl Operator {
    /// The operator of a public seed.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for no cells or more than 2^26 (2^53 of a sparse sketch), no measurements or more than cells or 2^22, or a
    /// number of entries a column that is not from 1 to 64 or above the measurements.
    pub fn new(kind: Kind, cells: usize, measurements: usize, seed: u64) -> Result<Self, Error> {
        // Columns of few signs are made one by one; the others are products with whole tables.
        let most = if matches!(kind, Kind::Sparse { .. }) { MOST_KEYS } else { MAX_LEN };
        if cells == 0 || cells > most {
            return Err(Error::invalid("cells", "must be from 1 to 2^26, or 2^53 keys of a sparse sketch"));
        }
        if measurements == 0 || measurements > cells.min(MOST_MEASUREMENTS) {
            return Err(Error::invalid("measurements", "must be at least 1, at most the number of cells and 2^22"));
        }
        let matrix = match kind {
            Kind::Bernoulli => Matrix::Bernoulli(bernoulli::Signs::new(seed, measurements)),
            Kind::Hadamard => Matrix::Hadamard(hadamard::Rows::new(seed, measurements, cells.next_power_of_two())),
            Kind::Sparse { nonzeros } => {
                if nonzeros == 0 || nonzeros > MOST_NONZEROS || nonzeros as usize > measurements {
                    return Err(Error::invalid("nonzeros", "must be from 1 to 64, at most the measurements"));
                }
                Matrix::Sparse(sparse::Columns::new(seed, measurements, nonzeros as usize))
            }
        };
        Ok(Self { kind, cells, measurements, seed, matrix })
    }

    /// What it is made of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Columns `n`.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Rows `k`.
    pub fn measurements(&self) -> usize {
        self.measurements
    }

    /// The public seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Entries of a column that are not zero, `c`: its ℓ1 norm and the square of its ℓ2 norm.
    pub fn column_entries(&self) -> usize {
        match self.kind {
            Kind::Bernoulli | Kind::Hadamard => self.measurements,
            Kind::Sparse { nonzeros } => nonzeros as usize,
        }
    }

    /// Cells that recoveries may use: the next power of two, columns beyond [`Self::cells`] being there as well.
    pub fn padded(&self) -> usize {
        self.cells.next_power_of_two()
    }

    /// `out += Φ x`, exact as long as `Σ|x|` and what was there fit 63 bits; takes the same time for every `x`.
    pub fn add_table(&self, x: &[i64], out: &mut [i64]) {
        match &self.matrix {
            Matrix::Bernoulli(signs) => signs.forward(x, out),
            Matrix::Hadamard(rows) => rows.forward(x, 0, &mut INTEGERS.take(rows.padded()), out),
            Matrix::Sparse(columns) => columns.forward(x, out),
        }
    }

    /// `out += weight·Φ e_cell`.
    #[inline]
    pub fn add_column(&self, cell: usize, weight: i64, out: &mut [i64]) {
        match &self.matrix {
            Matrix::Bernoulli(signs) => signs.add_column(cell, weight, out),
            Matrix::Hadamard(rows) => rows.add_column(cell, weight, out),
            Matrix::Sparse(columns) => columns.column(cell, |row, plus| out[row] += weight.signed(plus)),
        }
    }

    /// Calls `add(row, is_plus)` for every entry of a column that is not zero, in the order of the rows.
    #[inline(always)]
    pub fn column(&self, cell: usize, add: impl FnMut(usize, bool)) {
        match &self.matrix {
            Matrix::Bernoulli(signs) => signs.column(cell, add),
            Matrix::Hadamard(rows) => rows.column(cell, add),
            Matrix::Sparse(columns) => columns.column(cell, add),
        }
    }

    /// `out = Φ x/√c` in floating point, for public `x` of at most [`Self::padded`] entries.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        match &self.matrix {
            Matrix::Bernoulli(signs) => signs.forward(x, out),
            Matrix::Hadamard(rows) => rows.forward(x, 0.0, &mut REALS.take(rows.padded()), out),
            Matrix::Sparse(columns) => columns.forward(x, out),
        }
        self.normalize(out);
    }

    /// `out = Φᵀ y/√c`, for `out` of at most [`Self::padded`] entries.
    pub fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        match &self.matrix {
            Matrix::Bernoulli(signs) => signs.adjoint(y, out),
            Matrix::Hadamard(rows) => rows.adjoint(y, &mut REALS.take(rows.padded()), out),
            Matrix::Sparse(columns) => columns.adjoint(y, out),
        }
        self.normalize(out);
    }

    /// The columns of a sparse sketch, written down if they are not too many: products then need no hashing.
    fn stored(&self) -> Option<sparse::Stored> {
        match &self.matrix {
            Matrix::Sparse(columns) if self.padded() * self.column_entries() <= MOST_STORED => {
                Some(columns.stored(self.padded()))
            }
            _ => None,
        }
    }

    fn normalize(&self, values: &mut [f64]) {
        let scale = (self.column_entries() as f64).sqrt().recip();
        for value in values {
            *value *= scale;
        }
    }

    /// Bound of `‖Φ(e_i − e_j)‖` over `i ≠ j`, in ℓ1 or ℓ2: exact where all pairs can be compared.
    pub fn pair_norm(&self, l1: bool) -> Upper {
        let c = self.column_entries();
        let doubled = if l1 { Upper::integer(2 * c as u128) } else { Upper::integer(4 * c as u128).sqrt() };
        let pairs = self.cells.saturating_mul(self.cells) / 2;
        // Entries that differ have both signs: 2 in ℓ1, 4 in squares.
        let of = |differing: usize| {
            if l1 { Upper::integer(2 * differing as u128) } else { Upper::integer(4 * differing as u128).sqrt() }
        };
        match &self.matrix {
            Matrix::Hadamard(rows) => of(rows.largest_difference()).min(doubled),
            Matrix::Bernoulli(signs) if pairs.saturating_mul(self.measurements.div_ceil(64)) <= PAIR_WORK => {
                of(signs.largest_difference(self.cells)).min(doubled)
            }
            Matrix::Sparse(columns) if pairs.saturating_mul(c) <= PAIR_WORK => {
                let square = columns.largest_difference(self.cells, l1);
                let bound = Upper::integer(square as u128);
                if l1 { bound } else { bound.sqrt() }
            }
            _ => doubled,
        }
    }
}
