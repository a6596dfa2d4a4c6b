//! The exact square-root feedback of a stream: amortised time of a step over a whole horizon.
//!
//! Threads as `RAYON_NUM_THREADS` says. The kernel's transforms are made once, outside of the timing.
#![allow(missing_docs)] // criterion's macros make undocumented functions

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sordino_core::toeplitz::series::binomial;
use sordino_core::toeplitz::{OnlineConvolution, OnlineKernel};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

fn online(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("online");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(100));
    for log in [14, 16, 20] {
        let len = 1usize << log;
        let taps = binomial(1.0, -0.5, len).iter().map(|c| (c * 2f64.powi(30)).round() as i64).collect();
        let kernel = Arc::new(OnlineKernel::new(taps).expect("a kernel within limits"));
        for bits in [40, 66] {
            let run = || {
                let mut stream = OnlineConvolution::new(kernel.clone());
                let mut sum = 0i128;
                for t in 0..len as i128 {
                    sum ^= stream.next();
                    stream.push(t.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645) >> (127 - bits));
                }
                sum
            };
            black_box(run());
            group.throughput(Throughput::Elements(len as u64));
            group.bench_function(BenchmarkId::new(format!("{bits}-bit"), len), |bencher| bencher.iter(run));
        }
    }
    group.finish();
}

criterion_group!(benches, online);
criterion_main!(benches);
