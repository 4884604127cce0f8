//! Clients that wait for a key with commands of different types, and all that can make the key: who is served, in which order, and what is
//! left, judged by the genuine server.

use std::net::SocketAddr;

use crate::support::genuine::Genuine;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::until;

/// Commands that wait for `k`.
const WAITERS: &[&str] = &[
    "BLPOP k 0",
    "BRPOP k 0",
    "BLMOVE k moved LEFT RIGHT 0",
    "BRPOPLPUSH k moved 0",
    "BLMPOP 0 1 k LEFT COUNT 2",
    "BZPOPMIN k 0",
    "BZPOPMAX k 0",
    "BZMPOP 0 1 k MIN COUNT 2",
    "XREAD BLOCK 0 STREAMS k 0",
    "XREAD BLOCK 0 STREAMS k $",
    "XREADGROUP GROUP g c BLOCK 0 STREAMS k >",
];

/// One of each type, for those who wait second.
const OTHERS: &[&str] = &["BLPOP k 0", "BZPOPMIN k 0", "XREAD BLOCK 0 STREAMS k 0"];

/// Commands of those who come when `k` is there. They find something behind it, if it is passed by.
const LATE: &[&str] = &[
    "BLPOP k list 0",
    "BLMPOP 0 2 k list LEFT",
    "BZPOPMIN k sorted 0",
    "BZMPOP 0 2 k sorted MIN",
    "XREAD BLOCK 0 STREAMS k stream 0 0",
];

/// Commands that make `k` of a list, a sorted set and a stream, which are `list`, `sorted` and `stream`, or of nothing. Between ` / `.
const MAKERS: &[&str] = &[
    "RPUSH k a b c",
    "LPUSH k a b c",
    "LMOVE list k LEFT RIGHT",
    "RPOPLPUSH list k",
    "SORT list ALPHA STORE k",
    "RENAME list k",
    "RENAMENX list k",
    "COPY list k",
    "COPY list k REPLACE",
    "SELECT 9 / RPUSH k a b / MOVE k 0 / SELECT 0",
    "SELECT 9 / RPUSH k a b / SELECT 0 / SWAPDB 0 9",
    "MULTI / RPUSH k a / LPUSH k b / EXEC",
    "MULTI / SET k v / DEL k / RPUSH k a b / EXEC",
    "MULTI / RPUSH k a / DEL k / ZADD k 1 a 2 b / EXEC",
    "MULTI / ZADD k 1 a / DEL k / RPUSH k a b / EXEC",
    "EVAL redis.call('RPUSH','k','a','b') 1 k",
    "EVAL redis.call('RPUSH','k','a')redis.call('DEL','k')redis.call('XADD','k','1-1','f','v') 1 k",
    "ZADD k 1 a 2 b 3 c",
    "ZINCRBY k 1 a",
    "ZUNIONSTORE k 1 sorted",
    "ZINTERSTORE k 1 sorted",
    "ZDIFFSTORE k 1 sorted",
    "ZRANGESTORE k sorted 0 -1",
    "GEOADD k 1 1 a",
    "GEOSEARCHSTORE k geo FROMLONLAT 1 1 BYRADIUS 9 km",
    "RENAME sorted k",
    "COPY sorted k",
    "XADD k 7-1 f v",
    "XGROUP CREATE k h 0 MKSTREAM",
    "RENAME stream k",
    "COPY stream k",
    "SET k v",
    "SADD k a b",
    "HSET k f v",
];

/// A server, and somebody who does all but wait.
struct Side {
    addr: SocketAddr,
    control: Client,
}

impl Side {
    fn new(addr: SocketAddr) -> Self {
        Self { addr, control: Client::connect(addr) }
    }

    fn ask(&mut self, line: &str) -> Value {
        self.control.ask(line)
    }

    /// A client whose command the server has taken: it is answered, or waits. With its id.
    fn waiter(&mut self, line: &str) -> (Client, String) {
        let mut client = Client::connect(self.addr);
        let Value::Int(id) = client.ask("CLIENT ID") else { panic!("an id is a number") };
        client.send(&line.split(' ').collect::<Vec<_>>());
        let command = format!(" cmd={} ", line.split(' ').next().unwrap_or_default().to_lowercase());
        until("the command is taken", || self.ask(&format!("CLIENT LIST ID {id}")).text().contains(&command));
        (client, id.to_string())
    }

    /// Returns all replies, and the remaining data.
    fn play(&mut self, lines: [&str; 4]) -> Vec<Value> {
        let [first, second, maker, late] = lines;
        self.ask("FLUSHALL");
        for line in ["RPUSH list z y", "ZADD sorted 5 m 6 n", "XADD stream 3-1 f v", "GEOADD geo 1 1 a"] {
            self.ask(line);
        }
        if first.starts_with("XREADGROUP") {
            self.ask("XGROUP CREATE k g $ MKSTREAM");
        }
        let mut clients = [first, second].map(|line| self.waiter(line)).into_iter().collect::<Vec<_>>();
        let mut seen: Vec<_> = maker.split(" / ").map(|line| self.make(line)).collect();
        clients.extend([late, late].map(|line| self.waiter(line)));
        for (mut client, id) in clients {
            self.ask(&format!("CLIENT UNBLOCK {id} TIMEOUT"));
            seen.push(client.reply());
        }
        let questions = ["TYPE k", "LRANGE k 0 -1", "ZRANGE k 0 -1", "XLEN k", "LRANGE moved 0 -1", "DBSIZE"];
        seen.extend(questions.map(|line| self.ask(line)));
        seen
    }

    fn make(&mut self, line: &str) -> Value {
        // A script is one word.
        let words: Vec<_> = line.split(' ').collect();
        self.control.send(&words);
        self.control.reply()
    }
}

#[test]
fn waiters_of_other_types_are_passed_by() {
    let Some(mut genuine) = Genuine::start(&[]) else { return };
    let server = Server::with(&[("workers", "1")]);
    let (mut ours, mut theirs) = (Side::new(server.addr), Side::new(genuine.listen()));
    let mut different = Vec::new();
    for (at, first) in WAITERS.iter().enumerate() {
        for (maker, late) in MAKERS.iter().flat_map(|maker| LATE.iter().map(move |late| (maker, late))) {
            let lines = [*first, OTHERS[at % OTHERS.len()], *maker, *late];
            let (ours, theirs) = (ours.play(lines), theirs.play(lines));
            if ours != theirs {
                different.push(format!("{lines:?}\n  ours:   {ours:?}\n  theirs: {theirs:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}
