//! MIGRATE between our server and a genuine one, in both directions, and from one of ours to another.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::support::genuine::Genuine;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::until;

/// A server that keys come from or go to.
enum Side {
    Ours(Server),
    Genuine { addr: SocketAddr, _process: Genuine },
}

impl Side {
    fn ours(settings: &[(&str, &str)]) -> Option<Self> {
        Some(Self::Ours(Server::with(settings)))
    }

    fn genuine(settings: &[(&str, &str)]) -> Option<Self> {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut genuine = Genuine::start(&settings)?;
        let addr = genuine.listen();
        Some(Self::Genuine { addr, _process: genuine })
    }

    fn addr(&self) -> SocketAddr {
        match self {
            Self::Ours(server) => server.addr,
            Self::Genuine { addr, .. } => *addr,
        }
    }

    fn connect(&self) -> Client {
        Client::connect(self.addr())
    }
}

type Start = fn(&[(&str, &str)]) -> Option<Side>;

/// Calls `check` with source and target in all directions that can be had.
fn in_all_directions(target_settings: &[(&str, &str)], check: fn(&Side, &Side)) {
    let directions: [(Start, Start); 3] =
        [(Side::ours, Side::ours), (Side::ours, Side::genuine), (Side::genuine, Side::ours)];
    for (source, target) in directions {
        if let (Some(source), Some(target)) = (source(&[]), target(target_settings)) {
            check(&source, &target);
        }
    }
}

/// Sends MIGRATE: `rest` is what follows host and port.
#[track_caller]
fn migrate(client: &mut Client, target: SocketAddr, rest: &str) -> String {
    let (host, port) = (target.ip().to_string(), target.port().to_string());
    let rest = rest.split(' ').map(|word| if word == "\"\"" { "" } else { word });
    let words: Vec<&str> = ["MIGRATE", &host, &port].into_iter().chain(rest).collect();
    client.send(&words);
    client.reply().text()
}

/// Keys of every type, some in both of their encodings.
fn fill(client: &mut Client) -> Vec<&'static str> {
    let lines = [
        "SET text hello",
        "SET number 12345",
        &format!("SET long {}", "x".repeat(200_000)),
        "SETBIT bits 1000 1",
        "PFADD hll a b c",
        "RPUSH list a b 3",
        "SADD ints 1 2 3",
        "SADD set a b c",
        "HSET hash f v g 7",
        &format!("HSET table f {}", "y".repeat(500)),
        "ZADD zset 1 a 2.5 b",
        "GEOADD geo 13.361389 38.115556 Palermo",
        "XADD stream 1-1 f v",
        "XADD stream 2-1 g w",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
        "PEXPIRE text 100000",
        "PEXPIRE hash 200000",
    ];
    for line in lines {
        assert!(!client.ask(line).is_error(), "{line}");
    }
    vec!["text", "number", "long", "bits", "hll", "list", "ints", "set", "hash", "table", "zset", "geo", "stream"]
}

fn digest(client: &mut Client, keys: &[&str]) -> Value {
    client.ask(&format!("DEBUG DIGEST-VALUE {}", keys.join(" ")))
}

#[test]
fn every_type_arrives_as_it_was() {
    in_all_directions(&[], |source, target| {
        let (mut here, mut there) = (source.connect(), target.connect());
        let keys = fill(&mut here);
        let before = digest(&mut here, &keys);
        let all = keys.join(" ");
        assert_eq!(migrate(&mut here, target.addr(), &format!("\"\" 0 5000 COPY KEYS {all} missing")), "OK");
        assert_eq!(digest(&mut there, &keys), before);
        assert_eq!(digest(&mut here, &keys), before, "a copy leaves everything");
        let busy = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
        assert_eq!(migrate(&mut here, target.addr(), "number 0 5000"), busy);
        assert_eq!(migrate(&mut here, target.addr(), &format!("\"\" 0 5000 REPLACE KEYS {all}")), "OK");
        assert_eq!(digest(&mut there, &keys), before);
        assert_eq!(here.ask("DBSIZE").text(), "0");
        for (key, most) in [("text", 100_000), ("hash", 200_000)] {
            let Value::Int(left) = there.ask(&format!("PTTL {key}")) else { panic!("PTTL is a number") };
            assert!(left > most / 2 && left <= most, "{key}: {left}");
        }
        assert_eq!(there.ask("PTTL number").text(), "-1");
        assert_eq!(there.ask("XPENDING stream group").shape(), "*[: $ *[*[$]]]");
    });
}

#[test]
fn keys_refused_by_the_target_stay() {
    in_all_directions(&[], |source, target| {
        let (mut here, mut there) = (source.connect(), target.connect());
        here.ask("MSET a 1 b 2 c 3");
        there.ask("SET b there");
        let busy = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
        assert_eq!(migrate(&mut here, target.addr(), "\"\" 0 5000 KEYS a b c"), busy);
        assert_eq!(
            here.ask("MGET a b c"),
            Value::Array(vec![Value::NullBulk, Value::Bulk(b"2".into()), Value::NullBulk])
        );
        assert_eq!(there.ask("GET b").text(), "there");
        let range = "ERR Target instance replied with error: ERR DB index is out of range";
        assert_eq!(migrate(&mut here, target.addr(), "b 99 5000"), range);
        assert_eq!(here.ask("GET b").text(), "2");
        assert_eq!(migrate(&mut here, target.addr(), "b 5 5000"), "OK");
        there.ask("SELECT 5");
        assert_eq!(there.ask("GET b").text(), "2");
        assert_eq!(migrate(&mut here, target.addr(), "b 5 5000"), "NOKEY");
    });
}

