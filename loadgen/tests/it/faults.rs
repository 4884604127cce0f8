//! The command against targets that fail: a message and a count for each, never a hang, always a result.

use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::target::{Behaviour, Dialect, Fault, Target, certificate};

/// Far longer than any of these runs takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command's output and files.
struct Said {
    output: Output,
    result: Value,
}

impl Said {
    fn text(&self) -> String {
        let Output { stdout, stderr, .. } = &self.output;
        format!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr))
    }

    /// Count and first example of a kind of failure.
    fn failure(&self, kind: &str) -> (u64, String) {
        let failures = self.result["failures"].as_array().unwrap();
        let found = failures.iter().find(|failure| failure["kind"] == kind);
        let Some(found) = found else { panic!("no {kind} in {failures:?}") };
        let count = found["count"].as_u64().unwrap();
        (count, found["examples"][0].as_str().unwrap_or_default().to_owned())
    }
}

/// Runs the command with `--json` to a file; a `_` is a space within a word.
fn loadgen(line: &str) -> Said {
    let (result, output) = run(Command::new(PROGRAM), line);
    let Some(result) = result else { panic!("{line}: no result: {output:?}") };
    Said { output, result }
}

/// The same with a limit of file descriptors; there may be no result.
fn loadgen_limited(line: &str, limit: u64) -> (Option<Value>, Output) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\""), PROGRAM]);
    run(command, line)
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_loadgen");

fn run(mut command: Command, line: &str) -> (Option<Value>, Output) {
    let folder = std::env::temp_dir().join(format!("loadgen-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).unwrap();
    let json = folder.join("result.json");
    let start = Instant::now();
    let mut words = line.split_whitespace().map(|word| word.replace('_', " "));
    // Options stand before a command's words.
    command.args(words.next()).arg("--json").arg(&json).args(words);
    let output = command.output().unwrap();
    assert!(start.elapsed() < PATIENCE, "{line}: {:?}", start.elapsed());
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    std::fs::remove_dir_all(&folder).unwrap();
    (serde_json::from_str(&text).ok(), output)
}

#[test]
fn each_fault_has_its_message_and_count() {
    #[track_caller]
    fn check(dialect: Dialect, line: &str, fault: Fault, kind: &str, example: &str) {
        let target = Target::start(Behaviour { dialect, fault: Some((25, fault)), ..Behaviour::default() });
        let line = line.replace("{}", &target.address.to_string());
        let said = loadgen(&format!("{line} -c 4 -t 1 -n 200 --timeout 500ms"));
        let (count, first) = said.failure(kind);
        assert_eq!((count, target.faults()), (8, 8), "{dialect:?} {fault:?}: {}", said.text());
        assert!(first.contains(example), "{dialect:?} {fault:?}: {first}");
        assert_eq!(said.result["failures"].as_array().unwrap().len(), 1, "{dialect:?} {fault:?}: {}", said.text());
        assert_eq!(said.result["ending"], "complete");
    }
    const SUBJECTS: [(Dialect, &str); 4] = [
        (Dialect::Redis, "redis {} --mix 1:PING"),
        (Dialect::Http, "http http://{}/x"),
        (Dialect::WebSocket, "websocket ws://{}/x"),
        (Dialect::EchonetTcp, "echonet {} --tcp --mix 1:get_013001_80"),
    ];
    for (dialect, line) in SUBJECTS {
        check(dialect, line, Fault::Reset, "reset", "reset");
        check(dialect, line, Fault::Silence, "timed-out", "");
        check(dialect, line, Fault::HalfAnswer, "closed", "");
        check(dialect, line, Fault::Garbage, "protocol", "");
    }
}

#[test]
fn a_target_that_refuses_ends_the_run_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for protocol in ["redis", "http", "echonet --tcp"] {
        let said = loadgen(&format!("{protocol} {address} -c 3 -d 1s"));
        assert_eq!(said.output.status.code(), Some(1), "{}", said.text());
        assert!(said.failure("refused").0 >= 3, "{}", said.text());
        assert!(said.text().contains("refused"), "{}", said.text());
        assert!(said.text().contains(&address.to_string()), "{}", said.text());
    }
}

#[test]
fn datagrams_to_a_closed_port_count_as_refused() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let said = loadgen(&format!("echonet {address} -c 1 -d 300ms --warm-up 0s --timeout 200ms"));
    assert!(said.failure("refused").0 > 0, "{}", said.text());
}

