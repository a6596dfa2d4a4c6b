//! The gauge against all bases in rational arithmetic, and doubles against integers at the boundary.

use super::Polytope;
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

/// Integers count units of `2^-UNIT`.
const UNIT: i32 = 300;

/// A double as an integer; its last bit must not lie below the unit.
fn integer(value: f64) -> BigInt {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = if exponent == 0 { 0 } else { bits & ((1 << 52) - 1) | 1 << 52 };
    let shift = exponent - 1075 + UNIT;
    assert!(mantissa == 0 || shift >= 0);
    let magnitude = BigInt::from(mantissa) << shift.max(0);
    if value < 0.0 { -magnitude } else { magnitude }
}

fn determinant(columns: &[Vec<BigInt>]) -> BigInt {
    let Some((first, rest)) = columns.split_first() else { return BigInt::from(1) };
    (0..first.len())
        .map(|i| {
            let minor: Vec<Vec<BigInt>> = rest.iter().map(|column| [&column[..i], &column[i + 1..]].concat()).collect();
            let term = &first[i] * determinant(&minor);
            if i % 2 == 0 { term } else { -term }
        })
        .sum()
}

fn subsets(count: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    (size - 1..count)
        .flat_map(|last| {
            subsets(last, size - 1).into_iter().map(move |mut subset| {
                subset.push(last);
                subset
            })
        })
        .collect()
}

/// `‖z‖_K` as a fraction: the least `Σ|w_i|` over all bases, by Cramer's rule.
fn oracle(rank: usize, count: usize, entries: &[i64], z: &[BigInt]) -> (BigUint, BigUint) {
    let mut best: Option<(BigUint, BigUint)> = None;
    for subset in subsets(count, rank) {
        let column = |j: usize| (0..rank).map(|i| BigInt::from(entries[i * count + j])).collect::<Vec<_>>();
        let columns: Vec<Vec<BigInt>> = subset.into_iter().map(column).collect();
        let below = determinant(&columns).magnitude().clone();
        if below == BigUint::ZERO {
            continue;
        }
        let weight = |k: usize| {
            let mut columns = columns.clone();
            columns[k] = z.to_vec();
            determinant(&columns).magnitude().clone()
        };
        let above: BigUint = (0..rank).map(weight).sum();
        if best.as_ref().is_none_or(|(a, b)| &above * b < a * &below) {
            best = Some((above, below));
        }
    }
    best.unwrap()
}

/// Sizes, entries by rows with every `bits` used, and a point.
fn bodies(bits: u32) -> impl Strategy<Value = (usize, usize, Vec<i64>, Vec<i64>)> {
    (1usize..=4, 0usize..=4).prop_flat_map(move |(rank, more)| {
        let limit = 1i64 << bits;
        let count = rank + more;
        let entries = proptest::collection::vec(-limit + 1..limit, rank * count);
        let z = proptest::collection::vec(-limit + 1..limit, rank);
        (Just(rank), Just(count), entries, z)
    })
}

/// A degenerate box, for `compare_exact`.
fn exactly(polytope: &Polytope, z: &[BigInt], t: &BigUint) -> bool {
    let z: Vec<_> = z.iter().map(|v| (v.clone(), v.clone())).collect();
    polytope.compare_exact(&z, (t, t)).unwrap()
}

