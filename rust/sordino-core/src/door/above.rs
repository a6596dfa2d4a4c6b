//! `above`: whether a count has come above a threshold, again and again; nothing else leaves.
//!
//! The sparse vector technique on a stream of counts: every step adds to the count of the running segment, and the answer
//! is whether the noisy count exceeds the noisy threshold. If it does, the segment ends, and the next begins with a count of
//! zero and fresh noise on the threshold.
//!
//! **Privacy.** Let neighbouring streams differ by at most `Δ` in one item. Given the answers, segments begin and end
//! alike, so the item is in one segment, in which the counts from it on differ by one and the same `d`, `|d| ≤ Δ`: they
//! are *monotone*. With `P(ρ = j)` changing by `e^{ε₁}` at most when `ρ` moves by `Δ` and `P(ν ≥ j)` by `e^{ε₂}`, let `ρ` be
//! the threshold's noise and `ν` a count's, `ε₁ = ε₂ = ε/2`, Laplace of scale `2Δ/ε`.
//! If the first stream has the larger counts, every "no" is less likely on it, for the same `ρ`, and the one "yes" at most
//! `e^{ε₂}` times as likely. Else compare `ρ` with `ρ + Δ`: every "no" is at least as likely on the second, the "yes" costs
//! `e^{ε₂}`, the density of `ρ` costs `e^{ε₁}`. Both ways at most `e^ε`. Rounding noise to integers keeps both properties.
//! (Lyu, Su & Li 2017, `arXiv:1603.01699`, Theorem 4, for monotone queries and one positive answer.)

use super::random::{Key, NoiseLaw, NoiseSource};
use crate::error::Error;
use crate::owner::Owner;
use crate::sealing::{seal, unseal};
use crate::upper::Upper;
use zeroize::Zeroize;

/// Bits after the binary point of a noisy count.
const FRACTION: u32 = 20;
/// Items are clamped to this magnitude, and so are counts.
const MOST: i64 = 1 << 40;

/// Bytes of a state: three integers and a key.
const STATE: usize = 56;

/// An open sequence of segments.
pub struct AboveThreshold {
    threshold: i64,
    quarter_units: u64,
    source: NoiseSource,
    /// Exact count of the running segment.
    count: i64,
    /// Noisy threshold of the running segment, in units of `2^-FRACTION`.
    noisy_threshold: i64,
    owner: Owner,
    closed: bool,
}

impl AboveThreshold {
    /// Opens the first segment: `epsilon`-differentially private, all segments together, for items of which one changes
    /// by at most `sensitivity`.
    ///
    /// # Errors
    /// For numbers out of range, or if the operating system gives no randomness.
    pub fn open(threshold: u64, sensitivity: u64, epsilon: f64, key: Option<[u8; 32]>) -> Result<Self, Error> {
        if threshold == 0 || threshold > MOST as u64 {
            return Err(Error::invalid("threshold", "must be from 1 to 2^40"));
        }
        if sensitivity == 0 || !(epsilon.is_finite() && epsilon > 0.0) {
            return Err(Error::invalid("epsilon", "sensitivity and epsilon must be positive and finite"));
        }
        let scale = Upper::rounded(2.0 * Upper::integer(sensitivity.into()).get() / epsilon, 2);
        let quarters = scale.scaled(2 + FRACTION as i32).get().ceil();
        if quarters > 2f64.powi(46) {
            return Err(Error::invalid("epsilon", "too small for this sensitivity"));
        }
        let quarter_units = (quarters as u64).max(1);
        let key = Key::known_or_fresh(key)?;
        let source = NoiseSource::new(key, NoiseLaw::Laplace, 0);
        let owner = Owner::current();
        let threshold = threshold as i64;
        let mut segments =
            Self { threshold, quarter_units, source, count: 0, noisy_threshold: 0, owner, closed: false };
        segments.begin();
        Ok(segments)
    }

