//! Marginal tables by integer residuals: the weighted-character mechanism for any numbers of levels.
//!
//! For every attribute set `T` below a wanted set the residual of its marginal is measured: along each
//! attribute of `T` the operator `n·I − J` (or the single row `(1, −1)` for two levels) is applied to
//! the table of counts, times an integer weight `w_T`. With `w_T` from the closed form this is the
//! least-error Gaussian strategy for (weighted) marginals (Xiao et al. 2023, `ResidualPlanner`; Lebeda,
//! Nikolov & Tang 2025, weighted Fourier factorizations). All of it is exact in integers.

mod axis;
mod boxed;
mod build;
mod residuals;

use super::records::BitSets;
use super::sets::{centred, largest_total, lift, subsets, summed, tables, weigh};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, not_in_row_space};
use crate::error::Error;
use crate::parallel::{collected, each_slice, pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, cells, marginal};
use axis::Axis;
use std::collections::HashMap;

/// Attribute counts up to this get the exact replacement sensitivity.
const MAX_ATTRIBUTES: usize = 22;
/// Tables of at most this many cells are counted by bit sets.
const BITSET_CELLS: usize = 64;

/// How the budget is shared among residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::strategy) enum Shares {
    /// Least mean squared error.
    Optimal,
    /// The same for every character (Barak et al. 2007).
    Uniform,
    /// The wanted tables themselves, with equal noise.
    Direct,
    /// Least mean squared error under noise in the norm of the largest residual, of one order or of a few together.
    Boxes,
}

/// One measured residual table.
#[derive(Debug, Clone)]
struct Piece {
    set: Vec<usize>,
    weight: u64,
    offset: usize,
    len: usize,
    /// Number of the smallest wanted set above it.
    source: usize,
}

/// Residuals, or the tables themselves, of all wanted marginals.
#[derive(Debug, Clone)]
pub(in crate::strategy) struct Marginals {
    radices: Vec<usize>,
    sets: Vec<Vec<usize>>,
    direct: bool,
    pieces: Vec<Piece>,
    geometry: Geometry,
    measured_len: usize,
    workload: Workload,
    /// Of [`Strategy::refined`], one a piece.
    factors: Vec<f64>,
}

impl Marginals {
    fn boxes(&self) -> bool {
        matches!(self.geometry, Geometry::Boxes(_))
    }

    /// Number of the piece of a set; pieces are in order of their sets.
    fn piece(&self, set: &[usize]) -> usize {
        // In boxes those of one order stand together.
        let order = |set: &[usize]| if self.boxes() { set.len() } else { 0 };
        self.pieces
            .binary_search_by(|piece| order(&piece.set).cmp(&order(set)).then_with(|| piece.set.as_slice().cmp(set)))
            .expect("every set below a wanted one is measured")
    }

    /// Numbers of the pieces of all subsets, rising.
    fn below(&self, set: &[usize]) -> Vec<usize> {
        let mut found: Vec<usize> = subsets(set).iter().map(|below| self.piece(below)).collect();
        found.sort_unstable();
        found
    }

    fn axis(&self, attribute: usize) -> Axis {
        Axis(self.radices[attribute] as f64)
    }

    fn product(&self, set: &[usize], f: fn(Axis) -> f64) -> f64 {
        set.iter().map(|i| f(self.axis(*i))).product()
    }

    /// `w^power·Π column` of a piece, exactly: each factor is an integer below 2^33.
    fn column(&self, piece: &Piece, power: u32, factor: fn(Axis) -> f64) -> u128 {
        let start = u128::from(piece.weight).pow(power);
        if self.direct {
            return start;
        }
        piece.set.iter().fold(start, |product, i| product.saturating_mul(factor(self.axis(*i)) as u128))
    }

    /// Exact squared ℓ2 norm of the part of a column in this piece.
    fn column2(&self, piece: &Piece) -> u128 {
        self.column(piece, 2, Axis::column2)
    }

