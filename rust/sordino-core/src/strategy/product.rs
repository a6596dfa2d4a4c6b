//! Kronecker products of running sums, all ranges, filters, groups and cells: along every axis the strategy of its factor.
//!
//! Gaussian noise: balanced roots. Least errors of products multiply, and so do the errors and the bounds of the factors'
//! strategies. Columns are outer products of columns: their norms multiply, and `b_i·b_j` is the product of those of the
//! factors, so that it is below zero by at most that of one factor times the largest norms of the others. Laplace noise:
//! weighted trees, or cells and weighted sums of them; ℓ1 norms multiply.

use super::balanced::{Balanced, Precision};
use super::boxes::{Boxes, axes_of, one_by_one, volume};
use super::columns::pair_of_product;
use super::factored::{Factor, Factored, product_bits, round_sums, rounded_sums};
use super::laminar::{Laminar, Path, several};
use super::merged::Merging;
use super::p_identity::{PIdentity, Scaled};
use super::recipe::{Mechanism, Recipe};
use super::weighted_tree::{WEIGHT_BITS, WeightedTree};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, floats, not_in_row_space, table};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::order::by_key;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, along, outer};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of entries beside cells, and what they and the sums of all axes may take of the integers: there is room for counts.
const SUM_BITS: RangeInclusive<i32> = 6..=28;
const ROOM: f64 = 34.0;
/// Bits of counts beside matrices, and those that a root, or a filter, makes sums longer by.
const COUNT_BITS: u32 = 24;
const ROOT_BITS: u32 = 28;
/// Bits of the entries of a matrix of fewer rows than columns, at least: its rows are not quite those that queries are made of.
const ROW_SPACE_BITS: u32 = 32;
/// Bits of the weight of a total.
const TOTAL_BITS: u32 = 1;
/// Products of paths that are looked at one by one.
const MOST_PATHS: usize = 1 << 20;

/// The strategies of a product of nested groups and cells along its axes, Gaussian noise, for all that `unit` may change.
///
/// # Errors
/// [`Error::Unsupported`] if a factor has no strategy.
pub fn nested_product(workload: &Workload, unit: Unit) -> Result<Box<dyn Strategy>, Error> {
    Ok(Box::new(Product::new(&workload.clone().validated()?, Geometry::L2, Some(unit))?))
}

/// Cells and weighted sums of them along every axis, Laplace noise, of a product: `sums` are rows of weights of the cells, those
/// of [`super::p_identity`], or none where the total of the axis is measured alone.
///
/// # Errors
/// [`Error::InvalidParameter`] if there are not as many as axes, or their shapes do not fit; [`Error::Unsupported`] without any
/// sums, or for axes that are no totals and have none.
pub fn p_identity_product(workload: &Workload, sums: &[Option<Vec<f64>>]) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    Error::check_len("sums", workload.kronecker_factors().len(), sums.len())?;
    let (mut merged, mut factors) = (Vec::new(), Vec::new());
    for factor in workload.kronecker_factors() {
        let (merging, own) = Merging::of(factor).unzip();
        merged.push(merging);
        factors.push(own.unwrap_or_else(|| factor.clone()));
    }
    let scaled: Vec<Option<Scaled>> = factors
        .iter()
        .zip(sums)
        .map(|(factor, sums)| sums.as_ref().map(|sums| Scaled::new(factor.table_len()?, sums)).transpose())
        .collect::<Result<_, Error>>()?;
    let mut given = scaled.iter().flatten().filter(|own| !own.is_cells()).map(Scaled::growth).peekable();
    if given.peek().is_none() {
        return Err(Error::Unsupported("no axis has sums beside its cells".into()));
    }
    let of_total = |(factor, own): (&Workload, &Option<Scaled>)| match own {
        Some(_) => Ok(0.0),
        None => Ok((factor.table_len()? as f64).log2()),
    };
    let totals: f64 = factors.iter().zip(&scaled).map(of_total).sum::<Result<f64, Error>>()?;
    let joined: f64 = merged.iter().flatten().map(|merging| f64::from(merging.largest()).log2()).sum();
    let bits = entry_bits(given, totals + joined);
    let axis = |((factor, scaled), merging): ((&Workload, &Option<Scaled>), Option<Merging>)| match (factor, scaled) {
        (Workload::Histogram { len }, Some(scaled)) if scaled.is_cells() => Ok(Axis::Cells(*len)),
        (_, Some(scaled)) => {
            factor.listed()?;
            let bits = if scaled.is_cells() { 0 } else { bits };
            let sums = PIdentity::new(factor.clone(), scaled, bits)?;
            sums.check_digits()?;
            Ok(Axis::sums(sums).of_merged(merging))
        }
        (Workload::Sparse { rows: 1, .. }, None) => total(factor, Geometry::L1, None),
        _ => Err(Error::Unsupported("an axis that is no total has sums beside its cells, or no rows of them".into())),
    };
    let axes = factors.iter().zip(&scaled).zip(merged).map(axis).collect::<Result<_, Error>>()?;
    let answers = factors.iter().map(Workload::answers_len).collect();
    Ok(Box::new(Product { axes, answers, geometry: Geometry::L1, factors: Vec::new() }))
}

