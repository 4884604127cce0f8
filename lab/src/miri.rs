//! Unit tests of redis-server's `unsafe` modules, and of threads that share data without locks, under Miri. Miri detects undefined
//! behaviour and data races. It also shows values that a weaker memory order lets a thread read, which neither x86 nor the models show.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

/// Filters of libtest. Miri does not know Lua, tasks with stacks of their own, and raw system calls; databases of thousands of shards take
/// minutes each.
const TESTS: [&str; 15] = [
    "exec::aof::waiters",
    "exec::gate::exclusive::tests::the_gate_refuses",
    "exec::gate::exclusive::tests::slow_calls_wait",
    "exec::gate::exclusive::tests::a_finished_slow_call",
    "exec::gate::marks",
    "exec::core::workers",
    "journal::tests::offsets",
    "journal::tests::units",
    "keyspace::entry",
    "keyspace::loan",
    "keyspace::reaper::tests::garbage",
    "keyspace::slot::",
    "keyspace::table",
    "keyspace::watch::tests::keys_without",
    "keyspace::watch::tests::no_waiter",
];

/// The clock of the machine is read; dashmap's locks keep pointers in numbers, of which nothing is said each time.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// Seconds for building and running them.
const LIMIT: &str = "1800";

/// The exit code of `timeout` for a program that it ended.
const TIMED_OUT: i32 = 124;

/// Options of `cargo xtask miri`.
#[derive(Args)]
pub(crate) struct Options {
    /// Tries the orders of threads that follow from these many seeds, instead of one.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
}

/// Runs the tests.
///
/// # Errors
/// With what Miri says of them; when they take too long, and when Miri is missing though peers are required.
pub(crate) fn run(options: &Options) -> Result<()> {
    let is_there =
        Command::new("cargo").args(["+nightly", "miri", "--version"]).current_dir(xtask::workspace::root()).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        let remedy = "install it by `rustup component add --toolchain nightly miri rust-src`";
        ensure!(!xtask::workspace::requires_peers(), "REQUIRE_PEERS=1, and nightly Rust has no Miri: {remedy}");
        println!("skipped: tests under Miri (nightly Rust has none: {remedy})");
        return Ok(());
    }
    let began = Instant::now();
    // A folder of its own, as its compiler and its flags are others.
    let mut miri = Command::new("timeout");
    miri.args([LIMIT, "cargo", "+nightly", "miri", "test", "--package", "redis-server", "--lib", "--"]).args(TESTS);
    miri.env("CARGO_TARGET_DIR", xtask::workspace::target_dir().join("miri")).env_remove("CARGO_BUILD_BUILD_DIR");
    miri.env("MIRIFLAGS", format!("{FLAGS} -Zmiri-many-seeds=0..{}", options.seeds))
        .current_dir(xtask::workspace::root());
    let output = miri.stdin(Stdio::null()).output().context("cannot start `timeout`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let why = if output.status.code() == Some(TIMED_OUT) { "take longer than" } else { "fail within" };
        bail!("tests under Miri {why} {LIMIT} s:\n{text}{errors}");
    }
    let passed = text.lines().filter_map(passed).sum::<u32>();
    ensure!(passed > 0, "no test ran under Miri:\n{text}");
    println!(
        "miri: {} tests, orders of {} seeds ({} s)",
        passed / options.seeds,
        options.seeds,
        began.elapsed().as_secs()
    );
    Ok(())
}

/// How many tests have passed, by a summary line of libtest.
fn passed(line: &str) -> Option<u32> {
    line.strip_prefix("test result: ok. ")?.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn summaries_are_read() {
        assert_eq!(
            passed("test result: ok. 17 passed; 0 failed; 0 ignored; 0 measured; 900 filtered out; finished in 1.00s"),
            Some(17)
        );
        assert_eq!(passed("test a ... ok"), None);
        assert_eq!(passed("test result: FAILED. 17 passed; 1 failed"), None);
    }

    /// A filter that names no test would run nothing, and no reader would notice.
    #[test]
    fn each_filter_names_tests() {
        for name in TESTS {
            let (module, prefix) = name.split_once("::tests::").unwrap_or((name, ""));
            let path = module.trim_end_matches("::").replace("::", "/");
            let source = xtask::workspace::root().join("redis-server/src").join(path);
            let files = [source.with_extension("rs"), source.join("mod.rs"), source.join("tests.rs")];
            let text: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
            let names_a_test = text.split("#[test]").skip(1).any(|behind| behind.contains(&format!("fn {prefix}")));
            assert!(names_a_test, "{name}: there is no such test");
        }
    }
}
