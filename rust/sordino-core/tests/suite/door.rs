//! The door from outside: what it charges, what it publishes, and that nothing depends on magnitudes.
//!
//! Two inputs measured under one key differ by exactly the difference of their encoded lattice values, so
//! the distance of neighbours after rounding and clamping can be compared with the declared sensitivity.

use crate::common::norm;
use proptest::prelude::*;
use sordino_core::domain::Domain;
use sordino_core::door::{Data, Door, Measured};
use sordino_core::door::{Key, MAX_QUARTER_UNITS, NoiseLaw};
use sordino_core::error::Error;
use sordino_core::strategy::{Codes, Mechanism, Recipe, Strategy};
use sordino_core::unit::Unit;
use sordino_core::workload::Workload;

fn recipes() -> Vec<Recipe> {
    let n = 12;
    let filters = [
        Workload::Circular { kernel: (0..n).map(|j| 0.8f64.powi(j)).collect() },
        Workload::Linear { kernel: vec![1.0; 12], len: 12, center: 0 },
        Workload::Linear { kernel: vec![0.1, 0.3, 0.7], len: 12, center: 1 },
        Workload::Matrix { rows: 2, columns: 12, entries: (0..24).map(|i| f64::from(i % 5) / 7.0).collect() },
        Workload::Group { radices: vec![3, 4], kernel: (0..12).map(f64::from).collect() },
    ];
    let mechanisms = [
        (Mechanism::Identity, NoiseLaw::Gaussian),
        (Mechanism::Identity, NoiseLaw::Laplace),
        (Mechanism::Output, NoiseLaw::Gaussian),
        (Mechanism::Output, NoiseLaw::Laplace),
        (Mechanism::Fourier, NoiseLaw::Gaussian),
        (Mechanism::Fourier, NoiseLaw::Laplace),
        (Mechanism::FourierPlanar, NoiseLaw::Laplace),
        (Mechanism::FourierGrouped, NoiseLaw::Laplace),
        (Mechanism::Tree { branching: 3 }, NoiseLaw::Laplace),
        (Mechanism::Haar, NoiseLaw::Gaussian),
        (Mechanism::SquareRoot, NoiseLaw::Gaussian),
    ];
    filters
        .iter()
        .flat_map(|w| mechanisms.iter().map(move |(m, law)| Recipe { workload: w.clone(), mechanism: *m, law: *law }))
        .filter(|recipe| recipe.build().is_ok())
        .collect()
}

fn distance(strategy: &dyn Strategy, a: &Measured, b: &Measured) -> f64 {
    let step = 2f64.powi(i32::from(a.grid()));
    let v: Vec<f64> =
        a.units().iter().zip(b.units()).map(|(x, y)| (i128::from(*x) - i128::from(*y)) as f64 * step).collect();
    norm(&strategy.geometry(), &v)
}

/// One relation with a random neighbour of `x`.
fn neighbour(x: &[i64], unit: Unit, picks: &[usize], signs: &[bool]) -> Vec<i64> {
    let mut y = x.to_vec();
    match unit {
        Unit::AddRemove { records, .. } => {
            for r in 0..records as usize {
                let step = if signs[r] { 1 } else { -1 };
                y[picks[r] % x.len()] = y[picks[r] % x.len()].saturating_add(step);
            }
        }
        Unit::ReplaceOne { records } => {
            for r in 0..records as usize {
                y[picks[2 * r] % x.len()] = y[picks[2 * r] % x.len()].saturating_sub(1);
                y[picks[2 * r + 1] % x.len()] = y[picks[2 * r + 1] % x.len()].saturating_add(1);
            }
        }
    }
    y
}

fn magnitude() -> impl Strategy2 {
    prop_oneof![
        -1000i64..1000,
        Just(0),
        Just(1 << 16),
        Just(-(1 << 16)),
        (1i64 << 16) - 2..(1 << 16) + 3,
        Just(i64::MAX),
        Just(i64::MIN),
    ]
}

