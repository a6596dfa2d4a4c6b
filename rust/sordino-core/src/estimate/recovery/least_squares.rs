//! Least squares on few columns: `min ½‖A_T z − y‖² + ½ρ‖z‖²`.

use super::vectors::{add, dot, largest_magnitude, norm};
use super::{Operator, Rule};

/// `ρ`, where columns have norm about 1: repeated columns share their coefficient, and the others move by this
/// fraction over the smallest eigenvalue of `A_Tᵀ A_T`.
const RIDGE: f64 = 1e-13;

/// Of the gradient, in a rough solution.
const REDUCTION: f64 = 0.03;

/// How far a solution is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Enough to tell large entries from small: Needell & Tropp (2009, Section 5) show that a fixed number of steps,
    /// begun at the last iterate, does.
    Rough,
    /// To rounding, or to where noise is all that is left.
    Exact,
}

impl Depth {
    /// Steps at most.
    fn steps(self) -> usize {
        match self {
            Depth::Rough => 12,
            Depth::Exact => 300,
        }
    }
}

/// `y = A θ + w` and the working arrays of its solvers.
pub(super) struct LeastSquares<'a> {
    operator: &'a dyn Operator,
    y: &'a [f64],
    norm: f64,
    /// The gradient of an exact solution, at most: rounding, or far below what noise does to a single entry.
    exact: f64,
    /// `y − A θ` of the last `θ` seen.
    pub residual: Vec<f64>,
    /// `Aᵀ (y − A θ)`, of the same unless [`Self::evaluate`] came later than [`Self::differentiate`].
    pub proxy: Vec<f64>,
    /// Zero between calls.
    spread: Vec<f64>,
    image: Vec<f64>,
    slope: Vec<f64>,
    direction: Vec<f64>,
}

impl<'a> LeastSquares<'a> {
    /// At `θ = 0`; `noise` is the standard deviation of an entry of `w`.
    pub(super) fn new(operator: &'a dyn Operator, y: &'a [f64], noise: f64) -> Self {
        let (rows, columns) = (operator.rows(), operator.columns());
        let mut created = Self {
            operator,
            y,
            norm: norm(y),
            exact: (1e-14 * norm(y)).max(1e-4 * noise),
            residual: y.to_vec(),
            proxy: vec![0.0; columns],
            spread: vec![0.0; columns],
            image: vec![0.0; rows],
            slope: Vec::new(),
            direction: Vec::new(),
        };
        created.differentiate();
        created
    }

    /// `A`.
    pub(super) fn operator(&self) -> &'a dyn Operator {
        self.operator
    }

    /// `y`.
    pub(super) fn y(&self) -> &'a [f64] {
        self.y
    }

    /// `‖y‖`.
    pub(super) fn norm(&self) -> f64 {
        self.norm
    }

    /// `A θ`, valid until the next call.
    pub(super) fn image(&mut self, support: &[usize], values: &[f64]) -> &[f64] {
        support.iter().zip(values).for_each(|(j, value)| self.spread[*j] = *value);
        self.operator.apply(&self.spread, &mut self.image);
        for j in support {
            self.spread[*j] = 0.0;
        }
        &self.image
    }

    /// Computes the residual of `θ`; returns its norm.
    pub(super) fn evaluate(&mut self, support: &[usize], values: &[f64]) -> f64 {
        self.image(support, values);
        for ((slot, y), image) in self.residual.iter_mut().zip(self.y).zip(&self.image) {
            *slot = y - image;
        }
        norm(&self.residual)
    }

    /// The residual after a step along the vector whose image was computed last.
    pub(super) fn advance(&mut self, step: f64) {
        add(&mut self.residual, -step, &self.image);
    }

    /// Computes `Aᵀ` of the residual.
    pub(super) fn differentiate(&mut self) {
        self.operator.adjoint(&self.residual, &mut self.proxy);
    }

    /// Whether the residual, whose proxy is known, is no more than noise.
    pub(super) fn explained(&self, rule: Rule) -> bool {
        norm(&self.residual) <= rule.residual && largest_magnitude(&self.proxy) <= rule.proxy
    }

    /// Writes to `out` the entries at `wanted` of the vector with these `values` on its `support`.
    pub(super) fn carry(&mut self, support: &[usize], values: &[f64], wanted: &[usize], out: &mut Vec<f64>) {
        support.iter().zip(values).for_each(|(j, value)| self.spread[*j] = *value);
        out.clear();
        out.extend(wanted.iter().map(|j| self.spread[*j]));
        for j in support {
            self.spread[*j] = 0.0;
        }
    }

    /// Conjugate gradients on the normal equations (CGLS) from `values`, whose residual and proxy are known; both are
    /// kept up to date. A step costs one `A` and one `Aᵀ`.
    pub(super) fn solve(&mut self, support: &[usize], values: &mut [f64], depth: Depth) {
        self.read_slope(support, values);
        let mut gamma = dot(&self.slope, &self.slope);
        let goal = if depth == Depth::Rough { self.exact.max(REDUCTION * gamma.sqrt()) } else { self.exact };
        let mut direction = std::mem::take(&mut self.direction);
        direction.clone_from(&self.slope);
        for _ in 0..depth.steps() {
            if gamma.sqrt() <= goal {
                break;
            }
            self.image(support, &direction);
            let curvature = dot(&self.image, &self.image) + RIDGE * dot(&direction, &direction);
            let step = gamma / curvature;
            if !step.is_finite() {
                break;
            }
            add(values, step, &direction);
            add(&mut self.residual, -step, &self.image);
            self.differentiate();
            self.read_slope(support, values);
            let last = std::mem::replace(&mut gamma, dot(&self.slope, &self.slope));
            let ratio = gamma / last;
            direction.iter_mut().zip(&self.slope).for_each(|(p, s)| *p = s + ratio * *p);
        }
        self.direction = direction;
    }

    fn read_slope(&mut self, support: &[usize], values: &[f64]) {
        self.slope.clear();
        self.slope.extend(support.iter().zip(values).map(|(j, value)| self.proxy[*j] - RIDGE * value));
    }
}
