//! Consecutive blocks of cells, each measured alike: its cells and weighted sums of them, Laplace noise. For filters.
//!
//! Answer t of a filter asks of block k for the taps `h[v − j]`, `v = t − kb + c`, b the cells of a block and c the centre. Estimates
//! of blocks have independent noise and one covariance, so the variance is `Σ_k q(t − kb + c)`, `q(v)` that of taps at v: a form
//! for each v, not for each answer and block. Cells that the last block has beyond the end are zero, and no answer asks for them.

use super::boxes::{Boxes, one_by_one};
use super::p_identity::PIdentity;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, table};
use crate::error::Error;
use crate::parallel::{collected, fill, in_pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, each};
use std::ops::Range;

/// Lags of taps that are gone through at once.
const LAGS: usize = 8;

/// A filter: tap `h[t − j + center]` of cell j in answer t.
#[derive(Debug, Clone, Copy)]
struct Taps<'a> {
    kernel: &'a [f64],
    len: usize,
    center: usize,
    circular: bool,
}

impl<'a> Taps<'a> {
    fn of(workload: &'a Workload) -> Result<Self, Error> {
        Ok(match workload {
            Workload::Histogram { len } => Self { kernel: &[1.0], len: *len, center: 0, circular: false },
            Workload::Linear { kernel, len, center } => {
                // Decays of a long series end in zeros.
                let taps = kernel.iter().rposition(|tap| *tap != 0.0).map_or(1, |last| last + 1);
                Self { kernel: &kernel[..taps], len: *len, center: *center, circular: false }
            }
            Workload::Circular { kernel } => Self { kernel, len: kernel.len(), center: 0, circular: true },
            _ => return Err(Error::Unsupported("blocks of cells are measured alike for filters".into())),
        })
    }

    /// The taps with so many before them and behind them: zeros, or those of the ring.
    fn surrounded(&self, more: usize) -> Vec<f64> {
        let at = |lag: usize| match lag.checked_sub(more) {
            _ if self.circular => self.kernel[(lag + self.len - more) % self.len],
            Some(lag) => *self.kernel.get(lag).unwrap_or(&0.0),
            None => 0.0,
        };
        (0..self.kernel.len() + 2 * more).map(at).collect()
    }

    /// Adds to `gram` that of the answers from `skipped` on and each block, summed over the blocks.
    ///
    /// Cells i and i + lag of a block at kb are both asked for by the taps `h[u] h[u + lag]` before `n + c − lag − i − kb` and not
    /// before that with `skipped` for n, as long as cell i + lag is one of the n.
    fn add_gram(&self, block: usize, skipped: usize, weight: f64, gram: &mut [f64]) {
        let (n, center, first) = (self.len as isize, self.center as isize, (skipped + self.center) as isize);
        let kernel = self.surrounded(block);
        let groups = collected(block.div_ceil(LAGS), &|group| {
            let lags = group * LAGS..block.min((group + 1) * LAGS);
            if self.circular {
                return lags.flat_map(|lag| self.all_taps(&kernel, block, lag)).collect();
            }
            let mut sums = self.counted(&kernel, block, lags.clone(), n + center, center);
            if first > 0 {
                let before = self.counted(&kernel, block, lags, first, first - n);
                sums.iter_mut().zip(before).for_each(|(sum, before)| *sum -= before);
            }
            sums
        });
        for (lag, row) in groups.concat().chunks_exact(block).enumerate() {
            for (i, value) in row[..block - lag].iter().enumerate() {
                let j = i + lag;
                gram[i * block + j] += weight * value;
                if lag > 0 {
                    gram[j * block + i] += weight * value;
                }
            }
        }
    }

    /// Sums of `h[u] h[u + lag]` over u below an end.
    fn product(&self, kernel: &[f64], end: usize, from: usize) -> f64 {
        self.kernel.iter().zip(&kernel[from..]).take(end).map(|(h, later)| h * later).sum()
    }

    /// On a ring all taps, for every block that has cell i + lag.
    fn all_taps(&self, kernel: &[f64], block: usize, lag: usize) -> Vec<f64> {
        let all = self.product(kernel, self.len, block + lag);
        (0..block).map(|i| all * self.len.saturating_sub(lag + i).div_ceil(block) as f64).collect()
    }

