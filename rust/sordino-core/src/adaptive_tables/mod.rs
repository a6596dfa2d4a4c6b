//! Marginal tables that are measured where an estimate is furthest from the truth.
//!
//! All tables of one attribute are measured first. Then, round by round, the table whose estimate is furthest off is chosen and
//! measured, and everything is estimated anew: by the nearest tables that agree, expecting of pairs that nobody measured what a
//! forest of the measured ones says. Once a table says little more than its noise, later ones get more of the budget. Under
//! Gaussian noise a last part of it levels what was measured. (The loop is that of `AIM`, `arXiv:2201.12677`.)
//! [`crate::door::TableDoor`] measures and chooses, and sees to it that no more than the budget is spent; what was published says
//! which tables were chosen, and with which shares.

mod forest;
mod known;
mod rule;
#[cfg(test)]
mod tests;

use crate::door::{Data, Key, LEAST_SHARE, MOST_WEIGHT, Measured, Scores, TableDoor, TableMeter, WHOLE, other};
use crate::error::Error;
use crate::estimate::{NearestTables, Residuals};
use crate::interrupt::poll;
use crate::strategy::Strategy;
use crate::unit::Unit;
use known::Known;
use rule::Rule;

/// Iterations of the estimate after a round, and before the first one.
const ITERATIONS: usize = 10;
const FIRST_ITERATIONS: usize = 40;
/// Of the last one its gap, over the noise, and most iterations.
const GAP: f64 = 1e-3;
const LAST_ITERATIONS: usize = 2000;
/// A table gets no more if that is less than this share of its precision.
const LITTLE: f64 = 1e-3;

/// Tables that may be measured, with all of their subsets, and which of them are wanted.
#[derive(Debug)]
pub struct Candidates {
    residuals: Residuals,
    lengths: Vec<usize>,
    singles: Vec<usize>,
    /// Weights of scores.
    weights: Vec<u16>,
    /// Of each table, `√(m a)`: how fast the error over wanted tables falls with the precision of its residuals.
    gains: Vec<f64>,
}

/// A table as it was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Number of the candidate.
    pub table: usize,
    /// Its cells with noise.
    pub values: Vec<f64>,
    /// Variance of the noise.
    pub variance: f64,
}

/// Tables that agree, none of whose cells is negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreed {
    /// Of all candidates, one after the other, and how near they are to the nearest.
    pub nearest: NearestTables,
    /// The gap over the noise.
    pub gap: f64,
}

impl Candidates {
    /// Candidates in order, with the weight of the error of each, zero where it is not wanted.
    ///
    /// # Errors
    /// Sets out of order, empty, or whose subsets are not candidates; weights that are negative, or none that is positive.
    pub fn new(levels: &[usize], sets: &[Vec<usize>], wanted: &[f64]) -> Result<Self, Error> {
        let wrong = || Error::invalid("candidates", "in order, none empty, with weights that are not negative");
        let residuals = Residuals::new(levels, sets, sets)?;
        Error::check_len("weights", sets.len(), wanted.len())?;
        let heaviest = wanted.iter().copied().fold(0.0, f64::max);
        let sound = wanted.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && heaviest > 0.0;
        if !sound || !sets.is_sorted_by(|a, b| a < b) || sets.iter().any(Vec::is_empty) {
            return Err(wrong());
        }
        // Attributes that a table has in common with wanted ones.
        let mut counts = vec![0.0; levels.len()];
        for (set, weight) in sets.iter().zip(wanted) {
            for i in set {
                counts[*i] += weight / heaviest;
            }
        }
        let common: Vec<f64> = sets.iter().map(|set| set.iter().map(|i| counts[*i]).sum()).collect();
        let most = common.iter().copied().fold(0.0, f64::max);
        let weights = common.iter().map(|c| ((c / most * f64::from(MOST_WEIGHT)).round() as u16).max(1)).collect();
        let lengths = sets.iter().map(|set| set.iter().map(|i| levels[*i]).product()).collect();
        let singles = (0..sets.len()).filter(|table| sets[*table].len() == 1).collect();
        let spread = residuals.over_outside(|table| wanted[table] / heaviest);
        let free = |set: &Vec<usize>| set.iter().map(|i| levels[*i] as f64 - 1.0).product::<f64>();
        let gains = sets.iter().zip(spread).map(|(set, a)| (free(set) * a).sqrt()).collect();
        Ok(Self { residuals, lengths, singles, weights, gains })
    }

