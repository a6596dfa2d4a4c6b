//! Newton's method for the least ellipsoid around few columns.
//!
//! `min r Σ u − log det M(u)` over `u ≥ 0`, `M(u) = Σ u_j a_j a_jᵀ`, has `Σ u = 1` at its optimum, where `z = r − k ≥ 0`
//! and `u z = 0` for `k_j = a_jᵀ M^{-1} a_j`. With `K = Aᵀ M^{-1} A` the Hessian is `K ∘ K`, and Newton's step towards
//! `u_j z_j = μ_j` solves
//!
//! `(K ∘ K + diag(z/u)) δu = k − r + μ/u`,  `δz = (μ − z δu)/u − z`.
//!
//! `μ` and the length of steps by predictor and corrector (Mehrotra 1992): about ten steps of n³/3 whatever the accuracy
//! and however many columns nearly touch, where multiplicative updates may need thousands.

use super::linear_algebra::{
    Matrix, add_to_diagonal, cholesky, dot, invert_lower, most, product, solve_factored, squared_columns, squared_gram,
    squared_images, weighted_gram,
};
use super::{Progress, Target};

/// Share of the way to the boundary.
const DAMPING: f64 = 0.995;

/// Least gap from which the start takes its `μ`.
const LEAST: f64 = 1e-12;

/// Weights of the columns that sum to 1, and the gap that they prove.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    pub weights: Vec<f64>,
    pub gap: f64,
}

/// Solves for columns of full row rank; stops as the driver of the other programs does. `None` if not even uniform
/// weights could be evaluated.
pub(super) fn interior_point(columns: &Matrix, target: Target, progress: Progress<'_>) -> Option<Weights> {
    let (rank, size) = (columns.nrows() as f64, columns.ncols());
    // Uniform weights so large that k ≤ r.
    let uniform = vec![1.0 / size as f64; size];
    let outside = squared_images(&invert_lower(&cholesky(&weighted_gram(columns, &uniform))?), columns);
    let inflation = most(&outside) / rank;
    let mut u = vec![inflation / size as f64; size];
    let start = (inflation - 1.0).max(LEAST) * rank / size as f64;
    let mut z: Vec<f64> = outside.iter().map(|k| (rank - k / inflation).max(start / u[0])).collect();
    let mut best: Option<Weights> = None;

    for iteration in 1..=target.iterations {
        let Some(factor) = cholesky(&weighted_gram(columns, &u)) else { break };
        let images = product(&invert_lower(&factor), columns);
        let k = squared_columns(&images);
        let total: f64 = u.iter().sum();
        let gap = most(&k) * total / rank - 1.0;
        if best.as_ref().is_none_or(|best| gap < best.gap) {
            best = Some(Weights { weights: u.iter().map(|u| u / total).collect(), gap });
        }
        if progress(iteration, gap).is_break() || gap <= target.gap {
            break;
        }
        let mut hessian = squared_gram(&images);
        add_to_diagonal(&mut hessian, |j| z[j] / u[j]);
        let Some(factor) = cholesky(&hessian) else { break };
        let step = |mu: &dyn Fn(usize) -> f64| {
            let right: Vec<f64> = (0..size).map(|j| k[j] - rank + mu(j) / u[j]).collect();
            let du = solve_factored(&factor, &right);
            let dz: Vec<f64> = (0..size).map(|j| (mu(j) - z[j] * du[j]) / u[j] - z[j]).collect();
            (du, dz)
        };
        let (du, dz) = step(&|_| 0.0);
        let ahead = dot(&advance(&u, &du, reach(&u, &du)), &advance(&z, &dz, reach(&z, &dz)));
        let mean = dot(&u, &z) / size as f64;
        let centre = mean * (ahead / (mean * size as f64)).powi(3);
        let (du, dz) = step(&|j| centre - du[j] * dz[j]);
        let length = reach(&u, &du).min(reach(&z, &dz));
        (u, z) = (advance(&u, &du, length), advance(&z, &dz, length));
    }
    best
}

/// The longest step, at most 1, that stays inside the positive numbers.
fn reach(x: &[f64], dx: &[f64]) -> f64 {
    x.iter().zip(dx).filter(|(_, dx)| **dx < 0.0).map(|(x, dx)| -DAMPING * x / dx).fold(1.0, f64::min)
}

/// `x + t δx`.
fn advance(x: &[f64], dx: &[f64], t: f64) -> Vec<f64> {
    x.iter().zip(dx).map(|(x, dx)| x + t * dx).collect()
}
