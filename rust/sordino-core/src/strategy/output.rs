//! Noise on the answers: `B = A`.

use super::columns::apart;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, floats, integers, table};
use crate::error::Error;
use crate::transform::fourier::{UNIT_ROUNDOFF, rounding_levels};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Taps up to this many are summed directly.
const DIRECT_TAPS: usize = 64;

/// The workload itself as the strategy, for one-dimensional filters.
///
/// A kernel that is an integer multiple of one tap is encoded in exact integers, any other in floating
/// point with a bounded error.
#[derive(Debug)]
pub(super) struct Output {
    workload: Workload,
    kernel: Vec<f64>,
    input_len: usize,
    /// `kernel = unit·integers`, if so.
    integers: Option<(f64, Vec<i64>)>,
    geometry: Geometry,
    /// Smallest and largest lag that meets the series, for neighbours that replace.
    circular: bool,
    center: usize,
    /// The largest norm of a column.
    column: OnceLock<Upper>,
}

impl Output {
    pub(super) fn new(workload: &Workload, geometry: Geometry) -> Result<Self, Error> {
        let (kernel, input_len, circular, center) = match workload {
            Workload::Circular { kernel } => (kernel.clone(), kernel.len(), true, 0),
            Workload::Linear { kernel, len, center } => (kernel.clone(), *len, false, *center),
            _ => return Err(Error::Unsupported("noise on the output serves filters, matrices and marginals".into())),
        };
        let integers = integral(&kernel);
        let workload = workload.clone();
        Ok(Self { workload, kernel, input_len, integers, geometry, circular, center, column: OnceLock::new() })
    }

    /// Column `j` of `A`: the taps whose outputs exist.
    fn column_taps(&self, j: usize) -> std::ops::Range<usize> {
        if self.circular {
            return 0..self.kernel.len();
        }
        // Output t = j + tap − center must lie in 0..len.
        let first = self.center.saturating_sub(j).min(self.kernel.len());
        let last = (self.input_len + self.center - j).min(self.kernel.len());
        first..last.max(first)
    }

    /// Taps as the encode uses them.
    fn taps(&self) -> Cow<'_, [f64]> {
        match &self.integers {
            Some((_, taps)) => taps.iter().map(|t| *t as f64).collect(),
            None => Cow::Borrowed(&self.kernel),
        }
    }

    /// Measured numbers are the answers divided by this.
    fn unit(&self) -> f64 {
        self.integers.as_ref().map_or(1.0, |(unit, _)| *unit)
    }

    fn l1(&self) -> f64 {
        self.taps().iter().map(|t| t.abs()).sum()
    }

    /// Upper bound of the largest norm of a column.
    fn largest_column(&self) -> Upper {
        let taps = self.taps();
        let square = self.geometry == Geometry::L2;
        let ulps = 2 * taps.len() as u32 + 4;
        // The fullest column; prefix sums of the taps give each column's norm.
        let mut sums = vec![0.0];
        for tap in &*taps {
            sums.push(sums[sums.len() - 1] + if square { tap * tap } else { tap.abs() });
        }
        let norm = (0..self.input_len)
            .map(|j| {
                let range = self.column_taps(j);
                sums[range.end] - sums[range.start]
            })
            .fold(0.0, f64::max)
            .max(0.0);
        // Each prefix sum is off by at most its length in units of the last place of the total.
        let slack = sums[taps.len()] * UNIT_ROUNDOFF * f64::from(ulps) * 2.0;
        let column = Upper::rounded(norm + slack, 2);
        if square { column.sqrt() } else { column }
    }
}

/// `kernel = unit·integers` with integers below 2^20 in few runs: exact as real numbers, and cheap.
fn integral(kernel: &[f64]) -> Option<(f64, Vec<i64>)> {
    if kernel.windows(2).filter(|pair| pair[0] != pair[1]).count() >= DIRECT_TAPS {
        return None;
    }
    let unit = kernel.iter().map(|h| h.abs()).filter(|h| *h > 0.0).fold(f64::INFINITY, f64::min);
    kernel
        .iter()
        .map(|h| {
            let ratio = h / unit;
            (ratio.fract() == 0.0 && ratio.abs() < 1_048_576.0 && ratio * unit == *h && exact_product(ratio, unit))
                .then_some(ratio as i64)
        })
        .collect::<Option<Vec<_>>>()
        .map(|taps| (unit, taps))
}

/// Whether `ratio·unit` has no rounding: a fused multiply-add shows the remainder.
fn exact_product(ratio: f64, unit: f64) -> bool {
    let product = ratio * unit;
    ratio.mul_add(unit, -product) == 0.0
}

