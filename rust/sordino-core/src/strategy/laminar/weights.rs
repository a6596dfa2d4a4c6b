//! Weights of the nodes of a forest with the least error: every path from a root to a leaf has a budget of one.
//!
//! A node takes a share of what its ancestors left, a leaf takes all of it: so every path is used up, whatever the shares.

use super::forest::{Forest, NONE};
use super::solve::Solver;
use crate::minimize::limited_memory;
use crate::order::in_order;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Evaluations of a search, and nodes that are looked at in all: of many the last evaluations take off some 1e-6.
const EVALUATIONS: RangeInclusive<usize> = 24..=150;
const LOOKED_AT: usize = 3 << 21;
/// Nodes up to which more searches take no time, from more starts and by other curvatures or none: any may end far above.
const FEW: usize = 1 << 13;
/// Evaluations of each where there are more, before the best two go on.
const TRIED: usize = 12;
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

/// The logarithmic mean of what a node gains and of what those below it gain: with it for the curvature, a first step is the
/// logarithm of their ratio, which is what a share is off by, however far that is.
fn between(own: f64, below: f64) -> f64 {
    let ratio = (own / below).ln();
    if !ratio.is_finite() {
        own.max(below)
    } else if ratio.abs() < 1e-4 {
        0.5 * (own + below)
    } else {
        (own - below) / ratio
    }
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
    let cost = if pure { &|_| 1.0 } else { cost };
    let folded = forest.folded(asked, cost);
    let costs: Vec<f64> = folded.forest.sizes.iter().map(|size| cost(*size)).collect();
    let found = search(&folded.forest, &folded.asked, pure, &costs);
    folded.stands.iter().map(|at| found[*at]).collect()
}

/// The value at some logits, its slopes, and if asked for about how curved it is.
type Look<'a> = dyn Fn(&[f64], bool) -> (f64, Vec<f64>, Vec<f64>) + Sync + 'a;

fn search(forest: &Forest, weights: &[f64], pure: bool, costs: &[f64]) -> Vec<f64> {
    let scale: f64 = weights.iter().sum();
    let gram = |taken: &[f64]| {
        let each = taken.iter().zip(costs).map(|(t, cost)| if pure { t * t } else { t / cost });
        each.collect::<Vec<f64>>()
    };
    // Leaves take all of what is left.
    let inner: Vec<usize> = (0..forest.len()).filter(|v| !forest.is_leaf[*v]).collect();
    let few = forest.len() <= FEW;
    let everywhere = |logits: &[f64]| {
        let mut all = vec![0.0; forest.len()];
        inner.iter().zip(logits).for_each(|(v, logit)| all[*v] = *logit);
        all
    };
    let of_inner = |all: &[f64]| inner.iter().map(|v| all[*v]).collect::<Vec<f64>>();
    let look: &Look = &|logits, curved| {
        let (taken, left, shares) = taken(forest, &everywhere(logits));
        let solver = Solver::new(forest, gram(&taken));
        let value: f64 = solver.variances(forest).iter().zip(weights).map(|(t, w)| t * w).sum::<f64>() / scale;
        let slopes = solver.slopes(forest, weights);
        let (mut slope, mut curvature) = (vec![0.0; forest.len()], vec![0.0; forest.len()]);
        // Of what is left, children first.
        let mut of_children = vec![0.0; forest.len()];
        for v in (0..forest.len()).rev() {
            let own = slopes[v] * if pure { 2.0 * taken[v] } else { costs[v].recip() } / scale;
            let of_left = own * shares[v] + of_children[v] * (1.0 - shares[v]);
            let moved = left[v] * shares[v] * (1.0 - shares[v]) / value;
            slope[v] = moved * (own - of_children[v]);
            if curved {
                curvature[v] = moved * between(-own, -of_children[v]);
            }
            if let Some(slot) = of_children.get_mut(forest.parent[v] as usize) {
                *slot += of_left;
            }
        }
        (value.ln(), of_inner(&slope), of_inner(&curvature))
    };
    let evaluate = |logits: &[f64]| {
        let (value, slope, _) = look(logits, false);
        (value, slope)
    };
    let mut starts = vec![of_inner(&levels(forest, weights))];
    if pure || costs.iter().any(|cost| *cost > 1.0) {
        // Not convex, or far from what the levels say: from half to nearly nothing for all nodes above the leaves.
        let logits: &[f64] = if few { &[0.0, -1.0, -2.0, -3.0, -5.0] } else { &[-1.0, -2.0, -3.0] };
        starts.extend(logits.iter().map(|logit| vec![*logit; inner.len()]));
    }
    let floored = |found: Vec<f64>| {
        let most = found.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        found.iter().map(|own| own.max(FLAT * most)).collect::<Vec<f64>>()
    };
    let with_curvatures = |start: Vec<f64>| {
        let curvatures = floored(look(&start, true).2);
        (start, curvatures)
    };
    // Shares of a node change the errors below it: the fewer there are, the less curved they are.
    let with_errors_below = |start: &Vec<f64>| {
        let solver = Solver::new(forest, gram(&taken(forest, &everywhere(start)).0));
        let mut below: Vec<f64> = solver.variances(forest).iter().zip(weights).map(|(t, w)| t * w).collect();
        forest.add_up(&mut below);
        (start.clone(), floored(of_inner(&below)))
    };
    let mut searches: Vec<_> = starts.iter().take(if few { starts.len() } else { 1 }).map(with_errors_below).collect();
    if few {
        searches.extend(starts.iter().map(|start| (start.clone(), vec![1.0; inner.len()])));
    }
    searches.extend(starts.into_iter().map(with_curvatures));
    let descend = |searches: Vec<(Vec<f64>, Vec<f64>)>, evaluations: usize| {
        let one = |(start, curvatures): (_, Vec<f64>)| limited_memory(evaluate, start, &curvatures, evaluations);
        let found: Vec<_> = searches.into_par_iter().map(one).collect();
        // Of deep chains all may be left to the first: that has no error at all.
        let order = in_order(found.len(), &|k| if found[k].1.is_nan() { f64::INFINITY } else { found[k].1 });
        (found, order)
    };
    // Those that get furthest go on, by the curvatures where they are.
    let evaluations = (LOOKED_AT / forest.len()).clamp(*EVALUATIONS.start(), *EVALUATIONS.end());
    let (found, order) = descend(searches, if few { evaluations / 2 } else { TRIED });
    let further = order.iter().take(2).map(|k| with_curvatures(found[*k].0.clone())).collect();
    let (found, order) = descend(further, evaluations);
    gram(&taken(forest, &everywhere(&found[order[0]].0)).0)
}