/// Proptest's trait, under another name than ours.
trait Strategy2: proptest::strategy::Strategy<Value = i64> {}
impl<T: proptest::strategy::Strategy<Value = i64>> Strategy2 for T {}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn neighbours_stay_within_the_declared_sensitivity(
        x in prop::collection::vec(magnitude(), 12),
        picks in prop::collection::vec(0usize..12, 8),
        signs in prop::collection::vec(any::<bool>(), 8),
        ratio in 0.01f64..100.0,
    ) {
        let units = [
            Unit::add_remove(1, None).unwrap(),
            Unit::add_remove(3, None).unwrap(),
            Unit::replace_one(1).unwrap(),
            Unit::replace_one(2).unwrap(),
        ];
        let key = Key::deterministic([1; 32]);
        for recipe in recipes() {
            let strategy = recipe.build().unwrap();
            for unit in units {
                for domain in [Domain::integral(1 << 16).unwrap(), Domain::real(1 << 16, 10).unwrap()] {
                    let door = Door::fit(&*strategy, unit, domain, ratio).unwrap();
                    let y = neighbour(&x, unit, &picks, &signs);
                    let a = door.measure_with(&*strategy, 12, Data::Integers(&x), &key).unwrap();
                    let b = door.measure_with(&*strategy, 12, Data::Integers(&y), &key).unwrap();
                    let total = door.sensitivity().total().get() * 2f64.powi(-(domain.fraction_bits() as i32));
                    let moved = distance(&*strategy, &a, &b);
                    prop_assert!(moved <= total * (1.0 + 1e-12), "{:?}: moved {} of {}", recipe, moved, total);
                }
            }
        }
    }

    /// Real cells: a record changes a cell by at most 1, by any amount.
    #[test]
    fn real_neighbours_stay_within_the_declared_sensitivity(
        x in prop::collection::vec(-70_000.0f64..70_000.0, 12),
        cell in 0usize..12, change in -1.0f64..=1.0, bits in 0u32..20,
    ) {
        let key = Key::deterministic([2; 32]);
        let mut y = x.clone();
        y[cell] += change;
        prop_assume!((y[cell] - x[cell]).abs() <= 1.0);
        for recipe in recipes() {
            let strategy = recipe.build().unwrap();
            let domain = Domain::real(1 << 16, bits.max(1)).unwrap();
            let door = Door::fit(&*strategy, Unit::add_remove(1, None).unwrap(), domain, 1.0).unwrap();
            let a = door.measure_with(&*strategy, 12, Data::Reals(&x), &key).unwrap();
            let b = door.measure_with(&*strategy, 12, Data::Reals(&y), &key).unwrap();
            let total = door.sensitivity().total().get() * 2f64.powi(-(domain.fraction_bits() as i32));
            prop_assert!(distance(&*strategy, &a, &b) <= total * (1.0 + 1e-12), "{:?}", recipe);
        }
    }

    /// The fitted noise covers ratio times the bound, never less, and hardly more on the integer path.
    #[test]
    fn fits_cover_what_they_declare(ratio in 1e-3f64..1e6, records in 1u32..50) {
        for recipe in recipes() {
            let strategy = recipe.build().unwrap();
            let unit = Unit::add_remove(records, None).unwrap();
            let door = Door::fit(&*strategy, unit, Domain::integral(1 << 16).unwrap(), ratio).unwrap();
            let needed = ratio * door.sensitivity().total().get();
            prop_assert!(door.scale() >= needed && door.scale() <= needed * (1.0 + 1e-6));
            for rows in door.discrete() {
                // A rate is that of the scale, rounded down.
                prop_assert!(rows.rate <= rows.step / door.scale() * (1.0 + 1e-12) && rows.rate > 0.0);
                prop_assert!(rows.rate >= rows.step / door.scale() * (1.0 - 1e-9) || rows.rate >= 16383.0);
            }
            prop_assert!(door.quarter_units() <= MAX_QUARTER_UNITS);
            let exact = matches!(strategy.encoding(1 << 16).unwrap(), sordino_core::strategy::Encoding::Exact { .. });
            if exact && door.grid() <= 0 {
                prop_assert_eq!(door.sensitivity().rounding.get(), 0.0);
            }
        }
    }
}

