//! Basis pursuit denoising.

use super::largest::Largest;
use super::least_squares::{Depth, LeastSquares};
use super::vectors::{absolute_sum, dot, largest_magnitude, norm, squared_distance, sum};
use super::{Found, Rule};
use crate::optimize::Progress;

/// Relative duality gap at which the last program counts as solved.
const GAP: f64 = 1e-6;

/// The same for the programs on the way to it, which only give it a start.
const ROUGH_GAP: f64 = 1e-2;

/// From one `λ` to the next.
const DESCENT: f64 = 0.25;

/// The least `λ` without noise, relative to the least at which `θ = 0` is optimal.
const NOISELESS: f64 = 1e-6;

/// The inverse of the norm of a column, squared: the step that is right for one coordinate.
const LONGEST_STEP: f64 = 1.0;

/// `min ½‖A θ − y‖² + λ‖θ‖₁`, `λ` the correlations that noise alone reaches, and least squares on the support: on at
/// most `sparsity` and half as many columns as there are rows, those with the largest values.
///
/// FISTA (Beck & Teboulle 2009) with the gradient restart of O'Donoghue & Candès (2015, Section 3.2), through a falling
/// sequence of `λ`. Steps are found by backtracking from the longest and lengthen at a restart: those of `1/‖A‖²` are
/// for vectors that are not sparse, and far shorter. Without noise `λ` falls until least squares on the support explain
/// `y`, or to [`NOISELESS`]. An iteration costs one `A` and one `Aᵀ`, and one `A` more for a step that was too long.
pub(super) fn basis_pursuit(
    problem: &mut LeastSquares<'_>,
    sparsity: Option<usize>,
    rule: Rule,
    progress: Progress<'_>,
) -> Found {
    let most = (problem.y().len() / 2).max(1).min(sparsity.unwrap_or(usize::MAX));
    let top = largest_magnitude(&problem.proxy);
    let noisy = rule.proxy.is_finite();
    let last = if noisy { rule.proxy } else { NOISELESS * top };
    let mut largest = Largest::default();
    let mut search = Fista::new(problem);
    // Zero is optimal where the loop is not entered.
    let mut found = Found { converged: top <= last, ..Found::default() };
    let mut lambda = top;
    while !found.converged && lambda > last {
        lambda = last.max(DESCENT * lambda);
        let end = search.minimise(problem, lambda, if lambda == last { GAP } else { ROUGH_GAP }, rule, progress);
        let stopped = end != End::Solved;
        if noisy && lambda > last && !stopped {
            continue;
        }
        found.iterations = search.iterations;
        largest.select(&search.x, most, &mut found.support);
        found.values.clear();
        found.values.extend(found.support.iter().map(|j| search.x[*j]));
        problem.evaluate(&found.support, &found.values);
        problem.differentiate();
        problem.solve(&found.support, &mut found.values, Depth::Exact);
        found.converged = if noisy { !stopped } else { norm(&problem.residual) <= rule.residual };
        if stopped {
            break;
        }
    }
    found
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Solved,
    Stopped,
}

/// `x` and the extrapolated `z` with their images, from one `λ` to the next.
struct Fista {
    x: Vec<f64>,
    next: Vec<f64>,
    z: Vec<f64>,
    image_x: Vec<f64>,
    image_next: Vec<f64>,
    image_z: Vec<f64>,
    /// `1/L`, `L` the Lipschitz constant of the gradient as far as it was met: for sparse `θ` far below `‖A‖²`.
    step: f64,
    iterations: usize,
}

impl Fista {
    fn new(problem: &LeastSquares<'_>) -> Self {
        let (rows, columns) = (problem.y().len(), problem.proxy.len());
        Self {
            x: vec![0.0; columns],
            next: vec![0.0; columns],
            z: vec![0.0; columns],
            image_x: vec![0.0; rows],
            image_next: vec![0.0; rows],
            image_z: vec![0.0; rows],
            step: LONGEST_STEP,
            iterations: 0,
        }
    }

