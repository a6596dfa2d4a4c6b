//! Sums against naive ones, norms against searches, and what must not depend on batches.

use super::contract;
use super::{
    Axis, Cells, Chebyshev, Cube, Declared, FeatureMap, Features, IndexSet, Kernel, PointSums, Profile, Weights,
};
use crate::error::Error;
use proptest::prelude::*;
use std::sync::Arc;

fn cube(dimension: usize) -> Cube {
    Cube::new(vec![(-1.0, 1.0); dimension]).unwrap()
}

fn plain(set: IndexSet, points: u64) -> Chebyshev {
    let axes = set.sizes().iter().map(|size| Axis::chebyshev(*size).unwrap()).collect();
    Chebyshev::new(axes, set, points).unwrap()
}

fn sums_of(map: impl FeatureMap + 'static, points: &[f64]) -> (Vec<f64>, u32) {
    let (dimension, bits) = (map.dimension(), map.bits());
    let features = Arc::new(Features::new(cube(dimension), Box::new(map), 1 << 20).unwrap());
    let mut sums = PointSums::new(features);
    sums.add(points).unwrap();
    let scale = 2f64.powi(-(bits as i32));
    (sums.sums().totals().take(sums.sums().len() - 1).map(|sum| sum as f64 * scale).collect(), bits)
}

fn monomial(point: &[f64], index: &[u32]) -> f64 {
    point.iter().zip(index).map(|(u, m)| (f64::from(*m) * u.acos()).cos()).product()
}

fn points(dimension: usize, count: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0f64..=1.0, dimension * count)
}

