//! What only a test build can bring about: a command that panics.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::start_at;
use crate::config::{Config, Launch};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn connect(addr: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

fn send(client: &mut BufReader<TcpStream>, words: &str) {
    client.get_mut().write_all(words.as_bytes()).unwrap();
}

/// Sends commands and reads this many lines.
fn ask(client: &mut BufReader<TcpStream>, words: &str, lines: usize) -> String {
    send(client, words);
    let mut reply = String::new();
    for _ in 0..lines {
        client.read_line(&mut reply).unwrap();
    }
    reply
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_command_that_panics_ends_its_connection_alone() {
    let launch = Launch::from_flags(&["--enable-debug-command", "yes", "--workers", "1"]).unwrap();
    let (config, _) = Config::load(&launch, std::iter::empty()).unwrap();
    let (running, instance) = start_at(vec!["127.0.0.1:0".parse().unwrap()], config).unwrap();
    let addr = running.local_addrs()[0];
    let mut bystander = connect(addr);
    let mut waiter = connect(addr);
    send(&mut waiter, "BLPOP l 0\r\n");
    until("the waiter waits", || instance.blocked_clients(0) == 1);
    // DEBUG holds every lock of every database while it panics.
    for words in
        ["DEBUG PANIC\r\n", "PING\r\nDEBUG PANIC\r\nSET k x\r\n", "MULTI\r\nDEBUG PANIC\r\nSET k x\r\nEXEC\r\n"]
    {
        assert_eq!(ask(&mut bystander, "SET k v\r\n", 1), "+OK\r\n");
        let mut unlucky = connect(addr);
        send(&mut unlucky, words);
        let mut said = String::new();
        unlucky.read_to_string(&mut said).unwrap();
        assert!(!said.contains('-'), "closed without an error: {said}");
        assert_eq!(ask(&mut bystander, "GET k\r\n", 2), "$1\r\nv\r\n", "locks are free, nothing else has run");
        until("it is no longer listed", || instance.clients().len() == 2);
    }
    assert_eq!(ask(&mut bystander, "RPUSH l x\r\n", 1), ":1\r\n");
    assert_eq!(ask(&mut waiter, "", 5), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    assert_eq!(ask(&mut connect(addr), "DBSIZE\r\n", 1), ":1\r\n");
    drop((bystander, waiter));
    running.shutdown_handle().trigger();
    assert!(!running.wait(), "no connection is left");
}
