//! Literal versions of continual release that are not private, with the exact factor by which they fail.
//!
//! None of them is in the library: here they are oracles that show why.

use crate::common::streams::plan;
use sordino_core::domain::Domain;
use sordino_core::door::{Key, NoiseLaw};
use sordino_core::objective::Objective;
use sordino_core::stream::{Filter, Horizon, Items, Participation, Stream, StreamMechanism, StreamPlan};
use sordino_core::toeplitz::{square_root_coefficients, square_root_norm_squared};
use std::sync::{Arc, LazyLock};

/// `S_1, S_2, …` and `f(k)²`.
fn tables(n: usize) -> (Vec<f64>, Vec<f64>) {
    let squares: Vec<f64> = square_root_coefficients(n).iter().map(|f| f * f).collect();
    let sums = squares.iter().scan(0.0, |sum, f| {
        *sum += f;
        Some(*sum)
    });
    (sums.collect(), squares)
}

fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// The epsilon of two Gaussians `mu` apart at this delta.
fn epsilon(mu: f64, delta: f64) -> f64 {
    let at = |e: f64| normal(mu / 2.0 - e / mu) - (e + normal(-mu / 2.0 - e / mu).ln()).exp();
    let (mut low, mut high) = (0.0, 200.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if at(middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// Multiplier of the analytic Gaussian for 0.5 at 1e-10, and the paper's constant.
const ANALYTIC: f64 = 11.43624;
const PAPER: f64 = 19.285;

#[test]
fn multipliers() {
    assert!((epsilon(1.0 / ANALYTIC, 1e-10) - 0.5).abs() < 1e-5);
    assert!(epsilon(1.0 / PAPER, 1e-10) < 0.5);
}

/// Fresh noise of standard deviation `C·S_t` for the answer at every step: the first item is in all of them.
#[test]
fn fresh_noise_every_round() {
    for (n, blow_up, with_paper, with_analytic) in
        [(16, 2.53, 0.763, 1.315), (1024, 11.12, 3.61, 6.35), (65536, 60.5, 24.3, 47.0)]
    {
        let found = tables(n).0.iter().map(|s| s.powi(-2)).sum::<f64>().sqrt();
        assert!((found / blow_up - 1.0).abs() < 2e-3, "{n} {found}");
        for (multiplier, expected) in [(PAPER, with_paper), (ANALYTIC, with_analytic)] {
            let reached = epsilon(found / multiplier, 1e-10);
            assert!((reached / expected - 1.0).abs() < 5e-3, "{n} {reached} {expected}");
            assert!(reached > 0.5);
        }
    }
}

/// A stateless endpoint: the right marginal noise, drawn anew for every answer. Its rho over the claim's.
#[test]
fn resampling_released_steps() {
    for (n, ratio) in [(1 << 10, 107.0), (1 << 16, 3355.0), (1 << 20, 37250.0)] {
        let sums = tables(n).0;
        let found: f64 = sums.iter().map(|s| 1.0 / (s * sums[n - 1])).sum();
        eprintln!("drawn anew over 2^{}: {found:.1} times the rho", n.ilog2());
        assert!((found / ratio - 1.0).abs() < 0.01, "{n} {found}");
    }
}

/// One vector of noise, its standard deviations growing with `S_t`: no constant makes that private for ever.
#[test]
fn noise_that_grows_with_the_step() {
    let n = 1 << 22;
    let (sums, squares) = tables(n);
    let mut square = 0.0;
    let mut printed = [
        (2, 1.200, 0.550),
        (16, 1.630, 0.644),
        (256, 2.005, 0.717),
        (4096, 2.277, 0.766),
        (1 << 16, 2.490, 0.803),
        (1 << 20, 2.666, 0.832),
        (1 << 22, 2.743, 0.844),
    ]
    .into_iter()
    .peekable();
    for t in 1..=n {
        square += squares[t - 1] / sums[t - 1];
        if let Some((_, expected, claim)) = printed.next_if(|row| row.0 == t) {
            assert!((square - expected).abs() < 6e-4, "{t} {square}");
            let reached = epsilon(square.sqrt() / ANALYTIC, 1e-10);
            assert!((reached - claim).abs() < 6e-4 && reached > 0.5, "{t} {reached}");
        }
    }
    assert!(printed.next().is_none());
    // Later columns of the first 2^16 steps fail as well.
    for (j, expected) in [(2, 2.25), (4, 2.08), (16, 1.83), (256, 1.47)] {
        let found: f64 = (j..=1 << 16).map(|i| squares[i - j] / sums[i - 1]).sum();
        assert!((found - expected).abs() < 6e-3, "{j} {found}");
    }
}

/// A schedule that is private for ever costs more than declaring 2^40 steps.
#[test]
fn schedules_for_ever() {
    let n = 1 << 20;
    let (sums, squares) = tables(n);
    for (a, constant, least, most) in [(0.5, 2.941, 2.4, 3.6), (1.0, 1.936, 2.2, 3.7), (2.0, 1.429, 0.0, 9.0)] {
        let weight = |s: f64| s * (1.0 + s.ln()).powf(1.0 + a);
        let head: f64 = squares.iter().zip(&sums).map(|(f, s)| f / weight(*s)).sum();
        let tail = (1.0 + sums[n - 1].ln()).powf(-a) / a;
        assert!((head + tail - constant).abs() < 2e-3, "{a} {}", head + tail);
        for t in [1usize << 4, 1 << 10, 1 << 16, 1 << 20] {
            let variance: f64 = (1..=t).map(|i| squares[t - i] * constant * weight(sums[i - 1])).sum();
            let ratio = variance.sqrt() / sums[t - 1];
            assert!((least - 0.05..most + 0.05).contains(&ratio), "{a} {t} {ratio}");
            eprintln!("schedule {a} at {t}: {ratio:.3} times the square root of so many steps");
            // Not so at the very start: 2^40 steps declared cost 2.26 at step 16.
            assert!(t < 64 || ratio > (square_root_norm_squared(1 << 40) / sums[t - 1]).sqrt());
        }
    }
    for (log_steps, sum, ratios) in [
        (32, 8.127, [2.05, 1.58, 1.33, 1.22]),
        (40, 9.892, [2.26, 1.74, 1.47, 1.34]),
        (48, 11.657, [2.45, 1.89, 1.59, 1.46]),
    ] {
        let horizon = square_root_norm_squared(1 << log_steps);
        assert!((horizon - sum).abs() < 6e-4);
        for (t, ratio) in [1u64 << 4, 1 << 10, 1 << 16, 1 << 20].into_iter().zip(ratios) {
            assert!(((horizon / square_root_norm_squared(t)).sqrt() - ratio).abs() < 6e-3);
        }
    }
}

static COUNTER: LazyLock<Arc<StreamPlan>> = LazyLock::new(|| {
    let mechanism = StreamMechanism::Buffered { degree: Some(3) };
    plan(Filter::RunningSum, mechanism, NoiseLaw::Gaussian, Horizon::Hard(64), Objective::Max)
});

fn counter(key: Option<u8>) -> Stream {
    let door = COUNTER.fit(&[Participation::single()], Domain::integral(1 << 16).unwrap(), 11.4).unwrap();
    match key {
        Some(key) => Stream::open_with(Arc::clone(&COUNTER), door, 1, Key::deterministic([key; 32])).unwrap(),
        None => Stream::open(Arc::clone(&COUNTER), door, 1).unwrap(),
    }
}

fn publish(stream: &mut Stream, items: &[i64]) -> Vec<f64> {
    let mut values = vec![0.0; items.len()];
    stream.update(Items::Integers(items), &mut values, None).unwrap();
    values
}

/// Answers of one step under fresh keys average to the exact value: retrying must not draw again.
#[test]
fn averaging_fresh_noise_recovers_the_value() {
    let (rounds, items) = (20_000, [1, 0, 1, 1, 0, 1, 1, 1, 0, 1]);
    let sum: f64 = (0..rounds).map(|_| publish(&mut counter(None), &items)[9]).sum();
    // One answer has a standard deviation of about 20, their mean of 0.15: it tells 7 from 6 or 8 but for 1 in 10^5.
    let one = counter(None).door().noise();
    assert!(one > 15.0);
    assert!((sum / f64::from(rounds) - 7.0).abs() < 1.0, "{}", sum / f64::from(rounds));
    // The stream itself says the same again, however often it is asked.
    let first = publish(&mut counter(Some(3)), &items);
    assert!((0..20).all(|_| publish(&mut counter(Some(3)), &items) == first));
}

/// Other items on the same noise: the difference of two answers is the exact difference of the sums.
#[test]
fn one_noise_for_two_histories_shows_their_difference() {
    let mut stream = counter(Some(5));
    publish(&mut stream, &[3, 1, 4]);
    let saved = stream.checkpoint(&[1; 32], b"").unwrap();
    let door = *stream.door();
    let restored = || Stream::restore(Arc::clone(&COUNTER), door, 1, &[1; 32], &saved).unwrap();
    let one = publish(&mut restored(), &[1, 5]);
    let two = publish(&mut restored(), &[0, 5]);
    assert!(one.iter().zip(&two).all(|(a, b)| (a - b - 1.0).abs() < 1e-9));
    // With the increments that were published, the other history is refused.
    let (mut values, mut units) = ([0.0; 2], [0; 2]);
    restored().update(Items::Integers(&[1, 5]), &mut values, Some(&mut units)).unwrap();
    assert!(!restored().replay(Items::Integers(&[0, 5]), &mut values, &units).unwrap());
    assert!(restored().replay(Items::Integers(&[1, 5]), &mut values, &units).unwrap());
}
