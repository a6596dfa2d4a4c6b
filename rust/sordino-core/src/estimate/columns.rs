//! The matrix `C` of a projection: by its columns.

use crate::error::Error;
use crate::parallel::fill;

/// Multiplications above which the products with the columns are shared between threads.
const PARALLEL: usize = 1 << 18;

/// A matrix `C` with r rows, known by its products and its columns. Both must be finite.
pub trait Columns {
    /// Number of rows, r.
    fn rows(&self) -> usize;

    /// Number of columns, N.
    fn count(&self) -> usize;

    /// `Cᵀ p`, one number a column.
    fn product(&self, p: &[f64], out: &mut [f64]);

    /// Column `j`.
    fn column(&self, j: usize, out: &mut [f64]);
}

/// A dense matrix, stored column by column.
#[derive(Debug, Clone)]
pub struct DenseColumns {
    rows: usize,
    count: usize,
    entries: Vec<f64>,
}

impl DenseColumns {
    /// The matrix with these entries, column by column.
    ///
    /// # Errors
    /// If it is empty, the length does not match, or an entry is not finite.
    pub fn new(rows: usize, count: usize, entries: Vec<f64>) -> Result<Self, Error> {
        let size = rows.checked_mul(count).ok_or_else(|| Error::Overflow("the matrix is too large".into()))?;
        Error::check_len("columns", size, entries.len())?;
        if size == 0 {
            return Err(Error::invalid("columns", "must not be empty"));
        }
        if entries.iter().any(|c| !c.is_finite()) {
            return Err(Error::invalid("columns", "every entry must be finite"));
        }
        Ok(Self { rows, count, entries })
    }

    /// The matrix with these entries, row by row.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_rows(rows: usize, count: usize, entries: &[f64]) -> Result<Self, Error> {
        let size = rows.checked_mul(count).ok_or_else(|| Error::Overflow("the matrix is too large".into()))?;
        Error::check_len("columns", size, entries.len())?;
        let transposed = (0..size).map(|k| entries[k % rows * count + k / rows]).collect();
        Self::new(rows, count, transposed)
    }
}

impl Columns for DenseColumns {
    fn rows(&self) -> usize {
        self.rows
    }

    fn count(&self) -> usize {
        self.count
    }

    fn product(&self, p: &[f64], out: &mut [f64]) {
        if self.entries.len() < PARALLEL {
            out.iter_mut().zip(self.entries.chunks_exact(self.rows)).for_each(|(slot, column)| *slot = dot(column, p));
        } else {
            // Each number is one thread's work: the result does not depend on how many there are.
            fill(out, |j| dot(&self.entries[j * self.rows..(j + 1) * self.rows], p));
        }
    }

    fn column(&self, j: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.entries[j * self.rows..(j + 1) * self.rows]);
    }
}

/// `⟨a, b⟩`, in an order that the compiler can vectorise.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum::<f64>()
}
