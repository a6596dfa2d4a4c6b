//! Blocks of cells of a few sizes, each size with a weight of its own, Laplace noise, least squares.
//!
//! A record is in one block of each size, so with weights `w_l` of the sizes `c_l` the ℓ1 sensitivity is `Σ w_l`. The
//! averages `Q_l` over blocks commute: `G = BᵀB = Σ_l Γ_l (Q_l − Q_{l+1})` with `Γ_l = Σ_{i≤l} w_i² c_i`, and the total
//! squared error of the queries `W = AᵀA` at scale 1 is `2 Σ_l τ_l/Γ_l`, `τ_l = tr Q_l W − tr Q_{l+1} W`. It is minimised over
//! the weights from many starts, since it is not convex; sizes that do not pay come out as zero and are dropped. Cells
//! beyond the last are known zeros.
//!
//! Least squares go from level to level: a block whose cells are estimated from the finer ones has the estimated sum `S`, of
//! variance `c_l/Γ_{l−1}`, and moves towards what was measured of it by `κ_l = w_l² c_l/Γ_l` of the difference, all cells
//! alike. No difference of large numbers is taken, however much more precise one level is than another.

use super::boxes::{by_weights, long_axes};
use super::merged::on_merged_cells;
use super::{Encoded, Encoding, Geometry, Input, MOST_PRECISE, Run, Strategy, gcd, integers, table};
use crate::error::Error;
use crate::minimize::bfgs;
use crate::parallel::{fill, pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, each, intervals, spread};
use rayon::prelude::*;

/// Bits of the sum of the weights.
pub(super) const WEIGHT_BITS: u32 = 12;
/// Iterations from each start.
const ITERATIONS: usize = 60;
/// Weight, relative to the others, of sizes that a start leaves out.
const LITTLE: f64 = -6.0;

/// Blocks of one size that are measured.
#[derive(Debug, Clone)]
struct Level {
    size: usize,
    weight: i64,
    /// `κ_l`; 1 of the finest.
    taken: f64,
    /// `1/Γ_l`.
    inverse: f64,
}

#[derive(Debug, Clone)]
pub(super) struct WeightedTree {
    workload: Workload,
    /// How much the squared errors of each part of a union count.
    counted: Vec<f64>,
    len: usize,
    /// Cells with the zeros that fill the last block.
    padded: usize,
    /// Sizes rising from single cells, each a divisor of the next.
    levels: Vec<Level>,
    /// Of [`Strategy::refined`], one a level.
    factors: Vec<f64>,
}

/// Sum of the squares of how many cells a range has in each block of this size, a power of two.
fn overlaps(first: usize, last: usize, size: usize) -> f64 {
    let bits = size.trailing_zeros();
    let (left, right) = (first >> bits, last >> bits);
    if left == right {
        return ((last - first + 1) as f64).powi(2);
    }
    let (head, tail) = ((((left + 1) << bits) - first) as f64, (last + 1 - (right << bits)) as f64);
    head * head + tail * tail + (right - left - 1) as f64 * (size as f64).powi(2)
}

/// Sum of [`overlaps`] over the ranges that start with the first cell: of T cells `q·size² + r²`, where `T = q·size + r`.
fn overlaps_of_starts(cells: usize, size: usize) -> f64 {
    let (size, quotient, rest) = (size as u128, (cells / size) as u128, (cells % size) as u128);
    let squares = |last: u128| last * (last + 1) * (2 * last + 1) / 6;
    let full = size * (quotient * quotient.saturating_sub(1) / 2) + (rest + 1) * quotient;
    (full * size * size + quotient * squares(size - 1) + squares(rest)) as f64
}