/// Bits of the entries of sums beside the cells of axes: those of all axes add up, and so do those that sums and totals grow by.
pub(super) fn entry_bits(growths: impl Iterator<Item = f64>, totals: f64) -> i32 {
    let (axes, growth) = growths.fold((0, totals), |(axes, sum), own| (axes + 1, sum + own));
    let room = (ROOM - growth) / f64::from(axes.max(1));
    (room.floor() as i32).clamp(*SUM_BITS.start(), *SUM_BITS.end())
}

/// The sum of so many cells.
pub(super) fn all(n: usize) -> Workload {
    let (indices, entries) = ((0..n as u32).collect(), vec![1.0; n]);
    Workload::Sparse { rows: 1, columns: n, starts: vec![0, n], indices, entries }
}

/// What a total is measured times.
pub(super) fn total_weight(law: NoiseLaw) -> f64 {
    if law == NoiseLaw::Laplace { f64::from(1 << TOTAL_BITS) } else { 1.0 }
}

/// The axis of a total, which needs a weight no more than cells do.
fn total(factor: &Workload, geometry: Geometry, unit: Option<Unit>) -> Result<Axis, Error> {
    Laminar::new(factor, geometry, TOTAL_BITS..=TOTAL_BITS, unit).map(|groups| Axis::Groups(Box::new(groups)))
}

/// Where an axis comes in an encode: filters, whose sums must be short, before the others, roots, which may leave floats, and
/// matrices, which always do, after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    First,
    Between,
    Last,
    Matrix,
}

/// A factor: cells as they are, nested groups, what another strategy measures, or a matrix, in sums of twice the bits.
#[derive(Debug, Clone)]
enum Axis {
    Cells(usize),
    Groups(Box<Laminar>),
    Measured { cells: usize, strategy: Arc<dyn Strategy>, columns: (Upper, Upper), rank: Rank },
    Matrix(Arc<Factored>),
}

impl Axis {
    /// Cells beside sums of them.
    fn sums(sums: PIdentity) -> Self {
        let (cells, columns) = (sums.len(), (sums.column(), Upper::ZERO));
        Self::Measured { cells, strategy: Arc::new(sums), columns, rank: Rank::Between }
    }

    /// The same of cells that are merged first.
    fn of_merged(self, merging: Option<Merging>) -> Self {
        match (self, merging) {
            (Self::Measured { strategy, columns, rank, .. }, Some(merging)) => {
                let cells = merging.cells();
                Self::Measured { cells, strategy: Arc::from(merging.around(strategy)), columns, rank }
            }
            (own, _) => own,
        }
    }

