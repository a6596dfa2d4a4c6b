//! Minimal occurrences of words as serial episodes, that is, as subsequences.

use super::words::Words;
use crate::error::Error;
use zeroize::Zeroize;

/// A sequence of events, letter by letter: which episodes of at most `ℓ` letters have a new minimal occurrence now.
///
/// An occurrence is an interval of time in which the letters come in order; minimal if no proper part of it is one
/// (Mannila, Toivonen & Verkamo 1997). With `L(e)` the latest start of an occurrence of `e` so far (0: none), a letter
/// `c` at time `t` does, longest `e` first:
///
/// - if `L(e) > L(ec)`: `L(ec) = L(e)`, and `ec` has a new minimal occurrence, which ends now;
/// - at last `L(c) = t`, likewise.
///
/// A letter costs `Σ_{j<ℓ} u^j` comparisons, in two contiguous runs for each length: entries are laid out by last letter
/// first. Memory is about 4 bytes an episode.
#[derive(Clone)]
pub struct Episodes {
    words: Words,
    now: u32,
    /// `latest[j][Σ_i a_i u^(i−1)] = L(a_1 … a_j)`: those that end with `c` are a run. `latest[0]` is unused.
    latest: Vec<Vec<u32>>,
    /// `numbers[j][..]`, in the same layout, `j < ℓ`: 1 + index of the word.
    numbers: Vec<Vec<u32>>,
}

/// Most episodes: 4 GB of times.
const MOST: u64 = 1 << 30;
/// Entries compared before it is told which of them changed.
const BLOCK: usize = 64;

impl Episodes {
    /// No events yet.
    ///
    /// # Errors
    /// If an argument is 0, `longest` exceeds 4096, or there are more than 2^30 episodes.
    pub fn new(alphabet: u32, longest: u32) -> Result<Self, Error> {
        let words = Words::new(alphabet, longest)?;
        if words.count() > MOST {
            return Err(Error::Overflow(format!("{} episodes; at most {MOST} are followed", words.count())));
        }
        let latest = (0..=longest).map(|j| vec![0; (alphabet as usize).pow(j)]).collect();
        let mut numbers = vec![vec![0]];
        for j in 1..longest as usize {
            let of = |c| move |shorter: &u32| alphabet * shorter + c + 1;
            numbers.push((0..alphabet).flat_map(|c| numbers[j - 1].iter().map(of(c))).collect());
        }
        Ok(Self { words, now: 0, latest, numbers })
    }

    /// Forgets what was seen, and overwrites it.
    pub fn wipe(&mut self) {
        self.now = 0;
        self.latest.iter_mut().for_each(|times| times.as_mut_slice().zeroize());
    }

    /// The numbering of the episodes.
    pub fn words(&self) -> Words {
        self.words
    }

    /// Calls out the index of every episode with a new minimal occurrence that ends at this letter, longest first.
    ///
    /// At an unknown letter only time passes.
    #[inline]
    pub fn push(&mut self, letter: i64, mut out: impl FnMut(u64)) {
        if self.now == u32::MAX {
            self.renumber();
        }
        self.now += 1;
        let Some(letter) = self.words.letter(letter) else { return };
        let u = u64::from(self.words.alphabet());
        for j in (1..self.numbers.len()).rev() {
            let (shorter, longer) = self.latest.split_at_mut(j + 1);
            let (from, len) = (&shorter[j], shorter[j].len());
            let to = &mut longer[0][letter as usize * len..][..len];
            advance(from, to, &self.numbers[j], |number| out(u * u64::from(number) + u64::from(letter)));
        }
        self.latest[1][letter as usize] = self.now;
        out(u64::from(letter));
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.latest.iter().chain(&self.numbers).map(|level| level.capacity() * 4).sum::<usize>()
    }

    /// As after so many steps that only `left` fit the clock.
    #[cfg(test)]
    pub(super) fn run_out_of_times_after(&mut self, left: u32) {
        self.now = u32::MAX - left;
    }

    /// Times by rank: only their order matters.
    #[cold]
    fn renumber(&mut self) {
        let mut times: Vec<u32> = self.latest.iter().flatten().copied().filter(|t| *t > 0).collect();
        times.sort_unstable();
        times.dedup();
        for time in self.latest.iter_mut().flatten() {
            *time = times.partition_point(|t| t <= time) as u32;
        }
        self.now = times.len() as u32;
    }
}

/// `to = max(from, to)`, and calls out the number of every entry where that is more than before.
#[inline]
fn advance(from: &[u32], to: &mut [u32], numbers: &[u32], mut changed: impl FnMut(u32)) {
    let blocks = from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)).zip(numbers.chunks(BLOCK));
    for ((from, to), numbers) in blocks {
        // About a third change, as good as at random: list them without a branch.
        let (mut list, mut len) = ([0; BLOCK], 0);
        for ((from, to), number) in from.iter().zip(&*to).zip(numbers) {
            list[len % BLOCK] = *number;
            len += usize::from(from > to);
        }
        for (from, to) in from.iter().zip(to) {
            *to = (*from).max(*to);
        }
        list[..len].iter().for_each(|number| changed(*number));
    }
}

impl std::fmt::Debug for Episodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Episodes").field("words", &self.words).finish_non_exhaustive()
    }
}
