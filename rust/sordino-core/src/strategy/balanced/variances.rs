//! Variances of the answers of a balanced root: blocks of the covariance of the cells, summed.

use super::super::boxes::indicator;
use super::super::factored::{PARTS, add_parts};
use super::Balanced;
use crate::optimize::Symmetry;
use crate::order::in_order;
use crate::parallel::{collected, fill, in_pieces};
use crate::transform::fourier::{RealFourier, convolve, fast_len};
use crate::workload::Workload;
use num_complex::Complex;

/// Longest piece of sums over pieces that is written out, and how many pieces a sum is cut into.
const DIRECT: usize = 64;
const PIECES: usize = 16;
/// Multiplications for the variances of intervals.
const MAX_WORK: usize = 1 << 31;
/// How many steps column weights are in, of few intervals, and of any number: fewer would add a percent to errors.
const MOST_STEPS: usize = 512;
const FEWEST_STEPS: usize = 256;
/// Steps times intervals, where that leaves more than the fewest steps.
const MAX_LOOKUPS: usize = 1 << 28;

/// Multiplications for the variances of intervals one by one, lag by lag, and for those of all ranges.
struct Work {
    single: usize,
    by_lags: usize,
    all: usize,
}

impl Work {
    fn of(ends: &[(u32, u32)], cells: usize) -> Self {
        let lens = || ends.iter().map(|(first, last)| (last - first + 1) as usize);
        let (held, longest): (usize, _) = (lens().sum(), lens().max().unwrap_or(0));
        let transform = 40 * cells * (cells.ilog2() as usize + 1);
        Self {
            single: ends.len().saturating_mul(transform),
            by_lags: cells.saturating_mul(longest).saturating_add(held),
            all: cells.saturating_mul(cells),
        }
    }

    fn least(&self) -> usize {
        self.single.min(self.by_lags).min(self.all)
    }

    /// Whether none takes seconds at most: weights are in steps.
    fn needs_steps(&self) -> bool {
        self.least() > MAX_WORK
    }
}

/// How many steps column weights are in; none where variances take seconds at most with a weight for every cell.
pub(super) fn steps(workload: &Workload) -> Option<usize> {
    let long = workload.parts().iter().filter(|part| {
        let work = match part {
            Workload::Intervals { len, ends, .. } => Some(Work::of(ends, *len)),
            _ if part.running_sum().is_some() => None,
            _ => windows(part).and_then(|(_, ends)| Some(Work::of(&ends, part.input_len()?))),
        };
        work.is_some_and(|work| work.needs_steps())
    });
    let answers = long.map(Workload::answers_len).sum::<usize>();
    (answers > 0).then(|| (MAX_LOOKUPS / answers).clamp(FEWEST_STEPS, MOST_STEPS))
}

/// The windows that a part asks for, as intervals, and their tap.
fn windows(part: &Workload) -> Option<(f64, Vec<(u32, u32)>)> {
    let (tap, ends) = part.windows()?;
    Some((tap, ends.map(|(first, last)| (first as u32, last as u32)).collect()))
}

impl Balanced {
    /// Variances of the answers of a part.
    pub(super) fn part_variances(&self, part: &Workload, out: &mut [f64]) {
        match (part, part.running_sum()) {
            (Workload::Ranges { .. }, _) => {
                let mut end = out.len();
                self.each_range(|variances| {
                    out[end - variances.len()..end].copy_from_slice(variances);
                    end -= variances.len();
                });
            }
            (_, Some((_, tap))) => {
                out.iter_mut().zip(self.prefix_variances()).for_each(|(slot, variance)| *slot = tap * tap * variance);
            }
            (Workload::Histogram { .. }, _) => out.copy_from_slice(&self.cell_variances()),
            (Workload::Intervals { ends, .. }, _) => self.interval_variances(ends, out),
            _ => match windows(part) {
                Some((tap, ends)) => {
                    self.interval_variances(&ends, out);
                    for variance in out {
                        *variance *= tap * tap;
                    }
                }
                None => {
                    for (t, slot) in out.iter_mut().enumerate() {
                        let row = part.row(t).expect("a part of a line has a table");
                        *slot = self.solve_transposed(&row).iter().map(|w| w * w).sum();
                    }
                }
            },
        }
    }

    /// Mean variance of the answers of a part.
    pub(super) fn part_mean(&self, part: &Workload) -> f64 {
        if matches!(part, Workload::Ranges { .. }) { self.mean_range_variance() } else { self.listed_spread(part).0 }
    }

    /// That mean, and the largest variance; that of many ranges is not known.
    pub(super) fn part_spread(&self, part: &Workload) -> (f64, Option<f64>) {
        if let Workload::Ranges { .. } = part {
            return (self.mean_range_variance(), part.is_listed().then(|| self.largest_range_variance()));
        }
        let (mean, largest) = self.listed_spread(part);
        (mean, Some(largest))
    }

    fn listed_spread(&self, part: &Workload) -> (f64, f64) {
        let mut variances = vec![0.0; part.answers_len()];
        self.part_variances(part, &mut variances);
        part.weighted_spread(&variances)
    }

