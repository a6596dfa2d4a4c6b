//! A number for every word of length `1..=ℓ` over the letters `0..u`.

use crate::error::Error;

/// Longest words that are followed; from two letters on, 64 bits stop earlier.
const LONGEST: u32 = 4096;

/// How many words there are, `Σ_{1≤j≤ℓ} u^j`; `None` beyond 64 bits.
pub fn count(alphabet: u32, longest: u32) -> Option<u64> {
    if alphabet == 1 {
        return Some(u64::from(longest));
    }
    // Ends after 64 rounds: u >= 2 overflows, and u = 0 stays at 0.
    let (mut total, mut left) = (0_u64, longest);
    while left > 0 && alphabet > 0 {
        total = total.checked_add(1)?.checked_mul(u64::from(alphabet))?;
        left -= 1;
    }
    Some(total)
}

/// Words in order of length, then as numbers in base `u`: a word of length `j` and value `x` has the index
/// `offset_j + x`, `offset_j = Σ_{1≤i<j} u^i`.
///
/// One more letter: `index(wc) = u (index(w) + 1) + c`, with `index(empty) = −1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    alphabet: u32,
    longest: u32,
    count: u64,
}

impl Words {
    /// Words of at most `longest` letters.
    ///
    /// # Errors
    /// If an argument is 0, `longest` exceeds 4096, or the number of words does not fit 64 bits.
    pub fn new(alphabet: u32, longest: u32) -> Result<Self, Error> {
        if alphabet == 0 {
            return Err(Error::invalid("alphabet", "needs at least 1 letter"));
        }
        if longest == 0 || longest > LONGEST {
            return Err(Error::invalid("longest", format!("must be at least 1 and at most {LONGEST}")));
        }
        let count = count(alphabet, longest)
            .ok_or_else(|| Error::Overflow(format!("words of {longest} letters out of {alphabet} exceed 64 bits")))?;
        Ok(Self { alphabet, longest, count })
    }

    /// Number of letters, `u`.
    pub fn alphabet(self) -> u32 {
        self.alphabet
    }

    /// Length of the longest words, `ℓ`.
    pub fn longest(self) -> u32 {
        self.longest
    }

    /// Number of words.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The index of a word; `None` if it is empty, too long, or has an unknown letter.
    pub fn index(self, word: &[u32]) -> Option<u64> {
        if word.len() > self.longest as usize || word.iter().any(|c| *c >= self.alphabet) {
            return None;
        }
        word.iter().fold(0, |above, &c| above * u64::from(self.alphabet) + u64::from(c) + 1).checked_sub(1)
    }

    /// The word of an index; `None` if there are not so many.
    pub fn word(self, index: u64) -> Option<Vec<u32>> {
        if index >= self.count {
            return None;
        }
        let u = u64::from(self.alphabet);
        let (mut word, mut above) = (Vec::new(), index + 1);
        while above > 0 {
            word.push(((above - 1) % u) as u32);
            above = (above - 1) / u;
        }
        word.reverse();
        Some(word)
    }

    /// The letter that an item stands for; `None` if it is malformed.
    pub(super) fn letter(self, item: i64) -> Option<u32> {
        u32::try_from(item).ok().filter(|c| *c < self.alphabet)
    }
}

#[cfg(test)]
mod tests {
    use super::{Words, count};

    #[test]
    fn counts() {
        assert_eq!(count(3, 2), Some(12));
        assert_eq!(count(1, u32::MAX), Some(u64::from(u32::MAX)));
        assert_eq!(count(0, u32::MAX), Some(0));
        assert_eq!(count(7, 0), Some(0));
        assert_eq!(count(2, 63), Some(u64::MAX - 1));
        assert_eq!(count(2, 64), None);
        assert_eq!(count(u32::MAX, 3), None);
        assert!(Words::new(2, 64).is_err() && Words::new(0, 1).is_err() && Words::new(1, 0).is_err());
    }

    /// By the definition: all words in order of length, then of base-u value.
    #[test]
    fn indices_number_all_words() {
        for (u, longest) in [(1, 5), (2, 6), (3, 4), (26, 2)] {
            let words = Words::new(u, longest).unwrap();
            let mut index = 0;
            for length in 1..=longest {
                for value in 0..u.pow(length) {
                    let word: Vec<u32> = (0..length).rev().map(|place| value / u.pow(place) % u).collect();
                    assert_eq!(words.index(&word), Some(index));
                    assert_eq!(words.word(index), Some(word));
                    index += 1;
                }
            }
            assert_eq!(words.count(), index);
            assert_eq!(words.word(index), None);
            assert_eq!(words.index(&vec![0; longest as usize + 1]), None);
            assert_eq!(words.index(&[u]), None);
            assert_eq!(words.index(&[]), None);
        }
    }
}
