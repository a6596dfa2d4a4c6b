//! The search for the least mean squared error on some of many cells.
//!
//! At the optimum few cells constrain: at most `r(r + 1)/2` for `r` measured coordinates (John 1948). So the program is solved
//! on the cells with the largest gains, and looked at with all cells only then: the strategy for some is measured on all, and the
//! cells whose gains exceed those of the set join it. Weights of some cells prove a bound for all of them.

use super::Progress;
use super::Target;
use super::accelerated::{Bound, Solution, solve};
use super::factorization::spread;
use super::linear_algebra::{Matrix, Precision, select_columns, squared_columns};
use super::mean_strategy::{Mean, strategy};
use super::range::Range;
use std::ops::ControlFlow;

/// Cells of the first set, and of those that join it: so many for each measured coordinate, at least.
const SHARE: usize = 32;
const LEAST: usize = 1024;
/// How many times as many cells there are where a set of them pays.
const MANY: usize = 4;
/// Times that all cells are looked at.
const ROUNDS: usize = 16;

/// Cells of the first set; `None` where all are looked at.
fn first_set(range: &Range) -> Option<usize> {
    let size = (SHARE * range.reduced.nrows()).max(LEAST);
    (range.active.len() >= MANY * size).then_some(size)
}

/// A strategy for some cells, looked at with all of them.
struct Look {
    gains: Vec<f64>,
    upper: f64,
    lower: f64,
}

impl Look {
    fn new(some: &Range, weights: &[f64], all: &Range) -> Option<Self> {
        let (vectors, values) = Mean(some).spectrum(weights, Precision::Fast)?;
        let gains = squared_columns(&strategy(&vectors, &values, &all.reduced));
        let lower: f64 = values.iter().sum();
        let upper = (lower * gains.iter().copied().fold(0.0, f64::max)).sqrt();
        Some(Self { gains, upper, lower })
    }
}

/// [`solve`] of the mean program: on all cells, or on a set of them that grows until the gap is certified for all.
///
/// All cells are looked at about as long as the iterations on some of them take.
pub(super) fn solve_mean(range: &Range, target: Target, progress: Progress<'_>) -> Option<Solution> {
    let on_all = |progress: Progress<'_>| solve(&mut Mean(range), target, progress);
    let Some(size) = first_set(range) else { return on_all(progress) };
    let all = range.active.len();
    let even = 1.0 / all as f64;
    // A start that has no weight on some directions still sees them.
    let weights: Vec<f64> = match target.start {
        Some(start) => start.iter().map(|w| 0.5 * (w + even)).collect(),
        None => vec![even; all],
    };
    let Some(look) = Look::new(range, &weights, range) else { return on_all(progress) };
    let mut best = Solution {
        lower: Bound { value: look.lower, weights: weights.clone() },
        upper: Bound { value: look.upper, weights: weights.clone() },
        iterations: 1,
    };
    let mut set = joining(&look.gains, &[], 0.0, size);
    let mut own: Vec<f64> = set.iter().map(|j| weights[*j]).collect();
    let rounds = (target.iterations.saturating_mul(size) / all).clamp(1, ROUNDS);
    for _ in 0..rounds {
        let left = target.iterations.saturating_sub(best.iterations);
        if left == 0 || best.gap() <= target.gap {
            break;
        }
        let some = Range {
            basis: None,
            coordinates: Matrix::zeros(0, 0),
            active: (0..set.len()).collect(),
            reduced: select_columns(&range.reduced, &set),
        };
        let (made, gap) = (best.iterations, best.gap());
        let mut ended = false;
        let inner = Target { gap: target.gap / 2.0, iterations: left, start: Some(&own) };
        let found = solve(&mut Mean(&some), inner, &mut |iteration, _| {
            let answer = progress(made + iteration, gap);
            ended |= answer.is_break();
            answer
        });
        let Some(found) = found else { break };
        best.iterations += found.iterations;
        if found.lower.value > best.lower.value {
            best.lower = Bound { value: found.lower.value, weights: spread(all, &set, &found.lower.weights) };
        }
        let Some(look) = Look::new(&some, &found.upper.weights, range) else { break };
        best.iterations += 1;
        if look.upper < best.upper.value {
            best.upper = Bound { value: look.upper, weights: spread(all, &set, &found.upper.weights) };
        }
        if ended || progress(best.iterations, best.gap()) == ControlFlow::Break(()) {
            break;
        }
        let most = set.iter().map(|j| look.gains[*j]).fold(0.0, f64::max);
        let new = joining(&look.gains, &set, most, size);
        if new.is_empty() {
            break;
        }
        own = found.upper.weights;
        own.extend(vec![1.0 / (set.len() + new.len()) as f64; new.len()]);
        set.extend(new);
    }
    Some(best)
}

