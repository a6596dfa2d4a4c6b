//! Noise addressed by index: what a stream draws from its one key.
//!
//! Sample `i` starts with word `i` of the key's main stream; the further words that 1.5 % of the samples
//! need come from the stream with nonce `i`. So noise depends on key and index alone: a stream may be cut into
//! batches anywhere, and what was drawn can be drawn again.

use super::Key;
use super::generator::Generator;
use super::words::{ChaChaWords, WordsOf};
use super::ziggurat::{self, Exponential, Gaussian, Law, NoiseLaw, check_quarter_units};
use rayon::prelude::*;

/// Nonce of the main stream; indices stay below 2^63.
const MAIN: u64 = u64::MAX;
/// Rows longer than twice this are drawn in parallel.
const CHUNK: usize = 1 << 12;

/// Exact integer noise under one key, in order of index.
pub(crate) struct NoiseSource {
    key: Key,
    law: NoiseLaw,
    words: Box<ChaChaWords>,
    /// For further words, and for samples far apart.
    generator: Generator,
    next: u64,
    #[cfg(test)]
    script: Option<Script>,
}

/// Noise said beforehand, zero after its end; and the sizes that were asked for, sample by sample.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Script {
    values: std::collections::VecDeque<i64>,
    sizes: Vec<u64>,
}

impl NoiseSource {
    /// Starts at sample `next`.
    pub(in crate::door) fn new(key: Key, law: NoiseLaw, next: u64) -> Self {
        let generator = Generator::new(&key);
        let mut words = Box::new(ChaChaWords::new(&key, MAIN));
        words.seek(next);
        Self {
            key,
            law,
            words,
            generator,
            next,
            #[cfg(test)]
            script: None,
        }
    }

    /// As [`Self::new`], for tests of what is made of noise.
    #[cfg(test)]
    pub(crate) fn known(key: Key, law: NoiseLaw, next: u64) -> Self {
        Self::new(key, law, next)
    }

    /// A source of these integers, whatever the size asked for: for tests that follow every path.
    #[cfg(test)]
    pub(crate) fn scripted(values: impl IntoIterator<Item = i64>) -> Self {
        let script = Some(Script { values: values.into_iter().collect(), sizes: Vec::new() });
        Self { script, ..Self::new(Key::deterministic([0; 32]), NoiseLaw::Gaussian, 0) }
    }

    /// Says one more integer.
    #[cfg(test)]
    pub(crate) fn say(&mut self, value: i64) {
        self.script.get_or_insert_default().values.push_back(value);
    }

    /// Sizes asked for so far, in quarter units.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> &[u64] {
        self.script.as_ref().map_or(&[], |script| &script.sizes)
    }

    /// Index of the sample that comes next.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Goes to another sample.
    pub(crate) fn seek(&mut self, next: u64) {
        // What is in the buffer already is not made again.
        if next != self.next {
            self.next = next;
            self.words.seek(next);
        }
    }

    /// The key, for a checkpoint that is encrypted.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Sample `index`, wherever the source stands: for samples that are far apart.
    pub(crate) fn single(&mut self, index: u64, quarter_units: u64) -> i64 {
        match self.law {
            NoiseLaw::Gaussian => self.single_of::<Gaussian>(index, quarter_units),
            NoiseLaw::Laplace => self.single_of::<Exponential>(index, quarter_units),
        }
    }

    fn single_of<L: Law>(&mut self, index: u64, quarter_units: u64) -> i64 {
        self.generator.seek(MAIN, index);
        let word = self.generator.word();
        sample::<L>(&mut self.generator, word, index, quarter_units)
    }

    /// Overwrites `row` with the next samples `round(quarter_units/4·Z)`.
    ///
    /// `quarter_units` is from 1 to [`super::MAX_QUARTER_UNITS`]: whoever fits a door has checked it.
    #[inline]
    pub(crate) fn fill(&mut self, row: &mut [i64], quarter_units: u64) {
        debug_assert!(check_quarter_units(quarter_units).is_ok());
        #[cfg(test)]
        if let Some(script) = &mut self.script {
            for k in row {
                *k = script.values.pop_front().unwrap_or(0);
                script.sizes.push(quarter_units);
            }
            return;
        }
        match self.law {
            NoiseLaw::Gaussian => self.fill_with::<Gaussian>(row, quarter_units),
            NoiseLaw::Laplace => self.fill_with::<Exponential>(row, quarter_units),
        }
    }

    #[inline]
    fn fill_with<L: Law>(&mut self, row: &mut [i64], quarter_units: u64) {
        if row.len() > 2 * CHUNK {
            let (key, first) = (&self.key, self.next);
            row.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, row)| {
                let first = first + (chunk * CHUNK) as u64;
                let (mut words, mut generator) = (ChaChaWords::new(key, MAIN), Generator::new(key));
                words.seek(first);
                draw::<L>(&mut generator, &mut words, first, row, quarter_units);
            });
            self.next += row.len() as u64;
            self.words.seek(self.next);
        } else {
            draw::<L>(&mut self.generator, &mut self.words, self.next, row, quarter_units);
            self.next += row.len() as u64;
        }
    }
}

