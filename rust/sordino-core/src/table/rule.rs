//! What one user's records become: integers alone, so that every engine gets the same.

use super::amount::Amount;
use crate::error::Error;

/// `2^31 − 1`: all products of two remainders are below `2^62`.
pub const PRIME: u64 = (1 << 31) - 1;

/// Most that a sum of a user's amounts in one cell may be: more is cut.
pub(super) const MOST_SUM: u64 = 1 << 62;

/// Cells that a table has at most.
const MOST_CELLS: u32 = 1 << 26;

/// Most records of a user in a cell that are divided as they are; of more, 16 bits at a time are dropped.
const MANY: u64 = 1 << 31;

/// The remainder modulo [`PRIME`] of what is below `2^63`.
#[inline]
fn reduced(x: u64) -> u64 {
    let x = (x & PRIME) + (x >> 31);
    let x = (x & PRIME) + (x >> 31);
    if x >= PRIME { x - PRIME } else { x }
}

/// Public constants of the order in which a user's cells are kept: they must not depend on the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub(super) [u64; 6]);

impl Seed {
    /// Six constants from 1 to `2^31 − 2`.
    ///
    /// # Errors
    /// One is outside.
    pub fn new(constants: [u64; 6]) -> Result<Self, Error> {
        if constants.iter().all(|a| (1..PRIME).contains(a)) {
            Ok(Self(constants))
        } else {
            Err(Error::invalid("seed", "six constants from 1 to 2^31 - 2"))
        }
    }

    /// The number of a user: a function of its name alone.
    pub(super) fn user(&self, name: u64) -> u64 {
        let [a0, a1, ..] = self.0;
        reduced(reduced(a0 * (name & PRIME)) + reduced(a1 * ((name >> 31) & PRIME)))
    }

    /// Where a cell comes in the order of the user with number `h`: two cubic polynomials, one after the other.
    #[inline]
    pub(super) fn place(&self, h: u64, cell: u32) -> u64 {
        let [_, _, a2, a3, a4, a5] = self.0;
        let k = u64::from(cell);
        let x = reduced(h + reduced(a2 * k) + a3);
        let y = reduced(reduced(reduced(x * x) * reduced(x + a4)) + a5 * k);
        reduced(reduced(y * y) * reduced(y + a3))
    }
}

/// The bounds of what a user adds, and the order in which cells are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub(super) seed: Seed,
    /// Cells of the table.
    pub(super) cells: u32,
    /// `L`: cells of a user.
    pub(super) max_cells: u64,
    /// `c`: records of a user in a cell.
    pub(super) per_cell: u64,
    /// `K`: records of a user.
    pub(super) max_records: u64,
    /// `H`: largest amount of a record; 0 where records are only counted.
    pub(super) height: u64,
}

impl Rule {
    /// The rule with these bounds; an amount is at most `height`.
    ///
    /// # Errors
    /// A bound is 0, or so large that a product might not fit.
    pub fn new(
        seed: Seed,
        cells: u32,
        max_cells: u32,
        per_cell: u32,
        max_records: u32,
        height: u32,
    ) -> Result<Self, Error> {
        let [l, c, k, h] = [max_cells, per_cell, max_records, height].map(u64::from);
        let least = l.min(1).min(c).min(k).min(u64::from(cells));
        if least == 0 || l * c >= MANY || k >= MANY || h >= MANY || cells > MOST_CELLS {
            return Err(Error::invalid("bounds", "all at least 1; records and amounts below 2^31, at most 2^26 cells"));
        }
        Ok(Self { seed, cells, max_cells: l, per_cell: c, max_records: k, height: h })
    }

    /// Numbers of the table for each cell: one, or what is missing to the largest amount and the amount.
    pub fn channels(&self) -> usize {
        if self.height == 0 { 1 } else { 2 }
    }

    /// Keeps the `L` cells of a user that come first, in the order that they have.
    pub(super) fn prune<A: Amount>(&self, name: u64, entries: &mut Vec<(u32, A)>) {
        let most = self.max_cells as usize;
        if entries.len() <= most {
            return;
        }
        let h = self.seed.user(name);
        // Both are below 2^31: one number, in the same order.
        let place = |cell: u32| self.seed.place(h, cell) << 32 | u64::from(cell);
        let places: Vec<u64> = entries.iter().map(|&(cell, _)| place(cell)).collect();
        let mut ordered = places.clone();
        let (_, &mut last, _) = ordered.select_nth_unstable(most - 1);
        let mut places = places.into_iter();
        entries.retain(|_| places.next().is_some_and(|place| place <= last));
    }

    /// What a user adds to each of its cells, at most `L`, which may be brought into another order: `(cell, low, high)`.
    pub(super) fn add<A: Amount>(&self, name: u64, entries: &mut [(u32, A)], mut add: impl FnMut(u32, u64, u64)) {
        let total: u64 = entries.iter().map(|(_, amount)| amount.records().min(self.per_cell)).sum();
        if total == 0 {
            return;
        }
        let h = self.seed.user(name);
        let phase = reduced(h + self.seed.0[4]) % total;
        if total > self.max_records {
            entries.sort_by_cached_key(|&(cell, _)| (self.seed.place(h, cell), cell));
        }
        let share = |before: u64| (before * self.max_records + phase) / total;
        let mut before = 0;
        for &(cell, amount) in &*entries {
            let clipped = amount.records().min(self.per_cell);
            let weight = if total > self.max_records { share(before + clipped) - share(before) } else { clipped };
            before += clipped;
            let high = self.high(weight, amount, phase);
            add(cell, if self.height == 0 { weight } else { weight * self.height - high }, high);
        }
    }

    /// What so many of a user's records in a cell hold, by the average of all: from 0 to `weight·H`.
    fn high<A: Amount>(&self, weight: u64, amount: A, phase: u64) -> u64 {
        let (mut records, mut sum) = (amount.records(), amount.sum());
        if self.height == 0 || records == 0 {
            return 0;
        }
        while records >= MANY {
            (records, sum) = (records >> 16, sum >> 16);
        }
        sum = sum.min(records * self.height);
        weight * (sum / records) + (weight * (sum % records) + phase % records) / records
    }
}

#[cfg(test)]
mod tests {
    use super::{MANY, PRIME, Rule, Seed, reduced};
    use crate::table::amount::{Amount, Sum};

    /// Of more records than products take, what they hold on average is the same.
    #[test]
    fn averages_of_very_many_records() {
        let rule = Rule::new(Seed::new([1; 6]).unwrap(), 3, 2, 4, 8, 10).unwrap();
        for records in [1, 7, MANY - 1, MANY, 1 << 40, 1 << 58] {
            assert_eq!(rule.high(4, Sum::of(records, 5 * records, &rule), 0), 20);
            assert_eq!(rule.high(4, Sum::of(records, 30 * records, &rule), 0), 40, "no more than the largest amount");
        }
        assert_eq!(rule.high(4, Sum::of(0, 0, &rule), 0), 0);
    }

    #[test]
    fn remainders_beside_multiples_of_the_prime() {
        for multiple in [0, 1, 2, 3, PRIME - 1, PRIME, PRIME + 1, PRIME + 2] {
            for off in -3i64..=3 {
                let x = (multiple * PRIME).wrapping_add_signed(off);
                if x < 1 << 63 {
                    assert_eq!(reduced(x), x % PRIME, "{x}");
                }
            }
        }
        assert_eq!(reduced((1 << 63) - 1), ((1 << 63) - 1) % PRIME);
    }
}
