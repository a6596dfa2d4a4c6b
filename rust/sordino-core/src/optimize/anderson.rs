//! Anderson acceleration of a fixed-point iteration, type II.
//!
//! For `x ← x + f(x)` and the last differences `δx_i`, `δf_i`, the step is `f − Σ γ_i (δx_i + δf_i)` with
//! `γ = argmin ‖f − Σ γ_i δf_i‖²` (Anderson 1965; Walker & Ni 2011), here in a weighted norm and with a small
//! ridge, so that nearly dependent differences do no harm.

use super::linear_algebra::{Matrix, add_to_diagonal, cholesky, dot, solve_factored};
use std::collections::VecDeque;

/// Differences kept.
const MEMORY: usize = 8;

/// Ridge of the least-squares problem, relative to the mean diagonal entry.
const RIDGE: f64 = 1e-10;

/// The last differences of points and residuals.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// `(δx + δf, δf)`.
    differences: VecDeque<(Vec<f64>, Vec<f64>)>,
}

impl Memory {
    /// Forgets everything: the next step is plain.
    pub(super) fn clear(&mut self) {
        self.differences.clear();
    }

    /// Whether the next step is plain.
    pub(super) fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// Remembers the difference of two iterates `(x, f)`.
    pub(super) fn push(&mut self, before: (&[f64], &[f64]), after: (&[f64], &[f64])) {
        let subtract = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let residuals = subtract(after.1, before.1);
        let images = subtract(after.0, before.0).iter().zip(&residuals).map(|(a, b)| a + b).collect();
        if self.differences.len() == MEMORY {
            self.differences.pop_front();
        }
        self.differences.push_back((images, residuals));
    }

    /// The step from a point with this residual, least squares weighted by `weights`.
    pub(super) fn step(&self, residual: &[f64], weights: &[f64]) -> Vec<f64> {
        let mut step = residual.to_vec();
        let size = self.differences.len();
        let mut normal = Matrix::zeros(size, size);
        let mut right = vec![0.0; size];
        for i in 0..size {
            let weighted: Vec<f64> = self.differences[i].1.iter().zip(weights).map(|(f, w)| f * w).collect();
            for j in 0..=i {
                normal[(i, j)] = dot(&weighted, &self.differences[j].1);
            }
            right[i] = dot(&weighted, residual);
        }
        let trace: f64 = (0..size).map(|i| normal[(i, i)]).sum();
        add_to_diagonal(&mut normal, |_| RIDGE * trace / size as f64);
        let gammas = cholesky(&normal).map(|factor| solve_factored(&factor, &right));
        for (gamma, (images, _)) in gammas.iter().flatten().zip(&self.differences) {
            step.iter_mut().zip(images).for_each(|(s, d)| *s -= gamma * d);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn linear_maps_are_solved_at_once() {
        // f(x) = c − M x in two dimensions: three iterates determine the fixed point.
        let f = |x: &[f64]| vec![1.0 - 0.5 * x[0] - 0.1 * x[1], 2.0 - 0.1 * x[0] - 0.3 * x[1]];
        let weights = [0.4, 0.6];
        let (mut memory, mut x) = (Memory::default(), vec![0.0, 0.0]);
        for _ in 0..3 {
            let before = f(&x);
            let next: Vec<f64> = x.iter().zip(memory.step(&before, &weights)).map(|(x, s)| x + s).collect();
            memory.push((&x, &before), (&next, &f(&next)));
            x = next;
        }
        assert!(f(&x).iter().all(|f| f.abs() < 1e-8), "{x:?}");
        memory.clear();
        assert!(memory.is_empty());
        assert_eq!(memory.step(&[1.0, -1.0], &weights), [1.0, -1.0]);
    }
}
