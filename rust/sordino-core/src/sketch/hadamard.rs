//! Some rows of a Hadamard matrix with the signs of its columns turned at random.

use super::bernoulli::Number;
use super::words::{PublicWords, Use};
use crate::transform::hadamard::{Entry, walsh_hadamard};
use pulp::Arch;
use std::collections::HashMap;

/// Longest table of which the inner products of all columns are computed.
const MOST_PAIRS: usize = 1 << 24;

#[derive(Debug, Clone)]
pub(super) struct Rows {
    flips: PublicWords,
    /// Rows of the Hadamard matrix, rising.
    chosen: Vec<u32>,
    padded: usize,
}

impl Rows {
    /// Draws `measurements` of `padded` rows without replacement: the first steps of a Fisher-Yates shuffle of which only
    /// the entries that moved are kept.
    pub(super) fn new(seed: u64, measurements: usize, padded: usize) -> Self {
        let words = PublicWords::new(seed, Use::Rows);
        let mut moved: HashMap<usize, usize> = HashMap::new();
        let mut chosen: Vec<u32> = (0..measurements)
            .map(|i| {
                let left = (padded - i) as u128;
                let other = i + ((u128::from(words.word(i as u64)) * left) >> 64) as usize;
                let at = |moved: &HashMap<usize, usize>, j| moved.get(&j).copied().unwrap_or(j);
                let drawn = at(&moved, other);
                let kept = at(&moved, i);
                moved.insert(other, kept);
                drawn as u32
            })
            .collect();
        chosen.sort_unstable();
        Self { flips: PublicWords::new(seed, Use::Flips), chosen, padded }
    }

    fn flip<T: Entry>(&self, x: &mut [T], zero: T) {
        for (word, cells) in x.chunks_mut(64).enumerate() {
            let mut bits = self.flips.word(word as u64);
            for cell in cells {
                // A choice of two values, not a branch.
                *cell = [*cell, zero - *cell][(bits & 1) as usize];
                bits >>= 1;
            }
        }
    }

    /// `out += Σ_j column_j·x_j`; `work` is one padded array.
    pub(super) fn forward<T: Entry>(&self, x: &[T], zero: T, work: &mut [T], out: &mut [T]) {
        work[..x.len()].copy_from_slice(x);
        work[x.len()..].fill(zero);
        self.flip(&mut work[..x.len()], zero);
        walsh_hadamard(work);
        for (slot, row) in out.iter_mut().zip(&self.chosen) {
            *slot = *slot + work[*row as usize];
        }
    }

    /// `out_j = Σ_r sign_rj·y_r`.
    pub(super) fn adjoint(&self, y: &[f64], work: &mut [f64], out: &mut [f64]) {
        work.fill(0.0);
        for (value, row) in y.iter().zip(&self.chosen) {
            work[*row as usize] = *value;
        }
        walsh_hadamard(work);
        out.copy_from_slice(&work[..out.len()]);
        self.flip(out, 0.0);
    }

    pub(super) fn padded(&self) -> usize {
        self.padded
    }

    /// `out += weight·column`.
    pub(super) fn add_column(&self, cell: usize, weight: i64, out: &mut [i64]) {
        Arch::new().dispatch(
            #[inline(always)]
            || self.column(cell, |row, plus| out[row] += weight.signed(plus)),
        );
    }

    /// Calls `add(row, is_plus)` for every entry of a column.
    #[inline(always)]
    pub(super) fn column(&self, cell: usize, mut add: impl FnMut(usize, bool)) {
        let minus = ((self.flips.word((cell / 64) as u64) >> (cell % 64)) & 1) as u32;
        for (row, character) in self.chosen.iter().enumerate() {
            add(row, ((character & cell as u32).count_ones() + minus).is_multiple_of(2));
        }
    }

    /// Most entries in which two columns differ, counting both signs of each.
    ///
    /// The inner product of columns `i` and `j` is up to its sign the transform of the chosen rows at `i ⊕ j`.
    pub(super) fn largest_difference(&self) -> usize {
        let k = self.chosen.len();
        if self.padded > MOST_PAIRS {
            return k;
        }
        let mut products = vec![0i64; self.padded];
        for row in &self.chosen {
            products[*row as usize] = 1;
        }
        walsh_hadamard(&mut products);
        let inner = products[1..].iter().map(|v| v.unsigned_abs() as usize).max().unwrap_or(0);
        // The inner product −p leaves (k + p)/2 entries that differ.
        usize::midpoint(k, inner).min(k)
    }
}
