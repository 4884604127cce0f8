//! The memory that connections and streams take, in a process that has nothing else.

use std::process::Command;

use http2::Config;

use crate::support::{Engine, headers};

#[test]
fn connections_and_streams_are_small() {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--exact", "memory::measured", "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // Marked, so that its "test result" does not count beside this program's own.
    text.lines().for_each(|line| println!("> {line}"));
    assert!(output.status.success() && text.contains("1 passed"), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn measured() {
    // The engines are kept: memory that is used a second time would not be counted again.
    fn check(what: &str, count: usize, bound: usize, make: impl FnOnce() -> Vec<Engine>) {
        let before = resident();
        let made = std::mem::ManuallyDrop::new(make());
        let each = (resident() - before) / count;
        println!("{what}: {each} bytes each");
        assert!(each <= bound, "{what}: {each} bytes each");
        assert!(!made.is_empty());
    }
    let config = Config { max_streams: 100_000, ..Config::default() };
    let with_streams = |count: u32| {
        let mut engine = Engine::open(&config);
        for number in 0..count {
            // Their bodies are missing, and so is every answer.
            engine.send(&headers(1 + 2 * number, false)).unwrap();
        }
        engine.connection.swap_buffer(&mut Vec::new());
        engine
    };
    drop(with_streams(1));
    check("10,000 idle connections", 10_000, 8 * 1024, || (0..10_000).map(|_| used(&config)).collect());
    check("100,000 waiting streams of one connection", 100_000, 1024, || vec![with_streams(100_000)]);
    check("100,000 waiting streams of 1,000", 100_000, 1024, || (0..1000).map(|_| with_streams(100)).collect());
}

/// A connection on which everything has happened once.
fn used(config: &Config) -> Engine {
    let mut engine = Engine::open(config);
    let stream = engine.begin(1, true);
    engine.connection.send_head(stream, 200, std::iter::empty(), false).unwrap();
    engine.connection.send_data(stream, b"hello", true).unwrap();
    engine.take_output();
    engine.connection.swap_buffer(&mut Vec::new());
    engine
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
