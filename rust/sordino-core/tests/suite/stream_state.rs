//! The state of a stream: checkpoints, replays, and requests that are refused and change nothing.

use crate::common::every::{EVERY, STEPS, open};
use crate::common::streams::plan;
use sordino_core::domain::Domain;
use sordino_core::door::{Key, NoiseLaw};
use sordino_core::error::Error;
use sordino_core::objective::Objective;
use sordino_core::stream::{Filter, Horizon, Items, Participation, Stream, StreamMechanism, StreamPlan, header};
use std::sync::Arc;

const KEY: [u8; 32] = [11; 32];

fn items(steps: usize, dim: usize) -> Vec<i64> {
    (0..(steps * dim) as i64).map(|i| i * i % 101 - 40).collect()
}

fn publish(stream: &mut Stream, items: &[i64]) -> (Vec<f64>, Vec<i64>) {
    let (mut values, mut units) = (vec![0.0; items.len()], vec![0; items.len()]);
    stream.update(Items::Integers(items), &mut values, Some(&mut units)).unwrap();
    (values, units)
}

fn restore(plan: &Arc<StreamPlan>, stream: &Stream, bytes: &[u8]) -> Result<Stream, Error> {
    Stream::restore(Arc::clone(plan), *stream.door(), stream.dim(), &KEY, bytes)
}

#[test]
fn a_restored_stream_goes_on() {
    let n = STEPS as usize;
    for plan in EVERY.iter() {
        for dim in [1, 3] {
            let items = items(n, dim);
            let (expected, units) = publish(&mut open(plan, dim, 9), &items);
            let mut stream = open(plan, dim, 9);
            for t in 0..=n {
                let public = format!("step {t}").into_bytes();
                let bytes = stream.checkpoint(&KEY, &public).unwrap();
                assert_eq!(header(&bytes).unwrap(), public);
                let mut restored = restore(plan, &stream, &bytes).unwrap();
                assert_eq!((restored.step(), restored.answers()), (t as u64, stream.answers()));
                if t % 13 == 0 && t < n {
                    let rest = publish(&mut restored, &items[t * dim..]);
                    assert_eq!(rest.0, expected[t * dim..], "{:?} {t}", plan.recipe());
                    assert_eq!(rest.1, units[t * dim..], "{:?} {t}", plan.recipe());
                    // From now on, and to the end, a stream that was restored again and again.
                    stream = restore(plan, &stream, &bytes).unwrap();
                }
                if t < n {
                    let (value, _) = publish(&mut stream, &items[t * dim..][..dim]);
                    assert_eq!(value, expected[t * dim..][..dim], "{:?} {t}", plan.recipe());
                }
            }
        }
    }
}

/// An old state goes through steps that were published elsewhere without their items, and then is where that one is.
#[test]
fn published_steps_are_skipped_without_their_items() {
    let n = STEPS as usize;
    for plan in EVERY.iter() {
        for dim in [1, 3] {
            let items = items(n, dim);
            let (expected, units) = publish(&mut open(plan, dim, 9), &items);
            for (from, to) in [(0, 1), (0, n), (3, 17), (n / 2, n - 1)] {
                let mut stream = open(plan, dim, 9);
                if from > 0 {
                    publish(&mut stream, &items[..from * dim]);
                }
                stream.skip(&units[from * dim..to * dim]).unwrap();
                assert_eq!((stream.step(), stream.answers()), (to as u64, &expected[(to - 1) * dim..to * dim]));
                assert!(stream.skip(&vec![0; (n - to + 1) * dim]).is_err());
                if to == n {
                    continue;
                }
                let (values, rest) = publish(&mut stream, &items[to * dim..]);
                assert_eq!((values.as_slice(), rest.as_slice()), (&expected[to * dim..], &units[to * dim..]));
            }
        }
    }
}

/// A fresh key changes the noise of samples that come, and nothing of what was drawn.
#[test]
fn a_fresh_key_is_for_what_comes() {
    for plan in EVERY.iter() {
        let rows = items(12, 2);
        let (_, units) = publish(&mut open(plan, 2, 9), &rows);
        let fresh: Vec<Vec<i64>> = (0..3)
            .map(|_| {
                let mut stream = open(plan, 2, 9);
                assert_eq!(publish(&mut stream, &rows[..12]).1, units[..12]);
                let before = stream.answers().to_vec();
                stream.rekey().unwrap();
                assert_eq!((stream.step(), stream.answers()), (6, before.as_slice()));
                publish(&mut stream, &rows[12..]).1
            })
            .collect();
        assert!(fresh[0] != fresh[1] && fresh[1] != fresh[2] && fresh[0] != units[12..], "{:?}", plan.recipe());
    }
    let mut closed = open(&EVERY[0], 1, 9);
    closed.close();
    assert!(matches!(closed.rekey(), Err(Error::Closed)) && matches!(closed.skip(&[0]), Err(Error::Closed)));
}

