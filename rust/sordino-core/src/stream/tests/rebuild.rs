//! Every square strategy rebuilt densely: `BC = A`, sensitivity over all neighbours, row norms of `B`.
//!
//! `C^{-1}` is what the process does with impulses, so it is the running code that is tested, not its tables.

use super::*;
use crate::domain::Domain;
use crate::optimize::{self, Prefixes};
use crate::stream::{Participation, clipped_sum};
use crate::toeplitz::{self, BufferedProblem};

/// Calls `f` with every set of at most `count` steps of `n` at least `separation` apart, and every sign.
pub(super) fn patterns(n: usize, count: usize, separation: usize, f: &mut impl FnMut(&[(usize, f64)])) {
    fn extend(
        taken: &mut Vec<(usize, f64)>,
        (n, count, separation): (usize, usize, usize),
        f: &mut impl FnMut(&[(usize, f64)]),
    ) {
        f(taken);
        if taken.len() == count {
            return;
        }
        for step in taken.last().map_or(0, |(last, _)| last + separation)..n {
            for sign in [1.0, -1.0] {
                taken.push((step, sign));
                extend(taken, (n, count, separation), f);
                taken.pop();
            }
        }
    }
    extend(&mut Vec::new(), (n, count, separation), f);
}

/// Largest `‖Cδ‖`.
pub(super) fn worst(c: &Matrix, count: usize, separation: usize, l1: bool) -> f64 {
    let mut worst = 0.0f64;
    patterns(c.columns, count, separation, &mut |pattern| {
        let shifts = (0..c.rows()).map(|i| pattern.iter().map(|(j, sign)| sign * c.at(i, *j)).sum::<f64>());
        worst = worst.max(if l1 { shifts.map(f64::abs).sum() } else { shifts.map(|v| v * v).sum::<f64>().sqrt() });
    });
    worst
}

/// Largest `‖C(e_a − e_b)‖` and `‖C e_a‖`.
pub(super) fn worst_exchange(c: &Matrix, l1: bool) -> f64 {
    let norm = |a: usize, b: Option<usize>| {
        let shifts = (0..c.rows()).map(|i| c.at(i, a) - b.map_or(0.0, |b| c.at(i, b)));
        if l1 { shifts.map(f64::abs).sum() } else { shifts.map(|v| v * v).sum::<f64>().sqrt() }
    };
    (0..c.columns).flat_map(|a| (0..=a).map(move |b| norm(a, (b < a).then_some(b)))).fold(0.0, f64::max)
}

/// What a plan claims of the products of columns holds.
pub(super) fn check_products(plan: &StreamPlan, c: &Matrix) {
    let n = c.columns;
    let product = |a: usize, b: usize| (0..c.rows()).map(|i| c.at(i, a) * c.at(i, b)).sum::<f64>();
    for j in 0..n {
        let products: Vec<f64> = (0..=j).map(|i| product(i, j)).collect();
        assert!(
            !plan.no_negative_products() || products.iter().all(|g| *g >= -1e-9),
            "{:?} {products:?}",
            plan.recipe()
        );
        let earlier = &products[..j];
        let falls = earlier.is_sorted_by(|further, nearer| *further <= nearer + 1e-9);
        assert!(!plan.falling_products() || (falls && plan.no_negative_products()), "{:?} {products:?}", plan.recipe());
    }
}

fn strategy_matrix(plan: &StreamPlan, n: usize) -> (Matrix, Matrix) {
    let (colouring, sizes) = colouring(plan, n);
    assert_eq!(sizes.len(), n, "one sample a step");
    for t in 0..n {
        assert!(colouring.row(t)[t + 1..].iter().all(|v| *v == 0.0), "noise of later steps");
    }
    (workload(&plan.recipe().filter, n).times(&colouring), colouring.inverse())
}

/// Whether the sensitivity is claimed to be attained, for one participation and for many.
fn exact(plan: &StreamPlan) -> (bool, bool) {
    let hard = matches!(plan.recipe().horizon, Horizon::Hard(_));
    match plan.recipe().mechanism {
        StreamMechanism::Identity => (true, hard),
        StreamMechanism::Output | StreamMechanism::Buffered { .. } | StreamMechanism::SquareRoot => (hard, hard),
        StreamMechanism::Comb => (false, false),
        _ => (hard, false),
    }
}

