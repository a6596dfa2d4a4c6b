//! Ranges, running sums, cells and a few other queries of one line of cells, asked together with weights.
//!
//! `W = AᵀA` of all ranges is `(n + 1) L^{−1}` and that of running sums `L₁^{−1}`: `L` the second difference, `L₁` the same
//! with first entry 1. The modes of `L` are sines, those of `L₁` cosines, and cells have either. So ranges with cells, and
//! running sums with cells, have a root in closed form; of other sums the diagonal of `W` in sines or in cosines stands for
//! its eigenvalues, which differ at the ends of the line alone. So it does for intervals, of which any are asked.

use crate::error::Error;
use crate::transform::fourier::RealFourier;
use crate::workload::{Workload, intervals};
use std::f64::consts::PI;

/// Entries of other queries, written out.
const MAX_ENTRIES: usize = 1 << 22;
/// Least eigenvalue of `W` that is told from none, relative to the largest.
const LEAST: f64 = 1e-13;

/// Which sequences on a ring stand for the cells `1 … n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symmetry {
    /// Odd about 0 and `n + 1`, period `2(n + 1)`.
    Sine,
    /// Even about 1/2 and odd about `n + 1`, period `4n + 2`.
    Cosine,
}

impl Symmetry {
    /// The angles `θ_k` of the modes `sin(2jθ_k)` or `cos((2j − 1)θ_k)`: eigenvalues of `L` and `L₁` are `4 sin² θ_k`.
    fn angles(self, len: usize) -> impl Iterator<Item = f64> {
        (1..=len).map(move |k| match self {
            Self::Sine => k as f64 * PI / (2 * (len + 1)) as f64,
            Self::Cosine => (2 * k - 1) as f64 * PI / (4 * len + 2) as f64,
        })
    }

    /// The diagonal, at cells `1 … n`, of the matrix with these eigenvalues.
    ///
    /// `(n + 1)^{−1} Σ_k v_k (1 − cos(2πjk/(n + 1)))`, and `2/(2n + 1) Σ_k v_k (1 + cos((2k − 1)(2j − 1)π/(2n + 1)))`.
    pub(crate) fn diagonal(self, values: &[f64]) -> Vec<f64> {
        let len = values.len();
        match self {
            Self::Sine => {
                // On the ring of the modes, which is planned already where they are measured.
                let mut even = vec![0.0; 2 * (len + 1)];
                even.iter_mut().skip(2).step_by(2).zip(values).for_each(|(slot, value)| *slot = *value);
                let cosines = RealFourier::new(even.len()).forward(&mut even);
                let scale = ((len + 1) as f64).recip();
                (1..=len).map(|j| scale * (cosines[0].re - cosines[j].re)).collect()
            }
            Self::Cosine => {
                let period = 4 * len + 2;
                let ring = RealFourier::new(period);
                let mut odd = vec![0.0; period];
                odd.iter_mut().skip(1).step_by(2).zip(values).for_each(|(slot, value)| *slot = *value);
                let cosines = ring.forward(&mut odd);
                let scale = 2.0 / (2 * len + 1) as f64;
                (1..=len).map(|j| scale * (cosines[0].re + cosines[2 * j - 1].re)).collect()
            }
        }
    }

