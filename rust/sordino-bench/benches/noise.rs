//! Nanoseconds per exact sample, one thread, at several sizes of noise.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sordino_core::door::{self, Key, NoiseLaw};
use std::hint::black_box;

/// Samples a call: one `ChaCha` stream, so that `rayon` has nothing to share.
const SAMPLES: usize = 1 << 14;

fn noise(criterion: &mut Criterion) {
    for (name, law) in [("gaussian", NoiseLaw::Gaussian), ("laplace", NoiseLaw::Laplace)] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(SAMPLES as u64));
        for bits in [4u32, 22, 32, 40, 46, 48] {
            let mut units = vec![0i64; SAMPLES];
            group.bench_function(BenchmarkId::new("quarter_units", format!("2^{bits}")), |bencher| {
                bencher.iter(|| {
                    door::noise(law, 1 << bits, &Key::deterministic([1; 32]), black_box(&mut units)).expect("within limits");
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
            let key = Key::from_entropy().expect("entropy");
            door::noise(NoiseLaw::Gaussian, 1 << 40, &key, &mut unit).expect("within limits");
            unit
        });
    });
}

criterion_group!(benches, noise, call);
criterion_main!(benches);