    /// Solves the program of one `λ` to a relative gap, from where the last one ended.
    ///
    /// The gap is between the value at `x` and the dual value `⟨y, u⟩ − ½‖u‖²` of the best multiple `u` of a residual
    /// that satisfies `‖Aᵀ u‖_∞ ≤ λ`: a certificate. The residuals are those at `z`, whose `Aᵀ` is at hand.
    fn minimise(
        &mut self,
        problem: &mut LeastSquares<'_>,
        lambda: f64,
        gap: f64,
        rule: Rule,
        progress: Progress<'_>,
    ) -> End {
        let (operator, y) = (problem.operator(), problem.y());
        let mut below = 0.0f64;
        let mut momentum = 1.0f64;
        self.z.clone_from(&self.x);
        self.image_z.clone_from(&self.image_x);
        loop {
            if self.iterations == rule.iterations {
                return End::Stopped;
            }
            self.iterations += 1;
            let residual = &mut problem.residual;
            residual.iter_mut().zip(y.iter().zip(&self.image_z)).for_each(|(slot, (y, image))| *slot = y - image);
            let (square, match_y) = (dot(residual, residual), dot(residual, y));
            problem.differentiate();
            let limit = lambda / largest_magnitude(&problem.proxy);
            let multiple = if square > 0.0 { (match_y / square).clamp(-limit, limit) } else { 0.0 };
            below = below.max(multiple * match_y - 0.5 * multiple * multiple * square);
            let rounding = 1e-24 * dot(&self.image_z, &self.image_z);
            loop {
                self.shrink(&problem.proxy, lambda);
                operator.apply(&self.next, &mut self.image_next);
                let length = squared_distance(&self.next, &self.z);
                let image = squared_distance(&self.image_next, &self.image_z);
                // False for what is not a number, too.
                let too_long = self.step * image > length + self.step * rounding;
                if !too_long {
                    break;
                }
                self.step *= 0.5;
            }
            let square = squared_distance(y, &self.image_next);
            let value = 0.5 * square + lambda * absolute_sum(&self.next);
            // Positive where the step leads uphill.
            let ascent = sum(&self.next, &self.z, &self.x, |next, z, x| (z - next) * (next - x));
            let weight = if ascent > 0.0 {
                momentum = 1.0;
                // A new run, which may find that the support has become kinder.
                self.step = LONGEST_STEP.min(2.0 * self.step);
                0.0
            } else {
                let last = momentum;
                momentum = 0.5 * (1.0 + (1.0 + 4.0 * last * last).sqrt());
                (last - 1.0) / momentum
            };
            extrapolate(weight, &self.next, &self.x, &mut self.z);
            extrapolate(weight, &self.image_next, &self.image_x, &mut self.image_z);
            std::mem::swap(&mut self.x, &mut self.next);
            std::mem::swap(&mut self.image_x, &mut self.image_next);
            if progress(self.iterations, square.sqrt()).is_break() {
                return End::Stopped;
            }
            if value - below <= gap * value {
                return End::Solved;
            }
        }
    }

    /// `next`: soft thresholding of a gradient step from `z`.
    fn shrink(&mut self, proxy: &[f64], lambda: f64) {
        let bound = lambda * self.step;
        for ((next, z), proxy) in self.next.iter_mut().zip(&self.z).zip(proxy) {
            let moved = z + self.step * proxy;
            *next = moved - moved.clamp(-bound, bound);
        }
    }
}

/// `z = next + weight (next − x)`.
fn extrapolate(weight: f64, next: &[f64], x: &[f64], z: &mut [f64]) {
    for ((z, next), x) in z.iter_mut().zip(next).zip(x) {
        *z = next + weight * (next - x);
    }
}

/// The minimum for one `λ`, to a relative gap.
#[cfg(test)]
pub(super) fn minimum(operator: &dyn super::Operator, y: &[f64], lambda: f64, gap: f64) -> Vec<f64> {
    let mut problem = LeastSquares::new(operator, y, 0.0);
    let mut search = Fista::new(&problem);
    let rule = Rule { residual: 0.0, proxy: f64::INFINITY, iterations: 100_000 };
    let end = search.minimise(&mut problem, lambda, gap, rule, &mut |_, _| std::ops::ControlFlow::Continue(()));
    assert_eq!(end, End::Solved);
    search.x
}
