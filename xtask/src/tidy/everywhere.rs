//! The invariants of ARCHITECTURE.md, as far as a program can tell from the sources.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::source::{is_test, without_tests};

type Files = BTreeMap<String, String>;

/// The crates whose sources are cores, but for [`MAY_FETCH`]: they take bytes and the time, and fetch neither.
const CRATES: &[&str] = &[
    "echonet-lite",
    "grpc-server",
    "http-server",
    "http2",
    "loadgen",
    "query-engine",
    "redis-server",
    "serve",
    "server-runtime",
];

/// Where cores meet the world: the only files and folders that name what [`EDGES`] has.
const MAY_FETCH: &[&str] = &[
    "echonet-lite/src/certify/link.rs",
    "echonet-lite/src/embassy.rs",
    // The clock of homes that are played.
    "echonet-lite/src/emulate/time.rs",
    "echonet-lite/src/net/",
    "echonet-lite/src/serial/asynchronous.rs",
    "echonet-lite/src/serial/client.rs",
    "grpc-server/src/bin/",
    "grpc-server/src/engine/call.rs",
    "grpc-server/src/engine/connect/mod.rs",
    "grpc-server/src/engine/service.rs",
    "grpc-server/src/engine/web.rs",
    "grpc-server/src/engine/worker.rs",
    // An answer that is a stream.
    "grpc-server/src/greeter.rs",
    "grpc-server/src/health.rs",
    "grpc-server/src/reflection.rs",
    "http-server/src/api/subscribe.rs",
    // Gives the fuzz target a time.
    "http-server/src/fuzzing.rs",
    "http-server/src/redis/client.rs",
    "http-server/src/redis/connect.rs",
    "http-server/src/redis/embedded.rs",
    "http-server/src/redis/mux.rs",
    "http-server/src/redis/session.rs",
    "http-server/src/redis/subscribe.rs",
    "http-server/src/routes/files/disk.rs",
    // Where the engine meets the crates of others, behind a feature.
    "http2/src/shared/",
    "loadgen/src/blocking.rs",
    "loadgen/src/cli/drop_in/redis_benchmark.rs",
    "loadgen/src/clock.rs",
    "loadgen/src/compare/child.rs",
    "loadgen/src/compare/machine.rs",
    "loadgen/src/compare/program.rs",
    "loadgen/src/compare/ready.rs",
    "loadgen/src/compare/run.rs",
    "loadgen/src/compare/server.rs",
    "loadgen/src/front/interrupt.rs",
    "loadgen/src/front/metrics.rs",
    "loadgen/src/output/files.rs",
    "loadgen/src/schema/reflection.rs",
    "loadgen/src/session/watcher.rs",
    // TIME, to the microsecond, and DEBUG SLEEP.
    // FT.DROPINDEX DD waits for keys that slow calls have borrowed.
    "redis-server/src/commands/search/create.rs",
    "redis-server/src/commands/server/basics.rs",
    "redis-server/src/commands/server/debug.rs",
    // Threads that wait for one another, for the disk, and for other servers; which of it may be asynchronous has a rule of its own.
    "redis-server/src/exec/",
    "redis-server/src/runtime/",
    // For how long locks are held, where a build measures that.
    "redis-server/src/keyspace/held.rs",
    // The pause before a thread's work begins again.
    "redis-server/src/threads.rs",
    // Long work is compressed on threads for that.
    "serve/src/compress.rs",
    "serve/src/engine/by_hyper.rs",
    "serve/src/engine/clock.rs",
    "serve/src/engine/conn.rs",
    "serve/src/engine/exchange.rs",
    "serve/src/engine/gathered.rs",
    "serve/src/engine/guard.rs",
    "serve/src/engine/http2/conn.rs",
    "serve/src/engine/http2/stream.rs",
    "serve/src/engine/http3/conn.rs",
    "serve/src/engine/http3/gate.rs",
    "serve/src/engine/http3/incoming.rs",
    "serve/src/engine/http3/shares.rs",
    "serve/src/engine/http3/stream.rs",
    // When a second is over, in which a client may send so much.
    "serve/src/engine/http3/wire.rs",
    "serve/src/engine/output.rs",
    "serve/src/engine/sending_file.rs",
    "serve/src/engine/upgrade.rs",
    "serve/src/engine/watch.rs",
    "serve/src/engine/websocket/",
    "serve/src/engine/wire.rs",
    "serve/src/engine/worker.rs",
    "serve/src/file_part.rs",
    // Sockets and runtimes are what it is for.
    "server-runtime/src/",
];

/// Names that a core must not use: clocks, sockets, waiting threads.
const EDGES: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "thread::sleep",
    "tokio",
];

/// The module of redis-server that starts threads, and says what a panic in one ends.
const THREADS: &str = "redis-server/src/threads.rs";

