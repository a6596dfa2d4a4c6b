//! One driver for every concave program over probability weights with multiplicative updates.
//!
//! The weights `p` of a program (of columns, and of rows) live on simplices; a point has gains `g` with
//! `p ← p·g/Σ p g` monotone and its fixed point optimal: the mean error (Denisov et al. 2022; Yuan, Yang, Zhang &
//! Hao 2016), the worst-query error, the minimum enclosing ellipsoid (Silvey, Titterington & Torsney 1978). The
//! driver iterates on `θ = log p` with residual `f = log(g/Σ p g)` under Anderson acceleration, and keeps it
//! honest:
//!
//! * programs are evaluated at `(1 − τ) p + τ/len` with `τ = gap/4`: nothing is ever singular, and by concavity the
//!   cost in the objective is at most the factor `1 − τ`;
//! * an extrapolated step that lowers the objective is undone: plain step, memory cleared;
//! * steps are clipped to ±2, and `θ ≥ −200`;
//! * a weight that an early step made tiny would need `1/f` iterations to return: when the gap shrinks too slowly,
//!   weights with `f > 0` are lifted to a share of the uniform weight, undone like any step that lowers the objective;
//! * a program may prove that some weights are zero at every optimum: they leave, memory cleared;
//! * the best lower and the best upper bound are kept separately, and the certified gap between them decides.

use super::anderson::Memory;
use super::factorization::spread;
use super::linear_algebra::Precision;
use super::{Progress, Target};
use crate::error::Error;
use crate::parallel::pieces;

/// Largest change of a log-weight in one iteration.
const CLIP: f64 = 2.0;

/// Least log-weight and least residual.
const FLOOR: f64 = -200.0;

/// Relative loss of the objective that is still rounding.
const MONOTONE: f64 = 1e-12;

/// Starved weights are lifted unless the gap shrinks by this factor within so many iterations.
const PACE: (usize, f64) = (15, 0.7);

/// Arithmetic becomes careful unless the gap shrinks by this factor within so many iterations.
const STALL: (usize, f64) = (50, 0.999);

/// Share of the uniform weight that a starved weight is lifted to, at most.
const LIFT: f64 = 0.1;

/// Evaluations between two looks for weights that are zero at every optimum.
const PRUNING: usize = 10;

/// Gaps below this need careful arithmetic from the start.
const FINE_GAP: f64 = 1e-7;

/// A program `max f(p)` over a product of simplices.
pub(super) trait Problem {
    /// Number of weights of each simplex, in order.
    fn simplices(&self) -> Vec<usize>;

    /// Values at positive weights, concatenated in order; `None` if a factorisation failed.
    fn evaluate(&self, weights: &[f64], precision: Precision) -> Option<Point>;

    /// The weights to keep, rising, if this point proves that all others are zero at every optimum; from then on the
    /// program has only these.
    fn prune(&mut self, _point: &Point) -> Option<Vec<usize>> {
        None
    }
}

/// Values of a program at one point.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// What must not fall.
    pub objective: f64,
    /// A lower bound on the optimum.
    pub lower: f64,
    /// A feasible value, at least the optimum.
    pub upper: f64,
    /// Multiplicative gains, one a weight.
    pub gains: Vec<f64>,
}

/// A bound and the weights that prove it.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub value: f64,
    pub weights: Vec<f64>,
}

/// The best bounds found.
#[derive(Debug, Clone)]
pub(super) struct Solution {
    pub lower: Bound,
    pub upper: Bound,
    pub iterations: usize,
}

impl Solution {
    fn first(point: &Point, weights: Vec<f64>) -> Self {
        let lower = Bound { value: point.lower, weights: weights.clone() };
        Self { lower, upper: Bound { value: point.upper, weights }, iterations: 0 }
    }

    pub(super) fn gap(&self) -> f64 {
        self.upper.value / self.lower.value - 1.0
    }

    fn improve(&mut self, point: &Point, weights: impl Fn() -> Vec<f64>) {
        if point.lower > self.lower.value {
            self.lower = Bound { value: point.lower, weights: weights() };
        }
        if point.upper < self.upper.value {
            self.upper = Bound { value: point.upper, weights: weights() };
        }
    }
}

/// How the current point was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// By the fixed-point map: never undone.
    Plain,
    /// By Anderson's step.
    Extrapolated,
    /// By lifting starved weights.
    Lifted,
}

/// An accepted iterate.
struct Iterate {
    logs: Vec<f64>,
    residual: Vec<f64>,
    objective: f64,
}

/// Tells whether the gap still shrinks by a factor within so many iterations.
struct Pace {
    factor: f64,
    patience: usize,
    gap: f64,
    since: usize,
}

