//! Streams: noise of every mechanism, truth, batches cut anywhere, items beyond their bounds.

use crate::common::every::{EVERY, STEPS, open};
use crate::common::streams;
use proptest::prelude::*;
use sordino_core::domain::Domain;
use sordino_core::door::{Key, MAX_QUARTER_UNITS, NoiseLaw};
use sordino_core::objective::Objective;
use sordino_core::stream::{Filter, Horizon, Items, Participation, Stream, StreamMechanism};
use std::sync::Arc;

/// Answers and increments of a batch.
fn publish(stream: &mut Stream, items: Items<'_>) -> (Vec<f64>, Vec<i64>) {
    let (mut values, mut units) = (vec![0.0; items.len()], vec![0; items.len()]);
    stream.update(items, &mut values, Some(&mut units)).unwrap();
    (values, units)
}

#[test]
fn variances_are_those_of_the_noise() {
    let streams = 4000;
    for plan in EVERY.iter() {
        let steps: Vec<u64> = (1..=40).collect();
        let expected = plan.variances(&steps).unwrap();
        let mut stream = open(plan, streams, 3);
        let noise = stream.door().noise();
        let (values, _) = publish(&mut stream, Items::Integers(&vec![0; streams * 40]));
        for (t, row) in values.chunks_exact(streams).enumerate() {
            let found = row.iter().map(|v| (v / noise).powi(2)).sum::<f64>() / streams as f64;
            // Relative standard deviation of a variance: √(2/4000) = 0.022 (Laplace 0.035); false alarm < 1e-9.
            let width = if plan.recipe().law == NoiseLaw::Laplace { 0.24 } else { 0.15 };
            assert!((found / expected[t] - 1.0).abs() < width, "{:?} {t} {found} {}", plan.recipe(), expected[t]);
        }
    }
}

/// The same noise with and without items: what is left is the filter of the items.
#[test]
fn truth_comes_through() {
    let n = STEPS as usize;
    let items: Vec<i64> = (0..2 * n as i64).map(|t| t * t % 17 - 3).collect();
    for plan in EVERY.iter() {
        let with = publish(&mut open(plan, 2, 5), Items::Integers(&items));
        let without = publish(&mut open(plan, 2, 5), Items::Integers(&vec![0; 2 * n]));
        let taps = plan.recipe().filter.taps(n);
        for t in 0..n {
            for c in 0..2 {
                let sum: f64 =
                    taps.iter().take(t + 1).enumerate().map(|(j, h)| h * items[2 * (t - j) + c] as f64).sum();
                let truth = if plan.recipe().filter == Filter::RunningAverage { sum / (t + 1) as f64 } else { sum };
                let found = with.0[2 * t + c] - without.0[2 * t + c];
                assert!((found - truth).abs() < 1e-6, "{:?} {t} {found} {truth}", plan.recipe());
            }
        }
    }
}

#[test]
fn coordinates_have_independent_noise() {
    // Correlation of 150·dim products of increments: standard deviation below 0.03 for all mechanisms.
    for plan in EVERY.iter() {
        let (_, units) = publish(&mut open(plan, 32, 6), Items::Integers(&vec![0; 32 * STEPS as usize]));
        let (mut product, mut square) = (0.0, 0.0);
        for row in units.chunks_exact(32) {
            for c in 0..32 {
                product += row[c] as f64 * row[(c + 1) % 32] as f64;
                square += (row[c] as f64).powi(2);
            }
        }
        assert!((product / square).abs() < 0.2, "{:?} {}", plan.recipe(), product / square);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn batches_may_be_cut_anywhere(
        index in 0..EVERY.len(),
        dim in 1usize..=5,
        cuts in prop::collection::vec(1usize..40, 1..6),
        seed in any::<u32>(),
        real in any::<bool>(),
    ) {
        let plan = &EVERY[index];
        let cuts: Vec<usize> = cuts.into_iter().scan(STEPS as usize, |left, cut| {
            let cut = cut.min(*left);
            *left -= cut;
            (cut > 0).then_some(cut)
        }).collect();
        let total: usize = cuts.iter().sum();
        let reals: Vec<f64> = (0..total * dim).map(|i| f64::from(seed.wrapping_mul(i as u32 + 1) >> 12) / 64.0 - 9000.0).collect();
        let integers: Vec<i64> = reals.iter().map(|x| *x as i64).collect();
        let items = |range: std::ops::Range<usize>| if real { Items::Reals(&reals[range]) } else { Items::Integers(&integers[range]) };
        let mut whole = open(plan, dim, 7);
        let expected = publish(&mut whole, items(0..total * dim));
        let mut pieces = open(plan, dim, 7);
        let mut start = 0;
        for cut in cuts {
            let range = start..start + cut * dim;
            let found = publish(&mut pieces, items(range.clone()));
            prop_assert_eq!(&found.0, &expected.0[range.clone()]);
            prop_assert_eq!(&found.1, &expected.1[range]);
            start += cut * dim;
        }
        prop_assert_eq!(pieces.step(), whole.step());
        prop_assert_eq!(pieces.answers(), whole.answers());
    }
}

/// Items beyond the bound count as the bound, and nothing overflows, at the largest noise either.
#[test]
fn huge_items_are_clamped() {
    for plan in EVERY.iter() {
        for bound in [1u64 << 13, 1 << 5] {
            let domain = Domain::real(bound, 4).unwrap();
            let single = Participation::single();
            // Doubling the noise until it does not fit the lattice.
            let fits = |ratio: f64| plan.fit(&[single], domain, ratio).ok();
            let ratio = std::iter::successors(Some(1.0), |r| Some(r * 2.0)).find(|r| fits(r * 2.0).is_none()).unwrap();
            for door in [fits(1.0).unwrap(), fits(ratio).unwrap()] {
                assert!(ratio < 1e15 && door.quarter_units() <= MAX_QUARTER_UNITS);
                let run = |items: Items<'_>| {
                    let key = Key::deterministic([8; 32]);
                    publish(&mut Stream::open_with(Arc::clone(plan), door, 1, key).unwrap(), items)
                };
                let limit = bound as i64;
                let n = STEPS as usize;
                for (huge, real, at_limit) in
                    [(i64::MAX, f64::MAX, limit), (i64::MIN, f64::MIN, -limit), (limit + 1, limit as f64 + 0.01, limit)]
                {
                    let expected = run(Items::Integers(&vec![at_limit; n]));
                    assert_eq!(run(Items::Integers(&vec![huge; n])), expected);
                    assert_eq!(run(Items::Reals(&vec![real; n])), expected);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn the_largest_variance_is_at_a_worst_step(steps in 1u64..3000, tree in 0usize..3) {
        let (mechanism, law) = [
            (StreamMechanism::BinaryTree, NoiseLaw::Gaussian),
            (StreamMechanism::HonakerTree, NoiseLaw::Gaussian),
            (StreamMechanism::SubtractionTree { branching: None }, NoiseLaw::Laplace),
        ][tree];
        let plan = streams::plan(Filter::RunningSum, mechanism, law, Horizon::Hard(steps), Objective::Max);
        let largest = |steps: &[u64]| plan.variances(steps).unwrap().into_iter().fold(0.0, f64::max);
        let all: Vec<u64> = (1..=steps).collect();
        let mut worst = plan.worst_steps(steps);
        worst.push(steps);
        prop_assert!((largest(&worst) / largest(&all) - 1.0).abs() < 1e-12);
    }
}