/// The part of redis-server with a tokio runtime.
const BUS: &str = "redis-server/src/runtime/bus/";

/// Calls that work inside of a tokio runtime alone.
const RUNTIME_ONLY: &[&str] = &[
    "tokio::task::",
    "tokio::spawn",
    "tokio::net::",
    "tokio::time::sleep",
    "tokio::time::timeout",
    "tokio::signal",
    "AsyncFd",
];

/// Parsers of what comes from outside: where they stand, and what their fuzz target calls.
const PARSERS: &[(&str, &str)] = &[
    ("echonet-lite/src/class/", "echonet_lite::class"),
    ("echonet-lite/src/controller/", "echonet_lite::controller::"),
    ("echonet-lite/src/node/", "echonet_lite::node"),
    ("echonet-lite/src/serial/", "echonet_lite::serial::"),
    ("echonet-lite/src/wire/", "echonet_lite::wire::"),
    ("http-server/src/redis/", "http_server::fuzzing"),
    ("http2/src/connection.rs", "http2::"),
    ("http2/src/frame.rs", "http2::frame::"),
    ("http2/src/hpack/", "http2::hpack::"),
    ("loadgen/src/codec/", "loadgen::codec::"),
    ("query-engine/src/expr/", "query_engine::Expression"),
    ("query-engine/src/index/", "query_engine::Document"),
    ("query-engine/src/query/", "query_engine::Query"),
    ("query-engine/src/shape/", "FieldKind::Shape"),
    ("query-engine/src/vector_set/filter.rs", "query_engine::vector_set::Filter"),
    ("redis-server/src/clients/acl/", "redis_server::clients::acl::"),
    ("redis-server/src/cluster/packet/", "redis_server::cluster::packet::"),
    ("redis-server/src/config/", "redis_server::config::"),
    ("redis-server/src/exec/script/lib/", "mlua::"),
    ("redis-server/src/persistence/aof/", "redis_server::persistence::aof::"),
    ("redis-server/src/persistence/rdb/", "redis_server::persistence::rdb::"),
    ("redis-server/src/protocol/", "redis_server::protocol::"),
    ("redis-server/src/types/json/", "redis_server::types::json::"),
    ("serve/src/h1/", "serve::h1::"),
    ("serve/src/websocket/codec/", "serve::websocket::codec::"),
];

/// A module with `unsafe` can be read in one sitting: lines without tests.
const MAX_UNSAFE: usize = 650;

/// The profile that is shipped and measured.
const SHIPPED: &[(&str, &str)] = &[("opt-level", "3"), ("lto", "\"fat\""), ("debug", "\"line-tables-only\"")];

/// Ports that the kernel gives to whoever binds none: a test that counts on one of them finds it taken now and then.
const EPHEMERAL: RangeInclusive<u16> = 32_768..=60_999;

/// Programs, and whether they bring an allocator of their own.
const ALLOCATORS: &[(&str, bool)] = &[
    ("grpc-server/src/main.rs", true),
    ("http-server/src/main.rs", true),
    ("redis-server/src/main.rs", true),
    ("loadgen/src/main.rs", false),
];

/// Checks all of it.
pub(super) fn breaches(files: &Files) -> Vec<String> {
    let mut breaches = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        breaches.extend(check_core(path, text));
        breaches.extend(check_unsafe(path, text));
        breaches.extend(check_threads(path, text));
        breaches.extend(check_own_loop(path, text));
        breaches.extend(check_ports(path, text));
    }
    breaches.extend(check_places(files));
    breaches.extend(check_parsers(files));
    breaches.extend(check_shipped(files));
    breaches
}

