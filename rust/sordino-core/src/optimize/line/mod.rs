//! Ranges, running sums, cells and a few other queries of one line of cells, asked together with weights.
//!
//! `W = AᵀA` of all ranges is `(n + 1) L^{−1}` and that of running sums `L₁^{−1}`: `L` the second difference, `L₁` the same
//! with first entry 1. The modes of `L` are sines, those of `L₁` cosines, and cells have either. So ranges with cells, and
//! running sums with cells, have a root in closed form; of other sums the diagonal of `W` in sines or in cosines stands for
//! its eigenvalues, which differ at the ends of the line alone. So it does for intervals, of which any are asked. Where the
//! sum of all cells counts much, it does so in the cosines of which that sum is one.

mod bound;
mod symmetry;
#[cfg(test)]
mod tests;

pub use bound::root_diagonal;
pub(crate) use symmetry::Symmetry;

use crate::error::Error;
use crate::transform::fourier::RealFourier;
use crate::workload::{Workload, intervals};
use symmetry::root_value;

/// Entries of other queries, written out.
const MAX_ENTRIES: usize = 1 << 22;
/// Least eigenvalue of `W` that is told from none, relative to the largest.
const LEAST: f64 = 1e-13;

/// How much each kind of query counts in `W`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub len: usize,
    ranges: f64,
    sums: f64,
    cells: f64,
    /// First and last cell and weight of single intervals.
    intervals: Vec<(usize, usize, f64)>,
    /// Other queries, the root of their weight in them.
    rows: Vec<Vec<f64>>,
}

impl Line {
    /// The queries of a workload, with a weight for each part of a union.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if neither ranges nor running sums are among them, or other queries are many.
    pub(crate) fn of(workload: &Workload, weights: Option<&[f64]>) -> Result<Self, Error> {
        let parts = workload.parts();
        let ones = vec![1.0; parts.len()];
        let weights = weights.unwrap_or(&ones);
        Error::check_len("weights", parts.len(), weights.len())?;
        let len = workload.table_len()?;
        let mut line = Self { len, ranges: 0.0, sums: 0.0, cells: 0.0, intervals: Vec::new(), rows: Vec::new() };
        for (part, weight) in parts.iter().zip(weights) {
            match (part, part.running_sum()) {
                (Workload::Ranges { .. }, _) => line.ranges += weight,
                (Workload::Histogram { .. }, _) => line.cells += weight,
                (Workload::Intervals { ends, weights, .. }, _) => {
                    let own = intervals::weighted(ends, weights).map(|(first, last, own)| (first, last, weight * own));
                    line.intervals.extend(own);
                }
                (_, Some((_, tap))) => line.sums += weight * tap * tap,
                _ => match part.windows() {
                    Some((tap, ends)) => {
                        line.intervals.extend(ends.map(|(first, last)| (first, last, weight * tap * tap)));
                    }
                    None => line.add_rows(part, *weight)?,
                },
            }
        }
        if line.ranges == 0.0 && line.sums == 0.0 && line.intervals.is_empty() {
            return Err(Error::Unsupported(
                "the root has a closed form for ranges, running sums, windows and intervals".into(),
            ));
        }
        Ok(line)
    }

    fn add_rows(&mut self, part: &Workload, weight: f64) -> Result<(), Error> {
        let rows = part.answers_len();
        if (self.rows.len() + rows).saturating_mul(self.len) > MAX_ENTRIES {
            return Err(Error::Unsupported("too many queries beside ranges and running sums".into()));
        }
        for t in 0..rows {
            let row = part.row(t)?;
            self.rows.push(row.into_iter().map(|v| weight.sqrt() * v).collect());
        }
        Ok(())
    }

