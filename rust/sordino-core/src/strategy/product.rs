//! Kronecker products of running sums, all ranges, filters, groups and cells: along every axis the strategy of its factor.
//!
//! Gaussian noise: balanced roots. Least errors of products multiply, and so do the errors and the bounds of the factors'
//! strategies. Columns are outer products of columns: their norms multiply, and `b_i·b_j` is the product of those of the
//! factors, so that it is below zero by at most that of one factor times the largest norms of the others. Laplace noise:
//! weighted trees, or cells and weighted sums of them; ℓ1 norms multiply.

use super::balanced::{Balanced, Precision};
use super::boxes::{Boxes, axes_of, one_by_one, volume};
use super::columns::pair_of_product;
use super::laminar::{Laminar, Path, several};
use super::p_identity::{PIdentity, Scaled};
use super::recipe::{Mechanism, Recipe};
use super::weighted_tree::{WEIGHT_BITS, WeightedTree};
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, not_in_row_space, table};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, along, outer};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of entries beside cells, and what they and the sums of all axes may take of the integers: there is room for counts.
const SUM_BITS: RangeInclusive<i32> = 6..=28;
const ROOM: f64 = 34.0;
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
    let factors = workload.kronecker_factors();
    Error::check_len("sums", factors.len(), sums.len())?;
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
    let bits = entry_bits(given, totals);
    let axis = |(factor, scaled): (&Workload, &Option<Scaled>)| match (factor, scaled) {
        (Workload::Histogram { len }, Some(scaled)) if scaled.is_cells() => Ok(Axis::Cells(*len)),
        (_, Some(scaled)) => {
            factor.listed()?;
            let bits = if scaled.is_cells() { 0 } else { bits };
            let sums = PIdentity::new(factor.clone(), scaled, bits)?;
            sums.check_digits()?;
            Ok(Axis::Sums(Box::new(sums)))
        }
        (Workload::Sparse { rows: 1, .. }, None) => total(factor, Geometry::L1, None),
        _ => Err(Error::Unsupported("an axis that is no total has sums beside its cells, or no rows of them".into())),
    };
    let axes = factors.iter().zip(&scaled).map(axis).collect::<Result<_, Error>>()?;
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

/// A factor: cells as they are, a balanced root, the blocks of a tree, cells beside sums of them, nested groups, or what a filter
/// measures.
#[derive(Debug, Clone)]
enum Axis {
    Cells(usize),
    Root(Box<Balanced>),
    Tree(Box<WeightedTree>),
    Sums(Box<PIdentity>),
    Groups(Box<Laminar>),
    Filter { cells: usize, strategy: Arc<dyn Strategy>, column: Upper },
}

impl Axis {
    /// What is measured along the axis, if that is not the cells.
    fn strategy(&self) -> Option<&dyn Strategy> {
        match self {
            Self::Cells(_) => None,
            Self::Root(root) => Some(&**root),
            Self::Tree(tree) => Some(&**tree),
            Self::Sums(sums) => Some(&**sums),
            Self::Groups(groups) => Some(&**groups),
            Self::Filter { strategy, .. } => Some(&**strategy),
        }
    }

    fn cells(&self) -> usize {
        match self {
            Self::Cells(len) => *len,
            Self::Root(root) => root.measured_len(),
            Self::Tree(tree) => tree.len(),
            Self::Sums(sums) => sums.len(),
            Self::Groups(groups) => groups.cells_len(),
            Self::Filter { cells, .. } => *cells,
        }
    }

    fn measured(&self) -> usize {
        self.strategy().map_or_else(|| self.cells(), Strategy::measured_len)
    }

