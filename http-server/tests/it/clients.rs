//! Genuine clients, unmodified, over HTTP/1.1, HTTP/2 and TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Server, folder, printed, skip, tls_options};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs a client that says `ok` at its end.
fn check(command: &mut Command) {
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let Some(said) = printed(command.arg(plain.addr.to_string()).arg(tls.addr.to_string())) else { return };
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}

#[test]
fn node_fetch_and_http2() {
    check(Command::new("node").arg(script("fetch.mjs")));
}

#[test]
fn go_net_http() {
    let program = folder("go").join("client");
    // A file of its own is a program: no go.mod, nothing to be fetched.
    if printed(Command::new("go").args(["build", "-o"]).arg(&program).arg(script("client.go"))).is_some() {
        check(&mut Command::new(program));
    }
}

#[test]
fn python_httpx() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("httpx");
    let python = folder.join("bin/python");
    if !python.exists() {
        let Some(_) = printed(Command::new("python3").args(["-m", "venv"]).arg(&folder)) else { return };
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "httpx[http2]==0.28.1"]);
        if !pip.status().is_ok_and(|status| status.success()) {
            return skip("httpx cannot be installed");
        }
    }
    check(Command::new(python).arg(script("httpx_client.py")));
}

#[test]
fn curl() {
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let (plain, tls) = (format!("http://{}", plain.addr), format!("https://{}", tls.addr));
    let check = |flags: &[&str], base: &str, path: &str, expected: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--insecure", "--max-time", "30", "--write-out", " %{http_version} %{http_code}"]);
        if let Some(said) = printed(curl.args(flags).arg(format!("{base}{path}"))) {
            assert_eq!(said, expected, "{flags:?} {path}");
        }
    };
    check(&[], &plain, "/", "Hello from Rust 1.1 200");
    check(&["--http1.0"], &plain, "/", "Hello from Rust 1.1 200");
    check(&["--http2"], &plain, "/", "Hello from Rust 1.1 200");
    check(&["--http2-prior-knowledge"], &plain, "/", "Hello from Rust 2 200");
    check(&["--http1.1"], &tls, "/", "Hello from Rust 1.1 200");
    check(&["--http2"], &tls, "/", "Hello from Rust 2 200");
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        check(&[version, "--data", "hello"], &plain, "/t/echo", &said("hello", version));
        check(
            &[version, "--header", "Transfer-Encoding: chunked", "--data", "hello"],
            &plain,
            "/t/count",
            &said("5", version),
        );
    }
}

fn said(body: &str, version: &str) -> String {
    format!("{body} {} 200", if version == "--http1.1" { "1.1" } else { "2" })
}

#[test]
fn wrk() {
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    for url in
        [format!("http://{}/", plain.addr), format!("http://{}/ann", plain.addr), format!("https://{}/json", tls.addr)]
    {
        let Some(said) = printed(Command::new("wrk").args(["-t1", "-c20", "-d1", &url])) else { return };
        assert!(said.contains("Requests/sec:"), "{said}");
        assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{url}: {said}");
    }
}

#[test]
fn hey() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hey");
    let program = folder.join("hey");
    if !program.exists() {
        let mut install = Command::new("go");
        install.args(["install", "github.com/rakyll/hey@v0.1.4"]).env("GOBIN", &folder);
        if printed(&install).is_none() {
            return;
        }
    }
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    // hey takes the name of the certificate from the host, port included, unless it is told one.
    let urls = [format!("http://{}/ann", plain.addr), format!("https://{}/ann", tls.addr)];
    for (flags, url) in [
        (&["-n", "10000", "-c", "100"][..], &urls[0]),
        (&["-n", "2000", "-c", "20", "-h2", "-host", "localhost"], &urls[1]),
    ] {
        let Some(said) = printed(Command::new(&program).args(flags).arg(url)) else { return };
        assert!(said.contains(&format!("[200]\t{} responses", flags[1])), "{said}");
    }
}
