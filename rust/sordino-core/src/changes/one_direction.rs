//! Changes in one direction: a bound of `vᵀ G v` over `v ∈ {0, 1}^d`, `Σ v ≤ k`, by one diagonal matrix.
//!
//! For any `E, F, μ, λ ≥ 0` (`E` and `F` with zero diagonals) every change has
//!
//! `vᵀ G v ≤ vᵀ G v + Σ E_ij v_i v_j + Σ F_ij (1 − v_i)(1 − v_j) + Σ μ_i v_i (k − Σ v) + λ (k − Σ v)`,
//!
//! since none of these terms is negative. With signs `u`, `v = (1 + u)/2`, the right side is `λk` and a form `M` in
//! `(1, u)`, and at most `λk + Σ y` where `Diag(y) ⪰ M`.
//!
//! Every choice is a proof; a good one is found by descent: the slopes are the terms' factors with products of the
//! vectors that ascend `M` (`vectors.rs`) in place of those of `u`. With `E = F = μ = λ = 0` and `k = d` the bound is within
//! `π/2` of the largest (Nesterov 1998); the pairs bring it to a few thousandths where it was measured. `G` is any symmetric matrix.

use super::vectors::Vectors;
use super::{Changes, Gram};
use crate::error::Error;
use crate::interrupt::poll;
use crate::transform::fourier::UNIT_ROUNDOFF;

/// Steps of the descent, and sweeps of the vectors in each.
const STEPS: usize = 400;
const SWEEPS: usize = 3;
/// Steps between two proofs, and how near to the largest change the last one may be.
const PROVED: usize = 80;
const ENOUGH: f64 = 2e-3;
/// Size of a step beside the value of a change for each of its cells, falling to the second.
const SIZE: (f64, f64) = (0.02, 1e-4);

/// Upper bound of `vᵀ G v` over all changes, of which one attains `attained`; none if eigenvalues are not found.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn bound(gram: &Gram, changes: Changes, attained: f64) -> Result<Option<f64>, Error> {
    let mut terms = Terms::new(gram, changes, attained);
    let mut vectors = Vectors::new(gram.cells + 1, terms.form());
    let mut best: Option<f64> = None;
    for step in 1..=STEPS {
        poll()?;
        vectors.form = terms.form();
        (0..SWEEPS).for_each(|_| vectors.sweep());
        if step % PROVED == 0 {
            let Some(diagonal) = vectors.diagonal_above() else { return Ok(best) };
            let proved = diagonal.iter().sum::<f64>() + terms.constant();
            best = Some(best.map_or(proved, |best| best.min(proved)));
            if best <= Some(attained * (1.0 + ENOUGH)) {
                break;
            }
        }
        let left = 1.0 - step as f64 / STEPS as f64;
        terms.descend(&vectors, step, SIZE.0 * left + SIZE.1);
    }
    Ok(best)
}

/// `λ`, `μ`, `E` and `F`, and how they move.
struct Terms<'a> {
    gram: &'a Gram,
    most: f64,
    /// Value of a change for each of its cells: the unit of `λ`; `μ`, `E` and `F` have this over `k`.
    unit: f64,
    total: Multiplier,
    rows: Vec<Multiplier>,
    /// Pairs `i > j`, row after row.
    both: Vec<Multiplier>,
    neither: Vec<Multiplier>,
}

/// A number that is not negative, and the averages of its slope and of the square of that (Kingma and Ba 2015).
#[derive(Debug, Clone, Copy, Default)]
struct Multiplier {
    value: f64,
    slope: f64,
    square: f64,
}

impl Multiplier {
    /// Step `number` of the descent.
    fn step(&mut self, slope: f64, number: usize, size: f64) {
        self.slope = 0.9 * self.slope + 0.1 * slope;
        self.square = 0.99 * self.square + 0.01 * slope * slope;
        let (first, second) = (1.0 - 0.9f64.powi(number as i32), 1.0 - 0.99f64.powi(number as i32));
        let by = self.slope / first / ((self.square / second).sqrt() + 1e-6);
        self.value = (self.value - size * by).max(0.0);
    }
}