    /// `Σ_u h[u] h[u + lag] ⌈(end − lag − i − max(u, least))/block⌉` of all that are positive, for every lag and i below `block`.
    ///
    /// With `end − lag − u = a·block + r` that is a, and one more for i below r.
    fn counted(&self, kernel: &[f64], block: usize, lags: Range<usize>, end: isize, least: isize) -> Vec<f64> {
        let (taps, size, start) = (self.kernel.len() as isize, block as isize, least.max(0));
        // Of every remainder, the largest first, and behind them the same times a.
        let mut sums = vec![0.0; 2 * block * lags.len()];
        let lasts = || lags.clone().map(|lag| (block + lag, end - lag as isize));
        for a in ((end - lags.end as isize - taps) / size).max(0)..=(end - start).max(-1) / size {
            for ((shift, last), own) in lasts().zip(sums.chunks_exact_mut(2 * block)) {
                let low = last - (a + 1) * size + 1;
                let (from, to) = (low.max(start), (low + size).min(taps));
                if from < to {
                    let (first, len) = (from as usize, (to - from) as usize);
                    let (alone, times) = own[(from - low) as usize..].split_at_mut(block);
                    let pairs = self.kernel[first..][..len].iter().zip(&kernel[shift + first..][..len]);
                    for ((alone, times), (h, later)) in alone.iter_mut().zip(times).zip(pairs) {
                        *alone += h * later;
                        *times += a as f64 * (h * later);
                    }
                }
            }
        }
        let mut all = Vec::with_capacity(block * lags.len());
        for ((shift, last), own) in lasts().zip(sums.chunks_exact_mut(2 * block)) {
            let behind = last - start;
            if start > 0 && behind > 0 {
                let (place, product) = ((behind % size) as usize, self.product(kernel, start as usize, shift));
                own[block - 1 - place] += product;
                own[2 * block - 1 - place] += (behind / size) as f64 * product;
            }
            // From the first cell, for which all remainders but the least are large enough, to the last.
            let mut sum: f64 = own.iter().sum();
            all.extend(own[..block].iter().rev().map(|alone| {
                sum -= alone;
                sum
            }));
        }
        all
    }
}

/// The Gram matrix of the answers and a block of so many cells, summed over all blocks, row by row: what a strategy that measures
/// them alike has the least error for.
///
/// # Errors
/// [`Error::Unsupported`] of what is no filter or union of filters; [`Error::InvalidParameter`] for no cells, or if there are not
/// as many weights as parts.
pub fn block_gram(workload: &Workload, weights: &[f64], block: usize) -> Result<Vec<f64>, Error> {
    let workload = workload.clone().validated()?;
    Error::check_len("weights", workload.parts().len(), weights.len())?;
    if block == 0 || block > workload.table_len()? {
        return Err(Error::invalid("block", "must be from one cell to all"));
    }
    let mut gram = vec![0.0; block * block];
    for (part, weight) in workload.parts().iter().zip(weights) {
        let (skipped, whole) = part.whole();
        Taps::of(whole)?.add_gram(block, skipped, *weight, &mut gram);
    }
    Ok(gram)
}

#[derive(Debug)]
struct Repeated {
    workload: Workload,
    cells: usize,
    block: PIdentity,
    /// Of [`Strategy::refined`].
    factors: Vec<f64>,
}

/// The strategy that measures `block` cells after `block` cells, and these weighted sums of each, row by row. Laplace noise.
///
/// # Errors
/// [`Error::Unsupported`] of what is no filter or union of filters, or has more than 2^26 answers; [`Error::InvalidParameter`] if
/// sums are no rows of as many weights, none negative, as a block has cells.
pub fn p_identity_of_blocks(workload: &Workload, block: usize, sums: &[f64]) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    workload.listed()?;
    workload.parts().iter().try_for_each(|part| Taps::of(part.whole().1).map(drop))?;
    let cells = workload.table_len()?;
    if block == 0 || block > cells || sums.is_empty() {
        return Err(Error::invalid("sums", "must be rows of as many weights, none negative, as a block has cells"));
    }
    let block = PIdentity::beside_cells(Workload::Histogram { len: block }, sums)?;
    Ok(Box::new(Repeated { workload, cells, block, factors: Vec::new() }))
}

/// Every block of so many numbers, one after the other, mapped.
fn each_block<T: Sync>(values: &[T], len: usize, map: impl Fn(&[T]) -> Vec<f64> + Send + Sync) -> Vec<f64> {
    collected(values.len() / len, &|k| map(&values[k * len..][..len])).concat()
}

