//! Any measured matrix `B`, or a Kronecker product of matrices, given entry by entry.
//!
//! What the optimisers return is measured here: `A = (A B⁺) B`, so the answers are `A x̂` with `x̂ = B⁺ y`. Entries are
//! rounded to fixed point and `B x` is summed in exact integers, so the only rounding of the encode is that of the
//! sum to a double. Sensitivity and variances are those of the rounded matrix. Privacy never depends on how `B` was
//! found.

use super::boxes::{Boxes, axes_of, indicator, one_by_one};
use super::columns::{are_few, extremes, pair_of_product, sensitivity};
use super::fixed::Fixed;
use super::merged::on_merged_cells;
use super::product::Product;
use super::{
    Body, Encoded, Encoding, Geometry, Input, Run, Strategy, each_row, floats, gcd, integers, not_in_row_space, probe,
    table,
};
use crate::changes::Proved;
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::linear_algebra::{
    Matrix, along_axis, dot, from_rows, pseudo_inverse, scale_columns, scale_rows, to_rows, transposed_product_into,
};
use crate::parallel::{collected, in_pieces, pieces};
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, each, outer, spread};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Sums stay below `2^SUM_BITS`.
const SUM_BITS: u32 = 126;
/// Bits that a Kronecker product leaves for the input.
pub(super) const INPUT_BITS: u32 = 32;
/// Parts that variances are added up in, and rows of a matrix at a time.
pub(super) const PARTS: usize = 8;
const ROWS: usize = 64;
/// First cells of ranges at a time.
const FIRSTS: usize = 4;
/// Bits of the largest entry, at most.
const ENTRY_BITS: u32 = 58;
/// Bits of the largest entry where whole numbers are measured: sums of many counts stay below 2^60.
const WHOLE_BITS: u32 = 28;

/// A measured matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Rows: coordinates that are measured.
    pub rows: usize,
    /// Columns: cells.
    pub columns: usize,
    /// Entries, row after row.
    pub entries: Vec<f64>,
}

/// How noise is put on the coordinates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pieces {
    /// Independently on each: Gaussian, or Laplace.
    Coordinates(NoiseLaw),
    /// Density `∝ exp(−‖·‖₂)` on consecutive blocks of these lengths.
    Blocks(Vec<u32>),
    /// Density `∝ exp(−‖·‖_K)`, `K` the symmetric hull of the columns.
    Body,
}

/// A strategy as data: what is answered, what is measured, how noise is put on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Factorization {
    /// What is answered.
    pub workload: Workload,
    /// What is measured: the Kronecker product of these, mostly one; of intervals of all cells or of merged ones. Along the axis
    /// of one without rows, what has a closed form there: Gaussian noise.
    pub factors: Vec<Factor>,
    /// How noise is put on it.
    pub pieces: Pieces,
    /// Whether entries are so coarse that of whole counts whole numbers are measured: for one factor and Laplace noise,
    /// which is then discrete on the lattice of each row.
    pub whole: bool,
}

impl Factorization {
    /// Builds the strategy; the same data give the same strategy.
    ///
    /// # Errors
    /// If shapes do not match, `B` has dependent rows or columns beyond its smaller side, or the workload is
    /// outside its row space.
    pub fn build(&self) -> Result<Box<dyn Strategy>, Error> {
        let workload = self.workload.clone().validated()?;
        if self.factors.iter().any(|factor| factor.rows == 0) {
            if self.pieces != Pieces::Coordinates(NoiseLaw::Gaussian) || self.whole {
                return Err(Error::invalid("strategy", "has rows along every axis, or independent Gaussian noise"));
            }
            return on_merged_cells(&workload, |own| Ok(Box::new(Product::with_rows(own, &self.factors)?)));
        }
        if self.cells() == workload.input_len() {
            return Ok(Box::new(Factored::new(self, workload)?));
        }
        on_merged_cells(&workload, |own| Ok(Box::new(Factored::new(self, own.clone())?)))
    }

