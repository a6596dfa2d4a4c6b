//! The least ellipsoid, the base decomposition and the strategies on it.

use super::super::{
    BaseDecomposition, Coefficients, DenseStrategy, Ellipsoid, Noise, Queries, base_decomposition, dense_strategy,
    mean_strategy, minimum_ellipsoid,
};
use super::properties::matrices;
use super::*;
use proptest::prelude::*;

/// All marginals of `order` of eight bits.
fn marginals(order: u32) -> (usize, Vec<f64>) {
    let sets: Vec<usize> = (0usize..256).filter(|s| s.count_ones() == order).collect();
    let tables: Vec<(usize, usize)> =
        sets.iter().flat_map(|s| (0..256).filter(move |c| c & !s == 0).map(move |c| (*s, c))).collect();
    (tables.len(), rows(tables.len(), 256, |i, j| f64::from(u8::from(j & tables[i].0 == tables[i].1))))
}

/// Sums of twelve uniform variables, which no symmetry relates.
fn bells(m: usize, n: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..m * n).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect()
}

/// The second ellipsoid of the base decomposition of prefix sums, which touches at half of the columns.
fn second_level(n: usize) -> Vec<f64> {
    let found = decompose(n, n, &prefix(n), 1e-8);
    let directions = DMatrix::from_row_slice(n, n, &found.directions);
    let rest = directions.columns(n / 2, n / 2).transpose() * DMatrix::from_row_slice(n, n, &prefix(n));
    rest.transpose().as_slice().to_vec()
}

fn ellipsoid(m: usize, n: usize, a: &[f64], gap: f64) -> Ellipsoid {
    let found = run(|progress| minimum_ellipsoid(Queries::new(m, n, a).unwrap(), target(gap), progress)).unwrap();
    enclosing(a, &found);
    assert!(found.gap <= gap, "gap {}", found.gap);
    found
}

fn decompose(m: usize, n: usize, a: &[f64], gap: f64) -> BaseDecomposition {
    let found = run(|progress| base_decomposition(Queries::new(m, n, a).unwrap(), target(gap), progress)).unwrap();
    decomposed(a, &found);
    found
}

fn dense(m: usize, n: usize, a: &[f64], coefficients: Coefficients, noise: Noise, gap: f64) -> DenseStrategy {
    let queries = Queries::new(m, n, a).unwrap();
    let found = run(|progress| dense_strategy(queries, None, coefficients, noise, target(gap), progress)).unwrap();
    near(stacked(a, None, noise, &found).error, found.upper, 1e-11);
    found
}

/// Contact and gap from the entries: with `b_j` in the unit ball and `Σ u_j b_j b_jᵀ = I/(r (1 + gap))`, an ellipsoid
/// `G Bʳ` around all `b_j` has `tr (G Gᵀ)^{-1} ≤ r (1 + gap)`, hence `(det G)² ≥ (1 + gap)^{-r}`.
fn enclosing(a: &[f64], found: &Ellipsoid) {
    let (m, n, r) = (found.rows, found.columns, found.rank);
    let a = DMatrix::from_row_slice(m, n, a);
    let b = DMatrix::from_row_slice(r, n, &found.strategy);
    let f = DMatrix::from_row_slice(m, r, &found.decode);
    assert!((&f * &b - &a).amax() <= 1e-10 * a.amax(), "F B differs from A");
    assert!(b.column_iter().all(|column| column.norm() <= 1.0 + 2e-16 * r as f64));
    near(found.weights.iter().sum(), 1.0, 1e-12);
    assert!(found.weights.iter().all(|u| *u >= 0.0));
    let moment = &b * DMatrix::from_diagonal(&found.weights.clone().into()) * b.transpose();
    let identity = DMatrix::identity(r, r) / (r as f64 * (1.0 + found.gap));
    assert!((moment - identity).amax() <= 1e-11, "no proof of the gap");
    // The axes.
    assert!(found.axes.windows(2).all(|pair| pair[0] >= pair[1]));
    let squares = DMatrix::from_diagonal(&found.axes.clone().into()).map(|s| s * s);
    assert!((f.transpose() * f - squares).amax() <= 1e-12 * found.axes[0].powi(2));
}

