//! `tell_sign` and `tell_subset`: what a client says of the place of its value, by randomised response; nothing else leaves.
//!
//! **Signs.** A message is a question, drawn from words that no value has touched, and a sign, turned round where another
//! word of 40 bits is below `flips`: with probability `p = flips/2^40`, exactly. Whatever two rows say, the probabilities of
//! a message differ by a factor of at most `(1 − p)/p`: `epsilon`-differential privacy where `p ≥ 1/(1 + e^epsilon)`, which
//! its caller has checked. (Warner 1965.)
//!
//! **Subsets.** A message is a set of `d` of `w + 1` places. It has the client's own, unless a word of 40 bits is below
//! `flips`, and the others uniformly: given `q = flips/2^40`, a set with the place has the probability
//! `(1 − q)/C(w, d−1)`, one without it `q/C(w, d)`. Their ratio, `(1 − q)(w + 1 − d)/(q d)`, is at least 1 and at most
//! `e^epsilon`, as its caller has checked. (Wang, Huang & others 2016, `arXiv:1607.08025`; Ye & Barg 2018, `arXiv:1702.00610`.)
//! As many words are drawn with the place as without it.
//!
//! **Values that are a share of several places.** Where a row is not one whole at one place, a further word draws one place
//! of it, `P(x = j) = row_j/2^bits`, or none: means are those of the row, and the message is as private.

use super::random::{Key, WordsOfKey};
use crate::error::Error;
use crate::waves::Waves;

/// Flips are in units of `2^-FLIP_BITS`.
const FLIP_BITS: u32 = 40;
/// Most bits of a whole.
const MOST_BITS: u32 = 32;

/// Messages of clients, one a row of `waves.steps()` shares in units of `2^-bits`, which sum to at most one whole.
///
/// # Errors
/// For flips that are not from 1 to 2^39 − 1, more than 32 bits, or shares that are no whole rows; or if the operating system
/// gives no randomness.
pub fn tell_sign(waves: &Waves, rows: &[i64], bits: u32, flips: u64, key: Option<Key>) -> Result<Vec<u64>, Error> {
    if flips >= 1 << (FLIP_BITS - 1) {
        return Err(Error::invalid("flips", "must be below 2^39"));
    }
    let mut client = Client::new(waves.steps(), rows, bits, flips, key)?;
    let message = |row| {
        let question = waves.question(client.words.next(), client.words.next());
        let (turned, place) = (client.lies(), client.place(row));
        waves.code(question, waves.is_above(question, place) != turned)
    };
    Ok(rows.chunks_exact(waves.steps()).map(message).collect())
}

/// Messages of clients, one a row of `steps` shares as for [`tell_sign`]: `size` places from 0 to `steps`, the last for none,
/// in order.
///
/// # Errors
/// For a size that is not from 1 to `steps`, flips that are not from 1 to a share of `1 − size/(steps + 1)`, more than 32
/// bits, or shares that are no whole rows; or if the operating system gives no randomness.
pub fn tell_subset(
    steps: usize,
    size: usize,
    rows: &[i64],
    bits: u32,
    flips: u64,
    key: Option<Key>,
) -> Result<Vec<u32>, Error> {
    let places = u32::try_from(steps).ok().and_then(|steps| steps.checked_add(1));
    let (Some(places), true) = (places, (1..=steps).contains(&size)) else {
        return Err(Error::invalid("size", "must be from 1 to the number of steps"));
    };
    // Else a place would be told less often than another.
    if u128::from(flips) * u128::from(places) > (u128::from(places) - size as u128) << FLIP_BITS {
        return Err(Error::invalid("flips", "must leave the place more likely than others"));
    }
    let mut client = Client::new(steps, rows, bits, flips, key)?;
    // From any order, swaps at random make every order of the first equally likely.
    let mut others: Vec<u32> = (1..places).collect();
    let mut told = Vec::with_capacity(rows.len() / steps * size);
    for row in rows.chunks_exact(steps) {
        let (without, place) = (client.lies(), client.place(row));
        for i in 0..size {
            let other = i + client.below((others.len() - i) as u64) as usize;
            others.swap(i, other);
        }
        let first = told.len();
        let last = u32::from(without) * others[size - 1];
        // Distances from the place, around a circle.
        told.extend(others[..size - 1].iter().chain([&last]).map(|distance| (place as u32 + distance) % places));
        told[first..].sort_unstable();
    }
    Ok(told)
}

/// The words of clients, one after the other.
struct Client {
    words: WordsOfKey,
    flips: u64,
    bits: u32,
}