fn doubles_never_contradict(rank: usize, count: usize, entries: &[i64], z: &[f64]) -> Result<(), TestCaseError> {
    let Ok(polytope) = Polytope::new(rank, count, entries, None) else { return Ok(()) };
    let point: Vec<BigInt> = z.iter().map(|v| integer(*v)).collect();
    let (above, below) = oracle(rank, count, entries, &point);
    let boxes: Vec<_> = z.iter().map(|v| (*v, *v)).collect();
    // A box in which both points and numbers vary: what is decided holds at all its corners.
    let wide: Vec<_> = z.iter().map(|v| (v - v.abs() * 1e-14, v + v.abs() * 1e-14)).collect();
    let integers: Vec<_> = wide.iter().map(|(a, b)| (integer(*a), integer(*b))).collect();
    let corner = |at: usize| -> Vec<BigInt> {
        let pick = |(i, (a, b)): (usize, &(BigInt, BigInt))| if at >> i & 1 == 0 { a.clone() } else { b.clone() };
        integers.iter().enumerate().map(pick).collect()
    };
    let corners: Vec<_> = (0..1usize << rank).map(|at| oracle(rank, count, entries, &corner(at))).collect();
    let gauge = polytope.gauge(z);
    for ulps in [-1_000_000_000i64, -10_000, -100, -10, -3, -2, -1, 0, 1, 2, 3, 10, 100, 10_000, 1_000_000_000] {
        let t = f64::from_bits((gauge.to_bits() as i64 + ulps).max(0) as u64);
        let truth = above <= integer(t).magnitude() * &below;
        if let Some(answer) = polytope.compare(&boxes, (t, t)) {
            prop_assert_eq!(answer, truth, "{} ulps", ulps);
        }
        prop_assert_eq!(exactly(&polytope, &point, integer(t).magnitude()), truth);
        let ends = (t * (1.0 - 1e-14), t * (1.0 + 1e-14));
        let (low, high) = (integer(ends.0), integer(ends.1));
        let t = (low.magnitude(), high.magnitude());
        for answer in [polytope.compare(&wide, ends), polytope.compare_exact(&integers, t)].into_iter().flatten() {
            let holds = |(above, below): &(BigUint, BigUint), t| (*above <= t * below) == answer;
            prop_assert!(corners.iter().all(|corner| holds(corner, t.0) && holds(corner, t.1)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn exact_comparison_is_that_of_all_bases((rank, count, entries, z) in bodies(5), t in 0u32..200) {
        if let Ok(polytope) = Polytope::new(rank, count, &entries, None) {
            let z: Vec<BigInt> = z.into_iter().map(BigInt::from).collect();
            let (above, below) = oracle(rank, count, &entries, &z);
            // At the gauge itself, just below, and anywhere.
            let scaled: Vec<BigInt> = z.iter().map(|v| v * BigInt::from(below.clone())).collect();
            prop_assert!(exactly(&polytope, &scaled, &above));
            prop_assert!(above == BigUint::ZERO || !exactly(&polytope, &scaled, &(&above - 1u8)));
            prop_assert_eq!(exactly(&polytope, &z, &BigUint::from(t)), above <= below * t);
        }
    }

    #[test]
    fn doubles_never_contradict_small_integers((rank, count, entries, z) in bodies(3)) {
        let z: Vec<f64> = z.into_iter().map(|v| v as f64).collect();
        doubles_never_contradict(rank, count, &entries, &z)?;
    }

    #[test]
    fn doubles_never_contradict_large_integers((rank, count, entries, z) in bodies(62)) {
        let z: Vec<f64> = z.into_iter().map(|v| v as f64 / 1e17).collect();
        doubles_never_contradict(rank, count, &entries, &z)?;
    }

    /// Points on a facet or an edge of it, a corner included, by weights of given columns.
    #[test]
    fn doubles_never_contradict_on_facets(
        (rank, count, entries, _) in bodies(4), weights in proptest::collection::vec(0u8..9, 4),
    ) {
        let mut z = vec![0.0; rank];
        for (k, w) in weights.iter().enumerate() {
            for (i, value) in z.iter_mut().enumerate() {
                *value += f64::from(*w) * entries[i * count + k % count] as f64;
            }
        }
        doubles_never_contradict(rank, count, &entries, &z)?;
    }

    #[test]
    fn balls_inside_and_outside((rank, count, entries, _) in bodies(62)) {
        if let Ok(polytope) = Polytope::new(rank, count, &entries, None) {
            let (mantissa, exponent) = polytope.radius();
            let square = |at: usize| BigUint::from(entries[at].unsigned_abs()).pow(2);
            let length = |j: usize| (0..rank).map(|i| square(i * count + j)).sum::<BigUint>();
            let longest = (0..count).map(length).max().unwrap() << 200;
            let square = BigUint::from(mantissa).pow(2) << (200 + 2 * exponent);
            prop_assert!(longest <= square && square <= &longest + (&longest >> 29));
            // The boundary point along each axis: ‖e_i·ρ‖_K ≤ 1.
            for i in 0..rank {
                let mut z = vec![BigInt::ZERO; rank];
                z[i] = integer(polytope.inradius());
                prop_assert!(exactly(&polytope, &z, &(BigUint::from(1u8) << UNIT)));
            }
        }
    }
}

/// Uniform entries of either sign from a linear congruence, for larger bodies.
fn entries(len: usize, bits: u32, seed: u64) -> Vec<i64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state as i64) >> (64 - bits)
    };
    (0..len).map(|_| next()).collect()
}

/// At rank 12, where no oracle reaches: doubles and integers decide alike on both sides of the boundary, and
/// doubles decide all but the closest.
#[test]
fn doubles_and_integers_agree_in_higher_dimensions() {
    for (rank, count, bits) in [(8, 64, 2), (12, 40, 20), (16, 100, 62), (16, 16, 30)] {
        let polytope = Polytope::new(rank, count, &entries(rank * count, bits, 5), None).unwrap();
        for seed in 0..6 {
            let z: Vec<f64> = entries(rank, 40, seed).into_iter().map(|v| v as f64).collect();
            let gauge = polytope.gauge(&z);
            for factor in [-1e-3f64, -1e-9, -1e-14, 0.0, 1e-14, 1e-9, 1e-3] {
                let t = gauge * (1.0 + factor);
                let boxes: Vec<_> = z.iter().map(|v| (v.next_down(), v.next_up())).collect();
                let point: Vec<BigInt> = z.iter().map(|v| integer(*v)).collect();
                let exact = exactly(&polytope, &point, integer(t).magnitude());
                let float = polytope.compare(&boxes, (t, t));
                assert!(float.is_none_or(|answer| answer == exact));
                assert!(factor.abs() < 1e-10 || float == Some(factor > 0.0), "{rank} {seed} {factor:e}");
            }
        }
    }
}

/// Rejection at sight never refuses a point of the body, and refuses most that are far outside.
#[test]
fn rejection_at_sight_is_right() {
    let (rank, count) = (6, 50);
    let polytope = Polytope::new(rank, count, &entries(rank * count, 10, 11), None).unwrap();
    let points: Vec<f64> = entries(rank * 500, 40, 12).into_iter().map(|v| v as f64).collect();
    let gauges: Vec<f64> = points.chunks(rank).map(|z| polytope.gauge(z)).collect();
    let mut scratch = Vec::new();
    let refused = |factor: f64, scratch: &mut Vec<f64>| {
        let bounds: Vec<f64> = gauges.iter().map(|gauge| gauge * factor).collect();
        polytope.reject_at_sight(&points, &bounds, scratch).into_iter().filter(|refused| *refused).count()
    };
    assert_eq!(refused(1.0, &mut scratch), 0);
    assert!(refused(0.5, &mut scratch) > 400);
    // θ = z is optimal for a cross-polytope on its diagonal: the margin is that of the test, no more.
    let cross = Polytope::new(2, 2, &[1, 0, 0, 1], None).unwrap();
    let at = |bound: f64| cross.reject_at_sight(&[1.0, 1.0], &[bound], &mut Vec::new())[0];
    assert!(!at(2.0) && !at(2.0 - 1e-10) && at(2.0 - 4e-9));
}

#[test]
fn what_is_no_body_is_refused() {
    let refused = |rank, count, entries: &[i64]| Polytope::new(rank, count, entries, None).unwrap_err().to_string();
    assert!(refused(2, 3, &[1, 2, 3, 2, 4, 6]).contains("span"));
    assert!(refused(2, 1, &[1, 2]).contains("span"));
    assert!(refused(1, 1, &[0]).contains("span"));
    assert!(refused(2, 0, &[]).contains("span"));
    assert!(refused(1, 1, &[1 << 62]).contains("2^62"));
    assert!(refused(19, 19, &[0; 361]).contains("16"));
    assert!(refused(0, 0, &[]).contains("ranks"));
    assert!(refused(1, 2, &[1]).contains("length"));
    assert!(Polytope::new(1, 1, &[1], Some(&[-1.0])).is_err() && Polytope::new(1, 1, &[1], Some(&[f64::NAN])).is_err());
}

/// Weights tighten the inradius: with all weight on the two long columns it is that of their diamond's ellipsoid.
#[test]
fn weights_serve_the_inradius() {
    let short = vec![1i64; 98];
    let entries = [&[1000, 0][..], &short, &[0, 1000], &short].concat();
    let uniform = Polytope::new(2, 100, &entries, None).unwrap().inradius();
    let mut weights = vec![0.0; 100];
    (weights[0], weights[1]) = (1.0, 1.0);
    let tight = Polytope::new(2, 100, &entries, Some(&weights)).unwrap().inradius();
    assert!((tight / 1000.0 - 0.5f64.sqrt()).abs() < 1e-6 && tight <= 1000.0 * 0.5f64.sqrt());
    assert!(uniform < 0.2 * tight);
}
