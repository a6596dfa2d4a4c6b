//! Noise for shares of one budget: what doors have in common that measure one thing after another.

use super::measure::{MIN_QUARTER_UNITS, Sensitivity, floor_log2};
use super::random::{Geometric, MAX_QUARTER_UNITS, NoiseLaw, NoiseSource, SourceLaw};
use crate::error::Error;
use crate::lattice::{MAGNITUDE_LIMIT, add_noise, integer_to_units};
use crate::unit::Unit;
use crate::upper::Upper;

/// A whole budget, in shares: of epsilon for Laplace noise, of squares of the noise multiplier for Gaussian noise.
pub(crate) const WHOLE: u64 = 1 << 40;
/// No share is smaller.
pub(crate) const LEAST_SHARE: u64 = WHOLE >> 20;

/// The noise of whole counts for the whole budget, and so for any share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShareNoise {
    law: NoiseLaw,
    grid: i16,
    quarter_units: u64,
    sensitivity: Upper,
}

impl ShareNoise {
    /// Fits the noise for counts up to `max_abs`, of which a record is in one at a time.
    ///
    /// `noise_ratio`: noise (Gaussian standard deviation, Laplace scale) over sensitivity.
    pub(super) fn fit(law: NoiseLaw, unit: Unit, noise_ratio: f64, max_abs: f64) -> Result<Self, Error> {
        if !noise_ratio.is_finite() || noise_ratio <= 0.0 {
            return Err(Error::invalid("noise_ratio", "must be positive and finite"));
        }
        let two = Upper::exact(2.0);
        let sensitivity = unit.from_columns(Upper::exact(1.0), || match law {
            NoiseLaw::Gaussian => two.sqrt(),
            NoiseLaw::Laplace => two,
        });
        let noise = Upper::exact(noise_ratio) * sensitivity;
        let fits = |grid: i32| max_abs * 2f64.powi(-grid) < MAGNITUDE_LIMIT;
        let grid = match law {
            // Whole counts are published; the grid says how large the noise is.
            NoiseLaw::Laplace => floor_log2(noise.get() * 8.0 / MAX_QUARTER_UNITS as f64),
            NoiseLaw::Gaussian => {
                let wanted = floor_log2(noise.get() * 4.0 / MIN_QUARTER_UNITS).min(0);
                (wanted..0).find(|grid| fits(*grid)).unwrap_or(0)
            }
        };
        let refused = || {
            let why =
                "this combination of privacy, size and max_value does not fit the lattice; declare a smaller max_value";
            Error::Overflow(why.into())
        };
        let quarters = noise.scaled(2 - grid).get().ceil();
        let published = if law == NoiseLaw::Laplace { 0 } else { grid };
        if !fits(published) || quarters > MAX_QUARTER_UNITS as f64 || quarters < MIN_QUARTER_UNITS / 1024.0 {
            return Err(refused());
        }
        let grid = i16::try_from(grid).map_err(|_| refused())?;
        let fitted = Self { law, grid, quarter_units: quarters as u64, sensitivity };
        // What the smallest share asks for can be drawn.
        fitted.of(LEAST_SHARE).ok_or_else(refused)?;
        Ok(fitted)
    }

    pub(super) fn law(&self) -> NoiseLaw {
        self.law
    }

    pub(super) fn grid(&self) -> i16 {
        self.grid
    }

    pub(super) fn quarter_units(&self) -> u64 {
        self.quarter_units
    }

    pub(super) fn sensitivity(&self) -> Sensitivity {
        Sensitivity { ideal: self.sensitivity, encoding: Upper::ZERO, rounding: Upper::ZERO }
    }

    /// Gaussian standard deviation, or Laplace scale, for the whole budget.
    pub(super) fn scale(&self) -> f64 {
        self.quarter_units as f64 * 2f64.powi(i32::from(self.grid) - 2)
    }

    /// Exponent of the spacing of what is published.
    pub(super) fn lattice(&self) -> i16 {
        if self.law == NoiseLaw::Laplace { 0 } else { self.grid }
    }

    /// Law and size of the noise for a share; none if it cannot be drawn.
    pub(super) fn of(&self, share: u64) -> Option<(SourceLaw, u64)> {
        match self.law {
            NoiseLaw::Gaussian => {
                let factor = Upper::rounded(WHOLE as f64 / share as f64, 1).sqrt();
                let quarters = (factor * Upper::exact(self.quarter_units as f64)).get().ceil();
                (quarters <= MAX_QUARTER_UNITS as f64).then_some((self.law.into(), quarters as u64))
            }
            NoiseLaw::Laplace => {
                let exponent = i32::from(self.grid) - 2 + WHOLE.ilog2() as i32;
                let size = Geometric::at_least(self.quarter_units, exponent, share)?;
                Some((SourceLaw::Discrete { size, step: 1 }, 1))
            }
        }
    }

    /// Publishes counts, in units of the lattice, for a share.
    pub(super) fn publish(&self, counts: &mut [i64], share: u64, source: &mut NoiseSource) -> Result<(), Error> {
        let (law, quarter_units) = self.of(share).ok_or_else(|| Error::Overflow("a share is too small".into()))?;
        let mut noise = vec![0; counts.len()];
        source.fill_by(law, &mut noise, quarter_units);
        for (count, noise) in counts.iter_mut().zip(noise) {
            *count = add_noise(integer_to_units(*count, self.lattice().into()), noise);
        }
        Ok(())
    }
}

/// Takes a share of what is left.
pub(super) fn spend(left: &mut u64, share: u64) -> Result<(), Error> {
    if share > *left || share < LEAST_SHARE {
        return Err(Error::Unsupported("no such share of the budget is left".into()));
    }
    *left -= share;
    Ok(())
}

/// Variance of whole counts that were published with noise of this scale for the whole budget, and a share of it.
pub(crate) fn variance(law: NoiseLaw, scale: f64, share: u64) -> f64 {
    let part = share as f64 / WHOLE as f64;
    match law {
        NoiseLaw::Gaussian => scale * scale / part,
        NoiseLaw::Laplace => {
            let half = (0.5 * part / scale).min(250.0);
            0.5 / half.sinh().powi(2)
        }
    }
}
