//! Recipes of streams: plain data, built in a separate step.

use super::filter::Filter;
use super::strategy::{
    BinaryTree, Buffered, Comb, Dense, Identity, Output, Series, SmoothTree, StreamStrategy, SubtractionTree,
    TimeVarying, TwoDiagonals,
};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::objective::Objective;
use crate::optimize::{self, Prefixes, Progress};
use crate::toeplitz::{self, BufferedProblem, outer, series, square_root_coefficients};

/// No stream publishes more steps.
pub const LONGEST: u64 = 1 << 40;
/// Longest stream of the exact square root: its past is kept.
const LONGEST_SERIES: u64 = 1 << 24;
/// Most taps of a filter, and of its outer factor.
const LONGEST_OUTER: usize = 1 << 16;
/// Bits of a kernel that is rounded to integers.
const KERNEL_BITS: i32 = 30;

/// How long a stream may run, and for which length it is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Horizon {
    /// So many steps and no more.
    Hard(u64),
    /// Best for so many steps, private for ever.
    Soft(u64),
    /// Good at every step, private for ever.
    Unbounded,
}

impl Horizon {
    /// Steps that may be published.
    pub fn steps(self) -> u64 {
        match self {
            Self::Hard(steps) => steps,
            Self::Soft(_) | Self::Unbounded => LONGEST,
        }
    }

    /// The length for which the error is minimised.
    pub fn design(self) -> Option<u64> {
        match self {
            Self::Hard(steps) | Self::Soft(steps) => Some(steps),
            Self::Unbounded => None,
        }
    }

    fn hard(self) -> Result<u64, Error> {
        match self {
            Self::Hard(steps) => Ok(steps),
            _ => Err(Error::Unsupported(
                "this mechanism needs a hard horizon: its noise is shared out over the steps".into(),
            )),
        }
    }
}

/// The mechanisms of streams. Kinds are never removed or re-meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMechanism {
    /// Fresh noise for every item.
    Identity,
    /// Fresh noise for every running sum.
    Output,
    /// Buffered linear Toeplitz, of the degree given or one chosen by the horizon.
    Buffered {
        /// Number of buffers.
        degree: Option<usize>,
    },
    /// Two diagonals around a buffered Toeplitz matrix.
    TwoDiagonals,
    /// Buffers whose coefficients change from step to step, of the degree given or one chosen by the horizon.
    TimeVarying {
        /// Number of buffers.
        degree: Option<usize>,
    },
    /// Column-normalised square root.
    NormalizedSquareRoot,
    /// The exact square root of the workload's series.
    SquareRoot,
    /// The outer factor of any causal filter.
    Outer,
    /// Buffered Toeplitz on a comb, for sliding windows.
    Comb,
    /// The optimal lower triangular factorization.
    Optimal,
    /// Binary tree.
    BinaryTree,
    /// Binary tree averaged from below.
    HonakerTree,
    /// Smooth binary tree.
    SmoothTree,
    /// Tree with subtraction.
    SubtractionTree {
        /// Children of a node, odd; the best if absent.
        branching: Option<u32>,
    },
}

/// A stream's mechanism as data.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamRecipe {
    /// What is answered.
    pub filter: Filter,
    /// What is measured.
    pub mechanism: StreamMechanism,
    /// Gaussian or Laplace noise.
    pub law: NoiseLaw,
    /// For how long.
    pub horizon: Horizon,
    /// Which error is minimised.
    pub objective: Objective,
    /// For units that take part so often at most, so many steps apart at least; they are private however often they do.
    pub participations: (u64, u64),
}

