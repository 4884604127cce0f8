//! The genuine server, where one is installed, as the judge of names, defaults and error texts.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Caller, Config, Id, Kind};

/// A genuine server of our own, which listens on a Unix socket only and ends with this value.
struct Genuine {
    process: Child,
    directory: PathBuf,
    connection: BufReader<UnixStream>,
}

impl Drop for Genuine {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Genuine {
    /// `None`, and a line that says so, where no genuine server is installed.
    fn start(name: &str) -> Option<Self> {
        let directory = std::env::temp_dir().join(format!("config-oracle-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("socket");
        let started = Command::new("redis-server")
            .args(["--port", "0", "--appendonly", "no", "--daemonize", "no", "--unixsocket"])
            .arg(&socket)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                assert!(std::env::var_os("REQUIRE_PEERS").is_none(), "no redis-server: {error}");
                println!("skipped: no redis-server: {error}");
                return None;
            }
        };
        let connection = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            UnixStream::connect(&socket).ok()
        });
        Some(Self { process, directory, connection: BufReader::new(connection.expect("it listens within 5 s")) })
    }

    /// The strings of the reply; an error is one string that begins with its dash.
    fn ask(&mut self, words: &[&str]) -> Vec<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.connection.get_mut().write_all(request.as_bytes()).unwrap();
        let header = self.line();
        let Some(count) = header.strip_prefix('*') else { return vec![header] };
        (0..count.parse().unwrap()).map(|_| self.bulk()).collect()
    }

    fn bulk(&mut self) -> String {
        let length: usize = self.line()[1..].parse().unwrap();
        let mut text = vec![0; length + 2];
        self.connection.read_exact(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// Defaults that differ on purpose, or because of how the genuine server is started here.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("port", "it listens on a Unix socket"),
    ("unixsocket", "it listens on a Unix socket"),
    ("dir", "it runs in a directory of its own"),
];

#[test]
fn names_and_defaults_are_the_genuine_ones() {
    let Some(mut genuine) = Genuine::start("defaults") else { return };
    let theirs = genuine.ask(&["CONFIG", "GET", "*"]);
    let ours = Config::default().get(&["*"]);
    let mut wrong = Vec::new();
    for pair in theirs.chunks_exact(2) {
        let (name, default) = (&pair[0], &pair[1]);
        match ours.iter().find(|(known, _)| known == name) {
            None => wrong.push(format!("{name}: unknown to us (genuine: {default})")),
            Some((_, ours)) if ours != default && !OTHER_DEFAULTS.iter().any(|(known, _)| known == name) => {
                wrong.push(format!("{name}: ours {ours:?}, genuine {default:?}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Settings whose change has effects that this test could not live with, or that our table cannot know of.
const NOT_SET: &[(&str, &str)] = &[
    ("port", "listens"),
    ("tls-port", "listens"),
    ("bind", "listens"),
    ("maxmemory-clients", "closes the connection that asks"),
    ("maxclients", "depends on the limit of open files"),
    ("activedefrag", "depends on the allocator"),
    ("oom-score-adj", "depends on privileges"),
    ("oom-score-adj-values", "depends on privileges"),
    ("proc-title-template", "expands the template to check it"),
    ("cluster-announce-hostname", "its grammar comes with the cluster"),
    ("unixsocket", "it is the test's own"),
    ("repl-backlog-size", "its least size in force comes with replication"),
];

/// Values that every setting is asked to take.
const VALUES: &[&str] = &[
    "",
    "zzz",
    "0",
    "-1",
    "1",
    "7",
    "01",
    "+1",
    " 1",
    "1.5",
    "1b",
    "1kb",
    "1K",
    "2MB",
    "1gb",
    "1x",
    "-1kb",
    "50%",
    "101%",
    "yes",
    "NO",
    "local",
    "a b",
    "a/b",
    "\"a",
    "always",
    "allkeys-lru",
    "99999999999999999999",
    "9223372036854775807",
    "4294967296",
    "65536",
    "1048575",
];

/// Values for the settings with a grammar of their own.
#[rustfmt::skip]
const PAIRS: &[(&str, &str)] = &[
    ("notify-keyspace-events", "KEA"), ("notify-keyspace-events", "Kg$lshzxetd"), ("notify-keyspace-events", "mEK$"),
    ("notify-keyspace-events", "AKEm"), ("notify-keyspace-events", "KX"), ("notify-keyspace-events", "dEx"),
    ("save", "3600 1 300 100"), ("save", "1"), ("save", "0 1"), ("save", "1 0"), ("save", "1 -1"), ("save", "a b"),
    ("client-output-buffer-limit", "normal 1mb 2mb 3"), ("client-output-buffer-limit", "replica 1 2 3 pubsub 4 5 6"),
    ("client-output-buffer-limit", "normal 1"), ("client-output-buffer-limit", "foo 1 1 1"),
    ("client-output-buffer-limit", "normal a 1 1"), ("client-output-buffer-limit", "normal 1 1 -1"),
    ("client-output-buffer-limit", "slave 1gb 1k 1"), ("client-output-buffer-limit", "master 1 1 1"),
    ("latency-tracking-info-percentiles", "50 99.9 100"), ("latency-tracking-info-percentiles", "101"),
    ("latency-tracking-info-percentiles", "50 x"), ("latency-tracking-info-percentiles", "0 33.333"),
    ("shutdown-on-sigint", "save now force"), ("shutdown-on-sigint", "save nosave"), ("shutdown-on-sigint", "default"),
    ("shutdown-on-sigterm", "nosave foo"), ("maxmemory-policy", "ALLKEYS-LFU"), ("loglevel", "Debug"),
    ("slave-priority", "5"), ("min-slaves-to-write", "5"), ("foo", "1"), ("rename-command", "a b"), ("include", "x"),
];

/// Values that the genuine server takes by accident.
fn is_another_matter(name: &str, value: &str) -> bool {
    let is_memory = Id::find(name.as_bytes()).is_some_and(|id| matches!(id.setting().kind, Kind::Memory { .. }));
    let is_tls = name.starts_with("tls-");
    // No digits at all are a zero there, and numbers of bytes may fill 64 bits without a sign.
    is_tls || is_memory && (value.is_empty() || value == "zzz" || value == "99999999999999999999")
}

#[test]
fn values_and_errors_are_the_genuine_ones() {
    let Some(mut genuine) = Genuine::start("values") else { return };
    let config = Config::default();
    let mut wrong = Vec::new();
    let known: Vec<&str> = genuine
        .ask(&["CONFIG", "GET", "*"])
        .chunks_exact(2)
        .map(|pair| pair[0].clone())
        .filter_map(|name| Id::find(name.as_bytes()).map(Id::setting).map(|setting| setting.name))
        .collect();
    let every = known.iter().flat_map(|name| VALUES.iter().map(move |value| (*name, *value)));
    for (name, value) in every.chain(PAIRS.iter().copied()) {
        if is_another_matter(name, value) || NOT_SET.iter().any(|(skipped, _)| *skipped == name) {
            continue;
        }
        let theirs = genuine.ask(&["CONFIG", "SET", name, value]).remove(0);
        let ours = config.set(&[(name, value)], Caller::Remote);
        let ours = ours.map_or_else(|error| format!("-ERR {error}"), |_| "+OK".to_owned());
        if theirs != ours {
            wrong.push(format!("{name} {value:?}:\n  ours    {ours}\n  genuine {theirs}"));
            continue;
        }
        if theirs != "+OK" {
            continue;
        }
        let theirs = genuine.ask(&["CONFIG", "GET", name]).pop();
        let ours = config.get(&[name]).pop().map(|(_, text)| String::from_utf8_lossy(&text).into_owned());
        if theirs != ours {
            wrong.push(format!("{name} {value:?} reads:\n  ours    {ours:?}\n  genuine {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
