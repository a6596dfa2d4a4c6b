//! Kronecker products `A_1 ⊗ … ⊗ A_k`: the queries of every factor along its own axes of a table.

use super::{Workload, fill};
use crate::error::Error;
use crate::order::in_order;

/// Whether a matrix can be made of the factors, with entries that neither overflow nor vanish.
pub(super) fn check(factors: &[Workload]) -> Result<(), Error> {
    if factors.is_empty() {
        return Err(Error::invalid("factors", "must name at least one workload"));
    }
    if factors.iter().any(|factor| factor.input_len().is_none()) {
        return Err(Error::invalid("factors", "the full table of a factor is too large"));
    }
    let (least, most) = magnitudes(factors);
    if least < 1e-150 || most > 1e150 {
        return Err(Error::invalid("factors", "products of entries must be between 1e-150 and 1e150 in magnitude"));
    }
    Ok(())
}

/// Smallest and largest magnitude of an entry that is not zero.
pub(super) fn magnitudes(factors: &[Workload]) -> (f64, f64) {
    factors.iter().map(Workload::magnitudes).fold((1.0, 1.0), |(a, b), (c, d)| (a * c, b * d))
}

/// `out = (A_1 ⊗ … ⊗ A_k) x`, one axis after the other.
pub(super) fn apply(factors: &[Workload], x: &[f64], out: &mut [f64]) {
    let sizes = |factor: &Workload| (factor.input_len().unwrap_or(0), factor.answers_len());
    // Axes that shrink most come first. So the table shrinks, then grows: it is never larger than input or output.
    let growth = |i: usize| sizes(&factors[i]).1 as f64 / sizes(&factors[i]).0 as f64;
    let order = in_order(factors.len(), &growth);
    let mut shape: Vec<usize> = factors.iter().map(|factor| sizes(factor).0).collect();
    let mut table = x.to_vec();
    for axis in order {
        if !matches!(factors[axis], Workload::Histogram { .. }) {
            let inner = shape[axis + 1..].iter().product();
            table = along(sizes(&factors[axis]), inner, &table, |line, out| factors[axis].apply(line, out));
            shape[axis] = sizes(&factors[axis]).1;
        }
    }
    out.copy_from_slice(&table);
}

/// A map of `n` numbers to `m` along the middle axis of a table of any size by `n` by `inner`.
pub(crate) fn along<T, U>(
    (n, m): (usize, usize),
    inner: usize,
    table: &[T],
    map: impl Fn(&[T], &mut [U]) + Sync,
) -> Vec<U>
where
    T: Copy + Sync,
    U: Copy + Default + Send,
{
    let lines = table.len() / n;
    let mut answers = vec![U::default(); lines * m];
    // At least a pass over what goes in and comes out.
    fill(&mut answers, m, table.len() + lines * m, |line, out| {
        let first = line / inner * n * inner + line % inner;
        let x: Vec<T> = (0..n).map(|j| table[first + j * inner]).collect();
        map(&x, out);
    });
    if inner == 1 {
        return answers;
    }
    let mut out = vec![U::default(); lines * m];
    for (line, answers) in answers.chunks_exact(m).enumerate() {
        let first = line / inner * m * inner + line % inner;
        for (r, value) in answers.iter().enumerate() {
            out[first + r * inner] = *value;
        }
    }
    out
}

/// Row `t`: the outer product of a row of every factor.
pub(super) fn write_row(factors: &[Workload], t: usize, row: &mut [f64]) {
    let mut rest = t;
    let mut lines = Vec::with_capacity(factors.len());
    for factor in factors.iter().rev() {
        let mut line = vec![0.0; factor.input_len().unwrap_or(0)];
        factor.write_row(rest % factor.answers_len(), &mut line);
        rest /= factor.answers_len();
        lines.push(line);
    }
    lines.reverse();
    row.copy_from_slice(&outer(&lines));
}

/// Squared norms of the rows: the outer product of those of the factors.
pub(super) fn row_squares(factors: &[Workload], out: &mut [f64]) {
    let squares: Vec<Vec<f64>> = factors
        .iter()
        .map(|factor| {
            let mut squares = vec![0.0; factor.answers_len()];
            factor.row_squares(&mut squares);
            squares
        })
        .collect();
    out.copy_from_slice(&outer(&squares));
}

/// `a_1 ⊗ … ⊗ a_k`, row-major.
pub(crate) fn outer(vectors: &[Vec<f64>]) -> Vec<f64> {
    vectors
        .iter()
        .fold(vec![1.0], |product, vector| product.iter().flat_map(|a| vector.iter().map(move |b| a * b)).collect())
}
