//! A few entries a column: one sign in each of `s` blocks of rows.

use super::bernoulli::Number;
use super::words::{PublicWords, Use};
use crate::parallel::{collected, in_pieces, largest_of};
use rayon::prelude::*;

/// Columns that one task sums: fixed, so that floating sums do not depend on threads.
const TASK: usize = 1 << 18;

/// Columns written down: `2·row + 1` for a plus, `2·row` for a minus.
#[derive(Debug)]
pub(super) struct Stored {
    entries: Vec<u32>,
    nonzeros: usize,
}

impl Stored {
    /// Place and sign of every entry, column by column.
    pub(super) fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// `out = Σ_j column_j·x_j`.
    pub(super) fn forward(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (entries, x) in self.entries.chunks_exact(self.nonzeros).zip(x) {
            for entry in entries {
                out[(entry >> 1) as usize] += x.signed(entry & 1 == 1);
            }
        }
    }

    /// `out_j = Σ_r sign_rj·y_r`.
    pub(super) fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        let both: Vec<f64> = y.iter().flat_map(|y| [-y, *y]).collect();
        in_pieces(out, 1 << 14, &|first, out| {
            let entries = self.entries[first * self.nonzeros..].chunks_exact(self.nonzeros);
            for (slot, entries) in out.iter_mut().zip(entries) {
                *slot = entries.iter().map(|entry| both[*entry as usize]).sum();
            }
        });
    }
}

#[derive(Debug, Clone)]
pub(super) struct Columns {
    words: PublicWords,
    /// Block `b` has the rows from `starts[b]` up to `starts[b + 1]`.
    starts: Vec<u32>,
}

impl Columns {
    pub(super) fn new(seed: u64, measurements: usize, nonzeros: usize) -> Self {
        let starts = (0..=nonzeros).map(|b| (b * measurements / nonzeros) as u32).collect();
        Self { words: PublicWords::new(seed, Use::Columns), starts }
    }

    /// Calls `add(row, is_plus)` for every entry of a column: half a word each, 31 bits of place and a sign.
    #[inline(always)]
    pub(super) fn column(&self, cell: usize, mut add: impl FnMut(usize, bool)) {
        let pairs = (self.starts.len() / 2) as u64;
        let mut word = 0;
        for (b, block) in self.starts.windows(2).enumerate() {
            word = if b % 2 == 0 { self.words.word(cell as u64 * pairs + b as u64 / 2) } else { word >> 32 };
            let half = u64::from(word as u32);
            let place = ((half >> 1) * u64::from(block[1] - block[0])) >> 31;
            add((u64::from(block[0]) + place) as usize, half & 1 == 1);
        }
    }

    /// `out += Σ_j column_j·x_j`.
    pub(super) fn forward<T: Number>(&self, x: &[T], out: &mut [T]) {
        if x.len() <= TASK {
            return self.sum(0, x, out);
        }
        let parts = collected(x.len().div_ceil(TASK), &|part| {
            let (first, mut sums) = (part * TASK, vec![T::default(); out.len()]);
            self.sum(first, &x[first..x.len().min(first + TASK)], &mut sums);
            sums
        });
        for part in parts {
            for (total, sum) in out.iter_mut().zip(part) {
                *total = *total + sum;
            }
        }
    }

    fn sum<T: Number>(&self, first: usize, x: &[T], out: &mut [T]) {
        for (j, value) in x.iter().enumerate() {
            self.column(first + j, |row, plus| out[row] = out[row] + value.signed(plus));
        }
    }

    /// `out_j = Σ_r sign_rj·y_r`.
    pub(super) fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        in_pieces(out, 1 << 13, &|first, out| {
            for (j, slot) in out.iter_mut().enumerate() {
                let mut sum = 0.0;
                self.column(first + j, |row, plus| sum += y[row].signed(plus));
                *slot = sum;
            }
        });
    }

    /// Places and signs of these columns, written down for those who need them often.
    pub(super) fn stored(&self, cells: usize) -> Stored {
        let nonzeros = self.starts.len() - 1;
        let mut entries = vec![0u32; cells * nonzeros];
        entries.par_chunks_mut(TASK * nonzeros).enumerate().for_each(|(task, entries)| {
            for (j, entries) in entries.chunks_exact_mut(nonzeros).enumerate() {
                let mut slots = entries.iter_mut();
                self.column(task * TASK + j, |row, plus| {
                    if let Some(slot) = slots.next() {
                        *slot = 2 * row as u32 + u32::from(plus);
                    }
                });
            }
        });
        Stored { entries, nonzeros }
    }

    /// The same of listed columns.
    pub(super) fn stored_of(&self, cells: &[u64]) -> Stored {
        let nonzeros = self.starts.len() - 1;
        let mut entries = Vec::with_capacity(cells.len() * nonzeros);
        for cell in cells {
            self.column(*cell as usize, |row, plus| entries.push(2 * row as u32 + u32::from(plus)));
        }
        Stored { entries, nonzeros }
    }

    /// Largest ℓ1 norm, or square of the ℓ2 norm, of the difference of two of these columns.
    pub(super) fn largest_difference(&self, cells: usize, l1: bool) -> usize {
        let Stored { entries, nonzeros: blocks } = self.stored(cells);
        let column = |j: usize| &entries[j * blocks..(j + 1) * blocks];
        let both = if l1 { 2 } else { 4 };
        let distance = |i: usize, j: usize| -> usize {
            let entry = |(a, b): (&u32, &u32)| {
                if a == b {
                    0
                } else if a >> 1 == b >> 1 {
                    both
                } else {
                    2
                }
            };
            column(i).iter().zip(column(j)).map(entry).sum()
        };
        largest_of(cells, &|j| (0..j).map(|i| distance(i, j)).max().unwrap_or(0))
    }
}