#[test]
fn sensitivity_bounds_every_neighbour() {
    for n in [1usize, 2, 5, 9] {
        for plan in square_plans(n as u64) {
            let (_, c) = strategy_matrix(&plan, n);
            let (one, many) = exact(&plan);
            check_products(&plan, &c);
            let (found, bound) =
                (worst_exchange(&c, false), plan.sensitivity(&[Participation::single().exchanged()]).get());
            assert!(found <= bound * (1.0 + 1e-11), "{:?} {n} exchange {found} {bound}", plan.recipe());
            let kinds = matches!(
                plan.recipe().mechanism,
                StreamMechanism::Buffered { .. } | StreamMechanism::SquareRoot | StreamMechanism::Optimal
            );
            assert!(
                !(one && kinds) || n == 1 || found >= bound * (1.0 - 1e-5),
                "{:?} {n} {found} {bound}",
                plan.recipe()
            );
            for (count, separation) in [(1, 1), (2, 1), (2, 3), (3, 2), (3, 1)] {
                let found = worst(&c, count, separation, false);
                let pattern = Participation::new(count as u64, 1, separation as u64).unwrap();
                let bound = plan.sensitivity(&[pattern]).get();
                // What is found is known to the rounding of the impulses.
                assert!(found <= bound * (1.0 + 1e-11), "{:?} {n} {count} {separation} {found} {bound}", plan.recipe());
                let attained = if count == 1 { one } else { many };
                assert!(
                    !attained || found >= bound * (1.0 - 1e-9),
                    "{:?} {n} {count} {separation} {found} {bound}",
                    plan.recipe()
                );
                assert!(count > 1 || found >= 0.999 * bound || !one);
            }
        }
    }
}

#[test]
fn variances_are_row_norms() {
    for n in [1usize, 2, 7, 40] {
        for plan in square_plans(n as u64) {
            let (b, c) = strategy_matrix(&plan, n);
            assert!(b.times(&c).distance(&workload(&plan.recipe().filter, n)) <= 1e-12, "{:?}", plan.recipe());
            let steps: Vec<u64> = (1..=n as u64).collect();
            for (t, variance) in plan.variances(&steps).unwrap().into_iter().enumerate() {
                let found: f64 = b.row(t).iter().map(|v| v * v).sum();
                assert!((variance / found - 1.0).abs() < 1e-9, "{:?} {n} {t} {variance} {found}", plan.recipe());
            }
        }
    }
}

