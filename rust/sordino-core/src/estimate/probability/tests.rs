//! Dense oracles, an enumeration of all supports, and properties.

use super::*;
use crate::estimate::accelerated::half_squared_distance;
use crate::estimate::simplex::project_simplex;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use std::ops::ControlFlow;

const ENOUGH: usize = 100_000;

/// Factors by rows, and what `project_measure` takes.
fn borrowed(factors: &[DMatrix<f64>]) -> Vec<(usize, usize, Vec<f64>)> {
    factors.iter().map(|f| (f.nrows(), f.ncols(), f.transpose().as_slice().to_vec())).collect()
}

fn limited(factors: &[DMatrix<f64>], y: &[f64], a: &[f64], limit: usize) -> Result<Measure, Error> {
    let owned = borrowed(factors);
    let factors: Vec<Factor<'_>> = owned.iter().map(|(t, g, f)| (*t, *g, &f[..])).collect();
    project_measure(&factors, y, a, limit, &mut |_, _| ControlFlow::Continue(()))
}

fn run(factors: &[DMatrix<f64>], y: &[f64], a: &[f64]) -> Measure {
    limited(factors, y, a, ENOUGH).unwrap()
}

/// `diag(a) (F_1 ⊗ … ⊗ F_d)`.
fn dense(factors: &[DMatrix<f64>], a: &[f64]) -> DMatrix<f64> {
    let kronecker = factors.iter().fold(DMatrix::identity(1, 1), |all: DMatrix<f64>, f| all.kronecker(f));
    DMatrix::from_diagonal(&DVector::from_column_slice(a)) * kronecker
}

/// `a ∘ y`.
fn weighted(y: &[f64], a: &[f64]) -> DVector<f64> {
    DVector::from_iterator(y.len(), y.iter().zip(a).map(|(y, a)| y * a))
}

/// Half the squared distance of `t` from the convex hull of the columns: the least over affine hulls of some of them
/// where no weight is negative.
fn least_objective(c: &DMatrix<f64>, t: &DVector<f64>) -> f64 {
    let mut best = f64::INFINITY;
    for subset in 1u32..1 << c.ncols() {
        let chosen: Vec<usize> = (0..c.ncols()).filter(|g| subset >> g & 1 == 1).collect();
        let origin = c.column(chosen[0]);
        let edges = DMatrix::from_fn(t.len(), chosen.len() - 1, |i, j| c[(i, chosen[j + 1])] - origin[i]);
        let largest = if edges.is_empty() { 0.0 } else { edges.amax() };
        let weights = if largest == 0.0 {
            DVector::zeros(edges.ncols())
        } else {
            edges.clone().svd(true, true).solve(&(t - origin), 1e-9 * largest).unwrap()
        };
        if weights.iter().all(|w| *w >= -1e-9) && weights.sum() <= 1.0 + 1e-9 {
            best = best.min((edges * weights + origin - t).norm_squared() / 2.0);
        }
    }
    best
}

/// Shares nothing with the search: a probability vector, the objective from its definition, the Frank-Wolfe gap.
fn verify(factors: &[DMatrix<f64>], y: &[f64], a: &[f64], found: &Measure) -> f64 {
    let w = DVector::from_column_slice(&found.weights);
    assert!(w.iter().all(|w| *w >= 0.0) && (w.sum() - 1.0).abs() < 1e-12, "sum {}", w.sum());
    let (c, t) = (dense(factors, a), weighted(y, a));
    let residual = &c * &w - &t;
    let objective = residual.norm_squared() / 2.0;
    let scale = t.norm_squared() + c.norm_squared();
    assert!((objective - found.objective).abs() <= 1e-12 * scale, "{objective}, {}", found.objective);
    let slopes = c.transpose() * residual;
    slopes.dot(&w) - slopes.min()
}

fn converged(y: &[f64], a: &[f64], found: &Measure) -> bool {
    found.gap <= (EXACT_GAP * weighted(y, a).norm_squared() / 2.0).max(GAP * found.objective)
}

/// Numbers in [−1, 1) from a linear congruence (Knuth's constants).
fn noise(len: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 2f64.powi(52) - 1.0
    };
    (0..len).map(|_| draw()).collect()
}

