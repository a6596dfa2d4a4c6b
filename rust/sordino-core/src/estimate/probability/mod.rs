//! The probability measure on a grid whose features are nearest to published ones.
//!
//! | file | concept |
//! |---|---|
//! | `tensor.rs` | the features of a grid, `diag(a) (F_1 ⊗ … ⊗ F_d)`, by contractions |
//! | `simplex.rs` | the nearest probability vector |

mod simplex;
mod tensor;
#[cfg(test)]
mod tests;

pub use tensor::Factor;

use crate::error::Error;
use crate::linear_algebra::dot;
use crate::optimize::Progress;
use simplex::project_simplex;
use tensor::TensorOperator;

/// Gap at which the search ends, relative to the objective.
const GAP: f64 = 1e-3;

/// The same relative to `½‖a ∘ y‖²`, for features that a measure has exactly.
const EXACT_GAP: f64 = 1e-6;

/// Growth of a curvature that was too small.
const GROWTH: f64 = 1.5;

/// A curvature shrinks by this factor each step: the face that the search is on may be flatter than its way there.
const DECAY: f64 = 0.98;

/// What rounding adds to the squares that the curvature is tested with.
const ROUNDING: f64 = 1e-9;

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
/// Accelerated projected gradient steps (Beck & Teboulle 2009, FISTA with backtracking), restarted where momentum
/// points uphill (O'Donoghue & Candès 2015). Each step costs one product with `F` and one with `Fᵀ`. The certificate:
/// with `C = diag(a) F` and any direction ρ, all `C w` are in the half-space `⟨ρ, ·⟩ ≥ min_g (Cᵀρ)_g`, and the distance
/// of `t = a ∘ y` from it is a lower bound. The residuals of the search are taken for ρ.
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
    let mut search = Search::new(&operator, &target);
    let (mut lower, mut iterations) = (0.0f64, 0);
    loop {
        lower = lower.max(search.differentiate());
        let objective = search.best.objective;
        let gap = (objective - lower).max(0.0);
        if !gap.is_finite() || search.slopes.iter().any(|slope| !slope.is_finite()) {
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

/// Weights, their image `C w`, and the objective there.
#[derive(Debug, Clone)]
struct Point {
    weights: Vec<f64>,
    image: Vec<f64>,
    objective: f64,
}

/// The state of the search.
struct Search<'a> {
    operator: &'a TensorOperator,
    target: &'a [f64],
    /// The present measure, and the best so far.
    present: Point,
    best: Point,
    /// Where the next step starts: beyond the present measure.
    ahead: Point,
    /// The next measure.
    next: Point,
    /// `C w − t` and `Cᵀ(C w − t)` ahead.
    residual: Vec<f64>,
    slopes: Vec<f64>,
    /// About `‖C δ‖²/‖δ‖²` of the last step δ, from above.
    curvature: f64,
    /// Weight of the past in the momentum.
    momentum: f64,
}

impl<'a> Search<'a> {
    /// At the uniform measure.
    fn new(operator: &'a TensorOperator, target: &'a [f64]) -> Self {
        let (rows, count) = (operator.rows(), operator.points());
        let weights = vec![1.0 / count as f64; count];
        let mut image = vec![0.0; rows];
        operator.apply(&weights, &mut image);
        let objective = half_squared_distance(&image, target);
        let point = Point { weights, image, objective };
        Self {
            operator,
            target,
            present: point.clone(),
            best: point.clone(),
            ahead: point.clone(),
            next: point,
            residual: vec![0.0; rows],
            slopes: vec![0.0; count],
            curvature: 0.0,
            momentum: 1.0,
        }
    }

    /// Residual and slopes ahead; what they prove the objective to be at least.
    fn differentiate(&mut self) -> f64 {
        for ((r, c), t) in self.residual.iter_mut().zip(&self.ahead.image).zip(self.target) {
            *r = c - t;
        }
        self.operator.adjoint(&self.residual, &mut self.slopes);
        let least = self.slopes.iter().copied().fold(f64::INFINITY, f64::min);
        let margin = least - dot(&self.residual, self.target);
        let square = dot(&self.residual, &self.residual);
        if margin > 0.0 && square > 0.0 { (margin / square.sqrt()).powi(2) / 2.0 } else { 0.0 }
    }

    /// One step along the slopes, and momentum for the following one.
    fn step(&mut self) {
        self.descend();
        let (present, next) = (&self.present, &self.next);
        let turn = self.ahead.weights.iter().zip(&next.weights).zip(&present.weights);
        if turn.map(|((a, n), p)| (a - n) * (n - p)).sum::<f64>() > 0.0 {
            self.momentum = 1.0;
        }
        self.curvature *= DECAY;
        let momentum = f64::midpoint(1.0, (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
        let by = (self.momentum - 1.0) / momentum;
        self.momentum = momentum;
        extrapolate(&mut self.ahead.weights, &present.weights, &next.weights, by);
        extrapolate(&mut self.ahead.image, &present.image, &next.image, by);
        std::mem::swap(&mut self.present, &mut self.next);
        if self.present.objective < self.best.objective {
            self.best.clone_from(&self.present);
        }
    }

    /// The projected gradient step: its length is one over a curvature that it bears out.
    fn descend(&mut self) {
        if self.curvature == 0.0 {
            self.curvature = self.first_curvature();
        }
        let limit = self.operator.squared_norm_bound();
        loop {
            let moves = self.next.weights.iter_mut().zip(&self.ahead.weights).zip(&self.slopes);
            moves.for_each(|((next, ahead), slope)| *next = ahead - slope / self.curvature);
            project_simplex(&mut self.next.weights);
            self.operator.apply(&self.next.weights, &mut self.next.image);
            let bend = half_squared_distance(&self.next.image, &self.ahead.image);
            let length = half_squared_distance(&self.next.weights, &self.ahead.weights);
            // No step is longer than the norm of C allows; beyond it rounding is seen, not curvature.
            if bend <= self.curvature * length * (1.0 + ROUNDING) || self.curvature >= limit {
                break;
            }
            self.curvature = (GROWTH * self.curvature).min(limit);
        }
        self.next.objective = half_squared_distance(&self.next.image, self.target);
    }

    /// The curvature along the slopes, of which a sum of zero is left.
    fn first_curvature(&mut self) -> f64 {
        let mean = self.slopes.iter().sum::<f64>() / self.slopes.len() as f64;
        self.next.weights.iter_mut().zip(&self.slopes).for_each(|(w, slope)| *w = slope - mean);
        self.operator.apply(&self.next.weights, &mut self.next.image);
        let along = dot(&self.next.image, &self.next.image) / dot(&self.next.weights, &self.next.weights);
        let limit = self.operator.squared_norm_bound();
        if along > 0.0 { along.min(limit) } else { limit }
    }
}

/// `next + by (next − present)`.
fn extrapolate(out: &mut [f64], present: &[f64], next: &[f64], by: f64) {
    out.iter_mut().zip(present).zip(next).for_each(|((out, p), n)| *out = n + by * (n - p));
}

/// `½‖a − b‖²`.
fn half_squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / 2.0
}
