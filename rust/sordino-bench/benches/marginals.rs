//! All marginals of three among twenty binary attributes, from record codes.
//!
//! Threads as `RAYON_NUM_THREADS` says.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sordino_core::domain::Domain;
use sordino_core::door::{Data, Door};
use sordino_core::door::NoiseLaw;
use sordino_core::strategy::{Codes, Mechanism, Recipe, Strategy};
use sordino_core::unit::Unit;
use sordino_core::workload::Workload;
use std::hint::black_box;
use std::time::Duration;

const ATTRIBUTES: usize = 20;

fn all_triples() -> Workload {
    let sets: Vec<Vec<usize>> = (0..ATTRIBUTES)
        .flat_map(|i| (i + 1..ATTRIBUTES).flat_map(move |j| (j + 1..ATTRIBUTES).map(move |k| vec![i, j, k])))
        .collect();
    let weights = vec![1.0; sets.len()];
    Workload::Marginals { radices: vec![2; ATTRIBUTES], sets, weights, total_share: 0.0 }
}

/// Records of unequal frequencies from a fixed linear congruential generator.
fn records(count: usize) -> Vec<u8> {
    let mut state = 1u64;
    (0..count * ATTRIBUTES)
        .map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u8::from((state >> 56) as usize > 32 + 8 * (i % ATTRIBUTES))
        })
        .collect()
}

fn built() -> (Box<dyn Strategy>, Door) {
    let recipe = Recipe { workload: all_triples(), mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
    let strategy = recipe.build().expect("marginals are served");
    let unit = Unit::add_remove(1, None).expect("one record");
    let door = Door::fit(&*strategy, unit, Domain::integral(1 << 24).expect("within limits"), 4.22).expect("fits");
    (strategy, door)
}

fn marginals(criterion: &mut Criterion) {
    let (strategy, door) = built();
    let mut group = criterion.benchmark_group("marginals");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    group.bench_function("plan", |bencher| bencher.iter(built));
    for count in [10_000, 100_000, 1_000_000] {
        let codes = records(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("measure", count), |bencher| {
            bencher.iter(|| {
                let data = Data::Codes(Codes::Bytes(black_box(&codes)));
                door.measure(&*strategy, 1 << ATTRIBUTES, data).expect("entropy")
            });
        });
    }
    let codes = records(1_000);
    let measured = door.measure(&*strategy, 1 << ATTRIBUTES, Data::Codes(Codes::Bytes(&codes))).expect("entropy");
    let values = measured.values();
    let mut answers = vec![0.0; all_triples().answers_len()];
    group.bench_function("decode", |bencher| bencher.iter(|| strategy.decode(black_box(&values), &mut answers)));
    group.finish();
}

criterion_group!(benches, marginals);
criterion_main!(benches);
