//! The determinant bound (Lovász, Spencer & Vesztergombi 1986; Nikolov, Talwar & Zhang 2013, section 3.3).
//!
//! **Hereditary discrepancy**, `max_S min_{χ ∈ {−1,1}^S} ‖A_S χ‖_∞`: for every square submatrix `M`, k × k,
//!
//! `herdisc(A) ≥ |det M|^{1/k}/2`.
//!
//! Proof. Let `D = max_c min_χ ‖M(c − χ)‖_∞` over `c ∈ [−1, 1]^k`, `χ ∈ {−1, 1}^k`. Rounding the binary digits of `c`
//! one at a time gives `D ≤ 2 herdisc(M)`. By definition the translates of `E = {x : ‖M x‖_∞ ≤ D}` by `{−1, 1}^k`
//! cover `[−1, 1]^k`, so those by all of `{−1, 1}^k + 2ℤ^k` cover space. That set is `(2ℤ + 1)^k`, of one point in
//! each volume `2^k` (neighbouring cubes share their corners), so `2^k ≤ vol E = (2D)^k/|det M|` and
//! `D ≥ |det M|^{1/k}`. Counting the `2^k` corners of a single cube loses another factor 2.
//!
//! **Mean squared error.** With `E = {x : ‖A_S x‖₂ ≤ D}` in the same proof,
//! `vol E = D^k vol(B^k)/det(A_SᵀA_S)^{1/2}`, and `k·vol(B^k)^{2/k} ≤ 2πe`: some of these cells have no signs with
//! `‖A_S χ‖₂² < k·det(A_SᵀA_S)^{1/k}/(2πe)`. The maximum `detLB = max_S k·det(A_SᵀA_S)^{1/k}` bounds the total
//! squared error of every mechanism that is private with small constants `ε`, `δ` by `Ω(detLB/log² m)`; with
//! databases of at most `n` records, `|S| ≤ εn`.

use super::super::linear_algebra::{Matrix, complete_pivots, pivoted_columns, select_columns, select_rows};
use super::super::queries::Queries;
use super::{check_most, first_largest, geometric_mean_below};
use crate::error::Error;

/// Determinants of submatrices found by pivoting.
#[derive(Debug, Clone, PartialEq)]
pub struct DeterminantBound {
    /// `|det|^{1/k}` of the first `k` of `rows` and `columns`, `k = 1, 2, …`; products of pivots, not rounded down.
    pub roots: Vec<f64>,
    /// Queries in the order of complete pivoting.
    pub rows: Vec<usize>,
    /// Cells in the order of complete pivoting.
    pub columns: Vec<usize>,
    /// Size of the submatrix behind `discrepancy`.
    pub size: usize,
    /// Half of the largest `|det|^{1/k}`: the hereditary discrepancy is at least this.
    pub discrepancy: f64,
    /// Number of cells behind `error`.
    pub error_size: usize,
    /// `(detLB/m)^{1/2}`, the largest `√(k/m)·det(A_SᵀA_S)^{1/(2k)}` found.
    pub error: f64,
}

/// Lower bounds from the determinants of submatrices with at most `most` cells.
///
/// Greedy: complete pivoting for square submatrices, pivoted orthogonalisation for whole columns.
///
/// # Errors
/// If `most` is zero or singular values do not converge.
pub fn determinant_bound(queries: Queries<'_>, most: usize) -> Result<DeterminantBound, Error> {
    check_most(most)?;
    let (a, scale) = queries.scaled();
    let (mut rows, mut columns, pivots) = complete_pivots(&a);
    let roots = geometric_means(pivots, most);
    rows.truncate(roots.len());
    columns.truncate(roots.len());
    let square = |k: usize| geometric_mean_below(&select_rows(&select_columns(&a, &columns[..k]), &rows[..k]));
    let size = 1 + first_largest(roots.iter().copied());
    let discrepancy = square(size)? / 2.0;

    let (order, upper) = pivoted_columns(&a);
    let whole = geometric_means((0..upper.nrows().min(upper.ncols())).map(|k| upper[(k, k)]).collect(), most);
    let error_size = 1 + first_largest(largest_error(&whole));
    let error = error_of(&select_columns(&a, &order[..error_size]))?;
    Ok(DeterminantBound {
        roots: roots.iter().map(|root| root * scale).collect(),
        rows,
        columns,
        size,
        discrepancy: discrepancy * scale,
        error_size,
        error: error * scale,
    })
}

/// `√k·root` for every size.
fn largest_error(roots: &[f64]) -> impl Iterator<Item = f64> {
    roots.iter().enumerate().map(|(k, root)| (k as f64 + 1.0).sqrt() * root)
}

/// `√(k/m)·det(MᵀM)^{1/(2k)}`.
fn error_of(columns: &Matrix) -> Result<f64, Error> {
    Ok((columns.ncols() as f64 / columns.nrows() as f64).sqrt() * geometric_mean_below(columns)?)
}

/// `|p_1 ⋯ p_k|^{1/k}` for `k = 1, 2, …`, at most `most`, while not zero.
fn geometric_means(pivots: Vec<f64>, most: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let logs = pivots.into_iter().take(most).map(|pivot| pivot.abs().ln()).take_while(|log| log.is_finite());
    logs.enumerate()
        .map(|(k, log)| {
            sum += log;
            (sum / (k as f64 + 1.0)).exp()
        })
        .collect()
}
