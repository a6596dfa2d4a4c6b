//! Buffered linear Toeplitz strategies.

use super::correlation::{MOST_EXCHANGED, exchange_norm};
use super::{StreamStrategy, averaged, sums_only};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::keyed::KeyedNoise;
use crate::stream::participation::Participation;
use crate::stream::process::{self, FRACTION, Process};
use crate::stream::state::Writer;
use crate::toeplitz::{BufferedToeplitz, Dyadic};
use crate::upper::Upper;

/// `C = 1 + Σ ω_i z/(1 − θ_i z)`, private for `steps` steps or for ever.
#[derive(Debug)]
pub(in crate::stream) struct Buffered {
    toeplitz: BufferedToeplitz,
    /// Whether the sensitivity is that of endless columns.
    endless: bool,
}

impl Buffered {
    /// Leaves out buffers without weight, `ω_i/μ_i` below 2^-30, which an optimum of few steps may have; refuses
    /// parameters with which a buffer could leave 128 bits, or that are finer than 2^-64.
    ///
    /// `a_i` is `2^F` times noise filtered by `z/(1 − θ_i z)/C`, whose coefficients are not negative (poles and zeros
    /// interlace) and sum to `1/(μ_i C(1))`, at most `1/ω_i` and at most `1/μ_i`. For noise up to its clip at 3·2^61
    /// that is below `2^(F + 62.6)/max(ω_i, μ_i)`.
    pub(crate) fn new(toeplitz: &BufferedToeplitz, endless: bool) -> Result<Self, Error> {
        let pairs = toeplitz.mu().iter().copied().zip(toeplitz.omega().iter().copied());
        let (mu, omega): (Vec<Dyadic>, Vec<Dyadic>) =
            pairs.filter(|(m, w)| w.value() >= m.value() * 2f64.powi(-30)).unzip();
        let toeplitz = BufferedToeplitz::from_dyadic(mu, omega)?;
        let fits = |(w, m): (&Dyadic, &Dyadic)| {
            w.shift() <= 64 && m.shift() <= 64 && w.value().max(m.value()) >= 2f64.powi(-39)
        };
        if !toeplitz.omega().iter().zip(toeplitz.mu()).all(fits) {
            return Err(Error::Overflow("these buffers need more than 128 bits: ask for fewer".into()));
        }
        Ok(Self { toeplitz, endless })
    }
}

/// `1 + 2^-F (Σ ω_i/μ_i + d)`, rounded up: how far two fed back sums are from their exact difference.
pub(super) fn feedback_error(toeplitz: &BufferedToeplitz) -> f64 {
    1.0 + 2f64.powi(-(FRACTION as i32)) * held_error(toeplitz) * (1.0 + 1e-12)
}

/// `Σ ω_i/μ_i + d`: the same for the weighted buffers, in units of `2^-F`.
pub(super) fn held_error(toeplitz: &BufferedToeplitz) -> f64 {
    let (mu, omega) = (toeplitz.mu(), toeplitz.omega());
    omega.iter().zip(mu).map(|(w, m)| w.value() / m.value() + 1.0).sum::<f64>()
}

impl StreamStrategy for Buffered {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        let horizon = (!self.endless).then_some(steps);
        match pattern.count(steps) {
            1 => self.toeplitz.column_norm(horizon),
            count => {
                let weights = vec![1.0; count.min(MOST_EXACT) as usize];
                let part = self.toeplitz.column_norm_of(horizon, &weights, pattern.separation());
                // Groups of participations, by the triangle inequality.
                part * Upper::integer(count.div_ceil(MOST_EXACT).into())
            }
        }
    }

    fn exchange_norm(&self, steps: u64, _l1: bool) -> Upper {
        let single = self.norm(&Participation::single(), steps);
        match usize::try_from(steps) {
            // An endless column is longer than one of these steps.
            Ok(n) if n <= MOST_EXCHANGED => exchange_norm(&self.toeplitz.coefficients(n)),
            _ => single * Upper::exact(2.0).sqrt(),
        }
    }

    fn falling_products(&self) -> bool {
        true // the kernel is neither negative nor rising
    }

    fn rounding(&self, steps: u64) -> Upper {
        Upper::integer(steps.into()).sqrt() * Upper::rounded(feedback_error(&self.toeplitz), 4)
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        let (decay, factor) = match filter {
            Filter::Decay { decay, factor } => (*decay, *factor),
            _ => sums_only(filter).map(|()| (1.0, 1.0))?,
        };
        let response = self.toeplitz.response(decay)?;
        let sums = steps.iter().map(|t| factor * factor * response.squared_norm(*t)).collect();
        Ok(averaged(filter, steps, sums))
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        if self.toeplitz.degree() == 0 {
            return Box::new(process::Identity { quarter_units });
        }
        Box::new(process::Buffered::new(self.toeplitz.mu(), self.toeplitz.omega(), dim, quarter_units))
    }

    fn summed_noise(&self, noise: &mut KeyedNoise<'_>, first: u64, quarter_units: u64, steps: u64) -> i128 {
        let mut process = process::Buffered::new(self.toeplitz.mu(), self.toeplitz.omega(), 1, quarter_units);
        let mut sum = 0;
        noise.spans(first, steps, |source, steps| sum += process.sum(source, steps));
        sum
    }

    fn parameters(&self, out: &mut Writer) {
        out.dyadic(self.toeplitz.mu().iter().copied());
        out.dyadic(self.toeplitz.omega().iter().copied());
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        16 * self.toeplitz.degree() as u64
    }

    fn operations(&self, _steps: u64) -> f64 {
        4.0 * self.toeplitz.degree() as f64
    }
}

/// Participations whose pattern is followed one by one.
const MOST_EXACT: u64 = 1 << 20;
