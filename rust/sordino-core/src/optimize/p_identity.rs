//! Laplace strategies of p-identity form: all cells, and `p` weighted sums of them.
//!
//! `B = [I; Θ] D^{-1}`, `Θ ≥ 0` of shape p × n, `D = diag(s)`, `s_j = 1 + Σ_k θ_kj`: every column has ℓ1 norm 1
//! (Miklau, Hay and others 2018, program OPT₀). With Laplace noise at `ε = 1` and least squares the total
//! squared error is, for the Gram matrix `G = AᵀA`,
//!
//! `2 tr (BᵀB)^{-1} G = 2 Σ_ij P_ij s_i G_ij s_j`, `P = (I + ΘᵀΘ)^{-1}`.
//!
//! With `Z = (I + ΘΘᵀ)^{-1} Θ = Θ P` and `V = Z D G D` half of it is `Σ_i s_i² G_ii − Σ_ki θ_ki V_ki`, and its gradient is
//! `−2 (V − V Θᵀ Z)_ki + 2 (G_ii s_i − Σ_l θ_li V_li/s_i)`: two products of p × n with n × n a step.
//!
//! The program is not convex. A few starts and sizes, and the sums that a caller gives, are tried briefly and the best is
//! followed; the cells alone (`Θ = 0`) are a candidate, so the result is never worse than noise on the cells, nor than
//! what was given. No bound is proved.

use super::queries::Queries;
use super::{Line, Progress};
use crate::error::Error;
use crate::linear_algebra::{
    Matrix, from_rows, inverse, product, scale_columns, to_rows, transpose, transposed_product,
};
use crate::workload::Workload;
use std::array::from_fn;
use std::collections::VecDeque;

/// Sizes of the weights that a search starts from: sums beside the cells may count much or little.
const STARTS: [f64; 3] = [1.0, 0.3, 0.03];
/// Steps of a brief trial.
const TRIAL: usize = 40;
/// Differences kept by the quasi-Newton method.
const MEMORY: usize = 10;
/// A relative improvement below this, so many times in a row, ends a search.
const NEGLIGIBLE: (f64, usize) = (1e-7, 5);
/// What is added to given sums: an entry of zero with no slope would stay.
const SCATTERED: f64 = 1e-4;
/// Cells up to which other starts are tried beside given sums; beyond, evaluations that come within a quarter of a
/// percent of what thousands find.
const FEW_CELLS: usize = 512;
const ENOUGH: usize = 200;
/// Multiplications of a search of which nothing is written out.
const OPERATIONS: usize = 20_000_000_000;
/// Most weighted sums that are tried unasked.
const MOST_SUMS: usize = 32;

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

/// `Θ`, its value and gradient.
struct Point {
    sums: Matrix,
    value: f64,
    gradient: Matrix,
}

impl Point {
    /// The values of entries that may move: those at zero that want to become negative stay.
    fn free(&self, mut values: Matrix) -> Matrix {
        for j in 0..values.ncols() {
            let own = self.sums.col_as_slice(j).iter().zip(self.gradient.col_as_slice(j));
            for (slot, (sum, gradient)) in values.col_as_slice_mut(j).iter_mut().zip(own) {
                if !(*sum > 0.0 || *gradient < 0.0) {
                    *slot = 0.0;
                }
            }
        }
        values
    }

    /// Sums so far in a direction, none negative.
    fn moved(&self, direction: &Matrix, length: f64) -> Matrix {
        let mut moved = direction.clone();
        for j in 0..moved.ncols() {
            for (slot, sum) in moved.col_as_slice_mut(j).iter_mut().zip(self.sums.col_as_slice(j)) {
                *slot = (sum + length * *slot).max(0.0);
            }
        }
        moved
    }
}

/// The Gram matrix `W = AᵀA`, written out, or that of ranges, running sums and cells.
enum Gram {
    Dense(Matrix),
    Line(Line),
}

impl Gram {
    fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Dense(gram) => (0..gram.ncols()).map(|j| gram[(j, j)]).collect(),
            Self::Line(line) => line.gram_diagonal().unwrap_or_default(),
        }
    }

    fn product(&self, v: &Matrix) -> Matrix {
        match self {
            Self::Dense(gram) => product(v, gram),
            Self::Line(line) => line.times_gram(v),
        }
    }
}

