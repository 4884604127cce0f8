//! Genuine clients, unmodified, over HTTP/1.1, HTTP/2 and TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use test_peers::{Kit, chromium, is_there, kit, printed};

use crate::support::{Server, folder, tls_options};

// A file of its own is a program for Go: no go.mod, nothing to be fetched.
const GO: Kit = kit! {
    name: "http-go",
    sources: &["tests/clients/client.go"],
    programs: &["go"],
    install: "go build -o client client.go",
};
const HTTPX: Kit = kit! {
    name: "http-httpx",
    sources: &[],
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --disable-pip-version-check \"httpx[http2]==0.28.1\"",
};
const HEY: Kit = kit! {
    name: "http-hey",
    sources: &[],
    programs: &["go"],
    install: "GOBIN=\"$PWD\" go install github.com/rakyll/hey@v0.1.4",
};
const HTTP3: Kit = kit! {
    name: "http-quic-go",
    sources: &["tests/clients/http3"],
    programs: &["go"],
    install: "go build -o client .",
};
/// The version that results are compared with.
pub(crate) const H2SPEC: Kit = kit! {
    name: "http-h2spec",
    sources: &[],
    programs: &["go"],
    install: "GOBIN=\"$PWD\" go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs a client that says `ok` at its end.
fn check(command: &mut Command) {
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let said = printed(command.arg(plain.addr.to_string()).arg(tls.addr.to_string()));
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}

#[test]
fn node_fetch_and_http2() {
    if is_there("node") {
        check(Command::new("node").arg(script("fetch.mjs")));
    }
}

#[test]
fn go_net_http() {
    if let Some(folder) = GO.installed() {
        check(&mut Command::new(folder.join("client")));
    }
}

/// 10,000 requests, bodies both ways, limits, cancellation, a change of address, other protocols, no data before the handshake.
#[test]
fn go_quic_go() {
    let Some(kit) = HTTP3.installed() else { return };
    let mut options = tls_options();
    options.http3 = true;
    let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
    let server = Server::with(options);
    let said = printed(Command::new(kit.join("client")).arg(server.addr.to_string()).arg(certificate));
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}

#[test]
fn python_httpx() {
    if let Some(folder) = HTTPX.installed() {
        check(Command::new(folder.join("venv/bin/python")).arg(script("httpx_client.py")));
    }
}

/// It asks for HTTP/2 by an upgrade on each new connection.
#[test]
fn java_http_client() {
    if is_there("javac") {
        check(Command::new("java").arg(script("Client.java")));
    }
}

/// A page that asks for more: browsers speak HTTP/2 over TLS alone.
#[test]
fn headless_chromium() {
    if !is_there("chromium") {
        return;
    }
    for (server, scheme, protocol) in
        [(Server::start(), "http", "http/1.1"), (Server::with(tls_options()), "https", "h2")]
    {
        let mut browser = chromium(&folder("chromium"));
        // The time goes on only while nothing is waited for.
        browser.args(["--ignore-certificate-errors", "--virtual-time-budget=30000", "--dump-dom"]);
        let page = printed(browser.arg(format!("{scheme}://{}/t/page", server.addr)));
        assert!(page.contains(&format!("<body>ok over {protocol}</body>")), "{page}");
    }
}

#[test]
fn curl() {
    if !is_there("curl") {
        return;
    }
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let (plain, tls) = (format!("http://{}", plain.addr), format!("https://{}", tls.addr));
    let check = |flags: &[&str], base: &str, path: &str, expected: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--insecure", "--max-time", "30", "--write-out", " %{http_version} %{http_code}"]);
        let said = printed(curl.args(flags).arg(format!("{base}{path}")));
        assert_eq!(said, expected, "{flags:?} {path}");
    };
    check(&[], &plain, "/", "Hello from Rust 1.1 200");
    check(&["--http1.0"], &plain, "/", "Hello from Rust 1.1 200");
    // By an upgrade, with a body too.
    check(&["--http2"], &plain, "/", "Hello from Rust 2 200");
    check(&["--http2"], &plain, "/t/stream", "onetwo 2 200");
    check(&["--http2", "--data", "hello"], &plain, "/t/echo", "hello 2 200");
    check(&["--http2-prior-knowledge"], &plain, "/", "Hello from Rust 2 200");
    check(&["--http1.1"], &tls, "/", "Hello from Rust 1.1 200");
    check(&["--http2"], &tls, "/", "Hello from Rust 2 200");
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        check(&[version, "--data", "hello"], &plain, "/t/echo", &said("hello", version));
        let waits = ["--header", "Expect: 100-continue", "--expect100-timeout", "1000"];
        check(&[&[version, "--data", "hello"], &waits[..]].concat(), &plain, "/t/echo", &said("hello", version));
        check(
            &[version, "--header", "Transfer-Encoding: chunked", "--data", "hello"],
            &plain,
            "/t/count",
            &said("5", version),
        );
    }
}

