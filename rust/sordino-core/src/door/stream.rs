//! `measure` for streams: items leave one step at a time, each with noise that remembers the past.
//!
//! A stream publishes `y_t = x_t + v_t` on the lattice, `v_t` a fixed integer function of exact noise drawn so
//! far: in feedback form `v_t = k_t − P_t`, `k_t = round(σ'Z_t)`, `P_t` made of `v_s = y_s − x_s`, `s < t`.
//!
//! **Privacy.** Given `y_<t`, the next output is the rounding of `N(x_t − P_t, σ'_t²)`: the function `P_t` of
//! what was published and of the items. On neighbouring streams, for the same outputs, the means differ by
//! `(Cδ)_t + e_t`, `|e_t|` at most the rounding of `P_t`. So the squared shifts over the standard deviations sum to
//! at most `(Δ‖C‖ + ‖e‖)²/σ²` on every path, and adaptive composition of Gaussians gives the Gaussian guarantee
//! for adaptively chosen streams too. Trees publish integer combinations of measured nodes: post-processing.
//!
//! **Common noise** (`strategy/common.rs`): the row of a step is `R + Q·1`, `Q` one more sample, and every coordinate keeps
//! its own `P_t`. Under a shift of the items by `v` a later step is shifted by `C_{t't}v + e`, of which `Q` takes the nearest
//! multiple of the lattice: half a unit more at most, in every step.
//!
//! Laplace noise of whole numbers is discrete, on the lattice of the items (`measure.rs`): every node that a mechanism of
//! Laplace noise measures is a sum of items with signs.

use super::measure::{MIN_QUARTER_UNITS, ROUNDING_SHARE, Sensitivity, floor_log2};
use super::random::{Geometric, Key, MAX_QUARTER_UNITS, NoiseLaw, NoiseSource, SourceLaw, Steps};
use crate::domain::Domain;
use crate::error::Error;
use crate::lattice::{MAGNITUDE_LIMIT, OUTPUT_LIMIT};
use crate::upper::Upper;

/// A fitted lattice and noise for a stream. Only [`StreamDoor::fit`] makes one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamDoor {
    grid: i16,
    quarter_units: u64,
    sensitivity: Sensitivity,
    domain: Domain,
    law: NoiseLaw,
    /// Of discrete noise: its size on the steps of the domain, and the scale of Laplace noise of the same privacy.
    discrete: Option<(Geometric, f64)>,
    common: Option<(f64, u64)>,
}

/// What neighbouring streams differ by, as the strategy says: at noise of scale 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamShift {
    /// `Δ‖C‖`, for items that change a coordinate by at most 1, or vectors of any direction.
    pub ideal: Upper,
    /// Of vectors: what rounding them to steps of the domain adds, in these steps. Of whole coordinates the door knows.
    pub rounded: Option<Upper>,
    /// `√κ‖e‖` in lattice units: what rounding the fed back noise adds.
    pub rounding: Upper,
    /// Largest noise of a step over the noise of scale 1.
    pub largest_scale: f64,
    /// Noise that all coordinates of a step have in common, over that of each; and how many there are.
    pub common: Option<(f64, u64)>,
}

impl StreamDoor {
    /// Chooses the largest lattice spacing at which rounding costs at most 1e-6 of the sensitivity and noise
    /// has at least 2^20 units; integers get a spacing that divides 1.
    ///
    /// `noise_ratio`: noise (Gaussian standard deviation, Laplace scale) over sensitivity.
    ///
    /// # Errors
    /// If magnitudes or the noise do not fit the lattice.
    pub fn fit(shift: StreamShift, domain: Domain, law: NoiseLaw, noise_ratio: f64) -> Result<Self, Error> {
        if !noise_ratio.is_finite() || noise_ratio <= 0.0 {
            return Err(Error::invalid("noise_ratio", "must be positive and finite"));
        }
        let ideal = shift.ideal.scaled(domain.fraction_bits() as i32);
        let gridding = shift.ideal * domain.steps_per_record();
        let encoding = match shift.rounded {
            Some(steps) => steps,
            None if domain.fraction_bits() == 0 => Upper::ZERO,
            None => Upper::rounded((gridding.get() - ideal.get()).max(0.0), 2),
        };
        let max_abs = domain.max_steps() as f64;
        let base = ideal.get();
        let mut grid = floor_log2(noise_ratio * base * 4.0 / MIN_QUARTER_UNITS).min(0);
        if shift.rounding > Upper::ZERO {
            grid = grid.min(floor_log2(ROUNDING_SHARE * base / shift.rounding.get()));
        }
        let largest = shift.largest_scale.max(1.0);
        let too_fine = |grid: i32| {
            noise_ratio * (ideal + encoding).get() * largest * 2f64.powi(-grid) > MAX_QUARTER_UNITS as f64 / 4.0 * 0.99
                || max_abs * 2f64.powi(-grid) >= MAGNITUDE_LIMIT
        };
        while too_fine(grid) && grid < 0 {
            grid += 1; // pay in rounding what the range does not allow in fineness
        }
        let sensitivity = Sensitivity { ideal, encoding, rounding: shift.rounding.scaled(grid) };
        let noise = Upper::exact(noise_ratio) * sensitivity.total();
        let quarters = noise.scaled(2 - grid).get().ceil();
        let fits = quarters * largest * (1.0 + 1e-6) + 1.0 <= MAX_QUARTER_UNITS as f64;
        if too_fine(grid) || !fits || quarters < MIN_QUARTER_UNITS / 1024.0 {
            return Err(Error::Overflow(
                "this combination of privacy, steps and max_value does not fit the lattice; declare a smaller max_value"
                    .into(),
            ));
        }
        let grid = i16::try_from(grid).map_err(|_| Error::Overflow("the lattice spacing is out of range".into()))?;
        let discrete = (law == NoiseLaw::Laplace && grid <= 0).then(|| {
            let fine = floor_log2(noise.get() * 8.0 / MAX_QUARTER_UNITS as f64);
            let quarters = noise.scaled(2 - fine).get().ceil();
            let size = Geometric::at_least(quarters as u64, fine - 2, 1)?;
            Some((size, quarters * 2f64.powi(fine - 2)))
        });
        Ok(Self {
            grid,
            quarter_units: quarters as u64,
            sensitivity,
            domain,
            law,
            discrete: discrete.flatten(),
            common: shift.common,
        })
    }

