//! HTTP/2 by the suite that is made for it.

use std::process::Command;

use http_server::Options;
use test_peers::{run_within, skip};

use crate::clients::H2SPEC;
use crate::support::{Server, options, tls_options};

/// Runs the suite, of which nothing fails but what is named.
#[track_caller]
fn check(options: Options, flags: &[&str], failures: &[&str]) {
    let Some(folder) = H2SPEC.installed() else { return };
    let server = Server::with(options);
    let port = server.addr.port().to_string();
    let mut command = Command::new(folder.join("h2spec"));
    command.args(["--host", "127.0.0.1", "--port", &port, "--strict", "--timeout", "5", "--path", "/t/h2spec"]);
    let output = run_within(300, command.args(flags)).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
        return skip(&format!("h2spec did not finish: {text}"));
    };
    eprintln!("h2spec {}: {summary}", flags.join(" "));
    assert!(summary.contains(&format!(" 0 skipped, {} failed", failures.len())), "{text}");
    let failed = text.split_once("\nFailures:").map_or("", |(_, failed)| failed);
    assert!(failures.iter().all(|failure| failed.contains(failure)), "{text}");
}

#[test]
fn h2spec() {
    check(tls_options(), &["--tls", "--insecure"], &[]);
}

/// What is no preface is a bad request of HTTP/1.1 here, and answered as such before the connection ends.
#[test]
fn h2spec_where_http1_is_spoken_too() {
    check(options(), &[], &["× 2: Sends invalid connection preface"]);
}
