//! Normalised iterative hard thresholding.

use super::largest::Largest;
use super::least_squares::{Depth, LeastSquares};
use super::vectors::{dot, norm, squared_distance};
use super::{Found, Rule};
use crate::optimize::Progress;

/// `c`: a step that changes the support is at most `1 − c` of the one that surely descends.
const MARGIN: f64 = 0.01;

/// Such a step that is too long is divided by this, `κ (1 − c)`.
const SHRINK: f64 = 2.0;

/// Such divisions at most: `μ ≤ (1 − c)/‖A‖²` needs no more.
const ATTEMPTS: usize = 60;

/// Iterations without a change of the support after which least squares replaces the rest of them.
const SETTLED: usize = 8;

/// Blumensath & Davies (2010): gradient steps `θ + μ Aᵀ(y − A θ)`, of which the `S` largest entries stay. `μ` is the
/// best step on the present support; where the support changes, it shrinks until the residual surely falls.
///
/// Once the support rests, `θ` jumps to the least squares solution on it, the limit of all further steps if it stays
/// so. Ends there if the next step does not change the support. An iteration costs two `A` and one `Aᵀ`,
/// one `A` less while the support stays.
pub(super) fn hard_thresholding(
    problem: &mut LeastSquares<'_>,
    sparsity: usize,
    rule: Rule,
    progress: Progress<'_>,
) -> Found {
    let mut largest = Largest::default();
    let mut moved = vec![0.0; problem.proxy.len()];
    let mut before = vec![0.0; problem.y().len()];
    let (mut next, mut values, mut slope, mut old) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut now = Found::default();
    largest.select(&problem.proxy, sparsity, &mut now.support);
    now.values.resize(now.support.len(), 0.0);
    let (mut step, mut rested) = (1.0, 0);
    for iteration in 1..=rule.iterations {
        slope.clear();
        slope.extend(now.support.iter().map(|j| problem.proxy[*j]));
        before.clone_from(&problem.residual);
        let image = problem.image(&now.support, &slope);
        let best = dot(&slope, &slope) / dot(image, image);
        // At a minimum on this support there is none: the last one stays.
        step = if best.is_finite() && rested < SETTLED { best } else { step };
        for attempt in 0..ATTEMPTS {
            moved.iter_mut().zip(&problem.proxy).for_each(|(slot, proxy)| *slot = step * proxy);
            now.support.iter().zip(&now.values).for_each(|(j, value)| moved[*j] += value);
            largest.select(&moved, sparsity, &mut next);
            values.clear();
            values.extend(next.iter().map(|j| moved[*j]));
            if next == now.support && attempt == 0 {
                problem.advance(step);
                break;
            }
            problem.evaluate(&next, &values);
            problem.carry(&now.support, &now.values, &next, &mut old);
            let image = squared_distance(&before, &problem.residual);
            if next == now.support || step * image <= (1.0 - MARGIN) * change(&now, &next, &values, &old) {
                break;
            }
            step /= SHRINK;
        }
        rested = if next == now.support { rested + 1 } else { 0 };
        std::mem::swap(&mut now.support, &mut next);
        std::mem::swap(&mut now.values, &mut values);
        now.iterations = iteration;
        let residual = norm(&problem.residual);
        let stopped = progress(iteration, residual).is_break();
        problem.differentiate();
        now.converged = rested > SETTLED || problem.explained(rule);
        if stopped || now.converged {
            break;
        }
        if rested == SETTLED {
            problem.solve(&now.support, &mut now.values, Depth::Exact);
        }
    }
    now
}

/// `‖θ' − θ‖²`, `old` being `θ` where `θ'` is not zero.
fn change(now: &Found, next: &[usize], values: &[f64], old: &[f64]) -> f64 {
    let left = now.support.iter().zip(&now.values).filter(|(j, _)| next.binary_search(j).is_err());
    squared_distance(values, old) + left.map(|(_, value)| value.powi(2)).sum::<f64>()
}