    /// The diagonal where the eigenvalues are `1/(2 sin θ_k)`: from cell to cell it moves by `(cot((4j + 1)φ) + cot((4j + 3)φ))
    /// /(2n + 2)` with `φ = π/(4n + 4)`, `(1/sin((4j + 1)φ) + 1/sin((4j − 1)φ))/(2n + 1)` with `φ = π/(4n + 2)`, from 0 beyond
    /// the line, since `cos(2aθ) − cos(2(a + 2)θ)` is `2 sin 2(a + 1)θ sin 2θ` and sums of sines of odd multiples are known.
    fn inverse_root_diagonal(self, len: usize) -> Vec<f64> {
        match self {
            Self::Sine => {
                let angle = PI / (4 * (len + 1)) as f64;
                let cotangent = |m: usize| (m as f64 * angle).tan().recip();
                let step = |j: usize| (cotangent(4 * j + 1) + cotangent(4 * j + 3)) / (2 * (len + 1)) as f64;
                // It rises to the middle, and falls alike.
                let mut diagonal = sums_up_to(len.div_ceil(2), step);
                diagonal.extend_from_within(..len / 2);
                diagonal[len.div_ceil(2)..].reverse();
                diagonal
            }
            Self::Cosine => {
                let angle = PI / (4 * len + 2) as f64;
                let inverse = |m: usize| (m as f64 * angle).sin().recip();
                let step = |k: usize| (inverse(4 * (len - k) + 1) + inverse(4 * (len - k) - 1)) / (2 * len + 1) as f64;
                let mut diagonal = sums_up_to(len, step);
                diagonal.reverse();
                diagonal
            }
        }
    }

    /// Squared products of a row with every mode, the modes of norm 1.
    fn squared_products(self, row: &[f64]) -> Vec<f64> {
        let len = row.len();
        match self {
            Self::Sine => {
                let ring = RealFourier::new(2 * (len + 1));
                let shifted: Vec<f64> = std::iter::once(0.0).chain(row.iter().copied()).collect();
                let scale = 2.0 / (len + 1) as f64;
                ring.spectrum(&shifted)[1..=len].iter().map(|v| scale * v.im * v.im).collect()
            }
            Self::Cosine => {
                let ring = RealFourier::new(8 * len + 4);
                let mut odd = vec![0.0; ring.len()];
                odd.iter_mut().skip(1).step_by(2).zip(row).for_each(|(slot, value)| *slot = *value);
                let scale = 4.0 / (2 * len + 1) as f64;
                let spectrum = ring.forward(&mut odd);
                (0..len).map(|k| scale * spectrum[2 * k + 1].re.powi(2)).collect()
            }
        }
    }
}

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
            _ if !self.rows.is_empty() || !self.intervals.is_empty() => &[Symmetry::Sine, Symmetry::Cosine],
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
    pub(super) fn times_gram(&self, rows: usize, v: &[f64], out: &mut [f64]) {
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
        let ring = RealFourier::new(if symmetry == Symmetry::Sine { 2 * (n + 1) } else { 4 * n + 2 });
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
                Symmetry::Cosine => {
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
        };
        let squares = symmetry.angles(n).map(|angle| root_value(angle).powi(2));
        squares.enumerate().map(|(k, square)| scale * square * (total + sums[at(k)].re).max(0.0)).collect()
    }

    /// The diagonal of `W` in the modes.
    fn gram_values(&self, symmetry: Symmetry) -> Vec<f64> {
        let n = self.len as f64;
        let value = |angle: f64| {
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
            }
        };
        let mut values: Vec<f64> = symmetry.angles(self.len).map(value).collect();
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

    /// A lower bound of the diagonal of `S`; the diagonal itself of ranges with cells, and of running sums with cells.
    ///
    /// Roots are monotone, `L₁^{−1} ≥ L^{−1}`, and what is left out of `W` is not negative.
    fn root_diagonal(&self) -> Vec<f64> {
        let n = self.len as f64;
        let of = |symmetry: Symmetry, second: f64| {
            let root = second.sqrt();
            if self.cells == 0.0 {
                return symmetry.inverse_root_diagonal(self.len).into_iter().map(|s| root * s).collect();
            }
            let value = |angle: f64| (root * root_value(angle)).hypot(self.cells.sqrt());
            symmetry.diagonal(&symmetry.angles(self.len).map(value).collect::<Vec<_>>())
        };
        let square = |diagonal: &Vec<f64>| diagonal.iter().map(|s| s * s).sum::<f64>();
        let sines = || of(Symmetry::Sine, self.ranges * (n + 1.0) + self.sums);
        let cosines = || of(Symmetry::Cosine, self.sums);
        match (self.ranges > 0.0, self.sums > 0.0) {
            (true, true) => {
                let (sines, cosines) = (sines(), cosines());
                if square(&sines) < square(&cosines) { cosines } else { sines }
            }
            (true, false) => sines(),
            _ => cosines(),
        }
    }
}

