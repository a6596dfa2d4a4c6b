//! Signs of low discrepancy by the Gram–Schmidt walk (Bansal, Dadush, Garg & Lovett 2018).
//!
//! From the columns `b_j` of a strategy. Positions start at 0; one cell is the pivot `p` until its position is ±1.
//! Each step moves along `u_p = 1`, `u_rest = argmin |b_p + Σ_j u_j b_j|`, to one of the two points where the line
//! leaves the cube `[−1, 1]^n`, at random so that the expectation does not move; cells that reach ±1 stay there.
//!
//! **If all `|b_j| ≤ 1`, then `y = Σ_j χ_j b_j` has `E exp⟨y, v⟩ ≤ exp(|v|²/2)` for every `v`** (Harshaw, Sävje,
//! Spielman & Zhang 2024). Proof. A step adds `δw` to `y`, where `w = Σ_j u_j b_j` is the part of `b_p` orthogonal to
//! the rest, and `δ` to the position `z` of the pivot. As cells leave the rest, `w` gains orthogonal pieces
//! `ℓ_i e_i`, `|e_i| = 1`, `L = Σ ℓ_i² = |w|² ≤ 1`; the pieces of later pivots lie in the span of the rest, so all
//! `e_i` are orthogonal. With `c_i = ⟨e_i, v⟩` and `a = ⟨w, v⟩ = Σ c_i ℓ_i`, sums over the pieces of this pivot, and
//! `H = e^{−az}(cosh a + z sinh a)`, let
//!
//! `V = H·exp(a²(1/L − 1)/2)`,  1 between pivots.
//!
//! The expectation of `exp(⟨y, v⟩ − Σ c_i²/2)·V`, sum over all pieces so far, starts at 1 and never grows, which is the
//! claim because `Σ c_i² ≤ |v|²`:
//!
//! * a step multiplies by `e^{aδ}`, and `e^{az}V` is linear in `z`: no change;
//! * at `z = ±1`, `V ≥ 1` becomes 1;
//! * the first piece of a pivot has `a = cℓ`, `L = ℓ²`: `V e^{−c²/2} = H e^{−a²/2} ≤ 1` by Hoeffding's lemma;
//! * a further piece takes `(a, L)` to `(a', L') = (a + cℓ, L + ℓ²)`. With `ψ(a) = ln H − a²/2` it must be shown that
//!   `2ψ(a') − 2ψ(a) ≤ c² + a²/L − a'²/L' = a²(1 − xq)²/(q(1 − q)L')`, `x = a'/a`, `q = L/L'`. Now `ψ(0) = ψ'(0) = 0`
//!   and `−1 ≤ ψ'' ≤ 0` (a variance on ±1, less 1). So the left side is at most 0 for `x ≥ 1` or `a = 0`,
//!   `a²(1 − x²)` for `0 ≤ x ≤ 1`, and `a²` for `x ≤ 0`. The right side is at least `a²` for `x ≤ 0`, and for the
//!   rest `(1 − xq)² − q(1 − q)(1 − x²) = (1 − q)² + q(1 − x)² ≥ 0`, and `L' ≤ 1`.
//!
//! So a discrepancy of `s` or more has probability at most `2m exp(−s²/(2 max_i|l_i|²))`. Columns are extended to
//! `(b_j, √λ e_j)`: this makes the minimiser unique, `u_rest = −Bᵀ P b_p` with
//! `P = (Σ_rest b_j b_jᵀ + λI)^{-1}`, r × r, kept up to date as cells leave, and multiplies all norms above by
//! `√(1 + λ)` at most. `O(n r (n + r))` for a walk.
//!
//! The randomness is public.

use super::super::Progress;
use super::super::factorization::Optimized;
use super::super::linear_algebra::{
    Matrix, add_outer, column_products, from_rows, inner, ridge_inverse, select_columns,
};
use super::super::queries::Queries;
use super::check_shape;
use crate::error::Error;
use crate::split_mix::SplitMix;

/// `λ`: costs 0.05 ‰ of the discrepancy, and keeps the condition number of `P` below `n/λ`.
const RIDGE: f64 = 1e-4;

/// A position this near to ±1 has arrived.
const ARRIVED: f64 = 1e-12;