#[test]
fn nghttp() {
    if !is_there("nghttp") {
        return;
    }
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let (plain, tls) = (format!("http://{}", plain.addr), format!("https://{}", tls.addr));
    for (base, flag) in [(&plain, None), (&plain, Some("--upgrade")), (&tls, None)] {
        let nghttp = |flags: &[&str], path: &str| {
            let mut command = Command::new("nghttp");
            command.args(["--no-verify-peer", "--timeout=30"]).args(flag);
            printed(command.args(flags).arg(format!("{base}{path}")))
        };
        assert_eq!(nghttp(&[], "/"), "Hello from Rust");
        assert_eq!(nghttp(&["--continuation", "--padding=100"], "/t/text"), "hello world ".repeat(1000));
        assert_eq!(nghttp(&["--window-bits=10", "--connection-window-bits=16"], "/t/big").len(), 8 * 1024 * 1024);
        let many = nghttp(&["--multiply=150", "--stat", "--null-out"], "/ann");
        assert_eq!(many.lines().filter(|line| line.contains(" 200 ")).count(), 150, "{many}");
    }
}

fn said(body: &str, version: &str) -> String {
    format!("{body} {} 200", if version == "--http1.1" { "1.1" } else { "2" })
}

#[test]
fn wrk() {
    if !is_there("wrk") {
        return;
    }
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    for url in
        [format!("http://{}/", plain.addr), format!("http://{}/ann", plain.addr), format!("https://{}/json", tls.addr)]
    {
        let said = printed(Command::new("wrk").args(["-t1", "-c20", "-d1", &url]));
        assert!(said.contains("Requests/sec:"), "{said}");
        assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{url}: {said}");
    }
}

#[test]
fn hey() {
    let Some(folder) = HEY.installed() else { return };
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    // hey takes the name of the certificate from the host, port included, unless it is told one.
    let urls = [format!("http://{}/ann", plain.addr), format!("https://{}/ann", tls.addr)];
    for (flags, url) in [
        (&["-n", "10000", "-c", "100"][..], &urls[0]),
        (&["-n", "2000", "-c", "20", "-h2", "-host", "localhost"], &urls[1]),
    ] {
        let said = printed(Command::new(folder.join("hey")).args(flags).arg(url));
        assert!(said.contains(&format!("[200]\t{} responses", flags[1])), "{said}");
    }
}

/// As fast as it can, one request at a time and a hundred, with windows that it has to give back every 256 bytes: no
/// client is cut off.
#[test]
fn h2load() {
    if !is_there("h2load") {
        return;
    }
    let (plain, tls) = (Server::start(), Server::with(tls_options()));
    let [root, named] = ["", "ann"].map(|path| format!("http://{}/{path}", plain.addr));
    let (text, secure) = (format!("http://{}/t/text", plain.addr), format!("https://{}/", tls.addr));
    for (flags, url) in [
        (&["-n20000", "-c1", "-m1"][..], &root),
        (&["-n50000", "-c1", "-m100"], &named),
        (&["-n50000", "-c1", "-m100"], &secure),
        // 12,000 bytes each: 47 windows of a stream.
        (&["-n2000", "-c1", "-m10", "-w9", "-W16"], &text),
    ] {
        let said = printed(Command::new("h2load").args(flags).arg(url));
        let count = &flags[0][2..];
        assert!(said.contains(&format!("{count} succeeded, 0 failed, 0 errored")), "{flags:?} {url}: {said}");
    }
}
