//! No client stops another: turns, slow calls beside the workers, and those who have to be alone.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use redis_server::clients::client::{ClientShared, flag};

use crate::support::resp::{Value, request};
use crate::support::server::{Client, Server, until_blocked};
use crate::support::until;

fn ok() -> Value {
    Value::Status(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[track_caller]
fn is_error(value: &Value, start: &str) {
    let Value::Error(text) = value else { panic!("{value:?} is no error") };
    assert!(text.starts_with(start.as_bytes()), "{}", text.escape_ascii());
}

/// The server's state of a client.
fn seen(server: &Server, client: &Client) -> Option<Arc<ClientShared>> {
    let addr = client.stream.local_addr().unwrap().to_string();
    server.instance.clients().into_iter().find(|client| client.addr == addr)
}

fn awaits(server: &Server, client: &Client) -> bool {
    seen(server, client).is_some_and(|client| client.has_flag(flag::AWAITS))
}

/// A server whose worker's clients share it with a MIGRATE of `k` to a host that takes the connection and never answers.
struct Stuck {
    server: Server,
    client: Client,
    peer: TcpStream,
}

impl Stuck {
    fn with(settings: &[(&str, &str)]) -> Self {
        Self::of(Server::with(settings))
    }

    fn of(server: Server) -> Self {
        let hole = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = server.connect();
        assert_eq!(client.ask("MSET k v other o"), ok());
        let port = hole.local_addr().unwrap().port().to_string();
        client.send(&["MIGRATE", "127.0.0.1", &port, "k", "0", "3600000"]);
        let (peer, _) = hole.accept().unwrap();
        Self { server, client, peer }
    }

    /// The other host hangs up.
    fn end(mut self) -> Server {
        drop(self.peer);
        is_error(&self.client.reply(), "IOERR");
        assert_eq!(self.client.ask("GET k"), bulk("v"), "the key has stayed");
        self.server
    }
}

#[test]
fn a_stuck_migration_blocks_only_its_key() {
    let stuck = Stuck::with(&[("workers", "1")]);
    let mut other = stuck.server.connect();
    assert_eq!(other.ask("PING"), Value::Status(b"PONG".to_vec()));
    assert_eq!(other.ask("SET other x"), ok());
    let Value::Bulk(list) = other.ask("CLIENT LIST") else { panic!("a list") };
    assert!(String::from_utf8_lossy(&list).contains("cmd=migrate"), "{}", list.escape_ascii());
    // In one window, of which only the first can run.
    let pipelined = [request(&["GET", "other"]), request(&["GET", "k"]), request(&["GET", "other"])].concat();
    let mut waiting = stuck.server.connect();
    waiting.stream.write_all(&pipelined).unwrap();
    assert_eq!(waiting.reply(), bulk("x"));
    until("the second waits", || awaits(&stuck.server, &waiting));
    assert_eq!(other.ask("SET other y"), ok());
    assert!(awaits(&stuck.server, &waiting), "its key is still on its way");
    let _server = stuck.end();
    assert_eq!(waiting.reply(), bulk("v"));
    assert_eq!(waiting.reply(), bulk("y"), "behind the one before it");
}

/// Commands on other keys of a busy key's shard, and walks through the shard, do not wait.
#[test]
fn neighbours_of_a_slow_calls_keys_do_not_wait() {
    let server = Server::with(&[("workers", "1"), ("shards", "2")]);
    let mut waiter = server.connect();
    waiter.send(&["BLMOVE", "queue", "k", "LEFT", "RIGHT", "0"]);
    until_blocked(&server.instance, 1);
    let stuck = Stuck::of(server);
    let mut other = stuck.server.connect();
    for key in 0..20 {
        assert_eq!(other.ask(&format!("SET n{key} {key}")), ok());
        assert_eq!(other.ask(&format!("GET n{key}")), bulk(&key.to_string()));
    }
    assert_eq!(other.ask("DBSIZE"), Value::Int(22));
    assert_eq!(other.ask("KEYS k"), Value::Array(vec![bulk("k")]));
    let found = Value::Array(vec![bulk("k"), bulk("other")]);
    let Value::Array(scanned) = other.ask("SCAN 0 COUNT 1000 TYPE string") else { panic!("a cursor and keys") };
    let Value::Array(mut keys) = scanned[1].clone() else { panic!("keys") };
    keys.retain(|key| matches!(key, Value::Bulk(name) if !name.starts_with(b"n")));
    keys.sort_by_key(|key| format!("{key:?}").len());
    assert_eq!(Value::Array(keys), found);
    // A waiter for the busy key is not served by a call that has locked its shard for another key.
    assert_eq!(other.ask("RPUSH queue x"), Value::Int(1));
    let _server = stuck.end();
    is_error(&waiter.reply(), "WRONGTYPE");
}

/// Four kinds of clients at the same keys: whatever the order, no value is seen half changed, no key is missed, and none of
/// the neighbours' changes is lost.
#[test]
fn slow_calls_are_atomic_for_other_clients() {
    const SIZE: usize = 3000;
    const ROUNDS: usize = 60;
    let server = Server::with(&[("workers", "2"), ("shards", "2")]);
    let mut setup = server.connect();
    for (key, score) in [("a", "1"), ("b", "2")] {
        let mut words = vec!["ZADD".to_owned(), key.to_owned()];
        words.extend((0..SIZE).flat_map(|i| [score.to_owned(), format!("m{i}")]));
        setup.send(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(setup.reply(), Value::Int(SIZE as i64));
    }
    assert_eq!(setup.ask("ZUNIONSTORE t 1 a"), Value::Int(SIZE as i64));
    // All members or none, all of one score.
    let is_whole = |value: &Value| {
        let Value::Array(elements) = value else { panic!("{value:?}") };
        assert!(elements.is_empty() || elements.len() == 2 * SIZE, "{} of {}", elements.len(), 2 * SIZE);
        assert!(elements.chunks(2).all(|pair| pair[1] == elements[1]), "two scores");
    };
    std::thread::scope(|scope| {
        for source in ["a", "b"] {
            let mut client = server.connect();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    assert_eq!(client.ask(&format!("ZUNIONSTORE t 1 {source}")), Value::Int(SIZE as i64));
                    assert_eq!(client.ask(&format!("ZUNIONSTORE e 1 {source}")), Value::Int(SIZE as i64));
                    client.ask(&format!("PEXPIRE e {}", round % 3));
                    client.ask(&format!("ZUNIONSTORE shared 2 {source} {source} WEIGHTS 1 0"));
                    client.ask("ZREMRANGEBYRANK shared 0 -1");
                }
            });
        }
        let mut reader = server.connect();
        scope.spawn(move || {
            for _ in 0..2 * ROUNDS {
                is_whole(&reader.ask("ZRANGE t 0 -1 WITHSCORES"));
                assert_eq!(reader.ask("ZCARD t"), Value::Int(SIZE as i64));
                is_whole(&reader.ask("ZRANGE e 0 -1 WITHSCORES"));
                is_whole(&reader.ask("ZRANGE shared 0 -1 WITHSCORES"));
            }
        });
        let mut walker = server.connect();
        scope.spawn(move || {
            for _ in 0..4 * ROUNDS {
                assert_eq!(walker.ask("KEYS t"), Value::Array(vec![bulk("t")]));
                let scanned = format!("{:?}", walker.ask("SCAN 0 COUNT 1000 TYPE zset"));
                let [t, a] = ["t", "a"].map(|key| scanned.contains(&format!("{:?}", bulk(key))));
                assert!(t && a, "{scanned}");
            }
        });
        let mut neighbour = server.connect();
        scope.spawn(move || {
            for round in 1..=10 * ROUNDS as i64 {
                for key in 0..8 {
                    assert_eq!(neighbour.ask(&format!("INCR n{key}")), Value::Int(round));
                }
            }
        });
    });
    setup.ask("DEL e shared t a b n0 n1 n2 n3 n4 n5 n6 n7");
    assert_eq!((setup.ask("KEYS *"), setup.ask("DBSIZE")), (Value::Array(Vec::new()), Value::Int(0)));
}

