//! Running sums of very many coordinates, of which few are ever looked at.
//!
//! What is released is what [`super::Stream`] would publish of all coordinates at every step: the sum of the items so
//! far plus the noise of a process of its own, whose samples are a function of the key and the coordinate. Here nothing
//! is computed before it is read: a step costs as much as its items, a read one run of the process (a few samples for a
//! tree). Which coordinates are read may depend on what was read before, not on the items.

use super::keyed::KeyedNoise;
use super::plan::StreamPlan;
use super::state::{Reader, Writer, corrupt};
use crate::door::Key;
use crate::door::StreamDoor;
use crate::error::Error;
use crate::events::check_ends;
use crate::interrupt::poll;
use crate::owner::Owner;
use crate::parallel::in_pieces;
use crate::sealing::{seal, unseal};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use zeroize::Zeroize;

/// Most coordinates whose sums are kept in a table.
const MOST_TABLE: u64 = 1 << 25;
/// Coordinates of which it is known together whether they were touched.
const BLOCK: usize = 1 << 10;
/// Most samples under one key.
const MOST_SAMPLES: u64 = 1 << 62;
/// Changes that are collected before they are added.
const AT_ONCE: usize = 1 << 12;
/// Coordinates that are read by one task.
const TASK: usize = 64;
/// Tasks between two questions whether to go on.
const TASKS: usize = 16;

/// Exact sums by coordinate.
enum Sums {
    Table(Table),
    Map(HashMap<u64, i64>),
}

/// One sum for every coordinate. Memory that was never touched stays untouched, also when the rest is wiped.
struct Table {
    sums: Vec<i64>,
    touched: Vec<bool>,
}

impl Sums {
    fn new(dim: u64) -> Self {
        match usize::try_from(dim) {
            Ok(len) if dim <= MOST_TABLE => {
                Self::Table(Table { sums: vec![0; len], touched: vec![false; len.div_ceil(BLOCK)] })
            }
            _ => Self::Map(HashMap::new()),
        }
    }

    /// Adds amounts to coordinates; nothing but the addition is in the loop, so that misses of the cache overlap.
    fn add(&mut self, changes: &[(u64, i64)]) {
        match self {
            Self::Table(table) => {
                for (coordinate, amount) in changes {
                    table.touched[*coordinate as usize / BLOCK] = true;
                    let sum = &mut table.sums[*coordinate as usize];
                    *sum = sum.saturating_add(*amount);
                }
            }
            Self::Map(sums) => {
                for (coordinate, amount) in changes {
                    let sum = sums.entry(*coordinate).or_default();
                    *sum = sum.saturating_add(*amount);
                }
            }
        }
    }

    fn get(&self, coordinate: u64) -> i64 {
        match self {
            Self::Table(table) => table.sums[coordinate as usize],
            Self::Map(sums) => sums.get(&coordinate).copied().unwrap_or(0),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Table(table) => table.touched.len() + 8 * BLOCK * table.touched.iter().filter(|t| **t).count(),
            Self::Map(sums) => 24 * sums.capacity(),
        }
    }

    fn wipe(&mut self) {
        match self {
            Self::Table(table) => {
                let blocks = table.sums.chunks_mut(BLOCK).zip(&table.touched);
                blocks.filter(|(_, touched)| **touched).for_each(|(sums, _)| sums.zeroize());
            }
            Self::Map(sums) => {
                sums.values_mut().for_each(Zeroize::zeroize);
                sums.clear();
            }
        }
    }
}

/// Makes one item of the changes of a step from `first`: what each coordinate changes by in all, clamped.
#[cold]
fn clamp(changes: &mut Vec<(u64, i64)>, first: usize, largest: i64) {
    let mut sums: BTreeMap<u64, i128> = BTreeMap::new();
    for (coordinate, amount) in changes.drain(first..) {
        *sums.entry(coordinate).or_default() += i128::from(amount);
    }
    let limit = i128::from(largest);
    changes.extend(sums.into_iter().map(|(coordinate, sum)| (coordinate, sum.clamp(-limit, limit) as i64)));
}

