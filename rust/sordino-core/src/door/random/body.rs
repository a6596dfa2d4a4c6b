//! K-norm noise: density `∝ exp(-‖z‖_K/s)` for a symmetric polytope `K`, exactly.
//!
//! *Privacy* (Hardt & Talwar 2010). If `K` contains `B (x − x')` for all neighbours, the densities of `B x + z` and
//! `B x' + z` differ by at most the factor `exp(‖B (x − x')‖_K/s) ≤ exp(1/s)`, by the triangle inequality. What is
//! published is the rounding of that sum, since `B x` is a lattice point: post-processing.
//!
//! *Sampling.* `z = s·ρ·V` with `V` uniform in `K ⊂ R^r` and `ρ ~ Gamma(r + 1)`: its density at `‖z‖_K = t` (`s = 1`)
//! is `∝ ∫_t^∞ ρ^{-r}·ρ^r e^{-ρ} dρ = e^{-t}`. The first `r` coordinates of a uniform point of the sphere in
//! `R^{r+2}` are uniform in the ball, so with a standard Gaussian `Z ∈ R^{r+2}` and a ball of radius `R` around `K`,
//! `V = R·(Z_1, …, Z_r)/‖Z‖₂` is kept if `‖R·(Z_1, …, Z_r)‖_K ≤ ‖Z‖₂`: a share `vol K/vol(R·ball)` of the attempts.
//!
//! All variates are cells, real numbers of which finitely many bits are known. Acceptance and rounding are decided when
//! they are the same for everything in the cells; else all cells get 64 more bits. Each variate has a stream of its own
//! for them, so the noise is a function of the key alone, whichever arithmetic decides and however many threads try.
//! The running time depends on the random bits, never on what is measured.

use super::Key;
use super::cell::{Bits, Cell, FIRST_BITS};
use super::interval::{norm_f64, norm_wide, round_f64};
use super::slow::{self, split};
use super::words::{ChaChaWords, FurtherWords, Purpose, Words};
use super::ziggurat::{Exponential, Gaussian, Law, NoiseLaw, Sampler, check_quarter_units};
use crate::error::Error;
use crate::lattice::add_noise;
use crate::polytope::Polytope;
use num_bigint::{BigInt, BigUint, Sign};
use rayon::prelude::*;

/// Gaussians of chunk `c` are drawn from stream `MAIN + c`; the streams below are those of single variates.
const MAIN: u64 = 1 << 63;

/// Attempts that are looked at together.
const CHUNK: usize = 128;

/// Chunks tried in parallel, at most; a first few alone, since many bodies need no more.
const ROUND: u64 = 64;

/// Directions that estimate the acceptance.
const DIRECTIONS: usize = 400;

/// Bits after the binary point, at first, in wide arithmetic.
const WIDE_BITS: u64 = 192;

/// Largest magnitude of the exponent of the unit.
const EXPONENT_LIMIT: u32 = 512;

/// Exact K-norm noise.
pub(crate) struct BodyNoise<'a> {
    polytope: &'a Polytope,
    quarter_units: u64,
    exponent: i32,
    /// Every decision in integers (tests).
    pub(super) exact_only: bool,
}

impl<'a> BodyNoise<'a> {
    /// Noise of density `∝ exp(-‖z‖/s)`, `s = quarter_units/4` lattice units, in the gauge `‖z‖` of the body
    /// `2^-exponent·K`: the polytope is given in units of `2^-exponent`. One that fills too little of its ball takes
    /// for ever: see [`BodyNoise::acceptance`].
    ///
    /// # Errors
    /// If `quarter_units` is not served by [`super::Sampler::new`], or the exponent is beyond ±512.
    pub(crate) fn new(quarter_units: u64, polytope: &'a Polytope, exponent: i32) -> Result<Self, Error> {
        check_quarter_units(quarter_units)?;
        if exponent.unsigned_abs() > EXPONENT_LIMIT {
            return Err(Error::invalid("exponent", format!("must be from -{EXPONENT_LIMIT} to {EXPONENT_LIMIT}")));
        }
        Ok(Self { polytope, quarter_units, exponent, exact_only: false })
    }