    /// Smallest inner product of two different columns, rounded down; `None` beyond 22 attributes.
    ///
    /// For records that differ on the attributes `u`: `Σ_T w_T² Π_T column2 · Π_{T∩u} (−1/(n−1))` for
    /// residuals, `Σ_{T∩u=∅} w_T²` for tables; over all `u` by a transform along attributes.
    fn least_product(&self) -> Option<f64> {
        let d = self.radices.len();
        if d > MAX_ATTRIBUTES {
            return None;
        }
        let mut f = vec![0.0; 1 << d];
        for piece in &self.pieces {
            let mask: usize = piece.set.iter().map(|i| 1 << i).sum();
            f[mask] += self.column2(piece) as f64;
        }
        for attribute in 0..d {
            let factor = if self.direct { 0.0 } else { -1.0 / (self.axis(attribute).0 - 1.0) };
            for block in f.chunks_exact_mut(2 << attribute) {
                let (without, with) = block.split_at_mut(1 << attribute);
                for (a, b) in without.iter_mut().zip(with) {
                    (*a, *b) = (*a + *b, *a + factor * *b);
                }
            }
        }
        let error = f[0] * 1e-13 * d as f64;
        f[1..].iter().copied().reduce(f64::min).map(|least| least - error)
    }

    fn bitset_tables(&self, bits: &BitSets) -> Vec<Vec<i64>> {
        collected(self.sets.len(), &|k| bits.count(&self.radices, &self.sets[k]))
    }
}

impl Strategy for Marginals {
    fn measured_len(&self) -> usize {
        self.measured_len
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        if self.geometry == Geometry::L1 {
            let column = Upper::integer(self.pieces.iter().map(|piece| self.column(piece, 1, Axis::column1)).sum());
            return Ok(unit.from_columns(column, || column + column));
        }
        if let Geometry::Boxes(boxes) = &self.geometry {
            // The largest entry in each box; two columns differ by twice that at most.
            let mut ends = boxes.iter().scan(0, |end, len| {
                *end += *len as usize;
                Some(*end)
            });
            let (mut end, mut sum, mut largest) = (ends.next().unwrap_or(0), 0, 0);
            for piece in &self.pieces {
                if piece.offset >= end {
                    (sum, largest, end) = (sum + largest, 0, ends.next().unwrap_or(usize::MAX));
                }
                largest = largest.max(self.column(piece, 1, Axis::largest));
            }
            let column = Upper::integer(sum + largest);
            return Ok(unit.from_columns(column, || column + column));
        }
        let square: u128 = self.pieces.iter().map(|piece| self.column2(piece)).sum();
        let column = Upper::integer(square).sqrt();
        let pair = || match self.least_product() {
            Some(least) => Upper::rounded((2.0 * (square as f64 - least)).max(0.0), 4).sqrt(),
            None => column + column,
        };
        Ok(unit.from_columns(column, pair))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        // |(n I − J) v| ≤ 2(n−1)·Σ|v| along each axis. Σ|v| is the number of records, or bounded by the cells
        // of a table; tables are summed in i64, so neither may come near 2^63.
        let total = largest_total(&self.workload, max_abs);
        self.pieces
            .iter()
            .map(|piece| self.column(piece, 1, Axis::column1).saturating_mul(total))
            .max()
            .filter(|bound| *bound < 1 << 60)
            .map(|bound| Encoding::Exact { max_abs: bound as u64 })
            .ok_or_else(|| Error::Overflow("these marginals overflow; declare a smaller max_value".into()))
    }

    fn residual_variances(&self, sets: &[Vec<usize>]) -> Option<Vec<f64>> {
        if self.direct {
            return None;
        }
        let unit = self.unit_variances();
        let pieces: HashMap<&[usize], &Piece> = self.pieces.iter().map(|piece| (piece.set.as_slice(), piece)).collect();
        let spread = |i: &usize| Axis(self.radices[*i] as f64).spread();
        let of_set = |set: &Vec<usize>| {
            let piece = pieces.get(set.as_slice())?;
            let noise = unit[piece.offset] / (piece.weight as f64).powi(2);
            Some(noise * set.iter().map(spread).product::<f64>())
        };
        sets.iter().map(of_set).collect()
    }

