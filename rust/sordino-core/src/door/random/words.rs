//! Uniform 64-bit words: a `ChaCha12` key stream, buffered.

use super::Key;
use super::generator::Generator;
use zeroize::Zeroize;

/// What a word is drawn for. Production ignores it; the replayer follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Layer, sign and the first 55 bits of the abscissa.
    Layer,
    /// 64 further bits of the abscissa, for a decision.
    Abscissa,
    /// 64 bits of the height.
    Height,
    /// 64 further bits of the abscissa, for the final rounding.
    Rounding,
    /// A sample nested in a tail begins (no word is drawn).
    #[cfg(test)]
    Nested,
}

/// A source of independent uniform words.
pub(crate) trait Words {
    /// The next word.
    fn next(&mut self, purpose: Purpose) -> u64;

    /// Called when a nested sample begins; only the replayer listens.
    fn enter(&mut self) {}
}

const BUFFER: usize = 512;
const FIRST: usize = 32;

/// One `ChaCha12` stream under a key: stream numbers never share words.
pub(crate) struct ChaChaWords {
    generator: Generator,
    stream: u64,
    bytes: [u8; 8 * BUFFER],
    words: [u64; BUFFER],
    position: usize,
    /// Index of the word that comes next.
    next_index: u64,
    /// Words that the next refill makes: few after a seek, since only few may be wanted there.
    batch: usize,
    /// The most words that a refill made: what is to be wiped.
    largest: usize,
}

impl ChaChaWords {
    pub(crate) fn new(key: &Key, stream: u64) -> Self {
        let mut generator = Generator::new(key);
        generator.seek(stream, 0);
        Self {
            generator,
            stream,
            bytes: [0; 8 * BUFFER],
            words: [0; BUFFER],
            position: BUFFER,
            next_index: 0,
            batch: FIRST,
            largest: 0,
        }
    }

    /// Continues with word `index` of the stream.
    pub(crate) fn seek(&mut self, index: u64) {
        self.generator.seek(self.stream, index);
        self.position = BUFFER;
        self.next_index = index;
        self.batch = FIRST;
    }

    /// Word `index` of the stream: quick where it lies just behind the last one.
    pub(crate) fn at(&mut self, index: u64) -> u64 {
        let ahead =
            index.checked_sub(self.next_index).map_or(usize::MAX, |ahead| usize::try_from(ahead).unwrap_or(usize::MAX));
        if ahead < BUFFER - self.position {
            self.take(ahead);
        } else if index != self.next_index {
            let batch = if ahead < 2 * BUFFER { self.batch } else { FIRST };
            self.seek(index);
            self.batch = batch;
        }
        let word = self.available()[0];
        self.take(1);
        word
    }

    #[inline(never)]
    fn refill(&mut self) {
        let bytes = &mut self.bytes[..8 * self.batch];
        self.generator.fill(bytes);
        self.position = BUFFER - self.batch;
        for (word, bytes) in self.words[self.position..].iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        self.largest = self.largest.max(self.batch);
        self.batch = (2 * self.batch).min(BUFFER);
    }

    /// The words still in the buffer (never empty); the caller says how many it took.
    #[inline]
    pub(crate) fn available(&mut self) -> &[u64] {
        if self.position == BUFFER {
            self.refill();
        }
        &self.words[self.position..]
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.position += count;
        self.next_index += count as u64;
    }
}

impl Words for ChaChaWords {
    #[inline]
    fn next(&mut self, _purpose: Purpose) -> u64 {
        let word = self.available()[0];
        self.take(1);
        word
    }
}

/// Words of one stream under a key, made when the first is asked for: most samples need none.
pub(super) struct FurtherWords<'a> {
    key: &'a Key,
    stream: u64,
    generator: Option<Generator>,
}

impl<'a> FurtherWords<'a> {
    pub(super) fn new(key: &'a Key, stream: u64) -> Self {
        Self { key, stream, generator: None }
    }
}

impl Words for FurtherWords<'_> {
    fn next(&mut self, _purpose: Purpose) -> u64 {
        let generator = self.generator.get_or_insert_with(|| {
            let mut generator = Generator::new(self.key);
            generator.seek(self.stream, 0);
            generator
        });
        generator.word()
    }
}

/// The same from a generator that is at hand, one stream after another.
pub(super) struct WordsOf<'a> {
    pub generator: &'a mut Generator,
    stream: u64,
    started: bool,
}

impl<'a> WordsOf<'a> {
    pub(super) fn new(generator: &'a mut Generator, stream: u64) -> Self {
        Self { generator, stream, started: false }
    }
}

impl Words for WordsOf<'_> {
    fn next(&mut self, _purpose: Purpose) -> u64 {
        if !self.started {
            self.generator.seek(self.stream, 0);
            self.started = true;
        }
        self.generator.word()
    }
}

impl Drop for ChaChaWords {
    fn drop(&mut self) {
        self.bytes[..8 * self.largest].zeroize();
        self.words[BUFFER - self.largest..].zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::{ChaChaWords, FurtherWords, Purpose, Words, WordsOf};
    use crate::door::Key;
    use crate::door::random::generator::Generator;

    /// Key stream of `ChaCha12` with a zero key and nonce (draft-strombergson-chacha-test-vectors-01,
    /// TC1, 256-bit key, 12 rounds).
    #[test]
    fn known_answer() {
        let mut words = ChaChaWords::new(&Key::deterministic([0; 32]), 0);
        let expected: [u8; 64] = [
            0x9b, 0xf4, 0x9a, 0x6a, 0x07, 0x55, 0xf9, 0x53, 0x81, 0x1f, 0xce, 0x12, 0x5f, 0x26, 0x83, 0xd5, 0x04, 0x29,
            0xc3, 0xbb, 0x49, 0xe0, 0x74, 0x14, 0x7e, 0x00, 0x89, 0xa5, 0x2e, 0xae, 0x15, 0x5f, 0x05, 0x64, 0xf8, 0x79,
            0xd2, 0x7a, 0xe3, 0xc0, 0x2c, 0xe8, 0x28, 0x34, 0xac, 0xfa, 0x8c, 0x79, 0x3a, 0x62, 0x9f, 0x2c, 0xa0, 0xde,
            0x69, 0x19, 0x61, 0x0b, 0xe8, 0x2f, 0x41, 0x13, 0x26, 0xbe,
        ];
        for chunk in expected.chunks_exact(8) {
            assert_eq!(words.next(Purpose::Layer), u64::from_le_bytes(chunk.try_into().unwrap()));
        }
    }

    #[test]
    fn streams_differ_and_repeat() {
        let key = Key::deterministic([7; 32]);
        let draw = |stream| {
            let mut words = ChaChaWords::new(&key, stream);
            (0..2000).map(|_| words.next(Purpose::Layer)).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert!(draw(3).iter().zip(draw(4)).all(|(a, b)| *a != b));
        let mut words = ChaChaWords::new(&key, 3);
        for index in [1300, 7, 511, 512, 8] {
            words.seek(index);
            assert_eq!(words.next(Purpose::Layer), draw(3)[index as usize]);
        }
        let mut further = FurtherWords::new(&key, 3);
        let mut generator = Generator::new(&key);
        for stream in [4, 3] {
            let mut of = WordsOf::new(&mut generator, stream);
            assert!(draw(stream).iter().take(9).all(|word| of.next(Purpose::Height) == *word));
        }
        assert!(draw(3).iter().all(|word| further.next(Purpose::Height) == *word));
    }
}
