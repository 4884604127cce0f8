//! gRPC-Web and Connect as a page of another site speaks them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use grpc_server::Args;
use test_peers::{chromium, is_there, printed};

use crate::support::PATIENCE;

use super::install::WEB;
use super::{Both, folder};

/// Serves a page with a script to any client; returns its origin. The page has a picture, which comes when the script
/// has asked for `/done`: until then it counts as one that loads.
fn site(script: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let page = format!("<!doctype html><meta charset=utf-8><img src=/picture><script type=module>{script}</script>");
    let (page, is_done) = (Arc::new(page), Arc::new((Mutex::new(false), Condvar::new())));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (page, is_done) = (Arc::clone(&page), Arc::clone(&is_done));
            std::thread::spawn(move || answer(stream, &page, &is_done));
        }
    });
    origin
}

fn answer(mut stream: TcpStream, page: &str, (is_done, changed): &(Mutex<bool>, Condvar)) {
    let mut head = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(request) = head.next() else { return };
    head.for_each(drop);
    let mut is_done = is_done.lock().unwrap();
    let body = match request.split(' ').nth(1) {
        Some("/picture") => {
            drop(changed.wait_timeout_while(is_done, PATIENCE, |is_done| !*is_done).unwrap());
            ""
        }
        Some("/done") => {
            *is_done = true;
            changed.notify_all();
            ""
        }
        Some(path) if path.starts_with("/?") => {
            *is_done = false;
            page
        }
        _ => "",
    };
    let _ = stream
        .write_all(format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n{body}").as_bytes());
}

/// HTTP/1.1 in cleartext, where browsers know no other, and HTTP/2 over TLS; each call is allowed by the server beforehand.
#[test]
fn headless_chromium() {
    let Some(kit) = WEB.installed() else { return };
    if !is_there("chromium") {
        return;
    }
    let origin = site(&fs::read_to_string(kit.join("bundle.js")).unwrap());
    let check = |allowed: &str, expected: &str| {
        let server = Both::start(&["--connect", "--web-origin", allowed], Args::routes);
        let mut browser = chromium(&folder("chromium"));
        browser.args(["--ignore-certificate-errors", "--dump-dom"]);
        let page = printed(browser.arg(format!("{origin}/?plain={}&tls={}", server.plain, server.tls)));
        assert!(page.contains(expected), "{page:.1000}");
    };
    check(&origin, "<title>ok</title>");
    check("https://example.com", "<title>failed: ");
}
