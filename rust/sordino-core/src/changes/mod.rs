//! What a unit that is in several cells does to a measured matrix: the largest `‖B v‖₂` over its changes `v`.
//!
//! A unit changes at most `most` cells by at most 1 each, all in one direction unless signs are mixed. The maximum of the
//! convex `vᵀ G v`, `G = Bᵀ B`, over these is at a vertex, and hard to find: `climb.rs` finds large values, which strategies
//! are made for, and three proofs bound all of them. The least of the bounds is the sensitivity.
//!
//! | file | proof |
//! |---|---|
//! | `rows.rs` | the `most` largest of `G_ii` and the largest entries beside it |
//! | `enumeration.rs` | all changes, but for those that `rows` bounds |
//! | `one_direction.rs`, `mixed_signs.rs` | a diagonal matrix above a form (`vectors.rs`) |

mod climb;
mod enumeration;
mod mixed_signs;
mod one_direction;
mod rows;
#[cfg(test)]
mod tests;
mod vectors;

use crate::order::{falling, in_order};
use climb::climb;
pub(crate) use climb::climb_each;

use crate::error::Error;
use crate::linear_algebra::{Matrix, largest, scale_rows, transposed_product};
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use std::sync::OnceLock;

/// Largest number of cells that are looked at together, and of multiplications for their Gram matrix.
const MOST_CELLS: usize = 1 << 12;
const MOST_WORK: usize = 1 << 35;
/// Cells up to which more than rows is tried.
const MOST_IMPROVED: usize = 512;
/// A bound this near to a value that is attained is not improved.
const NEAR: f64 = 1e-6;
/// Bits of a sensitivity that are kept, rounded up: the last ones depend on the processor.
const KEPT_BITS: u32 = 26;

/// Changes of at most `most` cells by at most 1 each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// How many cells change together.
    pub most: usize,
    /// Whether some may rise while others fall; else all move in one direction.
    pub signed: bool,
}

impl Changes {
    /// What an entry of `G` between two changed cells adds, at most.
    fn reach(self, entry: f64) -> f64 {
        if self.signed { entry.abs() } else { entry.max(0.0) }
    }
}

/// The sensitivity that was proved, for a strategy that is asked for it again and again.
#[derive(Debug, Default)]
pub(crate) struct Proved(OnceLock<(Changes, Option<Upper>)>);

impl Proved {
    /// Upper bound of `‖B(x − x')‖₂` for a unit that changes several cells; none of other units, and of too many cells.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn sensitivity(&self, unit: Unit, matrix: impl Fn() -> Matrix) -> Result<Option<Upper>, Error> {
        let Some((cap, changes)) = unit.changes() else { return Ok(None) };
        let norm = match self.0.get() {
            Some((of, norm)) if *of == changes => *norm,
            _ => largest_norm(&matrix(), changes)?,
        };
        let _ = self.0.set((changes, norm));
        Ok(norm.map(|norm| Upper::integer(cap.into()) * norm))
    }
}

/// `G = Bᵀ B`.
#[derive(Debug)]
pub(crate) struct Gram {
    cells: usize,
    entries: Vec<f64>,
}

impl Gram {
    pub(crate) fn new(matrix: &Matrix) -> Self {
        let gram = transposed_product(matrix, matrix);
        let cells = matrix.ncols();
        // One triangle for both: symmetric to the last bit.
        let entries = (0..cells * cells).map(|k| gram[((k / cells).max(k % cells), (k / cells).min(k % cells))]);
        Self { cells, entries: entries.collect() }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.cells..(i + 1) * self.cells]
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.cells + j]
    }

    fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.cells).map(|i| self.at(i, i))
    }

    /// `vᵀ G v`.
    fn square(&self, v: &[i8]) -> f64 {
        let on: Vec<usize> = (0..self.cells).filter(|j| v[*j] != 0).collect();
        let of = |i: &usize| on.iter().map(|j| f64::from(v[*j]) * self.at(*i, *j)).sum::<f64>() * f64::from(v[*i]);
        on.iter().map(of).sum()
    }
}

/// Upper bound of `‖B v‖₂` over all changes; none of more cells than are looked at together.
///
/// # Errors
/// [`Error::Interrupted`].
pub(crate) fn largest_norm(matrix: &Matrix, changes: Changes) -> Result<Option<Upper>, Error> {
    let (rows, cells) = (matrix.nrows(), matrix.ncols());
    if cells > MOST_CELLS || rows.saturating_mul(cells * cells) > MOST_WORK {
        return Ok(None);
    }
    // Squares of entries neither overflow nor vanish.
    let exponent = largest(matrix).max(f64::MIN_POSITIVE).log2().floor() as i32;
    let mut matrix = matrix.clone();
    scale_rows(&mut matrix, |_| 2f64.powi(-exponent));
    let gram = Gram::new(&matrix);
    let changes = Changes { most: changes.most.min(cells), ..changes };
    let mut norms: Vec<f64> = gram.diagonal().map(f64::sqrt).collect();
    falling(&mut norms);
    let triangle = norms[..changes.most].iter().sum::<f64>().powi(2);
    let mut bound = rows::bound(&gram, changes).min(triangle);
    if cells <= MOST_IMPROVED {
        let attained = climb(&gram, changes, &starts(&gram, changes)).1;
        let settled = |bound: f64| bound <= attained * (1.0 + NEAR);
        if !settled(bound) {
            bound = enumeration::bound(&gram, changes, attained)?.map_or(bound, |all| all.min(bound));
        }
        if !settled(bound) {
            bound = by_diagonal(&gram, changes, attained)?.map_or(bound, |other| other.min(bound));
        }
    }
    // Entries of G and all that is added up of them, of at most `most` columns.
    let slack = 4.0 * UNIT_ROUNDOFF * (rows + changes.most + 64) as f64 * triangle;
    let norm = coarse(bound + slack).sqrt();
    Ok(Some(norm.scaled(exponent)))
}

/// The bound by a diagonal matrix.
fn by_diagonal(gram: &Gram, changes: Changes, attained: f64) -> Result<Option<f64>, Error> {
    if changes.signed {
        mixed_signs::bound(gram, changes, attained)
    } else {
        one_direction::bound(gram, changes, attained)
    }
}

/// The number rounded up to [`KEPT_BITS`].
fn coarse(value: f64) -> Upper {
    let dropped = 52 - KEPT_BITS;
    Upper::exact(f64::from_bits(((value.to_bits() >> dropped) + 1) << dropped))
}

/// Changes to climb from: of the cells with the largest columns, one each, and of all.
pub(crate) fn starts(gram: &Gram, changes: Changes) -> Vec<Vec<i8>> {
    let order = in_order(gram.cells, &|j| -gram.at(j, j));
    let mut starts: Vec<Vec<i8>> =
        order.iter().step_by(gram.cells.div_ceil(16)).map(|j| single(gram.cells, *j)).collect();
    let mut all = vec![0; gram.cells];
    order[..changes.most].iter().for_each(|j| all[*j] = 1);
    starts.push(all);
    starts
}

/// The change of one cell.
pub(crate) fn single(cells: usize, cell: usize) -> Vec<i8> {
    let mut one = vec![0; cells];
    one[cell] = 1;
    one
}
