//! The `redis` crate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redis::{Commands, Connection, ErrorKind, RedisResult, ServerErrorKind, Value};

use crate::support::server::{Server, until_blocked};

fn connect(server: &Server, protocol: &str) -> Connection {
    let url = format!("redis://{}/?protocol={protocol}", server.addr);
    redis::Client::open(url).unwrap().get_connection().unwrap()
}

fn both(check: impl Fn(&Server, &str)) {
    for protocol in ["resp2", "resp3"] {
        check(&Server::start(), protocol);
    }
}

#[test]
fn values() {
    both(|server, protocol| {
        let mut r = connect(server, protocol);
        r.set_ex::<_, _, ()>("s", "v", 100).unwrap();
        assert_eq!(r.get("s"), Ok("v".to_owned()));
        assert_eq!(r.get("none"), Ok(None::<String>));
        assert_eq!(r.incr("n", 42), Ok(42));
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
    });
}

#[test]
fn pipelines_transactions_scans() {
    both(|server, protocol| {
        let mut r = connect(server, protocol);
        let mut pipe = redis::pipe();
        for number in 0..1000 {
            pipe.set(format!("p:{number}"), number).ignore();
        }
        pipe.query::<()>(&mut r).unwrap();
        let found: BTreeSet<String> = r.scan_match("p:*").unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 1000);
        let (n, text): (i64, String) = redis::pipe().atomic().incr("n", 1).get("n").query(&mut r).unwrap();
        assert_eq!((n, text.as_str()), (1, "1"));
        let mut other = connect(server, protocol);
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
    });
}

#[test]
fn blocking_and_messages() {
    both(|server, protocol| {
        let mut waiter = connect(server, protocol);
        let waiting = std::thread::spawn(move || waiter.blpop::<_, (String, String)>("later", 10.0));
        until_blocked(&server.instance, 1);
        let mut r = connect(server, protocol);
        r.rpush::<_, _, ()>("later", "x").unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(("later".to_owned(), "x".to_owned())));
        let mut subscriber = connect(server, protocol);
        subscriber.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut pubsub = subscriber.as_pubsub();
        pubsub.psubscribe("n*").unwrap();
        assert_eq!(r.publish("news", "hello"), Ok(1));
        let message = pubsub.get_message().unwrap();
        assert_eq!((message.get_channel_name(), message.get_payload()), ("news", Ok("hello".to_owned())));
        let error = redis::cmd("NOSUCH").query::<Value>(&mut r).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server(ServerErrorKind::ResponseError));
    });
}
