//! Clients that are too large, too slow, or gone.

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use bytes::Bytes;
use grpc_server::Routes;
use grpc_server::greeter::pb::greeter_server::GreeterServer;

use crate::frames::{DATA, END_HEADERS, END_STREAM, Frames, HEADERS, Program, WINDOW_UPDATE, call_head, frame};
use crate::odd::Odd;
use crate::support::{MANY_TIMES, Raw, Reply, SAY_HELLO, Server, hello, many_times, options, post, run, until};

#[test]
fn cancelled_calls_drop_their_handler() {
    run(async {
        let (server, odd) = Server::odd(options());
        let mut raw = server.raw().await;
        let (response, mut stream) = raw.begin(post(SAY_HELLO).body(()).unwrap(), hello("never")).await.unwrap();
        until("it has begun", || odd.begun.load(Relaxed) == 1).await;
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
        until("the handler is dropped", || odd.dropped.load(Relaxed) == 1).await;
        // In the middle of a stream.
        let request = post(MANY_TIMES).body(()).unwrap();
        let (response, mut stream) = raw.begin(request, many_times("x", 100_000, 1)).await.unwrap();
        let mut body = response.await.unwrap().into_body();
        body.data().await.unwrap().unwrap();
        stream.send_reset(h2::Reason::CANCEL);
        drop(body);
        until("the stream is dropped", || odd.dropped.load(Relaxed) == 2).await;
        // With the whole connection.
        let request = post(SAY_HELLO).body(()).unwrap();
        let mut other = server.raw().await;
        let call = other.begin(request, hello("never")).await.unwrap();
        until("it has begun", || odd.begun.load(Relaxed) == 2).await;
        drop((call, other));
        until("the handler is dropped", || odd.dropped.load(Relaxed) == 3).await;
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"));
    });
}

/// Over HTTP/1.1 as well: a client that closes does not wait for its answer.
#[test]
fn handlers_over_http1_are_dropped_with_their_client() {
    let mut options = options();
    options.connect = true;
    let (server, odd) = Server::odd(options);
    let (body, request) = (r#"{"name":"never"}"#, format!("POST {SAY_HELLO} HTTP/1.1\r\nHost: test\r\n"));
    let mut stream = std::net::TcpStream::connect(server.addr).unwrap();
    write!(stream, "{request}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    run(async {
        until("it has begun", || odd.begun.load(Relaxed) == 1).await;
        drop(stream);
        until("the handler is dropped", || odd.dropped.load(Relaxed) == 1).await;
    });
}

/// A large message waits for its client's window where it is: nothing takes it, and the next one with it.
#[test]
fn large_messages_wait_for_a_window() {
    run(async {
        let (server, odd) = Server::odd(options());
        let stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
        let mut builder = h2::client::Builder::new();
        let (requests, conn) = builder.initial_window_size(0).handshake(stream).await.unwrap();
        tokio::spawn(conn);
        let mut raw = Raw(requests);
        let request = post(MANY_TIMES).body(()).unwrap();
        let (response, _stream) = raw.begin(request, many_times(&"x".repeat(500_000), 10, 0)).await.unwrap();
        let _body = response.await.unwrap().into_body();
        until("one is taken, the next one is there", || odd.sent.load(Relaxed) >= 2).await;
        let mut other = server.raw().await;
        for _ in 0..100 {
            assert_eq!(other.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await.code(), Some("0"));
        }
        assert_eq!(odd.sent.load(Relaxed), 2);
    });
}

/// Handlers that block their thread hold up no other call, where they are said to.
#[test]
fn blocking_services_do_not_block_other_calls() {
    run(async {
        let odd = Odd::default();
        let server = Server::with(Routes::new().add_blocking_service(GreeterServer::new(odd.clone())), options());
        let mut raw = server.raw().await;
        let mut blocked = Vec::new();
        for _ in 0..8 {
            blocked.push(raw.begin(post(SAY_HELLO).body(()).unwrap(), hello("block")).await.unwrap());
        }
        until("all have begun", || odd.begun.load(Relaxed) == 8).await;
        for _ in 0..4 {
            let mut other = server.raw().await;
            assert_eq!(other.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await.code(), Some("0"));
        }
        assert_eq!(raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await.code(), Some("0"));
        *odd.gate.0.lock().unwrap() = true;
        odd.gate.1.notify_all();
        for (response, _) in blocked {
            assert_eq!(Reply::of(response).await.unwrap().code(), Some("0"));
        }
    });
}

/// The effect on other clients of a handler that blocks its thread for 100 ms in one of twenty calls. Those on its
/// worker are not answered meanwhile, all others are.
#[test]
fn handlers_that_block_now_and_then_hold_up_their_own_worker_alone() {
    fn check(what: &str, routes: impl FnOnce(GreeterServer<Odd>) -> Routes, undisturbed: RangeInclusive<usize>) {
        let odd = Odd::default();
        let server = Server::with(routes(GreeterServer::new(odd.clone())), options());
        let is_over = AtomicBool::new(false);
        let noticed = std::thread::scope(|scope| {
            scope.spawn(|| {
                run(async {
                    let mut raw = server.raw().await;
                    for number in 0.. {
                        let name = if number % 20 == 0 { "nap" } else { "Ann" };
                        raw.call(post(SAY_HELLO).body(()).unwrap(), hello(name)).await;
                        if is_over.load(Relaxed) {
                            return;
                        }
                    }
                });
            });
            let others: Vec<_> = (0..4).map(|_| scope.spawn(|| run(notice(&server, &odd.naps)))).collect();
            let noticed: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
            is_over.store(true, Relaxed);
            noticed
        });
        noticed.iter().for_each(|noticed| println!("{what}: {noticed:?}"));
        let count = noticed.iter().filter(|noticed| noticed.meanwhile > 0).count();
        assert!(undisturbed.contains(&count), "{what}: {noticed:?}");
    }
    // Connections are dealt out evenly: with the one that naps there are two or three on its worker.
    check("on the worker", |greeter| Routes::new().add_service(greeter), 2..=3);
    check("on threads of their own", |greeter| Routes::new().add_blocking_service(greeter), 4..=4);
}

