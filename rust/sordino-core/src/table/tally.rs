//! What is kept of all users while rows come in.

use super::amount::{Amount, Count, Sum};
use super::part::{Part, cell_bits};
use super::reader::{Reader, write_users};
use super::rule::{Rule, Seed};
use super::users::{Kind, Name, Spread, Users, tag_of};
use crate::error::Error;
use crate::interrupt::poll;
use rayon::prelude::*;
use std::ops::Range;

/// Parts that users are spread over: the rows of one fit in a cache.
const PARTS: usize = 512;
/// Rows that are spread at once: enough that a part is worth fetching.
const BLOCK: usize = 1 << 21;
/// Fewer rows or cells are worth no threads.
const SMALL: usize = 1 << 14;
/// Rows that may wait, whatever is kept.
const WAITING: usize = 1 << 22;
/// No sum of a table is larger: far beyond all that is measured.
const MOST: u64 = 1 << 61;

const MAGIC: &[u8; 8] = b"sordtly1";

/// The records of a part of the data, as far as its table may depend on them: as private as they are.
///
/// Tallies of any parts of the data, in any order, merge to that of all.
#[derive(Debug, Clone)]
pub struct Tally {
    rule: Rule,
    kind: Option<Kind>,
    spread: Spread,
    parts: Parts,
}

#[derive(Debug, Clone)]
enum Parts {
    Counts(Vec<Part<Count>>),
    Sums(Vec<Part<Sum>>),
}

/// What is done with parts of either kind.
macro_rules! with_parts {
    ($parts:expr, $name:ident => $done:expr) => {
        match $parts {
            Parts::Counts($name) => $done,
            Parts::Sums($name) => $done,
        }
    };
}

fn fresh<A: Amount>() -> Vec<Part<A>> {
    std::iter::repeat_with(Part::default).take(PARTS).collect()
}

fn part_of(hash: u64) -> usize {
    hash as usize % PARTS
}

impl Tally {
    /// A tally without records.
    pub fn new(rule: Rule) -> Self {
        let parts = if rule.height == 0 { Parts::Counts(fresh()) } else { Parts::Sums(fresh()) };
        Self { rule, kind: None, spread: Spread::of_process(), parts }
    }

    /// The bounds and the seed.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Takes in rows; those of a negative cell count nowhere.
    ///
    /// # Errors
    /// Another number of cells or values than of users, a cell or value beyond the public ones, or names of another kind
    /// than before: nothing is taken in. [`Error::Interrupted`]: nothing either.
    pub fn update(&mut self, users: Users<'_>, cells: &[i32], values: &[u32]) -> Result<(), Error> {
        let valued = if self.rule.height == 0 { 0 } else { users.len() };
        Error::check_len("cells", users.len(), cells.len())?;
        Error::check_len("values", valued, values.len())?;
        // Of a block at once, without a branch.
        let inside = |block: &[i32]| block.iter().fold(i32::MIN, |most, cell| most.max(*cell)) < self.rule.cells as i32;
        let within = cells.par_chunks(BLOCK).all(inside);
        if !users.are_sound() || !within {
            return Err(Error::invalid("rows", "a cell that the table has, and names that are there"));
        }
        users.kind().check(&mut self.kind)?;
        let Self { rule, spread, parts, .. } = self;
        with_parts!(parts, parts => {
            if parts.iter().map(|part| part.waiting.len()).sum::<usize>() > WAITING.max(parts.iter().map(Part::len).sum()) {
                settle(parts, rule)?;
            }
            take(parts, rule, spread, users, cells, values)
        })
    }