    fn rank(&self) -> Rank {
        match self {
            Self::Cells(_) | Self::Groups(_) => Rank::Between,
            Self::Matrix(_) => Rank::Matrix,
            Self::Measured { rank, .. } => *rank,
        }
    }

    /// What is measured along the axis, if that is not the cells.
    fn strategy(&self) -> Option<&dyn Strategy> {
        match self {
            Self::Cells(_) => None,
            Self::Groups(groups) => Some(&**groups),
            Self::Measured { strategy, .. } => Some(&**strategy),
            Self::Matrix(matrix) => Some(&**matrix),
        }
    }

    fn cells(&self) -> usize {
        match self {
            Self::Cells(len) => *len,
            Self::Groups(groups) => groups.cells_len(),
            Self::Measured { cells, .. } => *cells,
            Self::Matrix(matrix) => matrix.fixed().columns,
        }
    }

    fn measured(&self) -> usize {
        self.strategy().map_or_else(|| self.cells(), Strategy::measured_len)
    }

    /// Mean and largest variance of the answers.
    fn spread(&self) -> Option<(f64, Option<f64>)> {
        match self {
            Self::Matrix(matrix) => Some(matrix.listed_spread()),
            _ => self.strategy()?.spread(),
        }
    }

    /// Largest norm of a column, and how far a product of two may fall below zero; squares of ℓ2 norms, or ℓ1 norms.
    fn columns(&self) -> (Upper, Upper) {
        match self {
            Self::Cells(_) => (Upper::exact(1.0), Upper::ZERO),
            Self::Groups(groups) => (groups.column(), Upper::ZERO),
            Self::Measured { columns, .. } => *columns,
            Self::Matrix(matrix) => matrix.extremes(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Product {
    axes: Vec<Axis>,
    /// Answers of each factor.
    answers: Vec<usize>,
    geometry: Geometry,
    /// Of [`Strategy::refined`].
    factors: Vec<f64>,
}

/// A strategy, the numbers after its axis, and the bound of what it takes in.
struct Stage<'a> {
    axis: &'a Axis,
    strategy: &'a dyn Strategy,
    inner: usize,
    max_abs: u64,
}

impl Stage<'_> {
    /// Every line along the axis.
    fn encoded<T>(&self, values: &[i64], to: impl for<'a> Fn(&'a mut [T]) -> Encoded<'a> + Sync) -> Vec<T>
    where
        T: Copy + Default + Send,
    {
        along((self.axis.cells(), self.axis.measured()), self.inner, values, |line, out| {
            let encoded = self.strategy.encode(Input::Cells(line), self.max_abs, to(out));
            encoded.expect("a table is served");
        })
    }
}

fn overflow() -> Error {
    Error::Overflow("the sums of a product overflow; declare a smaller max_value".into())
}

fn bits_of(matrices: &[(&Factored, usize)]) -> i32 {
    matrices.iter().map(|(matrix, _)| matrix.fixed().bits).sum()
}

/// The axis of a filter or of a convolution on a group.
fn filtered(factor: &Workload) -> Result<Axis, Error> {
    let recipe = Recipe { workload: factor.clone(), mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
    let strategy: Arc<dyn Strategy> = Arc::from(recipe.build()?);
    let column = strategy.sensitivity(Unit::add_remove(1, None)?)?;
    let columns = (column * column, column * column);
    Ok(Axis::Measured { cells: factor.table_len()?, strategy, columns, rank: Rank::First })
}

/// The axis of ranges, intervals or moving and running sums: of intervals on the cells that they tell apart.
fn line(factor: &Workload, geometry: &Geometry, precision: Precision, bits: u32) -> Result<Axis, Error> {
    let (merging, distinct) = Merging::of(factor).unzip();
    let own = distinct.as_ref().unwrap_or(factor);
    let cells = own.table_len()?;
    let axis = if *geometry == Geometry::L1 {
        let tree = WeightedTree::new(own, None, bits)?;
        let columns = (tree.column(), Upper::ZERO);
        Axis::Measured { cells, strategy: Arc::new(tree), columns, rank: Rank::Between }
    } else {
        let root = Balanced::new(own, None, precision)?;
        let columns = root.squares();
        Axis::Measured { cells, strategy: Arc::new(root), columns, rank: Rank::Last }
    };
    Ok(axis.of_merged(merging))
}

impl Product {
    /// Of balanced roots for Gaussian noise, of trees for Laplace noise; groups are weighted for all that `unit` may change.
    pub(super) fn new(workload: &Workload, geometry: Geometry, unit: Option<Unit>) -> Result<Self, Error> {
        Self::of(workload, geometry, unit, &[])
    }

    /// Of matrices along some axes, and what has a closed form along those that have no rows. Gaussian noise.
    pub(super) fn with_rows(workload: &Workload, rows: &[Factor]) -> Result<Self, Error> {
        let axes = workload.kronecker_factors().iter().map(Workload::input_len);
        if !axes.eq(rows.iter().map(|own| Some(own.columns))) {
            return Err(Error::invalid(
                "strategy",
                "must have a factor for each of the workload's, of as many columns",
            ));
        }
        Self::of(workload, Geometry::L2, None, rows)
    }

    fn of(workload: &Workload, geometry: Geometry, unit: Option<Unit>, rows: &[Factor]) -> Result<Self, Error> {
        let factors = workload.kronecker_factors();
        let cells = |factor: &Workload| matches!(factor, Workload::Histogram { .. });
        let is_total = |factor: &Workload| matches!(factor, Workload::Sparse { rows: 1, .. });
        let others = factors.iter().filter(|factor| !cells(factor) && !is_total(factor)).count();
        if factors.iter().all(cells) {
            return Err(Error::Unsupported("cells need no other strategy: measure them".into()));
        }
        // Bits of the factors add up.
        let precision = if others <= 1 { Precision::Full } else { Precision::Shared };
        let bits = match others {
            0 | 1 => WEIGHT_BITS,
            2 => 8,
            _ => 6,
        };
        let axis = |factor: &Workload| match factor {
            Workload::Histogram { len } => Ok(Axis::Cells(*len)),
            Workload::Sparse { rows: 1, .. } => total(factor, geometry.clone(), unit),
            Workload::Sparse { .. } => Laminar::new(factor, geometry.clone(), bits + 1..=bits + 1, unit)
                .map(|groups| Axis::Groups(Box::new(groups))),
            Workload::Circular { .. } | Workload::Group { .. } if geometry == Geometry::L2 => filtered(factor),
            Workload::Linear { .. } if geometry == Geometry::L2 && factor.running_sum().is_none() => filtered(factor),
            _ => line(factor, &geometry, precision, bits),
        };
        let matrices: Vec<&Factor> = rows.iter().filter(|own| own.rows > 0).collect();
        let along = matrices.iter().map(|own| own.columns).product();
        let input = COUNT_BITS + ROOT_BITS * others.saturating_sub(matrices.len()) as u32;
        let entry_bits = product_bits(input, along, matrices.len().max(1));
        if entry_bits < ROW_SPACE_BITS && matrices.iter().any(|own| own.rows < own.columns) {
            return Err(Error::Unsupported("too many axes are measured by matrices of few rows beside others".into()));
        }
        let axis = |(k, factor): (usize, &Workload)| match rows.get(k) {
            Some(own) if own.rows > 0 => Ok(Axis::Matrix(Arc::new(Factored::along(factor, own, entry_bits)?))),
            _ => axis(factor),
        };
        let axes = factors.iter().enumerate().map(axis).collect::<Result<_, _>>()?;
        Ok(Self { axes, answers: factors.iter().map(Workload::answers_len).collect(), geometry, factors: Vec::new() })
    }

    /// Cells and sums of them along some axes, or the total of so many cells; Laplace noise.
    pub(super) fn of_table<'a>(axes: impl Iterator<Item = Result<&'a PIdentity, usize>>) -> Result<Self, Error> {
        let axis = |own: Result<&PIdentity, usize>| match own {
            Ok(sums) => Ok(Axis::sums(sums.clone())),
            Err(n) => total(&all(n), Geometry::L1, None),
        };
        let axes: Vec<Axis> = axes.map(axis).collect::<Result<_, Error>>()?;
        let answers = axes.iter().map(Axis::measured).collect();
        Ok(Self { axes, answers, geometry: Geometry::L1, factors: Vec::new() })
    }

    /// The strategies of the axes, each with the bound that the one before leaves; the last may leave floats. Matrices come
    /// behind them.
    fn stages(&self, max_abs: u64) -> Result<(Vec<Stage<'_>>, Encoding), Error> {
        let mut order: Vec<usize> = (0..self.axes.len()).rev().collect();
        by_key(&mut order, &|k| f64::from(self.axes[k].rank() as u8)); // those of a rank from the last to the first
        let mut sizes: Vec<usize> = self.axes.iter().map(Axis::cells).collect();
        let mut stages = Vec::new();
        let mut encoding = Encoding::Exact { max_abs };
        for k in order {
            let axis = &self.axes[k];
            if axis.rank() == Rank::Matrix {
                continue;
            }
            if let Some(strategy) = axis.strategy() {
                let Encoding::Exact { max_abs } = encoding else { return Err(overflow()) };
                encoding = strategy.encoding(max_abs)?;
                stages.push(Stage { axis, strategy, inner: sizes[k + 1..].iter().product(), max_abs });
            }
            sizes[k] = axis.measured();
        }
        Ok((stages, encoding))
    }

    /// The matrices, from the last to the first, each with the numbers behind it.
    fn matrices(&self) -> Vec<(&Factored, usize)> {
        let (mut found, mut inner) = (Vec::new(), 1);
        for axis in self.axes.iter().rev() {
            if let Axis::Matrix(matrix) = axis {
                found.push((&**matrix, inner));
            }
            inner *= axis.measured();
        }
        found
    }

    /// The ways from roots to leaves along every axis; none if one is no tree, or there are too many.
    fn paths(&self) -> Option<Vec<Vec<Path>>> {
        let of = |axis: &Axis| match axis {
            Axis::Cells(_) => Some(vec![vec![(1, 1)]]),
            Axis::Groups(groups) => groups.profiles().map(|paths| paths.into_iter().collect()),
            Axis::Measured { .. } | Axis::Matrix(_) => None,
        };
        let paths = self.axes.iter().map(of).collect::<Option<Vec<Vec<Path>>>>()?;
        (paths.iter().map(Vec::len).product::<usize>() <= MOST_PATHS).then_some(paths)
    }

    /// The steps of an axis.
    fn axis_steps(&self, k: usize) -> Vec<Run> {
        let cells = || vec![Run { step: 1, len: self.axes[k].cells() }];
        self.axes[k].strategy().map_or_else(cells, Strategy::steps)
    }

    /// Each axis in turn, from so many numbers to so many.
    fn each_axis(
        &self,
        table: &[f64],
        sizes: impl Fn(usize, &Axis) -> (usize, usize),
        map: impl Fn(&dyn Strategy, &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let mut values = table.to_vec();
        let mut inner = 1;
        for (k, axis) in self.axes.iter().enumerate().rev() {
            let (before, after) = sizes(k, axis);
            if let Some(strategy) = axis.strategy() {
                values = along((before, after), inner, &values, |line, out| map(strategy, line, out));
            }
            inner *= after;
        }
        values
    }

    /// The cells, where each axis tells them.
    fn table(&self, y: &[f64], of: fn(&dyn Strategy, &[f64]) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
        let told = |axis: &Axis| axis.strategy().is_none_or(|own| of(own, &vec![0.0; own.measured_len()]).is_some());
        let sizes = |_: usize, axis: &Axis| (axis.measured(), axis.cells());
        let write = |own: &dyn Strategy, line: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&of(own, line).unwrap_or_default());
        };
        self.axes.iter().all(told).then(|| self.each_axis(y, sizes, write))
    }

    /// The same of maps that some lines may not have: then there are none.
    fn each_axis_known(
        &self,
        table: &[f64],
        sizes: impl Fn(usize, &Axis) -> (usize, usize),
        map: impl Fn(&dyn Strategy, &[f64]) -> Option<Vec<f64>> + Sync,
    ) -> Option<Vec<f64>> {
        let missing = AtomicBool::new(false);
        let mapped = self.each_axis(table, sizes, |strategy, line, out| match map(strategy, line) {
            Some(numbers) => out.copy_from_slice(&numbers),
            None => missing.store(true, Ordering::Relaxed),
        });
        (!missing.into_inner()).then_some(mapped)
    }
}

impl Strategy for Product {
    fn measured_len(&self) -> usize {
        self.axes.iter().map(Axis::measured).product()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        if self.geometry == Geometry::L2
            && unit.changes().is_some()
            && let Some(paths) = self.paths()
            && let Some(norm) = several(unit, self.axes.iter().map(Axis::cells).product(), &paths)
        {
            return Ok(norm);
        }
        let columns: Vec<(Upper, Upper)> = self.axes.iter().map(Axis::columns).collect();
        let (column, pair) = pair_of_product(&columns);
        if self.geometry == Geometry::L1 {
            return Ok(unit.from_columns(column, || column + column));
        }
        Ok(unit.from_columns(column.sqrt(), || pair.sqrt()))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let (stages, encoding) = self.stages(max_abs)?;
        let matrices = self.matrices();
        if !matrices.is_empty() {
            let largest = match (encoding, stages.last()) {
                (Encoding::Exact { max_abs }, _) => Some(max_abs as f64),
                (Encoding::Float { .. }, stage) => stage.and_then(|stage| stage.strategy.wide(stage.max_abs)),
            };
            let largest = largest.ok_or_else(overflow)?;
            let grown = matrices.iter().fold(largest, |most, (matrix, _)| most * matrix.fullest());
            return rounded_sums(grown * (1.0 + 1e-9), bits_of(&matrices), self.measured_len());
        }
        Ok(match (encoding, stages.last()) {
            (Encoding::Float { error_l2, max_abs }, Some(stage)) => {
                let lines = self.measured_len() / stage.axis.measured();
                Encoding::Float { error_l2: error_l2 * Upper::integer(lines as u128).sqrt(), max_abs }
            }
            (encoding, _) => encoding,
        })
    }