    /// Symmetries of which one is near: the one that all queries have, else both.
    pub(crate) fn symmetries(&self) -> &'static [Symmetry] {
        match (self.ranges > 0.0, self.sums > 0.0) {
            _ if !self.rows.is_empty() || !self.intervals.is_empty() => {
                &[Symmetry::Sine, Symmetry::Cosine, Symmetry::Reflected]
            }
            (true, false) => &[Symmetry::Sine],
            (false, true) => &[Symmetry::Cosine],
            _ => &[Symmetry::Sine, Symmetry::Cosine],
        }
    }

    /// The queries, each weight times a factor.
    pub(super) fn scaled(mut self, factor: f64) -> Self {
        for weight in [&mut self.ranges, &mut self.sums, &mut self.cells] {
            *weight *= factor;
        }
        self.intervals.iter_mut().for_each(|(_, _, weight)| *weight *= factor);
        self.rows.iter_mut().flatten().for_each(|entry| *entry *= factor.sqrt());
        self
    }

    /// Multiplications of a row of `V` with `W`.
    pub(super) fn work_of_a_row(&self) -> usize {
        (8 + 2 * self.rows.len()) * self.len + 4 * self.intervals.len()
    }

    /// How many queries have rows of their own.
    pub(super) fn others(&self) -> usize {
        self.rows.len()
    }

    /// The diagonal of `W`.
    pub(super) fn gram_diagonal(&self) -> Vec<f64> {
        let n = self.len as f64;
        let value = |j: f64| (n + 1.0 - j) * (self.ranges * j + self.sums) + self.cells;
        let mut steps = vec![0.0; self.len + 1];
        for (first, last, weight) in &self.intervals {
            steps[*first] += weight;
            steps[*last + 1] -= weight;
        }
        let covered = steps.iter().scan(0.0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        let others = |j: usize| self.rows.iter().map(|row| row[j] * row[j]).sum::<f64>();
        (0..self.len).zip(covered).map(|(j, own)| value((j + 1) as f64) + own + others(j)).collect()
    }

    /// `V W` over `out`, V of so many rows cell after cell: `W_ij` is `min(i, j) (n + 1 − max(i, j))` of ranges and
    /// `n + 1 − max(i, j)` of running sums, so that two sweeps do.
    pub(crate) fn times_gram(&self, rows: usize, v: &[f64], out: &mut [f64]) {
        let n = self.len;
        // Sums over the cells up to j, and from the last to beyond j.
        let (mut ranges, mut sums, mut after) = (vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]);
        for (j, (slots, v)) in out.chunks_exact_mut(rows).zip(v.chunks_exact(rows)).enumerate() {
            let (place, right) = ((j + 1) as f64, (n - j) as f64);
            for (((slot, value), ranges), sum) in slots.iter_mut().zip(v).zip(&mut ranges).zip(&mut sums) {
                *ranges += place * value;
                *sum += value;
                *slot = right * (self.ranges * *ranges + self.sums * *sum) + self.cells * value;
            }
        }
        for (j, (slots, v)) in out.chunks_exact_mut(rows).zip(v.chunks_exact(rows)).enumerate().rev() {
            let (place, right) = (self.ranges * (j + 1) as f64 + self.sums, (n - j) as f64);
            for ((slot, value), after) in slots.iter_mut().zip(v).zip(&mut after) {
                *slot += place * *after;
                *after += right * value;
            }
        }
        self.add_intervals(rows, v, out);
        for row in &self.rows {
            let mut answers = vec![0.0; rows];
            for (v, entry) in v.chunks_exact(rows).zip(row).filter(|(_, entry)| **entry != 0.0) {
                answers.iter_mut().zip(v).for_each(|(answer, v)| *answer += entry * v);
            }
            for (slots, entry) in out.chunks_exact_mut(rows).zip(row).filter(|(_, entry)| **entry != 0.0) {
                slots.iter_mut().zip(&answers).for_each(|(slot, answer)| *slot += entry * answer);
            }
        }
    }

    /// Of each interval the sum of its cells, added to all of them: by sums before each cell, and steps.
    fn add_intervals(&self, rows: usize, v: &[f64], out: &mut [f64]) {
        if self.intervals.is_empty() {
            return;
        }
        let mut before = vec![0.0; v.len() + rows];
        for k in 0..v.len() {
            before[k + rows] = before[k] + v[k];
        }
        let mut steps = vec![0.0; v.len() + rows];
        for (first, last, weight) in &self.intervals {
            let (first, end) = (first * rows, (last + 1) * rows);
            for k in 0..rows {
                let sum = weight * (before[end + k] - before[first + k]);
                steps[first + k] += sum;
                steps[end + k] -= sum;
            }
        }
        for k in rows..v.len() {
            steps[k] += steps[k - rows];
        }
        out.iter_mut().zip(steps).for_each(|(slot, step)| *slot += step);
    }

    /// What intervals add to the diagonal in the modes: the sum of a mode over an interval is a difference of two cosines
    /// (or sines) over twice the sine of its angle, and their squares and products are cosines, which are counted.
    fn interval_values(&self, symmetry: Symmetry) -> Vec<f64> {
        let n = self.len;
        let ring = RealFourier::new(symmetry.period(n));
        let mut counts = vec![0.0; ring.len()];
        let mut total = 0.0;
        let mut add = |at: usize, weight: f64| counts[at % ring.len()] += weight;
        for (first, last, weight) in &self.intervals {
            let length = last + 1 - first;
            total += weight;
            match symmetry {
                Symmetry::Sine => {
                    add(2 * first + 1, 0.5 * weight);
                    add(2 * last + 3, 0.5 * weight);
                    add(first + last + 2, -weight);
                    add(length, -weight);
                }
                Symmetry::Cosine | Symmetry::Reflected => {
                    add(2 * first, -0.5 * weight);
                    add(2 * last + 2, -0.5 * weight);
                    add(length, -weight);
                    add(first + last + 1, *weight);
                }
            }
        }
        let sums = ring.spectrum(&counts);
        let (scale, at): (f64, fn(usize) -> usize) = match symmetry {
            Symmetry::Sine => (2.0 / (n + 1) as f64, |k| k + 1),
            Symmetry::Cosine => (4.0 / (2 * n + 1) as f64, |k| 2 * k + 1),
            Symmetry::Reflected => (2.0 / n as f64, |k| k),
        };
        let squares = symmetry.angles(n).map(|angle| root_value(angle).powi(2));
        let value = |(k, square): (usize, f64)| scale * square * (total + sums[at(k)].re).max(0.0);
        let mut values: Vec<f64> = squares.enumerate().map(value).collect();
        if symmetry == Symmetry::Reflected {
            let square = |(first, last, weight): &(usize, usize, f64)| weight * ((last + 1 - first) as f64).powi(2);
            values[0] = self.intervals.iter().map(square).sum::<f64>() / n as f64;
        }
        values
    }

    /// The diagonal of `W` in the modes.
    fn gram_values(&self, symmetry: Symmetry) -> Vec<f64> {
        let n = self.len as f64;
        let value = |(k, angle): (usize, f64)| {
            let (inverse, cosine) = (root_value(angle).powi(2), angle.cos().powi(2));
            match symmetry {
                // L₁ is L less one entry: by Sherman and Morrison its inverse has (1 + 2 cos² θ)/λ there.
                Symmetry::Sine => {
                    self.ranges * (n + 1.0) * inverse + self.sums * inverse * (1.0 + 2.0 * cosine) + self.cells
                }
                Symmetry::Cosine => {
                    let ends = 4.0 * cosine / ((2.0 * n + 1.0) * (n + 1.0));
                    self.ranges * (n + 1.0) * inverse * (1.0 - ends * inverse) + self.sums * inverse + self.cells
                }
                // Sums before a cell are sines, and 0 in all; the sum of these is a cotangent for every other mode.
                Symmetry::Reflected if k > 0 => {
                    let mean = if k % 2 == 1 { 8.0 * cosine * inverse / n } else { 0.0 };
                    (self.ranges * (n + 1.0 - mean) + self.sums) * inverse + self.cells
                }
                Symmetry::Reflected => {
                    let ranges = self.ranges * (n + 1.0).powi(2) * (n + 2.0) / 12.0;
                    ranges + self.sums * (n + 1.0) * (2.0 * n + 1.0) / 6.0 + self.cells
                }
            }
        };
        let mut values: Vec<f64> = symmetry.angles(self.len).enumerate().map(value).collect();
        if !self.intervals.is_empty() {
            values.iter_mut().zip(self.interval_values(symmetry)).for_each(|(value, own)| *value += own);
        }
        for row in &self.rows {
            values.iter_mut().zip(symmetry.squared_products(row)).for_each(|(value, square)| *value += square);
        }
        values
    }

    /// Eigenvalues of the root `S = W^{1/2}`, or what stands for them, up to a common factor.
    pub(crate) fn root_values(&self, symmetry: Symmetry) -> Vec<f64> {
        if self.is_single() {
            return symmetry.angles(self.len).map(root_value).collect();
        }
        let values = self.gram_values(symmetry);
        // A mode that hardly any query has would take all of the room.
        let least = LEAST * values.iter().fold(0.0f64, |most, value| most.max(*value));
        values.into_iter().map(|value| value.max(least).sqrt()).collect()
    }

    /// The diagonal of `S`, of its eigenvalues.
    pub(crate) fn diagonal(&self, symmetry: Symmetry, values: &[f64]) -> Vec<f64> {
        if self.is_single() { symmetry.inverse_root_diagonal(self.len) } else { symmetry.diagonal(values) }
    }

    /// Whether ranges or running sums alone are asked for.
    pub(crate) fn is_single(&self) -> bool {
        self.cells == 0.0
            && self.rows.is_empty()
            && self.intervals.is_empty()
            && (self.ranges == 0.0 || self.sums == 0.0)
    }
}
