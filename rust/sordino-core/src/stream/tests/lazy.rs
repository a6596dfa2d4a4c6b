//! Running sums that are read by coordinate: the process of each, from its own samples.

use super::*;
use crate::domain::Domain;
use crate::door::Key;
use crate::error::Error;
use crate::stream::keyed::KeyedNoise;
use crate::stream::{LazyStream, Participation};
use std::sync::Arc;

const STEPS: u64 = 37;

fn plans() -> Vec<(StreamMechanism, NoiseLaw)> {
    let gaussian = [
        StreamMechanism::Identity,
        StreamMechanism::Output,
        StreamMechanism::Buffered { degree: None },
        StreamMechanism::TwoDiagonals,
        StreamMechanism::TimeVarying { degree: None },
        StreamMechanism::SquareRoot,
        StreamMechanism::Optimal,
        StreamMechanism::BinaryTree,
        StreamMechanism::HonakerTree,
        StreamMechanism::SmoothTree,
    ];
    let laplace = [
        StreamMechanism::Identity,
        StreamMechanism::Output,
        StreamMechanism::BinaryTree,
        StreamMechanism::SmoothTree,
        StreamMechanism::SubtractionTree { branching: None },
    ];
    let law = |law| move |mechanism: &StreamMechanism| (*mechanism, law);
    gaussian.iter().map(law(NoiseLaw::Gaussian)).chain(laplace.iter().map(law(NoiseLaw::Laplace))).collect()
}

fn sums(mechanism: StreamMechanism, law: NoiseLaw) -> Arc<StreamPlan> {
    Arc::new(plan(Filter::RunningSum, mechanism, law, Horizon::Hard(STEPS), Objective::Mean))
}

fn open(plan: &Arc<StreamPlan>, dim: u64) -> LazyStream {
    let door = plan.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), 4.0).unwrap();
    LazyStream::open(Arc::clone(plan), door, dim, Some([5; 32])).unwrap()
}

#[test]
fn a_coordinate_has_the_noise_of_its_process() {
    let keys = [(0, Key::deterministic([5; 32]))];
    for (mechanism, law) in plans() {
        let plan = sums(mechanism, law);
        let door = plan.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), 4.0).unwrap();
        let stride = plan.strategy().samples(STEPS);
        let mut stream = open(&plan, 1000);
        let unit = 2f64.powi(door.exponent());
        for coordinate in [0, 3, 999] {
            let mut source = door.source(Key::deterministic([5; 32]));
            source.seek(coordinate * stride);
            let mut process = plan.strategy().process(1, door.quarter_units());
            let mut row = [0];
            let mut sum = 0i128;
            let mut expected = Vec::new();
            for _ in 0..STEPS {
                process.next(&mut source, &mut row);
                sum += i128::from(row[0]);
                expected.push(sum);
            }
            assert!(source.position() <= (coordinate + 1) * stride, "{mechanism:?} draws more than its share");
            for (t, sum) in expected.iter().enumerate() {
                let mut noise = KeyedNoise::new(door, &keys);
                let found =
                    plan.strategy().summed_noise(&mut noise, coordinate * stride, door.quarter_units(), t as u64 + 1);
                assert_eq!(found, *sum, "{mechanism:?} {law:?} step {}", t + 1);
            }
            if coordinate == 3 {
                for t in 0..STEPS as usize {
                    stream.advance_single(&[3, 999], &[2, 1], &[2]).unwrap();
                    let mut out = [0.0; 2];
                    stream.read(&[3, 3], &mut out).unwrap();
                    let exact = ((2 * (t as i128 + 1)) << door.grid().unsigned_abs()) + expected[t];
                    assert_eq!(out, [exact as f64 * unit; 2]);
                }
            }
        }
    }
}

#[test]
fn malformed_calls_change_nothing() {
    let plan = sums(StreamMechanism::BinaryTree, NoiseLaw::Gaussian);
    let mut stream = open(&plan, 10);
    assert!(stream.advance_single(&[10], &[1], &[1]).is_err());
    assert!(stream.advance_single(&[1], &[1, 2], &[1]).is_err());
    assert!(stream.advance_single(&[1], &[1], &[0]).is_err());
    assert!(stream.advance_single(&[], &[], &[0; STEPS as usize + 1]).is_err());
    assert_eq!(stream.step(), 0);
    let mut out = [1.0];
    stream.read(&[0], &mut out).unwrap();
    assert_eq!(out, [0.0]);
    stream.advance_single(&[], &[], &[0; STEPS as usize]).unwrap();
    assert!(stream.read(&[10], &mut out).is_err());
    assert!(matches!(stream.check(1), Err(Error::Horizon { left: 0 })));
    stream.close();
    assert!(matches!(stream.read(&[0], &mut out), Err(Error::Closed)));
}

#[test]
fn keys_have_room_for_every_sample() {
    let plan = sums(StreamMechanism::BinaryTree, NoiseLaw::Gaussian);
    let door = plan.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), 4.0).unwrap();
    assert!(LazyStream::open(Arc::clone(&plan), door, (1 << 62) / STEPS, None).is_ok());
    assert!(LazyStream::open(Arc::clone(&plan), door, (1 << 62) / STEPS + 1, None).is_err());
    assert!(LazyStream::open(plan, door, 0, None).is_err());
}

