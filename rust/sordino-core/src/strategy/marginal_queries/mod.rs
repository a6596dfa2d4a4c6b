//! Products of queries along the attributes of sets, Gaussian noise: what sets have in common is measured once.
//!
//! Along an attribute of n levels a query is its mean over the levels, and a rest that no constant has. So the queries of a
//! set fall into a block for each subset S: the rests of the attributes in S, of the marginal table on S. With strategies
//! `B_i` for the rests the block is measured by `w_S ⊗_{i∈S} B_i`, and with independent noise the error is `Σ_S E_S/w_S²`,
//! least for `w_S⁴ ∝ E_S/‖column‖²`. Where queries of every attribute stay the same, all together, under a group that moves any
//! level to any other, this is the least error of all (Xiao et al. 2023, `ResidualPlanner`, for levels as they are). Rows of `B_i` are integers that
//! sum to zero, and everything is exact.
//!
//! Laplace noise: the tables of the sets themselves, by strategies that know constants too, with shares of the ℓ1
//! sensitivity: what is left out of a row costs as much again in that norm.

mod axis;
#[cfg(test)]
mod tests;

pub use axis::Rows;

use super::sets::{MAX_RECORDS, largest_total, lift, sources, subsets, summed, tables, weigh};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, not_in_row_space};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::parallel::{collected, each_slice, pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{MAX_LEN, Workload, cells, marginal, marginal_queries as queries, outer};
use axis::Axis;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Bits of what is measured, and of the cells of a table at least, which is known not to be of records.
const SUM_BITS: f64 = 60.0;
const CELL_BITS: f64 = 12.0;
/// Bits of the largest weight, at least, and those that entries leave for weights; multiples that are tried between two
/// sizes.
const LEAST_BITS: f64 = 4.0;
const FINE_BITS: f64 = 7.0;
const MULTIPLES: usize = 64;
/// Blocks.
const MOST_BLOCKS: usize = 1 << 22;
/// Bits of the entries of an attribute's strategy.
const ENTRY_BITS: (f64, f64) = (4.0, 12.0);

/// A block: the rests of a set of attributes.
#[derive(Debug, Clone)]
struct Block {
    set: Vec<usize>,
    weight: u64,
    offset: usize,
    len: usize,
    /// Number of the smallest wanted set above it.
    source: usize,
}

#[derive(Debug, Clone)]
struct MarginalQueries {
    workload: Workload,
    queries: Vec<Workload>,
    levels: Vec<usize>,
    sets: Vec<Vec<usize>>,
    axes: Vec<Axis>,
    blocks: Vec<Block>,
    /// Whether blocks are the sets themselves.
    direct: bool,
    geometry: Geometry,
    measured_len: usize,
    /// Of [`Strategy::refined`], one a block.
    factors: Vec<f64>,
}

/// The strategy of marginal queries by these strategies of the attributes, none for levels as they are. Gaussian noise: of
/// the rests of an attribute's queries; Laplace noise: of the queries.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads; [`Error::InvalidParameter`] if a strategy does not determine its queries.
pub fn marginal_queries(
    workload: &Workload,
    matrices: &[Option<Rows>],
    law: NoiseLaw,
) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    let Workload::MarginalQueries { axes: queries, sets, weights } = &workload else {
        return Err(Error::Unsupported("this mechanism serves marginal queries".into()));
    };
    workload.listed()?;
    let held: usize = sets.iter().map(|set| cells(&queries::levels(queries), set)).fold(0, usize::saturating_add);
    if held > MAX_LEN {
        return Err(Error::Unsupported("the tables of these sets have more than 2^26 cells in all".into()));
    }
    Error::check_len("matrices", queries.len(), matrices.len())?;
    let (direct, levels) = (law == NoiseLaw::Laplace, queries::levels(queries));
    // What one record may add to a number: so many records, or such cells, fit in.
    let cells = workload.input_len().map_or(0.0, |len| (len as f64).log2() + CELL_BITS);
    let room = (SUM_BITS - cells.max((MAX_RECORDS as f64).log2())).floor() - 1.0;
    let order = sets.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let bits = ((room - FINE_BITS) / order as f64).floor().clamp(ENTRY_BITS.0, ENTRY_BITS.1) as u32;
    let axis = |(own, rows): (&Workload, &Option<Rows>)| Axis::new(own, rows.as_ref(), bits, !direct);
    let axes = queries.par_iter().zip(matrices).map(axis).collect::<Result<Vec<_>, _>>()?;
    let gains = gains(&axes, sets, weights, direct)?;
    let product = |set: &[usize], of: fn(&Axis) -> u128| set.iter().map(|i| of(&axes[*i]) as f64).product::<f64>();
    let norm: fn(&Axis) -> u128 = if direct { |axis| axis.sum } else { |axis| axis.square };
    let costs: Vec<f64> = gains.keys().map(|set| product(set, norm)).collect();
    let best = |(gain, cost): (&f64, &f64)| if direct { (gain / cost).cbrt() } else { (gain / cost).powf(0.25) };
    let raw: Vec<f64> = gains.values().zip(&costs).map(best).collect();
    let largest = raw.iter().fold(0.0f64, |most, w| most.max(*w));
    let growth =
        gains.keys().zip(&raw).fold(0.0f64, |most, (set, w)| most.max(w / largest * product(set, |axis| axis.largest)));
    let bits = (room - growth.log2()).floor();
    if bits < LEAST_BITS {
        return Err(Error::Overflow("the blocks of these queries overflow: too many attributes in one set".into()));
    }
    let gain: Vec<f64> = gains.values().copied().collect();
    let weights = rounded(&raw, bits.exp2() / largest, &gain, &costs, direct);
    let mut sources = sources(&levels, sets, direct);
    let mut offset = 0;
    let blocks = gains.into_keys().zip(weights).map(|(set, weight)| {
        let len = set.iter().map(|i| axes[*i].rows()).product();
        let source = sources.remove(&set).unwrap_or_default(); // every block is below a wanted set
        offset += len;
        Block { set, weight, offset: offset - len, len, source }
    });
    let blocks = blocks.collect();
    if offset > MAX_LEN {
        return Err(Error::Unsupported("blocks have more than 2^26 numbers in all".into()));
    }
    Ok(Box::new(MarginalQueries {
        queries: queries.clone(),
        sets: sets.clone(),
        workload: workload.clone(),
        levels,
        axes,
        blocks,
        direct,
        geometry: if direct { Geometry::L1 } else { Geometry::L2 },
        measured_len: offset,
        factors: Vec::new(),
    }))
}

