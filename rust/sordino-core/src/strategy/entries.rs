//! Entries of a measured matrix: exact integers, where a power of two makes them so; norms of its columns.

use super::{Encoding, Run, gcd};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::upper::Upper;
use std::ops::Range;

/// Products that are added up one after the other; sums of more are added in pairs.
const BLOCK: usize = 64;

/// What is stored of a matrix, and how it is measured.
#[derive(Debug, Clone)]
pub(super) enum Entries {
    /// Integers below 2^31; the matrix is their multiple by `2^exponent`.
    Integers(Vec<i32>, i32),
    /// The matrix itself.
    Reals(Vec<f64>),
}

impl Entries {
    pub(super) fn new(entries: Vec<f64>) -> Self {
        let integers = (-60..=60).rev().find_map(|exponent| {
            let factor = 2f64.powi(-exponent);
            let integer = |a: &f64| {
                let scaled = a * factor;
                (scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(31)).then_some(scaled as i32)
            };
            let integers = entries.iter().map(integer).collect::<Option<Vec<_>>>();
            integers.map(|integers| Self::Integers(integers, exponent))
        });
        integers.unwrap_or(Self::Reals(entries))
    }

    /// Entry `k` as it is measured.
    pub(super) fn at(&self, k: usize) -> f64 {
        match self {
            Self::Integers(entries, _) => f64::from(entries[k]),
            Self::Reals(entries) => entries[k],
        }
    }

    /// Whether one is below zero.
    pub(super) fn negative(&self) -> bool {
        match self {
            Self::Integers(entries, _) => entries.iter().any(|entry| *entry < 0),
            Self::Reals(entries) => entries.iter().any(|entry| *entry < 0.0),
        }
    }

    /// What an answer is worth of a measured number.
    fn factor(&self) -> f64 {
        match self {
            Self::Integers(_, exponent) => 2f64.powi(*exponent),
            Self::Reals(_) => 1.0,
        }
    }

    /// Encoding of rows whose entries have these sums of magnitudes, at most `longest` entries in one.
    pub(super) fn encoding(
        &self,
        row_sums: impl Iterator<Item = f64>,
        longest: usize,
        max_abs: u64,
    ) -> Result<Encoding, Error> {
        let (fullest, squares) =
            row_sums.fold((0.0, 0.0), |(most, squares): (f64, f64), sum| (most.max(sum), squares + sum.powi(2)));
        let magnitude = fullest * max_abs as f64 * (1.0 + 1e-9);
        if matches!(self, Self::Integers(..)) {
            return if magnitude < 2f64.powi(60) {
                Ok(Encoding::Exact { max_abs: magnitude as u64 + 1 })
            } else {
                Err(Error::Overflow("the answers overflow; declare a smaller max_value".into()))
            };
        }
        // A product that goes through k additions loses at most (k + 1)·u of its magnitude (Higham 2002, §4.2).
        let additions = longest.min(BLOCK) + longest.div_ceil(BLOCK).max(1).next_power_of_two().ilog2() as usize;
        let error = squares.sqrt() * max_abs as f64 * UNIT_ROUNDOFF * (additions as f64 + 4.0) * (1.0 + 1e-9);
        Ok(Encoding::Float { error_l2: Upper::rounded(error, 4), max_abs: magnitude })
    }

    /// The greatest common divisor of the integers of every row; rows of zeros have 1. None of reals.
    pub(super) fn steps(&self, rows: impl Iterator<Item = Range<usize>>) -> Vec<Run> {
        let Self::Integers(entries, _) = self else { return Vec::new() };
        Run::merged(rows.map(|row| entries[row].iter().fold(0, |step, a| gcd(step, i64::from(*a))).max(1) as u64))
    }

    /// Answers from the measured values, which are multiples of them.
    pub(super) fn decode(&self, y: &[f64], out: &mut [f64]) {
        let factor = self.factor();
        out.iter_mut().zip(y).for_each(|(slot, value)| *slot = value * factor);
    }

