//! Counts of nested groups of cells: every group is measured with a weight of its own.
//!
//! With `G = BᵀB = Σ_v g_v 1_v 1_vᵀ` over the groups, and over the cells that no group tells apart, everything takes two sweeps
//! over the forest of the groups: the inverse, the variances, and the search for the weights of least error. Measured are
//! `round(2^b √g_v)` times the counts, in exact integers; decoding and variances are those of the rounded weights.

mod bound;
mod forest;
mod solve;
#[cfg(test)]
mod tests;
mod weights;

use super::{
    Encoded, Encoding, Geometry, Input, MOST_PRECISE, Run, Strategy, each_row, integers, not_in_row_space, table,
};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, spread};
use forest::{Forest, NONE};
use solve::Solver;
use std::collections::BTreeSet;
use std::ops::{AddAssign, RangeInclusive};
use std::sync::Arc;

/// Nodes on the ways from roots to leaves that are looked at one by one.
const MOST_NODES: usize = 1 << 22;
/// Bits of a weight of 1, the largest there may be: at least, and at most where the largest counts leave room.
const WEIGHT_BITS: RangeInclusive<u32> = 13..=20;
/// Weighted sums are below.
const MOST_SUM: u64 = 1 << 60;

/// Groups of cells of which any two are nested or disjoint, and the queries that are multiples of their sums.
#[derive(Debug, Clone)]
pub struct NestedGroups(Arc<Forest>);

impl NestedGroups {
    /// The groups of a workload.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if groups cross, or a query is no multiple of the sum of one.
    pub fn of(workload: &Workload) -> Result<Self, Error> {
        workload.check_valid()?;
        workload.listed()?;
        Ok(Self(Arc::new(Forest::of(workload)?)))
    }

    /// Number of cells.
    pub fn cells_len(&self) -> usize {
        self.0.leaf_of.len()
    }

    /// Number of queries.
    pub fn answers_len(&self) -> usize {
        self.0.queries.len()
    }

    /// A lower bound on the least total squared error of Gaussian noise at multiplier 1, for changes of one cell.
    ///
    /// `answer_weights` are those of the answers' squared errors, 1 if there are none.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if there are not as many weights as answers.
    pub fn bound(&self, answer_weights: Option<&[f64]>) -> Result<f64, Error> {
        Ok(bound::least_error(&self.0, self.asked(answer_weights)?))
    }

    /// The strategy that measures the groups, each with its weight.
    ///
    /// `answer_weights` are those of the answers' squared errors in the mean, 1 if there are none. With `unit` Gaussian noise is
    /// made for all that it may change at once: a group is charged for as many records as its cells take. Weights are finer
    /// where counts of cells up to `most` leave room for it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if there are not as many weights as answers.
    pub fn strategy(
        &self,
        law: NoiseLaw,
        answer_weights: Option<&[f64]>,
        unit: Option<Unit>,
        most: Option<u64>,
    ) -> Result<Box<dyn Strategy>, Error> {
        let geometry = if law == NoiseLaw::Gaussian { Geometry::L2 } else { Geometry::L1 };
        let asked = self.asked(answer_weights)?;
        Ok(Box::new(Laminar::of(Arc::clone(&self.0), &asked, geometry, WEIGHT_BITS, unit, most)))
    }

    fn asked(&self, answer_weights: Option<&[f64]>) -> Result<Vec<f64>, Error> {
        if let Some(weights) = answer_weights {
            Error::check_len("weights", self.answers_len(), weights.len())?;
        }
        Ok(self.0.asked(answer_weights))
    }
}

/// Counts of nested groups with their weights.
#[derive(Debug, Clone)]
pub(super) struct Laminar {
    forest: Arc<Forest>,
    /// Weight of each node, 0 where it is not measured.
    weights: Vec<i64>,
    /// Nodes that are measured.
    measured: Vec<u32>,
    solver: Solver,
    geometry: Geometry,
    /// Of [`Strategy::refined`], one a run of measured nodes.
    factors: Vec<f64>,
}

/// Of each group that holds a cell the square of its weight, and its cells.
pub(super) type Path = Vec<(u128, usize)>;

/// What the groups that hold a cell add to a bound: all of them, those of several cells, and the squares of the others'
/// weights.
#[derive(Debug, Clone, Copy, Default)]
struct Charge {
    whole: u128,
    apart: u128,
    single: u128,
}

