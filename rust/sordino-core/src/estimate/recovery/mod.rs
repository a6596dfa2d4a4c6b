//! Sparse vectors from few measurements: `θ` from `y = A θ + w`, with `A` known by its products only.
//!
//! | file | concept |
//! |---|---|
//! | `operator.rs` | [`Operator`]: the matrix `A` |
//! | `cosamp.rs` | compressive sampling matching pursuit |
//! | `hard_thresholding.rs` | normalised iterative hard thresholding |
//! | `basis_pursuit.rs` | basis pursuit denoising |
//! | `least_squares.rs` | least squares on few columns, which all of them end with |
//! | `largest.rs` | the largest entries of a vector |
//! | `vectors.rs` | sums over long vectors |
//!
//! ```
//! use sordino_core::estimate::recovery::{Algorithm, Operator, Target, recover};
//! use std::ops::ControlFlow;
//!
//! /// The identity beside a rotation by half a right angle.
//! struct Pair;
//!
//! impl Operator for Pair {
//!     fn rows(&self) -> usize {
//!         2
//!     }
//!     fn columns(&self) -> usize {
//!         4
//!     }
//!     fn apply(&self, x: &[f64], out: &mut [f64]) {
//!         let c = 0.5f64.sqrt();
//!         out.copy_from_slice(&[x[0] + c * (x[2] - x[3]), x[1] + c * (x[2] + x[3])]);
//!     }
//!     fn adjoint(&self, y: &[f64], out: &mut [f64]) {
//!         let c = 0.5f64.sqrt();
//!         out.copy_from_slice(&[y[0], y[1], c * (y[0] + y[1]), c * (y[1] - y[0])]);
//!     }
//! }
//!
//! let target = Target { sparsity: Some(1), noise: 0.0, iterations: 100, threshold: None };
//! let found = recover(&Pair, &[3.0, 3.0], Algorithm::Cosamp, target, &mut |_, _| ControlFlow::Continue(()))?;
//! assert_eq!(found.support, [2]);
//! assert!((found.values[0] - 18f64.sqrt()).abs() < 1e-9);
//! # Ok::<(), sordino_core::error::Error>(())
//! ```

mod basis_pursuit;
mod cosamp;
mod hard_thresholding;
mod largest;
mod least_squares;
mod operator;
#[cfg(test)]
mod tests;
mod vectors;

pub use operator::Operator;

use crate::error::Error;
use crate::optimize::Progress;
use least_squares::{Depth, LeastSquares};
use vectors::{dot, largest_magnitude};

/// Relative to `‖y‖` or to the largest value: what rounding leaves.
const ROUNDING: f64 = 1e-12;

/// A way to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Compressive sampling matching pursuit (Needell & Tropp 2009). Needs the sparsity.
    Cosamp,
    /// Normalised iterative hard thresholding (Blumensath & Davies 2010). Needs the sparsity.
    HardThresholding,
    /// Basis pursuit denoising (Chen, Donoho & Saunders 1998) with `λ = noise √(2 ln N)`, and least squares on the
    /// support. Slower; finds the sparsity itself.
    BasisPursuit,
}

/// What is wanted, and when to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// `S`, entries of `θ` that are not zero: at most.
    pub sparsity: Option<usize>,
    /// Standard deviation of each entry of `w`. The greedy algorithms stop where the residual `r = y − A θ` looks like
    /// noise, `‖r‖ ≤ noise √k` and `‖Aᵀ r‖_∞ ≤ noise √(2 ln N)`; every algorithm returns zero if `y` does.
    pub noise: f64,
    /// Iterations after which the best so far is returned.
    pub iterations: usize,
    /// What noise alone may reach beside the others: entries that are not above it are dropped, and the rest is fitted
    /// again.
    pub threshold: Option<Threshold>,
}

/// Which fitted entries stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Those whose magnitude is above this.
    pub above: f64,
    /// And the first column, whatever its value.
    pub keep_first: bool,
}

/// The result of [`recover`].
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// Where `θ` is not zero, rising.
    pub support: Vec<usize>,
    /// `θ` there: least squares on the support, what was dropped left out.
    pub values: Vec<f64>,
    /// `‖y − A θ‖₂`.
    pub residual: f64,
    /// Iterations of the algorithm.
    pub iterations: usize,
    /// Whether the algorithm ended by itself: at the level of the noise, where it no longer moved, or, for basis
    /// pursuit, with a small duality gap (without noise: with `y` explained to rounding). It is no promise that `θ`
    /// is right.
    pub converged: bool,
}

/// When an algorithm stops.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// `‖y − A θ‖` that noise alone explains, or rounding.
    residual: f64,
    /// `‖Aᵀ(y − A θ)‖_∞` that noise alone explains.
    proxy: f64,
    iterations: usize,
}