/// How much the variance of a block at unit noise adds to the squared error.
fn gains(
    axes: &[Axis],
    sets: &[Vec<usize>],
    weights: &[f64],
    direct: bool,
) -> Result<BTreeMap<Vec<usize>, f64>, Error> {
    let sum = |of: fn(&Axis) -> &[f64]| axes.iter().map(|axis| of(axis).iter().sum()).collect::<Vec<f64>>();
    let (own, mean) = (sum(|axis| &axis.variances), sum(|axis| &axis.means));
    let mut gains: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for (set, weight) in sets.iter().zip(weights) {
        if set.len() > 30 {
            return Err(Error::invalid("sets", "at most 30 attributes in one set"));
        }
        for inside in if direct { vec![set.clone()] } else { subsets(set) } {
            let each = set.iter().map(|i| if inside.contains(i) { own[*i] } else { mean[*i] });
            *gains.entry(inside).or_default() += weight * each.product::<f64>();
        }
        if gains.len() > MOST_BLOCKS {
            return Err(Error::invalid("sets", "too many attribute sets below the wanted ones"));
        }
    }
    // A block of queries that have no such part is measured for nothing.
    gains.retain(|_, gain| *gain > 0.0);
    let fits = |gain: &f64| (1e-250..=1e250).contains(gain);
    if gains.is_empty() || !gains.values().all(fits) {
        return Err(Error::Unsupported("queries and weights are too small or too large for these blocks".into()));
    }
    Ok(gains)
}

/// Weights in integers, at most `scale` times the raw ones, of a common multiple that loses least.
fn rounded(raw: &[f64], scale: f64, gains: &[f64], costs: &[f64], direct: bool) -> Vec<u64> {
    let at = |k: usize| {
        let scale = scale * (-(k as f64) / MULTIPLES as f64).exp2();
        let weights: Vec<u64> = raw.iter().map(|w| ((w * scale).round() as u64).max(1)).collect();
        let spent = |(w, cost): (&u64, &f64)| cost * (*w as f64).powi(if direct { 1 } else { 2 });
        let cost: f64 = weights.iter().zip(costs).map(spent).sum();
        let error: f64 = weights.iter().zip(gains).map(|(w, gain)| gain / (*w as f64).powi(2)).sum();
        (error * cost.powi(if direct { 2 } else { 1 }), weights)
    };
    let tried: Vec<(f64, Vec<u64>)> = (0..MULTIPLES).map(at).collect();
    let least = tried.iter().fold(f64::INFINITY, |least, (loss, _)| loss.min(least));
    // What ties but for rounding is the same on every machine.
    tried.into_iter().find(|(loss, _)| *loss <= least * (1.0 + 1e-9)).map_or_else(Vec::new, |(_, weights)| weights)
}

