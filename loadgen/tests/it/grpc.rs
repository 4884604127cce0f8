//! gRPC and HTTP/2 against genuine servers: grpc-go, and nghttp2's nghttpd.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use loadgen::record::{Failure, Outcome};
use test_peers::{Kit, kit, skip};

use crate::command::loadgen;

/// A server that ends with its test.
struct Peer {
    child: Child,
    address: String,
    /// grpc-go's ends with its standard input.
    _input: Option<ChildStdin>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// grpc-go's server; its modules come from Go's proxy.
const GRPC_GO: Kit = kit! {
    name: "loadgen-go-grpc",
    sources: &["tests/peers/go-grpc"],
    programs: &["go"],
    install: "go build -o peer .",
};

fn grpc_go(arguments: &[&str]) -> Option<Peer> {
    let mut command = Command::new(GRPC_GO.installed()?.join("peer"));
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let input = child.stdin.take();
    Some(Peer { child, address: address.trim().to_owned(), _input: input })
}

/// Runs the command and gives its result.
#[track_caller]
fn outcome(words: &[&str]) -> Outcome {
    let output = loadgen(&[words, &["-q", "--json", "-", "-t", "1"]].concat()).output().unwrap();
    let parsed = serde_json::from_slice(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{words:?}: {error}\n{output:?}"))
}

#[track_caller]
fn check_right(words: &[&str], answers: u64) {
    let outcome = outcome(words);
    assert_eq!((outcome.answers(), &outcome.failures[..]), (answers, &[][..]), "{words:?}");
}

#[test]
fn unary_calls_are_made_and_checked() {
    let Some(peer) = grpc_go(&[]) else { return };
    let run = |words: &[&str]| {
        let common = ["grpc", &peer.address, "-n", "500", "-c", "3", "--streams", "20", "--verify"];
        check_right(&[&common, words].concat(), 500);
    };
    run(&[]);
    run(&["--expect", r#"{"message":"Hello world"}"#]);
    run(&["--reflect", "--data", r#"{"name":"{key}"}"#, "--expect", r#"{"message":"Hello {key}"}"#]);
    run(&["--data", r#"{"name":"{value}"}"#, "--value-size", "1..9", "--expect", r#"{"message":"Hello {value}"}"#]);
    run(&["-H", "x-suffix: !", "--gzip", "--deadline", "9s", "--expect", r#"{"message":"Hello world!"}"#]);
    // More than both windows of 64 KiB: bodies wait for WINDOW_UPDATE.
    run(&["--data", r#"{"name":"{value}"}"#, "--value-size", "100000", "--expect", r#"{"message":"Hello {value}"}"#]);
    let wrong = outcome(&["grpc", &peer.address, "-n", "50", "--verify", "--expect", r#"{"message":"Bye"}"#]);
    assert_eq!((wrong.answers(), wrong.failures_of(Failure::Wrong)), (0, 50));
}

#[test]
fn a_server_allows_fewer_streams_than_are_wanted() {
    let Some(peer) = grpc_go(&[]) else { return };
    check_right(&["grpc", &peer.address, "-n", "2000", "-c", "2", "--streams", "500"], 2000);
}

#[test]
fn streams_of_every_kind() {
    let Some(peer) = grpc_go(&[]) else { return };
    let run = |call: &str, words: &[&str]| {
        let common = ["grpc", &peer.address, "-n", "200", "-c", "2", "--streams", "9", "--verify", "--call", call];
        check_right(&[&common, words].concat(), 200);
    };
    let ones = r#"[{"value":1},{"value":2}]"#;
    run("streams.Streams/Sum", &["--data", ones, "--messages", "5", "--expect", r#"{"value":7}"#]);
    run("streams.Streams.Double", &["--data", ones, "--expect", r#"[{"value":2},{"value":4}]"#]);
    run(
        "streams.Streams/Count",
        &["--data", r#"{"value":"3"}"#, "--expect", r#"[{"value":1},{"value":2},{"value":3}]"#],
    );
    // Messages of several frames, larger than what is read at once.
    run("streams.Streams/Count", &["--data", &format!(r#"{{"value":3,"padding":"{}"}}"#, "eHh4".repeat(30_000))]);
    let definition = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/go-grpc/streams.proto");
    run("streams.Streams/Sum", &["--proto", definition.to_str().unwrap(), "--data", ones]);
    for (messages, data) in [("0", "{}"), ("2", r#"{"value":2}"#)] {
        let failed = outcome(&["grpc", &peer.address, "-n", "50", "--call", "streams.Streams/Fail", "--data", data]);
        let examples: Vec<_> =
            failed.failures.iter().map(|kind| (kind.kind, kind.count, kind.examples.clone())).collect();
        let text = "NOT_FOUND: no such number: 100 %".to_owned();
        assert_eq!(examples, [(Failure::Rejected, 50, vec![text])], "after {messages} messages");
    }
}

#[test]
fn methods_are_mixed() {
    let Some(peer) = grpc_go(&[]) else { return };
    let (hello, count) = (r#"2:helloworld.Greeter/SayHello {"name":"a"}"#, r#"1:streams.Streams/Count {"value":3}"#);
    let words = ["-n", "900", "-c", "2", "--streams", "9", "--verify", "--mix", hello, "--mix", count];
    let mixed = outcome(&[&["grpc", &peer.address], &words[..]].concat());
    assert_eq!((mixed.answers(), &mixed.failures[..]), (900, &[][..]));
    let counts: Vec<_> =
        mixed.operations.iter().map(|operation| (&*operation.name, operation.latencies.count())).collect();
    // Five standard deviations around 600.
    assert!(matches!(counts[..], [("SayHello", 530..=670), ("Count", 230..=370)]), "{counts:?}");
    let wrong =
        outcome(&["grpc", &peer.address, "-n", "90", "--mix", r#"1:streams.Streams/Fail {"value":2}"#, "--mix", hello]);
    assert_eq!(
        (wrong.answers() + wrong.failures_of(Failure::Rejected), wrong.operations[0].latencies.count()),
        (90, 0)
    );
}

#[test]
fn methods_that_are_not_there_are_named() {
    let Some(peer) = grpc_go(&[]) else { return };
    let check = |call: &str, expected: &str| {
        let output = loadgen(&["grpc", &peer.address, "--call", call]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    check("no.Such/Method", "server reflection: NOT_FOUND");
    check("streams.Streams/Nothing", "streams.Streams has no method Nothing, but Sum, Count, Double, Fail");
}

#[test]
fn grpc_over_tls() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join("grpc.pem"), folder.join("grpc-key.pem"));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let Some(peer) = grpc_go(&[cert, key]) else { return };
    let target = peer.address.replace("127.0.0.1", "localhost");
    for words in [&["--cacert", cert][..], &["--insecure"]] {
        let common = ["grpc", &target, "-n", "300", "-c", "3", "--streams", "7", "--tls", "--verify", "--reflect"];
        check_right(&[&common, words].concat(), 300);
    }
}

#[test]
fn command_lines_of_ghz() {
    let Some(peer) = grpc_go(&[]) else { return };
    let proto = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helloworld.proto");
    let text = "syntax = \"proto3\"; package helloworld;\nservice Greeter { rpc SayHello(HelloRequest) returns (HelloReply); }\n\
                message HelloRequest { string name = 1; } message HelloReply { string message = 1; }";
    fs::write(&proto, text).unwrap();
    let output = loadgen(&[
        "ghz",
        "--insecure",
        "--proto",
        proto.to_str().unwrap(),
        "--call",
        "helloworld.Greeter/SayHello",
        "-d",
        r#"{"name":"x"}"#,
        "--total",
        "1000",
        "--concurrency",
        "50",
        "--connections",
        "10",
        &peer.address,
    ])
    .output()
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("Count:\t1000\n"), "{output:?}");
    assert!(text.contains("[OK]                1000 responses"), "{text}");
    let words = ["ghz", "--insecure", "--call", "helloworld.Greeter.SayHello", "-n", "10", "-O", "json", &peer.address];
    let output = loadgen(&words).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["statusCodeDistribution"], serde_json::json!({ "OK": 10 }));
}

/// nghttpd serves a folder; it cannot choose its port, so one that was free a moment ago is given.
fn nghttpd(folder: &Path) -> Option<Peer> {
    let port = test_peers::free_port();
    let mut command = Command::new("nghttpd");
    command.args(["--no-tls", "--address=127.0.0.1", "--htdocs"]).arg(folder).arg(port.to_string());
    let child = match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) => {
            skip(&format!("nghttpd: {error}"));
            return None;
        }
    };
    let address = format!("127.0.0.1:{port}");
    let peer = Peer { child, address, _input: None };
    for _ in 0..3000 {
        if TcpStream::connect(&peer.address).is_ok() {
            return Some(peer);
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nghttpd does not listen");
}

#[test]
fn http2_requests() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("htdocs");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("small"), "hello").unwrap();
    fs::write(folder.join("large"), "0123456789".repeat(30_000)).unwrap();
    let Some(peer) = nghttpd(&folder) else { return };
    let base = format!("http://{}", peer.address);
    let run = |path: &str, words: &[&str]| {
        let url = format!("{base}{path}");
        check_right(
            &[&["http", &url, "--http2", "-n", "300", "-c", "3", "--streams", "10", "--verify"], words].concat(),
            300,
        );
    };
    run("/small", &["--expect", "hello"]);
    run("/large", &[]);
    run("/", &["--mix", "3:/small", "--mix", "1:/large", "-H", "X-Name: value"]);
    run("/small", &["-X", "HEAD"]);
    let missing = format!("{base}/none");
    let failed = outcome(&["http", &missing, "--http2", "-n", "20"]);
    assert_eq!((failed.answers(), failed.failures_of(Failure::Rejected)), (0, 20));
}