    /// Noise and the running segment, sealed under a 256-bit key and bound to `place`.
    ///
    /// # Errors
    /// If it is closed or belongs to another process, or the operating system gives no randomness.
    pub fn sealed(&self, key: &[u8; 32], place: &[u8]) -> Result<Vec<u8>, Error> {
        self.check()?;
        let mut state = [0; STATE];
        state[..8].copy_from_slice(&self.count.to_le_bytes());
        state[8..16].copy_from_slice(&self.noisy_threshold.to_le_bytes());
        state[16..24].copy_from_slice(&self.source.position().to_le_bytes());
        state[24..].copy_from_slice(self.source.key().bytes());
        let sealed = seal(key, place, &state);
        state.zeroize();
        sealed
    }

    /// Takes the place where [`Self::sealed`] was: of a sequence that was opened with the same numbers. All noise that was
    /// not drawn there comes from the key that this one was opened with.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the bytes were altered, or belong to another key or place.
    pub fn go_on(&mut self, key: &[u8; 32], place: &[u8], sealed: &[u8]) -> Result<(), Error> {
        self.check()?;
        let mut state = unseal(key, place, sealed)?;
        let number = |i: usize| state.get(8 * i..8 * i + 8)?.try_into().ok().map(i64::from_le_bytes);
        let numbers = (number(0), number(1), number(2));
        let fits = state.len() == STATE;
        state.zeroize();
        match numbers {
            (Some(count), Some(noisy_threshold), Some(position))
                if fits && position >= 0 && (-MOST..=MOST).contains(&count) =>
            {
                (self.count, self.noisy_threshold) = (count, noisy_threshold);
                self.source.seek(position as u64);
                Ok(())
            }
            _ => Err(Error::Checkpoint),
        }
    }

    fn draw(&mut self) -> i64 {
        let mut noise = [0];
        self.source.fill(&mut noise, self.quarter_units);
        noise[0]
    }

    fn begin(&mut self) {
        self.count = 0;
        self.noisy_threshold = (self.threshold << FRACTION).saturating_add(self.draw());
    }

    /// Scale of the noise on a count.
    pub fn scale(&self) -> f64 {
        self.quarter_units as f64 / 4.0 * 2f64.powi(-(FRACTION as i32))
    }

    /// Refuses what cannot be answered, before anything happens.
    ///
    /// # Errors
    /// If this was closed, or belongs to another process.
    pub fn check(&self) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        self.owner.check()
    }

    /// Adds an item to the running segment. If the segment ends with it, the exact count of the segment comes back: it is
    /// private, and only that it came may be published.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn push(&mut self, item: i64) -> Result<Option<i64>, Error> {
        self.check()?;
        self.count = (self.count + item.clamp(-MOST, MOST)).clamp(-MOST, MOST);
        let noisy = (self.count << FRACTION).saturating_add(self.draw());
        if noisy < self.noisy_threshold {
            return Ok(None);
        }
        let count = self.count;
        self.begin();
        Ok(Some(count))
    }

    /// Adds items in turn; appends the places (from 0) at which segments end, and their exact counts.
    ///
    /// # Errors
    /// As [`Self::check`]; then nothing has changed.
    pub fn push_all(&mut self, items: &[i64], places: &mut Vec<u64>, counts: &mut Vec<i64>) -> Result<(), Error> {
        self.check()?;
        for (place, item) in items.iter().enumerate() {
            if let Some(count) = self.push(*item)? {
                places.push(place as u64);
                counts.push(count);
            }
        }
        Ok(())
    }

    /// Wipes key and count; everything is refused from now on.
    pub fn close(&mut self) {
        self.closed = true;
        self.count.zeroize();
        self.source = NoiseSource::new(Key::deterministic([0; 32]), NoiseLaw::Laplace, 0);
    }
}

impl Drop for AboveThreshold {
    fn drop(&mut self) {
        self.count.zeroize();
        self.noisy_threshold.zeroize();
    }
}

