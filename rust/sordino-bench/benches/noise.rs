//! Nanoseconds per exact sample, one thread, at several sizes of noise.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sordino_core::random::{Key, NoiseLaw, Sampler};
use std::hint::black_box;

/// Samples a call: one `ChaCha` stream, so that `rayon` has nothing to share.
const SAMPLES: usize = 1 << 14;

fn noise(criterion: &mut Criterion) {
    for (name, law) in [("gaussian", NoiseLaw::Gaussian), ("laplace", NoiseLaw::Laplace)] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(SAMPLES as u64));
        for bits in [4u32, 22, 32, 40, 46, 48] {
            let sampler = Sampler::new(law, 1 << bits).expect("within limits");
            let mut units = vec![0i64; SAMPLES];
            group.bench_function(BenchmarkId::new("quarter_units", format!("2^{bits}")), |bencher| {
                bencher.iter(|| {
                    sampler.add(black_box(&mut units), &Key::deterministic([1; 32]));
                });
            });
        }
        group.finish();
    }
}

/// What one call costs before the first sample: key, tables and the first buffer of words.
fn call(criterion: &mut Criterion) {
    criterion.bench_function("gaussian/one sample with a fresh key", |bencher| {
        bencher.iter(|| {
            let mut unit = [0i64];
            let sampler = Sampler::new(NoiseLaw::Gaussian, 1 << 40).expect("within limits");
            sampler.add(&mut unit, &Key::from_entropy().expect("entropy"));
            unit
        });
    });
}

criterion_group!(benches, noise, call);
criterion_main!(benches);