    /// Takes in what another tally holds, which was made by the same rule.
    ///
    /// # Errors
    /// Another rule, or names of another kind; [`Error::Interrupted`]: nothing is taken in.
    pub fn merge(&mut self, other: &mut Self) -> Result<(), Error> {
        if self.rule != other.rule {
            return Err(Error::invalid("tally", "of other cells, bounds or seed: only parts of one table are merged"));
        }
        other.settle()?;
        if let Some(kind) = other.kind {
            kind.check(&mut self.kind)?;
            match (&mut self.parts, &other.parts) {
                (Parts::Counts(ours), Parts::Counts(theirs)) => absorb(ours, &self.spread, theirs, &self.rule),
                (Parts::Sums(ours), Parts::Sums(theirs)) => absorb(ours, &self.spread, theirs, &self.rule),
                _ => unreachable!("one rule, one kind of amounts"),
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        with_parts!(&mut self.parts, parts => settle(parts, &self.rule))
    }

    /// The table: of each cell the records that count, or what is missing to their largest amount and their amount.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn table(&mut self) -> Result<Vec<i64>, Error> {
        self.settle()?;
        let mut table = vec![0_u64; self.rule.cells as usize * self.rule.channels()];
        with_parts!(&self.parts, parts => add_up(parts, &self.rule, &mut table)?);
        Ok(table.into_iter().map(|sum| sum.min(MOST) as i64).collect())
    }

    /// The state in an order that says nothing about how it came to be.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn to_bytes(&mut self) -> Result<Vec<u8>, Error> {
        self.settle()?;
        let mut out = MAGIC.to_vec();
        let Rule { seed, cells, max_cells, per_cell, max_records, height } = self.rule;
        for word in seed.0.into_iter().chain([cells.into(), max_cells, per_cell, max_records, height]) {
            out.extend_from_slice(&(word as u32).to_le_bytes());
        }
        out.push(Kind::to_byte(self.kind));
        let mut users: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        with_parts!(&self.parts, parts => for part in parts {
            poll()?;
            part.each(&self.rule, |user, cells| {
                let name = part.names.whole(user).to_bytes();
                let mut state = (cells.len() as u32).to_le_bytes().to_vec();
                for (cell, amount) in cells {
                    state.extend_from_slice(&cell.to_le_bytes());
                    state.extend_from_slice(&amount.records().to_le_bytes());
                    state.extend_from_slice(&amount.sum().to_le_bytes());
                }
                users.push((name, state));
            });
        });
        write_users(users, &mut out);
        Ok(out)
    }

    /// The tally that [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Bytes that it did not write.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let broken = || Error::invalid("tally", "bytes that to_bytes did not write");
        let mut bytes = Reader(bytes);
        if bytes.take(8) != Some(MAGIC) {
            return Err(broken());
        }
        let mut head = [0; 11];
        for word in &mut head {
            *word = bytes.word().ok_or_else(broken)?;
        }
        let [a0, a1, a2, a3, a4, a5, cells, max_cells, per_cell, max_records, height] = head;
        let seed = Seed::new([a0, a1, a2, a3, a4, a5].map(u64::from))?;
        let mut tally = Self::new(Rule::new(seed, cells, max_cells, per_cell, max_records, height)?);
        bytes.take(1).and_then(|byte| Kind::read(&mut tally.kind, byte[0])).ok_or_else(broken)?;
        let Self { rule, kind, spread, parts } = &mut tally;
        with_parts!(parts, parts => read(parts, rule, *kind, spread, &mut bytes)).ok_or_else(broken)?;
        Ok(tally)
    }
}

/// Takes in the rows that wait, part by part: between two of them it may end.
fn settle<A: Amount>(parts: &mut [Part<A>], rule: &Rule) -> Result<(), Error> {
    for some in parts.chunks_mut(8 * rayon::current_num_threads()) {
        poll()?;
        if some.iter().map(|part| part.waiting.len()).sum::<usize>() < SMALL {
            for part in some {
                part.settle(rule);
            }
        } else {
            some.par_iter_mut().for_each(|part| part.settle(rule));
        }
    }
    Ok(())
}