impl Repeated {
    fn blocks(&self) -> usize {
        self.cells.div_ceil(self.block.len())
    }

    /// The cells with zeros up to whole blocks.
    fn padded<T: Copy + Default>(&self, cells: &[T]) -> Vec<T> {
        let mut padded = cells.to_vec();
        padded.resize(self.blocks() * self.block.len(), T::default());
        padded
    }

    /// `v' C v` for every place up to an end, C the covariance of a block at unit noise, of the taps there of its first cells.
    fn forms(&self, taps: &Taps<'_>, end: usize, cells: usize) -> Vec<f64> {
        let b = self.block.len();
        let mut kernel = taps.surrounded(b);
        kernel.reverse();
        let squares: Vec<f64> = kernel.iter().map(|tap| tap * tap).collect();
        let form = self.block.form();
        collected(end, &|v| {
            let at = kernel.len() - b - 1 - v;
            2.0 * form(&kernel[at..at + cells], &squares[at..at + cells])
        })
    }

    fn write_variances(&self, taps: &Taps<'_>, out: &mut [f64]) {
        let b = self.block.len();
        let (full, rest) = (self.cells / b, self.cells % b);
        let end = if taps.circular { taps.len } else { taps.kernel.len() + b - 1 };
        let within = |values: &[f64], v: isize| {
            let v = if taps.circular { v.rem_euclid(end as isize) } else { v };
            usize::try_from(v).ok().and_then(|at| values.get(at)).copied().unwrap_or(0.0)
        };
        let whole = self.forms(taps, end, b);
        let last = if rest == 0 { Vec::new() } else { self.forms(taps, end, rest) };
        let (mut before, mut behind) = (whole.clone(), whole.clone());
        for at in b..end {
            before[at] += before[at - b];
        }
        for at in (0..end.saturating_sub(b)).rev() {
            behind[at] += behind[at + b];
        }
        // Sums are never differences: far taps may be 10^9 times those that an answer asks for.
        let of_whole = |t: usize| {
            let v = (t + taps.center) as isize;
            let (step, one_more) = (b as isize, v - (full * b) as isize);
            if full == 0 {
                0.0
            } else if !taps.circular && one_more < 0 {
                // No block is left out before the series begins; those that the taps are behind ask for nothing.
                let first = (v - end as isize + 1).max(0).unsigned_abs().div_ceil(b);
                within(&before, v - (first * b) as isize)
            } else if !taps.circular && v + step >= end as isize {
                within(&behind, one_more + step)
            } else {
                (0..full as isize).map(|k| within(&whole, v - k * step)).sum()
            }
        };
        // On a ring of whole blocks answers repeat.
        let distinct = if taps.circular && rest == 0 { b } else { out.len() };
        fill(&mut out[..distinct], |t| {
            let v = (t + taps.center) as isize;
            of_whole(t) + if rest == 0 { 0.0 } else { within(&last, v - (full * b) as isize) }
        });
        for t in distinct..out.len() {
            out[t] = out[t - distinct];
        }
    }
}

impl Strategy for Repeated {
    fn measured_len(&self) -> usize {
        self.blocks() * self.block.measured_len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L1
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        self.block.sensitivity(unit)
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.block.encoding(max_abs)
    }

