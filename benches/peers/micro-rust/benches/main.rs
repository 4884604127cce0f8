//! `cargo bench --manifest-path benches/peers/micro-rust/Cargo.toml --target-dir target [-- FILTER]`: hypotheses that compare with the
//! code of peers.
#![allow(missing_docs, unreachable_pub, reason = "criterion's macros")]

use criterion::criterion_main;

mod frame_copy;
#[path = "../../../src/keys.rs"]
mod keys;
mod map_contention;
mod reply_encode;
mod resp_parse;
#[path = "../../../settings.rs"]
mod settings;

criterion_main!(frame_copy::group, map_contention::group, reply_encode::group, resp_parse::group);