    fn cells(&self) -> Option<usize> {
        self.factors.iter().try_fold(1usize, |n, factor| n.checked_mul(factor.columns))
    }
}

/// Bits of the entries of so many factors of a product, of so many cells along them, whose sums are of numbers of so many bits.
pub(super) fn product_bits(input: u32, cells: usize, factors: usize) -> u32 {
    ENTRY_BITS.min((SUM_BITS - 1).saturating_sub(input + cells.max(2).ilog2()) / factors as u32)
}

/// Sums of integers below `largest` in units of `2^-bits`, each rounded once to a double: half a unit of its last place.
///
/// # Errors
/// They overflow.
pub(super) fn rounded_sums(largest: f64, bits: i32, measured: usize) -> Result<Encoding, Error> {
    if largest >= 2f64.powi(SUM_BITS as i32) {
        return Err(Error::Overflow("the measured sums overflow; declare a smaller max_value".into()));
    }
    let max_abs = largest * 2f64.powi(-bits);
    let error = UNIT_ROUNDOFF * max_abs * (measured as f64).sqrt();
    Ok(Encoding::Float { error_l2: Upper::rounded(error, 4), max_abs })
}

/// Writes such sums.
pub(super) fn round_sums(sums: &[i128], bits: i32, out: &mut [f64]) {
    let unit = 2f64.powi(-bits);
    out.iter_mut().zip(sums).for_each(|(slot, sum)| *slot = *sum as f64 * unit);
}

/// One factor with its pseudo-inverse.
#[derive(Debug, Clone)]
struct Part {
    fixed: Fixed,
    /// Its fullest row, asked for by every release.
    fullest: f64,
    /// `B` in floating point.
    matrix: Matrix,
    /// `B⁺`, columns × rows.
    inverse: Matrix,
    /// Of its columns, when pairs of them are first asked for.
    extremes: OnceLock<(Upper, Upper)>,
}

impl Part {
    fn new(factor: &Factor, bits: u32, whole: bool) -> Result<Self, Error> {
        let mut fixed = Fixed::new(factor.rows, factor.columns, &factor.entries, bits)?;
        if whole {
            fixed.bits = 0;
        }
        let matrix = from_rows(fixed.rows, fixed.columns, &fixed.to_floats());
        let dependent = || Error::invalid("strategy", "its rows or columns are dependent");
        let inverse = pseudo_inverse(&matrix).ok_or_else(dependent)?;
        Ok(Self { fullest: fixed.fullest_row(), fixed, matrix, inverse, extremes: OnceLock::new() })
    }

    fn extremes(&self) -> (Upper, Upper) {
        *self.extremes.get_or_init(|| extremes(&self.matrix))
    }
}

#[derive(Debug)]
pub(super) struct Factored {
    workload: Workload,
    parts: Vec<Part>,
    geometry: Geometry,
    several: Proved,
    whole: bool,
    /// Of [`Strategy::refined`], one a run of rows.
    refined: Vec<f64>,
}

