//! Dense signs, never stored: one public word is a tile of 8 rows and 8 columns.
//!
//! For the 8 columns of a tile all 256 signed sums of their cells are tabulated; a row then adds the one that its byte of
//! the word names. That is one look-up for 8 products, exact in integers, with no multiplication. The adjoint does the
//! same with the tile transposed.

use super::words::{PublicWords, Use};
use crate::parallel::{collected, in_pieces, largest_of};
use pulp::Arch;
use std::ops::{Add, Neg};

/// Tables that are in use at once: 16 kB, half of the nearest cache.
const TABLES: usize = 8;
/// Columns that one task sums, on its own `k` numbers: fixed, so that floating sums do not depend on threads.
const TASK: usize = 1 << 16;
/// Columns whose adjoint one task computes.
const ADJOINT_TASK: usize = 1 << 12;

/// Integers, or floats.
pub(super) trait Number: Copy + Default + Send + Sync + Add<Output = Self> + Neg<Output = Self> {
    /// The number, or its negative, without a branch.
    fn signed(self, plus: bool) -> Self;
}

impl Number for i64 {
    #[inline(always)]
    fn signed(self, plus: bool) -> Self {
        let mask = i64::from(plus) - 1;
        (self ^ mask) - mask
    }
}

impl Number for f64 {
    #[inline(always)]
    fn signed(self, plus: bool) -> Self {
        f64::from_bits(self.to_bits() ^ (u64::from(!plus) << 63))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Signs {
    words: PublicWords,
    measurements: usize,
}

type Table<T> = [T; 256];

/// `table[b] = Σ_i ±x_i`, plus where bit `i` of `b` is set.
#[inline(always)]
fn tabulate<T: Number>(x: &[T], table: &mut Table<T>) {
    let mut cells = [T::default(); 8];
    cells[..x.len()].copy_from_slice(x);
    table[0] = -cells.into_iter().fold(T::default(), |sum, cell| sum + cell);
    for (i, cell) in cells.into_iter().enumerate() {
        let (done, next) = table.split_at_mut(1 << i);
        for (to, from) in next.iter_mut().zip(done) {
            *to = *from + (cell + cell);
        }
    }
}

/// Adds to eight sums what the bytes of one tile for each table name. Eight variables, for an array would be kept in
/// memory.
#[inline(always)]
fn look_up<T: Number>(sums: [T; 8], tables: &[Table<T>], tile: impl Fn(usize) -> u64) -> [T; 8] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = sums;
    for (number, table) in tables.iter().enumerate() {
        let tile = tile(number);
        let at = |byte: u32| table[usize::from((tile >> (8 * byte)) as u8)];
        (a, b, c, d) = (a + at(0), b + at(1), c + at(2), d + at(3));
        (e, f, g, h) = (e + at(4), f + at(5), g + at(6), h + at(7));
    }
    [a, b, c, d, e, f, g, h]
}

impl Signs {
    pub(super) fn new(seed: u64, measurements: usize) -> Self {
        Self { words: PublicWords::new(seed, Use::Signs), measurements }
    }

    fn row_groups(self) -> usize {
        self.measurements.div_ceil(8)
    }

    /// Byte `i` is row `8·row_group + i`; its bit `j` is set where column `8·column_group + j` has a plus.
    #[inline(always)]
    fn tile(self, column_group: usize, row_group: usize) -> u64 {
        self.words.word((column_group * self.row_groups() + row_group) as u64)
    }

    /// `out += Σ_j column_j·x_j`.
    pub(super) fn forward<T: Number>(self, x: &[T], out: &mut [T]) {
        let parts = collected(x.len().div_ceil(TASK), &|part| {
            let mut sums = vec![T::default(); 8 * self.row_groups()];
            let mut tables = Box::new([[T::default(); 256]; TABLES]);
            let own = &x[part * TASK..x.len().min((part + 1) * TASK)];
            for (at, cells) in own.chunks(8 * TABLES).enumerate() {
                let first = part * (TASK / 8) + at * TABLES;
                self.forward_tables(first, cells, &mut tables, &mut sums);
            }
            sums
        });
        for part in parts {
            for (total, sum) in out.iter_mut().zip(part) {
                *total = *total + sum;
            }
        }
    }