/// `tr Q W`, `Q` the averages over blocks of this size.
fn block_trace(workload: &Workload, size: usize) -> Result<f64, Error> {
    let blocks = |len: usize| (0..len).step_by(size).map(move |start| (start + 1, (start + size).min(len)));
    let sum: f64 = match (workload, workload.running_sum(), workload.windows()) {
        (Workload::Histogram { len }, ..) => *len as f64,
        (Workload::Ranges { len }, ..) => {
            // W_ab = min(a, b)(n + 1 − max(a, b)).
            let right = |a: usize, end: usize| {
                let count = (end - a) as f64;
                count * (len + 1) as f64 - count * (end + a + 1) as f64 / 2.0
            };
            let cell = |a: usize, end: usize| a as f64 * ((len + 1 - a) as f64 + 2.0 * right(a, end));
            blocks(*len).map(|(first, last)| (first..=last).map(|a| cell(a, last)).sum::<f64>()).sum()
        }
        (Workload::Intervals { ends, weights, .. }, ..) => {
            let squares = intervals::weighted(ends, weights).map(|(first, last, w)| w * overlaps(first, last, size));
            squares.sum()
        }
        (_, Some((len, tap)), _) => tap * tap * overlaps_of_starts(len, size),
        (_, _, Some((tap, windows))) => {
            tap * tap * windows.map(|(first, last)| overlaps(first, last, size)).sum::<f64>()
        }
        (Workload::Union { parts }, ..) => {
            return blocks_trace(parts, &vec![1.0; parts.len()], size);
        }
        _ => {
            return Err(Error::Unsupported(
                "weighted trees serve ranges, intervals, moving and running sums, cells and their unions".into(),
            ));
        }
    };
    Ok(sum / size as f64)
}

/// The same of parts of which each counts so much.
fn blocks_trace(parts: &[Workload], counted: &[f64], size: usize) -> Result<f64, Error> {
    parts.iter().zip(counted).try_fold(0.0, |sum, (part, own)| Ok(sum + own * block_trace(part, size)?))
}

/// `Σ_l τ_l/Γ_l` of weights that sum to 1.
fn total_error(weights: &[f64], sizes: &[usize], tau: &[f64]) -> f64 {
    let mut gram = 0.0;
    let terms = weights.iter().zip(sizes).zip(tau).map(|((weight, size), tau)| {
        gram += weight * weight * *size as f64;
        tau / gram
    });
    terms.sum()
}

/// Weights of the sizes that give the least error, as far as many starts find it; they sum to 1.
fn best_weights(sizes: &[usize], tau: &[f64]) -> Vec<f64> {
    let weights = |logs: &[f64]| -> Vec<f64> {
        let top = logs.iter().fold(f64::NEG_INFINITY, |most, log| most.max(*log));
        let raw: Vec<f64> = logs.iter().map(|log| (log - top).exp()).collect();
        let sum: f64 = raw.iter().sum();
        raw.iter().map(|w| w / sum).collect()
    };
    let levels = sizes.len();
    let start = |kept: &[usize]| (0..levels).map(|l| if kept.contains(&l) { 0.0 } else { LITTLE }).collect::<Vec<_>>();
    let mut starts = vec![vec![0.0; levels], start(&[0])];
    starts.extend((2..8).map(|stride| start(&(0..levels).step_by(stride).collect::<Vec<_>>())));
    starts.extend((1..levels).flat_map(|i| (i..levels).map(move |j| [0, i, j])).map(|kept| start(&kept)));
    let search = |start| bfgs(|logs| total_error(&weights(logs), sizes, tau).ln(), start, ITERATIONS);
    let found: Vec<_> = starts.into_par_iter().map(search).collect();
    found.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or_else(Vec::new, |(logs, _)| weights(&logs))
}

fn weight_of<'a>(levels: impl Iterator<Item = &'a Level>) -> Upper {
    Upper::integer(levels.map(|level| u128::from(level.weight.unsigned_abs())).sum())
}

/// Sizes of the blocks that the weighted tree of ranges, intervals, moving and running sums and cells measures, and their
/// weights; `counted` are those of the squared errors of the parts of a union.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads.
pub fn tree_blocks(workload: &Workload, counted: Option<&[f64]>) -> Result<Vec<(usize, i64)>, Error> {
    let tree = WeightedTree::new(workload, counted, WEIGHT_BITS)?;
    Ok(tree.levels.iter().map(|level| (level.size, level.weight)).collect())
}

