//! The strategy of least worst-query error: the factorisation norm `γ₂`.
//!
//! Minimise `max_i ‖l_i‖ · max_j ‖b_j‖` over `L B = A`, rows `l_i`, columns `b_j`. Its value is `γ₂(A)` (Matoušek,
//! Nikolov & Talwar 2020, and for the release of queries Nikolov, Talwar & Zhang 2013), with the dual
//!
//! `γ₂(A) = max_{u,v} ‖diag(√u) A diag(√v)‖_*`
//!
//! over weights `u` of the queries and `v` of the cells, jointly concave. With `A = Q R`, `diag(√u) Q = Q' K`, and the
//! singular values `s` and left vectors `E` of `K R diag(√v)`,
//!
//! `B = diag(s)^{-1/2} Eᵀ K R`,  `L = Q K^{-1} E diag(s)^{1/2}`,  `Σ u_i‖l_i‖² = Σ v_j‖b_j‖² = Σ s`.
//!
//! Both weights are updated at once, `u ← u‖l‖²/Σ s` and `v ← v‖b‖²/Σ s`. At the optimum `u` may rest on fewer queries
//! than the rank; the mixed weights of the driver keep `K` invertible.

use super::accelerated::{Point, Problem, solve, start};
use super::factorization::{Lower, Optimized, not_converged, nuclear_norm_below, spread};
use super::linear_algebra::{
    Matrix, Precision, left_singular, product, scale_columns, scale_rows, select_rows, solve_upper, squared_columns,
    squared_rows, transposed_product, upper_factor,
};
use super::queries::Queries;
use super::range::{Range, distinct_rows};
use super::{Progress, Target};
use crate::error::Error;

/// The program on the column space and the distinct queries.
struct Worst<'a> {
    range: &'a Range,
    /// Rows that constrain.
    rows: Vec<usize>,
    /// `Q` on these rows; `None` is the identity.
    basis: Option<Matrix>,
}

/// `K`: diagonal if `Q` is the identity.
enum Factor {
    Diagonal(Vec<f64>),
    Upper(Matrix),
}

impl Factor {
    /// `K X`.
    fn times(&self, x: &Matrix) -> Matrix {
        match self {
            Self::Diagonal(roots) => {
                let mut scaled = x.clone();
                scale_rows(&mut scaled, |i| roots[i]);
                scaled
            }
            Self::Upper(upper) => product(upper, x),
        }
    }

    /// `K^{-1} X`.
    fn divide(&self, mut x: Matrix) -> Matrix {
        match self {
            Self::Diagonal(roots) => {
                scale_rows(&mut x, |i| 1.0 / roots[i]);
                x
            }
            Self::Upper(upper) => solve_upper(upper, x),
        }
    }
}

/// Everything of one point but the weights.
struct Spectrum {
    factor: Factor,
    vectors: Matrix,
    values: Vec<f64>,
}

impl Spectrum {
    /// `diag(s)^{-1/2} Eᵀ K R`.
    fn strategy(&self, coordinates: &Matrix) -> Matrix {
        let mut strategy = transposed_product(&self.vectors, &self.factor.times(coordinates));
        scale_rows(&mut strategy, |i| 1.0 / self.values[i].sqrt());
        strategy
    }

    /// `K^{-1} E diag(s)^{1/2}`.
    fn decode(&self) -> Matrix {
        let mut decode = self.vectors.clone();
        scale_columns(&mut decode, |i| self.values[i].sqrt());
        self.factor.divide(decode)
    }
}

impl Worst<'_> {
    /// `diag(√u) Q = Q' K`.
    fn factor(&self, weights: &[f64]) -> Factor {
        match &self.basis {
            None => Factor::Diagonal(weights.iter().map(|u| u.sqrt()).collect()),
            Some(basis) => {
                let mut weighted = basis.clone();
                scale_rows(&mut weighted, |i| weights[i].sqrt());
                Factor::Upper(upper_factor(&weighted))
            }
        }
    }

    /// `K R diag(√v)`.
    fn weighted(&self, factor: &Factor, weights: &[f64]) -> Matrix {
        let mut weighted = factor.times(&self.range.reduced);
        scale_columns(&mut weighted, |j| weights[j].sqrt());
        weighted
    }

    fn spectrum(&self, weights: &[f64], precision: Precision) -> Option<Spectrum> {
        let (u, v) = weights.split_at(self.rows.len());
        let factor = self.factor(u);
        let (vectors, values) = left_singular(&self.weighted(&factor, v), precision)?;
        values.iter().all(|s| *s > 0.0).then_some(Spectrum { factor, vectors, values })
    }
}

impl Problem for Worst<'_> {
    fn simplices(&self) -> Vec<usize> {
        vec![self.rows.len(), self.range.active.len()]
    }

    fn evaluate(&self, weights: &[f64], precision: Precision) -> Option<Point> {
        let spectrum = self.spectrum(weights, precision)?;
        let mut decode = spectrum.decode();
        if let Some(basis) = &self.basis {
            decode = product(basis, &decode);
        }
        let rows = squared_rows(&decode);
        let columns = squared_columns(&spectrum.strategy(&self.range.reduced));
        let most = |norms: &[f64]| norms.iter().copied().fold(0.0, f64::max);
        let upper = (most(&rows) * most(&columns)).sqrt();
        let total: f64 = spectrum.values.iter().sum();
        Some(Point { objective: total, lower: total, upper, gains: [rows, columns].concat() })
    }
}

/// The strategy whose largest standard deviation over the queries is least, with a certified bound below every
/// strategy: `lower ≤ γ₂(A) ≤ upper`.
///
/// Stops when `gap` is certified, after `target.iterations`, or when `progress(iteration, gap)` breaks; the best so
/// far is returned with its own gap.
///
/// # Errors
/// If the queries are too ill-conditioned for double precision.
pub fn worst_strategy(queries: Queries<'_>, target: Target, progress: Progress<'_>) -> Result<Optimized, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let range = Range::new(&a)?;
    // With the identity as basis every row has a coordinate of its own, and none is zero.
    let rows = range.basis.as_ref().map_or_else(|| (0..a.nrows()).collect(), |_| distinct_rows(&a));
    let basis = range.basis.as_ref().map(|basis| select_rows(basis, &rows));
    let mut program = Worst { range: &range, rows, basis };
    let start = start(target, a.nrows() + a.ncols(), &[(0, &program.rows), (a.nrows(), &range.active)])?;
    let solution =
        solve(&mut program, Target { start: start.as_deref(), ..target }, progress).ok_or_else(not_converged)?;
    let (u, v) = solution.lower.weights.split_at(program.rows.len());
    let lower = Lower {
        query_weights: spread(a.nrows(), &program.rows, u),
        cell_weights: spread(a.ncols(), &range.active, v),
        value: nuclear_norm_below(&program.weighted(&program.factor(u), v)).ok_or_else(not_converged)?,
    };
    let best = program.spectrum(&solution.upper.weights, Precision::Careful).ok_or_else(not_converged)?;
    let encode = best.strategy(&range.coordinates);
    let decode = range.embed(best.decode());
    let error = |decode: &Matrix| squared_rows(decode).into_iter().fold(0.0, f64::max).sqrt();
    Optimized::new(&a, scale, (encode, decode), error, lower, solution.iterations)
}
