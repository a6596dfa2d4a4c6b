//! Accelerated projected gradients: the weights within a constraint whose image is nearest to a target.
//!
//! Minimises `½‖C w − t‖²` over `w ∈ X` by FISTA with backtracking (Beck & Teboulle 2009), restarted where momentum points
//! uphill (O'Donoghue & Candès 2015). A step costs one product with `C` and one with `Cᵀ`. The certificate: for any
//! direction ρ all `C w` are in the half-space `⟨ρ, ·⟩ ≥ min_{w ∈ X} ⟨Cᵀρ, w⟩`, and the distance of `t` from it is a lower
//! bound. The residuals of the search are taken for ρ.

use super::constraint::Constraint;
use super::recovery::Operator;
use crate::error::Error;
use crate::linear_algebra::dot;

/// Growth of a curvature that was too small.
const GROWTH: f64 = 1.5;

/// A curvature shrinks by this factor each step: the face that the search is on may be flatter than its way there.
const DECAY: f64 = 0.98;

/// What rounding adds to the squares that the curvature is tested with: relative, and relative to the square of the image,
/// of which a tiny step is the difference.
const ROUNDING: f64 = 1e-9;
const CANCELLED: f64 = 1e-24;

/// Weights, their image `C w`, and the objective there.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) weights: Vec<f64>,
    image: Vec<f64>,
    pub(super) objective: f64,
}

/// The state of the search.
pub(super) struct Search<'a, O> {
    operator: &'a O,
    /// At least `‖C‖²`.
    steepest: f64,
    target: &'a [f64],
    constraint: Constraint,
    /// The present weights, and the best so far.
    present: Point,
    pub(super) best: Point,
    /// Where the next step starts: beyond the present weights.
    ahead: Point,
    /// The next weights.
    next: Point,
    /// `C w − t` and `Cᵀ(C w − t)` ahead.
    residual: Vec<f64>,
    slopes: Vec<f64>,
    /// About `‖C δ‖²/‖δ‖²` of the last step δ, from above.
    curvature: f64,
    /// Weight of the past in the momentum.
    momentum: f64,
}

impl<'a, O: Operator> Search<'a, O> {
    /// From these weights, which are within the constraint; `steepest` is at least `‖C‖²`.
    pub(super) fn new(
        operator: &'a O,
        steepest: f64,
        target: &'a [f64],
        constraint: Constraint,
        weights: Vec<f64>,
    ) -> Self {
        let (rows, count) = (operator.rows(), operator.columns());
        let mut image = vec![0.0; rows];
        operator.apply(&weights, &mut image);
        let objective = half_squared_distance(&image, target);
        let point = Point { weights, image, objective };
        Self {
            operator,
            steepest,
            target,
            constraint,
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
    ///
    /// # Errors
    /// [`Error::Overflow`] if a slope is not finite.
    pub(super) fn differentiate(&mut self) -> Result<f64, Error> {
        for ((r, c), t) in self.residual.iter_mut().zip(&self.ahead.image).zip(self.target) {
            *r = c - t;
        }
        self.operator.adjoint(&self.residual, &mut self.slopes);
        if self.slopes.iter().any(|slope| !slope.is_finite()) {
            return Err(Error::Overflow("the numbers are too large: the gradient overflows".into()));
        }
        let least = self.constraint.size() * self.constraint.least_slope(&self.slopes);
        let margin = least - dot(&self.residual, self.target);
        let square = dot(&self.residual, &self.residual);
        Ok(if margin > 0.0 && square > 0.0 { (margin / square.sqrt()).powi(2) / 2.0 } else { 0.0 })
    }

    /// One step along the slopes, and momentum for the following one.
    pub(super) fn step(&mut self) {
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
        let limit = self.steepest;
        loop {
            let moves = self.next.weights.iter_mut().zip(&self.ahead.weights).zip(&self.slopes);
            moves.for_each(|((next, ahead), slope)| *next = ahead - slope / self.curvature);
            self.constraint.nearest(&mut self.next.weights);
            self.operator.apply(&self.next.weights, &mut self.next.image);
            let bend = half_squared_distance(&self.next.image, &self.ahead.image);
            let length = half_squared_distance(&self.next.weights, &self.ahead.weights);
            // No step is longer than the norm of C allows; beyond it rounding is seen, not curvature.
            let seen = CANCELLED * dot(&self.ahead.image, &self.ahead.image);
            if bend <= self.curvature * length * (1.0 + ROUNDING) + seen || self.curvature >= limit {
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
        let limit = self.steepest;
        if along > 0.0 { along.min(limit) } else { limit }
    }
}

/// `next + by (next − present)`.
fn extrapolate(out: &mut [f64], present: &[f64], next: &[f64], by: f64) {
    out.iter_mut().zip(present).zip(next).for_each(|((out, p), n)| *out = n + by * (n - p));
}

/// `½‖a − b‖²`.
pub(super) fn half_squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() / 2.0
}