/// The weighted tree of a union whose parts count so much.
///
/// # Errors
/// As [`tree_blocks`].
pub fn weighted_tree_union(workload: &Workload, counted: &[f64]) -> Result<Box<dyn Strategy>, Error> {
    on_merged_cells(workload, |own| Ok(Box::new(WeightedTree::new(own, Some(counted), WEIGHT_BITS)?)))
}

impl WeightedTree {
    pub(super) fn new(workload: &Workload, counted: Option<&[f64]>, bits: u32) -> Result<Self, Error> {
        let (len, parts) = (workload.table_len()?, workload.parts());
        let counted = counted.map_or_else(|| vec![1.0; parts.len()], <[f64]>::to_vec);
        Error::check_len("weights", parts.len(), counted.len())?;
        let sizes: Vec<usize> = std::iter::successors(Some(1), |size| (*size < len).then_some(2 * size)).collect();
        let traces =
            sizes.par_iter().map(|size| blocks_trace(parts, &counted, *size)).collect::<Result<Vec<_>, _>>()?;
        let tau: Vec<f64> = (0..sizes.len()).map(|l| traces[l] - traces.get(l + 1).unwrap_or(&0.0)).collect();
        let scale = 2f64.powi(bits as i32);
        let mut weights: Vec<i64> =
            best_weights(&sizes, &tau).into_iter().map(|w| (w * scale).round() as i64).collect();
        weights[0] = weights[0].max(1); // without every cell not every query is answered
        // What all have in common counts for nothing, and takes room.
        let common = weights.iter().fold(0, |common, weight| gcd(common, *weight));
        let kept = sizes.into_iter().zip(weights.into_iter().map(|weight| weight / common));
        let levels: Vec<Level> = kept
            .filter(|(_, weight)| *weight > 0)
            .map(|(size, weight)| Level { size, weight, taken: 1.0, inverse: 0.0 })
            .collect();
        let padded = len.next_multiple_of(levels.last().map_or(1, |level| level.size));
        Ok(Self { workload: workload.clone(), counted, len, padded, levels, factors: Vec::new() }.with_factors(&[]))
    }

    /// The same blocks, answered for noise that is smaller by a factor on each level; none for 1.
    pub(super) fn with_factors(&self, factors: &[f64]) -> Self {
        let mut tree = Self { factors: factors.to_vec(), ..self.clone() };
        let mut gram = 0.0;
        for (l, level) in tree.levels.iter_mut().enumerate() {
            let precision = level.weight as f64 * factors.get(l).unwrap_or(&1.0).min(MOST_PRECISE);
            let own = precision * precision * level.size as f64;
            level.taken = (1.0 + gram / own).recip();
            gram += own;
            level.inverse = gram.recip();
        }
        tree
    }

    /// ℓ1 norm of a column: a record is in one block of each size.
    pub(super) fn column(&self) -> Upper {
        weight_of(self.levels.iter())
    }

    /// Sums over the blocks of every kept size, of something for each cell.
    fn totals<T: Copy + Default + std::iter::Sum<T>>(&self, cells: &[T]) -> Vec<Vec<T>> {
        let mut below = cells.to_vec();
        below.resize(self.padded, T::default());
        let mut size = 1;
        let mut all = Vec::new();
        for level in &self.levels {
            let children = level.size / size;
            if children > 1 {
                below = below.chunks(children).map(|block| block.iter().copied().sum()).collect();
            }
            size = level.size;
            all.push(below.clone());
        }
        all
    }

