//! HTTP/3 against genuine servers: quic-go's, and our own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::record::Outcome;
use test_peers::{Kit, kit, skip};

use crate::command::loadgen;
use crate::target::{QuicServer, answer, certificate};

/// quic-go's server; its modules come from Go's proxy.
const QUIC_GO: Kit = kit! {
    name: "loadgen-go-http3",
    sources: &["tests/peers/go-http3"],
    programs: &["go"],
    install: "go build -o peer .",
};

/// A process that ends with its test.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file that is removed with its test.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadgen-http3-{name}-{}.pem", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the command, and gives its result, in which nothing has failed.
#[track_caller]
fn run(target: &str, words: &str) -> Outcome {
    let line = format!("http {target} --http3 -q --json - -t 1 {words}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = loadgen(&words).output().unwrap();
    let outcome: Outcome =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}\n{output:?}"));
    assert!(outcome.failures.is_empty(), "{line}: {:?}", outcome.failures);
    outcome
}

/// Puts every kind of load on a server that answers `/` and `/echo`, and gives how many requests that were.
#[track_caller]
fn load(base: &str, trust: &str) -> u64 {
    let mut requests = 0;
    let mut check = |path: &str, words: &str, expected: u64| {
        let outcome = run(&format!("{base}{path}"), &format!("{trust} {words}"));
        assert_eq!(outcome.answers(), expected, "{words}");
        requests += expected;
    };
    check("/", "-c 1 -n 1", 1);
    check("/", "-c 5 --streams 10 -n 5000 --verify", 5000);
    check("/", "-c 3 --rate 500 -d 1s --warm-up 0s", 500);
    check("/", "-c 3 --no-keep-alive -n 60", 60);
    // More than the windows: bodies wait for the server's leave.
    check("/echo", "-c 2 --streams 4 -n 40 --body {value} --value-size 300000 --verify --expect {value}", 40);
    check("/echo", "-c 2 -n 200 --body {key}-{value} --value-size 1..900 --verify --expect {key}-{value}", 200);
    check("/?{key}", "-c 2 -X DELETE -H x-key:{key} -n 200", 200);
    requests
}

#[test]
fn quic_go_counts_the_same() {
    let Some(folder) = QUIC_GO.installed() else { return };
    let mut command = Command::new(folder.join("peer"));
    let mut peer = Peer(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(peer.0.stdout.take().unwrap());
    let mut port = String::new();
    lines.read_line(&mut port).unwrap();
    let mut pem = String::new();
    while !pem.contains("END CERTIFICATE") {
        lines.read_line(&mut pem).unwrap();
    }
    let authority = File::new("go", &pem);
    let base = format!("https://localhost:{}", port.trim());
    let trust = format!("--cacert {}", authority.path());
    let mut requests = load(&base, &trust);
    // One answer in 50 is 100 ms late.
    let late = run(&format!("{base}/late"), &format!("{trust} -c 5 --streams 4 -n 5000"));
    requests += late.answers();
    let p99 = late.latencies().percentile(99.0);
    assert!(p99 >= Duration::from_millis(99), "{p99:?}");
    drop(peer.0.stdin.take());
    let mut count = String::new();
    lines.read_to_string(&mut count).unwrap();
    assert_eq!(count.trim(), requests.to_string());
}

#[test]
fn our_server_counts_the_same() {
    let program = Path::new(env!("CARGO_BIN_EXE_loadgen")).with_file_name("http-server");
    if !program.exists() {
        return skip("http-server is not built: cargo build -p http-server --features http3");
    }
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (File::new("cert", &made.cert.pem()), File::new("key", &made.signing_key.serialize_pem()));
    let metrics = SocketAddr::from(([127, 0, 0, 1], test_peers::free_port()));
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--metrics-listen", &metrics.to_string()]);
    command.args(["--tls-cert", cert.path(), "--tls-key", key.path(), "--http3"]);
    let mut peer = Peer(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(peer.0.stderr.take().unwrap()).lines();
    // The plain port, then that of TLS.
    let (mut ports, mut said) = (Vec::new(), Vec::new());
    while ports.len() < 2 {
        let Some(Ok(line)) = lines.next() else {
            return skip(&format!("http-server has no HTTP/3: {said:?}"));
        };
        ports.extend(line.split_once("on 127.0.0.1:").map(|(_, port)| port.trim().to_owned()));
        said.push(line);
    }
    // The server's log must not fill its pipe.
    thread::spawn(move || lines.for_each(drop));
    let check = |words: &str, expected: u64| {
        let outcome =
            run(&format!("https://localhost:{}/healthz", ports[1]), &format!("--cacert {} {words}", cert.path()));
        assert_eq!(outcome.answers(), expected, "{words}");
    };
    check("-c 4 --streams 8 -n 5000", 5000);
    check("-c 2 --rate 300 -d 1s --warm-up 0s", 300);
    check("-c 2 --no-keep-alive -n 50", 50);
    let page = ask(&metrics.to_string(), "/metrics");
    let counted = page.lines().find_map(|line| line.strip_prefix("http_h3_requests_total "));
    assert_eq!(counted, Some("5350"), "{page}");
}

fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn connections_are_closed_for_the_server_to_know() {
    let certificate = certificate("localhost");
    let server = QuicServer::start(&certificate, Duration::ZERO, |_| answer());
    let authority = File::new("close", &certificate.pem);
    let began = Instant::now();
    let outcome = run(
        &format!("https://localhost:{}/", server.address.port()),
        &format!("--cacert {} -c 2 --streams 3 -n 300", authority.path()),
    );
    assert_eq!((outcome.answers(), server.requests()), (300, 300), "after {:?}", began.elapsed());
    let until = Instant::now() + Duration::from_secs(20);
    while server.open() > 0 {
        assert!(Instant::now() < until, "{} connections are still open", server.open());
        thread::sleep(Duration::from_millis(10));
    }
}
