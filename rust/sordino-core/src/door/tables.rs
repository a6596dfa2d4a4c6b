//! `TableDoor`: marginal tables of records, measured one after another, and chosen by scores in between.
//!
//! **Privacy.** A record is in one cell of each table at most. A table with share `s` of the budget gets noise of scale `σ/s`
//! (Laplace: `s/σ` of epsilon for one record) or standard deviation `σ/√s` (Gaussian: `√s/σ`-GDP). A choice is the index
//! of the largest score behind exponential noise (see `select.rs`), for scores that a record moves by `Δ` at most: with
//! Laplace noise its epsilon is `s/σ`. With Gaussian noise it is `√(2s/π)/σ`, which is `√s/σ`-GDP: an `ε`-private mechanism
//! is `2Φ^{-1}(e^ε/(1+e^ε))`-GDP, and `2Φ^{-1}(e^ε/(1+e^ε)) ≤ √(π/2)·ε`, since both sides are zero at `ε = 0` and the
//! derivative of the left is largest there. Shares add up to one at most, whatever is chosen, since the meter keeps what is
//! left: epsilons, and squares of mu of steps that are chosen by what came before, add up. Scores are whole numbers, exactly.
//!
//! **Scores.** `w_S(‖x_S − μ_S‖₁ − c_S)` of a table `x_S` beside a public estimate `μ_S`, on a grid: a record moves the norm
//! by one at most, one that moves to another cell by two.

use super::measure::{Data, Measured, Sensitivity, with_input};
use super::random::{Key, MAX_QUARTER_UNITS, NoiseLaw, NoiseSource, SourceLaw};
use super::select::noisy_maximum;
use super::shares::{ShareNoise, WHOLE, spend};
use crate::domain::Domain;
use crate::error::Error;
use crate::lattice::float_to_units;
use crate::strategy::{Encoded, Encoding, Geometry, Strategy};
use crate::unit::Unit;
use crate::upper::Upper;
use zeroize::Zeroizing;

/// Estimates are rounded to this many bits after the point, and counts beyond this many are that.
const ESTIMATE_BITS: i32 = 8;
const MOST_COUNT: i64 = 1 << 40;
/// The largest weight of a score.
pub(crate) const MOST_WEIGHT: u16 = 1 << 10;

/// A fitted door for tables that are chosen one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDoor {
    noise: ShareNoise,
    /// Most that a unit changes a sum of absolute values in a table by.
    moved: u64,
    domain: Domain,
    /// Where tables begin among all counts, and the end.
    starts: Vec<usize>,
}

impl TableDoor {
    /// Fits the noise of a table that gets the whole budget, for tables that a strategy counts one after the other.
    ///
    /// `lengths`: cells of each table. `noise_ratio`: noise (Gaussian standard deviation, Laplace scale) over sensitivity.
    ///
    /// # Errors
    /// If the strategy counts others, or counts or noise do not fit the lattice.
    pub fn fit(
        strategy: &dyn Strategy,
        lengths: &[usize],
        unit: Unit,
        max_value: u64,
        noise_ratio: f64,
    ) -> Result<Self, Error> {
        let law = match strategy.geometry() {
            Geometry::L2 => NoiseLaw::Gaussian,
            Geometry::L1 => NoiseLaw::Laplace,
            _ => return Err(other()),
        };
        let domain = Domain::integral(max_value)?;
        let mut starts = vec![0_usize];
        for length in lengths {
            let end = starts[starts.len() - 1].checked_add(*length).filter(|end| *length > 0 && *end < 1 << 31);
            starts.push(end.ok_or_else(|| Error::invalid("tables", "too large, or empty"))?);
        }
        let Encoding::Exact { max_abs } = strategy.encoding(domain.max_steps())? else { return Err(other()) };
        if lengths.is_empty() || strategy.measured_len() != starts[starts.len() - 1] {
            return Err(other());
        }
        let noise = ShareNoise::fit(law, unit, noise_ratio, max_abs.min(MOST_COUNT as u64) as f64)?;
        Ok(Self { noise, moved: unit.l1(), domain, starts })
    }

    /// Exponent of the lattice that the noise is said on.
    pub fn grid(&self) -> i16 {
        self.noise.grid()
    }

    /// Four times the noise of a table that gets the whole budget, in lattice units.
    pub fn quarter_units(&self) -> u64 {
        self.noise.quarter_units()
    }

    /// What neighbours differ by in a table.
    pub fn sensitivity(&self) -> Sensitivity {
        self.noise.sensitivity()
    }

    /// Gaussian standard deviation, or Laplace scale, of a table that gets the whole budget.
    pub fn scale(&self) -> f64 {
        self.noise.scale()
    }

    /// Law of the noise.
    pub(crate) fn law(&self) -> NoiseLaw {
        self.noise.law()
    }

    /// Whether something was published on this door's lattice.
    pub(crate) fn is_lattice_of(&self, measured: &Measured) -> bool {
        measured.grid() == self.noise.lattice()
    }

    /// The epsilon of a choice that gets a share, for one unit: never more than the share allows.
    fn epsilon(&self, share: u64) -> f64 {
        let part = share as f64 / WHOLE as f64;
        // The unit is in the noise: its sensitivity over its scale is what the whole budget allows.
        let whole = self.noise.sensitivity().ideal.get() / self.scale();
        let rounded_down = 1.0 - 2f64.powi(-40);
        rounded_down
            * match self.noise.law() {
                NoiseLaw::Laplace => whole * part,
                NoiseLaw::Gaussian => whole * (2.0 * part / std::f64::consts::PI).sqrt(),
            }
    }