    /// One by one, lag by lag, picked from those of all ranges, or where weights are in steps.
    fn interval_variances(&self, ends: &[(u32, u32)], out: &mut [f64]) {
        let work = Work::of(ends, self.len());
        if work.needs_steps() {
            self.variances_by_steps(ends, out);
            return;
        }
        if work.by_lags == work.least() {
            self.variances_by_lags(ends, out);
            return;
        }
        if work.single == work.least() {
            let variance = |(first, last): &(u32, u32)| {
                let row = indicator(&[self.len()], &[*first as usize], &[*last as usize]);
                self.solve_transposed(&row).iter().map(|w| w * w).sum()
            };
            fill(out, |t| variance(&ends[t]));
            return;
        }
        let mut order = in_order(ends.len(), &|k| f64::from(ends[k].0));
        self.each_range(|variances| {
            let first = self.len() - variances.len();
            while let Some(k) = order.pop_if(|k| ends[*k].0 as usize == first) {
                out[k] = variances[ends[k].1 as usize - first];
            }
        });
    }

    /// The covariances of all cells with those behind them at one lag are summed once for all intervals that are longer.
    pub(super) fn variances_by_lags(&self, ends: &[(u32, u32)], out: &mut [f64]) {
        let (n, kernel) = (self.len(), self.covariance());
        let reflected = self.reflected(&kernel, 2 * n);
        let inverse: Vec<f64> = self.weights.iter().map(|d| (*d as f64).recip()).collect();
        let len = |k: usize| (ends[k].1 - ends[k].0 + 1) as usize;
        let order = in_order(ends.len(), &|k| -(len(k) as f64));
        let longest = order.first().map_or(0, |k| len(*k));
        add_parts(out, &|part| {
            let (mut sums, mut before) = (vec![0.0; ends.len()], vec![0.0; n + 1]);
            let mut longer = order.len();
            for lag in (part..longest).step_by(PARTS) {
                let mut sum = 0.0;
                for (i, (a, b)) in inverse.iter().zip(&inverse[lag..]).enumerate() {
                    sum += a * b * (kernel[lag] + reflected[2 * i + lag]);
                    before[i + 1] = sum;
                }
                while len(order[longer - 1]) <= lag {
                    longer -= 1;
                }
                let times = if lag == 0 { 1.0 } else { 2.0 };
                for k in &order[..longer] {
                    let (first, last) = (ends[*k].0 as usize, ends[*k].1 as usize);
                    sums[*k] += times * (before[last + 1 - lag] - before[first]);
                }
            }
            sums
        });
    }

    fn cell_variances(&self) -> Vec<f64> {
        let kernel = self.covariance();
        let reflected = self.reflected(&kernel, 2 * self.len());
        let own = |(j, d): (usize, &i64)| (kernel[0] + reflected[2 * j]) / (*d as f64 * *d as f64);
        self.weights.iter().enumerate().map(own).collect()
    }

    /// The covariance `K^{-2}` as its kernel, from 0 to half of the ring.
    fn covariance(&self) -> Vec<f64> {
        let scale = self.symmetry.meetings() / self.ring.len() as f64;
        self.ring.even(&self.spectrum.iter().map(|v| scale / (v * v)).collect::<Vec<_>>())
    }

    /// What the covariance of cells has for the sums of two places, `±κ(i + j + shift)`, of so many sums.
    fn reflected(&self, kernel: &[f64], sums: usize) -> Vec<f64> {
        let (sign, shift) = match self.symmetry {
            Symmetry::Sine => (-1.0, 2),
            Symmetry::Cosine | Symmetry::Reflected => (1.0, 1),
        };
        let period = self.ring.len();
        (shift..shift + sums).map(|lag| sign * kernel[lag.min(period - lag)]).collect()
    }

    /// Tells the variances of all ranges with one first cell, from the last such cell to the first: blocks of the
    /// covariance, each from those of one cell less, `O(n²)` for the `n(n + 1)/2` ranges.
    pub(super) fn each_range(&self, mut tell: impl FnMut(&[f64])) {
        let (n, kernel) = (self.len(), self.covariance());
        let reflected = self.reflected(&kernel, 2 * n);
        let inverse: Vec<f64> = self.weights.iter().map(|d| (*d as f64).recip()).collect();
        // Sums of the covariance of a cell with those before it, down to the first cell of the range.
        let mut before = vec![0.0; n];
        let mut ranges = vec![0.0; n];
        for first in (0..n).rev() {
            let mut sum = 0.0;
            for last in first..n {
                let entry = inverse[first] * inverse[last] * (kernel[last - first] + reflected[first + last]);
                if last == first {
                    sum += entry;
                } else {
                    before[last] += entry;
                    let own = inverse[last] * inverse[last] * (kernel[0] + reflected[2 * last]);
                    sum += 2.0 * before[last] + own;
                }
                ranges[last - first] = sum;
            }
            tell(&ranges[..n - first]);
        }
    }

    /// The largest variance of a range.
    pub(super) fn largest_range_variance(&self) -> f64 {
        let mut largest = 0.0f64;
        self.each_range(|variances| largest = variances.iter().fold(largest, |most, v| most.max(*v)));
        largest
    }

