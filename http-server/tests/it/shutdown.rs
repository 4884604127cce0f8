//! The end of the server, with everybody there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Client, Server};

#[test]
fn a_shutdown_under_load_loses_no_request() {
    let server = Server::start();
    let (addr, answered) = (server.addr, AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..16 {
            let answered = &answered;
            scope.spawn(move || {
                let paths = ["/", "/ann", "/t/stream", "/t/text", "/t/slow"];
                let path = paths[number % paths.len()];
                let mut client = Client::connect(addr);
                // Until an answer says that it is the last one: then, and only then, the connection ends.
                for round in 0.. {
                    let answer = client.get(path).unwrap_or_else(|| panic!("request {round} of {path} was lost"));
                    assert_eq!(answer.status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                    if answer.header("connection") == Some("close") {
                        return;
                    }
                }
            });
        }
        while answered.load(Ordering::Relaxed) < 1000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        server.running.shutdown_handle().trigger();
    });
    let Server { running, .. } = server;
    assert!(!running.wait(), "a connection was cut");
}

#[test]
fn a_shutdown_ends_idle_connections_and_finishes_uploads() {
    let server = Server::start();
    let mut idle = server.client();
    assert_eq!(idle.get("/").unwrap().status, 200);
    let mut upload = server.client();
    upload.send("POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\nhello");
    // The answer to another request shows that the first one has arrived.
    assert_eq!(server.get("/").status, 200);
    server.running.shutdown_handle().trigger();
    assert!(idle.is_closed());
    upload.send(&"x".repeat(19_995));
    let answer = upload.answer().unwrap();
    assert_eq!((answer.body.len(), answer.header("connection")), (20_000, Some("close")));
    let Server { running, .. } = server;
    assert!(!running.wait(), "a connection was cut");
}
