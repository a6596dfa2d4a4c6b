//! The balanced root: a strategy of nearly the least mean squared error, and the proof, from one decomposition.
//!
//! `W = AᵀA`, `S = W^{1/2}`, `s = diag S`, `B = S^{1/2} diag(s)^{−1/2}`: every column has norm one, and the total squared error
//! is `Σ_ij √s_i √s_j W_ij (S^{−1})_ij`, near the diagonal bound `Σ_j s_j²` where `s` varies slowly over the correlation
//! length of `S`. The weights `s_j²` of the cells prove that bound, and a little more.

use super::Progress;
use super::factorization::{Lower, Optimized, not_converged, nuclear_norm_below, weighted_norm};
use super::linear_algebra::{
    Matrix, Precision, left_singular, product, scale_columns, scale_rows, squared_columns, thin_singular, to_rows,
    transpose,
};
use super::queries::Queries;
use crate::error::Error;

/// Least singular value over the largest: below, `S^{−1}` has too few digits.
const CONDITION: f64 = 1e-6;
/// Cells beyond which a root without proof is of the Gram matrix, where that has the digits: half of the time.
const MANY_CELLS: usize = 512;

/// Queries of full column rank, decomposed.
struct Root {
    a: Matrix,
    /// What the queries were divided by, and `√ω` of each.
    scale: f64,
    weight: f64,
    /// Singular values and right vectors of `√ω A`, the vectors once more as rows.
    values: Vec<f64>,
    vectors: Matrix,
    rows: Matrix,
}

impl Root {
    fn of(queries: Queries<'_>, precision: Precision) -> Result<Self, Error> {
        let singular = || Error::Unsupported("the queries are singular, or nearly: they have no balanced root".into());
        let (a, scale) = queries.scaled();
        if a.nrows() < a.ncols() {
            return Err(singular());
        }
        let weight = (a.nrows() as f64).sqrt().recip();
        let mut weighted = a.clone();
        scale_rows(&mut weighted, |_| weight);
        let found = match precision {
            Precision::Careful => thin_singular(&weighted).map(|(_, values, vectors)| (vectors, values)),
            Precision::Fast => left_singular(&transpose(&weighted), precision),
        };
        let (vectors, values) = found.ok_or_else(not_converged)?;
        let (least, most) = values.iter().fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        if least <= CONDITION * most {
            return Err(singular());
        }
        let rows = transpose(&vectors);
        Ok(Self { a, scale, weight, values, vectors, rows })
    }

    /// A power of `S`.
    fn power(&self, exponent: f64) -> Matrix {
        let mut scaled = self.vectors.clone();
        scale_columns(&mut scaled, |k| self.values[k].powf(exponent));
        product(&scaled, &self.rows)
    }

    /// `B`, and `s`.
    fn strategy(&self) -> (Matrix, Vec<f64>) {
        let mut half = self.power(0.5);
        // S_jj is the squared norm of column j of its root.
        let diagonal = squared_columns(&half);
        scale_columns(&mut half, |j| diagonal[j].sqrt().recip());
        (half, diagonal)
    }
}

/// The balanced root of queries of full column rank, without proof: n × n, row by row.
///
/// # Errors
/// [`Error::Unsupported`] if the queries are singular, or nearly.
pub fn balanced_rows(queries: Queries<'_>) -> Result<Vec<f64>, Error> {
    let precision = if queries.columns() > MANY_CELLS { Precision::Fast } else { Precision::Careful };
    Ok(to_rows(&Root::of(queries, precision)?.strategy().0))
}

/// The balanced root of queries of full column rank, with a certified bound below every strategy.
///
/// # Errors
/// As [`balanced_rows`].
pub fn balanced_root(queries: Queries<'_>, progress: Progress<'_>) -> Result<Optimized, Error> {
    let root = Root::of(queries, Precision::Careful)?;
    let (encode, diagonal) = root.strategy();
    let mut inverse = root.power(-0.5);
    scale_rows(&mut inverse, |j| diagonal[j].sqrt());
    let decode = product(&root.a, &inverse);
    let total: f64 = diagonal.iter().map(|s| s * s).sum();
    let weights: Vec<f64> = diagonal.iter().map(|s| s * s / total).collect();
    let roots = vec![root.weight; root.a.nrows()];
    let mut weighted = root.a.clone();
    scale_rows(&mut weighted, |_| root.weight);
    scale_columns(&mut weighted, |j| weights[j].sqrt());
    let value = nuclear_norm_below(&weighted).ok_or_else(not_converged)?;
    let query_weights = roots.iter().map(|root| root * root).collect();
    let lower = Lower { query_weights, cell_weights: weights, value };
    let error = |decode: &_| weighted_norm(decode, &roots);
    let found = Optimized::new(&root.a, root.scale, (encode, decode), error, lower, 1)?;
    let _ = progress(1, found.gap);
    Ok(found)
}
