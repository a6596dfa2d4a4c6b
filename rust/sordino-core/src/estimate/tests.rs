//! Brute force over faces, an independent certificate, and properties.

use super::*;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use std::cell::RefCell;
use std::ops::ControlFlow;

fn run(c: &DMatrix<f64>, t: &[f64], constraint: Constraint, tolerance: f64) -> Projection {
    let columns = DenseColumns::new(c.nrows(), c.ncols(), c.as_slice().to_vec()).unwrap();
    project(&columns, t, constraint, tolerance, MAX_ITERATIONS, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// The vertices of `C X`.
fn vertices(c: &DMatrix<f64>, constraint: Constraint) -> Vec<DVector<f64>> {
    let columns = |n: f64| c.column_iter().map(move |column| column * n);
    match constraint {
        Constraint::Total(n) => columns(n).collect(),
        Constraint::AtMost(n) => columns(n).chain([DVector::zeros(c.nrows())]).collect(),
        Constraint::Absolute(n) => columns(n).chain(columns(-n)).collect(),
    }
}

/// Squared distance of `t` from the convex hull: the least over affine hulls of vertices with weights in [0, 1].
fn brute_force(vertices: &[DVector<f64>], t: &DVector<f64>) -> f64 {
    let mut best = f64::INFINITY;
    for subset in 1u32..1 << vertices.len() {
        let chosen: Vec<&DVector<f64>> =
            (0..vertices.len()).filter(|k| subset >> k & 1 == 1).map(|k| &vertices[k]).collect();
        let origin = chosen[0];
        let others = DMatrix::from_fn(t.len(), chosen.len() - 1, |i, j| chosen[j + 1][i] - origin[i]);
        let weights = if chosen.len() == 1 {
            DVector::zeros(0)
        } else {
            let svd = others.clone().svd(true, true);
            let cut = 1e-10 * svd.singular_values.max();
            if cut == 0.0 { DVector::zeros(chosen.len() - 1) } else { svd.solve(&(t - origin), cut).unwrap() }
        };
        if weights.iter().all(|w| *w >= -1e-9) && weights.sum() <= 1.0 + 1e-9 {
            best = best.min((others * weights + origin - t).norm_squared());
        }
    }
    best
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Shares nothing with the solver: feasibility, the image and the gap from the weights alone.
fn verify(c: &DMatrix<f64>, t: &[f64], constraint: Constraint, found: &Projection) {
    let mut x = DVector::zeros(c.ncols());
    assert!(found.weights.is_sorted_by(|a, b| a.0 < b.0), "columns rise");
    for (j, weight) in &found.weights {
        assert!(*weight != 0.0);
        x[*j] = *weight;
    }
    let (sum, size) = (x.sum(), x.iter().map(|x: &f64| x.abs()).sum::<f64>());
    let n = constraint.size();
    let slack = 1e-12 * n;
    match constraint {
        Constraint::Total(_) => assert!(sum == size && (sum - n).abs() <= slack, "{sum} is not {n}"),
        Constraint::AtMost(_) => assert!(sum == size && sum <= n + slack, "{sum} is above {n}"),
        Constraint::Absolute(_) => assert!(size <= n + slack, "{size} is above {n}"),
    }
    let image = c * &x;
    let scale = 1e-12 * n * c.amax();
    assert!(image.iter().zip(&found.image).all(|(a, b)| (a - b).abs() <= scale));
    let slopes = c.transpose() * (&image - DVector::from_column_slice(t));
    let least = vertices(&DMatrix::from_row_slice(1, c.ncols(), slopes.as_slice()), constraint);
    let gap = slopes.dot(&x) - least.iter().map(|v| v[0]).fold(f64::INFINITY, f64::min);
    let rounding = 1e-12 * n * slopes.amax().max(c.amax() * n * c.amax());
    assert!((gap - found.gap).abs() <= rounding, "gap {gap}, reported {}", found.gap);
}

/// Matrices with equal, opposite and zero columns among them, a target and n.
fn instances(most: usize) -> impl Strategy<Value = (DMatrix<f64>, Vec<f64>, f64)> {
    (1usize..=5, 1..=most, 0u8..3).prop_flat_map(|(r, n, kind)| {
        let entry = match kind {
            0 => prop_oneof![Just(0.0), Just(1.0)].boxed(),
            1 => prop_oneof![Just(-1.0), Just(1.0)].boxed(),
            _ => (-3.0f64..3.0).boxed(),
        };
        let target = prop::collection::vec(-10.0f64..10.0, r);
        (prop::collection::vec(entry, r * n), target, prop_oneof![Just(1.0), 0.01f64..20.0])
            .prop_map(move |(entries, target, size)| (DMatrix::from_column_slice(r, n, &entries), target, size))
    })
}

fn constraints(n: f64) -> [Constraint; 3] {
    [Constraint::Total(n), Constraint::AtMost(n), Constraint::Absolute(n)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nearest_point_of_small_polytopes((c, t, n) in instances(5)) {
        for constraint in constraints(n) {
            let found = run(&c, &t, constraint, 1e-9);
            verify(&c, &t, constraint, &found);
            prop_assert!(found.gap <= 1e-9, "gap {}", found.gap);
            let least = brute_force(&vertices(&c, constraint), &DVector::from_column_slice(&t));
            let reached = squared_distance(&found.image, &t);
            // Half the squared distance is within the gap; the brute force rounds.
            prop_assert!((reached - least).abs() <= 3e-9 + 1e-8 * least, "{constraint:?}: {reached}, {least}");
        }
    }

    #[test]
    fn certificates_hold((c, t, n) in instances(40), tolerance in prop_oneof![Just(1.0), Just(1e-6)]) {
        for constraint in constraints(n) {
            let found = run(&c, &t, constraint, tolerance);
            verify(&c, &t, constraint, &found);
            prop_assert!(found.gap <= tolerance, "gap {}", found.gap);
        }
    }

    #[test]
    fn points_inside_stay((c, _, n) in instances(30), x in prop::collection::vec(0.0f64..1.0, 30)) {
        let mut x = DVector::from_column_slice(&x[..c.ncols()]);
        x *= n / x.sum().max(1e-9);
        for (constraint, scale) in [
            (Constraint::Total(n), 1.0),
            (Constraint::AtMost(n), 0.7),
            (Constraint::Absolute(n), -0.9),
        ] {
            prop_assume!((x.sum() - n).abs() <= 1e-9 * n);
            let t = &c * &x * scale;
            let found = run(&c, t.as_slice(), constraint, 1e-10);
            // An exact point of the set: ½‖ŷ − t‖² is at most the gap.
            prop_assert!(squared_distance(&found.image, t.as_slice()) <= 2e-10 + 1e-18 * n * n);
        }
    }

    #[test]
    fn a_larger_set_is_nearer((c, t, n) in instances(30), more in 1.0f64..3.0) {
        for (smaller, larger) in constraints(n).into_iter().zip(constraints(more * n)).skip(1) {
            let (near, far) = (run(&c, &t, larger, 1e-6), run(&c, &t, smaller, 1e-6));
            let distance = |found: &Projection| squared_distance(&found.image, &t);
            prop_assert!(distance(&near) <= distance(&far) + 2e-6);
        }
        let distance = |constraint| squared_distance(&run(&c, &t, constraint, 1e-6).image, &t);
        let nested = constraints(n).map(distance);
        prop_assert!(nested[2] <= nested[1] + 2e-6 && nested[1] <= nested[0] + 2e-6, "{nested:?}");
    }

    #[test]
    fn error_is_at_most_what_the_gap_promises(
        (c, w, n) in instances(30),
        z in prop::collection::vec(0.0f64..1.0, 30),
        tolerance in prop_oneof![Just(10.0), Just(1e-3)],
    ) {
        let mut z = DVector::from_column_slice(&z[..c.ncols()]);
        prop_assume!(z.sum() > 0.1);
        z *= n / z.sum();
        let y = &c * &z;
        let t = &y + DVector::from_column_slice(&w);
        for constraint in constraints(n) {
            let found = run(&c, t.as_slice(), constraint, tolerance);
            let noise = DVector::from_column_slice(&w);
            let polar = vertices(&c, constraint).iter().map(|v| v.dot(&noise).abs()).fold(0.0, f64::max);
            let error = squared_distance(&found.image, y.as_slice());
            prop_assert!(error <= (2.0 * polar + found.gap) * (1.0 + 1e-9) + 1e-9, "{error}, {polar}, {}", found.gap);
        }
    }
}

/// The bound on the error is attained: a segment, and noise that carries one end far past the other.
#[test]
fn promised_error_is_tight() {
    let c = DMatrix::from_row_slice(1, 1, &[1.0]);
    let found = run(&c, &[1.0 - 5.0], Constraint::Absolute(1.0), 0.0);
    assert_eq!((found.image[0], found.gap), (-1.0, 0.0));
    let far = run(&c, &[1.0 - 2.0], Constraint::Absolute(1.0), 0.0);
    // ‖ŷ − y‖² = 4 = 2‖w‖°.
    assert_eq!(far.image[0], -1.0);
}

#[test]
fn simplex_by_sorting() {
    // C = I: the projection onto the simplex subtracts one number from every entry and cuts at zero.
    let t = [0.3, 2.0, -1.0, 1.5, 0.9, 1.5];
    let found = run(&DMatrix::identity(6, 6), &t, Constraint::Total(3.0), 1e-12);
    let threshold = (2.0 + 1.5 + 1.5 + 0.9 - 3.0) / 4.0;
    for (y, t) in found.image.iter().zip(&t) {
        assert!((y - (t - threshold).max(0.0)).abs() < 1e-12, "{:?}", found.image);
    }
    assert_eq!(found.weights.iter().map(|w| w.0).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn of_equal_columns_the_first_is_used() {
    let c = DMatrix::from_row_slice(2, 5, &[0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    let found = run(&c, &[2.0, 1.0], Constraint::Total(3.0), 1e-12);
    assert_eq!(found.weights.iter().map(|w| w.0).collect::<Vec<_>>(), [0, 1]);
    assert!((found.weights[0].1 - 1.0).abs() < 1e-12 && (found.weights[1].1 - 2.0).abs() < 1e-12);
}

/// Prefix sums of `len` cells, without a matrix.
struct Prefix(usize);

impl Columns for Prefix {
    fn rows(&self) -> usize {
        self.0
    }

    fn count(&self) -> usize {
        self.0
    }

    fn product(&self, p: &[f64], out: &mut [f64]) {
        let mut sum = 0.0;
        for (slot, p) in out.iter_mut().zip(p).rev() {
            sum += p;
            *slot = sum;
        }
    }

    fn column(&self, j: usize, out: &mut [f64]) {
        out.iter_mut().enumerate().for_each(|(i, slot)| *slot = f64::from(u8::from(i >= j)));
    }
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

#[test]
fn operators_and_bad_conditioning() {
    // Prefix sums of counts, rising in one direction only: condition number 4n/π, and near-equal columns.
    let n = 256;
    let noise = noise(n);
    let dense = DMatrix::from_fn(n, n, |i, j| f64::from(u8::from(i >= j)));
    for total in [100.0, 1e4, 1e6] {
        let t: Vec<f64> = (0..n).map(|i| (i / 32 + 1) as f64 / 8.0 * total + 30.0 * noise[i]).collect();
        let constraint = Constraint::AtMost(total);
        let found =
            project(&Prefix(n), &t, constraint, 1.0, MAX_ITERATIONS, &mut |_, _| ControlFlow::Continue(())).unwrap();
        verify(&dense, &t, constraint, &found);
        assert!(found.gap <= 1.0, "gap {} after {}", found.gap, found.iterations);
        let other = run(&dense, &t, constraint, 1.0);
        // Each within √g of the same point.
        assert!(squared_distance(&found.image, &other.image) <= 4.0);
        // Isotonic regression, in effect: the answers rise.
        assert!(found.image.is_sorted_by(|a, b| a <= b));
    }
}

#[test]
fn wide_matrices() {
    // More columns than the working set ever holds, and products on several threads.
    let (r, n) = (64, 8192);
    let c = DMatrix::from_column_slice(r, n, &noise(r * n));
    for (total, most) in [(5.0, 40), (1000.0, 40)] {
        let t: Vec<f64> = (0..r).map(|i| (c[(i, 7)] + c[(i, 4000)]) * total / 2.0 + c[(i, 5)]).collect();
        for constraint in constraints(total) {
            let found = run(&c, &t, constraint, 1e-6);
            verify(&c, &t, constraint, &found);
            assert!(found.gap <= 1e-6 && found.weights.len() <= most, "{constraint:?} {:?}", found.weights);
            assert_eq!(found, run(&c, &t, constraint, 1e-6));
        }
    }
}

#[test]
fn limits_are_kept_and_the_gap_is_honest() {
    let c = DMatrix::from_column_slice(8, 200, &noise(1600));
    let t: Vec<f64> = noise(8).iter().map(|w| 10.0 * w).collect();
    let columns = DenseColumns::new(8, 200, c.as_slice().to_vec()).unwrap();
    let constraint = Constraint::Total(30.0);
    let mut last = f64::INFINITY;
    for limit in [0, 1, 5, 20] {
        let found = project(&columns, &t, constraint, 0.0, limit, &mut |_, _| ControlFlow::Continue(())).unwrap();
        verify(&c, &t, constraint, &found);
        assert!(found.iterations <= limit && found.gap > 0.0, "{} {}", found.iterations, found.gap);
        // Every step descends.
        let distance = squared_distance(&found.image, &t);
        assert!(distance <= last, "{distance} after {limit}");
        last = distance;
    }
    let seen = RefCell::new(Vec::new());
    let mut stop = |iteration: usize, gap: f64| {
        seen.borrow_mut().push((iteration, gap));
        if seen.borrow().len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = project(&columns, &t, constraint, 0.0, MAX_ITERATIONS, &mut stop).unwrap();
    assert_eq!(seen.borrow()[2], (found.iterations, found.gap));
    // Unreachable: ends by itself where rounding begins.
    let found = project(&columns, &t, constraint, 0.0, MAX_ITERATIONS, &mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(found.gap < 1e-9, "{}", found.gap);
}

#[test]
fn nothing_to_share_out() {
    for constraint in constraints(0.0) {
        let found = run(&DMatrix::identity(2, 2), &[1.0, 2.0], constraint, 0.0);
        assert_eq!((found.weights.len(), found.image, found.gap), (0, vec![0.0; 2], 0.0));
    }
    // A zero column is as good as none.
    let found = run(&DMatrix::zeros(2, 1), &[1.0, 2.0], Constraint::Total(3.0), 0.0);
    assert_eq!((found.weights, found.image), (vec![(0, 3.0)], vec![0.0; 2]));
}

#[test]
fn refusals() {
    let columns = DenseColumns::new(1, 2, vec![1.0, 2.0]).unwrap();
    let refused = |target: &[f64], constraint, tolerance| {
        project(&columns, target, constraint, tolerance, 10, &mut |_, _| ControlFlow::Continue(())).is_err()
    };
    assert!(refused(&[1.0, 2.0], Constraint::Total(1.0), 0.1));
    assert!(refused(&[f64::NAN], Constraint::Total(1.0), 0.1));
    assert!(refused(&[1.0], Constraint::AtMost(-1.0), 0.1));
    assert!(refused(&[1.0], Constraint::Absolute(f64::INFINITY), 0.1));
    assert!(refused(&[1.0], Constraint::Total(1.0), f64::NAN));
    assert!(refused(&[1.0], Constraint::Total(1.0), -1.0));
    assert!(refused(&[1.5e300], Constraint::Total(1e300), 1.0));
    assert!(DenseColumns::new(2, 2, vec![0.0; 3]).is_err());
    assert!(DenseColumns::new(1, 1, vec![f64::INFINITY]).is_err());
    assert!(DenseColumns::new(0, 3, Vec::new()).is_err());
    assert!(DenseColumns::new(usize::MAX, 2, Vec::new()).is_err());
    let by_rows = DenseColumns::from_rows(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mut column = [0.0; 2];
    by_rows.column(1, &mut column);
    assert_eq!(column, [2.0, 5.0]);
}
