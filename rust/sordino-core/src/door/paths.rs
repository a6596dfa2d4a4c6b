//! `PathDoor`: counts of nested boxes, measured one after another; the budget is that of a path.
//!
//! **Privacy.** A record in cell `j` changes the counts of the nodes that contain `j` by one, and no others. Given what was
//! published before, the counts of other nodes are published alike; with discrete Laplace noise of scale `σ/s` on whole
//! counts a node with share `s` changes any probability by a factor of at most `exp(s/σ)`, so what one path publishes by at
//! most `exp(1/σ)`, since its shares add up to one at most, whichever nodes were chosen by what was published before. `k`
//! records in whatever cells have `exp(k/σ)` in all. With Gaussian noise of variance `σ²/s` the squares of shifts over
//! standard deviations add up to `1/σ²` along a path, on every outcome: adaptive Gaussian measurements of that total are
//! `1/σ`-GDP, as one of them is. A record that moves has two paths: `2/σ`, and `√2/σ`.
//!
//! The meter below keeps what is left of every path in integers; nothing else says what is measured next.

use super::measure::{Data, Measured, Sensitivity, with_input};
use super::random::{Key, NoiseLaw, NoiseSource};
use super::shares::{ShareNoise, WHOLE, spend};
use crate::domain::Domain;
use crate::error::Error;
use crate::path_tree::{Axis, Grown, Growth, Region, Rule, Source, noise_square};
use crate::strategy::table;
use crate::unit::Unit;
use zeroize::Zeroizing;

/// Most cells of a table.
const MOST_CELLS: u64 = 1 << 26;

/// A fitted door for trees over a table of whole counts.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDoor {
    shape: [u32; 2],
    growth: Growth,
    noise: ShareNoise,
    domain: Domain,
}

impl PathDoor {
    /// Fits the noise of a node that gets the whole budget; cells are counts from 0 to `max_value`.
    ///
    /// `noise_ratio`: noise (Gaussian standard deviation, Laplace scale) over sensitivity.
    ///
    /// # Errors
    /// For a table without or with too many cells, or if magnitudes or the noise do not fit the lattice.
    pub fn fit(
        shape: [u32; 2],
        growth: Growth,
        law: NoiseLaw,
        unit: Unit,
        max_value: u64,
        noise_ratio: f64,
    ) -> Result<Self, Error> {
        let cells = u64::from(shape[0]) * u64::from(shape[1]);
        if cells == 0 || cells > MOST_CELLS {
            return Err(Error::invalid("cells", "must be from 1 to 2^26"));
        }
        let domain = Domain::integral(max_value)?;
        let noise = ShareNoise::fit(law, unit, noise_ratio, max_value as f64 * cells as f64)?;
        Ok(Self { shape, growth, noise, domain })
    }

    /// Exponent of the lattice that the noise is said on.
    pub fn grid(&self) -> i16 {
        self.noise.grid()
    }

    /// Four times the noise of a node that gets the whole budget, in lattice units.
    pub fn quarter_units(&self) -> u64 {
        self.noise.quarter_units()
    }

    /// What neighbours differ by along the paths.
    pub fn sensitivity(&self) -> Sensitivity {
        self.noise.sensitivity()
    }

    /// Gaussian standard deviation, or Laplace scale, of a node that gets the whole budget.
    pub fn scale(&self) -> f64 {
        self.noise.scale()
    }

    fn rule(&self) -> Rule {
        Rule { growth: self.growth, shape: self.shape, law: self.noise.law(), noise: self.scale() }
    }

    /// Publishes a tree of counts with noise, under a fresh key.
    ///
    /// # Errors
    /// For the wrong form or length of input, or if the operating system gives no randomness; then nothing was published.
    pub fn measure(&self, data: Data<'_>) -> Result<Measured, Error> {
        self.measure_with(data, Key::from_entropy()?)
    }

