//! Events and counters of expired keys that are not removed yet.

use std::net::SocketAddr;

use crate::support::genuine::Genuine;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::until;

/// Commands, behind which is told what events they are to bring about where the key `K` has expired.
const CASES: &[(&[&str], &str)] = &[
    (&["GET K"], "expired K, keymiss K"),
    (&["EXISTS K K"], "expired K, keymiss K, keymiss K"),
    (&["MULTI", "GET K", "GET K", "EXEC"], "expired K, keymiss K, keymiss K"),
    (&["EVAL redis.call('get','K');redis.call('set','L',1) 0"], "expired K, keymiss K, new L, set L"),
    (&["BITOP NOT D K"], "expired K, keymiss K"),
    (&["SUNIONSTORE D K L"], "expired K, keymiss K, keymiss L"),
    (&["SCAN 0"], "expired K"),
    (&["DEL K"], "expired K"),
    (&["SET K v"], "expired K, new K, set K"),
    (&["PFADD K x"], "expired K, new K, pfadd K"),
    (&["PFMERGE K"], "expired K, keymiss K, new K, pfadd K"),
    (&["GEOSEARCH K FROMLONLAT 15 37 BYRADIUS 200 km"], "expired K, keymiss K"),
    (&["GEORADIUS K 15 37 200 km STORE D"], "expired K, keymiss K"),
    (&["XACK K g 1-1"], "expired K, keymiss K"),
    (&["XREADGROUP GROUP g c STREAMS K >"], "expired K, keymiss K"),
    (&["XCLAIM K g c 0 1-1"], "expired K, keymiss K"),
    (&["XAUTOCLAIM K g c 0 0"], "expired K, keymiss K"),
    (&["WATCH K", "MULTI", "PING", "EXEC"], ""),
    (&["WATCH K", "GET K", "MULTI", "PING", "EXEC"], "expired K, keymiss K"),
];

/// A server without active expiry, and somebody who listens.
struct Stage {
    client: Client,
    listener: Client,
}

impl Stage {
    fn at(addr: SocketAddr) -> Self {
        let (mut client, mut listener) = (Client::connect(addr), Client::connect(addr));
        client.ask("DEBUG SET-ACTIVE-EXPIRE 0");
        client.ask("CONFIG SET notify-keyspace-events EAmn");
        listener.ask("SUBSCRIBE end");
        listener.ask("PSUBSCRIBE __keyevent@0__:*");
        Self { client, listener }
    }

    fn now_ms(&mut self) -> u64 {
        let Value::Array(time) = self.client.ask("TIME") else { panic!("no time") };
        let [seconds, micros] = [0, 1].map(|at: usize| time[at].text().parse::<u64>().unwrap());
        seconds * 1000 + micros / 1000
    }

    /// A database with the expired key `K` alone.
    fn expired_key(&mut self) {
        let mut deadline = 0;
        // On a machine so busy that the time is over when it is set, the key is deleted, and does not expire.
        while self.now_ms() >= deadline {
            self.client.ask("FLUSHALL");
            deadline = self.now_ms() + 20;
            assert_eq!(self.client.ask("SET K v").text(), "OK");
            self.client.ask(&format!("PEXPIREAT K {deadline}"));
        }
        until("the key expires", || self.now_ms() > deadline);
        self.client.ask("CONFIG RESETSTAT");
        self.events();
    }

    /// The events since the last call.
    fn events(&mut self) -> String {
        self.client.ask("PUBLISH end now");
        let mut events = Vec::new();
        loop {
            let Value::Array(message) = self.listener.reply() else { panic!("no message") };
            if message[0].text() == "message" {
                return events.join(", ");
            }
            events.push(format!("{} {}", message[2].text().rsplit(':').next().unwrap(), message[3].text()));
        }
    }

    /// The reply to the last of these commands, and what the server counts: hits, misses, expired keys.
    fn run(&mut self, commands: &[&str]) -> (String, Vec<String>) {
        let last = commands.iter().map(|command| self.client.ask(command)).last().unwrap();
        let info = self.client.ask("INFO stats").text();
        let counted = ["keyspace_hits:", "keyspace_misses:", "expired_keys:"];
        let figures = counted.map(|name| info.lines().find(|line| line.starts_with(name)).unwrap().to_owned());
        (format!("{last:?}"), figures.to_vec())
    }
}

#[test]
fn expired_key_events_match_the_genuine_order() {
    let server = Server::start();
    let mut ours = Stage::at(server.addr);
    let mut genuine = Genuine::start(&[]);
    let mut theirs = genuine.as_mut().map(|genuine| Stage::at(genuine.listen()));
    for (commands, events) in CASES {
        ours.expired_key();
        let said = ours.run(commands);
        assert_eq!(ours.events(), *events, "{commands:?}");
        if let Some(theirs) = &mut theirs {
            theirs.expired_key();
            assert_eq!(said, theirs.run(commands), "{commands:?}");
            assert_eq!(theirs.events(), *events, "{commands:?} in the genuine server");
        }
    }
}

#[test]
fn an_expired_key_that_is_watched_is_as_good_as_absent() {
    let server = Server::start();
    let mut stage = Stage::at(server.addr);
    let mut other = server.connect();
    let cases: [(&[&str], &str); 4] = [
        (&["GET K"], "[Status"),
        (&["DEL K"], "[Status"),
        (&["SET K v"], "NullArray"),
        (&["GET K", "SET K v", "DEL K"], "NullArray"),
    ];
    for (commands, expected) in cases {
        stage.expired_key();
        stage.client.ask("WATCH K");
        commands.iter().for_each(|command| _ = other.ask(command));
        stage.client.ask("MULTI");
        stage.client.ask("PING");
        let said = format!("{:?}", stage.client.ask("EXEC"));
        assert!(said.contains(expected), "{commands:?}: {said}");
    }
}

#[test]
fn own_notifications_follow_the_whole_exec_reply() {
    let server = Server::start();
    let mut client = server.connect();
    client.ask("CONFIG SET notify-keyspace-events EA");
    client.ask("HELLO 3");
    client.ask("SUBSCRIBE __keyevent@0__:set");
    for command in ["MULTI", "SET a 1", "SET b 2"] {
        client.ask(command);
    }
    let Value::Array(replies) = client.ask("EXEC") else { panic!("no array") };
    assert_eq!(replies.iter().map(Value::text).collect::<Vec<_>>(), ["OK", "OK"]);
    for key in ["a", "b"] {
        let Value::Push(message) = client.reply() else { panic!("no message") };
        assert_eq!(message[2].text(), key);
    }
}
