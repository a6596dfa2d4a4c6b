//! The program of the least ellipsoid, and which method solves it.

use super::accelerated::{Point, Problem, solve};
use super::factorization::spread;
use super::interior_point::{Weights, interior_point};
use super::linear_algebra::{
    Matrix, Precision, cholesky, invert_lower, most, select_columns, squared_images, weighted_gram,
};
use super::stages::Stages;
use super::{Progress, Target};
use crate::order::by_key;
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;

/// Columns are pruned only if they are below the threshold by more than rounding.
const ROUNDING: f64 = 1e-9;

/// Newton's method takes so many columns a dimension, or so many, at once.
const FEW: (usize, usize) = (8, 256);

/// Newton's method never takes more: its matrix is of this size.
const MANY: usize = 2048;

/// Steps of Newton's method, about.
const STEPS: f64 = 10.0;

/// Evaluations before columns are chosen by their weights.
const START: usize = 30;

/// The program for columns of full row rank.
struct Volume<'a> {
    columns: &'a Matrix,
    gap: f64,
    /// The columns that may touch.
    kept: Cow<'a, Matrix>,
    indices: Vec<usize>,
    /// Their number, for a look from outside.
    left: &'a Cell<usize>,
}

impl Problem for Volume<'_> {
    fn simplices(&self) -> Vec<usize> {
        vec![self.indices.len()]
    }

    fn evaluate(&self, weights: &[f64], _: Precision) -> Option<Point> {
        let rank = self.columns.nrows() as f64;
        let factor = cholesky(&weighted_gram(&self.kept, weights))?;
        let objective = 2.0 * (0..factor.nrows()).map(|i| factor[(i, i)].ln()).sum::<f64>();
        let inverse = invert_lower(&factor);
        let gains = squared_images(&inverse, &self.kept);
        let mut upper = most(&gains);
        // Pruned columns are inside the optimum, but may be outside an ellipsoid near it.
        if gains.len() < self.columns.ncols() && upper <= rank * (1.0 + self.gap) {
            upper = most(&squared_images(&inverse, self.columns));
        }
        Some(Point { objective, lower: rank, upper, gains })
    }

    /// A column touches only if `k_j ≥ r λ`, `λ = 1 + E/2 − √(E (4 + E − 4/r))/2`, `E = max_j k_j − r` (Harman &
    /// Pronzato 2007). For `H = M^{-1/2} M* M^{-1/2}` at the optimum `M*`, `tr H = Σ u*_j k_j ≤ r + E` and `tr H^{-1} =
    /// Σ u_j k*_j ≤ r`. With the least eigenvalue `λ'` of `H`, Cauchy and Schwarz for the others give `(r − 1)² ≤
    /// (r + E − λ')(r − 1/λ')`, so that `λ' ≥ λ`; and a column that touches has `r = k*_j ≤ k_j/λ'`.
    fn prune(&mut self, point: &Point) -> Option<Vec<usize>> {
        let rank = self.columns.nrows() as f64;
        let excess = (most(&point.gains) - rank).max(0.0);
        let least = 1.0 + excess / 2.0 - (excess * (4.0 + excess - 4.0 / rank)).sqrt() / 2.0;
        let threshold = rank * least * (1.0 - ROUNDING);
        let keep: Vec<usize> = (0..point.gains.len()).filter(|j| point.gains[*j] >= threshold).collect();
        (keep.len() < point.gains.len()).then(|| {
            self.kept = Cow::Owned(select_columns(&self.kept, &keep));
            self.indices = keep.iter().map(|j| self.indices[*j]).collect();
            self.left.set(keep.len());
            keep
        })
    }
}

/// Weights of the columns of a matrix of full row rank, and the gap over all of them.
///
/// Few columns are left to Newton's method. Among many, multiplicative updates find those that may touch, until
/// Newton's method would cost no more for these than the updates did, or until there are more than can be needed:
/// `r (r + 1)/2` columns suffice. Then it solves for these, or for those of largest weight, and columns outside join
/// until there are none.
pub(super) fn least_volume(columns: &Matrix, target: Target, stages: &mut Stages<'_>) -> Option<Weights> {
    let (rank, size) = (columns.nrows(), columns.ncols());
    let few = (FEW.0 * rank).clamp(FEW.1, MANY);
    if size <= few {
        return stages.run(|progress| interior_point(columns, target, progress));
    }
    let enough_for_any = rank * (rank + 1) / 2 <= few;
    let end = stages.done + target.iterations;
    let left = Cell::new(size);
    let (kept, indices) = (Cow::Borrowed(columns), (0..size).collect());
    let mut program = Volume { columns, gap: target.gap, kept, indices, left: &left };
    let (mut spent, mut newton) = (0.0, false);
    let solution = stages.run(|progress| {
        solve(&mut program, target, &mut |iteration, gap| {
            let left = left.get();
            spent += (rank * rank * left) as f64;
            newton = left <= few
                || left <= MANY && STEPS * (left as f64).powi(3) / 3.0 <= spent
                || iteration >= START && enough_for_any;
            let flow = progress(iteration, gap);
            if newton { ControlFlow::Break(()) } else { flow }
        })
    })?;
    let reach = |part: &Matrix, weights: &[f64]| -> Option<Vec<f64>> {
        Some(squared_images(&invert_lower(&cholesky(&weighted_gram(part, weights))?), columns))
    };
    let gap = |reach: &[f64]| most(reach) / rank as f64 - 1.0;
    let weights = solution.upper.weights;
    let mut best = Weights { gap: gap(&reach(columns, &weights)?), weights };
    let mut set = program.indices;
    if set.len() > few && enough_for_any {
        by_key(&mut set, &|i| -best.weights[i]);
        set.truncate(few);
    }
    while newton && !stages.stopped && best.gap > target.gap && stages.done < end && set.len() <= MANY {
        let part = select_columns(columns, &set);
        let rest = Target { iterations: end - stages.done, ..target };
        // Over all columns, as far as is known.
        let certified = best.gap;
        let progress = |progress: Progress<'_>| interior_point(&part, rest, &mut |i, _| progress(i, certified));
        let Some(found) = stages.run(progress) else { break };
        let Some(reach) = reach(&part, &found.weights) else { break };
        if gap(&reach) < best.gap {
            best = Weights { weights: spread(size, &set, &found.weights), gap: gap(&reach) };
        }
        let threshold = rank as f64 * (1.0 + target.gap);
        let mut outside: Vec<usize> = (0..size).filter(|j| reach[*j] > threshold && !set.contains(j)).collect();
        if outside.is_empty() {
            break;
        }
        by_key(&mut outside, &|i| -reach[i]);
        outside.truncate(few / 2);
        set.extend(outside);
    }
    Some(best)
}