impl MarginalQueries {
    /// `w^power` times the product over the attributes of a block.
    fn product(&self, block: &Block, power: u32, of: fn(&Axis) -> u128) -> u128 {
        let start = u128::from(block.weight).pow(power);
        block.set.iter().fold(start, |product, i| product.saturating_mul(of(&self.axes[*i])))
    }

    /// Number of the block of a set, if it is measured; blocks are in order of their sets.
    fn block(&self, set: &[usize]) -> Option<usize> {
        self.blocks.binary_search_by(|block| block.set.as_slice().cmp(set)).ok()
    }

    /// Numbers of the blocks below a wanted set.
    fn below(&self, set: &[usize]) -> Vec<usize> {
        let sets = if self.direct { vec![set.to_vec()] } else { subsets(set) };
        sets.iter().filter_map(|below| self.block(below)).collect()
    }

    /// A map along every axis of a block's table, the last axis first, from tables or numbers that are measured.
    fn each_axis<T: Clone>(
        &self,
        set: &[usize],
        values: Vec<T>,
        after: impl Fn(&Axis, &[T], usize) -> Vec<T>,
        rows: bool,
    ) -> Vec<T> {
        let (mut values, mut inner) = (values, 1);
        for i in set.iter().rev() {
            values = after(&self.axes[*i], &values, inner);
            inner *= if rows { self.axes[*i].rows() } else { self.levels[*i] };
        }
        values
    }

    /// What a block says of its marginal table.
    fn recovered(&self, block: &Block, measured: &[f64]) -> Vec<f64> {
        let values = measured.iter().map(|v| v / block.weight as f64).collect();
        self.each_axis(&block.set, values, Axis::recover, false)
    }

    /// Rows, each for its axis, as weights of a block, and the product of the means of the others.
    fn weights_of(&self, block: &Block, set: &[usize], rows: &[Vec<f64>]) -> Vec<f64> {
        let mut lines: Vec<Vec<f64>> = vec![vec![1.0 / block.weight as f64]];
        for (i, row) in set.iter().zip(rows) {
            if block.set.contains(i) {
                lines.push(self.axes[*i].weigh(row, 1));
            } else {
                lines.push(vec![row.iter().sum::<f64>() / self.levels[*i] as f64]);
            }
        }
        outer(&lines)
    }
}

impl Strategy for MarginalQueries {
    fn measured_len(&self) -> usize {
        self.measured_len
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        if self.direct {
            let sums = self.blocks.iter().map(|block| Upper::integer(self.product(block, 1, |axis| axis.sum)));
            let column = sums.fold(Upper::ZERO, |a, b| a + b);
            return Ok(unit.from_columns(column, || column + column));
        }
        let squares = self.blocks.iter().map(|block| Upper::integer(self.product(block, 2, |axis| axis.square)));
        let column = squares.fold(Upper::ZERO, |a, b| a + b);
        // Products of two columns in a block are below zero by at most one attribute's, times the largest of the others; the
        // total, which all records share, tells no two apart.
        let pair = || {
            let opposed: Vec<u128> = self.axes.iter().map(Axis::opposed).collect();
            let below = |block: &Block| {
                let one = |k: &usize| {
                    let others = block.set.iter().filter(|i| *i != k);
                    let start = u128::from(block.weight).pow(2).saturating_mul(opposed[*k]);
                    others.fold(start, |product, i| product.saturating_mul(self.axes[*i].square))
                };
                Upper::integer(block.set.iter().map(one).max().unwrap_or(0))
            };
            let apart = self
                .blocks
                .iter()
                .filter(|block| !block.set.is_empty())
                .map(|block| Upper::integer(self.product(block, 2, |axis| axis.square)) + below(block));
            let half = apart.fold(Upper::ZERO, |a, b| a + b);
            (half + half).sqrt()
        };
        Ok(unit.from_columns(column.sqrt(), pair))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let total = largest_total(&self.workload, max_abs);
        self.blocks
            .iter()
            .map(|block| self.product(block, 1, |axis| axis.largest).saturating_mul(total))
            .max()
            .filter(|bound| *bound < 1 << 60)
            .map(|bound| Encoding::Exact { max_abs: bound as u64 })
            .ok_or_else(|| Error::Overflow("these queries overflow; declare a smaller max_value".into()))
    }

