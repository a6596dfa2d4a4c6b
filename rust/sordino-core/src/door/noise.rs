//! Exact noise by itself, for mechanisms of one's own and for tests: no value goes in.

use super::random::{Key, NoiseLaw, Sampler};
use crate::error::Error;

/// Fills `out` with independent integers `round(quarter_units/4·Z)`, `Z` a standard Gaussian or Laplace variable.
///
/// # Errors
/// If `quarter_units` is 0 or above [`super::MAX_QUARTER_UNITS`], or it was asked to end early.
pub fn noise(law: NoiseLaw, quarter_units: u64, key: &Key, out: &mut [i64]) -> Result<(), Error> {
    let sampler = Sampler::new(law, quarter_units)?;
    out.fill(0);
    sampler.add(out, key)
}
