//! Eigenvectors at the end of the Laplacian's spectrum, and the best cut along each.

use super::CutGoal;
use super::graph::Graph;
use super::local_search::Cut;
use crate::linear_algebra::{Matrix, dot, inner, symmetric_eigen};
use crate::order::in_order;
use crate::split_mix::SplitMix;

/// Steps of Lanczos' recurrence, each of one product with the Laplacian.
const KRYLOV_STEPS: usize = 48;
/// Eigenvectors at the end of the spectrum that are swept.
const SWEPT_VECTORS: usize = 3;

impl Graph<'_> {
    /// Ritz vectors of the Laplacian at the end that the goal asks for, orthogonal to constants: Lanczos' method with
    /// full orthogonalisation. None if the weights vanish.
    pub(super) fn extreme_vectors(&self, goal: CutGoal, words: &mut SplitMix) -> Vec<Vec<f64>> {
        let n = self.n;
        let degrees: Vec<f64> = (0..n).map(|v| self.row(v).iter().sum()).collect();
        let laplacian = |x: &[f64]| -> Vec<f64> { (0..n).map(|v| degrees[v] * x[v] - dot(self.row(v), x)).collect() };
        let mut basis = vec![vec![1.0 / (n as f64).sqrt(); n]];
        let mut images: Vec<Vec<f64>> = Vec::new();
        let mut next: Vec<f64> = (0..n).map(|_| words.uniform() - 0.5).collect();
        for _ in 0..KRYLOV_STEPS.min(n - 1) {
            let before = inner(&next, &next).sqrt();
            for _ in 0..2 {
                for q in &basis {
                    let along = inner(q, &next);
                    next.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
                }
            }
            let norm = inner(&next, &next).sqrt();
            if norm <= 1e-10 * before {
                break;
            }
            for x in &mut next {
                *x /= norm;
            }
            let image = laplacian(&next);
            basis.push(std::mem::replace(&mut next, image.clone()));
            images.push(image);
        }
        let basis = &basis[1..];
        let projected = Matrix::from_fn(basis.len(), basis.len(), |i, j| inner(&basis[i.max(j)], &images[i.min(j)]));
        let Some((vectors, _)) = symmetric_eigen(&projected) else { return Vec::new() };
        let combine = |k: usize| -> Vec<f64> {
            (0..n).map(|v| basis.iter().enumerate().map(|(i, q)| vectors[(i, k)] * q[v]).sum()).collect()
        };
        let k = basis.len();
        let ends = 0..SWEPT_VECTORS.min(k);
        ends.map(|e| combine(if goal == CutGoal::Maximum { e } else { k - 1 - e })).collect()
    }

    /// The best of the cuts `{v : x_v ≤ t}`.
    pub(super) fn sweep(&self, goal: CutGoal, x: &[f64]) -> Vec<bool> {
        let order = in_order(self.n, &|v| x[v]);
        let mut cut = Cut::new(self, &vec![false; self.n]);
        let (mut best, mut length) = (f64::INFINITY, 1);
        for (k, v) in order[..self.n - 1].iter().enumerate() {
            cut.flip(*v);
            let score = goal.score(cut.weight, cut.size, self.n);
            if score < best {
                (best, length) = (score, k + 1);
            }
        }
        let mut side = vec![false; self.n];
        for v in &order[..length] {
            side[*v] = true;
        }
        side
    }
}