#[test]
fn fast_commands_run_while_scripts_await_a_migration() {
    let stuck = Stuck::with(&[("workers", "2"), ("busy-reply-threshold", "0")]);
    let (mut script, mut other, mut slow) = (stuck.server.connect(), stuck.server.connect(), stuck.server.connect());
    script.send(&["EVAL", "return redis.call('set', 'other', 'script')", "0"]);
    until("the script waits", || awaits(&stuck.server, &script));
    assert_eq!(other.ask("GET other"), bulk("o"));
    slow.send(&["KEYS", "o*"]);
    until("a slow call waits for the script", || awaits(&stuck.server, &slow));
    assert_eq!(other.ask("SET other x"), ok());
    let _server = stuck.end();
    assert_eq!(script.reply(), ok());
    assert_eq!(slow.reply(), Value::Array(vec![bulk("other")]));
    assert_eq!(other.ask("GET other"), bulk("script"));
}

#[test]
fn a_script_that_waits_too_long_is_told_so() {
    let stuck = Stuck::with(&[("workers", "1"), ("busy-reply-threshold", "20")]);
    let mut script = stuck.server.connect();
    for words in [["EVAL", "return 1", "0"], ["EVAL", "return 2", "0"]] {
        script.send(&words);
        is_error(&script.reply(), "BUSY a slow command is at work");
    }
    assert_eq!(script.ask("GET other"), bulk("o"));
    let mut gone = stuck.server.connect();
    gone.send(&["EVAL", "return 1", "0"]);
    until("it waits", || awaits(&stuck.server, &gone));
    drop(gone);
    let server = stuck.end();
    assert_eq!(server.connect().ask("EVAL return(redis.call('get','k')) 0"), bulk("v"), "nobody waits any more");
    assert_eq!(server.connect().ask("KEYS k"), Value::Array(vec![bulk("k")]));
}