/// A client's view of the naps.
#[derive(Debug)]
#[expect(dead_code, reason = "they are printed")]
struct Noticed {
    calls: usize,
    /// Calls that were made and answered while a handler napped.
    meanwhile: usize,
    /// Calls that took half a nap or longer.
    held_up: usize,
    median: Duration,
    longest: Duration,
}

/// Calls until handlers have napped fifty times.
async fn notice(server: &Server, naps: &AtomicUsize) -> Noticed {
    let mut raw = server.raw().await;
    let (mut times, mut meanwhile) = (Vec::new(), 0);
    while naps.load(SeqCst) < 100 {
        let (began, before) = (Instant::now(), naps.load(SeqCst));
        raw.call(post(SAY_HELLO).body(()).unwrap(), hello("Bob")).await;
        times.push(began.elapsed());
        meanwhile += usize::from(before % 2 == 1 && naps.load(SeqCst) == before);
    }
    times.sort();
    Noticed {
        calls: times.len(),
        meanwhile,
        held_up: times.iter().filter(|time| **time >= Duration::from_millis(50)).count(),
        median: times[times.len() / 2],
        longest: times[times.len() - 1],
    }
}

#[test]
fn giant_messages_are_refused() {
    let program = Program::start(&[]);
    run(async {
        let mut raw = Raw::connect(program.addr).await;
        // Four gigabytes, by their own account.
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), Bytes::from_static(&[0, 255, 255, 255, 255, 1])).await;
        assert_eq!(reply.code(), Some("11"), "{reply:?}");
        assert!(reply.message().contains("limit"), "{reply:?}");
        // Less than that, but too much, and all of it sent.
        let (response, mut stream) = raw.0.send_request(post(SAY_HELLO).body(()).unwrap(), false).unwrap();
        let message = hello(&"x".repeat(64 * 1024 * 1024));
        stream.send_data(message, true).unwrap();
        let reply = Reply::of(response).await.unwrap();
        assert_eq!(reply.code(), Some("11"), "{reply:?}");
        // Half a message, and nothing more.
        let reply = raw.call(post(SAY_HELLO).body(()).unwrap(), Bytes::from_static(&[0, 0, 0, 0, 9, 10])).await;
        assert_eq!(reply.code(), Some("13"), "{reply:?}");
        // A message of four megabytes, announced a hundred times.
        let mut waiting = Vec::new();
        for _ in 0..100 {
            let (response, mut stream) = raw.0.send_request(post(SAY_HELLO).body(()).unwrap(), false).unwrap();
            stream.send_data(Bytes::from_static(&[0, 0, 0x3f, 0xff, 0xff, 10]), false).unwrap();
            waiting.push((response, stream));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(program.peak_mib() < 120, "{} MiB", program.peak_mib());
    });
    program.serves();
}

#[test]
fn slow_readers_hold_little() {
    let program = Program::start(&[]);
    let readers: Vec<_> = (0..10)
        .map(|_| {
            // Large windows, so that it is the socket that is full.
            let mut frames = Frames::connect(program.addr, &[(4, 0x7fff_ffff)]);
            assert!(frames.send(&frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes())));
            let (head, message) = (call_head(MANY_TIMES), many_times(&"x".repeat(500), 1_000_000, 0));
            for number in 0..100 {
                let stream = 1 + 2 * number;
                let sent = frames.send(&frame(HEADERS, END_HEADERS, stream, &head))
                    && frames.send(&frame(DATA, END_STREAM, stream, &message));
                assert!(sent);
            }
            frames
        })
        .collect();
    program.serves();
    std::thread::sleep(Duration::from_millis(500));
    program.serves();
    // A thousand streams of 500 MB each: the send buffers bound the memory.
    assert!(program.peak_mib() < 300, "{} MiB", program.peak_mib());
    drop(readers);
    program.serves();
}

#[test]
fn unresponsive_clients_are_disconnected() {
    run(async {
        let mut options = options();
        // A busy machine may let an honest client wait, too.
        let patience = Duration::from_secs(1);
        options.timeouts.handshake = patience;
        options.timeouts.keepalive = patience;
        options.timeouts.keepalive_answer = patience;
        let (server, _) = Server::odd(options);
        let silent = Frames::silent(server.addr);
        let deaf = Frames::connect(server.addr, &[]);
        let mut honest = server.raw().await;
        until("all three are there", || server.running.shutdown_handle().accepted() == 3).await;
        until("two are cut", || server.running.connections() == 1).await;
        drop((silent, deaf));
        // A client that answers stays.
        tokio::time::sleep(3 * patience).await;
        let reply = honest.call(post(SAY_HELLO).body(()).unwrap(), hello("Ann")).await;
        assert_eq!(reply.code(), Some("0"));
    });
}
