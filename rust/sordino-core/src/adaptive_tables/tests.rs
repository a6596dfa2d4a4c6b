use super::*;
use crate::door::NoiseLaw;
use crate::strategy::{Codes, Mechanism, Recipe};
use crate::workload::Workload;
use proptest::prelude::*;

const NOISES: [NoiseLaw; 2] = [NoiseLaw::Laplace, NoiseLaw::Gaussian];

fn pairs(attributes: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = (0..attributes).map(|i| vec![i]).collect();
    sets.extend((0..attributes).flat_map(|i| (i + 1..attributes).map(move |j| vec![i, j])));
    sets.sort();
    sets
}

struct Made {
    strategy: Box<dyn crate::strategy::Strategy>,
    candidates: Candidates,
    door: TableDoor,
    sets: Vec<Vec<usize>>,
}

fn made(levels: &[usize], law: NoiseLaw, unit: Unit, ratio: f64) -> Made {
    let sets = pairs(levels.len());
    let wanted: Vec<f64> = sets.iter().map(|set| if set.len() == 2 { 1.0 } else { 0.0 }).collect();
    let weights = vec![1.0; sets.len()];
    let workload = Workload::Marginals { radices: levels.to_vec(), sets: sets.clone(), weights, total_share: 0.0 };
    let strategy = Recipe { workload, mechanism: Mechanism::Output, law }.build().unwrap();
    let candidates = Candidates::new(levels, &sets, &wanted).unwrap();
    let door = candidates.door(&*strategy, unit, 1000, ratio).unwrap();
    Made { strategy, candidates, door, sets }
}

fn released(made: &Made, codes: &[u8], seed: u8) -> Measured {
    let data = Data::Codes(Codes::Bytes(codes));
    made.candidates.measure(&made.door, &*made.strategy, 0, data, Some(Key::deterministic([seed; 32]))).unwrap()
}

fn one() -> Unit {
    Unit::add_remove(1, None).unwrap()
}

proptest! {
    /// What was measured costs no more than the budget, and leaves what choices need; it can be read again.
    #[test]
    fn the_budget_is_spent_once(
        codes in prop::collection::vec(0u8..3, 4 * 30), seed in any::<u8>(), ratio in 0.01..30.0,
        law in prop::sample::select(&NOISES[..]),
    ) {
        let made = made(&[3, 3, 3, 3], law, one(), ratio);
        let measured = released(&made, &codes, seed);
        let looks = made.candidates.looks(&made.door, &measured).unwrap();
        let spent: f64 = looks.iter().map(|look| match law {
            NoiseLaw::Gaussian => 1.0 / look.variance,
            NoiseLaw::Laplace => 2.0 * (0.5 / look.variance).sqrt().asinh(),
        }).sum();
        let whole = match law {
            NoiseLaw::Gaussian => 1.0 / (ratio * ratio),
            NoiseLaw::Laplace => 1.0 / ratio,
        };
        prop_assert!(spent <= whole * (1.0 + 1e-6) && spent > 0.8 * whole, "{spent} of {whole}");
        prop_assert_eq!(made.candidates.published(&made.door, measured.units().to_vec()).unwrap(), measured.clone());
        for units in [&measured.units()[..measured.units().len() - 1], &measured.units()[..3]] {
            prop_assert!(made.candidates.published(&made.door, units.to_vec()).is_err());
        }
    }

    /// Tables agree on what they have in common, and no cell is negative.
    #[test]
    fn tables_agree(codes in prop::collection::vec(0u8..3, 4 * 30), seed in any::<u8>(), shrink in any::<bool>()) {
        let made = made(&[3, 3, 3, 3], NoiseLaw::Gaussian, one(), 2.0);
        let looks = made.candidates.looks(&made.door, &released(&made, &codes, seed)).unwrap();
        let found = made.candidates.agreed(&looks, Some(30.0), shrink).unwrap();
        let table = |set: &[usize]| {
            let at = made.sets.iter().position(|other| other == set).unwrap();
            made.candidates.own(&found.nearest.tables, at).to_vec()
        };
        prop_assert!(found.nearest.tables.iter().all(|cell| *cell >= 0.0) && found.gap <= 1.01e-3);
        for set in made.sets.iter().filter(|set| set.len() == 2) {
            let both = table(set);
            let rows: Vec<f64> = both.chunks_exact(3).map(|row| row.iter().sum()).collect();
            let columns: Vec<f64> = (0..3).map(|j| both.iter().skip(j).step_by(3).sum()).collect();
            for (found, expected) in
                rows.iter().zip(table(&set[..1])).chain(columns.iter().zip(table(&set[1..])))
            {
                prop_assert!((found - expected).abs() < 1e-6);
            }
            prop_assert!((both.iter().sum::<f64>() - 30.0).abs() < 1e-6);
        }
    }
}

