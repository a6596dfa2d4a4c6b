//! The weights of the cells for which prefix sums are hardest, and the bound that they prove.
//!
//! The mean error is `max_v ‖diag(√u) A diag(√v)‖_*` with u given; the largest error is the same maximum over u and v, and
//! since A turned around is its transpose, u may be v turned around (the norm is concave in both). `v_j ← v_j n_j^e`,
//! `n_j = G_jj`, rises; here `log v` is linear between knots that lie ever more densely towards the ends, and the
//! iteration on the knots is accelerated. Long lines start from shorter ones.

use super::super::anderson::Memory;
use super::{Poles, Tridiagonal};
use crate::error::Error;
use crate::interrupt::poll;
use crate::objective::Objective;

/// Longest line that is searched; strategies keep tables for every step.
pub(super) const MOST: usize = 1 << 20;

/// Lines up to this length start from equal weights; longer ones from a line a sixteenth as long.
const SHORT: usize = 1 << 9;
const SHORTENING: usize = 16;
/// Most evaluations at one length.
const EVALUATIONS: usize = 60;
/// No step changes a weight by more than this factor's logarithm.
const LONGEST_STEP: f64 = 1.0;
/// Deviation of the poles in the search, and for the bound, which loses as much.
pub(super) const SEARCHED: f64 = 1e-5;
pub(super) const PROVED: f64 = 1e-7;

/// Largest change of a logarithm at which a search for the bound ends, whose loss is of its square.
fn for_bound(n: usize) -> f64 {
    if n <= 1 << 16 { 1e-3 } else { 1e-2 }
}

/// That for a strategy: the mean error, too, loses by its square only.
pub(super) fn for_strategy(objective: Objective) -> f64 {
    match objective {
        Objective::Mean => 1e-3,
        Objective::Max => 1e-4,
    }
}

/// Which prefix sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefixes {
    /// Running sums.
    Sums,
    /// Each divided by its number of steps.
    Averages,
}

impl Prefixes {
    /// Weights of the squared errors of sums in the mean squared error of the answers.
    fn rows(self, n: usize) -> Vec<f64> {
        let weight = |t: usize| match self {
            Self::Sums => 1.0,
            Self::Averages => 1.0 / ((t + 1) as f64).powi(2),
        };
        (0..n).map(|t| weight(t) / n as f64).collect()
    }

    /// Logarithms of weights to start from.
    fn start(self, t: usize) -> f64 {
        match self {
            Self::Sums => 0.0,
            Self::Averages => -1.8 * ((t + 1) as f64).ln(),
        }
    }
}

/// Weights of the cells with what they prove.
pub(super) struct Hardest {
    pub(super) weights: Vec<f64>,
    pub(super) matrix: Tridiagonal,
    /// No strategy has a smaller error at noise multiplier 1.
    pub(super) lower: f64,
}

/// A lower bound on the error of every Gaussian strategy for the prefix sums of n steps, at noise multiplier 1: on the
/// root mean squared error, or on the largest standard deviation of running sums.
///
/// # Errors
/// If n is zero or above 2^20, the largest error of averages is asked for, or it is interrupted.
pub fn prefix_bound(n: usize, prefixes: Prefixes, objective: Objective) -> Result<f64, Error> {
    Ok(hardest(n, prefixes, objective, for_bound(n))?.lower)
}

/// The weights to so much of their logarithms.
///
/// # Errors
/// As [`prefix_bound`].
pub(super) fn hardest(n: usize, prefixes: Prefixes, objective: Objective, target: f64) -> Result<Hardest, Error> {
    if !(1..=MOST).contains(&n) {
        return Err(Error::invalid("steps", format!("{n} is not in 1..={MOST}")));
    }
    if prefixes == Prefixes::Averages && objective == Objective::Max {
        return Err(Error::Unsupported("the largest error of averages is that of the first".into()));
    }
    let line = Line { n, prefixes, objective };
    let logs = line.search(target)?;
    let point = line.evaluate(&Knots::new(n), &logs, PROVED);
    Ok(Hardest { weights: point.weights, matrix: point.matrix, lower: point.lower })
}