    /// Where the steps of one axis differ at most: with two the sizes of the noise have no product form, and estimates would
    /// not either.
    fn steps(&self) -> Vec<Run> {
        let mut inner = vec![Run { step: 1, len: 1 }];
        for k in (0..self.axes.len()).rev() {
            let own = self.axis_steps(k);
            inner = match (own.as_slice(), inner.as_slice()) {
                (own, [after]) => {
                    own.iter().map(|run| Run { step: run.step * after.step, len: run.len * after.len }).collect()
                }
                ([one], inner) => {
                    let of_one = inner.iter().map(|run| Run { step: run.step * one.step, len: run.len });
                    (0..one.len).flat_map(|_| of_one.clone()).collect()
                }
                _ => return Vec::new(),
            };
        }
        inner
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        let (k, runs) = (0..self.axes.len()).map(|k| (k, self.axis_steps(k).len())).find(|(_, runs)| *runs > 1)?;
        let own = &factors[..runs];
        let mut refined = self.clone();
        refined.axes[k] = match &self.axes[k] {
            Axis::Groups(groups) => Axis::Groups(Box::new(groups.with_factors(own))),
            Axis::Measured { cells, strategy, columns, rank } => {
                let strategy = Arc::from(strategy.refined(own)?);
                Axis::Measured { cells: *cells, strategy, columns: *columns, rank: *rank }
            }
            Axis::Cells(_) | Axis::Matrix(_) => return None,
        };
        refined.factors = factors.to_vec();
        Some(Box::new(refined))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let (mut stages, encoding) = self.stages(max_abs)?;
        let (last, mut values) = (stages.pop(), table(x)?.to_vec());
        for stage in stages {
            values = stage.encoded(&values, |out| Encoded::Exact(out));
        }
        let matrices = self.matrices();
        let Some(((first, inner), others)) = matrices.split_first() else {
            let last = last.expect("a product has an axis that is not cells");
            match out {
                Encoded::Exact(units) => units.copy_from_slice(&last.encoded(&values, |out| Encoded::Exact(out))),
                Encoded::Float(floats) => floats.copy_from_slice(&last.encoded(&values, |out| Encoded::Float(out))),
                Encoded::Wide(_) => unreachable!("the door allocates what `encoding` asked for"),
            }
            return Ok(());
        };
        let mut sums = match (last, encoding) {
            (None, _) => first.fixed().along(&values, *inner),
            (Some(last), Encoding::Exact { .. }) => {
                first.fixed().along(&last.encoded(&values, |out| Encoded::Exact(out)), *inner)
            }
            (Some(last), Encoding::Float { .. }) => {
                first.fixed().along(&last.encoded(&values, |out| Encoded::Wide(out)), *inner)
            }
        };
        for (matrix, inner) in others {
            sums = matrix.fixed().along(&sums, *inner);
        }
        round_sums(&sums, bits_of(&matrices), floats(out));
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let answers = |k: usize, axis: &Axis| (axis.measured(), self.answers[k]);
        out.copy_from_slice(&self.each_axis(y, answers, |strategy, line, out| strategy.decode(line, out)));
    }

