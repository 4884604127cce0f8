//! Clients that misbehave harm nobody else, and what the network can grow has an end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::support::process::{Process, ask};
use crate::support::resp::{Value, request};
use crate::support::server::{Client, Server};
use crate::support::{Random, until};

/// How long a well-behaved client may wait on a busy machine, whatever others do.
const PROMPTLY: Duration = Duration::from_millis(500);

/// A client keeps getting answers while `nuisance` goes on.
fn others_are_served(server: &Server, nuisance: impl FnOnce() + Send) {
    let mut client = server.connect();
    std::thread::scope(|scope| {
        let nuisance = scope.spawn(nuisance);
        let mut rounds = 0;
        while !nuisance.is_finished() || rounds < 100 {
            let start = Instant::now();
            assert_eq!(client.ask("PING"), Value::Status(b"PONG".into()));
            let took = start.elapsed();
            assert!(took < PROMPTLY, "a neighbour waited for {took:?}");
            rounds += 1;
        }
        nuisance.join().unwrap();
    });
}

/// Writes as long as the server reads; whether all of it went.
fn write_all(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.write_all(bytes).is_ok()
}

#[test]
fn garbage_ends_its_own_connection() {
    let server = Server::start();
    others_are_served(&server, || {
        let mut random = Random::new(7);
        for first in [b'*', b'$', b'G', 0, 0xff, b'\n'] {
            let mut garbage: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
            garbage[0] = first;
            let mut client = server.connect();
            write_all(&mut client.stream, &garbage);
            // The server may have ended the connection by now.
            let _ = client.stream.shutdown(std::net::Shutdown::Write);
            let said = client.until_closed();
            assert!(said.is_empty() || said.starts_with("-ERR "), "{said:?}");
        }
    });
}

#[test]
fn half_a_request_waits_alone() {
    let server = Server::start();
    let halves = ["*2\r\n$3\r\nGET\r\n$5\r\nab", "*3\r\n$3\r\nSET\r\n", "*", "PI", "*1000000\r\n$1\r\na\r\n"];
    let mut clients: Vec<_> = halves.iter().map(|_| server.connect()).collect();
    others_are_served(&server, || {
        for (client, half) in clients.iter_mut().zip(halves) {
            client.stream.write_all(half.as_bytes()).unwrap();
        }
    });
    // One of them completes its request after all.
    clients[0].stream.write_all(b"cde\r\n").unwrap();
    assert_eq!(clients[0].reply(), Value::NullBulk);
}

#[test]
fn an_announced_length_costs_little_before_it_comes() {
    const CLIENTS: usize = 50;
    let process = Process::start("announced", &[]);
    let mut neighbour = process.connect();
    assert_eq!(ask(&mut neighbour, &["PING"]), Value::Status(b"PONG".into()));
    let before = process.resident();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| process.connect()).collect();
    for client in &mut clients {
        client.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nthe beginning").unwrap();
    }
    for _ in 0..200 {
        let start = Instant::now();
        assert_eq!(ask(&mut neighbour, &["PING"]), Value::Status(b"PONG".into()));
        assert!(start.elapsed() < PROMPTLY, "a neighbour waited for {:?}", start.elapsed());
        clients.iter_mut().for_each(|client| client.write_all(b" and more").unwrap());
    }
    let grown = process.resident().saturating_sub(before);
    // The room that is made at once may become resident: the allocator asks for large pages.
    assert!(grown < CLIENTS as u64 * (2 << 20), "{CLIENTS} announced lengths took {grown} bytes");
    // Beyond proto-max-bulk-len nothing is waited for.
    let mut client = process.connect();
    client.write_all(b"*1\r\n$536870913\r\n").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert_eq!(said, "-ERR Protocol error: invalid bulk length\r\n");
}

