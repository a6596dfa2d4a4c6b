//! Every call into the linear-algebra library: one place to read, one place to change.
//!
//! `faer` without its thread pool: one thread, so that a result does not depend on the number of cores.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::solvers::DenseSolveCore;
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, ColRef, Mat, MatMut, MatRef, Par, Side};
use std::hint::black_box;

/// A dense matrix, stored by columns.
pub(crate) type Matrix = Mat<f64>;

/// Eigenvalues of a Gram matrix below this fraction of the largest are left to the singular values.
const TRUSTED: f64 = 1e-10;

/// Diagonal entries of a triangular factor below this fraction of the largest are zero.
const RANK_TOLERANCE: f64 = 1e-13;
/// Columns that pass through the cache together.
const STRIP: usize = 256;
/// Numbers in a cache line.
const LINE: usize = 8;
/// Multiplications of a part of a product that has a thread of its own.
const PART: usize = 1 << 23;
/// Rows of the blocks that a tall matrix is decomposed by: so many for each column, at least.
const BLOCK: usize = 16;
const LEAST_BLOCK: usize = 1024;

/// How the spectrum of a Gram matrix is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Eigenvalues of `M Mᵀ`: fast, squares the condition number.
    Fast,
    /// Singular values of `M`.
    Careful,
}

/// Passes a result of the library on with clean vector registers.
///
/// Its kernels of matrix products leave the upper halves dirty (private-gemm-x86 0.1.22 has no `vzeroupper`), and on
/// Intel's processors all SSE code then waits for them: 4096 logarithms take 680 µs, not 18. A norm of a few numbers
/// is vector code that ends properly.
fn clean<T>(result: T) -> T {
    black_box(ColRef::from_slice(black_box(&[0.0; 32])).squared_norm_l2());
    result
}

/// A matrix from its rows.
pub(crate) fn from_rows(rows: usize, columns: usize, entries: &[f64]) -> Matrix {
    let mut matrix = Mat::zeros(rows, columns);
    each_entry(rows, columns, |i, j| matrix[(i, j)] = entries[i * columns + j]);
    matrix
}

/// Calls `f` for every entry, in an order that reads and writes whole cache lines of rows and of columns.
fn each_entry(rows: usize, columns: usize, mut f: impl FnMut(usize, usize)) {
    for start in (0..columns).step_by(LINE) {
        for i in 0..rows {
            (start..columns.min(start + LINE)).for_each(|j| f(i, j));
        }
    }
}

/// A matrix from its columns, all of one length.
pub(crate) fn from_columns(columns: impl Iterator<Item = Vec<f64>>) -> Matrix {
    let columns: Vec<Vec<f64>> = columns.collect();
    Mat::from_fn(columns.first().map_or(0, Vec::len), columns.len(), |i, j| columns[j][i])
}

/// The entries of a matrix row by row.
pub(crate) fn to_rows(matrix: &Matrix) -> Vec<f64> {
    let mut entries = vec![0.0; matrix.nrows() * matrix.ncols()];
    each_entry(matrix.nrows(), matrix.ncols(), |i, j| entries[i * matrix.ncols() + j] = matrix[(i, j)]);
    entries
}

/// `X Y`.
pub(crate) fn product(x: &Matrix, y: &Matrix) -> Matrix {
    clean(x * y)
}

/// `Xᵀ Y`.
pub(crate) fn transposed_product(x: &Matrix, y: &Matrix) -> Matrix {
    clean(x.transpose() * y)
}

/// `Xᵀ`.
pub(crate) fn transpose(x: &Matrix) -> Matrix {
    let mut transposed = Mat::zeros(x.ncols(), x.nrows());
    each_entry(x.nrows(), x.ncols(), |i, j| transposed[(j, i)] = x[(i, j)]);
    transposed
}

/// The identity.
pub(crate) fn identity(size: usize) -> Matrix {
    Mat::identity(size, size)
}

/// The columns of all, in order.
pub(crate) fn join_columns(parts: &[Matrix]) -> Matrix {
    from_columns(parts.iter().flat_map(|part| (0..part.ncols()).map(|j| part.col_as_slice(j).to_vec())))
}