    fn steps(&self) -> Vec<Run> {
        self.blocks.iter().map(|block| Run { step: block.weight, len: block.len }).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self { factors: factors.to_vec(), ..self.clone() }))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let counted = tables(&self.levels, &self.sets, x)?;
        let slices = pieces(integers(out), self.blocks.iter().map(|block| block.len));
        each_slice(slices, &|k, slice| {
            let block = &self.blocks[k];
            let table = summed(&self.levels, &self.sets[block.source], &counted[block.source], &block.set);
            let values = table.into_iter().map(i128::from).collect();
            weigh(self.each_axis(&block.set, values, Axis::encode, true), block.weight, slice);
        });
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let parts = collected(self.blocks.len(), &|k| {
            let block = &self.blocks[k];
            self.recovered(block, &y[block.offset..block.offset + block.len])
        });
        let slices = pieces(out, self.sets.iter().map(|set| queries::answers(&self.queries, set)));
        each_slice(slices, &|k, own| {
            let set = &self.sets[k];
            let mut table = vec![0.0; cells(&self.levels, set)];
            for k in self.below(set) {
                lift(&self.levels, &parts[k], &self.blocks[k].set, set, &mut table);
            }
            queries::answer(&self.queries, set, &table, own);
        });
    }

    fn variances(&self, out: &mut [f64]) {
        let noise = self.geometry.white();
        let slices = pieces(out, self.sets.iter().map(|set| queries::answers(&self.queries, set)));
        for (own, set) in slices.into_iter().zip(&self.sets) {
            own.fill(0.0);
            for k in self.below(set) {
                let block = &self.blocks[k];
                let precision = block.weight as f64 * self.factors.get(k).unwrap_or(&1.0);
                let mut each = vec![vec![noise / (precision * precision)]];
                each.extend(set.iter().map(|i| {
                    let axis = &self.axes[*i];
                    if block.set.contains(i) { axis.variances.clone() } else { axis.means.clone() }
                }));
                own.iter_mut().zip(outer(&each)).for_each(|(slot, variance)| *slot += variance);
            }
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        if self.direct {
            return Err(Error::Unsupported("ask for the measured queries themselves".into()));
        }
        let mut weights = vec![0.0; self.measured_len];
        let mut left = row.to_vec();
        let everything: Vec<usize> = (0..self.levels.len()).collect();
        for block in &self.blocks {
            let mut part = vec![0.0; cells(&self.levels, &block.set)];
            marginal(row, &self.levels, &block.set, &mut part);
            let spread = part.len() as f64 / row.len() as f64;
            for v in &mut part {
                *v *= spread;
            }
            let own = self.each_axis(&block.set, part, Axis::weigh, true);
            let back = self.each_axis(&block.set, own.clone(), Axis::transposed, false);
            let mut full = vec![0.0; row.len()];
            lift(&self.levels, &back, &block.set, &everything, &mut full);
            // `lift` shares out; a row of the block's table is the same for all that the others may be.
            let factor = row.len() as f64 / back.len() as f64;
            left.iter_mut().zip(full).for_each(|(left, v)| *left -= factor * v);
            let slots = &mut weights[block.offset..block.offset + block.len];
            slots.iter_mut().zip(own).for_each(|(slot, v)| *slot = v / block.weight as f64);
        }
        let scale = row.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if left.iter().any(|v| v.abs() > 1e-9 * scale) { Err(not_in_row_space()) } else { Ok(weights) }
    }

    fn answer_weights(&self, answer: usize, _row: &[f64]) -> Result<Vec<f64>, Error> {
        let mut weights = vec![0.0; self.measured_len];
        let mut rest = answer;
        for set in &self.sets {
            let count = queries::answers(&self.queries, set);
            if rest >= count {
                rest -= count;
                continue;
            }
            let mut rows = Vec::with_capacity(set.len());
            for i in set.iter().rev() {
                let own = &self.queries[*i];
                rows.push(own.row(rest % own.answers_len())?);
                rest /= own.answers_len();
            }
            rows.reverse();
            for k in self.below(set) {
                let block = &self.blocks[k];
                let own = self.weights_of(block, set, &rows);
                weights[block.offset..block.offset + block.len].copy_from_slice(&own);
            }
            break;
        }
        Ok(weights)
    }
}
