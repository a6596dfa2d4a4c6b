//! Laplace strategies of p-identity form: all cells, and `p` weighted sums of them.
//!
//! `B = [I; Θ] D^{-1}`, `Θ ≥ 0` of shape p × n, `D = diag(s)`, `s_j = 1 + Σ_k θ_kj`: every column has ℓ1 norm 1
//! (Miklau, Hay and others 2018, program OPT₀). With Laplace noise at `ε = 1` and least squares the total
//! squared error is, for the Gram matrix `G = AᵀA`,
//!
//! `2 tr (BᵀB)^{-1} G = 2 Σ_ij P_ij s_i G_ij s_j`, `P = (I + ΘᵀΘ)^{-1}`.
//!
//! With `Z = (I + ΘΘᵀ)^{-1} Θ = Θ P` and `V = Z D G D` half of it is `Σ_i s_i² G_ii − Σ_ki θ_ki V_ki`, and its gradient is
//! `−2 (V − V Θᵀ Z)_ki + 2 (G_ii s_i − Σ_l θ_li V_li/s_i)`: a product of p × n with `G` a step, which ranges and running sums
//! have in two sweeps.
//!
//! The program is not convex. A few starts and sizes, and the sums that a caller gives, are tried briefly, the best are
//! followed, and of these the best to its end; the cells alone (`Θ = 0`) are a candidate, so the result is never worse than
//! noise on the cells, nor than what was given. No bound is proved.

mod descent;
mod error;

use super::queries::Queries;
use super::{Line, Progress};
use crate::error::Error;
use crate::linear_algebra::transposed_product;
use crate::order::sorted_by_key;
use crate::workload::Workload;
use descent::{Descent, Limits, Walk};
use error::Gram;

/// Sizes of the weights that a search starts from: sums beside the cells may count much or little.
const STARTS: [f64; 3] = [1.0, 0.3, 0.03];
/// Steps of a brief trial.
const TRIAL: usize = 40;
/// Of many cells a start is not tried whose squared error is so many times that of another.
const HOPELESS: f64 = 2.0;
/// Squared weights of a sum that are tried first.
const LIGHT: f64 = 900.0;
/// How much larger than those of any start the squared weights of a sum become, where that costs next to nothing.
const ROOM: f64 = 2.0;
/// How many are followed, and how long, until one is to the end.
const ROUNDS: [(usize, usize); 4] = [(8, 80), (4, 160), (2, 320), (1, usize::MAX)];
/// Cells up to which other starts are tried beside given sums.
const FEW_CELLS: usize = 512;
/// Evaluations from given sums alone, which come within a percent of what thousands find, and multiplications.
const ENOUGH: usize = 200;
const MOST_WORK: f64 = 2.5e9;
/// Most weighted sums that are tried unasked.
const MOST_SUMS: usize = 32;

/// Queries beside ranges, intervals, running sums and cells that are multiplied one by one.
const MOST_OTHERS: usize = 32;

/// A strategy of weighted sums beside the cells.
#[derive(Debug, Clone, PartialEq)]
pub struct PIdentity {
    /// Number of weighted sums, p.
    pub sums: usize,
    /// Number of cells, n.
    pub columns: usize,
    /// `B`, (n + p) × n, row by row; every column has ℓ1 norm 1, up to rounding.
    pub strategy: Vec<f64>,
    /// Root mean squared error at `ε = 1`.
    pub upper: f64,
    /// Evaluations.
    pub iterations: usize,
}

/// Numbers in [0, 1) in no order: public, the same everywhere.
fn scatter(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as f64 * 2f64.powi(-53)
    };
    (0..count).map(next).collect()
}

/// `Θ` cell after cell from its rows, or its rows from what is stored so.
fn turned(entries: &[f64], rows: usize) -> Vec<f64> {
    let columns = entries.len() / rows.max(1);
    (0..entries.len()).map(|k| entries[k % rows * columns + k / rows]).collect()
}

/// Squared weights of a sum that are enough for most: cells that sums alone determine would have any.
fn needed(starts: &[&[f64]], n: usize) -> f64 {
    let squares = |row: &[f64]| row.iter().map(|weight| weight * weight).sum::<f64>();
    let given = starts.iter().flat_map(|start| start.chunks_exact(n)).map(squares).fold(0.0, f64::max);
    (ROOM * given).max(n as f64 / 4.0)
}

