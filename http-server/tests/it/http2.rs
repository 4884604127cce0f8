//! HTTP/2 by the suite that is made for it.

use std::process::Command;

use test_peers::{run_within, skip};

use crate::clients::H2SPEC;
use crate::support::{Server, tls_options};

#[test]
fn h2spec() {
    let Some(folder) = H2SPEC.installed() else { return };
    // Over TLS: on a plain port, what is no preface is taken for HTTP/1.1 and answered as such.
    let server = Server::with(tls_options());
    let port = server.addr.port().to_string();
    let mut command = Command::new(folder.join("h2spec"));
    command.args([
        "--host",
        "127.0.0.1",
        "--port",
        &port,
        "--strict",
        "--timeout",
        "5",
        "--path",
        "/t/h2spec",
        "--tls",
        "--insecure",
    ]);
    let output = run_within(300, &command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
        return skip(&format!("h2spec did not finish: {text}"));
    };
    eprintln!("h2spec: {summary}");
    assert!(summary.contains(" 0 skipped, 0 failed"), "{text}");
}
