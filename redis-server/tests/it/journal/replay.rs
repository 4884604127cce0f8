//! A server that is given the journal of another has its data.

use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use redis_server::commands::TABLE;
use redis_server::exec::core::{Instance, Worker};
use redis_server::journal::User;
use redis_server::runtime::embedded::Session;

use crate::support::resp::{Value, parse, request};
use crate::support::server::{Client, Server, config};
use crate::support::{Random, until};
use crate::windows;

const SEEDS: u64 = 8;
const COMMANDS: usize = 3000;

/// Commands that are not among those of windows.
pub(crate) const TEMPLATES: &[&str] = &[
    "SPOP E #|SPOP E|LMPOP 2 L L LEFT COUNT #|ZMPOP 2 Z Z MAX COUNT #|BLPOP L L 0.001|BLMOVE L L LEFT RIGHT 0.001|BZPOPMIN Z 0.001",
    "SUNIONSTORE E E E|SDIFFSTORE E E E|ZUNIONSTORE Z 2 Z Z|ZRANGESTORE Z Z 0 #|SORT L ALPHA STORE L|SMOVE E E #|LMOVE L L LEFT RIGHT",
    "COPY K K REPLACE|RENAMENX K K|COPY K K DB 1|SELECT 0|SELECT 0|SELECT 0|SELECT 1|MOVE K 1|SWAPDB 0 1|MSET S v# S w#|BITOP OR S S S",
    "XADD X * f #|XADD X MAXLEN ~ # * f #|XTRIM X MINID ~ #|XREADGROUP GROUP g c NOACK STREAMS X >|XREADGROUP GROUP g d STREAMS X #",
    "XREADGROUP GROUP g e COUNT # STREAMS X X > >|XAUTOCLAIM X g d 0 0 COUNT #|XCLAIM X g f 0 1-# FORCE|XGROUP DELCONSUMER X g c",
    "EVAL redis.call('INCR',KEYS[1])redis.call('SPOP',KEYS[2]) 2 S E|EVAL redis.call('SET',KEYS[1],'v','EX',100)return{} 1 S",
    "MULTI|EXEC|DISCARD|GETEX S EX 1000|SET S v# EX 1000|SET S # KEEPTTL GET|DEL K|GEOADD Z # # a|PFMERGE P P|PFCOUNT P P",
];

/// A server without sockets, and its only session.
fn embedded() -> (Arc<Instance>, Session) {
    let instance = Arc::new(Instance::new(Arc::new(config(&[])), &TABLE));
    let session = Session::new(Rc::new(Worker::new(Arc::clone(&instance))));
    (instance, session)
}

/// Runs commands in a row, and returns their replies.
fn run(session: &mut Session, commands: &[u8]) -> Vec<Value> {
    session.receive(commands);
    let bytes = session.transmit();
    let (mut replies, mut at) = (Vec::new(), 0);
    while let Some((value, len)) = parse(&bytes[at..]).unwrap() {
        replies.push(value);
        at += len;
    }
    replies
}

fn ask(session: &mut Session, line: &str) -> Value {
    run(session, &request(&line.split(' ').collect::<Vec<_>>())).pop().expect("a reply")
}

/// A server that was given these bytes, none of which it has refused.
fn replayed(stream: &[u8]) -> Session {
    let (_, mut session) = embedded();
    for reply in run(&mut session, stream) {
        let values = if let Value::Array(values) = &reply { values.as_slice() } else { std::slice::from_ref(&reply) };
        if let Some(refused) = values.iter().find(|value| value.is_error()) {
            panic!("refused: {refused:?}\n{}", said(stream));
        }
    }
    session
}

fn said(stream: &[u8]) -> String {
    super::Reader::default().read(stream).0.join("\n")
}

