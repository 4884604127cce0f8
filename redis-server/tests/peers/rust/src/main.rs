//! The `redis` crate against a server: `peer PORT 2|3`, `peer sentinel PORT`, and `peer readme URL`.

mod readme;
mod sentinel;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use std::{env, thread};

use redis::{Commands, Connection, ErrorKind, RedisResult, ServerErrorKind, Value};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [first, second] = &arguments[..] else { panic!("peer PORT 2|3, peer sentinel PORT, or peer readme URL") };
    match first.as_str() {
        "sentinel" => {
            println!("ok, {}", sentinel::follow(second));
            return;
        }
        "readme" => readme::example(second).expect("the example runs"),
        port => {
            let url = format!("redis://127.0.0.1:{port}/?protocol=resp{second}");
            values(&url);
            pipelines_transactions_scans(&url);
            blocking_and_messages(&url);
        }
    }
    println!("ok");
}

fn connect(url: &str) -> Connection {
    redis::Client::open(url).unwrap().get_connection().unwrap()
}

fn values(url: &str) {
    let mut r = connect(url);
    r.set_ex::<_, _, ()>("s", "v", 100).unwrap();
    assert_eq!(r.get("s"), Ok("v".to_owned()));
    assert_eq!(r.get("none"), Ok(None::<String>));
    assert_eq!(r.incr("number", 42), Ok(42));
    assert_eq!(r.hset_multiple("h", &[("a", 1), ("b", 2)]), Ok(()));
    assert_eq!(r.hgetall("h"), Ok(BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)])));
    assert_eq!(r.rpush("l", &[1, 2, 3]), Ok(3));
    assert_eq!(r.lrange("l", 0, -1), Ok(vec![1, 2, 3]));
    assert_eq!(r.sadd("set", &["a", "b"]), Ok(2));
    assert_eq!(r.smembers("set"), Ok(BTreeSet::from(["a".to_owned(), "b".to_owned()])));
    assert_eq!(r.zadd_multiple("z", &[(1.0, "a"), (2.5, "b")]), Ok(2));
    assert_eq!(r.zrange_withscores("z", 0, -1), Ok(vec![("a".to_owned(), 1.0), ("b".to_owned(), 2.5)]));
    let error = redis::cmd("LPUSH").arg("s").arg("x").query::<Value>(&mut r).unwrap_err();
    assert_eq!((error.code(), error.kind()), (Some("WRONGTYPE"), ErrorKind::Extension));
}

fn pipelines_transactions_scans(url: &str) {
    let mut r = connect(url);
    let mut pipe = redis::pipe();
    for number in 0..1000 {
        pipe.set(format!("p:{number}"), number).ignore();
    }
    pipe.query::<()>(&mut r).unwrap();
    let found: BTreeSet<String> = r.scan_match("p:*").unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len(), 1000);
    let (n, text): (i64, String) = redis::pipe().atomic().incr("n", 1).get("n").query(&mut r).unwrap();
    assert_eq!((n, text.as_str()), (1, "1"));
    let mut other = connect(url);
    let mut tries = 0;
    let result: RedisResult<(i64,)> = redis::transaction(&mut r, &["n"], |r, pipe| {
        tries += 1;
        let n: i64 = r.get("n")?;
        if tries == 1 {
            other.set::<_, _, ()>("n", 10)?;
        }
        pipe.set("n", n + 1).ignore().get("n").query(r)
    });
    assert_eq!((result, tries), (Ok((11,)), 2));
}

fn blocking_and_messages(url: &str) {
    let mut r = connect(url);
    let mut waiter = connect(url);
    let waiting = thread::spawn(move || waiter.blpop::<_, (String, String)>("later", 10.0));
    let end = Instant::now() + Duration::from_secs(30);
    while !redis::cmd("INFO").arg("clients").query::<String>(&mut r).unwrap().contains("blocked_clients:1\r\n") {
        assert!(Instant::now() < end, "BLPOP does not wait");
        thread::sleep(Duration::from_millis(2));
    }
    r.rpush::<_, _, ()>("later", "x").unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(("later".to_owned(), "x".to_owned())));
    let mut subscriber = connect(url);
    subscriber.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut pubsub = subscriber.as_pubsub();
    pubsub.psubscribe("n*").unwrap();
    assert_eq!(r.publish("news", "hello"), Ok(1));
    let message = pubsub.get_message().unwrap();
    assert_eq!((message.get_channel_name(), message.get_payload()), ("news", Ok("hello".to_owned())));
    let error = redis::cmd("NOSUCH").query::<Value>(&mut r).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
}
