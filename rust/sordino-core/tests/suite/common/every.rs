//! One plan of every mechanism on every filter that it serves.

use super::streams::plan;
use sordino_core::domain::Domain;
use sordino_core::door::{Key, NoiseLaw};
use sordino_core::objective::Objective;
use sordino_core::stream::{Filter, Horizon, Participation, Stream, StreamMechanism, StreamPlan};
use std::sync::{Arc, LazyLock};

/// Steps of every plan.
pub(crate) const STEPS: u64 = 150;

/// The plans.
pub(crate) static EVERY: LazyLock<Vec<Arc<StreamPlan>>> = LazyLock::new(|| {
    let decay = || Filter::Decay { decay: 0.9, factor: 0.1 };
    let window = |window| Filter::Window { window, factor: 1.0 };
    let taps = || Filter::Taps(vec![1.0, 2.0, -0.5]);
    let (gauss, laplace) = (NoiseLaw::Gaussian, NoiseLaw::Laplace);
    let sum = || Filter::RunningSum;
    [
        (sum(), StreamMechanism::Identity, gauss),
        (decay(), StreamMechanism::Identity, laplace),
        (window(4), StreamMechanism::Identity, gauss),
        (taps(), StreamMechanism::Identity, gauss),
        (sum(), StreamMechanism::Output, gauss),
        (sum(), StreamMechanism::Output, laplace),
        (sum(), StreamMechanism::Buffered { degree: Some(3) }, gauss),
        (Filter::RunningAverage, StreamMechanism::Buffered { degree: None }, gauss),
        (decay(), StreamMechanism::Buffered { degree: None }, gauss),
        (sum(), StreamMechanism::TwoDiagonals, gauss),
        (sum(), StreamMechanism::TimeVarying { degree: None }, gauss),
        (Filter::RunningAverage, StreamMechanism::TimeVarying { degree: Some(3) }, gauss),
        (sum(), StreamMechanism::NormalizedSquareRoot, gauss),
        (sum(), StreamMechanism::SquareRoot, gauss),
        (decay(), StreamMechanism::SquareRoot, gauss),
        (taps(), StreamMechanism::Outer, gauss),
        (window(5), StreamMechanism::Outer, gauss),
        (window(5), StreamMechanism::Comb, gauss),
        (sum(), StreamMechanism::Optimal, gauss),
        (sum(), StreamMechanism::BinaryTree, gauss),
        (sum(), StreamMechanism::BinaryTree, laplace),
        (sum(), StreamMechanism::HonakerTree, gauss),
        (sum(), StreamMechanism::SmoothTree, gauss),
        (sum(), StreamMechanism::SubtractionTree { branching: None }, laplace),
        (sum(), StreamMechanism::SubtractionTree { branching: Some(3) }, laplace),
    ]
    .into_iter()
    .map(|(filter, mechanism, law)| plan(filter, mechanism, law, Horizon::Hard(STEPS), Objective::Max))
    .collect()
});

/// A stream of items with eight binary places up to 2^16 under a known key.
pub(crate) fn open(plan: &Arc<StreamPlan>, dim: usize, key: u8) -> Stream {
    let door = plan.fit(&[Participation::single()], Domain::real(1 << 16, 8).unwrap(), 4.0).unwrap();
    Stream::open_with(Arc::clone(plan), door, dim, Key::deterministic([key; 32])).unwrap()
}
