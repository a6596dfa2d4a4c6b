//! Fuzz targets of sordino-core: bytes become small cases, and each case is held against a plain oracle.
//!
//! | file | targets |
//! |---|---|
//! | `parsers.rs` | every reader of bytes: whatever they are, an error or a state that writes the same bytes again |
//! | `encoders.rs` | every strategy on random workloads: `B x` in wide integers, sensitivities, decode as the inverse of encode |
//! | `streams.rs` | every stream on random filters and items: truth, cuts, checkpoints, lazy sums, dense convolutions |
//! | `counts.rs` | tallies, sketches and sums of points in parts, against all rows at once |
//!
//! Targets are ordinary tests (`cargo test`), in which bolero draws inputs at random and reads what lies in `corpus`, and
//! targets of engines that follow coverage (`cargo bolero test`). The sampler's targets are in its own folder, which nobody
//! else sees: `door/random/replay.rs`.

mod food;

pub use food::Food;

#[cfg(test)]
mod counts;
#[cfg(test)]
mod encoders;
#[cfg(test)]
mod parsers;
#[cfg(test)]
mod streams;