/// Orthonormal columns that span those of the queries, in blocks that halve.
fn decomposed(a: &[f64], found: &BaseDecomposition) {
    let (m, n, r) = (found.rows, found.columns, found.rank);
    let a = DMatrix::from_row_slice(m, n, a);
    let u = DMatrix::from_row_slice(m, r, &found.directions);
    assert!((u.transpose() * &u - DMatrix::identity(r, r)).amax() <= 1e-13);
    let inside = u.transpose() * &a;
    assert!((&u * &inside - &a).amax() <= 1e-11 * a.amax(), "the columns are not spanned");
    let mut start = 0;
    for (d, radius) in found.dimensions.iter().zip(&found.radii) {
        let d = *d as usize;
        assert!(d >= (r - start).div_ceil(2), "{:?}", found.dimensions);
        let longest = inside.rows(start, d).column_iter().map(|column| column.norm()).fold(0.0, f64::max);
        assert!((longest - radius).abs() <= 1e-9 * radius + 1e-14 * a.amax(), "{longest} is not {radius}");
        start += d;
    }
    assert_eq!((start, found.dimensions.len()), (r, found.radii.len()));
}

/// What the entries of a strategy on blocks say.
struct Stacked {
    /// Largest size of a column.
    sensitivity: f64,
    /// Largest size of a difference of columns.
    replacement: f64,
    error: f64,
}

fn stacked(a: &[f64], weights: Option<&[f64]>, noise: Noise, found: &DenseStrategy) -> Stacked {
    let (m, n, r) = (found.rows, found.columns, found.rank);
    let a = DMatrix::from_row_slice(m, n, a);
    let b = DMatrix::from_row_slice(r, n, &found.strategy);
    let l = DMatrix::from_row_slice(m, r, &found.decode);
    assert!((&l * &b - &a).amax() <= 1e-10 * a.amax(), "L B differs from A");
    let blocks: Vec<(usize, usize)> = found
        .blocks
        .iter()
        .map(|d| *d as usize)
        .scan(0, |start, d| {
            *start += d;
            Some((*start - d, d))
        })
        .collect();
    assert_eq!(blocks.iter().map(|(_, d)| d).sum::<usize>(), r);
    let size = |column: &[f64]| {
        let norms = blocks.iter().map(|(start, d)| column[*start..start + d].iter().map(|b| b * b).sum::<f64>());
        match noise {
            Noise::Gaussian => norms.sum::<f64>().sqrt(),
            Noise::Blocks => norms.map(f64::sqrt).sum(),
        }
    };
    let columns: Vec<&[f64]> = b.as_slice().chunks(r).collect();
    let sensitivity = columns.iter().map(|column| size(column)).fold(0.0, f64::max);
    assert!(sensitivity <= 1.0 + 4e-16 * r as f64, "sensitivity {sensitivity}");
    let differ = |x: &[f64], y: &[f64]| size(&x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<_>>());
    let replacement = columns.iter().flat_map(|x| columns.iter().map(|y| differ(x, y))).fold(0.0, f64::max);
    let uniform = vec![1.0; m];
    let weights = weights.unwrap_or(&uniform);
    let total: f64 = weights.iter().sum();
    let mut error = 0.0;
    let mut bound = 0.0;
    let weighted = DMatrix::from_fn(m, n, |i, j| (m as f64 * weights[i] / total).sqrt() * a[(i, j)]);
    let column_norms = DMatrix::from_fn(m, r, |i, k| (m as f64 * weights[i] / total).sqrt() * l[(i, k)]);
    near(found.cell_weights.iter().sum(), 1.0, 1e-12);
    for ((start, d), radius) in blocks.iter().zip(&found.radii) {
        let part = column_norms.columns(*start, *d);
        // The block is a multiple s of orthonormal directions.
        let s = (part.norm_squared() / *d as f64).sqrt();
        let inside = part.transpose() * &weighted / s;
        let norms: Vec<f64> = inside.column_iter().map(|column| column.norm()).collect();
        let longest = norms.iter().copied().fold(0.0, f64::max);
        assert!((longest - radius).abs() <= 1e-9 * radius + 1e-12 * weighted.amax(), "{longest} is not {radius}");
        let (cost, power, sizes): (f64, f64, Vec<f64>) = match noise {
            Noise::Gaussian => (*d as f64, 0.5, norms.iter().map(|norm| norm * norm).collect()),
            Noise::Blocks => ((d * (d + 1)) as f64, 1.0 / 3.0, norms),
        };
        error += cost * s * s;
        let g: f64 = sizes.iter().zip(&found.cell_weights).map(|(size, v)| size * v).sum();
        bound += cost.powf(power) * g.powf(1.0 - power);
    }
    let bound = match noise {
        Noise::Gaussian => bound.powi(2),
        Noise::Blocks => bound.powi(3),
    };
    near((bound / m as f64).sqrt(), found.lower, 1e-8);
    assert!(found.lower <= found.upper && (found.upper / found.lower - 1.0 - found.gap).abs() < 1e-13);
    Stacked { sensitivity, replacement, error: (error / m as f64).sqrt() }
}

