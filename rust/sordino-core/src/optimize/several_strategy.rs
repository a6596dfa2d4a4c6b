//! The strategy of least mean squared error for units that change several cells together.
//!
//! As `mean_strategy.rs`, with the changes `v` of a unit in place of single cells: minimise `‖D L‖_F · max_v ‖B v‖` over
//! `L B = A`. The dual is `max_ν ‖R V diag(√ν)‖_*` over weights `ν` of changes, columns of `V`; those of any changes prove
//! a bound below every strategy. There are too many to list: the program is solved for some, changes that move its
//! strategy too far are found by climbing (`crate::changes`) and join, until none is found. The error that is stated
//! is that at the proved sensitivity.

use super::accelerated::solve;
use super::factorization::{column_bound, normalise, not_converged, nuclear_norm_below, weighted_norm};
use super::linear_algebra::{
    Matrix, Precision, from_columns, from_rows, identity, product, scale_rows, squared_columns, to_rows,
};
use super::mean_strategy::{Mean, factors, mean_strategy, roots, strategy};
use super::queries::Queries;
use super::range::Range;
use super::{Progress, Target};
use crate::changes::{Changes, Gram, climb_each, largest_norm, single, starts};
use crate::error::Error;
use crate::order::sorted_by_key;
use crate::split_mix::SplitMix;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Changes at random that the program starts with.
const RANDOM: usize = 32;
/// Known changes that are climbed from, and as many as a third of that at random.
const CLIMBED: usize = 24;
/// Changes whose weight is below this share of the largest leave, but not within so many rounds.
const LEAST_WEIGHT: f64 = 1e-6;
const YOUNG: usize = 10;
/// Largest share of the weight that new changes start with.
const JOINING: f64 = 0.1;
/// Evaluations between two looks for further changes.
const EVALUATIONS: usize = 60;
/// The program is solved to this share of how far the last changes were off.
const FINER: f64 = 0.2;
/// While changes are further off than this, weights go only so far to those of a solved program: what solves it for few
/// changes is far off for others.
const FAR: f64 = 0.02;
const PACE: f64 = 0.4;
/// Strategies that are further from the bound than this are compared with known ones.
const CONTENT: f64 = 0.01;

/// A strategy `B`, and bounds on the least error of any strategy for the same changes.
#[derive(Debug, Clone, PartialEq)]
pub struct SeveralStrategy {
    /// Coordinates that are measured.
    pub rank: usize,
    /// `B`, rank × cells, row by row; every column has Euclidean norm at most 1.
    pub strategy: Vec<f64>,
    /// Changes of the cells that prove the bound, one after the other.
    pub changes: Vec<i8>,
    /// Their weights `ν`, sum 1.
    pub weights: Vec<f64>,
    /// No strategy has a smaller root mean squared error at noise multiplier 1, rounded down.
    pub lower: f64,
    /// The error of this one, at its proved sensitivity.
    pub upper: f64,
    /// Evaluations of the program.
    pub iterations: usize,
}

/// A change that the program knows, with its weight.
#[derive(Debug, Clone)]
struct Member {
    change: Vec<i8>,
    weight: f64,
    age: usize,
}

/// The changes that the program knows: single cells first, which stay, since without them it may be singular.
#[derive(Debug, Clone)]
struct Known {
    cells: usize,
    members: Vec<Member>,
}

impl Known {
    /// Adds changes that are new, up to their sign, with this share of the weight; says how many there are.
    fn join(&mut self, changes: impl IntoIterator<Item = Vec<i8>>, share: f64) -> usize {
        let before = self.members.len();
        let mut seen: HashSet<Vec<i8>> = self.members.iter().map(|member| member.change.clone()).collect();
        for mut change in changes {
            if change.iter().find(|v| **v != 0).is_some_and(|v| *v < 0) {
                for v in &mut change {
                    *v = -*v;
                }
            }
            if change.iter().any(|v| *v != 0) && seen.insert(change.clone()) {
                self.members.push(Member { change, weight: 0.0, age: 0 });
            }
        }
        let new = self.members.len() - before;
        if new > 0 {
            for (place, member) in self.members.iter_mut().enumerate() {
                member.weight = if place < before { (1.0 - share) * member.weight } else { share / new as f64 };
            }
        }
        new
    }