impl Client {
    fn new(steps: usize, rows: &[i64], bits: u32, flips: u64, key: Option<Key>) -> Result<Self, Error> {
        if flips == 0 {
            return Err(Error::invalid("flips", "must be positive"));
        }
        if bits > MOST_BITS || !rows.len().is_multiple_of(steps) {
            return Err(Error::invalid("rows", "must be rows of shares of at most 32 bits"));
        }
        let key = key.map_or_else(Key::from_entropy, Ok)?;
        Ok(Self { words: WordsOfKey::new(&key), flips, bits })
    }

    fn lies(&mut self) -> bool {
        self.words.next() >> (64 - FLIP_BITS) < self.flips
    }

    /// The place of the share in which a word falls, the last for none: how many running sums are at most the word.
    fn place(&mut self, row: &[i64]) -> u64 {
        let drawn = (self.words.next() >> (64 - MOST_BITS)) as i64 >> (MOST_BITS - self.bits);
        place(row, drawn)
    }

    /// A uniform number below `end`: words whose product falls into what is left over are drawn again.
    fn below(&mut self, end: u64) -> u64 {
        loop {
            let product = u128::from(self.words.next()) * u128::from(end);
            if product as u64 >= end.wrapping_neg() % end {
                return (product >> 64) as u64;
            }
        }
    }
}