#[test]
fn ellipsoids() {
    // Sum of the squared axes; uniform weights are the optimum if there are as many columns as dimensions, and under
    // the symmetries of marginals.
    let (m, a) = ranges(64);
    let (two, by_two) = marginals(2);
    let (three, by_three) = marginals(3);
    for (m, n, a, squares) in
        [(64, 64, prefix(64), 2080.0), (m, 64, a, 45760.0), (two, 256, by_two, 1036.0), (three, 256, by_three, 5208.0)]
    {
        let found = ellipsoid(m, n, &a, 1e-9);
        near(found.axes.iter().map(|axis| axis * axis).sum(), squares, 1e-10);
        assert_eq!(found.iterations, 1);
    }
    // Columns of one length.
    let found = ellipsoid(64, 256, &signs(64, 256), 1e-6);
    near(found.axes.iter().map(|axis| axis * axis).sum(), 4096.0, 1.1e-6);
    assert!(found.iterations <= 10);
    let found = ellipsoid(128, 256, &second_level(256), 1e-6);
    assert!(found.weights.iter().filter(|u| **u > 1e-6).count() == 128 && found.iterations <= 12);
}

#[test]
fn ellipsoids_around_many_columns() {
    // All columns touch: only multiplicative updates.
    let found = ellipsoid(64, 4096, &signs(64, 4096), 1e-6);
    assert!(found.iterations <= 208, "{}", found.iterations);
    assert!(found.weights.iter().all(|u| *u > 0.0));
    // Few touch: the others are pruned, and Newton's method ends it.
    let found = ellipsoid(32, 2048, &bells(32, 2048), 1e-9);
    assert!(found.iterations <= 150, "{}", found.iterations);
    assert!(found.weights.iter().filter(|u| **u > 0.0).count() <= 500);
    // Few can be needed: columns join.
    let found = ellipsoid(5, 4096, &bells(5, 4096), 1e-9);
    assert!(found.iterations <= 60, "{}", found.iterations);
}

#[test]
fn one_dimension() {
    let found = ellipsoid(1, 3, &[2.0, -3.0, 0.0], 1e-9);
    near(found.axes[0], 3.0, 1e-12);
    assert!(found.weights[1] > 1.0 - 1e-8);
    assert_eq!(decompose(2, 2, &[1.0, 2.0, 2.0, 4.0], 1e-6).dimensions, [1]);
    for noise in [Noise::Gaussian, Noise::Blocks] {
        // Laplace noise is the block norm in one dimension: variance 2.
        let factor: f64 = if noise == Noise::Gaussian { 1.0 } else { 2.0 };
        for coefficients in [Coefficients::Printed, Coefficients::Rescaled, Coefficients::Optimal] {
            near(dense(1, 3, &[2.0, -3.0, 0.0], coefficients, noise, 1e-6).upper, 3.0 * factor.sqrt(), 1e-12);
        }
    }
}

/// A reference: dimensions of the blocks, and total squared errors of the three coefficients.
struct Reference {
    m: usize,
    n: usize,
    a: Vec<f64>,
    blocks: &'static [u32],
    gaussian: [f64; 3],
    /// `(Σ r_i √d_i)²`.
    closed: f64,
    pure: [f64; 2],
}

fn references() -> Vec<Reference> {
    let (m, a) = ranges(64);
    let (two, by_two) = marginals(2);
    vec![
        Reference {
            m: 64,
            n: 64,
            a: prefix(64),
            blocks: &[32, 16, 8, 4, 2, 1, 1],
            gaussian: [685.52, 444.45, 322.14],
            closed: 520.75,
            pure: [26814.0, 13523.0],
        },
        Reference {
            m,
            n: 64,
            a,
            blocks: &[32, 16, 8, 4, 2, 1, 1],
            gaussian: [18657.26, 12759.69, 12303.19],
            closed: 17718.22,
            pure: [1_259_265.0, 603_768.0],
        },
        Reference {
            m: 64,
            n: 256,
            a: signs(64, 256),
            blocks: &[32, 16, 8, 4, 2, 1, 1],
            gaussian: [12415.32, 4885.73, 4069.62],
            closed: 8373.07,
            pure: [1_989_081.0, 283_134.0],
        },
        // Eigenspaces of dimension 28, 8 and 1.
        Reference {
            m: two,
            n: 256,
            a: by_two,
            blocks: &[28, 8, 1],
            gaussian: [945.0, 945.0, 741.4052],
            closed: 741.4052,
            pure: [60354.0, 27772.0],
        },
    ]
}