    /// Forgets changes of next to no weight.
    fn leave(&mut self) {
        let least = LEAST_WEIGHT * self.members.iter().map(|member| member.weight).fold(0.0, f64::max);
        let mut place = 0;
        self.members.retain_mut(|member| {
            member.age += 1;
            place += 1;
            place <= self.cells || member.weight > least || member.age < YOUNG
        });
    }

    fn weights(&self) -> Vec<f64> {
        self.members.iter().map(|member| member.weight).collect()
    }

    /// Changes to climb from: those of most weight, and some at random.
    fn starts(&self, changes: Changes, random: &mut SplitMix) -> Vec<Vec<i8>> {
        let heavy = sorted_by_key(self.members.iter().collect(), |member| -member.weight)
            .into_iter()
            .take(CLIMBED)
            .map(|member| member.change.clone());
        heavy.chain((0..CLIMBED / 3).map(|_| at_random(self.cells, changes, random))).collect()
    }

    /// `R V`.
    fn range(&self, queries: &Range) -> Range {
        let column = |member: &Member| member.change.iter().map(|x| f64::from(*x)).collect();
        let reduced = product(&queries.coordinates, &from_columns(self.members.iter().map(column)));
        Range { basis: None, coordinates: Matrix::zeros(0, 0), active: (0..self.members.len()).collect(), reduced }
    }
}

/// The strategy of least root mean squared error over the queries for units with these changes, with a certified bound
/// below every strategy.
///
/// Stops when no change is found that exceeds `gap`, after `target.iterations`, or when `progress(iteration, gap)`
/// breaks; what is returned has its own gap, which the proof of the sensitivity is part of.
///
/// # Errors
/// If the queries are too ill-conditioned for double precision, or have too many cells.
pub fn several_strategy(
    queries: Queries<'_>,
    changes: Changes,
    target: Target,
    progress: Progress<'_>,
) -> Result<SeveralStrategy, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let changes = Changes { most: changes.most.clamp(1, a.ncols()), ..changes };
    let roots = roots(a.nrows(), None)?;
    let mut weighted = a.clone();
    scale_rows(&mut weighted, |i| roots[i]);
    let queries = Range::new(&weighted)?;

    let mut random = SplitMix(1);
    let mut known = Known { cells: a.ncols(), members: Vec::new() };
    known.join(first(a.ncols(), changes, &mut random), 1.0);
    let (mut iterations, mut off) = (0, 1.0f64);
    let mut best: Option<Best> = None;
    loop {
        let range = known.range(&queries);
        let inner = (FINER * off).min(0.1).max(0.25 * target.gap);
        let weights = known.weights();
        let most = EVALUATIONS.min(target.iterations - iterations);
        let mut stopped = false;
        let mut report = |iteration: usize, gap: f64| {
            let go_on = progress(iterations + iteration, gap.max(off));
            stopped |= go_on.is_break();
            go_on
        };
        let limit = Target { gap: inner, iterations: most, start: Some(&weights) };
        let solved = solve(&mut Mean(&range), limit, &mut report).ok_or_else(not_converged)?;
        iterations += solved.iterations;
        let pace = if off > FAR { PACE } else { 1.0 };
        for (member, solved) in known.members.iter_mut().zip(&solved.lower.weights) {
            member.weight += pace * (solved - member.weight);
        }
        let (vectors, values) =
            Mean(&range).spectrum(&known.weights(), Precision::Careful).ok_or_else(not_converged)?;
        let total: f64 = values.iter().sum();
        let gram = Gram::new(&strategy(&vectors, &values, &queries.coordinates));
        let from = [starts(&gram, changes), known.starts(changes, &mut random)].concat();
        let found = climb_each(&gram, changes, &from);
        let of_known = squared_columns(&strategy(&vectors, &values, &range.reduced)).into_iter();
        let largest = found.iter().map(|(_, value)| *value).chain(of_known).fold(0.0, f64::max);
        let best = best.get_or_insert_with(|| Best::new(&known, total));
        best.improve(&known, (total, largest), (vectors, values));
        off = (best.upper / best.lower).sqrt() - 1.0;
        known.leave();
        let least = total * (1.0 + 0.5 * target.gap);
        let beyond = found.into_iter().filter(|(_, value)| *value > least).map(|(change, _)| change);
        let new = known.join(beyond, JOINING.min(off));
        let nothing_left = new == 0 && inner <= 0.25 * target.gap;
        if off <= target.gap || stopped || nothing_left || iterations >= target.iterations {
            break;
        }
    }
    best.ok_or_else(not_converged)?.finish(&a, &queries, &roots, scale, changes, iterations)
}

