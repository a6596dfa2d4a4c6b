//! Weights of the nodes of a forest with the least error: every path from a root to a leaf has a budget of one.
//!
//! A node takes a share of what its ancestors left, a leaf takes all of it: so every path is used up, whatever the shares.

use super::forest::{Forest, NONE};
use super::solve::Solver;
use crate::minimize::limited_memory;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Evaluations of a search, and nodes that are looked at in all: of many the last evaluations take off some 1e-6.
const EVALUATIONS: RangeInclusive<usize> = 24..=150;
const LOOKED_AT: usize = 3 << 22;
/// Nodes up to which a second search takes no time, without curvatures: of chains of groups either may end up to 5e-4 above.
const FEW: usize = 1 << 13;
/// Least curvature along a variable, relatively to the largest.
const FLAT: f64 = 1e-12;
/// Logits of shares that count for nothing, or for all.
const MOST: f64 = 30.0;

/// What each node takes of the budget, from the logits of the shares of all nodes.
fn taken(forest: &Forest, logits: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let share = |v: usize| if forest.is_leaf[v] { 1.0 } else { (1.0 + (-logits[v]).exp()).recip() };
    let shares: Vec<f64> = (0..forest.len()).map(share).collect();
    let left = forest.pass_down(1.0, |p, left| left * (1.0 - shares[p]));
    let taken = left.iter().zip(&shares).map(|(left, share)| left * share).collect();
    (taken, left, shares)
}

/// Logits for which, where all nodes of a level are alike, the Gaussian error is the least: with `μ_v` the sum of
/// `weight · size` from a leaf up to `v`, weights go like the rise of `√μ` over the size. `weights` are those of all copies.
fn levels(forest: &Forest, weights: &[f64]) -> Vec<f64> {
    let n = forest.len();
    // Averages over the children by their cells: of `μ`, and of what paths below add up to.
    let (mut below, mut paths) = (vec![0.0; n], vec![0.0; n]);
    let mut logits = vec![0.0; n];
    let times = forest.times();
    for v in (0..n).rev() {
        let size = forest.sizes[v] as f64;
        let mean = |sums: &[f64]| sums[v] / size;
        let mu = weights[v] / times[v] * size + mean(&below);
        let path = if forest.is_leaf[v] {
            mu.max(f64::MIN_POSITIVE).sqrt() / size
        } else {
            let rise = (mu.sqrt() - mean(&below).sqrt()) / size;
            logits[v] = (rise / mean(&paths)).ln().clamp(-MOST, MOST);
            rise + mean(&paths)
        };
        if forest.parent[v] != NONE {
            let (parent, cells) = (forest.parent[v] as usize, forest.copies[v] * size);
            below[parent] += cells * mu;
            paths[parent] += cells * path;
        }
    }
    logits
}

/// `g_v` of the least `Σ weight · variance` that is found. With `pure` the ℓ1 norm of columns is 1; else on every path the
/// sum of `g_v` times the cost of a node of that size, which is at least 1.
pub(super) fn best(forest: &Forest, asked: &[f64], pure: bool, cost: &dyn Fn(usize) -> f64) -> Vec<f64> {
    // Nodes that are alike have the same weight.
    let folded = forest.folded(asked);
    let costs: Vec<f64> = folded.forest.sizes.iter().map(|size| cost(*size)).collect();
    let found = search(&folded.forest, &folded.asked, pure, &costs);
    folded.stands.iter().map(|at| found[*at as usize]).collect()
}

fn search(forest: &Forest, weights: &[f64], pure: bool, costs: &[f64]) -> Vec<f64> {
    let scale: f64 = weights.iter().sum();
    let gram = |taken: &[f64]| {
        let each = taken.iter().zip(costs).map(|(t, cost)| if pure { t * t } else { t / cost });
        each.collect::<Vec<f64>>()
    };
    // Leaves take all of what is left.
    let inner: Vec<usize> = (0..forest.len()).filter(|v| !forest.is_leaf[*v]).collect();
    let everywhere = |logits: &[f64]| {
        let mut all = vec![0.0; forest.len()];
        inner.iter().zip(logits).for_each(|(v, logit)| all[*v] = *logit);
        all
    };
    let of_inner = |all: &[f64]| inner.iter().map(|v| all[*v]).collect::<Vec<f64>>();
    let evaluate = |logits: &[f64]| {
        let (taken, left, shares) = taken(forest, &everywhere(logits));
        let solver = Solver::new(forest, gram(&taken));
        let value: f64 = solver.variances(forest).iter().zip(weights).map(|(t, w)| t * w).sum::<f64>() / scale;
        let slopes = solver.slopes(forest, weights);
        let mut slope = vec![0.0; forest.len()];
        // Of what is left, children first.
        let mut of_children = vec![0.0; forest.len()];
        for v in (0..forest.len()).rev() {
            let own = slopes[v] * if pure { 2.0 * taken[v] } else { costs[v].recip() } / scale;
            let of_left = own * shares[v] + of_children[v] * (1.0 - shares[v]);
            slope[v] = left[v] * (own - of_children[v]) * shares[v] * (1.0 - shares[v]) / value;
            if let Some(slot) = of_children.get_mut(forest.parent[v] as usize) {
                *slot += of_left;
            }
        }
        (value.ln(), of_inner(&slope))
    };
    let mut starts = vec![levels(forest, weights)];
    if pure || costs.iter().any(|cost| *cost > 1.0) {
        // Not convex, or far from what the levels say: a little, and nearly nothing, for all nodes above the leaves.
        starts.extend([-1.0, -3.0, -5.0].map(|logit| vec![logit; forest.len()]));
    }
    let evaluations = (LOOKED_AT / forest.len()).clamp(*EVALUATIONS.start(), *EVALUATIONS.end());
    let curvatures = |start: &[f64]| {
        // Shares of a node change the errors below it: the fewer there are, the less curved they are.
        let solver = Solver::new(forest, gram(&taken(forest, start).0));
        let mut below: Vec<f64> = solver.variances(forest).iter().zip(weights).map(|(t, w)| t * w).collect();
        forest.add_up(&mut below);
        let most = below.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        inner.iter().map(|v| (below[*v] / most).max(FLAT)).collect::<Vec<f64>>()
    };
    let mut searches: Vec<_> = starts.iter().map(|start| (start, curvatures(start))).collect();
    if forest.len() <= FEW {
        searches.extend(starts.iter().map(|start| (start, vec![1.0; inner.len()])));
    }
    let descend = |(start, curvatures): (&Vec<f64>, Vec<f64>)| {
        limited_memory(evaluate, of_inner(start), &curvatures, evaluations)
    };
    let found: Vec<_> = searches.into_par_iter().map(descend).collect();
    let (logits, _) = found.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a start");
    gram(&taken(forest, &everywhere(&logits)).0)
}
