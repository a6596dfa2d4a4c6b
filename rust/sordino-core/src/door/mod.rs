//! The door: the only place where a private value meets randomness.
//!
//! `measure` publishes lattice integers, all at once or step by step, `select` publishes one index, `above` that a count has come
//! above a threshold. A reviewer who trusts this folder, `random/`, `lattice.rs` and the sensitivities trusts the library.

mod above;
mod measure;
mod pan_private;
mod select;
mod sparsity;
mod stream;

pub use above::AboveThreshold;
pub use measure::{Data, Door, Measured, Sensitivity};
pub use pan_private::PanPrivateTree;
pub use select::select;
pub use sparsity::{Cells, SparsityChoice};
pub use stream::{StreamDoor, StreamShift};