/// The columns with these indices.
pub(crate) fn select_columns(matrix: &Matrix, columns: &[usize]) -> Matrix {
    Mat::from_fn(matrix.nrows(), columns.len(), |i, j| matrix[(i, columns[j])])
}

/// The rows with these indices.
pub(crate) fn select_rows(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])
}

/// Multiplies column `j` by `factor(j)`.
pub(crate) fn scale_columns(matrix: &mut Matrix, factor: impl Fn(usize) -> f64) {
    for j in 0..matrix.ncols() {
        let by = factor(j);
        for value in matrix.col_as_slice_mut(j) {
            *value *= by;
        }
    }
}

/// Multiplies row `i` by `factor(i)`.
pub(crate) fn scale_rows(matrix: &mut Matrix, factor: impl Fn(usize) -> f64) {
    let factors: Vec<f64> = (0..matrix.nrows()).map(factor).collect();
    for j in 0..matrix.ncols() {
        for (value, by) in matrix.col_as_slice_mut(j).iter_mut().zip(&factors) {
            *value *= by;
        }
    }
}

/// `Σ a_k b_k` in eight partial sums, which the processor adds at once.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut sums = [0.0; 8];
    let (heads, tails) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = heads.remainder().iter().zip(tails.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in heads.zip(tails) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The largest absolute value; not a number if one is.
pub(crate) fn most<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().fold(0.0, |a, b| if b.is_nan() { f64::NAN } else { a.max(b.abs()) })
}

/// Squared Euclidean norm of every column.
pub(crate) fn squared_columns(matrix: &Matrix) -> Vec<f64> {
    (0..matrix.ncols()).map(|j| dot(matrix.col_as_slice(j), matrix.col_as_slice(j))).collect()
}

/// Squared Euclidean norm of every row.
pub(crate) fn squared_rows(matrix: &Matrix) -> Vec<f64> {
    let mut sums = vec![0.0; matrix.nrows()];
    for j in 0..matrix.ncols() {
        for (sum, value) in sums.iter_mut().zip(matrix.col_as_slice(j)) {
            *sum += value * value;
        }
    }
    sums
}

/// Largest absolute entry; not a number if one is.
pub(crate) fn largest(matrix: &Matrix) -> f64 {
    most((0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j)))
}

/// Largest absolute entry of `X Y − A`.
pub(crate) fn residual(x: &Matrix, y: &Matrix, a: &Matrix) -> f64 {
    largest(&(product(x, y) - a))
}