impl Pace {
    fn new((patience, factor): (usize, f64)) -> Self {
        Self { factor, patience, gap: f64::INFINITY, since: 0 }
    }

    fn is_slow(&mut self, iteration: usize, gap: f64) -> bool {
        let shrunk = gap <= self.factor * self.gap;
        let slow = !shrunk && iteration >= self.since + self.patience;
        if shrunk || slow {
            (self.gap, self.since) = (gap, iteration);
        }
        slow
    }
}

/// Solves the program until the gap is certified, the iterations are spent or `progress` says stop; `None` if not
/// even uniform weights could be evaluated.
pub(super) fn solve(problem: &mut impl Problem, target: Target, progress: Progress<'_>) -> Option<Solution> {
    let mut simplices = problem.simplices();
    let size = simplices.iter().sum();
    let mut active: Vec<usize> = (0..size).collect();
    let mixing = target.gap / 4.0;
    let mut precision = if target.gap < FINE_GAP { Precision::Careful } else { Precision::Fast };
    let mut logs = match target.start {
        Some(start) => start.iter().map(|w| w.ln().max(FLOOR)).collect(),
        None => vec![0.0; size],
    };
    normalise(&mut logs, &simplices);
    let mut memory = Memory::default();
    let mut last: Option<Iterate> = None;
    let mut solution: Option<Solution> = None;
    let mut step = Step::Plain;
    let mut undone = false;
    let mut lift = LIFT;
    let (mut pace, mut stall) = (Pace::new(PACE), Pace::new(STALL));

    for iteration in 1..=target.iterations {
        let weights: Vec<f64> = logs.iter().map(|t| t.exp()).collect();
        let mixed = mix(&weights, &simplices, mixing);
        let point = problem.evaluate(&mixed, precision).filter(|point| point.objective.is_finite());
        let mut starved = false;
        if let Some(point) = &point {
            let all = || spread(size, &active, &mixed);
            let best = solution.get_or_insert_with(|| Solution::first(point, all()));
            best.improve(point, all);
            best.iterations = iteration;
            let gap = best.gap();
            if progress(iteration, gap).is_break() || gap <= target.gap {
                break;
            }
            starved = pace.is_slow(iteration, gap);
            if stall.is_slow(iteration, gap) {
                precision = Precision::Careful;
            }
        }
        let kept = |point: &Point| {
            let dropped = |last: &Iterate| point.objective < last.objective - MONOTONE * last.objective.abs();
            step == Step::Plain || !last.as_ref().is_some_and(dropped)
        };
        if let Some(point) = point.filter(kept) {
            if let Some(stay) = (iteration % PRUNING == 0).then(|| problem.prune(&point)).flatten() {
                let pick = |values: &[f64]| stay.iter().map(|k| values[*k]).collect::<Vec<_>>();
                (logs, active) = (pick(&logs), stay.iter().map(|k| active[*k]).collect());
                simplices = problem.simplices();
                normalise(&mut logs, &simplices);
                let weights: Vec<f64> = logs.iter().map(|t| t.exp()).collect();
                logs = advance(&logs, &residual(&pick(&point.gains), &weights, &simplices), &simplices);
                memory.clear();
                (step, last) = (Step::Plain, None);
                continue;
            }
            let residual = residual(&point.gains, &weights, &simplices);
            if let Some(before) = &last {
                memory.push((&before.logs, &before.residual), (&logs, &residual));
            }
            undone &= step == Step::Plain;
            if step == Step::Lifted {
                lift = (lift * 3.0).min(LIFT);
            }
            let raised = if starved { raise(&logs, &residual, &simplices, lift) } else { None };
            let next = if let Some(raised) = raised {
                memory.clear();
                step = Step::Lifted;
                raised
            } else {
                step = if memory.is_empty() { Step::Plain } else { Step::Extrapolated };
                advance(&logs, &memory.step(&residual, &weights), &simplices)
            };
            last = Some(Iterate { logs, residual, objective: point.objective });
            logs = next;
        } else if step == Step::Plain {
            // A factorisation failed: once more with care.
            if precision == Precision::Careful {
                break;
            }
            precision = Precision::Careful;
        } else {
            let before = last.as_ref()?;
            if undone {
                precision = Precision::Careful;
            }
            if step == Step::Lifted {
                lift /= 10.0;
            }
            memory.clear();
            undone = true;
            step = Step::Plain;
            logs = advance(&before.logs, &before.residual, &simplices);
        }
    }
    solution
}