impl<'a> Terms<'a> {
    fn new(gram: &'a Gram, changes: Changes, attained: f64) -> Self {
        let (cells, most) = (gram.cells, changes.most as f64);
        let unit = attained / most;
        let pairs = vec![Multiplier::default(); cells * (cells - 1) / 2];
        let value = if changes.most < cells { unit } else { 0.0 };
        Self {
            gram,
            most,
            unit,
            total: Multiplier { value, ..Multiplier::default() },
            rows: vec![Multiplier::default(); cells],
            both: pairs.clone(),
            neither: pairs,
        }
    }

    fn is_full(&self) -> bool {
        self.most >= self.gram.cells as f64
    }

    /// `λk`, and more than what rounding errors of the form amount to.
    fn constant(&self) -> f64 {
        let cells = self.gram.cells as f64;
        let pairs: f64 = self.both.iter().chain(&self.neither).map(|each| each.value).sum();
        let rows: f64 = self.rows.iter().map(|each| each.value).sum();
        let own: f64 = self.gram.entries.iter().map(|g| g.abs()).sum();
        let mass = own + 8.0 * pairs + 4.0 * cells * rows + 2.0 * cells * self.total.value;
        self.total.value * self.most + 16.0 * UNIT_ROUNDOFF * (cells + 16.0) * mass
    }

    /// `M`, row by row: `v = (1 + u)/2` in `vᵀ Q v + cᵀ v + const`.
    fn form(&self) -> Vec<f64> {
        let cells = self.gram.cells;
        let size = cells + 1;
        let mut form = vec![0.0; size * size];
        let mut constant = 0.0;
        let mut linear: Vec<f64> = self.rows.iter().map(|each| self.most * each.value - self.total.value).collect();
        let mut at = 0;
        for i in 0..cells {
            let mut of_row = 0.0;
            form[(i + 1) * size + i + 1] = 0.25 * (self.gram.at(i, i) - self.rows[i].value);
            for j in 0..i {
                let neither = self.neither[at].value;
                let mean = 0.5 * (self.rows[i].value + self.rows[j].value);
                let entry = 0.25 * (self.gram.at(i, j) + self.both[at].value + neither - mean);
                (form[(i + 1) * size + j + 1], form[(j + 1) * size + i + 1]) = (entry, entry);
                linear[i] -= 2.0 * neither;
                linear[j] -= 2.0 * neither;
                of_row += 2.0 * neither;
                at += 1;
            }
            constant += of_row;
        }
        for i in 1..size {
            let sum: f64 = form[i * size + 1..(i + 1) * size].iter().sum();
            let border = sum + 0.25 * linear[i - 1];
            (form[i], form[i * size]) = (border, border);
            constant += sum + 0.5 * linear[i - 1];
        }
        form[0] = constant;
        form
    }

    /// One step down the slopes that the vectors show.
    fn descend(&mut self, vectors: &Vectors, number: usize, size: f64) {
        let cells = self.gram.cells;
        let single: Vec<f64> = (0..cells).map(|i| 0.5 + 0.5 * vectors.product(0, i + 1)).collect();
        let mut sums = single.clone();
        let (unit, of_pairs) = (size * self.unit, size * self.unit / self.most);
        let mut at = 0;
        for i in 0..cells {
            for j in 0..i {
                // `v_i v_j`, of which `u_i u_j` is the product of two vectors.
                let both = 0.25 * (2.0 * (single[i] + single[j]) - 1.0 + vectors.product(i + 1, j + 1));
                sums[i] += both;
                sums[j] += both;
                self.both[at].step(both, number, of_pairs);
                self.neither[at].step(1.0 - single[i] - single[j] + both, number, of_pairs);
                at += 1;
            }
        }
        if !self.is_full() {
            self.total.step(self.most - single.iter().sum::<f64>(), number, unit);
            for (row, (single, sum)) in self.rows.iter_mut().zip(single.iter().zip(sums)) {
                row.step(self.most * single - sum, number, 2.0 * of_pairs);
            }
        }
    }
}
