//! The diagonal of the root of all queries of a line, which bounds every strategy from below.

use super::Line;
use super::symmetry::{Symmetry, root_value};
use crate::error::Error;
use crate::linear_algebra::{Matrix, add_to_diagonal, cholesky, dot, invert_lower, squared_images};
use crate::optimize::tridiagonal::Poles;
use crate::order::sorted_by_key;
use crate::parallel::collected;
use crate::workload::Workload;

/// Other queries that count in the bound, the heaviest, what it may lose by poles, and what products of rows lose.
const MOST_ROWS: usize = 8;
const DEVIATION: f64 = 1e-6;
const LOST: f64 = 1e-12;
/// Poles at a time.
const PAIR: usize = 2;

/// The diagonal of `(AᵀA)^{1/2}`, or a lower bound of it, of ranges and running sums with cells and others, whose squared
/// errors count with `weights`, one for each part of a union.
///
/// **Bound.** For Gaussian noise and one changed cell the least total squared error at noise multiplier 1 is
/// `max_Z Σ_j ⟨z_j, a_j⟩²` over the matrices of spectral norm at most 1, so any of them bounds it. The polar factor of
/// `A` has `⟨z_j, a_j⟩ = s_j`: **no strategy has less than `Σ_j s_j²`**, which is never below `(Σ_j s_j)²/n`, the bound
/// of the singular values. More queries have no smaller root, so that a part of them bounds all.
///
/// # Errors
/// [`Error::Unsupported`] if neither ranges nor running sums are among the queries.
pub fn root_diagonal(workload: &Workload, weights: Option<&[f64]>) -> Result<Vec<f64>, Error> {
    let line = Line::of(workload, weights)?;
    if line.ranges == 0.0 && line.sums == 0.0 {
        return Err(Error::Unsupported("the diagonal of the root is known of ranges and running sums".into()));
    }
    Ok(line.root_diagonal())
}

impl Line {
    /// The diagonal of `S` of ranges with cells, and of running sums with cells; of both, and with a few other queries, nearly
    /// that, and of more a lower bound: what is left out of `W` is not negative.
    ///
    /// Of ranges and running sums together `W = second·L_θ^{−1}`, `L_θ` the second difference with the first entry `1 + θ`.
    fn root_diagonal(&self) -> Vec<f64> {
        let second = self.ranges * (self.len as f64 + 1.0) + self.sums;
        let first = self.ranges / (self.ranges + self.sums);
        let (root, others) = (second.sqrt(), self.heaviest());
        let Some(symmetry) = known_modes(first).filter(|_| others.is_empty()) else {
            return self.by_poles(first, second, &others);
        };
        if self.cells == 0.0 {
            return symmetry.inverse_root_diagonal(self.len).into_iter().map(|s| root * s).collect();
        }
        let value = |angle: f64| (root * root_value(angle)).hypot(self.cells.sqrt());
        symmetry.diagonal(&symmetry.angles(self.len).map(value).collect::<Vec<_>>())
    }

    /// The heaviest of the other queries, the root of their weight in them.
    fn heaviest(&self) -> Vec<Vec<f64>> {
        let intervals =
            self.intervals.iter().map(|(first, last, weight)| (weight * (last + 1 - first) as f64, *first, *last));
        let intervals = sorted_by_key(intervals.collect(), |(square, ..)| -square);
        let written = |(square, first, last): &(f64, usize, usize)| {
            let mut row = vec![0.0; self.len];
            row[*first..=*last].fill((square / (last + 1 - first) as f64).sqrt());
            row
        };
        let rows = sorted_by_key(self.rows.iter().collect(), |row: &&Vec<f64>| -dot(row, row));
        let rows = rows.into_iter().take(MOST_ROWS).cloned().chain(intervals.iter().take(MOST_ROWS).map(written));
        let mut rows = sorted_by_key(rows.collect(), |row| -dot(row, row));
        rows.truncate(MOST_ROWS);
        rows
    }

