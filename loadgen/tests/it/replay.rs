//! Requests that were recorded are sent again: in their order, and at their times.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use loadgen::record::Outcome;
use loadgen::watch::Watch;

use crate::target::{Behaviour, Delay, Dialect, Target};
use crate::truth::eventually;

/// A file that is removed when the test is over.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadgen-replay-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn scenario(protocol: &str, target: &Target, file: &File, options: &str) -> Result<Outcome, String> {
    let (address, file) = (target.address.to_string(), file.0.to_str().unwrap());
    let words = [protocol, &address, "--replay", file].into_iter().chain(options.split_whitespace());
    Ok(loadgen::cli::scenario(&words.collect::<Vec<_>>())?.run(&mut |_| Watch::GoOn))
}

const MONITOR: &str = "OK\n\
    100.00 [0 127.0.0.1:1] \"SET\" \"a{key}\" \"x\"\n\
    100.05 [0 127.0.0.1:2] \"get\" \"a{key}\"\n\
    100.05 [0 127.0.0.1:1] \"SELECT\" \"3\"\n\
    100.40 [0 127.0.0.1:1] \"PING\"\n";

fn log() -> String {
    let line =
        |second: u32, request: &str| format!("::1 - - [26/Nov/2026:15:00:{second:02} +0000] \"{request}\" 200 5\n");
    [
        line(0, "GET /{key} HTTP/1.1"),
        line(0, "DELETE /b HTTP/1.1"),
        line(1, "POST /c HTTP/1.1"),
        line(1, "GET /d HTTP/1.1"),
    ]
    .concat()
}

fn kept(dialect: Dialect) -> Target {
    Target::start(Behaviour { dialect, keeps_requests: true, ..Behaviour::default() })
}

#[test]
fn requests_come_in_their_order_and_once() {
    let file = File::new("monitor", MONITOR);
    let target = kept(Dialect::Redis);
    let outcome = scenario("redis", &target, &file, "-c 1 --verify").unwrap();
    assert_eq!((outcome.answers(), outcome.failed()), (3, 0), "{:?}", outcome.failures);
    let expected = [
        "*3\r\n$3\r\nSET\r\n$6\r\na{key}\r\n$1\r\nx\r\n",
        "*2\r\n$3\r\nget\r\n$6\r\na{key}\r\n",
        "*1\r\n$4\r\nPING\r\n",
    ];
    let texts: Vec<_> = target.kept().into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
    assert_eq!(texts, expected);
    let names: Vec<_> = outcome.operations.iter().map(|operation| &*operation.name).collect();
    assert_eq!(names, ["SET", "GET", "PING"]);
    assert!(outcome.description.ends_with(", 3 requests (1 line left out)"), "{}", outcome.description);

    let file = File::new("log", &log());
    let target = kept(Dialect::Http);
    let outcome = scenario("http", &target, &file, "-c 1 -n 6 -H X-A:b").unwrap();
    assert_eq!((outcome.answers(), outcome.failed()), (6, 0), "{:?}", outcome.failures);
    let lines: Vec<_> = target.kept().into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
    let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    let round = ["GET /{key} HTTP/1.1", "DELETE /b HTTP/1.1", "GET /d HTTP/1.1"];
    assert_eq!(lines.iter().map(first).collect::<Vec<_>>(), [round, round].concat());
    assert!(lines[0].contains("\r\nX-A: b\r\n"), "{}", lines[0]);
    let counts: Vec<_> =
        outcome.operations.iter().map(|operation| (&*operation.name, operation.latencies.count())).collect();
    assert_eq!(counts, [("GET", 4), ("DELETE", 2)]);
}

/// Recorded at 0, 50 and 400 ms.
#[test]
fn requests_are_sent_at_their_times() {
    let file = File::new("times", MONITOR);
    for (speed, expected) in [("1", 400), ("0.5", 800), ("4", 100)] {
        eventually(|| {
            let target =
                Target::start(Behaviour { delay: Delay::Constant(Duration::from_millis(20)), ..Behaviour::default() });
            let outcome = scenario("redis", &target, &file, &format!("-c 2 -t 1 --speed {speed}")).unwrap();
            assert_eq!((outcome.answers(), outcome.failed()), (3, 0), "{:?}", outcome.failures);
            assert!(outcome.latencies().min() >= Duration::from_millis(19), "{:?}", outcome.latencies().min());
            let seconds = Duration::from_secs_f64(outcome.seconds);
            // The last one is due then, and is answered after its delay.
            let due = Duration::from_millis(expected + 20);
            assert!(seconds >= due.mul_f64(0.99), "{speed}: {seconds:?}");
            if seconds > due + Duration::from_millis(15) { Err(format!("{speed}: {seconds:?}")) } else { Ok(()) }
        });
    }
}

#[test]
fn unusable_replay_files_and_options_are_refused() {
    let target = Target::start(Behaviour::default());
    #[track_caller]
    fn check(target: &Target, file: &File, options: &str, expected: &str) {
        let error = scenario("redis", target, file, options).map(|outcome| outcome.description).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let (nothing, monitor) = (File::new("nothing", "OK\nx\n"), File::new("refused", MONITOR));
    check(&target, &nothing, "", "expected a file with requests: none of its 1 lines is one");
    check(&target, &monitor, "--database 3", "none of its 4 lines is one");
    check(
        &target,
        &monitor,
        "--speed fast",
        "invalid value 'fast' for '--speed <FACTOR>': expected a factor such as 1",
    );
    check(&target, &monitor, "--speed 1 --rate 5", "'--speed <FACTOR>' cannot be used with '--rate <RATE>'");
    check(&target, &monitor, "GET a", "cannot be used with");
    let missing = File(PathBuf::from("/dev/null/missing"));
    check(&target, &missing, "", "--replay is `/dev/null/missing`, expected a file that can be read");
}
