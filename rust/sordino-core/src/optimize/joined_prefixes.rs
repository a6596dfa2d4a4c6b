//! The singular values of intervals from below, by the root of all ranges.
//!
//! An interval is the difference of two of the n + 1 prefix sums, an edge of a graph with the Laplacian L. With S the root of the
//! Gram matrix of all ranges and `H = S^{-1} AᵀA S^{-1}` the norm of `A S^{-1} H^{-1/2}` is 1, so that `‖A‖_* ≥ tr H^{1/2} S`. Of any
//! c > 0 is `√H ≥ c^{-1/2} (1.5 cH − 0.5 c²H²)`, and the best makes that `a^{3/2} b^{-1/2}`, `a = tr H S = tr QL` and
//! `b = tr H² S = tr QL²/(n + 1)`, since L of all ranges is n + 1 times what leaves out the mean. But for what is the same for all
//! prefixes, `Q_ef = κ(e − f) + κ(e + f + 1)`, `κ(d) = (n + 1)^{-3/2}/2 · Σ_{k=1}^n cos(πkd/(n + 1))/sin(πk/(2n + 2))`.

use crate::error::Error;
use crate::interrupt::poll;
use crate::parallel::collected;
use crate::transform::fourier::RealFourier;
use crate::workload::{Workload, intervals};

/// Pairs of neighbours of a prefix: of more the bound takes too long.
const MOST_PAIRS: usize = 1 << 29;
/// Prefixes at a time.
const PREFIXES: usize = 1 << 10;

/// A lower bound on `‖A‖_*` of intervals, each row times the root of its weight: near it where they are spread evenly; zero where
/// many have an end in common.
///
/// # Errors
/// [`Error::Unsupported`] of other queries; [`Error::Interrupted`].
pub fn joined_prefixes(workload: &Workload) -> Result<f64, Error> {
    let Workload::Intervals { len, ends, weights } = workload else {
        return Err(Error::Unsupported("prefixes are joined by intervals".into()));
    };
    let count = len + 1;
    // The neighbours of each prefix one after the other, itself the last.
    let mut starts = vec![0usize; count + 1];
    for (first, end, _) in edges(ends, weights) {
        starts[first + 1] += 1;
        starts[end + 1] += 1;
    }
    let pairs = starts.iter().fold(0usize, |sum, d| sum.saturating_add((d + 1).saturating_mul(d + 1)));
    if pairs > MOST_PAIRS {
        return Ok(0.0);
    }
    for e in 0..count {
        starts[e + 1] += starts[e] + 1;
    }
    let mut row = vec![(0u32, 0.0); starts[count]];
    let mut next = starts.clone();
    for (e, last) in starts[1..].iter().enumerate() {
        row[last - 1].0 = e as u32;
    }
    for (first, end, weight) in edges(ends, weights) {
        for (e, f) in [(first, end), (end, first)] {
            row[next[e]] = (f as u32, -weight);
            next[e] += 1;
            row[starts[e + 1] - 1].1 += weight;
        }
    }
    let half: Vec<f64> =
        (0..=count)
            .map(|k| {
                if k % count == 0 { 0.0 } else { (k as f64 * std::f64::consts::FRAC_PI_2 / count as f64).sin().recip() }
            })
            .collect();
    let kernel = RealFourier::new(2 * count).even(&half);
    let at = |e: u32, f: u32| {
        kernel[e.abs_diff(f) as usize] + kernel[((e + f + 1) as usize).min(2 * count - (e + f + 1) as usize)]
    };
    let forms = collected(count.div_ceil(PREFIXES), &|piece| {
        poll()?;
        let (mut of_one, mut of_two) = (0.0, 0.0);
        for e in piece * PREFIXES..count.min((piece + 1) * PREFIXES) {
            let own = &row[starts[e]..starts[e + 1]];
            for (f, weight) in own {
                of_one += weight * at(*f, e as u32);
                of_two += weight * own.iter().map(|(g, other)| other * at(*f, *g)).sum::<f64>();
            }
        }
        Ok((of_one, of_two))
    });
    let forms = forms.into_iter().collect::<Result<Vec<(f64, f64)>, Error>>()?;
    let sum = |of: fn(&(f64, f64)) -> f64| forms.iter().map(of).sum::<f64>();
    // The kernel without its factor: a is that times the one sum, b that times the other over n + 1.
    let factor = 0.25 * (count as f64).powf(-1.5);
    let (a, b) = (factor * sum(|form| form.0), factor * sum(|form| form.1) / count as f64);
    Ok(if a > 0.0 && b > 0.0 { a * (a / b).sqrt() } else { 0.0 })
}

/// The prefixes that each interval joins, and its weight.
fn edges<'a>(ends: &'a [(u32, u32)], weights: &'a [f64]) -> impl Iterator<Item = (usize, usize, f64)> + 'a {
    intervals::weighted(ends, weights).map(|(first, last, weight)| (first, last + 1, weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{from_rows, singular_values};
    use proptest::prelude::*;

    fn nuclear_norm(workload: &Workload, weights: &[f64]) -> f64 {
        let (rows, columns, mut entries) = workload.dense().unwrap();
        for (row, weight) in entries.chunks_exact_mut(columns).zip(weights) {
            for v in row.iter_mut() {
                *v *= weight.sqrt();
            }
        }
        singular_values(&from_rows(rows, columns, &entries)).unwrap().iter().sum()
    }

    #[test]
    fn all_ranges_have_their_singular_values() {
        for len in [1, 2, 7, 30] {
            let ends: Vec<(u32, u32)> = (0..len as u32).flat_map(|i| (i..len as u32).map(move |j| (i, j))).collect();
            let ones = vec![1.0; ends.len()];
            let workload = Workload::Intervals { len, ends, weights: vec![] };
            let (found, known) = (joined_prefixes(&workload).unwrap(), nuclear_norm(&workload, &ones));
            assert!((found / known - 1.0).abs() < 1e-12, "{len}: {found} {known}");
        }
    }

    proptest! {
        #[test]
        fn never_above_the_nuclear_norm(
            len in 1usize..40,
            pairs in prop::collection::vec((0u32..40, 0u32..40, 1u32..9), 1..60),
            weighted in any::<bool>(),
        ) {
            let n = len as u32;
            let ends = pairs.iter().map(|(a, b, _)| ((a % n).min(b % n), (a % n).max(b % n))).collect();
            let weights: Vec<f64> = pairs.iter().map(|pair| if weighted { f64::from(pair.2) } else { 1.0 }).collect();
            let workload = Workload::Intervals { len, ends, weights: if weighted { weights.clone() } else { vec![] } };
            let (found, known) = (joined_prefixes(&workload).unwrap(), nuclear_norm(&workload, &weights));
            prop_assert!(found > 0.2 * known && found <= known * (1.0 + 1e-10), "{} {}", found, known);
        }
    }

    #[test]
    fn what_takes_too_long_has_none() {
        let ends = vec![(0, 1); 1 << 15];
        assert_eq!(joined_prefixes(&Workload::Intervals { len: 2, ends, weights: vec![] }).unwrap(), 0.0);
        assert!(joined_prefixes(&Workload::Ranges { len: 4 }).is_err());
    }
}