impl std::fmt::Debug for AboveThreshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AboveThreshold(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::AboveThreshold;

    fn key(i: u32) -> [u8; 32] {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&i.to_le_bytes());
        bytes
    }

    /// The noise is never less than `2Δ/ε`, and hardly more; what cannot be drawn is refused.
    #[test]
    fn the_noise_covers_the_sensitivity() {
        for (sensitivity, epsilon) in [(1, 1.0), (1, 0.3), (7, 0.1), (1000, 3.7), (1, 1e-6), (3, 40.0)] {
            let (found, least) = (open(8, sensitivity, epsilon).unwrap().scale(), 2.0 * sensitivity as f64 / epsilon);
            assert!(found >= least && found <= least + 2.0 * 2f64.powi(-22), "{found} for {least}");
        }
        assert_eq!(open(1, 1, 1e9).unwrap().scale(), 2f64.powi(-22));
        assert!(open(1 << 40, 1, 1.0).is_ok() && open((1 << 40) + 1, 1, 1.0).is_err() && open(0, 1, 1.0).is_err());
        // 2^46 quarters of 2^-20 are a scale of 2^24.
        let end = 2f64.powi(-23);
        assert!(open(1, 1, end * 1.001).is_ok() && open(1, 1, end / 1.001).is_err());
    }

    fn open(threshold: u64, sensitivity: u64, epsilon: f64) -> Result<AboveThreshold, crate::error::Error> {
        AboveThreshold::open(threshold, sensitivity, epsilon, Some(key(1)))
    }

    /// Many items at once end the segments that they end one by one.
    #[test]
    fn batches_are_items_in_turn() {
        let items: Vec<i64> = (0..200).map(|i| i % 5).collect();
        let (mut one, mut all) = (open(9, 1, 2.0).unwrap(), open(9, 1, 2.0).unwrap());
        let expected: Vec<(u64, i64)> =
            (0..).zip(&items).filter_map(|(place, item)| Some((place, one.push(*item).unwrap()?))).collect();
        let (mut places, mut counts) = (Vec::new(), Vec::new());
        all.push_all(&items, &mut places, &mut counts).unwrap();
        assert!(expected.len() > 10 && places.into_iter().zip(counts).eq(expected));
    }

    /// Items beyond 2^40 count as that, and the count goes no further.
    #[test]
    fn items_and_counts_are_clamped() {
        let mut above = open(1 << 40, 1, 1e9).unwrap();
        for item in [i64::MIN, i64::MIN, -1] {
            assert_eq!(above.push(item).unwrap(), None);
            assert_eq!(above.count, -super::MOST);
        }
        let mut twice = open(1 << 40, 1, 1e9).unwrap();
        for _ in 0..2 {
            twice.count = 0;
            let ended = twice.push(i64::MAX).unwrap();
            assert!(ended.is_none_or(|count| count == super::MOST) && twice.count <= super::MOST);
        }
    }

    /// States that nobody's stream has are refused, though sealed under the key.
    #[test]
    fn states_of_no_stream_are_refused() {
        let state = |count: i64, position: i64, len: usize| {
            let mut bytes = vec![0; len];
            bytes[..8].copy_from_slice(&count.to_le_bytes());
            bytes[16..24].copy_from_slice(&position.to_le_bytes());
            crate::sealing::seal(&[1; 32], b"here", &bytes).unwrap()
        };
        let most = super::MOST;
        for (count, position, len, accepted) in [
            (most, 0, 56, true),
            (-most, 7, 56, true),
            (most + 1, 0, 56, false),
            (-most - 1, 0, 56, false),
            (i64::MIN, 0, 56, false),
            (0, -1, 56, false),
            (0, 0, 55, false),
            (0, 0, 57, false),
        ] {
            let mut above = open(8, 1, 1.0).unwrap();
            assert_eq!(
                above.go_on(&[1; 32], b"here", &state(count, position, len)).is_ok(),
                accepted,
                "{count} {position}"
            );
            assert!(above.go_on(&[2; 32], b"here", &state(0, 0, 56)).is_err());
        }
    }

    /// `P(Laplace of scale b − Laplace of scale b ≥ x)` for x ≥ 0.
    fn tail(x: f64, b: f64) -> f64 {
        (-x / b).exp() * (0.5 + x / (4.0 * b))
    }

    /// The first answer against the closed form; 5 standard errors, fixed keys.
    #[test]
    fn the_first_answer() {
        for (item, epsilon) in [(0i64, 0.5), (3, 0.5), (3, 2.0), (12, 1.0)] {
            let rounds = 20_000;
            let hits = (0..rounds)
                .filter(|i| {
                    let mut above = AboveThreshold::open(8, 1, epsilon, Some(key(*i))).unwrap();
                    above.push(item).unwrap().is_some()
                })
                .count() as f64;
            let x = 8.0 - item as f64;
            let p = if x >= 0.0 { tail(x, 2.0 / epsilon) } else { 1.0 - tail(-x, 2.0 / epsilon) };
            let n = f64::from(rounds);
            assert!((hits - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0, "{item} {hits} {}", n * p);
        }
    }

    /// Likelihoods of every pattern of answers to three items on neighbours; 2^18 keys. With ε = 1 the ratio is at most
    /// e; the estimates are of patterns with at least 2,000 hits, so that 5 standard errors are 16 % of each.
    #[test]
    #[ignore = "ten seconds; run by `make test-slow`"]
    fn neighbours_answer_alike() {
        let patterns = |items: [i64; 3], offset: u32| {
            let mut counts = [0f64; 8];
            for i in 0..1u32 << 18 {
                let mut above = AboveThreshold::open(2, 1, 1.0, Some(key(i + offset))).unwrap();
                let answers = items.map(|item| usize::from(above.push(item).unwrap().is_some()));
                counts[answers[0] | answers[1] << 1 | answers[2] << 2] += 1.0;
            }
            counts
        };
        let one = patterns([1, 1, 1], 0);
        for (items, offset) in [([0, 1, 1], 1 << 20), ([1, 0, 1], 2 << 20), ([1, 2, 1], 3 << 20)] {
            for (a, b) in one.iter().zip(patterns(items, offset)).filter(|(a, b)| a.min(*b) > 2000.0) {
                assert!((a / b).max(b / a) < 1f64.exp() * 1.16, "{items:?} {a} {b}");
            }
        }
    }

    #[test]
    fn segments_begin_anew() {
        let mut above = AboveThreshold::open(1000, 1, 10.0, Some(key(1))).unwrap();
        assert!((above.scale() - 0.2).abs() < 1e-5);
        let ends: Vec<Option<i64>> = (0..12).map(|_| above.push(400).unwrap()).collect();
        let expected: Vec<Option<i64>> = (1..=12).map(|i| (i % 3 == 0).then_some(1200)).collect();
        assert_eq!(ends, expected);
        above.close();
        assert!(above.push(1).is_err());
    }

    /// The running segment goes on where it was sealed; what was not drawn yet comes from the key of whoever goes on.
    #[test]
    fn a_sealed_segment_goes_on() {
        let (seal, place) = ([3; 32], b"row 5");
        let mut first = AboveThreshold::open(1000, 1, 10.0, Some(key(1))).unwrap();
        assert!(first.push(400).unwrap().is_none() && first.push(400).unwrap().is_none());
        let sealed = first.sealed(&seal, place).unwrap();
        let mut second = AboveThreshold::open(1000, 1, 10.0, Some(key(2))).unwrap();
        assert!(second.go_on(&seal, b"row 6", &sealed).is_err() && second.go_on(&[4; 32], place, &sealed).is_err());
        second.go_on(&seal, place, &sealed).unwrap();
        assert_eq!((second.count, second.noisy_threshold), (first.count, first.noisy_threshold));
        assert_eq!(second.source.position(), first.source.position());
        assert_eq!(second.push(400).unwrap(), Some(1200));
    }

    #[test]
    fn bad_calls_are_refused() {
        assert!(AboveThreshold::open(0, 1, 1.0, None).is_err());
        assert!(AboveThreshold::open(1 << 41, 1, 1.0, None).is_err());
        assert!(AboveThreshold::open(5, 0, 1.0, None).is_err());
        assert!(AboveThreshold::open(5, 1, 0.0, None).is_err());
        assert!(AboveThreshold::open(5, 1, 1e-30, None).is_err());
    }
}