fn place(row: &[i64], drawn: i64) -> u64 {
    let mut sum = 0i64;
    row.iter()
        .map(|share| {
            sum = sum.saturating_add(*share);
            u64::from(sum <= drawn)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{place, tell_sign, tell_subset};
    use crate::door::Key;
    use crate::waves::Waves;

    fn key() -> Key {
        Key::deterministic([9; 32])
    }

    fn one_hot(steps: usize, place: usize) -> Vec<i64> {
        (0..steps).map(|j| i64::from(j == place)).collect()
    }

    /// Signs are turned round as often as said: 5 standard errors, a fixed key; and questions do not see the value.
    #[test]
    fn flips_and_questions() {
        let (steps, clients) = (6, 40_000);
        let waves = Waves::new(steps).unwrap();
        for flips in [1, 1 << 30, 1 << 37, 1 << 38, (1 << 39) - 1] {
            let told: Vec<Vec<u64>> = (0..=steps)
                .map(|place| tell_sign(&waves, &one_hot(steps, place).repeat(clients), 0, flips, Some(key())).unwrap())
                .collect();
            // The same words: the places 0 and w are half a circle apart, so that all their signs are opposite.
            assert!(told[0].iter().zip(&told[steps]).all(|(a, b)| a ^ b == 1));
            for messages in &told {
                assert!(messages.iter().zip(&told[0]).all(|(a, b)| a / 2 == b / 2));
            }
            let quiet = tell_sign(&waves, &one_hot(steps, 0).repeat(clients), 0, 1, Some(key())).unwrap();
            let turned = told[0].iter().zip(quiet).filter(|(a, b)| **a != *b).count() as f64;
            let expected = clients as f64 * flips as f64 / 2f64.powi(40);
            assert!((turned - expected).abs() <= 5.0 * expected.sqrt() + 1e-6, "{flips}: {turned} for {expected}");
        }
    }

    /// Questions come as often as said: chi-squared over frequencies and over shifts, 5 standard deviations.
    #[test]
    fn questions_have_their_probabilities() {
        let (steps, clients) = (9, 200_000);
        let waves = Waves::new(steps).unwrap();
        let messages = tell_sign(&waves, &vec![0; steps * clients], 0, 1 << 38, Some(key())).unwrap();
        let mut shifts = vec![0.0; 2 * steps];
        let mut frequencies = vec![0.0; steps.div_ceil(2)];
        for message in messages {
            shifts[(message / 2) as usize % (2 * steps)] += 1.0;
            frequencies[(message / 2) as usize / (2 * steps)] += 1.0;
        }
        // Totients over squares: 1, 2/9, 4/25, 6/49, 6/81.
        let rates = [1.0, 2.0 / 9.0, 4.0 / 25.0, 6.0 / 49.0, 6.0 / 81.0];
        let total: f64 = rates.iter().sum();
        let all = clients as f64;
        for (found, expected) in [
            (shifts, vec![all / 18.0; 18]),
            (frequencies, rates.iter().map(|rate| all * rate / total).collect::<Vec<f64>>()),
        ] {
            let degrees = found.len() as f64 - 1.0;
            let distance: f64 = found.iter().zip(&expected).map(|(f, e)| (f - e) * (f - e) / e).sum();
            assert!((distance - degrees).abs() < 5.0 * (2.0 * degrees).sqrt(), "{distance} of {degrees}");
        }
    }

    /// A place is drawn by its share, and the rest is none; at the ends of words as well.
    #[test]
    fn places() {
        let row = [3, 0, 4, 1];
        let expected = [0, 0, 0, 2, 2, 2, 2, 3, 4, 4];
        for (drawn, expected) in expected.into_iter().enumerate() {
            assert_eq!(place(&row, drawn as i64), expected);
        }
        assert_eq!(place(&[i64::MAX, i64::MAX], i64::MAX), 2);
        assert_eq!((place(&[0, 1, 0], 0), place(&[0, 0, 0], 0), place(&[1, 0, 0], 0)), (1, 3, 0));
        // Three eighths at place 0, the rest at none: of the signs that differ, so many are place 0's.
        let (waves, clients) = (Waves::new(2).unwrap(), 40_000);
        let of = |row: &[i64], bits| tell_sign(&waves, &row.repeat(clients), bits, 1, Some(key())).unwrap();
        let (zero, mixed) = (of(&[1, 0], 0), of(&[3, 0], 3));
        let same = zero.iter().zip(mixed).filter(|(a, b)| **a == *b).count() as f64;
        let expected = clients as f64 * 0.375;
        assert!((same - expected).abs() < 5.0 * expected.sqrt(), "{same}");
    }

    #[test]
    fn bad_calls_are_refused() {
        let waves = Waves::new(3).unwrap();
        for flips in [0, 1 << 39, u64::MAX] {
            assert!(tell_sign(&waves, &[0; 3], 0, flips, None).is_err());
        }
        assert!(tell_sign(&waves, &[0; 4], 0, 1, None).is_err() && tell_sign(&waves, &[0; 3], 33, 1, None).is_err());
        assert!(tell_sign(&waves, &[], 0, 1, None).unwrap().is_empty());
        let (one, two) =
            (tell_sign(&waves, &[0; 300], 0, 1, None).unwrap(), tell_sign(&waves, &[0; 300], 0, 1, None).unwrap());
        assert!(one.len() == 100 && one != two, "keys are fresh");
    }

    /// Every set of small circles with the probability it shall have: chi-squared, 5 standard deviations, a fixed key. Those
    /// with the client's place and those without it are told apart by their probabilities alone.
    #[test]
    fn subsets_have_their_probabilities() {
        let clients = 60_000;
        for (steps, size, flips) in
            [(4usize, 1usize, 1u64 << 37), (4, 2, 1 << 38), (5, 3, 1 << 38), (3, 3, 1 << 37), (1, 1, 1 << 38)]
        {
            for place in [0, 1, steps] {
                let row = one_hot(steps, place);
                let told = tell_subset(steps, size, &row.repeat(clients), 0, flips, Some(key())).unwrap();
                assert_eq!(told.len(), size * clients);
                let mut counts = std::collections::HashMap::<&[u32], f64>::new();
                told.chunks_exact(size).for_each(|set| *counts.entry(set).or_default() += 1.0);
                let lie = flips as f64 / 2f64.powi(40);
                let choose = |n: usize, k: usize| (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product::<f64>();
                let sets = choose(steps + 1, size).round();
                assert_eq!(counts.len() as f64, sets, "all sets, sorted");
                let distance: f64 = counts
                    .iter()
                    .map(|(set, count)| {
                        assert!(set.is_sorted_by(|a, b| a < b));
                        let with = set.contains(&(place as u32));
                        let share =
                            if with { (1.0 - lie) / choose(steps, size - 1) } else { lie / choose(steps, size) };
                        let expected = share * clients as f64;
                        (count - expected) * (count - expected) / expected
                    })
                    .sum();
                assert!((distance - sets + 1.0).abs() < 5.0 * (2.0 * sets).sqrt() + 1.0, "{steps} {size}: {distance}");
            }
        }
    }

    #[test]
    fn subsets_that_cannot_be() {
        for (steps, size, flips) in
            [(3, 0, 1), (3, 4, 1), (0, 0, 1), (3, 1, 0), (3, 2, (1 << 39) + 1), (usize::MAX, 1, 1)]
        {
            assert!(tell_subset(steps, size, &[], 0, flips, None).is_err(), "{steps} {size} {flips}");
        }
        assert!(tell_subset(3, 2, &[0; 3], 0, 1 << 39, None).is_ok());
        assert!(tell_subset(3, 2, &[0; 4], 0, 1, None).is_err() && tell_subset(3, 2, &[0; 3], 33, 1, None).is_err());
    }
}