fn identity(len: usize) -> Box<dyn Strategy> {
    Recipe { workload: Workload::Histogram { len }, mechanism: Mechanism::Identity, law: NoiseLaw::Gaussian }
        .build()
        .unwrap()
}

/// Mironov's attack looks for values that only one neighbour can reach. Published numbers are integers on
/// one lattice, and their low bits are as uniform for one neighbour as for the other: a chi-square of the
/// lowest 4 bits at 5.5 standard deviations (false-alarm rate below 1e-6, fixed keys).
#[test]
fn low_bits_tell_nothing() {
    for value in [0i64, 1, 1 << 16] {
        let strategy = identity(1 << 16);
        let door =
            Door::fit(&*strategy, Unit::add_remove(1, None).unwrap(), Domain::integral(1 << 20).unwrap(), 2.0).unwrap();
        let x = vec![value; 1 << 16];
        let measured =
            door.measure_with(&*strategy, x.len(), Data::Integers(&x), &Key::deterministic([value as u8; 32])).unwrap();
        let mut counts = [0f64; 16];
        for unit in measured.units() {
            counts[(unit & 15) as usize] += 1.0;
        }
        let expected = x.len() as f64 / 16.0;
        let statistic: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        assert!((statistic - 15.0) / 30f64.sqrt() < 5.5, "{statistic}");
    }
}

/// The same for every mechanism: what is published for two neighbours has equally uniform low bits, under 400
/// keys each (5.5 standard deviations of a chi-square with 15 degrees of freedom). Discrete noise has the lattice of the
/// data: there nothing but multiples of the steps comes out.
#[test]
fn low_bits_tell_nothing_for_any_mechanism() {
    for recipe in recipes() {
        let strategy = recipe.build().unwrap();
        let unit = Unit::add_remove(1, None).unwrap();
        let door = Door::fit(&*strategy, unit, Domain::integral(1 << 16).unwrap(), 1.0).unwrap();
        let steps: Vec<f64> = door.discrete().iter().flat_map(|rows| vec![rows.step; rows.len]).collect();
        for x in [vec![7i64; 12], [vec![7i64; 11], vec![8]].concat()] {
            if !steps.is_empty() {
                let key = Key::deterministic([6; 32]);
                let measured = door.measure_with(&*strategy, 12, Data::Integers(&x), &key).unwrap();
                assert_eq!((measured.grid(), measured.units().len()), (0, steps.len()));
                assert!(
                    measured.units().iter().zip(&steps).all(|(unit, step)| *unit as f64 % step == 0.0),
                    "{recipe:?}"
                );
                continue;
            }
            let mut counts = [0f64; 16];
            for seed in 0..400u16 {
                let mut key = [5; 32];
                key[..2].copy_from_slice(&seed.to_le_bytes());
                let measured = door.measure_with(&*strategy, 12, Data::Integers(&x), &Key::deterministic(key)).unwrap();
                for unit in measured.units() {
                    counts[(unit & 15) as usize] += 1.0;
                }
            }
            let expected = counts.iter().sum::<f64>() / 16.0;
            let statistic: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
            assert!((statistic - 15.0) / 30f64.sqrt() < 5.5, "{recipe:?}: {statistic}");
        }
    }
}

#[test]
fn fresh_keys_give_fresh_noise_and_bad_calls_publish_nothing() {
    let strategy = identity(64);
    let unit = Unit::add_remove(1, None).unwrap();
    let door = Door::fit(&*strategy, unit, Domain::integral(1 << 20).unwrap(), 1.0).unwrap();
    let x = vec![5; 64];
    let a = door.measure(&*strategy, 64, Data::Integers(&x)).unwrap();
    let b = door.measure(&*strategy, 64, Data::Integers(&x)).unwrap();
    assert!(a.units().iter().zip(b.units()).all(|(x, y)| x != y));
    assert!(matches!(door.measure(&*strategy, 64, Data::Integers(&x[..63])), Err(Error::Shape { .. })));
    assert!(matches!(door.measure(&*strategy, 64, Data::Codes(Codes::Bytes(&[0, 1]))), Err(Error::Unsupported(_))));
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert!(Door::fit(&*strategy, unit, Domain::integral(1 << 20).unwrap(), ratio).is_err());
    }
}

