//! The b-ary tree: every node's count is measured, leaves are estimated by least squares.
//!
//! Least squares in two passes (Hay et al. 2010), for trees whose last branches are cut off at the
//! length of the series. Variances of prefixes come from the same recursion.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, table};
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use rayon::prelude::*;

/// Counts of all nodes, root first, then level by level.
#[derive(Debug)]
pub(super) struct Tree {
    workload: Workload,
    prefix: bool,
    branching: usize,
    /// Nodes in each level, root to leaves.
    levels: Vec<usize>,
    /// Least-squares variance of each node's total from its own subtree.
    variance: Vec<Vec<f64>>,
    geometry: Geometry,
}

/// Whether a workload is a running sum or a histogram, and its length.
pub(super) fn prefix_or_cells(workload: &Workload) -> Result<(usize, bool), Error> {
    match (workload, workload.running_sum()) {
        (Workload::Histogram { len }, _) => Ok((*len, false)),
        (_, Some((len, _))) => Ok((len, true)),
        _ => Err(Error::Unsupported("trees and wavelets serve running sums and histograms".into())),
    }
}

impl Tree {
    pub(super) fn new(workload: &Workload, branching: usize, geometry: Geometry) -> Result<Self, Error> {
        let (len, prefix) = prefix_or_cells(workload)?;
        if !(2..=1 << 16).contains(&branching) {
            return Err(Error::invalid("branching", "must be from 2 to 65536"));
        }
        let mut levels = vec![len];
        while levels[levels.len() - 1] > 1 {
            levels.push(levels[levels.len() - 1].div_ceil(branching));
        }
        levels.reverse();
        let mut variance = vec![vec![1.0; len]];
        for nodes in levels.iter().rev().skip(1) {
            let children = &variance[variance.len() - 1];
            let combined = (0..*nodes).map(|i| {
                let sum: f64 = children[i * branching..((i + 1) * branching).min(children.len())].iter().sum();
                sum / (1.0 + sum)
            });
            let combined = combined.collect();
            variance.push(combined);
        }
        variance.reverse();
        Ok(Self { workload: workload.clone(), prefix, branching, levels, variance, geometry })
    }

    fn len(&self) -> usize {
        self.levels[self.levels.len() - 1]
    }

    fn children(&self, level: usize, node: usize) -> std::ops::Range<usize> {
        node * self.branching..((node + 1) * self.branching).min(self.levels[level + 1])
    }

    /// Node totals of leaf values: `B x`.
    fn totals<T: Copy + std::iter::Sum<T>>(&self, leaves: &[T]) -> Vec<T> {
        let mut levels = vec![leaves.to_vec()];
        for nodes in self.levels.iter().rev().skip(1) {
            let below = &levels[levels.len() - 1];
            let sums = below.chunks(self.branching).map(|children| children.iter().copied().sum()).collect::<Vec<T>>();
            debug_assert_eq!(sums.len(), *nodes);
            levels.push(sums);
        }
        levels.reverse();
        levels.concat()
    }

    /// Least-squares leaves.
    fn estimate(&self, y: &[f64]) -> Vec<f64> {
        let mut measured = Vec::new();
        let mut rest = y;
        for nodes in &self.levels {
            let (level, tail) = rest.split_at(*nodes);
            measured.push(level.to_vec());
            rest = tail;
        }
        // Up: the best estimate of each total from its own subtree.
        for level in (0..self.levels.len() - 1).rev() {
            for node in 0..self.levels[level] {
                let children = self.children(level, node);
                let sum: f64 = measured[level + 1][children.clone()].iter().sum();
                let variance: f64 = self.variance[level + 1][children].iter().sum();
                let own = measured[level][node];
                measured[level][node] = (own * variance + sum) / (1.0 + variance);
            }
        }
        // Down: share what the parent knows better.
        for level in 0..self.levels.len() - 1 {
            for node in 0..self.levels[level] {
                let children = self.children(level, node);
                let sum: f64 = measured[level + 1][children.clone()].iter().sum();
                let variance: f64 = self.variance[level + 1][children.clone()].iter().sum();
                let excess = (measured[level][node] - sum) / variance;
                for child in children {
                    measured[level + 1][child] += self.variance[level + 1][child] * excess;
                }
            }
        }
        measured.pop().unwrap_or_default()
    }

