//! Holds the benchmarks `benches/`.
