//! Toeplitz strategies given by their coefficients: the square root, and outer factors of filters.

use super::correlation::{MOST_EXCHANGED, exchange_norm, pattern_norm};
use super::{StreamStrategy, averaged, cumulative};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::participation::Participation;
use crate::stream::process::{self, Process};
use crate::stream::state::Writer;
use crate::toeplitz::{OnlineKernel, series};
use crate::upper::Upper;
use std::sync::Arc;

/// Additions that following a pattern one by one may take.
const MOST_EXACT: u64 = 1 << 26;
/// Coefficients of the response that are computed; beyond, variances have settled.
const MOST_RESPONSE: u64 = 1 << 22;

/// `C = K/K_0` with integer taps, zero beyond them.
#[derive(Debug)]
pub(in crate::stream) struct Series {
    kernel: Arc<OnlineKernel>,
}

impl Series {
    pub(crate) fn new(taps: Vec<i64>) -> Result<Self, Error> {
        Ok(Self { kernel: Arc::new(OnlineKernel::new(taps.into())?) })
    }

    fn taps(&self, steps: u64) -> &[i64] {
        let taps = self.kernel.taps();
        &taps[..taps.len().min(usize::try_from(steps).unwrap_or(usize::MAX))]
    }

    fn bits(&self) -> i32 {
        self.kernel.taps()[0].trailing_zeros() as i32
    }
}

impl StreamStrategy for Series {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        let taps = self.taps(steps);
        let square: u128 = taps.iter().map(|k| u128::from(k.unsigned_abs()).pow(2)).sum();
        let single = Upper::integer(square).sqrt().scaled(-self.bits());
        let count = pattern.count(steps);
        if count == 1 {
            return single;
        }
        let falling = taps.windows(2).all(|pair| pair[1] >= 0 && pair[1] <= pair[0]);
        let last = (count - 1) * pattern.separation();
        let rows = steps.min(last + taps.len() as u64);
        if falling && rows.saturating_mul(count) <= MOST_EXACT {
            // Non-negative and non-increasing: the first columns at the least distance are the worst.
            let mut sums = vec![0i128; rows as usize];
            for start in (0..count).map(|j| (j * pattern.separation()) as usize) {
                for (sum, k) in sums[start..].iter_mut().zip(taps) {
                    *sum += i128::from(*k);
                }
            }
            let square: u128 = sums.iter().map(|sum| sum.unsigned_abs().pow(2)).sum();
            return Upper::integer(square).sqrt().scaled(-self.bits());
        }
        let unit = 2f64.powi(-self.bits());
        let kernel: Vec<f64> = taps.iter().map(|k| *k as f64 * unit).collect();
        pattern_norm(&kernel, 0.0, single, pattern, steps)
    }

    fn no_negative_products(&self) -> bool {
        self.kernel.taps().iter().all(|k| *k >= 0)
    }

    fn falling_products(&self) -> bool {
        self.kernel.taps().windows(2).all(|pair| pair[1] >= 0 && pair[1] <= pair[0])
    }

    fn exchange_norm(&self, steps: u64, _l1: bool) -> Upper {
        match usize::try_from(steps) {
            Ok(n) if n <= MOST_EXCHANGED => {
                let unit = 2f64.powi(-self.bits());
                let mut kernel: Vec<f64> = self.taps(steps).iter().map(|k| *k as f64 * unit).collect();
                kernel.resize(n, 0.0);
                exchange_norm(&kernel)
            }
            _ => {
                let square = if self.no_negative_products() { 2.0 } else { 4.0 };
                self.norm(&Participation::single(), steps) * Upper::exact(square).sqrt()
            }
        }
    }

    fn rounding(&self, steps: u64) -> Upper {
        Upper::integer(steps.into()).sqrt()
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        let len = steps.iter().copied().max().unwrap_or(1).min(MOST_RESPONSE) as usize;
        let unit = 2f64.powi(-self.bits());
        let kernel: Vec<f64> = self.kernel.taps().iter().take(len).map(|k| *k as f64 * unit).collect();
        let response = series::multiply(&series::inverse(&kernel, len), &filter.taps(len), len);
        Ok(averaged(filter, steps, cumulative(&response, steps)))
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::Series::new(Arc::clone(&self.kernel), dim, quarter_units))
    }

    fn parameters(&self, out: &mut Writer) {
        out.integers(self.kernel.taps());
    }

    fn state_bytes(&self, steps: u64) -> u64 {
        // Up to two periods of past noise and one of pending sums.
        48 * steps.min(self.kernel.taps().len() as u64)
    }

    fn operations(&self, steps: u64) -> f64 {
        let depth = (steps.min(self.kernel.taps().len() as u64) as f64 / 128.0).max(1.0).log2();
        128.0 + 20.0 * depth * (depth + 14.0)
    }
}