#[derive(Clone, Copy)]
struct Line {
    n: usize,
    prefixes: Prefixes,
    objective: Objective,
}

/// An evaluation.
struct Point {
    weights: Vec<f64>,
    matrix: Tridiagonal,
    lower: f64,
    /// What to add to the logarithms at the knots.
    residual: Vec<f64>,
}

impl Line {
    /// Logarithms of the weights at the knots.
    fn search(self, target: f64) -> Result<Vec<f64>, Error> {
        let knots = Knots::new(self.n);
        let mut logs = if self.n <= SHORT {
            knots.places.iter().map(|t| self.prefixes.start(*t)).collect()
        } else {
            let shorter = Self { n: self.n / SHORTENING, ..self };
            knots.continued(&Knots::new(shorter.n), &shorter.search(target)?)
        };
        let ones = vec![1.0; logs.len()];
        let mut memory = Memory::default();
        let mut best = (0.0, logs.clone());
        let mut before: Option<(Vec<f64>, Vec<f64>)> = None;
        for _ in 0..EVALUATIONS {
            poll()?;
            let point = self.evaluate(&knots, &logs, SEARCHED);
            if point.lower > best.0 {
                best = (point.lower, logs.clone());
            }
            if largest(&point.residual) <= target {
                break;
            }
            if let Some((x, f)) = before.take() {
                memory.push((&x, &f), (&logs, &point.residual));
            }
            let step = if memory.is_empty() { point.residual.clone() } else { memory.step(&point.residual, &ones) };
            let part = (LONGEST_STEP / largest(&step)).min(1.0);
            before = Some((logs.clone(), point.residual));
            logs.iter_mut().zip(step).for_each(|(x, s)| *x += part * s);
        }
        Ok(best.1)
    }

    fn evaluate(self, knots: &Knots, logs: &[f64], deviation: f64) -> Point {
        let weights = knots.weights(logs);
        let (rows, exponent) = match self.objective {
            Objective::Mean => (self.prefixes.rows(self.n), 2.0),
            Objective::Max => (weights.iter().rev().copied().collect(), 1.0),
        };
        let matrix = Tridiagonal::prefix_sums(&rows);
        let (low, high) = matrix.range(&weights);
        let poles = Poles::within(low, high, deviation);
        let gains = matrix.root_diagonal(&weights, &poles);
        let total: f64 = weights.iter().zip(&gains).map(|(v, n)| v * n).sum();
        let lower = total / (1.0 + poles.deviation) * (1.0 - margin(self.n));
        let ascent: Vec<f64> = gains.iter().map(|n| exponent * (n / total).ln()).collect();
        Point { residual: knots.averaged(&ascent, &weights), weights, matrix, lower }
    }
}

/// What sweeps and sums of positive terms may lose: a few roundings a step, relative to the result.
pub(super) fn margin(n: usize) -> f64 {
    1e-9 + 16.0 * n as f64 * f64::EPSILON
}

fn largest(changes: &[f64]) -> f64 {
    changes.iter().fold(0.0, |most, change| most.max(change.abs()))
}

/// Steps at which logarithms of weights are kept; between two of them they are linear in the logarithm of the distances
/// from both ends.
struct Knots {
    places: Vec<usize>,
    n: usize,
}

impl Knots {
    fn new(n: usize) -> Self {
        let mut near = vec![0];
        let mut next = 1;
        while next < n.div_ceil(2) {
            near.push(next);
            // Powers of two and the places half way between them.
            next += (1 << next.ilog2()).max(2) / 2;
        }
        let mut places: Vec<usize> = near.iter().flat_map(|t| [*t, n - 1 - t]).collect();
        places.sort_unstable();
        places.dedup();
        Self { places, n }
    }

    /// The logarithm of the odds of the place of a step.
    fn coordinate(&self, t: usize) -> f64 {
        ((t + 1) as f64 / (self.n - t) as f64).ln()
    }

    /// Calls `f` with every step, the knot before it and how near it is to the next.
    fn each(&self, mut f: impl FnMut(usize, usize, f64)) {
        for (k, pair) in self.places.windows(2).enumerate() {
            let (from, to) = (self.coordinate(pair[0]), self.coordinate(pair[1]));
            for t in pair[0]..pair[1] {
                f(t, k, (self.coordinate(t) - from) / (to - from));
            }
        }
        f(self.n - 1, self.places.len() - 1, 0.0);
    }