/// With hardly any noise the tables are the true ones.
#[test]
fn without_noise() {
    let codes: Vec<u8> = (0..60u8).flat_map(|i| [i % 3, (i / 2) % 4, i % 2]).collect();
    for law in NOISES {
        let made = made(&[3, 4, 2], law, one(), 1e-4);
        let measured = released(&made, &codes, 1);
        let looks = made.candidates.looks(&made.door, &measured).unwrap();
        let found = made.candidates.agreed(&looks, None, false).unwrap().nearest.tables;
        for (table, set) in made.sets.iter().enumerate().filter(|(_, set)| set.len() == 2) {
            let levels = [3, 4, 2];
            for a in 0..levels[set[0]] {
                for b in 0..levels[set[1]] {
                    let count = codes.chunks_exact(3).filter(|r| r[set[0]] == a as u8 && r[set[1]] == b as u8).count();
                    let own = made.candidates.own(&found, table)[a * levels[set[1]] + b];
                    assert!((own - count as f64).abs() < 0.1, "{set:?} {own} {count}");
                }
            }
        }
    }
}

/// A pair that is tied is chosen before pairs that are not.
#[test]
fn what_is_furthest_off_is_chosen() {
    let codes: Vec<u8> = (0..900u32)
        .flat_map(|i| {
            let mixed = i.wrapping_mul(2_654_435_761) >> 16;
            [(mixed % 3) as u8, (mixed % 3) as u8, (mixed / 3 % 3) as u8, (mixed / 9 % 3) as u8]
        })
        .collect();
    for law in NOISES {
        let made = made(&[3, 3, 3, 3], law, one(), 1.0);
        let looks = made.candidates.looks(&made.door, &released(&made, &codes, 5)).unwrap();
        let tied = made.sets.iter().position(|set| set == &[0, 1]).unwrap();
        assert_eq!(looks[4].table, tied, "{law:?}");
    }
}

