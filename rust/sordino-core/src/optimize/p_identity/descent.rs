//! Descent to weighted sums that err less.

use super::error::{Gram, Point, Spare, add};
use crate::linear_algebra::dot;
use crate::optimize::Progress;

/// Differences kept by the quasi-Newton method.
const MEMORY: usize = 10;
/// A relative improvement below this, so many times in a row, ends a search.
const NEGLIGIBLE: (f64, usize) = (1e-7, 5);

/// Steps to heavier sums.
const HEAVIER: usize = 400;
/// Steps to lighter sums, and how much larger their squared error may be.
const LIGHTER: (usize, f64) = (200, 1.002);

/// What ends a search, and what bounds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Evaluations.
    pub(super) iterations: usize,
    /// Multiplications.
    pub(super) work: f64,
    /// Sum of the squared weights of one sum: beyond it the cells lose their digits.
    pub(super) most_uneven: f64,
}

/// Minimises over `Θ ≥ 0`, squared weights of each sum bounded, by a projected quasi-Newton method of limited memory in the
/// entries that may move (Nocedal & Wright 2006, ch. 7).
pub(super) struct Descent<'a, 'b> {
    gram: &'a Gram,
    progress: &'a mut Progress<'b>,
    pub(super) iterations: usize,
    limits: Limits,
    work: f64,
    pub(super) stopped: bool,
    spare: Spare,
}

impl<'a, 'b> Descent<'a, 'b> {
    pub(super) fn new(gram: &'a Gram, limits: Limits, progress: &'a mut Progress<'b>) -> Self {
        Self { gram, progress, iterations: 0, limits, work: 0.0, stopped: false, spare: Spare::default() }
    }

    /// A walk from weights; `None` if their error is not known.
    pub(super) fn from(&mut self, mut start: Vec<f64>) -> Option<Walk> {
        bound(&mut start, self.gram.cells(), self.limits.most_uneven);
        let point = Point::new(self.gram, start, &mut self.spare)?;
        Some(Walk { point, free: Vec::new(), memory: Vec::new(), stalled: 0, ended: false })
    }

    /// Goes on for at most so many steps.
    pub(super) fn follow(&mut self, walk: &mut Walk, steps: usize) {
        let Walk { point, free, memory, stalled, ended } = walk;
        for _ in 0..steps {
            if self.stopped || *ended {
                return;
            }
            let before = std::mem::replace(free, point.free());
            let slope: Vec<f64> = free.iter().map(|k| point.gradient[*k as usize]).collect();
            collect(&before, free, memory);
            let mut direction = direction(&slope, memory);
            if dot(&direction, &slope) >= 0.0 {
                self.forget(memory);
                direction = slope.iter().map(|slope| -slope).collect();
            }
            let longest = direction.iter().fold(0.0f64, |longest, own| longest.max(own.abs()));
            if longest == 0.0 {
                *ended = true;
                return;
            }
            let mut length = if memory.is_empty() { (0.3 / longest).min(1.0) } else { 1.0 };
            let next = loop {
                let mut trial = point.moved(free, &direction, length, &mut self.spare);
                bound(&mut trial, self.gram.cells(), self.limits.most_uneven);
                let moved = point.slope_to(free, &trial);
                let reached = Point::new(self.gram, trial, &mut self.spare);
                self.count(point);
                if let Some(next) = reached.filter(|next| next.value <= point.value + 1e-4 * moved) {
                    break Some(next);
                }
                length *= 0.4;
                if length * longest < 1e-10 || self.stopped {
                    break None;
                }
            };
            let Some(next) = next else {
                *ended = memory.is_empty();
                self.forget(memory);
                continue;
            };
            *stalled = if next.value > point.value * (1.0 - NEGLIGIBLE.0) { *stalled + 1 } else { 0 };
            *ended = *stalled == NEGLIGIBLE.1;
            let before = std::mem::replace(point, next);
            memory.push(Pair::between(before, point));
            if memory.len() > MEMORY {
                self.give(memory.remove(0));
            }
        }
    }

    /// Where a walk comes to if the squared weights of a sum may be so many.
    pub(super) fn with_heavier_sums(&mut self, mut walk: Walk, most_uneven: f64) -> Point {
        if heaviest(&walk.point.sums, self.gram.cells()) >= 0.5 * self.limits.most_uneven {
            self.limits.most_uneven = most_uneven;
            self.forget(&mut walk.memory);
            (walk.stalled, walk.ended) = (0, false);
            self.follow(&mut walk, HEAVIER);
        }
        walk.point
    }

    /// A point near this one with no more squared weights of a sum than so many, if it errs by next to nothing more: digits
    /// are worth it.
    pub(super) fn with_lighter_sums(&mut self, point: Point, most_uneven: f64) -> Point {
        if heaviest(&point.sums, self.gram.cells()) <= most_uneven || self.stopped {
            return point;
        }
        self.limits.most_uneven = most_uneven.min(self.limits.most_uneven);
        let Some(mut lighter) = self.from(point.sums.clone()) else { return point };
        self.follow(&mut lighter, LIGHTER.0);
        if lighter.point.value <= LIGHTER.1 * point.value { lighter.point } else { point }
    }

