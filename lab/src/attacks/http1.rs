//! The attacks on http-server over HTTP/1.1.

use std::time::Duration;

use super::attacker::{Attack, End, Reads};

/// Longer than the server waits for a client that takes nothing.
const NEVER: Duration = Duration::from_millis(2500);

pub(super) fn rows() -> Vec<Attack> {
    let get = |path: &str, fields: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes();
    let put = |fields: &str, body: &str| {
        format!("PUT /v1/SET/key HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}").into_bytes()
    };
    let begun = |fields: &str| format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}").into_bytes();
    let soon = Duration::from_millis(50);
    let never_reads = |name, opening| Attack::of(name, opening, &[End::LetGo]).reading(Reads::NothingFor(NEVER));
    let websocket = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    vec![
        Attack::of("silence", Vec::new(), &[End::LetGo]),
        Attack::of("a slow head", begun(""), &[End::Status(408)]).then(1000, |_| b"X: y\r\n".to_vec()).every(soon),
        Attack::of("a slow body", put("Content-Length: 100000\r\n", ""), &[End::Status(408)])
            .then(1000, |_| b"x".to_vec())
            .every(soon),
        Attack::of("slow chunks", put("Transfer-Encoding: chunked\r\n", ""), &[End::Status(408)])
            .then(1000, |_| b"1\r\nx\r\n".to_vec())
            .every(soon),
        // Some is read behind the refusal, and then no more: the reset may overtake it.
        Attack::of("100,000 headers", begun(""), &[End::Status(431), End::LetGo])
            .then(1000, |_| b"X-Header: y\r\n".repeat(100)),
        Attack::of("a header of 10 MB", begun("X: "), &[End::Status(431), End::LetGo])
            .then(160, |_| vec![b'x'; 65_536]),
        Attack::of("a target of 10 MB", b"GET /".to_vec(), &[End::Status(414), End::Status(431), End::LetGo])
            .then(160, |_| vec![b'x'; 65_536]),
        Attack::of("a body of 1 GB", put("Content-Length: 1073741824\r\n", ""), &[End::Status(413), End::LetGo])
            .then(16_384, |_| vec![b'x'; 65_536]),
        Attack::of("chunks of a byte", put("Transfer-Encoding: chunked\r\n", ""), &[End::Status(413), End::LetGo])
            .then(2000, |_| b"1\r\nx\r\n".repeat(10_000))
            .long(),
        Attack::of(
            "smuggling: length and chunks",
            put("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n"),
            &[End::Status(400)],
        ),
        Attack::of(
            "smuggling: two lengths",
            put("Content-Length: 5\r\nContent-Length: 6\r\n", "helloGET /x HTTP/1.1\r\nHost: h\r\n\r\n"),
            &[End::Status(400)],
        ),
        Attack::of(
            "smuggling: an extension with a bare LF",
            put("Transfer-Encoding: chunked\r\n", "5;a\nhello\r\n0\r\n\r\n"),
            &[End::Status(400)],
        ),
        never_reads("64 MiB that nobody reads", get("/big", "")),
        never_reads("1,000 of them, pipelined", get("/big", "").repeat(1000)),
        never_reads("64 MiB that nobody reads, h2c asked for", get("/big", h2c)),
        Attack::of("h2c asked for, and silence", get("/healthz", h2c), &[End::Status(101)]),
        never_reads("a WebSocket that nobody reads", get("/v1/subscribe/flood", websocket)).beside(flood()),
        never_reads("server-sent events that nobody reads", get("/v1/subscribe/flood", "")).beside(flood()),
        Attack::of("10,000 connections, opened and reset", get("/healthz", ""), &[End::Gone])
            .reading(Reads::NothingAndComesAgain(500)),
    ]
}

/// A message of 64 KiB to all listeners.
fn flood() -> Vec<u8> {
    let body = "x".repeat(65_536);
    let head = format!("PUT /v1/PUBLISH/flood HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body.into_bytes()].concat()
}
