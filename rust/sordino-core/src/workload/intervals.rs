//! Sums over given intervals of a line of cells.

use super::PARALLEL;
use crate::error::Error;
use crate::parallel::fill;

/// Refuses intervals outside of the line, and weights that are not one for each.
pub(super) fn check(len: usize, ends: &[(u32, u32)], weights: &[f64]) -> Result<(), Error> {
    if len == 0 {
        return Err(Error::invalid("length", "must be at least 1"));
    }
    if ends.is_empty() || ends.iter().any(|(first, last)| first > last || *last as usize >= len) {
        return Err(Error::invalid("intervals", "must have a first cell, then a last one, on the line; at least one"));
    }
    let positive = weights.iter().all(|w| w.is_finite() && *w > 0.0);
    if !positive || !(weights.is_empty() || weights.len() == ends.len()) {
        return Err(Error::invalid("weights", "must be one positive number for each interval, or none"));
    }
    Ok(())
}

/// Sums of two, four, … cells in a row, each once: no interval needs more than two of each size, and no difference of
/// large sums is taken.
pub(super) fn apply(ends: &[(u32, u32)], x: &[f64], out: &mut [f64]) {
    let mut levels = vec![x.to_vec()];
    while let Some(below) = levels.last().filter(|below| below.len() > 1) {
        let above = below.chunks(2).map(|pair| pair.iter().sum()).collect();
        levels.push(above);
    }
    let sum = |(first, last): &(u32, u32)| {
        let (mut first, mut end, mut sum) = (*first as usize, *last as usize + 1, 0.0);
        for level in &levels {
            if first >= end {
                break;
            }
            if first % 2 == 1 {
                sum += level[first];
                first += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                sum += level[end];
            }
            (first, end) = (first / 2, end / 2);
        }
        sum
    };
    if ends.len() < PARALLEL / 16 {
        out.iter_mut().zip(ends).for_each(|(slot, ends)| *slot = sum(ends));
    } else {
        fill(out, |t| sum(&ends[t]));
    }
}

/// Row `t`; `row` comes as zeros.
pub(super) fn write_row(ends: &[(u32, u32)], t: usize, row: &mut [f64]) {
    row[ends[t].0 as usize..=ends[t].1 as usize].fill(1.0);
}

/// Squared norms of the rows: how many cells each has.
pub(super) fn row_squares(ends: &[(u32, u32)], out: &mut [f64]) {
    out.iter_mut().zip(ends).for_each(|(slot, (first, last))| *slot = f64::from(last - first + 1));
}

/// Where each interval's cells start, one after the other, and where the last one's end; none if they are too many to count.
pub(super) fn starts(ends: &[(u32, u32)]) -> Option<Vec<usize>> {
    let mut starts = vec![0usize];
    for (first, last) in ends {
        starts.push(starts[starts.len() - 1].checked_add((last - first + 1) as usize)?);
    }
    Some(starts)
}

/// First and last cell with the weight of each; equal weights are 1.
pub(crate) fn weighted<'a>(
    ends: &'a [(u32, u32)],
    weights: &'a [f64],
) -> impl Iterator<Item = (usize, usize, f64)> + 'a {
    let own = |k: usize| weights.get(k).copied().unwrap_or(1.0);
    ends.iter().enumerate().map(move |(k, (first, last))| (*first as usize, *last as usize, own(k)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_are_summed(
            len in 1usize..40,
            pairs in prop::collection::vec((0usize..40, 0usize..40), 1..30),
        ) {
            let ends: Vec<(u32, u32)> = pairs
                .into_iter()
                .map(|(a, b)| ((a % len).min(b % len) as u32, (a % len).max(b % len) as u32))
                .collect();
            let x: Vec<f64> = (0..len).map(|j| ((j * 37) % 11) as f64 - 3.0).collect();
            let mut sums = vec![0.0; ends.len()];
            apply(&ends, &x, &mut sums);
            let known: Vec<f64> = ends.iter().map(|(a, b)| x[*a as usize..=*b as usize].iter().sum()).collect();
            prop_assert_eq!(sums, known);
        }
    }
}