/// Thousands of clients may send half a request and no more.
#[test]
fn half_a_request_holds_no_more_than_was_sent() {
    let server = Server::start();
    let argument = "x".repeat(40);
    let cases = [
        "*3\r\n$3\r\nSE".to_owned(),
        format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\n{argument}"),
        format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n{argument}"),
        format!("PING {argument}"),
        format!("*3\r\n$5\r\nBLPOP\r\n$1\r\nl\r\n$1\r\n0\r\nPING {argument}"),
    ];
    for half in cases {
        let mut client = server.connect();
        // Its beginning in a piece of its own: the server has looked at it when the rest comes.
        let (head, tail) = half.as_bytes().split_at(half.len() / 2);
        let room = || server.instance.clients().iter().map(|client| client.input_room.load(Relaxed)).max().unwrap_or(0);
        let input = || server.instance.clients().iter().map(|client| client.input.load(Relaxed)).max().unwrap_or(0);
        write_all(&mut client.stream, head);
        until("the first half is there", || room() > 0);
        let before = input();
        write_all(&mut client.stream, tail);
        until("all of it is there", || input() != before || room() >= half.len() as u64);
        assert!(room() <= 2 * half.len() as u64, "{} bytes for {half:?}", room());
        drop(client);
        until("it has gone", || server.instance.clients().is_empty());
    }
}

#[test]
fn unread_replies_stall_only_their_own_client() {
    let server = Server::with(&[("client-output-buffer-pause", "64mb")]);
    let mut client = server.connect();
    client.send(&["SET", "big", &"x".repeat(1 << 20)]);
    assert_eq!(client.reply(), Value::Status(b"OK".into()));
    let mut deaf = server.connect();
    others_are_served(&server, || {
        // 4 GiB of replies are asked for; the server stops reading requests long before.
        let requests = request(&["GET", "big"]).repeat(4096);
        write_all(&mut deaf.stream, &requests);
    });
    drop(deaf);
    until("the deaf client has gone", || server.instance.clients().len() <= 1);
}

/// A client that sends all before it reads is served without end, or stands still, as the setting says.
#[test]
fn commands_wait_for_a_client_that_does_not_read_if_they_are_to() {
    const REQUESTS: usize = 20_000;
    const VALUE: usize = 1000;
    for (pause, is_held) in [("1mb", true), ("0", false)] {
        let server = Server::with(&[("client-output-buffer-pause", pause)]);
        let mut client = server.connect();
        client.send(&["SET", "key", &"x".repeat(VALUE)]);
        assert!(!client.reply().is_error());
        client.stream.write_all(&request(&["GET", "key"]).repeat(REQUESTS)).unwrap();
        let output = || server.instance.clients()[0].output.load(Relaxed) as usize;
        // The socket takes some megabytes of the replies.
        let wanted = if is_held { 1 << 20 } else { REQUESTS * VALUE / 2 };
        until("replies wait", || output() > wanted);
        until("the server has done what it will", || {
            let before = output();
            (0..20).all(|_| {
                std::thread::yield_now();
                server.connect().ask("PING");
                server.instance.clients().iter().map(|client| client.output.load(Relaxed) as usize).max()
                    == Some(before)
            })
        });
        assert_eq!(output() < (3 << 20), is_held, "{} bytes wait with {pause}", output());
        for _ in 0..REQUESTS {
            assert_eq!(client.reply().text().len(), VALUE);
        }
    }
}

#[test]
fn output_beyond_its_limit_ends_the_connection() {
    let server = Server::with(&[("client-output-buffer-limit", "normal 1mb 0 0 pubsub 1mb 0 0")]);
    let mut client = server.connect();
    client.send(&["SET", "big", &"x".repeat(1 << 20)]);
    assert_eq!(client.reply(), Value::Status(b"OK".into()));
    let mut deaf = server.connect();
    others_are_served(&server, || {
        write_all(&mut deaf.stream, &request(&["GET", "big"]).repeat(64));
    });
    until("the client with too many replies is cut off", || server.instance.clients().len() == 1);
    let mut subscriber = server.connect();
    subscriber.ask("SUBSCRIBE news");
    let message = "m".repeat(1 << 18);
    until("the subscriber that does not read is cut off", || {
        client.send(&["PUBLISH", "news", &message]);
        client.reply() == Value::Int(0)
    });
}

#[test]
fn input_beyond_its_limit_ends_the_connection() {
    let server = Server::with(&[("client-query-buffer-limit", "1mb")]);
    others_are_served(&server, || {
        let mut client = server.connect();
        let argument = format!("${}\r\n{}\r\n", 100 << 10, "x".repeat(100 << 10));
        let unfinished = format!("*1000\r\n{}", argument.repeat(20));
        write_all(&mut client.stream, unfinished.as_bytes());
        assert_eq!(client.until_closed(), "");
    });
}

