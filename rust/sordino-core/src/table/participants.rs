//! Which steps of a stream a user's records count in: a rule that sees this user's past alone.

use super::reader::{Reader, write_users};
use super::users::{Kind, Name, Names, Spread, Users};
use crate::error::Error;
use crate::interrupt::poll;

/// Rows that are looked at between two looks for a signal.
const BLOCK: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"sordprt1";

/// The steps that users took part in, as far as the next ones depend on them: as private as the records.
///
/// A user's records count in a step if fewer than `most` steps of this user counted before, the last of them at least
/// `apart` steps ago. So at most `most` steps of a user count, every two of them at least `apart` from each other.
#[derive(Debug, Clone)]
pub struct Participants {
    most: u32,
    apart: u32,
    step: u32,
    kind: Option<Kind>,
    spread: Spread,
    names: Names,
    taken: Vec<Taken>,
}

/// The steps of one user that count: how many, and which came last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    count: u32,
    last: u32,
}

impl Participants {
    /// Nobody took part yet.
    ///
    /// # Errors
    /// A bound is 0.
    pub fn new(most: u32, apart: u32) -> Result<Self, Error> {
        if most == 0 || apart == 0 {
            return Err(Error::invalid("participations", "at least 1, and at least 1 apart"));
        }
        let (spread, names) = (Spread::of_process(), Names::default());
        Ok(Self { most, apart, step: 0, kind: None, spread, names, taken: Vec::new() })
    }

    /// The steps of a user that count, and how far they lie apart.
    pub fn bounds(&self) -> (u32, u32) {
        (self.most, self.apart)
    }

    /// Steps that have ended.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// The cells of rows of this step, negative where the user takes no part in it. Rows of a negative cell count
    /// nowhere, and are no part. The same rows again have the same cells.
    ///
    /// # Errors
    /// Another number of cells than of users, or names that are not there or of another kind; [`Error::Interrupted`].
    pub fn admitted(&mut self, users: Users<'_>, cells: &[i32]) -> Result<Vec<i32>, Error> {
        Error::check_len("cells", users.len(), cells.len())?;
        if !users.are_sound() {
            return Err(Error::invalid("users", "names that are there"));
        }
        users.kind().check(&mut self.kind)?;
        let mut found = cells.to_vec();
        for first in (0..found.len()).step_by(BLOCK) {
            poll()?;
            let last = found.len().min(first + BLOCK);
            for row in (first..last).filter(|&row| cells[row] >= 0) {
                let name = users.name(row);
                let user = self.names.number(name, self.spread.tag(name)) as usize;
                if user == self.taken.len() {
                    self.taken.push(Taken::default());
                }
                let Taken { count, last } = &mut self.taken[user];
                let is_in = *count > 0 && *last == self.step;
                if !is_in && (*count == 0 || (*count < self.most && self.step - *last >= self.apart)) {
                    (*count, *last) = (*count + 1, self.step);
                } else if !is_in {
                    found[row] = -1;
                }
            }
        }
        Ok(found)
    }

    /// Ends the step.
    ///
    /// # Errors
    /// There were 2^32 - 1.
    pub fn advance(&mut self) -> Result<(), Error> {
        self.step = self.step.checked_add(1).ok_or(Error::invalid("steps", "fewer than 2^32"))?;
        Ok(())
    }

    /// The state in an order that says nothing about how it came to be.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for word in [self.most, self.apart, self.step] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(Kind::to_byte(self.kind));
        let state = |Taken { count, last }: &Taken| [count.to_le_bytes(), last.to_le_bytes()].concat();
        let users = self.taken.iter().enumerate();
        write_users(users.map(|(user, taken)| (self.names.whole(user).to_bytes(), state(taken))).collect(), &mut out);
        out
    }

    /// The state that [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// Bytes that it did not write.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Self::read(&mut Reader(bytes)).ok_or(Error::invalid("participations", "bytes that to_bytes did not write"))
    }

    fn read(bytes: &mut Reader<'_>) -> Option<Self> {
        if bytes.take(8)? != MAGIC {
            return None;
        }
        let mut made = Self::new(bytes.word()?, bytes.word()?).ok()?;
        made.step = bytes.word()?;
        Kind::read(&mut made.kind, bytes.take(1)?[0])?;
        while !bytes.0.is_empty() {
            let name = Name::of_bytes(made.kind?, bytes.counted()?)?;
            let taken = Taken { count: bytes.word()?, last: bytes.word()? };
            let user = made.names.number(name, made.spread.tag(name)) as usize;
            if user != made.taken.len() || taken.count == 0 || taken.count > made.most || taken.last > made.step {
                return None;
            }
            made.taken.push(taken);
        }
        Some(made)
    }
}
