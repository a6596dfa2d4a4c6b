//! What is measured of one attribute, in integers, and how it is read.

use crate::error::Error;
use crate::linear_algebra::{Matrix, along_axis, from_rows, product, pseudo_inverse, symmetric_eigen};
use crate::order::in_order;
use crate::strategy::factored::squares;
use crate::strategy::fixed::Fixed;
use crate::strategy::probe;
use crate::workload::{Workload, along};
use std::sync::OnceLock;

/// A strategy for the queries of an attribute, a matrix of so many rows.
pub type Rows = (usize, Vec<f64>);

/// How the levels of an attribute are measured.
#[derive(Debug, Clone)]
enum Measured {
    /// Every level by itself.
    Levels,
    /// `nI − J`.
    Differences,
    /// Rows of integers, and the pseudo-inverse.
    Matrix(Fixed, Matrix),
}

/// An attribute: its queries `A`, and the integers `B` that are measured of the part of them that no constant has.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    levels: usize,
    measured: Measured,
    /// Largest squared ℓ2 norm, ℓ1 norm and entry of a column of `B`.
    pub square: u128,
    pub sum: u128,
    pub largest: u128,
    /// Variance of each answer at unit noise on what is measured.
    pub variances: Vec<f64>,
    /// Mean of each query over the levels, squared.
    pub means: Vec<f64>,
    opposed: OnceLock<u128>,
}

impl Axis {
    /// Of the queries, measured by these rows, to so many bits, or level by level; `centred` if rows leave constants out.
    /// Level by level too where rounding leaves the rows without what the queries need.
    ///
    /// # Errors
    /// If a row is not finite, or those of levels are no levels.
    pub(super) fn new(workload: &Workload, rows: Option<&Rows>, bits: u32, centred: bool) -> Result<Self, Error> {
        let levels = workload.table_len()?;
        let mut means = vec![0.0; workload.answers_len()];
        workload.apply(&vec![1.0 / levels as f64; levels], &mut means);
        for mean in &mut means {
            *mean *= *mean;
        }
        let axis = |measured, (square, sum, largest): (u128, u128, u128), variances| Self {
            levels,
            measured,
            square,
            sum,
            largest,
            variances,
            means: means.clone(),
            opposed: OnceLock::new(),
        };
        let by_levels = || {
            let (n, mut variances) = (levels as u128, vec![0.0; workload.answers_len()]);
            workload.row_squares(&mut variances);
            if !centred {
                return axis(Measured::Levels, (1, 1, 1), variances);
            }
            // (B⁺)ᵀ of a row is what it is beyond its mean, over n.
            let square = (levels as f64).powi(2);
            let rest = |(v, mean): (&f64, &f64)| (v - levels as f64 * mean).max(0.0) / square;
            let variances = variances.iter().zip(&means).map(rest).collect();
            axis(Measured::Differences, (n * (n - 1), 2 * (n - 1), n - 1), variances)
        };
        let Some((rows, entries)) = rows else {
            let plain = matches!(workload, Workload::Histogram { .. });
            return plain
                .then(by_levels)
                .ok_or_else(|| Error::invalid("matrices", "of queries that are no levels there must be one"));
        };
        let determined = |part: &dyn Fn(&[f64]) -> Vec<f64>| {
            let back = |x: &[f64]| {
                let mean = if centred { x.iter().sum::<f64>() / levels as f64 } else { 0.0 };
                part(x).into_iter().map(|v| v + mean).collect()
            };
            probe::answers(workload, levels, &back)
        };
        if *rows == 0 && entries.is_empty() {
            // All queries are multiples of the total: nothing of them is measured here.
            let nothing = determined(&|x| vec![0.0; x.len()]);
            return Ok(if nothing { axis(Measured::Levels, (0, 0, 0), vec![0.0; means.len()]) } else { by_levels() });
        }
        Error::check_len("matrices", rows.saturating_mul(levels), entries.len())?;
        let completed = if centred { completed(*rows, levels, entries, bits) } else { None };
        let (rows, entries) =
            completed.as_ref().map_or((*rows, entries.as_slice()), |(rows, own)| (*rows, own.as_slice()));
        let mut fixed = Fixed::new(rows, levels, entries, bits)?;
        if centred {
            for (row, exact) in fixed.entries.chunks_exact_mut(levels).zip(entries.chunks_exact(levels)) {
                balance(row, exact, 2f64.powi(fixed.bits));
            }
        }
        fixed.bits = 0;
        let matrix = from_rows(rows, levels, &fixed.to_floats());
        let Some(inverse) = pseudo_inverse(&matrix) else { return Ok(by_levels()) };
        if !determined(&|x| along_axis(&inverse, false, &along_axis(&matrix, false, x, 1), 1)) {
            return Ok(by_levels());
        }
        let mut variances = vec![0.0; workload.answers_len()];
        squares(workload, &inverse, &|_| 1.0, &mut variances);
        let column = |j: usize| fixed.entries[j..].iter().step_by(levels).map(|b| u128::from(b.unsigned_abs()));
        let over = |of: &dyn Fn(usize) -> u128| (0..levels).map(of).max().unwrap_or(0);
        let square = over(&|j| column(j).map(|b| b * b).sum());
        let (sum, largest) = (over(&|j| column(j).sum()), over(&|j| column(j).max().unwrap_or(0)));
        Ok(axis(Measured::Matrix(fixed, inverse), (square, sum, largest), variances))
    }