    /// Weights of the measured values in an answer, one of `rows`: its own alone.
    pub(super) fn answer_weights(&self, answer: usize, rows: usize) -> Vec<f64> {
        let mut weights = vec![0.0; rows];
        weights[answer] = self.factor();
        weights
    }

    /// Variance of each answer from those of the measured values.
    pub(super) fn variances(&self, measured: &[f64], out: &mut [f64]) {
        let factor = self.factor();
        out.iter_mut().zip(measured).for_each(|(slot, variance)| *slot = factor * factor * variance);
    }
}

/// The sum of terms, in the order that [`Entries::encoding`] bounds the error of.
pub(super) fn sum(terms: Range<usize>, term: &impl Fn(usize) -> f64) -> f64 {
    if terms.len() <= BLOCK {
        return terms.map(term).sum();
    }
    let middle = terms.start + (terms.len() / 2).next_multiple_of(BLOCK);
    sum(terms.start..middle, term) + sum(middle..terms.end, term)
}

/// What an entry adds to the sum that [`norm`] takes: `|v|` in ℓ1, else `v²`.
pub(super) fn term(l1: bool, v: f64) -> f64 {
    if l1 { v.abs() } else { v * v }
}

/// Bound of the norm of a vector from the computed sum of its terms, at most so many.
pub(super) fn norm(l1: bool, sum: f64, terms: usize) -> Upper {
    let computed = if l1 { sum } else { sum.sqrt() };
    Upper::rounded(computed * (1.0 + 4.0 * UNIT_ROUNDOFF * (terms as f64 + 4.0)), 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    /// Whole numbers whose products and sums need more than 53 bits, so that every addition rounds.
    #[test]
    fn long_rows_lose_no_more_than_is_said() {
        for len in [1, 64, 65, 127, 128, 129, 1000, 4097, 100_000] {
            let word = |k: usize| (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let entries: Vec<f64> = (0..len).map(|k| (word(k) >> 12) as f64).collect();
            for sign in [1, -1] {
                let x: Vec<i64> =
                    (0..len).map(|k| (word(3 * k) >> 40) as i64 * if k % 3 == 0 { sign } else { 1 }).collect();
                let got = sum(0..len, &|k| entries[k] * x[k] as f64);
                let exact: BigInt = entries.iter().zip(&x).map(|(a, x)| BigInt::from(*a as i64) * *x).sum();
                let lost = exact - BigInt::from(got as i128);
                let lost = i128::try_from(lost).unwrap().unsigned_abs() as f64;
                let magnitudes = [entries.iter().sum::<f64>()];
                let said = Entries::Reals(entries.clone()).encoding(magnitudes.into_iter(), len, 1 << 24).unwrap();
                let Encoding::Float { error_l2, .. } = said else { panic!("of reals") };
                assert!(lost <= error_l2.get(), "{len}: {lost} above {}", error_l2.get());
            }
        }
    }

    #[test]
    fn integers_are_recognised_only_when_exact() {
        let of = |entries: &[f64]| {
            let entries = Entries::new(entries.to_vec());
            match &entries {
                Entries::Integers(integers, exponent) => Some((integers.clone(), *exponent)),
                Entries::Reals(_) => None,
            }
        };
        assert_eq!(of(&[0.5, 0.0, -1.5]), Some((vec![1, 0, -3], -1)));
        assert_eq!(of(&[96.0, 32.0]), Some((vec![3, 1], 5)));
        assert_eq!(of(&[1.0, 1e-18]), None);
        assert_eq!(of(&[0.1, 0.2]), None);
        // 53 bits do not fit into 31.
        assert_eq!(of(&[1.0 / 3.0]), None);
        assert_eq!(of(&[-2_147_483_647.0]), Some((vec![-2_147_483_647], 0)));
        assert_eq!(of(&[2_147_483_649.0]), None);
    }
}
