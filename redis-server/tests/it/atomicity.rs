//! Hostile neighbours: whatever they do at the same time, no reader sees half of a command, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::support::resp::Value;
use crate::support::server::{Client, Server, until_blocked};
use crate::support::{Random, until};

/// Connections that work against each other.
const CLIENTS: usize = 8;

/// How long each test presses: `ATOMICITY_SECONDS`, or a little.
fn duration() -> Duration {
    let seconds = std::env::var("ATOMICITY_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    Duration::from_secs_f64(seconds.unwrap_or(1.5))
}

/// Asks; an error is a failure.
#[track_caller]
fn ask(client: &mut Client, line: &str) -> Value {
    let value = client.ask(line);
    assert!(!value.is_error(), "{line}: {value:?}");
    value
}

/// Runs `work` on all connections until the time is over; each returns what it has counted.
fn press<T: Send + 'static>(server: &Server, work: fn(&mut Client, &mut Random, usize, &AtomicBool) -> T) -> Vec<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let addr = server.addr;
    let spawn = |number: usize| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            let mut random = Random::new(0x9e37_79b9 * (number as u64 + 1));
            work(&mut Client::connect(addr), &mut random, number, &stop)
        })
    };
    let threads: Vec<_> = (0..CLIENTS).map(spawn).collect();
    thread::sleep(duration());
    until("the connections are on several workers", || server.handle().moved() > 10);
    stop.store(true, Relaxed);
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// [`press`], again and again until more than `least` has been counted: a busy machine does little in the time.
fn press_for(least: usize, server: &Server, work: fn(&mut Client, &mut Random, usize, &AtomicBool) -> usize) {
    let mut count = 0;
    until("enough is done for a test", || {
        count += press(server, work).iter().sum::<usize>();
        count > least
    });
}

/// The elements of an array reply as text.
#[track_caller]
fn texts(value: Value) -> Vec<String> {
    let Value::Array(values) = value else { panic!("no array: {value:?}") };
    values.iter().map(Value::text).collect()
}

#[track_caller]
fn number(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("no number: {value:?}") };
    *number
}

#[test]
fn mset_is_seen_whole_or_not_at_all() {
    const KEYS: usize = 20;
    fn work(client: &mut Client, random: &mut Random, number: usize, stop: &AtomicBool) -> usize {
        let mut read = 0;
        for round in 0.. {
            if stop.load(Relaxed) {
                break;
            }
            // Each in an order of its own: locks taken in the order of the words would deadlock.
            let mut keys: Vec<_> = (0..KEYS).map(|key| format!("m:{key}")).collect();
            (1..KEYS).for_each(|at| keys.swap(at, random.below(at + 1)));
            if number.is_multiple_of(2) {
                let value = format!("{number}:{round}");
                ask(client, &format!("MSET {} {value}", keys.join(&format!(" {value} "))));
                continue;
            }
            let values = texts(ask(client, &format!("MGET {}", keys.join(" "))));
            assert!(values.iter().all(|value| *value == values[0]), "torn: {values:?}");
            read += 1;
        }
        read
    }
    let server = Server::shuffled();
    press_for(100, &server, work);
}

#[test]
fn renamed_keys_are_neither_lost_nor_doubled() {
    const NAMES: usize = 6;
    /// Tokens among the names; fewer, so that there are free places to go to.
    const TOKENS: usize = 3;
    fn work(client: &mut Client, random: &mut Random, number: usize, stop: &AtomicBool) -> usize {
        let mut checked = 0;
        while !stop.load(Relaxed) {
            let (from, to) = (random.below(NAMES), random.below(NAMES));
            if !number.is_multiple_of(4) {
                // A name that is free is taken: nothing is overwritten, so nothing may vanish.
                let reply = client.ask(&format!("RENAMENX r:{from} r:{to}"));
                assert!(!reply.is_error() || reply.text() == "ERR no such key", "{reply:?}");
                continue;
            }
            let names: Vec<_> = (0..NAMES).map(|name| format!("r:{name}")).collect();
            let values = texts(ask(client, &format!("MGET {}", names.join(" "))));
            let mut tokens: Vec<_> = values.iter().filter(|value| value.starts_with("token")).collect();
            tokens.sort();
            assert_eq!(tokens, ["token0", "token1", "token2"], "{values:?}");
            checked += 1;
        }
        checked
    }
    let server = Server::shuffled();
    let mut client = server.connect();
    (0..TOKENS).for_each(|token| drop(ask(&mut client, &format!("SET r:{token} token{token}"))));
    press_for(50, &server, work);
}