/// Signs of the cells and their discrepancy.
#[derive(Debug, Clone, PartialEq)]
pub struct Coloring {
    /// `χ`, −1 or 1 for every cell.
    pub signs: Vec<i8>,
    /// `max_i |Σ_j a_ij χ_j|`.
    pub discrepancy: f64,
}

/// The best of `starts` walks on the columns of a strategy for these queries (that of `worst_strategy` is best).
///
/// Calls `progress` after every walk with their number and the least discrepancy; `Break` keeps the best so far. The
/// same seed gives the same walks, however many.
///
/// # Errors
/// If `starts` is zero or the strategy does not have the shape of these queries.
pub fn coloring(
    queries: Queries<'_>,
    found: &Optimized,
    starts: usize,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Coloring, Error> {
    check_shape(queries, found)?;
    if starts == 0 {
        return Err(Error::invalid("starts", "must be at least 1"));
    }
    let vectors = from_rows(found.rank, queries.columns(), &found.strategy);
    let mut best: Option<Coloring> = None;
    let mut random = SplitMix(seed);
    for start in 1..=starts {
        let failed = || Error::invalid("strategy", "has entries that are not finite, or far too large");
        let signs = Walk::new(&vectors, SplitMix(random.next())).and_then(Walk::run).ok_or_else(failed)?;
        let discrepancy = discrepancy(queries, &signs);
        if best.as_ref().is_none_or(|best| discrepancy < best.discrepancy) {
            best = Some(Coloring { signs, discrepancy });
        }
        let least = best.as_ref().map_or(f64::INFINITY, |best| best.discrepancy);
        if progress(start, least).is_break() {
            break;
        }
    }
    best.ok_or_else(|| Error::Unsupported("no walk ended".into()))
}

/// `max_i |Σ_j a_ij χ_j|`.
fn discrepancy(queries: Queries<'_>, signs: &[i8]) -> f64 {
    let sum = |row: &[f64]| row.iter().zip(signs).map(|(a, sign)| a * f64::from(*sign)).sum::<f64>();
    (0..queries.rows()).map(|i| sum(queries.row(i)).abs()).fold(0.0, f64::max)
}

/// One walk.
struct Walk<'a> {
    vectors: &'a Matrix,
    random: SplitMix,
    positions: Vec<f64>,
    /// Cells on their way, without the pivot.
    rest: Vec<usize>,
    /// `P`, and how many cells left since it was computed afresh.
    inverse: Matrix,
    left: usize,
}

impl<'a> Walk<'a> {
    fn new(vectors: &'a Matrix, random: SplitMix) -> Option<Self> {
        let positions = vec![0.0; vectors.ncols()];
        Some(Self {
            vectors,
            random,
            positions,
            rest: (0..vectors.ncols()).collect(),
            inverse: ridge_inverse(vectors, RIDGE)?,
            left: 0,
        })
    }

    fn run(mut self) -> Option<Vec<i8>> {
        while !self.rest.is_empty() {
            let pivot = self.rest.swap_remove(self.random.index(self.rest.len()));
            self.forget(&[pivot])?;
            while self.positions[pivot].abs() < 1.0 {
                self.step(pivot)?;
            }
        }
        Some(self.positions.iter().map(|position| if *position > 0.0 { 1 } else { -1 }).collect())
    }

    /// Moves until a cell arrives.
    fn step(&mut self, pivot: usize) -> Option<()> {
        let toward = column_products(&self.inverse, self.vectors.col_as_slice(pivot));
        let along = |j: &usize| -inner(self.vectors.col_as_slice(*j), &toward);
        let direction: Vec<(usize, f64)> =
            self.rest.iter().map(|j| (*j, along(j))).chain([(pivot, 1.0)]).filter(|(_, u)| *u != 0.0).collect();
        // The line leaves the cube at these multiples of the direction and of its opposite.
        let length = |sign: f64| {
            let until = |(j, u): &(usize, f64)| (1.0 - self.positions[*j] * (sign * u).signum()) / u.abs();
            direction.iter().map(until).fold(f64::INFINITY, f64::min)
        };
        let (up, down) = (length(1.0), length(-1.0));
        let by = if self.random.uniform() * (up + down) < down { up } else { -down };
        for (j, u) in direction {
            let moved = self.positions[j] + by * u;
            self.positions[j] = if moved.abs() < 1.0 - ARRIVED { moved } else { moved.signum() };
        }
        let (arrived, rest): (Vec<_>, Vec<_>) = self.rest.iter().partition(|j| self.positions[**j].abs() == 1.0);
        self.rest = rest;
        self.forget(&arrived)
    }

