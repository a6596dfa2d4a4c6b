//! A diagonal matrix above a symmetric form, from vectors that ascend it.
//!
//! `max ⟨M, X⟩` over Gram matrices `X` of unit vectors has the dual `min Σ y` over `Diag(y) ⪰ M`. Each vector in turn is
//! turned to where the others pull (the mixing method: Wang and Kolter 2017); the pull, and its own entry, is its dual. How far that went does
//! not matter to a proof: `y` is raised by the eigenvalue that is left, and a Cholesky factorisation must succeed.

use crate::linear_algebra::{Matrix, is_definite, symmetric_eigen};
use crate::split_mix::SplitMix;

/// A form, and a vector for each of its rows.
pub(super) struct Vectors {
    size: usize,
    /// `M`, row by row.
    pub(super) form: Vec<f64>,
    dimension: usize,
    entries: Vec<f64>,
}

impl Vectors {
    pub(super) fn new(size: usize, form: Vec<f64>) -> Self {
        // More dimensions than the square root of twice the size: no local maxima (Barvinok, Pataki).
        let dimension = ((2.0 * size as f64).sqrt() as usize + 2).next_multiple_of(8);
        let mut random = SplitMix(1);
        let entries = (0..size * dimension).map(|_| random.uniform() - 0.5).collect();
        let mut vectors = Self { size, form, dimension, entries };
        (0..size).for_each(|i| vectors.normalise(i));
        vectors
    }

    fn vector(&self, i: usize) -> &[f64] {
        &self.entries[i * self.dimension..(i + 1) * self.dimension]
    }

    fn vector_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.entries[i * self.dimension..(i + 1) * self.dimension]
    }

    fn normalise(&mut self, i: usize) {
        let vector = self.vector_mut(i);
        let known = norm(vector);
        if known > 0.0 {
            for x in vector {
                *x /= known;
            }
        }
    }

    /// `⟨x_i, x_j⟩`.
    pub(super) fn product(&self, i: usize, j: usize) -> f64 {
        self.vector(i).iter().zip(self.vector(j)).map(|(a, b)| a * b).sum()
    }

    /// Where the others pull a vector.
    fn pull(&self, i: usize) -> Vec<f64> {
        let mut pull = vec![0.0; self.dimension];
        let row = &self.form[i * self.size..(i + 1) * self.size];
        for (j, (entry, vector)) in row.iter().zip(self.entries.chunks_exact(self.dimension)).enumerate() {
            let entry = if i == j { 0.0 } else { *entry };
            pull.iter_mut().zip(vector).for_each(|(sum, x)| *sum += entry * x);
        }
        pull
    }

    /// Turns all vectors in turn, once.
    pub(super) fn sweep(&mut self) {
        for i in 0..self.size {
            let pull = self.pull(i);
            if norm(&pull) > 0.0 {
                self.vector_mut(i).copy_from_slice(&pull);
                self.normalise(i);
            }
        }
    }

    /// `y` with `Diag(y) ⪰ M`; none if that is not shown.
    pub(super) fn diagonal_above(&self) -> Option<Vec<f64>> {
        let size = self.size;
        let mut diagonal: Vec<f64> = (0..size).map(|i| norm(&self.pull(i)) + self.form[i * size + i]).collect();
        let above = |diagonal: &[f64]| {
            Matrix::from_fn(size, size, |i, j| if i == j { diagonal[i] } else { 0.0 } - self.form[i * size + j])
        };
        let least = *symmetric_eigen(&above(&diagonal))?.1.last()?;
        // More than the backward error of a Cholesky factorisation that succeeds.
        let margin = (size + 2).pow(2) as f64 * 2f64.powi(-50) * (norm(&self.form) + norm(&diagonal));
        let raise = |diagonal: &mut [f64], by: f64| diagonal.iter_mut().for_each(|y| *y += by);
        raise(&mut diagonal, (margin - least).max(0.0));
        for _ in 0..4 {
            if is_definite(&above(&diagonal)) {
                raise(&mut diagonal, margin);
                return Some(diagonal);
            }
            raise(&mut diagonal, 4.0 * margin);
        }
        None
    }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum::<f64>().sqrt()
}