    /// As [`Self::measure`] under a known key: for tests and tutorials, not private.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn measure_with(&self, data: Data<'_>, key: Key) -> Result<Measured, Error> {
        let mut meter = Meter {
            door: self,
            sums: self.sums(data)?,
            regions: vec![Region::whole(self.shape)],
            left: vec![WHOLE],
            source: NoiseSource::new(key, self.noise.law(), 0),
            published: Vec::new(),
        };
        Grown::grow(&self.rule(), &mut meter)?;
        Ok(self.as_measured(meter.published))
    }

    fn as_measured(&self, units: Vec<i64>) -> Measured {
        Measured::of(units, self.noise.lattice())
    }

    /// What this door published before, from a file: it is as public as the file, whatever stands there.
    ///
    /// # Errors
    /// If no tree grows that publishes so many numbers.
    pub fn published(&self, units: Vec<i64>) -> Result<Measured, Error> {
        let measured = self.as_measured(units);
        self.grown(&measured)?;
        Ok(measured)
    }

    /// The tree that was published.
    ///
    /// # Errors
    /// If no tree grows that publishes so many numbers, or they are on another lattice.
    pub fn grown(&self, measured: &Measured) -> Result<Grown, Error> {
        let other = || Error::Unsupported("this was not published by such a tree".into());
        if measured.grid() != self.noise.lattice() {
            return Err(other());
        }
        let mut replay = Replay { units: measured.units().iter(), spacing: 2f64.powi(self.noise.lattice().into()) };
        let grown = Grown::grow(&self.rule(), &mut replay)?;
        if replay.units.next().is_some() { Err(other()) } else { Ok(grown) }
    }

    /// Mean squared error of queries by noise alone, if there are so many records that the tree grows down to every cell.
    ///
    /// # Errors
    /// If it was asked to end early.
    pub fn dense_square(&self, axes: [Axis; 2]) -> Result<f64, Error> {
        noise_square(&self.rule(), axes)
    }

    /// Sums of the cells, clamped to counts, from the first one on: row by row, without a first row and column of zeros.
    fn sums(&self, data: Data<'_>) -> Result<Zeroizing<Vec<i64>>, Error> {
        let [rows, columns] = self.shape.map(|side| side as usize);
        if !matches!(data, Data::Integers(_) | Data::Sparse { .. }) {
            return Err(Error::Unsupported("a tree of counts takes whole cells".into()));
        }
        let mut sums: Zeroizing<Vec<i64>> = with_input(self.domain, rows * columns, data, |input| {
            Ok(Zeroizing::new(table(input)?.iter().map(|cell| (*cell).max(0)).collect()))
        })?;
        for row in sums.chunks_exact_mut(columns) {
            let mut sum = 0;
            for cell in row {
                sum += *cell;
                *cell = sum;
            }
        }
        for at in columns..sums.len() {
            sums[at] += sums[at - columns];
        }
        Ok(sums)
    }
}

/// The private side: counts of regions, and what is left of every path.
struct Meter<'a> {
    door: &'a PathDoor,
    sums: Zeroizing<Vec<i64>>,
    regions: Vec<Region>,
    /// What the paths through a node have left; nothing once it was divided.
    left: Vec<u64>,
    source: NoiseSource,
    published: Vec<i64>,
}

impl Meter<'_> {
    fn count(&self, region: &Region) -> i64 {
        let columns = self.door.shape[1] as usize;
        let sum = |row: u32, column: u32| match (row as usize, column as usize) {
            (0, _) | (_, 0) => 0,
            (row, column) => self.sums[(row - 1) * columns + column - 1],
        };
        let ([top, left], [bottom, right]) = (region.first, region.end);
        sum(bottom, right) - sum(top, right) - sum(bottom, left) + sum(top, left)
    }
}

impl Source for Meter<'_> {
    fn measure(&mut self, node: usize, share: u64) -> Result<f64, Error> {
        spend(&mut self.left[node], share)?;
        let mut unit = [self.count(&self.regions[node])];
        self.door.noise.publish(&mut unit, share, &mut self.source)?;
        self.published.extend(unit);
        Ok(unit[0] as f64 * 2f64.powi(self.door.noise.lattice().into()))
    }

    fn divide(&mut self, node: usize, fan: [u32; 2]) -> Result<(), Error> {
        let left = std::mem::take(&mut self.left[node]);
        self.regions.extend(self.regions[node].parts(fan));
        self.left.resize(self.regions.len(), left);
        Ok(())
    }
}

/// What was published, in order.
struct Replay<'a> {
    units: std::slice::Iter<'a, i64>,
    spacing: f64,
}