    /// Variances of the prefixes up to and including each leaf, or of the leaves alone.
    ///
    /// A prefix inside a node is `α·s` of the node's total s, plus independent noise of variance β, and has the variance
    /// `β + p(α)`. A child of estimated variance v among those of the sum T, of which those before it have b, makes of its own
    /// `α' = (b + αv)/T` and `β' = β + b + α²v − T α'²`. So the quadratic p goes down from the root, `α² V` there.
    fn leaf_variances(&self) -> Vec<f64> {
        let mut above = vec![[0.0, 0.0, self.variance[0][0]]];
        for children in &self.variance[1..] {
            let mut below = vec![[0.0; 3]; children.len()];
            let nodes = below.par_chunks_mut(self.branching).zip(children.par_chunks(self.branching)).zip(&above);
            nodes.for_each(|((slots, variances), [constant, linear, square])| {
                let total: f64 = variances.iter().sum();
                let (slope, bend) = (linear / total, (square / total - 1.0) / total);
                let mut before = 0.0;
                for (slot, v) in slots.iter_mut().zip(variances) {
                    *slot = [
                        constant + before * (1.0 + slope + bend * before),
                        v * (slope + 2.0 * bend * before),
                        v * (1.0 + bend * v),
                    ];
                    if self.prefix {
                        before += v;
                    }
                }
            });
            above = below;
        }
        above.into_iter().map(|[constant, linear, square]| constant + linear + square).collect()
    }

    fn tap(&self) -> f64 {
        match &self.workload {
            Workload::Linear { kernel, .. } => kernel[0],
            _ => 1.0,
        }
    }
}

impl Strategy for Tree {
    fn measured_len(&self) -> usize {
        self.levels.iter().sum()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        // A record is in one node of each level; two records share at least the root.
        let levels = self.levels.len() as u128;
        let (column, pair) = (Upper::integer(levels), Upper::integer(2 * (levels - 1)));
        Ok(match self.geometry {
            Geometry::L2 => unit.from_columns(column.sqrt(), || pair.sqrt()),
            _ => unit.from_columns(column, || pair),
        })
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let bound = u128::from(max_abs) * self.len() as u128;
        if bound >= 1 << 60 {
            return Err(Error::Overflow("the tree's total overflows; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        vec![Run { step: 1, len: self.measured_len() }]
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        integers(out).copy_from_slice(&self.totals(table(x)?));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let leaves = self.estimate(y);
        let mut sum = 0.0;
        for (slot, leaf) in out.iter_mut().zip(leaves) {
            sum = if self.prefix { sum + leaf } else { leaf };
            *slot = sum * self.tap();
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let noise = if self.geometry == Geometry::L1 { 2.0 } else { 1.0 } * self.tap() * self.tap();
        out.iter_mut().zip(self.leaf_variances()).for_each(|(slot, variance)| *slot = noise * variance);
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(self.totals(x))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let (mut above, mut rest) = (vec![0.0], y);
        for nodes in &self.levels {
            let (own, tail) = rest.split_at(*nodes);
            above = own.iter().enumerate().map(|(i, v)| v + above[i / self.branching]).collect();
            rest = tail;
        }
        Some(above)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // (BᵀB)^{-1}row is the estimate from measurements that are the row on the leaves alone.
        let mut y = vec![0.0; self.measured_len() - self.len()];
        y.extend_from_slice(row);
        Ok(self.totals(&self.estimate(&y)))
    }
}