    /// Adds one noise vector.
    ///
    /// # Panics
    /// If there are not as many lattice values as the polytope has dimensions: some would get no noise.
    pub(crate) fn add(&self, units: &mut [i64], key: &Key) {
        assert_eq!(units.len(), self.polytope.rank(), "one lattice value a dimension");
        for (unit, k) in units.iter_mut().zip(self.draw(key).1) {
            *unit = add_noise(*unit, k);
        }
    }

    /// About the share of attempts that are accepted, `vol K/vol(R·ball) = E (R·‖u‖_K)^{-r}` over directions `u`: the
    /// mean of a few hundred under a public key. An attempt takes about half a microsecond.
    pub(crate) fn acceptance(&self) -> Result<f64, Error> {
        let rank = self.polytope.rank();
        let mut directions = vec![0; DIRECTIONS * rank];
        Sampler::new(NoiseLaw::Gaussian, 1 << 30)?.add(&mut directions, &Key::deterministic([0; 32]))?;
        let share = |direction: &[i64]| {
            let direction: Vec<f64> = direction.iter().map(|k| *k as f64).collect();
            let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
            (length / (radius(self.polytope) * self.polytope.gauge(&direction))).powi(rank as i32)
        };
        Ok(directions.chunks_exact(rank).map(share).sum::<f64>() / DIRECTIONS as f64)
    }

    /// The first accepted attempt: its number and its noise.
    pub(super) fn draw(&self, key: &Key) -> (u64, Vec<i64>) {
        let (mut start, mut count) = (0, 1);
        loop {
            let chunks = (start..start + count).into_par_iter();
            let noise = chunks.map_init(Chunk::default, |scratch, chunk| self.chunk(chunk, key, scratch));
            if let Some(noise) = noise.find_map_first(|noise| noise) {
                return noise;
            }
            start += count;
            count = (2 * count).min(ROUND);
        }
    }

    /// The first accepted attempt of a chunk.
    fn chunk(&self, number: u64, key: &Key, scratch: &mut Chunk) -> Option<(u64, Vec<i64>)> {
        scratch.draw(self.polytope, &mut ChaChaWords::new(key, MAIN + number));
        let hopeless = if self.exact_only { vec![false; CHUNK] } else { scratch.reject_at_sight(self.polytope) };
        let mut hopeful = (0..CHUNK).filter(|at| !hopeless[*at]);
        hopeful.find_map(|at| {
            let number = number * CHUNK as u64 + at as u64;
            let mut attempt = Attempt::new(self, number, scratch, at, key);
            attempt.is_accepted().then(|| (number, attempt.noise()))
        })
    }
}

/// The unit of the first bits of a cell of width 1.
const UNIT: f64 = 1.0 / (1u128 << (FIRST_BITS + Gaussian::FRACTION_BITS)) as f64;

/// The Gaussians of successive attempts, `r + 2` each.
#[derive(Default)]
struct Chunk {
    /// The word that decides a variate alone.
    words: Vec<u64>,
    /// The variates that took more than a word, by index.
    slow: Vec<(usize, Cell, bool)>,
    /// One double for each of the first `r` of an attempt, within `2^-42 + 2^-50|x|` of all its cell: no cell is wider
    /// than 2^-53 (a base layer has 2^12·2^-65, the tail 2^24·2^-77).
    points: Vec<f64>,
    /// `‖Z‖₂/R`; infinite unless `‖(Z_1, …, Z_r)‖₂ ≥ 2^-4`, so that point and bound are within the relative 2^-32 that
    /// [`Polytope::reject_at_sight`] allows.
    bounds: Vec<f64>,
    products: Vec<f64>,
}