    /// A lower bound of the diagonal of the root of `W₀ + RᵀR`, `W₀ = second·L_θ^{−1} + cells` and R these rows.
    ///
    /// With `t^{−1/2} ≈ Σ_i w_i/(t + t_i)`, which is at most `1 + ε` times that, `A W^{−1} Σ_i w_i (W^{−1} + t_i)^{−1}/(1 + ε)` has norm 1
    /// at most, and stands for the polar factor. With `M = (1 + t W₀)^{−1}`, `(W^{−1} + t)^{−1}` is
    /// `W₀ M + M Rᵀ (1 + t R M Rᵀ)^{−1} R M`, of which no term is below zero. More than rounding is added to `t R M Rᵀ`, which rows
    /// that depend on each other leave without digits.
    fn by_poles(&self, first: f64, second: f64, rows: &[Vec<f64>]) -> Vec<f64> {
        // `L₁ ≤ L_θ ≤ L`.
        let value = |angle: f64| second * root_value(angle).powi(2) + self.cells;
        let ends = |symmetry: Symmetry| {
            let values = symmetry.angles(self.len).map(value);
            values.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)))
        };
        let (least, most) = (ends(Symmetry::Sine).0, ends(Symmetry::Cosine).1);
        let added: f64 = rows.iter().map(|row| dot(row, row)).sum();
        let poles = Poles::within((1.0 - 1e-9) / (most + added), (1.0 + 1e-9) / least, DEVIATION);
        let pairs = || poles.shifts.iter().zip(&poles.factors);
        let modes = known_modes(first);
        let mut diagonal = modes.map_or_else(
            || vec![0.0; self.len],
            |symmetry| {
                let root = |v: f64| pairs().map(|(shift, factor)| factor * v / (1.0 + shift * v)).sum();
                symmetry.diagonal(&symmetry.angles(self.len).map(|angle| root(value(angle))).collect::<Vec<f64>>())
            },
        );
        // Two at once: as many arrays of all cells as rows are held by each.
        for some in pairs().collect::<Vec<_>>().chunks(PAIR) {
            let of_pole = |(shift, _): &(&f64, &f64)| {
                let (alpha, beta) = (1.0 + *shift * self.cells, *shift * second);
                let smoothed: Vec<Vec<f64>> = rows.iter().map(|row| smoothed(first, alpha, beta, row)).collect();
                let mut shared = Matrix::from_fn(rows.len(), rows.len(), |a, b| *shift * dot(&rows[a], &smoothed[b]));
                let rounded = LOST * (0..rows.len()).map(|a| shared[(a, a)]).sum::<f64>();
                add_to_diagonal(&mut shared, |_| 1.0 + rounded);
                let mut own = vec![0.0; self.len];
                if modes.is_none() {
                    let of_base = |v: f64| (self.cells + second * v) / alpha;
                    own = inverse_diagonal(first, alpha, beta, self.len).into_iter().map(of_base).collect();
                }
                // Without the rows it is below that.
                if let Some(lower) = cholesky(&shared).map(|factor| invert_lower(&factor)) {
                    let columns = Matrix::from_fn(rows.len(), self.len, |a, j| smoothed[a][j]);
                    own.iter_mut().zip(squared_images(&lower, &columns)).for_each(|(own, square)| *own += square);
                }
                own
            };
            for (own, (_, factor)) in collected(some.len(), &|k| of_pole(&some[k])).iter().zip(some) {
                diagonal.iter_mut().zip(own).for_each(|(slot, more)| *slot += *factor * more);
            }
        }
        // No entry of a root is above that of its square.
        let known = |(s, square): (f64, f64)| (s / (1.0 + poles.deviation)).min(square.sqrt());
        diagonal.into_iter().zip(self.gram_diagonal()).map(known).collect()
    }
}

/// The symmetry of the modes of `L_θ`, where they have one.
fn known_modes(first: f64) -> Option<Symmetry> {
    match first {
        0.0 => Some(Symmetry::Cosine),
        1.0 => Some(Symmetry::Sine),
        _ => None,
    }
}

/// Pivots of `α L_θ + β` from the first cell on, less `α + β`, by which nothing is subtracted.
fn excesses(first: f64, alpha: f64, beta: f64, len: usize) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first * alpha), move |excess| {
        let own = beta + excess;
        Some(alpha * own / (alpha + own))
    })
    .take(len)
}

/// The diagonal of `(α L_θ + β)^{−1}`.
fn inverse_diagonal(first: f64, alpha: f64, beta: f64, len: usize) -> Vec<f64> {
    let mut diagonal: Vec<f64> = excesses(first, alpha, beta, len).collect();
    for (slot, after) in diagonal.iter_mut().rev().zip(excesses(1.0, alpha, beta, len)) {
        *slot = (beta + *slot + after).recip();
    }
    diagonal
}

/// `(α + β L_θ^{−1})^{−1} row`: `x = (α L_θ + β)^{−1} row` by two sweeps, and `(row − β x)/α`.
fn smoothed(first: f64, alpha: f64, beta: f64, row: &[f64]) -> Vec<f64> {
    let mut pivots = Vec::with_capacity(row.len());
    let mut x = Vec::with_capacity(row.len());
    let mut carried = 0.0;
    for (value, excess) in row.iter().zip(excesses(first, alpha, beta, row.len())) {
        let pivot = alpha + beta + excess;
        carried += value;
        x.push(carried);
        carried *= alpha / pivot;
        pivots.push(pivot);
    }
    let mut after = 0.0;
    for (value, pivot) in x.iter_mut().zip(&pivots).rev() {
        after = (*value + alpha * after) / pivot;
        *value = after;
    }
    x.iter().zip(row).map(|(x, value)| (value - beta * x) / alpha).collect()
}