    /// All weights, of sum 1.
    fn weights(&self, logs: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.n];
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.each(|t, k, part| {
            let next = logs.get(k + 1).unwrap_or(&0.0);
            weights[t] = ((1.0 - part) * logs[k] + part * next - top).exp();
        });
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|v| v / total).collect()
    }

    /// Means of values near the knots, by the weights.
    fn averaged(&self, values: &[f64], weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.places.len()];
        self.each(|t, k, part| {
            for (knot, share) in [(k, 1.0 - part), (k + 1, part)] {
                if share > 0.0 {
                    sums[knot].0 += share * weights[t] * values[t];
                    sums[knot].1 += share * weights[t];
                }
            }
        });
        sums.into_iter().map(|(sum, mass)| sum / mass).collect()
    }

    /// The logarithms of a shorter line, stretched: powers of the distance from an end stay powers.
    fn continued(&self, shorter: &Self, logs: &[f64]) -> Vec<f64> {
        let stretch = ((self.n + 1) as f64).ln() / ((shorter.n + 1) as f64).ln();
        let known: Vec<f64> = shorter.places.iter().map(|t| stretch * shorter.coordinate(*t)).collect();
        let value = |t: &usize| {
            let x = self.coordinate(*t);
            let k = known.partition_point(|at| *at < x).clamp(1, known.len() - 1);
            let part = ((x - known[k - 1]) / (known[k] - known[k - 1])).clamp(0.0, 1.0);
            stretch * ((1.0 - part) * logs[k - 1] + part * logs[k])
        };
        self.places.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{from_rows, singular_values};

    #[test]
    fn references() {
        // Certified by dense searches: 256 and 1024 steps, and 4096 in total squared error.
        let check = |n, objective, low, high| {
            let found = prefix_bound(n, Prefixes::Sums, objective).unwrap();
            assert!((low..=high).contains(&found), "{n} {objective:?} {found}");
        };
        check(1, Objective::Mean, 1.0 - 1e-8, 1.0);
        check(256, Objective::Mean, 2.524_3, 2.524_42);
        check(256, Objective::Max, 2.532_4, 2.532_75);
        check(1024, Objective::Mean, 2.955_4, 2.955_46);
        check(1024, Objective::Max, 2.961_2, 2.961_6);
        check(4096, Objective::Mean, (47_064.0f64 / 4096.0).sqrt(), (47_069.46f64 / 4096.0).sqrt());
    }

    #[test]
    fn bounds_are_below_the_nuclear_norm() {
        for n in [1usize, 2, 3, 7, 40, 130] {
            for (prefixes, objective) in [
                (Prefixes::Sums, Objective::Mean),
                (Prefixes::Sums, Objective::Max),
                (Prefixes::Averages, Objective::Mean),
            ] {
                let found = hardest(n, prefixes, objective, for_bound(n)).unwrap();
                let rows = match objective {
                    Objective::Mean => prefixes.rows(n),
                    Objective::Max => found.weights.iter().rev().copied().collect(),
                };
                let entry = |i: usize, j: usize| if j > i { 0.0 } else { (rows[i] * found.weights[j]).sqrt() };
                let entries: Vec<f64> = (0..n * n).map(|k| entry(k / n, k % n)).collect();
                let nuclear: f64 = singular_values(&from_rows(n, n, &entries)).unwrap().iter().sum();
                let ratio = found.lower / nuclear;
                assert!(ratio <= 1.0 && ratio > 1.0 - 3e-7, "{n} {prefixes:?} {objective:?} {ratio}");
            }
        }
    }

    #[test]
    fn refusals() {
        assert!(prefix_bound(0, Prefixes::Sums, Objective::Mean).is_err());
        assert!(prefix_bound(MOST + 1, Prefixes::Sums, Objective::Mean).is_err());
        assert!(prefix_bound(9, Prefixes::Averages, Objective::Max).is_err());
    }
}
