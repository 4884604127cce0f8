//! The same commands to a genuine server with a replica, and to ours with its journal on.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use redis_server::command::Flags;
use redis_server::commands::REGISTRY;
use redis_server::journal::{self, User};

use super::Reader;
use super::cases::{CASES, Case, NEWER};
use crate::support::genuine::Genuine;
use crate::support::resp::{Value, parse, request};
use crate::support::server::Server;
use crate::support::{PATIENCE, until};

trait Link: Read + Write {}
impl Link for TcpStream {}
impl Link for UnixStream {}

/// A client.
struct Talk {
    link: Box<dyn Link>,
    input: Vec<u8>,
}

impl Talk {
    fn new(link: impl Link + 'static) -> Self {
        Self { link: Box::new(link), input: Vec::new() }
    }

    fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.link.write_all(&request(words)).unwrap();
    }

    fn more(&mut self) {
        let mut chunk = [0; 16 * 1024];
        let count = test_peers::read(&mut self.link, &mut chunk).expect("more in time");
        assert!(count > 0, "the server closed the connection");
        self.input.extend_from_slice(&chunk[..count]);
    }

    fn reply(&mut self) -> Value {
        loop {
            if let Some((value, len)) = parse(&self.input).unwrap() {
                self.input.drain(..len);
                return value;
            }
            self.more();
        }
    }

    fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.send(words);
        self.reply()
    }
}

/// The value of a bulk reply.
fn bulk(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes,
        other => panic!("no bulk: {other:?}"),
    }
}

/// The source of a server's changes.
enum Teller {
    Journal(journal::Reader),
    /// A connection that the server takes for a replica's.
    Replica(Talk),
}

/// One of the two servers.
struct Side {
    main: Talk,
    connect: Box<dyn Fn() -> Talk>,
    teller: Teller,
    reader: Reader,
}

/// The values of the placeholders in the table's commands.
struct Known {
    dump: Vec<u8>,
    functions: Vec<u8>,
    port: String,
}

impl Side {
    fn ours() -> (Self, Server) {
        let server = Server::start();
        let journal = server.instance.journal.reader(|| {});
        server.instance.journal.turn_on(User::Aof, &server.instance.exclusive.stop().unwrap());
        let addr = server.addr;
        let connect = move || {
            let stream = TcpStream::connect(addr).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Talk::new(stream)
        };
        let teller = Teller::Journal(journal);
        let side = Self { main: connect(), connect: Box::new(connect), teller, reader: Reader::default() };
        (side, server)
    }

    fn genuine() -> Option<(Self, Genuine)> {
        let settings = [("repl-diskless-sync", "no"), ("repl-ping-replica-period", "3600")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let genuine = Genuine::start(&settings)?;
        let socket = genuine.folder.join("socket");
        let connect = move || {
            let stream = UnixStream::connect(&socket).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Talk::new(stream)
        };
        let replica = synchronized(connect());
        let side = Self {
            main: connect(),
            connect: Box::new(connect),
            teller: Teller::Replica(replica),
            reader: Reader::default(),
        };
        Some((side, genuine))
    }

    /// The changes of all commands up to now.
    fn told(&mut self) -> String {
        const MARK: &str = "SET mark v";
        self.main.ask(&["SET", "mark", "v"]);
        let mut told = Vec::new();
        loop {
            let (some, len) = match &mut self.teller {
                Teller::Journal(journal) => {
                    let mut bytes = Vec::new();
                    journal.take(&mut bytes, &mut Vec::new());
                    let read = self.reader.read(&bytes);
                    assert_eq!(read.1, bytes.len(), "half a command");
                    read
                }
                Teller::Replica(replica) => {
                    replica.more();
                    let read = self.reader.read(&replica.input);
                    replica.input.drain(..read.1);
                    read
                }
            };
            // The genuine server is due to send one at its first look at the clock, whatever its period.
            told.extend(some.into_iter().filter(|said| said != "ping"));
            if told.last().is_some_and(|last| last == MARK) {
                told.pop();
                return told.join("\n");
            }
            assert!(len > 0 || matches!(self.teller, Teller::Replica(_)), "the mark is not said: {told:?}");
        }
    }

    /// Does what a case wants; returns what was said of it.
    fn run(&mut self, case: &Case, known: &Known) -> String {
        let mut second: Option<Talk> = None;
        for line in case.lines.split(" / ") {
            let mut words = words(line, known);
            match words[0].as_slice() {
                b"wait" => std::thread::sleep(Duration::from_millis(5)),
                b"&" => {
                    let second = second.insert((self.connect)());
                    second.send(&words.split_off(1));
                    until("it waits", || {
                        String::from_utf8_lossy(&bulk(self.main.ask(&["INFO", "clients"])))
                            .contains("blocked_clients:1\r")
                    });
                }
                b"~" => until(line, || self.main.ask(&words[2..]).text().as_bytes() == words[1]),
                _ => {
                    let reply = self.main.ask(&words);
                    assert!(!reply.is_error(), "{line}: {reply:?}");
                }
            }
        }
        if let Some(mut second) = second {
            assert!(!second.reply().is_error(), "{}", case.lines);
        }
        let told = self.told();
        self.main.ask(&["FLUSHALL"]);
        self.main.ask(&["FUNCTION", "FLUSH"]);
        self.told();
        told
    }
}

/// The stream that follows a first snapshot.
fn synchronized(mut replica: Talk) -> Talk {
    replica.send(&["SYNC"]);
    // `$<length>` and the snapshot, after empty lines that keep the connection alive.
    loop {
        let begin = replica.input.iter().position(|&byte| byte != b'\n').unwrap_or(replica.input.len());
        replica.input.drain(..begin);
        if let Some(end) = replica.input.windows(2).position(|two| two == b"\r\n") {
            let length: usize = String::from_utf8_lossy(&replica.input[1..end]).parse().unwrap();
            while replica.input.len() < end + 2 + length {
                replica.more();
            }
            replica.input.drain(..end + 2 + length);
            return replica;
        }
        replica.more();
    }
}

/// The words of a line; quotes hold spaces together.
fn words(line: &str, known: &Known) -> Vec<Vec<u8>> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split(' ').filter(|word| !word.is_empty()).collect(),
        _ => vec![part],
    });
    let known = |word: &str| match word {
        "{dump}" => known.dump.clone(),
        "{functions}" => known.functions.clone(),
        "{port}" => known.port.clone().into_bytes(),
        "{json}" => b"\"x\"".into(),
        word => word.into(),
    };
    words.map(known).collect()
}

