//! The point of `{C x : x ∈ X}` nearest to a published one.

use super::Columns;
use super::constraint::{Constraint, Vertex};
use super::working_set::WorkingSet;
use crate::error::Error;
use crate::optimize::Progress;

/// Steps that nearly every projection can do with: [`project`]'s usual limit.
pub const MAX_ITERATIONS: usize = 20_000;

/// Vertices that enter the working set at once: at least so many, or this share of those with weight.
const BATCH: (usize, f64) = (16, 0.1);

/// Vertices without weight leave a working set that is larger than those with weight by this factor.
const CROWDED: usize = 4;

/// Gap within the working set at which the other vertices are looked at again, relative to the whole gap.
const INNER_GAP: f64 = 0.1;

/// The result of [`project`].
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// `x`: columns, rising, and their weights, none of them zero.
    pub weights: Vec<(usize, f64)>,
    /// `C x`.
    pub image: Vec<f64>,
    /// The duality gap `⟨∇, x⟩ − min_{z ∈ X} ⟨∇, z⟩`, `∇ = Cᵀ(C x − t)`, of these weights.
    pub gap: f64,
    /// Steps, pairwise and corrective.
    pub iterations: usize,
}

/// The point `C x`, `x ∈ X`, nearest to `target`: minimises `½‖C x − t‖²`.
///
/// Stops when the duality gap is at most `tolerance`, after `max_iterations`, or when `progress(iterations, gap)`
/// breaks; the best so far is returned with its own gap, computed afresh from `x`.
///
/// # What the gap promises
/// Let `t = y + w` with `y = C z`, `z ∈ X` (the truth and the noise), `ŷ = C x` the image returned and `g` its gap,
/// and `‖w‖° = max {|⟨C z, w⟩| : z ∈ X}`. Then
///
/// `‖ŷ − y‖² ≤ 2‖w‖° + g`.
///
/// Proof: `⟨ŷ − t, ŷ − y⟩ ≤ g` as `z ∈ X`. The left side is `‖ŷ − y‖² − ⟨w, ŷ⟩ + ⟨w, y⟩`, and both `ŷ` and `y` are in
/// `C X`. (Half of `4‖w‖° + 2g`, which is what a squared distance within `2g` of the least gives: Nikolov, Talwar &
/// Zhang 2013, Lemma 1.) With `w = 0` at the exact projection of `t`: `ŷ` is within `√g` of it.
///
/// # Method
/// Pairwise Frank-Wolfe steps (Lacoste-Julien & Jaggi 2015) and corrective steps to the least squares solution on the
/// present face, within a working set of vertices whose Gram matrix is known. After every such round the gradient is
/// computed afresh and the steepest vertices enter. A round costs one `Cᵀp`; a step costs the size of the set.
///
/// # Errors
/// If `target` has the wrong length, a number is not finite, or n or `tolerance` is negative.
pub fn project(
    columns: &dyn Columns,
    target: &[f64],
    constraint: Constraint,
    tolerance: f64,
    max_iterations: usize,
    progress: Progress<'_>,
) -> Result<Projection, Error> {
    Error::check_len("target", columns.rows(), target.len())?;
    constraint.check()?;
    if target.iter().any(|t| !t.is_finite()) {
        return Err(Error::invalid("target", "every number must be finite"));
    }
    if !tolerance.is_finite() || tolerance < 0.0 {
        return Err(Error::invalid("tolerance", format!("must be finite and not negative, got {tolerance}")));
    }
    let n = constraint.size();
    if n == 0.0 {
        return Ok(Projection { weights: Vec::new(), image: vec![0.0; target.len()], gap: 0.0, iterations: 0 });
    }
    let mut slopes = vec![0.0; columns.count()];
    let mut set = start(columns, target, constraint, &mut slopes);
    let mut iterations = 0;
    let mut stuck = false;
    loop {
        columns.product(&set.residual(), &mut slopes);
        set.read_slopes(&slopes);
        let mean = set.mean_slope();
        let gap = (n * (mean - constraint.least_slope(&slopes))).max(0.0);
        if !gap.is_finite() || slopes.iter().any(|h| !h.is_finite()) {
            return Err(Error::Overflow("columns, n and target are too large: the gradient overflows".into()));
        }
        if progress(iterations, gap).is_break() || gap <= tolerance || iterations >= max_iterations || stuck {
            return Ok(Projection { weights: set.weights(), image: set.image(), gap, iterations });
        }
        let support = set.support();
        if set.len() > CROWDED * (support + BATCH.0) {
            set.drop_weightless();
        }
        let count = BATCH.0.max((BATCH.1 * support as f64) as usize);
        let entering = steepest(constraint, &slopes, mean, count, &set);
        set.insert(&entering);
        set.read_slopes(&slopes);
        let steps = set.solve((0.5 * tolerance).max(INNER_GAP * gap), max_iterations - iterations);
        iterations += steps;
        // At the limit of double precision nothing moves.
        stuck = steps == 0 && entering.is_empty();
    }
}

/// All weight on the best of the vertices that are steepest at the origin.
fn start<'a>(
    columns: &'a dyn Columns,
    target: &'a [f64],
    constraint: Constraint,
    slopes: &mut [f64],
) -> WorkingSet<'a> {
    let mut set = WorkingSet::new(columns, target, constraint.size());
    if constraint.has_origin() {
        set.insert(&[Vertex::Origin]);
    }
    columns.product(&set.residual(), slopes);
    set.insert(&steepest(constraint, slopes, f64::INFINITY, BATCH.0, &set));
    set.read_slopes(slopes);
    set.start();
    set
}

/// Up to `count` vertices outside the set with the least slopes, all below `bound`; of equal slopes the first.
fn steepest(constraint: Constraint, slopes: &[f64], bound: f64, count: usize, set: &WorkingSet<'_>) -> Vec<Vertex> {
    let mut found: Vec<(f64, usize)> = slopes
        .iter()
        .enumerate()
        .filter_map(|(j, slope)| {
            let (vertex, slope) = constraint.descending(j, *slope);
            (slope < bound && !set.contains(vertex)).then_some((slope, j))
        })
        .collect();
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    // Some to spare: equal slopes are mostly equal columns, and one of them is enough.
    let spare = 4 * count;
    if found.len() > spare {
        found.select_nth_unstable_by(spare, order);
        found.truncate(spare);
    }
    found.sort_unstable_by(order);
    found.dedup_by_key(|(slope, _)| *slope);
    found.iter().take(count).map(|(_, j)| constraint.descending(*j, slopes[*j]).0).collect()
}