impl StreamRecipe {
    /// Builds the strategy; the same recipe gives the same strategy.
    pub(super) fn build(&self, progress: Progress<'_>) -> Result<Box<dyn StreamStrategy>, Error> {
        let steps = self.horizon.steps();
        if steps == 0 || steps > LONGEST || self.horizon.design() == Some(0) {
            return Err(Error::invalid("length", "must be from 1 to 2^40 steps"));
        }
        let l1 = self.law == NoiseLaw::Laplace;
        let sums = matches!(self.filter, Filter::RunningSum | Filter::RunningAverage);
        let unsupported = || Error::Unsupported("this mechanism does not serve this stream with this noise".into());
        Ok(match (self.mechanism, &self.filter) {
            (StreamMechanism::Identity, _) => Box::new(Identity { l1 }),
            (StreamMechanism::Output, _) if sums => {
                self.horizon.hard()?;
                Box::new(Output { l1 })
            }
            (StreamMechanism::BinaryTree, _) if sums => Box::new(BinaryTree { steps, averaged: false, l1 }),
            (StreamMechanism::HonakerTree, _) if sums => Box::new(BinaryTree { steps, averaged: true, l1 }),
            (StreamMechanism::SmoothTree, _) if sums => Box::new(SmoothTree::new(steps, l1)),
            (StreamMechanism::SubtractionTree { branching }, _) if sums && l1 => {
                Box::new(SubtractionTree::new(steps, branching)?)
            }
            _ if l1 => return Err(unsupported()),
            (StreamMechanism::Buffered { degree }, Filter::Decay { decay, .. }) => {
                Box::new(self.decaying(*decay, degree)?)
            }
            (StreamMechanism::Buffered { degree }, _) if sums => Box::new(self.counting(degree)?),
            (StreamMechanism::TwoDiagonals, _) if sums => {
                let steps = usize::try_from(self.horizon.hard()?).map_err(|_| unsupported())?;
                Box::new(TwoDiagonals::new(toeplitz::TwoDiagonals::fit(steps, self.objective)?))
            }
            (StreamMechanism::TimeVarying { degree }, _) if sums => {
                let steps = usize::try_from(self.horizon.hard()?).map_err(|_| unsupported())?;
                let prefixes = if self.filter == Filter::RunningSum { Prefixes::Sums } else { Prefixes::Averages };
                Box::new(TimeVarying::new(optimize::TimeVarying::fit(steps, prefixes, self.objective, degree)?))
            }
            (StreamMechanism::NormalizedSquareRoot, _) if sums => {
                let steps = usize::try_from(self.horizon.hard()?).map_err(|_| unsupported())?;
                Box::new(TwoDiagonals::new(toeplitz::TwoDiagonals::normalized(steps)?))
            }
            (StreamMechanism::Optimal, _) if sums => {
                let steps = self.horizon.hard()?;
                let target = optimize::Target { gap: 1e-5, ..optimize::Target::default() };
                let steps = usize::try_from(steps).unwrap_or(usize::MAX);
                Box::new(Dense::new(&optimize::prefix_sums(steps, self.objective, target, progress)?)?)
            }
            (StreamMechanism::SquareRoot, Filter::Decay { decay, .. }) => {
                // Powers of the decay below half a unit of the rounded kernel leave nothing.
                let len = (-f64::from(KERNEL_BITS + 1) * 2f64.ln() / decay.ln()).ceil();
                let len = (len as u64 + 1).min(steps).min(LONGEST_SERIES) as usize;
                Box::new(Series::new(rounded(&series::binomial(*decay, -0.5, len)))?)
            }
            (StreamMechanism::SquareRoot, _) if sums => {
                let steps = self.horizon.hard()?;
                if steps > LONGEST_SERIES {
                    return Err(Error::Unsupported(
                        "the exact square root keeps all past noise: at most 2^24 steps".into(),
                    ));
                }
                Box::new(Series::new(rounded(&square_root_coefficients(steps as usize)))?)
            }
            (StreamMechanism::Comb, Filter::Window { window, .. }) if *window > 1 => Box::new(best_comb(*window)?),
            (StreamMechanism::Outer, Filter::Window { .. } | Filter::Taps(_)) => {
                let taps = self.filter.taps(LONGEST_OUTER);
                let len =
                    (8 * taps.len()).clamp(1 << 12, LONGEST_OUTER).min(usize::try_from(steps).unwrap_or(usize::MAX));
                Box::new(Series::new(outer::outer_kernel(&taps, len, KERNEL_BITS as u32, 1e-9))?)
            }
            _ => return Err(unsupported()),
        })
    }

    /// Buffers for a running sum: with five, the error is within a few thousandths of the square root's at 2^16.
    fn counting(&self, degree: Option<usize>) -> Result<Buffered, Error> {
        let Some(design) = self.horizon.design() else {
            return Buffered::new(&toeplitz::unbounded(degree.unwrap_or(8))?, true);
        };
        let degree = degree.unwrap_or_else(|| self.buffers(design));
        let endless = matches!(self.horizon, Horizon::Soft(_));
        let problem = BufferedProblem {
            sensitivity_steps: (!endless).then_some(design),
            participations: self.participations,
            ..BufferedProblem::counting(degree, design, self.objective)
        };
        Buffered::new(&toeplitz::optimize(&problem)?.0, endless)
    }

    /// Buffers with which the error is within some thousandths of the least.
    fn buffers(&self, design: u64) -> usize {
        let once = match design {
            0..=1024 => 3,
            1025..=4096 => 4,
            4097..=65536 => 5,
            65537..=1_048_576 => 6,
            _ => 8,
        };
        let (count, apart) = self.participations;
        // Behind the last participation a column goes on as that of one.
        let within = if matches!(self.horizon, Horizon::Hard(_)) { design.div_ceil(apart) } else { u64::MAX };
        if count.min(within) == 1 || count.saturating_mul(apart) < design / 2 {
            return once;
        }
        // What lasts longer than from one participation to the next costs more than it gives.
        let several = match apart {
            0..=300 => 2,
            301..=3000 => 3,
            3001..=30_000 => 4,
            30_001..=300_000 => 5,
            300_001..=3_000_000 => 6,
            _ => 8,
        };
        once.min(several + usize::from(self.objective == Objective::Max))
    }

    fn decaying(&self, decay: f64, degree: Option<usize>) -> Result<Buffered, Error> {
        let degree = degree.unwrap_or(if decay > 0.999 { 4 } else { 3 });
        let endless = !matches!(self.horizon, Horizon::Hard(_));
        let steps = self.horizon.design().filter(|_| !endless);
        let objective = self.objective;
        let participations = self.participations;
        let problem = BufferedProblem { degree, steps, sensitivity_steps: steps, decay, objective, participations };
        Buffered::new(&toeplitz::optimize(&problem)?.0, endless)
    }
}

/// A kernel with `c_0 = 1` in units of `2^-30`.
fn rounded(kernel: &[f64]) -> Vec<i64> {
    kernel.iter().map(|c| (c * 2f64.powi(KERNEL_BITS)).round() as i64).collect()
}

/// The comb of least error among factors made for several multiples of the window.
fn best_comb(window: usize) -> Result<Comb, Error> {
    let mut best: Option<(f64, Comb)> = None;
    for multiple in [4, 16, 64] {
        let steps = (multiple * window as u64).max(16);
        let degree = if window <= 64 { 4 } else { 6 };
        let (factor, _) = toeplitz::optimize(&BufferedProblem::counting(degree, steps, Objective::Max))?;
        let comb = Comb::new(factor, window)?;
        let error = comb.error()?;
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            best = Some((error, comb));
        }
    }
    best.map(|(_, comb)| comb).ok_or_else(|| Error::Unsupported("no comb fits this window".into()))
}