/// What an algorithm found, before the last least squares.
#[derive(Debug, Clone, Default)]
struct Found {
    support: Vec<usize>,
    values: Vec<f64>,
    iterations: usize,
    converged: bool,
}

/// A sparse `θ` with `A θ` near `y`.
///
/// `progress(iteration, ‖y − A θ‖)` is called after every iteration; if it breaks, the best so far is returned.
/// Memory: a few vectors of N and of k numbers. The result does not depend on the number of threads.
///
/// # Errors
/// If `y` has the wrong length, is not finite or its square overflows, the sparsity is 0, above k, or missing where it
/// is needed, the noise is negative or not finite, `iterations` is 0, or a product with `A` overflows.
pub fn recover(
    a: &dyn Operator,
    y: &[f64],
    algorithm: Algorithm,
    target: Target,
    progress: Progress<'_>,
) -> Result<Recovery, Error> {
    check(a, y, algorithm, target)?;
    let mut problem = LeastSquares::new(a, y, target.noise);
    let rounding = ROUNDING * problem.norm();
    let rule = Rule {
        residual: rounding.max(target.noise * (y.len() as f64).sqrt()),
        proxy: if target.noise > 0.0 {
            rounding.max(target.noise * (2.0 * (a.columns().max(2) as f64).ln()).sqrt())
        } else {
            f64::INFINITY
        },
        iterations: target.iterations,
    };
    let found = if problem.explained(rule) {
        Found { converged: true, ..Found::default() }
    } else {
        match (algorithm, target.sparsity) {
            (Algorithm::Cosamp, Some(sparsity)) => cosamp::cosamp(&mut problem, sparsity, rule, progress),
            (Algorithm::HardThresholding, Some(sparsity)) => {
                hard_thresholding::hard_thresholding(&mut problem, sparsity, rule, progress)
            }
            (_, sparsity) => basis_pursuit::basis_pursuit(&mut problem, sparsity, rule, progress),
        }
    };
    finish(&mut problem, found, target.threshold)
}

fn check(a: &dyn Operator, y: &[f64], algorithm: Algorithm, target: Target) -> Result<(), Error> {
    Error::check_len("y", a.rows(), y.len())?;
    if y.iter().any(|y| !y.is_finite()) {
        return Err(Error::invalid("y", "every number must be finite"));
    }
    // A margin for the sizes of A.
    if dot(y, y) > 1e280 {
        return Err(Error::invalid("y", "too large: its square overflows"));
    }
    match target.sparsity {
        None if algorithm != Algorithm::BasisPursuit => {
            return Err(Error::invalid("sparsity", "this algorithm needs it"));
        }
        Some(sparsity) if sparsity == 0 || sparsity > a.rows() => {
            return Err(Error::invalid("sparsity", format!("must be from 1 to {}, got {sparsity}", a.rows())));
        }
        _ => {}
    }
    if !target.noise.is_finite() || target.noise < 0.0 {
        return Err(Error::invalid("noise", format!("must be finite and not negative, got {}", target.noise)));
    }
    if target.iterations == 0 {
        return Err(Error::invalid("iterations", "must be at least 1"));
    }
    Ok(())
}

/// Least squares on the support, without what is zero but for rounding; and again on what is above the threshold.
fn finish(problem: &mut LeastSquares<'_>, found: Found, threshold: Option<Threshold>) -> Result<Recovery, Error> {
    let Found { mut support, mut values, iterations, converged } = found;
    let mut fit = |support: &mut Vec<usize>, values: &mut Vec<f64>, threshold: Option<Threshold>| {
        if support.is_empty() {
            return false;
        }
        problem.evaluate(support, values);
        problem.differentiate();
        problem.solve(support, values, Depth::Exact);
        let least = ROUNDING * largest_magnitude(values);
        let stays = |(column, value): (&usize, &f64)| match threshold {
            Some(threshold) => value.abs() > least.max(threshold.above) || threshold.keep_first && *column == 0,
            None => value.abs() > least,
        };
        let kept: Vec<bool> = support.iter().zip(&*values).map(stays).collect();
        let mut keep = kept.iter();
        support.retain(|_| keep.next() == Some(&true));
        let mut keep = kept.iter();
        values.retain(|_| keep.next() == Some(&true));
        kept.contains(&false)
    };
    if fit(&mut support, &mut values, threshold) && threshold.is_some() {
        fit(&mut support, &mut values, None);
    }
    let residual = problem.evaluate(&support, &values);
    if !residual.is_finite() {
        return Err(Error::Overflow("the columns or y are too large: the residual overflows".into()));
    }
    Ok(Recovery { support, values, residual, iterations, converged })
}