/// Devices may answer from another port than the one that was asked, at the port that the specification names.
#[test]
fn a_device_may_answer_from_any_port() {
    let [asked, answering, free] = [(); 3].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let (address, port) = (asked.local_addr().unwrap(), free.local_addr().unwrap().port());
    drop(free);
    let device = std::thread::spawn(move || {
        let mut frame = [0; 15];
        for _ in 0..10 {
            let (length, from) = asked.recv_from(&mut frame[..14]).unwrap();
            assert_eq!((length, from.port()), (14, port));
            // Get becomes Get_Res, objects change places, and the property has a value.
            frame.copy_within(7..10, 4);
            frame[7..].copy_from_slice(&[0x05, 0xff, 0x01, 0x72, 1, 0x80, 1, 0x30]);
            answering.send_to(&frame, from).unwrap();
        }
    });
    let line = format!("echonet {address} -c 1 -n 10 --local-port {port} --timeout 10s --verify get 013001 80=30");
    let said = loadgen(&line);
    assert_eq!(said.output.status.code(), Some(0), "{}", said.text());
    device.join().unwrap();
}

#[test]
fn a_certificate_is_checked() {
    let certificate = certificate("localhost");
    let target =
        Target::start(Behaviour { dialect: Dialect::Http, tls: Some(certificate.clone()), ..Behaviour::default() });
    let port = target.address.port();
    let line = format!("http https://localhost:{port}/x -c 2 -t 1 -n 50");
    let said = loadgen(&line);
    assert_eq!(said.output.status.code(), Some(1), "{}", said.text());
    let (count, example) = said.failure("tls");
    assert!(count >= 2, "{}", said.text());
    assert!(example.contains("certificate"), "{example}");

    let file = std::env::temp_dir().join(format!("loadgen-ca-{}.pem", std::process::id()));
    std::fs::write(&file, &certificate.pem).unwrap();
    let trusted = loadgen(&format!("{line} --cacert {}", file.display()));
    std::fs::remove_file(&file).unwrap();
    let insecure = loadgen(&format!("{line} --insecure"));
    for said in [trusted, insecure] {
        assert_eq!(said.result["failures"], Value::Array(Vec::new()), "{}", said.text());
        assert_eq!(said.output.status.code(), Some(0));
    }
}

#[test]
fn too_few_file_descriptors_are_told() {
    // Known beforehand.
    let target = Target::start(Behaviour::default());
    let line = format!("redis {} -c 100 -t 1 -d 500ms --warm-up 0s PING", target.address);
    let refused = loadgen_limited(&line, 40).1;
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("this process may open 40 files"), "{text}");

    // Met on the way, because others than the connections are open: the copies here are inherited.
    let copies: Vec<_> = (0..100).map(|_| rustix::io::dup(std::io::stderr()).unwrap()).collect();
    let (result, output) = loadgen_limited(&line, 170);
    drop(copies);
    let said = Said { result: result.unwrap(), output };
    let (count, example) = said.failure("resources");
    assert!(count >= 30, "{count}");
    assert!(example.contains("Too many open files"), "{example}");
    // Those that could be opened were used.
    assert!(target.requests() > 0);
    assert_eq!(said.result["ending"], "complete");
}

/// An HTTP server that answers until it is told to die, after so long a time for each request.
fn mortal_target(pause: Duration) -> (std::net::SocketAddr, std::sync::Arc<std::sync::atomic::AtomicBool>) {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dead = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&dead);
    std::thread::spawn(move || {
        // One connection after the other; who waits is in the backlog, which is closed with the listener.
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        while !told.load(Ordering::Relaxed) && test_peers::read(&mut stream, &mut buffer).is_ok_and(|count| count > 0) {
            std::thread::sleep(pause);
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err() {
                return;
            }
        }
    });
    (address, dead)
}

#[test]
fn a_server_that_dies_is_no_success() {
    let (address, dead) = mortal_target(Duration::from_millis(1));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        dead.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let said = loadgen(&format!("http http://{address}/ -c 1 -d 3s --warm-up 0s"));
    killer.join().unwrap();
    assert_eq!(said.output.status.code(), Some(1), "{}", said.text());
    let reason = said.result["ending"]["failed"].as_str().unwrap_or_default();
    assert!(reason.starts_with("no connection was left "), "{reason}");
    assert!(said.result["summary"]["all"]["answers"].as_u64().unwrap() > 0, "what there was is kept");
}