/// Left singular vectors and singular values of `M`, as many as rows; `None` if the iteration fails.
pub(crate) fn left_singular(matrix: &Matrix, precision: Precision) -> Option<(Matrix, Vec<f64>)> {
    if precision == Precision::Fast {
        let n = matrix.nrows();
        let mut gram = Mat::zeros(n, n);
        let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        let accumulate = Accum::Replace;
        triangular::matmul(&mut gram, lower, accumulate, matrix, full, matrix.transpose(), full, 1.0, Par::Seq);
        let eigen = clean(gram.self_adjoint_eigen(Side::Lower)).ok()?;
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
pub(crate) fn thin_singular(matrix: &Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    let svd = clean(matrix.thin_svd()).ok()?;
    Some((svd.U().to_owned(), svd.S().column_vector().iter().copied().collect(), svd.V().to_owned()))
}

/// Singular values, falling.
pub(crate) fn singular_values(matrix: &Matrix) -> Option<Vec<f64>> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    // Those of the triangular factor are the same.
    if tall(columns, rows) {
        return singular_values(&upper_factor(&transpose(matrix)));
    }
    clean(matrix.singular_values()).ok()
}

/// The upper triangular factor of `M = Q R`, for at least as many rows as columns; signs are arbitrary.
pub(crate) fn upper_factor(matrix: &Matrix) -> Matrix {
    if tall(matrix.nrows(), matrix.ncols()) {
        return upper_factor(&stacked(&blocks(matrix).map(|block| upper_factor(&block)).collect::<Vec<_>>()));
    }
    clean(matrix.qr()).thin_R().to_owned()
}

/// `M⁺` for a matrix of full rank; `None` if it is not, numerically.
pub(crate) fn pseudo_inverse(matrix: &Matrix) -> Option<Matrix> {
    let wide = matrix.nrows() < matrix.ncols();
    // `M⁺ = R⁻¹ Qᵀ` of `M = Q R`, and `M⁺ = Q R⁻ᵀ` of `Mᵀ = Q R`.
    let (orthonormal, upper) = if wide { thin_qr(&transpose(matrix)) } else { thin_qr(matrix) };
    let diagonal = || (0..upper.nrows()).map(|i| upper[(i, i)].abs());
    let most = diagonal().fold(0.0, f64::max);
    if diagonal().any(|d| d.is_nan() || d <= RANK_TOLERANCE * most) {
        return None;
    }
    Some(if wide {
        divide_by_lower(orthonormal, &transpose(&upper))
    } else {
        solve_upper(&upper, transpose(&orthonormal))
    })
}

/// `M` or `Mᵀ` along one axis of an array of shape `outer × from × inner`, row-major.
pub(crate) fn along_axis(matrix: &Matrix, transposed: bool, values: &[f64], inner: usize) -> Vec<f64> {
    let matrix = if transposed { matrix.transpose() } else { matrix.as_ref() };
    let (to, from) = (matrix.nrows(), matrix.ncols());
    let mut out = Vec::with_capacity(values.len() / from * to);
    for block in values.chunks_exact(from * inner) {
        // Row-major from × inner is column-major inner × from.
        let image = clean(MatRef::from_column_major_slice(block, inner, from) * matrix.transpose());
        (0..to).for_each(|i| out.extend_from_slice(image.col_as_slice(i)));
    }
    out
}

/// `M` or `Mᵀ` along the first axis of a row-major array, which becomes the last one, over `out`.
pub(crate) fn rotate_axis_into(out: &mut [f64], matrix: &Matrix, transposed: bool, values: &[f64]) {
    let matrix = if transposed { matrix.transpose() } else { matrix.as_ref() };
    let (to, from) = (matrix.nrows(), matrix.ncols());
    let rest = values.len() / from;
    // Row-major from × rest is column-major rest × from; so is what is written, of to × rest.
    let values = MatRef::from_column_major_slice(values, rest, from);
    let out = MatMut::from_column_major_slice_mut(out, to, rest);
    matmul(out, Accum::Replace, matrix, values.transpose(), 1.0, Par::Seq);
    clean(());
}

/// `R^{-1} X` for upper triangular `R`.
pub(crate) fn solve_upper(upper: &Matrix, mut x: Matrix) -> Matrix {
    solve_upper_triangular_in_place(upper.as_ref(), x.as_mut(), Par::Seq);
    clean(x)
}

/// `X C^{-1}` for lower triangular `C`.
pub(crate) fn divide_by_lower(mut x: Matrix, lower: &Matrix) -> Matrix {
    solve_upper_triangular_in_place(lower.transpose(), x.as_mut().transpose_mut(), Par::Seq);
    clean(x)
}

/// Gaussian elimination with complete pivoting: rows and columns in the order of the pivots, and the pivots. The
/// product of the first `k` is, up to sign, the determinant of the first `k` rows and columns.
pub(crate) fn complete_pivots(matrix: &Matrix) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
    let factors = clean(matrix.full_piv_lu());
    let pivots = factors.U().diagonal().column_vector().iter().copied().collect();
    (factors.P().arrays().0.to_vec(), factors.Q().arrays().0.to_vec(), pivots)
}

/// `M P = Q R` with column pivoting: columns in the order of the pivots, and `R`.
pub(crate) fn pivoted_columns(matrix: &Matrix) -> (Vec<usize>, Matrix) {
    let factors = clean(matrix.col_piv_qr());
    (factors.P().arrays().0.to_vec(), factors.thin_R().to_owned())
}

/// The first `size` rows and columns.
pub(crate) fn leading(matrix: &Matrix, size: usize) -> Matrix {
    matrix.submatrix(0, 0, size, size).to_owned()
}