    /// Takes cells that are no longer in `rest` out of `P` (Sherman & Morrison 1950).
    fn forget(&mut self, cells: &[usize]) -> Option<()> {
        for j in cells {
            let column = self.vectors.col_as_slice(*j);
            let image = column_products(&self.inverse, column);
            let share = 1.0 - inner(column, &image);
            self.left += 1;
            if self.left > self.vectors.nrows().max(16) || share < RIDGE / 2.0 {
                self.inverse = ridge_inverse(&select_columns(self.vectors, &self.rest), RIDGE)?;
                self.left = 0;
                return Some(());
            }
            add_outer(&mut self.inverse, &image, 1.0 / share);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::linear_algebra::{largest, product, scale_columns, squared_columns, transpose};
    use super::*;

    /// Unit columns, more than rows, far from orthogonal.
    fn columns(r: usize, n: usize) -> Matrix {
        let mut vectors = Matrix::from_fn(r, n, |i, j| 1.0 + ((i + 1) as f64 * (j + 1) as f64 * 0.7).sin());
        let norms = squared_columns(&vectors);
        scale_columns(&mut vectors, |j| 1.0 / norms[j].sqrt());
        vectors
    }

    #[test]
    fn inverse_follows_the_rest() {
        let r = 30;
        for n in [r, 3 * r] {
            let vectors = columns(r, n);
            let mut walk = Walk::new(&vectors, SplitMix(7)).unwrap();
            while !walk.rest.is_empty() {
                let pivot = walk.rest.swap_remove(0);
                walk.forget(&[pivot]).unwrap();
                while walk.positions[pivot].abs() < 1.0 {
                    let before = walk.rest.len();
                    walk.step(pivot).unwrap();
                    // Every step fixes a cell.
                    assert!(walk.rest.len() < before || walk.positions[pivot].abs() == 1.0);
                    let rest = select_columns(&vectors, &walk.rest);
                    let gram = product(&rest, &transpose(&rest));
                    let one = |i: usize, j: usize| f64::from(u8::from(i == j));
                    let system = Matrix::from_fn(r, r, |i, j| gram[(i, j)] + RIDGE * one(i, j));
                    let identity = product(&system, &walk.inverse);
                    let error = largest(&Matrix::from_fn(r, r, |i, j| identity[(i, j)] - one(i, j)));
                    assert!(error < 1e-6, "{error}");
                }
            }
            assert!(walk.positions.iter().all(|position| position.abs() == 1.0));
        }
    }

    #[test]
    fn sums_have_covariance_below_the_identity() {
        // Independent signs would have E⟨y, v⟩² = Σ_j ⟨b_j, v⟩², 27 along the common direction.
        let (r, n, walks) = (6, 40, 3000);
        let vectors = columns(r, n);
        let common: Vec<f64> = vec![1.0 / (r as f64).sqrt(); r];
        let tilted: Vec<f64> = (0..r).map(|i| if i == 2 { 1.0 } else { 0.0 }).collect();
        let mut random = SplitMix(3);
        let (mut means, mut squares) = ([0.0; 2], [0.0; 2]);
        for _ in 0..walks {
            let signs = Walk::new(&vectors, SplitMix(random.next())).and_then(Walk::run).unwrap();
            let mut sum = vec![0.0; r];
            for (j, sign) in signs.iter().enumerate() {
                for (sum, value) in sum.iter_mut().zip(vectors.col_as_slice(j)) {
                    *sum += f64::from(*sign) * value;
                }
            }
            for (k, direction) in [&common, &tilted].into_iter().enumerate() {
                let along = inner(&sum, direction);
                means[k] += along / f64::from(walks);
                squares[k] += along * along / f64::from(walks);
            }
        }
        let alone: f64 = column_products(&vectors, &common).iter().map(|c| c * c).sum();
        assert!(alone > 25.0, "{alone}");
        for (mean, square) in means.into_iter().zip(squares) {
            // Four standard errors of a subgaussian variable.
            let error = 4.0 / f64::from(walks).sqrt();
            assert!(mean.abs() < error && square < 1.0 + 1.5 * error, "{mean} {square}");
        }
    }

    #[test]
    fn generator() {
        // The published first outputs for seed 1234567.
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
