//! Failures have latencies: an objective is not met by requests that were never answered.

use std::io::Result;

use super::server::Conversation;
use super::{Holds, OK, Row, Server, answer_all, check};

const TIMED_OUT: &str = "/kinds/timed-out/count";

const ROWS: &[Row] = &[
    Row {
        behaviour: "never answers each fifth request",
        server: Server::Plain(silent_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --timeout 200ms --slo p99=100ms",
        exit: 3,
        prints: &["p99=100ms MISSED: p99 is no answer, 20 % failed"],
        holds: &[Holds::Is(TIMED_OUT, 8.0), Holds::Least("/summary/failures/0/min", 0.199)],
    },
    Row {
        behaviour: "never answers each fifth request, which the percentile allows",
        server: Server::Plain(silent_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --timeout 200ms --slo p70=10s --slo errors=20%",
        exit: 0,
        prints: &["p70=10s met: p70 "],
        holds: &[Holds::Is(TIMED_OUT, 8.0)],
    },
    Row {
        behaviour: "never answers each fifth request of an open loop",
        server: Server::Plain(silent_fifth),
        line: "http http://{}/ -c 4 -t 1 --rate 40 -d 1s --warm-up 0s --timeout 200ms --slo p90=10s",
        exit: 3,
        prints: &["p90=10s MISSED"],
        holds: &[Holds::Least(TIMED_OUT, 1.0), Holds::Least("/summary/failures/0/min", 0.199)],
    },
    Row {
        behaviour: "never answers each fifth request, and the mean counts it",
        server: Server::Plain(silent_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 10 --timeout 400ms --slo mean=79ms",
        exit: 3,
        prints: &["mean=79ms MISSED: mean "],
        holds: &[Holds::Is(TIMED_OUT, 2.0)],
    },
    Row {
        behaviour: "answers each fifth request with 503, at once",
        server: Server::Plain(overloaded_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --slo p99=10s",
        exit: 3,
        prints: &["p99=10s MISSED: p99 is no answer, 20 % failed", "200: 32; 503: 8", "GET /: status 503"],
        holds: &[Holds::Is("/kinds/rejected/count", 8.0), Holds::Is("/statuses/1/status", 503.0)],
    },
    Row {
        behaviour: "answers each fifth request with 503, and a maximum is asked for",
        server: Server::Plain(overloaded_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --slo max=10s",
        exit: 3,
        prints: &["max=10s MISSED: max is no answer"],
        holds: &[],
    },
    Row {
        behaviour: "resets each fifth request",
        server: Server::Plain(reset_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --slo p99=10s",
        exit: 3,
        prints: &["p99=10s MISSED", "8 reset by the server"],
        holds: &[Holds::Is("/kinds/reset/count", 8.0)],
    },
    Row {
        behaviour: "closes instead of each fifth answer",
        server: Server::Plain(close_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --slo p99=10s",
        exit: 3,
        prints: &["p99=10s MISSED", "8 closed before the answer was complete"],
        holds: &[Holds::Is("/kinds/closed/count", 8.0)],
    },
    Row {
        behaviour: "answers each fifth command with an error",
        server: Server::Plain(error_fifth),
        line: "redis {} -c 1 -t 1 -n 40 --slo p99=10s PING",
        exit: 3,
        prints: &["p99=10s MISSED", "ERR no"],
        holds: &[Holds::Is("/kinds/rejected/count", 8.0), Holds::Is("/summary/all/answers", 32.0)],
    },
    Row {
        behaviour: "answers each fifth request wrongly",
        server: Server::Plain(wrong_fifth),
        line: "http http://{}/ -c 1 -t 1 -n 40 --verify --expect hi --slo p99=10s",
        exit: 3,
        prints: &["p99=10s MISSED", "GET /: expected `hi`, read `ho`"],
        holds: &[Holds::Is("/kinds/wrong/count", 8.0)],
    },
    Row {
        behaviour: "resets every connection that it accepts",
        server: Server::Plain(reset_at_once),
        line: "http http://{}/ --no-keep-alive -c 2 -t 1 -d 500ms --warm-up 0s --timeout 300ms --slo p50=10s",
        exit: 1,
        prints: &[],
        holds: &[
            Holds::Is("/summary/all/answers", 0.0),
            Holds::Null("/summary/all/p50"),
            Holds::Null("/summary/all/max"),
        ],
    },
    Row {
        behaviour: "answers all",
        server: Server::Plain(answer_all),
        line: "http http://{}/ -c 2 -t 1 -n 40 --slo p99=10s --slo max=10s --slo mean=10s --slo errors=0%",
        exit: 0,
        prints: &["p99=10s met", "max=10s met", "mean=10s met", "Failures    none"],
        holds: &[Holds::Is("/summary/failed", 0.0)],
    },
];

#[test]
fn objectives_count_what_failed() {
    check(ROWS);
}

/// Has `fail` act in place of each fifth answer of a connection.
fn except_fifth(client: &mut Conversation, fail: impl Fn(&mut Conversation) -> Result<()>) -> Result<()> {
    for number in 1.. {
        client.request()?;
        if number % 5 == 0 { fail(client)? } else { client.say(OK)? }
    }
    Ok(())
}

fn silent_fifth(client: &mut Conversation) -> Result<()> {
    except_fifth(client, |_| Ok(()))
}

fn overloaded_fifth(client: &mut Conversation) -> Result<()> {
    except_fifth(client, |client| client.say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"))
}

fn reset_fifth(client: &mut Conversation) -> Result<()> {
    except_fifth(client, |client| client.reset())
}

fn close_fifth(client: &mut Conversation) -> Result<()> {
    except_fifth(client, |_| Err(std::io::ErrorKind::UnexpectedEof.into()))
}

fn wrong_fifth(client: &mut Conversation) -> Result<()> {
    except_fifth(client, |client| client.say(OK.replace("hi", "ho")))
}

fn error_fifth(client: &mut Conversation) -> Result<()> {
    for number in 1.. {
        client.read_to(b"PING\r\n")?;
        client.say(if number % 5 == 0 { "-ERR no\r\n" } else { "+PONG\r\n" })?;
    }
    Ok(())
}

fn reset_at_once(client: &mut Conversation) -> Result<()> {
    client.reset()
}
