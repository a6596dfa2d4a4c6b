//! Noise on the answers of any matrix: `B = A`.

use super::columns::{apart, are_few};
use super::entries::{Entries, norm, sum, term};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, each_row, floats, integers, not_in_row_space, table};
use crate::changes::Proved;
use crate::error::Error;
use crate::linear_algebra::{Matrix, along_axis, thin_singular};
use crate::parallel::fill;
use crate::unit::Unit;
use crate::upper::Upper;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Columns, and rows of them, that are compared at a time.
const GROUP: usize = 16;
const PIECE: usize = 1024;

/// A matrix measured row by row: exact if its entries are integers times a power of two.
#[derive(Debug)]
pub(super) struct Dense {
    rows: usize,
    columns: usize,
    entries: Entries,
    geometry: Geometry,
    /// Of [`Strategy::refined`], one a run of rows.
    factors: Vec<f64>,
    several: Proved,
    /// Largest norms of a column and of the difference of two, and `Σ_j |b_ij|` for every row: asked for again for each
    /// lattice that is tried.
    column: OnceLock<Upper>,
    pair: OnceLock<Upper>,
    row_sums: OnceLock<Vec<f64>>,
    /// Singular vectors and values of `Aᵀ`, columns in units of their noise, when further queries are first asked.
    transposed: OnceLock<Option<(Matrix, Vec<f64>, Matrix)>>,
}

impl Dense {
    pub(super) fn new(rows: usize, columns: usize, entries: Vec<f64>, geometry: Geometry) -> Self {
        let entries = Entries::new(entries);
        Self {
            rows,
            columns,
            entries,
            geometry,
            factors: Vec::new(),
            several: Proved::default(),
            column: OnceLock::new(),
            pair: OnceLock::new(),
            row_sums: OnceLock::new(),
            transposed: OnceLock::new(),
        }
    }

    /// The same, measured with noise that is smaller by factors on runs of rows.
    pub(super) fn with_factors(&self, factors: &[f64]) -> Self {
        let entries = self.entries.clone();
        Self {
            entries,
            geometry: self.geometry.clone(),
            factors: factors.to_vec(),
            several: Proved::default(),
            column: self.column.clone(),
            pair: self.pair.clone(),
            row_sums: self.row_sums.clone(),
            transposed: OnceLock::new(),
            ..*self
        }
    }

    /// Largest sum of the terms of the difference of two columns.
    fn largest_distance(&self, l1: bool) -> f64 {
        let (m, n) = (self.rows, self.columns);
        let entry = |i: usize, j: usize| self.entries.at(i * n + j);
        let by_columns: Vec<f64> = (0..n).flat_map(|j| (0..m).map(move |i| entry(i, j))).collect();
        // Groups of columns, pieces of them: small enough to stay near the processor.
        let groups = (0..n).into_par_iter().step_by(GROUP);
        let largest = groups.map(|start| {
            let group = start..(start + GROUP).min(n);
            let mut sums = vec![0.0; group.len() * group.end];
            for first in (0..m).step_by(PIECE) {
                let piece = |j: usize| &by_columns[j * m + first..j * m + (first + PIECE).min(m)];
                for k in 0..group.end {
                    for j in group.clone().filter(|j| *j > k) {
                        sums[(j - start) * group.end + k] += distance(l1, piece(j), piece(k));
                    }
                }
            }
            sums.into_iter().fold(0.0, f64::max)
        });
        largest.reduce(|| 0.0, f64::max)
    }

    /// What is measured in units of its noise, transposed; and those units.
    fn transpose(&self) -> (Matrix, Vec<f64>) {
        let noise = each_row(&self.steps(), &self.factors);
        let of_row = |i: usize| noise.get(i).copied().unwrap_or(1.0);
        (Matrix::from_fn(self.columns, self.rows, |j, i| of_row(i) * self.entries.at(i * self.columns + j)), noise)
    }

    fn column(&self) -> Upper {
        *self.column.get_or_init(|| {
            let (n, l1) = (self.columns, self.geometry == Geometry::L1);
            let mut sums = vec![0.0; n];
            for i in 0..self.rows {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += term(l1, self.entries.at(i * n + j));
                }
            }
            norm(l1, sums.into_iter().fold(0.0, f64::max), self.rows)
        })
    }

    fn row_sums(&self) -> &[f64] {
        self.row_sums.get_or_init(|| {
            let row = |i: usize| (0..self.columns).map(|j| self.entries.at(i * self.columns + j).abs()).sum();
            (0..self.rows).map(row).collect()
        })
    }
}

