//! An independent replay of the sampler's decisions in 420-bit arithmetic.
//!
//! A recorder logs every word with its purpose. The replayer follows the log, decides every
//! accept, reject and rounding on the whole remaining box with its own exponential, and must
//! reproduce every integer. Crafted words reach the paths that random words never meet.

use super::Key;
use super::geometric::Geometric;
use super::tables::{
    EXPONENTIAL_ACCEPT, EXPONENTIAL_HEIGHT, EXPONENTIAL_WIDTH, GAUSSIAN_ACCEPT, GAUSSIAN_HEIGHT, GAUSSIAN_WIDTH,
};
use super::words::{ChaChaWords, Purpose, Words};
use super::ziggurat::{Exponential, Gaussian, Law, MAX_QUARTER_UNITS, Scaled};
use num_bigint::BigUint;
use proptest::prelude::*;
use rayon::prelude::*;
use std::collections::VecDeque;

const BITS: u64 = 420;

/// Logs the words that production draws; scripted words come first.
struct Recorder {
    inner: ChaChaWords,
    script: VecDeque<u64>,
    log: Vec<(Purpose, u64)>,
}

impl Recorder {
    fn new(seed: u8, stream: u64, script: &[u64]) -> Self {
        let inner = ChaChaWords::new(&Key::deterministic([seed; 32]), stream);
        Self { inner, script: script.iter().copied().collect(), log: Vec::new() }
    }
}

impl Words for Recorder {
    fn next(&mut self, purpose: Purpose) -> u64 {
        let word = self.script.pop_front().unwrap_or_else(|| self.inner.next(purpose));
        self.log.push((purpose, word));
        word
    }

    fn enter(&mut self) {
        self.log.push((Purpose::Nested, 0));
    }
}

/// `2^BITS·exp(-x)`, rounded down, one more is above: positive series of `exp` and a reciprocal.
fn exp_neg(x: &BigUint) -> (BigUint, BigUint) {
    let guard = BITS + 60;
    let one = BigUint::from(1u8) << guard;
    // exp(x/16) by the series (all terms positive), then four squarings, then 1/exp.
    let r = (x << 60u32) >> 4u32;
    let (mut sum, mut term) = (one.clone(), one.clone());
    for k in 1u32.. {
        term = ((term * &r) >> guard) / k;
        if term == BigUint::ZERO {
            break;
        }
        sum += &term;
    }
    for _ in 0..4 {
        sum = (&sum * &sum) >> guard;
    }
    let value = (BigUint::from(1u8) << (2 * guard)) / sum;
    // Relative error below 2^-(guard - 20): 200 terms, four squarings.
    let slack = BigUint::from(1u64 << 40);
    let low = if value > slack { &value - &slack } else { BigUint::ZERO };
    (low >> 60u32, ((value + slack) >> 60u32) + 1u8)
}

/// A half-open box `[low, high) / 2^shift`.
#[derive(Clone)]
struct Box1 {
    low: BigUint,
    high: BigUint,
    shift: u64,
}

impl Box1 {
    fn fixed(&self, value: &BigUint) -> BigUint {
        assert!(self.shift <= BITS, "420 bits are enough");
        value << (BITS - self.shift)
    }
}

/// The table of a law and what the replayer knows of its density.
struct Table {
    width: &'static [u64; 256],
    accept: &'static [u64; 256],
    first: u64,
    scale: u64,
    gaussian: bool,
}

const GAUSSIAN: Table =
    Table { width: &GAUSSIAN_WIDTH, accept: &GAUSSIAN_ACCEPT, first: GAUSSIAN_HEIGHT[1], scale: 10, gaussian: true };
const EXPONENTIAL: Table = Table {
    width: &EXPONENTIAL_WIDTH,
    accept: &EXPONENTIAL_ACCEPT,
    first: EXPONENTIAL_HEIGHT[1],
    scale: 12,
    gaussian: false,
};

impl Table {
    /// `2^BITS·y_i` within 300 units below, from the recursion.
    fn height(&self, layer: usize) -> BigUint {
        if layer == 0 {
            return BigUint::ZERO;
        }
        let first = BigUint::from(self.first) << (BITS - 64);
        (1..layer).fold(first.clone(), |sum, j| sum + &first * self.width[0] / self.width[j])
    }