    /// Variances of the cells between two ends, the second not included: `‖P_b − P_a‖²`, `P_e` the weights of the sum of the
    /// cells before `e`, each made once.
    pub(super) fn between(&self, ends: impl Iterator<Item = (usize, usize)>) -> Vec<f64> {
        let ends: Vec<(usize, usize)> = ends.collect();
        let mut asked = vec![false; self.len() + 1];
        for (a, b) in &ends {
            (asked[*a], asked[*b]) = (true, true);
        }
        let weights = |end: usize| {
            let row: Vec<f64> = (0..self.len()).map(|cell| f64::from(u8::from(cell < end))).collect();
            self.solve_transposed(&row)
        };
        let known: Vec<Vec<f64>> = collected(asked.len(), &|end| if asked[end] { weights(end) } else { Vec::new() });
        let apart = |(a, b): (usize, usize)| known[a].iter().zip(&known[b]).map(|(a, b)| (a - b) * (a - b)).sum();
        collected(ends.len(), &|t| apart(ends[t]))
    }

    /// The mean variance of all ranges: with `P_b` the weights of the sum up to cell `b`, that of a range is
    /// `‖P_b − P_a‖²`, and `Σ_{a<b} ‖P_b − P_a‖² = (n + 1) Σ ‖P_b‖² − ‖Σ P_b‖²`.
    pub(super) fn mean_range_variance(&self) -> f64 {
        let n = self.len();
        let counts: Vec<f64> = (0..n).map(|cell| (n - cell) as f64).collect();
        let (squares, total): (f64, f64) = rayon::join(
            || self.prefix_variances().iter().sum(),
            || self.solve_transposed(&counts).iter().map(|w| w * w).sum(),
        );
        ((n + 1) as f64 * squares - total) / (n as f64 * (n + 1) as f64 / 2.0)
    }

    /// Leading blocks of the covariance: the part of `i − j` is a convolution, that of `i + j` one for every two pieces.
    pub(super) fn prefix_variances(&self) -> Vec<f64> {
        let (n, kernel) = (self.len(), self.covariance());
        let reflected = self.reflected(&kernel, 2 * n);
        let inverse: Vec<f64> = self.weights.iter().map(|d| (*d as f64).recip()).collect();
        let mut lags = kernel[..n].to_vec();
        lags[0] = 0.0;
        let mut before = vec![0.0; n];
        let (between, ()) =
            rayon::join(|| convolve(&inverse, &lags, n), || add_sums_before(&inverse, &reflected, 0, &mut before));
        before.iter_mut().zip(between).for_each(|(slot, sum)| *slot += sum);
        let mut sum = 0.0;
        let own = |t: usize| inverse[t] * (kernel[0] + reflected[2 * t]);
        (0..n)
            .map(|t| {
                sum += inverse[t] * (2.0 * before[t] + own(t));
                sum
            })
            .collect()
    }
}

/// `out[t] += Σ_{a<t} values[a]·kernel[2·offset + a + t]` for the values and sums from `offset` on: in pieces, of which two
/// meet in that part of the kernel which belongs to the sum of their places.
pub(super) fn add_sums_before(values: &[f64], kernel: &[f64], offset: usize, out: &mut [f64]) {
    if values.len() <= DIRECT {
        for t in 1..values.len() {
            out[t] += (0..t).map(|a| values[a] * kernel[2 * offset + a + t]).sum::<f64>();
        }
        return;
    }
    let size = values.len().div_ceil(PIECES).max(DIRECT);
    let pieces = values.len().div_ceil(size);
    // What wraps around falls before the sums that are read.
    let ring = RealFourier::new(fast_len(2 * size - 1));
    let spectrum = |values: &[f64]| ring.spectrum(values);
    let backwards = |piece: &[f64]| spectrum(&piece.iter().rev().copied().collect::<Vec<_>>());
    let of_kernel = |places: usize| {
        let first = 2 * offset + places * size;
        spectrum(&kernel[first..kernel.len().min(first + 2 * size - 1)])
    };
    // The last piece, which may be shorter, comes before none.
    let earlier = collected(pieces - 1, &|i| backwards(&values[i * size..][..size]));
    let kernels = collected(2 * pieces - 3, &|i| of_kernel(i + 1));
    let scale = (ring.len() as f64).recip();
    in_pieces(out, size, &|first, out| {
        let j = first / size;
        if j > 0 {
            let mut sum = vec![Complex::default(); ring.spectrum_len()];
            for (i, piece) in earlier[..j].iter().enumerate() {
                for ((slot, a), b) in sum.iter_mut().zip(piece).zip(&kernels[i + j - 1]) {
                    *slot += a * b;
                }
            }
            let mut sums = vec![0.0; ring.len()];
            ring.inverse(&mut sum, &mut sums);
            out.iter_mut().zip(&sums[size - 1..]).for_each(|(slot, sum)| *slot += scale * sum);
        }
        add_sums_before(&values[first..][..out.len()], kernel, offset + first, out);
    });
}
