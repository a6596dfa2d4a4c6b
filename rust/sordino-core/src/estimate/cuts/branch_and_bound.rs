//! Whether a cut is the best of all, by a search of all others that ends early.

use super::CutGoal;
use super::graph::Graph;
use crate::error::Error;
use crate::interrupt::poll;
use crate::order::in_order;

/// Numbers that are looked at, at most: some three seconds. The same matrix always ends alike.
const WORK: u64 = 1 << 30;
/// Beyond, only graphs that need no search would be done within the work.
const MOST_VERTICES: usize = 512;
/// In units of the rounding of a cut: better by less is no better.
const SLACK: f64 = 16.0;
/// Partial cuts between two looks at signals.
const PAUSE: u64 = 1 << 16;

impl Graph<'_> {
    /// The best cut, or the best of `side` and what was found within the work; and which of the two.
    ///
    /// A greatest cut is a least one of the negated weights. The least ratio `λ = w(S)/(|S| (n − |S|))` is that of the
    /// cuts which weigh least after λ was taken off every weight, and these weigh nothing (Dinkelbach 1967).
    pub(super) fn certify(&self, goal: CutGoal, mut side: Vec<bool>) -> Result<(Vec<bool>, bool), Error> {
        let n = self.n;
        if n > MOST_VERTICES {
            return Ok((side, false));
        }
        let mut work = WORK;
        loop {
            let size = side.iter().filter(|inside| **inside).count();
            let ratio = self.cut(&side) / (size * (n - size)) as f64;
            let weight = |w: f64| match goal {
                CutGoal::Minimum => w,
                CutGoal::Maximum => -w,
                CutGoal::Sparsest => w - ratio,
            };
            let mut partial = Partial::new(self, weight, &side, work);
            let ended = partial.solve()?;
            work = partial.work;
            let better = partial.found != side;
            side = partial.found;
            // A better ratio has to be looked at again.
            if !ended || !better || goal != CutGoal::Sparsest {
                return Ok((side, ended));
            }
        }
    }
}

/// Vertices that have their side, and what is known of the others: those that weigh most come first.
struct Partial {
    n: usize,
    order: Vec<usize>,
    weights: Vec<f64>,
    /// Least weight within the vertices from each on, for sides that may be empty.
    below: Vec<f64>,
    /// What a vertex pays for joining either side, when so many have theirs: `(n + 1) × n` each.
    costs: [Vec<f64>; 2],
    sides: Vec<bool>,
    root: usize,
    best: f64,
    /// In the order of the graph.
    found: Vec<bool>,
    /// The same in this order, of the last problem.
    best_sides: Vec<bool>,
    slack: f64,
    work: u64,
    seen: u64,
}

impl Partial {
    fn new(graph: &Graph<'_>, weight: impl Fn(f64) -> f64, side: &[bool], work: u64) -> Self {
        let n = graph.n;
        let of = |i: usize, j: usize| if i == j { 0.0 } else { weight(graph.row(i)[j]) };
        let sums: Vec<f64> = (0..n).map(|i| (0..n).map(|j| of(i, j).abs()).sum()).collect();
        let order = in_order(n, &|i| -sums[i]);
        let weights = order.iter().flat_map(|i| order.iter().map(move |j| of(*i, *j))).collect();
        let rounding = graph.rounding.max(1e-13 * sums.iter().sum::<f64>());
        Self {
            n,
            weights,
            below: vec![0.0; n + 1],
            costs: [vec![0.0; (n + 1) * n], vec![0.0; (n + 1) * n]],
            sides: vec![false; n],
            root: 0,
            best: 0.0,
            found: side.to_vec(),
            best_sides: order.iter().map(|v| side[*v]).collect(),
            slack: SLACK * rounding,
            work,
            seen: 0,
            order,
        }
    }

    /// Solves the problems of the last vertices, then of more and more: each bounds what the next ones can still do.
    /// Whether that was done within the work.
    fn solve(&mut self) -> Result<bool, Error> {
        let known = self.best_sides.clone();
        for root in (0..self.n - 1).rev() {
            self.best_sides.clone_from(&known);
            // At the top neither side may be empty; below, one may, and then nothing is cut.
            self.best = self.within(root, &known);
            if root > 0 {
                self.settle(root);
            }
            (self.root, self.below[root]) = (root, f64::NEG_INFINITY);
            for costs in &mut self.costs {
                costs[root * self.n..(root + 1) * self.n].fill(0.0);
            }
            let ended = self.visit(root, 0.0, false)?;
            if root == 0 {
                for (v, side) in self.order.iter().zip(&self.best_sides) {
                    self.found[*v] = *side;
                }
            }
            if !ended {
                return Ok(false);
            }
            self.below[root] = self.best;
        }
        Ok(true)
    }