    /// `f` over the box: bounds at the far and the near end.
    fn density(&self, x: &Box1) -> (BigUint, BigUint) {
        let exponent = |end: &BigUint| {
            let value = x.fixed(end);
            if self.gaussian { (&value * &value) >> (BITS + 1) } else { value }
        };
        (exp_neg(&(exponent(&x.high) + 1u8)).0, exp_neg(&exponent(&x.low)).1)
    }
}

impl Table {
    /// Whether the whole box lies under the graph of its layer.
    fn covers(&self, layer: usize, x: &Box1) -> bool {
        self.density(x).0 >= self.height(layer + 1) + 1000u32
    }

    /// The density falls, so a layer's threshold cell speaks for all cells below it.
    fn check_thresholds(&self) {
        for layer in 0..255 {
            let high = BigUint::from(self.width[layer]) * self.accept[layer];
            let low = &high - self.width[layer];
            assert!(self.covers(layer, &Box1 { low, high, shift: 55 + self.scale }), "threshold {layer}");
        }
    }
}

struct Replay<'a> {
    log: &'a [(Purpose, u64)],
    at: usize,
    /// Evaluate the density for every sample; otherwise rely on [`Table::check_thresholds`].
    strict: bool,
}

impl Replay<'_> {
    fn peek(&self) -> Option<Purpose> {
        self.log.get(self.at).map(|entry| entry.0)
    }

    fn take(&mut self, purpose: Purpose) -> u64 {
        let (logged, word) = self.log[self.at];
        assert_eq!(logged, purpose, "the sampler drew a word for another purpose");
        self.at += 1;
        word
    }

    /// Narrows a box by 64 bits.
    fn narrow(x: &mut Box1, word: u64) {
        let width = &x.high - &x.low;
        x.low = (&x.low << 64u32) + &width * word;
        x.high = &x.low + width;
        x.shift += 64;
    }

    /// Accept or reject once the whole box says so, following refinements in the log, which begin
    /// with a word for the abscissa unless only the height matters.
    fn decide(
        &mut self,
        x: &mut Box1,
        density: impl Fn(&Box1) -> (BigUint, BigUint),
        base: &BigUint,
        rise: &BigUint,
        refinement: Purpose,
    ) -> bool {
        let word = self.take(Purpose::Height);
        let mut w = Box1 { low: word.into(), high: BigUint::from(word) + 1u8, shift: 64 };
        loop {
            let error = BigUint::from(1000u32);
            let (least, most) = density(x);
            let low = base + ((&w.low * rise) >> w.shift);
            let high = base + ((&w.high * rise) >> w.shift) + error;
            let decided = if high <= least {
                Some(true)
            } else if low >= most {
                Some(false)
            } else {
                None
            };
            let refined = self.peek() == Some(refinement);
            match (decided, refined) {
                (Some(answer), false) => return answer,
                (None, false) => panic!("decided on an undecided box"),
                (_, true) => {
                    if self.peek() == Some(Purpose::Abscissa) {
                        Self::narrow(x, self.take(Purpose::Abscissa));
                    }
                    Self::narrow(&mut w, self.take(Purpose::Height));
                }
            }
        }
    }

    /// One sample of a half density; the sign of its last attempt.
    fn half(&mut self, table: &Table) -> (Box1, bool) {
        loop {
            let word = self.take(Purpose::Layer);
            let (layer, negative, u) = ((word % 256) as usize, word / 256 % 2 == 1, word / 512);
            let width = BigUint::from(table.width[layer]);
            let low = &width * u;
            let mut x = Box1 { high: &low + &width, low, shift: 55 + table.scale };
            if u < table.accept[layer] {
                assert!(!self.strict || table.covers(layer, &x), "accepted without looking, but not under the graph");
                return (x, negative);
            }
            if layer == 0 {
                let edge = |x: &Box1| BigUint::from(table.width[1]) << (x.shift - table.scale);
                while x.low < edge(&x) && x.high > edge(&x) {
                    let word = self.take(Purpose::Abscissa);
                    Self::narrow(&mut x, word);
                }
                if x.low >= edge(&x) {
                    if let Some(tail) = self.tail(table) {
                        return (tail, negative);
                    }
                    continue;
                }
            }
            let (base, next) = (table.height(layer), table.height(layer + 1));
            if self.decide(&mut x, |x| table.density(x), &base, &(next - &base), Purpose::Abscissa) {
                return (x, negative);
            }
        }
    }

    fn tail(&mut self, table: &Table) -> Option<Box1> {
        let first = BigUint::from(table.first) << (BITS - 64);
        if !table.gaussian {
            let r = BigUint::from(table.width[1]) << (BITS - table.scale);
            let at_r = exp_neg(&r);
            let mut anywhere = Box1 { low: BigUint::ZERO, high: 1u8.into(), shift: 0 };
            if !self.decide(&mut anywhere, |_| at_r.clone(), &BigUint::ZERO, &first, Purpose::Height) {
                return None;
            }
            self.take(Purpose::Nested);
            let (mut x, _) = self.half(table);
            let offset = BigUint::from(table.width[1]) << (x.shift - table.scale);
            x.low += &offset;
            x.high += offset;
            return Some(x);
        }
        self.take(Purpose::Nested);
        let (mut e, _) = self.half(&EXPONENTIAL);
        let (r, tw) = (table.width[1], table.width[0] - table.width[1]);
        // T(E) = (x² − 2E)/2 with x = r + tw·E.
        let exponent = |e: &Box1, end: &BigUint| {
            let end = e.fixed(end);
            let x = (BigUint::from(r) << (BITS - 10)) + ((&end * tw) >> 10u32);
            ((&x * &x) >> (BITS + 1)) - end
        };
        let density = |e: &Box1| (exp_neg(&(exponent(e, &e.high) + 8u8)).0, exp_neg(&(exponent(e, &e.low) - 8u8)).1);
        self.decide(&mut e, density, &BigUint::ZERO, &first, Purpose::Abscissa).then(|| {
            let offset = BigUint::from(r) << (e.shift);
            Box1 { low: &offset + &e.low * tw, high: &offset + &e.high * tw, shift: e.shift + 10 }
        })
    }

    /// One sample of a half density, as far as the log tells it for the last rounding; its sign.
    fn magnitude(&mut self, table: &Table) -> (Box1, bool) {
        let (mut x, negative) = self.half(table);
        while self.peek() == Some(Purpose::Rounding) {
            let word = self.take(Purpose::Rounding);
            Self::narrow(&mut x, word);
        }
        (x, negative)
    }

    /// The discrete Laplace integer that the log must give: `floor(S/2^f·x)`, minus zero drawn again.
    fn geometric(&mut self, scale: u64, shift: u32) -> i64 {
        loop {
            let (x, negative) = self.magnitude(&EXPONENTIAL);
            let shift = x.shift + u64::from(shift);
            let (low, high): (BigUint, BigUint) = ((&x.low * scale) >> shift, (&x.high * scale - 1u8) >> shift);
            assert_eq!(low, high, "rounded an undecided box");
            let k = i64::try_from(low).unwrap();
            if k != 0 || !negative {
                return if negative { -k } else { k };
            }
        }
    }

    /// The integer that the log must give.
    fn sample(&mut self, table: &Table, quarter_units: u64) -> i64 {
        let (x, negative) = self.magnitude(table);
        // round(S/4·x) = floor((S·x + 2)/4) at both ends, the upper one open.
        let denominator = BigUint::from(4u8) << x.shift;
        let two = BigUint::from(2u8) << x.shift;
        let low = (&x.low * quarter_units + &two) / &denominator;
        let high = (&x.high * quarter_units + &two - 1u8) / &denominator;
        assert_eq!(low, high, "rounded an undecided box");
        let k = i64::try_from(low).unwrap();
        if negative { -k } else { k }
    }
}

