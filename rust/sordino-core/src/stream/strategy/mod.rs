//! Strategies of a stream: how far neighbours are apart, how large the errors are, and the noise process.

mod buffered;
mod comb;
mod correlation;
mod dense;
mod series;
mod simple;
mod time_varying;
mod trees;
mod two_diagonals;

pub(super) use buffered::Buffered;
pub(super) use comb::Comb;
pub(super) use dense::Dense;
pub(super) use series::Series;
pub(super) use simple::{Identity, Output};
pub(super) use time_varying::TimeVarying;
pub(super) use trees::{BinaryTree, SmoothTree, SubtractionTree};
pub(super) use two_diagonals::TwoDiagonals;

use super::filter::Filter;
use super::keyed::KeyedNoise;
use super::participation::Participation;
use super::process::Process;
use super::state::Writer;
use crate::error::Error;
use crate::toeplitz::Dyadic;
use crate::upper::Upper;

/// The public side of a noise process. Noise of scale 1 throughout.
pub(super) trait StreamStrategy: Send + Sync + std::fmt::Debug {
    /// Upper bound of `‖C δ‖` over the patterns in time of a unit that takes part with weight 1: ℓ2 for Gaussian
    /// noise, ℓ1 for Laplace noise, in `steps` steps.
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper;

    /// Upper bound of `‖C(e_a − e_b)‖` and `‖C e_a‖` over all steps a and b.
    fn exchange_norm(&self, steps: u64, l1: bool) -> Upper {
        let square = Upper::exact(if self.no_negative_products() && !l1 { 2.0 } else { 4.0 });
        self.norm(&Participation::single(), steps) * square.sqrt()
    }

    /// Bound of `‖e‖₂` in lattice units over so many steps: what rounding of fed back noise adds.
    fn rounding(&self, _steps: u64) -> Upper {
        Upper::ZERO
    }

    /// Largest noise of a step over the noise of scale 1.
    fn largest_scale(&self) -> f64 {
        1.0
    }

    /// Variance of the answer of `filter` at these steps (from 1).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the strategy is not made for the filter.
    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error>;

    /// Steps at which the variance of a sum may be largest, where few of very many are.
    fn worst_steps(&self, _steps: u64) -> Vec<u64> {
        Vec::new()
    }

    /// Whether no product of two columns of `C` is negative: entries of `C` are not.
    fn no_negative_products(&self) -> bool {
        true
    }

    /// Whether `⟨C e_i, C e_j⟩`, for every fixed j, does not grow as i < j moves away, and is never negative.
    fn falling_products(&self) -> bool {
        false
    }

    /// Noise of the running sum of one coordinate after so many steps: the samples of its process are those from `first`
    /// on, [`Self::samples`] of them.
    fn summed_noise(&self, noise: &mut KeyedNoise<'_>, first: u64, quarter_units: u64, steps: u64) -> i128 {
        processed(self.process(1, quarter_units), noise, first, steps)
    }

    /// At most so many samples a coordinate in so many steps.
    fn samples(&self, steps: u64) -> u64 {
        steps
    }

    /// Operations that [`Self::summed_noise`] takes.
    fn summed_operations(&self, steps: u64) -> f64 {
        steps as f64 * (self.operations(steps) + 10.0)
    }

    /// The process for noise of scale `quarter_units/4`.
    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process>;

    /// Appends the numbers that the noise depends on, besides the recipe: none where the recipe says all.
    fn parameters(&self, _out: &mut Writer) {}

    /// Bytes of state a coordinate, at the last step.
    fn state_bytes(&self, steps: u64) -> u64;

    /// Multiplications and additions a step and coordinate, amortised.
    fn operations(&self, steps: u64) -> f64;
}

/// The sum of the first `steps` numbers of a process of one coordinate, with samples from `first` on.
fn processed(mut process: Box<dyn Process>, noise: &mut KeyedNoise<'_>, first: u64, steps: u64) -> i128 {
    let (mut row, mut sum) = ([0], 0);
    noise.spans(first, steps, |source, steps| {
        for _ in 0..steps {
            process.next(source, &mut row);
            sum += i128::from(row[0]);
        }
    });
    sum
}

/// `Σ_{k<t} b_k²` at these steps, from the impulse response of answers to unit noise.
fn cumulative(response: &[f64], steps: &[u64]) -> Vec<f64> {
    let sums: Vec<f64> = response
        .iter()
        .scan(0.0, |sum, b| {
            *sum += b * b;
            Some(*sum)
        })
        .collect();
    steps.iter().map(|t| sums[(*t as usize).clamp(1, sums.len()) - 1]).collect()
}

/// Divides variances of sums by the square of the filter's divisor.
fn averaged(filter: &Filter, steps: &[u64], mut variances: Vec<f64>) -> Vec<f64> {
    for (variance, t) in variances.iter_mut().zip(steps) {
        *variance /= filter.divisor(*t).powi(2);
    }
    variances
}

/// Variances of sums or averages at these steps, from those of the sum at every step.
///
/// # Errors
/// [`Error::Unsupported`] for other filters.
fn of_every_step(filter: &Filter, steps: &[u64], variances: &[f64]) -> Result<Vec<f64>, Error> {
    sums_only(filter)?;
    Ok(averaged(filter, steps, steps.iter().map(|t| variances[*t as usize - 1]).collect()))
}

/// The largest of the noises of all steps.
fn largest(noise: &[Dyadic]) -> f64 {
    noise.iter().map(|r| r.value()).fold(0.0, f64::max)
}

/// The refusal of a strategy that is made for running sums.
fn sums_only(filter: &Filter) -> Result<(), Error> {
    match filter {
        Filter::RunningSum | Filter::RunningAverage => Ok(()),
        _ => Err(Error::Unsupported("this mechanism serves running sums and averages".into())),
    }
}