#[test]
fn many_keys_go_at_once_and_in_transactions_and_scripts() {
    in_all_directions(&[], |source, target| {
        let (mut here, mut there) = (source.connect(), target.connect());
        let keys: Vec<String> = (0..5000).map(|number| format!("key:{number}")).collect();
        for keys in keys.chunks(500) {
            let pairs: Vec<String> = keys.iter().map(|key| format!("{key} {}", "v".repeat(100))).collect();
            here.ask(&format!("MSET {}", pairs.join(" ")));
        }
        assert_eq!(migrate(&mut here, target.addr(), &format!("\"\" 0 5000 KEYS {}", keys.join(" "))), "OK");
        assert_eq!(here.ask("DBSIZE").text(), "0");
        assert_eq!(there.ask("DBSIZE").text(), "5000");
        here.ask("MSET x 1 y 2");
        here.ask("MULTI");
        assert_eq!(migrate(&mut here, target.addr(), "x 0 5000"), "QUEUED");
        assert_eq!(here.ask("EXEC"), Value::Array(vec![Value::Status(b"OK".into())]));
        let port = target.addr().port().to_string();
        let script = "return redis.call('MIGRATE', '127.0.0.1', ARGV[1], KEYS[1], 0, 5000)";
        here.send(&["EVAL", script, "1", "y", &port]);
        assert_eq!(here.reply().text(), "OK");
        assert_eq!(there.ask("EXISTS x y").text(), "2");
        assert_eq!(here.ask("EXISTS x y").text(), "0");
    });
}

#[test]
fn a_target_may_want_a_password() {
    in_all_directions(&[("requirepass", "secret")], |source, target| {
        let (mut here, mut there) = (source.connect(), target.connect());
        assert_eq!(there.ask("AUTH secret").text(), "OK");
        assert_eq!(there.ask("ACL SETUSER mover on >word ~* +@all").text(), "OK");
        here.ask("MSET a 1 b 2");
        let refused = |said: String, why: &str| {
            assert!(said.starts_with(&format!("ERR Target instance replied with error: {why}")), "{said}");
        };
        refused(migrate(&mut here, target.addr(), "a 0 5000 AUTH wrong"), "WRONGPASS");
        refused(migrate(&mut here, target.addr(), "a 0 5000"), "NOAUTH");
        assert_eq!(here.ask("EXISTS a b").text(), "2");
        assert_eq!(migrate(&mut here, target.addr(), "a 0 5000 AUTH secret"), "OK");
        assert_eq!(migrate(&mut here, target.addr(), "b 0 5000 COPY AUTH2 mover word"), "OK");
        assert_eq!(there.ask("EXISTS a b").text(), "2");
        if matches!(source, Side::Ours(_)) {
            // The genuine server would use the connection that others have logged in.
            refused(migrate(&mut here, target.addr(), "b 0 5000 REPLACE"), "NOAUTH");
        }
    });
}

#[test]
fn migrate_times_out_on_a_silent_target() {
    for start in [Side::ours as Start, Side::genuine] {
        let Some(source) = start(&[]) else { continue };
        let mut here = source.connect();
        here.ask("SET k v");
        // Connections wait in its queue for ever.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let said = migrate(&mut here, silent.local_addr().unwrap(), "k 0 50");
        assert_eq!(said, "IOERR error or timeout reading to target instance");
        let gone = silent.local_addr().unwrap();
        drop(silent);
        assert_eq!(migrate(&mut here, gone, "k 0 50"), "IOERR error or timeout writing to target instance");
        here.send(&["MIGRATE", "", "1", "k", "0", "50"]);
        assert_eq!(here.reply().text(), "IOERR error or timeout connecting to the client");
        assert_eq!(here.ask("GET k").text(), "v");
    }
}

#[test]
fn a_connection_is_kept_and_may_be_lost() {
    in_all_directions(&[], |source, target| {
        let (mut here, mut there) = (source.connect(), target.connect());
        let cached = |here: &mut Client, count: usize| {
            let info = here.ask("INFO stats").text();
            assert!(info.contains(&format!("migrate_cached_sockets:{count}\r\n")), "{info}");
        };
        cached(&mut here, 0);
        for round in 0..3 {
            here.ask("SET k v");
            assert_eq!(migrate(&mut here, target.addr(), "k 0 5000 REPLACE"), "OK", "round {round}");
            cached(&mut here, 1);
            if round == 1 {
                there.ask("CLIENT KILL TYPE normal SKIPME yes");
                until("only we are connected", || there.ask("CLIENT LIST").text().lines().count() == 1);
            }
        }
    });
}

/// Keys that others count in while they are carried off again and again: no count is lost.
#[test]
fn no_change_is_lost() {
    const WRITERS: usize = 3;
    const COUNTS: usize = 400;
    let (source, target) = (Server::with(&[("workers", "2")]), Server::start());
    let mut carried = 0;
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = source.connect();
                    (0..COUNTS).for_each(|_| assert!(!client.ask("INCR count").is_error()));
                })
            })
            .collect();
        let (mut here, mut there) = (source.connect(), target.connect());
        loop {
            let is_over = writers.iter().all(thread::ScopedJoinHandle::is_finished);
            match migrate(&mut here, target.addr, "count 0 5000").as_str() {
                "OK" => carried += there.ask("GETDEL count").text().parse::<usize>().unwrap(),
                said => assert_eq!(said, "NOKEY"),
            }
            if is_over {
                break;
            }
        }
    });
    assert_eq!(carried, WRITERS * COUNTS);
}
