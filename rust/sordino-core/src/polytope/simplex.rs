//! The linear program `min ‖w‖₁` over `G w = z` in doubles: a dense revised simplex method.
//!
//! Every basis of columns is feasible, since a column may be used with either sign. A pivot follows the piecewise
//! linear objective past weights that change sign, to its minimum (Barrodale & Roberts 1973). Nothing here is
//! trusted: `gauge.rs` proves what it takes from here, `exact.rs` computes it again.

use super::Polytope;
use super::gauge::dot;
use crate::order::by_key;

/// Smaller pivots are not taken.
const LEAST_PIVOT: f64 = 1e-10;

/// A basis `B` of columns with `w = B^{-1} z`.
pub(super) struct Simplex<'a> {
    polytope: &'a Polytope,
    basis: Vec<usize>,
    /// `B^{-1}`, row by row.
    inverse: Vec<f64>,
    weights: Vec<f64>,
    /// `sign(w)`, kept where `w = 0`.
    signs: Vec<f64>,
}

impl<'a> Simplex<'a> {
    /// At the polytope's own basis.
    pub(super) fn new(polytope: &'a Polytope, point: &[f64]) -> Self {
        let (basis, inverse) = (polytope.basis.clone(), polytope.basis_inverse.clone());
        let weights = multiply(&inverse, point);
        let signs = weights.iter().map(|w| w.signum()).collect();
        Self { polytope, basis, inverse, weights, signs }
    }

    pub(super) fn basis(&self) -> &[usize] {
        &self.basis
    }

    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `‖w‖₁`.
    pub(super) fn value(&self) -> f64 {
        self.weights.iter().map(|w| w.abs()).sum()
    }

    /// `y = B^{-T} sign(w)`: optimal as soon as `|⟨y, g_j⟩| ≤ 1` for all columns.
    pub(super) fn dual(&self) -> Vec<f64> {
        let rank = self.basis.len();
        let mut dual = vec![0.0; rank];
        for (row, sign) in self.inverse.chunks_exact(rank).zip(&self.signs) {
            for (y, entry) in dual.iter_mut().zip(row) {
                *y += sign * entry;
            }
        }
        dual
    }

    /// Brings `±g_j` into the basis; `false` if no pivot is large enough.
    pub(super) fn enter(&mut self, (j, sign): (usize, f64), dual: &[f64]) -> bool {
        let column = self.polytope.scaled_column(j);
        let direction = multiply(&self.inverse, &column);
        // Along w − λ·sign·direction the weight i vanishes at λ_i = w_i/(sign·direction_i).
        let length = |i: usize| (self.weights[i] / (sign * direction[i])).max(0.0);
        let mut breaks: Vec<usize> =
            (0..self.basis.len()).filter(|i| self.signs[*i] * sign * direction[*i] > LEAST_PIVOT).collect();
        by_key(&mut breaks, &length);
        let mut slope = 1.0 - sign * dot(dual, &column);
        let mut leaving = None;
        for i in breaks {
            leaving = Some((length(i), i));
            slope += 2.0 * direction[i].abs();
            if slope >= 0.0 {
                break;
            }
            self.signs[i] = -self.signs[i];
        }
        let Some((length, leaving)) = leaving else { return false };
        for (w, d) in self.weights.iter_mut().zip(&direction) {
            *w -= length * sign * d;
        }
        self.weights[leaving] = length * sign;
        self.signs[leaving] = sign;
        self.basis[leaving] = j;
        self.eliminate(leaving, &direction);
        true
    }

    /// Makes `inverse` that of the basis in which `direction = B^{-1} g` has replaced column `row`.
    fn eliminate(&mut self, row: usize, direction: &[f64]) {
        let rank = self.basis.len();
        let pivot: Vec<f64> =
            self.inverse[row * rank..(row + 1) * rank].iter().map(|value| value / direction[row]).collect();
        for (i, target) in self.inverse.chunks_exact_mut(rank).enumerate() {
            if i == row {
                target.copy_from_slice(&pivot);
            } else {
                for (value, p) in target.iter_mut().zip(&pivot) {
                    *value -= direction[i] * p;
                }
            }
        }
    }

    /// One step of iterative refinement: `w ← w + B^{-1}(z − B w)`.
    pub(super) fn polish(&mut self, point: &[f64]) {
        let mut residual = point.to_vec();
        for (j, w) in self.basis.iter().zip(&self.weights) {
            for (value, entry) in residual.iter_mut().zip(self.polytope.scaled_column(*j)) {
                *value -= w * entry;
            }
        }
        for (w, correction) in self.weights.iter_mut().zip(multiply(&self.inverse, &residual)) {
            *w += correction;
        }
    }
}

/// A square matrix, row by row, times a vector.
fn multiply(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(vector.len()).map(|row| dot(row, vector)).collect()
}