impl Chunk {
    fn draw(&mut self, polytope: &Polytope, words: &mut ChaChaWords) {
        self.words.clear();
        self.slow.clear();
        self.points.clear();
        self.bounds.clear();
        let rank = polytope.rank();
        let radius = radius(polytope);
        for _ in 0..CHUNK {
            let (mut square, mut inner) = (0.0, 0.0);
            for i in 0..rank + 2 {
                let word = words.next(Purpose::Layer);
                let (layer, mut negative, u) = split(word);
                let mut magnitude = u as i64 as f64 * (Gaussian::WIDTH[layer] as f64 * UNIT);
                if u >= Gaussian::ACCEPT[layer] {
                    let (cell, sign) = slow::draw::<Gaussian>(word, false, words);
                    (magnitude, negative) = (cell.ends_f64().0, sign);
                    self.slow.push((self.words.len(), cell, sign));
                }
                self.words.push(word);
                square += magnitude * magnitude;
                if i < rank {
                    self.points.push(if negative { -magnitude } else { magnitude });
                    inner = square;
                }
            }
            self.bounds.push(if inner >= 2f64.powi(-8) { square.sqrt() / radius } else { f64::INFINITY });
        }
    }

    /// Which attempts are certainly rejected.
    fn reject_at_sight(&mut self, polytope: &Polytope) -> Vec<bool> {
        polytope.reject_at_sight(&self.points, &self.bounds, &mut self.products)
    }

    /// A variate by its index.
    fn cell(&self, index: usize) -> (Cell, bool) {
        if let Ok(at) = self.slow.binary_search_by_key(&index, |(index, ..)| *index) {
            let (_, cell, negative) = &self.slow[at];
            return (cell.clone(), *negative);
        }
        let (layer, negative, u) = split(self.words[index]);
        let shift = Gaussian::FRACTION_BITS;
        (Cell { base: 0, width: Gaussian::WIDTH[layer], shift, frac: Bits::new(u, FIRST_BITS) }, negative)
    }
}

/// The radius of the ball, exact.
fn radius(polytope: &Polytope) -> f64 {
    let (mantissa, exponent) = polytope.radius();
    mantissa as f64 * 2f64.powi(exponent)
}

/// A lazily known magnitude, its sign, and where its further bits come from.
struct Variate<'a> {
    cell: Cell,
    negative: bool,
    words: FurtherWords<'a>,
}

/// One point of the ball.
struct Attempt<'a> {
    noise: &'a BodyNoise<'a>,
    number: u64,
    key: &'a Key,
    gaussians: Vec<Variate<'a>>,
    /// `ρ` is their sum; drawn after acceptance.
    exponentials: Vec<Variate<'a>>,
    bits: u64,
}

impl<'a> Attempt<'a> {
    /// Attempt `at` of a chunk, `number` of all.
    fn new(noise: &'a BodyNoise<'a>, number: u64, chunk: &Chunk, at: usize, key: &'a Key) -> Self {
        let mut attempt = Self { noise, number, key, gaussians: Vec::new(), exponentials: Vec::new(), bits: WIDE_BITS };
        let len = noise.polytope.rank() + 2;
        for i in 0..len {
            let (cell, negative) = chunk.cell(at * len + i);
            attempt.gaussians.push(Variate { cell, negative, words: attempt.further_words(i) });
        }
        attempt
    }