    /// The numbers of the blocks of every level.
    fn each_level<'a>(&'a self, y: &'a [f64]) -> impl Iterator<Item = (&'a Level, &'a [f64])> {
        let mut rest = y;
        self.levels.iter().map(move |level| {
            let (own, tail) = rest.split_at(self.padded / level.size);
            rest = tail;
            (level, own)
        })
    }

    /// `Σ_l τ_l/Γ_l` of what `Q_l` leaves of the queries on every level.
    fn error(&self, left: impl Fn(&Level) -> f64) -> f64 {
        let mut coarser = 0.0;
        let terms = self.levels.iter().rev().map(|level| {
            let own = left(level);
            level.inverse * (own - std::mem::replace(&mut coarser, own))
        });
        terms.sum()
    }

    /// Variance of the sum of the cells from `first` to `last` at unit noise: `2 qᵀ G^{-1} q`. Sizes are powers of two, so
    /// that what is subtracted is exact.
    fn variance(&self, first: usize, last: usize) -> f64 {
        2.0 * self.error(|level| overlaps(first, last, level.size) / level.size as f64)
    }

    fn write_variances(&self, workload: &Workload, out: &mut [f64]) {
        match workload {
            Workload::Histogram { .. } => out.fill(self.variance(0, 0)),
            Workload::Ranges { len } => {
                for (first, ranges) in pieces(out, (1..=*len).rev()).into_iter().enumerate() {
                    ranges.iter_mut().enumerate().for_each(|(k, slot)| *slot = self.variance(first, first + k));
                }
            }
            Workload::Intervals { ends, .. } => {
                let variance = |(first, last): &(u32, u32)| self.variance(*first as usize, *last as usize);
                out.iter_mut().zip(ends).for_each(|(slot, ends)| *slot = variance(ends));
            }
            Workload::Union { parts } => each(parts, out, |part, own| self.write_variances(part, own)),
            _ => {
                let (tap, windows) = workload.windows().expect("other workloads were refused");
                let variance = |(first, last)| tap * tap * self.variance(first, last);
                let ends: Vec<(usize, usize)> = windows.collect();
                fill(out, |t| variance(ends[t]));
            }
        }
    }
}

