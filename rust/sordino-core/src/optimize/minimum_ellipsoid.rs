//! The ellipsoid of least volume around all columns and their negatives.
//!
//! On the column space (rank r, columns `a_j`) and with weights `u` of the columns that sum to 1, `M = Σ u_j a_j a_jᵀ`:
//! the dual is `max_u log det M`, D-optimal design (John 1948; Titterington 1975). With `k_j = a_jᵀ M^{-1} a_j` the
//! ellipsoid `F Bʳ`, `F Fᵀ = max_j k_j · M`, contains every column for any `u`. `Σ u_j k_j = r`, so at the optimum
//! `k_j ≤ r`, and for any `u` the volume exceeds the least by at most the factor `(max_j k_j/r)^{r/2}`: an ellipsoid
//! `F'` around all columns has `tr (F'F'ᵀ)^{-1} M ≤ 1`, hence `det F'F'ᵀ ≥ rʳ det M` by the means.
//!
//! `u ← u·k/r` is monotone (Silvey, Titterington & Torsney 1978), accelerated as the other programs. The program does
//! not change under linear maps, so it is solved for columns `W` with `W Wᵀ = I`: then `M* ⪯ n M(u)` and
//! `M(u) ⪯ r M*` for uniform `u`, `M(u) = I/n`, and the condition of `M*` is at most n r, whatever that of `A`.

use super::factorization::{column_bound, normalise, spread};
use super::linear_algebra::{
    Matrix, cholesky, invert_lower, most, product, scale_columns, scale_rows, select_columns, squared_images, thin_qr,
    thin_singular, to_rows, transpose, transposed_product, weighted_gram,
};
use super::queries::Queries;
use super::range::Range;
use super::stages::Stages;
use super::volume::least_volume;
use super::{Progress, Target};
use crate::error::Error;

/// An ellipsoid around all columns of the queries, and a strategy and its decoding: `decode · strategy = A`.
///
/// The ellipsoid is `decode · Bʳ` for the unit ball `Bʳ`; the columns of `strategy` are inside `Bʳ`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ellipsoid {
    /// Number of queries, m.
    pub rows: usize,
    /// Number of cells, n.
    pub columns: usize,
    /// Rank of the queries, r.
    pub rank: usize,
    /// `F^{-1} A`, r × n, row by row; every column has Euclidean norm at most 1.
    pub strategy: Vec<f64>,
    /// `F`, m × r, row by row: its columns are the semi-axes.
    pub decode: Vec<f64>,
    /// Lengths of the semi-axes, falling.
    pub axes: Vec<f64>,
    /// Weights `u` of the cells, sum 1: the proof of `gap`.
    pub weights: Vec<f64>,
    /// `max_j a_jᵀ M^{-1} a_j / r − 1` over all columns: the volume is at most `(1 + gap)^{r/2}` times the least.
    pub gap: f64,
    /// Evaluations of the program.
    pub iterations: usize,
}

/// The ellipsoid `F Bʳ` with `F = U diag(s)` around the columns of a matrix `R` of full row rank.
pub(super) struct Enclosing {
    /// `U`, orthogonal.
    pub directions: Matrix,
    /// `s`, falling.
    pub lengths: Vec<f64>,
    /// `F^{-1} R` is this product.
    strategy: (Matrix, Matrix),
    /// Weights of the active columns.
    pub weights: Vec<f64>,
    pub gap: f64,
}

impl Enclosing {
    /// `F^{-1} R`.
    fn strategy(&self) -> Matrix {
        product(&self.strategy.0, &self.strategy.1)
    }

    /// `F`.
    fn root(&self) -> Matrix {
        let mut root = self.directions.clone();
        scale_columns(&mut root, |i| self.lengths[i]);
        root
    }
}

/// The least ellipsoid around the columns of a matrix of full row rank; the active ones span it and imply the others.
pub(super) fn enclose(
    coordinates: &Matrix,
    active: &[usize],
    target: Target,
    stages: &mut Stages<'_>,
) -> Result<Enclosing, Error> {
    let failed =
        || Error::Unsupported("the queries are too ill-conditioned for an ellipsoid in double precision".into());
    // R = Tᵀ W with W Wᵀ = I.
    let (orthonormal, upper) = thin_qr(&transpose(coordinates));
    let whitened = transpose(&orthonormal);
    let columns = select_columns(&whitened, active);
    let weights = least_volume(&columns, target, stages).ok_or_else(failed)?.weights;
    let factor = cholesky(&weighted_gram(&columns, &weights)).ok_or_else(failed)?;
    let mut inverse = invert_lower(&factor);
    let reach = most(&squared_images(&inverse, &whitened));
    // F = √reach Tᵀ C = √reach U diag(s) Vᵀ, and V is left out: it maps the ball to itself.
    let (directions, mut lengths, right) = thin_singular(&transposed_product(&upper, &factor)).ok_or_else(failed)?;
    for length in &mut lengths {
        *length *= reach.sqrt();
    }
    inverse = transposed_product(&right, &inverse);
    scale_rows(&mut inverse, |_| 1.0 / reach.sqrt());
    let gap = (reach / coordinates.nrows() as f64 - 1.0).max(0.0);
    Ok(Enclosing { directions, lengths, strategy: (inverse, whitened), weights, gap })
}

/// The ellipsoid of least volume around all columns of the queries and their negatives, on their column space.
///
/// Stops when `gap` is certified, after `target.iterations`, or when `progress(iteration, gap)` breaks; the best so
/// far is returned with its own gap. It contains every column whatever the gap.
///
/// # Errors
/// If the queries are too ill-conditioned for double precision.
pub fn minimum_ellipsoid(queries: Queries<'_>, target: Target, progress: Progress<'_>) -> Result<Ellipsoid, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let range = Range::new(&a)?;
    let mut stages = Stages::new(progress);
    let found = enclose(&range.coordinates, &range.active, target, &mut stages)?;
    let mut strategy = found.strategy();
    let mut decode = range.embed(found.root());
    let norm = column_bound(&strategy);
    normalise(&a, &mut strategy, &mut decode, norm)?;
    scale_columns(&mut decode, |_| scale);
    Ok(Ellipsoid {
        rows: a.nrows(),
        columns: a.ncols(),
        rank: strategy.nrows(),
        strategy: to_rows(&strategy),
        decode: to_rows(&decode),
        axes: found.lengths.iter().map(|length| length * norm * scale).collect(),
        weights: spread(a.ncols(), &range.active, &found.weights),
        gap: found.gap,
        iterations: stages.done,
    })
}
