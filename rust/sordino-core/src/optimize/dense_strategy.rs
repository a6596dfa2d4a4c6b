//! Noise on the subspaces of the base decomposition: a strategy that is near the optimum for every matrix, by proof.
//!
//! Algorithm 2 of Nikolov, Talwar & Zhang (2013) adds to `U_iᵀ A x` Gaussian noise of standard deviation `√k r_i` times
//! the noise multiplier, k the number of subspaces: column j then has squared norm `Σ_i ‖U_iᵀ a_j‖²/(k r_i²) ≤ 1`. The
//! factor `√k` cannot be left out, but it is an upper bound: the true sensitivity of the stacked blocks is smaller, and
//! no reason singles out levels proportional to `r_i`. With variances `c_i` in place of `k r_i²` the error is
//! `Σ d_i c_i`, and the best `c_i` under `max_j Σ_i ‖U_iᵀ a_j‖²/c_i ≤ 1` are a convex program in k numbers.
//!
//! Algorithm 4, for pure privacy, adds noise to each subspace at `ε/k`; with the Euclidean norm on each block this is
//! density `exp(−ε ‖z‖/s_i)` at `s_i = k r_i`, and `Σ_i ‖U_iᵀ a_j‖/s_i ≤ 1` is what privacy needs (Hardt & Talwar 2010 with
//! the norm `Σ_i ‖z_i‖/s_i`). Such noise has squared norm `d_i (d_i + 1) s_i²/ε²` on average, so the error is
//! `Σ d_i (d_i + 1) s_i²`, and the best `s_i` are the same kind of program.

use super::accelerated::solve;
use super::base_decomposition::Decomposition;
use super::factorization::{SLACK, normalise, spread};
use super::linear_algebra::{
    Matrix, dot, from_columns, most, scale_columns, scale_rows, squared_columns, to_rows, transposed_product,
};
use super::mean_strategy::roots;
use super::noise_levels::NoiseLevels;
use super::queries::Queries;
use super::range::Range;
use super::stages::Stages;
use super::{Progress, Target};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;

/// How the noise levels of the subspaces are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coefficients {
    /// As in the paper, `√k r_i` or `k r_i`: the privacy budget is not used up.
    Printed,
    /// Proportional to `r_i`, for sensitivity 1.
    Rescaled,
    /// Of least error.
    Optimal,
}

/// The noise of a block of d coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Independent, Gaussian, variance 1 at noise multiplier 1.
    Gaussian,
    /// Density proportional to `exp(−ε‖z‖)`: a uniform direction, a Gamma variable of shape d and scale 1/ε as length.
    Blocks,
}

/// A strategy `B` of blocks of orthogonal rows and its decoding `L`, `L B = A`.
///
/// Errors are root mean (weighted) squared errors at noise multiplier 1 (Gaussian) or at `ε = 1` (blocks).
#[derive(Debug, Clone, PartialEq)]
pub struct DenseStrategy {
    /// Number of queries, m.
    pub rows: usize,
    /// Number of cells, n.
    pub columns: usize,
    /// Rank of the queries, r.
    pub rank: usize,
    /// Rows `d_i` of each block; their sum is r.
    pub blocks: Vec<u32>,
    /// `B`, r × n, row by row. For every column, the Euclidean norm (Gaussian) or the sum of the Euclidean norms of its
    /// blocks is at most 1.
    pub strategy: Vec<f64>,
    /// `L`, m × r, row by row.
    pub decode: Vec<f64>,
    /// `r_i`: the largest Euclidean norm of a column of `U_iᵀ D A`, rounded up, for `D = diag(√(m ω))` and weights `ω` of
    /// the queries that sum to 1 (`D = I` if all are equal).
    pub radii: Vec<f64>,
    /// Weights of the cells, sum 1: the proof of `lower`.
    pub cell_weights: Vec<f64>,
    /// No noise levels of these blocks have a smaller error than this.
    pub lower: f64,
    /// The error of this strategy.
    pub upper: f64,
    /// `upper/lower − 1`: also how much is lost by coefficients that are not optimal.
    pub gap: f64,
    /// Evaluations for all ellipsoids and the coefficients.
    pub iterations: usize,
}

impl Noise {
    /// Variance of a coordinate of a block of `d`.
    fn variance(self, d: usize) -> f64 {
        match self {
            Self::Gaussian => 1.0,
            Self::Blocks => d as f64 + 1.0,
        }
    }

    /// The variance is `variance · t^p` at level t.
    fn power(self) -> i32 {
        match self {
            Self::Gaussian => 1,
            Self::Blocks => 2,
        }
    }

    /// What a block of this norm adds to a column: norm and sensitivity of a column are the inverse of this function
    /// at the sum.
    fn size(self, norm: f64) -> f64 {
        match self {
            Self::Gaussian => norm * norm,
            Self::Blocks => norm,
        }
    }

    /// The inverse of `size`.
    fn norm(self, size: f64) -> f64 {
        match self {
            Self::Gaussian => size.sqrt(),
            Self::Blocks => size,
        }
    }
}

