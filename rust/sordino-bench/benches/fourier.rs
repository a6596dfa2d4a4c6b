//! Encode, decode and the whole measurement of a circular filter, powers of two and other lengths.
//!
//! Threads as `RAYON_NUM_THREADS` says.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sordino_core::domain::Domain;
use sordino_core::door::{Data, Door};
use sordino_core::door::NoiseLaw;
use sordino_core::strategy::{Encoded, Input, Mechanism, Recipe};
use sordino_core::unit::Unit;
use sordino_core::workload::Workload;
use std::hint::black_box;
use std::time::Duration;

/// Declared bound of a cell.
const MAX_VALUE: u64 = 1 << 20;
/// Gaussian noise over sensitivity at epsilon 1, delta 1e-6.
const NOISE_RATIO: f64 = 4.22;

/// Powers of two, a smooth length, one above a power of two, a prime.
const LENGTHS: [usize; 10] =
    [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1_000, 1_000_000, (1 << 18) + 1, 262_147];

fn fourier(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fourier");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for len in LENGTHS {
        let kernel = (0..len).map(|j| (-(j as f64) / 64.0).exp().max(1e-100)).collect();
        let recipe =
            Recipe { workload: Workload::Circular { kernel }, mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
        let strategy = recipe.build().expect("a circular filter is served");
        let unit = Unit::add_remove(1, None).expect("one record");
        let domain = Domain::integral(MAX_VALUE).expect("within limits");
        let door = Door::fit(&*strategy, unit, domain, NOISE_RATIO).expect("fits");
        let cells: Vec<i64> = (0..len).map(|i| (i * i % 1000) as i64).collect();
        let measured = door.measure(&*strategy, len, Data::Integers(&cells)).expect("entropy");
        let values = measured.values();
        let (mut units, mut answers) = (vec![0i64; len], vec![0.0; len]);
        group.throughput(Throughput::Elements(len as u64));
        group.bench_function(BenchmarkId::new("encode", len), |bencher| {
            bencher.iter(|| {
                let input = Input::Cells(black_box(&cells));
                strategy.encode(input, MAX_VALUE, Encoded::Exact(&mut units)).expect("a table is served");
            });
        });
        group.bench_function(BenchmarkId::new("decode", len), |bencher| {
            bencher.iter(|| strategy.decode(black_box(&values), &mut answers));
        });
        group.bench_function(BenchmarkId::new("measure", len), |bencher| {
            bencher.iter(|| door.measure(&*strategy, len, Data::Integers(black_box(&cells))).expect("entropy"));
        });
    }
    group.finish();
}

criterion_group!(benches, fourier);
criterion_main!(benches);