fn replay<L: Law>(
    table: &Table,
    quarter_units: u64,
    wide_only: bool,
    mut recorder: Recorder,
    count: usize,
    strict: bool,
) -> usize {
    let mut scaled = Scaled::<L>::new(quarter_units);
    scaled.wide_only = wide_only;
    let mut slow = 0;
    for i in 0..count {
        recorder.log.clear();
        let word = recorder.next(Purpose::Layer);
        let k = scaled.sample(word, &mut recorder);
        let mut replay = Replay { log: &recorder.log, at: 0, strict };
        assert_eq!(replay.sample(table, quarter_units), k, "sample {i}");
        assert_eq!(replay.at, recorder.log.len(), "sample {i} drew words it did not need");
        slow += usize::from(recorder.log.len() > 1);
    }
    slow
}

/// The same for discrete Laplace noise of this size.
fn replay_geometric(size: Geometric, wide_only: bool, mut recorder: Recorder, count: usize, strict: bool) -> usize {
    let (scale, shift) = size.parts();
    let mut slow = 0;
    for i in 0..count {
        recorder.log.clear();
        let word = recorder.next(Purpose::Layer);
        let k = size.fast(word).unwrap_or_else(|| size.slow(word, wide_only, &mut recorder));
        let mut replay = Replay { log: &recorder.log, at: 0, strict };
        assert_eq!(replay.geometric(scale, shift), k, "sample {i}");
        assert_eq!(replay.at, recorder.log.len(), "sample {i} drew words it did not need");
        slow += usize::from(recorder.log.len() > 1);
    }
    slow
}