    /// Numbers that are measured.
    pub(super) fn rows(&self) -> usize {
        match &self.measured {
            Measured::Levels | Measured::Differences => self.levels,
            Measured::Matrix(fixed, _) => fixed.rows,
        }
    }

    /// How far the product of two columns may fall below zero.
    pub(super) fn opposed(&self) -> u128 {
        *self.opposed.get_or_init(|| self.find_opposed())
    }

    fn find_opposed(&self) -> u128 {
        match &self.measured {
            Measured::Levels => 0,
            Measured::Differences => self.levels as u128,
            Measured::Matrix(fixed, _) => {
                let n = self.levels;
                let mut least = 0i128;
                let mut products = vec![0i128; n];
                for j in 0..n {
                    products.fill(0);
                    for row in fixed.entries.chunks_exact(n) {
                        let own = i128::from(row[j]);
                        products.iter_mut().zip(row).for_each(|(sum, b)| *sum += own * i128::from(*b));
                    }
                    least = products.iter().copied().fold(least, i128::min);
                }
                least.unsigned_abs()
            }
        }
    }

    /// `B` along an axis, so many numbers behind it.
    pub(super) fn encode(&self, table: &[i128], inner: usize) -> Vec<i128> {
        match &self.measured {
            Measured::Levels => table.to_vec(),
            Measured::Differences => along((self.levels, self.levels), inner, table, |line, out| {
                let sum: i128 = line.iter().sum();
                out.iter_mut().zip(line).for_each(|(slot, v)| *slot = self.levels as i128 * v - sum);
            }),
            Measured::Matrix(fixed, _) => {
                let mut out = vec![0; table.len() / self.levels * fixed.rows];
                fixed.apply(table, inner, &mut out);
                out
            }
        }
    }

    /// `B⁺` along an axis.
    pub(super) fn recover(&self, measured: &[f64], inner: usize) -> Vec<f64> {
        self.inverted(measured, inner, false)
    }

    /// `(B⁺)ᵀ` along an axis.
    pub(super) fn weigh(&self, table: &[f64], inner: usize) -> Vec<f64> {
        self.inverted(table, inner, true)
    }

    fn inverted(&self, values: &[f64], inner: usize, transposed: bool) -> Vec<f64> {
        let n = self.levels;
        match &self.measured {
            Measured::Levels => values.to_vec(),
            Measured::Differences => along((n, n), inner, values, |line, out| centre(line, out, (n as f64).recip())),
            Measured::Matrix(_, inverse) => along_axis(inverse, transposed, values, inner),
        }
    }

    /// `Bᵀ` along an axis.
    pub(super) fn transposed(&self, measured: &[f64], inner: usize) -> Vec<f64> {
        let n = self.levels;
        match &self.measured {
            Measured::Levels => measured.to_vec(),
            Measured::Differences => along((n, n), inner, measured, |line, out| centre(line, out, n as f64)),
            Measured::Matrix(fixed, _) => {
                let matrix = from_rows(fixed.rows, n, &fixed.to_floats());
                along_axis(&matrix, true, measured, inner)
            }
        }
    }
}

/// What a line is beyond its mean, scaled.
fn centre(line: &[f64], out: &mut [f64], scale: f64) {
    let mean = line.iter().sum::<f64>() / line.len() as f64;
    out.iter_mut().zip(line).for_each(|(slot, v)| *slot = (v - mean) * scale);
}

/// Share of the largest column that directions have which no query needs, but which rounding moves queries into.
const LITTLE: f64 = 0.1;
/// Units that an entry of such a direction has at least, about.
const UNITS: f64 = 4.0;

/// The rows, and what they leave out of all that no constant has, with little weight: rounded rows span other spaces, and
/// queries must lie in theirs. None if nothing is left out.
fn completed(rows: usize, levels: usize, entries: &[f64], bits: u32) -> Option<Rows> {
    if rows + 1 >= levels {
        return None;
    }
    let matrix = from_rows(rows, levels, entries);
    let mut left = product(&pseudo_inverse(&matrix)?, &matrix);
    for i in 0..levels {
        for j in 0..levels {
            left[(i, j)] = f64::from(u8::from(i == j)) - 1.0 / levels as f64 - left[(i, j)];
        }
    }
    let (vectors, values) = symmetric_eigen(&left)?;
    let column = |j: usize| entries[j..].iter().step_by(levels).map(|b| b * b).sum::<f64>();
    let largest = (0..levels).map(column).fold(0.0, f64::max).sqrt();
    let weight = largest * LITTLE.max(UNITS * (levels as f64).sqrt() * 0.5f64.powi(bits as i32));
    let mut all = entries.to_vec();
    for k in (0..levels).filter(|k| values[*k] > 0.5) {
        all.extend(vectors.col_as_slice(k).iter().map(|v| weight * v));
    }
    Some((all.len() / levels, all))
}

/// Parts of a unit that are told apart.
const TIED: f64 = 1e6;

/// Moves rounded entries by one where that costs least, until they sum to zero.
fn balance(row: &mut [i64], exact: &[f64], scale: f64) {
    let mut left: i64 = row.iter().sum();
    while left != 0 {
        let step = -left.signum();
        // What ties but for rounding is taken in order, on every machine.
        let gap = |j: usize| (step as f64 * (exact[j] * scale - row[j] as f64) * TIED).round() as i64;
        let order = in_order(row.len(), &|j| -gap(j) as f64);
        let many = (left.unsigned_abs() as usize).min(row.len());
        for j in &order[..many] {
            row[*j] += step;
        }
        left += step * many as i64;
    }
}
