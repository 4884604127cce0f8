//! The command itself: exit codes, files, Ctrl-C, the live view on a terminal.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::record::{Ending, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long what has to come may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command with some words.
pub(crate) fn loadgen(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(words).stdin(Stdio::null());
    command
}

/// An HTTP server with one answer; it ends with the test.
pub(crate) fn http_target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count) = test_peers::read(&mut stream, &mut buffer) {
                    let requests = buffer[..count].windows(4).filter(|end| *end == b"\r\n\r\n").count();
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".repeat(requests);
                    if count == 0 || stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A folder of a test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadgen-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn exit_codes_tell_what_happened() {
    #[track_caller]
    fn check(words: &[&str], code: i32, expected: &str) {
        let Output { status, stdout, stderr } = loadgen(words).output().unwrap();
        let found = text(&stdout) + &text(&stderr);
        assert_eq!(status.code(), Some(code), "{words:?}\n{found}");
        assert!(found.contains(expected), "{words:?}\n{found}");
    }
    let target = http_target().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    check(&["http", &target, "-n", "100", "-c", "2", "-q"], 0, "\nGET /");
    check(&["http", &target, "-n", "100", "-c", "2", "--slo", "max=1ns"], 3, "max=1ns MISSED: max ");
    check(&["http", &target, "-n", "100", "-c", "2", "--slo", "errors=0%"], 0, "errors=0% met: errors 0 %");
    check(&["http", &closed, "-n", "100", "-c", "2"], 1, "refused");
    check(&["http", &target, "-n", "many"], 2, "invalid value 'many' for '--requests <N>': expected a count from 1");
    check(&["http", &target, "--rate", "max"], 2, "--rate is `max`, expected at least one --slo");
    check(&["http", &target, "--rate", "1..2"], 2, "expected the ramp's time behind it, as in 100..5000/30s");
    check(&["http", &target, "--slo", "p99"], 2, "expected p99=2ms (any percentile)");
    check(&["http", &target, "-c", "1G"], 2, "--connections is `1000000000`, expected at most ");
    check(&["http", &target, "--csv", "/dev/null/x"], 2, "--csv is `/dev/null/x`, expected a file that can be written");
    check(&["http", &target, "--tls", "--cacert", "/dev/null"], 2, "--cacert is `/dev/null`, expected a PEM file");
    check(
        &["http", &target, "--metrics", "192.0.2.1:1"],
        2,
        "--metrics is `192.0.2.1:1`, expected an address to listen on",
    );
    check(&["completions", "bash"], 0, "complete -F _loadgen");
    check(&["man"], 0, ".TH LOADGEN 1");
    check(&["man", "http"], 0, ".TH LOADGEN\\-HTTP 1");
    check(&["man", "nothing"], 2, "SUBCOMMAND is `nothing`, expected one that `loadgen --help` lists");
    check(&["man", "--to", "/dev/null/x"], 2, "--to is `/dev/null/x`, expected a folder");
}

/// groff has nothing to say about them.
#[test]
fn manual_pages_are_formatted() {
    let folder = Folder::new("man");
    assert!(loadgen(&["man", "--to", &folder.path("")]).status().unwrap().success());
    let pages: Vec<PathBuf> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() > 10, "{pages:?}");
    if !test_peers::is_there("groff") {
        return;
    }
    for page in pages {
        let mut groff = Command::new("groff");
        let output = groff.args(["-man", "-ww", "-Kutf8", "-Tutf8"]).arg(&page).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}: {}", page.display(), text(&output.stderr));
        assert!(!output.stdout.is_empty(), "{}", page.display());
    }
}

/// As `loadgen completions bash | head` does.
#[test]
fn a_closed_stdout_pipe_is_not_an_error() {
    let target = http_target().to_string();
    for words in [
        &["completions", "bash"][..],
        &["man", "redis"],
        &["http", &target, "-n", "10", "-q"],
        &["wrk", "-d1", "-c1", &format!("http://{target}/")],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = loadgen(words).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).contains("panicked")), (Some(0), false), "{words:?}");
    }
}

#[test]
fn every_output_is_written() {
    let folder = Folder::new("outputs");
    let target = http_target().to_string();
    let [json, csv, html, hdr] = ["a.json", "a.csv", "a.html", "a.hdr"].map(|name| folder.path(name));
    let words =
        ["http", &target, "-n", "500", "-c", "2", "--json", &json, "--csv", &csv, "--html", &html, "--hdr", &hdr];
    let output = loadgen(&words).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let outcome: Outcome = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((outcome.answers(), outcome.ending), (500, Ending::Complete));
    assert!(fs::read_to_string(csv).unwrap().starts_with("start_s,seconds,answers"));
    assert!(fs::read_to_string(html).unwrap().contains("<svg"));
    assert!(fs::read_to_string(hdr).unwrap().contains("HIST"));
}

#[test]
fn json_can_take_the_place_of_the_table() {
    let target = http_target().to_string();
    let output = loadgen(&["http", &target, "-n", "50", "-c", "1", "--json", "-", "-q"]).output().unwrap();
    let outcome: Outcome = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome.answers(), 50);
}

#[test]
fn ctrl_c_ends_a_run_with_its_results() {
    let folder = Folder::new("interrupted");
    let (target, json) = (http_target().to_string(), folder.path("a.json"));
    let words = ["http", &target, "-d", "10m", "-c", "2", "--warm-up", "0", "--no-live", "--json", &json];
    let mut child = loadgen(&words).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The first line is the title, the second one a second's result.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("http 127.0.0.1:"));
    let second = lines.next().unwrap().unwrap();
    assert!(second.contains("p99.9"), "{second}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stdout).contains("Interrupted: this is what there was until then."));
    let outcome: Outcome = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.answers() > 0);
}

#[test]
fn live_figures_can_be_scraped() {
    let target = http_target().to_string();
    let words = ["http", &target, "-d", "10m", "-c", "2", "--warm-up", "0", "-q", "--metrics", "127.0.0.1:0"];
    let mut child = loadgen(&words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    let address = line.strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let count = || {
        let answer = get("/metrics");
        let line = answer.lines().find_map(|line| line.strip_prefix("loadgen_latency_seconds_count "));
        line.map_or(0.0, |count| count.parse::<f64>().unwrap())
    };
    // It counts, and goes on counting.
    let counts_on = |from: f64| {
        let end = Instant::now() + PATIENCE;
        std::iter::repeat_with(count).take_while(|_| Instant::now() < end).find(|count| *count > from)
    };
    let first = counts_on(0.0).expect("it counts");
    assert!(counts_on(first).is_some(), "{first}, and no more");
    assert!(get("/metrics").contains("loadgen_phase{phase=\"measuring\"} 1\n"));
    assert!(get("/metrics").starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"));
    assert!(get("/other").starts_with("HTTP/1.1 404 Not Found\r\n"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_terminal_shows_the_run_in_place() {
    let target = http_target().to_string();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let stderr = File::options().write(true).open(name).unwrap();
    let mut command = loadgen(&["http", &target, "-d", "2500ms", "-c", "2", "--warm-up", "0"]);
    let mut child = command.env("TERM", "xterm").stderr(stderr).stdout(Stdio::null()).spawn().unwrap();
    // Our own handle on the terminal's other side goes with the command; reading ends with an error when the child ends.
    drop(command);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    let mut terminal = File::from(terminal);
    while let Ok(count @ 1..) = test_peers::read(&mut terminal, &mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    assert!(child.wait().unwrap().success());
    let shown = text(&shown);
    for expected in ["measuring ", " s left, 2 connections open", "rate ", "last 1 s", "so far ", "failures  none"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}