/// Chebyshev polynomials of degree below `t` on a uniform grid of [−1, 1].
fn chebyshev(t: usize, g: usize) -> DMatrix<f64> {
    DMatrix::from_fn(t, g, |m, k| (m as f64 * (2.0 * k as f64 / (g - 1) as f64 - 1.0).acos()).cos())
}

/// Chebyshev moments of so many points somewhere in the cube, and the uniform noise added to all but the first.
fn moments(dims: usize, t: usize, points: usize, std: f64) -> Vec<f64> {
    let draws = noise(points * dims + t.pow(dims as u32));
    let (places, noise) = draws.split_at(points * dims);
    let mut y = vec![0.0; noise.len()];
    for place in places.chunks_exact(dims) {
        let image = place.iter().fold(vec![1.0], |image, u| {
            let angle = (0.5 * u + 0.3).acos();
            image.iter().flat_map(|p| (0..t).map(move |m| p * (m as f64 * angle).cos())).collect()
        });
        y.iter_mut().zip(&image).for_each(|(y, p)| *y += p / points as f64);
    }
    y.iter_mut().zip(noise).skip(1).for_each(|(y, w)| *y += 3f64.sqrt() * std * w);
    y
}

/// Factors, target and weights, some of them zero; at most so many grid points.
fn instances(most: usize) -> impl Strategy<Value = (Vec<DMatrix<f64>>, Vec<f64>, Vec<f64>)> {
    let sizes = prop::collection::vec((1usize..=3, 1usize..=4), 1..=3);
    let small = sizes.prop_filter("too many", move |s| s.iter().map(|(_, g)| g).product::<usize>() <= most);
    small.prop_flat_map(|sizes| {
        let rows: usize = sizes.iter().map(|(t, _)| t).product();
        let factor = |(t, g): (usize, usize)| {
            let entry = prop_oneof![Just(0.0), Just(1.0), -2.0f64..2.0];
            prop::collection::vec(entry, t * g).prop_map(move |f| DMatrix::from_column_slice(t, g, &f))
        };
        let factors: Vec<_> = sizes.into_iter().map(factor).collect();
        let weight = prop_oneof![1 => Just(0.0), 4 => 0.1f64..3.0];
        let weights = prop::collection::vec(weight, rows).prop_filter("zero", |a| a.iter().any(|a| *a > 0.0));
        (factors, prop::collection::vec(-3.0f64..3.0, rows), weights)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn products_are_those_of_the_kronecker_product((factors, y, a) in instances(64)) {
        let owned = borrowed(&factors);
        let operator =
            TensorOperator::new(&owned.iter().map(|(t, g, f)| (*t, *g, &f[..])).collect::<Vec<_>>(), &a).unwrap();
        let all = dense(&factors, &a);
        let c = all.select_rows(&(0..a.len()).filter(|m| a[*m] > 0.0).collect::<Vec<_>>());
        prop_assert_eq!((operator.rows(), operator.columns()), c.shape());
        prop_assert!(operator.squared_norm_bound() >= c.clone().singular_values().max().powi(2) * (1.0 - 1e-12));
        let near = |got: &[f64], want: DVector<f64>| (DVector::from_column_slice(got) - want).amax() < 1e-9;
        let (w, rho) = (noise(c.ncols()), noise(c.nrows()));
        let (mut image, mut slopes) = (vec![f64::NAN; c.nrows()], vec![f64::NAN; c.ncols()]);
        operator.apply(&w, &mut image);
        prop_assert!(near(&image, &c * DVector::from_column_slice(&w)));
        operator.adjoint(&rho, &mut slopes);
        prop_assert!(near(&slopes, c.transpose() * DVector::from_column_slice(&rho)));
        let measured: Vec<f64> = weighted(&y, &a).iter().zip(&a).filter(|(_, a)| **a > 0.0).map(|(t, _)| *t).collect();
        prop_assert_eq!(operator.weighted(&y), measured);
    }

    #[test]
    fn least_of_all_supports((factors, y, a) in instances(8)) {
        let found = run(&factors, &y, &a);
        verify(&factors, &y, &a, &found);
        prop_assert!(converged(&y, &a, &found), "{found:?}");
        let (c, t) = (dense(&factors, &a), weighted(&y, &a));
        let least = least_objective(&c, &t);
        let rounding = 1e-9 * (c.norm_squared() + t.norm_squared());
        prop_assert!(found.objective >= least - rounding, "{} below {least}", found.objective);
        prop_assert!(found.objective - found.gap <= least + rounding, "{found:?} above {least}");
    }

    #[test]
    fn optimality_conditions((factors, y, a) in instances(64)) {
        let found = run(&factors, &y, &a);
        let steepest = verify(&factors, &y, &a, &found);
        prop_assert!(converged(&y, &a, &found), "{found:?}");
        // No direction into the simplex descends by more than near-optimality leaves: on the way to the least,
        // f(w) − g s + L s² D²/2 with s from 0 to 1 stays above f(w) − gap. D² is at most 2.
        let curvature = dense(&factors, &a).norm_squared();
        let descent = if steepest < 2.0 * curvature {
            steepest * steepest / (4.0 * curvature)
        } else {
            steepest - curvature
        };
        let rounding = 1e-12 * (curvature + weighted(&y, &a).norm_squared());
        prop_assert!(descent <= found.gap + rounding, "{steepest} {} {curvature}", found.gap);
    }

    #[test]
    fn a_measure_is_its_own_projection((factors, _, a) in instances(64), w in prop::collection::vec(0.0f64..1.0, 64)) {
        let points = factors.iter().map(DMatrix::ncols).product::<usize>();
        let w = DVector::from_column_slice(&w[..points]);
        prop_assume!(w.sum() > 0.1);
        let y = dense(&factors, &vec![1.0; a.len()]) * (&w / w.sum());
        let found = run(&factors, y.as_slice(), &a);
        let scale = weighted(y.as_slice(), &a).norm_squared();
        prop_assert!(found.objective <= EXACT_GAP * scale, "{} of {scale}", found.objective);
    }

    #[test]
    fn nearest_probability_vector(x in prop::collection::vec(prop_oneof![Just(0.25), -3.0f64..3.0], 1..8)) {
        let mut nearest = x.clone();
        project_simplex(&mut nearest, 1.0);
        prop_assert!((nearest.iter().sum::<f64>() - 1.0).abs() < 1e-14 && nearest.iter().all(|p| *p >= 0.0));
        // Every support, with the sum of 1 spread over it.
        let least = (1u32..1 << x.len())
            .filter_map(|subset| {
                let inside = |i: usize| subset >> i & 1 == 1;
                let sum: f64 = (0..x.len()).filter(|i| inside(*i)).map(|i| x[i]).sum();
                let shift = (sum - 1.0) / f64::from(subset.count_ones());
                let point: Vec<f64> = (0..x.len()).map(|i| if inside(i) { x[i] - shift } else { 0.0 }).collect();
                point.iter().all(|p| *p >= 0.0).then(|| half_squared_distance(&point, &x))
            })
            .fold(f64::INFINITY, f64::min);
        prop_assert!((half_squared_distance(&nearest, &x) - least).abs() < 1e-12);
    }
}

#[test]
fn far_probability_vectors() {
    for (mut x, nearest) in [
        (vec![1e300, 0.0], [1.0, 0.0]),
        (vec![-1e300, 1e300], [0.0, 1.0]),
        (vec![5e15, 5e15], [0.5, 0.5]),
        (vec![-7.0, -7.0], [0.5, 0.5]),
        (vec![1e16, 1e16 + 2.0], [0.0, 1.0]),
    ] {
        project_simplex(&mut x, 1.0);
        assert_eq!(x, nearest);
    }
}

/// `(F_1 ⊗ … ⊗ F_d) w`, point by point.
fn dense_image(factors: &[DMatrix<f64>], w: &[f64]) -> Vec<f64> {
    let mut image = vec![0.0; factors.iter().map(DMatrix::nrows).product()];
    for (mut g, w) in w.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        let mut features = vec![1.0];
        for f in factors.iter().rev() {
            let column = f.column(g % f.ncols());
            features = column.iter().flat_map(|f| features.iter().map(move |rest| f * rest)).collect();
            g /= f.ncols();
        }
        image.iter_mut().zip(features).for_each(|(slot, f)| *slot += w * f);
    }
    image
}

/// The case that it is made for.
#[test]
fn moments_with_noise() {
    let (factors, a) = (vec![chebyshev(12, 21); 3], vec![1.0; 1728]);
    let truth = moments(3, 12, 300, 0.0);
    let y = moments(3, 12, 300, 0.05);
    let found = limited(&factors, &y, &a, 2000).unwrap();
    assert!(found.gap <= GAP * found.objective, "gap {} of {}", found.gap, found.objective);
    assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found.weights.iter().all(|w| *w >= 0.0));
    // Closer to the truth than what was published, by far.
    let image = dense_image(&factors, &found.weights);
    let error = |values: &[f64]| values.iter().zip(&truth).map(|(y, t)| (y - t).powi(2)).sum::<f64>();
    assert!(error(&image) < 0.5 * error(&y), "{} of {}", error(&image), error(&y));
    assert!((half_squared_distance(&image, &y) - found.objective).abs() < 1e-12);
}

