//! Two histories with the same outputs: how far the fed back sums are from their exact difference.

use super::enumeration::fed_back;
use super::*;
use crate::door::Key;
use crate::optimize::{self, Prefixes};
use crate::toeplitz::{self, BufferedProblem, BufferedToeplitz, Dyadic, series};

/// Bits of the oracles' fixed point.
const POINT: u32 = 56;

/// `(Cδ)_t` of a buffered strategy, from `δ_t`, to 2^-30 or so.
fn buffered_oracle(kernel: &BufferedToeplitz) -> impl FnMut(usize, i64) -> f64 {
    let kernel = kernel.clone();
    let mut buffers = vec![0i128; kernel.degree()];
    move |_, change| {
        let near: i128 = buffers.iter().zip(kernel.omega()).map(|(a, w)| product(*a, *w)).sum();
        for (a, m) in buffers.iter_mut().zip(kernel.mu()) {
            *a += (i128::from(change) << POINT) - product(*a, *m);
        }
        change as f64 + near as f64 * 2f64.powi(-(POINT as i32))
    }
}

fn product(a: i128, factor: Dyadic) -> i128 {
    (a * i128::from(factor.mantissa())) >> factor.shift()
}

/// The same for two diagonals, in units of the sums that are fed back.
fn diagonal_oracle(factors: &toeplitz::TwoDiagonals) -> impl FnMut(usize, i64) -> f64 {
    let factors = factors.clone();
    let mut buffers = vec![0i128; factors.kernel().degree()];
    move |t, change| {
        let kernel = factors.kernel();
        let near: i128 = buffers.iter().zip(kernel.omega()).map(|(a, w)| product(*a, *w)).sum();
        for (a, m) in buffers.iter_mut().zip(kernel.mu()) {
            *a += product(i128::from(change) << POINT, factors.inverse().get(t)) - product(*a, *m);
        }
        change as f64 + near as f64 * 2f64.powi(-(POINT as i32)) * factors.scale().get(t).value()
    }
}

/// The same for any Toeplitz strategy: its kernel is the inverse of what the process does with an impulse.
fn toeplitz_oracle(plan: &StreamPlan, n: usize) -> impl FnMut(usize, i64) -> f64 {
    let (mut source, mut process) = (NoiseSource::scripted([IMPULSE]), process(plan, 1));
    let colours: Vec<f64> = (0..n)
        .map(|_| {
            let mut row = [0];
            process.next(&mut source, &mut row);
            row[0] as f64 / IMPULSE as f64
        })
        .collect();
    let kernel = series::inverse(&colours, n);
    let mut changes = Vec::new();
    move |t, change| {
        if change != 0 {
            changes.push((t, change as f64));
        }
        changes.iter().map(|(s, d)| d * kernel[t - s]).sum()
    }
}

/// Follows two histories with the same outputs over `n` steps and calls `check` with every `e_t`.
fn follow(
    mut first: Box<dyn Process>,
    n: usize,
    size: i64,
    mut oracle: impl FnMut(usize, i64) -> f64,
    mut check: impl FnMut(usize, f64),
) {
    let mut second = first.boxed();
    let mut noise = NoiseSource::known(Key::deterministic([n as u8; 32]), GAUSS, 0);
    let (mut one, mut two) = (NoiseSource::scripted([]), NoiseSource::scripted([]));
    let (mut k, mut row, mut other) = (vec![0; 1 << 12], [0], [0]);
    let start = n / 37 + 1;
    for t in 0..n {
        if t % k.len() == 0 {
            noise.fill(&mut k, 1 << 30);
            (one, two) = (NoiseSource::scripted([]), NoiseSource::scripted([])); // they remember sizes
        }
        // A change at the start, one in the middle, one near the end, as a user who takes part three times.
        let change = match t {
            _ if t == start => size,
            _ if t == n / 2 => -size / 3,
            _ if t == n / 2 + n / 3 => size / 2 + 1,
            _ => 0,
        };
        let k = k[t % k.len()];
        one.say(k);
        first.next(&mut one, &mut row);
        let published = row[0] - change;
        let wanted = published + fed_back(&*second);
        two.say(wanted);
        second.next(&mut two, &mut other);
        assert_eq!(other[0], published);
        // The means of the next output differ by this much.
        let error = (k - wanted) as f64 - oracle(t, change);
        if t <= start {
            assert!(error.abs() < 1e-6, "before anything differs: {error}");
        }
        check(t, error);
    }
}

