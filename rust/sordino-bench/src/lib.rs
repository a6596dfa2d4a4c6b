//! Benchmarks of `sordino-core` in `benches/`: `cargo bench` in this folder.