    /// Exponent of the lattice spacing, for items in steps of their domain.
    pub fn grid(&self) -> i16 {
        self.grid
    }

    /// Four times the noise of scale 1, in lattice units.
    pub fn quarter_units(&self) -> u64 {
        self.quarter_units
    }

    /// The bound that the noise covers, in steps of the domain.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// The domain that the bound assumes, and that items are clamped to.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// Noise of scale 1, in the unit of the items, common noise included; of discrete noise the scale of Laplace noise with its variance.
    pub fn noise(&self) -> f64 {
        let gain = |(size, _): (Geometric, f64)| Steps { step: 1, len: 1, size }.gain();
        self.scale() / self.discrete.map_or(1.0, gain)
            * (1.0 + self.common.map_or(0.0, |(ratio, _)| ratio * ratio)).sqrt()
    }

    /// Noise that all coordinates of a step have in common, over that of each; and how many there are.
    pub fn common(&self) -> Option<(f64, u64)> {
        self.common
    }

    /// What the privacy rests on: Gaussian standard deviation, or Laplace scale, of noise of scale 1.
    pub fn scale(&self) -> f64 {
        match self.discrete {
            Some((_, scale)) => scale * 2f64.powi(-(self.domain.fraction_bits() as i32)),
            None => self.quarter_units as f64 / 4.0 * 2f64.powi(self.exponent()),
        }
    }

    /// Step and rate of discrete noise: a step times integers with `P(k) ∝ exp(−rate·|k|)`.
    pub fn discrete(&self) -> Option<(f64, f64)> {
        self.discrete.map(|(size, _)| (2f64.powi(-(self.domain.fraction_bits() as i32)), size.rate()))
    }

    /// Exponent of the lattice spacing in the unit of the items.
    pub fn exponent(&self) -> i32 {
        i32::from(self.grid) - self.domain.fraction_bits() as i32
    }

    /// The noise of a stream under this key.
    pub(crate) fn source(&self, key: Key) -> NoiseSource {
        // `fit` keeps the noise within the tables.
        debug_assert!((1..=MAX_QUARTER_UNITS).contains(&self.quarter_units));
        let law = match self.discrete {
            Some((size, _)) => SourceLaw::Discrete { size, step: 1 << self.grid.unsigned_abs() },
            None => self.law.into(),
        };
        NoiseSource::new(key, law, 0).with_common(self.common.map(|(ratio, _)| ratio))
    }

    /// A private number clamped to the domain, on the lattice.
    ///
    /// The spacing divides one step of the domain, and [`Self::fit`] keeps the bound below 2^60 units: a shift is exact.
    #[inline]
    pub(crate) fn integer(&self, value: i64) -> i64 {
        self.domain.integer_steps(value) << self.grid.unsigned_abs()
    }

    /// As [`Self::integer`] for a real number, which must be finite.
    #[inline]
    pub(crate) fn real(&self, value: f64) -> i64 {
        self.domain.steps(value) << self.grid.unsigned_abs()
    }

    /// What a step may change a sum by, at most.
    pub(crate) fn largest_item(&self) -> i64 {
        self.domain.max_steps() as i64
    }

    /// Publishes a sum of items that were clamped one by one, with the noise of all steps: of a coordinate that is read
    /// later, what [`Self::publish`] would have made of its steps.
    #[inline]
    pub(crate) fn publish_sum(&self, sum: i64, noise: i128) -> f64 {
        let published = (i128::from(sum) << self.grid.unsigned_abs()).saturating_add(noise);
        published as f64 * 2f64.powi(self.exponent())
    }

    /// Publishes one step: `row` comes with the noise and leaves with the published lattice integers.
    #[inline]
    pub(crate) fn publish(items: impl Iterator<Item = i64>, row: &mut [i64]) {
        for (y, x) in row.iter_mut().zip(items) {
            *y = x.saturating_add(*y).clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT);
        }
    }
}
