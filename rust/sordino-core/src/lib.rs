//! Differentially private linear queries `y = A x`: exact noise, least error, certificates.
//!
//! One sentence: *encode* applies a public strategy `B` to the private input, *the door* rounds `B x` to a
//! lattice and adds exact noise, *decode* turns the published numbers into answers.
//!
//! | symbol | shape | meaning |
//! |---|---|---|
//! | `x` | `n` | private input: one number a cell |
//! | `A` | `m × n` | [`workload::Workload`]: the queries |
//! | `B` | `d × n` | [`strategy::Strategy`]: what is measured |
//! | `Δ` | | [`door::Sensitivity`]: `max ‖B(x − x')‖` over neighbours, an upper bound |
//! | `y` | `d` | [`door::Measured`]: `B x + noise` on the lattice |
//!
//! Epsilon and delta never enter this crate: its caller maps privacy to one `noise_ratio`, noise over
//! sensitivity (Gaussian standard deviation, or Laplace scale).
//!
//! [`plan::Plan`] is the way from a workload to released answers in two calls, with an example.
#![forbid(unsafe_code)]

pub mod adaptive_tables;
pub mod changes;
pub mod domain;
pub mod door;
pub mod error;
pub mod estimate;
pub mod events;
pub mod interrupt;
mod lattice;
mod linear_algebra;
mod minimize;
pub mod objective;
pub mod optimize;
mod order;
pub mod owner;
mod parallel;
pub mod path_tree;
pub mod plan;
mod polytope;
mod scratch;
pub mod sealing;
pub mod sketch;
pub mod smooth;
mod split_mix;
pub mod strategy;
pub mod stream;
pub mod table;
pub mod toeplitz;
pub mod transform;
pub mod unit;
pub mod upper;
pub mod waves;
mod wide_sums;
pub mod workload;
