//! What a change of the configuration brings about in a server that runs.

use std::io::{Read, Write};

use super::support::process::{Process, ask};
use super::support::resp::Value;
use super::support::server::Server;

/// Asks by one line, words between spaces.
#[track_caller]
fn say(stream: &mut (impl Read + Write), line: &str) -> String {
    ask(stream, &line.split(' ').collect::<Vec<_>>()).text()
}

#[test]
fn the_level_of_the_log_changes() {
    let process = Process::start("loglevel", &[("loglevel", "warning"), ("enable-debug-command", "yes")]);
    let mut client = process.connect();
    assert_eq!(say(&mut client, "RPUSH l a"), "1");
    // DEBUG QUICKLIST logs at the level of `notice` and `verbose`.
    for (level, lines) in [("warning", 0), ("notice", 1), ("warning", 1), ("verbose", 2), ("debug", 3), ("warning", 3)]
    {
        assert_eq!(say(&mut client, &format!("CONFIG SET loglevel {level}")), "OK");
        assert_eq!(say(&mut client, "DEBUG QUICKLIST l"), "Quicklist structure printed on stdout");
        let log = process.log();
        assert_eq!(log.matches("Quicklist of").count(), lines, "{level}: {log}");
    }
    assert!(
        say(&mut client, "CONFIG SET loglevel loud").ends_with("one of the following: debug, verbose, notice, warning")
    );
    assert_eq!(process.log().matches("Quicklist of").count(), 3);
}

/// The texts are those of the genuine server where a port is taken or an address is not the machine's.
#[test]
fn places_to_listen_stay_and_say_so() {
    let server = Server::start();
    let mut client = server.connect();
    let mut check = |name: &str, value: &str, reason: &str| {
        let before = client.ask(&format!("CONFIG GET {name}"));
        let refused = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        assert_eq!(client.ask(&format!("CONFIG SET {name} {value}")), Value::Error(refused.into_bytes()));
        assert_eq!(client.ask(&format!("CONFIG GET {name}")), before, "{name} is what it was");
        // What changes nothing needs nothing.
        let Value::Array(pair) = before else { panic!("{before:?}") };
        client.send(&["CONFIG", "SET", name, &pair[1].text()]);
        assert_eq!(client.reply(), Value::Status("OK".into()), "{name}");
    };
    check("port", "7000", "Unable to listen on this port. Check server logs.");
    check("tls-port", "7000", "Unable to listen on this port. Check server logs.");
    check("bind", "192.0.2.1", "Failed to bind to specified addresses.");
}