#[test]
fn one_client_too_many_is_told_so() {
    let server = Server::with(&[("maxclients", "3")]);
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| assert!(!client.ask("PING").is_error()));
    assert_eq!(server.connect().until_closed(), "-ERR max number of clients reached\r\n");
    clients.pop();
    until("there is room again", || {
        let mut client = Client::connect(server.addr);
        client.send(&["PING"]);
        client.until_byte() == Some(b'+')
    });
}

/// Opens connections up to this number, or to what the system allows this process.
fn allowed(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let files = limit.maximum.map_or(usize::MAX, |maximum| maximum as usize);
    let count = wanted.min(files.saturating_sub(1000));
    if count < wanted {
        println!("only {count} connections: the system allows {files} open files");
    }
    count
}

#[test]
fn idle_connections_cost_little() {
    let count = allowed(10_000);
    let process = Process::start("idle", &[("maxclients", "10500")]);
    let mut neighbour = process.connect();
    // The memory that the first clients allocate once is no cost of a connection.
    drop((0..100).map(|_| process.connect()).collect::<Vec<_>>());
    ask(&mut neighbour, &["PING"]);
    let before = process.resident();
    let mut idle: Vec<_> = (0..count).map(|_| process.connect()).collect();
    // Each has been served once: none is only waiting to be accepted.
    idle.iter_mut().for_each(|client| drop(ask(client, &["PING"])));
    let each = process.resident().saturating_sub(before) / count as u64;
    println!("{count} idle connections, {each} resident bytes each");
    assert!(each <= 6 * 1024, "{each} bytes per idle connection");
    let start = Instant::now();
    ask(&mut neighbour, &["PING"]);
    assert!(start.elapsed() < PROMPTLY);
    drop(idle);
    until("the files of the connections are closed", || process.open_files() < 100);
}

#[test]
fn replies_to_a_closed_connection_reach_no_client() {
    let process = Process::start("gone", &[("workers", "1")]);
    for round in 0..100 {
        let mut gone = process.connect();
        gone.write_all(b"ECHO secret\r\n").unwrap();
        drop(gone);
        let expected = Value::Bulk(round.to_string().into_bytes());
        assert_eq!(ask(&mut process.connect(), &["ECHO", &round.to_string()]), expected);
    }
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    const ROUNDS: usize = 100;
    const EACH: usize = 100;
    // How many clients live at once, and with it what the allocator keeps, is up to the scheduler: one stretch of
    // rounds may grow for once, a leak grows in all of them.
    const STRETCHES: usize = 5;
    let process = Process::start("come-and-go", &[]);
    let mut neighbour = process.connect();
    let round = |neighbour: &mut UnixStream| {
        let clients: Vec<_> = (0..EACH).map(|_| process.connect()).collect();
        for (number, mut client) in clients.into_iter().enumerate() {
            // Some ask and leave, some leave at once, some in the middle of a request or of a wait.
            let words: &[u8] = match number % 4 {
                0 => b"",
                1 => b"PING\r\n",
                2 => b"*2\r\n$3\r\nGET\r\n$100",
                _ => b"BLPOP nothing 0\r\n",
            };
            client.write_all(words).unwrap();
        }
        ask(neighbour, &["PING"]);
    };
    let settled = |neighbour: &mut UnixStream, rounds: usize| {
        (0..rounds).for_each(|_| round(neighbour));
        until("only the neighbour is listed", || ask(neighbour, &["CLIENT", "LIST"]).text().lines().count() == 1);
        // The last connection's file may be closed a moment after its client has left.
        until("no file is left open", || process.open_files() < 50);
        process.resident()
    };
    let mut before = settled(&mut neighbour, ROUNDS / 10);
    let mut growths = Vec::new();
    while growths.len() < STRETCHES {
        let after = settled(&mut neighbour, ROUNDS);
        let grown = after.saturating_sub(before);
        if grown < 1 << 20 {
            return;
        }
        growths.push(grown);
        before = after;
    }
    panic!("each {} connections left bytes behind: {growths:?}", ROUNDS * EACH);
}