/// What a search finds.
struct Found {
    /// `Θ` row by row; of the cells alone nothing.
    sums: Vec<f64>,
    /// Half the total squared error.
    value: f64,
    iterations: usize,
}

fn search(
    gram: &Gram,
    starts: &[&[f64]],
    alone: bool,
    (most_uneven, iterations): (f64, usize),
    mut progress: Progress<'_>,
) -> Result<Found, Error> {
    let n = gram.cells();
    if iterations == 0 {
        return Err(Error::invalid("iterations", "must be at least 1"));
    }
    if !(most_uneven.is_finite() && most_uneven > 0.0) {
        return Err(Error::invalid("most_uneven", "must be positive"));
    }
    let sound = |sums: &[f64]| {
        !sums.is_empty() && sums.len().is_multiple_of(n) && sums.iter().all(|v| v.is_finite() && *v >= 0.0)
    };
    if !starts.iter().all(|start| sound(start)) {
        return Err(Error::invalid("starts", "must be rows of as many weights, none negative, as there are cells"));
    }
    // Of many cells what is given is better than what comes out of no order, and soon as good as it gets.
    let many = !starts.is_empty() && (alone || n > FEW_CELLS);
    let (iterations, work) = if many { (iterations.min(ENOUGH), MOST_WORK) } else { (iterations, f64::INFINITY) };
    let needed = needed(starts, n);
    // Sums at their bound slow a search down: only what is found goes on to heavier ones.
    let first = most_uneven.min(needed.max(LIGHT));
    let mut descent = Descent::new(gram, Limits { iterations, work, most_uneven: first }, &mut progress);
    let mut walks: Vec<Walk> = Vec::new();
    walks.extend(starts.iter().filter_map(|start| descent.from(turned(start, start.len() / n))));
    if many {
        // Each step is as expensive from a start that errs by far more.
        let least = walks.iter().map(|walk| walk.point.value).fold(f64::INFINITY, f64::min);
        walks.retain(|walk| walk.point.value <= HOPELESS * least);
    }
    if !many || walks.len() > 1 {
        for walk in &mut walks {
            descent.follow(walk, TRIAL);
        }
    }
    if !many {
        from_no_order(&mut descent, n, &mut walks);
    }
    for (kept, steps) in if many { &ROUNDS[ROUNDS.len() - 1..] } else { &ROUNDS } {
        walks = sorted_by_key(walks, |walk| walk.point.value);
        walks.truncate(*kept);
        for walk in &mut walks {
            descent.follow(walk, *steps);
        }
    }
    let best = walks.pop().map(|walk| {
        let heavier = descent.with_heavier_sums(walk, most_uneven);
        if starts.is_empty() { heavier } else { descent.with_lighter_sums(heavier, needed) }
    });
    let cells: f64 = gram.diagonal().iter().sum();
    let iterations = descent.iterations;
    Ok(match best.filter(|point| point.value < cells) {
        Some(point) => {
            let mut sums = turned(&point.sums, n);
            // Sums of no cell have ended on the way.
            let kept = sums.chunks_exact(n).filter(|row| row.iter().any(|weight| *weight > 0.0));
            sums = kept.flatten().copied().collect();
            Found { sums, value: point.value, iterations }
        }
        None => Found { sums: Vec::new(), value: cells, iterations },
    })
}

/// A few starts of sizes, each followed for a while.
fn from_no_order(descent: &mut Descent<'_, '_>, n: usize, walks: &mut Vec<Walk>) {
    let (mut least, mut in_vain) = (f64::INFINITY, 0);
    let sizes = std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|p| *p <= MOST_SUMS.min(n.div_ceil(4)));
    for p in sizes {
        let before = least;
        let scattered = STARTS.into_iter().enumerate().map(|(start, size)| {
            let numbers = scatter(p * n, (start + STARTS.len() * p) as u64);
            numbers.into_iter().map(|number| size * number).collect()
        });
        // Or runs of cells, for queries of cells in order.
        let runs = (0..p * n).map(|k| f64::from(u8::from(k / p * p / n == k % p))).collect();
        for sums in scattered.chain([runs]) {
            let Some(mut walk) = descent.from(sums) else { continue };
            descent.follow(&mut walk, TRIAL);
            least = least.min(walk.point.value);
            walks.push(walk);
        }
        in_vain = if least < before { 0 } else { in_vain + 1 };
        if in_vain == 2 || descent.stopped {
            break; // more sums only slow the search down
        }
    }
}