#[test]
fn the_callback_ends_it_with_the_best_so_far() {
    let (factors, a) = (vec![chebyshev(8, 11); 2], vec![1.0; 64]);
    let y = moments(2, 8, 50, 0.05);
    let owned = borrowed(&factors);
    let views: Vec<Factor<'_>> = owned.iter().map(|(t, g, f)| (*t, *g, &f[..])).collect();
    let mut last = f64::INFINITY;
    for rounds in [1, 2, 5, 20] {
        let mut seen = Vec::new();
        let mut stop = |iteration: usize, gap: f64| {
            seen.push((iteration, gap));
            if seen.len() == rounds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = project_measure(&views, &y, &a, ENOUGH, &mut stop).unwrap();
        verify(&factors, &y, &a, &found);
        assert_eq!((found.iterations, found.gap), seen[rounds - 1]);
        assert_eq!(found.iterations, rounds - 1);
        // The best of more is as good or better, and so is what is known of it.
        assert!(seen.is_sorted_by(|a, b| a.1 >= b.1), "{seen:?}");
        assert!(found.objective < last, "{} after {last}", found.objective);
        last = found.objective;
        assert_eq!(found, limited(&factors, &y, &a, rounds - 1).unwrap(), "the same as a limit");
    }
    assert_eq!(limited(&factors, &y, &a, 0).unwrap().weights, vec![1.0 / 121.0; 121]);
}

#[test]
fn nothing_to_choose() {
    let found = run(&[DMatrix::from_column_slice(2, 1, &[1.0, 3.0])], &[0.0, 1.0], &[1.0, 2.0]);
    assert_eq!((found.weights, found.objective, found.iterations), (vec![1.0], 8.5, 0));
    // Features that are zero, or the same everywhere.
    for value in [0.0, 1.0] {
        let found = run(&[DMatrix::from_element(1, 3, value)], &[2.0], &[1.0]);
        assert_eq!((found.objective, found.gap), ((2.0 - value).powi(2) / 2.0, 0.0));
    }
}

#[test]
fn refusals() {
    let one = [1.0, 2.0];
    let refused = |factors: &[Factor<'_>], y: &[f64], a: &[f64]| {
        project_measure(factors, y, a, 10, &mut |_, _| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    let (good, go) = ((1, 2, &one[..]), [1.0]);
    assert_eq!(refused(&[], &[], &[]), "factors: there must be at least one");
    assert_eq!(refused(&[good, (0, 2, &[])], &[], &[]), "factors: none may be empty");
    assert_eq!(refused(&[(2, 2, &one)], &go, &go), "factors has length 2, expected 4");
    assert_eq!(refused(&[(1, 2, &[1.0, f64::NAN])], &go, &go), "factors: every entry must be finite");
    assert_eq!(refused(&[good], &go, &one), "weights has length 2, expected 1");
    assert_eq!(refused(&[good], &one, &go), "target has length 2, expected 1");
    assert_eq!(refused(&[good], &[f64::INFINITY], &go), "target: every number must be finite");
    assert_eq!(refused(&[good], &go, &[-1.0]), "weights: every number must be finite and not negative");
    assert_eq!(refused(&[good], &go, &[0.0]), "weights: must not all be zero");
    assert!(refused(&[(usize::MAX, 2, &one)], &go, &go).contains("too large"));
    assert!(refused(&[(1, 2, &[1e200, 1.0])], &go, &go).contains("overflows"));
    assert!(refused(&[good], &[1e200], &go).contains("overflows"));
}