fn sets() -> Vec<IndexSet> {
    vec![
        IndexSet::tensor(vec![7]).unwrap(),
        IndexSet::tensor(vec![4, 5]).unwrap(),
        IndexSet::tensor(vec![3, 4, 2]).unwrap(),
        IndexSet::tensor(vec![2, 3, 2, 3]).unwrap(),
        IndexSet::listed(3, &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 1, 1, 1, 1]).unwrap(),
        IndexSet::listed(1, &[0, 3, 5]).unwrap(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_are_those_of_the_monomials(seed in points(4, 60)) {
        for set in sets() {
            let (d, indices) = (set.sizes().len(), set.indices());
            let data = &seed[..seed.len() / 4 / d * 4 * d];
            let (sums, bits) = sums_of(plain(set, 1 << 20), data);
            let count = (data.len() / d) as f64;
            for (sum, index) in sums.iter().zip(indices.chunks(d)) {
                let exact: f64 = data.chunks(d).map(|point| monomial(point, index)).sum();
                prop_assert!((sum - exact).abs() <= count * 2.2 * 2f64.powi(-(bits as i32 / 2)), "{sum} {exact}");
            }
        }
    }

    #[test]
    fn batches_order_and_threads_change_nothing(data in points(2, 700), cut in 0usize..700) {
        let features = Arc::new(Features::new(cube(2), Box::new(plain(IndexSet::tensor(vec![9, 6]).unwrap(), 1 << 20)), 1 << 20).unwrap());
        let add = |parts: &[&[f64]]| {
            let mut sums = PointSums::new(Arc::clone(&features));
            for part in parts {
                sums.add(part).unwrap();
            }
            sums
        };
        let whole = add(&[&data]);
        let mut merged = add(&[&data[2 * cut..]]);
        merged.merge(&add(&[&data[..2 * cut]])).unwrap();
        prop_assert_eq!(whole.sums(), merged.sums());
        let reversed: Vec<f64> = data.chunks(2).rev().flatten().copied().collect();
        let backwards = add(&[&reversed]);
        prop_assert_eq!(whole.sums(), backwards.sums());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = pool.install(|| add(&[&data.repeat(40)]));
        let several = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(|| add(&[&data.repeat(40)]));
        prop_assert_eq!(alone.sums(), several.sums());
        let copy = PointSums::from_bytes(Arc::clone(&features), &whole.to_bytes()).unwrap();
        prop_assert_eq!(copy.sums(), whole.sums());
    }

    /// One point's features, rounded, never move further than the norms say.
    #[test]
    fn no_two_points_are_further_apart_than_the_norms(u in points(4, 1), v in points(4, 1), l1 in any::<bool>()) {
        for set in sets() {
            let d = set.sizes().len();
            let map = plain(set, 1 << 24);
            let listed: Vec<f64> = (0..map.features()).map(|i| 0.3 + 0.7 / (1.0 + i as f64)).collect();
            for weights in [Weights::Uniform, Weights::Listed(listed.clone())] {
                let norms = map.norms(&weights, l1).unwrap();
                let w = if weights == Weights::Uniform { vec![1.0; map.features()] } else { listed.clone() };
                let of = |point: &[f64]| {
                    let mut sums = vec![0; map.features()];
                    map.add(point, &mut sums);
                    let scale = 2f64.powi(-(map.bits() as i32));
                    sums.iter().zip(&w).map(|(s, w)| w * *s as f64 * scale).collect::<Vec<f64>>()
                };
                let norm = |x: &mut dyn Iterator<Item = f64>| if l1 { x.map(f64::abs).sum::<f64>() } else { x.map(|x| x * x).sum::<f64>().sqrt() };
                let ends: Vec<f64> = vec![1.0; d];
                let flipped: Vec<f64> = u[..d].iter().map(|u| if *u > 0.0 { 1.0 } else { -1.0 }).collect();
                for a in [&u[..d], &ends] {
                    for b in [&v[..d], &flipped] {
                        let (fa, fb) = (of(a), of(b));
                        prop_assert!(norm(&mut fa.iter().copied()) <= norms.column.get());
                        prop_assert!(norm(&mut fa.iter().zip(&fb).map(|(x, y)| x - y)) <= norms.pair.get());
                    }
                }
            }
        }
    }

    #[test]
    fn contraction_is_the_sum_over_all_indices(values in prop::collection::vec(-1.0f64..1.0, 40), axes in prop::collection::vec(-1.0f64..1.0, 2000)) {
        for set in sets() {
            let d = set.sizes().len();
            let queries = 70;
            let own: Vec<Vec<f64>> = set.sizes().iter().enumerate()
                .map(|(j, size)| (0..queries * size).map(|i| axes[(7 * j + 3 * i) % axes.len()]).collect()).collect();
            let slices: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
            let found = contract(&set, &values[..set.len()], &slices, queries).unwrap();
            for (q, answer) in found.iter().enumerate() {
                let exact: f64 = set.indices().chunks(d).zip(&values).map(|(index, value)| {
                    value * index.iter().enumerate().map(|(j, m)| own[j][q * set.sizes()[j] + *m as usize]).product::<f64>()
                }).sum();
                prop_assert!((answer - exact).abs() < 1e-11);
            }
        }
    }

    /// Features of declared queries: the projection of the kernel, so that decoding gives the queries again.
    #[test]
    fn declared_queries_decode_and_stay_within_their_norms(centres in points(3, 12), u in points(3, 1), v in points(3, 1)) {
        for profile in [Profile::Gaussian, Profile::Laplace, Profile::Matern32, Profile::Matern52] {
            let kernel = Kernel::new(profile, vec![0.5, 0.8, 1.0]).unwrap();
            let map = Declared::new(kernel.clone(), centres.clone(), vec![0.25; 12], 6, 0.0, 1 << 10).unwrap();
            let norms = map.norms(&Weights::Uniform, false).unwrap();
            let given = |m: Vec<f64>| Declared::with_whitening(kernel.clone(), centres.clone(), vec![0.25; 12], 6, m, 1 << 10);
            prop_assert_eq!(given(map.whitening().to_vec()).unwrap().norms(&Weights::Uniform, false).unwrap(), norms);
            // Features twice as large are no whitening; a little larger ones cost a little noise.
            prop_assert!(given(map.whitening().iter().map(|m| 2.0 * m).collect()).is_err());
            let larger = given(map.whitening().iter().map(|m| 1.001 * m).collect()).unwrap();
            prop_assert!(larger.norms(&Weights::Uniform, false).unwrap().pair > norms.pair);
            prop_assert!(norms.pair.get() <= 1.0026 * 2f64.sqrt() && norms.column.get() <= 1.0026);
            let of = |point: &[f64]| {
                let mut sums = vec![0; map.features()];
                map.add(point, &mut sums);
                sums.iter().map(|s| *s as f64 * 2f64.powi(-(map.bits() as i32))).collect::<Vec<f64>>()
            };
            let (a, b) = (of(&u), of(&v));
            let apart: f64 = a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
            let exact = (2.0 - 2.0 * kernel.value(&u, &v)).sqrt();
            prop_assert!(apart <= exact + 0.01 && apart <= norms.pair.get());
            for (i, row) in map.decoding().chunks(map.features()).enumerate() {
                let answer: f64 = row.iter().zip(&a).map(|(d, f)| d * f).sum();
                let value: f64 = (0..2).map(|c| 0.25 * kernel.value(&u, &centres[3 * (2 * i + c)..][..3])).sum();
                prop_assert!((answer - value).abs() <= map.lost()[i].sqrt() + 1e-6);
            }
        }
    }
}

/// `t^{d−1}(t + κ_t)` and `√(2 t^d)`, the latter for even `t`.
#[test]
fn sensitivities_of_tensor_sets_are_exact() {
    let kappa = |t: usize| {
        let least = |theta: f64| (0..t).map(|m| (m as f64 * theta).cos()).sum::<f64>();
        -(0..200_000).map(|i| least(f64::from(i) * std::f64::consts::PI / 2e5)).fold(f64::INFINITY, f64::min)
    };
    for (t, ratio) in [(2, 1.0), (3, 25.0 / 24.0), (4, 1.0789), (8, 1.1442), (16, 1.1799), (50, 1.2051)] {
        let norms = plain(IndexSet::tensor(vec![t, t]).unwrap(), 1000).norms(&Weights::Uniform, true).unwrap();
        let exact = (t as f64) * (t as f64 + kappa(t));
        assert!((norms.pair.get() / exact - 1.0).abs() < 5e-6, "{t}: {} {exact}", norms.pair.get());
        assert!((norms.pair.get() / (t * t) as f64 - ratio).abs() < 6e-5);
        assert!((norms.column.get() / (t * t) as f64 - 1.0).abs() < 5e-6);
        let gaussian = plain(IndexSet::tensor(vec![t, t]).unwrap(), 1000).norms(&Weights::Uniform, false).unwrap();
        assert!((gaussian.pair.get() / (2.0f64).sqrt() / t as f64 - 1.0).abs() < 5e-6);
    }
}

/// Low degree approaches twice what is printed: `{1, x_1, …, x_d}` has `2d` of `d + 1`.
#[test]
fn sensitivities_of_low_degrees() {
    for d in [3usize, 5, 30] {
        let mut indices = vec![0; d * d];
        (0..d).for_each(|j| indices[j * d + j] = 1);
        let norms = plain(IndexSet::listed(d, &indices).unwrap(), 1000).norms(&Weights::Uniform, true).unwrap();
        assert!((norms.pair.get() / (2 * d) as f64 - 1.0).abs() < 1e-4, "{d}: {}", norms.pair.get());
        assert!((norms.column.get() / (d + 1) as f64 - 1.0).abs() < 1e-5);
    }
}

#[test]
fn kernels_have_the_sensitivity_of_their_space() {
    // Rank one: ψ = 1/2 + T_1/2: k(1,1) = 1, k(1,-1) = 0.
    let axis = Axis::mixed(2, vec![0.5, 0.5]).unwrap();
    let set = IndexSet::tensor(vec![1]).unwrap();
    let map = Chebyshev::new(vec![axis], set, 1000).unwrap();
    let norms = map.norms(&Weights::Uniform, false).unwrap();
    assert!((norms.column.get() - 1.0).abs() < 1e-4 && norms.column.get() >= 1.0);
    // k(u, v) = (1 + u)(1 + v)/4 lies in [0, 1]: 2 − 0.
    assert!((norms.pair.get() - 2f64.sqrt()).abs() < 1e-3 && norms.pair.get() >= 1.0);
    assert!(map.norms(&Weights::Uniform, true).is_err());
}

#[test]
fn cells_count_every_point_once() {
    let (sums, bits) = sums_of(Cells::new(vec![2, 3]).unwrap(), &[-1.0, -1.0, 1.0, 1.0, 0.0, 0.0, -0.5, 0.9]);
    assert_eq!((sums, bits), (vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0], 0));
}