impl Factored {
    fn new(recipe: &Factorization, workload: Workload) -> Result<Self, Error> {
        let cells = recipe.cells();
        if recipe.factors.is_empty() || cells.is_none() || workload.input_len() != cells {
            return Err(Error::invalid("strategy", "must have one column for each cell of the workload"));
        }
        if recipe.factors.len() > 1 {
            let lengths = workload.kronecker_factors().iter().map(Workload::input_len);
            if !lengths.eq(recipe.factors.iter().map(|factor| Some(factor.columns))) {
                return Err(Error::invalid(
                    "strategy",
                    "several factors serve a Kronecker workload of the same factors",
                ));
            }
        }
        // Sums of a Kronecker product grow with every factor: each keeps as many bits as leave room for them.
        let many = recipe.factors.len();
        let bits = if recipe.whole { WHOLE_BITS } else { product_bits(INPUT_BITS, cells.unwrap_or(1), many) };
        if recipe.whole && (many > 1 || recipe.pieces != Pieces::Coordinates(NoiseLaw::Laplace)) {
            return Err(Error::invalid("strategy", "of whole numbers it has one factor and Laplace noise"));
        }
        let parts = recipe.factors.iter().map(|factor| Part::new(factor, bits, recipe.whole));
        let parts = parts.collect::<Result<Vec<_>, Error>>()?;
        let measured: usize = parts.iter().map(|part| part.fixed.rows).product();
        let geometry = match &recipe.pieces {
            Pieces::Coordinates(NoiseLaw::Gaussian) => Geometry::L2,
            Pieces::Coordinates(NoiseLaw::Laplace) => Geometry::L1,
            Pieces::Blocks(blocks) => {
                if parts.len() != 1 || blocks.iter().map(|len| *len as usize).sum::<usize>() != measured {
                    return Err(Error::invalid("blocks", "must add up to the rows of the strategy"));
                }
                Geometry::Blocks(blocks.clone())
            }
            Pieces::Body => {
                let [part] = parts.as_slice() else {
                    return Err(Error::invalid("strategy", "K-norm noise has one factor"));
                };
                let Fixed { rows, columns, entries, bits } = &part.fixed;
                Geometry::Body(Body::new(*rows, *columns, entries, *bits)?)
            }
        };
        let (whole, refined) = (recipe.whole, Vec::new());
        let strategy = Self { workload, parts, geometry, several: Proved::default(), whole, refined };
        strategy.check_answers()?;
        Ok(strategy)
    }

    /// What is measured along one axis of a product, in entries of so many bits. Gaussian noise.
    pub(super) fn along(workload: &Workload, factor: &Factor, bits: u32) -> Result<Self, Error> {
        let (workload, parts) = (workload.clone(), vec![Part::new(factor, bits, false)?]);
        let (several, refined) = (Proved::default(), Vec::new());
        let strategy = Self { workload, parts, geometry: Geometry::L2, several, whole: false, refined };
        strategy.check_answers()?;
        Ok(strategy)
    }

    /// The matrix, where there is one.
    pub(super) fn fixed(&self) -> &Fixed {
        &self.parts[0].fixed
    }

    /// Sum of the magnitudes of its fullest row.
    pub(super) fn fullest(&self) -> f64 {
        self.parts[0].fullest
    }

    /// [`extremes`] of it.
    pub(super) fn extremes(&self) -> (Upper, Upper) {
        self.parts[0].extremes()
    }

    /// Mean and largest variance of the answers, where those are as many as rows that are held.
    pub(super) fn listed_spread(&self) -> (f64, Option<f64>) {
        let mut variances = vec![0.0; self.workload.answers_len()];
        self.variances(&mut variances);
        let (mean, largest) = spread(&variances);
        (mean, Some(largest))
    }

    /// Whether `A B⁺ B = A`.
    fn check_answers(&self) -> Result<(), Error> {
        let answers = |workload: &Workload, part: &Part| {
            workload.listed()?;
            let back = |x: &[f64]| along_axis(&part.inverse, false, &along_axis(&part.matrix, false, x, 1), 1);
            if probe::answers(workload, part.fixed.columns, &back) {
                return Ok(());
            }
            let why =
                "the workload is outside the row space of the strategy, or too ill-conditioned for double precision";
            Err(Error::Unsupported(why.into()))
        };
        match self.parts.as_slice() {
            [part] => answers(&self.workload, part),
            parts => {
                let mut factors = self.workload.kronecker_factors().iter().zip(parts);
                factors.try_for_each(|(factor, part)| answers(factor, part))
            }
        }
    }

    /// Variances of the answers of each factor at noise of variance 1.
    fn variances_of_factors(&self) -> Vec<Vec<f64>> {
        let factors = self.workload.kronecker_factors().iter().zip(&self.parts);
        factors
            .map(|(factor, part)| {
                let mut each = vec![0.0; factor.answers_len()];
                squares(factor, &part.inverse, &|_| 1.0, &mut each);
                each
            })
            .collect()
    }