/// Record codes and the full table are two ways to say the same; bad codes are null records.
#[test]
fn codes_and_tables_measure_the_same() {
    let radices = vec![3usize, 2, 5];
    let workload = Workload::Marginals {
        radices: radices.clone(),
        sets: vec![vec![0, 1], vec![1, 2], vec![0]],
        weights: vec![1.0; 3],
        total_share: 0.0,
    };
    let mut codes = Vec::new();
    let mut table = vec![0i64; 30];
    for r in 0..500usize {
        let record = [r * 7 % 3, r * 5 % 2, r * 11 % 5];
        table[(record[0] * 2 + record[1]) * 5 + record[2]] += 1;
        codes.extend(record.map(|v| v as i64));
    }
    codes.extend([0, 0, 5, -1, 0, 0, 3, 1, 1]); // three null records
    let bytes: Vec<u8> = codes.iter().map(|v| if *v < 0 { 255 } else { *v as u8 }).collect();
    let key = Key::deterministic([4; 32]);
    for mechanism in
        [Mechanism::Fourier, Mechanism::FourierUniform, Mechanism::Output, Mechanism::Identity, Mechanism::Boxes]
    {
        for law in [NoiseLaw::Gaussian, NoiseLaw::Laplace] {
            if mechanism == Mechanism::Boxes && law == NoiseLaw::Gaussian {
                continue;
            }
            let strategy = Recipe { workload: workload.clone(), mechanism, law }.build().unwrap();
            let unit = Unit::add_remove(1, None).unwrap();
            let door = Door::fit(&*strategy, unit, Domain::integral(1 << 20).unwrap(), 1.0).unwrap();
            let from_table = door.measure_with(&*strategy, 30, Data::Integers(&table), &key).unwrap();
            for codes in [Codes::Words(&codes), Codes::Bytes(&bytes)] {
                let from_codes = door.measure_with(&*strategy, 30, Data::Codes(codes), &key).unwrap();
                assert_eq!(from_table, from_codes, "{mechanism:?} {law:?}");
            }
        }
    }
}

/// Tables of the largest cells neither wrap nor saturate: what does not fit is refused when fitting.
#[test]
fn marginals_of_full_tables() {
    let key = Key::deterministic([6; 32]);
    for (radices, sets) in
        [(vec![2usize; 10], vec![vec![]]), (vec![4, 3], vec![vec![0], vec![1]]), (vec![64, 64], vec![vec![0]])]
    {
        let cells: usize = radices.iter().product();
        let weights = vec![1.0; sets.len()];
        let workload = Workload::Marginals { radices, sets, weights, total_share: 0.0 };
        for mechanism in [Mechanism::Fourier, Mechanism::Output, Mechanism::FourierUniform, Mechanism::Boxes] {
            let recipe = Recipe { workload: workload.clone(), mechanism, law: NoiseLaw::Laplace };
            let strategy = recipe.build().unwrap();
            let unit = Unit::add_remove(1, None).unwrap();
            let mut fitted = 0;
            for bits in 0..=53 {
                let domain = Domain::integral(1 << bits).unwrap();
                let Ok(door) = Door::fit(&*strategy, unit, domain, 1.0) else { continue };
                fitted += 1;
                let full = vec![1i64 << bits; cells];
                let mut less = full.clone();
                less[cells / 2] -= 1;
                let a = door.measure_with(&*strategy, cells, Data::Integers(&full), &key).unwrap();
                let b = door.measure_with(&*strategy, cells, Data::Integers(&less), &key).unwrap();
                assert!(distance(&*strategy, &a, &b) <= door.sensitivity().total().get());
                // And the answers are right, noise aside: the same key on an empty table.
                let zero = door.measure_with(&*strategy, cells, Data::Integers(&vec![0; cells]), &key).unwrap();
                let m = workload.answers_len();
                let (mut got, mut noise, mut truth) = (vec![0.0; m], vec![0.0; m], vec![0.0; m]);
                strategy.decode(&a.values(), &mut got);
                strategy.decode(&zero.values(), &mut noise);
                workload.apply(&vec![full[0] as f64; cells], &mut truth);
                for t in 0..m {
                    assert!((got[t] - noise[t] - truth[t]).abs() <= 1e-9 * truth[t], "{mechanism:?} at 2^{bits}");
                }
            }
            assert!((10..54).contains(&fitted), "{mechanism:?}: {fitted} sizes fit");
        }
    }
}