    fn forget(&mut self, memory: &mut Vec<Pair>) {
        memory.drain(..).for_each(|pair| self.give(pair));
    }

    fn give(&mut self, pair: Pair) {
        self.spare.give(pair.moved);
        self.spare.give(pair.turned);
    }

    fn count(&mut self, at: &Point) {
        self.iterations += 1;
        self.work += at.work;
        // Nothing bounds the least error: the gap is not known.
        self.stopped |= (self.progress)(self.iterations, f64::INFINITY).is_break()
            || self.iterations >= self.limits.iterations
            || self.work >= self.limits.work;
    }
}

/// Shrinks the sums, cell after cell, whose squared weights are more than so much together.
fn bound(sums: &mut [f64], cells: usize, most: f64) {
    let count = sums.len() / cells;
    if sums.iter().all(|weight| weight * weight * cells as f64 <= most) {
        return;
    }
    let factors: Vec<f64> = squares(sums, count).into_iter().map(|sum| (most / sum).sqrt().min(1.0)).collect();
    for cell in sums.chunks_exact_mut(count) {
        cell.iter_mut().zip(&factors).for_each(|(weight, factor)| *weight *= factor);
    }
}

/// Squared weights of every sum together.
fn squares(sums: &[f64], count: usize) -> Vec<f64> {
    let mut squares = vec![0.0; count];
    for cell in sums.chunks_exact(count) {
        squares.iter_mut().zip(cell).for_each(|(sum, weight)| *sum += weight * weight);
    }
    squares
}

fn heaviest(sums: &[f64], cells: usize) -> f64 {
    squares(sums, sums.len() / cells).into_iter().fold(0.0, f64::max)
}

/// Where a descent is, and what it has seen on its way.
pub(super) struct Walk {
    pub(super) point: Point,
    /// Entries that might move in the last step.
    free: Vec<u32>,
    memory: Vec<Pair>,
    /// Steps in a row that brought next to nothing.
    stalled: usize,
    ended: bool,
}

/// What a step moved, and what the gradient turned by.
struct Pair {
    moved: Vec<f64>,
    turned: Vec<f64>,
    /// The same of the entries that may move now, and the product of these; 0 if the error does not curve upwards between them.
    free: [Vec<f64>; 2],
    product: f64,
}

impl Pair {
    fn between(from: Point, to: &Point) -> Self {
        let (mut moved, mut turned) = (from.sums, from.gradient);
        moved.iter_mut().zip(&to.sums).for_each(|(from, to)| *from = to - *from);
        turned.iter_mut().zip(&to.gradient).for_each(|(from, to)| *from = to - *from);
        Self { moved, turned, free: Default::default(), product: 0.0 }
    }

    /// Writes the free entries, each from a place among those before or, if there is none, from all.
    fn collect(&mut self, free: &[u32], places: &[u32]) {
        for (own, all) in self.free.iter_mut().zip([&self.moved, &self.turned]) {
            let value =
                |(k, place): (&u32, &u32)| own.get(*place as usize).copied().unwrap_or_else(|| all[*k as usize]);
            *own = free.iter().zip(places).map(value).collect();
        }
        let [moved, turned] = &self.free;
        let product = dot(moved, turned);
        self.product = if product > 1e-12 * dot(moved, moved) { product } else { 0.0 };
    }
}

/// Writes the free entries of every pair. Few change from step to step, and those of all entries lie far apart.
fn collect(before: &[u32], free: &[u32], memory: &mut [Pair]) {
    let mut rest = before.iter().zip(0..).peekable();
    let place = |k: &u32| {
        while rest.next_if(|(own, _)| *own < k).is_some() {}
        rest.next_if(|(own, _)| *own == k).map_or(u32::MAX, |(_, place)| place)
    };
    let places: Vec<u32> = free.iter().map(place).collect();
    for pair in memory {
        pair.collect(free, &places);
    }
}

/// `−H slope` by the two-loop recursion, of the free entries alone.
fn direction(slope: &[f64], memory: &[Pair]) -> Vec<f64> {
    let pairs: Vec<_> =
        memory.iter().filter(|pair| pair.product > 0.0).map(|pair| (&pair.free, pair.product)).collect();
    let mut q: Vec<f64> = slope.iter().map(|slope| -slope).collect();
    let mut alphas = Vec::with_capacity(pairs.len());
    for ([moved, turned], product) in pairs.iter().rev() {
        let alpha = dot(moved, &q) / product;
        add(&mut q, -alpha, turned);
        alphas.push(alpha);
    }
    if let Some(([_, turned], product)) = pairs.last() {
        let scale = product / dot(turned, turned);
        for q in &mut q {
            *q *= scale;
        }
    }
    for (([moved, turned], product), alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = dot(turned, &q) / product;
        add(&mut q, alpha - beta, moved);
    }
    q
}
