//! The cost of connections: it is a figure of its own, and a part of the latency of the request that opens one.

use std::io::Result;

use super::server::Conversation;
use super::{Holds, OK, Row, Server, answer_all, check};

/// How late the servers of this table are, in seconds, less what three digits of a histogram may take off.
const LATE: f64 = 0.099;

const P50: &str = "/summary/all/p50";
const MIN: &str = "/summary/all/min";
const TLS: &str = "/summary/openings/tls/p50";
const FIRST_BYTE: &str = "/summary/openings/first_byte/p50";

const ROWS: &[Row] = &[
    Row {
        behaviour: "shakes hands 100 ms late, a connection per request",
        server: Server::LateTls(100, answer_all),
        line: "http https://localhost:{port}/ --insecure --no-keep-alive -c 2 -t 1 -n 20",
        exit: 0,
        prints: &["\nTLS ", "\nConnect ", "\nFirst byte "],
        holds: &[Holds::Least(MIN, LATE), Holds::Least(TLS, LATE), Holds::Is("/summary/all/answers", 20.0)],
    },
    Row {
        behaviour: "shakes hands 100 ms late and closes after each answer",
        server: Server::LateTls(100, close_each),
        line: "http https://localhost:{port}/ --insecure -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        // The first two connections were open before the load began.
        holds: &[Holds::Least(P50, LATE), Holds::Least(TLS, LATE), Holds::Is("/summary/all/answers", 20.0)],
    },
    Row {
        behaviour: "shakes hands 100 ms late, two requests per connection",
        server: Server::LateTls(100, answer_all),
        line: "http https://localhost:{port}/ --insecure --requests-per-connection 2 -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least("/summary/all/p75", LATE), Holds::Least("/summary/openings/tls/connections", 11.0)],
    },
    Row {
        behaviour: "shakes hands 100 ms late, a connection per request of an open loop",
        server: Server::LateTls(100, answer_all),
        line: "http https://localhost:{port}/ --insecure --no-keep-alive -c 4 -t 1 --rate 10 -d 1s --warm-up 0s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least(MIN, LATE), Holds::Is("/summary/all/answers", 10.0)],
    },
    Row {
        behaviour: "shakes hands 100 ms late, connections that are kept",
        server: Server::LateTls(100, answer_all),
        line: "http https://localhost:{port}/ --insecure -c 3 -t 1 -n 30",
        exit: 0,
        prints: &["3 connections; p50 "],
        holds: &[Holds::Least(TLS, LATE), Holds::Is("/summary/openings/connect/connections", 3.0)],
    },
    Row {
        behaviour: "begins to answer 100 ms late",
        server: Server::Plain(answer_late),
        line: "http http://{}/ -c 2 -t 1 -n 6",
        exit: 0,
        prints: &["\nFirst byte "],
        holds: &[Holds::Least(FIRST_BYTE, LATE), Holds::Null("/summary/openings/tls")],
    },
    Row {
        behaviour: "sends a body 100 ms after its head",
        server: Server::Plain(dribble),
        line: "http http://{}/ -c 2 -t 1 -n 6",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least(MIN, LATE), Holds::Is("/summary/openings/first_byte/connections", 2.0)],
    },
    Row {
        behaviour: "answers a login 100 ms late, a connection per command",
        server: Server::Plain(login_late),
        line: "redis {} --password x --no-keep-alive -c 2 -t 1 -n 20 PING",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least(MIN, LATE), Holds::Is("/summary/all/answers", 20.0)],
    },
    Row {
        behaviour: "resets a connection instead of each third answer",
        server: Server::Plain(reset_third),
        line: "http http://{}/ -c 1 -t 1 -n 12",
        exit: 0,
        prints: &["4 reset by the server"],
        holds: &[Holds::Is("/summary/all/answers", 8.0), Holds::Is("/kinds/reset/count", 4.0)],
    },
    Row {
        behaviour: "sends its SETTINGS 100 ms late, a request per connection",
        server: Server::Plain(settings_late),
        line: "http http://{}/ --http2 --requests-per-connection 1 -c 2 -t 1 -n 10",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least(MIN, LATE), Holds::Is("/summary/all/answers", 10.0)],
    },
];

#[test]
fn connection_setup_is_reported_and_part_of_latency() {
    check(ROWS);
}

fn close_each(client: &mut Conversation) -> Result<()> {
    client.request()?;
    client.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
}

fn answer_late(client: &mut Conversation) -> Result<()> {
    loop {
        client.request()?;
        client.wait(100);
        client.say(OK)?;
    }
}

fn dribble(client: &mut Conversation) -> Result<()> {
    loop {
        client.request()?;
        let (head, body) = OK.split_at(OK.len() - 2);
        client.say(head)?;
        client.wait(100);
        client.say(body)?;
    }
}

fn login_late(client: &mut Conversation) -> Result<()> {
    client.read_to(b"x\r\n")?;
    client.wait(100);
    client.say("+OK\r\n")?;
    loop {
        client.read_to(b"PING\r\n")?;
        client.say("+PONG\r\n")?;
    }
}

fn reset_third(client: &mut Conversation) -> Result<()> {
    for _ in 0..2 {
        client.request()?;
        client.say(OK)?;
    }
    client.request()?;
    client.reset()
}

fn settings_late(client: &mut Conversation) -> Result<()> {
    client.wait(100);
    client.begin_h2()?;
    while let Some(stream) = client.h2_request()? {
        client.h2_answer(stream)?;
    }
    Ok(())
}