    fn variances(&self, out: &mut [f64]) {
        let variances = |(axis, len): (&Axis, &usize)| {
            let mut variances = vec![1.0; *len];
            if let Some(strategy) = axis.strategy() {
                strategy.variances(&mut variances);
            }
            let white = if axis.strategy().is_some() { self.geometry.white() } else { 1.0 };
            variances.into_iter().map(|v| v / white).collect()
        };
        let mut each: Vec<Vec<f64>> = self.axes.iter().zip(&self.answers).map(variances).collect();
        each.push(vec![self.geometry.white()]);
        out.copy_from_slice(&outer(&each));
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let white = self.geometry.white();
        self.axes.iter().filter(|axis| axis.strategy().is_some()).try_fold(
            (white, Some(white)),
            |(mean, largest), axis| {
                let (own, most) = axis.spread()?;
                Some((mean * own / white, largest.zip(most).map(|(a, b)| a * b / white)))
            },
        )
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.table(y, |strategy, line| strategy.cells(line))
    }

    fn merged_cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.table(y, |strategy, line| strategy.merged_cells(line))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        self.each_axis_known(x, |_, axis| (axis.cells(), axis.measured()), |strategy, line| strategy.multiplied(line))
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.each_axis_known(y, |_, axis| (axis.measured(), axis.cells()), |strategy, line| strategy.transposed(line))
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        if boxes.shape.len() < self.axes.len() {
            return one_by_one(self, boxes); // cells in one row
        }
        let mut product = vec![self.geometry.white(); boxes.count()];
        for (axis, own) in self.axes.iter().zip(axes_of(self.axes.iter().map(Axis::cells), boxes.shape)?) {
            let part = boxes.of_axes(&own);
            let variances: Vec<f64> = match axis.strategy() {
                None => part.each().map(|(first, last)| volume(first, last)).collect(),
                Some(strategy) => {
                    strategy.box_variances(part.boxes())?.into_iter().map(|v| v / self.geometry.white()).collect()
                }
            };
            for (product, variance) in product.iter_mut().zip(variances) {
                *product *= variance;
            }
        }
        Ok(product)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let sizes = |_: usize, axis: &Axis| (axis.cells(), axis.measured());
        self.each_axis_known(row, sizes, |strategy, line| strategy.weights(line).ok()).ok_or_else(not_in_row_space)
    }
}
