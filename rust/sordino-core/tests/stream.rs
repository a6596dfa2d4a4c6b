//! Streams: mechanisms against dense oracles, the feedback recursion, splitting, checkpoints.

use proptest::prelude::*;
use sordino_core::domain::Domain;
use sordino_core::objective::Objective;
use sordino_core::random::{Key, NoiseLaw};
use sordino_core::stream::{Filter, Horizon, Items, Participation, Stream, StreamMechanism, StreamPlan, StreamRecipe};
use std::sync::Arc;

const SUMS: [(StreamMechanism, NoiseLaw); 11] = [
    (StreamMechanism::Identity, NoiseLaw::Gaussian),
    (StreamMechanism::Output, NoiseLaw::Gaussian),
    (StreamMechanism::Buffered { degree: Some(3) }, NoiseLaw::Gaussian),
    (StreamMechanism::TwoDiagonals, NoiseLaw::Gaussian),
    (StreamMechanism::NormalizedSquareRoot, NoiseLaw::Gaussian),
    (StreamMechanism::SquareRoot, NoiseLaw::Gaussian),
    (StreamMechanism::Optimal, NoiseLaw::Gaussian),
    (StreamMechanism::BinaryTree, NoiseLaw::Gaussian),
    (StreamMechanism::HonakerTree, NoiseLaw::Gaussian),
    (StreamMechanism::SmoothTree, NoiseLaw::Gaussian),
    (StreamMechanism::SubtractionTree { branching: None }, NoiseLaw::Laplace),
];

fn plan(filter: Filter, mechanism: StreamMechanism, law: NoiseLaw, horizon: Horizon) -> Arc<StreamPlan> {
    let recipe = StreamRecipe { filter, mechanism, law, horizon, objective: Objective::Max };
    Arc::new(StreamPlan::new(recipe).unwrap())
}

fn open(plan: &Arc<StreamPlan>, dim: usize, key: u8) -> Stream {
    let door = plan.fit(&Participation::single(), Domain::integral(1 << 16).unwrap(), 4.0).unwrap();
    Stream::open_with(Arc::clone(plan), door, dim, Key::deterministic([key; 32])).unwrap()
}

fn publish(stream: &mut Stream, items: &[i64]) -> Vec<f64> {
    let mut values = vec![0.0; items.len()];
    stream.update(Items::Integers(items), &mut values, None).unwrap();
    values
}

#[test]
fn variances_are_those_of_the_noise() {
    let (n, streams) = (37u64, 4000);
    for (mechanism, law) in SUMS {
        let plan = plan(Filter::RunningSum, mechanism, law, Horizon::Hard(n));
        let steps: Vec<u64> = (1..=n).collect();
        let expected = plan.variances(&steps).unwrap();
        let mut stream = open(&plan, streams, 3);
        let noise = stream.door().noise();
        let values = publish(&mut stream, &vec![0; streams * n as usize]);
        for (t, row) in values.chunks_exact(streams).enumerate() {
            let found = row.iter().map(|v| (v / noise).powi(2)).sum::<f64>() / streams as f64;
            // Relative standard deviation of a variance: √(2/4000) = 0.022 (Laplace 0.035); false alarm < 1e-9.
            let width = if law == NoiseLaw::Laplace { 0.24 } else { 0.15 };
            assert!((found / expected[t] - 1.0).abs() < width, "{mechanism:?} {t} {found} {}", expected[t]);
        }
    }
}

#[test]
fn truth_comes_through() {
    for (mechanism, law) in SUMS {
        let plan = plan(Filter::RunningSum, mechanism, law, Horizon::Hard(64));
        let items: Vec<i64> = (0..64).map(|t| t * t % 17).collect();
        let (with, without) = (publish(&mut open(&plan, 1, 5), &items), publish(&mut open(&plan, 1, 5), &[0; 64]));
        let mut sum = 0;
        for t in 0..64 {
            sum += items[t];
            assert!((with[t] - without[t] - sum as f64).abs() < 1e-6, "{mechanism:?} {t}");
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
        let plan = plan(Filter::RunningSum, mechanism, law, Horizon::Hard(steps));
        let largest = |steps: &[u64]| plan.variances(steps).unwrap().into_iter().fold(0.0, f64::max);
        let all: Vec<u64> = (1..=steps).collect();
        let mut worst = plan.worst_steps(steps);
        worst.push(steps);
        prop_assert!((largest(&worst) / largest(&all) - 1.0).abs() < 1e-12);
    }
}
