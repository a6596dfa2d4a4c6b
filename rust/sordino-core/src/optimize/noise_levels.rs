//! The best noise levels of the blocks of a strategy.
//!
//! Block i has noise of level `t_i` and total squared error `w_i t_i^p`, and column j has size `h_ij` in it. Minimise
//!
//! `Σ_i w_i t_i^p` over `max_j Σ_i h_ij/t_i ≤ 1`:
//!
//! Gaussian noise of variance `t_i` has `p = 1` and `h_ij` the squared norms; noise of density `exp(−‖z‖/t_i)` on each
//! block has `p = 2` and `h_ij` the norms. For weights `v` of the columns and `g = h v`, averaging the constraints
//! and Hölder's inequality give the bound `T^{p+1}`, `T = Σ_i w_i^{1/(p+1)} g_i^{p/(p+1)}`, concave in `v`, with equality
//! at `t_i = T (g_i/w_i)^{1/(p+1)}`. These `t`, times `max_j n_j` for `n_j = Σ_i h_ij/t_i`, are feasible; `dT/dv_j` is
//! proportional to `n_j`, and `Σ_j v_j n_j = 1`.

use super::accelerated::{Point, Problem};
use super::linear_algebra::{Matrix, Precision, most};

/// The program.
pub(super) struct NoiseLevels {
    /// `h`, blocks by columns, not negative and no row zero.
    pub sizes: Matrix,
    /// `w`, positive.
    pub costs: Vec<f64>,
    /// `p`.
    pub power: i32,
}

impl NoiseLevels {
    /// `T` and the levels `t` at these weights.
    pub(super) fn levels(&self, weights: &[f64]) -> (f64, Vec<f64>) {
        let mut g = vec![0.0; self.costs.len()];
        for (j, weight) in weights.iter().enumerate() {
            for (sum, size) in g.iter_mut().zip(self.sizes.col_as_slice(j)) {
                *sum += size * weight;
            }
        }
        let root = 1.0 / f64::from(self.power + 1);
        let ratios: Vec<f64> = g.iter().zip(&self.costs).map(|(g, w)| (g / w).powf(root)).collect();
        // w^{1/(p+1)} g^{p/(p+1)} = g (w/g)^{1/(p+1)}.
        let total: f64 = g.iter().zip(&ratios).map(|(g, ratio)| g / ratio).sum();
        (total, ratios.iter().map(|ratio| total * ratio).collect())
    }

    /// The bound on the square root of the error from `T`.
    pub(super) fn bound(&self, total: f64) -> f64 {
        total.powf(f64::from(self.power + 1) / 2.0)
    }
}

impl Problem for NoiseLevels {
    fn simplices(&self) -> Vec<usize> {
        vec![self.sizes.ncols()]
    }

    fn evaluate(&self, weights: &[f64], _: Precision) -> Option<Point> {
        let (total, levels) = self.levels(weights);
        let load = |j: usize| self.sizes.col_as_slice(j).iter().zip(&levels).map(|(h, t)| h / t).sum();
        let gains: Vec<f64> = (0..weights.len()).map(load).collect();
        let lower = self.bound(total);
        let upper = lower * most(&gains).powf(f64::from(self.power) / 2.0);
        Some(Point { objective: total, lower, upper, gains })
    }
}
