//! If `Diag(z) ⪰ G`, then `vᵀ G v ≤ Σ z_i v_i²`: at most the sum of the `most` largest `z_i`.
//!
//! `z` is the dual of `max ⟨G, X⟩` over Gram matrices of vectors of length at most 1 with a trace of at most `most`. A
//! multiplier `λ` of the trace gives `z_i = λ` where a vector is shorter than 1.

use super::rows::largest;
use super::vectors::Vectors;
use super::{Changes, Gram};
use crate::error::Error;
use crate::interrupt::poll;

/// Multipliers that are tried, and sweeps for each and for the last.
const TRIALS: usize = 12;
const SWEEPS: (usize, usize) = (40, 400);

/// Upper bound of `vᵀ G v` over all changes, of which one attains `attained`; none if eigenvalues are not found.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn bound(gram: &Gram, changes: Changes, attained: f64) -> Result<Option<f64>, Error> {
    let k = changes.most as f64;
    let mut vectors = Vectors::new(gram.cells, gram.entries.clone());
    // The bound is convex in the multiplier, and changes by what the trace exceeds `k`.
    let mut exceeds = |multiplier: f64| {
        vectors.multiplier = Some(multiplier);
        ascend(&mut vectors, SWEEPS.0)?;
        Ok::<bool, Error>((0..gram.cells).map(|i| vectors.product(i, i)).sum::<f64>() > k)
    };
    let (mut low, mut high) = (0.0, attained / k);
    if changes.most < gram.cells {
        while exceeds(high)? && high < 1e6 * attained {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..TRIALS {
            let middle = 0.5 * (low + high);
            if exceeds(middle)? { low = middle } else { high = middle }
        }
    }
    vectors.multiplier = (changes.most < gram.cells).then_some(0.5 * (low + high));
    ascend(&mut vectors, SWEEPS.1)?;
    Ok(vectors.diagonal_above().map(|mut diagonal| largest(&mut diagonal, changes.most)))
}

fn ascend(vectors: &mut Vectors, sweeps: usize) -> Result<(), Error> {
    vectors.scatter();
    for _ in 0..sweeps {
        poll()?;
        vectors.sweep();
    }
    Ok(())
}