impl Strategy for Output {
    fn measured_len(&self) -> usize {
        self.input_len
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let column = *self.column.get_or_init(|| self.largest_column());
        let negative = self.kernel.iter().any(|tap| *tap < 0.0);
        Ok(unit.from_columns(column, || apart(column, self.geometry == Geometry::L1, negative)))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let magnitude = self.l1() * max_abs as f64 * (1.0 + 1e-9);
        if self.integers.is_some() {
            if magnitude >= 2f64.powi(60) {
                return Err(Error::Overflow("the answers overflow; declare a smaller max_value".into()));
            }
            return Ok(Encoding::Exact { max_abs: magnitude as u64 + 1 });
        }
        // Per entry: direct sums lose (taps + 1)·u·Σ|h||x|; a transform loses its levels times the norms.
        let l2 = self.taps().iter().map(|t| t * t).sum::<f64>().sqrt();
        let per_entry = if self.kernel.len() <= DIRECT_TAPS {
            (self.kernel.len() + 2) as f64 * UNIT_ROUNDOFF * self.l1() * max_abs as f64
        } else {
            let len = crate::transform::fourier::fast_len(
                self.input_len + self.kernel.len().min(self.input_len + self.center),
            );
            crate::transform::exact::convolution_error(rounding_levels(len))
                * l2
                * (self.input_len as f64).sqrt()
                * max_abs as f64
                * 2.0
        };
        let error = Upper::rounded(per_entry * (1.0 + 1e-9), 4) * Upper::integer(self.input_len as u128).sqrt();
        Ok(Encoding::Float { error_l2: error, max_abs: magnitude })
    }