/// Follows a Toeplitz strategy and checks `|e_t| ≤ E`, with both signs of nearly one unit occurring.
fn follow_toeplitz(plan: &StreamPlan, n: usize, oracle: impl FnMut(usize, i64) -> f64) {
    let bound = plan.strategy().rounding(1).get();
    let (mut low, mut high) = (0.0f64, 0.0f64);
    follow(process(plan, 1), n, (1 << 29) + 12345, oracle, |t, e| {
        assert!(e.abs() <= bound, "{:?} {t} {e} {bound}", plan.recipe());
        (low, high) = (low.min(e), high.max(e));
    });
    assert!(n < 1000 || (low < -0.7 && high > 0.7), "{:?} {low} {high}", plan.recipe());
    assert!(bound < 1.5, "{bound}");
}

fn fixtures() -> [(usize, BufferedToeplitz, StreamPlan); 3] {
    let counting = |degree, n| {
        let kernel = toeplitz::optimize(&BufferedProblem::counting(degree, n, Objective::Max)).unwrap().0;
        let mechanism = StreamMechanism::Buffered { degree: Some(degree) };
        (degree, kernel, plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Hard(n), Objective::Max))
    };
    let mechanism = StreamMechanism::Buffered { degree: Some(8) };
    let endless = plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Unbounded, Objective::Max);
    [counting(4, 1 << 10), counting(6, 1 << 20), (8, toeplitz::unbounded(8).unwrap(), endless)]
}

fn buffered_paths(log_steps: u32) {
    for (degree, kernel, plan) in fixtures() {
        let n = if degree == 4 { 1 << 10 } else { 1 << log_steps };
        follow_toeplitz(&plan, n, buffered_oracle(&kernel));
    }
}

/// The same for coefficients that change from step to step.
fn varying_oracle(factors: &optimize::TimeVarying) -> impl FnMut(usize, i64) -> f64 {
    let factors = factors.clone();
    let mut buffers = vec![0i128; factors.states()];
    // In two halves: the whole product has more than 128 bits.
    let product = |a: i128, factor: u32| {
        let (high, low) = (a >> 32, a & 0xffff_ffff);
        high * i128::from(factor) + ((low * i128::from(factor)) >> 32)
    };
    move |t, change| {
        let near: i128 = buffers.iter().zip(factors.gains(t)).map(|(a, gain)| product(*a, *gain)).sum();
        for (a, passage) in buffers.iter_mut().zip(factors.passages(t)) {
            *a = product(*a + (i128::from(change) << POINT), *passage);
        }
        change as f64 + near as f64 * 2f64.powi(-(POINT as i32))
    }
}

/// Follows a strategy with a noise of its own at every step, and checks `Σ (e_t/r_t)²`.
fn follow_tables(plan: &StreamPlan, noise: &[f64], oracle: impl FnMut(usize, i64) -> f64) {
    let n = noise.len();
    let (mut square, mut most) = (0.0, 0.0f64);
    follow(process(plan, 1), n, (1 << 29) + 999, oracle, |t, e| {
        assert!(e.abs() <= 1.01, "{:?} {t} {e}", plan.recipe());
        square += (e / noise[t]).powi(2);
        most = most.max(e.abs());
    });
    let bound = plan.strategy().rounding(n as u64).get();
    assert!(square.sqrt() <= bound && square.sqrt() > 0.2 * bound, "{} {bound}", square.sqrt());
    assert!(most > 0.8, "{most}");
}

