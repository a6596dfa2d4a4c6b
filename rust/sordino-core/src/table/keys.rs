//! Which keys every user has: what a selection of unknown keys counts, again after each round.

use super::rule::Seed;
use super::sort::sort_by_bits;
use super::users::{Names, Spread, Users};
use crate::error::Error;
use crate::interrupt::poll;

/// The weight of a key alone, and the length of all weights of a user.
pub const KEY_WEIGHT: i64 = 1 << 20;

/// The keys of every user, each once: as private as the rows.
#[derive(Debug)]
pub struct KeyLists {
    names: Names,
    spread: Spread,
    /// User, then key.
    pairs: Vec<(u64, ())>,
    /// Whether they are in order, each once.
    settled: bool,
}

impl Default for KeyLists {
    fn default() -> Self {
        Self { names: Names::default(), spread: Spread::of_process(), pairs: Vec::new(), settled: true }
    }
}

/// What a user gives to each of the `t` keys that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// [`KEY_WEIGHT`].
    Each,
    /// `⌊KEY_WEIGHT/√t⌋`: all of them have a length of at most [`KEY_WEIGHT`].
    Shared,
}

impl Weighting {
    /// The weight of one of so many keys.
    pub fn of(self, keys: usize) -> i64 {
        match self {
            Self::Each => KEY_WEIGHT,
            Self::Shared => ((KEY_WEIGHT as u64).pow(2) / keys.max(1) as u64).isqrt() as i64,
        }
    }
}

impl KeyLists {
    /// Takes in rows; those of a negative key count nowhere.
    ///
    /// # Errors
    /// Another number of keys than of users, or names that are not there: nothing is taken in.
    pub fn update(&mut self, users: Users<'_>, keys: &[i32]) -> Result<(), Error> {
        Error::check_len("keys", users.len(), keys.len())?;
        if !users.are_sound() {
            return Err(Error::invalid("users", "names that are there"));
        }
        self.settled = false;
        for (row, key) in keys.iter().enumerate().filter(|(_, key)| **key >= 0) {
            let name = users.name(row);
            let user = self.names.number(name, self.spread.tag(name));
            self.pairs.push((u64::from(user) << 32 | *key as u64, ()));
        }
        Ok(())
    }

    /// The weight of every key, if of each user at most `most` of the keys that are not `taken` count: those that come
    /// first in an order by user, key and seed. `order` says what stands for each key in it; of two that are alike the
    /// lower comes first.
    ///
    /// # Errors
    /// A key that `order` and `taken` do not have; [`Error::Interrupted`].
    pub fn weights(
        &mut self,
        seed: &Seed,
        order: &[u32],
        taken: &[bool],
        most: usize,
        weighting: Weighting,
    ) -> Result<Vec<i64>, Error> {
        Error::check_len("taken", order.len(), taken.len())?;
        poll()?;
        if !self.settled {
            sort_by_bits(&mut self.pairs, 64);
            self.pairs.dedup();
            self.settled = true;
        }
        if self.pairs.iter().any(|(pair, ())| *pair as u32 as usize >= order.len()) {
            return Err(Error::invalid("order", "an entry for each key"));
        }
        let mut weights = vec![0; order.len()];
        let mut places: Vec<(u64, u32)> = Vec::new();
        for own in self.pairs.chunk_by(|(a, ()), (b, ())| a >> 32 == b >> 32) {
            let h = seed.user(self.names.name((own[0].0 >> 32) as usize));
            let keys = own.iter().map(|(pair, ())| *pair as u32).filter(|key| !taken[*key as usize]);
            places.clear();
            places.extend(keys.map(|key| (seed.place(h, order[key as usize]), key)));
            if places.len() > most {
                places.select_nth_unstable(most);
                places.truncate(most);
            }
            let weight = weighting.of(places.len());
            for (_, key) in &places {
                weights[*key as usize] += weight;
            }
        }
        Ok(weights)
    }
}
