//! The step machine: items in, noise on, answers out, once for every step.

use super::filter::FilterState;
use super::plan::StreamPlan;
use super::process::Process;
use super::state::{Reader, Writer, replace};
use crate::door::StreamDoor;
use crate::door::{Key, NoiseSource};
use crate::error::Error;
use crate::owner::Owner;
use crate::sealing::{seal, unseal};
use std::sync::Arc;
use zeroize::Zeroize;

/// Most coordinates of an item.
const MOST_DIM: usize = 1 << 28;

/// Items as they arrive: one row of `dim` numbers a step.
#[derive(Debug, Clone, Copy)]
pub enum Items<'a> {
    /// Integers.
    Integers(&'a [i64]),
    /// Real numbers.
    Reals(&'a [f64]),
}

impl Items<'_> {
    /// Numbers, of all steps and coordinates.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Reals(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An open stream: one key, one position.
///
/// It cannot be copied, refuses to work in another process than the one that opened it, and wipes its key and noise
/// when closed or dropped.
pub struct Stream {
    plan: Arc<StreamPlan>,
    door: StreamDoor,
    dim: usize,
    step: u64,
    process: Box<dyn Process>,
    filter: FilterState,
    source: NoiseSource,
    owner: Owner,
    closed: bool,
    row: Vec<i64>,
    /// The answers published last.
    answers: Vec<f64>,
}

impl Stream {
    /// Opens a stream under a fresh key.
    ///
    /// # Errors
    /// For a bad `dim`, or if the operating system gives no randomness.
    pub fn open(plan: Arc<StreamPlan>, door: StreamDoor, dim: usize) -> Result<Self, Error> {
        Self::open_with(plan, door, dim, Key::from_entropy()?)
    }

    /// As [`Self::open`] under a known key: for tests and tutorials, not private.
    ///
    /// # Errors
    /// For a bad `dim`.
    pub fn open_with(plan: Arc<StreamPlan>, door: StreamDoor, dim: usize, key: Key) -> Result<Self, Error> {
        // Sample numbers stay below 2^63.
        let samples = plan.strategy().samples(plan.steps()).saturating_mul(dim as u64 + 1);
        if dim == 0 || dim > MOST_DIM || samples >= 1 << 63 {
            return Err(Error::invalid("dim", "must be from 1 to 2^28, and fewer for very many steps"));
        }
        if door.common().is_some_and(|(_, all)| all != dim as u64) {
            return Err(Error::invalid("dim", "must be that of the common noise"));
        }
        let process = plan.strategy().process(dim, door.quarter_units());
        let filter = FilterState::new(&plan.recipe().filter, dim);
        let source = door.source(key);
        let owner = Owner::current();
        Ok(Self {
            plan,
            door,
            dim,
            step: 0,
            process,
            filter,
            source,
            owner,
            closed: false,
            row: vec![0; dim],
            answers: vec![0.0; dim],
        })
    }

    /// Steps published so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Coordinates of an item.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether the stream was closed.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The answers published last; zeros before the first step.
    pub fn answers(&self) -> &[f64] {
        &self.answers
    }

    /// Lattice and noise.
    pub fn door(&self) -> &StreamDoor {
        &self.door
    }

    pub(super) fn plan(&self) -> &StreamPlan {
        &self.plan
    }

    /// Refuses a batch that cannot be published, before anything happens; returns its steps.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn check(&self, items: Items<'_>) -> Result<usize, Error> {
        self.usable()?;
        let steps = items.len() / self.dim;
        Error::check_len("item", steps.max(1) * self.dim, items.len())?;
        if let Items::Reals(values) = items
            && values.iter().any(|v| !v.is_finite())
        {
            return Err(Error::invalid("item", "must be finite numbers"));
        }
        let left = self.plan.steps() - self.step;
        if steps as u64 > left {
            return Err(Error::Horizon { left });
        }
        Ok(steps)
    }

    /// Publishes a batch: writes `dim` answers a step, and the lattice increments they are made of, if wanted.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, for the wrong number of entries, entries that are not
    /// finite, or more steps than are left; then nothing has changed.
    pub fn update(&mut self, items: Items<'_>, values: &mut [f64], units: Option<&mut [i64]>) -> Result<(), Error> {
        let steps = self.check(items)?;
        Error::check_len("values", steps * self.dim, values.len())?;
        if let Some(units) = &units {
            Error::check_len("units", steps * self.dim, units.len())?;
        }
        let door = self.door;
        match items {
            Items::Integers(items) => self.publish(items, |x| door.integer(x), values, units),
            Items::Reals(items) => self.publish(items, |x| door.real(x), values, units),
        }
        Ok(())
    }

    fn publish<T: Copy>(
        &mut self,
        items: &[T],
        lattice: impl Fn(T) -> i64,
        values: &mut [f64],
        units: Option<&mut [i64]>,
    ) {
        let spacing = 2f64.powi(self.door.exponent());
        let mut units = units.map(|units| units.chunks_exact_mut(self.dim));
        for (item, values) in items.chunks_exact(self.dim).zip(values.chunks_exact_mut(self.dim)) {
            self.step += 1;
            self.process.next(&mut self.source, &mut self.row);
            StreamDoor::publish(item.iter().map(|x| lattice(*x)), &mut self.row);
            self.filter.push(&self.row, self.step, spacing, values);
            if let Some(units) = units.as_mut().and_then(Iterator::next) {
                units.copy_from_slice(&self.row);
            }
        }
        if let Some(last) = values.chunks_exact(self.dim).next_back() {
            self.answers.copy_from_slice(last);
        }
    }

    /// Publishes again what was published before the state was lost: nothing leaves unless the lattice increments
    /// are equal to `published`, so other items at a released step are refused. Returns whether they were.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn replay(&mut self, items: Items<'_>, values: &mut [f64], published: &[i64]) -> Result<bool, Error> {
        let (mut process, filter, answers) = (self.process.boxed(), self.filter.clone(), self.answers.clone());
        let (step, position) = (self.step, self.source.position());
        let mut units = vec![0; published.len()];
        self.update(items, values, Some(&mut units))?;
        let equal = units == published;
        units.zeroize();
        if !equal {
            values.fill(f64::NAN);
            std::mem::swap(&mut self.process, &mut process);
            (self.filter, self.answers, self.step) = (filter, answers, step);
            self.source.seek(position);
        }
        process.wipe();
        Ok(equal)
    }

    /// Goes on to the end of steps that were published when this state was elsewhere: noise needs no items, and the
    /// filter reads what was published.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, for the wrong number of entries, or more steps than are left.
    pub fn skip(&mut self, published: &[i64]) -> Result<(), Error> {
        self.check(Items::Integers(published))?;
        let spacing = 2f64.powi(self.door.exponent());
        for published in published.chunks_exact(self.dim) {
            self.step += 1;
            self.process.next(&mut self.source, &mut self.row);
            self.filter.push(published, self.step, spacing, &mut self.answers);
        }
        self.row.as_mut_slice().zeroize();
        Ok(())
    }

    /// Takes a fresh key for all samples from here on; those that were drawn stay. Steps that left, were forgotten with
    /// what stored them, and come again then have independent noise.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or the operating system gives no randomness.
    pub fn rekey(&mut self) -> Result<(), Error> {
        self.usable()?;
        self.draw_under(Key::from_entropy()?);
        Ok(())
    }

    /// The key, sealed under another one and bound to `place`: with an earlier state and what was published since, it is
    /// a state too, and a small one.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or the operating system gives no randomness.
    pub fn sealed_key(&self, key: &[u8; 32], place: &[u8]) -> Result<Vec<u8>, Error> {
        self.usable()?;
        seal(key, place, self.source.key().bytes())
    }

    /// Takes a key that was sealed at this step for all samples from here on.
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process; [`Error::Checkpoint`] if the bytes were altered, or belong
    /// to another key or place.
    pub fn take_key(&mut self, key: &[u8; 32], place: &[u8], sealed: &[u8]) -> Result<(), Error> {
        self.usable()?;
        let mut own = unseal(key, place, sealed)?;
        let taken = Key::kept(&own).ok_or(Error::Checkpoint);
        own.zeroize();
        self.draw_under(taken?);
        Ok(())
    }

    fn draw_under(&mut self, key: Key) {
        let mut source = self.door.source(key);
        source.seek(self.source.position());
        self.source = source;
    }

    /// Bytes of the state: noise and filter.
    pub fn bytes(&self) -> usize {
        let mut state = Writer::default();
        self.process.save(&mut state);
        state.as_slice().len() + self.filter.bytes()
    }

    /// Wipes key and noise; the stream refuses everything from now on.
    pub fn close(&mut self) {
        self.closed = true;
        self.process.wipe();
        self.row.zeroize();
        self.source = self.door.source(Key::deterministic([0; 32]));
    }

    fn usable(&self) -> Result<(), Error> {
        if self.closed { Err(Error::Closed) } else { self.owner.check() }
    }

    pub(super) fn save(&self, out: &mut Writer) -> Result<(), Error> {
        self.usable()?;
        out.u64(self.step);
        out.u64(self.dim as u64);
        out.u64(self.source.position());
        out.bytes(self.source.key().bytes());
        self.process.save(out);
        self.filter.save(out);
        out.reals(&self.answers);
        Ok(())
    }

    pub(super) fn load(plan: Arc<StreamPlan>, door: StreamDoor, dim: usize, bytes: &[u8]) -> Result<Self, Error> {
        let mut input = Reader(bytes);
        let (step, saved_dim, position) = (input.u64()?, input.u64()?, input.u64()?);
        let mut key = input.bytes()?;
        let source_key = Key::kept(&key).ok_or(Error::Checkpoint)?;
        key.zeroize();
        if saved_dim != dim as u64 || step > plan.steps() {
            return Err(Error::Checkpoint);
        }
        let mut stream = Self::open_with(plan, door, dim, source_key)?;
        stream.process.load(&mut input)?;
        if stream.process.step().is_some_and(|own| own != step) {
            return Err(Error::Checkpoint);
        }
        stream.filter.load(&mut input)?;
        replace(&mut stream.answers, input.reals()?)?;
        if !input.0.is_empty() {
            return Err(Error::Checkpoint);
        }
        stream.step = step;
        stream.source.seek(position);
        Ok(stream)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.process.wipe();
        self.row.zeroize();
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("step", &self.step).finish_non_exhaustive()
    }
}