#[test]
fn the_journal_says_what_replicas_are_told() {
    let (mut ours, _server) = Side::ours();
    let Some((mut genuine, _process)) = Side::genuine() else { return };
    let target = Server::start();
    ours.main.ask(&["SET", "x", "v"]);
    ours.main.ask(&["FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"]);
    let known = Known {
        dump: bulk(ours.main.ask(&["DUMP", "x"])),
        functions: bulk(ours.main.ask(&["FUNCTION", "DUMP"])),
        port: target.addr.port().to_string(),
    };
    ours.main.ask(&["FLUSHALL"]);
    ours.main.ask(&["FUNCTION", "FLUSH"]);
    ours.told();
    let mut wrong = Vec::new();
    for case in CASES {
        let theirs = genuine.run(case, &known);
        target.connect().ask("FLUSHALL");
        let said = ours.run(case, &known);
        target.connect().ask("FLUSHALL");
        match case.ours {
            None if said != theirs => {
                wrong.push(format!("{}\nours:\n{said}\ngenuine:\n{theirs}\n", case.lines));
            }
            Some((expected, _)) if said != expected || said == theirs => {
                wrong.push(format!("{}\nours:\n{said}\nexpected:\n{expected}\ngenuine:\n{theirs}\n", case.lines));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_journal_says_of_newer_commands_what_makes_an_equal_server() {
    let (mut ours, _server) = Side::ours();
    let known = Known { dump: Vec::new(), functions: Vec::new(), port: String::new() };
    let mut wrong = Vec::new();
    for &(lines, expected) in NEWER {
        let said = ours.run(&Case { lines, ours: None }, &known);
        if said != expected {
            wrong.push(format!("{lines}\nours:\n{said}\nexpected:\n{expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_that_writes_is_in_the_table() {
    let known = Known { dump: Vec::new(), functions: Vec::new(), port: String::new() };
    // A slot is deleted by a cluster's nodes alone: `cluster::a_slot_s_keys_are_deleted_as_a_whole`.
    // Nodes of a cluster tell each other definitions: `search::fanout`, with a replica and a file.
    let mut used = BTreeSet::from(["cluster|flushslot", "ft._define", "ft._propose"].map(str::to_owned));
    let lines = CASES.iter().map(|case| case.lines).chain(NEWER.iter().map(|(lines, _)| *lines));
    for line in lines.flat_map(|lines| lines.split(" / ")) {
        let words = words(line.trim_start_matches("& "), &known);
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word).to_lowercase()).collect();
        used.insert(words[0].clone());
        used.extend(words.get(1).map(|sub| format!("{}|{sub}", words[0])));
    }
    let writing = REGISTRY.rows().iter().filter(|row| row.command.flags.has(Flags::WRITE)).map(|row| row.name());
    let missing: BTreeSet<_> = writing.filter(|name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "without a case: {missing:?}");
}