/// Open running sums that are read by coordinate: keys, one position.
pub struct LazyStream {
    plan: Arc<StreamPlan>,
    door: StreamDoor,
    dim: u64,
    step: u64,
    /// Steps before each key, ascending from 0, and the key.
    keys: Vec<(u64, Key)>,
    sums: Sums,
    /// Samples set aside for a coordinate.
    stride: u64,
    owner: Owner,
    closed: bool,
}

impl LazyStream {
    /// Opens sums of `dim` coordinates under a fresh key, or a known one for tests.
    ///
    /// # Errors
    /// If the plan is not of running sums, there are more coordinates and steps than one key has samples for, or the
    /// operating system gives no randomness.
    pub fn open(plan: Arc<StreamPlan>, door: StreamDoor, dim: u64, key: Option<[u8; 32]>) -> Result<Self, Error> {
        Self::under(plan, door, dim, vec![(0, Key::known_or_fresh(key)?)])
    }

    fn under(plan: Arc<StreamPlan>, door: StreamDoor, dim: u64, keys: Vec<(u64, Key)>) -> Result<Self, Error> {
        if plan.recipe().filter != super::Filter::RunningSum {
            return Err(Error::Unsupported("coordinates are read as running sums".into()));
        }
        if door.common().is_some() {
            return Err(Error::Unsupported("coordinates with noise in common are read together".into()));
        }
        let stride = plan.strategy().samples(plan.steps()).max(1);
        if dim == 0 || dim.checked_mul(stride).is_none_or(|samples| samples > MOST_SAMPLES) {
            return Err(Error::invalid("dim", "coordinates times steps must be from 1 to 2^62: declare fewer steps"));
        }
        let (sums, owner) = (Sums::new(dim), Owner::current());
        Ok(Self { plan, door, dim, step: 0, keys, sums, stride, owner, closed: false })
    }

    /// Steps so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Number of coordinates.
    pub fn dim(&self) -> u64 {
        self.dim
    }