/// `C` from public parameters against `C^{-1}` as the process runs it.
#[test]
fn processes_invert_the_public_matrix() {
    let n = 40usize;
    let check = |plan: &StreamPlan, c: &dyn Fn(usize, usize) -> f64| {
        let (colouring, sizes) = colouring(plan, n);
        let c = Matrix::new(n, n, |t, s| if s > t { 0.0 } else { c(t, s) });
        let b = workload(&plan.recipe().filter, n).times(&colouring);
        assert!(b.times(&c).distance(&workload(&plan.recipe().filter, n)) <= 2e-12, "{:?}", plan.recipe());
        for (t, size) in sizes.iter().enumerate() {
            assert!((c.at(t, t) * size - 1.0).abs() < 1e-12);
        }
    };
    let hard = Horizon::Hard(n as u64);
    for objective in [Objective::Max, Objective::Mean] {
        for degree in 1..=5 {
            let problem = BufferedProblem::counting(degree, n as u64, objective);
            let kernel = toeplitz::optimize(&problem).unwrap().0.coefficients(n);
            let mechanism = StreamMechanism::Buffered { degree: Some(degree) };
            check(&plan(Filter::RunningSum, mechanism, GAUSS, hard, objective), &|t, s| kernel[t - s]);
        }
        for (mechanism, factors) in [
            (StreamMechanism::TwoDiagonals, toeplitz::TwoDiagonals::fit(n, objective).unwrap()),
            (StreamMechanism::NormalizedSquareRoot, toeplitz::TwoDiagonals::normalized(n).unwrap()),
        ] {
            let kernel = factors.kernel().coefficients(n);
            check(&plan(Filter::RunningSum, mechanism, GAUSS, hard, objective), &|t, s| {
                let below = factors.scale().get(t).value() * kernel[t - s] * factors.inverse().get(s).value();
                (if t == s { 1.0 } else { below }) / factors.noise().get(t).value()
            });
        }
        for (filter, prefixes) in [(Filter::RunningSum, Prefixes::Sums), (Filter::RunningAverage, Prefixes::Averages)] {
            let factors = optimize::TimeVarying::fit(n, prefixes, objective, Some(5)).unwrap();
            let unit = |value: u32| f64::from(value) * 2f64.powi(-32);
            let mechanism = StreamMechanism::TimeVarying { degree: Some(5) };
            check(&plan(filter, mechanism, GAUSS, hard, objective), &|t, s| {
                let state = |i: usize| (s..t).map(|r| unit(factors.passages(r)[i])).product::<f64>();
                let below: f64 = factors.gains(t).iter().enumerate().map(|(i, k)| unit(*k) * state(i)).sum();
                (if t == s { 1.0 } else { below }) / factors.noise()[t].value()
            });
        }
    }
    for degree in [4, 6, 8, 12] {
        let kernel = toeplitz::unbounded(degree).unwrap().coefficients(n);
        let mechanism = StreamMechanism::Buffered { degree: Some(degree) };
        let plan = plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Unbounded, Objective::Max);
        check(&plan, &|t, s| kernel[t - s]);
    }
    let rounded = |c: f64| (c * 2f64.powi(30)).round() * 2f64.powi(-30);
    let root = toeplitz::square_root_coefficients(n);
    let square_root = plan(Filter::RunningSum, StreamMechanism::SquareRoot, GAUSS, hard, Objective::Max);
    check(&square_root, &|t, s| rounded(root[t - s]));
    let decay = Filter::Decay { decay: 0.8, factor: 1.0 };
    let decayed = plan(decay, StreamMechanism::SquareRoot, GAUSS, Horizon::Unbounded, Objective::Max);
    check(&decayed, &|t, s| rounded(root[t - s] * 0.8f64.powi((t - s) as i32)));
}

/// The literal columns: an item may be any vector, a replaced record leaves one step and enters another.
#[test]
fn items_in_several_coordinates() {
    let (n, dim) = (4usize, 3usize);
    let vectors = |b: usize, lowest: i32| -> Vec<Vec<f64>> {
        (0..3i32.pow(dim as u32))
            .map(|code| (0..dim as u32).map(|i| f64::from(code / 3i32.pow(i) % 3 - 1)).collect::<Vec<_>>())
            .filter(|v| v.iter().all(|x| *x >= f64::from(lowest)) && v.iter().filter(|x| **x != 0.0).count() <= b)
            .collect()
    };
    for plan in square_plans(n as u64) {
        let (_, c) = strategy_matrix(&plan, n);
        let no_negative_products =
            (0..n).all(|i| (0..n).all(|j| (0..n).map(|t| c.at(t, i) * c.at(t, j)).sum::<f64>() >= -1e-12));
        let norm = |records: &[(usize, f64, &[f64])]| -> f64 {
            let square = |t: usize, i: usize| {
                records.iter().map(|(s, sign, item)| sign * c.at(t, *s) * item[i]).sum::<f64>().powi(2)
            };
            (0..n).flat_map(|t| (0..dim).map(move |i| (t, i))).map(|(t, i)| square(t, i)).sum::<f64>().sqrt()
        };
        for b in 1..=dim {
            let bound = |squared: usize, touched: usize| {
                let (squared, touched) = (squared as u64, touched.min(dim) as u64);
                let pattern = Participation::single().with_items(squared.into(), squared, touched).unwrap();
                plan.sensitivity(&[pattern]).get()
            };
            let unsigned = vectors(b, 0);
            let (mut null, mut replaced, mut signed) = (0.0f64, 0.0f64, 0.0f64);
            for first in 0..n {
                for item in &unsigned {
                    null = null.max(norm(&[(first, 1.0, item)]));
                    for other in &unsigned {
                        for second in 0..n {
                            replaced = replaced.max(norm(&[(first, 1.0, item), (second, -1.0, other)]));
                        }
                    }
                }
            }
            let all = vectors(b, -1);
            for item in &all {
                for other in &all {
                    signed = signed.max(norm(&[(0, 1.0, item), (0, -1.0, other)]));
                    signed = signed.max(norm(&[(0, 1.0, item), (n - 1, -1.0, other)]));
                }
            }
            assert!(null <= bound(b, b) * (1.0 + 1e-11));
            assert!(signed <= bound(4 * b, 2 * b) * (1.0 + 1e-11));
            assert!(replaced <= bound(if no_negative_products { 2 * b } else { 4 * b }, 2 * b) * (1.0 + 1e-11));
            // Two disjoint supports fit: √(2b) is attained where √b is; opposite signs: 2√b.
            if exact(&plan).0 {
                assert!(null >= bound(b, b) * (1.0 - 1e-9));
                assert!(2 * b > dim || replaced >= bound(2 * b, 2 * b) * (1.0 - 1e-9));
            }
        }
    }
}