#[test]
fn elements_going_round_stay_as_many() {
    const PLACES: usize = 4;
    const ELEMENTS: usize = 50;
    fn work(client: &mut Client, random: &mut Random, number: usize, stop: &AtomicBool) -> usize {
        let mut checked = 0;
        while !stop.load(Relaxed) {
            let (from, to) = (random.below(PLACES), random.below(PLACES));
            match number % 4 {
                0 => drop(ask(client, &format!("LMOVE l:{from} l:{to} LEFT RIGHT"))),
                1 => drop(ask(client, &format!("LMOVE l:{from} l:{to} RIGHT LEFT"))),
                2 => drop(ask(client, &format!("SMOVE s:{from} s:{to} {}", random.below(ELEMENTS)))),
                _ => {
                    // A transaction sees all places at one moment.
                    ask(client, "MULTI");
                    (0..PLACES).for_each(|place| drop(ask(client, &format!("LRANGE l:{place} 0 -1"))));
                    (0..PLACES).for_each(|place| drop(ask(client, &format!("SMEMBERS s:{place}"))));
                    let Value::Array(places) = ask(client, "EXEC") else { panic!("no transaction") };
                    for places in [&places[..PLACES], &places[PLACES..]] {
                        let mut elements: Vec<_> = places.iter().flat_map(|place| texts(place.clone())).collect();
                        elements.sort();
                        let count = elements.len();
                        elements.dedup();
                        assert_eq!((count, elements.len()), (ELEMENTS, ELEMENTS), "lost or doubled");
                    }
                    checked += 1;
                }
            }
        }
        checked
    }
    let server = Server::shuffled();
    let mut client = server.connect();
    for element in 0..ELEMENTS {
        ask(&mut client, &format!("RPUSH l:{} {element}", element % PLACES));
        ask(&mut client, &format!("SADD s:{} {element}", element % PLACES));
    }
    press_for(20, &server, work);
}

#[test]
fn transfers_under_watch_keep_the_sum() {
    const ACCOUNTS: usize = 5;
    const EACH: i64 = 1000;
    fn work(client: &mut Client, random: &mut Random, number: usize, stop: &AtomicBool) -> usize {
        let mut done = 0;
        while !stop.load(Relaxed) {
            if number == 0 {
                let accounts: Vec<_> = (0..ACCOUNTS).map(|account| format!("a:{account}")).collect();
                let balances = texts(ask(client, &format!("MGET {}", accounts.join(" "))));
                let sum: i64 = balances.iter().map(|balance| balance.parse::<i64>().unwrap()).sum();
                assert_eq!(sum, ACCOUNTS as i64 * EACH, "{balances:?}");
                continue;
            }
            let from = random.below(ACCOUNTS);
            let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
            ask(client, &format!("WATCH a:{from} a:{to}"));
            let balance = |value: Value| value.text().parse::<i64>().unwrap();
            let (low, high) =
                (balance(ask(client, &format!("GET a:{from}"))), balance(ask(client, &format!("GET a:{to}"))));
            ask(client, "MULTI");
            // Written, not added: only WATCH keeps a neighbour's transfer from being overwritten.
            ask(client, &format!("SET a:{from} {}", low - 1));
            ask(client, &format!("SET a:{to} {}", high + 1));
            done += usize::from(ask(client, "EXEC") != Value::NullArray);
        }
        done
    }
    let server = Server::shuffled();
    let mut client = server.connect();
    (0..ACCOUNTS).for_each(|account| drop(ask(&mut client, &format!("SET a:{account} {EACH}"))));
    press_for(50, &server, work);
}