/// Sums of the first steps, of one to so many, to the last digits.
fn sums_up_to(count: usize, step: impl Fn(usize) -> f64) -> Vec<f64> {
    let (mut sum, mut lost) = (0.0, 0.0);
    (0..count)
        .map(|k| {
            let step = step(k);
            let next = sum + step;
            lost += if sum >= step { (sum - next) + step } else { (step - next) + sum };
            sum = next;
            sum + lost
        })
        .collect()
}

/// Eigenvalue `1/(2 sin θ)` of the root of the inverse of a second difference.
fn root_value(angle: f64) -> f64 {
    0.5 / angle.sin()
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{Matrix, from_rows, product, symmetric_eigen, transposed_product};

    fn sums(len: usize) -> Workload {
        Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
    }

    fn intervals(len: usize) -> Workload {
        let last = len as u32 - 1;
        let ends = vec![(0, last), (last / 2, last), (0, last / 3), (last, last), (last / 4, last / 2)];
        Workload::Intervals { len, ends, weights: Vec::new() }
    }

    fn union(parts: Vec<Workload>) -> Workload {
        Workload::Union { parts }
    }

    /// `AᵀA` with weights, written out.
    fn gram(workload: &Workload, weights: &[f64]) -> Matrix {
        let Workload::Union { parts } = workload else { unreachable!("of unions") };
        let mut gram = Matrix::zeros(workload.input_len().unwrap(), workload.input_len().unwrap());
        for (part, weight) in parts.iter().zip(weights) {
            let (rows, columns, entries) = part.dense().unwrap();
            let entries: Vec<f64> = entries.iter().map(|v| v * weight.sqrt()).collect();
            let queries = from_rows(rows, columns, &entries);
            gram += transposed_product(&queries, &queries);
        }
        gram
    }

    fn dense_diagonal(gram: &Matrix) -> Vec<f64> {
        let (vectors, values) = symmetric_eigen(gram).unwrap();
        let n = values.len();
        (0..n).map(|j| (0..n).map(|k| vectors[(j, k)].powi(2) * values[k].max(0.0).sqrt()).sum()).collect()
    }

    #[test]
    fn the_diagonal_is_that_of_the_root_or_below() {
        for len in [1, 2, 3, 4, 7, 16, 33, 60] {
            let (ranges, cells) = (Workload::Ranges { len }, Workload::Histogram { len });
            let total = Workload::Matrix { rows: 1, columns: len, entries: vec![1.0; len] };
            let exact =
                [vec![ranges.clone()], vec![sums(len)], vec![ranges.clone(), cells.clone()], vec![sums(len), cells]];
            let below = [vec![ranges.clone(), sums(len)], vec![sums(len), total]];
            for (parts, is_exact) in exact.map(|p| (p, true)).into_iter().chain(below.map(|p| (p, false))) {
                let weights: Vec<f64> = (0..parts.len()).map(|k| 1.0 + 2.5 * k as f64).collect();
                let workload = union(parts);
                let (found, known) =
                    (root_diagonal(&workload, Some(&weights)).unwrap(), dense_diagonal(&gram(&workload, &weights)));
                for (a, b) in found.iter().zip(&known) {
                    assert!(a <= &(b * (1.0 + 1e-11)), "{len}: {a} {b}");
                    assert!(!is_exact || (a - b).abs() <= 1e-11 * b, "{len}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn the_diagonal_of_one_kind_is_summed_from_cell_to_cell() {
        for len in [1usize, 2, 3, 4, 7, 64, 1001, 20_000] {
            for symmetry in [Symmetry::Sine, Symmetry::Cosine] {
                let known = symmetry.diagonal(&symmetry.angles(len).map(root_value).collect::<Vec<_>>());
                let found = symmetry.inverse_root_diagonal(len);
                assert_eq!(found.len(), len);
                assert!(found.iter().zip(&known).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{len} {symmetry:?}");
            }
        }
    }

    #[test]
    fn products_are_those_of_the_matrix() {
        for len in [1usize, 2, 3, 8, 21] {
            let others = (0..2 * len).map(|k| (k % 3) as f64 - 0.5).collect();
            let others = Workload::Matrix { rows: 2, columns: len, entries: others };
            let parts = vec![Workload::Ranges { len }, sums(len), Workload::Histogram { len }, intervals(len), others];
            let (workload, weights) = (union(parts), [0.7, 3.0, 2.0, 5.0, 1.5]);
            let (gram, line) = (gram(&workload, &weights), Line::of(&workload, Some(&weights)).unwrap());
            let v: Vec<f64> = (0..2 * len).map(|k| ((k * 7) % 11) as f64 - 3.0).collect();
            let rows = Matrix::from_fn(2, len, |k, j| v[2 * j + k]);
            let (known, mut found) = (product(&rows, &gram), vec![f64::NAN; 2 * len]);
            line.times_gram(2, &v, &mut found);
            for j in 0..len {
                for k in 0..2 {
                    assert!((known[(k, j)] - found[2 * j + k]).abs() <= 1e-10 * gram[(0, 0)].max(1.0) * len as f64);
                }
                assert!((line.gram_diagonal()[j] / gram[(j, j)] - 1.0).abs() < 1e-12);
            }
        }
    }

    /// Diagonals in the modes against products with modes written out.
    #[test]
    fn values_are_those_of_the_modes() {
        for len in [1usize, 2, 3, 8, 21] {
            let rows = Workload::Matrix {
                rows: 2,
                columns: len,
                entries: (0..2 * len).map(|k| (k % 5) as f64 + 0.5).collect(),
            };
            let parts = vec![Workload::Ranges { len }, sums(len), Workload::Histogram { len }, rows, intervals(len)];
            let (workload, weights) = (union(parts), [0.7, 3.0, 2.0, 1.5, 4.0]);
            let (gram, line) = (gram(&workload, &weights), Line::of(&workload, Some(&weights)).unwrap());
            for symmetry in [Symmetry::Sine, Symmetry::Cosine] {
                for (angle, value) in symmetry.angles(len).zip(line.gram_values(symmetry)) {
                    let mode: Vec<f64> = (1..=len)
                        .map(|j| match symmetry {
                            Symmetry::Sine => (2.0 * j as f64 * angle).sin(),
                            Symmetry::Cosine => ((2 * j - 1) as f64 * angle).cos(),
                        })
                        .collect();
                    let norm: f64 = mode.iter().map(|v| v * v).sum();
                    let known: f64 =
                        (0..len).map(|i| (0..len).map(|j| mode[i] * gram[(i, j)] * mode[j]).sum::<f64>()).sum::<f64>()
                            / norm;
                    assert!((value / known - 1.0).abs() < 1e-10, "{symmetry:?} {len}: {value} {known}");
                }
            }
        }
    }

    /// Total squared errors at unit noise: the bounds of two, three, eight and 32 cells.
    #[test]
    fn known_bounds() {
        for (len, bound) in [(2, 3.732_050_8), (3, 8.734_446_3), (8, 80.366_907), (32, 2_141.754_55)] {
            let diagonal = root_diagonal(&Workload::Ranges { len }, None).unwrap();
            let total: f64 = diagonal.iter().map(|s| s * s).sum();
            assert!((total / bound - 1.0).abs() < 1e-7, "{len}: {total}");
        }
    }
}