    /// The stream of a variate: `r + 2` Gaussians, then `r + 1` exponentials.
    fn further_words(&self, variate: usize) -> FurtherWords<'a> {
        let len = 2 * self.noise.polytope.rank() as u64 + 3;
        FurtherWords::new(self.key, self.number * len + variate as u64)
    }

    /// Whether `‖R·(Z_1, …, Z_r)‖_K ≤ ‖Z‖₂`.
    fn is_accepted(&mut self) -> bool {
        let decided = if self.noise.exact_only { None } else { self.compare_f64() };
        decided.unwrap_or_else(|| {
            loop {
                if let Some(accepted) = self.compare_wide() {
                    return accepted;
                }
                self.refine();
            }
        })
    }

    /// `round(s·2^-exponent·ρ·R·Z_i/‖Z‖₂)`.
    fn noise(mut self) -> Vec<i64> {
        let rank = self.noise.polytope.rank();
        for i in rank + 2..2 * rank + 3 {
            let mut words = self.further_words(i);
            let word = words.next(Purpose::Layer);
            let (cell, negative) = slow::draw::<Exponential>(word, false, &mut words);
            self.exponentials.push(Variate { cell, negative, words });
        }
        let decided = if self.noise.exact_only { None } else { self.round_f64() };
        let rounded = decided.unwrap_or_else(|| {
            loop {
                if let Some(rounded) = self.round_wide() {
                    return rounded;
                }
                self.refine();
            }
        });
        let signed = |(k, variate): (u64, &Variate)| {
            let k = k.min(3 << 61) as i64;
            if variate.negative { -k } else { k }
        };
        rounded.into_iter().zip(&self.gaussians).map(signed).collect()
    }

    /// 64 more bits of every variate.
    fn refine(&mut self) {
        for variate in self.gaussians.iter_mut().chain(&mut self.exponentials) {
            variate.cell.frac.refine(&mut variate.words, Purpose::Rounding);
        }
        self.bits += 64;
    }

    fn compare_f64(&self) -> Option<bool> {
        let polytope = self.noise.polytope;
        let ends: Vec<(f64, f64)> = self.gaussians.iter().map(|variate| variate.cell.ends_f64()).collect();
        let (low, high) = norm_f64(&ends);
        let radius = radius(polytope);
        let signed = |((low, high), variate): (&(f64, f64), &Variate)| {
            if variate.negative { (-high, -low) } else { (*low, *high) }
        };
        let point: Vec<(f64, f64)> = ends.iter().zip(&self.gaussians).take(polytope.rank()).map(signed).collect();
        polytope.compare(&point, ((low / radius).next_down().max(0.0), (high / radius).next_up()))
    }

    fn compare_wide(&self) -> Option<bool> {
        let polytope = self.noise.polytope;
        let ends = ends_at(&self.gaussians, self.bits);
        let (mut low, mut high) = norm_wide(&ends);
        let (mantissa, exponent) = polytope.radius();
        let mut factor = BigUint::from(mantissa);
        if exponent < 0 {
            low <<= -exponent;
            high <<= -exponent;
        } else {
            factor <<= exponent;
        }
        let signed = |((low, high), variate): ((BigUint, BigUint), &Variate)| {
            let (low, high) = (low * &factor, high * &factor);
            if variate.negative {
                (BigInt::from_biguint(Sign::Minus, high), BigInt::from_biguint(Sign::Minus, low))
            } else {
                (low.into(), high.into())
            }
        };
        let point: Vec<(BigInt, BigInt)> =
            ends.into_iter().zip(&self.gaussians).take(polytope.rank()).map(signed).collect();
        polytope.compare_exact(&point, (&low, &high))
    }

    /// Intervals of doubles; `None` if any coordinate is undecided.
    fn round_f64(&self) -> Option<Vec<u64>> {
        let ends: Vec<(f64, f64)> = self.gaussians.iter().map(|variate| variate.cell.ends_f64()).collect();
        let norm = norm_f64(&ends);
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for (a, b) in self.exponentials.iter().map(|variate| variate.cell.ends_f64()) {
            low = (low + a).next_down().max(0.0);
            high = (high + b).next_up();
        }
        let (mantissa, exponent) = self.noise.polytope.radius();
        let factor = self.noise.quarter_units as f64 * mantissa as f64; // two exact integers, one rounding
        let unit = 2f64.powi(exponent - self.noise.exponent - 2);
        low = ((low * factor.next_down()).next_down() / norm.1).next_down() * unit;
        high = ((high * factor.next_up()).next_up() / norm.0).next_up() * unit;
        ends[..self.noise.polytope.rank()]
            .iter()
            .map(|(a, b)| round_f64((a * low).next_down().max(0.0), (b * high).next_up()))
            .collect()
    }

    /// The same in integers over `2^bits`.
    fn round_wide(&self) -> Option<Vec<u64>> {
        let ends = ends_at(&self.gaussians, self.bits);
        let norm = norm_wide(&ends);
        if norm.0 == BigUint::ZERO {
            return None;
        }
        let (mantissa, exponent) = self.noise.polytope.radius();
        let factor = BigUint::from(self.noise.quarter_units) * mantissa;
        let sums = ends_at(&self.exponentials, self.bits)
            .into_iter()
            .fold((BigUint::ZERO, BigUint::ZERO), |(low, high), (a, b)| (low + a, high + b));
        let (low, high) = (sums.0 * &factor, sums.1 * &factor);
        // ρ·Z_i/‖Z‖ counts 2^-bits.
        let shift = i64::from(exponent - self.noise.exponent - 2) - self.bits as i64;
        // round(p·2^shift/q) of magnitudes.
        let round = |p: BigUint, q: &BigUint| {
            let (p, q) = if shift < 0 { (p, q << -shift) } else { (p << shift, q.clone()) };
            (2u8 * p + &q) / (2u8 * q)
        };
        ends[..self.noise.polytope.rank()]
            .iter()
            .map(|(a, b)| {
                let least = round(a * &low, &norm.1);
                let most = round(b * &high, &norm.0);
                (least == most).then(|| u64::try_from(least).unwrap_or(u64::MAX))
            })
            .collect()
    }
}