/// Column norms of exchanges and runs against the matrix, for strategies that have one.
#[test]
fn exchanges_and_several_patterns() {
    for (mechanism, law) in plans() {
        let plan = sums(mechanism, law);
        let single = plan.sensitivity(&[Participation::single()]).get();
        let exchange = plan.sensitivity(&[Participation::single().exchanged()]).get();
        assert!(exchange >= single * (1.0 - 1e-12) && exchange <= 2.0 * single * (1.0 + 1e-12), "{mechanism:?}");
        let run = Participation::new(3, 1, 1).unwrap();
        let both = plan.sensitivity(&[Participation::single(), run]).get();
        let other = plan.sensitivity(&[run]).get();
        let expected = if law == NoiseLaw::Laplace { single + other } else { single.hypot(other) };
        assert!(both >= expected * (1.0 - 1e-12) && both <= expected * (1.0 + 1e-12), "{mechanism:?}");
    }
}

/// What a step changes a coordinate by is clamped as one item, however many events it is made of.
#[test]
fn steps_are_clamped_to_the_domain() {
    let most = 1i64 << 16;
    let plan = sums(StreamMechanism::BinaryTree, NoiseLaw::Laplace);
    let (mut events, mut clamped) = (open(&plan, 10), open(&plan, 10));
    // Three steps: one event far beyond, many events together, events that cancel.
    let places = [vec![4], vec![7; 50], vec![4, 4, 9]].concat();
    let amounts = [vec![i64::MAX], vec![3000; 50], vec![i64::MIN, i64::MIN, -1]].concat();
    events.advance_single(&places, &amounts, &[1, 51, 54]).unwrap();
    clamped.advance_single(&[4, 7, 4, 9], &[most, most, -most, -1], &[1, 2, 4]).unwrap();
    let (mut one, mut other) = ([0.0; 10], [0.0; 10]);
    let everything: Vec<u64> = (0..10).collect();
    events.read(&everything, &mut one).unwrap();
    clamped.read(&everything, &mut other).unwrap();
    assert_eq!(one, other);
}

/// Keys go into another stream, in its place and under the key of sealing alone; the same items give the same sums.
#[test]
fn a_sealed_stream_reads_the_same() {
    let (key, place) = ([3; 32], b"row 5");
    let plan = sums(StreamMechanism::BinaryTree, NoiseLaw::Gaussian);
    let door = plan.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), 4.0).unwrap();
    for dim in [1 << 10, 1 << 40] {
        let mut stream = open(&plan, dim);
        stream.advance_single(&[3, 900, 3], &[2, -1, 5], &[1, 3]).unwrap();
        stream.rekey().unwrap();
        stream.advance_single(&[3], &[4], &[1]).unwrap();
        let sealed = stream.sealed(&key, place).unwrap();
        let unsealed = |key: &[u8; 32], place: &[u8], sealed: &[u8]| {
            LazyStream::unsealed(Arc::clone(&plan), door, dim, key, place, sealed)
        };
        let mut other = unsealed(&key, place, &sealed).unwrap();
        assert_eq!(other.step(), 0);
        other.advance_single(&[3, 900, 3, 3], &[2, -1, 5, 4], &[1, 3, 4]).unwrap();
        for _ in 0..2 {
            assert_eq!((read(&stream), stream.step()), (read(&other), other.step()));
            stream.advance_single(&[7], &[1], &[1]).unwrap();
            other.advance_single(&[7], &[1], &[1]).unwrap();
        }
        assert!(unsealed(&[4; 32], place, &sealed).is_err() && unsealed(&key, b"row 6", &sealed).is_err());
        assert!(LazyStream::unsealed(Arc::clone(&plan), door, dim + 1, &key, place, &sealed).is_err());
    }
}

fn read(stream: &LazyStream) -> Vec<f64> {
    let coordinates: Vec<u64> = (0..200).chain([900]).collect();
    let mut out = vec![0.0; coordinates.len()];
    stream.read(&coordinates, &mut out).unwrap();
    out
}

/// With a fresh key nothing changes of what was published; of what comes, all noise is another.
#[test]
fn a_fresh_key_is_of_the_steps_to_come() {
    for (mechanism, law) in plans() {
        let plan = sums(mechanism, law);
        let (mut kept, mut forgotten) = (open(&plan, 1000), open(&plan, 1000));
        for step in 0..STEPS {
            if step % 5 == 3 {
                let before = read(&kept);
                kept.rekey().unwrap();
                kept.rekey().unwrap(); // of two at one step the last one counts
                forgotten.rekey().unwrap();
                assert_eq!(read(&kept), before, "{mechanism:?} {law:?}");
            }
            kept.advance_single(&[2], &[1], &[1]).unwrap();
            forgotten.advance_single(&[2], &[1], &[1]).unwrap();
            let (kept, forgotten) = (read(&kept), read(&forgotten));
            if step < 3 {
                assert_eq!(kept, forgotten);
            } else {
                let same = kept.iter().zip(&forgotten).filter(|(a, b)| a == b).count();
                assert!(same < kept.len() / 4, "{mechanism:?} {law:?}, step {step}: {same}");
            }
        }
    }
}
