//! Large values of `vᵀ G v`: cells are added, left, swapped or turned while that pays.

use super::{Changes, Gram};
use rayon::prelude::*;

/// A step gains at least this share.
const LEAST_GAIN: f64 = 1e-9;

/// The best change that is found from these starts, and its value; of equal values the first.
pub(super) fn climb(gram: &Gram, changes: Changes, starts: &[Vec<i8>]) -> (Vec<i8>, f64) {
    let found = climb_each(gram, changes, starts);
    found.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap_or_default()
}

/// Where each start leads.
pub(crate) fn climb_each(gram: &Gram, changes: Changes, starts: &[Vec<i8>]) -> Vec<(Vec<i8>, f64)> {
    starts.par_iter().map(|start| Climb::new(gram, changes, start).run()).collect()
}

struct Climb<'a> {
    gram: &'a Gram,
    changes: Changes,
    change: Vec<i8>,
    /// `G v`.
    slopes: Vec<f64>,
    count: usize,
}

/// What to do next, and what that gains.
#[derive(Clone, Copy)]
struct Step {
    gain: f64,
    leaves: Option<usize>,
    enters: Option<(usize, i8)>,
}

impl<'a> Climb<'a> {
    fn new(gram: &'a Gram, changes: Changes, start: &[i8]) -> Self {
        let mut climb = Self { gram, changes, change: vec![0; gram.cells], slopes: vec![0.0; gram.cells], count: 0 };
        (0..gram.cells).filter(|j| start[*j] != 0).for_each(|j| climb.put(j, start[j]));
        climb
    }

    fn put(&mut self, cell: usize, value: i8) {
        let by = f64::from(value - self.change[cell]);
        self.slopes.iter_mut().zip(self.gram.row(cell)).for_each(|(slope, g)| *slope += by * g);
        self.count = self.count + usize::from(value != 0) - usize::from(self.change[cell] != 0);
        self.change[cell] = value;
    }

    fn run(mut self) -> (Vec<i8>, f64) {
        // A step gains: no change comes twice. The limit is for rounding errors.
        for _ in 0..64 * self.gram.cells {
            let value: f64 = self.slopes.iter().zip(&self.change).map(|(s, v)| s * f64::from(*v)).sum();
            let least = LEAST_GAIN * value.abs();
            let step =
                self.one().filter(|step| step.gain > least).or_else(|| self.swap().filter(|step| step.gain > least));
            let Some(step) = step else { break };
            if let Some(cell) = step.leaves {
                self.put(cell, 0);
            }
            if let Some((cell, value)) = step.enters {
                self.put(cell, value);
            }
        }
        let value = self.gram.square(&self.change);
        (self.change, value)
    }

    /// The best sign of a cell with this slope, and twice the slope in that direction.
    fn direction(&self, slope: f64) -> (i8, f64) {
        if self.changes.signed && slope < 0.0 { (-1, -2.0 * slope) } else { (1, 2.0 * slope) }
    }

    /// The best cell to add, to leave or to turn.
    fn one(&self) -> Option<Step> {
        let steps = (0..self.gram.cells).filter_map(|j| {
            let (v, slope, own) = (self.change[j], self.slopes[j], self.gram.at(j, j));
            if v == 0 {
                let (sign, gain) = self.direction(slope);
                return (self.count < self.changes.most).then_some(Step {
                    gain: gain + own,
                    leaves: None,
                    enters: Some((j, sign)),
                });
            }
            let leaving = own - 2.0 * f64::from(v) * slope;
            let turning = 4.0 * (own - f64::from(v) * slope);
            Some(if self.changes.signed && turning > leaving {
                Step { gain: turning, leaves: None, enters: Some((j, -v)) }
            } else {
                Step { gain: leaving, leaves: Some(j), enters: None }
            })
        });
        steps.reduce(|best, next| if next.gain > best.gain { next } else { best })
    }

    /// The best cell to leave for another.
    fn swap(&self) -> Option<Step> {
        let (on, off): (Vec<usize>, Vec<usize>) = (0..self.gram.cells).partition(|j| self.change[*j] != 0);
        let mut best: Option<Step> = None;
        for i in on {
            let (v, row) = (f64::from(self.change[i]), self.gram.row(i));
            let leaving = row[i] - 2.0 * v * self.slopes[i];
            for j in &off {
                let (sign, gain) = self.direction(self.slopes[*j] - v * row[*j]);
                let gain = leaving + gain + self.gram.at(*j, *j);
                if best.is_none_or(|best| gain > best.gain) {
                    best = Some(Step { gain, leaves: Some(i), enters: Some((*j, sign)) });
                }
            }
        }
        best
    }
}