    /// Noise of scores with weights up to this, for a share of the budget, in quarters of their unit.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub(crate) fn choice_noise(&self, heaviest: u16, share: u64) -> Result<u64, Error> {
        let moved = Upper::integer((u128::from(heaviest) * u128::from(self.moved)) << ESTIMATE_BITS);
        let quarters = Upper::rounded(2.0 * moved.get() / self.epsilon(share), 2).scaled(2).get().ceil();
        if quarters > MAX_QUARTER_UNITS as f64 {
            return Err(Error::Overflow("the privacy is too strict for choices among so many tables".into()));
        }
        Ok(quarters as u64)
    }

    /// Publishes what `process` asks for of the tables that the strategy counts, under a fresh key or a known one (not private).
    ///
    /// # Errors
    /// If the strategy is another one, for the wrong form of input, or if the operating system gives no
    /// randomness; then nothing was published.
    pub(crate) fn measure(
        &self,
        strategy: &dyn Strategy,
        input_len: usize,
        data: Data<'_>,
        key: Option<Key>,
        process: impl FnOnce(&mut TableMeter<'_>) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let most = self.domain.max_steps();
        let cells = self.starts[self.starts.len() - 1];
        if strategy.measured_len() != cells {
            return Err(other());
        }
        let counts = with_input(self.domain, input_len, data, |input| {
            let mut counts = Zeroizing::new(vec![0; cells]);
            strategy.encode(input, most, Encoded::Exact(&mut counts))?;
            counts.iter_mut().for_each(|count| *count = (*count).clamp(0, MOST_COUNT));
            Ok(counts)
        })?;
        let key = key.map_or_else(Key::from_entropy, Ok)?;
        let source = NoiseSource::new(key, self.noise.law(), 0);
        let mut meter = TableMeter { door: self, counts, left: WHOLE, source, published: Vec::new() };
        process(&mut meter)?;
        Ok(Measured::of(meter.published, self.noise.lattice()))
    }

    /// Published numbers, as those of this door.
    pub(crate) fn as_measured(&self, units: Vec<i64>) -> Measured {
        Measured::of(units, self.noise.lattice())
    }

    /// What published units say.
    pub(crate) fn values(&self, units: &[i64]) -> Vec<f64> {
        let spacing = 2f64.powi(self.noise.lattice().into());
        units.iter().map(|unit| *unit as f64 * spacing).collect()
    }
}

/// Refuses what is of other tables.
pub(crate) fn other() -> Error {
    Error::Unsupported("this door was fitted to other tables".into())
}

/// What a choice is made by, all of it public.
#[derive(Debug)]
pub(crate) struct Scores<'a> {
    /// Of all cells of all tables.
    pub estimates: &'a [f64],
    /// Of tables.
    pub weights: &'a [u16],
    /// What noise adds to the distance from an estimate, of tables.
    pub offsets: Vec<f64>,
}

/// The private side: exact tables, and what is left of the budget.
pub(crate) struct TableMeter<'a> {
    door: &'a TableDoor,
    counts: Zeroizing<Vec<i64>>,
    left: u64,
    source: NoiseSource,
    published: Vec<i64>,
}

impl TableMeter<'_> {
    /// What is left of the budget.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Publishes a number that is public already.
    pub(crate) fn say(&mut self, number: i64) {
        self.published.push(number);
    }

    /// Publishes a table with noise, for a share of the budget.
    pub(crate) fn measure(&mut self, table: usize, share: u64) -> Result<Vec<f64>, Error> {
        spend(&mut self.left, share)?;
        let mut units = self.counts[self.door.starts[table]..self.door.starts[table + 1]].to_vec();
        self.door.noise.publish(&mut units, share, &mut self.source)?;
        self.published.extend(&units);
        Ok(self.door.values(&units))
    }

    /// Publishes the number of the table that is furthest off, but for noise, for a share of the budget.
    pub(crate) fn choose(&mut self, scores: &Scores<'_>, share: u64) -> Result<usize, Error> {
        let Scores { estimates, weights, offsets } = scores;
        let starts = &self.door.starts;
        Error::check_len("estimates", self.counts.len(), estimates.len())?;
        Error::check_len("weights", starts.len() - 1, weights.len())?;
        Error::check_len("offsets", starts.len() - 1, offsets.len())?;
        spend(&mut self.left, share)?;
        let rounded = |value: f64| float_to_units(value, -ESTIMATE_BITS).clamp(0, MOST_COUNT << ESTIMATE_BITS);
        let mut exact: Vec<i64> = Vec::with_capacity(weights.len());
        for (table, ends) in starts.windows(2).enumerate() {
            let (counts, estimates) = (&self.counts[ends[0]..ends[1]], &estimates[ends[0]..ends[1]]);
            let apart: i128 = counts
                .iter()
                .zip(estimates)
                .map(|(count, estimate)| i128::from(((count << ESTIMATE_BITS) - rounded(*estimate)).unsigned_abs()))
                .sum();
            let score = i128::from(weights[table]) * (apart - i128::from(rounded(offsets[table])));
            exact.push(score.clamp(-(1 << 60), 1 << 60) as i64);
        }
        let heaviest = weights.iter().copied().max().unwrap_or(1).max(1);
        let quarters = self.door.choice_noise(heaviest, share)?;
        let mut noise = vec![0; exact.len()];
        self.source.fill_by(SourceLaw::Continuous(NoiseLaw::Laplace), &mut noise, quarters);
        let table = noisy_maximum(&mut exact, &noise);
        self.published.push(table as i64);
        Ok(table)
    }
}