/// A choice of three tables, one of which is further off by `d`: with `q = e^{−d/b}`, `b` the scale of the noise, that one wins
/// with `1 − q + q²/3`. 5 standard errors, fixed keys.
#[test]
fn choices_have_their_law() {
    let made = made(&[2, 2], NoiseLaw::Laplace, one(), 1.0);
    let codes = [0u8, 0].repeat(40);
    let weights = [1024u16, 1, 1024];
    // Estimates: the first attribute's table is off by 6, the others are exact.
    let estimates = [37.0, 3.0, 40.0, 0.0, 0.0, 0.0, 40.0, 0.0];
    let share = WHOLE / 3;
    let rounds = 20_000u32;
    let mut wins = 0.0;
    for i in 0..rounds {
        let mut bytes = [9; 32];
        bytes[..4].copy_from_slice(&i.to_le_bytes());
        let data = Data::Codes(Codes::Bytes(&codes));
        let key = Some(Key::deterministic(bytes));
        let measured = made.door.measure(&*made.strategy, 0, data, key, |meter| {
            let scores = Scores { estimates: &estimates, weights: &weights, offsets: vec![0.0, 0.0, 0.0] };
            meter.choose(&scores, share).map(drop)
        });
        wins += f64::from(measured.unwrap().units()[0] == 0);
    }
    // Sets are [0], [0, 1], [1]; a record moves a norm by one, so scores by 1,024 units of 1/256.
    let q = (-6.0 / (2.0 * 3.0f64)).exp();
    let p = 1.0 - q + q * q / 3.0;
    let n = f64::from(rounds);
    assert!((wins - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt(), "{wins} of {n}, expected {}", n * p);
}

/// The epsilon of a choice under Gaussian noise is private enough: `2Φ^{-1}(e^ε/(1+e^ε)) ≤ √(π/2) ε`.
#[test]
fn choices_are_gaussian_private() {
    for k in 1..400 {
        let epsilon = f64::from(k) / 20.0;
        // Φ(√(π/8) ε) ≥ e^ε/(1+e^ε), by a series of the error function.
        let x = (std::f64::consts::PI / 8.0).sqrt() * epsilon / 2f64.sqrt();
        let erf: f64 = (0..200)
            .scan(x, |term, n| {
                let value = *term / f64::from(2 * n + 1);
                *term *= -x * x / f64::from(n + 1);
                Some(value)
            })
            .sum::<f64>()
            * 2.0
            / std::f64::consts::PI.sqrt();
        let phi = if x < 4.0 { 0.5 + 0.5 * erf } else { 1.0 };
        assert!(phi >= 1.0 / (1.0 + (-epsilon).exp()) - 1e-9, "{epsilon}: {phi}");
    }
}

#[test]
fn bad_calls_are_refused() {
    let sets = pairs(2);
    assert!(
        Candidates::new(&[2, 2], &sets, &[0.0; 3]).is_err()
            && Candidates::new(&[2, 2], &sets, &[-1.0, 1.0, 1.0]).is_err()
    );
    assert!(Candidates::new(&[2, 2], &[vec![1], vec![0], vec![0, 1]], &[1.0; 3]).is_err());
    assert!(Candidates::new(&[2, 2], &[vec![0], vec![0, 1]], &[1.0; 2]).is_err());
    assert!(Candidates::new(&[2, 2], &[vec![], vec![0]], &[1.0; 2]).is_err());
    let made = made(&[2, 2], NoiseLaw::Gaussian, one(), 1.0);
    let fit = |lengths: &[usize], ratio| TableDoor::fit(&*made.strategy, lengths, one(), 9, ratio);
    assert!(fit(&[2, 4, 2], 1.0).is_ok() && fit(&[2, 4], 1.0).is_err() && fit(&[], 1.0).is_err());
    assert!(fit(&[2, 4, 2], 0.0).is_err() && fit(&[2, 4, 2], f64::INFINITY).is_err() && fit(&[2, 4, 2], 1e40).is_err());
    // A table could be measured, a choice could not be made.
    let laplace = self::made(&[2, 2], NoiseLaw::Laplace, one(), 1.0);
    let of = |ratio| laplace.candidates.door(&*laplace.strategy, one(), 9, ratio);
    assert!(of(1e5).is_ok() && of(1e7).is_err());
    assert!(TableDoor::fit(&*laplace.strategy, laplace.candidates.lengths(), one(), 9, 1e7).is_ok());
    let codes = [0u8, 1, 1, 1];
    let measured = released(&made, &codes, 1);
    let mut units = measured.units().to_vec();
    units[4] = 3; // no such table
    assert!(made.candidates.published(&made.door, units.clone()).is_err());
    units[4] = 1;
    units[5] = -1; // no such share
    assert!(made.candidates.published(&made.door, units).is_err());
    assert!(made.candidates.agreed(&[], Some(-1.0), false).is_err());
}