    fn steps(&self) -> Vec<Run> {
        // Integers are multiples of the smallest tap.
        self.integers.iter().map(|_| Run { step: 1, len: self.input_len }).collect()
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let x = table(x)?;
        if let (Some((_, taps)), Encoded::Exact(_)) = (&self.integers, &out) {
            let out = integers(out);
            convolve_integers(taps, x, self.circular, self.center, out);
            return Ok(());
        }
        let out = floats(out);
        let values: Vec<f64> = x.iter().map(|v| *v as f64).collect();
        if self.kernel.len() <= DIRECT_TAPS {
            let n = self.input_len;
            for (t, slot) in out.iter_mut().enumerate() {
                *slot = self
                    .kernel
                    .iter()
                    .enumerate()
                    .filter_map(|(j, h)| {
                        let i =
                            if self.circular { Some((t + n - j % n) % n) } else { (t + self.center).checked_sub(j) };
                        i.and_then(|i| values.get(i)).map(|v| h * v)
                    })
                    .sum();
            }
        } else {
            self.workload.apply(&values, out);
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let unit = self.unit();
        out.iter_mut().zip(y).for_each(|(slot, value)| *slot = value * unit);
    }

    fn variances(&self, out: &mut [f64]) {
        let noise = if self.geometry == Geometry::L1 { 2.0 } else { 1.0 };
        out.fill(noise * self.unit() * self.unit());
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let (mut out, unit) = (vec![0.0; self.input_len], self.unit());
        self.workload.apply(x, &mut out);
        Some(out.into_iter().map(|v| v / unit).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        // The filter backwards: tap j of it reaches from output t to input t + center − j.
        let mut kernel = self.kernel.clone();
        let backwards = if self.circular {
            kernel[1..].reverse();
            Workload::Circular { kernel }
        } else {
            kernel.reverse();
            let center = kernel.len() - 1 - self.center;
            Workload::Linear { kernel, len: self.input_len, center }
        };
        let mut out = vec![0.0; self.input_len];
        backwards.apply(y, &mut out);
        let unit = self.unit();
        Some(out.into_iter().map(|v| v / unit).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // The measured rows themselves are the queries that can be answered.
        let measured = |t: &usize| self.workload.row(*t).is_ok_and(|own| own == row);
        let answer = (0..self.input_len).find(measured).ok_or_else(super::not_in_row_space)?;
        self.answer_weights(answer, row)
    }

    fn answer_weights(&self, answer: usize, _row: &[f64]) -> Result<Vec<f64>, Error> {
        let mut weights = vec![0.0; self.input_len];
        weights[answer] = self.unit();
        Ok(weights)
    }
}

/// Integer filter; runs of equal taps (running sums, windows) cost O(1) a step.
fn convolve_integers(taps: &[i64], x: &[i64], circular: bool, center: usize, out: &mut [i64]) {
    let n = x.len();
    let at = |i: i64| -> i64 {
        if circular {
            x[i.rem_euclid(n as i64) as usize]
        } else {
            usize::try_from(i).ok().and_then(|i| x.get(i)).copied().unwrap_or(0)
        }
    };
    out.fill(0);
    let mut start = 0;
    while start < taps.len() {
        let value = taps[start];
        let end = start + taps[start..].iter().take_while(|t| **t == value).count();
        if value != 0 {
            // Window over lags start..end: slide it along the series.
            let mut sum: i64 = (start..end).map(|j| at(center as i64 - j as i64)).sum();
            for (t, slot) in out.iter_mut().enumerate() {
                *slot += value * sum;
                let next = (t + 1 + center) as i64;
                sum += at(next - start as i64) - at(next - end as i64);
            }
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    #[test]
    fn integer_kernels_are_recognised_only_when_exact() {
        assert_eq!(integral(&[0.5, 0.0, -1.5]), Some((0.5, vec![1, 0, -3])));
        let seventh = 1.0 / 7.0;
        assert_eq!(integral(&[seventh; 7]), Some((seventh, vec![1; 7])));
        assert_eq!(integral(&[0.1, 0.3]), None);
        assert_eq!(integral(&[1.0, 0.9, 0.81]), None);
    }

    /// `2^200·v`, exactly, for doubles of ordinary size.
    fn exact(v: f64) -> BigInt {
        let bits = v.abs().to_bits();
        let (exponent, mantissa) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        let value = BigInt::from(if exponent == 0 { 0 } else { mantissa | 1 << 52 }) << (200 + exponent - 1075).max(0);
        if v < 0.0 { -value } else { value }
    }

    /// The declared error of floating-point encodes against exact rational arithmetic, direct sums and
    /// transforms, on flat, alternating, single and pseudo-random inputs at the limit.
    #[test]
    fn encoding_error_against_an_exact_oracle() {
        let n = 150;
        let max_abs = (1i64 << 24) - 1;
        for taps in [vec![0.1, 0.3, -0.7], (0..n).map(|j| 0.97f64.powi(j)).collect::<Vec<_>>()] {
            for workload in [
                Workload::Linear { kernel: taps.clone(), len: n as usize, center: 1 },
                Workload::Circular { kernel: taps.iter().copied().chain(vec![0.0; n as usize - taps.len()]).collect() },
            ] {
                let output = Output::new(&workload, Geometry::L2).unwrap();
                let Encoding::Float { error_l2, .. } = output.encoding(max_abs as u64).unwrap() else { panic!() };
                for pattern in 0..4 {
                    let x: Vec<i64> = (0..i64::from(n))
                        .map(|i| match pattern {
                            0 => max_abs,
                            1 => max_abs * (1 - 2 * (i % 2)),
                            2 => max_abs * i64::from(i == 70),
                            _ => (i * 2_654_435_761) % max_abs,
                        })
                        .collect();
                    let mut out = vec![0.0; n as usize];
                    output.encode(Input::Cells(&x), max_abs as u64, Encoded::Float(&mut out)).unwrap();
                    let mut squares = 0.0;
                    for (t, value) in out.iter().enumerate() {
                        let row = workload.row(t).unwrap();
                        let sum: BigInt = row.iter().zip(&x).map(|(a, v)| exact(*a) * *v).sum();
                        let error: BigInt = (exact(*value) - sum) >> 100u32;
                        squares += (i128::try_from(error).unwrap() as f64 * 2f64.powi(-100)).powi(2);
                    }
                    assert!(squares.sqrt() <= error_l2.get(), "{} above {}", squares.sqrt(), error_l2.get());
                }
            }
        }
    }

    #[test]
    fn integer_filter_matches_the_rows() {
        for (workload, circular, center) in [
            (Workload::Circular { kernel: vec![1.0, 1.0, -2.0, 0.0, 3.0] }, true, 0),
            (Workload::Linear { kernel: vec![2.0, 2.0, 2.0, -1.0], len: 9, center: 0 }, false, 0),
            (Workload::Linear { kernel: vec![1.0; 5], len: 6, center: 2 }, false, 2),
        ] {
            let output = Output::new(&workload, Geometry::L2).unwrap();
            let x: Vec<i64> = (0..output.input_len as i64).map(|i| i * i - 7).collect();
            let (unit, taps) = output.integers.clone().unwrap();
            let mut out = vec![0; x.len()];
            convolve_integers(&taps, &x, circular, center, &mut out);
            for (t, value) in out.iter().enumerate() {
                let row = workload.row(t).unwrap();
                let expected: f64 = row.iter().zip(&x).map(|(a, b)| a * *b as f64).sum();
                assert!((*value as f64 * unit - expected).abs() < 1e-9);
            }
        }
    }
}