    /// Cells of each table.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Fits a door for all candidates, which a strategy counts one after the other.
    ///
    /// # Errors
    /// As [`TableDoor::fit`], or if the noise of a choice cannot be drawn.
    pub fn door(
        &self,
        strategy: &dyn Strategy,
        unit: Unit,
        max_value: u64,
        noise_ratio: f64,
    ) -> Result<TableDoor, Error> {
        let door = TableDoor::fit(strategy, &self.lengths, unit, max_value, noise_ratio)?;
        let rule = Rule::of(&door, self.singles.len());
        let left = WHOLE - rule.single * self.singles.len() as u64;
        // Later rounds have no less.
        door.choice_noise(MOST_WEIGHT, rule::choice(rule.first_round(left)))?;
        Ok(door)
    }

    /// Publishes tables that a strategy counts, which has all candidates one after the other.
    ///
    /// # Errors
    /// As [`crate::door::Door::measure`].
    pub fn measure(
        &self,
        door: &TableDoor,
        strategy: &dyn Strategy,
        input_len: usize,
        data: Data<'_>,
        key: Option<Key>,
    ) -> Result<Measured, Error> {
        door.measure(strategy, input_len, data, key, |meter| self.look(door, meter))
    }

    /// What was published, table by table: those of one attribute first, then each behind its number and share.
    ///
    /// # Errors
    /// If it was published by another door.
    pub fn looks(&self, door: &TableDoor, measured: &Measured) -> Result<Vec<Look>, Error> {
        if !door.is_lattice_of(measured) {
            return Err(other());
        }
        let rule = Rule::of(door, self.singles.len());
        let mut rest = measured.units();
        let mut take = |count: usize| -> Result<Option<&[i64]>, Error> {
            if rest.is_empty() {
                return Ok(None);
            }
            let (taken, after) = rest.split_at_checked(count).ok_or_else(other)?;
            rest = after;
            Ok(Some(taken))
        };
        let mut looks = Vec::new();
        for table in &self.singles {
            let units = take(self.lengths[*table])?.ok_or_else(other)?;
            looks.push(Look { table: *table, values: door.values(units), variance: rule.variance(rule.single) });
        }
        while let Some(said) = take(2)? {
            let table = usize::try_from(said[0]).ok().filter(|table| *table < self.lengths.len()).ok_or_else(other)?;
            let share = u64::try_from(said[1]).ok().filter(|share| (LEAST_SHARE..=WHOLE).contains(share));
            let variance = rule.variance(share.ok_or_else(other)?);
            let units = take(self.lengths[table])?.ok_or_else(other)?;
            looks.push(Look { table, values: door.values(units), variance });
        }
        Ok(looks)
    }

    /// What this door published before, from a file: it is as public as the file, whatever stands there.
    ///
    /// # Errors
    /// If no such tables are published with so many numbers.
    pub fn published(&self, door: &TableDoor, units: Vec<i64>) -> Result<Measured, Error> {
        let measured = door.as_measured(units);
        self.looks(door, &measured)?;
        Ok(measured)
    }

