//! Tables that agree on what they have in common, and whose cells are within limits: at least none is negative.
//!
//! [`nearest_tables`] is the family of [`Residuals`] nearest to a published one, `½ Σ_T w_T ‖f_T − y_T‖²`, whose tables `μ`
//! have `l ≤ μ ≤ u`.
//!
//! The dual is maximised by accelerated proximal gradients with an exact step. A multiplier `κ` of each cell is charged
//! `l κ` where it is positive and `u κ` where it is not; with `(E*κ)_T = Σ_{S⊇T} Π_T(Σ_{S∖T} κ_S)/n_{S∖T}` the residuals are
//! `y_T + (E*κ)_T/w_T`. With `L_T = (Σ_{S⊇T} 1/n_{S∖T})/w_T` the dual is no steeper than `Σ_S D_S ‖κ_S‖²`,
//! `D_S = max_{T⊆S} L_T`, since parts on different `T` are orthogonal: every table has a step of its own. Residuals of infinite weight stay as they are. What comes out is mixed with tables
//! inside the limits until no cell is beyond them, so that it is feasible, and the duality gap says how far from the nearest
//! it can be. Where a cell is fixed, `l = u`, tables are first brought there by conjugate gradients.

use super::residuals::{Residuals, Table};
use crate::error::Error;
use crate::interrupt::poll;

/// Iterations between two looks at the gap.
const LOOK: usize = 5;
/// The same where cells are fixed.
const LOOK_FIXED: usize = 20;
/// Most steps of conjugate gradients.
const MOST_STEPS: usize = 1000;
/// What they leave, relative to the total.
const LEFT: f64 = 1e-12;
/// A direction in which nothing moves, relative to the steepest.
const FLAT: f64 = 1e-12;
/// How far inside the limits tables are looked for, as a share of a uniform cell and of the room there is.
const INSIDE: [f64; 4] = [0.5, 0.1, 0.01, 1e-3];
/// Iterations of each.
const INSIDE_ITERATIONS: usize = 500;

/// What is projected, onto which tables.
#[derive(Debug, Clone, Copy)]
pub struct NearestProblem<'a> {
    /// Which tables there are.
    pub residuals: &'a Residuals,
    /// Published residuals.
    pub y: &'a [f64],
    /// Weight of squared distances, one a subset; infinite where residuals are kept.
    pub weights: &'a [f64],
    /// Sum of every table.
    pub total: f64,
    /// Least and largest value of each cell; from 0 upwards if there are none.
    pub limits: Option<(&'a [f64], &'a [f64])>,
}

/// Tables, and how near they are to the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestTables {
    /// The tables, one after the other, row by row.
    pub tables: Vec<f64>,
    /// At most so much is half the squared distance above the least.
    pub gap: f64,
    /// The share of tables inside the limits that was mixed in.
    pub mixed: f64,
    /// Iterations.
    pub iterations: usize,
}

/// The tables within the limits that agree and are nearest to what was published, one after the other.
///
/// It ends where the gap is at most `tolerance`, or after so many iterations, with the best that was found: always feasible.
///
/// # Errors
/// Other numbers of residuals, weights or limits, weights that are not positive, a total that is negative or not finite; no
/// tables found within the limits; [`Error::Interrupted`].
pub fn nearest_tables(problem: &NearestProblem<'_>, tolerance: f64, iterations: usize) -> Result<NearestTables, Error> {
    check(problem)?;
    let NearestProblem { residuals, y, total, limits, .. } = *problem;
    if (total == 0.0 && limits.is_none()) || residuals.len() == 0 {
        // Nobody is in any cell; or all there is is the total.
        let mut tables = vec![0.0; residuals.cells];
        residuals.tables(&vec![0.0; y.len()], total, &mut tables);
        let within = |(at, cell): (usize, &f64)| {
            let (low, high) = limits_of(limits, at);
            low <= *cell && *cell <= high
        };
        if !tables.iter().enumerate().all(within) {
            return Err(none_within());
        }
        return Ok(NearestTables { tables, gap: 0.0, mixed: f64::from(total == 0.0), iterations: 0 });
    }
    let metric = Metric::new(problem);
    let inside = metric.inside()?;
    let mut middle = vec![0.0; residuals.cells];
    residuals.tables(&inside, total, &mut middle);
    let mut search = Search::new(&metric, y);
    let mut lower = f64::NEG_INFINITY;
    let mut best = (metric.distance(&inside, y), 1.0, inside.clone());
    let look = if metric.fixed.is_empty() { LOOK } else { LOOK_FIXED };
    let mut done = 0;
    loop {
        if done % look == 0 || done >= iterations {
            poll()?;
            let (mut f, bound) = search.bounded(limits);
            lower = lower.max(bound);
            if metric.reach(&mut f, &mut search.tables) {
                let mixed = mixed(limits, &search.tables, &middle);
                f.iter_mut().zip(&inside).for_each(|(f, inside)| *f += mixed * (inside - *f));
                let upper = metric.distance(&f, y);
                if upper < best.0 {
                    best = (upper, mixed, f);
                }
            }
            if best.0 - lower <= tolerance || done >= iterations {
                break;
            }
        }
        search.step(limits);
        done += 1;
    }
    let (upper, mixed, f) = best;
    let mut tables = search.tables;
    residuals.tables(&f, total, &mut tables);
    // What is left of rounding.
    for (at, cell) in tables.iter_mut().enumerate() {
        let (low, high) = limits_of(limits, at);
        *cell = cell.clamp(low, high);
    }
    let gap = (upper - lower).max(8.0 * f64::EPSILON * upper);
    Ok(NearestTables { tables, gap, mixed, iterations: done })
}