/// A state, the steps behind it and the keys that were taken among them are the state of now.
#[test]
fn sealed_keys_take_a_state_on() {
    for plan in EVERY.iter() {
        let rows = items(12, 2);
        let mut stream = open(plan, 2, 9);
        publish(&mut stream, &rows[..4]);
        let state = stream.checkpoint(&KEY, b"public").unwrap();
        let mut behind = Vec::new();
        for (place, part) in [(b"first ", &rows[4..10]), (b"second", &rows[10..16])] {
            stream.rekey().unwrap();
            let sealed = stream.sealed_key(&KEY, place).unwrap();
            behind.push((place, sealed, publish(&mut stream, part).1));
        }
        let mut restored = restore(plan, &stream, &state).unwrap();
        for (place, sealed, units) in &behind {
            assert!(matches!(restored.take_key(&KEY, b"elsewhere", sealed), Err(Error::Checkpoint)));
            restored.take_key(&KEY, *place, sealed).unwrap();
            restored.skip(units).unwrap();
        }
        assert_eq!(restored.answers(), stream.answers());
        assert_eq!(publish(&mut restored, &rows[16..]), publish(&mut stream, &rows[16..]), "{:?}", plan.recipe());
        stream.close();
        assert!(stream.sealed_key(&KEY, b"first ").is_err() && stream.take_key(&KEY, b"first ", &behind[0].1).is_err());
    }
}

#[test]
fn altered_checkpoints_are_refused() {
    for plan in EVERY.iter() {
        let mut stream = open(plan, 1, 9);
        publish(&mut stream, &items(5, 1));
        let bytes = stream.checkpoint(&KEY, b"public").unwrap();
        let refused = |bytes: &[u8]| matches!(restore(plan, &stream, bytes), Err(Error::Checkpoint));
        assert!(!refused(&bytes));
        let step = bytes.len() / 400 + 1;
        for i in (0..bytes.len()).step_by(step).chain(0..bytes.len().min(60)) {
            for flip in [1, 0x80] {
                let mut altered = bytes.clone();
                altered[i] ^= flip;
                assert!(refused(&altered), "{:?} byte {i}", plan.recipe());
            }
        }
        for len in (0..bytes.len()).step_by(step) {
            assert!(refused(&bytes[..len]), "{:?} {len}", plan.recipe());
        }
        assert!(refused(&[bytes.as_slice(), &[0]].concat()));
        let other = Stream::restore(Arc::clone(plan), *stream.door(), 1, &[12; 32], &bytes);
        assert_eq!(other.unwrap_err(), Error::Checkpoint);
        // Another nonce every time.
        assert_ne!(stream.checkpoint(&KEY, b"public").unwrap(), bytes);
    }
    assert_eq!(header(b"").unwrap_err(), Error::Checkpoint);
    assert_eq!(header(b"sordino\x01\xff\xff\xff\xff\xff\xff\xff\xff").unwrap_err(), Error::Checkpoint);
}

/// A state under another plan, noise or shape would go on with noise that covers something else.
#[test]
fn checkpoints_of_other_plans_are_refused() {
    let sums = |mechanism, horizon| plan(Filter::RunningSum, mechanism, NoiseLaw::Gaussian, horizon, Objective::Max);
    let three = StreamMechanism::Buffered { degree: Some(3) };
    let own = sums(three, Horizon::Hard(200));
    let mut stream = open(&own, 2, 4);
    publish(&mut stream, &items(20, 2));
    let bytes = stream.checkpoint(&KEY, b"").unwrap();
    let door = *stream.door();
    let domain = Domain::real(1 << 16, 8).unwrap();
    let single = Participation::single();
    let refused = |plan: &Arc<StreamPlan>, door, dim| {
        matches!(Stream::restore(Arc::clone(plan), door, dim, &KEY, &bytes), Err(Error::Checkpoint))
    };
    assert!(!refused(&own, door, 2));
    // The same number of buffers, other parameters.
    for other in [sums(three, Horizon::Hard(201)), sums(three, Horizon::Soft(200))] {
        assert!(refused(&other, door, 2));
        assert!(refused(&other, other.fit(&[single], domain, 4.0).unwrap(), 2));
    }
    let average = plan(Filter::RunningAverage, three, NoiseLaw::Gaussian, Horizon::Hard(200), Objective::Max);
    assert!(refused(&average, door, 2));
    // The same plan with less noise, another domain, another participation, another shape.
    assert!(refused(&own, own.fit(&[single], domain, 2.0).unwrap(), 2));
    assert!(refused(&own, own.fit(&[single], Domain::real(1 << 15, 8).unwrap(), 4.0).unwrap(), 2));
    assert!(refused(&own, own.fit(&[Participation::new(2, 1, 1).unwrap()], domain, 4.0).unwrap(), 2));
    assert!(refused(&own, door, 1));
    assert!(refused(&sums(StreamMechanism::SquareRoot, Horizon::Hard(200)), door, 2));
    // Made anew from the same recipe it is the same plan.
    let again = sums(three, Horizon::Hard(200));
    assert!(!refused(&again, again.fit(&[single], domain, 4.0).unwrap(), 2));
}