/// Half the total squared error, and its gradient; `None` if it is not finite.
fn evaluate(gram: &Gram, sums: Matrix) -> Option<Point> {
    let (p, n) = (sums.nrows(), sums.ncols());
    let scales: Vec<f64> = (0..n).map(|j| 1.0 + sums.col_as_slice(j).iter().sum::<f64>()).collect();
    let transposed = transpose(&sums);
    let mut inner = product(&sums, &transposed);
    (0..p).for_each(|k| inner[(k, k)] += 1.0);
    let z = product(&inverse(&inner), &sums);
    let mut v = z.clone();
    scale_columns(&mut v, |j| scales[j]);
    v = gram.product(&v);
    scale_columns(&mut v, |j| scales[j]);
    let shared: Vec<f64> =
        (0..n).map(|j| sums.col_as_slice(j).iter().zip(v.col_as_slice(j)).map(|(a, b)| a * b).sum()).collect();
    let diagonal = gram.diagonal();
    let value: f64 = (0..n).map(|j| scales[j] * scales[j] * diagonal[j] - shared[j]).sum();
    let mut gradient = product(&product(&v, &transposed), &z);
    for j in 0..n {
        let own = diagonal[j] * scales[j] - shared[j] / scales[j];
        for (slot, v) in gradient.col_as_slice_mut(j).iter_mut().zip(v.col_as_slice(j)) {
            *slot = 2.0 * (own - v + *slot);
        }
    }
    (value.is_finite() && value > 0.0).then_some(Point { sums, value, gradient })
}

/// Minimises over `Θ ≥ 0` by a projected quasi-Newton method of limited memory (Nocedal & Wright 2006, ch. 7).
struct Descent<'a, 'b> {
    gram: &'a Gram,
    progress: &'a mut Progress<'b>,
    iterations: usize,
    limit: usize,
    stopped: bool,
}

impl Descent<'_, '_> {
    fn run(&mut self, mut point: Point, steps: usize) -> Point {
        let mut memory: VecDeque<Pair> = VecDeque::new();
        let mut stalled = 0;
        for _ in 0..steps {
            if self.stopped {
                break;
            }
            let slope = point.free(point.gradient.clone());
            let mut direction = point.free(direction(&slope, &memory));
            if dot(&direction, &slope) >= 0.0 {
                memory.clear();
                direction = slope.clone();
                scale_columns(&mut direction, |_| -1.0);
            }
            let longest = largest(&direction);
            if longest == 0.0 {
                break;
            }
            let mut length = if memory.is_empty() { (0.3 / longest).min(1.0) } else { 1.0 };
            let next = loop {
                let trial = point.moved(&direction, length);
                let moved = dot_difference(&slope, &trial, &point.sums);
                let reached = evaluate(self.gram, trial);
                self.count();
                if let Some(next) = reached.filter(|next| next.value <= point.value + 1e-4 * moved) {
                    break Some(next);
                }
                length *= 0.4;
                if length * longest < 1e-10 || self.stopped {
                    break None;
                }
            };
            let Some(next) = next else {
                if memory.is_empty() {
                    break;
                }
                memory.clear();
                continue;
            };
            stalled = if next.value > point.value * (1.0 - NEGLIGIBLE.0) { stalled + 1 } else { 0 };
            let moved = &next.sums - &point.sums;
            let turned = &next.gradient - &point.gradient;
            let product = dot(&moved, &turned);
            if product > 1e-12 * dot(&moved, &moved) {
                memory.push_back(Pair { moved, turned, product });
                if memory.len() > MEMORY {
                    memory.pop_front();
                }
            }
            point = next;
            if stalled == NEGLIGIBLE.1 {
                break;
            }
        }
        point
    }

    /// The best of given sums and of what so many steps make of them.
    fn from(&mut self, start: Matrix, steps: usize) -> Option<Point> {
        let around = scatter(start.nrows(), start.ncols(), 0);
        let sums = Matrix::from_fn(start.nrows(), start.ncols(), |k, j| start[(k, j)] + SCATTERED * around[(k, j)]);
        let moved = evaluate(self.gram, sums).map(|point| self.run(point, steps));
        let points = [evaluate(self.gram, start), moved];
        points.into_iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value))
    }

    fn count(&mut self) {
        self.iterations += 1;
        // Nothing bounds the least error: the gap is not known.
        self.stopped |= (self.progress)(self.iterations, f64::INFINITY).is_break() || self.iterations >= self.limit;
    }
}

/// What a step moved, what the gradient turned by, and their product.
struct Pair {
    moved: Matrix,
    turned: Matrix,
    product: f64,
}

/// `−H slope` by the two-loop recursion.
fn direction(slope: &Matrix, memory: &VecDeque<Pair>) -> Matrix {
    let mut q = slope.clone();
    let mut alphas = Vec::with_capacity(memory.len());
    for Pair { moved, turned, product } in memory.iter().rev() {
        let alpha = dot(moved, &q) / product;
        add(&mut q, -alpha, turned);
        alphas.push(alpha);
    }
    if let Some(Pair { turned, product, .. }) = memory.back() {
        let scale = product / dot(turned, turned);
        scale_columns(&mut q, |_| scale);
    }
    for (Pair { moved, turned, product }, alpha) in memory.iter().zip(alphas.into_iter().rev()) {
        let beta = dot(turned, &q) / product;
        add(&mut q, alpha - beta, moved);
    }
    scale_columns(&mut q, |_| -1.0);
    q
}