impl Strategy for WeightedTree {
    fn measured_len(&self) -> usize {
        self.levels.iter().map(|level| self.padded / level.size).sum()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L1
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        // Two records share the blocks of which there is one.
        let apart = weight_of(self.levels.iter().filter(|level| level.size < self.padded));
        Ok(unit.from_columns(self.column(), || apart + apart))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let largest =
            self.levels.iter().map(|level| level.size as u128 * u128::from(level.weight.unsigned_abs())).max();
        let bound = u128::from(max_abs) * largest.unwrap_or(1);
        if bound >= 1 << 60 {
            return Err(Error::Overflow("the weighted sums overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        let run = |level: &Level| Run { step: level.weight.unsigned_abs(), len: self.padded / level.size };
        self.levels.iter().map(run).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.with_factors(factors)))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let totals = self.totals(table(x)?);
        let slices = pieces(integers(out), totals.iter().map(Vec::len));
        for ((level, sums), own) in self.levels.iter().zip(&totals).zip(slices) {
            own.iter_mut().zip(sums).for_each(|(slot, sum)| *slot = level.weight * sum);
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.cells(y).unwrap_or_default(), out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.write_variances(&self.workload, out);
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        if matches!(&self.workload, Workload::Intervals { weights, .. } if !weights.is_empty()) {
            return None;
        }
        let parts = self.workload.parts();
        let trace = |level: &Level| blocks_trace(parts, &self.counted, level.size);
        let total = self.error(|level| trace(level).expect("other workloads were refused"));
        let answers: f64 = parts.iter().zip(&self.counted).map(|(part, own)| own * part.answers_len() as f64).sum();
        let largest = self.workload.is_listed().then(|| {
            let mut variances = vec![0.0; self.workload.answers_len()];
            self.variances(&mut variances);
            spread(&variances).1
        });
        Some((2.0 * total / answers, largest))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut cells = vec![0.0; self.padded];
        for (level, measured) in self.each_level(y) {
            for (block, measured) in cells.chunks_mut(level.size).zip(measured) {
                let missing = measured / level.weight as f64 - block.iter().sum::<f64>();
                let share = level.taken * missing / level.size as f64;
                for cell in block {
                    *cell += share;
                }
            }
        }
        cells.truncate(self.len);
        Some(cells)
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let each = self.levels.iter().zip(self.totals(x));
        Some(each.flat_map(|(level, sums)| sums.into_iter().map(|sum| level.weight as f64 * sum)).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut cells = vec![0.0; self.padded];
        for (level, sums) in self.each_level(y) {
            for (block, sum) in cells.chunks_mut(level.size).zip(sums) {
                for cell in block {
                    *cell += level.weight as f64 * sum;
                }
            }
        }
        cells.truncate(self.len);
        Some(cells)
    }

    fn box_variance(&self, shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        // A box is a range where at most one axis is longer than a cell.
        match long_axes(shape).as_slice() {
            [] => Ok(self.variance(0, 0)),
            [axis] => Ok(self.variance(first[*axis], last[*axis])),
            _ => by_weights(self, shape, first, last),
        }
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // The adjoint of `cells`: from the coarsest level to the finest.
        let mut left = row.to_vec();
        left.resize(self.padded, 0.0);
        let mut weights: Vec<Vec<f64>> = Vec::new();
        for level in self.levels.iter().rev() {
            let own = left.chunks_mut(level.size).map(|block| {
                let share = level.taken * block.iter().sum::<f64>() / level.size as f64;
                for cell in block {
                    *cell -= share;
                }
                share / level.weight as f64
            });
            weights.push(own.collect());
        }
        Ok(weights.into_iter().rev().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_sums_meet_blocks_as_their_ranges_do() {
        for cells in [1, 2, 7, 64, 100] {
            for size in [1, 2, 8, 64, 128] {
                let known: f64 = (0..cells).map(|last| overlaps(0, last, size)).sum();
                assert_eq!(overlaps_of_starts(cells, size), known, "{cells} {size}");
            }
        }
    }

    /// Errors at epsilon 1 that were found by other means.
    #[test]
    fn ranges_have_the_known_error() {
        for (len, known) in [(64, 6.047), (256, 8.885), (1024, 12.430)] {
            let tree = WeightedTree::new(&Workload::Ranges { len }, None, super::WEIGHT_BITS).unwrap();
            let mut variances = vec![0.0; len * (len + 1) / 2];
            tree.variances(&mut variances);
            let column = tree.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
            let rmse = column * (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
            assert!(rmse < known * 1.001, "{len}: {rmse}");
        }
    }

    /// A total beside ranges, and the wavelet of many blocks: the weights decide.
    #[test]
    fn blocks_know_the_weights_of_parts() {
        let len = 256;
        let total = Workload::Intervals { len, ends: vec![(0, len as u32 - 1)], weights: Vec::new() };
        let union = Workload::Union { parts: vec![Workload::Ranges { len }, total] };
        for counted in [[1.0, 1.0], [1.0, 1e5], [3.0, 1e9]] {
            let tree = WeightedTree::new(&union, Some(&counted), super::WEIGHT_BITS).unwrap();
            let mut variances = vec![0.0; union.answers_len()];
            tree.variances(&mut variances);
            let ranges = counted[0] * variances[..variances.len() - 1].iter().sum::<f64>();
            let answers = counted[0] * (variances.len() - 1) as f64 + counted[1];
            let mean = (ranges + counted[1] * variances[variances.len() - 1]) / answers;
            assert!((tree.spread().unwrap().0 / mean - 1.0).abs() < 1e-9);
            let column = |tree: &WeightedTree| tree.column().get().powi(2);
            let even = WeightedTree::new(&union, None, super::WEIGHT_BITS).unwrap();
            even.variances(&mut variances);
            let ranges = counted[0] * variances[..variances.len() - 1].iter().sum::<f64>();
            let blind = (ranges + counted[1] * variances[variances.len() - 1]) / answers;
            assert!(column(&tree) * mean <= column(&even) * blind * (1.0 + 1e-3));
            assert_eq!(counted[1] > 1.0, column(&tree) * mean < 0.5 * column(&even) * blind);
        }
        assert!(WeightedTree::new(&union, Some(&[1.0]), super::WEIGHT_BITS).is_err());
    }
}