/// Sample `index`, which starts with `word`.
#[inline]
fn sample<L: Law>(generator: &mut Generator, word: u64, index: u64, quarter_units: u64) -> i64 {
    ziggurat::fast::<L>(word, |layer| quarter_units * L::WIDTH[layer])
        .unwrap_or_else(|| ziggurat::slow::<L>(word, quarter_units, false, &mut WordsOf::new(generator, index)))
}

/// Samples `first, first + 1, …` from `words`, which stand at `first`.
#[inline]
fn draw<L: Law>(generator: &mut Generator, words: &mut ChaChaWords, first: u64, row: &mut [i64], quarter_units: u64) {
    let mut done = 0;
    while done < row.len() {
        let mut taken = 0;
        for (k, word) in row[done..].iter_mut().zip(words.available()) {
            *k = sample::<L>(generator, *word, first + (done + taken) as u64, quarter_units);
            taken += 1;
        }
        words.take(taken);
        done += taken;
    }
}

impl std::fmt::Debug for NoiseSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoiseSource(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source(next: u64) -> NoiseSource {
        NoiseSource::new(Key::deterministic([9; 32]), NoiseLaw::Gaussian, next)
    }

    #[test]
    fn samples_depend_on_their_index_alone() {
        let mut whole = vec![0; 20_000];
        source(0).fill(&mut whole, 1 << 30);
        let mut one_by_one = source(0);
        for expected in &whole[..3000] {
            let mut row = [0];
            one_by_one.fill(&mut row, 1 << 30);
            assert_eq!(row[0], *expected);
        }
        for index in [0, 1, 77, 2999, 3000, 19_999] {
            assert_eq!(source(5).single(index, 1 << 30), whole[index as usize]);
        }
        let mut later = vec![0; 10_000];
        source(10_000).fill(&mut later, 1 << 30);
        assert_eq!(later, whole[10_000..]);
    }

    proptest! {
        #[test]
        fn cutting_changes_nothing(cuts in prop::collection::vec(0usize..700, 1..12), shift in 0u64..5000) {
            let total: usize = cuts.iter().sum();
            let mut whole = vec![0; total];
            source(shift).fill(&mut whole, 4_000_000);
            let mut pieces = source(0);
            pieces.seek(shift);
            let mut start = 0;
            for cut in cuts {
                let mut row = vec![0; cut];
                pieces.fill(&mut row, 4_000_000);
                prop_assert_eq!(&row[..], &whole[start..start + cut]);
                start += cut;
            }
            prop_assert_eq!(pieces.position(), shift + total as u64);
        }
    }

    #[test]
    fn the_variance_is_right() {
        // 2^18 samples: the estimate has relative standard deviation 0.0028; false alarm below 1e-8 at 0.017.
        for (law, expected) in [(NoiseLaw::Gaussian, 1.0), (NoiseLaw::Laplace, 2.0)] {
            let mut row = vec![0; 1 << 18];
            NoiseSource::new(Key::deterministic([4; 32]), law, 77).fill(&mut row, 400);
            let square: f64 = row.iter().map(|k| (*k as f64 / 100.0).powi(2)).sum::<f64>() / row.len() as f64;
            assert!((square / expected - 1.0).abs() < 0.03, "{law:?} {square}");
        }
    }
}
