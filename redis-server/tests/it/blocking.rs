//! Commands that wait, with many clients on several workers: nothing is lost, doubled or served out of turn.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use crate::support::Random;
use crate::support::resp::Value;
use crate::support::server::{Client, Server, until_blocked};

fn two_workers() -> Server {
    Server::with(&[("workers", "2")])
}

fn bulk(text: impl ToString) -> Value {
    Value::Bulk(text.to_string().into_bytes())
}

/// The reply of BLPOP.
fn popped(key: &str, value: impl ToString) -> Value {
    Value::Array(vec![bulk(key), bulk(value)])
}

/// The number that a BLPOP has popped; `None` if it has waited in vain.
#[track_caller]
fn number(reply: &Value) -> Option<u32> {
    match reply {
        Value::NullArray | Value::NullBulk => None,
        Value::Array(pair) => number(&pair[1]),
        Value::Bulk(digits) => Some(std::str::from_utf8(digits).expect("digits").parse().expect("a number")),
        other => panic!("no element: {other:?}"),
    }
}

/// `count` clients that wait for `line`, one after the other.
fn waiting(server: &Server, count: i64, line: &str) -> Vec<Client> {
    let before = server.instance.blocked_clients(0);
    let wait = |number| {
        let mut client = server.connect();
        client.send(&line.split(' ').collect::<Vec<_>>());
        until_blocked(&server.instance, before + number);
        client
    };
    (1..=count).map(wait).collect()
}

#[test]
fn blocked_clients_are_served_in_order_of_arrival() {
    let server = two_workers();
    let one_by_one = |server: &Server| {
        for value in 0..50 {
            assert_eq!(server.connect().ask(&format!("RPUSH k {value}")), Value::Int(1));
        }
    };
    let at_once = |server: &Server| {
        let values: Vec<_> = (0..50).map(|value| value.to_string()).collect();
        assert_eq!(server.connect().ask(&format!("RPUSH k {}", values.join(" "))), Value::Int(50));
    };
    let pushes: [&dyn Fn(&Server); 2] = [&one_by_one, &at_once];
    for line in ["BLPOP k 0", "BLPOP k other third 0", "BLMPOP 0 2 other k LEFT COUNT 1"] {
        for push in pushes {
            let mut clients = waiting(&server, 50, line);
            push(&server);
            for (value, client) in clients.iter_mut().enumerate() {
                let expected = match line.starts_with("BLMPOP") {
                    true => Value::Array(vec![bulk("k"), Value::Array(vec![bulk(value)])]),
                    false => popped("k", value),
                };
                assert_eq!(client.reply(), expected, "{line}");
            }
            until_blocked(&server.instance, 0);
            assert_eq!(server.connect().ask("EXISTS k"), Value::Int(0));
        }
    }
}

#[test]
fn an_element_passes_through_a_chain_of_waiters() {
    let server = two_workers();
    let mut last = waiting(&server, 1, "BLPOP k20 0");
    let mut movers: Vec<_> =
        (0..20).rev().flat_map(|i| waiting(&server, 1, &format!("BLMOVE k{i} k{} RIGHT LEFT 0", i + 1))).collect();
    let mut client = server.connect();
    assert_eq!(client.ask("RPUSH k0 7"), Value::Int(1));
    movers.iter_mut().for_each(|mover| assert_eq!(mover.reply(), bulk(7)));
    assert_eq!(last[0].reply(), popped("k20", 7));
    assert_eq!(client.ask("DBSIZE"), Value::Int(0));
}

