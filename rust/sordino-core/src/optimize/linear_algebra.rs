//! Every call into the linear-algebra library: one place to read, one place to change.
//!
//! `faer` without its thread pool: one thread, so that a result does not depend on the number of cores.

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Mat, MatRef, Par, Side};

/// A dense matrix, stored by columns.
pub(crate) type Matrix = Mat<f64>;

/// Eigenvalues of a Gram matrix below this fraction of the largest are left to the singular values.
const TRUSTED: f64 = 1e-10;

/// How the spectrum of a Gram matrix is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// Eigenvalues of `M Mᵀ`: fast, squares the condition number.
    Fast,
    /// Singular values of `M`.
    Careful,
}

/// A matrix from its rows.
pub(super) fn from_rows(rows: usize, columns: usize, entries: &[f64]) -> Matrix {
    Mat::from_fn(rows, columns, |i, j| entries[i * columns + j])
}

/// The entries of a matrix row by row.
pub(super) fn to_rows(matrix: &Matrix) -> Vec<f64> {
    (0..matrix.nrows()).flat_map(|i| (0..matrix.ncols()).map(move |j| matrix[(i, j)])).collect()
}

/// `X Y`.
pub(super) fn product(x: &Matrix, y: &Matrix) -> Matrix {
    x * y
}

/// `Xᵀ Y`.
pub(super) fn transposed_product(x: &Matrix, y: &Matrix) -> Matrix {
    x.transpose() * y
}

/// `Xᵀ`.
pub(super) fn transpose(x: &Matrix) -> Matrix {
    x.transpose().to_owned()
}

/// The columns with these indices.
pub(super) fn select_columns(matrix: &Matrix, columns: &[usize]) -> Matrix {
    Mat::from_fn(matrix.nrows(), columns.len(), |i, j| matrix[(i, columns[j])])
}

/// The rows with these indices.
pub(super) fn select_rows(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])
}

/// Multiplies column `j` by `factor(j)`.
pub(super) fn scale_columns(matrix: &mut Matrix, factor: impl Fn(usize) -> f64) {
    for j in 0..matrix.ncols() {
        let by = factor(j);
        for value in matrix.col_as_slice_mut(j) {
            *value *= by;
        }
    }
}

/// Multiplies row `i` by `factor(i)`.
pub(super) fn scale_rows(matrix: &mut Matrix, factor: impl Fn(usize) -> f64) {
    let factors: Vec<f64> = (0..matrix.nrows()).map(factor).collect();
    for j in 0..matrix.ncols() {
        for (value, by) in matrix.col_as_slice_mut(j).iter_mut().zip(&factors) {
            *value *= by;
        }
    }
}

/// Squared Euclidean norm of every column.
pub(super) fn squared_columns(matrix: &Matrix) -> Vec<f64> {
    (0..matrix.ncols()).map(|j| matrix.col_as_slice(j).iter().map(|v| v * v).sum()).collect()
}

/// Squared Euclidean norm of every row.
pub(super) fn squared_rows(matrix: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; matrix.nrows()];
    for j in 0..matrix.ncols() {
        for (sum, value) in sums.iter_mut().zip(matrix.col_as_slice(j)) {
            *sum += value * value;
        }
    }
    sums
}

/// Largest absolute entry; not a number if one is.
pub(super) fn largest(matrix: &Matrix) -> f64 {
    let larger = |a: f64, b: &f64| if b.is_nan() { f64::NAN } else { a.max(b.abs()) };
    (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j)).fold(0.0, larger)
}

/// Largest absolute entry of `X Y − A`.
pub(super) fn residual(x: &Matrix, y: &Matrix, a: &Matrix) -> f64 {
    largest(&(product(x, y) - a))
}

/// Left singular vectors and singular values of `M`, as many as rows; `None` if the iteration fails.
pub(super) fn left_singular(matrix: &Matrix, precision: Precision) -> Option<(Matrix, Vec<f64>)> {
    if precision == Precision::Fast {
        let n = matrix.nrows();
        let mut gram = Mat::zeros(n, n);
        let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        let accumulate = Accum::Replace;
        triangular::matmul(&mut gram, lower, accumulate, matrix, full, matrix.transpose(), full, 1.0, Par::Seq);
        let eigen = gram.self_adjoint_eigen(Side::Lower).ok()?;
        let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        if least > TRUSTED * most {
            return Some((eigen.U().to_owned(), values.iter().map(|w| w.sqrt()).collect()));
        }
    }
    let (left, values, _) = thin_singular(matrix)?;
    Some((left, values))
}

/// `U`, `s`, `V` of the thin singular value decomposition, values falling.
pub(super) fn thin_singular(matrix: &Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    let svd = matrix.thin_svd().ok()?;
    Some((svd.U().to_owned(), svd.S().column_vector().iter().copied().collect(), svd.V().to_owned()))
}

/// Singular values, falling.
pub(super) fn singular_values(matrix: &Matrix) -> Option<Vec<f64>> {
    matrix.singular_values().ok()
}

/// The upper triangular factor of `M = Q R`, for at least as many rows as columns; signs are arbitrary.
pub(super) fn upper_factor(matrix: &Matrix) -> Matrix {
    matrix.qr().thin_R().to_owned()
}

/// `R^{-1} X` for upper triangular `R`.
pub(super) fn solve_upper(upper: &Matrix, mut x: Matrix) -> Matrix {
    solve_upper_triangular_in_place(upper.as_ref(), x.as_mut(), Par::Seq);
    x
}

/// `X C^{-1}` for lower triangular `C`.
pub(super) fn divide_by_lower(x: &Matrix, lower: &Matrix) -> Matrix {
    let mut transposed = transpose(x);
    solve_upper_triangular_in_place(lower.transpose(), transposed.as_mut(), Par::Seq);
    transpose(&transposed)
}

/// Solution of a symmetric positive definite system; `None` if it is not numerically definite.
pub(super) fn solve_definite(matrix: &Matrix, right: &[f64]) -> Option<Vec<f64>> {
    let x = solve_definite_columns(matrix, Mat::from_fn(right.len(), 1, |i, _| right[i]))?;
    Some(x.col_as_slice(0).to_vec())
}

/// `M^{-1} X` for symmetric positive definite `M`; `None` if it is not numerically definite.
pub(crate) fn solve_definite_columns(matrix: &Matrix, mut x: Matrix) -> Option<Matrix> {
    let factor = matrix.llt(Side::Lower).ok()?;
    solve_lower_triangular_in_place(factor.L(), x.as_mut(), Par::Seq);
    solve_upper_triangular_in_place(factor.L().transpose(), x.as_mut(), Par::Seq);
    Some(x)
}

/// `Xᵀ Y` for matrices with so many rows, stored one column after another.
pub(crate) fn transposed_product_of_columns(rows: usize, x: &[f64], y: &[f64]) -> Matrix {
    let view = |entries| MatRef::from_column_major_slice(entries, rows, entries.len() / rows);
    view(x).transpose() * view(y)
}
