//! Servers that misbehave, as a table: what each does, the command that is run against it, and what the command must print,
//! write and exit with.
//!
//! Bounds of times are lower ones, so that a busy machine changes no verdict, unless an upper one follows from counts.

mod answers;
#[cfg(feature = "http3")]
mod http3;
mod objectives;
mod openings;
mod server;
mod times;

use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use self::server::{Play, serve, serve_late_tls};
use crate::command::loadgen;
use crate::target::{Certificate, certificate};

/// One server, one command, and what must come of it.
struct Row {
    /// The server's fault.
    behaviour: &'static str,
    server: Server,
    /// The command; `{}` is the server's address, and a `_` is a space within a word.
    line: &'static str,
    exit: i32,
    /// Texts in the command's output, on either stream.
    prints: &'static [&'static str],
    /// Fields of its JSON; with none, no JSON is asked for.
    holds: &'static [Holds],
}

enum Server {
    Plain(Play),
    /// TLS whose handshakes begin so many milliseconds late.
    LateTls(u64, Play),
    /// HTTP/3 whose handshakes begin so many milliseconds late.
    #[cfg(feature = "http3")]
    Quic(u64, crate::target::Plan),
}

/// A figure of the JSON, by its pointer (RFC 6901). Below `/kinds` the failures are found by their kinds.
enum Holds {
    Is(&'static str, f64),
    Least(&'static str, f64),
    Most(&'static str, f64),
    Null(&'static str),
    Text(&'static str, &'static str),
}

/// Rows that run at once: nearly all of a run is waiting.
const AT_ONCE: usize = 6;

/// Runs all rows, and says of each that failed what it printed.
#[track_caller]
fn check(rows: &[Row]) {
    let certificate = certificate("localhost");
    let (next, troubles) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(trouble) = row.run(&certificate) {
                        troubles.lock().unwrap().push(format!("{}\n    {}\n{trouble}", row.behaviour, row.line));
                    }
                }
            });
        }
    });
    let troubles = troubles.into_inner().unwrap();
    assert!(troubles.is_empty(), "{} of {} rows:\n{}", troubles.len(), rows.len(), troubles.join("\n"));
}

impl Row {
    fn run(&self, certificate: &Certificate) -> Result<(), String> {
        let address = match self.server {
            Server::Plain(play) => serve(play),
            Server::LateTls(late, play) => serve_late_tls(play, Duration::from_millis(late), certificate.clone()),
            #[cfg(feature = "http3")]
            Server::Quic(late, plan) => {
                crate::target::QuicServer::start(certificate, Duration::from_millis(late), plan).address
            }
        };
        let line = self.line.replace("{}", &address.to_string()).replace("{port}", &address.port().to_string());
        let mut words: Vec<String> = line.split_whitespace().map(|word| word.replace('_', " ")).collect();
        let json = std::env::temp_dir().join(format!("loadgen-row-{}-{}.json", std::process::id(), address.port()));
        if !self.holds.is_empty() {
            words.splice(1..1, ["--json".to_owned(), json.display().to_string()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = loadgen(&words).output().unwrap();
        let result = std::fs::read_to_string(&json).ok().and_then(|text| serde_json::from_str(&text).ok());
        let _ = std::fs::remove_file(&json);
        self.judge(&output, result.unwrap_or_default())
    }

    fn judge(&self, output: &Output, mut result: Value) -> Result<(), String> {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let mut troubles = Vec::new();
        if output.status.code() != Some(self.exit) {
            troubles.push(format!("exit code {:?}, expected {}", output.status.code(), self.exit));
        }
        for part in self.prints.iter().filter(|part| !stdout.contains(**part) && !stderr.contains(**part)) {
            troubles.push(format!("`{part}` is not printed"));
        }
        if !self.holds.is_empty() && result.is_null() {
            troubles.push("no JSON was written".to_owned());
        }
        let kinds = result["failures"].as_array().cloned().unwrap_or_default();
        for failure in kinds {
            let kind = failure["kind"].as_str().unwrap_or_default().to_owned();
            result["kinds"][kind] = failure;
        }
        troubles.extend(self.holds.iter().filter_map(|holds| holds.trouble(&result)));
        if troubles.is_empty() { Ok(()) } else { Err(format!("{}\n{stdout}{stderr}", troubles.join("\n"))) }
    }
}

impl Holds {
    fn trouble(&self, result: &Value) -> Option<String> {
        let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64);
        let (is_so, pointer, expected) = match *self {
            Self::Is(pointer, expected) => (number(pointer) == Some(expected), pointer, format!("{expected}")),
            Self::Least(pointer, least) => {
                (number(pointer).is_some_and(|found| found >= least), pointer, format!("at least {least}"))
            }
            Self::Most(pointer, most) => {
                (number(pointer).is_some_and(|found| found <= most), pointer, format!("at most {most}"))
            }
            Self::Null(pointer) => {
                (result.pointer(pointer).is_none_or(Value::is_null), pointer, "null, or nothing".to_owned())
            }
            Self::Text(pointer, part) => {
                let text = result.pointer(pointer).and_then(Value::as_str);
                (text.is_some_and(|text| text.contains(part)), pointer, format!("`{part}`"))
            }
        };
        (!is_so).then(|| format!("{pointer} is {:?}, expected {expected}", result.pointer(pointer)))
    }
}

/// An answer of HTTP/1.1 with two bytes of body.
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Answers every request rightly.
fn answer_all(client: &mut server::Conversation) -> std::io::Result<()> {
    loop {
        client.request()?;
        client.say(OK)?;
    }
}