/// The best bounds so far.
struct Best {
    /// Squares: of the bound, and of the error with the largest change that was found.
    lower: f64,
    upper: f64,
    /// The changes and weights that prove the bound.
    proof: Known,
    /// `E`, `s` of the strategy.
    spectrum: (Matrix, Vec<f64>),
}

impl Best {
    fn new(known: &Known, total: f64) -> Self {
        let spectrum = (Matrix::zeros(0, 0), Vec::new());
        Self { lower: total * total, upper: f64::INFINITY, proof: known.clone(), spectrum }
    }

    fn improve(&mut self, known: &Known, (total, largest): (f64, f64), spectrum: (Matrix, Vec<f64>)) {
        if total * total > self.lower {
            (self.lower, self.proof) = (total * total, known.clone());
        }
        if total * largest < self.upper {
            (self.upper, self.spectrum) = (total * largest, spectrum);
        }
    }

    fn finish(
        self,
        a: &Matrix,
        queries: &Range,
        roots: &[f64],
        scale: f64,
        changes: Changes,
        iterations: usize,
    ) -> Result<SeveralStrategy, Error> {
        let weights = self.proof.weights();
        let lower = nuclear_norm_below(&self.proof.range(queries).weighted(&weights)).ok_or_else(not_converged)?;
        let (vectors, values) = self.spectrum;
        let mut best = charged(a, factors(queries, (vectors, &values), roots), roots, changes)?;
        if best.1 > lower * (1.0 + CONTENT) {
            // The proof may lose much of what the search gained.
            let cells = (identity(a.ncols()), a.clone());
            let of_one = single_cells(a)?;
            for known in [cells, of_one] {
                let other = charged(a, known, roots, changes)?;
                best = if other.1 < best.1 { other } else { best };
            }
        }
        Ok(SeveralStrategy {
            rank: best.0.nrows(),
            strategy: to_rows(&best.0),
            changes: self.proof.members.into_iter().flat_map(|member| member.change).collect(),
            weights,
            lower: lower * scale,
            upper: best.1 * scale,
            iterations,
        })
    }
}

/// The strategy of least mean error for changes of one cell, and its decoding.
fn single_cells(a: &Matrix) -> Result<(Matrix, Matrix), Error> {
    let entries = to_rows(a);
    let queries = Queries::new(a.nrows(), a.ncols(), &entries)?;
    let found = mean_strategy(queries, None, Target { gap: CONTENT, ..Target::default() }, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    Ok((from_rows(found.rank, found.columns, &found.strategy), from_rows(found.rows, found.rank, &found.decode)))
}

/// The strategy with columns of norm at most 1, and its error where all these changes are charged for.
fn charged(
    a: &Matrix,
    (mut encode, mut decode): (Matrix, Matrix),
    roots: &[f64],
    changes: Changes,
) -> Result<(Matrix, f64), Error> {
    let norm = column_bound(&encode);
    normalise(a, &mut encode, &mut decode, norm)?;
    let too_many = || Error::Unsupported("changes of so many cells are not bounded".into());
    let moved = largest_norm(&encode, changes)?.ok_or_else(too_many)?;
    Ok((encode, weighted_norm(&decode, roots) * moved.get()))
}

/// Changes to start with: single cells, runs of neighbours, some at random.
fn first(cells: usize, changes: Changes, random: &mut SplitMix) -> Vec<Vec<i8>> {
    let mut all: Vec<Vec<i8>> = (0..cells).map(|j| single(cells, j)).collect();
    let mut length = changes.most;
    while length > 1 {
        for start in 0..=cells - length {
            all.push((0..cells).map(|j| i8::from((start..start + length).contains(&j))).collect());
        }
        length /= 2;
    }
    all.extend((0..RANDOM).map(|_| at_random(cells, changes, random)));
    all
}

/// A change of cells at random, as many as can be.
fn at_random(cells: usize, changes: Changes, random: &mut SplitMix) -> Vec<i8> {
    let mut change = vec![0; cells];
    for _ in 0..changes.most {
        change[random.index(cells)] = if changes.signed && random.uniform() < 0.5 { -1 } else { 1 };
    }
    change
}
