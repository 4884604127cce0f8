//! Messages whose end two readers could see in different places: each is refused, and nothing behind it is answered.

use crate::support::Server;

/// A request that an attacker wants to be seen by one reader and not by the other.
const HIDDEN: &str = "GET /admin HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn nothing_is_smuggled() {
    let server = Server::start();
    let check = |what: &str, request: &str, status: u16| {
        let mut client = server.client();
        client.send(request);
        let answer = client.answer().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{what}: {answer:?}");
        client.half_close();
        assert!(client.is_closed(), "{what}: something else was answered: {:?}", client.answer());
    };
    let post = |fields: &str, body: &str| format!("POST /t/echo HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}{HIDDEN}");
    let te = "Transfer-Encoding: chunked\r\n";
    check("CL.TE", &post(&format!("Content-Length: 5\r\n{te}"), "0\r\n\r\n"), 400);
    check("TE.CL", &post(&format!("{te}Content-Length: 5\r\n"), "0\r\n\r\n"), 400);
    check("CL.0 and TE", &post(&format!("{te}Content-Length: 0\r\n"), "0\r\n\r\n"), 400);
    check("two lengths", &post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400);
    check("two equal lengths", &post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), 400);
    check("a list of lengths", &post("Content-Length: 5, 5\r\n", "hello"), 400);
    check("a signed length", &post("Content-Length: +5\r\n", "hello"), 400);
    check("a negative length", &post("Content-Length: -5\r\n", "hello"), 400);
    check("a hexadecimal length", &post("Content-Length: 0x5\r\n", "hello"), 400);
    check("a length with a space", &post("Content-Length: 5 5\r\n", "hello"), 400);
    check("no length at all", &post("Content-Length:\r\n", "hello"), 400);
    check("a length beyond 64 bits", &post("Content-Length: 18446744073709551621\r\n", "hello"), 400);
    check("two codings", &post(&format!("{te}{te}"), "0\r\n\r\n"), 400);
    check("an unknown coding", &post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501);
    check("chunks of chunks", &post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"), 501);
    check("an empty coding", &post("Transfer-Encoding: , chunked\r\n", "0\r\n\r\n"), 501);
    check("chunked not last", &post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), 400);
    check("no chunks at all", &post("Transfer-Encoding: gzip\r\n", "hello"), 400);
    check("identity", &post("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello"), 400);
    check("a disguised coding", &post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"), 400);
    check("a coding in quotes", &post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), 400);
    check("a space before the colon", &post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400);
    check("a tab before the colon", &post("Content-Length\t: 5\r\n", "hello"), 400);
    check("a folded coding", &post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), 400);
    check("obs-fold", &post("X: a\r\n b\r\nContent-Length: 5\r\n", "hello"), 400);
    check("obs-fold in the first field", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400);
    check("bare LF after the request line", &format!("GET / HTTP/1.1\nHost: h\r\n\r\n{HIDDEN}"), 400);
    check("bare LF after a field", &post("X: y\nContent-Length: 5\r\n", "hello"), 400);
    check("bare LF at the end", &format!("GET / HTTP/1.1\r\nHost: h\r\n\n{HIDDEN}"), 400);
    check("bare CR in a value", &post("X: y\rContent-Length: 5\r\n", "hello"), 400);
    check("NUL in a value", &post("Content-Length: 5\0\r\n", "hello"), 400);
    check("NUL in a name", &post("Content\0-Length: 5\r\n", "hello"), 400);
    let http10 = format!("POST /t/echo HTTP/1.0\r\n{te}\r\n0\r\n\r\n{HIDDEN}");
    check("a coding in HTTP/1.0", &http10, 400);
    let chunks = |body: &str| post(te, body);
    check("a chunk extension without a name", &chunks("5;\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk extension with bare CR", &chunks("5;a\rb\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk extension with NUL", &chunks("5;a=\0\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk extension with bare LF", &chunks("5;a\nhello\r\n0\r\n\r\n"), 400);
    check("an open quotation in a chunk extension", &chunks("5;a=\"\r\nhello\r\n0\r\n\r\n"), 400);
    check("a bad extension of the last chunk", &chunks("0;a b\r\n\r\n"), 400);
    check("bare LF after a chunk's size", &chunks("5\nhello\r\n0\r\n\r\n"), 400);
    check("bare LF after a chunk", &chunks("5\r\nhello\n0\r\n\r\n"), 400);
    check("a signed chunk size", &chunks("+5\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk size with 0x", &chunks("0x5\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk size with a space", &chunks("5 \r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk size beyond 64 bits", &chunks("10000000000000005\r\nhello\r\n0\r\n\r\n"), 400);
    check("a chunk that is longer than its size", &chunks("4\r\nhello\r\n0\r\n\r\n"), 400);
    check("no chunk size", &chunks("\r\nhello\r\n0\r\n\r\n"), 400);
    check("a bad trailer", &chunks("0\r\nx y\r\n\r\n"), 400);
}

#[test]
fn request_data_cannot_inject_response_headers() {
    let server = Server::start();
    // Nothing of a request becomes a header of its answer.
    for path in ["/%0d%0aX-Evil:%20yes", "/a?%0d%0aX-Evil:%20yes"] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.header("x-evil")), (200, None), "{path}");
    }
    let mut client = server.client();
    let ids =
        [("abc-1.2_3~X", true), ("two words", false), ("<script>", false), (&*"x".repeat(129), false), ("é", false)];
    for (id, is_kept) in ids {
        client.send(&format!("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: {id}\r\n\r\n"));
        let answer = client.answer().unwrap();
        let kept = answer.header("x-request-id").unwrap();
        assert_eq!(kept == id, is_kept, "{id}: {kept}");
        assert!(is_kept || (kept.len() == 16 && kept.bytes().all(|byte| byte.is_ascii_hexdigit())), "{kept}");
    }
}
