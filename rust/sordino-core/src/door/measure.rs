//! `measure`: clamp, encode, round to the lattice, add exact noise.
//!
//! **Privacy.** If `x ∈ g·Z` then `x + g·round(σZ/g) = g·round((x + σZ)/g)`: the published integer is a
//! post-processing of the continuous mechanism on the lattice-rounded input, so Gaussian, zero-
//! concentrated, `f`- and pure differential privacy all hold exactly, at the sensitivity of the rounded
//! encode: ideal, plus twice the encode's error, plus one grid step for every coordinate that can differ.
//!
//! **Laplace noise on exact integers** stays on their own lattices. Row `i` of `B x` is a multiple of its step `s_i`, and what
//! is published is `(B x)_i + s_i Y_i`, `Y_i` discrete Laplace with `e_i = s_i/σ`. A change of row `i` by `s_i t` changes any
//! probability by a factor of at most `exp(e_i |t|)`, so all of them by `exp(‖B v‖₁/σ)`: the privacy of Laplace noise of scale
//! `σ`, whose variance is `(sinh(e_i/2)/(e_i/2))²` times larger.

use super::random::{
    BlockNoise, BodyNoise, BoxNoise, Geometric, Key, MAX_QUARTER_UNITS, NoiseLaw, Sampler, Staircase, Steps, add_steps,
    scaled_quarters,
};
use crate::domain::Domain;
use crate::error::Error;
use crate::interrupt::poll;
use crate::lattice::{MAGNITUDE_LIMIT, add_noise, float_to_units, integer_to_units};
use crate::parallel::in_pieces;
use crate::scratch::INTEGERS;
use crate::strategy::{Codes, CommonNoise, Encoded, Encoding, Geometry, Input, Run, Strategy};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::wide_sums::WideSums;

/// Arrays longer than this are converted in parallel.
const CHUNK: usize = 1 << 16;
/// K-norm noise is drawn from bodies that fill at least this share of their ball: a second or so for a vector.
const LEAST_ACCEPTANCE: f64 = 1e-6;
/// Rounding may add this much to the sensitivity, relatively.
pub(super) const ROUNDING_SHARE: f64 = 1e-6;
/// The noise is at least this many lattice units, so that rounding it up to quarters costs nothing.
pub(super) const MIN_QUARTER_UNITS: f64 = (1u64 << 22) as f64;

/// An upper bound on how far neighbours are apart, in the strategy's norm, by cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// Of the exact strategy on the declared grid of inputs.
    pub ideal: Upper,
    /// Added by rounding real inputs to their grid and by floating-point encoding.
    pub encoding: Upper,
    /// Added by rounding to the lattice.
    pub rounding: Upper,
}

impl Sensitivity {
    /// The sum, rounded up.
    pub fn total(self) -> Upper {
        self.ideal + self.encoding + self.rounding
    }
}

/// A fitted door: the grid `2^grid` and the noise `quarter_units/4` in its units. Only [`Door::fit`] makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Door {
    grid: i16,
    quarter_units: u64,
    sensitivity: Sensitivity,
    domain: Domain,
    geometry: Geometry,
    measured_len: usize,
    /// Of discrete noise; none for noise on the grid.
    steps: Vec<Steps>,
    /// Noise of a single number, where that is better than discrete Laplace noise.
    staircase: Option<Staircase>,
}

/// Discrete Laplace noise on rows in order: `step` times integers with `P(k) ∝ exp(−rate·|k|)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiscreteRows {
    /// Step of the rows, in units of the input.
    pub step: f64,
    /// `e`.
    pub rate: f64,
    /// How many rows.
    pub len: usize,
}

