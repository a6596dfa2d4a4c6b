//! Noise on the answers of a matrix of few entries: `B = A`, row by row.

use super::columns::{EXACT_PAIRS, apart};
use super::dense::Dense;
use super::entries::{Entries, norm, sum, term};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, floats, integers, table};
use crate::error::Error;
use crate::parallel::{fill, largest_of};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use std::ops::Range;
use std::sync::OnceLock;

/// A sparse matrix measured row by row: exact if its entries are integers times a power of two.
#[derive(Debug)]
pub(super) struct Sparse {
    columns: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    entries: Entries,
    geometry: Geometry,
    workload: Workload,
    /// Of [`Strategy::refined`], one a run of rows.
    factors: Vec<f64>,
    /// The same written out, when further queries are first asked.
    dense: OnceLock<Result<Dense, Error>>,
}

impl Sparse {
    pub(super) fn new(workload: &Workload, geometry: Geometry) -> Result<Self, Error> {
        let Workload::Sparse { columns, starts, indices, entries, .. } = workload else {
            return Err(Error::Unsupported("this strategy serves sparse matrices".into()));
        };
        Ok(Self {
            columns: *columns,
            starts: starts.clone(),
            indices: indices.clone(),
            entries: Entries::new(entries.clone()),
            geometry,
            workload: workload.clone(),
            factors: Vec::new(),
            dense: OnceLock::new(),
        })
    }

    /// Entries of row `t`.
    fn row(&self, t: usize) -> Range<usize> {
        self.starts[t]..self.starts[t + 1]
    }

    /// `Σ_j |b_tj|` for every row.
    fn row_sums(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.measured_len()).map(|t| self.row(t).map(|k| self.entries.at(k).abs()).sum())
    }

    /// Rows and entries of every column.
    fn by_columns(&self) -> Vec<Vec<(usize, f64)>> {
        let mut columns = vec![Vec::new(); self.columns];
        for t in 0..self.measured_len() {
            for k in self.row(t) {
                columns[self.indices[k] as usize].push((t, self.entries.at(k)));
            }
        }
        columns
    }

    fn is_l1(&self) -> bool {
        self.geometry == Geometry::L1
    }

    /// Sum of the terms of the difference of two columns.
    fn distance(&self, a: &[(usize, f64)], b: &[(usize, f64)]) -> f64 {
        let (mut i, mut j, mut sum) = (0, 0, 0.0);
        while i < a.len() || j < b.len() {
            let at = |column: &[(usize, f64)], k: usize| column.get(k).map_or(usize::MAX, |entry| entry.0);
            let (mut difference, first, second) = (0.0, at(a, i), at(b, j));
            if first <= second {
                difference += a[i].1;
                i += 1;
            }
            if second <= first {
                difference -= b[j].1;
                j += 1;
            }
            sum += term(self.is_l1(), difference);
        }
        sum
    }
}

impl Strategy for Sparse {
    fn measured_len(&self) -> usize {
        self.starts.len() - 1
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let mut sums = vec![0.0; self.columns];
        for (k, j) in self.indices.iter().enumerate() {
            sums[*j as usize] += term(self.is_l1(), self.entries.at(k));
        }
        let single = norm(self.is_l1(), sums.into_iter().fold(0.0, f64::max), self.measured_len());
        let pair = || {
            let mut columns = self.by_columns();
            // One without entries is no farther from another than that is long.
            columns.retain(|column| !column.is_empty());
            // Every entry meets every column once.
            if self.indices.len().saturating_mul(columns.len()) > EXACT_PAIRS {
                return apart(single, self.is_l1(), self.entries.negative());
            }
            let furthest = largest_of(columns.len(), &|j| {
                columns[..j].iter().map(|other| self.distance(&columns[j], other)).fold(0.0, f64::max)
            });
            norm(self.is_l1(), furthest, self.measured_len())
        };
        Ok(unit.from_columns(single, pair))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let longest = self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        self.entries.encoding(self.row_sums(), longest, max_abs)
    }

    fn steps(&self) -> Vec<Run> {
        self.entries.steps((0..self.measured_len()).map(|t| self.row(t)))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        let mut refined = Self::new(&self.workload, self.geometry.clone()).ok()?;
        refined.factors = factors.to_vec();
        Some(Box::new(refined))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let x = table(x)?;
        let cell = |k: usize| x[self.indices[k] as usize];
        match &self.entries {
            Entries::Integers(entries, _) => {
                fill(integers(out), |t| self.row(t).map(|k| i64::from(entries[k]) * cell(k)).sum());
            }
            Entries::Reals(entries) => {
                fill(floats(out), |t| sum(self.row(t), &|k| entries[k] * cell(k) as f64));
            }
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
        let cell = |k: usize| self.entries.at(k) * x[self.indices[k] as usize];
        Some((0..self.measured_len()).map(|t| self.row(t).map(cell).sum()).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut out = vec![0.0; self.columns];
        for (t, value) in y.iter().enumerate() {
            for k in self.row(t) {
                out[self.indices[k] as usize] += self.entries.at(k) * value;
            }
        }
        Some(out)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let dense = self.dense.get_or_init(|| {
            let (rows, columns, entries) = self.workload.dense()?;
            Ok(Dense::new(rows, columns, entries, self.geometry.clone()).with_factors(&self.factors))
        });
        // The same entries make the same integers.
        dense.as_ref().map_err(Clone::clone)?.weights(row)
    }

    fn answer_weights(&self, answer: usize, _row: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.entries.answer_weights(answer, self.measured_len()))
    }
}