    /// The sensitivity from columns and pairs of them.
    fn of_columns(&self, unit: Unit) -> Result<Upper, Error> {
        let l2 = self.geometry == Geometry::L2;
        if let [part] = self.parts.as_slice()
            && (!l2 || are_few(part.fixed.columns, part.fixed.rows))
        {
            return Ok(sensitivity(&part.matrix, &self.geometry, unit));
        }
        // Norms of columns multiply.
        let single = Unit::add_remove(1, None)?;
        let norms = self.parts.iter().map(|part| sensitivity(&part.matrix, &self.geometry, single));
        let column = norms.fold(Upper::exact(1.0), |product, norm| product * norm);
        Ok(unit.from_columns(column, || {
            if !l2 {
                return column + column;
            }
            pair_of_product(&self.parts.iter().map(Part::extremes).collect::<Vec<_>>()).1.sqrt()
        }))
    }

    fn bits(&self) -> i32 {
        self.parts.iter().map(|part| part.fixed.bits).sum()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Map {
    /// `B`.
    Direct,
    /// `Bᵀ`.
    Transposed,
    /// `B⁺`.
    Inverse,
    /// `(B⁺)ᵀ`.
    InverseTransposed,
}

impl Factored {
    /// The Kronecker product of matrices times a vector, axis by axis.
    fn map(&self, map: Map, values: &[f64]) -> Vec<f64> {
        let mut values = values.to_vec();
        let mut inner = 1;
        for part in self.parts.iter().rev() {
            let matrix = if matches!(map, Map::Direct | Map::Transposed) { &part.matrix } else { &part.inverse };
            let transposed = matches!(map, Map::Transposed | Map::InverseTransposed);
            values = along_axis(matrix, transposed, &values, inner);
            inner *= if transposed { matrix.ncols() } else { matrix.nrows() };
        }
        values
    }
}

impl Strategy for Factored {
    fn measured_len(&self) -> usize {
        self.parts.iter().map(|part| part.fixed.rows).product()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let single = self.of_columns(unit)?;
        let several = match self.parts.as_slice() {
            [part] if self.geometry == Geometry::L2 => self.several.sensitivity(unit, || part.matrix.clone())?,
            _ => None,
        };
        Ok(several.map_or(single, |several| several.min(single)))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let fullest: f64 = self.parts.iter().map(|part| part.fullest).product();
        let largest = fullest * max_abs as f64 * (1.0 + 1e-9);
        if self.whole && largest < 2f64.powi(60) {
            return Ok(Encoding::Exact { max_abs: largest as u64 + 1 });
        }
        rounded_sums(if self.whole { f64::INFINITY } else { largest }, self.bits(), self.measured_len())
    }

    fn steps(&self) -> Vec<Run> {
        if !self.whole {
            return Vec::new();
        }
        let Fixed { columns, entries, .. } = &self.parts[0].fixed;
        Run::merged(entries.chunks_exact(*columns).map(|row| row.iter().fold(0, |step, a| gcd(step, *a)).max(1) as u64))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        let [part] = self.parts.as_slice() else { return None };
        // Least squares of rows in units of their noise.
        let rows = each_row(&self.steps(), factors);
        let mut scaled = part.matrix.clone();
        scale_rows(&mut scaled, |i| rows[i]);
        let mut inverse = pseudo_inverse(&scaled)?;
        scale_columns(&mut inverse, |j| rows[j]);
        Some(Box::new(Self {
            workload: self.workload.clone(),
            parts: vec![Part { inverse, ..part.clone() }],
            geometry: self.geometry.clone(),
            several: Proved::default(),
            whole: self.whole,
            refined: factors.to_vec(),
        }))
    }

    fn factors(&self) -> &[f64] {
        &self.refined
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let cells = table(x)?;
        let (last, rest) = self.parts.split_last().expect("at least one factor");
        let mut sums = vec![0i128; cells.len() / last.fixed.columns * last.fixed.rows];
        match x {
            Input::Sparse { nonzero, .. } if rest.is_empty() => last.fixed.apply_sparse(cells, nonzero, &mut sums),
            _ => last.fixed.apply(cells, 1, &mut sums),
        }
        let mut inner = last.fixed.rows;
        for part in rest.iter().rev() {
            sums = part.fixed.along(&sums, inner);
            inner *= part.fixed.rows;
        }
        if self.whole {
            // Below 2^60, as `encoding` says.
            integers(out).iter_mut().zip(&sums).for_each(|(slot, sum)| *slot = *sum as i64);
            return Ok(());
        }
        round_sums(&sums, self.bits(), floats(out));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.map(Map::Inverse, y), out);
    }

    fn variances(&self, out: &mut [f64]) {
        if self.parts.len() > 1 {
            let mut each = self.variances_of_factors();
            each.push(vec![self.geometry.white()]);
            out.copy_from_slice(&outer(&each));
            return;
        }
        if let Geometry::Body(body) = &self.geometry {
            // An answer is at most max_j |a_ij| on the body.
            let reach =
                |t: usize| self.workload.row(t).map_or(0.0, |row| row.iter().fold(0.0, |m: f64, a| m.max(a.abs())));
            out.iter_mut().enumerate().for_each(|(t, slot)| *slot = body.variance(reach(t)) * (1.0 + 1e-9));
            return;
        }
        let noise = self.unit_variances();
        squares(&self.workload, &self.parts[0].inverse, &|k| noise[k], out);
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        if self.parts.len() == 1 {
            return None;
        }
        let white = self.geometry.white();
        let each = self.variances_of_factors().into_iter().map(|variances| spread(&variances));
        let (mean, largest) = each.fold((white, white), |(mean, most), (a, b)| (mean * a, most * b));
        Some((mean, Some(largest)))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.parts.iter().all(|part| part.fixed.rows >= part.fixed.columns).then(|| self.map(Map::Inverse, y))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        Some(self.map(Map::Direct, x))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.map(Map::Transposed, y))
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        if boxes.shape.len() < self.parts.len() || self.parts.len() == 1 {
            return one_by_one(self, boxes);
        }
        let mut product = vec![self.geometry.white(); boxes.count()];
        let cells = self.parts.iter().map(|part| part.fixed.columns);
        for (part, own) in self.parts.iter().zip(axes_of(cells, boxes.shape)?) {
            let lines = boxes.of_axes(&own);
            for (product, (first, last)) in product.iter_mut().zip(lines.each()) {
                let row = indicator(lines.shape, first, last);
                *product *= along_axis(&part.inverse, true, &row, 1).iter().map(|w| w * w).sum::<f64>();
            }
        }
        Ok(product)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let weights = self.map(Map::InverseTransposed, row);
        let reached = self.map(Map::Transposed, &weights);
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let missed = norm(&mut reached.iter().zip(row).map(|(a, b)| a - b));
        if missed.is_nan() || missed > probe::ANSWERED * norm(&mut row.iter().copied()) {
            return Err(not_in_row_space());
        }
        Ok(weights)
    }
}