/// Lets rows wait in the parts of their users; none if it is interrupted.
fn take<A: Amount>(
    parts: &mut [Part<A>],
    rule: &Rule,
    spread: &Spread,
    users: Users<'_>,
    cells: &[i32],
    values: &[u32],
) -> Result<(), Error> {
    let before: Vec<usize> = parts.iter().map(|part| part.waiting.len()).collect();
    let shift = cell_bits(rule);
    let rows = users.len();
    let threads = rayon::current_num_threads();
    let share = BLOCK.min(rows).div_ceil(threads);
    let mut blocks: Vec<Block<A::Row>> = std::iter::repeat_with(Block::default).take(threads).collect();
    for first in (0..rows).step_by(BLOCK) {
        if let Err(error) = poll() {
            for (part, before) in parts.iter_mut().zip(before) {
                part.waiting.truncate(before);
            }
            return Err(error);
        }
        let last = (first + BLOCK).min(rows);
        let spread_one = |(k, block): (usize, &mut Block<A::Row>)| {
            let begin = (first + k * share).min(last);
            block.fill(spread, users, cells, begin..(begin + share).min(last), |row| A::row(values, row));
        };
        let take_in = |(index, part): (usize, &mut Part<A>), blocks: &[Block<A::Row>]| {
            part.waiting.reserve(blocks.iter().map(|block| block.part(index).len()).sum());
            for row in blocks.iter().flat_map(|block| block.part(index)) {
                let name = match users {
                    Users::Integers(_) => Name::Integer(row.word as i64),
                    Users::Bytes { .. } => users.name(row.word as usize),
                };
                let user = part.names.number(name, row.tag);
                part.waiting.push((u64::from(user) << shift | u64::from(row.cell), row.held));
            }
        };
        if last - first < SMALL {
            blocks.iter_mut().enumerate().for_each(spread_one);
            parts.iter_mut().enumerate().for_each(|part| take_in(part, &blocks));
        } else {
            blocks.par_iter_mut().enumerate().for_each(spread_one);
            parts.par_iter_mut().enumerate().for_each(|part| take_in(part, &blocks));
        }
    }
    Ok(())
}

/// What is known of a row where its part takes it in: nothing is looked up far away.
#[derive(Clone, Copy, Default)]
struct Spreaded<R> {
    /// The name of its user, or where that is.
    word: u64,
    /// What users of a part are told apart by.
    tag: u32,
    cell: u32,
    held: R,
}

/// A hash that was kept, or is made.
#[inline]
fn hash_of(kept: &[u64], k: usize, made: impl Fn() -> u64) -> u64 {
    kept.get(k).copied().unwrap_or_else(made)
}

/// Rows by the part of their user.
#[derive(Default)]
struct Block<R> {
    rows: Vec<Spreaded<R>>,
    ends: Vec<usize>,
}

impl<R: Copy + Default> Block<R> {
    fn fill(
        &mut self,
        spread: &Spread,
        users: Users<'_>,
        cells: &[i32],
        rows: Range<usize>,
        held: impl Fn(usize) -> R,
    ) {
        let known = || rows.clone().filter(|row| cells[*row] >= 0);
        // Those of integers are made again sooner than fetched.
        let hashes: Vec<u64> = match users {
            Users::Integers(_) => Vec::new(),
            Users::Bytes { .. } => known().map(|row| spread.hash(users.name(row))).collect(),
        };
        let hashed = || known().enumerate().map(|(k, row)| (row, hash_of(&hashes, k, || spread.hash(users.name(row)))));
        let Self { rows: spreaded, ends } = self;
        ends.clear();
        ends.resize(PARTS + 1, 0);
        for (_, hash) in hashed() {
            ends[part_of(hash) + 1] += 1;
        }
        for part in 0..PARTS {
            ends[part + 1] += ends[part];
        }
        spreaded.resize(ends[PARTS], Spreaded::default());
        for (row, hash) in hashed() {
            let at = &mut ends[part_of(hash)];
            let word = match users.name(row) {
                Name::Integer(name) => name as u64,
                Name::Bytes(_) => row as u64,
            };
            spreaded[*at] = Spreaded { word, tag: tag_of(hash), cell: cells[row] as u32, held: held(row) };
            *at += 1;
        }
        ends.pop();
    }