/// To the digits of the reference.
fn digits(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 0.51 * if expected < 1e5 { 0.01 } else { 1.0 }, "{value} is not {expected}");
}

#[test]
fn reference_errors() {
    for Reference { m, n, a, blocks, gaussian, closed, pure } in references() {
        let all = [Coefficients::Printed, Coefficients::Rescaled, Coefficients::Optimal];
        let errors = all.map(|coefficients| {
            let found = dense(m, n, &a, coefficients, Noise::Gaussian, 1e-8);
            assert_eq!(found.blocks, blocks);
            (m as f64 * found.upper.powi(2), found)
        });
        for ((error, _), expected) in errors.iter().zip(gaussian) {
            digits(*error, expected);
        }
        let best = &errors[2].1;
        assert!(best.gap <= 1e-8);
        near(best.radii.iter().zip(blocks).map(|(r, d)| r * f64::from(*d).sqrt()).sum::<f64>().powi(2), closed, 2e-5);
        // Near the optimum of all strategies, and not below it.
        let queries = Queries::new(m, n, &a).unwrap();
        let optimum = run(|progress| mean_strategy(queries, None, target(1e-4), progress)).unwrap();
        assert!(optimum.lower <= best.upper && best.upper <= 1.08 * optimum.upper);
        for (coefficients, expected) in [Coefficients::Printed, Coefficients::Optimal].into_iter().zip(pure) {
            let found = dense(m, n, &a, coefficients, Noise::Blocks, 1e-8);
            let error = m as f64 * found.upper.powi(2);
            assert!((error - expected).abs() <= 1.5, "{error} is not {expected}");
        }
    }
}

#[test]
#[ignore = "seconds"]
fn more_reference_errors() {
    let a = prefix(256);
    for (coefficients, expected) in [Coefficients::Printed, Coefficients::Rescaled, Coefficients::Optimal]
        .into_iter()
        .zip([3916.57, 2496.70, 1860.06])
    {
        digits(256.0 * dense(256, 256, &a, coefficients, Noise::Gaussian, 1e-8).upper.powi(2), expected);
    }
    let (m, a) = marginals(3);
    for (coefficients, expected) in [Coefficients::Printed, Coefficients::Rescaled, Coefficients::Optimal]
        .into_iter()
        .zip([4620.0, 4620.0, 3558.71])
    {
        let found = dense(m, 256, &a, coefficients, Noise::Gaussian, 1e-8);
        assert_eq!(found.blocks, [56, 28, 8, 1]);
        digits(m as f64 * found.upper.powi(2), expected);
    }
    // Signs, a ball: one block, the ellipsoid norm, d²(d + 1).
    for n in [256, 4096] {
        let found = dense(16, n, &signs(16, n), Coefficients::Optimal, Noise::Blocks, 1e-8);
        assert_eq!(found.blocks, [16]);
        near(16.0 * found.upper.powi(2), 4352.0, 1e-7);
    }
}

#[test]
fn the_number_of_blocks_is_paid_for() {
    // Joint sensitivity as printed, under addition and under replacement; and what it were without the factor √k.
    let expected = [[0.8052, 1.1236, 2.130], [0.8270, 1.1865, 2.188], [0.6273, 1.0480, 1.660], [1.0, 1.2536, 1.732]];
    for (Reference { m, n, a, blocks, .. }, [joint, replaced, unpaid]) in references().into_iter().zip(expected) {
        let found = dense(m, n, &a, Coefficients::Printed, Noise::Gaussian, 1e-8);
        let printed = stacked(&a, None, Noise::Gaussian, &found);
        assert!((printed.sensitivity - joint).abs() <= 5.1e-5, "{}", printed.sensitivity);
        assert!((printed.replacement - replaced).abs() <= 5.1e-5, "{}", printed.replacement);
        assert!((printed.sensitivity * (blocks.len() as f64).sqrt() - unpaid).abs() < 6e-4);
        assert!(unpaid > 1.0);
        // No block is above its share.
        for (d, start) in blocks.iter().zip(blocks.iter().scan(0, |sum, d| Some(std::mem::replace(sum, *sum + d)))) {
            let (start, d) = (start as usize, *d as usize);
            let norm = |j: usize| (start..start + d).map(|i| found.strategy[i * n + j].powi(2)).sum::<f64>();
            near((0..n).map(norm).fold(0.0, f64::max), 1.0 / blocks.len() as f64, 1e-12);
        }
    }
}

