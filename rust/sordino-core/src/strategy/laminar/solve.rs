//! `G = Σ_v g_v 1_v 1_vᵀ` over the nodes of a forest: its inverse, and how the error moves with every weight.
//!
//! Of the cells in `v` alone, with the nodes in it: `S_v = Σ s_c` over the children, `D_v = 1 + g_v S_v`, and
//! `s_v = 1ᵀG_v^{-1}1 = S_v/D_v` (Sherman & Morrison); of a leaf `s_v = 1/g_v`. The block of `G^{-1}` on `v` is
//! `G_v^{-1} − κ_v (G_v^{-1}1)(G_v^{-1}1)ᵀ`, `κ_c = g_p/D_p + κ_p/D_p²`, by which slopes are found.
//!
//! Sums are estimated in two sweeps without differences of large numbers, however much more precise some nodes are: up, the sum
//! of the children moves towards what was measured by `g_v S_v/D_v` of the difference; down, what a parent's sum moved by is
//! shared among its children by their variances: `V_c = s_c (1 − s_c/S_p) + (s_c/S_p)² V_p`.

use super::forest::Forest;

/// The sums of a set of weights.
#[derive(Debug, Clone)]
pub(super) struct Solver {
    /// `g_v`.
    gram: Vec<f64>,
    /// `S_v`, 0 of leaves.
    below: Vec<f64>,
    /// `s_v`.
    own: Vec<f64>,
    /// `D_v`.
    grown: Vec<f64>,
    /// `κ_v`.
    around: Vec<f64>,
}

impl Solver {
    pub(super) fn new(forest: &Forest, gram: Vec<f64>) -> Self {
        let n = forest.len();
        let (mut below, mut own, mut grown) = (vec![0.0; n], vec![0.0; n], vec![1.0; n]);
        for v in (0..n).rev() {
            if forest.is_leaf[v] {
                own[v] = gram[v].recip();
            } else {
                grown[v] = 1.0 + gram[v] * below[v];
                own[v] = below[v] / grown[v];
            }
            if let Some(slot) = below.get_mut(forest.parent[v] as usize) {
                *slot += forest.copies[v] * own[v];
            }
        }
        let around = forest.pass_down(0.0, |p, kappa| (gram[p] + kappa / grown[p]) / grown[p]);
        Self { gram, below, own, grown, around }
    }

    /// Variance of the sum of each node at noise of variance 1.
    pub(super) fn variances(&self, forest: &Forest) -> Vec<f64> {
        let mut all = self.own.clone();
        for v in 0..all.len() {
            if let Some(parent) = all.get(forest.parent[v] as usize).copied() {
                let (share, siblings) = self.shared(forest, v);
                all[v] = self.own[v] * siblings + share * share * parent;
            }
        }
        all
    }

    /// `s_c/S_p` of a child, and of all the others.
    fn shared(&self, forest: &Forest, child: usize) -> (f64, f64) {
        let (own, all) = (self.own[child], self.below[forest.parent[child] as usize]);
        (own / all, (all - own).max(0.0) / all)
    }

    /// How far the sum of the children moves towards what was measured.
    fn taken(&self, v: usize) -> f64 {
        self.gram[v] * self.below[v] / self.grown[v]
    }

    /// Least squares of the sum of every node, from what was measured of it, in cells; 0 where nothing was.
    pub(super) fn estimates(&self, forest: &Forest, measured: &[f64]) -> Vec<f64> {
        let n = forest.len();
        let (mut sums, mut children) = (measured.to_vec(), vec![0.0; n]);
        for v in (0..n).rev() {
            if !forest.is_leaf[v] {
                sums[v] = children[v] + self.taken(v) * (measured[v] - children[v]);
            }
            if let Some(slot) = children.get_mut(forest.parent[v] as usize) {
                *slot += sums[v];
            }
        }
        for v in 0..n {
            let parent = forest.parent[v] as usize;
            if parent < n {
                sums[v] += self.shared(forest, v).0 * (sums[parent] - children[parent]);
            }
        }
        sums
    }

    /// What [`Self::estimates`] of the leaves, times `b`, take of every number: its adjoint.
    pub(super) fn combination(&self, forest: &Forest, b: &[f64]) -> Vec<f64> {
        let n = forest.len();
        // Of the last estimate of every sum, of the first one, and of the sum of the first ones of the children.
        let (mut last, mut first, mut children) = (b.to_vec(), vec![0.0; n], vec![0.0; n]);
        for v in (0..n).rev() {
            first[v] = last[v];
            let parent = forest.parent[v] as usize;
            if parent < n {
                let moved = last[v] * self.shared(forest, v).0;
                last[parent] += moved;
                children[parent] -= moved;
            }
        }
        for v in 0..n {
            if let Some(above) = children.get(forest.parent[v] as usize).copied() {
                first[v] += above;
            }
            if !forest.is_leaf[v] {
                children[v] += first[v] / self.grown[v];
                first[v] *= self.taken(v);
            }
        }
        first
    }

    /// Slopes of `Σ_v weight_v · variance_v` in `g`, by the adjoint of the two sweeps; of all copies together.
    pub(super) fn slopes(&self, forest: &Forest, weights: &[f64]) -> Vec<f64> {
        let n = forest.len();
        let (g, big, s, d, kappa) = (&self.gram, &self.below, &self.own, &self.grown, &self.around);
        let (mut slopes, mut of_grown) = (vec![0.0; n], vec![0.0; n]);
        // Of `κ`, children first.
        let mut of_children = vec![0.0; n];
        for v in (0..n).rev() {
            let sum = of_children[v];
            slopes[v] = sum / d[v];
            of_grown[v] = -sum * (g[v] + 2.0 * kappa[v] / d[v]) / (d[v] * d[v]);
            let own = sum / (d[v] * d[v]) - weights[v] * s[v] * s[v];
            if let Some(slot) = of_children.get_mut(forest.parent[v] as usize) {
                *slot += own;
            }
        }
        // Of `s`, parents first.
        let mut of_below = vec![0.0; n];
        for v in 0..n {
            let from_parent = of_below.get(forest.parent[v] as usize).copied().unwrap_or(0.0);
            let own = weights[v] * (1.0 - 2.0 * kappa[v] * s[v]) + forest.copies[v] * from_parent;
            if forest.is_leaf[v] {
                slopes[v] = -own * s[v] * s[v];
            } else {
                let grown = of_grown[v] - own * big[v] / (d[v] * d[v]);
                slopes[v] += grown * big[v];
                of_below[v] = own / d[v] + grown * g[v];
            }
        }
        slopes
    }
}