    fn part(&self, part: usize) -> &[Spreaded<R>] {
        &self.rows[part.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[part]]
    }
}

/// Cells of users that arrive with what they hold, by part.
struct Arrivals<A>(Vec<Vec<(u64, A)>>);

impl<A: Amount> Arrivals<A> {
    fn new() -> Self {
        Self(vec![Vec::new(); PARTS])
    }

    fn add(
        &mut self,
        parts: &mut [Part<A>],
        spread: &Spread,
        rule: &Rule,
        name: Name<'_>,
        held: impl Iterator<Item = (u32, A)>,
    ) {
        let hash = spread.hash(name);
        let part = part_of(hash);
        let user = u64::from(parts[part].names.number(name, tag_of(hash))) << cell_bits(rule);
        self.0[part].extend(held.map(|(cell, amount)| (user | u64::from(cell), amount)));
    }

    fn settle(self, parts: &mut [Part<A>], rule: &Rule) {
        parts.par_iter_mut().zip(self.0).filter(|(_, cells)| !cells.is_empty()).for_each(|(part, cells)| {
            part.settle(rule);
            part.absorb(cells, rule);
        });
    }
}

/// Takes in the cells of another tally's users: those of a part are in the same part here.
fn absorb<A: Amount>(ours: &mut [Part<A>], spread: &Spread, theirs: &[Part<A>], rule: &Rule) {
    ours.par_iter_mut().zip(theirs).filter(|(_, theirs)| theirs.len() > 0).for_each(|(ours, theirs)| {
        let mut cells = Vec::with_capacity(theirs.len());
        theirs.each(rule, |user, held| {
            let name = theirs.names.whole(user);
            let user = u64::from(ours.names.number(name, spread.tag(name))) << cell_bits(rule);
            cells.extend(held.iter().map(|&(cell, amount)| (user | u64::from(cell), amount)));
        });
        ours.settle(rule);
        ours.absorb(cells, rule);
    });
}

/// Adds what every user adds; between two groups of parts it may end.
fn add_up<A: Amount>(parts: &[Part<A>], rule: &Rule, table: &mut [u64]) -> Result<(), Error> {
    let channels = rule.channels();
    for some in parts.chunks(8 * rayon::current_num_threads()) {
        poll()?;
        let of_part = |part: &Part<A>| {
            let mut added: Vec<(u32, u64, u64)> = Vec::with_capacity(part.len());
            part.each(rule, |user, cells| {
                rule.add(part.names.name(user), cells, |cell, low, high| added.push((cell, low, high)));
            });
            added
        };
        let added: Vec<_> = if some.iter().map(Part::len).sum::<usize>() < SMALL {
            some.iter().map(of_part).collect()
        } else {
            some.par_iter().map(of_part).collect()
        };
        for (cell, low, high) in added.into_iter().flatten() {
            let at = cell as usize * channels;
            table[at] += low;
            if channels == 2 {
                table[at + 1] += high;
            }
        }
    }
    Ok(())
}

/// Reads users and what they hold; None if the bytes are none of a tally.
fn read<A: Amount>(
    parts: &mut [Part<A>],
    rule: &Rule,
    kind: Option<Kind>,
    spread: &Spread,
    bytes: &mut Reader<'_>,
) -> Option<()> {
    let mut arrivals = Arrivals::new();
    while !bytes.0.is_empty() {
        let name = Name::of_bytes(kind?, bytes.counted()?)?;
        let mut held = Vec::new();
        for _ in 0..bytes.word()? {
            let (cell, records, sum) = (bytes.word()?, bytes.long()?, bytes.long()?);
            if cell >= rule.cells {
                return None;
            }
            held.push((cell, A::of(records, sum, rule)));
        }
        arrivals.add(parts, spread, rule, name, held.into_iter());
    }
    arrivals.settle(parts, rule);
    Some(())
}
