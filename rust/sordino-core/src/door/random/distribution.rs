//! The distribution of the integers against exact cell probabilities, with fixed keys.
//!
//! Each chi-square statistic is compared at 5.5 standard deviations of its law (false-alarm rate
//! below 1e-6 a comparison had the keys been random).

use super::{Key, NoiseLaw, Sampler};
use std::collections::HashMap;

fn draw(law: NoiseLaw, quarter_units: u64, count: usize, seed: u8) -> Vec<i64> {
    let mut units = vec![0; count];
    Sampler::new(law, quarter_units).unwrap().add(&mut units, &Key::deterministic([seed; 32])).unwrap();
    units
}

/// `P(|Z| > t)` for the law.
fn beyond(law: NoiseLaw, t: f64) -> f64 {
    match law {
        NoiseLaw::Gaussian => libm::erfc(t / std::f64::consts::SQRT_2),
        NoiseLaw::Laplace => (-t).exp(),
    }
}

/// Probability of the integer `k` at size `s = σ'`: half the two-sided shell.
fn cell(law: NoiseLaw, s: f64, k: i64) -> f64 {
    let k = k.unsigned_abs() as f64;
    if k == 0.0 { 1.0 - beyond(law, 0.5 / s) } else { (beyond(law, (k - 0.5) / s) - beyond(law, (k + 0.5) / s)) / 2.0 }
}

fn chi_square(counts: &[(f64, f64)]) {
    let statistic: f64 = counts.iter().map(|(seen, expected)| (seen - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    // Wilson-Hilferty: the cube root is nearly normal.
    let z = ((statistic / freedom).cbrt() - (1.0 - 2.0 / (9.0 * freedom))) / (2.0 / (9.0 * freedom)).sqrt();
    assert!(z.abs() < 5.5, "chi-square {statistic} with {freedom} degrees of freedom");
}

#[test]
fn cells_have_their_exact_probabilities() {
    let count = 2_000_000;
    for law in [NoiseLaw::Gaussian, NoiseLaw::Laplace] {
        for (seed, quarters) in [1u64, 2, 4, 9, 32, 400].into_iter().enumerate() {
            let s = quarters as f64 / 4.0;
            let mut seen: HashMap<i64, f64> = HashMap::new();
            for k in draw(law, quarters, count, seed as u8) {
                *seen.entry(k).or_default() += 1.0;
            }
            let mut counts = Vec::new();
            let (mut rest_seen, mut rest_expected) = (count as f64, count as f64);
            for k in -5000i64..=5000 {
                let expected = count as f64 * cell(law, s, k);
                if expected >= 10.0 {
                    let got = seen.get(&k).copied().unwrap_or(0.0);
                    counts.push((got, expected));
                    rest_seen -= got;
                    rest_expected -= expected;
                }
            }
            if rest_expected > 1.0 {
                counts.push((rest_seen, rest_expected));
            }
            chi_square(&counts);
        }
    }
}

/// Frequencies beyond 4σ (and, for the Laplace law, as rare), and the tail branch of the ziggurat
/// alone: `|Z| > r` with the density shape inside it.
#[test]
#[ignore = "seconds; run by `make test-slow`"]
fn tails() {
    let count = 40_000_000;
    let size = 1u64 << 22;
    for (law, r, marks) in [
        (NoiseLaw::Gaussian, 3743.0 / 1024.0, [4.0, 4.25, 4.5, 5.0]),
        (NoiseLaw::Laplace, 31526.0 / 4096.0, [9.0, 10.0, 12.0, 14.0]),
    ] {
        let sample = draw(law, size, count, 21);
        let scaled = |k: &i64| k.unsigned_abs() as f64 / (size as f64 / 4.0);
        let n = count as f64;
        for t in marks.into_iter().chain([r]) {
            let seen = sample.iter().filter(|k| scaled(k) > t).count() as f64;
            let p = beyond(law, t);
            assert!((seen - n * p).abs() < 5.5 * (n * p).sqrt() + 3.0, "{law:?} beyond {t}: {seen} vs {}", n * p);
        }
        let tail: Vec<f64> = sample.iter().map(scaled).filter(|x| *x > r).collect();
        let cells = 20;
        let mut counts = vec![0.0; cells];
        for x in &tail {
            let u = beyond(law, *x) / beyond(law, r); // uniform on (0, 1)
            counts[((u * cells as f64) as usize).min(cells - 1)] += 1.0;
        }
        let expected = tail.len() as f64 / cells as f64;
        chi_square(&counts.iter().map(|c| (*c, expected)).collect::<Vec<_>>());
    }
}

/// Six standard deviations: scaled-down noise at the largest size shows them rarely, so a long run.
#[test]
#[ignore = "a minute; run by `make test-slow`"]
fn beyond_six_sigma() {
    let (mut seen, count, rounds) = (0.0, 1 << 24, 120u8);
    for seed in 0..rounds {
        let sample = draw(NoiseLaw::Gaussian, 4 << 20, count, seed);
        seen += sample.iter().filter(|k| k.unsigned_abs() > 6 << 20).count() as f64;
    }
    let expected = count as f64 * f64::from(rounds) * beyond(NoiseLaw::Gaussian, 6.0);
    assert!((seen - expected).abs() < 5.5 * expected.sqrt() + 3.0, "{seen} beyond six sigma, expected {expected}");
}

#[test]
fn no_serial_correlation_and_symmetric_signs() {
    let count = 4_000_000;
    for law in [NoiseLaw::Gaussian, NoiseLaw::Laplace] {
        let sample: Vec<f64> = draw(law, 4 << 20, count, 33).iter().map(|k| *k as f64 / 2f64.powi(20)).collect();
        let n = count as f64;
        let variance = if law == NoiseLaw::Gaussian { 1.0 } else { 2.0 };
        let mean = sample.iter().sum::<f64>() / n;
        assert!(mean.abs() < 5.5 * (variance / n).sqrt());
        for lag in [1, 2, 7, 256, 512, 1 << 14] {
            let sum: f64 = sample.iter().zip(&sample[lag..]).map(|(a, b)| a * b).sum();
            assert!((sum / n).abs() < 5.5 * variance / n.sqrt(), "lag {lag}");
        }
        let positive = sample.iter().filter(|x| **x > 0.0).count() as f64;
        assert!((positive - n / 2.0).abs() < 5.5 * n.sqrt() / 2.0);
    }
}

#[test]
fn same_key_same_vector_for_any_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| draw(NoiseLaw::Gaussian, 4 << 30, 100_003, 3))
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(8));
    assert_ne!(one, draw(NoiseLaw::Gaussian, 4 << 30, 100_003, 4));
    // A longer vector starts with the same noise: chunks are numbered from the start.
    assert_eq!(one[..50], draw(NoiseLaw::Gaussian, 4 << 30, 200_000, 3)[..50]);
}