#[test]
fn a_client_killed_during_migrate_disappears_at_once() {
    let stuck = Stuck::with(&[("workers", "1")]);
    let Stuck { server, mut client, peer } = stuck;
    let id = seen(&server, &client).unwrap().id;
    let mut other = server.connect();
    assert_eq!(other.ask(&format!("CLIENT KILL ID {id}")), Value::Int(1));
    assert_eq!(client.until_closed(), "");
    assert_eq!(server.instance.clients().len(), 1);
    drop(peer);
    assert_eq!(other.ask("GET k"), bulk("v"));
}

#[test]
fn the_server_ends_during_a_slow_call() {
    let Stuck { server, mut client, peer } = Stuck::with(&[("workers", "1")]);
    drop(server);
    assert_eq!(client.until_closed(), "");
    drop(peer);
}

/// Elements of the list `l`, so many that whatever reads all of it is slow.
const ELEMENTS: usize = 200_000;

fn server_with_a_long_list() -> (Server, Client) {
    let server = Server::with(&[("workers", "1"), ("slowlog-log-slower-than", "0")]);
    let mut client = server.connect();
    let elements: Vec<String> = (0..ELEMENTS).map(|i| format!("{i:06}")).collect();
    for some in elements.chunks(1000) {
        let words: Vec<&str> = ["RPUSH", "l"].into_iter().chain(some.iter().map(String::as_str)).collect();
        client.send(&words);
        client.reply();
    }
    (server, client)
}

fn is_the_list(value: Value) {
    let Value::Array(values) = value else { panic!("a list") };
    assert_eq!(values.len(), ELEMENTS);
    assert!(values.iter().enumerate().all(|(i, value)| *value == bulk(&format!("{i:06}"))));
}

#[test]
fn slow_calls_are_answered_in_their_order_while_others_are_served() {
    let (server, mut client) = server_with_a_long_list();
    let mut other = server.connect();
    let words: [&[&str]; 5] =
        [&["SORT", "l"], &["SET", "k", "v"], &["LRANGE", "l", "0", "-1"], &["LLEN", "l"], &["GET", "k"]];
    client.stream.write_all(&words.map(request).concat()).unwrap();
    until("a slow call runs", || awaits(&server, &client));
    assert_eq!(other.ask("GET nothing"), Value::NullBulk);
    assert!(awaits(&server, &client), "the answer came while the slow call was at work");
    is_the_list(client.reply());
    assert_eq!(client.reply(), ok());
    is_the_list(client.reply());
    assert_eq!(client.reply(), Value::Int(ELEMENTS as i64));
    assert_eq!(client.reply(), bulk("v"));
    for (command, calls) in [("sort", 1), ("lrange", 1), ("llen", 1)] {
        let Value::Bulk(stats) = other.ask("INFO commandstats") else { panic!("text") };
        let line = format!("cmdstat_{command}:calls={calls},");
        assert!(String::from_utf8_lossy(&stats).contains(&line), "{line}");
    }
    let slow = format!("{:?}", other.ask("SLOWLOG GET 20"));
    let sort = format!("{:?}", Value::Array(vec![bulk("SORT"), bulk("l")]));
    assert!(slow.contains(&sort), "the slow log has it: {slow}");
}

