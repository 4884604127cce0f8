//! Accepting, spreading, limiting, and the places to listen.

use std::io::Read;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use server_runtime::{Listen, Options, start};

use crate::support::{Echo, REFUSAL, alone, ask, connect, end, options, serve, until};

#[test]
fn echoes_on_every_kind_of_tcp_address() {
    fn check(listen: &str, call: &str) {
        let running = serve(Options { listen: vec![listen.parse().unwrap()], ..options() });
        let call = SocketAddr::new(call.parse().unwrap(), running.local_addrs()[0].port());
        let mut stream = connect(call);
        assert_eq!(ask(&mut stream, "hello"), "hello", "{listen}");
        let ends = format!("{} {}", stream.local_addr().unwrap(), call);
        assert!(ask(&mut stream, "who").ends_with(&ends), "{listen}: addresses are {ends}");
        assert_eq!(running.connections(), 1);
        drop(stream);
        end(running);
    }
    check("127.0.0.1:0", "127.0.0.1");
    check("0.0.0.0:0", "127.0.0.1");
    check("[::1]:0", "::1");
    check("[::]:0", "::1");
    check("[::]:0", "127.0.0.1");
}

#[test]
fn spreads_evenly_over_the_workers() {
    let running = serve(Options { workers: 3, ..options() });
    let addr = running.local_addrs()[0];
    let handle = running.shutdown_handle();
    let mut streams: Vec<_> = (0..30).map(|_| connect(addr)).collect();
    let names: Vec<_> =
        streams.iter_mut().map(|stream| ask(stream, "who").split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(handle.connections_by_worker(), [10, 10, 10]);
    assert_eq!(names.iter().filter(|name| *name == "worker-1").count(), 10);
    // Those that leave one worker make room there for the next ones.
    let mut names = names.iter();
    streams.retain(|_| names.next().unwrap() != "worker-1");
    until("worker-1 is empty", || handle.connections_by_worker() == [10, 0, 10]);
    streams.extend((0..10).map(|_| connect(addr)));
    until("worker-1 is full", || handle.connections_by_worker() == [10, 10, 10]);
    drop(streams);
    end(running);
}