#[test]
fn a_ring_of_moves_keeps_every_element() {
    const KEYS: usize = 6;
    let server = two_workers();
    let mut client = server.connect();
    for token in 0..12 {
        client.ask(&format!("RPUSH k{} {token}", token % KEYS));
    }
    thread::scope(|scope| {
        for from in 0..KEYS {
            let mut client = server.connect();
            scope.spawn(move || {
                let line = format!("BLMOVE k{from} k{} LEFT RIGHT 0.2", (from + 1) % KEYS);
                let _moved = (0..500).take_while(|_| number(&client.ask(&line)).is_some()).count();
            });
        }
    });
    let mut left = Vec::new();
    for key in 0..KEYS {
        while let Some(token) = number(&client.ask(&format!("LPOP k{key}"))) {
            left.push(token);
        }
    }
    left.sort_unstable();
    assert!(left.into_iter().eq(0..12));
}

#[test]
fn a_deadline_that_races_with_a_push_loses_and_doubles_nothing() {
    const PAIRS: usize = 4;
    const ROUNDS: u32 = 2500;
    let server = two_workers();
    thread::scope(|scope| {
        for pair in 0..PAIRS {
            let (mut waiter, mut pusher) = (server.connect(), server.connect());
            let key = format!("k{pair}");
            let line = format!("BLPOP {key} 0.001");
            scope.spawn(move || {
                let mut expected = 0;
                while expected < ROUNDS {
                    if let Some(value) = number(&waiter.ask(&line)) {
                        assert_eq!(value, expected);
                        expected += 1;
                    }
                }
                assert_eq!(waiter.ask(&format!("LLEN {key}")), Value::Int(0));
            });
            scope.spawn(move || {
                let mut random = Random::new(pair as u64);
                for value in 0..ROUNDS {
                    // Near the deadline, on either side: that is what is tested.
                    thread::sleep(Duration::from_micros(900 + random.below(400) as u64));
                    pusher.ask(&format!("RPUSH k{pair} {value}"));
                }
            });
        }
    });
    until_blocked(&server.instance, 0);
}

#[test]
fn clients_that_go_while_they_wait_take_nothing_with_them() {
    let server = two_workers();
    for value in 0..100 {
        drop(waiting(&server, 3, "BLPOP k other 0"));
        until_blocked(&server.instance, 0);
        let mut client = server.connect();
        assert_eq!(client.ask(&format!("RPUSH k {value}")), Value::Int(1));
        assert_eq!(number(&client.ask("LPOP k")), Some(value));
    }
    let mut clients = waiting(&server, 2, "BLPOP k 0");
    drop(clients.remove(0));
    until_blocked(&server.instance, 1);
    server.connect().ask("RPUSH k 1");
    assert_eq!(clients[0].reply(), popped("k", 1));
}

#[test]
fn a_blocked_pop_precedes_later_pipelined_pops() {
    let server = two_workers();
    let mut others = waiting(&server, 1, "BLPOP k 0");
    let mut client = server.connect();
    client.send(&["RPUSH", "k", "1", "2"]);
    client.send(&["LPOP", "k"]);
    client.send(&["LPOP", "k"]);
    assert_eq!(client.reply(), Value::Int(2));
    assert_eq!(client.reply(), bulk(2));
    assert_eq!(client.reply(), Value::NullBulk);
    assert_eq!(others[0].reply(), popped("k", 1));
}

/// One of many clients that push, pop, move and wait at random. Returns what it pushed and what it popped.
fn hostile(mut client: Client, seed: u32) -> (BTreeSet<u32>, Vec<u32>) {
    let mut random = Random::new(seed.into());
    let (mut pushed, mut taken) = (BTreeSet::new(), Vec::new());
    for round in 0..800 {
        let mut key = || format!("k{}", random.below(5));
        let (a, b) = (key(), key());
        match random.below(7) {
            0 | 1 => {
                let values = [seed * 10_000 + round * 2, seed * 10_000 + round * 2 + 1];
                client.ask(&format!("RPUSH {a} {} {}", values[0], values[1]));
                pushed.extend(values);
            }
            2 | 3 => taken.extend(number(&client.ask(&format!("BLPOP {a} {b} 0.002")))),
            4 => {
                // Under its locks a transaction ends waits that others may be serving.
                let value = seed * 10_000 + 5000 + round;
                client.ask("MULTI");
                client.ask(&format!("RPUSH {a} {value}"));
                client.ask(&format!("CLIENT UNBLOCK {}", random.below(12)));
                client.ask("EXEC");
                pushed.insert(value);
            }
            5 => drop(client.ask(&format!("BLMOVE {a} {b} LEFT RIGHT 0.002"))),
            _ => taken.extend(number(&client.ask(&format!("LPOP {a}")))),
        }
    }
    (pushed, taken)
}

