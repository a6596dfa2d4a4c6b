//! Lower bounds and hereditary discrepancy: reference values, and brute force on small matrices.

use super::super::{
    Queries, coloring, determinant_bound, hereditary_discrepancy, mean_strategy, spectral_bound, volume_bound,
    worst_strategy,
};
use super::properties::matrices;
use super::*;
use crate::error::Error;
use proptest::prelude::*;
use std::f64::consts::PI;

/// Equal to all printed digits.
fn printed(value: f64, digits: &str) {
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    assert_eq!(format!("{value:.decimals$}"), digits);
}

fn sylvester(n: usize) -> Vec<f64> {
    rows(n, n, |i, j| if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 })
}

/// All marginals of two of eight bits.
fn pairs() -> Vec<f64> {
    let sets: Vec<usize> = (0usize..256).filter(|s| s.count_ones() == 2).collect();
    let tables: Vec<(usize, usize)> =
        sets.iter().flat_map(|s| (0..256).filter(move |c| c & !s == 0).map(move |c| (*s, c))).collect();
    rows(tables.len(), 256, |i, j| f64::from(u8::from(j & tables[i].0 == tables[i].1)))
}

struct Reference {
    queries: (usize, usize, Vec<f64>),
    /// Half the root of the determinant, and the sizes it may be found at: elimination has ties.
    determinant: (&'static str, std::ops::RangeInclusive<usize>),
    /// Uniform and weighted bound of singular values, and the number of cells.
    spectral: ([&'static str; 2], usize),
    /// `γ₂` and `5 t_m γ₂`.
    upper: [&'static str; 2],
    /// Signs that sixteen walks must find.
    signs: f64,
}

#[test]
fn hereditary_discrepancies() {
    let table = [
        Reference {
            queries: (64, 64, prefix(64)),
            determinant: ("0.5", 1..=1),
            spectral: (["1.0", "1.0"], 1),
            upper: ["2.1114", "26.9"],
            signs: 4.0,
        },
        Reference {
            queries: (2080, 64, ranges(64).1),
            determinant: ("0.5", 1..=1),
            spectral: (["0.71", "0.98"], 1),
            upper: ["2.4886", "44.6"],
            signs: 6.0,
        },
        Reference {
            queries: (64, 64, sylvester(64)),
            determinant: ("4.0", 64..=64),
            spectral: (["8.0", "8.0"], 64),
            upper: ["8.0000", "102"],
            signs: 24.0,
        },
        Reference {
            queries: (64, 256, signs(64, 256)),
            determinant: ("2.83", 60..=64),
            spectral: (["3.34", "3.33"], 28),
            upper: ["7.7555", "98.9"],
            signs: 14.0,
        },
        Reference {
            queries: (112, 256, pairs()),
            determinant: ("0.81", 28..=32),
            spectral: (["1.07", "1.07"], 14),
            upper: ["2.5729", "35.2"],
            signs: 4.0,
        },
    ];
    for Reference { queries: (m, n, a), determinant, spectral, upper, signs } in table {
        let queries = Queries::new(m, n, &a).unwrap();
        let found = run(|progress| worst_strategy(queries, target(2e-6), progress)).unwrap();
        let bounds = hereditary_discrepancy(queries, &found).unwrap();
        printed(bounds.determinant.discrepancy, determinant.0);
        assert!(determinant.1.contains(&bounds.determinant.size), "{}", bounds.determinant.size);
        printed(bounds.uniform.value, spectral.0[0]);
        printed(bounds.weighted.value, spectral.0[1]);
        assert_eq!(bounds.uniform.columns.len(), spectral.1);
        printed(found.upper, upper[0]);
        printed(bounds.banaszczyk, upper[1]);
        // The walk proves √(2 ln 2m) γ₂ or less, four times less.
        assert!(bounds.walk <= (2.0 * (2.0 * m as f64).ln()).sqrt() * found.upper * (1.0 + 1e-9));
        assert_eq!((bounds.entry, bounds.upper), (1.0, bounds.walk));
        assert!(bounds.lower >= 1.0 && bounds.lower < bounds.upper);
        let best = run(|progress| coloring(queries, &found, 16, 1, progress)).unwrap();
        assert!(best.discrepancy <= signs, "{} is above {signs}", best.discrepancy);
        assert!(best.discrepancy < bounds.upper);
    }
}

/// `max_i |Σ_j a_ij χ_j|` least over signs of the cells in `set`.
fn discrepancy(m: usize, n: usize, a: &[f64], set: u32) -> f64 {
    let sum = |row: &[f64], plus: u32| -> f64 {
        let sign = |j: usize| f64::from(set >> j & 1) * (2.0 * f64::from(plus >> j & 1) - 1.0);
        row.iter().enumerate().map(|(j, a)| a * sign(j)).sum()
    };
    let worst = |plus: u32| (0..m).map(|i| sum(&a[i * n..][..n], plus).abs()).fold(0.0, f64::max);
    (0..1u32 << n).filter(|plus| plus & !set == 0).map(worst).fold(f64::INFINITY, f64::min)
}

/// By permutations.
fn determinant(a: &DMatrix<f64>) -> f64 {
    let n = a.ncols();
    if n == 0 {
        return 1.0;
    }
    let minor = |j: usize| a.clone().remove_row(0).remove_column(j);
    (0..n).map(|j| (if j % 2 == 0 { 1.0 } else { -1.0 }) * a[(0, j)] * determinant(&minor(j))).sum()
}

fn small() -> impl Strategy<Value = (usize, usize, Vec<f64>)> {
    (1usize..=5, 1usize..=6, any::<bool>()).prop_flat_map(|(m, n, signed)| {
        let entry = prop_oneof![Just(if signed { -1.0 } else { 0.0 }), Just(1.0)];
        prop::collection::vec(entry, m * n).prop_map(move |a| (m, n, a))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_interval_holds_the_hereditary_discrepancy((m, n, a) in small(), seed in any::<u64>()) {
        prop_assume!(a.iter().any(|a| *a != 0.0));
        let queries = Queries::new(m, n, &a).unwrap();
        let found = run(|progress| worst_strategy(queries, target(1e-4), progress)).unwrap();
        let bounds = hereditary_discrepancy(queries, &found).unwrap();
        let truth = (1..1u32 << n).map(|set| discrepancy(m, n, &a, set)).fold(0.0, f64::max);
        prop_assert!(bounds.lower <= truth && truth <= bounds.upper, "{truth} is not in {bounds:?}");
        prop_assert!(truth <= bounds.banaszczyk);
        prop_assert!(bounds.determinant.discrepancy <= bounds.lower && bounds.uniform.value <= bounds.lower);
        // The signs found are signs, have the discrepancy they are said to have, and none have less than the least.
        let best = run(|progress| coloring(queries, &found, 2, seed, progress)).unwrap();
        prop_assert!(best.signs.len() == n && best.signs.iter().all(|sign| sign.abs() == 1));
        let row = |i: usize| (0..n).map(|j| a[i * n + j] * f64::from(best.signs[j])).sum::<f64>().abs();
        prop_assert_eq!(best.discrepancy, (0..m).map(row).fold(0.0, f64::max));
        prop_assert!(best.discrepancy >= discrepancy(m, n, &a, (1 << n) - 1));
    }

    #[test]
    fn determinants_and_singular_values((m, n, a) in matrices(), tilt in prop::collection::vec(0.0f64..1.0, 8)) {
        prop_assume!(a.iter().any(|a| *a != 0.0));
        let queries = Queries::new(m, n, &a).unwrap();
        let matrix = DMatrix::from_row_slice(m, n, &a);
        let uniform = vec![1.0 / m as f64; m];
        let total: f64 = tilt[..m].iter().sum();
        prop_assume!(total > 1e-3);
        let tilted: Vec<f64> = tilt[..m].iter().map(|w| w / total).collect();
        let worst = run(|progress| worst_strategy(queries, target(1e-3), progress)).unwrap();
        let mean = run(|progress| mean_strategy(queries, None, target(1e-3), progress)).unwrap();
        let mut last = [0.0; 4];
        for most in 1..=m.min(n) {
            let found = determinant_bound(queries, most).unwrap();
            let sizes = found.roots.len();
            prop_assert!(sizes <= most && found.size <= sizes && found.error_size <= most);
            for k in 1..=sizes.min(5) {
                // Compared while the determinant is more than the rounding of its terms.
                let (rows, columns) = (&found.rows[..k], &found.columns[..k]);
                let block = matrix.select_rows(rows).select_columns(columns);
                let expected = determinant(&block).abs();
                let rounding = 1e-12 * block.column_iter().map(|column| column.lp_norm(1)).product::<f64>();
                prop_assert!((found.roots[k - 1].powi(k as i32) - expected).abs() <= 1e-9 * expected + rounding);
            }
            let largest = found.roots.iter().copied().fold(0.0, f64::max);
            prop_assert!(2.0 * found.discrepancy <= largest * (1.0 + 1e-12));
            // Means of singular values: neither strategy can have a smaller error.
            prop_assert!(2.0 * found.discrepancy <= worst.upper);
            prop_assert!(found.error <= mean.upper);

            let mut values = [found.discrepancy, found.error, 0.0, 0.0];
            for (k, (given, weights)) in [(None, &uniform), (Some(&tilt[..m]), &tilted)].into_iter().enumerate() {
                let bound = spectral_bound(queries, most, given).unwrap();
                let size = bound.columns.len();
                prop_assert!(0 < size && size <= most);
                let block = matrix.select_columns(&bound.columns);
                let block = DMatrix::from_fn(m, size, |i, j| weights[i].sqrt() * block[(i, j)]);
                let singular = block.singular_values();
                let expected = (size as f64).sqrt() * singular.min();
                prop_assert!((bound.value - expected).abs() <= 1e-11 * (size as f64).sqrt() * singular.max());
                prop_assert!(bound.value <= [mean.upper, worst.upper][k]);
                values[2 + k] = bound.value;
            }
            // More cells never hurt.
            for (value, last) in values.iter().zip(&mut last) {
                prop_assert!(*value >= *last * (1.0 - 1e-8), "{values:?} at {most}");
                *last = *value;
            }
        }
    }

    #[test]
    fn volume_in_the_plane(points in prop::collection::vec((-1.0f64..1.0, -1.0f64..1.0), 2..12),
                           weights in prop::collection::vec(0.1f64..1.0, 12)) {
        let n = points.len();
        let a: Vec<f64> = points.iter().map(|p| p.0).chain(points.iter().map(|p| p.1)).collect();
        let area = hull_area(&points);
        prop_assume!(area > 1e-2);
        let longest = points.iter().map(|p| p.0.hypot(p.1)).fold(0.0, f64::max);
        // k = 1: the widest direction. k = 2: the area over that of the disc.
        let truth = longest.max(2.0 * (area / PI).sqrt()) / 2f64.sqrt();
        for weights in [None, Some(&weights[..n])] {
            let bound = volume_bound(Queries::new(2, n, &a).unwrap(), weights).unwrap();
            prop_assert!(bound.lower <= truth && truth <= bound.upper, "{truth} is not in {bound:?}");
            prop_assert!(bound.error < bound.lower / std::f64::consts::E && bound.error > bound.lower / 7.1);
        }
    }
}

/// Area of the convex hull of the points and their opposites, by the angles of its vertices.
fn hull_area(points: &[(f64, f64)]) -> f64 {
    let mut all: Vec<(f64, f64)> = points.iter().flat_map(|p| [*p, (-p.0, -p.1)]).collect();
    all.sort_by(|p, q| p.partial_cmp(q).unwrap());
    let cross = |o: (f64, f64), p: (f64, f64), q: (f64, f64)| (p.0 - o.0) * (q.1 - o.1) - (p.1 - o.1) * (q.0 - o.0);
    let chain = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut hull: Vec<(f64, f64)> = Vec::new();
        for p in points {
            while hull.len() > 1 && cross(hull[hull.len() - 2], hull[hull.len() - 1], p) <= 0.0 {
                hull.pop();
            }
            hull.push(p);
        }
        hull
    };
    let (lower, upper) = (chain(&mut all.iter().copied()), chain(&mut all.iter().rev().copied()));
    let hull: Vec<(f64, f64)> = lower[..lower.len() - 1].iter().chain(&upper[..upper.len() - 1]).copied().collect();
    let next = hull.iter().cycle().skip(1);
    0.5 * hull.iter().zip(next).map(|(p, q)| p.0 * q.1 - p.1 * q.0).sum::<f64>()
}

#[test]
fn volumes_of_cross_polytopes() {
    // As many cells as the rank: vol K = 2^n |det|/n!, and the lower bound is exact.
    for (n, a, determinant) in [(64, prefix(64), 0.0), (64, sylvester(64), 192.0 * 2f64.ln())] {
        let ball: f64 = (1..=32).map(|k| (PI / f64::from(k)).ln()).sum();
        let factorial: f64 = (1..=64).map(|k| f64::from(k).ln()).sum();
        let radius = ((64.0 * 2f64.ln() + determinant - factorial - ball) / 64.0).exp();
        let bound = volume_bound(Queries::new(n, n, &a).unwrap(), None).unwrap();
        near(bound.lower, 64.0 * radius / 8.0, 1e-9);
        assert_eq!(bound.size, 64);
    }
    // The cross-polytope itself is within π/2 of the slabs' bound, whatever the dimension.
    let bound = volume_bound(Queries::new(64, 64, &sylvester(64)).unwrap(), None).unwrap();
    assert!(bound.upper < 1.73 * bound.lower);
}

#[test]
fn pure_mechanisms_stay_above_the_proven_error() {
    // Total squared errors at ε = 1 of the best exact mechanisms known.
    let cases = [(64, 64, prefix(64), 1813.0), (64, 256, signs(64, 256), 14500.0), (112, 256, pairs(), 3980.0)];
    for (m, n, a, total) in cases {
        let bound = volume_bound(Queries::new(m, n, &a).unwrap(), None).unwrap();
        let known = f64::sqrt(total / m as f64);
        assert!(bound.error < bound.lower && bound.error < known && known < 40.0 * bound.error, "{known} {bound:?}");
    }
}

#[test]
fn scale_repetition_and_zero_cells_change_nothing_else() {
    let a = signs(6, 9);
    let padded = rows(6, 11, |i, j| if j < 9 { a[i * 9 + j] } else { f64::from(u8::from(j == 9)) * -a[i * 9] });
    for factor in [1.0, 2f64.powi(900), 2f64.powi(-900)] {
        let scaled: Vec<f64> = padded.iter().map(|a| a * factor).collect();
        let bounds = |m, n, a: &[f64]| {
            let queries = Queries::new(m, n, a).unwrap();
            let found = run(|progress| worst_strategy(queries, target(1e-6), progress)).unwrap();
            let discrepancy = hereditary_discrepancy(queries, &found).unwrap();
            let weights: Vec<f64> = (0..n).map(|j| if j < 9 { 1.0 } else { 0.0 }).collect();
            let volume = volume_bound(queries, Some(&weights)).unwrap();
            let determinant = discrepancy.determinant;
            [
                discrepancy.entry,
                discrepancy.uniform.value,
                discrepancy.banaszczyk,
                discrepancy.walk,
                determinant.discrepancy,
                determinant.error,
                determinant.roots[2],
                volume.lower,
                volume.upper,
                volume.error,
            ]
        };
        for (value, expected) in bounds(6, 11, &scaled).into_iter().zip(bounds(6, 9, &a)) {
            near(value / factor, expected, 2e-6);
        }
    }
}

#[test]
fn walks_repeat_and_improve() {
    let a = signs(16, 40);
    let queries = Queries::new(16, 40, &a).unwrap();
    let found = run(|progress| worst_strategy(queries, target(1e-3), progress)).unwrap();
    let best = |starts, seed| run(|progress| coloring(queries, &found, starts, seed, progress)).unwrap();
    assert_eq!(best(3, 5), best(3, 5));
    let mut seen = Vec::new();
    let mut watch = |start: usize, least: f64| {
        seen.push((start, least));
        if start == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = coloring(queries, &found, 100, 5, &mut watch).unwrap();
    assert_eq!(stopped, best(4, 5));
    assert!(seen.iter().map(|(start, _)| *start).eq(1..=4));
    assert!(seen.windows(2).all(|pair| pair[1].1 <= pair[0].1) && seen[3].1 == stopped.discrepancy);
    // Other signs from another seed.
    assert_ne!(best(1, 5).signs, best(1, 6).signs);
}

#[test]
fn refusals() {
    let a = [1.0, 0.0, 1.0, 1.0];
    let queries = Queries::new(2, 2, &a).unwrap();
    let found = run(|progress| worst_strategy(queries, target(1e-3), progress)).unwrap();
    assert!(determinant_bound(queries, 0).is_err() && spectral_bound(queries, 0, None).is_err());
    for weights in [&[1.0][..], &[1.0, -1.0], &[0.0, 0.0], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
        assert!(spectral_bound(queries, 2, Some(weights)).is_err(), "{weights:?}");
        assert!(volume_bound(queries, Some(weights)).is_err(), "{weights:?}");
    }
    // One cell spans a line.
    let flat = volume_bound(queries, Some(&[1.0, 0.0]));
    assert!(matches!(flat, Err(Error::InvalidParameter { name: "cell_weights", .. })));
    let signs = |queries, found: &Optimized, starts| run(|progress| coloring(queries, found, starts, 0, progress));
    assert!(signs(queries, &found, 0).is_err());
    let others = Queries::new(2, 2, &[1.0, 1.0, 0.0, 1.0]).unwrap();
    assert!(hereditary_discrepancy(others, &found).is_err());
    let wide = Queries::new(1, 4, &a).unwrap();
    assert!(hereditary_discrepancy(wide, &found).is_err() && signs(wide, &found, 1).is_err());
    let broken = Optimized { strategy: vec![f64::NAN; found.strategy.len()], ..found };
    assert!(hereditary_discrepancy(queries, &broken).is_err() && signs(queries, &broken, 1).is_err());
}
