//! Streams on random filters and items, against what they are said to publish.

use crate::Food;
use bolero::check;
use sordino_core::domain::Domain;
use sordino_core::door::{Key, NoiseLaw, StreamDoor};
use sordino_core::objective::Objective;
use sordino_core::stream::{
    Filter, Horizon, Items, LazyStream, Participation, Stream, StreamMechanism, StreamPlan, StreamRecipe,
};
use sordino_core::toeplitz::{OnlineConvolution, OnlineKernel};
use std::sync::{Arc, LazyLock};

const STEPS: u64 = 40;
const KEY: [u8; 32] = [9; 32];
const BOUND: i64 = 1 << 12;

fn plan(filter: Filter, mechanism: StreamMechanism, law: NoiseLaw) -> Result<StreamPlan, sordino_core::error::Error> {
    let (horizon, objective) = (Horizon::Hard(STEPS), Objective::Max);
    StreamPlan::new(StreamRecipe { filter, mechanism, law, horizon, objective, participations: (1, 1) })
}

/// One plan of every mechanism.
pub(crate) static EVERY: LazyLock<Vec<Arc<StreamPlan>>> = LazyLock::new(|| {
    let (gauss, laplace, sum) = (NoiseLaw::Gaussian, NoiseLaw::Laplace, || Filter::RunningSum);
    [
        (sum(), StreamMechanism::BinaryTree, laplace),
        (sum(), StreamMechanism::Identity, gauss),
        (Filter::Decay { decay: 0.9, factor: 0.1 }, StreamMechanism::Buffered { degree: None }, gauss),
        (Filter::RunningAverage, StreamMechanism::Buffered { degree: Some(2) }, gauss),
        (sum(), StreamMechanism::TwoDiagonals, gauss),
        (sum(), StreamMechanism::TimeVarying { degree: None }, gauss),
        (sum(), StreamMechanism::NormalizedSquareRoot, gauss),
        (sum(), StreamMechanism::SquareRoot, gauss),
        (Filter::Taps(vec![1.0, 2.0, -0.5]), StreamMechanism::Outer, gauss),
        (Filter::Window { window: 5, factor: 0.2 }, StreamMechanism::Comb, gauss),
        (sum(), StreamMechanism::Optimal, gauss),
        (sum(), StreamMechanism::HonakerTree, gauss),
        (sum(), StreamMechanism::SmoothTree, gauss),
        (sum(), StreamMechanism::SubtractionTree { branching: Some(3) }, laplace),
        (sum(), StreamMechanism::Output, laplace),
    ]
    .into_iter()
    .map(|(filter, mechanism, law)| Arc::new(plan(filter, mechanism, law).unwrap()))
    .collect()
});

/// Noise of four sensitivities on items with three binary places.
pub(crate) fn door_of(plan: &StreamPlan) -> StreamDoor {
    plan.fit(&[Participation::single()], Domain::real(BOUND as u64, 3).unwrap(), 4.0).unwrap()
}

/// A plan that is quickly made, of a random filter, or one of those above.
fn any_plan(food: &mut Food<'_>) -> Arc<StreamPlan> {
    let filter = match food.byte() % 6 {
        0 => return food.of(&EVERY),
        1 => Filter::RunningSum,
        2 => Filter::RunningAverage,
        3 => Filter::Decay { decay: f64::from(food.byte()) / 256.0, factor: food.real() },
        4 => Filter::Window { window: food.from(0, 9), factor: food.real() },
        _ => {
            let len = food.from(0, 5);
            Filter::Taps(food.reals(len))
        }
    };
    let mechanism = food.of(&[
        StreamMechanism::Identity,
        StreamMechanism::Output,
        StreamMechanism::SquareRoot,
        StreamMechanism::NormalizedSquareRoot,
        StreamMechanism::Outer,
        StreamMechanism::BinaryTree,
        StreamMechanism::HonakerTree,
        StreamMechanism::SmoothTree,
        StreamMechanism::SubtractionTree { branching: Some(5) },
    ]);
    let law = food.of(&[NoiseLaw::Gaussian, NoiseLaw::Laplace]);
    plan(filter, mechanism, law).map_or_else(|_| food.of(&EVERY), Arc::new)
}

/// The filter as it is defined, of increments in units.
fn filtered(filter: &Filter, units: &[i64], dim: usize) -> Vec<f64> {
    let steps = units.len() / dim;
    let taps = filter.taps(steps);
    let mut out = vec![0.0; units.len()];
    for t in 0..steps {
        for c in 0..dim {
            let sum: f64 = taps.iter().take(t + 1).enumerate().map(|(j, h)| h * units[(t - j) * dim + c] as f64).sum();
            out[t * dim + c] = if *filter == Filter::RunningAverage { sum / (t + 1) as f64 } else { sum };
        }
    }
    out
}

fn published(stream: &mut Stream, items: &[i64]) -> (Vec<f64>, Vec<i64>) {
    let (mut values, mut units) = (vec![0.0; items.len()], vec![0; items.len()]);
    stream.update(Items::Integers(items), &mut values, Some(&mut units)).unwrap();
    (values, units)
}