/// Noise on the base decomposition of the queries; weights of the queries as in [`mean_strategy`](super::mean_strategy).
///
/// Every ellipsoid and the coefficients are computed to the target. Stops when `progress(iteration, gap)` breaks; the
/// best so far is returned with its own gap.
///
/// # Errors
/// If a weight is not positive and finite, or the queries are too ill-conditioned for double precision.
pub fn dense_strategy(
    queries: Queries<'_>,
    weights: Option<&[f64]>,
    coefficients: Coefficients,
    noise: Noise,
    target: Target,
    progress: Progress<'_>,
) -> Result<DenseStrategy, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let m = a.nrows() as f64;
    // D, and the weighted queries.
    let roots: Vec<f64> = match weights {
        Some(_) => roots(a.nrows(), weights)?.iter().map(|root| root * m.sqrt()).collect(),
        None => vec![1.0; a.nrows()],
    };
    let mut weighted = a.clone();
    scale_rows(&mut weighted, |i| roots[i]);
    let range = Range::new(&weighted)?;
    let mut stages = Stages::new(progress);
    let Decomposition { directions, dimensions, .. } = Decomposition::new(&range.reduced, target, &mut stages)?;
    let mut strategy = transposed_product(&directions, &range.coordinates);
    let norms = block_norms(&strategy, &dimensions);
    let radius = |i: usize| rounded_up(most(norms.iter().map(|norms| &norms[i])), strategy.nrows());
    let radii: Vec<f64> = (0..dimensions.len()).map(radius).collect();

    let sizes = |j: &usize| norms[*j].iter().map(|norm| noise.size(*norm)).collect();
    let mut program = NoiseLevels {
        sizes: from_columns(range.active.iter().map(sizes)),
        costs: dimensions.iter().map(|d| *d as f64 * noise.variance(*d)).collect(),
        power: noise.power(),
    };
    let failed = || Error::Unsupported("the noise levels did not converge".into());
    let solution = stages.run(|progress| solve(&mut program, target, progress)).ok_or_else(failed)?;
    let lower = program.bound(program.levels(&solution.lower.weights).0) * (1.0 - SLACK) / m.sqrt();
    let levels = match coefficients {
        Coefficients::Optimal => program.levels(&solution.upper.weights).1,
        _ => radii.iter().map(|radius| dimensions.len() as f64 * noise.size(*radius)).collect(),
    };

    let rows = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
        dimensions.iter().enumerate().flat_map(|(i, d)| std::iter::repeat_n(value(i), *d)).collect()
    };
    let (deviations, variances) = (rows(&|i| noise.norm(levels[i])), rows(&|i| noise.variance(dimensions[i])));
    scale_rows(&mut strategy, |i| 1.0 / deviations[i]);
    let of_column = |norms: &Vec<f64>| noise.norm(norms.iter().map(|norm| noise.size(*norm)).sum());
    let sensitivities: Vec<f64> = block_norms(&strategy, &dimensions).iter().map(of_column).collect();
    let mut sensitivity = rounded_up(most(&sensitivities), strategy.nrows());
    if coefficients == Coefficients::Printed {
        sensitivity = sensitivity.max(1.0);
    }
    let mut decode = directions;
    scale_columns(&mut decode, |i| deviations[i]);
    let mut decode = range.embed(decode);
    let upper = sensitivity * (dot(&squared_columns(&decode), &variances) / m).sqrt();
    scale_rows(&mut decode, |i| 1.0 / roots[i]);
    normalise(&a, &mut strategy, &mut decode, sensitivity)?;
    scale_columns(&mut decode, |_| scale);
    Ok(DenseStrategy {
        rows: a.nrows(),
        columns: a.ncols(),
        rank: strategy.nrows(),
        blocks: dimensions.iter().map(|d| *d as u32).collect(),
        strategy: to_rows(&strategy),
        decode: to_rows(&decode),
        radii: radii.iter().map(|radius| radius * scale).collect(),
        cell_weights: spread(a.ncols(), &range.active, &solution.lower.weights),
        lower: lower * scale,
        upper: upper * scale,
        gap: upper / lower - 1.0,
        iterations: stages.done,
    })
}

/// For every column the norms of its blocks.
fn block_norms(matrix: &Matrix, dimensions: &[usize]) -> Vec<Vec<f64>> {
    let norms = |j| {
        let mut rest = matrix.col_as_slice(j);
        let norm = |d: &usize| {
            let (block, tail) = rest.split_at(*d);
            rest = tail;
            dot(block, block).sqrt()
        };
        dimensions.iter().map(norm).collect()
    };
    (0..matrix.ncols()).map(norms).collect()
}

/// A bound on a norm of `size` entries, or a sum of norms of blocks, from its rounded value that survives a division by
/// it, entry by entry.
fn rounded_up(norm: f64, size: usize) -> f64 {
    norm * (1.0 + UNIT_ROUNDOFF * (2.0 * size as f64 + 8.0))
}
