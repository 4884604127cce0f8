//! Scripts that run too long, take too much, or meet others.

use std::thread;

use crate::support::resp::Value;
use crate::support::server::{Client, Server, until_blocked};
use crate::support::until;

fn eval(client: &mut Client, script: &str) -> Value {
    client.send(&["EVAL", script, "0"]);
    client.reply()
}

#[track_caller]
fn is_error(value: &Value, start: &str) {
    let Value::Error(text) = value else { panic!("{value:?} is no error") };
    let text = String::from_utf8_lossy(text);
    assert!(text.contains(start), "{text}");
}

/// A server on which a script runs too long, and the client that waits for it.
fn busy(workers: &str, words: &[&str]) -> (Server, Client) {
    let server = Server::with(&[("workers", workers), ("busy-reply-threshold", "10")]);
    let mut client = server.connect();
    client.send(words);
    until("a busy server", || server.instance.exclusive.is_busy());
    (server, client)
}

#[test]
fn a_script_for_ever_is_killed_from_any_connection() {
    for workers in ["1", "2"] {
        for script in ["while true do end", "while true do pcall(function() while true do end end) end"] {
            let (server, mut stuck) = busy(workers, &["EVAL", script, "0"]);
            let mut others: Vec<Client> = (0..4).map(|_| server.connect()).collect();
            for other in &mut others {
                is_error(&other.ask("GET k"), "BUSY Redis is busy running a script. You can only call SCRIPT KILL");
                is_error(&other.ask("FUNCTION KILL"), "BUSY");
                assert_eq!(other.ask("MULTI"), Value::Status(b"OK".to_vec()));
                is_error(&other.ask("SET k v"), "BUSY");
            }
            assert_eq!(server.connect().ask("SCRIPT KILL"), Value::Status(b"OK".to_vec()));
            is_error(&stuck.reply(), "Script killed by user with SCRIPT KILL");
            is_error(&others[0].ask("EXEC"), "EXECABORT");
            assert_eq!(stuck.ask("PING"), Value::Status(b"PONG".to_vec()));
            is_error(&stuck.ask("SCRIPT KILL"), "NOTBUSY");
        }
    }
}

#[test]
fn a_transaction_with_a_script_is_interrupted_too() {
    let server = Server::with(&[("workers", "1"), ("busy-reply-threshold", "10")]);
    let (mut stuck, mut other) = (server.connect(), server.connect());
    stuck.ask("MULTI");
    stuck.ask("SELECT 3");
    stuck.send(&["EVAL", "while true do end", "0"]);
    stuck.reply();
    stuck.ask("SET k v");
    stuck.send(&["EXEC"]);
    until("a busy server", || server.instance.exclusive.is_busy());
    is_error(&other.ask("PING"), "BUSY");
    other.ask("SCRIPT KILL");
    let Value::Array(replies) = stuck.reply() else { panic!("EXEC answers with its replies") };
    is_error(&replies[1], "Script killed");
    assert_eq!(replies[2], Value::Status(b"OK".to_vec()));
    assert_eq!(stuck.ask("GET k"), Value::Bulk(b"v".to_vec()), "the database that it has selected stays");
}

#[test]
fn a_script_that_wrote_is_unkillable_but_finishes() {
    let bounded = "redis.call('set','k','v') for i = 1, 30000000 do end return 'done'";
    let (server, mut stuck) = busy("1", &["EVAL", bounded, "0"]);
    is_error(&server.connect().ask("SCRIPT KILL"), "UNKILLABLE");
    assert_eq!(stuck.reply(), Value::Bulk(b"done".to_vec()));
}

#[test]
fn the_server_ends_although_a_script_does_not() {
    let (server, stuck) = busy("1", &["EVAL", "while true do pcall(function() while true do end end) end", "0"]);
    drop(stuck);
    drop(server);
}

#[test]
fn a_client_that_leaves_does_not_end_its_script() {
    let (server, stuck) = busy("1", &["EVAL", "for i = 1, 30000000 do end redis.call('set','k','v')", "0"]);
    drop(stuck);
    until("the end of the script", || !server.instance.exclusive.is_stopped());
    assert_eq!(server.connect().ask("GET k"), Value::Bulk(b"v".to_vec()));
}

#[test]
fn memory_is_bounded() {
    let server = Server::with(&[("script-memory-limit", "16mb")]);
    let mut client = server.connect();
    for script in [
        "local t = {} while true do t[#t+1] = string.rep('x', 1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 100000000)",
    ] {
        is_error(&eval(&mut client, script), "not enough memory");
        assert_eq!(eval(&mut client, "return 1"), Value::Int(1));
    }
    is_error(&eval(&mut client, "local function f(n) return n .. f(n) end return f('x')"), "stack overflow");
}

#[test]
fn waiters_are_served_behind_a_script() {
    let server = Server::start();
    let (mut waiting, mut client) = (server.connect(), server.connect());
    waiting.send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    assert_eq!(eval(&mut client, "redis.call('rpush','l','a','b') return redis.call('llen','l')"), Value::Int(2));
    assert_eq!(waiting.reply(), Value::Array(vec![Value::Bulk(b"l".to_vec()), Value::Bulk(b"a".to_vec())]));
}

#[test]
fn scripts_are_atomic() {
    let server = Server::shuffled();
    let script = "local a = tonumber(redis.call('get','a') or 0) redis.call('set','a',a+1) redis.call('incr','b') \
        return redis.call('get','a') == redis.call('get','b') and 1 or 0";
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..300 {
                    assert_eq!(eval(&mut client, script), Value::Int(1));
                    client.ask("MGET a b");
                }
            });
        }
    });
    assert_eq!(server.connect().ask("GET a"), Value::Bulk(b"1200".to_vec()));
}

/// As in Redis 7.4: 500 scripts of EVAL are kept, those that were used last; what SCRIPT LOAD has brought stays.
#[test]
fn old_scripts_of_eval_make_room_for_new_ones() {
    let server = Server::with(&[("script-memory-limit", "4mb")]);
    let mut client = server.connect();
    let sha = |client: &mut Client, script: &str| {
        client.send(&["SCRIPT", "LOAD", script]);
        client.reply().text()
    };
    let loaded = sha(&mut client, "return 'loaded'");
    // SCRIPT LOAD behind EVAL makes it stay too.
    assert_eq!(eval(&mut client, "return 'both'"), Value::Bulk(b"both".to_vec()));
    let both = sha(&mut client, "return 'both'");
    assert_eq!(eval(&mut client, "return 'used'"), Value::Bulk(b"used".to_vec()));
    for n in 0..2000 {
        // Of a size of which the limit bears some hundred.
        let script = format!("local text = '{n}{}' return {n}", "x".repeat(4000));
        assert_eq!(eval(&mut client, &script), Value::Int(n), "the cache is no reason to fail");
        assert_eq!(eval(&mut client, "return 'used'"), Value::Bulk(b"used".to_vec()));
    }
    let info = client.ask("INFO memory").text();
    let count = info.lines().find_map(|line| line.strip_prefix("number_of_cached_scripts:")).unwrap();
    assert!(count.parse::<usize>().unwrap() <= 502, "{count} scripts are cached");
    let exists = client.ask(&format!("SCRIPT EXISTS {loaded} {both}"));
    assert_eq!(exists, Value::Array(vec![Value::Int(1), Value::Int(1)]));
    for (sha, text) in [(loaded, "loaded"), (both, "both")] {
        assert_eq!(client.ask(&format!("EVALSHA {sha} 0")), Value::Bulk(text.into()));
    }
}