#[test]
fn steps() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let plan = any_plan(&mut food);
        let (dim, steps) = (food.from(1, 3), food.from(1, STEPS as usize));
        let Ok(door) = plan.fit(&[Participation::single()], Domain::real(BOUND as u64, 3).unwrap(), 4.0) else {
            return;
        };
        let open = || Stream::open_with(Arc::clone(&plan), door, dim, Key::deterministic(KEY)).unwrap();
        let items: Vec<i64> = (0..dim * steps).map(|_| food.integer()).collect();
        let (values, units) = published(&mut open(), &items);
        // Noise does not depend on the items: what is left is they, clamped, on the lattice.
        let (_, noise) = published(&mut open(), &vec![0; items.len()]);
        for ((unit, noise), item) in units.iter().zip(&noise).zip(&items) {
            assert_eq!(unit - noise, item.clamp(&-BOUND, &BOUND) << -door.exponent());
        }
        // Answers are the filter of what was published.
        let spacing = 2f64.powi(door.exponent());
        let size: f64 = plan.recipe().filter.taps(steps).iter().map(|h| h.abs()).sum::<f64>()
            * units.iter().map(|u| u.unsigned_abs()).max().unwrap_or(0) as f64;
        for (value, expected) in values.iter().zip(filtered(&plan.recipe().filter, &units, dim)) {
            assert!((value / spacing - expected).abs() <= 1e-11 * size, "{:?} {value} {expected}", plan.recipe());
        }
        // Cut anywhere, saved, restored, gone through without items, or replayed: the same.
        let mut pieces = open();
        let mut done = 0;
        while done < steps {
            let next = (done + food.from(1, 9)).min(steps);
            let range = done * dim..next * dim;
            match if food.is_empty() { 3 } else { food.byte() % 4 } {
                0 => {
                    let checkpoint = pieces.checkpoint(&KEY, b"").unwrap();
                    pieces = Stream::restore(Arc::clone(&plan), door, dim, &KEY, &checkpoint).unwrap();
                    continue;
                }
                1 => pieces.skip(&units[range]).unwrap(),
                2 => {
                    let mut out = vec![0.0; range.len()];
                    assert!(
                        pieces.replay(Items::Integers(&items[range.clone()]), &mut out, &units[range.clone()]).unwrap()
                    );
                    assert_eq!(out, values[range]);
                }
                _ => {
                    let found = published(&mut pieces, &items[range.clone()]);
                    assert_eq!((&found.0[..], &found.1[..]), (&values[range.clone()], &units[range]));
                }
            }
            done = next;
        }
        assert_eq!(pieces.answers(), &values[(steps - 1) * dim..]);
    });
}

#[test]
fn lazy_sums() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let plan = any_plan(&mut food);
        let dim = food.from(1, 6) as u64;
        let Ok(door) = plan.fit(&[Participation::single()], Domain::integral(BOUND as u64).unwrap(), 4.0) else {
            return;
        };
        let open = || LazyStream::open(Arc::clone(&plan), door, dim, Some(KEY));
        let (Ok(mut with), Ok(mut without)) = (open(), open()) else { return };
        let all: Vec<u64> = (0..dim).collect();
        let mut sums = vec![0i64; dim as usize];
        for _ in 0..food.from(1, 12) {
            let coordinates: Vec<u64> = (0..food.from(0, 4)).map(|_| food.word() % dim).collect();
            let amounts: Vec<i64> = coordinates.iter().map(|_| i64::from(food.byte() as i8)).collect();
            if with.advance_single(&coordinates, &amounts, &[coordinates.len()]).is_err() {
                return;
            }
            without.advance_single(&[], &[], &[0]).unwrap();
            coordinates.iter().zip(&amounts).for_each(|(c, amount)| sums[*c as usize] += amount);
            let (mut read, mut noise, mut again) = (vec![0.0; all.len()], vec![0.0; all.len()], vec![0.0; all.len()]);
            with.read(&all, &mut read).unwrap();
            without.read(&all, &mut noise).unwrap();
            let back: Vec<u64> = all.iter().rev().copied().collect();
            with.read(&back, &mut again).unwrap();
            again.reverse();
            assert_eq!(read, again);
            for ((value, noise), sum) in read.iter().zip(&noise).zip(&sums) {
                assert!((value - noise - *sum as f64).abs() < 1e-6, "{:?} {value} {noise} {sum}", plan.recipe());
            }
        }
    });
}

/// Sums of products of a stream, against all of them, at any magnitude that is let in.
#[test]
fn convolutions() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let repeats = food.from(1, 40);
        let taps: Vec<i64> = (0..food.from(1, 40))
            .flat_map(|_| std::iter::repeat_n(food.integer() % (1 << 40), repeats).collect::<Vec<_>>())
            .collect();
        let kernel = Arc::new(OnlineKernel::new(taps.into()).unwrap());
        let most = kernel.max_input();
        let mut stream = OnlineConvolution::new(Arc::clone(&kernel));
        let mut past: Vec<i128> = Vec::new();
        for _ in 0..food.from(0, 60) {
            let value = match food.byte() % 4 {
                0 => most,
                1 => -most,
                _ => (i128::from(food.integer()) << (food.byte() % 40)).clamp(-most, most),
            };
            for _ in 0..food.from(1, 30) {
                let t = past.len();
                let naive: i128 =
                    (1..kernel.taps().len().min(t + 1)).map(|lag| i128::from(kernel.taps()[lag]) * past[t - lag]).sum();
                assert_eq!(stream.next(), naive, "step {t}");
                stream.push(value);
                past.push(value);
            }
            if food.byte().is_multiple_of(4) {
                stream = OnlineConvolution::restore(Arc::clone(&kernel), stream.state()).unwrap();
            }
        }
    });
}
