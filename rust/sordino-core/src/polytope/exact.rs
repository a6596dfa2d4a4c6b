//! `‖z‖_K ≤ t` in integers: the simplex method without rounding.
//!
//! The inverse of a basis is kept as integers `A = D·B^{-1}`, `D = ± det B`, under integral pivoting, where every
//! division is exact (Edmonds 1967; Bareiss 1968). Pivots follow Bland's rule (1977), so the method ends.

use super::Polytope;
use num_bigint::{BigInt, BigUint, Sign};

/// A row whose column is still a unit vector.
const VACANT: usize = usize::MAX;

/// Square bases of columns, with the signs that make all weights non-negative.
struct Basis<'a> {
    polytope: &'a Polytope,
    columns: Vec<usize>,
    negative: Vec<bool>,
    /// `A`, row by row.
    adjugate: Vec<BigInt>,
    /// `D`.
    determinant: BigInt,
}

impl Polytope {
    /// [`Polytope::compare`] in integers, all in one unit: `G` is measured in it too (the gauge is homogeneous).
    ///
    /// `None` only if the box is too wide for the basis that is optimal at its middle: as boxes shrink to a point
    /// with `‖z‖_K ≠ t` this ends, since the polytope has finitely many bases.
    pub(crate) fn compare_exact(&self, z: &[(BigInt, BigInt)], t: (&BigUint, &BigUint)) -> Option<bool> {
        // Twice the middle.
        let point: Vec<BigInt> = z.iter().map(|(low, high)| low + high).collect();
        let mut basis = Basis::new(self, self.optimum(&to_doubles(&point)).basis());
        basis.optimise(&point);
        basis.compare(z, t)
    }
}

impl<'a> Basis<'a> {
    /// These columns as far as they are independent, then the first that complete them.
    fn new(polytope: &'a Polytope, columns: &[usize]) -> Self {
        let rank = polytope.rank;
        let unit = |at: usize| BigInt::from(u8::from(at / rank == at % rank));
        let mut basis = Self {
            polytope,
            columns: vec![VACANT; rank],
            negative: vec![false; rank],
            adjugate: (0..rank * rank).map(unit).collect(),
            determinant: BigInt::from(1u8),
        };
        for j in columns.iter().copied().chain(0..polytope.count) {
            if !basis.columns.contains(&VACANT) {
                break;
            }
            let direction = basis.direction(j);
            if let Some(row) = (0..rank).find(|i| basis.columns[*i] == VACANT && direction[*i] != BigInt::ZERO) {
                basis.replace(row, j, &direction);
            }
        }
        basis
    }

    /// `A g_j = D·B^{-1} g_j`.
    fn direction(&self, j: usize) -> Vec<BigInt> {
        let column = self.polytope.column(j);
        self.adjugate.chunks_exact(self.polytope.rank).map(|row| product(row, column)).collect()
    }

    /// Replaces the column of one row by column `j`, whose `direction` does not vanish there.
    fn replace(&mut self, row: usize, j: usize, direction: &[BigInt]) {
        let rank = self.polytope.rank;
        let pivot = self.adjugate[row * rank..(row + 1) * rank].to_vec();
        for (i, target) in self.adjugate.chunks_exact_mut(rank).enumerate() {
            if i != row {
                for (value, p) in target.iter_mut().zip(&pivot) {
                    *value = (&direction[row] * &*value - &direction[i] * p) / &self.determinant;
                }
            }
        }
        self.determinant.clone_from(&direction[row]);
        self.columns[row] = j;
    }

    /// `A z`.
    fn weights(&self, point: &[BigInt]) -> Vec<BigInt> {
        let sum = |row: &[BigInt]| row.iter().zip(point).map(|(a, z)| a * z).sum();
        self.adjugate.chunks_exact(self.polytope.rank).map(sum).collect()
    }

    /// `Aᵀ sign(w)`: `D` times the dual vector.
    fn dual(&self) -> Vec<BigInt> {
        let rank = self.polytope.rank;
        let mut dual = vec![BigInt::ZERO; rank];
        for (row, negative) in self.adjugate.chunks_exact(rank).zip(&self.negative) {
            for (y, entry) in dual.iter_mut().zip(row) {
                if *negative { *y -= entry } else { *y += entry }
            }
        }
        dual
    }