fn varying_paths(log_steps: u32) {
    let n = 1usize << log_steps;
    for (filter, prefixes) in [(Filter::RunningSum, Prefixes::Sums), (Filter::RunningAverage, Prefixes::Averages)] {
        let factors = optimize::TimeVarying::fit(n, prefixes, Objective::Mean, None).unwrap();
        let mechanism = StreamMechanism::TimeVarying { degree: None };
        let plan = plan(filter, mechanism, GAUSS, Horizon::Hard(n as u64), Objective::Mean);
        let noise: Vec<f64> = factors.noise().iter().map(|r| r.value()).collect();
        follow_tables(&plan, &noise, varying_oracle(&factors));
    }
}

fn diagonal_paths(log_steps: u32) {
    for mechanism in [StreamMechanism::TwoDiagonals, StreamMechanism::NormalizedSquareRoot] {
        let n = 1usize << log_steps;
        let factors = if mechanism == StreamMechanism::TwoDiagonals {
            toeplitz::TwoDiagonals::fit(n, Objective::Max).unwrap()
        } else {
            toeplitz::TwoDiagonals::normalized(n).unwrap()
        };
        let plan = plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Hard(n as u64), Objective::Max);
        let noise: Vec<f64> = factors.noise().values().collect();
        follow_tables(&plan, &noise, diagonal_oracle(&factors));
    }
}

#[test]
#[ignore = "seconds; run by `make test-slow`"]
fn feedback_stays_within_its_bound() {
    buffered_paths(18);
    diagonal_paths(16);
    varying_paths(16);
}

#[test]
#[ignore = "2^24 steps of each strategy: a minute"]
fn feedback_stays_within_its_bound_for_long() {
    buffered_paths(24);
    diagonal_paths(22);
    varying_paths(20);
}

#[test]
fn feedback_of_coefficients_that_change_stays_within_its_bound() {
    varying_paths(11);
}

#[test]
fn feedback_of_kernels_stays_within_its_bound() {
    let n = 1usize << 12;
    let window = |window| Filter::Window { window, factor: 1.0 };
    for (filter, mechanism) in [
        (Filter::RunningSum, StreamMechanism::SquareRoot),
        (Filter::RunningSum, StreamMechanism::Buffered { degree: None }),
        (Filter::Decay { decay: 0.999, factor: 1.0 }, StreamMechanism::Buffered { degree: None }),
        (Filter::Decay { decay: 0.97, factor: 1.0 }, StreamMechanism::SquareRoot),
        (window(7), StreamMechanism::Comb),
        (window(64), StreamMechanism::Comb),
        (window(7), StreamMechanism::Outer),
        (Filter::Taps(vec![1.0, 2.0, -0.5]), StreamMechanism::Outer),
    ] {
        let plan = plan(filter, mechanism, GAUSS, Horizon::Hard(n as u64), Objective::Max);
        follow_toeplitz(&plan, n, toeplitz_oracle(&plan, n));
    }
}

#[test]
fn feedback_of_dense_strategies_stays_within_its_bound() {
    let n = 48usize;
    let plan = plan(Filter::RunningSum, StreamMechanism::Optimal, GAUSS, Horizon::Hard(n as u64), Objective::Max);
    let (colouring, sizes) = colouring(&plan, n);
    let c = colouring.inverse();
    let mut changes = vec![0.0; n];
    let (mut square, mut most) = (0.0, 0.0f64);
    let oracle = |t: usize, change: i64| {
        changes[t] = change as f64;
        (0..=t).map(|s| c.at(t, s) * sizes[t] * changes[s]).sum()
    };
    follow(process(&plan, 1), n, (1 << 20) + 7, oracle, |t, e| {
        assert!(e.abs() <= 1.0, "{t} {e}");
        square += (e / sizes[t]).powi(2);
        most = most.max(e.abs());
    });
    assert!(square.sqrt() <= plan.strategy().rounding(n as u64).get() && most > 0.5);
}