/// All variates as integers over `2^bits`.
fn ends_at(variates: &[Variate], bits: u64) -> Vec<(BigUint, BigUint)> {
    variates.iter().map(|variate| variate.cell.ends_at(bits)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Attempt, BodyNoise, CHUNK, Chunk, MAIN, WIDE_BITS, radius};
    use crate::door::Key;
    use crate::door::random::cell::Bits;
    use crate::door::random::words::ChaChaWords;
    use crate::polytope::Polytope;

    /// Of the first bits of every Gaussian all but three are forgotten: acceptance and rounding must draw them again,
    /// and decide what is true of the numbers as they are then known.
    #[test]
    fn undecided_cells_are_refined() {
        let polytope = Polytope::new(3, 5, &[2, 7, 1, -8, 2, 8, 1, 8, -2, 8, 4, 5, 9, 0, -4], None).unwrap();
        let noise = BodyNoise::new(64, &polytope, 3).unwrap();
        let key = Key::deterministic([5; 32]);
        let mut chunk = Chunk::default();
        chunk.draw(&polytope, &mut ChaChaWords::new(&key, MAIN));
        let (mut accepted, mut refined) = (0, 0);
        for at in 0..CHUNK {
            let mut attempt = Attempt::new(&noise, at as u64, &chunk, at, &key);
            for variate in &mut attempt.gaussians {
                variate.cell.frac = Bits::new(variate.cell.frac.first >> 52, 3);
            }
            let decided = attempt.compare_f64();
            let answer = attempt.is_accepted();
            assert!(decided.is_none_or(|decided| decided == answer));
            refined += usize::from(attempt.bits > WIDE_BITS);
            while attempt.bits < WIDE_BITS + 64 {
                attempt.refine();
            }
            let z: Vec<f64> = attempt
                .gaussians
                .iter()
                .map(|variate| {
                    let (low, _, shift) = variate.cell.ends();
                    let magnitude = u64::try_from(low >> (shift - 50)).unwrap() as f64 / 2f64.powi(50);
                    if variate.negative { -magnitude } else { magnitude }
                })
                .collect();
            let norm = z.iter().map(|v| v * v).sum::<f64>().sqrt();
            assert_eq!(answer, radius(&polytope) * polytope.gauge(&z[..3]) <= norm);
            assert!(attempt.compare_f64().is_none_or(|decided| decided == answer));
            if answer {
                accepted += 1;
                let k = attempt.noise();
                // The scale ρ is not known here, but the direction is.
                let (sum, along) =
                    (0..3).fold((0.0, 0.0), |(sum, along), i| (sum + z[i] * z[i], along + z[i] * k[i] as f64));
                for i in 0..3 {
                    assert!((k[i] as f64 - z[i] * along / sum).abs() <= 1.0, "{k:?} {z:?}");
                }
            }
        }
        assert!(refined > 20 && accepted > 10, "{refined} {accepted}");
    }
}