#[test]
fn an_open_loop_above_capacity_reports_what_was_achieved() {
    // At most 500 requests a second, one at a time; three times as many are offered.
    let (address, _) = mortal_target(Duration::from_millis(2));
    let said = loadgen(&format!("http http://{address}/ -c 1 --rate 1500 -d 2s --warm-up 500ms --slo rate=1400"));
    let rate = said.result["summary"]["all"]["per_second"].as_f64().unwrap();
    let answers = said.result["summary"]["all"]["answers"].as_f64().unwrap();
    let seconds = said.result["seconds"].as_f64().unwrap();
    assert!(rate < 500.0 && seconds > 3.0, "{rate}/s in {seconds} s: {}", said.text());
    assert!((answers / seconds / rate - 1.0).abs() < 1e-9);
    assert!((said.result["offered_per_second"].as_f64().unwrap() / 1500.0 - 1.0).abs() < 1e-6);
    assert_eq!(said.output.status.code(), Some(3), "{}", said.text());
    assert!(said.text().contains("could not keep up"), "{}", said.text());
}

#[test]
fn a_timeline_has_no_pieces_that_are_too_short_for_a_rate() {
    let (address, _) = mortal_target(Duration::from_millis(1));
    let said = loadgen(&format!("http http://{address}/ -c 1 -d 2200ms --warm-up 0s"));
    let pieces = said.result["timeline"].as_array().unwrap();
    let lengths: Vec<f64> = pieces.iter().map(|piece| piece["seconds"].as_f64().unwrap()).collect();
    assert_eq!(lengths.len(), 2, "{lengths:?}");
    assert!((lengths[0] - 1.0).abs() < 0.01 && (lengths[1] - 1.2).abs() < 0.01, "{lengths:?}");
}

#[test]
fn connections_end_after_their_requests() {
    #[track_caller]
    fn check(dialect: Dialect, line: &str, options: &str) {
        let target = Target::start(Behaviour { dialect, keeps_requests: true, ..Behaviour::default() });
        let line = line.replace("{}", &target.address.to_string());
        let said = loadgen(&format!("{line} -c 4 -t 1 -n 200 --requests-per-connection 7 {options}"));
        assert_eq!(said.result["failures"].as_array().unwrap().len(), 0, "{dialect:?}: {}", said.text());
        assert_eq!(said.result["summary"]["all"]["answers"], 200);
        let counts = target.requests_by_connection();
        let whole = counts.iter().filter(|count| **count == 7).count();
        assert_eq!(counts.iter().sum::<usize>(), 200);
        // The last ones of each of the four places may have had fewer.
        assert!(counts.iter().all(|count| *count <= 7) && counts.len() - whole <= 4, "{dialect:?}: {counts:?}");
    }
    check(Dialect::Redis, "redis {} --mix 1:PING", "");
    check(Dialect::Http, "http http://{}/x", "");
    check(Dialect::Http, "http http://{}/x", "--depth 3");
    check(Dialect::Redis, "redis {} --mix 1:PING", "--depth 16 --batch");
    check(Dialect::Http, "http http://{}/x", "--rate 2000");
}

#[test]
fn connections_go_to_all_servers_in_turns() {
    let targets = [(); 3].map(|()| Target::start(Behaviour { keeps_requests: true, ..Behaviour::default() }));
    let [first, second, third] = &targets;
    let also = format!("--also {} --also {}", second.address, third.address);
    let said = loadgen(&format!("redis {} {also} -c 6 -t 2 -d 500ms --warm-up 0s --mix 1:PING", first.address));
    assert_eq!(said.result["failures"].as_array().unwrap().len(), 0, "{}", said.text());
    for target in &targets {
        assert_eq!(target.requests_by_connection().len(), 2, "{}", said.text());
    }
    let requests: u64 = targets.iter().map(Target::requests).sum();
    assert_eq!(said.result["summary"]["all"]["answers"], requests);
    // All three are this process: its CPU time counts once.
    assert_eq!(
        (&said.result["server"]["pid"], &said.result["server"]["others"]),
        (&std::process::id().into(), &Value::Null)
    );
    let places = format!("redis {} and {} and {}, 6 conn", first.address, second.address, third.address);
    assert!(said.result["description"].as_str().is_some_and(|text| text.starts_with(&places)), "{}", said.text());
}