/// Vectors of any directions that take part several times, and how their rounding moves them.
#[test]
fn items_that_are_vectors() {
    use crate::split_mix::SplitMix;
    let (n, dim) = (6usize, 3usize);
    let mut draws = SplitMix(20_261_126);
    let mut direction = |size: f64| -> Vec<f64> {
        let v: Vec<f64> = (0..dim).map(|_| draws.uniform() - 0.5).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.iter().map(|x| size * x / norm).collect()
    };
    for plan in square_plans(n as u64) {
        let (_, c) = strategy_matrix(&plan, n);
        let norm = |changes: &[(usize, Vec<f64>)]| -> f64 {
            let square = |t: usize, i: usize| changes.iter().map(|(s, v)| c.at(t, *s) * v[i]).sum::<f64>().powi(2);
            (0..n).flat_map(|t| (0..dim).map(move |i| (t, i))).map(|(t, i)| square(t, i)).sum::<f64>().sqrt()
        };
        for (count, separation) in [(1, 1), (2, 1), (3, 2), (2, 3)] {
            let pattern = |size: f64, replaced: bool| {
                let pattern = Participation::new(count as u64, 1, separation as u64).unwrap();
                pattern.with_vectors(size, dim as u64, replaced).unwrap()
            };
            let bound = |size: f64| plan.sensitivity(&[pattern(size, false)]).get();
            assert!((plan.sensitivity(&[pattern(0.7, true)]).get() / bound(0.7) - 2.0).abs() < 1e-9);
            patterns(n, count, separation, &mut |steps| {
                let changes: Vec<_> = steps.iter().map(|(step, _)| (*step, direction(0.7))).collect();
                assert!(norm(&changes) <= bound(0.7) * (1.0 + 1e-11), "{:?} {changes:?}", plan.recipe());
                // On a grid of quarters: what neighbours differ by there.
                let moved: Vec<_> = changes
                    .iter()
                    .map(|(step, v)| {
                        let base = direction(3.0);
                        let grid = |x: f64| (4.0 * x + 0.5).floor();
                        (*step, base.iter().zip(v).map(|(b, v)| grid(b + v) - grid(*b)).collect::<Vec<_>>())
                    })
                    .collect();
                let domain = Domain::real(8, 2).unwrap();
                let door = plan.fit(&[pattern(0.7, false)], domain, 1.0).unwrap();
                let charged = door.sensitivity().ideal.get() + door.sensitivity().encoding.get();
                assert!(norm(&moved) <= charged, "{:?} {moved:?} {charged}", plan.recipe());
            });
        }
    }
}

/// The clipped sums of batches that differ by a record are as far apart as the plan says, on the door's own grid.
#[test]
fn clipped_records_are_vectors() {
    let (clip, dim) = (0.3, 4usize);
    let records: Vec<f64> = (0..48).map(|i| f64::from(i % 11) - 5.0).collect();
    let (all, without) = (clipped_sum(&records, dim, clip).unwrap(), clipped_sum(&records[dim..], dim, clip).unwrap());
    let change = all.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!(change <= clip && change > clip * (1.0 - 1e-7));
}
