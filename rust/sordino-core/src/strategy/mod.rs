//! Strategies: what is measured, and how answers come out of it.
//!
//! A strategy is an integer (or, where that cannot be, floating-point) matrix `B` with a sensitivity,
//! an encode with a known rounding error, and a decode that sees only what the door published.
//! White noise is put on `B x`; weights are folded into `B`.

mod answer;
mod balanced;
mod body;
mod boxes;
mod columns;
mod common;
mod compressive;
mod dense;
mod entries;
mod factored;
mod fixed;
mod fourier;
mod fourier_basis;
mod group;
mod haar;
mod identity;
mod joint;
mod keyed_sketch;
mod laminar;
mod least_squares;
mod marginal_queries;
mod marginals;
mod merged;
mod output;
mod p_identity;
mod points;
mod probe;
mod product;
mod recipe;
mod records;
mod repeated;
mod sets;
mod sparse;
mod split;
mod square_root;
mod table_cover;
mod tail;
mod tree;
mod weighted_tree;
mod z2;

pub use answer::{answer, decode};
pub use balanced::balanced_union;
pub use body::Body;
pub use boxes::{Boxes, box_sums, box_variances};
pub(crate) use common::largest_square;
pub use common::{CommonNoise, common};
pub use compressive::Compression;
pub use factored::{Factor, Factorization, Pieces};
pub use fourier::fourier_filters;
pub use joint::{joint, joint_errors};
pub use keyed_sketch::keyed_sketch;
pub use laminar::NestedGroups;
pub use marginal_queries::{Rows, marginal_queries};
pub use merged::{distinct_cells, of_merged_cells};
pub use p_identity::p_identity;
pub use points::PointSummary;
pub use product::{nested_product, p_identity_product};
pub use recipe::{Mechanism, Recipe};
pub use repeated::{block_gram, p_identity_of_blocks};
pub use split::split;
pub use weighted_tree::{tree_blocks, weighted_tree_union};

use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::wide_sums::WideSums;

/// The norm in which a strategy's sensitivity is measured, and with it the noise.
#[derive(Debug, Clone, PartialEq)]
pub enum Geometry {
    /// Gaussian noise, ℓ2 sensitivity.
    L2,
    /// Laplace noise, ℓ1 sensitivity.
    L1,
    /// Spherical Laplace noise on consecutive blocks, sensitivity `Σ ‖block‖₂`.
    Blocks(Vec<u32>),
    /// Noise in the norm `Σ ‖block‖_∞` of consecutive blocks, which is that of the sensitivity.
    Boxes(Vec<u32>),
    /// K-norm noise, sensitivity in the norm of the hull of the columns.
    Body(Body),
    /// Noise on every coordinate and one on all of them together; sensitivity by that covariance.
    Common(CommonNoise),
}

impl Geometry {
    /// Variance of a coordinate's unit noise, where it is independent.
    pub(crate) fn white(&self) -> f64 {
        if matches!(self, Self::L1 | Self::Common(CommonNoise::Laplace(_))) { 2.0 } else { 1.0 }
    }

    /// What noise in this norm hardly exceeds, in scales: the radius that `m` coordinates share is Gamma distributed, and
    /// beyond `2m + 128` less often than once in `e^40`.
    pub(crate) fn reach(&self) -> f64 {
        match self {
            Self::Blocks(lengths) | Self::Boxes(lengths) => {
                2.0 * f64::from(lengths.iter().max().copied().unwrap_or(0)) + 128.0
            }
            _ => 0.0,
        }
    }

    /// Bound of this norm for a vector of `touched` entries, each at most 1 in magnitude.
    pub(crate) fn of_ones(&self, touched: usize) -> Upper {
        match self {
            Self::L2 => Upper::integer(touched as u128).sqrt(),
            Self::L1 => Upper::integer(touched as u128),
            Self::Blocks(blocks) => {
                blocks.iter().fold(Upper::ZERO, |sum, len| sum + Upper::integer(u128::from(*len)).sqrt())
            }
            Self::Boxes(boxes) => Upper::integer(boxes.len() as u128),
            Self::Body(body) => Upper::integer(touched as u128).sqrt() * body.largest_on_the_ball(),
            // In whole steps nothing is rounded; on a lattice the common noise moves by half a step more, at best.
            Self::Common(CommonNoise::Laplace(_)) => Upper::ZERO,
            Self::Common(CommonNoise::Gaussian(ratio)) => {
                let most = touched as f64 + ratio.powi(-2);
                Upper::rounded(0.5 * most.sqrt(), 8)
            }
        }
    }

