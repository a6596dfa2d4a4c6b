//! Continual release: a stream of items, an answer at every step, one budget for all of them.
//!
//! | file | concept |
//! |---|---|
//! | `filter.rs` | the workload: a causal filter of published increments |
//! | `participation.rs` | who takes part how often |
//! | `clip.rs` | vectors of records, clipped and added up |
//! | `recipe.rs` | mechanism and horizon as data |
//! | `strategy/` | sensitivity and error of a mechanism |
//! | `process/` | its noise, step by step, in exact integers |
//! | `plan.rs` | a strategy before it is opened |
//! | `machine.rs`, `checkpoint.rs` | an open stream, its state |
//! | `lazy.rs` | an open stream of very many coordinates, computed where it is read |
//! | `keyed.rs` | the noise of one of them, under keys that changed |
//!
//! A stream publishes `y_t = x_t + v_t` (`door/stream.rs` says why that is private); the answers are the filter of
//! what was published. For a strategy `C`, unit lower triangular, `v = C^{-1}k` up to rounding, so a running sum has
//! the noise `A C^{-1} k` of the matrix mechanism.

mod checkpoint;
mod clip;
mod filter;
mod keyed;
mod lazy;
mod machine;
mod participation;
mod plan;
mod process;
mod recipe;
mod state;
mod strategy;
#[cfg(test)]
mod tests;

pub use checkpoint::header;
pub use clip::clipped_sum;
pub use filter::Filter;
pub use lazy::LazyStream;
pub use machine::{Items, Stream};
pub use participation::Participation;
pub use plan::StreamPlan;
pub use recipe::{Horizon, LONGEST, StreamMechanism, StreamRecipe};
