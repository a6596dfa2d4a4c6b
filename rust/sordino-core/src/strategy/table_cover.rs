//! Marginals from a few larger tables, each with its share of the privacy, Laplace noise, least squares.
//!
//! A record is in one cell of each table, so with weights `w_T` the ℓ1 sensitivity is `Σ w_T`. What tables say of the
//! residual of the counts on a set S, what its attributes have in common beyond fewer of them, are independent of what they
//! say of other residuals: table T gives it the precision `w_T²/Π_{T∖S} n_i`, and least squares adds them up. Which tables
//! and weights is searched for (see [`crate::optimize`]).

use super::sets::{centred, largest_total, lift, subsets, summed, tables, weigh};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, not_in_row_space};
use crate::error::Error;
use crate::optimize::table_cover;
use crate::parallel::{each_slice, pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{MAX_LEN, Workload, cells};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Bits of the smallest weight, and of all together at most.
const LEAST_BITS: f64 = 8.0;
const MOST_BITS: f64 = 22.0;
/// Sets below the wanted ones.
const MOST_SETS: usize = 1 << 22;

/// A measured table.
#[derive(Debug, Clone)]
struct Table {
    attributes: Vec<usize>,
    weight: u64,
    offset: usize,
    len: usize,
}

/// A set of attributes below wanted ones, and what is known of its residual.
#[derive(Debug, Clone)]
struct Residual {
    /// Numbers of the tables around it.
    around: Vec<usize>,
    /// One over the variance of the residual's noise, to that of the noise of a table of weight 1.
    precision: f64,
}

#[derive(Debug, Clone)]
pub(super) struct TableCover {
    levels: Vec<usize>,
    sets: Vec<Vec<usize>>,
    tables: Vec<Table>,
    residuals: BTreeMap<Vec<usize>, Residual>,
    measured_len: usize,
    workload: Workload,
    /// Of [`Strategy::refined`], one a table.
    factors: Vec<f64>,
}

impl TableCover {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let Workload::Marginals { radices: levels, sets, weights, total_share } = workload else {
            return Err(Error::Unsupported("this mechanism serves marginals".into()));
        };
        if *total_share > 0.0 {
            return Err(Error::Unsupported("larger tables have no share for the total".into()));
        }
        let below: usize = sets.iter().map(|set| 1usize << set.len().min(30)).fold(0, usize::saturating_add);
        if below > MOST_SETS {
            return Err(Error::invalid("sets", "too many attribute sets below the wanted marginals"));
        }
        let found = table_cover(levels, sets, weights)?;
        let least = found.iter().fold(1.0f64, |least, table| least.min(table.share));
        let scale = (LEAST_BITS - least.log2()).ceil().min(MOST_BITS).exp2();
        let mut offset = 0;
        let tables = found.into_iter().map(|table| {
            let len = cells(levels, &table.attributes);
            offset += len;
            let weight = ((table.share * scale).round() as u64).max(1);
            Table { attributes: table.attributes, weight, offset: offset - len, len }
        });
        let tables: Vec<Table> = tables.collect();
        if offset > MAX_LEN {
            return Err(Error::Unsupported("the measured tables have more than 2^26 cells in all".into()));
        }
        let found = Self {
            levels: levels.clone(),
            sets: sets.clone(),
            tables,
            residuals: BTreeMap::new(),
            measured_len: offset,
            workload: workload.clone(),
            factors: Vec::new(),
        };
        Ok(found.surrounded().with_factors(&[]))
    }

    /// With the sets below wanted ones, and the tables around each.
    fn surrounded(mut self) -> Self {
        let unknown = |set| (set, Residual { around: Vec::new(), precision: 0.0 });
        self.residuals = self.sets.iter().flat_map(|set| subsets(set)).map(unknown).collect();
        for (t, table) in self.tables.iter().enumerate() {
            for set in self.known_below(&table.attributes) {
                if let Some(residual) = self.residuals.get_mut(&set) {
                    residual.around.push(t);
                }
            }
        }
        self
    }

    /// The same tables, answered for noise that is smaller by a factor on each; none for 1.
    fn with_factors(&self, factors: &[f64]) -> Self {
        let mut own = Self { factors: factors.to_vec(), ..self.clone() };
        let precisions: Vec<f64> =
            (0..self.tables.len()).map(|t| (self.tables[t].weight as f64 * own.factor(t)).powi(2)).collect();
        for (set, residual) in &mut own.residuals {
            let len = cells(&self.levels, set) as f64;
            residual.precision =
                residual.around.iter().map(|t| precisions[*t] * (len / self.tables[*t].len as f64)).sum();
        }
        own
    }

    fn factor(&self, table: usize) -> f64 {
        self.factors.get(table).copied().unwrap_or(1.0)
    }

    /// What a number of a table counts with in the estimate of a residual around which it is.
    fn gain(&self, table: usize, set: &[usize], residual: &Residual) -> f64 {
        let own = &self.tables[table];
        let share = cells(&self.levels, set) as f64 / own.len as f64;
        own.weight as f64 * self.factor(table).powi(2) * share / residual.precision
    }

    /// The residual on a set by what all tables around it say.
    fn estimate(&self, set: &[usize], residual: &Residual, y: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; cells(&self.levels, set)];
        for t in &residual.around {
            let (table, gain) = (&self.tables[*t], self.gain(*t, set, residual));
            let own = summed(&self.levels, &table.attributes, &y[table.offset..table.offset + table.len], set);
            sum.iter_mut().zip(own).for_each(|(sum, v)| *sum += gain * v);
        }
        centred(&self.levels, set, sum)
    }

    /// Weights of what is measured in the answer to a row of the table of a set.
    fn weights_of(&self, set: &[usize], row: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.measured_len];
        for inner in &self.known_below(set) {
            let (residual, part) = (&self.residuals[inner], self.part(set, row, inner));
            let share = part.len() as f64 / row.len() as f64;
            for t in &residual.around {
                let (table, gain) = (&self.tables[*t], self.gain(*t, inner, residual));
                // `lift` shares out; here every cell of the table counts with the whole of it.
                let factor = gain * share * table.len as f64 / part.len() as f64;
                let whole: Vec<f64> = part.iter().map(|v| factor * v).collect();
                let slots = &mut weights[table.offset..table.offset + table.len];
                lift(&self.levels, &whole, inner, &table.attributes, slots);
            }
        }
        weights
    }

    /// The residual on a set of a table around it.
    fn part(&self, outer: &[usize], table: &[f64], set: &[usize]) -> Vec<f64> {
        centred(&self.levels, set, summed(&self.levels, outer, table, set))
    }

    /// Sets within another one whose residuals are known: all its subsets, or those of the known ones, whichever are fewer.
    fn known_below(&self, set: &[usize]) -> Vec<Vec<usize>> {
        if set.len() < 20 && 1 << set.len() < self.residuals.len() {
            return subsets(set).into_iter().filter(|inner| self.residuals.contains_key(inner)).collect();
        }
        let inside = |inner: &&Vec<usize>| inner.iter().all(|i| set.binary_search(i).is_ok());
        self.residuals.keys().filter(inside).cloned().collect()
    }
}

