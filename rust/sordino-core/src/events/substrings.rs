//! The words that end at a letter.

use super::words::Words;
use crate::error::Error;
use zeroize::Zeroize;

/// A text, letter by letter: which words of at most `ℓ` letters end now.
#[derive(Clone)]
pub struct Substrings {
    words: Words,
    /// Known letters since the last unknown one, at most `ℓ`.
    run: usize,
    /// `suffixes[j]`: 1 + index of the last `j` letters; the empty word has 0.
    suffixes: Vec<u64>,
}

impl Substrings {
    /// An empty text.
    ///
    /// # Errors
    /// If an argument is 0, `longest` exceeds 4096, or the number of words does not fit 64 bits.
    pub fn new(alphabet: u32, longest: u32) -> Result<Self, Error> {
        let words = Words::new(alphabet, longest)?;
        Ok(Self { words, run: 0, suffixes: vec![0; longest as usize + 1] })
    }

    /// Forgets what was seen, and overwrites it.
    pub fn wipe(&mut self) {
        self.run = 0;
        self.suffixes.as_mut_slice().zeroize();
    }

    /// The numbering of the words.
    pub fn words(&self) -> Words {
        self.words
    }

    /// Calls out the index of every word that ends at this letter, longest first; `O(ℓ)`.
    ///
    /// At an unknown letter none ends, and none will contain it.
    #[inline]
    pub fn push(&mut self, letter: i64, mut out: impl FnMut(u64)) {
        let Some(letter) = self.words.letter(letter) else {
            self.run = 0;
            return;
        };
        let u = u64::from(self.words.alphabet());
        self.run = (self.run + 1).min(self.words.longest() as usize);
        for j in (1..=self.run).rev() {
            let index = u * self.suffixes[j - 1] + u64::from(letter);
            self.suffixes[j] = index + 1;
            out(index);
        }
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.suffixes.capacity() * 8
    }
}

impl std::fmt::Debug for Substrings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Substrings").field("words", &self.words).finish_non_exhaustive()
    }
}
