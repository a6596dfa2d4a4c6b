//! The matrix `C` of a projection as a tensor product.

use super::Columns;
use crate::error::Error;
use crate::linear_algebra::{Matrix, from_rows, rotate_axis_into};
use crate::scratch::REALS;

/// A feature matrix of one axis: (features T, grid points G, entries row by row).
pub type Factor<'a> = (usize, usize, &'a [f64]);

/// Rows of `diag(a) (F_1 ⊗ … ⊗ F_d)` with `a_m > 0`, never formed: products are contractions axis by axis.
///
/// Features `m` and columns `g` are multi-indices in C order, the last axis fastest.
#[derive(Debug)]
pub struct TensorColumns {
    factors: Vec<Matrix>,
    features: usize,
    count: usize,
    /// Features of positive weight, rising, and their weights.
    rows: Vec<(usize, f64)>,
}

impl TensorColumns {
    /// The matrix with these factors, and weights `a` of the features, one for each of `Π T_j`.
    ///
    /// # Errors
    /// If there is no factor or one is empty, a length does not match, an entry is not finite, a weight is negative or
    /// not finite, or all are zero.
    pub fn new(factors: &[Factor<'_>], weights: &[f64]) -> Result<Self, Error> {
        if factors.is_empty() {
            return Err(Error::invalid("factors", "must not be empty"));
        }
        let size = |a: usize, b: usize| {
            a.checked_mul(b).ok_or_else(|| Error::Overflow("the product of the factors is too large".into()))
        };
        let (mut features, mut count) = (1, 1);
        for (rows, columns, entries) in factors {
            Error::check_len("factors", size(*rows, *columns)?, entries.len())?;
            if entries.is_empty() {
                return Err(Error::invalid("factors", "none may be empty"));
            }
            if entries.iter().any(|f| !f.is_finite()) {
                return Err(Error::invalid("factors", "every entry must be finite"));
            }
            (features, count) = (size(features, *rows)?, size(count, *columns)?);
        }
        Error::check_len("weights", features, weights.len())?;
        if weights.iter().any(|a| !a.is_finite() || *a < 0.0) {
            return Err(Error::invalid("weights", "every number must be finite and not negative"));
        }
        let rows: Vec<(usize, f64)> = weights.iter().copied().enumerate().filter(|(_, a)| *a > 0.0).collect();
        if rows.is_empty() {
            return Err(Error::invalid("weights", "must not all be zero"));
        }
        let factors = factors.iter().map(|(rows, columns, entries)| from_rows(*rows, *columns, entries)).collect();
        Ok(Self { factors, features, count, rows })
    }

    /// Entries `a_m y_m` of positive weight.
    pub fn weighted(&self, y: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|(m, a)| a * y[*m]).collect()
    }

    /// `F` or `Fᵀ` times `values`.
    fn contract(&self, transposed: bool, values: &[f64], out: &mut [f64]) {
        let mut now = REALS.take(values.len());
        now.copy_from_slice(values);
        for factor in &self.factors {
            let (to, from) = if transposed {
                (factor.ncols(), factor.nrows())
            } else {
                (factor.nrows(), factor.ncols())
            };
            // Every axis goes from the front to the back once: at the end they are in order.
            let mut next = REALS.take(now.len() / from * to);
            rotate_axis_into(&mut next, factor, transposed, &now);
            now = next;
        }
        out.copy_from_slice(&now);
    }

    /// Column `j` of `F`.
    fn features_of(&self, mut j: usize) -> Vec<f64> {
        let mut image = vec![1.0];
        for factor in self.factors.iter().rev() {
            let feature = factor.col_as_slice(j % factor.ncols());
            j /= factor.ncols();
            image = feature.iter().flat_map(|f| image.iter().map(move |g| f * g)).collect();
        }
        image
    }
}

impl Columns for TensorColumns {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn count(&self) -> usize {
        self.count
    }

    fn product(&self, p: &[f64], out: &mut [f64]) {
        let mut values = vec![0.0; self.features];
        for ((m, a), p) in self.rows.iter().zip(p) {
            values[*m] = a * p;
        }
        self.contract(true, &values, out);
    }

    fn column(&self, j: usize, out: &mut [f64]) {
        let image = self.features_of(j);
        for (slot, (m, a)) in out.iter_mut().zip(&self.rows) {
            *slot = a * image[*m];
        }
    }
}