/// Private input as it arrives.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// Integer cells.
    Integers(&'a [i64]),
    /// Real cells, all finite (the binding checks).
    Reals(&'a [f64]),
    /// Integers of the cells that are not zero.
    Sparse {
        /// Their places, strictly rising.
        cells: &'a [i64],
        /// Their values.
        values: &'a [i64],
    },
    /// Record codes.
    Codes(Codes<'a>),
    /// The sums of a sketch of integer cells, or of features of points.
    Sums(&'a WideSums),
}

/// What was published: lattice integers. Only the door makes these, by adding noise, or of what it published before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    units: Vec<i64>,
    grid: i16,
}

impl Measured {
    /// What another verb of the door has published.
    pub(super) fn of(units: Vec<i64>, grid: i16) -> Self {
        Self { units, grid }
    }

    /// The published integers, in units of `2^grid`.
    pub fn units(&self) -> &[i64] {
        &self.units
    }

    /// Exponent of the lattice spacing.
    pub fn grid(&self) -> i16 {
        self.grid
    }

    /// The published values.
    pub fn values(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.units.len()];
        self.values_into(&mut values);
        values
    }

    /// Writes the published values.
    pub(crate) fn values_into(&self, out: &mut [f64]) {
        let spacing = 2f64.powi(i32::from(self.grid));
        in_pieces(out, CHUNK, &|first, out| {
            for (value, k) in out.iter_mut().zip(&self.units[first..]) {
                *value = *k as f64 * spacing;
            }
        });
    }
}

/// What `f` makes of private input, clamped to its domain.
pub(super) fn with_input<R>(
    domain: Domain,
    input_len: usize,
    data: Data<'_>,
    f: impl FnOnce(Input<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut cells;
    let nonzero: Vec<usize>;
    let input = match data {
        Data::Integers(values) => {
            Error::check_len("input", input_len, values.len())?;
            cells = INTEGERS.take(values.len());
            in_pieces(&mut cells, CHUNK, &|first, cells| {
                for (cell, value) in cells.iter_mut().zip(&values[first..]) {
                    *cell = domain.integer_steps(*value);
                }
            });
            Input::Cells(&cells)
        }
        Data::Reals(values) => {
            Error::check_len("input", input_len, values.len())?;
            cells = INTEGERS.take(values.len());
            for (cell, value) in cells.iter_mut().zip(values) {
                *cell = domain.steps(*value);
            }
            Input::Cells(&cells)
        }
        Data::Sparse { cells: places, values } => {
            Error::check_len("values", places.len(), values.len())?;
            nonzero = places.iter().map(|place| usize::try_from(*place).unwrap_or(usize::MAX)).collect();
            if nonzero.windows(2).any(|pair| pair[0] >= pair[1]) || nonzero.last().is_some_and(|j| *j >= input_len) {
                return Err(Error::invalid("cells", "must be rising and below the number of cells"));
            }
            cells = INTEGERS.take(input_len);
            cells.fill(0);
            for (place, value) in nonzero.iter().zip(values) {
                cells[*place] = domain.integer_steps(*value);
            }
            Input::Sparse { cells: &cells, nonzero: &nonzero }
        }
        Data::Codes(_) if domain.fraction_bits() > 0 => {
            return Err(Error::Unsupported("records are counted in integers: declare integer cells".into()));
        }
        Data::Sums(_) if domain.fraction_bits() > 0 => {
            return Err(Error::Unsupported("a sketch has sums of integers: declare integer cells".into()));
        }
        Data::Codes(codes) => Input::Codes(codes),
        Data::Sums(sums) => Input::Sums(sums),
    };
    f(input)
}

impl Door {
    /// Chooses the largest lattice spacing whose rounding costs at most 1e-6 of the sensitivity and
    /// leaves at least 2^20 units of noise; integers get a spacing that divides 1, at no cost at all.
    ///
    /// `noise_ratio`: noise (Gaussian standard deviation, Laplace scale) over sensitivity.
    ///
    /// # Errors
    /// If magnitudes or the noise do not fit the lattice.
    pub fn fit(strategy: &dyn Strategy, unit: Unit, domain: Domain, noise_ratio: f64) -> Result<Self, Error> {
        if !noise_ratio.is_finite() || noise_ratio <= 0.0 {
            return Err(Error::invalid("noise_ratio", "must be positive and finite"));
        }
        let geometry = strategy.geometry();
        let records = strategy.sensitivity(unit)?;
        // What is below is a zero that was rounded up.
        if records.get() < f64::MIN_POSITIVE {
            return Err(Error::invalid("workload", "no record changes what is measured"));
        }
        if let Geometry::Body(body) = &geometry {
            let (polytope, exponent) = body.polytope();
            if BodyNoise::new(MIN_QUARTER_UNITS as u64, polytope, exponent)?.acceptance()? < LEAST_ACCEPTANCE {
                return Err(Error::Unsupported(
                    "exact K-norm noise would take too long: the hull of these columns fills too little of its ellipsoid"
                        .into(),
                ));
            }
        }
        let ideal = records.scaled(domain.fraction_bits() as i32);
        if matches!(geometry, Geometry::Common(_)) && domain.fraction_bits() > 0 {
            return Err(Error::Unsupported("common noise is for whole counts".into()));
        }
        let gridding = records * domain.steps_per_record();
        let gridding = Upper::rounded((gridding.get() - ideal.get()).max(0.0), 2);
        let len = strategy.measured_len();
        let (exact, encode_error, max_abs) = match strategy.encoding(domain.max_steps())? {
            Encoding::Exact { max_abs } => (true, Upper::ZERO, max_abs as f64),
            Encoding::Float { error_l2, max_abs } => {
                (false, (error_l2 + error_l2) * geometry.over_l2(len), max_abs + error_l2.get())
            }
        };
        let encoding = if domain.fraction_bits() == 0 { encode_error } else { gridding + encode_error };
        let ones = geometry.of_ones(len);
        let base = ideal.get();
        // Exact powers of two: floor(log2) by frexp-like search.
        let largest = |limit: f64| floor_log2(limit);
        let for_noise = largest(noise_ratio * base * 4.0 / MIN_QUARTER_UNITS);
        let shared = matches!(geometry, Geometry::Common(CommonNoise::Gaussian(_)));
        let mut grid =
            if exact { for_noise.min(0) } else { for_noise.min(largest(ROUNDING_SHARE * base / ones.get())) };
        if shared {
            // The lattice adds to the square of the distance.
            grid = grid.min(largest((2.0 * ROUNDING_SHARE).sqrt() * base / ones.get()));
        }
        let reach = geometry.reach();
        let too_fine = |grid: i32| {
            let noise = noise_ratio * (ideal + encoding).get() * 2f64.powi(-grid);
            noise > MAX_QUARTER_UNITS as f64 / 4.0 * 0.99
                || noise * reach >= MAGNITUDE_LIMIT
                || max_abs * 2f64.powi(-grid) >= MAGNITUDE_LIMIT
        };
        while too_fine(grid) {
            grid += 1; // pay in rounding what the range does not allow in fineness
        }
        if shared && grid > 0 {
            // There rounding would move cells by whole steps, each by itself.
            return Err(Error::Overflow(
                "the common noise does not fit the lattice; declare a smaller max_value".into(),
            ));
        }
        let rounding = if shared {
            let added = ones.scaled(grid);
            let distance = (ideal * ideal + added * added).sqrt();
            Upper::rounded((distance.get() - ideal.get()).max(0.0), 4)
        } else if exact && grid <= 0 {
            Upper::ZERO
        } else {
            ones.scaled(grid)
        };
        let sensitivity = Sensitivity { ideal, encoding, rounding };
        let noise = Upper::exact(noise_ratio) * sensitivity.total();
        let quarters = (noise.scaled(2 - grid)).get().ceil();
        if quarters > MAX_QUARTER_UNITS as f64 || quarters < MIN_QUARTER_UNITS / 1024.0 {
            return Err(Error::Overflow(
                "this combination of privacy, size and max_value does not fit the lattice; declare a smaller max_value"
                    .into(),
            ));
        }
        let grid = i16::try_from(grid).map_err(|_| Error::Overflow("the lattice spacing is out of range".into()))?;
        let door = Self {
            grid,
            quarter_units: quarters as u64,
            sensitivity,
            domain,
            geometry,
            measured_len: len,
            steps: Vec::new(),
            staircase: None,
        };
        Ok(match door.geometry {
            Geometry::L1 if exact => door.on_steps(&strategy.steps(), noise).on_stairs(noise_ratio),
            Geometry::Common(CommonNoise::Gaussian(ratio)) => {
                Sampler::new(NoiseLaw::Gaussian, scaled_quarters(door.quarter_units, ratio))?;
                door
            }
            Geometry::Common(CommonNoise::Laplace(ratio)) => {
                let door = door.on_steps(&strategy.steps(), noise);
                door.with_common(ratio).ok_or_else(|| Error::Overflow("the common noise is out of range".into()))?
            }
            _ => door,
        })
    }

    /// With the size of the common noise in the last run: its rate is so many times that of a cell, or less.
    fn with_common(mut self, ratio: u32) -> Option<Self> {
        let size = Geometric::at_least(self.quarter_units, i32::from(self.grid) - 2, u64::from(ratio))?;
        self.steps.last_mut()?.size = size;
        Some(self)
    }

    /// Adds noise of its own to every coordinate, and one sample to all of them.
    fn add_common(&self, noise: CommonNoise, units: &mut [i64], key: &Key) -> Result<(), Error> {
        let common = match (noise, self.steps.as_slice()) {
            (CommonNoise::Gaussian(ratio), _) => {
                let (own, all) = (self.quarter_units, scaled_quarters(self.quarter_units, ratio));
                Sampler::new(NoiseLaw::Gaussian, own)?.add(units, key)?;
                Sampler::new(NoiseLaw::Gaussian, all)?.single(key)
            }
            (CommonNoise::Laplace(_), [own, all]) => {
                add_steps(&[*own], units, key)?;
                all.single(key)
            }
            _ => return Err(Error::Unsupported("this door was fitted to another strategy".into())),
        };
        let add = |chunk: &mut [i64]| chunk.iter_mut().for_each(|unit| *unit = add_noise(*unit, common));
        if units.len() <= CHUNK {
            add(units);
        } else {
            in_pieces(units, CHUNK, &|_, units| add(units));
        }
        Ok(())
    }

    /// With discrete noise on the rows' own lattices, where that fits: the grid then only says how large `noise` is.
    fn on_steps(self, runs: &[Run], noise: Upper) -> Self {
        // In units of one larger noise would be clamped: the grid is coarser. A sample is beyond 64 times with e^-64.
        if noise.get() * 64.0 > MAGNITUDE_LIMIT {
            return self;
        }
        let grid = floor_log2(noise.get() * 8.0 / MAX_QUARTER_UNITS as f64);
        let quarter_units = noise.scaled(2 - grid).get().ceil() as u64;
        let on_lattice = |run: &Run| {
            let size = Geometric::at_least(quarter_units, grid - 2, run.step)?;
            Some(Steps { step: i64::try_from(run.step).ok()?, len: run.len, size })
        };
        let steps: Option<Vec<Steps>> = runs.iter().map(on_lattice).collect();
        match (steps, i16::try_from(grid)) {
            (Some(steps), Ok(grid)) if !steps.is_empty() => Self { grid, quarter_units, steps, ..self },
            _ => self,
        }
    }

    /// With staircase noise where a single number is measured.
    fn on_stairs(self, noise_ratio: f64) -> Self {
        let [Steps { step, len: 1, .. }] = self.steps[..] else { return self };
        // What a neighbour moves is a whole number of steps.
        let width = (self.sensitivity.total().get() / step as f64 * (1.0 + f64::EPSILON)).floor();
        let exponent = floor_log2(noise_ratio * 8.0 / MAX_QUARTER_UNITS as f64) - 2;
        let numerator = (noise_ratio * 2f64.powi(-exponent)).ceil() as u64;
        let staircase =
            Geometric::at_least(numerator, exponent, 1).and_then(|size| Staircase::of(step, size, width as u64));
        Self { staircase, ..self }
    }

    /// Staircase noise of a single number: steps of the input, privacy loss, width and first step.
    pub fn staircase(&self) -> Option<(f64, f64, u64, u64)> {
        let (step, rate, width, first) = self.staircase?.parts();
        Some((step as f64 * 2f64.powi(-(self.domain.fraction_bits() as i32)), rate, width, first))
    }

    /// The strategy as it is answered under this door's noise: another one where rows have noise of different sizes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if they differ by more than double precision holds.
    pub fn refined(&self, strategy: &dyn Strategy) -> Result<Option<Box<dyn Strategy>>, Error> {
        let gains: Vec<f64> = self.steps.iter().map(Steps::gain).collect();
        let factors: Vec<f64> = gains.iter().map(|gain| gain / gains[0]).collect();
        if factors.iter().all(|factor| *factor == 1.0) {
            return Ok(None);
        }
        let uneven = || Error::Unsupported("the noises of the rows differ by more than double precision holds".into());
        strategy.refined(&factors).map(Some).ok_or_else(uneven)
    }

    /// Discrete noise, run by run of rows; none for noise on the grid.
    pub fn discrete(&self) -> Vec<DiscreteRows> {
        let unit = 2f64.powi(-(self.domain.fraction_bits() as i32));
        let rows =
            |steps: &Steps| DiscreteRows { step: steps.step as f64 * unit, rate: steps.size.rate(), len: steps.len };
        self.steps.iter().map(rows).collect()
    }

    /// Exponent of the lattice spacing, for inputs in steps of their domain.
    pub fn grid(&self) -> i16 {
        self.grid
    }

    /// Four times the noise (Gaussian standard deviation, Laplace scale) in lattice units.
    pub fn quarter_units(&self) -> u64 {
        self.quarter_units
    }

    /// The bound that the noise covers, in steps of the domain.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// The domain that the bound assumes, and that inputs are clamped to.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// Publishes `strategy·x + noise` under a fresh key.
    ///
    /// # Errors
    /// For the wrong form or length of input, or if the operating system gives no randomness; then
    /// nothing was published.
    pub fn measure(&self, strategy: &dyn Strategy, input_len: usize, data: Data<'_>) -> Result<Measured, Error> {
        self.measure_with(strategy, input_len, data, &Key::from_entropy()?)
    }

    /// As [`Self::measure`] under a known key: for tests and tutorials, not private.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn measure_with(
        &self,
        strategy: &dyn Strategy,
        input_len: usize,
        data: Data<'_>,
        key: &Key,
    ) -> Result<Measured, Error> {
        if strategy.measured_len() != self.measured_len || strategy.geometry() != self.geometry {
            return Err(Error::Unsupported("this door was fitted to another strategy".into()));
        }
        with_input(self.domain, input_len, data, |input| self.publish(strategy, input, key))
    }

    /// Encodes, rounds, adds noise.
    fn publish(&self, strategy: &dyn Strategy, input: Input<'_>, key: &Key) -> Result<Measured, Error> {
        let domain = self.domain;
        poll()?;
        let grid = i32::from(self.lattice());
        let mut units = vec![0i64; strategy.measured_len()];
        match strategy.encoding(domain.max_steps())? {
            Encoding::Exact { .. } => {
                strategy.encode(input, domain.max_steps(), Encoded::Exact(&mut units))?;
                if grid != 0 {
                    in_pieces(&mut units, CHUNK, &|_, units| {
                        for unit in units {
                            *unit = integer_to_units(*unit, grid);
                        }
                    });
                }
            }
            Encoding::Float { .. } => {
                let mut values = vec![0.0; units.len()];
                strategy.encode(input, domain.max_steps(), Encoded::Float(&mut values))?;
                units.iter_mut().zip(&values).for_each(|(k, v)| *k = float_to_units(*v, grid));
            }
        }
        poll()?;
        match &self.geometry {
            Geometry::L2 => Sampler::new(NoiseLaw::Gaussian, self.quarter_units)?.add(&mut units, key)?,
            Geometry::Common(noise) => self.add_common(*noise, &mut units, key)?,
            Geometry::L1 => match self.staircase {
                Some(staircase) => units[0] = add_noise(units[0], staircase.sample(key)),
                None if self.steps.is_empty() => {
                    Sampler::new(NoiseLaw::Laplace, self.quarter_units)?.add(&mut units, key)?;
                }
                None => add_steps(&self.steps, &mut units, key)?,
            },
            Geometry::Blocks(blocks) => BlockNoise::new(self.quarter_units)?.add(&mut units, blocks, key),
            Geometry::Boxes(boxes) => BoxNoise::new(self.quarter_units)?.add(&mut units, boxes, key),
            Geometry::Body(body) => {
                let (polytope, exponent) = body.polytope();
                BodyNoise::new(self.quarter_units, polytope, exponent)?.add(&mut units, key);
            }
        }
        Ok(Measured { units, grid: self.published_grid() })
    }

    /// Exponent of the spacing of what is published, for inputs in steps of their domain.
    fn lattice(&self) -> i16 {
        if self.steps.is_empty() { self.grid } else { 0 }
    }

    /// The same for inputs as they come: a step of the domain is `2^-fraction_bits`.
    fn published_grid(&self) -> i16 {
        self.lattice() - self.domain.fraction_bits() as i16
    }

    /// What this door published before, from a file: it is as public as the file, whatever stands there.
    ///
    /// # Errors
    /// Another number of units than the strategy measures.
    pub fn published(&self, units: Vec<i64>) -> Result<Measured, Error> {
        Error::check_len("what was published", self.measured_len, units.len())?;
        Ok(Measured { units, grid: self.published_grid() })
    }

    /// Noise on a measured coordinate: Gaussian standard deviation, Laplace scale. Of discrete noise the scale of Laplace
    /// noise with the variance of the first row, in whose units [`Self::refined`] strategies say variances.
    pub fn noise(&self) -> f64 {
        if let Some((step, ..)) = self.staircase() {
            return step * self.staircase.map_or(0.0, |noise| (0.5 * noise.variance()).sqrt());
        }
        self.scale() / self.steps.first().map_or(1.0, Steps::gain)
    }

    /// What the privacy rests on: Gaussian standard deviation, or Laplace scale.
    pub fn scale(&self) -> f64 {
        self.quarter_units as f64 / 4.0 * 2f64.powi(i32::from(self.grid) - self.domain.fraction_bits() as i32)
    }
}

/// `floor(log2(value))` for positive finite `value`.
pub(super) fn floor_log2(value: f64) -> i32 {
    let guess = value.log2().floor() as i32;
    (guess - 1..=guess + 1).rev().find(|e| 2f64.powi(*e) <= value).unwrap_or(guess - 1)
}