/// Tables near to the nearest ones, after so many iterations: how near is not said, and what is mixed in, so that no cell is
/// negative, may differ from table to table.
///
/// # Errors
/// As [`nearest_tables`].
pub(crate) fn near_tables(problem: &NearestProblem<'_>, iterations: usize) -> Result<Vec<f64>, Error> {
    check(problem)?;
    let metric = Metric::new(problem);
    let mut search = Search::new(&metric, problem.y);
    (0..iterations).for_each(|_| search.step(problem.limits));
    search.family(false);
    let mut tables = search.tables;
    for table in &problem.residuals.tables {
        let uniform = problem.total / table.len as f64;
        let own = &mut tables[table.cells()];
        let lowest = own.iter().copied().fold(0.0_f64, f64::min);
        let mixed = if lowest < 0.0 { lowest / (lowest - uniform) } else { 0.0 };
        for cell in own {
            *cell = (*cell + mixed * (uniform - *cell)).max(0.0);
        }
    }
    Ok(tables)
}

fn check(problem: &NearestProblem<'_>) -> Result<(), Error> {
    let NearestProblem { residuals, y, weights, total, limits } = *problem;
    Error::check_len("residuals", residuals.len(), y.len())?;
    Error::check_len("weights", residuals.starts.len() - 1, weights.len())?;
    if !weights.iter().all(|w| *w > 0.0) || !y.iter().all(|v| v.is_finite()) || !total.is_finite() || total < 0.0 {
        return Err(Error::invalid("residuals", "finite, with positive weights and a total that is not negative"));
    }
    if let Some((low, high)) = limits {
        Error::check_len("limits", residuals.cells, low.len())?;
        Error::check_len("limits", residuals.cells, high.len())?;
        if !low.iter().zip(high).all(|(low, high)| low.is_finite() && low <= high) {
            return Err(Error::invalid("limits", "finite from below, and not crossed"));
        }
    }
    Ok(())
}

fn none_within() -> Error {
    Error::invalid("tables", "none with this total were found that are within all limits, with room in the other cells")
}

fn limits_of(limits: Option<(&[f64], &[f64])>, at: usize) -> (f64, f64) {
    limits.map_or((0.0, f64::INFINITY), |(low, high)| (low[at], high[at]))
}

/// How much of tables that are inside leaves no cell beyond its limits.
fn mixed(limits: Option<(&[f64], &[f64])>, tables: &[f64], inside: &[f64]) -> f64 {
    let mut most = 0.0_f64;
    for (at, (cell, inside)) in tables.iter().zip(inside).enumerate() {
        let (low, high) = limits_of(limits, at);
        if low < high {
            let over = (low - cell).max(cell - high);
            if over > 0.0 {
                most = most.max(over / (inside - cell).abs());
            }
        }
    }
    most
}

/// The problem, with what is worked out once.
struct Metric<'a> {
    problem: &'a NearestProblem<'a>,
    /// Of each residual, 1/w.
    inverse: Vec<f64>,
    /// Reciprocal of `D_S`, one a table, and the least of them.
    steps: Vec<f64>,
    step: f64,
    /// Cells whose limits are the same.
    fixed: Vec<usize>,
}