#[test]
fn large_sets_of_several_blocks_and_threads() {
    let set = IndexSet::tensor(vec![40, 30, 30, 20]).unwrap();
    let data: Vec<f64> = (0..4 * 900).map(|i| (f64::from(i) * 0.7391).sin()).collect();
    let map = plain(set.clone(), 1 << 20);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let mut sums = vec![0; map.features()];
    pool.install(|| map.add(&data, &mut sums));
    let mut again = vec![0; map.features()];
    map.add_alone(&data, &mut again);
    assert!(sums == again);
    let scale = 2f64.powi(-(map.bits() as i32));
    for place in (0..set.len()).step_by(71_993) {
        let index = [place / 18_000, place / 600 % 30, place / 20 % 30, place % 20].map(|m| m as u32);
        let exact: f64 = data.chunks(4).map(|point| monomial(point, &index)).sum();
        assert!((sums[place] as f64 * scale - exact).abs() < 900.0 * 2e-5);
    }
}

#[test]
fn bad_input_changes_nothing() {
    let features =
        Arc::new(Features::new(cube(2), Box::new(plain(IndexSet::tensor(vec![3, 3]).unwrap(), 4)), 4).unwrap());
    let mut sums = PointSums::new(Arc::clone(&features));
    sums.add(&[0.1, 0.2, 5.0, -7.0]).unwrap();
    let before = sums.sums().clone();
    assert!(sums.add(&[0.0]).is_err());
    assert_eq!(*sums.sums(), before);
    // A missing coordinate is a null item, an infinite one is at the border, and more points than declared are summed.
    sums.add(&[0.0, f64::NAN, f64::INFINITY, 0.0]).unwrap();
    let mut same = PointSums::new(Arc::clone(&features));
    same.add(&[1.0, 0.0, 1.0, -1.0, 0.1, 0.2]).unwrap();
    assert_eq!(sums.sums(), same.sums());
    for _ in 0..20 {
        let copy = sums.clone();
        sums.merge(&copy).unwrap();
    }
    assert_eq!(sums.count(), 3 << 20);
    let read = PointSums::from_bytes(Arc::clone(&features), &sums.to_bytes()).unwrap();
    assert_eq!(read.sums(), sums.sums());
    let other = Features::new(cube(2), Box::new(plain(IndexSet::tensor(vec![3, 4]).unwrap(), 4)), 4).unwrap();
    assert!(sums.merge(&PointSums::new(Arc::new(other))).is_err());
    let mut bytes = sums.to_bytes();
    bytes[20] ^= 1;
    assert!(matches!(PointSums::from_bytes(features, &bytes), Err(Error::InvalidParameter { .. })));
    assert!(Cube::new(vec![(1.0, 1.0)]).is_err() && Cube::new(vec![(f64::NAN, 1.0)]).is_err());
    assert!(IndexSet::tensor(vec![1 << 14, 1 << 14]).is_err() && IndexSet::listed(2, &[0, 1, 0, 1]).is_err());
    assert!(Axis::chebyshev(0).is_err() && Axis::mixed(2, vec![3.0, 3.0]).is_err());
}