    /// Bound of this norm over the ℓ2 norm in `len` dimensions.
    pub(crate) fn over_l2(&self, len: usize) -> Upper {
        match self {
            Self::L2 | Self::Common(_) => Upper::exact(1.0), // of common noise nothing is encoded in floating point
            Self::L1 => Upper::integer(len as u128).sqrt(),
            Self::Blocks(blocks) | Self::Boxes(blocks) => Upper::integer(blocks.len() as u128).sqrt(),
            Self::Body(body) => body.largest_on_the_ball(),
        }
    }
}

/// How a strategy turns input integers into numbers for the lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Encoding {
    /// Exact integers, no larger than this in magnitude.
    Exact {
        /// Bound on every encoded entry.
        max_abs: u64,
    },
    /// Floating point with a bounded error.
    Float {
        /// Bound of `‖fl(Bx) − Bx‖₂` over every admissible input.
        error_l2: Upper,
        /// Bound on every encoded entry.
        max_abs: f64,
    },
}

/// What the noise of some rows is smaller by than that of others, at most: its square is still a number.
const MOST_PRECISE: f64 = 1e100;

/// Measured rows in order whose exact integers are all multiples of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// What every entry of these rows of `B` is a multiple of; at least 1.
    pub step: u64,
    /// How many rows.
    pub len: usize,
}

impl Run {
    /// The runs of rows with these steps.
    fn merged(steps: impl Iterator<Item = u64>) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for step in steps {
            match runs.last_mut() {
                Some(run) if run.step == step => run.len += 1,
                _ => runs.push(Self { step, len: 1 }),
            }
        }
        runs
    }
}

