//! Products of queries along the attributes of sets, of the marginal table of each set.

use super::{Workload, kronecker, marginal, outer};
use crate::error::Error;
use crate::parallel::pieces;

/// Levels of each attribute.
pub(crate) fn levels(axes: &[Workload]) -> Vec<usize> {
    axes.iter().map(|axis| axis.input_len().unwrap_or(0)).collect()
}

/// The queries of the attributes of a set.
pub(crate) fn factors(axes: &[Workload], set: &[usize]) -> Vec<Workload> {
    set.iter().map(|i| axes[*i].clone()).collect()
}

/// Answers of a set.
pub(crate) fn answers(axes: &[Workload], set: &[usize]) -> usize {
    set.iter().map(|i| axes[*i].answers_len()).fold(1, usize::saturating_mul)
}

/// Whether sets and queries fit together.
pub(super) fn check(axes: &[Workload], sets: &[Vec<usize>]) -> Result<(), Error> {
    if axes.iter().any(|axis| !axis.input_len().is_some_and(|len| (2..=1 << 16).contains(&len)) || !axis.is_listed()) {
        return Err(Error::invalid("queries", "of an attribute are of 2 to 65536 levels, and at most 2^26"));
    }
    sets.iter().filter(|set| !set.is_empty()).try_for_each(|set| kronecker::check(&factors(axes, set)))
}

/// The answers of every set, from the table of all attributes.
pub(super) fn apply(axes: &[Workload], sets: &[Vec<usize>], x: &[f64], out: &mut [f64]) {
    let levels = levels(axes);
    for (set, own) in sets.iter().zip(pieces(out, sets.iter().map(|set| answers(axes, set)))) {
        let mut table = vec![0.0; super::cells(&levels, set)];
        marginal(x, &levels, set, &mut table);
        answer(axes, set, &table, own);
    }
}

/// The answers of a set from its table.
pub(crate) fn answer(axes: &[Workload], set: &[usize], table: &[f64], out: &mut [f64]) {
    if set.is_empty() {
        out.copy_from_slice(table);
    } else {
        kronecker::apply(&factors(axes, set), table, out);
    }
}

/// Row `t`.
pub(super) fn write_row(axes: &[Workload], sets: &[Vec<usize>], t: usize, row: &mut [f64]) {
    let mut rest = t;
    for set in sets {
        let count = answers(axes, set);
        if rest < count {
            let mut lines: Vec<Vec<f64>> = axes.iter().map(|axis| vec![1.0; axis.input_len().unwrap_or(0)]).collect();
            for i in set.iter().rev() {
                lines[*i].fill(0.0);
                axes[*i].write_row(rest % axes[*i].answers_len(), &mut lines[*i]);
                rest /= axes[*i].answers_len();
            }
            row.copy_from_slice(&outer(&lines));
            return;
        }
        rest -= count;
    }
}

/// Squared norms of the rows.
pub(super) fn row_squares(axes: &[Workload], sets: &[Vec<usize>], out: &mut [f64]) {
    let levels = levels(axes);
    for (set, own) in sets.iter().zip(pieces(out, sets.iter().map(|set| answers(axes, set)))) {
        let outside: f64 = (0..axes.len()).filter(|i| !set.contains(i)).map(|i| levels[i] as f64).product();
        let mut each: Vec<Vec<f64>> = set
            .iter()
            .map(|i| {
                let mut squares = vec![0.0; axes[*i].answers_len()];
                axes[*i].row_squares(&mut squares);
                squares
            })
            .collect();
        each.push(vec![outside]);
        own.copy_from_slice(&outer(&each));
    }
}

/// Smallest and largest magnitude of an entry that is not zero.
pub(super) fn magnitudes(axes: &[Workload], sets: &[Vec<usize>]) -> (f64, f64) {
    let of = |set: &Vec<usize>| kronecker::magnitudes(&factors(axes, set));
    sets.iter().map(of).fold((f64::INFINITY, 0.0), |(a, b), (c, d)| (a.min(c), b.max(d)))
}
