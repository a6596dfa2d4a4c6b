//! Sums over points of smooth features: what summaries of smooth queries measure.
//!
//! A point `u` of the cube `[-1, 1]^d` adds a vector of features to the sums: tensor Chebyshev polynomials
//! `φ_m(u) = Π_j T_{m_j}(u_j)` ([`Chebyshev`]), linear combinations of them that make a reproducing kernel (the same with
//! mixed axes), indicators of cells ([`Cells`]), or whitened kernels at declared queries ([`Declared`]).
//!
//! **Everything is summed in integers.** The features of a point are rounded to multiples of `2^-bits`, by a computation
//! that depends on the point alone: not on its neighbours in memory, the number of threads or the instruction set. So sums
//! are exact, merge in any order, and neighbouring data differ by the rounded features of one point, whatever the others.
//!
//! | symbol | meaning |
//! |---|---|
//! | `φ(u)` | features of a point |
//! | `w` | weights, at most 1: noise has the same standard deviation on every `w_m S_m` |
//! | `S` | sums of the features over the points |
//! | `Δ` | `max ‖w ∘ (φ(u) − φ(v))‖`, or `max ‖w ∘ φ(u)‖` where a point may be added or removed |

mod axis;
mod cells;
mod certificates;
mod chebyshev;
mod contraction;
mod cube;
mod declared;
mod index_set;
mod kernel;
mod sums;
#[cfg(test)]
mod tests;
mod weights;

pub use axis::Axis;
pub use cells::Cells;
pub use chebyshev::Chebyshev;
pub use contraction::contract;
pub use cube::Cube;
pub use declared::Declared;
pub use index_set::IndexSet;
pub use kernel::{Kernel, Profile};
pub use sums::{Features, PointSums};
pub(crate) use weights::WEIGHT_BITS;
pub use weights::Weights;

use crate::error::Error;
use crate::upper::Upper;
use rayon::prelude::*;

/// Largest number of features that are summed.
pub const MOST_FEATURES: usize = 1 << 26;

/// How far one point moves the weighted sums, in units of 1 (not of `2^-bits`), rounding of features included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norms {
    /// `max_u ‖w ∘ φ(u)‖`: a point is added or removed.
    pub column: Upper,
    /// `max_{u,v} ‖w ∘ (φ(u) − φ(v))‖`: a point is replaced.
    pub pair: Upper,
}

/// What a point adds to the sums.
pub trait FeatureMap: Send + Sync + std::fmt::Debug {
    /// Number of coordinates of a point.
    fn dimension(&self) -> usize;

    /// Number of features.
    fn features(&self) -> usize;

    /// Features are integer multiples of `2^-bits`.
    fn bits(&self) -> u32;

    /// Bound on the magnitude of a feature.
    fn largest(&self) -> f64;

    /// Adds the features of points of the cube, row-major, in units of `2^-bits`.
    fn add(&self, points: &[f64], sums: &mut [i64]);

    /// Upper bounds of what a point changes, in the `ℓ1` or the `ℓ2` norm.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if these weights or this norm do not go with the features.
    fn norms(&self, weights: &Weights, l1: bool) -> Result<Norms, Error>;

    /// The index set, where features are products of features of the axes.
    fn index_set(&self) -> Option<&IndexSet> {
        None
    }

    /// Everything that decides what a point adds, as words.
    fn describe(&self, words: &mut Vec<u64>);
}

/// Bits after the binary point with which the sums of so many features, each at most `largest`, stay below 2^57: at most
/// 42, so that sums of products of floats are exact.
fn fitting_bits(points: u64, largest: f64) -> Result<u32, Error> {
    let needed = (points.max(1) as f64 * largest).log2().ceil() as u32;
    let bits = 57u32.saturating_sub(needed).min(42);
    if bits < 16 { Err(too_many_points()) } else { Ok(bits) }
}

fn too_many_points() -> Error {
    Error::Overflow("the sums of so many points do not fit 64 bits; declare fewer points".into())
}

/// Adds points part by part, each thread to sums of its own, which are added up: exact, so in any order.
fn add_in_parts(points: &[f64], part: usize, sums: &mut [i64], add: impl Fn(&[f64], &mut [i64]) + Sync) {
    let sum = |mut total: Vec<i64>, part: Vec<i64>| {
        total.iter_mut().zip(&part).for_each(|(sum, more)| *sum += more);
        total
    };
    let parts = points.par_chunks(part).fold(
        || vec![0; sums.len()],
        |mut own, points| {
            add(points, &mut own);
            own
        },
    );
    let total = parts.reduce_with(sum);
    sums.iter_mut().zip(total.iter().flatten()).for_each(|(sum, more)| *sum += more);
}
