//! `‖z‖_K ≤ t` in doubles: proofs with every rounding error bounded, from the cheapest to the dearest.
//!
//! *Rejection* by any vector `θ`: `‖z‖_K ≥ ⟨θ, z⟩/h(θ)`, `h(θ) = max_j |⟨θ, g_j⟩|`. First `θ = z`, which costs one
//! product with the matrix and rejects nearly all; then subgradient steps on `h` that keep `⟨θ, z⟩` (Polyak's
//! step towards the value that rejects); then the duals of a simplex run.
//!
//! *Acceptance* by any `w`: `‖z‖_K ≤ ‖w‖₁ + ‖z − G w‖₂/ρ`, where `K` contains the ball of radius `ρ`.
//!
//! Rounding: a sum of `n` products has error at most `(n + 1)·2^-53·Σ|a_i b_i|`, whatever the order and whether fused
//! or not (Higham 2002, section 3.1); a relative `2^-53` more for the entries of the table. Underflow costs less than
//! [`TINY`].

use super::simplex::Simplex;
use super::{LANES, Polytope};
use crate::linear_algebra::product_into;
use crate::upper::Upper;

/// Subgradient steps before the linear program.
const STEPS: usize = 30;

/// Beyond the target by this factor, so that Polyak's step reaches it.
const OVERSHOOT: f64 = 1.3;

/// Pivots of one linear program; it takes a few times the rank.
const PIVOTS: usize = 400;

/// Reduced costs below this are zero.
const TOLERANCE: f64 = 1e-12;

/// More than all underflows of one sum together.
const TINY: f64 = 1e-300;

/// Nothing overflows in proofs about numbers below this.
const LARGE: f64 = 1e60;

/// Relative tolerance of [`Polytope::reject_at_sight`].
const SIGHT: f64 = 1.0 / (1u64 << 32) as f64;

impl Polytope {
    /// Whether `‖z‖_K ≤ t` for all `z` and `t` in these intervals (`Some(true)`), for none of them (`Some(false)`);
    /// `None` if neither could be proved in doubles.
    pub(crate) fn compare(&self, z: &[(f64, f64)], t: (f64, f64)) -> Option<bool> {
        // In units of 2^exponent, where all below is computed.
        let unit = 2f64.powi(self.exponent as i32);
        let t = (t.0 * unit, t.1 * unit);
        let point: Vec<f64> = z.iter().map(|(low, high)| f64::midpoint(*low, *high)).collect();
        if self.rejected_by_steps(&point, z, t.1) {
            return Some(false);
        }
        let mut simplex = Simplex::new(self, &point);
        for _ in 0..PIVOTS {
            if simplex.value() <= t.0 {
                simplex.polish(&point);
                if self.accepts(simplex.basis(), simplex.weights(), z, t.0) {
                    return Some(true);
                }
            }
            let dual = simplex.dual();
            let (entering, largest) = self.support(&dual);
            if dot(&dual, &point) > largest * t.1 && self.rejects(&dual, largest, z, t.1) {
                return Some(false);
            }
            if largest <= 1.0 + TOLERANCE || !simplex.enter(entering, &dual) {
                return None;
            }
        }
        None
    }