impl Strategy for TableCover {
    fn measured_len(&self) -> usize {
        self.measured_len
    }

    fn geometry(&self) -> Geometry {
        Geometry::L1
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let sum = |tables: &mut dyn Iterator<Item = &Table>| {
            Upper::integer(tables.map(|table| u128::from(table.weight)).sum::<u128>())
        };
        // All records have the total in common.
        let apart = sum(&mut self.tables.iter().filter(|table| !table.attributes.is_empty()));
        Ok(unit.from_columns(sum(&mut self.tables.iter()), || apart + apart))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let largest = self.tables.iter().map(|table| table.weight).max().unwrap_or(1);
        let bound = largest_total(&self.workload, max_abs).saturating_mul(u128::from(largest));
        if bound >= 1 << 60 {
            return Err(Error::Overflow("these marginals overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn residual_variances(&self, sets: &[Vec<usize>]) -> Option<Vec<f64>> {
        sets.iter().map(|set| Some(self.geometry().white() / self.residuals.get(set)?.precision)).collect()
    }

    fn steps(&self) -> Vec<Run> {
        self.tables.iter().map(|table| Run { step: table.weight, len: table.len }).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.with_factors(factors)))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let sets: Vec<Vec<usize>> = self.tables.iter().map(|table| table.attributes.clone()).collect();
        let counted = tables(&self.levels, &sets, x)?;
        let slices = pieces(integers(out), self.tables.iter().map(|table| table.len));
        each_slice(slices, &|k, slice| {
            weigh(counted[k].iter().copied().map(i128::from), self.tables[k].weight, slice);
        });
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let known: BTreeMap<&Vec<usize>, Vec<f64>> = self
            .residuals
            .par_iter()
            .map(|(set, residual)| (set, self.estimate(set, residual, y)))
            .collect::<Vec<_>>()
            .into_iter()
            .collect();
        let slices = pieces(out, self.sets.iter().map(|set| cells(&self.levels, set)));
        each_slice(slices, &|k, table| {
            let set = &self.sets[k];
            table.fill(0.0);
            for inner in subsets(set) {
                lift(&self.levels, &known[&inner], &inner, set, table);
            }
        });
    }

    fn variances(&self, out: &mut [f64]) {
        let slices = pieces(out, self.sets.iter().map(|set| cells(&self.levels, set)));
        for (table, set) in slices.into_iter().zip(&self.sets) {
            let of = |inner: Vec<usize>| {
                let each = set.iter().map(|i| {
                    let n = self.levels[*i] as f64;
                    if inner.contains(i) { (n - 1.0) / n } else { n.powi(-2) }
                });
                each.product::<f64>() / self.residuals[&inner].precision
            };
            table.fill(self.geometry().white() * subsets(set).into_iter().map(of).sum::<f64>());
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let everything: Vec<usize> = (0..self.levels.len()).collect();
        let mut left = row.to_vec();
        for inner in self.residuals.keys() {
            let part = self.part(&everything, row, inner);
            let negative: Vec<f64> = part.iter().map(|v| -v).collect();
            lift(&self.levels, &negative, inner, &everything, &mut left);
        }
        let scale = row.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if left.iter().any(|v| v.abs() > 1e-9 * scale) {
            return Err(not_in_row_space());
        }
        Ok(self.weights_of(&everything, row))
    }

    fn answer_weights(&self, answer: usize, _row: &[f64]) -> Result<Vec<f64>, Error> {
        let mut rest = answer;
        for set in &self.sets {
            let len = cells(&self.levels, set);
            if rest < len {
                let mut row = vec![0.0; len];
                row[rest] = 1.0;
                return Ok(self.weights_of(set, &row));
            }
            rest -= len;
        }
        Err(not_in_row_space())
    }
}
