//! Many streams at once: the covariance of their answers, and what rounding adds to it.

use super::*;
use crate::door::Key;

const STREAMS: usize = 10_000;

/// Answers to zero items of `streams` streams, over the noise of scale 1: row `t` has all streams.
fn answers(plan: &StreamPlan, n: usize, streams: usize, quarters: u64, key: u8) -> Vec<Vec<f64>> {
    let mut source = NoiseSource::known(Key::deterministic([key; 32]), plan.recipe().law, 0);
    let mut process = plan.strategy().process(streams, quarters);
    let increments: Vec<Vec<i64>> = (0..n)
        .map(|_| {
            let mut row = vec![0; streams];
            process.next(&mut source, &mut row);
            row
        })
        .collect();
    let workload = workload(&plan.recipe().filter, n);
    let scale = 4.0 / quarters as f64;
    (0..n)
        .map(|t| {
            let answer = |i: usize| (0..=t).map(|s| workload.at(t, s) * increments[s][i] as f64).sum::<f64>() * scale;
            (0..streams).map(answer).collect()
        })
        .collect()
}

#[test]
#[ignore = "seconds; run by `make test-slow`"]
fn covariances_are_those_of_the_factorization() {
    let n = 14usize;
    let hard = Horizon::Hard(n as u64);
    let mut plans = square_plans(n as u64);
    for mechanism in [StreamMechanism::BinaryTree, StreamMechanism::HonakerTree, StreamMechanism::SmoothTree] {
        plans.push(plan(Filter::RunningSum, mechanism, GAUSS, hard, Objective::Max));
    }
    let mut tested = 0;
    for (key, plan) in plans.iter().enumerate() {
        let values = answers(plan, n, STREAMS, QUARTERS, key as u8);
        let b = workload(&plan.recipe().filter, n).times(&colouring(plan, n).0);
        let expected = Matrix::new(n, n, |t, s| b.row(t).iter().zip(b.row(s)).map(|(x, y)| x * y).sum::<f64>());
        for t in 0..n {
            for s in 0..=t {
                let found = values[t].iter().zip(&values[s]).map(|(x, y)| x * y).sum::<f64>() / STREAMS as f64;
                let variance = expected.at(t, t) * expected.at(s, s) + expected.at(t, s).powi(2);
                let deviation = (found - expected.at(t, s)) / (variance / STREAMS as f64).sqrt();
                assert!(deviation.abs() < 5.8, "{:?} {t} {s} {deviation}", plan.recipe());
                tested += 1;
            }
        }
    }
    // Two-sided beyond 5.8 deviations: 6.7e-9 each, so a false alarm has probability below 1e-4.
    assert!((6000..10_000).contains(&tested), "{tested}");
}

/// Noise of a few lattice units: rounding adds a twelfth where noise is rounded and a twelfth where the fed back sum
/// is, coloured as the noise itself, so that variances grow by the factor `1 + 1/(6σ²)`, at late steps as at early ones.
///
/// On so coarse a lattice the first few steps are an exception: what is fed back is half an integer, or nearly, and
/// rounds neither uniformly nor independently. There the growth is up to `1 + 1/(2σ²)`; nobody's lattice is as coarse.
#[test]
#[ignore = "half a minute; run by `make test-slow`"]
fn rounding_noise_is_coloured_too() {
    let (n, streams) = (200usize, 20_000);
    for mechanism in [StreamMechanism::Buffered { degree: Some(4) }, StreamMechanism::SquareRoot] {
        let plan = plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Hard(n as u64), Objective::Max);
        let steps: Vec<u64> = (1..=n as u64).collect();
        let ideal = plan.variances(&steps).unwrap();
        for quarters in [3u64, 4, 5] {
            let values = answers(&plan, n, streams, quarters, quarters as u8);
            let square = (quarters as f64 / 4.0).powi(2);
            // Standard deviation of the growth √(2/20000) = 0.01; 1200 tests beyond 5.5 of them: 5e-5.
            let width = 0.055 * square;
            for t in 0..n {
                let found = values[t].iter().map(|v| v * v).sum::<f64>() / streams as f64 / ideal[t] - 1.0;
                let growth = found * square;
                let most = if t < 16 { 0.5 } else { 1.0 / 6.0 + 0.02 };
                assert!(growth < most + width, "{mechanism:?} {quarters} {t} {growth}");
                let least = if t < 16 { 1.0 / 12.0 } else { 1.0 / 6.0 - 0.03 };
                assert!(growth > least - width, "{mechanism:?} {quarters} {t} {growth}");
            }
        }
    }
}