#[test]
fn query_weights_replace_repetition() {
    let a = [1.0, 0.5, 0.0, 0.0, 1.0, 1.0, 2.0, 0.0, -1.0];
    let queries = Queries::new(3, 3, &a).unwrap();
    for noise in [Noise::Gaussian, Noise::Blocks] {
        let weights = Some(&[2.0, 1.0, 1.0][..]);
        let found =
            run(|progress| dense_strategy(queries, weights, Coefficients::Optimal, noise, target(1e-8), progress))
                .unwrap();
        near(stacked(&a, weights, noise, &found).error, found.upper, 1e-12);
        let repeated = dense(4, 3, &[&a[..3], &a].concat(), Coefficients::Optimal, noise, 1e-8);
        near(found.upper, repeated.upper, 1e-7);
    }
    let bad = Some(&[1.0, 0.0, 1.0][..]);
    let refused =
        run(|progress| dense_strategy(queries, bad, Coefficients::Optimal, Noise::Gaussian, target(1e-4), progress));
    assert!(refused.is_err());
}

#[test]
fn interrupted_runs_are_honest() {
    let (m, n) = (24, 1500);
    let a = bells(m, n);
    for last in [1, 2, 15, 40] {
        let mut calls = 0;
        let mut stop = |_, _| {
            calls += 1;
            if calls >= last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = minimum_ellipsoid(Queries::new(m, n, &a).unwrap(), target(1e-9), &mut stop).unwrap();
        assert!(found.iterations == last && calls == last && found.gap > 1e-9, "{calls} {}", found.gap);
        enclosing(&a, &found);
        let limit = Target { gap: 1e-9, iterations: last, start: None };
        let found = run(|progress| minimum_ellipsoid(Queries::new(m, n, &a).unwrap(), limit, progress)).unwrap();
        assert_eq!(found.iterations, last);
        enclosing(&a, &found);
    }
    let mut calls = 0;
    let mut stop = |_, _| {
        calls += 1;
        ControlFlow::Break(())
    };
    let queries = Queries::new(24, 100, &a[..2400]).unwrap();
    let found = dense_strategy(queries, None, Coefficients::Optimal, Noise::Gaussian, target(1e-6), &mut stop).unwrap();
    assert_eq!(calls, 1);
    near(stacked(&a[..2400], None, Noise::Gaussian, &found).error, found.upper, 1e-11);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn certificates_of_geometry_hold((m, n, a) in matrices(), tilt in prop::collection::vec(0.1f64..1.0, 8)) {
        prop_assume!(a.iter().any(|a| *a != 0.0));
        let found = ellipsoid(m, n, &a, 1e-8);
        decompose(m, n, &a, 1e-4);
        let queries = Queries::new(m, n, &a).unwrap();
        for noise in [Noise::Gaussian, Noise::Blocks] {
            let [printed, rescaled, optimal] =
                [Coefficients::Printed, Coefficients::Rescaled, Coefficients::Optimal].map(|coefficients| {
                    let weights = Some(&tilt[..m]);
                    let solve =
                        |progress: Progress<'_>| dense_strategy(queries, weights, coefficients, noise, target(1e-4), progress);
                    let found = run(solve).unwrap();
                    near(stacked(&a, weights, noise, &found).error, found.upper, 1e-10);
                    found
                });
            prop_assert!(optimal.gap <= 1e-4, "{}", optimal.gap);
            prop_assert!(optimal.lower <= rescaled.upper && rescaled.upper <= printed.upper * (1.0 + 1e-12));
        }
        // The volume does not change with the order of columns.
        let reversed = rows(m, n, |i, j| a[i * n + n - 1 - j]);
        let again = ellipsoid(m, n, &reversed, 1e-8);
        let log = |found: &Ellipsoid| found.axes.iter().map(|axis| axis.ln()).sum::<f64>();
        prop_assert!((log(&found) - log(&again)).abs() <= 1e-7 * found.rank as f64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Heavy tails, many columns, several of them equal: multiplicative updates, pruning, and Newton's method.
    #[test]
    fn many_columns(d in 1usize..28, n in 257usize..900, power in 1i32..5, seed in 0usize..64) {
        let bells = bells(d, n + seed);
        let a = rows(d, n, |i, j| bells[i * (n + seed) + seed + if j % 7 == 3 { j - 3 } else { j }].powi(power));
        ellipsoid(d, n, &a, 1e-8);
        decompose(d, n, &a, 1e-8);
    }
}