#[test]
fn transactions_with_slow_calls_are_atomic_and_whole() {
    let (server, mut client) = server_with_a_long_list();
    let mut other = server.connect();
    for line in ["MULTI", "SET k 1", "LRANGE l 0 -1", "DEL l", "SELECT 3", "SET k 3", "EXEC"] {
        client.send(&line.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(client.reply(), ok());
    for _ in 0..5 {
        assert_eq!(client.reply(), Value::Status(b"QUEUED".to_vec()));
    }
    let Value::Array(mut replies) = client.reply() else { panic!("EXEC answers with its replies") };
    is_the_list(replies.remove(1));
    assert_eq!(replies, [ok(), Value::Int(1), ok(), ok()]);
    assert_eq!(client.ask("GET k"), bulk("3"), "the session has come back with its database");
    assert_eq!(other.ask("EXISTS l"), Value::Int(0));
}

#[test]
fn half_closed_connections_still_receive_replies() {
    let (_server, mut client) = server_with_a_long_list();
    client.stream.write_all(&[request(&["LRANGE", "l", "0", "-1"]), request(&["PING"])].concat()).unwrap();
    client.stream.shutdown(Shutdown::Write).unwrap();
    is_the_list(client.reply());
    assert_eq!(client.reply(), Value::Status(b"PONG".to_vec()));
    assert_eq!(client.until_closed(), "");
}

#[test]
fn a_slow_sort_store_serves_blocked_clients() {
    let (server, mut client) = server_with_a_long_list();
    let mut waiter = server.connect();
    waiter.send(&["BLMOVE", "sorted", "target", "LEFT", "RIGHT", "0"]);
    until_blocked(&server.instance, 1);
    assert_eq!(client.ask("SORT l BY nosort STORE sorted"), Value::Int(ELEMENTS as i64));
    assert_eq!(waiter.reply(), bulk("000000"));
    assert_eq!(client.ask("LRANGE target 0 -1"), Value::Array(vec![bulk("000000")]));
}

#[test]
fn others_have_their_turn_before_all_of_a_long_pipeline_has_run() {
    let server = Server::with(&[("workers", "1")]);
    let (mut pipe, mut other) = (server.connect(), server.connect());
    const COMMANDS: i64 = 400_000;
    // Commands behind a blocking one have arrived at the server when it ends.
    pipe.send(&["BLPOP", "q", "0"]);
    until_blocked(&server.instance, 1);
    pipe.stream.write_all(&request(&["INCR", "n"]).repeat(COMMANDS as usize)).unwrap();
    other.ask("LPUSH q x");
    let Value::Bulk(seen) = other.ask("GET n") else { panic!("some of them have run") };
    let seen: i64 = String::from_utf8(seen).unwrap().parse().unwrap();
    assert!(seen < COMMANDS, "all of them have run before the next client's turn");
    assert!(matches!(pipe.reply(), Value::Array(_)));
    for n in 1..=COMMANDS {
        assert_eq!(pipe.reply(), Value::Int(n));
    }
}

/// Scripts of one pipeline run one by one: others have their turn between two of them.
#[test]
fn others_have_their_turn_between_pipelined_scripts() {
    const SCRIPTS: usize = 20;
    const SCRIPT: &str = "local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end \
                          local start = now() while now() - start < 20000 do end return redis.call('INCR', KEYS[1])";
    let server = Server::with(&[("workers", "1")]);
    let (mut many, mut other) = (server.connect(), server.connect());
    many.stream.write_all(&request(&["EVAL", SCRIPT, "1", "n"]).repeat(SCRIPTS)).unwrap();
    let mut count = 0;
    until("the first script has run", || {
        let Value::Bulk(text) = other.ask("GET n") else { return false };
        count = String::from_utf8(text).unwrap().parse().unwrap();
        true
    });
    assert!(count < SCRIPTS, "all scripts ran before anybody else");
    for number in 1..=SCRIPTS {
        assert_eq!(many.reply(), Value::Int(number as i64));
    }
}

#[test]
fn cheap_commands_on_large_values_stay_on_workers() {
    let (server, mut client) = server_with_a_long_list();
    let threads = || server.instance.stats.workers().len();
    let before = threads();
    for line in ["LRANGE l 0 9", "LRANGE l -3 -1", "LPOP l 2", "LINDEX l 100000", "EXISTS l", "SCAN 0 COUNT 100"] {
        client.ask(line);
    }
    assert_eq!(threads(), before, "none of them took another thread");
    client.ask("LRANGE l 0 -1");
    assert_eq!(threads(), before + 1);
    client.ask("SORT l");
    assert_eq!(threads(), before + 1, "one thread is enough for calls one after the other");
}

/// A string that is to become megabytes longer, or to be copied, is made so beside the worker, alone and among others in a
/// pipeline.
#[test]
fn strings_grow_much_beside_the_workers() {
    const LEN: usize = 3_000_000;
    let text = "t".repeat(LEN);
    let (setrange, setbit, bitfield) = (
        format!("SETRANGE k {} x", LEN - 1),
        format!("SETBIT k {} 1", LEN * 8 - 1),
        format!("BITFIELD k SET u8 #{} 7", LEN - 1),
    );
    let (set, append) = (format!("SET k {text}"), format!("APPEND k {text}"));
    let grow = [
        ("", &*setrange),
        ("", &setbit),
        ("", &bitfield),
        ("SET k t", &append),
        (&set, "SETRANGE k 0 x"),
        (&set, "SETBIT k 0 1"),
    ];
    for (before, line) in grow {
        for is_pipelined in [false, true] {
            let server = Server::with(&[("workers", "1")]);
            let mut client = server.connect();
            for line in
                [before, "SETBIT short 1000 1", "APPEND short s", "SETRANGE short 500 s", "BITFIELD short SET u8 100 1"]
            {
                client.ask(if line.is_empty() { "PING" } else { line });
            }
            let threads = || server.instance.stats.workers().len();
            let on_workers = threads();
            let words: Vec<&str> = line.split(' ').collect();
            let among: &[&[&str]] =
                &[&["SET", "a", "1"], &["APPEND", "a", "2"], &words, &["APPEND", "a", "3"], &["GET", "a"]];
            let sent = if is_pipelined { among } else { &among[2..3] };
            client.stream.write_all(&sent.iter().map(|words| request(words)).collect::<Vec<_>>().concat()).unwrap();
            let replies: Vec<_> = sent.iter().map(|_| client.reply()).collect();
            if is_pipelined {
                assert_eq!(
                    (&replies[0], &replies[1], &replies[3]),
                    (&ok(), &Value::Int(2), &Value::Int(3)),
                    "{line:.30}"
                );
                assert_eq!(replies[4], bulk("123"));
            }
            assert_eq!(threads(), on_workers + 1, "{line:.30}");
            let Value::Int(len) = client.ask("STRLEN k") else { panic!("a length") };
            assert!(len as usize >= LEN, "{line:.30}: {len}");
        }
    }
}

/// Offsets beyond any string are refused, also where an estimate of the work would exceed 64 bits.
#[test]
fn offsets_beyond_any_string_are_refused() {
    let server = Server::with(&[("workers", "1")]);
    let mut client = server.connect();
    for line in [
        "BITFIELD k SET u8 #2305843009213693951 1",
        "BITFIELD k SET u8 9223372036854775807 1",
        "SETBIT k 9223372036854775807 1",
        "SETRANGE k 9223372036854775807 x",
    ] {
        is_error(&client.ask(line), "ERR");
    }
    assert_eq!(client.ask("EXISTS k"), Value::Int(0));
}

/// A large argument is copied beside the worker, in a transaction, too, unless it becomes the value as it came.
#[test]
fn large_arguments_are_copied_beside_the_workers() {
    let text = "t".repeat(3_000_000);
    for (words, is_slow) in [
        (&["HSET", "h", "f", &text][..], true),
        (&["RPUSH", "l", &text], true),
        (&["ECHO", &text], true),
        (&["MSET", "a", &text, "b", &text, "c", &text], true),
        (&["SET", "s", &text], false),
        (&["SETEX", "s", "100", &text], false),
        (&["MSET", "a", "1", "b", &text], false),
        (&["APPEND", "new", &text], false),
    ] {
        for is_queued in [false, true] {
            let server = Server::with(&[("workers", "1")]);
            let mut client = server.connect();
            let threads = || server.instance.stats.workers().len();
            let on_workers = threads();
            if is_queued {
                client.ask("MULTI");
            }
            client.send(words);
            let reply = client.reply();
            let reply = if is_queued { client.ask("EXEC") } else { reply };
            assert!(!matches!(reply, Value::Error(_)), "{} {is_queued}: {reply:?}", words[0]);
            assert_eq!(threads() > on_workers, is_slow, "{} {} {is_queued}", words[0], words[1].len());
            let held = format!(
                "{:?}",
                [client.ask("STRLEN s"), client.ask("HSTRLEN h f"), client.ask("STRLEN b"), client.ask("STRLEN new")]
            );
            assert!(["ECHO", "RPUSH"].contains(&words[0]) || held.contains("3000000"), "{held}");
        }
    }
}

/// Long lists of clients and channels are made beside the workers, and are right.
#[test]
fn lists_of_many_clients_and_channels_are_made_beside_the_workers() {
    const CLIENTS: usize = 70;
    let server = Server::with(&[("workers", "1")]);
    let mut client = server.connect();
    let threads = || server.instance.stats.workers().len();
    let on_workers = threads();
    let lines = |value: Value| {
        let Value::Bulk(text) = value else { panic!("a list") };
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
    };
    assert_eq!((lines(client.ask("CLIENT LIST")), client.ask("PUBSUB CHANNELS")), (1, Value::Array(vec![])));
    assert_eq!(threads(), on_workers);
    let mut others: Vec<_> = (1..CLIENTS).map(|_| server.connect()).collect();
    others.iter_mut().for_each(|other| assert_eq!(other.ask("PING"), Value::Status(b"PONG".to_vec()), "it is known"));
    assert_eq!(lines(client.ask("CLIENT LIST")), CLIENTS);
    assert_eq!(threads(), on_workers + 1);
    let server = Server::with(&[("workers", "1")]);
    let threads = || server.instance.stats.workers().len();
    let on_workers = threads();
    let [mut client, mut subscriber] = [(); 2].map(|()| server.connect());
    let names: Vec<String> = (0..3000).map(|number| format!("channel:{number}")).collect();
    for some in names.chunks(1000) {
        subscriber.send(&["SUBSCRIBE"].into_iter().chain(some.iter().map(String::as_str)).collect::<Vec<_>>());
        some.iter().for_each(|_| drop(subscriber.reply()));
    }
    assert_eq!(threads(), on_workers);
    let Value::Array(mut found) = client.ask("PUBSUB CHANNELS") else { panic!("a list") };
    assert_eq!(threads(), on_workers + 1);
    found.sort_by_key(Value::text);
    let mut expected: Vec<_> = names.iter().map(|name| bulk(name)).collect();
    expected.sort_by_key(Value::text);
    assert!(found == expected);
    others.clear();
}

/// That is what it is for: those who watch a server see it as one that answers nobody.
#[test]
fn debug_sleep_stops_all_clients() {
    let server = Server::with(&[("enable-debug-command", "yes"), ("workers", "2")]);
    let [mut sleeper, mut other] = [(); 2].map(|()| server.connect());
    sleeper.send(&["DEBUG", "SLEEP", "0.5"]);
    until("it sleeps", || server.instance.exclusive.is_stopped());
    let began = std::time::Instant::now();
    assert_eq!(other.ask("PING"), Value::Status(b"PONG".to_vec()));
    // It began to sleep a moment before.
    assert!(began.elapsed().as_millis() >= 300, "{:?}", began.elapsed());
    assert_eq!(sleeper.reply(), ok());
}