/// Sizes of discrete Laplace noise, `c = numerator·2^exponent`: next to none, of the order of one, large, the largest.
const GEOMETRIC: [(u64, i32); 6] = [(1, -14), (3, -4), (1, 0), (355, -3), (12_345_678_901, -10), (1, 46)];

/// `total` samples over both laws, six sizes of noise, forced and ordinary paths.
fn replay_many(total: usize, strict: bool) {
    GAUSSIAN.check_thresholds();
    EXPONENTIAL.check_thresholds();
    let sizes = [1, 4, 9, 400, 1 << 42, MAX_QUARTER_UNITS];
    let jobs: Vec<(bool, u64, bool, u64)> = (0..8u64)
        .flat_map(|part| {
            sizes.iter().flat_map(move |s| {
                [(true, *s, false, part), (true, *s, true, part), (false, *s, false, part), (false, *s, true, part)]
            })
        })
        .collect();
    let each = total.div_ceil(jobs.len());
    let slow: usize = jobs
        .par_iter()
        .enumerate()
        .map(|(stream, (gaussian, size, wide, _))| {
            let recorder = Recorder::new(77, stream as u64, &[]);
            if *gaussian {
                replay::<Gaussian>(&GAUSSIAN, *size, *wide, recorder, each, strict)
            } else {
                replay::<Exponential>(&EXPONENTIAL, *size, *wide, recorder, each, strict)
            }
        })
        .sum();
    let each_geometric = total.div_ceil(4 * 2 * GEOMETRIC.len());
    let jobs: Vec<_> = GEOMETRIC.iter().flat_map(|size| (0..8u64).map(move |part| (*size, part))).collect();
    jobs.par_iter().enumerate().for_each(|(stream, ((numerator, exponent), part))| {
        let size = Geometric::at_least(*numerator, *exponent, 1).unwrap();
        let recorder = Recorder::new(78, stream as u64, &[]);
        replay_geometric(size, part % 2 == 1, recorder, each_geometric / 2, strict);
    });
    assert!(slow > total / 100, "the slow paths were not met");
    eprintln!("replayed {} samples, {slow} of them through slow paths, no mismatch", each * jobs.len());
}

#[test]
fn a_hundred_thousand_samples() {
    replay_many(100_000, true);
}

#[test]
#[ignore = "half a minute; run by `make test-slow`"]
fn a_million_samples() {
    replay_many(1_000_000, true);
}

/// The second command runs this; `SORDINO_REPLAY=100000000` is the run by hand.
#[test]
#[ignore = "minutes; run by `make test-slow`"]
fn ten_million_samples() {
    let total = std::env::var("SORDINO_REPLAY").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    replay_many(total, false);
}