/// Where a strategy writes what it encodes.
#[derive(Debug)]
pub enum Encoded<'a> {
    /// Exact integers.
    Exact(&'a mut [i64]),
    /// Bounded floats.
    Float(&'a mut [f64]),
    /// Exact integers of twice the bits, of a strategy with [`Strategy::wide`].
    Wide(&'a mut [i128]),
}

/// The private input as a strategy sees it: clamped integers, record codes, or sums of a sketch.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// One integer a cell.
    Cells(&'a [i64]),
    /// The same, and the cells outside of which all are zero: encodes may skip the others, and then take time by
    /// their number.
    Sparse {
        /// One integer a cell.
        cells: &'a [i64],
        /// Cells that may not be zero, rising.
        nonzero: &'a [usize],
    },
    /// One row of attribute levels a record, row-major; levels out of range make a null record.
    Codes(Codes<'a>),
    /// The sums of a sketch that was made elsewhere, with the operator of a compressive strategy; or of the features of
    /// points and their number.
    Sums(&'a WideSums),
}

/// Record codes.
#[derive(Debug, Clone, Copy)]
pub enum Codes<'a> {
    /// Bytes: at most 256 levels.
    Bytes(&'a [u8]),
    /// Words.
    Words(&'a [i64]),
}

/// One mechanism's linear algebra. Implementations are built from a [`Recipe`].
pub trait Strategy: Send + Sync + std::fmt::Debug {
    /// Number of measured coordinates.
    fn measured_len(&self) -> usize;

    /// The norm of the sensitivity and the kind of noise.
    fn geometry(&self) -> Geometry;

    /// Upper bound of the norm of `B(x − x')` over neighbours, clamping included, for the exact `B`.
    ///
    /// # Errors
    /// If the relation is not served.
    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error>;

    /// Rounding error and magnitude for inputs of at most `max_abs` a cell.
    ///
    /// # Errors
    /// [`Error::Overflow`] if exact integers cannot hold it.
    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error>;

    /// Largest magnitude of the sums before they are rounded to floats, of a strategy that encodes them as they are.
    fn wide(&self, _max_abs: u64) -> Option<f64> {
        None
    }

    /// The steps of the rows of an exact encode, for noise on their own lattices; none where they are not known.
    fn steps(&self) -> Vec<Run> {
        Vec::new()
    }

    /// The same encode, answered for noise that is smaller by a factor on every run of [`Self::steps`].
    ///
    /// The factors are relative to each other: 1 of all is what a strategy assumes. A strategy whose steps differ has it.
    fn refined(&self, _factors: &[f64]) -> Option<Box<dyn Strategy>> {
        None
    }

    /// Of marginals: `v_T` for sets of attributes, where the covariance of the residual on `T` is `v_T` times the centring, at
    /// unit noise; none if it has no such structure, or they are not measured.
    fn residual_variances(&self, _sets: &[Vec<usize>]) -> Option<Vec<f64>> {
        None
    }

    /// The factors of [`Self::refined`]; none where they are all 1.
    fn factors(&self) -> &[f64] {
        &[]
    }

    /// `out = B x`.
    ///
    /// # Errors
    /// If this input form is not served; never because of its values.
    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error>;

    /// Answers from the measured values `y = B x + noise`.
    fn decode(&self, y: &[f64], out: &mut [f64]);

    /// Variance of each answer when the noise ratio times the sensitivity is 1.
    fn variances(&self, out: &mut [f64]);

    /// Mean and largest variance (if known) of the answers, unweighted, where they are found without listing them.
    fn spread(&self) -> Option<(f64, Option<f64>)> {
        None
    }

    /// The cells that the answers are read off, where what is measured determines them.
    fn cells(&self, _y: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// The same; of cells that are measured as one their sum, in the place of the first of them.
    fn merged_cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.cells(y)
    }

    /// `B x` of cells that are no integers, in floating point; none where no table of cells is measured.
    fn multiplied(&self, _x: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// `Bᵀ y`, one number a cell; none where no table of cells is measured.
    fn transposed(&self, _y: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// Variance of the sum of the cells in a box of a table of this shape, ends included, at unit noise.
    ///
    /// # Errors
    /// As [`Self::weights`].
    fn box_variance(&self, shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        boxes::by_weights(self, shape, first, last)
    }

    /// The same of many boxes, which lie in the table.
    ///
    /// # Errors
    /// As [`Self::weights`]; [`Error::Interrupted`].
    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        boxes::one_by_one(self, boxes)
    }

    /// Mean squared error at unit noise ratio for one record, before `B` was rounded to integers,
    /// where a closed form exists.
    fn ideal_mean_square(&self) -> Option<f64> {
        None
    }

    /// `|b_ij|` for the record in cell `j`, where noise is calibrated by composing coordinates.
    fn column(&self, _cell: usize) -> Option<Vec<f64>> {
        None
    }

    /// The `w` of least variance with `Bᵀ w = row`: the answer `row·x` is estimated by `w·y`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the row is outside the measured row space.
    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error>;

    /// The weights that `decode` gives the measured values in its answer `answer`, whose row is `row`.
    ///
    /// # Errors
    /// As [`Self::weights`].
    fn answer_weights(&self, _answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.weights(row)
    }

    /// Variance of the noise that all measured coordinates have in common, besides their own.
    fn common_noise(&self) -> f64 {
        0.0
    }

    /// Variance of each measured coordinate's own noise at unit noise; for K-norm noise a bound for every combination.
    fn unit_variances(&self) -> Vec<f64> {
        match self.geometry() {
            Geometry::Common(_) => vec![self.geometry().white(); self.measured_len()],
            Geometry::L2 => vec![1.0; self.measured_len()],
            Geometry::L1 if self.factors().is_empty() => vec![2.0; self.measured_len()],
            Geometry::L1 => each_row(&self.steps(), self.factors()).iter().map(|less| 2.0 / (less * less)).collect(),
            Geometry::Blocks(blocks) => {
                blocks.iter().flat_map(|len| vec![f64::from(*len) + 1.0; *len as usize]).collect()
            }
            Geometry::Boxes(boxes) => {
                let of = |len: &u32| (f64::from(*len) + 1.0) * (f64::from(*len) + 2.0) / 3.0;
                boxes.iter().flat_map(|len| vec![of(len); *len as usize]).collect()
            }
            // |⟨w, z⟩| ≤ ‖w‖₂·radius on the body, whatever the direction.
            Geometry::Body(body) => vec![body.variance(body.radius().get()); self.measured_len()],
        }
    }
}

/// What is said of every run, for every row of it.
fn each_row(runs: &[Run], of_runs: &[f64]) -> Vec<f64> {
    runs.iter().zip(of_runs).flat_map(|(run, value)| std::iter::repeat_n(*value, run.len)).collect()
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

pub(crate) fn not_in_row_space() -> Error {
    Error::Unsupported("this query is not in the row space of what was measured".into())
}

/// Cells of an input that must be a table.
pub(crate) fn table(x: Input<'_>) -> Result<&[i64], Error> {
    match x {
        Input::Cells(cells) | Input::Sparse { cells, .. } => Ok(cells),
        Input::Codes(_) => Err(Error::Unsupported("this mechanism takes a table, not record codes".into())),
        Input::Sums(_) => Err(Error::Unsupported("this mechanism takes a table, not a sketch".into())),
    }
}

/// The integer side of an encode.
pub(crate) fn integers(out: Encoded<'_>) -> &mut [i64] {
    match out {
        Encoded::Exact(units) => units,
        Encoded::Float(_) | Encoded::Wide(_) => unreachable!("the door allocates what `encoding` asked for"),
    }
}

/// The floating side of an encode.
pub(crate) fn floats(out: Encoded<'_>) -> &mut [f64] {
    match out {
        Encoded::Float(values) => values,
        Encoded::Exact(_) | Encoded::Wide(_) => unreachable!("the door allocates what `encoding` asked for"),
    }
}