    /// The tables that agree, none of whose cells is negative, nearest to what was measured.
    ///
    /// `total`: how many records there are, if that is public. `shrink`: whether measured tables are moved towards what the others
    /// say, as far as their noise asks for.
    ///
    /// # Errors
    /// If tables of one attribute are missing, for a total that is negative, or [`Error::Interrupted`].
    pub fn agreed(&self, looks: &[Look], total: Option<f64>, shrink: bool) -> Result<Agreed, Error> {
        if self.singles.iter().any(|table| looks.iter().all(|look| look.table != *table)) {
            return Err(other());
        }
        let mut known = Known::new(&self.residuals);
        for look in looks {
            known.add(look.table, &look.values, look.variance);
        }
        // Once for the forest, and once with it.
        known.estimate(FIRST_ITERATIONS)?;
        known.estimate(FIRST_ITERATIONS)?;
        let (nearest, gap) = known.nearest(total, shrink, GAP, LAST_ITERATIONS)?;
        Ok(Agreed { nearest, gap })
    }

    fn look(&self, door: &TableDoor, meter: &mut TableMeter<'_>) -> Result<(), Error> {
        let rule = Rule::of(door, self.singles.len());
        let mut known = Known::new(&self.residuals);
        for table in &self.singles {
            let values = meter.measure(*table, rule.single)?;
            known.add(*table, &values, rule.variance(rule.single));
        }
        known.estimate(FIRST_ITERATIONS)?;
        let mut measured = vec![false; self.lengths.len()];
        self.singles.iter().for_each(|table| measured[*table] = true);
        let mut round = rule.first_round(meter.left());
        loop {
            poll()?;
            let left = meter.left() - rule.kept;
            let last = left < 2 * round;
            let spent = if last { left } else { round };
            let choice = rule::choice(spent);
            let share = spent - choice;
            let noise = rule.mean_noise(share);
            let offsets = self.lengths.iter().map(|cells| noise * *cells as f64).collect();
            let scores = Scores { estimates: &known.tables, weights: &self.weights, offsets };
            let chosen = meter.choose(&scores, choice)?;
            meter.say(share as i64);
            let values = meter.measure(chosen, share)?;
            known.add(chosen, &values, rule.variance(share));
            measured[chosen] = true;
            if last {
                break;
            }
            let before = self.own(&known.tables, chosen).to_vec();
            known.estimate(ITERATIONS)?;
            let moved: f64 =
                self.own(&known.tables, chosen).iter().zip(before).map(|(new, old)| (new - old).abs()).sum();
            if moved <= noise * self.lengths[chosen] as f64 {
                round = rule.larger(round, meter.left() - rule.kept);
            }
        }
        self.level(&rule, &known, &measured, meter)
    }

    /// Measures tables again, so that the error over wanted tables becomes the least that is possible with what is left: what
    /// precision each gets is known beforehand, from earlier shares alone.
    fn level(
        &self,
        rule: &Rule,
        known: &Known<'_>,
        measured: &[bool],
        meter: &mut TableMeter<'_>,
    ) -> Result<(), Error> {
        if rule.kept == 0 {
            return Ok(());
        }
        let all = 1.0 / rule.variance(WHOLE);
        let tables: Vec<(usize, f64, f64)> = (0..measured.len())
            .filter(|table| measured[*table] && self.gains[*table] > 0.0)
            .map(|table| (table, self.gains[table], known.precisions()[table]))
            .collect();
        let room = meter.left() as f64 / WHOLE as f64 * all;
        let needs = |level: f64| tables.iter().map(|(_, gain, own)| (level * gain - own).max(0.0)).sum::<f64>();
        let (mut low, mut high) = (0.0, 1.0);
        while needs(high) < room && high < 1e300 {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if needs(middle) <= room { low = middle } else { high = middle }
        }
        for (table, gain, own) in tables {
            let more = low * gain - own;
            let share = ((more / all * WHOLE as f64) as u64).min(meter.left());
            if share >= LEAST_SHARE && more > LITTLE * low * gain {
                meter.say(table as i64);
                meter.say(share as i64);
                meter.measure(table, share)?;
            }
        }
        Ok(())
    }

    fn own<'a>(&self, tables: &'a [f64], table: usize) -> &'a [f64] {
        let start: usize = self.lengths[..table].iter().sum();
        &tables[start..start + self.lengths[table]]
    }
}