/// The weights that the target starts from, of `len` in all, at the places that the program has: an offset and
/// indices for each simplex.
pub(super) fn start(target: Target, len: usize, kept: &[(usize, &[usize])]) -> Result<Option<Vec<f64>>, Error> {
    let Some(start) = target.start else { return Ok(None) };
    Error::check_len("start", len, start.len())?;
    Ok(Some(kept.iter().flat_map(|(offset, indices)| indices.iter().map(move |i| start[offset + i])).collect()))
}

/// `f = log(g/Σ p g)` on each simplex.
fn residual(gains: &[f64], weights: &[f64], simplices: &[usize]) -> Vec<f64> {
    let mut residual = Vec::with_capacity(gains.len());
    let mut start = 0;
    for len in simplices {
        let range = start..start + len;
        let mean: f64 = gains[range.clone()].iter().zip(&weights[range.clone()]).map(|(g, p)| g * p).sum();
        residual.extend(gains[range].iter().map(|g| (g / mean).ln().max(FLOOR)));
        start += len;
    }
    residual
}

/// `(1 − τ) p + τ/len` on each simplex.
fn mix(weights: &[f64], simplices: &[usize], mixing: f64) -> Vec<f64> {
    let floors = simplices.iter().flat_map(|len| std::iter::repeat_n(mixing / *len as f64, *len));
    weights.iter().zip(floors).map(|(p, floor)| (1.0 - mixing) * p + floor).collect()
}

/// `θ + clip(step)`, normalised.
fn advance(logs: &[f64], step: &[f64], simplices: &[usize]) -> Vec<f64> {
    let mut next: Vec<f64> = logs.iter().zip(step).map(|(t, s)| t + s.clamp(-CLIP, CLIP)).collect();
    normalise(&mut next, simplices);
    next
}

/// Lifts weights that want to grow to the share `lift` of the uniform weight; `None` if all are above it.
fn raise(logs: &[f64], residual: &[f64], simplices: &[usize], lift: f64) -> Option<Vec<f64>> {
    let floors = simplices.iter().flat_map(|len| std::iter::repeat_n((lift / *len as f64).ln(), *len));
    let mut raised: Vec<f64> =
        logs.iter().zip(residual).zip(floors).map(|((t, f), floor)| if *f > 0.0 { t.max(floor) } else { *t }).collect();
    (raised != logs).then(|| {
        normalise(&mut raised, simplices);
        raised
    })
}

/// Makes the weights of each simplex sum to one.
fn normalise(logs: &mut [f64], simplices: &[usize]) {
    for block in pieces(logs, simplices.iter().copied()) {
        let top = block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total = top + block.iter().map(|t| (t - top).exp()).sum::<f64>().ln();
        for t in block {
            *t = (*t - total).max(FLOOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    /// `max Σ c_i log p_i`: optimum `p = c`, gains `c_i/p_i`; bounds by concavity.
    struct Entropy(Vec<f64>);

    impl Problem for Entropy {
        fn simplices(&self) -> Vec<usize> {
            vec![self.0.len()]
        }

        fn evaluate(&self, weights: &[f64], _: Precision) -> Option<Point> {
            let objective = self.0.iter().zip(weights).map(|(c, p)| c * p.ln()).sum::<f64>();
            let gains: Vec<f64> = self.0.iter().zip(weights).map(|(c, p)| c / p).collect();
            let excess = gains.iter().copied().fold(0.0, f64::max) - 1.0;
            Some(Point { objective, lower: objective.exp(), upper: (objective + excess).exp(), gains })
        }
    }

    #[test]
    fn known_optimum_within_the_gap() {
        let mut problem = Entropy(vec![0.5, 0.3, 0.2 - 1e-9, 1e-9]);
        let target = Target { gap: 1e-6, iterations: 100, start: None };
        let solution = solve(&mut problem, target, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let optimum: f64 = problem.0.iter().map(|c| c * c.ln()).sum::<f64>().exp();
        assert!(solution.lower.value <= optimum && optimum <= solution.upper.value * (1.0 + 1e-15));
        assert!(solution.gap() <= 1e-6 && solution.iterations < 30, "{solution:?}");
    }

    #[test]
    fn interrupted_runs_return_the_best_so_far() {
        let mut problem = Entropy(vec![0.7, 0.2, 0.1]);
        let mut seen = Vec::new();
        let mut stop = |iteration: usize, gap: f64| {
            seen.push(gap);
            if iteration == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let solution = solve(&mut problem, Target { gap: 1e-9, iterations: 100, start: None }, &mut stop).unwrap();
        assert_eq!(solution.iterations, 2);
        assert_eq!(solution.gap(), seen[1]);
        assert!(seen[1] <= seen[0]);
    }
}