#[test]
fn counters_count_every_step() {
    fn work(client: &mut Client, random: &mut Random, _: usize, stop: &AtomicBool) -> i64 {
        let mut steps = 0;
        while !stop.load(Relaxed) {
            let field = random.below(3);
            ask(client, "INCR n");
            ask(client, &format!("HINCRBY h f{field} 1"));
            ask(client, &format!("ZINCRBY z 1 m{field}"));
            steps += 1;
        }
        steps
    }
    let server = Server::shuffled();
    let steps: i64 = press(&server, work).iter().sum();
    let mut client = server.connect();
    let sum = |values: Vec<String>| values.iter().map(|value| value.parse::<i64>().unwrap()).sum::<i64>();
    assert_eq!(ask(&mut client, "GET n").text(), steps.to_string());
    assert_eq!(sum(texts(ask(&mut client, "HVALS h"))), steps);
    assert_eq!(sum(texts(ask(&mut client, "ZMSCORE z m0 m1 m2"))), steps);
}

#[test]
fn waiters_are_served_in_the_order_of_their_coming() {
    let server = Server::shuffled();
    for kind in ["BLPOP", "BZPOPMIN", "BLMOVE"] {
        let mut waiters: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        for (number, waiter) in waiters.iter_mut().enumerate() {
            let line =
                if kind == "BLMOVE" { "BLMOVE q out LEFT RIGHT 0".to_owned() } else { format!("{kind} other q 0") };
            waiter.send(&line.split(' ').collect::<Vec<_>>());
            // Each is known to wait before the next one comes.
            until_blocked(&server.instance, number as i64 + 1);
        }
        let mut client = server.connect();
        let elements: Vec<_> = (0..CLIENTS).map(|element| element.to_string()).collect();
        let pushed = match kind {
            "BZPOPMIN" => elements.iter().map(|element| format!(" {element} {element}")).collect(),
            _ => format!(" {}", elements.join(" ")),
        };
        let push = if kind == "BZPOPMIN" { "ZADD" } else { "RPUSH" };
        assert_eq!(number(&ask(&mut client, &format!("{push} q{pushed}"))), CLIENTS as i64);
        for (waiter, element) in waiters.iter_mut().zip(&elements) {
            let reply = match waiter.reply() {
                Value::Array(values) => values[1].text(),
                other => other.text(),
            };
            assert_eq!(reply, *element, "{kind}");
        }
        assert_eq!(number(&ask(&mut client, "EXISTS q")), 0, "{kind}");
        ask(&mut client, "DEL out");
    }
}

#[test]
fn every_element_reaches_one_waiter() {
    fn work(client: &mut Client, random: &mut Random, number: usize, stop: &AtomicBool) -> Vec<String> {
        let mut seen = Vec::new();
        let mut round = 0;
        while !stop.load(Relaxed) {
            if number.is_multiple_of(2) {
                ask(client, &format!("RPUSH b:{} {number}:{round}", random.below(3)));
                seen.push(format!("{number}:{round}"));
                round += 1;
            } else if let Value::Array(values) = ask(client, "BLPOP b:0 b:1 b:2 0.02") {
                seen.push(values[1].text());
            }
        }
        seen
    }
    let server = Server::shuffled();
    let mut seen = vec![Vec::new(); CLIENTS];
    until("enough is pushed for a test", || {
        seen.iter_mut().zip(press(&server, work)).for_each(|(seen, more)| seen.extend(more));
        seen.iter().step_by(2).flatten().count() > 100
    });
    let mut client = server.connect();
    let left = (0..3).flat_map(|list| texts(ask(&mut client, &format!("LRANGE b:{list} 0 -1"))));
    let mut taken: Vec<_> = seen.iter().skip(1).step_by(2).flatten().cloned().chain(left).collect();
    let mut pushed: Vec<_> = seen.iter().step_by(2).flatten().cloned().collect();
    taken.sort();
    pushed.sort();
    assert!(taken == pushed, "{} pushed, {} taken or left", pushed.len(), taken.len());
}
