//! Orthogonal subspaces in which the columns of the queries are nearly round.
//!
//! Algorithm 1 of Nikolov, Talwar & Zhang (2013): of the least ellipsoid around the columns, take the half of the axes
//! that are shortest, project the columns onto the others, and repeat. At most `1 + log₂ r` subspaces `U_i`, orthogonal
//! to each other, and within each the ball of radius `r_i = max_j ‖U_iᵀ a_j‖` is nearly the best ellipsoid.
//!
//! Half is rounded up, and an eigenspace is never cut: its basis is arbitrary, and the errors of the result would
//! depend on it. Symmetries of the queries, which cause such eigenspaces, are kept by every step of the solver, so that
//! equal axes are equal to rounding even where the ellipsoid is not optimal.

use super::factorization::column_bound;
use super::linear_algebra::{Matrix, identity, join_columns, product, select_columns, to_rows, transposed_product};
use super::minimum_ellipsoid::enclose;
use super::queries::Queries;
use super::range::Range;
use super::stages::Stages;
use super::{Progress, Target};
use crate::error::Error;

/// Squared lengths of axes closer than this, or than the gap of the ellipsoid, are one eigenspace.
const TIE: f64 = 1e-6;

/// Orthogonal subspaces of the column space, from the shortest axes to the longest.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseDecomposition {
    /// Number of queries, m.
    pub rows: usize,
    /// Number of cells, n.
    pub columns: usize,
    /// Rank of the queries, r.
    pub rank: usize,
    /// Dimensions `d_i` of the subspaces; their sum is r.
    pub dimensions: Vec<u32>,
    /// `[U_1 … U_k]`, m × r, row by row: orthonormal columns that span those of the queries.
    pub directions: Vec<f64>,
    /// `r_i = max_j ‖U_iᵀ a_j‖` over all columns, rounded up.
    pub radii: Vec<f64>,
    /// The largest gap of the ellipsoids; radii are exact whatever it is.
    pub gap: f64,
    /// Evaluations for all ellipsoids.
    pub iterations: usize,
}

/// The subspaces of a matrix of full row rank.
pub(super) struct Decomposition {
    /// `[U_1 … U_k]`, orthogonal.
    pub directions: Matrix,
    pub dimensions: Vec<usize>,
    pub gap: f64,
}

impl Decomposition {
    /// Subspaces of the columns.
    pub(super) fn new(columns: &Matrix, target: Target, stages: &mut Stages<'_>) -> Result<Self, Error> {
        let mut frame = identity(columns.nrows());
        let mut rest = columns.clone();
        let (mut parts, mut dimensions, mut gap) = (Vec::new(), Vec::new(), 0.0f64);
        while frame.ncols() > 1 {
            let all: Vec<usize> = (0..rest.ncols()).collect();
            let found = enclose(&rest, &all, target, stages)?;
            gap = gap.max(found.gap);
            let split = frame.ncols() - shortest(&found.lengths, TIE.max(found.gap));
            let axes = |range: std::ops::Range<usize>| select_columns(&found.directions, &range.collect::<Vec<_>>());
            parts.push(product(&frame, &axes(split..frame.ncols())));
            dimensions.push(frame.ncols() - split);
            let long = axes(0..split);
            rest = transposed_product(&long, &rest);
            frame = product(&frame, &long);
        }
        if frame.ncols() == 1 {
            dimensions.push(1);
            parts.push(frame);
        }
        Ok(Self { directions: join_columns(&parts), dimensions, gap })
    }

    /// `(start, length)` of each subspace among the directions.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        self.dimensions.iter().scan(0, |start, len| {
            *start += len;
            Some((*start - len, *len))
        })
    }
}

/// How many of the shortest axes make a subspace: half of them and all that are equal to the last of these.
fn shortest(falling: &[f64], tie: f64) -> usize {
    let rising: Vec<f64> = falling.iter().rev().map(|length| length * length).collect();
    let mut count = rising.len().div_ceil(2);
    while count < rising.len() && rising[count] <= rising[count - 1] * (1.0 + tie) {
        count += 1;
    }
    count
}

/// The base decomposition of the queries. Every ellipsoid is computed to the target; a gap far from zero costs little,
/// since only the directions of axes are used.
///
/// # Errors
/// If the queries are too ill-conditioned for double precision.
pub fn base_decomposition(
    queries: Queries<'_>,
    target: Target,
    progress: Progress<'_>,
) -> Result<BaseDecomposition, Error> {
    target.check()?;
    let (a, scale) = queries.scaled();
    let range = Range::new(&a)?;
    let mut stages = Stages::new(progress);
    let found = Decomposition::new(&range.reduced, target, &mut stages)?;
    let radius = |(start, len): (usize, usize)| {
        let block = select_columns(&found.directions, &(start..start + len).collect::<Vec<_>>());
        column_bound(&transposed_product(&block, &range.coordinates)) * scale
    };
    Ok(BaseDecomposition {
        rows: a.nrows(),
        columns: a.ncols(),
        rank: found.directions.nrows(),
        radii: found.blocks().map(radius).collect(),
        dimensions: found.dimensions.iter().map(|len| *len as u32).collect(),
        gap: found.gap,
        iterations: stages.done,
        directions: to_rows(&range.embed(found.directions)),
    })
}

#[cfg(test)]
mod tests {
    use super::{TIE, shortest};

    #[test]
    fn eigenspaces_stay_whole() {
        assert_eq!(shortest(&[5.0, 4.0, 3.0, 2.0], TIE), 2);
        assert_eq!(shortest(&[5.0, 4.0, 3.0], TIE), 2);
        assert_eq!(shortest(&[5.0, 4.0, 4.0 - 1e-7, 4.0 - 2e-7, 1.0], TIE), 4);
        assert_eq!(shortest(&[5.0, 4.0, 4.0 - 1e-7, 4.0 - 2e-7, 1.0], 0.0), 3);
        assert_eq!(shortest(&[2.0; 7], TIE), 7);
    }
}