    fn forward_tables<T: Number>(self, first: usize, cells: &[T], tables: &mut [Table<T>; TABLES], sums: &mut [T]) {
        tables.fill([T::default(); 256]);
        for (cells, table) in cells.chunks(8).zip(tables.iter_mut()) {
            tabulate(cells, table);
        }
        let (sums, _) = sums.as_chunks_mut::<8>();
        for (row_group, sums) in sums.iter_mut().enumerate() {
            *sums = look_up(*sums, tables, |c| self.tile(first + c, row_group));
        }
    }

    /// `out_j = Σ_r sign_rj·y_r`.
    pub(super) fn adjoint(self, y: &[f64], out: &mut [f64]) {
        in_pieces(out, ADJOINT_TASK, &|first, out| {
            let mut tables = Box::new([[0.0; 256]; TABLES]);
            let mut sums = vec![[0.0f64; 8]; out.len().div_ceil(8)];
            for (at, rows) in y.chunks(8 * TABLES).enumerate() {
                tables.fill([0.0; 256]);
                for (rows, table) in rows.chunks(8).zip(tables.iter_mut()) {
                    tabulate(rows, table);
                }
                let tables = &tables[..rows.len().div_ceil(8)];
                for (c, sums) in sums.iter_mut().enumerate() {
                    let column_group = first / 8 + c;
                    *sums = look_up(*sums, tables, |g| transpose(self.tile(column_group, at * TABLES + g)));
                }
            }
            for (slot, sum) in out.iter_mut().zip(sums.as_flattened()) {
                *slot = *sum;
            }
        });
    }

    /// `out += weight·column`.
    pub(super) fn add_column(self, cell: usize, weight: i64, out: &mut [i64]) {
        let bit = cell % 8;
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (row_group, out) in out.chunks_mut(8).enumerate() {
                    let tile = self.tile(cell / 8, row_group) >> bit;
                    for (i, out) in out.iter_mut().enumerate() {
                        *out += weight.signed((tile >> (8 * i)) & 1 == 1);
                    }
                }
            },
        );
    }

    /// Calls `add(row, is_plus)` for every entry of a column.
    #[inline(always)]
    pub(super) fn column(self, cell: usize, mut add: impl FnMut(usize, bool)) {
        let bit = cell % 8;
        for row_group in 0..self.row_groups() {
            let tile = self.tile(cell / 8, row_group) >> bit;
            for i in 0..8.min(self.measurements - 8 * row_group) {
                add(8 * row_group + i, (tile >> (8 * i)) & 1 == 1);
            }
        }
    }

    /// Fewest entries in which no two of these columns differ less, by counting: most entries in which two differ.
    pub(super) fn largest_difference(self, cells: usize) -> usize {
        let words = self.measurements.div_ceil(64);
        let mut columns = vec![0u64; cells * words];
        for (cell, column) in columns.chunks_exact_mut(words).enumerate() {
            self.column(cell, |row, plus| column[row / 64] |= u64::from(plus) << (row % 64));
        }
        let column = |j: usize| &columns[j * words..(j + 1) * words];
        largest_of(cells, &|j| {
            let different = |i| column(i).iter().zip(column(j)).map(|(a, b)| (a ^ b).count_ones() as usize).sum();
            (0..j).map(different).max().unwrap_or(0)
        })
    }
}

/// Bit `j` of byte `i` goes to bit `i` of byte `j`.
#[inline(always)]
fn transpose(mut tile: u64) -> u64 {
    for (shift, mask) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
        let moved: u64 = (tile ^ (tile >> shift)) & mask;
        tile ^= moved ^ (moved << shift);
    }
    tile
}