impl Charge {
    /// With one more group; none beyond all integers.
    fn with(self, square: u128, size: usize, unit: Unit) -> Option<Self> {
        let own = square.checked_mul(unit.reach(size))?;
        let whole = self.whole.checked_add(own)?;
        Some(if size > 1 {
            Self { whole, apart: self.apart.checked_add(own)?, ..self }
        } else {
            Self { whole, single: self.single.checked_add(square)?, ..self }
        })
    }

    fn max(self, other: Self) -> Self {
        Self {
            whole: self.whole.max(other.whole),
            apart: self.apart.max(other.apart),
            single: self.single.max(other.single),
        }
    }

    /// Upper bound of `‖Bv‖` over all that a unit of several cells may change, for counts of groups, from the largest
    /// charges of any cell.
    ///
    /// `‖Bv‖² = Σ_r w_r² n_r²` with `n_r` the change of group `r`'s count, in magnitude at most `M_r = min(k, c·size)`, and
    /// `Σ_r w_r² |n_r| M_r ≤ Σ_i |v_i| Σ_{r ∋ i} w_r² M_r ≤ k·max_i Σ_{r ∋ i} w_r² M_r`. The groups that are cells add at most
    /// the largest of their weights times `‖v‖²`.
    fn norm(self, unit: Unit, cells: usize) -> Option<Upper> {
        let records = unit.reach(usize::MAX);
        let of_cells = self.single.checked_mul(unit.l2_squared(cells))?;
        let both = records.checked_mul(self.apart)?.checked_add(of_cells)?;
        Some(Upper::integer(records.checked_mul(self.whole)?.min(both)).sqrt())
    }
}

/// The bound of [`Charge::norm`] for products: of each cell the groups that hold it are products of those along each axis.
///
/// None if a sum is beyond all integers.
pub(super) fn several(unit: Unit, cells: usize, axes: &[Vec<Path>]) -> Option<Upper> {
    let mut most = Charge::default();
    each_product(axes, &[(1, 1)], &mut |groups| {
        let charge = groups.iter().try_fold(Charge::default(), |sum, (square, size)| sum.with(*square, *size, unit));
        most = most.max(charge?);
        Some(())
    })?;
    most.norm(unit, cells)
}

/// Calls `f` with the groups that hold a cell, for the cells of all products of paths, until there is none.
fn each_product(
    axes: &[Vec<Path>],
    groups: &[(u128, usize)],
    f: &mut impl FnMut(&[(u128, usize)]) -> Option<()>,
) -> Option<()> {
    let Some((axis, rest)) = axes.split_first() else { return f(groups) };
    for path in axis {
        let pairs = groups.iter().flat_map(|group| path.iter().map(move |own| (group, own)));
        let product: Option<Vec<_>> =
            pairs.map(|(group, own)| Some((group.0.checked_mul(own.0)?, group.1.checked_mul(own.1)?))).collect();
        each_product(rest, &product?, f)?;
    }
    Some(())
}

/// The solver of the least squares of the measured sums.
fn estimator(forest: &Forest, weights: &[i64], measured: &[u32], factors: &[f64]) -> Solver {
    let mut gram = vec![0.0; forest.len()];
    for (k, v) in measured.iter().enumerate() {
        let precision = weights[*v as usize] as f64 * factors.get(k).unwrap_or(&1.0).min(MOST_PRECISE);
        gram[*v as usize] = precision * precision;
    }
    Solver::new(forest, gram)
}

impl Laminar {
    /// The groups of a workload, whose errors all count alike.
    pub(super) fn new(
        workload: &Workload,
        geometry: Geometry,
        bits: RangeInclusive<u32>,
        unit: Option<Unit>,
    ) -> Result<Self, Error> {
        let forest = Forest::of(workload)?;
        let asked = forest.asked(None);
        Ok(Self::of(Arc::new(forest), &asked, geometry, bits, unit, None))
    }