    fn steps(&self) -> Vec<Run> {
        self.pieces.iter().map(|piece| Run { step: piece.weight, len: piece.len }).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self { factors: factors.to_vec(), ..self.clone() }))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let out = integers(out);
        let small = self.sets.iter().all(|set| cells(&self.radices, set) <= BITSET_CELLS);
        let tables_of_sets = match x {
            Input::Codes(codes) if small => self.bitset_tables(&BitSets::of(codes, &self.radices)),
            _ => tables(&self.radices, &self.sets, x)?,
        };
        // Each residual from the smallest wanted table above it.
        let slices = pieces(out, self.pieces.iter().map(|piece| piece.len));
        each_slice(slices, &|k, slice| {
            let piece = &self.pieces[k];
            let table = summed(&self.radices, &self.sets[piece.source], &tables_of_sets[piece.source], &piece.set);
            if self.direct {
                slice.copy_from_slice(&table);
            } else {
                weigh(self.residual(&table, &piece.set), piece.weight, slice);
            }
        });
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let residuals: Vec<Vec<f64>> = if self.direct {
            Vec::new()
        } else {
            self.pieces.iter().map(|piece| self.recover(&y[piece.offset..piece.offset + piece.len], piece)).collect()
        };
        let slices = pieces(out, self.sets.iter().map(|set| cells(&self.radices, set)));
        each_slice(slices, &|k, table| {
            let set = &self.sets[k];
            table.fill(0.0);
            if self.direct {
                let piece = &self.pieces[self.piece(set)];
                table.copy_from_slice(&y[piece.offset..piece.offset + piece.len]);
                return;
            }
            for k in self.below(set) {
                lift(&self.radices, &residuals[k], &self.pieces[k].set, set, table);
            }
        });
    }

    fn variances(&self, out: &mut [f64]) {
        let unit = if self.boxes() { self.unit_variances() } else { Vec::new() };
        let noise = if self.boxes() { 1.0 } else { self.geometry.white() };
        let slices = pieces(out, self.sets.iter().map(|set| cells(&self.radices, set)));
        for (set, table) in self.sets.iter().zip(slices) {
            let variance: f64 = if self.direct {
                1.0
            } else {
                self.below(set)
                    .into_iter()
                    .map(|k| {
                        let piece = &self.pieces[k];
                        let less = self.factors.get(k).unwrap_or(&1.0);
                        let others: Vec<usize> = set.iter().filter(|i| !piece.set.contains(i)).copied().collect();
                        let own = unit.get(piece.offset).unwrap_or(&1.0);
                        own * self.product(&piece.set, Axis::recovered) * self.product(&others, |a| a.0.powi(-2))
                            / (piece.weight as f64 * less).powi(2)
                    })
                    .sum()
            };
            table.fill(noise * variance);
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // A query over the full domain: its component in each residual space, over the weight.
        let mut weights = vec![0.0; self.measured_len];
        let mut left = row.to_vec();
        if self.direct {
            return Err(Error::Unsupported("ask for the measured marginals themselves".into()));
        }
        let radices = &self.radices;
        for piece in &self.pieces {
            let mut table = vec![0.0; cells(radices, &piece.set)];
            marginal(row, radices, &piece.set, &mut table);
            let spread = table.len() as f64 / row.len() as f64;
            let values = centred(radices, &piece.set, table);
            let projected: Vec<f64> = values.iter().map(|v| v * spread).collect();
            for (index, slot) in left.iter_mut().enumerate() {
                *slot -= projected[crate::workload::project(index, radices, &piece.set)];
            }
            // Bᵀw = projected: the operator is n on this space, or (1, −1) for two levels.
            let mut w = projected;
            let mut stride = 1;
            for attribute in piece.set.iter().rev() {
                let n = radices[*attribute];
                if n == 2 {
                    w = w.chunks_exact(2 * stride).flat_map(|block| block[..stride].to_vec()).collect();
                } else {
                    for v in &mut w {
                        *v /= n as f64;
                    }
                    stride *= n;
                }
            }
            for (slot, value) in weights[piece.offset..piece.offset + piece.len].iter_mut().zip(w) {
                *slot = value / piece.weight as f64;
            }
        }
        let scale = row.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if left.iter().any(|v| v.abs() > 1e-9 * scale) {
            return Err(not_in_row_space());
        }
        Ok(weights)
    }

    fn ideal_mean_square(&self) -> Option<f64> {
        let Workload::Marginals { sets, weights, total_share, .. } = &self.workload else { return None };
        if *total_share > 0.0 {
            // Whoever asks for more of the total than the least error has of it has more error.
            let mut least = self.workload.clone();
            if let Workload::Marginals { total_share, .. } = &mut least {
                *total_share = 0.0;
            }
            return Self::new(&least, self.geometry.clone(), Shares::Optimal).ok()?.ideal_mean_square();
        }
        let mut variances = vec![0.0; self.workload.answers_len()];
        self.variances(&mut variances);
        let (mut at, mut total, mut count) = (0, 0.0, 0.0);
        for (set, weight) in sets.iter().zip(weights) {
            let len = cells(&self.radices, set);
            total += weight * variances[at..at + len].iter().sum::<f64>();
            count += weight * len as f64;
            at += len;
        }
        let square: u128 = self.pieces.iter().map(|piece| self.column2(piece)).sum();
        (self.geometry == Geometry::L2).then(|| total / count * square as f64)
    }
}