    fn steps(&self) -> Vec<Run> {
        let runs = self.block.steps();
        (0..self.blocks()).flat_map(|_| runs.iter().map(|run| Run { step: run.step, len: run.len })).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        // The same of every block.
        let block = self.block.with_factors(factors.get(..self.block.steps().len())?)?;
        Some(Box::new(Self { workload: self.workload.clone(), cells: self.cells, block, factors: factors.to_vec() }))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let padded = self.padded(table(x)?);
        let (len, measured) = (self.block.len(), self.block.measured_len());
        in_pieces(integers(out), measured, &|first, out| {
            let cells = &padded[first / measured * len..][..len];
            let encoded = self.block.encode(Input::Cells(cells), max_abs, Encoded::Exact(out));
            encoded.expect("a table is served");
        });
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.cells(y).unwrap_or_default(), out);
    }

    fn variances(&self, out: &mut [f64]) {
        each(self.workload.parts(), out, |part, own| {
            let (first, whole) = part.whole();
            let mut all = vec![0.0; first + own.len()];
            if let Ok(taps) = Taps::of(whole) {
                self.write_variances(&taps, &mut all);
            }
            own.copy_from_slice(&all[first..]);
        });
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        let of_block = |own: &[f64]| self.block.cells(own).unwrap_or_default();
        let mut cells = each_block(y, self.block.measured_len(), of_block);
        cells.truncate(self.cells);
        Some(cells)
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let of_block = |own: &[f64]| self.block.multiplied(own).unwrap_or_default();
        Some(each_block(&self.padded(x), self.block.len(), of_block))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let of_block = |own: &[f64]| self.block.transposed(own).unwrap_or_default();
        let mut cells = each_block(y, self.block.measured_len(), of_block);
        cells.truncate(self.cells);
        Some(cells)
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        if boxes.shape.len() != 1 {
            return one_by_one(self, boxes);
        }
        let (b, prefixes) = (self.block.len(), self.block.prefixes());
        let whole = prefixes.between(0, b);
        let of = |(first, last): (&[usize], &[usize])| {
            let (from, to) = (first[0] / b, last[0] / b);
            let (start, end) = (first[0] % b, last[0] % b + 1);
            if from == to {
                return prefixes.between(start, end);
            }
            prefixes.between(start, b) + (to - from - 1) as f64 * whole + prefixes.between(0, end)
        };
        Ok(boxes.each().map(of).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let of_block = |own: &[f64]| self.block.weights(own).unwrap_or_default();
        Ok(each_block(&self.padded(row), self.block.len(), of_block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Strategy;

    fn linear(len: usize, center: usize, taps: usize) -> Workload {
        Workload::Linear { kernel: (0..taps).map(|k| 1.0 + 0.7 * (k as f64 * 1.3).sin()).collect(), len, center }
    }

    /// The first taps are 10^9 times the last.
    fn steep(len: usize, center: usize, taps: usize) -> Workload {
        Workload::Linear { kernel: (0..taps).map(|k| if k < taps / 2 { 1e9 } else { 1.0 }).collect(), len, center }
    }

    /// The last taps are zero.
    fn ending(len: usize, center: usize, taps: usize) -> Workload {
        Workload::Linear { kernel: (0..taps + 3).map(|k| if k < taps { 0.5 } else { 0.0 }).collect(), len, center }
    }

    fn circular(len: usize) -> Workload {
        Workload::Circular { kernel: (0..len).map(|k| 0.8f64.powi(k as i32)).collect() }
    }

    fn workloads(len: usize) -> Vec<Workload> {
        let tail = Workload::Tail { first: 2, of: Box::new(linear(len, 0, 3)) };
        vec![
            linear(len, 0, len),
            linear(len, 0, 3),
            linear(len, 2, 5),
            linear(len, 4, 5),
            linear(len, len - 1, 2 * len - 1),
            linear(len, 3, len + 2),
            ending(len, 0, 3),
            ending(len, 2, 1),
            steep(len, 3, 7),
            steep(len, len / 2, len),
            circular(len),
            tail.clone(),
            Workload::Union { parts: vec![linear(len, 1, 4), Workload::Histogram { len }, tail] },
            Workload::Union { parts: vec![circular(len), linear(len, 0, len)] },
        ]
    }

    fn theta(block: usize) -> Vec<f64> {
        (0..2 * block).map(|k| if k % block / 2 == k / block { 0.8 } else { 1e-3 * ((k * 7) % 5) as f64 }).collect()
    }

    fn encoded(strategy: &dyn Strategy, x: &[i64]) -> Vec<f64> {
        let mut units = vec![0; strategy.measured_len()];
        strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
        units.into_iter().map(|unit| unit as f64).collect()
    }

    fn check(workload: &Workload, strategy: &dyn Strategy, len: usize) {
        let x: Vec<i64> = (0..len as i64).map(|j| j * 37 % 101 - 20).collect();
        let y = encoded(strategy, &x);
        let (mut answers, mut variances) = (vec![0.0; workload.answers_len()], vec![0.0; workload.answers_len()]);
        strategy.decode(&y, &mut answers);
        strategy.variances(&mut variances);
        let noise = strategy.unit_variances();
        assert_eq!(noise.len(), strategy.measured_len());
        // A convolution loses digits of its largest answer.
        let largest = answers.iter().fold(1.0f64, |most, answer| most.max(answer.abs()));
        for t in 0..answers.len() {
            let row = workload.row(t).unwrap();
            let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
            assert!(
                (answers[t] - truth).abs() < 1e-8 * (1.0 + truth.abs()) + 1e-14 * largest,
                "{t}: {} {truth}",
                answers[t]
            );
            let weights = strategy.weights(&row).unwrap();
            let variance: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
            assert!((variances[t] - variance).abs() < 1e-9 * variance + 1e-18, "{t}: {} {variance}", variances[t]);
        }
        for (first, last) in [(0, 0), (1, 2), (0, len - 1), (2, len - 2)] {
            let mut row = vec![0.0; len];
            row[first..=last].fill(1.0);
            let weights = strategy.weights(&row).unwrap();
            let known: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
            let boxes = Boxes { shape: &[len], first: &[first], last: &[last] };
            assert!((strategy.box_variances(boxes).unwrap()[0] / known - 1.0).abs() < 1e-9);
        }
        let columns: Vec<Vec<f64>> =
            (0..len).map(|j| encoded(strategy, &(0..len).map(|i| i64::from(i == j)).collect::<Vec<_>>())).collect();
        let back = strategy.transposed(&y).unwrap();
        for (got, column) in back.iter().zip(&columns) {
            let known: f64 = column.iter().zip(&y).map(|(a, b)| a * b).sum();
            assert!((got - known).abs() <= 1e-12 * known.abs());
        }
        let one = columns.iter().map(|c| c.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
        assert!(strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get() == one);
        let pairs = columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
        let two = pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()).fold(0.0, f64::max);
        assert!(strategy.sensitivity(Unit::replace_one(1).unwrap()).unwrap().get() >= two);
    }

    #[test]
    fn answers_variances_and_norms() {
        for len in [4, 9, 12] {
            for workload in workloads(len) {
                let workload = workload.validated().unwrap();
                let plain = p_identity_of_blocks(&workload, 4, &theta(4)).unwrap();
                check(&workload, &*plain, len);
                let runs = plain.steps().len() / len.div_ceil(4);
                let of_block: Vec<f64> = (0..runs).map(|k| 1.0 + 0.1 * (k % 3) as f64).collect();
                let factors = of_block.repeat(len.div_ceil(4));
                check(&workload, &*plain.refined(&factors).unwrap(), len);
            }
        }
    }

    #[test]
    fn gram_matrices_of_blocks() {
        for (len, block) in [(4, 4), (9, 1), (9, 4), (9, 9), (12, 3), (12, 4), (12, 11), (30, 9), (31, 17)] {
            for workload in workloads(len) {
                let workload = workload.validated().unwrap();
                let weights: Vec<f64> = (0..workload.parts().len()).map(|k| 1.0 + k as f64).collect();
                let found = block_gram(&workload, &weights, block).unwrap();
                let mut known = vec![0.0; block * block];
                for (part, weight) in workload.parts().iter().zip(&weights) {
                    for t in 0..part.answers_len() {
                        let mut row = part.row(t).unwrap();
                        row.resize(len.next_multiple_of(block), 0.0);
                        for own in row.chunks_exact(block) {
                            for at in 0..block * block {
                                known[at] += weight * own[at / block] * own[at % block];
                            }
                        }
                    }
                }
                // Sums of products of taps are differences of those up to each.
                let most = |part: &Workload| match part.whole().1 {
                    Workload::Linear { kernel, .. } => kernel.iter().fold(1.0f64, |most, tap| most.max(tap.abs())),
                    _ => 1.0,
                };
                let most = workload.parts().iter().map(most).fold(1.0, f64::max);
                for (got, known) in found.iter().zip(&known) {
                    assert!((got - known).abs() < 1e-12 * most * most, "{workload:?} {block}: {got} {known}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_served_is_refused() {
        let filter = linear(9, 0, 3);
        for (block, wrong) in [(4, vec![]), (4, vec![1.0; 3]), (4, vec![-1.0; 4]), (0, vec![1.0]), (10, vec![1.0; 10])]
        {
            assert!(p_identity_of_blocks(&filter, block, &wrong).is_err());
        }
        assert!(p_identity_of_blocks(&Workload::Ranges { len: 9 }, 4, &[1.0; 4]).is_err());
        assert!(block_gram(&filter, &[1.0, 2.0], 4).is_err());
        assert!(block_gram(&filter, &[1.0], 0).is_err());
        assert!(block_gram(&filter, &[1.0], 10).is_err());
    }
}