/// The best p-identity strategy found for the mean squared error over the queries.
///
/// `starts` are matrices `Θ` to start from, row by row, such as the blocks of a tree: beside others, or `alone`.
///
/// Squared weights of a sum are at most `most_uneven` together, so that the cells keep their digits; where it costs next to
/// nothing at most twice those of any start, or a quarter a cell. Ends after `iterations` evaluations (from given sums alone,
/// or of more than 512 cells, at most 200, of some 2.5·10⁹ multiplications), or when `progress(iteration, gap)` breaks (the
/// gap is infinite: no bound is known); the best so far is returned.
///
/// # Errors
/// If `iterations` is 0, `most_uneven` is not positive, or a start has no rows of as many entries as there are cells, or
/// negative ones.
pub fn p_identity(
    queries: Queries<'_>,
    starts: &[&[f64]],
    alone: bool,
    (most_uneven, iterations): (f64, usize),
    progress: Progress<'_>,
) -> Result<PIdentity, Error> {
    let (a, scale) = queries.scaled();
    let found = search(&Gram::Dense(transposed_product(&a, &a)), starts, alone, (most_uneven, iterations), progress)?;
    let n = a.ncols();
    let sizes: Vec<f64> = (0..n).map(|j| 1.0 + found.sums.iter().skip(j).step_by(n).sum::<f64>()).collect();
    let mut strategy = vec![0.0; n * n];
    (0..n).for_each(|j| strategy[j * n + j] = 1.0 / sizes[j]);
    strategy.extend(found.sums.iter().enumerate().map(|(k, sum)| sum / sizes[k % n]));
    let upper = (2.0 * found.value / a.nrows() as f64).sqrt() * scale;
    Ok(PIdentity { sums: found.sums.len() / n, columns: n, strategy, upper, iterations: found.iterations })
}

/// The same for ranges, intervals, running sums, cells and few others, whose squared errors count with `weights`, one for each
/// part of a union: nothing is written out but `Θ`.
///
/// Returns `Θ` row by row, without rows where cells alone are best, the root mean squared error at `ε = 1`, and evaluations.
///
/// # Errors
/// As [`p_identity`]; [`Error::Unsupported`] for other workloads.
pub fn p_identity_of_line(
    workload: &Workload,
    weights: Option<&[f64]>,
    starts: &[&[f64]],
    alone: bool,
    (most_uneven, iterations): (f64, usize),
    progress: Progress<'_>,
) -> Result<(Vec<f64>, f64, usize), Error> {
    let line = Line::of(workload, weights)?;
    if line.others() > MOST_OTHERS {
        return Err(Error::Unsupported(
            "many queries beside ranges, intervals and running sums are written out".into(),
        ));
    }
    // Steps are measured by one length, whatever the weights are.
    let scale = line.len as f64 / line.gram_diagonal().iter().sum::<f64>();
    let found = search(&Gram::Line(line.scaled(scale)), starts, alone, (most_uneven, iterations), progress)?;
    let parts = workload.parts();
    let counted =
        parts.iter().enumerate().map(|(k, part)| weights.map_or(1.0, |weights| weights[k]) * part.answers_weight());
    let upper = (2.0 * found.value / scale / counted.sum::<f64>()).sqrt();
    Ok((found.sums, upper, found.iterations))
}

#[cfg(test)]
mod tests {
    use super::error::{Point, Spare};
    use super::*;
    use crate::linear_algebra::{Matrix, from_rows, inverse, product};
    use proptest::prelude::*;
    use std::ops::ControlFlow;

    fn found(rows: usize, columns: usize, entries: &[f64]) -> PIdentity {
        let queries = Queries::new(rows, columns, entries).unwrap();
        p_identity(queries, &[], false, (1e6, 3000), &mut |_, _| ControlFlow::Continue(())).unwrap()
    }

