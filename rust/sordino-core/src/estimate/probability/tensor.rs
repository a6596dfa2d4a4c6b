//! Features of the points of a tensor grid.

use crate::error::Error;
use crate::estimate::recovery::Operator;
use crate::linear_algebra::{Matrix, from_rows, rotate_axis_into, squared_columns};
use crate::scratch::REALS;

/// The features of one axis: their number T, the number G of grid points, entries of the T × G matrix row by row.
pub type Factor<'a> = (usize, usize, &'a [f64]);

/// The rows of `C = diag(a) (F_1 ⊗ … ⊗ F_d)` with `a_m > 0`. It is never formed: a product is a contraction of each
/// axis in turn, `Σ_j Π_{i≤j} T_i Π_{i≥j} G_i` multiplications.
#[derive(Debug)]
pub(super) struct TensorOperator {
    factors: Vec<Matrix>,
    features: usize,
    points: usize,
    /// Features of positive weight, rising, and their weights.
    measured: Vec<(usize, f64)>,
    /// `max a² Π ‖F_j‖_F²`.
    squared_norm_bound: f64,
}

impl TensorOperator {
    /// The operator of these factors and of `a`, one weight for each of `Π T_j` features.
    pub(super) fn new(factors: &[Factor<'_>], weights: &[f64]) -> Result<Self, Error> {
        if factors.is_empty() {
            return Err(Error::invalid("factors", "there must be at least one"));
        }
        let (mut features, mut points) = (1, 1);
        for (rows, columns, entries) in factors {
            Error::check_len("factors", size(*rows, *columns)?, entries.len())?;
            if entries.is_empty() {
                return Err(Error::invalid("factors", "none may be empty"));
            }
            if entries.iter().any(|f| !f.is_finite()) {
                return Err(Error::invalid("factors", "every entry must be finite"));
            }
            (features, points) = (size(features, *rows)?, size(points, *columns)?);
        }
        Error::check_len("weights", features, weights.len())?;
        if weights.iter().any(|a| !a.is_finite() || *a < 0.0) {
            return Err(Error::invalid("weights", "every number must be finite and not negative"));
        }
        let measured: Vec<(usize, f64)> = weights.iter().copied().enumerate().filter(|(_, a)| *a > 0.0).collect();
        if measured.is_empty() {
            return Err(Error::invalid("weights", "must not all be zero"));
        }
        let factors: Vec<Matrix> = factors.iter().map(|(rows, columns, f)| from_rows(*rows, *columns, f)).collect();
        let most = weights.iter().copied().fold(0.0, f64::max);
        let squares = factors.iter().map(|f| squared_columns(f).iter().sum::<f64>());
        let squared_norm_bound = most * most * squares.product::<f64>();
        if !squared_norm_bound.is_finite() {
            return Err(Error::Overflow("factors and weights are too large: their square overflows".into()));
        }
        Ok(Self { factors, features, points, measured, squared_norm_bound })
    }

    /// At least `‖C‖²`.
    pub(super) fn squared_norm_bound(&self) -> f64 {
        self.squared_norm_bound
    }

    /// `a_m y_m` where it was measured.
    pub(super) fn weighted(&self, y: &[f64]) -> Vec<f64> {
        self.measured.iter().map(|(m, a)| a * y[*m]).collect()
    }

    /// `F` or `Fᵀ` times an array.
    fn contract(&self, transposed: bool, values: &[f64], out: &mut [f64]) {
        let mut array = REALS.take(values.len());
        array.copy_from_slice(values);
        // Each axis goes from the front to the back once; in the end they are in order again.
        for factor in &self.factors {
            let (from, to) =
                if transposed { (factor.nrows(), factor.ncols()) } else { (factor.ncols(), factor.nrows()) };
            let mut image = REALS.take(array.len() / from * to);
            rotate_axis_into(&mut image, factor, transposed, &array);
            array = image;
        }
        out.copy_from_slice(&array);
    }
}

impl Operator for TensorOperator {
    fn rows(&self) -> usize {
        self.measured.len()
    }

    fn columns(&self) -> usize {
        self.points
    }

    fn apply(&self, w: &[f64], out: &mut [f64]) {
        let mut image = REALS.take(self.features);
        self.contract(false, w, &mut image);
        for (slot, (m, a)) in out.iter_mut().zip(&self.measured) {
            *slot = a * image[*m];
        }
    }

    fn adjoint(&self, rho: &[f64], out: &mut [f64]) {
        let mut weighted = REALS.take(self.features);
        weighted.fill(0.0);
        for ((m, a), rho) in self.measured.iter().zip(rho) {
            weighted[*m] = a * rho;
        }
        self.contract(true, &weighted, out);
    }
}

/// A product of sizes that must be addressable.
fn size(a: usize, b: usize) -> Result<usize, Error> {
    a.checked_mul(b).ok_or_else(|| Error::Overflow("the product of the factors is too large".into()))
}