    fn of(
        forest: Arc<Forest>,
        asked: &[f64],
        geometry: Geometry,
        bits: RangeInclusive<u32>,
        unit: Option<Unit>,
        most: Option<u64>,
    ) -> Self {
        let cost = |size: usize| unit.map_or(1.0, |unit| unit.reach(size) as f64 / unit.reach(1) as f64);
        let found = weights::best(&forest, asked, geometry == Geometry::L1, &cost);
        let largest = found.iter().zip(&forest.sizes).map(|(g, size)| g.sqrt() * *size as f64).fold(1.0, f64::max);
        // Weights that are rounded up, and sums that are as large as may be, have room too.
        let room =
            most.map_or(0, |most| (0.99 * MOST_SUM as f64 / most as f64 / (largest + 1.0)).log2().floor() as u32);
        let scale = 2f64.powi(room.clamp(*bits.start(), *bits.end()) as i32);
        let rounded = |(v, g): (usize, &f64)| {
            let weight = (g.sqrt() * scale).round() as i64;
            // Without every leaf not every query is answered.
            if forest.is_leaf[v] { weight.max(1) } else { weight }
        };
        let weights: Vec<i64> = found.iter().enumerate().map(rounded).collect();
        let measured: Vec<u32> = (0..forest.len() as u32).filter(|v| weights[*v as usize] > 0).collect();
        let solver = estimator(&forest, &weights, &measured, &[]);
        Self { forest, weights, measured, solver, geometry, factors: Vec::new() }
    }

    /// The same groups, answered for noise that is smaller by a factor on each run of measured nodes.
    pub(super) fn with_factors(&self, factors: &[f64]) -> Self {
        let rows = each_row(&self.steps(), factors);
        let solver = estimator(&self.forest, &self.weights, &self.measured, &rows);
        Self { solver, factors: factors.to_vec(), ..self.clone() }
    }

    /// Number of cells.
    pub(super) fn cells_len(&self) -> usize {
        self.forest.leaf_of.len()
    }

    /// Norm of the heaviest column, squared for Gaussian noise.
    pub(super) fn column(&self) -> Upper {
        Upper::integer(self.heaviest().0)
    }

    /// What weights add up to, their squares for Gaussian noise, on the heaviest way from a root to a leaf, and on the two
    /// heaviest from below a node, or from roots: two columns share what is above both.
    fn heaviest(&self) -> (u128, u128) {
        let roots = self.forest.len();
        let (mut below, mut apart) = (vec![0; roots + 1], 0);
        for v in (0..roots).rev() {
            let own =
                if self.geometry == Geometry::L1 { self.weights[v].unsigned_abs().into() } else { self.square(v) };
            let way = below[v] + own;
            let parent = self.forest.parent[v];
            let slot = &mut below[if parent == NONE { roots } else { parent as usize }];
            apart = apart.max(*slot + way);
            *slot = way.max(*slot);
        }
        (below[roots], apart)
    }

    /// The largest charges of any cell: sums on the way from a root to a leaf.
    fn charge(&self, unit: Unit) -> Option<Charge> {
        let with = |v: usize, above: Option<Charge>| above?.with(self.square(v), self.forest.sizes[v], unit);
        let above = self.forest.pass_down(Some(Charge::default()), with);
        let charges = above.into_iter().enumerate().map(|(v, above)| with(v, above));
        charges.into_iter().try_fold(Charge::default(), |most, charge| Some(most.max(charge?)))
    }

    fn square(&self, v: usize) -> u128 {
        let weight = u128::from(self.weights[v].unsigned_abs());
        weight * weight
    }

    /// The ways from roots to leaves, those that are alike once; none if there are too many nodes on all of them.
    pub(super) fn profiles(&self) -> Option<BTreeSet<Path>> {
        let above = self.forest.pass_down(0_usize, |_, depth| depth + 1);
        let leaves = || (0..self.forest.len()).filter(|v| self.forest.is_leaf[*v]);
        if leaves().map(|v| above[v] + 1).sum::<usize>() > MOST_NODES {
            return None;
        }
        let path = |leaf: usize| {
            let up = std::iter::successors(Some(leaf), |v| match self.forest.parent[*v] {
                NONE => None,
                parent => Some(parent as usize),
            });
            let measured = up.filter(|v| self.weights[*v] != 0);
            measured.map(|v| (self.square(v), self.forest.sizes[v])).collect()
        };
        Some(leaves().map(path).collect())
    }

    /// The norm that belongs to a sum of weights, or of their squares.
    fn norm(&self, sum: Upper) -> Upper {
        if self.geometry == Geometry::L1 { sum } else { sum.sqrt() }
    }

    /// Sums of the cells in every node.
    fn node_sums<T: Copy + Default + AddAssign>(&self, cells: &[T]) -> Vec<T> {
        let mut sums = vec![T::default(); self.forest.len()];
        for (cell, leaf) in cells.iter().zip(&self.forest.leaf_of) {
            if *leaf != NONE {
                sums[*leaf as usize] += *cell;
            }
        }
        self.forest.add_up(&mut sums);
        sums
    }

