//! Other tools' command lines, beside those tools.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use test_peers::{is_there, printed};

use super::command::{http_target, loadgen};

/// A genuine redis-server; it ends with the test.
pub(crate) struct RedisServer {
    child: Child,
    pub(crate) port: u16,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        let port = test_peers::free_port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let server = Self { child, port };
        for _ in 0..3000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The titles of redis-benchmark's tests, from its CSV.
fn titles(csv: &str) -> Vec<String> {
    csv.lines().map(|line| line.split("\",\"").next().unwrap().to_owned()).collect()
}

#[test]
fn redis_benchmark_runs_the_same_tests() {
    if !is_there("redis-server") || !is_there("redis-benchmark") {
        return;
    }
    let server = RedisServer::start();
    let port = server.port.to_string();
    let words = ["-p", &port, "-n", "300", "-c", "5", "-r", "100", "--csv"];
    let genuine = titles(&printed(Command::new("redis-benchmark").args(words)));
    let ours = titles(&printed(&loadgen(&[&["redis-benchmark"], &words[..]].concat())));
    assert_eq!(ours, genuine);
    assert_eq!(ours.len(), 21, "a head and twenty tests");
}

#[test]
fn redis_benchmark_stores_what_the_genuine_one_stores() {
    if !is_there("redis-server") || !is_there("redis-cli") {
        return;
    }
    let server = RedisServer::start();
    let port = server.port.to_string();
    let cli = |words: &[&str]| printed(Command::new("redis-cli").args(["-p", &port]).args(words));
    #[track_caller]
    fn run(port: &str, words: &[&str]) -> String {
        printed(&loadgen(&[&["redis-benchmark", "-p", port, "-q", "-n", "400", "-c", "4"], words].concat()))
    }
    run(&port, &["-t", "set", "-d", "10", "-P", "16", "-r", "5"]);
    let keys: BTreeSet<_> = cli(&["keys", "*"]).lines().map(str::to_owned).collect();
    let expected = (0..5).map(|key| format!("key:{key:012}")).collect();
    assert_eq!(keys, expected);
    assert_eq!(cli(&["get", "key:000000000004"]), "xxxxxxxxxx\n");
    let line = run(&port, &["-k", "0", "--dbnum", "3", "rpush", "list", "__rand_int__"]);
    assert!(line.starts_with("rpush list __rand_int__: "), "{line}");
    assert_eq!(cli(&["-n", "3", "llen", "list"]), "400\n");
    assert_eq!(cli(&["-n", "3", "lindex", "list", "0"]), "000000000000\n");
}

/// The words of each line up to its first digit: what scripts look for.
fn labels(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split(|c: char| c.is_ascii_digit()).next().unwrap().trim().to_owned()).collect()
}

#[test]
fn wrk_prints_the_same_lines() {
    if !is_there("wrk") {
        return;
    }
    let url = format!("http://{}/get?key=foo", http_target());
    let words = ["-t2", "-c4", "-d1", "--latency", url.as_str()];
    let genuine = Command::new("wrk").args(words).output().unwrap();
    let ours = printed(&loadgen(&[&["wrk"], &words[..]].concat()));
    assert_eq!(labels(&ours), labels(&String::from_utf8_lossy(&genuine.stdout)), "\n{ours}");
}

#[test]
fn hey_prints_its_sections() {
    let url = format!("http://{}/world", http_target());
    let ours = printed(&loadgen(&["hey", "-n", "1000", "-c", "10", "-disable-redirects", &url]));
    for section in ["Summary:", "Response time histogram:", "Latency distribution:", "Status code distribution:"] {
        assert!(ours.contains(section), "{ours}");
    }
    assert!(ours.contains("1000 responses"), "{ours}");
}

/// Whether a process has installed its handlers: that of SIGTERM comes behind that of SIGINT (proc_pid_status(5)).
fn catches_sigterm(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (rustix::process::Signal::TERM.as_raw() - 1) != 0
}

#[test]
fn idle_connections_are_held_until_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = loadgen(&["redis-benchmark", "-p", &port, "-I", "-c", "3"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut connections: Vec<_> = (0..3).map(|_| listener.accept().unwrap().0).collect();
    // Until the handler is there, the signal may be ignored: a shell has what it runs in the background ignore it.
    while !catches_sigterm(child.id()) {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    for connection in &mut connections {
        assert_eq!(test_peers::read(connection, &mut [0; 1]).unwrap_or(0), 0);
    }
}