    /// Pivots until no column has `|⟨y, g_j⟩| > 1`.
    fn optimise(&mut self, point: &[BigInt]) {
        let weights = self.weights(point);
        for (negative, w) in self.negative.iter_mut().zip(weights) {
            *negative = w != BigInt::ZERO && (w.sign() == Sign::Minus) != (self.determinant.sign() == Sign::Minus);
        }
        loop {
            let dual = self.dual();
            let limit = self.determinant.magnitude();
            let products = (0..self.polytope.count).map(|j| product(&dual, self.polytope.column(j)));
            // Bland: the first variable of negative reduced cost. Variable 2j is g_j, 2j + 1 is −g_j.
            let Some((j, entering)) = products.enumerate().find(|(_, value)| value.magnitude() > limit) else { return };
            let minus = (entering.sign() == Sign::Minus) != (self.determinant.sign() == Sign::Minus);
            let direction = self.direction(j);
            let Some(row) = self.leaving(&self.weights(point), &direction, minus) else { return };
            self.replace(row, j, &direction);
            self.negative[row] = minus;
        }
    }

    /// The row with the least `x_i/d_i` over `d_i > 0`, where `x ≥ 0` are the signed weights and `d` the signed
    /// direction of `±g_j`; of equal ones, that of the first variable.
    fn leaving(&self, weights: &[BigInt], direction: &[BigInt], minus: bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        let variable = |i: usize| 2 * self.columns[i] + usize::from(self.negative[i]);
        for i in 0..weights.len() {
            // Signs: d_i is ± A g_j/D.
            let flips = [direction[i].sign() == Sign::Minus, self.determinant.sign() == Sign::Minus];
            let flipped = flips.into_iter().chain([self.negative[i], minus]).filter(|flip| *flip).count() % 2 == 1;
            if direction[i] == BigInt::ZERO || flipped {
                continue;
            }
            let better = best.is_none_or(|b| {
                let left = weights[i].magnitude() * direction[b].magnitude();
                let right = weights[b].magnitude() * direction[i].magnitude();
                left < right || left == right && variable(i) < variable(b)
            });
            if better {
                best = Some(i);
            }
        }
        best
    }

    /// `Σ|w_i|` from above and `⟨y, z⟩` from below over the box, both times `|D|`.
    fn compare(&self, z: &[(BigInt, BigInt)], t: (&BigUint, &BigUint)) -> Option<bool> {
        let limit = self.determinant.magnitude();
        let mut total = BigUint::ZERO;
        for row in self.adjugate.chunks_exact(self.polytope.rank) {
            let (low, high) = interval(row, z);
            total += low.magnitude().max(high.magnitude());
        }
        if total <= t.0 * limit {
            return Some(true);
        }
        let (low, high) = interval(&self.dual(), z);
        // D < 0 turns the interval round.
        let least = if self.determinant.sign() == Sign::Minus { -high } else { low };
        (least > BigInt::from(t.1 * limit)).then_some(false)
    }
}

/// Least and greatest `⟨a, z⟩` over a box.
fn interval(a: &[BigInt], z: &[(BigInt, BigInt)]) -> (BigInt, BigInt) {
    let (mut least, mut most) = (BigInt::ZERO, BigInt::ZERO);
    for (a, (low, high)) in a.iter().zip(z) {
        let (low, high) = if a.sign() == Sign::Minus { (high, low) } else { (low, high) };
        least += a * low;
        most += a * high;
    }
    (least, most)
}

fn product(a: &[BigInt], column: &[i64]) -> BigInt {
    a.iter().zip(column).map(|(x, g)| x * g).sum()
}

/// The direction of a vector of integers.
fn to_doubles(point: &[BigInt]) -> Vec<f64> {
    let shift = point.iter().map(BigInt::bits).max().unwrap_or(0).saturating_sub(62);
    point.iter().map(|value| i64::try_from(value >> shift).unwrap_or(0) as f64).collect()
}
