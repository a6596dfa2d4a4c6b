//! Marginal tables, one after the other.

use crate::error::Error;
use crate::parallel::pieces;

/// Whether sets, each with a weight, are of these attributes, with tables that can be held.
pub(super) fn check(radices: &[usize], sets: &[Vec<usize>], weights: &[f64]) -> Result<(), Error> {
    let sound = radices.iter().all(|n| (2..=1 << 16).contains(n))
        && !sets.is_empty()
        && sets.iter().all(|set| {
            set.windows(2).all(|pair| pair[0] < pair[1])
                && set.last().is_none_or(|last| *last < radices.len())
                && super::size(&set.iter().map(|i| radices[*i]).collect::<Vec<_>>()).is_some()
        });
    if !sound {
        return Err(Error::invalid("sets", "must be increasing attribute numbers, 2 to 65536 levels each"));
    }
    if weights.len() != sets.len() || weights.iter().any(|w| !w.is_finite() || *w <= 0.0) {
        return Err(Error::invalid("weights", "must be one positive number for each set"));
    }
    Ok(())
}

/// Cells of the marginal table of one attribute set.
pub(crate) fn cells(radices: &[usize], set: &[usize]) -> usize {
    set.iter().map(|i| radices[*i]).product()
}

/// Index in the marginal table of `set` of cell `index` of the full table.
pub(crate) fn project(index: usize, radices: &[usize], set: &[usize]) -> usize {
    let (mut rest, mut cell, mut place) = (index, 0, 1);
    let mut wanted = set.iter().rev().peekable();
    for (axis, n) in radices.iter().enumerate().rev() {
        if wanted.next_if(|i| **i == axis).is_some() {
            cell += rest % n * place;
            place *= n;
        }
        rest /= n;
    }
    cell
}

/// Sums a table with the given radices onto the attributes of `set`.
pub(crate) fn marginal<T: Copy + Default + std::ops::AddAssign>(
    table: &[T],
    radices: &[usize],
    set: &[usize],
    out: &mut [T],
) {
    out.fill(T::default());
    for (index, value) in table.iter().enumerate() {
        out[project(index, radices, set)] += *value;
    }
}

/// Every table of a full table.
pub(super) fn apply(radices: &[usize], sets: &[Vec<usize>], x: &[f64], out: &mut [f64]) {
    for (set, table) in sets.iter().zip(tables(radices, sets, out)) {
        marginal(x, radices, set, table);
    }
}

/// Row `t`.
pub(super) fn write_row(radices: &[usize], sets: &[Vec<usize>], t: usize, row: &mut [f64]) {
    let mut cell = t;
    for set in sets {
        let count = cells(radices, set);
        if cell < count {
            for (j, slot) in row.iter_mut().enumerate() {
                *slot = f64::from(u8::from(project(j, radices, set) == cell));
            }
            break;
        }
        cell -= count;
    }
}

/// Squared norms of the rows: how many cells each answer sums.
pub(super) fn row_squares(radices: &[usize], sets: &[Vec<usize>], out: &mut [f64]) {
    let domain: f64 = radices.iter().map(|n| *n as f64).product();
    for table in tables(radices, sets, out) {
        let count = table.len() as f64;
        table.fill(domain / count);
    }
}

fn tables<'a>(radices: &[usize], sets: &[Vec<usize>], out: &'a mut [f64]) -> Vec<&'a mut [f64]> {
    pieces(out, sets.iter().map(|set| cells(radices, set)))
}

#[cfg(test)]
mod tests {
    use super::marginal;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marginal_of_a_marginal_is_the_marginal(values in prop::collection::vec(-9i64..9, 24)) {
            let radices = [2, 3, 4];
            let mut table = vec![0; 12];
            marginal(&values, &radices, &[1, 2], &mut table);
            let (mut direct, mut twice) = (vec![0; 4], vec![0; 4]);
            marginal(&values, &radices, &[2], &mut direct);
            marginal(&table, &[3, 4], &[1], &mut twice);
            prop_assert_eq!(direct, twice);
        }
    }
}