/// Of each measured coordinate.
type Noise<'a> = &'a (dyn Fn(usize) -> f64 + Sync);

/// `Σ_k noise_k·(A p_k)²` over the columns `p_k` of the pseudo-inverse.
pub(super) fn squares(workload: &Workload, inverse: &Matrix, noise: Noise<'_>, out: &mut [f64]) {
    match workload {
        Workload::Union { parts } => {
            each(parts, out, |part, own| squares(part, inverse, noise, own));
        }
        Workload::Matrix { columns, entries, .. } => squares_of_rows(*columns, entries, inverse, noise, out),
        Workload::Ranges { .. } => squares_of_ranges(inverse, noise, out),
        Workload::Intervals { ends, .. } => squares_of_intervals(ends, inverse, noise, out),
        _ => squares_of_columns(workload, inverse, noise, out),
    }
}

/// The same of a matrix that is written out, some rows at a time.
fn squares_of_rows(columns: usize, entries: &[f64], inverse: &Matrix, noise: Noise<'_>, out: &mut [f64]) {
    let inverse: Vec<f64> = (0..inverse.ncols()).flat_map(|k| inverse.col_as_slice(k)).copied().collect();
    let measured = inverse.len() / columns;
    in_pieces(out, ROWS, &|first, out| {
        let mut answers = vec![0.0; out.len() * measured];
        let rows = &entries[first * columns..(first + out.len()) * columns];
        transposed_product_into(&mut answers, columns, rows, &inverse);
        let each = answers.chunks_exact(out.len());
        out.fill(0.0);
        for (k, answers) in each.enumerate() {
            let noise = noise(k);
            out.iter_mut().zip(answers).for_each(|(sum, a)| *sum += noise * a * a);
        }
    });
}

