//! The end of a server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use server_runtime::{Listen, Options, shutdown_on_signals, start};
use test_peers::alone;

use crate::support::{PATIENCE, Wanderer, ask, connect, options, serve, until};

#[test]
fn a_connection_in_flight_finishes() {
    let running = serve(options());
    let addr = running.local_addrs()[0];
    let mut stream = connect(addr);
    assert_eq!(ask(&mut stream, "hello"), "hello");
    let handle = running.shutdown_handle();
    handle.trigger();
    handle.trigger();
    until("nothing is accepted any more", || TcpStream::connect(addr).is_err());
    assert_eq!(ask(&mut stream, "still served"), "still served");
    assert_eq!(ask(&mut stream, "shutdown"), "bye", "a late wait is answered at once");
    drop(stream);
    assert!(!running.wait());
    assert_eq!(handle.connections(), 0);
}

#[test]
fn connections_hear_of_the_shutdown() {
    let running = serve(options());
    let addr = running.local_addrs()[0];
    let mut streams: Vec<_> = (0..20).map(|_| connect(addr)).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(b"shutdown").unwrap());
    until("all are there", || running.connections() == 20);
    running.shutdown_handle().trigger();
    for stream in &mut streams {
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"bye");
    }
    drop(streams);
    assert!(!running.wait());
}

/// A connection that sees the shutdown can rely on closed listeners: another server may listen there.
#[test]
fn listeners_close_before_connections_see_the_shutdown() {
    // A program that another test starts has the listeners, too, until it is executed.
    if !alone("shutdown::listeners_close_before_connections_see_the_shutdown") {
        return;
    }
    for _ in 0..20 {
        let places = (0..8).map(|_| Listen::Tcp("127.0.0.1:0".parse().unwrap())).collect();
        let running = serve(Options { listen: places, ..options() });
        let mut stream = connect(running.local_addrs()[0]);
        stream.write_all(b"shutdown").unwrap();
        until("it is there", || running.connections() == 1);
        running.shutdown_handle().trigger();
        stream.read_exact(&mut [0; 3]).unwrap();
        let open = running.local_addrs().iter().filter(|addr| TcpStream::connect(addr).is_ok()).count();
        assert_eq!(open, 0, "so many places are still listened on");
    }
}

#[test]
fn the_deadline_cuts() {
    let drain = Duration::from_millis(100);
    let running = serve(Options { drain, ..options() });
    let mut stream = connect(running.local_addrs()[0]);
    stream.write_all(b"hold").unwrap();
    until("it is there", || running.connections() == 1);
    let handle = running.shutdown_handle();
    let start = Instant::now();
    handle.trigger();
    assert!(running.wait(), "one was cut");
    assert!(start.elapsed() >= drain);
    assert_eq!(test_peers::read(&mut stream, &mut [0; 8]).unwrap_or(0), 0);
    assert_eq!(handle.connections(), 0);
}

#[test]
fn abort_does_not_wait() {
    let running = serve(options());
    let mut stream = connect(running.local_addrs()[0]);
    stream.write_all(b"hold").unwrap();
    until("it is there", || running.connections() == 1);
    let start = Instant::now();
    running.shutdown_handle().abort();
    assert!(running.wait());
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn dropped_servers_shut_down() {
    let running = serve(options());
    let addr = running.local_addrs()[0];
    drop(running);
    until("nothing is accepted any more", || TcpStream::connect(addr).is_err());
}

#[test]
fn signals() {
    if !alone("shutdown::signals") {
        return;
    }
    let running = serve(options());
    shutdown_on_signals(&running).unwrap();
    let addr = running.local_addrs()[0];
    let mut stream = connect(addr);
    assert_eq!(ask(&mut stream, "hello"), "hello");
    let signal = |name: &str| {
        let sent = Command::new("kill").args(["-s", name, &std::process::id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal("TERM");
    until("nothing is accepted any more", || TcpStream::connect(addr).is_err());
    assert_eq!(ask(&mut stream, "still served"), "still served");
    signal("INT");
    assert!(running.wait(), "the second one cuts");
}

/// Workers without connections wait for those that have some: one may still move to them.
#[test]
fn a_connection_that_moves_during_the_shutdown_finds_its_worker() {
    let running = start(options(), Arc::new(Wanderer)).unwrap();
    let handle = running.shutdown_handle();
    let mut streams: Vec<_> = (0..4).map(|_| connect(running.local_addrs()[0])).collect();
    streams.iter_mut().for_each(|stream| assert_eq!(ask(stream, "x"), "1 on 0"));
    handle.trigger();
    until("nothing is accepted any more", || TcpStream::connect(running.local_addrs()[0]).is_err());
    // Long enough for a worker to end that has nothing to do.
    std::thread::sleep(Duration::from_millis(200));
    streams.iter_mut().for_each(|stream| assert_eq!(ask(stream, "stay"), "2 on 0"));
    until("half have moved", || handle.connections_by_worker() == [2, 2]);
    streams.iter_mut().for_each(|stream| assert!(ask(stream, "x").starts_with("3 on ")));
    drop(streams);
    assert!(!running.wait(), "no connection is left");
}
