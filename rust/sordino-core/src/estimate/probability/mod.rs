//! The probability measure on a grid whose features are nearest to published ones.
//!
//! | file | concept |
//! |---|---|
//! | `tensor.rs` | the features of a grid, `diag(a) (F_1 ⊗ … ⊗ F_d)`, by contractions |

mod tensor;
#[cfg(test)]
mod tests;

pub use tensor::Factor;

use super::accelerated::Search;
use super::constraint::Constraint;
use super::recovery::Operator;
use crate::error::Error;
use crate::linear_algebra::dot;
use crate::optimize::Progress;
use tensor::TensorOperator;

/// Gap at which the search ends, relative to the objective.
const GAP: f64 = 1e-3;

/// The same relative to `½‖a ∘ y‖²`, for features that a measure has exactly.
const EXACT_GAP: f64 = 1e-6;

/// The result of [`project_measure`].
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// `w`: the probability of each grid point, the last axis fastest.
    pub weights: Vec<f64>,
    /// `½ Σ_m (a_m ((F w)_m − y_m))²`.
    pub objective: f64,
    /// The objective is at most this above the least: a certificate.
    pub gap: f64,
    /// Steps of the search.
    pub iterations: usize,
}

/// The probability measure on a tensor grid whose features are nearest to `target`: minimises
/// `½ Σ_m (a_m ((F w)_m − y_m))²` over `w ≥ 0`, `Σ w = 1`, `F = F_1 ⊗ … ⊗ F_d`.
///
/// Simplex-constrained least squares. With Chebyshev polynomials for features it is the second mechanism of Wang, Jin,
/// Fan, Zhang, Huang, Zhong & Wang 2016 ("Differentially private data releasing for smooth queries", JMLR 17) with the
/// Euclidean distance instead of the largest deviation. `a` is one over the standard deviation of the noise, up to a
/// factor; zero for what was not measured.
///
/// | argument | shape | meaning |
/// |---|---|---|
/// | `factors` | `T_j × G_j` each | `F_j`, features of the grid points of axis j |
/// | `target` | `Π T_j`, C order | `y` |
/// | `weights` | `Π T_j`, C order | `a ≥ 0` |
/// | result | `Π G_j`, C order | `w` |
///
/// Ends when the objective is certainly within a factor 1.001 of the least, or within `10^{-6}·½‖a ∘ y‖²` of it, after
/// `max_iterations`, or when `progress(iterations, gap)` breaks; the best so far is returned with its own gap. Memory:
/// a few vectors of `Π T_j` and of `Π G_j` numbers. The result does not depend on the number of threads.
///
/// # Method
/// Accelerated projected gradient steps, `accelerated.rs`, with `C = diag(a) F` and `t = a ∘ y`. Each step costs one product
/// with `F` and one with `Fᵀ`.
///
/// # Errors
/// If there are no factors, one is empty, a length does not match, a number is not finite, a weight is negative, all
/// weights are zero, or the numbers are so large that the gradient overflows.
pub fn project_measure(
    factors: &[Factor<'_>],
    target: &[f64],
    weights: &[f64],
    max_iterations: usize,
    progress: Progress<'_>,
) -> Result<Measure, Error> {
    let operator = TensorOperator::new(factors, weights)?;
    Error::check_len("target", weights.len(), target.len())?;
    if target.iter().any(|y| !y.is_finite()) {
        return Err(Error::invalid("target", "every number must be finite"));
    }
    let target = operator.weighted(target);
    let exact = EXACT_GAP * dot(&target, &target) / 2.0;
    let uniform = vec![1.0 / operator.columns() as f64; operator.columns()];
    let mut search = Search::new(&operator, operator.squared_norm_bound(), &target, Constraint::Total(1.0), uniform);
    let (mut lower, mut iterations) = (0.0f64, 0);
    loop {
        lower = lower.max(search.differentiate()?);
        let objective = search.best.objective;
        let gap = (objective - lower).max(0.0);
        if !gap.is_finite() {
            return Err(Error::Overflow("factors, target and weights are too large: the gradient overflows".into()));
        }
        let done = progress(iterations, gap).is_break() || gap <= exact.max(GAP * objective);
        if done || iterations >= max_iterations {
            return Ok(Measure { weights: search.best.weights, objective, gap, iterations });
        }
        search.step();
        iterations += 1;
    }
}