#[test]
fn random_commands_are_replayed() {
    let templates: Vec<&str> =
        [windows::TEMPLATES, TEMPLATES].concat().iter().flat_map(|line| line.split('|')).collect();
    for seed in 0..SEEDS {
        let mut random = Random::new(seed * 2 + 1);
        let (instance, mut session) = embedded();
        instance.journal.turn_on(User::Aof, &instance.exclusive.stop().unwrap());
        let mut reader = instance.journal.reader(|| {});
        let mut stream = Vec::new();
        for _ in 0..COMMANDS {
            run(&mut session, &windows::command(&mut random, &templates));
            until("it waits no longer", || {
                session.receive(b"");
                !session.is_waiting()
            });
            let mut bytes = Vec::new();
            let offset = reader.take(&mut bytes, &mut Vec::new());
            assert_eq!(offset as usize, stream.len());
            stream.extend(bytes);
        }
        ask(&mut session, "DISCARD");
        let mut replayed = replayed(&stream);
        let streams = (0..4).map(|number| format!("XINFO GROUPS X{number}"));
        for question in ["DEBUG DIGEST", "SELECT 1", "DBSIZE"].map(str::to_owned).into_iter().chain(streams) {
            let (ours, theirs) = (ask(&mut session, &question), ask(&mut replayed, &question));
            assert_eq!(ours, theirs, "seed {seed}, {question}:\n{}", said(&stream));
        }
    }
}

#[test]
fn the_stream_has_the_order_of_the_locks() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 400;
    fn work(client: &mut Client, random: &mut Random) {
        for _ in 0..ROUNDS {
            let key = random.below(3);
            let line = match random.below(12) {
                0 => format!("APPEND s:{key} x"),
                1 => format!("LPUSH l:{key} {}", random.below(100)),
                2 => format!("RPOPLPUSH l:{key} l:{}", random.below(3)),
                3 => format!("BLPOP l:{key} 0.001"),
                4 => format!("SADD e:{key} {}", random.below(9)),
                5 => format!("SPOP e:{key} 2"),
                6 => format!("SET t:{key} v PX 3"),
                7 => format!("APPEND t:{key} x"),
                8 => format!("EVAL redis.call('RPUSH','l:{key}',redis.call('INCR','n'))redis.call('SPOP','e:{key}') 0"),
                9 => format!("COPY s:{key} s:{} REPLACE", random.below(3)),
                10 => {
                    for line in ["MULTI".to_owned(), format!("INCR n:{key}"), format!("RENAMENX s:{key} s:9")] {
                        client.ask(&line);
                    }
                    "EXEC".to_owned()
                }
                _ => format!("SETRANGE s:{key} {} y", random.below(20)),
            };
            let reply = client.ask(&line);
            assert!(!reply.is_error() || reply.text().contains("same"), "{line}: {reply:?}");
        }
    }
    let server = Server::shuffled();
    server.instance.journal.turn_on(User::Aof, &server.instance.exclusive.stop().unwrap());
    let mut reader = server.instance.journal.reader(|| {});
    let clients = (0..CLIENTS).map(|number| {
        let addr = server.addr;
        thread::spawn(move || work(&mut Client::connect(addr), &mut Random::new(number as u64 * 2 + 1)))
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());
    until("what expires is gone", || server.instance.database(0).expiring() == 0);
    let digest = server.connect().ask("DEBUG DIGEST");
    let mut stream = Vec::new();
    reader.take(&mut stream, &mut Vec::new());
    assert_eq!(ask(&mut replayed(&stream), "DEBUG DIGEST"), digest, "{}", said(&stream));
}

/// A waiting client gets its reply when its change is in the journal.
#[test]
fn sessions_know_where_their_changes_end() {
    let server = Server::start();
    let journal = &server.instance.journal;
    journal.turn_on(User::Aof, &server.instance.exclusive.stop().unwrap());
    let offset = |id: usize| {
        let client = &server.instance.clients()[id];
        client.journal_offset.load(std::sync::atomic::Ordering::Relaxed)
    };
    let (mut one, mut two) = (server.connect(), server.connect());
    one.ask("PING");
    two.ask("PING");
    one.ask("SET k v");
    let set = journal.offset();
    assert_eq!((offset(0), offset(1)), (set, 0));
    one.ask("GET k");
    two.send(&["BLPOP", "l", "0"]);
    crate::support::server::until_blocked(&server.instance, 1);
    assert_eq!(journal.offset(), set);
    one.ask("RPUSH l a");
    two.reply();
    let end = journal.offset();
    assert_eq!(offset(1), end);
    assert!(set < offset(0) && offset(0) < end);
}
