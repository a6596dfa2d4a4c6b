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
//! ```
//! use sordino_core::door::{Data, Door};
//! use sordino_core::domain::Domain;
//! use sordino_core::door::NoiseLaw;
//! use sordino_core::strategy::{Mechanism, Recipe};
//! use sordino_core::unit::Unit;
//! use sordino_core::workload::Workload;
//!
//! let workload = Workload::Linear { kernel: vec![1.0; 4], len: 4, center: 0 };
//! let recipe = Recipe { workload, mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
//! let strategy = recipe.build()?;
//! let unit = Unit::add_remove(1, None)?;
//! let door = Door::fit(&*strategy, unit, Domain::integral(1 << 20)?, 4.22)?;
//! let measured = door.measure(&*strategy, 4, Data::Integers(&[3, 1, 4, 1]))?;
//! let mut answers = vec![0.0; 4];
//! strategy.decode(&measured.values(), &mut answers);
//! # Ok::<(), sordino_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod domain;
pub mod door;
pub mod error;
pub mod estimate;
pub mod events;
pub mod interrupt;
pub mod lattice;
mod linear_algebra;
mod minimize;
pub mod objective;
pub mod optimize;
pub mod owner;
pub mod polytope;
mod scratch;
pub mod sketch;
pub mod smooth;
pub mod strategy;
pub mod stream;
pub mod toeplitz;
pub mod transform;
pub mod unit;
pub mod upper;
pub mod wide_sums;
pub mod workload;