    /// `2 tr (BᵀB)^{-1} AᵀA` and the largest ℓ1 norm of a column, directly.
    fn direct(a: &Matrix, found: &PIdentity) -> (f64, f64) {
        let n = found.columns;
        let b = from_rows(n + found.sums, n, &found.strategy);
        let inner = inverse(&transposed_product(&b, &b));
        let error = product(&inner, &transposed_product(a, a));
        let norms = (0..n).map(|j| b.col_as_slice(j).iter().map(|v| v.abs()).sum::<f64>());
        (2.0 * (0..n).map(|i| error[(i, i)]).sum::<f64>(), norms.fold(0.0, f64::max))
    }

    #[test]
    fn reference_values() {
        let n = 64;
        let prefix: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k % n <= k / n))).collect();
        let sums = found(n, n, &prefix);
        let total = sums.upper.powi(2) * n as f64;
        assert!(total < 1813.0 * 1.01, "{total}");
        let (error, norm) = direct(&from_rows(n, n, &prefix), &sums);
        assert!((error / total - 1.0).abs() < 1e-9 && (norm - 1.0).abs() < 1e-12);
    }

    #[test]
    fn cells_alone_are_never_beaten_by_the_result() {
        // Signs: the identity is best.
        let entries: Vec<f64> = (0..4 * 16).map(|k| if (k * 7 + k / 16) % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let signs = found(4, 16, &entries);
        assert!(signs.upper.powi(2) * 4.0 <= 2.0 * 64.0 * (1.0 + 1e-12));
    }

    #[test]
    fn interrupted_searches_return_the_best_so_far() {
        let queries = Queries::new(2, 3, &[1.0, 1.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
        let mut stop = |i: usize, _: f64| if i >= 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let early = p_identity(queries, &[], false, (1e6, 1000), &mut stop).unwrap();
        assert!(early.iterations <= 4 && early.upper <= (2.0f64 * 5.0 / 2.0).sqrt() * (1.0 + 1e-12));
    }

    /// From the same sums, as long: what is written out and what is not.
    #[test]
    fn lines_are_searched_as_their_matrices_are() {
        let len = 40;
        let sums = Workload::Linear { kernel: vec![1.0; len], len, center: 0 };
        let parts = vec![Workload::Ranges { len }, sums, Workload::Histogram { len }];
        let workload = Workload::Union { parts };
        let weights = [1.0, 20.0, 5.0];
        let start: Vec<f64> = (0..4 * len).map(|k| if k % len / 10 == k / len { 0.8 } else { 0.0 }).collect();
        let go = &mut |_, _| ControlFlow::Continue(());
        let (theta, upper, steps) =
            p_identity_of_line(&workload, Some(&weights), &[&start], true, (1e6, 60), go).unwrap();
        assert!(steps <= 60 && theta.len() == 4 * len && theta.iter().all(|t| *t >= 0.0));
        let (rows, columns, mut entries) = workload.dense().unwrap();
        let ends = [len * (len + 1) / 2, len * (len + 1) / 2 + len];
        for (t, row) in entries.chunks_exact_mut(columns).enumerate() {
            let weight: f64 = weights[ends.iter().filter(|end| t >= **end).count()];
            for a in row.iter_mut() {
                *a *= weight.sqrt();
            }
        }
        let a = from_rows(rows, columns, &entries);
        let asked = (len * (len + 1) / 2) as f64 + 20.0 * len as f64 + 5.0 * len as f64;
        let of = |theta: &[f64]| {
            let point =
                Point::new(&Gram::Dense(transposed_product(&a, &a)), turned(theta, 4), &mut Spare::default()).unwrap();
            (2.0 * point.value / asked).sqrt()
        };
        assert!((of(&theta) / upper - 1.0).abs() < 1e-9, "{} {upper}", of(&theta));
        assert!(upper < 0.97 * of(&start));
        assert!(p_identity_of_line(&workload, Some(&weights), &[&[-1.0; 40]], true, (1e6, 9), go).is_err());
        assert!(p_identity_of_line(&Workload::Histogram { len }, None, &[&start], true, (1e6, 9), go).is_err());
    }

    /// Half the total squared error, from its definition.
    fn directly(gram: &Matrix, rows: &[f64]) -> f64 {
        let n = gram.ncols();
        let theta = from_rows(rows.len() / n, n, rows);
        let mut inner = transposed_product(&theta, &theta);
        (0..n).for_each(|j| inner[(j, j)] += 1.0);
        let (p, scale) = (inverse(&inner), |j| 1.0 + theta.col_as_slice(j).iter().sum::<f64>());
        (0..n * n).map(|k| (k / n, k % n)).map(|(i, j)| p[(i, j)] * scale(i) * gram[(i, j)] * scale(j)).sum()
    }

    /// More numbers than one piece has: on one thread and on two.
    #[test]
    fn errors_of_many_sums_are_added_in_one_order() {
        let (len, count) = (500, 80);
        let (rows, columns, entries) = Workload::Ranges { len }.dense().unwrap();
        let a = from_rows(rows, columns, &entries);
        let gram = transposed_product(&a, &a);
        let theta: Vec<f64> =
            (0..count * len).map(|k| if (k * 7919) % 13 == 0 { (k % 5) as f64 } else { 0.0 }).collect();
        let known = directly(&gram, &theta);
        let line = Gram::Line(Line::of(&Workload::Ranges { len }, None).unwrap());
        for gram in [Gram::Dense(gram), line] {
            let at = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| Point::new(&gram, turned(&theta, count), &mut Spare::default()).unwrap())
            };
            let (one, two) = (at(1), at(2));
            assert!((one.value / known - 1.0).abs() < 1e-9, "{} {known}", one.value);
            assert!(one.value == two.value && one.gradient == two.gradient);
        }
    }

    #[test]
    fn weights_leave_digits_to_the_cells() {
        let len = 30;
        let gram = Gram::Line(Line::of(&Workload::Ranges { len }, None).unwrap());
        // Every cell twice, so that next to nothing is left to the first of both.
        let twice = (0..len * len).map(|k| if k / len == k % len { 1e9 } else { 0.0 }).collect();
        assert!(Point::new(&gram, twice, &mut Spare::default()).is_none());
        // A total that counts for nearly everything.
        let parts = vec![Workload::Ranges { len }, Workload::Matrix { rows: 1, columns: len, entries: vec![1.0; len] }];
        let go = &mut |_, _| ControlFlow::Continue(());
        let union = Workload::Union { parts };
        let totals: [&[f64]; 2] = [&[1.0; 30], &[1e5; 30]];
        for (most, starts) in [(1e6, &totals[..0]), (1e4, &totals[..0]), (1e4, &totals)] {
            let (theta, _, _) =
                p_identity_of_line(&union, Some(&[1.0, 1e12]), starts, !starts.is_empty(), (most, 3000), go).unwrap();
            let largest = theta.chunks_exact(len).map(|row| row.iter().map(|t| t * t).sum::<f64>()).fold(0.0, f64::max);
            assert!(largest > 0.5 * most && largest <= most * (1.0 + 1e-9), "{largest} of {most}");
        }
        assert!(p_identity_of_line(&union, Some(&[1.0, 1.0]), &[], false, (0.0, 9), go).is_err());
        // Small weights are searched for as well as large ones.
        let mut of =
            |weight: f64| p_identity_of_line(&union, Some(&[weight, weight]), &[], false, (1e6, 3000), go).unwrap().1;
        assert!((of(1e-30) / of(1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn many_other_queries_are_written_out() {
        let len = 40;
        let eyes = Workload::Matrix { rows: len, columns: len, entries: (0..len * len).map(|k| k as f64).collect() };
        let union = Workload::Union { parts: vec![Workload::Ranges { len }, eyes] };
        let go = &mut |_, _| ControlFlow::Continue(());
        let refused = p_identity_of_line(&union, None, &[], false, (1e6, 9), go);
        assert!(matches!(refused, Err(Error::Unsupported(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn gradients_are_slopes(entries in prop::collection::vec(-2.0f64..2.0, 12), seed in 0u64..1000) {
            let a = from_rows(3, 4, &entries);
            let gram = Gram::Dense(transposed_product(&a, &a));
            let sums = scatter(2 * 4, seed);
            let Some(point) = Point::new(&gram, sums.clone(), &mut Spare::default()) else { return Ok(()) };
            for k in 0..2 {
                for j in 0..4 {
                    let at = |step: f64| {
                        let mut moved = sums.clone();
                        moved[j * 2 + k] += step;
                        Point::new(&gram, moved, &mut Spare::default()).map_or(f64::NAN, |point| point.value)
                    };
                    let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                    prop_assert!((slope - point.gradient[j * 2 + k]).abs() <= 1e-6 * (1.0 + slope.abs()));
                }
            }
        }
    }
}
