//! Changes with mixed signs: bounds of `vᵀ G v` over `v ∈ {−1, 0, 1}^d` with at most `k` entries.
//!
//! `vᵀ G v ≤ |v|ᵀ |G| |v|`, entry by entry, and `|v|` is a change in one direction. And if `Diag(z) ⪰ G`, then
//! `vᵀ G v ≤ Σ z_i v_i²`, at most the sum of the `k` largest `z_i`: better where signs matter, and most cells change.

use super::rows::largest;
use super::vectors::Vectors;
use super::{Changes, Gram, one_direction};
use crate::error::Error;
use crate::interrupt::poll;

/// Sweeps of the vectors whose duals are `z`.
const SWEEPS: usize = 400;
/// A bound this near to the largest change is not improved.
const ENOUGH: f64 = 0.01;

/// Upper bound of `vᵀ G v` over all changes, of which one attains `attained`; none if eigenvalues are not found.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn bound(gram: &Gram, changes: Changes, attained: f64) -> Result<Option<f64>, Error> {
    let mut vectors = Vectors::new(gram.cells, gram.entries.clone());
    for _ in 0..SWEEPS {
        poll()?;
        vectors.sweep();
    }
    let by_cells = vectors.diagonal_above().map(|mut diagonal| largest(&mut diagonal, changes.most));
    if by_cells.is_some_and(|bound| bound <= attained * (1.0 + ENOUGH)) {
        return Ok(by_cells);
    }
    let entries = gram.entries.iter().map(|entry| entry.abs()).collect();
    let by_pairs = one_direction::bound(&Gram { cells: gram.cells, entries }, changes, attained)?;
    Ok(by_cells.into_iter().chain(by_pairs).reduce(f64::min))
}
