//! The end of the server, with everybody there.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Request;
use h2::client::SendRequest;
use http_server::{Engine, Options};
use tokio::task::{JoinSet, LocalSet};

use crate::support::{Client, Server, options};

#[test]
fn a_shutdown_under_load_loses_no_request() {
    check_under_load(options());
}

#[test]
fn a_shutdown_under_load_loses_no_request_of_hyper() {
    check_under_load(Options { engine: Engine::Hyper, ..options() });
}

fn check_under_load(options: Options) {
    let server = Server::with(options);
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
    check_idle_and_uploads(options());
    check_idle_and_uploads(Options { engine: Engine::Hyper, ..options() });
}

fn check_idle_and_uploads(options: Options) {
    let server = Server::with(options);
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

/// Streams that one HTTP/2 connection has under way.
const STREAMS: usize = 10;

/// Every stream that the server has taken is answered, even under load; the server says which it has not taken.
#[test]
fn a_shutdown_under_load_loses_no_stream() {
    let server = Server::start();
    let (addr, shutdown) = (server.addr, server.running.shutdown_handle());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answered = Rc::new(AtomicUsize::new(0));
    LocalSet::new().block_on(&runtime, async {
        let mut clients = JoinSet::new();
        for _ in 0..8 {
            clients.spawn_local(client(addr, Rc::clone(&answered)));
        }
        while answered.load(Ordering::Relaxed) < 1000 {
            tokio::task::yield_now().await;
        }
        shutdown.trigger();
        clients.join_all().await;
    });
    let Server { running, .. } = server;
    assert!(!running.wait(), "a connection was cut");
}

/// Asks until the server takes no more.
async fn client(addr: SocketAddr, answered: Rc<AtomicUsize>) {
    let socket = tokio::net::TcpStream::connect(addr).await.unwrap();
    let (requests, connection) = h2::client::handshake(socket).await.unwrap();
    let connection = tokio::task::spawn_local(connection);
    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        streams.spawn_local(ask(requests.clone(), number, Rc::clone(&answered)));
    }
    drop(requests);
    streams.join_all().await;
    connection.await.unwrap().expect("the connection ends in order");
}

async fn ask(mut requests: SendRequest<Bytes>, number: usize, answered: Rc<AtomicUsize>) {
    let paths = ["/", "/ann", "/t/stream", "/t/text", "/t/slow"];
    let path = paths[number % paths.len()];
    // A stream that was not taken, or not even begun, can be asked for elsewhere.
    let is_refused = |error: h2::Error| {
        let refused = error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM);
        assert!(refused, "a stream for {path} was lost: {error}");
    };
    loop {
        requests = match requests.ready().await {
            Ok(requests) => requests,
            Err(error) => return is_refused(error),
        };
        let request = Request::get(format!("http://test{path}")).body(()).unwrap();
        let response = match requests.send_request(request, true) {
            Ok((response, _)) => response,
            Err(error) => return is_refused(error),
        };
        let mut response = match response.await {
            Ok(response) => response,
            Err(error) => return is_refused(error),
        };
        assert_eq!(response.status(), 200);
        let mut len = 0;
        while let Some(data) = response.body_mut().data().await {
            let data = data.expect("what has begun is finished");
            response.body_mut().flow_control().release_capacity(data.len()).unwrap();
            len += data.len();
        }
        assert!(len > 0);
        answered.fetch_add(1, Ordering::Relaxed);
    }
}
