//! A server that loads its data, and is asked meanwhile.

use std::fs;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::support::process::{Process, ask};
use super::support::resp::Value;
use super::support::until;

const KEYS: i64 = 3000;
/// The log line behind the last key.
const LOADED: &str = "DB loaded from";
const LOADING: &str = "LOADING Redis is loading the dataset in memory";

fn said(stream: &mut UnixStream, line: &str) -> Value {
    ask(stream, &line.split(' ').collect::<Vec<_>>())
}

fn figure(stream: &mut UnixStream, name: &str) -> Option<String> {
    let info = said(stream, "INFO persistence").text();
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned))
}

/// A server that loads `KEYS` keys, and takes its time; and where its file is.
fn loading(name: &str, appends: bool) -> (Process, std::path::PathBuf) {
    let switch = if appends { "yes" } else { "no" };
    let settings = [("appendonly", switch), ("aof-use-rdb-preamble", "no"), ("enable-debug-command", "yes")];
    let mut server = Process::start(name, &settings);
    let mut stream = server.connect();
    for key in 0..KEYS {
        assert_eq!(said(&mut stream, &format!("SET key:{key} value")).text(), "OK");
    }
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    fs::remove_file(server.folder.join("log")).unwrap();
    server.add_flags(&["--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"]);
    server.add_flags(&["--pidfile", "pid"]);
    server.restart_loading();
    let file = if appends { "appendonlydir/appendonly.aof.1.incr.aof" } else { "dump.rdb" };
    let file = server.folder.join(file);
    (server, file)
}

#[test]
fn clients_are_told_until_everything_is_there() {
    for appends in [false, true] {
        let (server, file) = loading(&format!("told-loading-{appends}"), appends);
        let mut stream = server.connect();
        let refused = Value::Error(LOADING.into());
        for line in ["PING", "GET key:1", "SET key:1 x", "DBSIZE", "EVAL return 0", "FLUSHALL", "SAVE", "BGSAVE"] {
            assert_eq!(said(&mut stream, line), refused, "{line}");
        }
        assert_eq!(said(&mut stream, "CONFIG SET appendonly no"), refused);
        assert_eq!(said(&mut stream, "CONFIG SET dir /"), refused);
        for line in [
            "SELECT 1",
            "MULTI",
            "DISCARD",
            "SUBSCRIBE c",
            "UNSUBSCRIBE c",
            "CONFIG GET save",
            "CLIENT ID",
            "ROLE",
            "DEBUG LOG x",
        ] {
            assert!(!said(&mut stream, line).is_error(), "{line}");
        }
        assert_eq!(said(&mut stream, "MULTI").text(), "OK");
        assert_eq!(said(&mut stream, "GET key:1"), refused);
        assert!(matches!(said(&mut stream, "EXEC"), Value::Error(text) if text.starts_with(b"EXECABORT")));
        assert_eq!(figure(&mut stream, "loading").as_deref(), Some("1"));
        assert_eq!(figure(&mut stream, "async_loading").as_deref(), Some("0"));
        // The base is empty.
        let total = fs::metadata(&file).unwrap().len().to_string();
        assert_eq!(figure(&mut stream, "loading_total_bytes"), Some(total));
        for name in ["loading_start_time", "loading_rdb_used_mem", "loading_loaded_perc", "loading_eta_seconds"] {
            assert!(figure(&mut stream, name).is_some(), "{name}");
        }
        until("some of it is loaded", || figure(&mut stream, "loading_loaded_bytes").is_some_and(|bytes| bytes != "0"));
        assert!(!server.log().contains(LOADED));
        assert_eq!(said(&mut stream, "SELECT 0").text(), "OK");
        assert_eq!(said(&mut stream, "CONFIG SET key-load-delay 0").text(), "OK");
        until("it is loaded", || match said(&mut stream, "DBSIZE") {
            Value::Int(KEYS) => true,
            other => {
                assert_eq!(other, refused, "nobody sees a part of it");
                false
            }
        });
        assert_eq!(said(&mut stream, "GET key:2999").text(), "value");
        assert_eq!(figure(&mut stream, "loading").as_deref(), Some("0"));
        assert_eq!(figure(&mut stream, "loading_total_bytes"), None);
        assert!(server.log().contains(LOADED), "{}", server.log());
    }
}

#[test]
fn termination_during_loading_leaves_the_file_unchanged() {
    for (name, appends) in [("end-loading-rdb", false), ("end-loading-aof", true)] {
        let (mut server, file) = loading(name, appends);
        let before = fs::read(&file).unwrap();
        // It is written behind the signals' handlers.
        until("it looks at signals", || server.folder.join("pid").exists());
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        assert_eq!(fs::read(&file).unwrap(), before);
        server.restart_loading();
        // It answers nobody any more.
        std::io::Write::write_all(&mut server.connect(), b"SHUTDOWN SAVE\r\n").unwrap();
        assert!(server.ended().success());
        assert_eq!(fs::read(&file).unwrap(), before);
        assert!(!server.log().contains(LOADED), "{}", server.log());
    }
}
