//! The door: the only place where a private value meets randomness.
//!
//! `measure` publishes lattice integers, all at once or step by step, `select` publishes one index. A reviewer who trusts this
//! folder, `random/`, `lattice.rs` and the sensitivities trusts the library.

mod measure;
mod select;
mod stream;

pub use measure::{Data, Door, Measured, Sensitivity};
pub use select::select;
pub use stream::{StreamDoor, StreamShift};