    /// Weight of a cut within the vertices from `root` on.
    fn within(&self, root: usize, sides: &[bool]) -> f64 {
        let pairs = (root..self.n).flat_map(|i| (root..i).map(move |j| (i, j)));
        pairs.filter(|(i, j)| sides[*i] != sides[*j]).map(|(i, j)| self.weights[i * self.n + j]).sum()
    }

    /// A good cut to start with: nothing, or the present one after single vertices have moved.
    fn settle(&mut self, root: usize) {
        let mut moved = true;
        while moved {
            moved = false;
            for v in root..self.n {
                let row = &self.weights[v * self.n..(v + 1) * self.n];
                let pull = |j: usize| if self.best_sides[j] == self.best_sides[v] { row[j] } else { -row[j] };
                let gain: f64 = (root..self.n).filter(|j| *j != v).map(pull).sum();
                if gain < -self.slack {
                    self.best_sides[v] = !self.best_sides[v];
                    moved = true;
                }
            }
        }
        self.best = self.within(root, &self.best_sides).min(0.0);
    }

    /// Looks at all cuts that begin with the sides of the first `depth` vertices from the root on, which cut so much.
    fn visit(&mut self, depth: usize, cut: f64, mixed: bool) -> Result<bool, Error> {
        let n = self.n;
        let Some(work) = self.work.checked_sub((n - depth) as u64 + 4) else { return Ok(false) };
        self.work = work;
        self.seen += 1;
        if self.seen.is_multiple_of(PAUSE) {
            poll()?;
        }
        if depth == n {
            if cut < self.best && (mixed || self.root > 0) {
                self.best = cut;
                self.best_sides.clone_from(&self.sides);
            }
            return Ok(true);
        }
        let (now, next) = (depth * n, (depth + 1) * n);
        let least: f64 = (depth..n).map(|v| self.costs[0][now + v].min(self.costs[1][now + v])).sum();
        if cut + self.below[depth] + least >= self.best - self.slack {
            return Ok(true);
        }
        let first = self.costs[1][now + depth] < self.costs[0][now + depth];
        for side in [first, !first] {
            self.sides[depth] = side;
            let cut = cut + self.costs[usize::from(side)][now + depth];
            for (joined, costs) in [false, true].into_iter().zip(&mut self.costs) {
                let (before, after) = costs.split_at_mut(next);
                let row = &self.weights[now + depth + 1..now + n];
                let pairs = before[now + depth + 1..].iter().zip(&mut after[depth + 1..n]);
                for ((before, after), weight) in pairs.zip(row) {
                    *after = if joined == side { *before } else { before + weight };
                }
            }
            let mixed = mixed || side != self.sides[self.root];
            if !self.visit(depth + 1, cut, mixed)? {
                return Ok(false);
            }
            if depth == self.root {
                break; // the other side is the same cut
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split_mix::SplitMix;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the cut that is known at first, also the worst.
        #[test]
        fn the_best_of_all_from_any_start(n in 2usize..=11, seed in any::<u64>(), bias in -1.0f64..1.0, start in 1usize..2047) {
            let mut words = SplitMix(seed);
            let mut weights = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..i {
                    let w = words.uniform() - 0.5 + bias;
                    (weights[i * n + j], weights[j * n + i]) = (w, w);
                }
            }
            let graph = Graph::new(&weights, n).unwrap();
            let sides = |bits: usize| -> Vec<bool> { (0..n).map(|v| bits >> v & 1 == 1).collect() };
            let start = sides(1 + start % ((1 << n) - 2).max(1));
            for goal in [CutGoal::Minimum, CutGoal::Maximum, CutGoal::Sparsest] {
                let score = |side: &[bool]| goal.score(graph.cut(side), side.iter().filter(|s| **s).count(), n);
                let (found, exact) = graph.certify(goal, start.clone()).unwrap();
                let least = (1..(1 << n) - 1).map(|bits| score(&sides(bits))).fold(f64::INFINITY, f64::min);
                prop_assert!(exact && found.contains(&true) && found.contains(&false));
                prop_assert!((score(&found) - least).abs() <= 1e-9, "{goal:?}: {} {least}", score(&found));
            }
        }
    }

    /// When the work is done, the best cut so far is kept, and it is not called the best of all.
    #[test]
    fn work_that_ends() {
        let n = 90;
        let mut words = SplitMix(4);
        let mut weights = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                let w = words.uniform() - 0.5;
                (weights[i * n + j], weights[j * n + i]) = (w, w);
            }
        }
        let graph = Graph::new(&weights, n).unwrap();
        let side: Vec<bool> = (0..n).map(|v| v % 2 == 0).collect();
        let mut partial = Partial::new(&graph, |w| w, &side, 1 << 20);
        assert!(!partial.solve().unwrap());
        assert_eq!(partial.found, side);
    }
}
