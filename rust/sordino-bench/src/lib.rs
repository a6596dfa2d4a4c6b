//! Benchmarks of `sordino-core` in `benches/`: `cargo bench -p sordino-bench`.
