//! Tables of sets of attributes: counted, summed, shared out, and integers that are measured of them.

use super::records::count;
use super::{Input, table};
use crate::error::Error;
use crate::parallel::collected;
use crate::workload::{Workload, cells, marginal, project};
use std::collections::BTreeMap;

/// Records that one release can hold: what is measured of them stays exact below this, and saturates above.
pub(super) const MAX_RECORDS: u64 = 1 << 31;

/// The largest sum of all records: of as many as can be held, or of the table of all attributes with such cells.
pub(super) fn largest_total(workload: &Workload, max_abs: u64) -> u128 {
    let table = workload.input_len().map_or(0, |len| u128::from(max_abs) * len as u128);
    table.max(u128::from(MAX_RECORDS))
}

/// All subsets of a set, the empty one first.
pub(super) fn subsets(set: &[usize]) -> Vec<Vec<usize>> {
    let of = |mask: u32| set.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, a)| *a).collect();
    (0u32..1 << set.len()).map(of).collect()
}

/// Number of the smallest wanted set whose table each set below is counted from; `direct` if those are the wanted ones alone.
pub(super) fn sources(levels: &[usize], sets: &[Vec<usize>], direct: bool) -> BTreeMap<Vec<usize>, usize> {
    let mut sources: BTreeMap<Vec<usize>, (usize, usize)> = BTreeMap::new();
    for (s, set) in sets.iter().enumerate() {
        let size = cells(levels, set);
        for below in if direct { vec![set.clone()] } else { subsets(set) } {
            let source = sources.entry(below).or_insert((size, s));
            if size < source.0 {
                *source = (size, s);
            }
        }
    }
    sources.into_iter().map(|(set, (_, source))| (set, source)).collect()
}

/// The table of every set, of records or of the table of all attributes.
pub(super) fn tables(levels: &[usize], sets: &[Vec<usize>], x: Input<'_>) -> Result<Vec<Vec<i64>>, Error> {
    let one = |set: &Vec<usize>| {
        let mut out = vec![0; cells(levels, set)];
        match x {
            Input::Codes(codes) => count(codes, levels, set, &mut out),
            full => marginal(table(full)?, levels, set, &mut out),
        }
        Ok(out)
    };
    collected(sets.len(), &|k| one(&sets[k])).into_iter().collect()
}

/// The table of a set from that of one around it.
pub(super) fn summed<T: Copy + Default + std::ops::AddAssign>(
    levels: &[usize],
    outer: &[usize],
    table: &[T],
    set: &[usize],
) -> Vec<T> {
    let own: Vec<usize> = outer.iter().map(|i| levels[*i]).collect();
    let positions: Vec<usize> = set.iter().map(|i| outer.binary_search(i).expect("a subset")).collect();
    let mut out = vec![T::default(); cells(levels, set)];
    marginal(table, &own, &positions, &mut out);
    out
}

/// The part of a table that sums to zero along each of its axes: less the means.
pub(super) fn centred(levels: &[usize], set: &[usize], mut values: Vec<f64>) -> Vec<f64> {
    let mut stride = 1;
    for i in set.iter().rev() {
        let n = levels[*i];
        for block in values.chunks_exact_mut(n * stride) {
            for start in 0..stride {
                let mean = (0..n).map(|k| block[start + k * stride]).sum::<f64>() / n as f64;
                (0..n).for_each(|k| block[start + k * stride] -= mean);
            }
        }
        stride *= n;
    }
    values
}

/// Adds what is known of the table of `inner` to that of a set around it, spread over the other attributes.
pub(super) fn lift(levels: &[usize], part: &[f64], inner: &[usize], set: &[usize], out: &mut [f64]) {
    let own: Vec<usize> = set.iter().map(|i| levels[*i]).collect();
    let positions: Vec<usize> = inner.iter().map(|i| set.iter().position(|j| i == j).expect("a subset")).collect();
    let share = part.len() as f64 / out.len() as f64;
    for (index, slot) in out.iter_mut().enumerate() {
        *slot += share * part[project(index, &own, &positions)];
    }
}

/// Writes weighted integers. Saturation is 1-Lipschitz, and at a multiple of the step; what `encoding` bounds stays away from
/// it.
pub(super) fn weigh(values: impl IntoIterator<Item = i128>, weight: u64, out: &mut [i64]) {
    let weight = i128::from(weight);
    let most = (1 << 61) / weight;
    for (slot, value) in out.iter_mut().zip(values) {
        *slot = (value.clamp(-most, most) * weight) as i64;
    }
}