impl Source for Replay<'_> {
    fn measure(&mut self, _: usize, _: u64) -> Result<f64, Error> {
        let unit = self.units.next();
        unit.map(|unit| *unit as f64 * self.spacing)
            .ok_or_else(|| Error::Unsupported("this was not published by such a tree".into()))
    }

    fn divide(&mut self, _: usize, _: [u32; 2]) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shares::LEAST_SHARE;
    use super::*;
    use proptest::prelude::*;

    const NOISES: [NoiseLaw; 2] = [NoiseLaw::Laplace, NoiseLaw::Gaussian];

    fn door(shape: [u32; 2], growth: Growth, law: NoiseLaw, ratio: f64) -> PathDoor {
        PathDoor::fit(shape, growth, law, Unit::add_remove(1, None).unwrap(), 1 << 20, ratio).unwrap()
    }

    fn key(seed: u8) -> Key {
        Key::deterministic([seed; 32])
    }

    fn meter(door: &PathDoor) -> Meter<'_> {
        let cells = (door.shape[0] * door.shape[1]) as usize;
        Meter {
            door,
            sums: door.sums(Data::Integers(&vec![1; cells])).unwrap(),
            regions: vec![Region::whole(door.shape)],
            left: vec![WHOLE],
            source: NoiseSource::new(key(1), door.noise.law(), 0),
            published: Vec::new(),
        }
    }

    /// No path spends more than its budget, however it is asked for.
    #[test]
    fn a_path_has_one_budget() {
        for law in NOISES {
            let door = door([1, 8], Growth::Adaptive, law, 10.0);
            let mut meter = meter(&door);
            let half = WHOLE / 2;
            meter.measure(0, half).unwrap();
            meter.divide(0, [1, 2]).unwrap();
            assert!(meter.measure(0, LEAST_SHARE).is_err(), "a node that was divided has nothing left");
            meter.measure(1, half).unwrap();
            assert!(meter.measure(1, LEAST_SHARE).is_err());
            assert!(meter.measure(2, half + 1).is_err());
            meter.measure(2, half - LEAST_SHARE).unwrap();
            meter.divide(2, [1, 4]).unwrap();
            for node in 3..7 {
                meter.measure(node, LEAST_SHARE).unwrap();
                assert!(meter.measure(node, LEAST_SHARE).is_err());
            }
            assert!(meter.measure(1, 0).is_err());
            assert_eq!(meter.published.len(), 7);
        }
    }

    /// What `door` publishes of `cells`, and the tree.
    fn grown(door: &PathDoor, cells: &[i64], seed: u8) -> (Measured, Grown) {
        let measured = door.measure_with(Data::Integers(cells), key(seed)).unwrap();
        let grown = door.grown(&measured).unwrap();
        (measured, grown)
    }

    proptest! {
        /// On every outcome the likelihoods of neighbours differ by what was promised at most; nothing else may be
        /// published than what a tree that grows again from it has measured.
        #[test]
        fn neighbours_publish_alike(
            cells in prop::collection::vec(0i64..60, 24), seed in any::<u8>(), ratio in 0.3..40.0,
            line in any::<bool>(), full in any::<bool>(), law in prop::sample::select(&NOISES[..]),
        ) {
            let shape = if line { [1, 24] } else { [4, 6] };
            let growth = if full { Growth::Full } else { Growth::Adaptive };
            let door = door(shape, growth, law, ratio);
            let (measured, tree) = grown(&door, &cells, seed);
            let readings: Vec<(Region, f64, f64)> = tree.measured().collect();
            prop_assert_eq!(readings.len(), measured.units().len());
            let count = |region: &Region, cells: &[i64]| -> i64 {
                let rows = (region.first[0]..region.end[0]).map(|i| (i * shape[1]) as usize);
                rows.map(|row| cells[row + region.first[1] as usize..row + region.end[1] as usize].iter().sum::<i64>()).sum()
            };
            for j in 0..24 {
                let mut other = cells.clone();
                other[j] += 1;
                let (mut loss, mut squares) = (0.0, 0.0);
                for (region, value, variance) in &readings {
                    let (here, there) = (count(region, &cells) as f64, count(region, &other) as f64);
                    squares += (here - there).powi(2) / variance;
                    // Of discrete Laplace noise with this variance.
                    let rate = 2.0 * (0.5 / variance).sqrt().asinh();
                    loss += rate * ((value - there).abs() - (value - here).abs());
                }
                match law {
                    NoiseLaw::Laplace => prop_assert!(loss.abs() <= (1.0 + 1e-9) / ratio, "{loss} {ratio}"),
                    NoiseLaw::Gaussian => prop_assert!(squares <= (1.0 + 1e-9) / (ratio * ratio), "{squares} {ratio}"),
                }
            }
        }

        /// Sparse and dense input are one; cells below zero are zero, those above the largest are that.
        #[test]
        fn input_comes_in_two_forms(cells in prop::collection::vec(-3i64..9, 30), seed in any::<u8>()) {
            let door = PathDoor::fit(
                [5, 6], Growth::Full, NoiseLaw::Laplace, Unit::add_remove(1, None).unwrap(), 5, 1e-3,
            ).unwrap();
            let (places, values): (Vec<i64>, Vec<i64>) =
                (0..).zip(&cells).filter(|(_, value)| **value != 0).map(|(place, value)| (place, *value)).unzip();
            let sparse = door.measure_with(Data::Sparse { cells: &places, values: &values }, key(seed)).unwrap();
            let (dense, tree) = grown(&door, &cells, seed);
            prop_assert_eq!(&sparse, &dense);
            // There is no noise left.
            let clamped: Vec<f64> = cells.iter().map(|cell| (*cell).clamp(0, 5) as f64).collect();
            for (found, expected) in tree.cells().iter().zip(clamped) {
                prop_assert!((found - expected).abs() < 1e-6);
            }
        }
    }

    /// What is drawn has the variance that is said.
    #[test]
    fn the_noise_is_as_large_as_its_share() {
        for law in NOISES {
            let door = door([1, 2], Growth::Adaptive, law, 7.0);
            let rule: Rule = door.rule();
            for share in [WHOLE, WHOLE / 3, WHOLE / 20, LEAST_SHARE] {
                let mut source = NoiseSource::new(key(3), law, 0);
                let (law, quarters) = door.noise.of(share).unwrap();
                let spacing = 2f64.powi(door.noise.lattice().into());
                let n = 20_000;
                let mut drawn = vec![0; n];
                source.fill_by(law, &mut drawn, quarters);
                let squares: f64 = drawn.iter().map(|unit| (*unit as f64 * spacing).powi(2)).sum();
                // 5 standard errors: kurtosis 6 of Laplace noise.
                let ratio = squares / n as f64 / rule.variance(share);
                assert!((ratio - 1.0).abs() < 5.0 * (5.0 / n as f64).sqrt(), "{ratio} {share}");
            }
        }
    }

    #[test]
    fn units_of_all_kinds() {
        let fit = |unit, law| PathDoor::fit([1, 4], Growth::Adaptive, law, unit, 100, 2.0).unwrap().scale() / 2.0;
        let (three, moved) = (Unit::add_remove(3, Some(1)).unwrap(), Unit::replace_one(3).unwrap());
        for (unit, law, expected) in [
            (three, NoiseLaw::Laplace, 3.0),
            (three, NoiseLaw::Gaussian, 3.0),
            (moved, NoiseLaw::Laplace, 6.0),
            (moved, NoiseLaw::Gaussian, 3.0 * 2f64.sqrt()),
        ] {
            let found = fit(unit, law);
            assert!(found >= expected && found < expected * (1.0 + 1e-6), "{found} {expected}");
        }
    }

    #[test]
    fn bad_calls_are_refused() {
        let unit = Unit::add_remove(1, None).unwrap();
        let fit = |shape, most, ratio| PathDoor::fit(shape, Growth::Adaptive, NoiseLaw::Gaussian, unit, most, ratio);
        assert!(fit([0, 4], 1, 1.0).is_err() && fit([1 << 14, 1 << 14], 1, 1.0).is_err());
        assert!(fit([1, 4], 1, 0.0).is_err() && fit([1, 4], 1, f64::NAN).is_err() && fit([1, 4], 1, 1e30).is_err());
        assert!(fit([1, 1 << 20], 1 << 53, 1.0).is_err());
        let door = fit([1, 4], 9, 1.0).unwrap();
        assert!(door.measure(Data::Integers(&[1, 2, 3])).is_err() && door.measure(Data::Reals(&[1.0; 4])).is_err());
        assert!(door.measure(Data::Sparse { cells: &[4], values: &[1] }).is_err());
        let (measured, _) = grown(&door, &[5, 0, 0, 9], 1);
        let mut units = measured.units().to_vec();
        assert_eq!(door.published(units.clone()).unwrap(), measured);
        units.push(1);
        assert!(door.published(units.clone()).is_err() && door.published(units[..1].to_vec()).is_err());
        let laplace = PathDoor::fit([1, 4], Growth::Adaptive, NoiseLaw::Laplace, unit, 9, 1.0).unwrap();
        assert!(laplace.grown(&measured).is_err());
    }
}