/// Names in a file's code that a core must not use, by line.
fn edges<'t>(path: &str, text: &'t str) -> impl Iterator<Item = (usize, &'static str)> + use<'t> {
    let text = if is_test(path) { "" } else { without_tests(text) };
    text.lines().enumerate().flat_map(|(number, line)| {
        let code = line.split("//").next().unwrap_or_default();
        EDGES.iter().filter(move |edge| code.contains(**edge)).map(move |edge| (number + 1, *edge))
    })
}

fn is_source_of_crates(path: &str) -> bool {
    CRATES.iter().any(|name| path.strip_prefix(name).is_some_and(|rest| rest.starts_with("/src/")))
}

/// A core has neither clock nor socket, but for its tests.
fn check_core(path: &str, text: &str) -> Vec<String> {
    if !is_source_of_crates(path) || MAY_FETCH.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    edges(path, text).map(|(line, edge)| format!("{path}:{line}: a core does not name {edge}")).collect()
}

/// No place is listed that needs it no more.
fn check_places(files: &Files) -> Vec<String> {
    let needs =
        |place: &str| files.iter().any(|(path, text)| path.starts_with(place) && edges(path, text).next().is_some());
    // Folders are listed for what they are for.
    let is_there = |place: &&&str| files.contains_key(**place);
    let idle = MAY_FETCH.iter().filter(is_there).filter(|place| !needs(place));
    idle.map(|place| format!("{place}: fetches nothing, and need not be listed")).collect()
}

/// No thread of redis-server lacks a policy for a panic.
fn check_threads(path: &str, text: &str) -> Option<String> {
    let is_concerned = path.starts_with("redis-server/src/") && path != THREADS && !is_test(path);
    let starts = |line: &str| line.contains("thread::Builder") || line.contains("thread::spawn(");
    (is_concerned && without_tests(text).lines().any(starts)).then(|| format!("{path}: threads start in {THREADS}"))
}

/// Nothing of redis-server that runs on its workers, which have no runtime, asks for one. The cluster's bus has a thread with a runtime.
fn check_own_loop(path: &str, text: &str) -> Option<String> {
    let is_concerned = path.starts_with("redis-server/src/") && !path.starts_with(BUS) && !is_test(path);
    let asks = |line: &str| RUNTIME_ONLY.iter().any(|name| line.contains(name));
    let found = is_concerned && without_tests(text).lines().any(asks);
    found.then(|| format!("{path}: workers have no tokio runtime: server_runtime has spawn_local, yield_now and sleep"))
}

/// No test counts on a port of [`EPHEMERAL`].
fn check_ports(path: &str, text: &str) -> Vec<String> {
    let port = |line: &str| -> Option<u16> {
        let (_, value) = line.split_once("PORT: u16 = ")?;
        value.trim_end_matches(';').replace('_', "").parse().ok().filter(|port| EPHEMERAL.contains(port))
    };
    let ports = text.lines().filter(|_| is_test(path)).filter_map(port);
    ports.map(|port| format!("{path}: the kernel may have given port {port} to another socket")).collect()
}

/// Exceptions are whole modules, or items of a few lines, each with its reason; the proof of a block is clippy's to demand.
fn check_unsafe(path: &str, text: &str) -> Vec<String> {
    let excepts =
        ["#![allow(unsafe_code", "#![expect(unsafe_code", "#![allow(\n    unsafe_code", "#![expect(\n    unsafe_code"];
    let length = without_tests(text).lines().count();
    if !is_source_of_crates(path) || length <= MAX_UNSAFE || !excepts.iter().any(|except| text.contains(except)) {
        return Vec::new();
    }
    vec![format!("{path}: {length} lines with `unsafe` without tests, more than {MAX_UNSAFE}")]
}

/// Parsers have a fuzz target, and what is a fuzz target is built as one.
fn check_parsers(files: &Files) -> Vec<String> {
    let mut breaches = Vec::new();
    let Some(manifest) = files.get("fuzz/Cargo.toml") else { return breaches };
    let targets: Vec<_> = files.iter().filter(|(path, _)| path.starts_with("fuzz/fuzz_targets/")).collect();
    for (place, called) in PARSERS.iter().filter(|(place, _)| files.keys().any(|path| path.starts_with(place))) {
        if !targets.iter().any(|(_, text)| text.contains(called)) {
            breaches.push(format!("{place}: no fuzz target calls {called}"));
        }
    }
    for (path, _) in targets {
        let name = path.trim_start_matches("fuzz/");
        if !manifest.contains(&format!("path = \"{name}\"")) {
            breaches.push(format!("{path}: fuzz/Cargo.toml does not build it"));
        }
    }
    breaches
}

/// The shipped build is the measured build, with the measured allocator.
fn check_shipped(files: &Files) -> Vec<String> {
    let mut breaches = Vec::new();
    if let Some(manifest) = files.get("Cargo.toml") {
        let profile = manifest.split("[profile.dist]\n").nth(1).unwrap_or_default();
        let profile: Vec<&str> = profile.lines().take_while(|line| !line.starts_with('[')).collect();
        for (key, value) in SHIPPED {
            if !profile.contains(&format!("{key} = {value}").as_str()) {
                breaches.push(format!("Cargo.toml: the profile that is shipped has {key} = {value}"));
            }
        }
        if manifest.matches("inherits").count() > 1 {
            breaches.push("Cargo.toml: a further profile would be shipped without being measured".to_owned());
        }
    }
    for (path, brings) in ALLOCATORS {
        if files.get(*path).is_some_and(|text| text.contains("#[global_allocator]") != *brings) {
            let rule = if *brings { "expected mimalloc as its allocator" } else { "expected the system's allocator" };
            breaches.push(format!("{path}: {rule}"));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(breaches(&files), expected);
    }

    #[test]
    fn a_core_of_any_crate_fetches_nothing() {
        let now = "let now = Instant::now();";
        for name in CRATES.iter().filter(|name| **name != "server-runtime") {
            let path = format!("{name}/src/some/core.rs");
            check(&[(&path, now)], &[&format!("{path}:1: a core does not name Instant::now")]);
            check(&[(&path, "// Instant::now()\n#[cfg(test)]\nmod tests {\n    let now = Instant::now();\n}")], &[]);
        }
        check(
            &[("redis-server/src/types/tests.rs", now), ("redis-server/tests/it/a.rs", now), ("xtask/src/a.rs", now)],
            &[],
        );
        check(&[("http2/src/shared/a.rs", "use tokio::io::AsyncRead;"), ("server-runtime/src/a.rs", now)], &[]);
    }

    #[test]
    fn a_place_that_needs_no_exception_has_none() {
        check(&[("loadgen/src/clock.rs", "")], &["loadgen/src/clock.rs: fetches nothing, and need not be listed"]);
        check(&[("loadgen/src/clock.rs", "std::time::Instant::now()")], &[]);
    }

    #[test]
    fn threads_start_in_one_place() {
        let spawn = "std::thread::Builder::new().spawn(work)";
        let path = "redis-server/src/keyspace/a.rs";
        check(&[(path, spawn)], &["redis-server/src/keyspace/a.rs: threads start in redis-server/src/threads.rs"]);
        check(&[(path, &format!("#[cfg(test)]\nmod tests {{\n    {spawn}\n}}"))], &[]);
        check(&[("redis-server/tests/it/a.rs", spawn), ("http-server/src/a.rs", spawn)], &[]);
    }

    #[test]
    fn workers_ask_for_no_runtime() {
        let task = "tokio::task::yield_now().await";
        let path = "redis-server/src/runtime/a.rs";
        let told =
            format!("{path}: workers have no tokio runtime: server_runtime has spawn_local, yield_now and sleep");
        check(&[(path, task)], &[&told]);
        check(&[("redis-server/src/runtime/bus/a.rs", task), ("redis-server/tests/it/a.rs", task)], &[]);
        check(&[(path, &format!("#[cfg(test)]\nmod tests {{\n    {task}\n}}"))], &[]);
    }

    #[test]
    fn tests_have_ports_of_their_own() {
        let path = "echonet-lite/tests/it/a.rs";
        check(
            &[(path, "const PORT: u16 = 36_210;")],
            &["echonet-lite/tests/it/a.rs: the kernel may have given port 36210 to another socket"],
        );
        check(&[(path, "const PORT: u16 = 13_710;"), ("loadgen/src/a.rs", "const PORT: u16 = 50_051;")], &[]);
    }

    #[test]
    fn a_module_with_unsafe_is_short() {
        let path = "http2/src/a.rs";
        let text = |lines| format!("#![allow(unsafe_code, reason = \"\")]\n{}", "\n".repeat(lines));
        check(&[(path, &text(MAX_UNSAFE - 1))], &[]);
        check(&[(path, &text(MAX_UNSAFE))], &["http2/src/a.rs: 651 lines with `unsafe` without tests, more than 650"]);
        check(&[("benches/a.rs", &text(MAX_UNSAFE))], &[]);
    }

    #[test]
    fn parsers_are_fuzzed() {
        let parser = ("http2/src/frame.rs", "");
        let target = ("fuzz/fuzz_targets/a.rs", "use http2::frame::Head;");
        let unfuzzed = ["http2/src/frame.rs: no fuzz target calls http2::frame::"];
        check(&[parser, ("fuzz/Cargo.toml", "")], &unfuzzed);
        check(
            &[parser, target, ("fuzz/Cargo.toml", "")],
            &["fuzz/fuzz_targets/a.rs: fuzz/Cargo.toml does not build it"],
        );
        check(&[parser, target, ("fuzz/Cargo.toml", "path = \"fuzz_targets/a.rs\"")], &[]);
    }

    #[test]
    fn shipped_builds_must_match_measured_builds() {
        let shipped =
            "[profile.dist]\ninherits = \"release\"\nopt-level = 3\nlto = \"fat\"\ndebug = \"line-tables-only\"\n";
        check(&[("Cargo.toml", shipped)], &[]);
        let thin = shipped.replace("fat", "thin");
        check(&[("Cargo.toml", &thin)], &["Cargo.toml: the profile that is shipped has lto = \"fat\""]);
        let further = format!("{shipped}[profile.quick]\ninherits = \"release\"\n");
        check(&[("Cargo.toml", &further)], &["Cargo.toml: a further profile would be shipped without being measured"]);
        let main = "redis-server/src/main.rs";
        check(&[(main, "fn main() {}")], &["redis-server/src/main.rs: expected mimalloc as its allocator"]);
    }
}
