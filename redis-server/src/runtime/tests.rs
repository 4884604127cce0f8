//! A fault that no client can cause: a command that reads, and panics.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::embedded::Session;
use super::service::start_with;
use crate::command::{Args, Result};
use crate::commands::TABLE;
use crate::config::{Config, Launch};
use crate::exec::core::{CommandTable, Ctx, Instance, Worker};

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

/// The commands, of which GET and EXISTS panic at the key `panic`.
fn commands() -> &'static CommandTable {
    fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
        assert!(args.at(1) != b"panic", "as asked");
        (TABLE.handlers[usize::from(TABLE.registry.lookup(args.at(0)).unwrap().id)])(cx, args)
    }
    let mut handlers = TABLE.handlers.to_vec();
    for name in ["get", "exists"] {
        handlers[usize::from(TABLE.registry.lookup(name.as_bytes()).unwrap().id)] = get;
    }
    Box::leak(Box::new(CommandTable { handlers: handlers.leak(), ..TABLE }))
}

#[test]
fn a_command_that_panics_while_it_reads_ends_its_connection_alone() {
    let launch = Launch::from_flags(&["--workers", "1"]).unwrap();
    let (config, _) = Config::load(&launch, std::iter::empty()).unwrap();
    let (running, instance) = start_with(vec!["127.0.0.1:0".parse().unwrap()], config, commands()).unwrap();
    let addr = running.local_addrs()[0];
    let mut bystander = connect(addr);
    let mut waiter = connect(addr);
    send(&mut waiter, "BLPOP l 0\r\n");
    until("the waiter waits", || instance.blocked_clients(0) == 1);
    // Alone, in a window of several, in a transaction that only reads, on several keys.
    for words in [
        "GET panic\r\n",
        "PING\r\nGET panic\r\nSET k x\r\n",
        "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$5\r\npanic\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        "MULTI\r\nGET panic\r\nEXISTS k\r\nEXEC\r\n",
        "EXISTS panic k l\r\n",
        "HELLO 3\r\nCLIENT TRACKING ON\r\nSUBSCRIBE c\r\nWATCH k panic\r\nMULTI\r\nGET panic\r\nEXEC\r\n",
    ] {
        assert_eq!(ask(&mut bystander, "SET k v\r\n", 1), "+OK\r\n");
        let mut unlucky = connect(addr);
        send(&mut unlucky, words);
        let mut said = String::new();
        unlucky.read_to_string(&mut said).unwrap();
        assert!(!said.contains("\r\n-") && !said.contains("+OK\r\n+OK"), "closed without a word: {said}");
        assert_eq!(ask(&mut bystander, "GET k\r\n", 2), "$1\r\nv\r\n", "locks are free, nothing else has run");
        assert_eq!(ask(&mut bystander, "SET panic v\r\n", 1), "+OK\r\n");
        until("it is no longer listed", || instance.clients().len() == 2);
        assert_eq!(ask(&mut bystander, "PUBLISH c m\r\n", 1), ":0\r\n");
        assert!(!instance.database(0).any_tracker(), "nobody tracks any more");
    }
    assert_eq!(ask(&mut bystander, "RPUSH l x\r\n", 1), ":1\r\n");
    assert_eq!(ask(&mut waiter, "", 5), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    drop((bystander, waiter));
    running.shutdown_handle().trigger();
    assert!(!running.wait(), "no connection is left");
}

#[test]
fn a_command_that_panics_while_it_reads_ends_its_embedded_session_alone() {
    let worker = Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), commands()))));
    let (mut unlucky, mut bystander) = (Session::new(Rc::clone(&worker)), Session::new(Rc::clone(&worker)));
    unlucky.receive(b"SET k v\r\nGET panic\r\nSET k x\r\n");
    assert!(unlucky.is_closed());
    assert_eq!(unlucky.transmit(), b"");
    drop(unlucky);
    bystander.receive(b"GET k\r\nSET panic x\r\n");
    assert_eq!(bystander.transmit(), b"$1\r\nv\r\n+OK\r\n");
    assert_eq!(worker.instance.clients().len(), 1);
}
