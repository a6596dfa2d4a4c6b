//! Answers of queries whose coefficients are products over the axes: public, after the release.

use super::IndexSet;
use crate::error::Error;
use crate::linear_algebra as la;
use crate::parallel::in_pieces;

/// Queries that are answered together.
const BLOCK: usize = 64;

/// `Σ_m values_m Π_j axes[j][q, m_j]` for every query `q`: `axes[j]` has one row of `sizes[j]` coefficients a query.
///
/// One matrix product for each block of queries: `values` as a matrix of left and right indices.
///
/// # Errors
/// If there are not as many values as indices, or not as many coefficients as queries times the size of an axis.
pub fn contract(set: &IndexSet, values: &[f64], axes: &[&[f64]], queries: usize) -> Result<Vec<f64>, Error> {
    Error::check_len("values", set.len(), values.len())?;
    Error::check_len("axes", set.sizes().len(), axes.len())?;
    for (axis, size) in axes.iter().zip(set.sizes()) {
        Error::check_len("axes", queries * size, axis.len())?;
    }
    let mut answers = vec![0.0; queries];
    in_pieces(&mut answers, BLOCK, &|first, answers| {
        let len = answers.len();
        let rows: Vec<Vec<f64>> = axes
            .iter()
            .zip(set.sizes())
            .map(|(axis, size)| {
                let own = &axis[first * size..][..len * size];
                (0..*size).flat_map(|m| own.iter().skip(m).step_by(*size).copied()).collect()
            })
            .collect();
        let (mut left, mut right) = (Vec::new(), Vec::new());
        set.left.fill(&rows, len, 0, false, &mut left);
        set.right.fill(&rows, len, 0, false, &mut right);
        let mut sums = vec![0.0; set.left.len * len];
        match &set.pairs {
            None => la::product_into(&mut sums, &right, values, set.right.len),
            Some(pairs) => {
                for (a, sums) in sums.chunks_exact_mut(len).enumerate() {
                    for (value, b) in values[pairs.starts[a]..].iter().zip(pairs.row(a)) {
                        let row = &right[*b as usize * len..][..len];
                        sums.iter_mut().zip(row).for_each(|(sum, r)| *sum += value * r);
                    }
                }
            }
        }
        for (sums, left) in sums.chunks_exact(len).zip(left.chunks_exact(len)) {
            for ((answer, sum), l) in answers.iter_mut().zip(sums).zip(left) {
                *answer += sum * l;
            }
        }
    });
    Ok(answers)
}
