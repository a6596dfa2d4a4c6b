//! Tests of the crate from outside, in one binary: each further one would link everything again.

mod common;
mod door;
mod strategies;
mod stream;
mod stream_attacks;
mod stream_reference;
mod stream_state;
