//! The log; a process has one, so each test has a process.

use server_runtime::{LogFormat, LogOptions, LogOutput, Options, init_logging, set_log_level};
use test_peers::alone;

use crate::support::{Folder, ask, connect, end, options, serve};

#[test]
fn json_lines_in_a_file() {
    if !alone("logging::json_lines_in_a_file") {
        return;
    }
    let folder = Folder::new("log");
    let path = folder.file("server.log");
    let log = LogOptions { format: LogFormat::Json, output: LogOutput::File(path.clone()), ..LogOptions::default() };
    init_logging(&log).unwrap();
    assert!(init_logging(&log).is_err(), "there is one already");

    let running = serve(Options { workers: 1, ..options() });
    assert_eq!(ask(&mut connect(running.local_addrs()[0]), "panic"), "");
    end(running);
    tracing::debug!("below the level");
    let lines = std::fs::read_to_string(&path).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    for part in ["\"level\":\"ERROR\"", "as asked", "\"threadName\":\"worker-0\""] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
}

#[test]
fn lines_as_redis_writes_them() {
    if !alone("logging::lines_as_redis_writes_them") {
        return;
    }
    let folder = Folder::new("lines");
    let path = folder.file("server.log");
    let output = LogOutput::File(path.clone());
    init_logging(&LogOptions { format: LogFormat::Redis, level: "debug".into(), output }).unwrap();
    tracing::info!(port = 1, "a note");
    tracing::warn!("a warning");
    tracing::debug!("a detail");
    let log = std::fs::read_to_string(&path).unwrap();
    let process = format!("{}:M ", std::process::id());
    for (line, end) in log.lines().zip([" * a note port=1", " # a warning", " - a detail"]) {
        let time = line.strip_prefix(&process).and_then(|line| line.strip_suffix(end));
        let parts: Vec<_> = time.unwrap_or_else(|| panic!("{line}")).split([' ', ':', '.']).map(str::len).collect();
        assert_eq!(parts, [2, 3, 4, 2, 2, 2, 3], "{line}");
    }
    assert_eq!(log.lines().count(), 3);
}

#[test]
fn the_level_changes_while_the_process_runs() {
    if !alone("logging::the_level_changes_while_the_process_runs") {
        return;
    }
    set_log_level("debug").expect("there is no log, which has no level");
    let folder = Folder::new("level");
    let path = folder.file("server.log");
    init_logging(&LogOptions { output: LogOutput::File(path.clone()), ..LogOptions::default() }).unwrap();
    for (number, level) in ["info", "debug", "off", "warn", "info,it=debug", "nonsense=x"].into_iter().enumerate() {
        assert_eq!(set_log_level(level).is_ok(), number < 5, "{level}");
        tracing::debug!("debug {number}");
        tracing::warn!("warn {number}");
    }
    let log = std::fs::read_to_string(&path).unwrap();
    let said: Vec<_> = log.lines().map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert_eq!(said, ["warn 0", "debug 1", "warn 1", "warn 3", "debug 4", "warn 4", "debug 5", "warn 5"], "{log}");
}

#[test]
fn invalid_log_options_are_refused_with_a_reason() {
    if !alone("logging::invalid_log_options_are_refused_with_a_reason") {
        return;
    }
    let error = |log: LogOptions| init_logging(&log).expect_err("it is wrong").to_string();
    let loud = error(LogOptions { level: "server_runtime=loud".into(), ..LogOptions::default() });
    assert!(loud.contains("expected error, warn, info"), "{loud}");
    let lost = error(LogOptions { output: LogOutput::File("/nonexistent/a.log".into()), ..LogOptions::default() });
    assert!(lost.starts_with("log: cannot open /nonexistent/a.log: "), "{lost}");
}