/// The cells with the largest gains above a least one, so many at most, that are not in the set.
fn joining(gains: &[f64], set: &[usize], least: f64, size: usize) -> Vec<usize> {
    let mut known = vec![false; gains.len()];
    for j in set {
        known[*j] = true;
    }
    let mut new: Vec<usize> = (0..gains.len()).filter(|j| !known[*j] && gains[*j] > least).collect();
    if new.len() > size {
        new.select_nth_unstable_by(size, |a, b| gains[*b].total_cmp(&gains[*a]));
        new.truncate(size);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::super::Queries;
    use super::super::mean_strategy::mean_strategy;
    use super::*;

    /// Columns of all lengths, some equal, some far longer than others.
    fn wide(rows: usize, columns: usize, steep: f64) -> Vec<f64> {
        let scale = |j: usize| ((j as f64 * 1.7).sin() * steep).exp();
        (0..rows * columns).map(|k| ((k * k) as f64 * 0.613).sin() * scale(k % columns % 7919)).collect()
    }

    #[test]
    fn some_cells_prove_and_attain_what_all_do() {
        for (rows, columns, steep) in [(1, 9000, 1.0), (6, 9000, 0.1), (6, 5000, 4.0), (40, 9000, 1.0)] {
            let entries = wide(rows, columns, steep);
            let queries = Queries::new(rows, columns, &entries).unwrap();
            let (a, _) = queries.scaled();
            let range = Range::new(&a).unwrap();
            assert!(first_set(&range).is_some());
            let target = Target { gap: 1e-3, iterations: 3000, start: None };
            let all = solve(&mut Mean(&range), target, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let mut reported = Vec::new();
            let some = solve_mean(&range, target, &mut |iteration, gap| {
                reported.push((iteration, gap));
                ControlFlow::Continue(())
            })
            .unwrap();
            assert!(some.gap() <= target.gap, "{rows} {columns}: {}", some.gap());
            assert!(some.lower.value <= all.upper.value && all.lower.value <= some.upper.value);
            // Iterations rise, and no gap is stated that is not certified for all cells.
            assert!(reported.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[1].1 <= pair[0].1));
            assert!(reported.iter().all(|(_, gap)| *gap >= some.gap()));
            let found = mean_strategy(queries, None, target, &mut |_, _| ControlFlow::Continue(())).unwrap();
            assert!(found.gap <= target.gap * 1.01 && found.iterations == some.iterations);
        }
    }

    #[test]
    fn a_search_that_is_ended_has_the_best_so_far() {
        let entries = wide(5, 6000, 2.0);
        for end in 1..12 {
            let target = Target { gap: 1e-6, iterations: 3000, start: None };
            let found = mean_strategy(Queries::new(5, 6000, &entries).unwrap(), None, target, &mut |iteration, _| {
                if iteration >= end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
            assert!(found.lower <= found.upper && found.gap < 10.0);
            let again = Target { start: Some(&found.cell_weights), ..target };
            let goes_on = mean_strategy(Queries::new(5, 6000, &entries).unwrap(), None, again, &mut |_, _| {
                ControlFlow::Continue(())
            });
            assert!(goes_on.unwrap().gap < 1e-4);
        }
    }
}
