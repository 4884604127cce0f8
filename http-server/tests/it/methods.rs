//! Methods: which ones a resource has (405 and `Allow`), and `OPTIONS *`.

use std::fs;

use axum::Router;
use http_server::{routes, serve};

use crate::support::{Answer, Client, Server, folder, options};

fn ask(client: &mut Client, method: &str, target: &str) -> Answer {
    client.send(&format!("{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
    client.answer_to(method).unwrap()
}

/// `Allow` has the methods that are answered otherwise, and not the one that was refused (RFC 9110 section 15.5.6).
#[test]
fn allow_names_the_methods() {
    let check = |client: &mut Client, path: &str, refused: &str, allowed: &[&str]| {
        let answer = ask(client, refused, path);
        assert_eq!(answer.status, 405, "{refused} {path}");
        let allow = answer.header("allow").unwrap_or_else(|| panic!("{refused} {path}: {}", answer.head));
        let named: Vec<&str> = allow.split(',').map(str::trim).collect();
        assert_eq!(named, allowed, "{refused} {path}");
        for method in allowed {
            assert_ne!(ask(client, method, path).status, 405, "{method} {path}");
        }
    };
    let server = Server::start();
    let mut client = server.client();
    check(&mut client, "/", "DELETE", &["GET", "HEAD"]);
    check(&mut client, "/ann", "POST", &["GET", "HEAD"]);
    check(&mut client, "/t/echo", "GET", &["POST"]);
    check(&mut client, "/healthz", "POST", &["GET", "HEAD"]);
    // Without routes there is what the engine answers by itself.
    let running = serve(Router::new(), options()).unwrap();
    let mut client = Client::connect(running.local_addrs()[0]);
    check(&mut client, "/healthz", "POST", &["GET", "HEAD"]);
    check(&mut client, "/readyz", "PUT", &["GET", "HEAD"]);
    assert_eq!(ask(&mut client, "POST", "/other").status, 404);
    let root = folder("allow");
    fs::write(root.join("a.txt"), "a").unwrap();
    let running = serve(routes::files(&root).unwrap(), options()).unwrap();
    check(&mut Client::connect(running.local_addrs()[0]), "/a.txt", "DELETE", &["GET", "HEAD"]);
}

/// `OPTIONS *` asks whether the server is there (RFC 9110 section 9.3.7), with any routes.
#[test]
fn options_of_the_server() {
    let root = folder("asterisk");
    for router in [routes::router(), routes::files(&root).unwrap(), Router::new()] {
        let running = serve(router, options()).unwrap();
        let mut client = Client::connect(running.local_addrs()[0]);
        let answer = ask(&mut client, "OPTIONS", "*");
        assert_eq!((answer.status, answer.text(), answer.header("content-length")), (200, "", Some("0")));
        assert_eq!(ask(&mut client, "OPTIONS", "*").status, 200, "the connection goes on");
    }
}
