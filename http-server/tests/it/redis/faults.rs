//! A Redis that goes, comes, and stalls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::support::{Front, Genuine};

/// Clients that ask at the same time.
const CLIENTS: usize = 16;

/// The clients' counts.
#[derive(Default)]
struct Seen {
    right: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
}

/// Every request asks for something of its own: an answer to another one cannot go unseen.
fn ask_for_own(front: &Front, client: usize, seen: &Seen) {
    let mut http = front.connect();
    let mut number = 0;
    while !seen.stop.load(Relaxed) {
        number += 1;
        let own = format!("{client}-{number}");
        let (path, expected) = match number % 4 {
            0 => (format!("/v1/ECHO/{own}"), format!(r#"{{"result":"{own}"}}"#)),
            1 => (format!("/v1/ECHO/{own}.raw"), format!("${}\r\n{own}\r\n", own.len())),
            // Without the router; the key is this client's alone.
            2 if http.send("PUT", &format!("/v1/SET/{client}/{own}"), &[], b"").status == 200 => {
                (format!("/get?key={client}"), own.clone())
            }
            _ => (format!("/v1/GETRANGE/{own}/0/1"), r#"{"result":""}"#.to_owned()),
        };
        let answer = http.send("GET", &path, &[], b"");
        match answer.status {
            200 => {
                assert_eq!(answer.text(), expected, "an answer to another request");
                seen.right.fetch_add(1, Relaxed);
            }
            // Redis came back empty in between.
            404 if path.starts_with("/get") => {}
            502 | 504 => {
                seen.failed.fetch_add(1, Relaxed);
            }
            status => panic!("{status} {}", answer.text()),
        }
    }
}

/// Waits until the clients have got so many more right answers.
fn right_answers(seen: &Seen, more: u64) {
    let enough = seen.right.load(Relaxed) + more;
    let deadline = Instant::now() + Duration::from_secs(30);
    while seen.right.load(Relaxed) < enough {
        assert!(Instant::now() < deadline, "no right answers any more");
        thread::yield_now();
    }
}

#[test]
fn killed_and_restarted_under_load() {
    let Some(mut redis) = Genuine::start(&[]) else { return };
    let front = Front::start(&["--redis", &redis.place(), "--redis-allow", "@read,@write"]);
    let seen = Arc::new(Seen::default());
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (front, seen) = (&front, &seen);
            scope.spawn(move || ask_for_own(front, client, seen));
        }
        for _ in 0..4 {
            right_answers(&seen, 500);
            redis.kill();
            let failed = seen.failed.load(Relaxed);
            while seen.failed.load(Relaxed) < failed + 100 {
                thread::yield_now();
            }
            redis.start_again();
            let back = Instant::now();
            right_answers(&seen, 1);
            println!("recovered {:?} after Redis answered again", back.elapsed());
        }
        seen.stop.store(true, Relaxed);
    });
    println!("{} right answers, {} failures, none wrong", seen.right.load(Relaxed), seen.failed.load(Relaxed));
}

#[test]
fn stalled() {
    let Some(redis) = Genuine::start(&[]) else { return };
    let front = Front::start(&["--redis", &redis.place(), "--redis-timeout", "300", "--redis-connect-timeout", "300"]);
    // One connection stays on one worker, and so with one connection to Redis.
    let mut http = front.connect();
    assert_eq!(http.send("GET", "/v1/PING", &[], b"").status, 200);
    let pid = Pid::from_raw(redis.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let slow = http.send("GET", "/get?key=a", &[], b"");
    assert_eq!(slow.status, 504);
    assert_eq!(slow.text(), "Redis did not answer within 300ms; the request may still run\n");
    kill_process(pid, Signal::CONT).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    // The answer that comes late is nobody's.
    while http.send("GET", "/v1/ECHO/again", &[], b"").text() != r#"{"result":"again"}"# {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn away() {
    let front = Front::start(&["--redis", "unix:///nowhere/socket"]);
    let answer = front.get("/get?key=a");
    assert_eq!(answer.status, 502);
    // The address of Redis, and its errors, are not for clients.
    assert_eq!(answer.text(), "Redis is away; the request was not sent\n");
    assert_eq!(front.get("/v1/PING").text(), r#"{"error":"Redis is away; the request was not sent"}"#);
    assert!(answer.header("retry-after").is_some());
}

/// A load balancer asks here before it sends requests.
#[test]
fn readiness() {
    for workers in 0..8 {
        let front = Front::start(&["--redis", "unix:///nowhere/socket"]);
        let answer = front.get("/readyz");
        assert_eq!((answer.status, answer.text().as_str()), (503, "not ready\n"), "{workers}");
        assert_eq!(front.get("/healthz").status, 200);
    }
    assert_eq!(Front::start(&["--redis", "embedded"]).get("/readyz").text(), "ready\n");
    let Some(mut redis) = Genuine::start(&[]) else { return };
    let front = Front::start(&["--redis", &redis.place(), "--redis-timeout", "300"]);
    assert_eq!(front.get("/readyz").status, 200);
    redis.kill();
    assert_eq!(front.get("/readyz").status, 503);
    redis.start_again();
    let deadline = Instant::now() + Duration::from_secs(10);
    while front.get("/readyz").status != 200 {
        assert!(Instant::now() < deadline);
    }
    let pid = Pid::from_raw(redis.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    assert_eq!(front.get("/readyz").status, 503);
    kill_process(pid, Signal::CONT).unwrap();
}

/// A transaction's commands stay together, with other requests over the same connection.
#[test]
fn transactions_are_not_interleaved() {
    for embedded in [true, false] {
        let redis = if embedded { None } else { Genuine::start(&[]) };
        let place = match &redis {
            Some(redis) => redis.place(),
            None if embedded => "embedded".to_owned(),
            None => return,
        };
        let front = Front::start(&["--redis", &place, "--redis-allow", "@all"]);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut http = front.connect();
                    for _ in 0..100 {
                        let body = br#"[["INCR","n"],["INCR","n"],["DECR","n"],["DECR","n"],["GET","n"]]"#;
                        let answer = http.send("POST", "/v1/transaction", &[], body);
                        let expected = r#"[{"result":1},{"result":2},{"result":1},{"result":0},{"result":"0"}]"#;
                        assert_eq!(answer.text(), expected);
                    }
                });
            }
        });
    }
}