#[test]
fn hostile_neighbours_keep_every_element() {
    let server = two_workers();
    let ends: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (1..=8)
            .map(|seed| {
                let client = server.connect();
                scope.spawn(move || hostile(client, seed))
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let pushed: BTreeSet<_> = ends.iter().flat_map(|(pushed, _)| pushed.iter().copied()).collect();
    let mut taken: Vec<_> = ends.into_iter().flat_map(|(_, taken)| taken).collect();
    let mut client = server.connect();
    for key in 0..5 {
        while let Some(value) = number(&client.ask(&format!("LPOP k{key}"))) {
            taken.push(value);
        }
    }
    assert_eq!(taken.len(), pushed.len(), "nothing is doubled");
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), pushed, "nothing is lost");
    until_blocked(&server.instance, 0);
    assert!(server.instance.database(0).awaited_keys().is_empty());
}

/// `XREADGROUP … CLAIM`: nobody touches the stream, and what is pending becomes old enough.
#[test]
fn blocked_xreadgroup_claim_receives_entries_that_become_idle() {
    let server = two_workers();
    let mut client = server.connect();
    for line in [
        "XADD s 1 f v",
        "XADD s 2 f v",
        "XADD t 1 f v",
        "XGROUP CREATE s g 0",
        "XGROUP CREATE t g 0",
        "XGROUP CREATE u g 0 MKSTREAM",
    ] {
        client.ask(line);
    }
    client.ask("XREADGROUP GROUP g ann STREAMS s >");
    client.ask("XREADGROUP GROUP g ann STREAMS t >");
    // Three wait, two of them for the same; who came first gets all of it, and the second what that one keeps for too long.
    let claim = |consumer: &str, idle: u32, keys: &str| {
        let mut client = server.connect();
        let line = format!("XREADGROUP GROUP g {consumer} BLOCK 0 CLAIM {idle} STREAMS {keys}");
        let before = server.instance.blocked_clients(0);
        client.send(&line.split(' ').collect::<Vec<_>>());
        until_blocked(&server.instance, before + 1);
        client
    };
    let mut waiting = [claim("bob", 300, "s >"), claim("cid", 300, "s >"), claim("dan", 500, "u t > >")];
    let claimed = |reply: Value, key: &str| {
        let Value::Array(streams) = reply else { panic!("nothing claimed: {reply:?}") };
        let [Value::Array(stream)] = &streams[..] else { panic!("not one stream: {streams:?}") };
        assert_eq!(stream[0], bulk(key));
        let Value::Array(entries) = &stream[1] else { panic!("no entries: {stream:?}") };
        let counts = entries.iter().map(|entry| match entry {
            Value::Array(parts) => match &parts[2..] {
                [Value::Int(idle), Value::Int(count)] => (*idle >= 300, *count),
                other => panic!("no times: {other:?}"),
            },
            other => panic!("no entry: {other:?}"),
        });
        counts.collect::<Vec<_>>()
    };
    assert_eq!(claimed(waiting[0].reply(), "s"), [(true, 1), (true, 1)]);
    assert_eq!(claimed(waiting[1].reply(), "s"), [(true, 2), (true, 2)]);
    assert_eq!(claimed(waiting[2].reply(), "t"), [(true, 1)]);
    assert_eq!(server.instance.blocked_clients(0), 0);
}
