//! The two ends: noise on every item, and noise on every sum.

use super::{StreamStrategy, averaged, cumulative, sums_only};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::keyed::KeyedNoise;
use crate::stream::participation::Participation;
use crate::stream::process::{self, Process};
use crate::upper::Upper;

/// Laplace noise of scale 1 has variance 2.
fn doubled(l1: bool, mut variances: Vec<f64>) -> Vec<f64> {
    if l1 {
        for v in &mut variances {
            *v *= 2.0;
        }
    }
    variances
}

/// `C = I`.
#[derive(Debug)]
pub(in crate::stream) struct Identity {
    pub l1: bool,
}

impl StreamStrategy for Identity {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        let count = Upper::integer(pattern.count(steps).into());
        if self.l1 { count } else { count.sqrt() }
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        let sums = match filter {
            Filter::RunningSum | Filter::RunningAverage => steps.iter().map(|t| *t as f64).collect(),
            Filter::Decay { decay, factor } => {
                let square = |t: &u64| (1.0 - decay.powi(2).powf(*t as f64)) / (1.0 - decay * decay);
                steps.iter().map(|t| factor * factor * square(t)).collect()
            }
            Filter::Window { window, factor } => {
                steps.iter().map(|t| (*t).min(*window as u64) as f64 * factor * factor).collect()
            }
            Filter::Taps(taps) => cumulative(taps, steps),
        };
        Ok(averaged(filter, steps, doubled(self.l1, sums)))
    }

    fn falling_products(&self) -> bool {
        true
    }

    fn process(&self, _dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::Identity { quarter_units })
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        0
    }

    fn operations(&self, _steps: u64) -> f64 {
        0.0
    }
}

/// `C = A`: a record that enters at step 1 is in all sums.
#[derive(Debug)]
pub(in crate::stream) struct Output {
    pub l1: bool,
}

impl StreamStrategy for Output {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        // With the first participation at step 1 and the next as early as allowed, j of them are in the sums
        // between the j-th and the next.
        let (count, separation) = (pattern.count(steps), pattern.separation());
        let last = steps - (count - 1) * separation;
        let (m, s, rest) = (u128::from(count), u128::from(separation), u128::from(last));
        if self.l1 {
            Upper::integer(s * (m - 1) * m / 2 + rest * m)
        } else {
            Upper::integer(s * ((m - 1) * m * (2 * m - 1) / 6) + rest * m * m).sqrt()
        }
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        sums_only(filter)?;
        Ok(averaged(filter, steps, doubled(self.l1, vec![1.0; steps.len()])))
    }

    fn falling_products(&self) -> bool {
        true
    }

    fn exchange_norm(&self, steps: u64, _l1: bool) -> Upper {
        // Between the two steps one sum in two differs; a record that enters no other step is in all.
        self.norm(&Participation::single(), steps)
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::Output::new(dim, quarter_units))
    }

    fn summed_noise(&self, noise: &mut KeyedNoise<'_>, first: u64, quarter_units: u64, steps: u64) -> i128 {
        steps.checked_sub(1).map_or(0, |last| noise.after(last).single(first + last, quarter_units).into())
    }

    fn summed_operations(&self, _steps: u64) -> f64 {
        10.0
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        8
    }

    fn operations(&self, _steps: u64) -> f64 {
        1.0
    }
}
