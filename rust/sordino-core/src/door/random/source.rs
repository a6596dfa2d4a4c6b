//! Noise addressed by index: what a stream draws from its one key.
//!
//! Sample `i` starts with word `i` of the key's main stream; the further words that 1.5 % of the samples
//! need come from the stream with nonce `i`. So noise depends on key and index alone: a stream may be cut into
//! batches anywhere, and what was drawn can be drawn again. Of discrete noise, where minus zero is drawn again, the first
//! further words are word `i` of three more streams: in order they cost next to nothing.

use super::Key;
use super::generator::Generator;
use super::geometric::Geometric;
use super::words::{ChaChaWords, Purpose, Words, WordsOf};
use super::ziggurat::{self, Exponential, Gaussian, Law, NoiseLaw, check_quarter_units};
use crate::parallel::in_pieces;
use crate::upper::Upper;

/// Nonce of the main stream, and of those of words for another draw below it; indices stay below 2^63.
const MAIN: u64 = u64::MAX;
const REDRAWS: usize = 3;
/// Rows longer than twice this are drawn in parallel.
const CHUNK: usize = 1 << 12;

/// The law of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::door) enum SourceLaw {
    /// `round(quarter_units/4·Z)`.
    Continuous(NoiseLaw),
    /// A step times discrete Laplace noise of one size, whatever the quarter units.
    Discrete { size: Geometric, step: i64 },
}

impl From<NoiseLaw> for SourceLaw {
    fn from(law: NoiseLaw) -> Self {
        Self::Continuous(law)
    }
}

/// Words for another draw of samples in order, made when the first is asked for.
#[derive(Default)]
struct Redraws([Option<Box<ChaChaWords>>; REDRAWS]);

/// Further words of sample `index`: for another draw those at its place in the redraw streams, then those of its nonce.
struct IndexedWords<'a> {
    key: &'a Key,
    redraws: &'a mut Redraws,
    index: u64,
    taken: usize,
    further: WordsOf<'a>,
}

impl Words for IndexedWords<'_> {
    fn next(&mut self, purpose: Purpose) -> u64 {
        if purpose != Purpose::Layer || self.taken == REDRAWS {
            return self.further.next(purpose);
        }
        let stream = MAIN - 1 - self.taken as u64;
        let words = self.redraws.0[self.taken].get_or_insert_with(|| Box::new(ChaChaWords::new(self.key, stream)));
        self.taken += 1;
        words.at(self.index)
    }
}

/// Exact integer noise under one key, in order of index.
pub(crate) struct NoiseSource {
    key: Key,
    law: SourceLaw,
    words: Box<ChaChaWords>,
    redraws: Redraws,
    /// Size of one more sample after every row, that all of it has in common, over that of the others.
    common: Option<f64>,
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
    pub(in crate::door) fn new(key: Key, law: impl Into<SourceLaw>, next: u64) -> Self {
        let generator = Generator::new(&key);
        let mut words = Box::new(ChaChaWords::new(&key, MAIN));
        words.seek(next);
        Self {
            key,
            law: law.into(),
            words,
            redraws: Redraws::default(),
            common: None,
            generator,
            next,
            #[cfg(test)]
            script: None,
        }
    }

    /// The same with noise in common.
    pub(in crate::door) fn with_common(self, common: Option<f64>) -> Self {
        Self { common, ..self }
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
        self.generator.seek(MAIN, index);
        let word = self.generator.word();
        match self.law {
            SourceLaw::Continuous(NoiseLaw::Gaussian) => {
                sample::<Gaussian>(&mut self.generator, word, index, quarter_units)
            }
            SourceLaw::Continuous(NoiseLaw::Laplace) => {
                sample::<Exponential>(&mut self.generator, word, index, quarter_units)
            }
            SourceLaw::Discrete { size, step } => {
                let mut further = (&mut self.generator, &mut self.redraws);
                step.saturating_mul(discrete(&self.key, &mut further, word, index, size))
            }
        }
    }

    /// The next samples, of another law from now on.
    pub(in crate::door) fn fill_by(&mut self, law: SourceLaw, row: &mut [i64], quarter_units: u64) {
        self.law = law;
        self.fill(row, quarter_units);
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
        self.fill_own(row, quarter_units);
        if let Some(ratio) = self.common {
            let mut one = [0];
            self.fill_own(&mut one, scaled_quarters(quarter_units, ratio));
            for k in row {
                *k = k.saturating_add(one[0]);
            }
        }
    }