#[test]
fn replays_are_idempotent_and_refuse_other_items() {
    let n = STEPS as usize;
    for plan in EVERY.iter() {
        let dim = 2;
        let items = items(n, dim);
        let (values, units) = publish(&mut open(plan, dim, 2), &items);
        let mut stream = open(plan, dim, 2);
        publish(&mut stream, &items[..30 * dim]);
        // The last ten steps were published, then the state was lost.
        let range = 30 * dim..40 * dim;
        let mut out = vec![0.0; 10 * dim];
        for changed in [0, 7, 10 * dim - 1] {
            let mut other = items[range.clone()].to_vec();
            other[changed] += 1;
            assert!(!stream.replay(Items::Integers(&other), &mut out, &units[range.clone()]).unwrap());
            assert!(out.iter().all(|v| v.is_nan()) && stream.step() == 30);
            assert_eq!(stream.answers(), &values[29 * dim..30 * dim]);
        }
        let short = stream.replay(Items::Integers(&items[range.clone()]), &mut out, &units[30 * dim..39 * dim]);
        assert!(matches!(short, Err(Error::Shape { .. })) && stream.step() == 30);
        assert!(stream.replay(Items::Integers(&items[range.clone()]), &mut out, &units[range.clone()]).unwrap());
        assert_eq!(out, values[range]);
        assert_eq!(publish(&mut stream, &items[40 * dim..]).0, values[40 * dim..], "{:?}", plan.recipe());
    }
}

#[test]
fn refusals_change_nothing() {
    let n = STEPS as usize;
    for plan in EVERY.iter() {
        let items = items(n, 2);
        let (values, _) = publish(&mut open(plan, 2, 1), &items);
        let mut stream = open(plan, 2, 1);
        publish(&mut stream, &items[..20]);
        let mut out = vec![0.0; 2 * n];
        let mut refuse = |stream: &mut Stream, items: Items<'_>, len: usize, units: Option<usize>| {
            let mut units = units.map(|len| vec![0; len]);
            stream.update(items, &mut out[..len], units.as_deref_mut()).unwrap_err()
        };
        let shape = |error: Error| matches!(error, Error::Shape { .. });
        assert!(shape(refuse(&mut stream, Items::Integers(&items[..3]), 3, None)));
        assert!(shape(refuse(&mut stream, Items::Integers(&[]), 0, None)));
        assert!(shape(refuse(&mut stream, Items::Integers(&items[..4]), 2, None)));
        assert!(shape(refuse(&mut stream, Items::Integers(&items[..4]), 4, Some(2))));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = refuse(&mut stream, Items::Reals(&[0.0, 1.0, 2.0, bad]), 4, None);
            assert!(matches!(error, Error::InvalidParameter { .. }));
        }
        let error = refuse(&mut stream, Items::Integers(&items), 2 * n, None);
        assert_eq!(error, Error::Horizon { left: STEPS - 10 });
        assert_eq!((stream.step(), stream.answers()), (10, &values[18..20]));
        assert_eq!(publish(&mut stream, &items[20..]).0, values[20..], "{:?}", plan.recipe());
        let error = refuse(&mut stream, Items::Integers(&items[..2]), 2, None);
        assert_eq!(error, Error::Horizon { left: 0 });

        stream.close();
        assert!(stream.closed());
        assert_eq!(refuse(&mut stream, Items::Integers(&items[..2]), 2, None), Error::Closed);
        assert_eq!(stream.checkpoint(&KEY, b"").unwrap_err(), Error::Closed);
        assert_eq!(stream.replay(Items::Integers(&items[..2]), &mut [0.0; 2], &[0; 2]).unwrap_err(), Error::Closed);
    }
}

#[test]
fn shapes_and_recipes_are_checked() {
    let plan = &EVERY[0];
    let door = *open(plan, 1, 1).door();
    for dim in [0, (1 << 28) + 1] {
        assert!(Stream::open_with(Arc::clone(plan), door, dim, Key::deterministic([0; 32])).is_err());
    }
    assert!(plan.variances(&[0]).is_err() && plan.variances(&[STEPS + 1]).is_err());
    let recipe = plan.recipe().clone();
    for horizon in [Horizon::Hard(0), Horizon::Soft(0), Horizon::Hard((1 << 40) + 1)] {
        assert!(StreamPlan::new(sordino_core::stream::StreamRecipe { horizon, ..recipe.clone() }).is_err());
    }
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert!(plan.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), ratio).is_err());
    }
    // Two openings of one plan have different noise.
    let mut one = Stream::open(Arc::clone(plan), door, 1).unwrap();
    let mut two = Stream::open(Arc::clone(plan), door, 1).unwrap();
    assert_ne!(publish(&mut one, &[0; 20]), publish(&mut two, &[0; 20]));
}