    /// Sums over every node of `G^{-1} Bᵀ y`.
    fn estimates(&self, y: &[f64]) -> Vec<f64> {
        let mut measured = vec![0.0; self.forest.len()];
        for (v, value) in self.measured.iter().zip(y) {
            measured[*v as usize] = value / self.weights[*v as usize] as f64;
        }
        self.solver.estimates(&self.forest, &measured)
    }

    /// For every node the sum of these numbers of the measured nodes above it and its own.
    fn passed_down(&self, numbers: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut back = vec![0.0; self.forest.len()];
        for (v, number) in self.measured.iter().zip(numbers) {
            back[*v as usize] = number;
        }
        let above = self.forest.pass_down(0.0, |parent, above| above + back[parent]);
        above.iter().zip(&back).map(|(above, own)| above + own).collect()
    }

    /// The leaf that every cell is by itself, if that is so.
    fn single_leaves(&self) -> bool {
        let leaf = |cell: &u32| *cell != NONE && self.forest.sizes[*cell as usize] == 1;
        self.forest.leaf_of.iter().all(leaf)
    }
}

impl Strategy for Laminar {
    fn measured_len(&self) -> usize {
        self.measured.len()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        if self.geometry == Geometry::L2
            && unit.changes().is_some()
            && let Some(norm) = self.charge(unit).and_then(|charge| charge.norm(unit, self.cells_len()))
        {
            return Ok(norm);
        }
        let (column, apart) = self.heaviest();
        let norm = |sum| self.norm(Upper::integer(sum));
        Ok(unit.from_columns(norm(column), || norm(apart)))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let sums = self.weights.iter().zip(&self.forest.sizes);
        let largest = sums.map(|(q, size)| u128::from(q.unsigned_abs()) * *size as u128).max().unwrap_or(1);
        let bound = u128::from(max_abs) * largest;
        if bound >= u128::from(MOST_SUM) {
            return Err(Error::Overflow("the weighted sums overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        Run::merged(self.measured.iter().map(|v| self.weights[*v as usize].unsigned_abs()))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.with_factors(factors)))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let sums = self.node_sums(table(x)?);
        for (slot, v) in integers(out).iter_mut().zip(&self.measured) {
            *slot = self.weights[*v as usize] * sums[*v as usize];
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let sums = self.estimates(y);
        for (slot, (factor, v)) in out.iter_mut().zip(&self.forest.queries) {
            *slot = factor * sums[*v as usize];
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let variances = self.solver.variances(&self.forest);
        for (slot, (factor, v)) in out.iter_mut().zip(&self.forest.queries) {
            *slot = self.geometry.white() * factor * factor * variances[*v as usize];
        }
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let mut variances = vec![0.0; self.forest.queries.len()];
        self.variances(&mut variances);
        let (mean, largest) = spread(&variances);
        Some((mean, Some(largest)))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.single_leaves().then(|| {
            let sums = self.estimates(y);
            self.forest.leaf_of.iter().map(|leaf| sums[*leaf as usize]).collect()
        })
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let sums = self.node_sums(x);
        Some(self.measured.iter().map(|v| self.weights[*v as usize] as f64 * sums[*v as usize]).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let sums = self.passed_down(self.measured.iter().zip(y).map(|(v, y)| self.weights[*v as usize] as f64 * y));
        Some(self.forest.leaf_of.iter().map(|leaf| sums.get(*leaf as usize).copied().unwrap_or(0.0)).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        // What is asked of the cells of a leaf must be the same for all of them.
        let mut asked = vec![None; self.forest.len()];
        for (entry, leaf) in row.iter().zip(&self.forest.leaf_of) {
            let same = match asked.get_mut(*leaf as usize) {
                Some(slot) => *slot.get_or_insert(*entry) == *entry,
                None => *entry == 0.0,
            };
            if !same {
                return Err(not_in_row_space());
            }
        }
        let b: Vec<f64> = asked.into_iter().map(|entry| entry.unwrap_or(0.0)).collect();
        let taken = self.solver.combination(&self.forest, &b);
        Ok(self.measured.iter().map(|v| taken[*v as usize] / self.weights[*v as usize] as f64).collect())
    }
}