/// The least-squares decode is unbiased at any magnitude: noise cancels between two inputs under one key.
#[test]
fn large_counts_do_not_bias_the_answers() {
    let key = Key::deterministic([8; 32]);
    for (n, taps) in [
        (1usize << 14, vec![1.0; 1 << 14]),
        (2048, vec![1.0, -4.0, 6.0, -4.0, 1.0]),
        (1000, vec![0.0625, 0.25, 0.375, 0.25, 0.0625]),
    ] {
        let workload = Workload::Linear { kernel: taps, len: n, center: 0 };
        let strategy = Recipe { workload: workload.clone(), mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian }
            .build()
            .unwrap();
        let door =
            Door::fit(&*strategy, Unit::add_remove(1, None).unwrap(), Domain::integral(1 << 22).unwrap(), 4.2).unwrap();
        let x = vec![1i64 << 22; n];
        let full = door.measure_with(&*strategy, n, Data::Integers(&x), &key).unwrap();
        let zero = door.measure_with(&*strategy, n, Data::Integers(&vec![0; n]), &key).unwrap();
        let (mut a, mut b, mut truth) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        strategy.decode(&full.values(), &mut a);
        strategy.decode(&zero.values(), &mut b);
        workload.apply(&vec![x[0] as f64; n], &mut truth);
        let worst = (0..n).map(|t| (a[t] - b[t] - truth[t]).abs()).fold(0.0, f64::max);
        let mut variances = vec![0.0; n];
        strategy.variances(&mut variances);
        let stderr = door.noise() * variances.iter().copied().fold(f64::INFINITY, f64::min).sqrt();
        assert!(worst < 1e-3 * stderr, "bias {worst} against a standard error of {stderr}");
    }
}

#[test]
fn a_door_serves_its_own_strategy_only() {
    let strategy = identity(8);
    let door = Door::fit(&*strategy, Unit::add_remove(1, None).unwrap(), Domain::integral(4).unwrap(), 1.0).unwrap();
    assert!(matches!(door.measure(&*identity(9), 9, Data::Integers(&[0; 9])), Err(Error::Unsupported(_))));
}

/// A large table takes the counting path, a small one bit sets: both agree with counting by hand.
#[test]
fn both_ways_of_counting_agree() {
    let radices = vec![70usize, 3];
    let mut codes = Vec::new();
    let mut table = vec![0i64; 210];
    for r in 0..1000i64 {
        let record = [r * 13 % 70, r * 7 % 3];
        table[(record[0] * 3 + record[1]) as usize] += 1;
        codes.extend(record);
    }
    for sets in [vec![vec![0, 1]], vec![vec![1]]] {
        let weights = vec![1.0];
        let workload = Workload::Marginals { radices: radices.clone(), sets, weights, total_share: 0.0 };
        let strategy = Recipe { workload, mechanism: Mechanism::Output, law: NoiseLaw::Gaussian }.build().unwrap();
        let door =
            Door::fit(&*strategy, Unit::add_remove(1, None).unwrap(), Domain::integral(1 << 20).unwrap(), 1.0).unwrap();
        let key = Key::deterministic([4; 32]);
        let a = door.measure_with(&*strategy, 210, Data::Integers(&table), &key).unwrap();
        let b = door.measure_with(&*strategy, 210, Data::Codes(Codes::Words(&codes)), &key).unwrap();
        assert_eq!(a, b);
    }
}
