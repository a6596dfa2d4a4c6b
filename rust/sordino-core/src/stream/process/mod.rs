//! Coloured noise: what is added to the items of a stream, one file a mechanism.
//!
//! A process turns exact noise, drawn in order, into `v_t`, in exact integers. It never sees an item.

mod binary_tree;
mod buffered;
mod comb;
mod dense;
mod identity;
mod output;
mod series;
mod smooth_tree;
mod subtraction_tree;
mod time_varying;
mod two_diagonals;

pub(super) use binary_tree::{BinaryTree, own_weight};
pub(super) use buffered::Buffered;
pub(super) use comb::Comb;
pub(super) use dense::{Dense, ENTRY_BITS, Rows};
pub(super) use identity::Identity;
pub(super) use output::Output;
pub(super) use series::Series;
pub(super) use smooth_tree::SmoothTree;
pub(super) use subtraction_tree::SubtractionTree;
pub(super) use time_varying::TimeVarying;
pub(super) use two_diagonals::{Tables, TwoDiagonals};

use super::state::{Reader, Writer, corrupt, replace};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::toeplitz::Dyadic;

/// Bits after the binary point of a fed back sum.
pub(super) const FRACTION: u32 = 24;

/// A noise process with its state, for `row.len()` coordinates.
pub(super) trait Process: Send + std::fmt::Debug {
    /// Overwrites `row` with the noise of the next step.
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]);

    /// A copy of the state, to go back to.
    fn boxed(&self) -> Box<dyn Process>;

    /// The step of its tables, where it has any.
    fn step(&self) -> Option<u64> {
        None
    }

    /// Appends the state.
    fn save(&self, out: &mut Writer);

    /// Reads the state back.
    ///
    /// # Errors
    /// If the bytes are not the state of this process.
    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error>;

    /// Overwrites the state.
    fn wipe(&mut self);
}

/// Buffers of every coordinate, and the step of the tables that they change by.
#[derive(Debug, Clone)]
struct Held {
    step: usize,
    buffers: Vec<i128>,
}

impl Held {
    fn new(buffers: usize) -> Self {
        Self { step: 0, buffers: vec![0; buffers] }
    }

    fn save(&self, out: &mut Writer) {
        out.u64(self.step as u64);
        out.wide(&self.buffers);
    }

    fn load(&mut self, input: &mut Reader<'_>, steps: usize) -> Result<(), Error> {
        self.step = input.u64()? as usize;
        if self.step > steps {
            return Err(corrupt());
        }
        replace(&mut self.buffers, input.wide()?)
    }
}

/// Noise of `quarter_units` times a factor, rounded up: more noise than the strategy counts on.
#[inline]
fn scaled_up(quarter_units: u64, factor: Dyadic) -> u64 {
    let product = u128::from(quarter_units) * u128::from(factor.mantissa());
    ((product + (1 << factor.shift()) - 1) >> factor.shift()) as u64
}

/// A wide integer as a lattice integer; beyond, published values are clamped anyway.
#[inline]
fn saturate(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
