//! Passes of single moves and swaps, from many starts.

use super::graph::Graph;
use super::{CutGoal, inside};
use crate::linear_algebra::dot;
use crate::split_mix::SplitMix;

/// Stoer and Wagner's algorithm takes the cube of this many steps.
const STOER_WAGNER_VERTICES: usize = 600;
/// Rounds of passes and swaps on one start.
const ROUNDS: usize = 60;
/// Local searches cost some tens of `n²` each: as many starts as fit, within limits.
const STARTS: (usize, usize) = (8, 64);
const START_WORK: usize = 100_000_000;

impl Graph<'_> {
    /// The best cut that local search reaches from all starts.
    pub(super) fn improve(&self, goal: CutGoal) -> Vec<bool> {
        let n = self.n;
        let mut words = SplitMix(1);
        let mut best = Best { graph: self, goal, score: f64::INFINITY, side: Vec::new() };
        for v in 0..n {
            best.offer(&(0..n).map(|u| u == v).collect::<Vec<_>>());
        }
        best.climb(&best.side.clone());
        if goal == CutGoal::Minimum && n <= STOER_WAGNER_VERTICES {
            best.climb(&self.stoer_wagner());
        }
        for vector in self.extreme_vectors(goal, &mut words) {
            best.climb(&self.sweep(goal, &vector));
        }
        let starts = (START_WORK / (n * n)).clamp(STARTS.0, STARTS.1);
        for k in 0..starts {
            // Anywhere, or near the best one: every vertex changes sides with this probability.
            let (from, change) = if k % 2 == 0 { (vec![false; n], 0.5) } else { (best.side.clone(), 0.15) };
            let start: Vec<bool> = from.iter().map(|inside| inside ^ (words.uniform() < change)).collect();
            if start.contains(&true) && start.contains(&false) {
                best.climb(&start);
            }
        }
        best.side
    }
}

/// The best cut so far.
struct Best<'a> {
    graph: &'a Graph<'a>,
    goal: CutGoal,
    score: f64,
    side: Vec<bool>,
}

impl Best<'_> {
    fn offer(&mut self, side: &[bool]) {
        let size = side.iter().filter(|inside| **inside).count();
        let score = self.goal.score(self.graph.cut(side), size, self.graph.n);
        if score < self.score {
            self.score = score;
            self.side = side.to_vec();
        }
    }

    /// Local search from `start`.
    fn climb(&mut self, start: &[bool]) {
        let mut cut = Cut::new(self.graph, start);
        for _ in 0..ROUNDS {
            if !cut.pass(self.goal) && !cut.swap(self.goal) {
                break;
            }
        }
        self.offer(&inside(&cut.signs));
    }
}

/// A cut that changes vertex by vertex.
pub(super) struct Cut<'a> {
    graph: &'a Graph<'a>,
    /// −1 inside, +1 outside.
    pub(super) signs: Vec<f64>,
    /// `Σ_u w_vu s_u`: moving `v` changes the weight by `s_v` times this.
    pub(super) pulls: Vec<f64>,
    pub(super) weight: f64,
    pub(super) size: usize,
}

impl<'a> Cut<'a> {
    pub(super) fn new(graph: &'a Graph<'a>, side: &[bool]) -> Self {
        let signs: Vec<f64> = side.iter().map(|inside| if *inside { -1.0 } else { 1.0 }).collect();
        let pulls = (0..graph.n).map(|v| dot(graph.row(v), &signs)).collect();
        let size = side.iter().filter(|inside| **inside).count();
        Self { graph, signs, pulls, weight: graph.cut(side), size }
    }

    pub(super) fn flip(&mut self, v: usize) {
        self.weight += self.signs[v] * self.pulls[v];
        self.size = self.size_after(v);
        self.signs[v] = -self.signs[v];
        let twice = 2.0 * self.signs[v];
        self.pulls.iter_mut().zip(self.graph.row(v)).for_each(|(pull, w)| *pull += twice * w);
    }

    fn size_after(&self, v: usize) -> usize {
        if self.signs[v] > 0.0 { self.size + 1 } else { self.size - 1 }
    }

    pub(super) fn score(&self, goal: CutGoal) -> f64 {
        goal.score(self.weight, self.size, self.graph.n)
    }

    /// Whether `score` is below `before` by more than rounding.
    fn better(&self, goal: CutGoal, score: f64, before: f64) -> bool {
        score < before - goal.score(self.graph.rounding, self.size, self.graph.n).abs()
    }

    /// Moves each vertex at most once, the best first, even where it harms; keeps the best prefix. Whether it helped.
    pub(super) fn pass(&mut self, goal: CutGoal) -> bool {
        let n = self.graph.n;
        let before = self.score(goal);
        let mut free: Vec<usize> = (0..n).collect();
        let mut moved = Vec::new();
        let (mut best, mut length) = (before, 0);
        // Moving a set is moving its complement: half of the vertices are enough.
        for _ in 0..n.div_ceil(2) {
            let after = |v: usize| {
                let size = self.size_after(v);
                if size == 0 || size == n {
                    return f64::INFINITY;
                }
                goal.score(self.weight + self.signs[v] * self.pulls[v], size, n)
            };
            let least = |best: (f64, usize), k: usize| {
                let score = after(free[k]);
                if score < best.0 { (score, k) } else { best }
            };
            let (score, k) = (0..free.len()).fold((f64::INFINITY, 0), least);
            if score == f64::INFINITY {
                break;
            }
            let v = free.swap_remove(k);
            self.flip(v);
            moved.push(v);
            if self.better(goal, score, best) {
                (best, length) = (score, moved.len());
            }
        }
        for v in moved.drain(length..).rev() {
            self.flip(v);
        }
        length > 0
    }

    /// Exchanges the best pair, if that helps. Swaps keep the sizes, so that the weight alone decides.
    pub(super) fn swap(&mut self, goal: CutGoal) -> bool {
        let (within, without): (Vec<usize>, Vec<usize>) = (0..self.graph.n).partition(|v| self.signs[*v] < 0.0);
        let sign = if goal == CutGoal::Maximum { -1.0 } else { 1.0 };
        let mut best = (-self.graph.rounding, None);
        for u in within {
            let row = self.graph.row(u);
            for v in &without {
                // The edge between the two stays in the cut.
                let change = sign * (2.0 * row[*v] + self.pulls[*v] - self.pulls[u]);
                if change < best.0 {
                    best = (change, Some((u, *v)));
                }
            }
        }
        let Some((u, v)) = best.1 else { return false };
        self.flip(v);
        self.flip(u);
        true
    }
}
