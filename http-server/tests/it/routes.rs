//! The answers of the server's own routes.

use crate::support::Server;

#[test]
fn the_routes_of_published_comparisons() {
    let server = Server::start();
    let check = |path: &str, status: u16, media_type: &str, body: &str| {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.text()), (status, body), "{path}");
        assert_eq!(answer.header("content-type"), Some(media_type), "{path}");
        assert!(answer.header("date").is_some_and(|date| date.ends_with(" GMT")), "{path}");
    };
    let text = "text/plain; charset=utf-8";
    check("/", 200, text, "Hello from Rust");
    check("/?query", 200, text, "Hello from Rust");
    check("/json", 200, "application/json", r#"{"message":"Hello from Rust"}"#);
    check("/json?query", 200, "application/json", r#"{"message":"Hello from Rust"}"#);
    check("/ann", 200, text, "Hello, visitor! You've requested: /ann");
    check("/z%C3%BCrich%20%E2%82%AC%2F%00", 200, text, "Hello, visitor! You've requested: /zürich €/\0");
    check("/healthz", 200, text, "ok\n");
    check("/readyz", 200, text, "ready\n");
}

#[test]
fn unroutable_requests_get_their_error_status() {
    let server = Server::start();
    let check = |path: &str, status: u16| assert_eq!(server.get(path).status, status, "{path}");
    check("/a/b", 404);
    check("/%FF", 400);
    check("/t/echo", 405);
}