    /// Largest norm of a column, and how far a product of two may fall below zero; squares of ℓ2 norms, or ℓ1 norms.
    fn columns(&self) -> (Upper, Upper) {
        match self {
            Self::Cells(_) => (Upper::exact(1.0), Upper::ZERO),
            Self::Root(root) => root.squares(),
            Self::Tree(tree) => (tree.column(), Upper::ZERO),
            Self::Sums(sums) => (sums.column(), Upper::ZERO),
            Self::Groups(groups) => (groups.column(), Upper::ZERO),
            Self::Filter { column, .. } => (*column * *column, *column * *column),
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
    /// Every line along the axis, exactly.
    fn exact(&self, values: &[i64]) -> Vec<i64> {
        along((self.axis.cells(), self.axis.measured()), self.inner, values, |line, out| {
            let encoded = self.strategy.encode(Input::Cells(line), self.max_abs, Encoded::Exact(out));
            encoded.expect("a table is served");
        })
    }
}

/// The axis of a filter or of a convolution on a group.
fn filtered(factor: &Workload) -> Result<Axis, Error> {
    let recipe = Recipe { workload: factor.clone(), mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
    let strategy: Arc<dyn Strategy> = Arc::from(recipe.build()?);
    let column = strategy.sensitivity(Unit::add_remove(1, None)?)?;
    Ok(Axis::Filter { cells: factor.table_len()?, strategy, column })
}

impl Product {
    /// Of balanced roots for Gaussian noise, of trees for Laplace noise; groups are weighted for all that `unit` may change.
    pub(super) fn new(workload: &Workload, geometry: Geometry, unit: Option<Unit>) -> Result<Self, Error> {
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
            _ if geometry == Geometry::L1 => {
                WeightedTree::new(factor, None, bits).map(|tree| Axis::Tree(Box::new(tree)))
            }
            _ => Balanced::new(factor, None, precision).map(|root| Axis::Root(Box::new(root))),
        };
        let axes = factors.iter().map(axis).collect::<Result<_, _>>()?;
        Ok(Self { axes, answers: factors.iter().map(Workload::answers_len).collect(), geometry, factors: Vec::new() })
    }

    /// Cells and sums of them along some axes, or the total of so many cells; Laplace noise.
    pub(super) fn of_table<'a>(axes: impl Iterator<Item = Result<&'a PIdentity, usize>>) -> Result<Self, Error> {
        let axis = |own: Result<&PIdentity, usize>| match own {
            Ok(sums) => Ok(Axis::Sums(Box::new(sums.clone()))),
            Err(n) => total(&all(n), Geometry::L1, None),
        };
        let axes: Vec<Axis> = axes.map(axis).collect::<Result<_, Error>>()?;
        let answers = axes.iter().map(Axis::measured).collect();
        Ok(Self { axes, answers, geometry: Geometry::L1, factors: Vec::new() })
    }

    /// The strategies of the axes, each with the bound that the one before leaves; the last may leave floats. Filters, whose
    /// sums must be short, come before the others, and roots, which alone may leave floats, after them.
    fn stages(&self, max_abs: u64) -> Result<(Vec<Stage<'_>>, Encoding), Error> {
        let rank = |k: &usize| match self.axes[*k] {
            Axis::Filter { .. } => 0,
            Axis::Cells(_) | Axis::Tree(_) | Axis::Sums(_) | Axis::Groups(_) => 1,
            Axis::Root(_) => 2,
        };
        let mut order: Vec<usize> = (0..self.axes.len()).rev().collect();
        order.sort_by_key(rank); // stable: those of a rank from the last to the first
        let mut sizes: Vec<usize> = self.axes.iter().map(Axis::cells).collect();
        let mut stages = Vec::new();
        let mut encoding = Encoding::Exact { max_abs };
        for k in order {
            let axis = &self.axes[k];
            if let Some(strategy) = axis.strategy() {
                let Encoding::Exact { max_abs } = encoding else {
                    return Err(Error::Overflow("the sums of a product overflow; declare a smaller max_value".into()));
                };
                encoding = strategy.encoding(max_abs)?;
                stages.push(Stage { axis, strategy, inner: sizes[k + 1..].iter().product(), max_abs });
            }
            sizes[k] = axis.measured();
        }
        Ok((stages, encoding))
    }

    /// The ways from roots to leaves along every axis; none if one is no tree, or there are too many.
    fn paths(&self) -> Option<Vec<Vec<Path>>> {
        let of = |axis: &Axis| match axis {
            Axis::Cells(_) => Some(vec![vec![(1, 1)]]),
            Axis::Groups(groups) => groups.profiles().map(|paths| paths.into_iter().collect()),
            Axis::Root(_) | Axis::Tree(_) | Axis::Sums(_) | Axis::Filter { .. } => None,
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
            Axis::Tree(tree) => Axis::Tree(Box::new(tree.with_factors(own))),
            Axis::Sums(sums) => Axis::Sums(Box::new(sums.with_factors(own)?)),
            Axis::Groups(groups) => Axis::Groups(Box::new(groups.with_factors(own))),
            Axis::Cells(_) | Axis::Root(_) | Axis::Filter { .. } => return None,
        };
        refined.factors = factors.to_vec();
        Some(Box::new(refined))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let (stages, _) = self.stages(max_abs)?;
        let (last, stages) = stages.split_last().expect("a product has an axis that is not cells");
        let mut values = table(x)?.to_vec();
        for stage in stages {
            values = stage.exact(&values);
        }
        match out {
            Encoded::Exact(units) => units.copy_from_slice(&last.exact(&values)),
            Encoded::Float(floats) => {
                let sizes = (last.axis.cells(), last.axis.measured());
                floats.copy_from_slice(&along(sizes, last.inner, &values, |line, out| {
                    let encoded = last.strategy.encode(Input::Cells(line), last.max_abs, Encoded::Float(out));
                    encoded.expect("a table is served");
                }));
            }
        }
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
        self.axes.iter().filter_map(Axis::strategy).try_fold((white, Some(white)), |(mean, largest), strategy| {
            let (own, most) = strategy.spread()?;
            Some((mean * own / white, largest.zip(most).map(|(a, b)| a * b / white)))
        })
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        let told =
            |axis: &Axis| axis.strategy().is_none_or(|part| part.cells(&vec![0.0; part.measured_len()]).is_some());
        self.axes.iter().all(told).then(|| {
            self.each_axis(
                y,
                |_, axis| (axis.measured(), axis.cells()),
                |strategy, line, out| out.copy_from_slice(&strategy.cells(line).unwrap_or_default()),
            )
        })
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
