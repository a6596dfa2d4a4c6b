//! The gauge of a symmetric polytope, compared with a number without error.
//!
//! For an `r × N` integer matrix `G` of full row rank with columns `g_j`,
//!
//! `K = {G w : ‖w‖₁ ≤ 1} = conv{±g_j}`, `‖z‖_K = min {‖w‖₁ : G w = z} = max {⟨θ, z⟩ : |⟨θ, g_j⟩| ≤ 1 for all j}`.
//!
//! Exact K-norm noise (`random/body.rs`) must decide `‖z‖_K ≤ t` for a point and a number that are known to lie in
//! intervals, and the decision must hold for all of the box. Both sides of the duality give proofs that need no
//! optimum: any `w` with `G w` near `z` bounds the gauge from above, any `θ` from below.
//!
//! | file | what | arithmetic |
//! |---|---|---|
//! | `gauge.rs` | the comparison, from the cheapest proof to the dearest | doubles, every error bounded |
//! | `simplex.rs` | candidates for the proofs: the linear program | doubles, trusted for nothing |
//! | `exact.rs` | the comparison that always ends when the box shrinks | integers |

mod exact;
mod gauge;
mod simplex;
#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::linear_algebra::{Matrix, from_rows, inverse, is_definite, pivot_columns, product, transpose};
use crate::upper::Upper;
use num_bigint::BigUint;

/// Largest rank: a sample from the ball is kept about once in `10^6` there, and each further dimension costs a factor
/// of 3 to 5.
pub(crate) const MAX_RANK: usize = 16;

/// Entries stay below `2^ENTRY_BITS`.
pub(crate) const ENTRY_BITS: u32 = 62;

/// Columns handled at once; the table is padded with zero columns to a multiple of it.
const LANES: usize = 16;

/// Bits of the radius of the circumscribed ball.
const RADIUS_BITS: u64 = 32;

/// Halvings of the interval that the inradius is searched in.
const HALVINGS: usize = 50;

/// The symmetric convex hull of the columns of an integer matrix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Polytope {
    rank: usize,
    count: usize,
    /// `G`, column by column.
    entries: Vec<i64>,
    /// `2^-exponent·G` rounded to doubles, row by row, each row padded with zeros to `stride`; entries at most 1.
    table: Vec<f64>,
    stride: usize,
    exponent: u32,
    /// A number `m·2^e` at or above the Euclidean norm of every column of `G`.
    radius: (u64, i32),
    /// The same for `2^-exponent·G`.
    reach: Upper,
    /// `2^-exponent·K` contains the ball about 0 with the inverse of this radius.
    inverse_inradius: Upper,
    /// Independent columns, and the inverse of that square matrix, row by row.
    basis: Vec<usize>,
    basis_inverse: Vec<f64>,
}

impl Polytope {
    /// The polytope of `count` columns in `rank` dimensions; `entries` row by row, magnitudes below 2^62.
    ///
    /// `weights` of the columns, non-negative, serve the inradius only: the better they are for the minimum enclosing
    /// ellipsoid of the columns, the tighter it is. Uniform if left out.
    ///
    /// # Errors
    /// If sizes do not match, `rank` is 0 or above [`MAX_RANK`], an entry is too large, weights are negative, or the
    /// columns do not span the space (or so nearly that double precision cannot tell).
    pub(crate) fn new(rank: usize, count: usize, entries: &[i64], weights: Option<&[f64]>) -> Result<Self, Error> {
        if rank == 0 || rank > MAX_RANK {
            return Err(Error::Unsupported(format!("K-norm noise serves ranks from 1 to {MAX_RANK}, not {rank}")));
        }
        Error::check_len("entries", rank.saturating_mul(count), entries.len())?;
        let largest = entries.iter().map(|entry| entry.unsigned_abs()).max().unwrap_or(0);
        if largest >> ENTRY_BITS != 0 {
            return Err(Error::invalid("entries", format!("must be below 2^{ENTRY_BITS} in magnitude")));
        }
        let uniform = vec![1.0 / count.max(1) as f64; count];
        let weights = weights.unwrap_or(&uniform);
        Error::check_len("weights", count, weights.len())?;
        if weights.iter().any(|u| !(0.0..=1e100).contains(u)) {
            return Err(Error::invalid("weights", "must be non-negative"));
        }
        let exponent = u64::BITS - largest.leading_zeros();
        let scale = 2f64.powi(-(exponent as i32));
        // Rounding to the nearest, then an exact shift: each entry has relative error at most 2^-53.
        let scaled: Vec<f64> = entries.iter().map(|entry| *entry as f64 * scale).collect();
        let matrix = from_rows(rank, count, &scaled);
        let inradius = inradius(&matrix, weights).ok_or_else(|| {
            Error::invalid(
                "entries",
                "the columns must span the space, and not so nearly fail to that doubles cannot tell",
            )
        })?;
        let basis = pivot_columns(&matrix);
        let square = Matrix::from_fn(rank, rank, |i, k| matrix[(i, basis[k])]);
        let basis_inverse = inverse(&square);
        let stride = count.next_multiple_of(LANES);
        let mut table = vec![0.0; rank * stride];
        for (row, values) in table.chunks_mut(stride).zip(scaled.chunks(count)) {
            row[..count].copy_from_slice(values);
        }
        let columns: Vec<i64> = (0..count).flat_map(|j| (0..rank).map(move |i| entries[i * count + j])).collect();
        let radius = radius(&columns, rank);
        Ok(Self {
            rank,
            count,
            entries: columns,
            table,
            stride,
            exponent,
            radius,
            reach: Upper::exact(radius.0 as f64).scaled(radius.1 - exponent as i32),
            inverse_inradius: Upper::rounded(1.0 / inradius, 1),
            basis,
            basis_inverse: (0..rank * rank).map(|at| basis_inverse[(at / rank, at % rank)]).collect(),
        })
    }