/// Sum of the terms of the difference of two columns, in eight lanes.
fn distance(l1: bool, a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| term(l1, a - b)).sum();
    let mut lanes = [0.0; 8];
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            lanes[lane] += term(l1, a[lane] - b[lane]);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

impl Strategy for Dense {
    fn measured_len(&self) -> usize {
        self.rows
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let (n, l1) = (self.columns, self.geometry == Geometry::L1);
        let single = self.column();
        let pair = || {
            if !are_few(n, self.rows) {
                return apart(single, l1, self.entries.negative());
            }
            *self.pair.get_or_init(|| norm(l1, self.largest_distance(l1), self.rows))
        };
        let bound = unit.from_columns(single, pair);
        let matrix = || Matrix::from_fn(self.rows, n, |i, j| self.entries.at(i * n + j));
        let several = if l1 { None } else { self.several.sensitivity(unit, matrix)? };
        Ok(several.map_or(bound, |several| several.min(bound)))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.entries.encoding(self.row_sums().iter().copied(), self.columns, max_abs)
    }

    fn steps(&self) -> Vec<Run> {
        self.entries.steps((0..self.rows).map(|i| i * self.columns..(i + 1) * self.columns))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.with_factors(factors)))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let x = table(x)?;
        let places = |i: usize| i * self.columns..(i + 1) * self.columns;
        match &self.entries {
            Entries::Integers(matrix, _) => {
                fill(integers(out), |i| matrix[places(i)].iter().zip(x).map(|(a, v)| i64::from(*a) * v).sum());
            }
            Entries::Reals(matrix) => fill(floats(out), |i| {
                let row = &matrix[places(i)];
                sum(0..row.len(), &|k| row[k] * x[k] as f64)
            }),
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.entries.decode(y, out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.entries.variances(&self.unit_variances(), out);
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let entry = |i: usize, j: usize| self.entries.at(i * self.columns + j);
        Some((0..self.rows).map(|i| x.iter().enumerate().map(|(j, v)| entry(i, j) * v).sum()).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut out = vec![0.0; self.columns];
        for (i, value) in y.iter().enumerate() {
            for (j, slot) in out.iter_mut().enumerate() {
                *slot += self.entries.at(i * self.columns + j) * value;
            }
        }
        Some(out)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // Least squares by the pseudo-inverse, and a check that the row was reached.
        let (transposed, noise) = self.transpose();
        let parts = self.transposed.get_or_init(|| thin_singular(&transposed)).as_ref();
        let (left, values, right) = parts.ok_or_else(not_in_row_space)?;
        let cutoff = values.iter().fold(0.0f64, |most, value| most.max(*value)) * 1e-12;
        let mut inner = along_axis(left, true, row, 1);
        inner.iter_mut().zip(values).for_each(|(v, value)| *v = if *value > cutoff { *v / value } else { 0.0 });
        let weights = along_axis(right, false, &inner, 1);
        let reached = along_axis(&transposed, false, &weights, 1);
        let norm = |of: &mut dyn Iterator<Item = f64>| of.map(|v| v * v).sum::<f64>().sqrt();
        let missed = norm(&mut reached.iter().zip(row).map(|(got, wanted)| got - wanted));
        // What is not a number has missed as well.
        if missed.is_nan() || missed > 1e-9 * norm(&mut row.iter().copied()) {
            return Err(not_in_row_space());
        }
        let units = noise.iter().copied().chain(std::iter::repeat(1.0));
        Ok(weights.iter().zip(units).map(|(weight, unit)| weight * unit).collect())
    }

    fn answer_weights(&self, answer: usize, _row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.entries.answer_weights(answer, self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_pieces_of_columns_find_the_farthest_pair() {
        let (rows, columns) = (2 * PIECE + 5, 2 * GROUP + 3);
        let entries: Vec<f64> = (0..rows * columns).map(|k| ((k * k + 7 * k) % 101) as f64).collect();
        for (geometry, l1) in [(Geometry::L1, true), (Geometry::L2, false)] {
            let at = |i: usize, j: usize| entries[i * columns + j];
            let naive = |j: usize, k: usize| -> f64 { (0..rows).map(|i| term(l1, at(i, j) - at(i, k))).sum() };
            let pairs = (0..columns).flat_map(|j| (0..j).map(move |k| (j, k)));
            let expected = pairs.map(|(j, k)| naive(j, k)).fold(0.0, f64::max);
            // Sums of integers: no rounding in either order.
            assert_eq!(Dense::new(rows, columns, entries.clone(), geometry).largest_distance(l1), expected);
        }
    }
}
