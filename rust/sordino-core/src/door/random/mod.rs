//! Exact randomness: a 256-bit key, `ChaCha12` words, and exact Gaussian and Laplace integers.
//!
//! The integers are `round(S/4 · Z)` for a real standard Gaussian `Z` (standard deviation 1) or
//! Laplace `Z` (scale 1), drawn *exactly*: given uniform words the output has the stated
//! distribution without approximation. The sampler is a ziggurat on real numbers known only to lie
//! in a cell; more bits are drawn when, and only when, a decision or the final rounding needs them.
//!
//! `door/` alone sees this module: others get a [`NoiseSource`] from it, which takes no value in, and hand over keys.

mod block;
mod body;
#[cfg(test)]
mod body_distribution;
mod boxes;
mod cell;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod distribution;
mod exponential;
mod generator;
mod geometric;
mod interval;
mod key;
mod pieces;
#[cfg(test)]
mod replay;
mod slow;
mod source;
mod staircase;
mod tables;
mod wide;
mod words;
mod ziggurat;

pub(in crate::door) use block::BlockNoise;
pub(crate) use body::BodyNoise;
pub(in crate::door) use boxes::BoxNoise;
pub(in crate::door) use generator::WordsOfKey;
pub(in crate::door) use geometric::{Geometric, Steps, add_steps};
pub use key::Key;
pub(crate) use source::NoiseSource;
pub(in crate::door) use source::{SourceLaw, scaled_quarters};
pub(in crate::door) use staircase::Staircase;
pub(in crate::door) use ziggurat::Sampler;
pub use ziggurat::{MAX_QUARTER_UNITS, NoiseLaw};