    /// Dimension of the space, r.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// `(m, e)`: no column is longer than `m·2^e`, and the longest is at most a factor `1 + 2^-30` shorter.
    pub(crate) fn radius(&self) -> (u64, i32) {
        self.radius
    }

    /// `K` contains the ball of this radius about 0; so `‖z‖_K ≤ ‖z‖₂/inradius`.
    pub(crate) fn inradius(&self) -> f64 {
        (1.0 / self.inverse_inradius.get()).next_down() * 2f64.powi(self.exponent as i32)
    }

    /// Column `j` of `G`.
    fn column(&self, j: usize) -> &[i64] {
        &self.entries[j * self.rank..(j + 1) * self.rank]
    }
}

/// A dyadic number with about 32 bits at or above every column norm.
///
/// For real `x ≥ 0`, `x < ⌊x⌋ + 1 ≤ (⌊√⌊x⌋⌋ + 1)²`, so `√x < ⌊√⌊x⌋⌋ + 1`.
fn radius(columns: &[i64], rank: usize) -> (u64, i32) {
    let square = |column: &[i64]| column.iter().map(|v| BigUint::from(v.unsigned_abs()).pow(2)).sum::<BigUint>();
    let largest = columns.chunks(rank).map(square).max().unwrap_or(BigUint::ZERO);
    let shift = RADIUS_BITS as i64 - largest.bits().div_ceil(2) as i64;
    let shifted = if shift < 0 { largest >> (2 * -shift) } else { largest << (2 * shift) };
    let mantissa = u64::try_from(shifted.sqrt() + 1u8).unwrap_or(u64::MAX); // at most 2^32
    (mantissa, -shift as i32)
}

/// A lower bound on the inradius of `conv{±g_j}` about 0, from weights `u ≥ 0`.
///
/// With `M = G diag(u) Gᵀ`, `y = M^{-1} z` and `w = diag(u) Gᵀ y`: `G w = z` and, by Cauchy and Schwarz,
/// `‖w‖₁ = Σ u_j |⟨g_j, y⟩| ≤ √(Σ u · yᵀ M y) = √(Σ u · zᵀ M^{-1} z)`, so the inradius is at least `√(λ_min(M)/Σ u)`.
///
/// `λ_min(M) ≥ λ − δ` if the Cholesky factorisation of the computed `M − λI` runs to its end: its backward error is at
/// most `γ_{r+2}·tr M` (Demmel 1989; Higham 2002, theorem 10.3), and the computed `M` is off by at most
/// `γ_{N+4}·tr M` in the Frobenius norm, since `|M_ik| ≤ √(M_ii M_kk)`. `δ` is four times the sum of both.
fn inradius(matrix: &Matrix, weights: &[f64]) -> Option<f64> {
    let (rank, count) = (matrix.nrows(), matrix.ncols());
    let weighted = Matrix::from_fn(rank, count, |i, j| matrix[(i, j)] * weights[j]);
    let gram = product(&weighted, &transpose(matrix));
    let trace: f64 = (0..rank).map(|i| gram[(i, i)]).sum();
    let delta = (count + rank + 16) as f64 * 2f64.powi(-51) * trace;
    let definite =
        |shift: f64| is_definite(&Matrix::from_fn(rank, rank, |i, k| gram[(i, k)] - if i == k { shift } else { 0.0 }));
    let mut low = 2.0 * delta;
    if !(trace > 0.0 && trace.is_finite() && definite(low)) {
        return None;
    }
    let mut high = trace / rank as f64;
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        *(if definite(middle) { &mut low } else { &mut high }) = middle;
    }
    // A relative 2^-30 pays for these last roundings and for that of the sum.
    Some(((low - delta) / weights.iter().sum::<f64>()).sqrt() * (1.0 - 2f64.powi(-30)))
}
