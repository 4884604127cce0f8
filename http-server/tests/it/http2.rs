//! HTTP/2 by the suite that is made for it.

use std::path::Path;
use std::process::Command;

use crate::support::{Server, printed, skip, tls_options};

/// The version that results are compared with.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/// Cases that hyper's HTTP/2 does not pass, by number and text; see README.
const KNOWN: &[&str] = &[];

#[test]
fn h2spec() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("h2spec");
    let program = folder.join("h2spec");
    if !program.exists() {
        let mut install = Command::new("go");
        install.args(["install", H2SPEC]).env("GOBIN", &folder);
        if printed(&install).is_none() {
            return;
        }
    }
    // Over TLS: on a plain port, what is no preface is taken for HTTP/1.1 and answered as such.
    let server = Server::with(tls_options());
    let port = server.addr.port().to_string();
    let output = Command::new("timeout")
        .arg("300")
        .arg(&program)
        .args(["--host", "127.0.0.1", "--port", &port, "--timeout", "3", "--path", "/t/h2spec", "--tls", "--insecure"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
        return skip(&format!("h2spec did not finish: {text}"));
    };
    eprintln!("h2spec: {summary}");
    let failed: Vec<_> = text.lines().filter(|line| line.contains('×')).map(str::trim).collect();
    let unknown: Vec<_> = failed.iter().filter(|line| !KNOWN.iter().any(|known| line.contains(known))).collect();
    assert!(unknown.is_empty(), "{unknown:#?}\n{summary}");
}