/// The same of all ranges, some first cells at a time: each from the one before, all coordinates together.
fn squares_of_ranges(inverse: &Matrix, noise: Noise<'_>, out: &mut [f64]) {
    let (n, measured) = (inverse.nrows(), inverse.ncols().max(1));
    let rows = scaled_rows(inverse, noise);
    out.fill(0.0);
    let mut own: Vec<_> = pieces(out, (1..=n).rev()).into_iter().enumerate().collect();
    own.par_chunks_mut(FIRSTS).for_each(|own| {
        let mut sums = vec![0.0; own.len() * measured];
        for (last, row) in rows.chunks_exact(measured).enumerate().skip(own[0].0) {
            for ((first, squares), sum) in own.iter_mut().zip(sums.chunks_exact_mut(measured)) {
                if *first <= last {
                    sum.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry);
                    squares[last - *first] = dot(sum, sum);
                }
            }
        }
    });
}

/// The rows of the pseudo-inverse, each coordinate times the deviation of its noise.
fn scaled_rows(inverse: &Matrix, noise: Noise<'_>) -> Vec<f64> {
    let mut scaled = inverse.clone();
    scale_columns(&mut scaled, |k| noise(k).sqrt());
    to_rows(&scaled)
}

/// The same of intervals, each the difference of two sums of rows from the first cell on.
fn squares_of_intervals(ends: &[(u32, u32)], inverse: &Matrix, noise: Noise<'_>, out: &mut [f64]) {
    let measured = inverse.ncols();
    let mut sums = vec![0.0; measured];
    sums.extend(scaled_rows(inverse, noise));
    for first in (measured..sums.len()).step_by(measured) {
        let (before, own) = sums.split_at_mut(first);
        own.iter_mut().zip(&before[first - measured..]).for_each(|(sum, before)| *sum += before);
    }
    let until = |cell: u32| &sums[cell as usize * measured..][..measured];
    in_pieces(out, ROWS, &|start, out| {
        let mut sum = vec![0.0; measured];
        for (slot, (first, last)) in out.iter_mut().zip(&ends[start..]) {
            let both = until(last + 1).iter().zip(until(*first));
            sum.iter_mut().zip(both).for_each(|(sum, (all, before))| *sum = all - before);
            *slot = dot(&sum, &sum);
        }
    });
}

/// The same of any workload, column by column of the pseudo-inverse.
fn squares_of_columns(workload: &Workload, inverse: &Matrix, noise: Noise<'_>, out: &mut [f64]) {
    let (len, each) = (out.len(), inverse.ncols().div_ceil(PARTS).max(1));
    add_parts(out, &|part| {
        let (mut sums, mut answers) = (vec![0.0; len], vec![0.0; len]);
        for k in (part * each..inverse.ncols()).take(each) {
            workload.apply(inverse.col_as_slice(k), &mut answers);
            sums.iter_mut().zip(&answers).for_each(|(sum, a)| *sum += noise(k) * a * a);
        }
        sums
    });
}

/// The sum of what the parts have, in one order, whatever threads there are: a plan's digest is of its errors too.
pub(super) fn add_parts(out: &mut [f64], of_part: &(dyn Fn(usize) -> Vec<f64> + Sync)) {
    out.fill(0.0);
    for sums in collected(PARTS, of_part) {
        out.iter_mut().zip(&sums).for_each(|(a, b)| *a += b);
    }
}
