//! The queries to be optimised for: a dense matrix, checked and scaled.

use super::linear_algebra::{Matrix, from_rows, largest, scale_columns};
use crate::error::Error;

/// A dense matrix `A`, m queries by n cells, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Queries<'a> {
    rows: usize,
    columns: usize,
    entries: &'a [f64],
}

impl<'a> Queries<'a> {
    /// The matrix with these entries, row by row.
    ///
    /// # Errors
    /// If the length does not match, an entry is not finite, or all are zero.
    pub fn new(rows: usize, columns: usize, entries: &'a [f64]) -> Result<Self, Error> {
        let size = rows.checked_mul(columns).ok_or_else(|| Error::Overflow("the matrix is too large".into()))?;
        Error::check_len("queries", size, entries.len())?;
        if entries.iter().any(|a| !a.is_finite()) {
            return Err(Error::invalid("queries", "every entry must be finite"));
        }
        if entries.iter().all(|a| *a == 0.0) {
            return Err(Error::invalid("queries", "every entry is zero: there is nothing to release"));
        }
        Ok(Self { rows, columns, entries })
    }

    /// Number of queries, m.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of cells, n.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entries of query `i`.
    pub(super) fn row(&self, i: usize) -> &'a [f64] {
        &self.entries[i * self.columns..][..self.columns]
    }

    /// `A/c` and the power of two `c` with `1 ≤ max |A/c| < 2`, so that squares neither overflow nor vanish.
    pub(super) fn scaled(&self) -> (Matrix, f64) {
        let mut matrix = from_rows(self.rows, self.columns, self.entries);
        // Two steps: the power of two itself may be subnormal, and its inverse infinite.
        let half = power_of_two(largest(&matrix).sqrt());
        scale_columns(&mut matrix, |_| 1.0 / half);
        let rest = power_of_two(largest(&matrix));
        scale_columns(&mut matrix, |_| 1.0 / rest);
        (matrix, half * rest)
    }
}

/// The largest power of two at or below a positive number.
fn power_of_two(value: f64) -> f64 {
    let power = 2f64.powi(value.log2().floor() as i32);
    if power > value { power / 2.0 } else { power }
}

#[cfg(test)]
mod tests {
    use super::Queries;

    #[test]
    fn scaling_is_exact() {
        for top in [3.0, 1.0, 5e-324, 1.7e308, 0.3] {
            let entries = [top, -top / 2.0];
            let (matrix, scale) = Queries::new(1, 2, &entries).unwrap().scaled();
            assert!((1.0..2.0).contains(&matrix[(0, 0)]), "{top}");
            assert_eq!(matrix[(0, 0)] * scale, top);
        }
    }

    #[test]
    fn refusals() {
        assert!(Queries::new(2, 2, &[1.0; 3]).is_err());
        assert!(Queries::new(1, 2, &[1.0, f64::NAN]).is_err());
        assert!(Queries::new(2, 1, &[0.0; 2]).is_err());
        assert!(Queries::new(usize::MAX, 2, &[1.0]).is_err());
    }
}