    /// Whether the stream was closed.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Refuses steps that cannot be taken, before anything happens.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or fewer steps are left.
    pub fn check(&self, steps: u64) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        self.owner.check()?;
        let left = self.plan.steps() - self.step;
        if steps > left { Err(Error::Horizon { left }) } else { Ok(()) }
    }

    /// Takes steps of events: step `t` has the events `ends[t - 1]..ends[t]`, and `event` calls its second argument with
    /// coordinates and what they change by, in steps of the domain. What a step changes a coordinate by is clamped.
    ///
    /// # Errors
    /// As [`Self::check`]; then `event` is not called.
    #[inline]
    pub fn advance(
        &mut self,
        ends: &[usize],
        mut event: impl FnMut(usize, &mut dyn FnMut(u64, i64)),
    ) -> Result<(), Error> {
        self.check(ends.len() as u64)?;
        let largest = self.door.largest_item();
        let mut changes: Vec<(u64, i64)> = Vec::with_capacity(2 * AT_ONCE);
        let mut next = 0;
        for end in ends {
            let first = changes.len();
            let mut total = 0u64;
            for i in next..*end {
                event(i, &mut |coordinate, amount| {
                    total = total.saturating_add(amount.unsigned_abs());
                    changes.push((coordinate, amount));
                });
            }
            next = *end;
            if total > largest as u64 {
                clamp(&mut changes, first, largest);
            }
            if changes.len() >= AT_ONCE {
                self.sums.add(&changes);
                changes.clear();
            }
        }
        self.sums.add(&changes);
        changes.zeroize();
        self.step += ends.len() as u64;
        Ok(())
    }

    /// As [`Self::advance`] for events that change one coordinate each.
    ///
    /// # Errors
    /// As [`Self::check`], or if a coordinate does not exist or `ends` is not that of the events; then nothing has changed.
    pub fn advance_single(&mut self, coordinates: &[u64], amounts: &[i64], ends: &[usize]) -> Result<(), Error> {
        Error::check_len("amounts", coordinates.len(), amounts.len())?;
        check_ends(coordinates.len(), ends)?;
        if coordinates.iter().any(|c| *c >= self.dim) {
            return Err(Error::invalid("coordinates", "must be below the number of coordinates"));
        }
        self.advance(ends, |i, add| add(coordinates[i], amounts[i]))
    }

    /// The noisy sums of these coordinates after the last step; zeros before the first.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or a coordinate does not exist.
    pub fn read(&self, coordinates: &[u64], out: &mut [f64]) -> Result<(), Error> {
        self.check(0)?;
        Error::check_len("out", coordinates.len(), out.len())?;
        if coordinates.iter().any(|c| *c >= self.dim) {
            return Err(Error::invalid("coordinates", "must be below the number of coordinates"));
        }
        if self.step == 0 {
            out.fill(0.0);
            return Ok(());
        }
        let (strategy, quarters) = (self.plan.strategy(), self.door.quarter_units());
        for (coordinates, out) in coordinates.chunks(TASK * TASKS).zip(out.chunks_mut(TASK * TASKS)) {
            poll()?;
            in_pieces(out, TASK, &|first, out| {
                let mut noise = KeyedNoise::new(self.door, &self.keys);
                for (coordinate, out) in coordinates[first..].iter().zip(out) {
                    let sum = strategy.summed_noise(&mut noise, coordinate * self.stride, quarters, self.step);
                    *out = self.door.publish_sum(self.sums.get(*coordinate), sum);
                }
            });
        }
        Ok(())
    }

    /// Takes a fresh key for the samples of all steps from here on; what was published stays. Steps that left, were
    /// forgotten with what stored them, and come again then have independent noise, but for what a subtraction tree drew
    /// ahead of its step.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or the operating system gives no randomness.
    pub fn rekey(&mut self) -> Result<(), Error> {
        self.check(0)?;
        let key = Key::from_entropy()?;
        self.keys.retain(|(first, _)| *first < self.step);
        self.keys.push((self.step, key));
        Ok(())
    }

    /// The keys, sealed under a 256-bit key and bound to `place`: sums are made of the items.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or the operating system gives no randomness.
    pub fn sealed(&self, key: &[u8; 32], place: &[u8]) -> Result<Vec<u8>, Error> {
        self.check(0)?;
        let mut state = Writer::default();
        state.u64(self.dim);
        for (first, own) in &self.keys {
            state.u64(*first);
            state.bytes(own.bytes());
        }
        seal(key, place, state.as_slice())
    }

    /// A stream before its first step, under the keys that [`Self::sealed`] sealed: the same items give the same sums.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the bytes were altered, or belong to another plan, key or place.
    pub fn unsealed(
        plan: Arc<StreamPlan>,
        door: StreamDoor,
        dim: u64,
        key: &[u8; 32],
        place: &[u8],
        sealed: &[u8],
    ) -> Result<Self, Error> {
        let mut state = unseal(key, place, sealed)?;
        let loaded = Self::load(plan, door, dim, &state);
        state.zeroize();
        loaded
    }

    fn load(plan: Arc<StreamPlan>, door: StreamDoor, dim: u64, state: &[u8]) -> Result<Self, Error> {
        let mut input = Reader(state);
        if input.u64()? != dim {
            return Err(corrupt());
        }
        let mut keys: Vec<(u64, Key)> = Vec::new();
        while !input.0.is_empty() {
            let first = input.u64()?;
            let mut key = input.bytes()?;
            let own = Key::kept(&key);
            key.zeroize();
            if keys.last().map_or(first != 0, |(last, _)| first <= *last) || first > plan.steps() {
                return Err(corrupt());
            }
            keys.push((first, own.ok_or_else(corrupt)?));
        }
        if keys.is_empty() {
            return Err(corrupt());
        }
        Self::under(plan, door, dim, keys)
    }

    /// Operations of the noise that a read of one coordinate takes now.
    pub fn read_operations(&self) -> f64 {
        self.plan.read_operations(self.step)
    }

    /// Bytes of the exact sums.
    pub fn bytes(&self) -> usize {
        self.sums.bytes()
    }

    /// Wipes keys and sums; the stream refuses everything from now on.
    pub fn close(&mut self) {
        self.closed = true;
        self.keys.iter_mut().for_each(|(_, key)| key.zeroize());
        self.sums.wipe();
    }
}

impl Drop for LazyStream {
    fn drop(&mut self) {
        self.sums.wipe();
    }
}

impl std::fmt::Debug for LazyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyStream").field("step", &self.step).finish_non_exhaustive()
    }
}
