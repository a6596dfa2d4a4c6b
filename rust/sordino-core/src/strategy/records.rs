//! Counting records by their codes: one marginal in a pass, or all small ones by bit sets.

use super::Codes;
use crate::workload::cells;
use rayon::prelude::*;

/// Counts of one marginal from record codes. Records with a level out of range count nowhere.
pub(super) fn count(codes: Codes<'_>, radices: &[usize], set: &[usize], out: &mut [i64]) {
    match codes {
        Codes::Bytes(codes) => count_rows(codes, radices, set, out, byte_level),
        Codes::Words(codes) => count_rows(codes, radices, set, out, word_level),
    }
}

/// Level that a code names; a negative one is out of every range.
fn word_level(code: i64) -> usize {
    usize::try_from(code).unwrap_or(usize::MAX)
}

fn byte_level(code: u8) -> usize {
    usize::from(code)
}

fn count_rows<T: Copy>(codes: &[T], radices: &[usize], set: &[usize], out: &mut [i64], level: impl Fn(T) -> usize) {
    out.fill(0);
    for record in codes.chunks_exact(radices.len()) {
        if record.iter().zip(radices).any(|(code, n)| level(*code) >= *n) {
            continue;
        }
        let cell = set.iter().fold(0, |cell, i| cell * radices[*i] + level(record[*i]));
        out[cell] += 1;
    }
}

/// Record codes as one bit set for each attribute and level, without the null records.
pub(super) struct BitSets {
    words: usize,
    starts: Vec<usize>,
    bits: Vec<u64>,
}

impl BitSets {
    /// Those of records, whatever their codes are held in.
    pub(super) fn of(codes: Codes<'_>, radices: &[usize]) -> Self {
        match codes {
            Codes::Bytes(codes) => Self::new(codes, radices, byte_level),
            Codes::Words(codes) => Self::new(codes, radices, word_level),
        }
    }

    fn new<T: Copy + Sync>(codes: &[T], radices: &[usize], level: impl Fn(T) -> usize + Sync) -> Self {
        let d = radices.len();
        let words = (codes.len() / d).div_ceil(64);
        let starts: Vec<usize> = radices
            .iter()
            .scan(0, |start, n| {
                let here = *start;
                *start += n;
                Some(here)
            })
            .collect();
        let levels: usize = radices.iter().sum();
        // Word-major first: one pass over the records, one row of words for each 64 of them.
        let rows: Vec<Vec<u64>> = codes
            .par_chunks(64 * d)
            .map(|block| {
                let mut row = vec![0u64; levels];
                for (bit, record) in block.chunks_exact(d).enumerate() {
                    if record.iter().zip(radices).all(|(code, n)| level(*code) < *n) {
                        for (code, start) in record.iter().zip(&starts) {
                            row[start + level(*code)] |= 1 << bit;
                        }
                    }
                }
                row
            })
            .collect();
        let mut bits = vec![0; words * levels];
        bits.par_chunks_mut(words.max(1)).enumerate().for_each(|(l, column)| {
            column.iter_mut().zip(&rows).for_each(|(word, row)| *word = row[l]);
        });
        Self { words, starts, bits }
    }

    fn level(&self, attribute: usize, level: usize) -> &[u64] {
        let at = (self.starts[attribute] + level) * self.words;
        &self.bits[at..at + self.words]
    }

    /// Counts of one marginal: population counts of intersections, the last attribute innermost.
    pub(super) fn count(&self, radices: &[usize], set: &[usize]) -> Vec<i64> {
        let Some((last, first)) = set.split_last() else {
            let total = (0..radices[0]).map(|l| ones(self.level(0, l))).sum();
            return vec![total];
        };
        let mut out = Vec::with_capacity(cells(radices, set));
        let mut both = vec![0u64; self.words];
        for prefix in 0..cells(radices, first) {
            let mut rest = prefix;
            both.fill(u64::MAX);
            for attribute in first.iter().rev() {
                let bits = self.level(*attribute, rest % radices[*attribute]);
                rest /= radices[*attribute];
                both.iter_mut().zip(bits).for_each(|(a, b)| *a &= b);
            }
            for level in 0..radices[*last] {
                let bits = self.level(*last, level);
                out.push(both.iter().zip(bits).map(|(a, b)| i64::from((a & b).count_ones())).sum());
            }
        }
        out
    }
}

fn ones(bits: &[u64]) -> i64 {
    bits.iter().map(|word| i64::from(word.count_ones())).sum()
}
