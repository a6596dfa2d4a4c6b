//! The matrix `A` of a recovery: by its products.

/// A linear map `A` from `R^N` to `R^k` whose columns have Euclidean norm about 1. Both products overwrite `out`, must
/// be finite, and must not depend on the number of threads.
pub trait Operator: Sync {
    /// Number of rows, k.
    fn rows(&self) -> usize;

    /// Number of columns, N.
    fn columns(&self) -> usize;

    /// `A x`, k numbers.
    fn apply(&self, x: &[f64], out: &mut [f64]);

    /// `Aᵀ y`, N numbers.
    fn adjoint(&self, y: &[f64], out: &mut [f64]);
}