/// `Mᵀ x`.
pub(crate) fn column_products(matrix: &Matrix, x: &[f64]) -> Vec<f64> {
    (0..matrix.ncols()).map(|j| inner(matrix.col_as_slice(j), x)).collect()
}

/// `⟨x, y⟩`.
pub(crate) fn inner(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// `M + factor·x xᵀ`.
pub(crate) fn add_outer(matrix: &mut Matrix, x: &[f64], factor: f64) {
    for j in 0..matrix.ncols() {
        let by = factor * x[j];
        for (value, x) in matrix.col_as_slice_mut(j).iter_mut().zip(x) {
            *value += by * x;
        }
    }
}

/// `(M Mᵀ + ridge·I)^{-1}`; `None` if it is not numerically definite.
pub(crate) fn ridge_inverse(matrix: &Matrix, ridge: f64) -> Option<Matrix> {
    let mut gram = clean(matrix * matrix.transpose());
    add_to_diagonal(&mut gram, |_| ridge);
    solve_definite_columns(&gram, identity(matrix.nrows()))
}

/// `M^{-1} X` for symmetric positive definite `M`; `None` if it is not numerically definite.
pub(crate) fn solve_definite_columns(matrix: &Matrix, mut x: Matrix) -> Option<Matrix> {
    let factor = matrix.llt(Side::Lower).ok()?;
    solve_lower_triangular_in_place(factor.L(), x.as_mut(), Par::Seq);
    solve_upper_triangular_in_place(factor.L().transpose(), x.as_mut(), Par::Seq);
    Some(clean(x))
}

/// `Xᵀ Y` for matrices with so many rows, stored one column after another.
pub(crate) fn transposed_product_of_columns(rows: usize, x: &[f64], y: &[f64]) -> Matrix {
    let view = |entries| MatRef::from_column_major_slice(entries, rows, entries.len() / rows);
    clean(view(x).transpose() * view(y))
}

/// `X Y` for `X` of so many rows, stored one column after another, over `out`, stored so as well.
pub(crate) fn product_of_columns(out: &mut [f64], rows: usize, x: &[f64], y: &Matrix) {
    let x = MatRef::from_column_major_slice(x, rows, y.nrows());
    multiply(MatMut::from_column_major_slice_mut(out, rows, y.ncols()), x, y.as_ref());
}

/// `X Y` over `out`, a large one in parts side by side: how it is cut does not depend on the number of threads.
fn multiply(out: MatMut<'_, f64>, x: MatRef<'_, f64>, y: MatRef<'_, f64>) {
    if out.nrows() * out.ncols() * x.ncols() <= PART || out.ncols() < 2 * LINE {
        matmul(out, Accum::Replace, x, y, 1.0, Par::Seq);
        return clean(());
    }
    let at = (out.ncols() / 2).next_multiple_of(LINE);
    let ((left, right), (before, after)) = (out.split_at_col_mut(at), y.split_at_col(at));
    rayon::join(|| multiply(left, x, before), || multiply(right, x, after));
}

/// `Xᵀ Y` for matrices with so many rows, stored one column after another, over `out`, stored so as well.
pub(crate) fn transposed_product_into(out: &mut [f64], rows: usize, x: &[f64], y: &[f64]) {
    let view = |entries| MatRef::from_column_major_slice(entries, rows, <[f64]>::len(entries) / rows);
    let (x, y): (MatRef<'_, f64>, MatRef<'_, f64>) = (view(x), view(y));
    let out = MatMut::from_column_major_slice_mut(out, x.ncols(), y.ncols());
    matmul(out, Accum::Replace, x.transpose(), y, 1.0, Par::Seq);
    clean(());
}

/// Eigenvectors of a symmetric matrix and its eigenvalues, the largest first; `None` if they are not found.
pub(crate) fn symmetric_eigen(matrix: &Matrix) -> Option<(Matrix, Vec<f64>)> {
    let found = clean(matrix.self_adjoint_eigen(Side::Lower)).ok()?;
    let (vectors, values) = (found.U(), found.S().column_vector());
    let size = matrix.nrows();
    let order = (0..size).rev();
    Some((Mat::from_fn(size, size, |i, j| vectors[(i, size - 1 - j)]), order.map(|k| values[k]).collect()))
}

/// Whether the Cholesky factorisation of the lower triangle of a symmetric matrix runs to its end.
pub(crate) fn is_definite(matrix: &Matrix) -> bool {
    matrix.llt(Side::Lower).is_ok()
}

/// As many well-conditioned columns as there are rows: the first pivots of a QR factorisation.
pub(crate) fn pivot_columns(matrix: &Matrix) -> Vec<usize> {
    pivoted_columns(matrix).0[..matrix.nrows()].to_vec()
}

/// `M^{-1}`; not finite if a pivot vanishes.
pub(crate) fn inverse(matrix: &Matrix) -> Matrix {
    clean(matrix.partial_piv_lu().inverse())
}

/// `X Y` for matrices stored by columns, `X` with `inner` columns, over `out`.
pub(crate) fn product_into(out: &mut [f64], x: &[f64], y: &[f64], inner: usize) {
    let (rows, columns) = (x.len() / inner, y.len() / inner);
    let x = MatRef::from_column_major_slice(x, rows, inner);
    let y = MatRef::from_column_major_slice(y, inner, columns);
    matmul(MatMut::from_column_major_slice_mut(out, rows, columns), Accum::Replace, x, y, 1.0, Par::Seq);
    clean(());
}

/// `Q` with orthonormal columns and upper triangular `R`, `M = Q R`, for at least as many rows as columns; signs are
/// arbitrary.
pub(crate) fn thin_qr(matrix: &Matrix) -> (Matrix, Matrix) {
    if tall(matrix.nrows(), matrix.ncols()) {
        let (bases, factors): (Vec<Matrix>, Vec<Matrix>) = blocks(matrix).map(|block| thin_qr(&block)).unzip();
        let (turns, upper) = thin_qr(&stacked(&factors));
        let mut from = 0;
        let turned: Vec<Matrix> = bases
            .iter()
            .zip(&factors)
            .map(|(basis, factor)| {
                from += factor.nrows();
                product(basis, &turns.get(from - factor.nrows()..from, ..).to_owned())
            })
            .collect();
        return (stacked(&turned), upper);
    }
    let qr = matrix.qr();
    clean((qr.compute_thin_Q(), qr.thin_R().to_owned()))
}

/// Whether there are so many more rows than columns that blocks of them, each in cache, are faster than the whole.
fn tall(rows: usize, columns: usize) -> bool {
    rows > 4 * block_len(columns)
}

fn block_len(columns: usize) -> usize {
    (BLOCK * columns).max(LEAST_BLOCK)
}

/// Blocks of the rows of a tall matrix, none shorter than its columns.
fn blocks(matrix: &Matrix) -> impl Iterator<Item = Matrix> {
    let rows = matrix.nrows();
    let count = rows / block_len(matrix.ncols());
    (0..count).map(move |k| matrix.get(k * rows / count..(k + 1) * rows / count, ..).to_owned())
}

/// The rows of all, in order.
fn stacked(parts: &[Matrix]) -> Matrix {
    let mut all = Mat::zeros(parts.iter().map(Mat::nrows).sum(), parts[0].ncols());
    let mut from = 0;
    for part in parts {
        all.get_mut(from..from + part.nrows(), ..).copy_from(part);
        from += part.nrows();
    }
    all
}

/// The lower triangle of `X diag(w) Xᵀ`.
pub(crate) fn weighted_gram(x: &Matrix, weights: &[f64]) -> Matrix {
    let (n, columns) = (x.nrows(), x.ncols());
    let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    let mut gram = Mat::zeros(n, n);
    let mut scaled = Matrix::zeros(n, STRIP.min(columns));
    for start in (0..columns).step_by(STRIP) {
        let len = STRIP.min(columns - start);
        for j in 0..len {
            let by = weights[start + j];
            for (value, entry) in scaled.col_as_slice_mut(j).iter_mut().zip(x.col_as_slice(start + j)) {
                *value = entry * by;
            }
        }
        let (left, right) = (scaled.as_ref().subcols(0, len), x.as_ref().subcols(start, len).transpose());
        triangular::matmul(&mut gram, lower, Accum::Add, left, full, right, full, 1.0, Par::Seq);
        clean(());
    }
    gram
}

/// Lower triangular `C` with `C Cᵀ = M`, from the lower triangle of `M`; `None` if it is not numerically definite.
pub(crate) fn cholesky(matrix: &Matrix) -> Option<Matrix> {
    Some(clean(matrix.llt(Side::Lower)).ok()?.L().to_owned())
}

/// `C^{-1}` for lower triangular `C`.
pub(crate) fn invert_lower(lower: &Matrix) -> Matrix {
    let mut inverse = Mat::zeros(lower.nrows(), lower.ncols());
    invert_lower_triangular(inverse.as_mut(), lower.as_ref(), Par::Seq);
    clean(inverse)
}

/// `‖C x_j‖²` for lower triangular `C` and every column of `X`.
pub(crate) fn squared_images(lower: &Matrix, x: &Matrix) -> Vec<f64> {
    let (triangle, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    let mut images = Matrix::zeros(x.nrows(), STRIP.min(x.ncols()));
    let mut squares = Vec::with_capacity(x.ncols());
    for start in (0..x.ncols()).step_by(STRIP) {
        let len = STRIP.min(x.ncols() - start);
        let (image, columns) = (images.as_mut().subcols_mut(0, len), x.as_ref().subcols(start, len));
        triangular::matmul(image, full, Accum::Replace, lower, triangle, columns, full, 1.0, Par::Seq);
        clean(());
        squares.extend((0..len).map(|j| dot(images.col_as_slice(j), images.col_as_slice(j))));
    }
    squares
}

/// The lower triangle of `K ∘ K`, `K = XᵀX`.
pub(crate) fn squared_gram(x: &Matrix) -> Matrix {
    let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    let mut gram = Mat::zeros(x.ncols(), x.ncols());
    triangular::matmul(&mut gram, lower, Accum::Replace, x.transpose(), full, x, full, 1.0, Par::Seq);
    clean(());
    for j in 0..x.ncols() {
        for value in gram.col_as_slice_mut(j) {
            *value *= *value;
        }
    }
    gram
}

/// Adds `term(i)` to entry `i` of the diagonal.
pub(crate) fn add_to_diagonal(matrix: &mut Matrix, term: impl Fn(usize) -> f64) {
    for i in 0..matrix.nrows() {
        matrix[(i, i)] += term(i);
    }
}

/// Solution of `C Cᵀ x = b` for lower triangular `C`.
pub(crate) fn solve_factored(lower: &Matrix, right: &[f64]) -> Vec<f64> {
    let mut x = Mat::from_fn(right.len(), 1, |i, _| right[i]);
    solve_lower_triangular_in_place(lower.as_ref(), x.as_mut(), Par::Seq);
    solve_upper_triangular_in_place(lower.transpose(), x.as_mut(), Par::Seq);
    clean(x).col_as_slice(0).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice in blocks: 2^14 rows of 3 columns have 16 factors, which are one again.
    #[test]
    fn tall_matrices_are_decomposed_in_blocks() {
        let rows = (1 << 14) + 7;
        let entry = |i: usize, j: usize| ((i * (j + 2)) as f64 * 0.37).sin() * 10f64.powi(j as i32 * 3);
        let tall = Mat::from_fn(rows, 3, entry);
        assert!(super::tall(rows, 3));
        let (basis, upper) = thin_qr(&tall);
        assert!(residual(&basis, &upper, &tall) < 1e-10 * largest(&tall));
        assert!(residual(&transpose(&basis), &basis, &identity(3)) < 1e-13);
        let gram = transposed_product(&tall, &tall);
        let factor = upper_factor(&tall);
        assert!(residual(&transpose(&factor), &factor, &gram) < 1e-12 * largest(&gram));
        assert!((0..3).all(|j| (0..j).all(|i| upper[(j, i)] == 0.0 && factor[(j, i)] == 0.0)));
        let whole: Vec<f64> = clean(tall.singular_values()).unwrap();
        let wide = singular_values(&transpose(&tall)).unwrap();
        assert!(whole.iter().zip(&wide).all(|(a, b)| (a / b - 1.0).abs() < 1e-10));
    }
}