impl<'a> Metric<'a> {
    fn new(problem: &'a NearestProblem<'a>) -> Self {
        let NearestProblem { residuals, weights, limits, .. } = *problem;
        let inverse = weights
            .iter()
            .zip(residuals.starts.windows(2))
            .flat_map(|(weight, ends)| std::iter::repeat_n(1.0 / weight, ends[1] - ends[0]))
            .collect();
        let steps: Vec<f64> =
            residuals.steepness(weights).iter().map(|d| if *d > 0.0 { 1.0 / d } else { 1.0 }).collect();
        let step = steps.iter().copied().fold(f64::INFINITY, f64::min);
        let fixed = limits.map_or(Vec::new(), |(low, high)| {
            (0..low.len()).filter(|at| low[*at].total_cmp(&high[*at]).is_eq()).collect()
        });
        Self { problem, inverse, steps, step, fixed }
    }

    /// `½ Σ_T w_T ‖f_T − y_T‖²`, of what is not kept.
    fn distance(&self, f: &[f64], y: &[f64]) -> f64 {
        let each = f.iter().zip(y).zip(&self.inverse).filter(|(_, inverse)| **inverse > 0.0);
        each.map(|((f, y), inverse)| (f - y).powi(2) / inverse).sum::<f64>() / 2.0
    }

    /// `W⁻¹ E* κ`.
    fn adjoint(&self, dual: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.inverse.len(), 0.0);
        self.problem.residuals.adjoint(dual, out);
        out.iter_mut().zip(&self.inverse).for_each(|(slot, inverse)| *slot *= inverse);
    }

    /// Moves residuals so that fixed cells are what they are to be, by the least there is; whether it was possible.
    fn reach(&self, f: &mut [f64], tables: &mut [f64]) -> bool {
        let NearestProblem { residuals, total, limits, .. } = *self.problem;
        residuals.tables(f, total, tables);
        let (false, Some((wanted, _))) = (self.fixed.is_empty(), limits) else { return true };
        let small = LEFT * (total + 1.0);
        let mut left: Vec<f64> = self.fixed.iter().map(|at| wanted[*at] - tables[*at]).collect();
        let mut toward = left.clone();
        let mut square: f64 = left.iter().map(|v| v * v).sum();
        let (mut dual, mut moved, mut image) = (vec![0.0; tables.len()], Vec::new(), vec![0.0; tables.len()]);
        let largest = |left: &[f64]| left.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        for _ in 0..MOST_STEPS {
            if largest(&left) <= small {
                break;
            }
            self.fixed.iter().zip(&toward).for_each(|(at, value)| dual[*at] = *value);
            self.adjoint(&dual, &mut moved);
            residuals.tables(&moved, 0.0, &mut image);
            let curve: f64 = self.fixed.iter().zip(&toward).map(|(at, value)| image[*at] * value).sum();
            // A system without a solution ends in what is left of rounding.
            if curve * self.step <= FLAT * toward.iter().map(|v| v * v).sum::<f64>() {
                break;
            }
            let by = square / curve;
            f.iter_mut().zip(&moved).for_each(|(f, moved)| *f += by * moved);
            self.fixed.iter().zip(&mut left).for_each(|(at, left)| *left -= by * image[*at]);
            let next: f64 = left.iter().map(|v| v * v).sum();
            toward.iter_mut().zip(&left).for_each(|(toward, left)| *toward = left + next / square * *toward);
            square = next;
        }
        residuals.tables(f, total, tables);
        let there = |at: &usize| (wanted[*at] - tables[*at]).abs() <= 1e3 * small;
        let whole = |table: &Table| (table.own(tables).iter().sum::<f64>() - total).abs() <= 1e3 * small;
        self.fixed.iter().all(there) && residuals.tables.iter().all(whole)
    }

    /// Residuals of tables that are inside all limits, but for fixed cells: the uniform ones, or some near them.
    fn inside(&self) -> Result<Vec<f64>, Error> {
        let NearestProblem { residuals, y, total, limits, .. } = *self.problem;
        let start: Vec<f64> =
            y.iter().zip(&self.inverse).map(|(y, inverse)| if *inverse > 0.0 { 0.0 } else { *y }).collect();
        let kept = self.inverse.contains(&0.0);
        if limits.is_none() && !kept {
            return Ok(start);
        }
        let uniform: Vec<f64> =
            residuals.tables.iter().flat_map(|t| std::iter::repeat_n(total / t.len as f64, t.len)).collect();
        let mut tables = vec![0.0; residuals.cells];
        for share in std::iter::once(0.0).chain(INSIDE) {
            poll()?;
            let (low, high): (Vec<f64>, Vec<f64>) = (0..residuals.cells)
                .map(|at| {
                    let (low, high) = limits_of(limits, at);
                    let room = share * uniform[at].min((high - low) / 2.0);
                    (low + room, high - room)
                })
                .unzip();
            let mut search = Search::new(self, &start);
            if share > 0.0 {
                (0..INSIDE_ITERATIONS).for_each(|_| search.step(Some((&low, &high))));
            }
            let (mut f, _) = search.bounded(Some((&low, &high)));
            let strictly = |tables: &[f64]| {
                tables.iter().enumerate().all(|(at, cell)| {
                    let (low, high) = limits_of(limits, at);
                    let room = 1e-4 * uniform[at].min((high - low) / 2.0);
                    (*cell >= low + room && *cell <= high - room) || low >= high
                })
            };
            if self.reach(&mut f, &mut tables) && strictly(&tables) {
                return Ok(f);
            }
        }
        Err(none_within())
    }
}

