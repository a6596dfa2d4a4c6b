//! The door: the only place where a private value meets randomness.
//!
//! `measure` publishes lattice integers, all at once or step by step, `select` publishes one index, `above` that a count has
//! come above a threshold, `publish_keys` and `keep_keys` which keys many have, `PathDoor` counts of nested boxes of which
//! earlier ones decide on later ones, `TableDoor` tables that are chosen one after another, `tell_sign` and `tell_subset`
//! what a client says of one value, and `noise` is noise alone. A reviewer who trusts this folder, `lattice.rs` and the
//! sensitivities trusts the library: `random/` is private to it, and processes of streams get a source of noise that takes
//! no value in.

mod above;
mod keys;
mod measure;
mod noise;
mod pan_private;
mod paths;
mod random;
mod respond;
mod select;
mod shares;
mod sparsity;
mod stream;
mod tables;

pub use above::AboveThreshold;
pub use keys::{keep_keys, publish_keys};
pub use measure::{Data, DiscreteRows, Door, Measured, Sensitivity};
pub use noise::noise;
pub use pan_private::PanPrivateTree;
pub use paths::PathDoor;
pub(crate) use random::NoiseSource;
pub use random::{Key, MAX_QUARTER_UNITS, NoiseLaw};
pub use respond::{tell_sign, tell_subset};
pub use select::select;
pub(crate) use shares::{LEAST_SHARE, WHOLE, variance};
pub use sparsity::{Cells, SparsityChoice};
pub use stream::{StreamDoor, StreamShift};
pub use tables::TableDoor;
pub(crate) use tables::{MOST_WEIGHT, Scores, TableMeter, other};