fn add(to: &mut Matrix, factor: f64, what: &Matrix) {
    for j in 0..to.ncols() {
        to.col_as_slice_mut(j).iter_mut().zip(what.col_as_slice(j)).for_each(|(a, b)| *a += factor * b);
    }
}

/// Columns that are summed at once.
const ABREAST: usize = 8;

/// Some columns from this one on; beyond the last there is that again.
fn columns(matrix: &Matrix, first: usize) -> [&[f64]; ABREAST] {
    from_fn(|i| &matrix.col_as_slice((first + i).min(matrix.ncols() - 1))[..matrix.nrows()])
}

/// `Σ_kj a_kj b_kj`, column by column, each from its first row to its last: a sum waits for the one before, so several go
/// abreast.
fn dot(a: &Matrix, b: &Matrix) -> f64 {
    let n = a.ncols();
    let mut total = 0.0;
    for first in (0..n).step_by(ABREAST) {
        let (x, y, mut sums) = (columns(a, first), columns(b, first), [0.0; ABREAST]);
        for k in 0..a.nrows() {
            for i in 0..ABREAST {
                sums[i] += x[i][k] * y[i][k];
            }
        }
        total = sums[..ABREAST.min(n - first)].iter().fold(total, |total, sum| total + sum);
    }
    total
}

fn dot_difference(slope: &Matrix, to: &Matrix, from: &Matrix) -> f64 {
    dot(slope, to) - dot(slope, from)
}

fn largest(matrix: &Matrix) -> f64 {
    (0..matrix.ncols()).flat_map(|j| matrix.col_as_slice(j)).fold(0.0, |m, v| m.max(v.abs()))
}

/// Numbers in [0, 1) in no order: public, the same everywhere.
fn scatter(p: usize, n: usize, seed: u64) -> Matrix {
    let mut state = seed;
    Matrix::from_fn(p, n, |_, _| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11) as f64 * 2f64.powi(-53)
    })
}

/// The best p-identity strategy found for the mean squared error over the queries.
///
/// `start` is a matrix `Θ` to start from, row by row, such as the blocks of a tree: beside others, or `alone`.
///
/// Ends after `iterations` evaluations (200 from given sums alone, or of more than 512 cells), or when `progress(iteration, gap)` breaks (the gap is infinite: no bound is
/// known); the best so far is returned.
///
/// # Errors
/// If `iterations` is 0, or the start has no rows of as many entries as there are cells, or negative ones.
pub fn p_identity(
    queries: Queries<'_>,
    start: Option<&[f64]>,
    alone: bool,
    iterations: usize,
    mut progress: Progress<'_>,
) -> Result<PIdentity, Error> {
    if iterations == 0 {
        return Err(Error::invalid("iterations", "must be at least 1"));
    }
    let (a, scale) = queries.scaled();
    let n = a.ncols();
    let start = start.map(|entries| given_sums(entries, n)).transpose()?;
    let gram = Gram::Dense(transposed_product(&a, &a));
    let identity: f64 = gram.diagonal().iter().sum();
    // Of many cells what is given is better than what comes out of no order, and soon as good as it gets.
    let many = start.is_some() && (alone || n > FEW_CELLS);
    let limit = if many { iterations.min(ENOUGH) } else { iterations };
    let mut descent = Descent { gram: &gram, progress: &mut progress, iterations: 0, limit, stopped: false };
    let (mut best, mut given): (Option<Point>, Option<Point>) = (None, None);
    if let Some(start) = start {
        given = descent.from(start, TRIAL);
    }
    let most = if many { 0 } else { MOST_SUMS.min(n.div_ceil(4)) };
    let sizes = std::iter::successors(Some(1), |p| Some(2 * p)).take_while(|p| *p <= most);
    for p in sizes {
        let mut improved = false;
        for (start, size) in STARTS.into_iter().enumerate() {
            let mut sums = scatter(p, n, (start + STARTS.len() * p) as u64);
            scale_columns(&mut sums, |_| size);
            let Some(point) = evaluate(&gram, sums) else { continue };
            let point = descent.run(point, TRIAL);
            if best.as_ref().is_none_or(|best| point.value < best.value) {
                best = Some(point);
                improved = true;
            }
        }
        if !improved || descent.stopped {
            break; // more sums only slow the search down
        }
    }
    let best = best.into_iter().chain(given).min_by(|a, b| a.value.total_cmp(&b.value));
    let best = best.map(|point| descent.run(point, usize::MAX)).filter(|point| point.value < identity);
    let iterations = descent.iterations;
    let sums = best.as_ref().map_or_else(|| Matrix::zeros(0, n), |point| point.sums.clone());
    let p = sums.nrows();
    let mut strategy = vec![0.0; (n + p) * n];
    for j in 0..n {
        let size = 1.0 + sums.col_as_slice(j).iter().sum::<f64>();
        strategy[j * n + j] = 1.0 / size;
        for k in 0..p {
            strategy[(n + k) * n + j] = sums[(k, j)] / size;
        }
    }
    let total = 2.0 * best.map_or(identity, |point| point.value);
    let upper = (total / a.nrows() as f64).sqrt() * scale;
    Ok(PIdentity { sums: p, columns: n, strategy, upper, iterations })
}