/// Accelerated proximal gradients on the dual.
struct Search<'a> {
    metric: &'a Metric<'a>,
    target: &'a [f64],
    dual: Vec<f64>,
    ahead: Vec<f64>,
    momentum: f64,
    f: Vec<f64>,
    tables: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(metric: &'a Metric<'a>, target: &'a [f64]) -> Self {
        let cells = metric.problem.residuals.cells;
        let [dual, ahead, tables] = std::array::from_fn(|_| vec![0.0; cells]);
        Self { metric, target, dual, ahead, momentum: 1.0, f: Vec::new(), tables }
    }

    /// Residuals of multipliers, and their tables.
    fn family(&mut self, ahead: bool) {
        self.metric.adjoint(if ahead { &self.ahead } else { &self.dual }, &mut self.f);
        self.f.iter_mut().zip(self.target).for_each(|(f, target)| *f += target);
        self.metric.problem.residuals.tables(&self.f, self.metric.problem.total, &mut self.tables);
    }

    /// The residuals of the multipliers, and how small half the squared distance can be at least.
    fn bounded(&mut self, limits: Option<(&[f64], &[f64])>) -> (Vec<f64>, f64) {
        self.family(false);
        let mut charged = 0.0;
        for (at, (dual, cell)) in self.dual.iter().zip(&self.tables).enumerate() {
            let (low, high) = limits_of(limits, at);
            if *dual != 0.0 {
                charged += dual * (cell - if *dual > 0.0 { low } else { high });
            }
        }
        let least = self.metric.distance(&self.f, self.target) - charged;
        (std::mem::take(&mut self.f), least)
    }

    fn step(&mut self, limits: Option<(&[f64], &[f64])>) {
        self.family(true);
        let next = f64::midpoint(1.0, (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
        let mut rising = 0.0;
        for (table, step) in self.metric.problem.residuals.tables.iter().zip(&self.metric.steps) {
            let mut own = 0.0;
            for at in table.cells() {
                let (low, high) = limits_of(limits, at);
                let (dual, ahead) = (&mut self.dual[at], &mut self.ahead[at]);
                let reached = self.tables[at] - *ahead / step;
                let after = step * (reached.clamp(low, high) - reached);
                let change = after - *dual;
                own += (*ahead - after) * change;
                (*dual, *ahead) = (after, after + (self.momentum - 1.0) / next * change);
            }
            rising += own / step;
        }
        self.momentum = next;
        if rising > 0.0 {
            self.momentum = 1.0;
            self.ahead.copy_from_slice(&self.dual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nearest(
        residuals: &Residuals,
        y: &[f64],
        weights: &[f64],
        total: f64,
        tolerance: f64,
        iterations: usize,
    ) -> Result<NearestTables, Error> {
        nearest_tables(&NearestProblem { residuals, y, weights, total, limits: None }, tolerance, iterations)
    }

    fn pairs() -> Residuals {
        let sets = [vec![0, 1], vec![0, 2], vec![1, 2]];
        let subsets: Vec<Vec<usize>> = vec![vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2]];
        Residuals::new(&[2, 2, 2], &sets, &subsets).unwrap()
    }

    #[test]
    fn the_fixture_of_three_pairs() {
        let signs = [1.0, -1.0, -1.0, 1.0];
        let mut y = vec![1.0, -1.0, 0.5, -0.5, 2.0, -2.0];
        for factor in [3.0, -3.5, 3.2] {
            y.extend(signs.map(|sign| factor * sign));
        }
        let found = nearest(&pairs(), &y, &[1.0; 6], 10.0, 1e-13, 100_000).unwrap();
        let expected = [
            [21.0 / 4.0, 0.0, 1.0 / 12.0, 14.0 / 3.0],
            [7.0 / 12.0, 14.0 / 3.0, 19.0 / 4.0, 0.0],
            [16.0 / 3.0, 0.0, 0.0, 14.0 / 3.0],
        ];
        for (cell, expected) in found.tables.iter().zip(expected.iter().flatten()) {
            assert!((cell - expected).abs() < 1e-6, "{cell}, {expected}");
        }
        // Half the squared distance: of what the tables say, again.
        let back = |table: usize| pairs().tables[table].parted(pairs().tables[table].own(&found.tables));
        let f: Vec<f64> = [&back(0)[1], &back(0)[2], &back(1)[2], &back(0)[3], &back(1)[3], &back(2)[3]]
            .iter()
            .zip([2.0, 2.0, 2.0, 1.0, 1.0, 1.0])
            .flat_map(|(part, outside)| part.iter().map(move |v| v * outside))
            .collect();
        let objective: f64 = f.iter().zip(&y).map(|(f, y)| (f - y).powi(2)).sum::<f64>() / 2.0;
        assert!((objective - 8.271_667).abs() < 1e-5, "{objective}");
    }

    #[test]
    fn limits_and_kept_residuals_hold() {
        let signs = [1.0, -1.0, -1.0, 1.0];
        let mut y = vec![1.0, -1.0, 0.5, -0.5, 2.0, -2.0];
        for factor in [3.0, -3.5, 3.2] {
            y.extend(signs.map(|sign| factor * sign));
        }
        // A cell that is empty, one that is known, and bounds; the first attribute is kept.
        let mut low = [0.0; 12];
        let mut high = [f64::INFINITY; 12];
        high[1] = 0.0;
        (low[4], high[4]) = (2.5, 2.5);
        (low[8], high[8]) = (1.0, 4.0);
        let mut weights = [1.0; 6];
        weights[0] = f64::INFINITY;
        let residuals = pairs();
        let problem = NearestProblem {
            residuals: &residuals,
            y: &y,
            weights: &weights,
            total: 10.0,
            limits: Some((&low, &high)),
        };
        let found = nearest_tables(&problem, 1e-10, 100_000).unwrap();
        assert!(found.gap <= 1e-10);
        let cells = &found.tables;
        assert!(cells.iter().zip(low.iter().zip(&high)).all(|(cell, (low, high))| low <= cell && cell <= high));
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a}, {b}");
        near(cells[0] + cells[1], 6.0); // 10/2 + 1
        near(cells[0] + cells[1], cells[4] + cells[5]);
        near(cells[0] + cells[2], cells[8] + cells[9]);
        near(cells[4] + cells[6], cells[8] + cells[10]);
        near(cells[8..].iter().sum(), 10.0);
        // No feasible move makes it nearer: random ones, mixed in slightly.
        let again = nearest_tables(&NearestProblem { y: &vec![0.0; y.len()], weights: &[1.0; 6], ..problem }, 1e-10, 9)
            .unwrap();
        assert!(again.tables[1] == 0.0 && again.tables[4] == 2.5);
        // A table that is fixed to another total.
        let (one, many) = ([50.0, 50.0, 40.0, 60.0], [0.0; 8]);
        let low: Vec<f64> = one.iter().chain(&many).copied().collect();
        let high: Vec<f64> = one.iter().copied().chain([f64::INFINITY; 8]).collect();
        let other = NearestProblem { limits: Some((&low, &high)), weights: &[1.0; 6], ..problem };
        assert!(matches!(nearest_tables(&other, 1e-10, 100), Err(Error::InvalidParameter { .. })));
        // What cannot be is refused.
        let mut higher = low;
        higher[0] = 7.0;
        let refused = NearestProblem { limits: Some((&higher, &high)), ..problem };
        assert!(matches!(nearest_tables(&refused, 1e-10, 100), Err(Error::InvalidParameter { .. })));
    }

    proptest! {
        #[test]
        fn maps_are_transposed_and_centred(
            values in prop::collection::vec(-1.0..1.0, 24 + 50),
        ) {
            let subsets: Vec<Vec<usize>> =
                vec![vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2], vec![0, 1, 2]];
            let residuals = Residuals::new(&[2, 3, 4], &[vec![0, 1, 2]], &subsets).unwrap();
            let tables = &values[..24];
            let mut back = vec![0.0; residuals.len()];
            residuals.adjoint(tables, &mut back);
            // Of random centred residuals: those that another table has.
            let mut f = vec![0.0; residuals.len()];
            residuals.adjoint(&values[24..48], &mut f);
            let mut made = vec![0.0; 24];
            residuals.tables(&f, 0.0, &mut made);
            let one: f64 = made.iter().zip(tables).map(|(a, b)| a * b).sum();
            let other: f64 = f.iter().zip(&back).map(|(a, b)| a * b).sum();
            prop_assert!((one - other).abs() < 1e-12);
            prop_assert!(back[..2].iter().sum::<f64>().abs() < 1e-12);
        }

        #[test]
        fn nothing_is_negative_tables_agree_and_the_truth_is_not_further(
            counts in prop::collection::vec(0_u8..20, 8),
            noise in prop::collection::vec(-9.0..9.0, 18),
        ) {
            let total: f64 = counts.iter().map(|c| f64::from(*c)).sum();
            let cell = |i: usize, j: usize, k: usize| f64::from(counts[4 * i + 2 * j + k]);
            let pair = |which: usize| -> Vec<f64> {
                (0..4).map(|at| {
                    let (a, b) = (at / 2, at % 2);
                    (0..2).map(|c| match which { 0 => cell(a, b, c), 1 => cell(a, c, b), _ => cell(c, a, b) }).sum()
                }).collect()
            };
            let residuals = pairs();
            let mut truth = vec![0.0; residuals.len()];
            for which in 0..3 {
                let parts = residuals.tables[which].parted(&pair(which));
                for (bits, scale) in [(1, 2.0), (2, 2.0), (3, 1.0)] {
                    let number = residuals.tables[which].residuals[bits];
                    let slot = &mut truth[residuals.starts[number]..residuals.starts[number + 1]];
                    slot.iter_mut().zip(&parts[bits]).for_each(|(slot, value)| *slot = scale * value);
                }
            }
            // Centred noise.
            let mut y = truth.clone();
            for number in 0..6 {
                let (begin, end) = (residuals.starts[number], residuals.starts[number + 1]);
                let v = noise[number];
                let signs: &[f64] = if end - begin == 2 { &[1.0, -1.0] } else { &[1.0, -1.0, -1.0, 1.0] };
                y[begin..end].iter_mut().zip(signs).for_each(|(slot, sign)| *slot += v * sign);
            }
            let weights = [1.0, 2.0, 0.5, 1.0, 1.0, 3.0];
            let found = nearest(&residuals, &y, &weights, total, 1e-9, 20_000).unwrap();
            prop_assert!(found.gap <= 1e-9 && found.tables.iter().all(|cell| *cell >= 0.0));
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + total);
            for which in 0..3 {
                prop_assert!(near(found.tables[4 * which..4 * which + 4].iter().sum::<f64>(), total));
            }
            prop_assert!(near(found.tables[0] + found.tables[1], found.tables[4] + found.tables[5]));
            prop_assert!(near(found.tables[0] + found.tables[2], found.tables[8] + found.tables[9]));
            prop_assert!(near(found.tables[4] + found.tables[6], found.tables[8] + found.tables[10]));
            // Theorem 1 of projections, up to the gap.
            let mut f = vec![0.0; residuals.len()];
            for which in 0..3 {
                let parts = residuals.tables[which].parted(residuals.tables[which].own(&found.tables));
                for (bits, scale) in [(1, 2.0), (2, 2.0), (3, 1.0)] {
                    let number = residuals.tables[which].residuals[bits];
                    let slot = &mut f[residuals.starts[number]..residuals.starts[number + 1]];
                    slot.iter_mut().zip(&parts[bits]).for_each(|(slot, value)| *slot = scale * value);
                }
            }
            let norm = |a: &[f64]| -> f64 {
                (0..6).map(|t| {
                    let (begin, end) = (residuals.starts[t], residuals.starts[t + 1]);
                    weights[t] * (begin..end).map(|i| (a[i] - truth[i]).powi(2)).sum::<f64>()
                }).sum::<f64>().sqrt()
            };
            prop_assert!(norm(&f) <= norm(&y) + (2.0 * found.gap).sqrt() + 1e-7);
        }
    }
}