    /// Samples of each coordinate.
    #[inline]
    fn fill_own(&mut self, row: &mut [i64], quarter_units: u64) {
        match self.law {
            SourceLaw::Continuous(NoiseLaw::Gaussian) => {
                self.fill_with(row, |_, (generator, _), word, index| {
                    sample::<Gaussian>(generator, word, index, quarter_units)
                });
            }
            SourceLaw::Continuous(NoiseLaw::Laplace) => {
                self.fill_with(row, |_, (generator, _), word, index| {
                    sample::<Exponential>(generator, word, index, quarter_units)
                });
            }
            SourceLaw::Discrete { size, step } => {
                self.fill_with(row, |key, further, word, index| {
                    step.saturating_mul(discrete(key, further, word, index, size))
                });
            }
        }
    }

    #[inline]
    fn fill_with(&mut self, row: &mut [i64], sample: impl Fn(&Key, &mut Further<'_>, u64, u64) -> i64 + Sync) {
        let (key, first) = (&self.key, self.next);
        self.next += row.len() as u64;
        if row.len() > 2 * CHUNK {
            in_pieces(row, CHUNK, &|start, row| {
                let first = first + start as u64;
                let (mut words, mut generator) = (ChaChaWords::new(key, MAIN), Generator::new(key));
                let mut redraws = Redraws::default();
                words.seek(first);
                draw(&mut words, first, row, |word, index| {
                    sample(key, &mut (&mut generator, &mut redraws), word, index)
                });
            });
            self.words.seek(self.next);
        } else {
            let mut further = (&mut self.generator, &mut self.redraws);
            draw(&mut self.words, first, row, |word, index| sample(key, &mut further, word, index));
        }
    }
}

/// Noise of a factor times this size, rounded up.
pub(in crate::door) fn scaled_quarters(quarter_units: u64, factor: f64) -> u64 {
    (Upper::exact(factor) * Upper::exact(quarter_units as f64)).get().ceil() as u64
}

/// Where further words come from.
type Further<'a> = (&'a mut Generator, &'a mut Redraws);

/// Discrete sample `index`, which starts with `word`.
#[inline]
fn discrete(key: &Key, further: &mut Further<'_>, word: u64, index: u64, size: Geometric) -> i64 {
    size.fast(word).unwrap_or_else(|| {
        let (generator, redraws) = further;
        let further = WordsOf::new(generator, index);
        size.slow(word, false, &mut IndexedWords { key, redraws, index, taken: 0, further })
    })
}

/// Sample `index`, which starts with `word`.
#[inline]
fn sample<L: Law>(generator: &mut Generator, word: u64, index: u64, quarter_units: u64) -> i64 {
    ziggurat::fast::<L>(word, |layer| quarter_units * L::WIDTH[layer])
        .unwrap_or_else(|| ziggurat::slow::<L>(word, quarter_units, false, &mut WordsOf::new(generator, index)))
}

/// Samples `first, first + 1, …` from `words`, which stand at `first`.
#[inline]
fn draw(words: &mut ChaChaWords, first: u64, row: &mut [i64], mut sample: impl FnMut(u64, u64) -> i64) {
    let mut done = 0;
    while done < row.len() {
        let mut taken = 0;
        for (k, word) in row[done..].iter_mut().zip(words.available()) {
            *k = sample(*word, first + (done + taken) as u64);
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

    /// Discrete noise of a rate at which every third sample is drawn again.
    #[test]
    fn discrete_samples_depend_on_their_index_alone() {
        let size = Geometric::at_least(1, 0, 1).unwrap();
        let source = |next| NoiseSource::new(Key::deterministic([9; 32]), SourceLaw::Discrete { size, step: 4 }, next);
        let mut whole = vec![0; 20_000];
        source(0).fill(&mut whole, 1);
        let mut one_by_one = source(0);
        for expected in &whole[..3000] {
            let mut row = [0];
            one_by_one.fill(&mut row, 1);
            assert_eq!(row[0], *expected);
        }
        for index in [19_999, 0, 1, 77, 2999, 3000, 5] {
            assert_eq!(source(5).single(index, 1), whole[index as usize]);
            assert_eq!(one_by_one.single(index, 1), whole[index as usize]);
        }
        let mut later = vec![0; 10_000];
        source(10_000).fill(&mut later, 1);
        assert_eq!(later, whole[10_000..]);
        // The law: 1/(2 sinh²(1/2)) at 5 standard errors of 20 000 samples.
        let square = whole.iter().map(|k| (*k as f64 / 4.0).powi(2)).sum::<f64>() / 20_000.0;
        assert!((square / 1.841_347 - 1.0).abs() < 0.08, "{square}");
        assert!(whole.iter().all(|k| k % 4 == 0));
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
