//! A text whose short words are counted, as substrings or as episodes.

use super::episodes::Episodes;
use super::steps::{check_ends, grouped};
use super::substrings::Substrings;
use crate::error::Error;
use crate::stream::LazyStream;

/// What of a text is counted.
#[derive(Debug)]
pub enum Text {
    /// Words whose letters stand one after another.
    Substrings(Substrings),
    /// Minimal occurrences of words as serial episodes.
    Episodes(Episodes),
}

impl Text {
    /// Number of counters.
    pub fn width(&self) -> u64 {
        match self {
            Self::Substrings(text) => text.words().count(),
            Self::Episodes(text) => text.words().count(),
        }
    }

    /// Forgets what was seen, and overwrites it.
    pub fn wipe(&mut self) {
        match self {
            Self::Substrings(text) => text.wipe(),
            Self::Episodes(text) => text.wipe(),
        }
    }

    /// Calls out the index of every word that is counted once more with this letter.
    #[inline]
    pub fn push(&mut self, letter: i64, out: impl FnMut(u64)) {
        match self {
            Self::Substrings(text) => text.push(letter, out),
            Self::Episodes(text) => text.push(letter, out),
        }
    }

    /// Fills `rows`, steps × width, with what the letters of each step add.
    ///
    /// # Errors
    /// If `ends` is not that of the letters, or `rows` has another length.
    pub fn rows(&mut self, letters: &[i64], ends: &[usize], rows: &mut [i64]) -> Result<(), Error> {
        let width = usize::try_from(self.width()).map_err(|_| Error::invalid("rows", "there are too many counters"))?;
        grouped(letters.len(), ends, width, rows, |i, row| self.push(letters[i], |word| row[word as usize] += 1))
    }

    /// Feeds the letters to counters that are read where they are wanted.
    ///
    /// # Errors
    /// If `ends` is not that of the letters, or the counters refuse the steps; then nothing has changed.
    pub fn feed(&mut self, counters: &mut LazyStream, letters: &[i64], ends: &[usize]) -> Result<(), Error> {
        check_ends(letters.len(), ends)?;
        Error::check_len("counters", self.width() as usize, counters.dim() as usize)?;
        counters.advance(ends, |i, add| self.push(letters[i], |word| add(word, 1)))
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Substrings(text) => text.bytes(),
            Self::Episodes(text) => text.bytes(),
        }
    }
}