/// Words that random traces never meet: thresholds, the straddling cell, the sliver below `X_1`,
/// heights of all ones and all zeros, and box corners that no 64-bit decision settles.
#[test]
fn crafted_words() {
    fn craft<L: Law>(table: &Table) {
        let word = |layer: u64, sign: u64, u: u64| layer | sign << 8 | u << 9;
        let last = (1u64 << 55) - 1;
        let straddle = ((u128::from(L::WIDTH[1]) << 55) / u128::from(L::WIDTH[0])) as u64;
        let mut scripts: Vec<Vec<u64>> = Vec::new();
        for height in [0, 1, u64::MAX, 1 << 63, L::HEIGHT[1]] {
            for layer in [0, 1, 2, 100, 254, 255u64] {
                for u in [L::ACCEPT[layer as usize].saturating_sub(1), L::ACCEPT[layer as usize], last, 0] {
                    scripts.push(vec![word(layer, layer & 1, u), height, height, height]);
                }
            }
            for u in [straddle - 1, straddle, straddle + 1] {
                for further in
                    [0, u64::MAX, 1 << 63, (u128::from(L::WIDTH[1]) << 55).wrapping_rem(u128::from(L::WIDTH[0])) as u64]
                {
                    scripts.push(vec![word(0, 0, u), further, height, height, height]);
                }
            }
            // A tail in a tail in a tail, and a tail whose nested sample is a wedge.
            scripts.push(vec![word(0, 1, last), height, word(0, 0, last), height, word(0, 0, last), height]);
            scripts.push(vec![word(0, 1, last), word(0, 0, last), height, word(0, 0, last), height]);
        }
        for layer in [1u64, 30, 200, 255] {
            // The height that meets the density at the cell, to 64 bits: undecided at first.
            for u in [L::ACCEPT[layer as usize] + 12_345, u64::midpoint(L::ACCEPT[layer as usize], last)] {
                let x = Box1 {
                    low: BigUint::from(L::WIDTH[layer as usize]) * u,
                    high: BigUint::from(L::WIDTH[layer as usize]) * (u + 1),
                    shift: 55 + table.scale,
                };
                let (least, most) = table.density(&x);
                let (base, next) = (table.height(layer as usize), table.height(layer as usize + 1));
                for f in [least, most] {
                    if f > base {
                        let w = ((f - &base) << 64u32) / (&next - &base);
                        if let Ok(w) = u64::try_from(w) {
                            for w in [w.saturating_sub(1), w, w.saturating_add(1)] {
                                scripts.push(vec![word(layer, 0, u), w]);
                            }
                        }
                    }
                }
            }
        }
        for (numerator, exponent) in GEOMETRIC {
            let size = Geometric::at_least(numerator, exponent, 1).unwrap();
            for (i, script) in scripts.iter().enumerate() {
                replay_geometric(size, i % 2 == 0, Recorder::new(6, i as u64, script), 1, true);
            }
        }
        for size in [1, 7, 1 << 30, MAX_QUARTER_UNITS] {
            for wide in [false, true] {
                for (i, script) in scripts.iter().enumerate() {
                    replay::<L>(table, size, wide, Recorder::new(5, i as u64, script), 1, true);
                }
            }
        }
    }
    craft::<Gaussian>(&GAUSSIAN);
    craft::<Exponential>(&EXPONENTIAL);
}

/// Words as a fuzzer draws them: beside the thresholds of both laws, at the ends of a cell or a word, or any.
fn any_word() -> impl Strategy<Value = u64> {
    let beside =
        (any::<u8>(), any::<bool>(), any::<bool>(), 0u8..4, -2i64..=2).prop_map(|(layer, sign, law, which, off)| {
            let (accept, width) =
                if law { (&GAUSSIAN_ACCEPT, &GAUSSIAN_WIDTH) } else { (&EXPONENTIAL_ACCEPT, &EXPONENTIAL_WIDTH) };
            let u = match which {
                0 => accept[usize::from(layer)],
                1 => ((u128::from(width[1]) << 55) / u128::from(width[0])) as u64,
                2 => 0,
                _ => (1 << 55) - 1,
            };
            u64::from(layer) | u64::from(sign) << 8 | u.saturating_add_signed(off).min((1 << 55) - 1) << 9
        });
    let power = (0u32..64, -1i64..=1).prop_map(|(shift, off)| (1u64 << shift).wrapping_add_signed(off));
    prop_oneof![3 => any::<u64>(), 4 => beside, 1 => power, 1 => Just(0), 1 => Just(u64::MAX)]
}

proptest! {
    /// The sampler against the replay on any words; `PROPTEST_CASES` says how many, `make fuzz` more than the tests.
    #[test]
    fn any_words(
        script in prop::collection::vec(any_word(), 1..8),
        size in prop_oneof![1u64..20, 1u64..=MAX_QUARTER_UNITS, Just(MAX_QUARTER_UNITS)],
        geometric in 0..GEOMETRIC.len(),
        wide in any::<bool>(),
    ) {
        let recorder = || Recorder::new(9, 0, &script);
        replay::<Gaussian>(&GAUSSIAN, size, wide, recorder(), 2, true);
        replay::<Exponential>(&EXPONENTIAL, size, wide, recorder(), 2, true);
        let (numerator, exponent) = GEOMETRIC[geometric];
        replay_geometric(Geometric::at_least(numerator, exponent, 1).unwrap(), wide, recorder(), 2, true);
    }
}