/// Weighted sums as rows of a matrix.
fn given_sums(entries: &[f64], n: usize) -> Result<Matrix, Error> {
    let sound =
        !entries.is_empty() && entries.len().is_multiple_of(n) && entries.iter().all(|v| v.is_finite() && *v >= 0.0);
    let wrong = || Error::invalid("start", "must be rows of as many weights, none negative, as there are cells");
    sound.then(|| from_rows(entries.len() / n, n, entries)).ok_or_else(wrong)
}

/// Weighted sums `Θ` beside the cells of ranges, running sums and cells, whose squared errors count with `weights`, one for
/// each part of a union: better ones than those given, or these. Nothing is written out but `Θ`.
///
/// Ends after `iterations` evaluations, when `progress` breaks, or when multiplications enough are made: counted from the
/// sizes, never by the clock.
///
/// Returns `Θ` row by row, the root mean squared error at `ε = 1`, and evaluations.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads; [`Error::InvalidParameter`] if the start has no rows of as many weights as
/// there are cells, none negative.
pub fn p_identity_of_line(
    workload: &Workload,
    weights: Option<&[f64]>,
    start: &[f64],
    iterations: usize,
    mut progress: Progress<'_>,
) -> Result<(Vec<f64>, f64, usize), Error> {
    let line = Line::of(workload, weights)?;
    let n = line.len;
    let start = given_sums(start, n)?;
    let p = start.nrows();
    if line.gram_diagonal().is_none() {
        return Err(Error::Unsupported(
            "other queries beside ranges, intervals and running sums are written out".into(),
        ));
    }
    let afforded = OPERATIONS / (4 * p * p * n).max(1);
    let gram = Gram::Line(line);
    let limit = iterations.min(ENOUGH).min(afforded).max(1);
    let mut descent = Descent { gram: &gram, progress: &mut progress, iterations: 0, limit, stopped: false };
    let unsound = || Error::invalid("start", "its error is not finite");
    let best = descent.from(start, usize::MAX).ok_or_else(unsound)?;
    let parts = workload.parts();
    let counted =
        parts.iter().enumerate().map(|(k, part)| weights.map_or(1.0, |weights| weights[k]) * part.answers_weight());
    let upper = (2.0 * best.value / counted.sum::<f64>()).sqrt();
    Ok((to_rows(&best.sums), upper, descent.iterations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::ControlFlow;

    fn found(rows: usize, columns: usize, entries: &[f64]) -> PIdentity {
        let queries = Queries::new(rows, columns, entries).unwrap();
        p_identity(queries, None, false, 3000, &mut |_, _| ControlFlow::Continue(())).unwrap()
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
        let early = p_identity(queries, None, false, 1000, &mut stop).unwrap();
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
        let (theta, upper, steps) = p_identity_of_line(&workload, Some(&weights), &start, 60, go).unwrap();
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
            let point = evaluate(&Gram::Dense(transposed_product(&a, &a)), from_rows(4, len, theta)).unwrap();
            (2.0 * point.value / asked).sqrt()
        };
        assert!((of(&theta) / upper - 1.0).abs() < 1e-9, "{} {upper}", of(&theta));
        assert!(upper < 0.97 * of(&start));
        assert!(p_identity_of_line(&workload, Some(&weights), &[-1.0; 40], 9, go).is_err());
        assert!(p_identity_of_line(&Workload::Histogram { len }, None, &start, 9, go).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn gradients_are_slopes(entries in prop::collection::vec(-2.0f64..2.0, 12), seed in 0u64..1000) {
            let a = from_rows(3, 4, &entries);
            let gram = Gram::Dense(transposed_product(&a, &a));
            let sums = scatter(2, 4, seed);
            let Some(point) = evaluate(&gram, sums.clone()) else { return Ok(()) };
            for k in 0..2 {
                for j in 0..4 {
                    let at = |step: f64| {
                        let mut moved = sums.clone();
                        moved[(k, j)] += step;
                        evaluate(&gram, moved).map_or(f64::NAN, |point| point.value)
                    };
                    let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                    prop_assert!((slope - point.gradient[(k, j)]).abs() <= 1e-6 * (1.0 + slope.abs()));
                }
            }
        }
    }
}
