//! The workload of a stream: a causal filter of published increments, which is post-processing.

use super::state::{Reader, Writer, corrupt, replace};
use crate::error::Error;

/// What a stream answers at every step.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// `x_1 + … + x_t`.
    RunningSum,
    /// `(x_1 + … + x_t)/t`.
    RunningAverage,
    /// `factor·Σ_j decay^j x_{t−j}`.
    Decay {
        /// Strictly between 0 and 1.
        decay: f64,
        /// `1 − decay` if normalised, else 1.
        factor: f64,
    },
    /// `factor·(x_{t−window+1} + … + x_t)`.
    Window {
        /// Steps in the window.
        window: usize,
        /// `1/window` for a mean, else 1.
        factor: f64,
    },
    /// `Σ_j taps_j x_{t−j}`.
    Taps(Vec<f64>),
}

impl Filter {
    /// A checked filter.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn validated(self) -> Result<Self, Error> {
        let fits = match &self {
            Self::RunningSum | Self::RunningAverage => true,
            Self::Decay { decay, factor } => *decay > 0.0 && *decay < 1.0 && factor.is_finite() && *factor > 0.0,
            Self::Window { window, factor } => *window > 0 && factor.is_finite() && *factor > 0.0,
            Self::Taps(taps) => taps.iter().all(|h| h.is_finite()) && taps.iter().any(|h| *h != 0.0),
        };
        if fits { Ok(self) } else { Err(Error::invalid("workload", "its parameters are out of range")) }
    }

    /// Taps `h_0 … h_{n−1}`, for [`Filter::RunningAverage`] those of the sum.
    pub fn taps(&self, n: usize) -> Vec<f64> {
        match self {
            Self::RunningSum | Self::RunningAverage => vec![1.0; n],
            Self::Decay { decay, factor } => {
                std::iter::successors(Some(*factor), |h| Some(h * decay)).take(n).collect()
            }
            Self::Window { window, factor } => vec![*factor; n.min(*window)],
            Self::Taps(taps) => taps[..n.min(taps.len())].to_vec(),
        }
    }

    /// What an answer at step `t` is divided by.
    pub(super) fn divisor(&self, t: u64) -> f64 {
        if *self == Self::RunningAverage { t as f64 } else { 1.0 }
    }
}

/// The filter with what it remembers of published increments.
#[derive(Debug, Clone)]
pub(super) struct FilterState {
    filter: Filter,
    dim: usize,
    /// Sums, exact, of the running sum, average and window.
    sums: Vec<i128>,
    /// Decayed sums.
    reals: Vec<f64>,
    /// Last increments, by place in the ring and coordinate.
    ring: Vec<i64>,
    place: usize,
}

impl FilterState {
    pub(super) fn new(filter: &Filter, dim: usize) -> Self {
        let (sums, reals, ring) = match filter {
            Filter::RunningSum | Filter::RunningAverage => (dim, 0, 0),
            Filter::Decay { .. } => (0, dim, 0),
            Filter::Window { window, .. } => (dim, 0, window * dim),
            Filter::Taps(taps) => (0, 0, taps.len() * dim),
        };
        Self {
            filter: filter.clone(),
            dim,
            sums: vec![0; sums],
            reals: vec![0.0; reals],
            ring: vec![0; ring],
            place: 0,
        }
    }

    /// Takes the increments `y_t` of step `t` (from 1), in units of `spacing`, and writes the answers.
    #[inline]
    pub(super) fn push(&mut self, y: &[i64], step: u64, spacing: f64, out: &mut [f64]) {
        match &self.filter {
            Filter::RunningSum | Filter::RunningAverage => {
                let factor = spacing / self.filter.divisor(step);
                for ((sum, y), out) in self.sums.iter_mut().zip(y).zip(out) {
                    *sum += i128::from(*y);
                    *out = real(*sum) * factor;
                }
            }
            Filter::Decay { decay, factor } => {
                for ((sum, y), out) in self.reals.iter_mut().zip(y).zip(out) {
                    *sum = *sum * decay + *y as f64;
                    *out = *sum * (factor * spacing);
                }
            }
            Filter::Window { factor, .. } => {
                let oldest = &mut self.ring[self.place..][..self.dim];
                for (((sum, y), oldest), out) in self.sums.iter_mut().zip(y).zip(oldest).zip(out) {
                    *sum += i128::from(*y) - i128::from(*oldest);
                    *oldest = *y;
                    *out = real(*sum) * (factor * spacing);
                }
                self.advance();
            }
            Filter::Taps(taps) => {
                self.ring[self.place..][..self.dim].copy_from_slice(y);
                let places = taps.len();
                let newest = self.place / self.dim;
                for (c, out) in out.iter_mut().enumerate() {
                    // From the newest backwards, around the ring.
                    let (recent, older) = taps.split_at(newest + 1);
                    let near =
                        recent.iter().enumerate().map(|(j, h)| h * self.ring[(newest - j) * self.dim + c] as f64);
                    let far = older.iter().enumerate();
                    let far = far.map(|(j, h)| h * self.ring[(places - 1 - j) * self.dim + c] as f64);
                    *out = (near.sum::<f64>() + far.sum::<f64>()) * spacing;
                }
                self.advance();
            }
        }
    }

    fn advance(&mut self) {
        self.place += self.dim;
        if self.place == self.ring.len() {
            self.place = 0;
        }
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.wide(&self.sums);
        out.reals(&self.reals);
        out.integers(&self.ring);
        out.u64(self.place as u64);
    }

    pub(super) fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        replace(&mut self.sums, input.wide()?)?;
        replace(&mut self.reals, input.reals()?)?;
        replace(&mut self.ring, input.integers()?)?;
        let place = usize::try_from(input.u64()?).map_err(|_| corrupt())?;
        if place != 0 && (place >= self.ring.len() || !place.is_multiple_of(self.dim)) {
            return Err(corrupt());
        }
        self.place = place;
        Ok(())
    }

    /// Bytes that the filter keeps.
    pub(super) fn bytes(&self) -> usize {
        16 * self.sums.len() + 8 * (self.reals.len() + self.ring.len())
    }
}

/// The nearest double; the conversion of 128 bits takes longer than all else.
#[inline]
fn real(value: i128) -> f64 {
    i64::try_from(value).map_or(value as f64, |value| value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state whose place is beyond the ring, or between two steps, is refused, not read beyond its end.
    #[test]
    fn places_that_are_none_are_refused() {
        let filter = Filter::Window { window: 3, factor: 1.0 };
        let mut state = FilterState::new(&filter, 2);
        let mut out = [0.0; 2];
        state.push(&[5, 7], 1, 1.0, &mut out);
        for (place, sound) in [(0, true), (2, true), (4, true), (1, false), (3, false), (6, false), (usize::MAX, false)]
        {
            let mut saved = Writer::default();
            FilterState { place, ..state.clone() }.save(&mut saved);
            let mut other = FilterState::new(&filter, 2);
            assert_eq!(other.load(&mut Reader(saved.as_slice())).is_ok(), sound, "{place}");
        }
    }
}
