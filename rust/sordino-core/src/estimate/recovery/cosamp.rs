//! Compressive sampling matching pursuit.

use super::largest::Largest;
use super::least_squares::{Depth, LeastSquares};
use super::{Found, Rule};
use crate::optimize::Progress;

/// Iterations in which the residual must fall by [`FALL`].
const PATIENCE: usize = 6;

/// See [`PATIENCE`].
const FALL: f64 = 1e-3;

/// Needell & Tropp (2009), Algorithm 2.1: the `2S` columns that match the residual best join the support, least
/// squares on all of them, and the `S` largest values stay. Ends at a support that does not change.
///
/// An iteration costs one `A` and one `Aᵀ`, and as many again for each of the few steps of least squares.
pub(super) fn cosamp(problem: &mut LeastSquares<'_>, sparsity: usize, rule: Rule, progress: Progress<'_>) -> Found {
    let mut largest = Largest::default();
    // More columns than rows fit anything.
    let joining = (2 * sparsity).min(problem.y().len() - sparsity).max(1);
    let (mut merged, mut fitted, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = Found::default();
    let mut best = Found::default();
    let (mut least, mut mark, mut since) = (problem.norm(), problem.norm(), 0);
    for iteration in 1..=rule.iterations {
        largest.select(&problem.proxy, joining, &mut merged);
        merged.extend_from_slice(&now.support);
        merged.sort_unstable();
        merged.dedup();
        problem.carry(&now.support, &now.values, &merged, &mut fitted);
        problem.solve(&merged, &mut fitted, Depth::Rough);
        largest.prune(&mut merged, &mut fitted, sparsity, &mut kept);
        let settled = merged == now.support;
        std::mem::swap(&mut now.support, &mut merged);
        std::mem::swap(&mut now.values, &mut fitted);
        now.iterations = iteration;
        let residual = problem.evaluate(&now.support, &now.values);
        if residual < least {
            least = residual;
            best.clone_from(&now);
        }
        since += 1;
        if residual < (1.0 - FALL) * mark {
            (mark, since) = (residual, 0);
        }
        let stopped = progress(iteration, residual).is_break();
        problem.differentiate();
        best.iterations = iteration;
        best.converged = settled || since >= PATIENCE || problem.explained(rule);
        if stopped || best.converged {
            break;
        }
    }
    best
}
