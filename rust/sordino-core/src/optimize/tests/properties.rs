//! Random matrices: low rank, equal and zero rows and columns, scales from e^-9 to e^9.

use super::super::{Queries, mean_strategy, triangular, worst_strategy};
use super::*;
use proptest::prelude::*;

const GAP: f64 = 1e-4;

/// A matrix `X Y` of rank at most `r`, entries from a small set or a range, rows and columns scaled, some repeated.
pub(super) fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f64>)> {
    (1usize..=8, 1usize..=12, 1usize..=8, 0u8..3).prop_flat_map(|(m, n, r, kind)| {
        let entry = move || match kind {
            0 => prop_oneof![Just(0.0), Just(1.0)].boxed(),
            1 => prop_oneof![Just(-1.0), Just(1.0)].boxed(),
            _ => (-1.0f64..1.0).boxed(),
        };
        let scales = |len| prop::collection::vec(prop_oneof![Just(0.0), -9.0f64..9.0], len);
        let sources = prop::collection::vec(0..n, n);
        let left = prop::collection::vec(entry(), m * r);
        let right = prop::collection::vec(entry(), r * n);
        (left, right, scales(m), scales(n), sources, any::<bool>()).prop_map(
            move |(left, right, by_row, by_column, sources, repeat)| {
                let left = DMatrix::from_row_slice(m, r, &left);
                let core = left * DMatrix::from_row_slice(r, n, &right);
                let a = rows(m, n, |i, j| {
                    let source = if repeat { sources[j] } else { j };
                    core[(i, source)] * (by_row[i] / 2.0 + by_column[source] / 2.0).exp()
                });
                (m, n, a)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn certificates_hold((m, n, a) in matrices(), tilt in prop::collection::vec(0.1f64..1.0, 20)) {
        prop_assume!(a.iter().any(|a| *a != 0.0));
        let queries = Queries::new(m, n, &a).unwrap();
        let mean = run(|progress| mean_strategy(queries, None, target(GAP), progress)).unwrap();
        let worst = run(|progress| worst_strategy(queries, target(GAP), progress)).unwrap();
        near(verify(&a, &mean).mean, mean.upper, 1e-11);
        near(verify(&a, &worst).worst, worst.upper, 1e-11);
        prop_assert!(mean.gap <= GAP && worst.gap <= GAP, "{} {}", mean.gap, worst.gap);
        // Weak duality at other weights: no upper bound may undercut them.
        let normal = |w: &[f64]| -> Vec<f64> { let t: f64 = w.iter().sum(); w.iter().map(|w| w / t).collect() };
        let (u, v) = (normal(&tilt[..m]), normal(&tilt[8..8 + n]));
        let by_columns = DMatrix::from_row_slice(m, n, &a);
        let uniform = vec![1.0 / m as f64; m];
        prop_assert!(nuclear(by_columns.as_slice(), &uniform, &v) <= mean.upper * (1.0 + 1e-12));
        prop_assert!(nuclear(by_columns.as_slice(), &u, &v) <= worst.upper * (1.0 + 1e-12));
        // And each optimum against the other's strategy.
        prop_assert!(mean.lower <= verify(&a, &worst).mean * (1.0 + 1e-12));
        prop_assert!(worst.lower <= verify(&a, &mean).worst * (1.0 + 1e-12));
        prop_assert!(mean.lower <= worst.upper * (1.0 + 1e-12));
    }

    #[test]
    fn rotation_keeps_the_gram_matrix(entries in prop::collection::vec(-1.0f64..1.0, 36)) {
        let b = DMatrix::from_row_slice(6, 6, &entries) + DMatrix::identity(6, 6) * 4.0;
        let found = triangular(6, b.transpose().as_slice(), &prefix(6)).unwrap();
        let c = DMatrix::from_row_slice(6, 6, &found.strategy);
        let norm = b.column_iter().map(|c| c.norm()).fold(0.0, f64::max);
        prop_assert!((c.transpose() * &c * (norm * norm) - b.transpose() * &b).amax() < 1e-12);
        let d = DMatrix::from_row_slice(6, 6, &found.decode);
        prop_assert!((&d * &c - DMatrix::from_row_slice(6, 6, &prefix(6))).amax() < 1e-13);
        for i in 0..6 {
            prop_assert!(c[(i, i)] > 0.0 && (i + 1..6).all(|j| c[(i, j)] == 0.0 && d[(i, j)] == 0.0));
        }
    }
}