    /// The linear program at its optimum, as far as doubles tell.
    pub(super) fn optimum(&self, point: &[f64]) -> Simplex<'_> {
        let mut simplex = Simplex::new(self, point);
        for _ in 0..PIVOTS {
            let dual = simplex.dual();
            let (entering, largest) = self.support(&dual);
            if largest <= 1.0 + TOLERANCE || !simplex.enter(entering, &dual) {
                break;
            }
        }
        simplex
    }

    /// `‖point‖_K`, without proof.
    pub(crate) fn gauge(&self, point: &[f64]) -> f64 {
        self.optimum(point).value() * 2f64.powi(-(self.exponent as i32))
    }

    /// Which of the points, stored one after the other, have `‖z‖_K > t` for all `z` with
    /// `‖z − point‖₂ ≤ 2^-32 ‖point‖₂` and all `t ≤ (1 + 2^-32)·bound`, by `θ = point`: one product of matrices.
    ///
    /// `⟨θ, z⟩ ≥ ‖θ‖²(1 − 2^-32)` and `h(θ)` is at most its computed value and `(r + 4)·2^-53·‖θ‖·max_j‖g_j‖`; the
    /// margins `2^-30` and `2^-40` of the test cover these, `bound`, and the few roundings of the test itself.
    pub(crate) fn reject_at_sight(&self, points: &[f64], bounds: &[f64], products: &mut Vec<f64>) -> Vec<bool> {
        let unit = 2f64.powi(self.exponent as i32);
        products.resize(self.stride * bounds.len(), 0.0);
        product_into(products, &self.table, points, self.rank);
        let rejected = |((point, bound), products): ((&[f64], &f64), &[f64])| {
            let square = dot(point, point);
            let (blocks, _) = products.as_chunks::<LANES>();
            let mut largest = [0.0f64; LANES];
            for block in blocks {
                for (most, value) in largest.iter_mut().zip(block) {
                    let value = value.abs();
                    *most = if value > *most { value } else { *most };
                }
            }
            let largest = largest.into_iter().fold(0.0, f64::max) + square.sqrt() * self.reach.get() * (SIGHT / 256.0);
            square > TINY && square * (1.0 - 4.0 * SIGHT) > largest * (bound * unit)
        };
        points.chunks_exact(self.rank).zip(bounds).zip(products.chunks_exact(self.stride)).map(rejected).collect()
    }

    /// `h` decreases along `−g_j` for the largest product; the part of `g_j` along `z` is left out.
    fn rejected_by_steps(&self, point: &[f64], z: &[(f64, f64)], bound: f64) -> bool {
        let square = dot(point, point);
        if !(square > 0.0 && bound > 0.0) {
            return false;
        }
        let mut theta = point.to_vec();
        // ⟨θ, point⟩ stays `square`: θ rejects when h(θ) < square/bound.
        let target = square / bound;
        for _ in 0..STEPS {
            let ((j, sign), largest) = self.support(&theta);
            if largest < target && self.rejects(&theta, largest, z, bound) {
                return true;
            }
            let mut step = self.scaled_column(j);
            let along = dot(&step, point) / square;
            for (part, p) in step.iter_mut().zip(point) {
                *part -= along * p;
            }
            let length = OVERSHOOT * (largest - target) / dot(&step, &step);
            if !length.is_finite() {
                return false;
            }
            for (value, part) in theta.iter_mut().zip(&step) {
                *value -= sign * length * part;
            }
        }
        false
    }

    /// The column `j` and the sign with the largest `±⟨θ, g_j⟩`, and that product.
    pub(super) fn support(&self, theta: &[f64]) -> ((usize, f64), f64) {
        let mut best = ((0, 1.0), 0.0);
        for start in (0..self.stride).step_by(LANES) {
            let mut sums = [0.0f64; LANES];
            for (value, row) in theta.iter().zip(self.table.chunks_exact(self.stride)) {
                let row: &[f64] = &row[start..start + LANES];
                for (sum, entry) in sums.iter_mut().zip(row) {
                    *sum += value * entry;
                }
            }
            if sums.iter().any(|sum| sum.abs() > best.1) {
                for (offset, sum) in sums.iter().enumerate() {
                    if sum.abs() > best.1 {
                        best = ((start + offset, sum.signum()), sum.abs());
                    }
                }
            }
        }
        best
    }

    /// Column `j` of the table.
    pub(super) fn scaled_column(&self, j: usize) -> Vec<f64> {
        self.table.iter().skip(j).step_by(self.stride).copied().collect()
    }

    /// Proves `⟨θ, z⟩ > h(θ)·bound` on the box, given the computed `h(θ)`.
    fn rejects(&self, theta: &[f64], largest: f64, z: &[(f64, f64)], bound: f64) -> bool {
        let ends = z.iter().flat_map(|(low, high)| [low, high]);
        if !(0.0..LARGE).contains(&bound) || !moderate(theta.iter().chain(ends)) {
            return false;
        }
        let mut least = 0.0f64;
        for (value, (low, high)) in theta.iter().zip(z) {
            let end = if *value < 0.0 { high } else { low };
            least = (least + (value * end).next_down()).next_down();
        }
        let slack = self.rounding() * norm(theta.iter().copied()) * self.reach + Upper::exact(TINY);
        least > ((Upper::exact(largest) + slack) * Upper::exact(bound)).get()
    }

    /// Proves `‖w‖₁ + ‖z − G w‖₂/ρ ≤ bound` on the box, for `w` supported on `basis`.
    fn accepts(&self, basis: &[usize], weights: &[f64], z: &[(f64, f64)], bound: f64) -> bool {
        let ends = z.iter().flat_map(|(low, high)| [low, high]);
        if !moderate(weights.iter().chain(ends)) {
            return false;
        }
        let total = weights.iter().fold(Upper::ZERO, |sum, w| sum + Upper::exact(w.abs()));
        let mut residual: Vec<f64> = z.iter().map(|(low, high)| f64::midpoint(*low, *high)).collect();
        let half = |((low, high), middle): (&(f64, f64), &f64)| (high - middle).max(middle - low).next_up().max(0.0);
        let half: Vec<f64> = z.iter().zip(&residual).map(half).collect();
        let size = norm(residual.iter().copied());
        for (j, w) in basis.iter().zip(weights) {
            for (value, entry) in residual.iter_mut().zip(self.table.iter().skip(*j).step_by(self.stride)) {
                *value -= w * entry;
            }
        }
        let slack = self.rounding() * (size + total * self.reach) + Upper::exact(TINY);
        let distance = norm(residual.into_iter()) + norm(half.into_iter()) + slack;
        (total + distance * self.inverse_inradius).get() <= bound
    }

    /// Relative error of a sum over a column or a row of a basis, and of the table: `(r + 3)·2^-53` to first order.
    fn rounding(&self) -> Upper {
        Upper::exact((self.rank + 8) as f64).scaled(-53)
    }
}

/// Whether all are numbers and none is huge.
fn moderate<'a>(mut values: impl Iterator<Item = &'a f64>) -> bool {
    values.all(|value| value.abs() < LARGE)
}

/// The Euclidean norm, rounded up.
fn norm(values: impl Iterator<Item = f64>) -> Upper {
    values.fold(Upper::ZERO, |sum, value| sum + Upper::exact(value.abs()) * Upper::exact(value.abs())).sqrt()
}

/// A scalar product.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
