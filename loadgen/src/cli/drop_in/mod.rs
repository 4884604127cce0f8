//! Other tools' command lines: their usual options become ours, their output is imitated as far as scripts read it.
//!
//! A drop-in is a translation. Its options become the words of `loadgen redis`, `http` or `grpc`, so that there is one way
//! to make load; what a tool has and we do not is refused with a sentence.

mod answers;
mod ghz;
mod hey;
mod redis_benchmark;
mod redis_report;
mod run;
mod words;
mod wrk;

pub(super) use ghz::Ghz;
pub(super) use hey::{Hey, with_two_dashes};
pub(super) use redis_benchmark::RedisBenchmark;
pub(super) use wrk::Wrk;
