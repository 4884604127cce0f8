//! Answers that are unusual, and what other tools' command lines show of them.

use std::io::Result;

use super::server::Conversation;
use super::{Holds, OK, Row, Server, answer_all, check};

const ANSWERS: &str = "/summary/all/answers";
const FAILED: &str = "/summary/failed";

const ROWS: &[Row] = &[
    Row {
        behaviour: "ends the lines of its heads with LF alone",
        server: Server::Plain(bare_lf),
        line: "http http://{}/ -c 2 -t 1 -n 20 --timeout 2s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "folds its header lines",
        server: Server::Plain(folded),
        line: "http http://{}/ -c 2 -t 1 -n 20 --timeout 2s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "answers without a length, and closes",
        server: Server::Plain(until_end),
        line: "http http://{}/ -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "answers in chunks, a byte in each",
        server: Server::Plain(chunked),
        line: "http http://{}/ -c 2 -t 1 -n 20 --verify --expect hi",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "sends 103 before each answer",
        server: Server::Plain(hinting),
        line: "http http://{}/ -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "redirects",
        server: Server::Plain(redirect),
        line: "http http://{}/ -c 2 -t 1 -n 20",
        exit: 0,
        prints: &["Statuses    302: 20"],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is("/statuses/0/status", 302.0)],
    },
    Row {
        behaviour: "asks for the password of the URL",
        server: Server::Plain(basic),
        line: "http http://Aladdin:open%20sesame@{}/ -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is("/statuses/0/status", 200.0)],
    },
    Row {
        behaviour: "is asked for a path whose place is none",
        server: Server::Plain(answer_all),
        line: "http http://{}/users/{id} -n 20",
        exit: 2,
        prints: &["the path's place is `{id}`, expected {key}, {value}, {random} or {sequence}"],
        holds: &[],
    },
    Row {
        behaviour: "refuses the password",
        server: Server::Plain(wrong_password),
        line: "redis {} --password x -c 4 -t 1 -d 60s PING",
        exit: 1,
        prints: &["no connection could be opened: login: WRONGPASS invalid"],
        holds: &[Holds::Is(ANSWERS, 0.0), Holds::Text("/ending/failed", "WRONGPASS")],
    },
    Row {
        behaviour: "refuses the password, and requests are counted",
        server: Server::Plain(wrong_password),
        line: "redis {} --password x -c 4 -t 1 -n 100 PING",
        exit: 1,
        prints: &["login: WRONGPASS invalid"],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "refuses the handshake",
        server: Server::Plain(no_websocket),
        line: "websocket ws://{}/ -c 4 -t 1 -d 60s",
        exit: 1,
        prints: &["no connection could be opened: handshake: HTTP/1.1 404"],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "speaks HTTP/1.1 where HTTP/2 is wanted",
        server: Server::Plain(no_h2),
        line: "http http://{}/ --http2 -c 4 -t 1 -d 60s",
        exit: 1,
        prints: &["no connection could be opened: the server answers in HTTP/1.1, not"],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "answers in streamed aggregates",
        server: Server::Plain(streamed),
        line: "redis {} -c 2 -t 1 -n 20 PING",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 20.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "goes away after each third stream, two behind it unseen",
        server: Server::Plain(goes_away),
        line: "http http://{}/ --http2 --streams 3 -c 2 -t 1 -n 60",
        exit: 0,
        prints: &["Failures    none"],
        holds: &[Holds::Is(ANSWERS, 60.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "goes away in two steps, as RFC 9113 advises",
        server: Server::Plain(goes_away_gently),
        line: "http http://{}/ --http2 --streams 3 -c 2 -t 1 -n 60",
        exit: 0,
        prints: &["Failures    none"],
        holds: &[Holds::Is(ANSWERS, 60.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "goes away in an open loop",
        server: Server::Plain(goes_away),
        line: "http http://{}/ --http2 --streams 3 -c 2 -t 1 --rate 100 -d 500ms --warm-up 0s",
        exit: 0,
        prints: &["Failures    none"],
        holds: &[Holds::Is(ANSWERS, 50.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "sends every connection away without an answer",
        server: Server::Plain(only_goes_away),
        line: "http http://{}/ --http2 -c 1 -t 1 -d 500ms --warm-up 0s --timeout 300ms",
        exit: 1,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "answers each fourth request with 404: wrk",
        server: Server::Plain(not_found_fourth),
        line: "wrk -t1 -c2 -d1 http://{}/",
        exit: 0,
        prints: &["  Non-2xx or 3xx responses: ", " requests in 1.0"],
        holds: &[],
    },
    Row {
        behaviour: "answers every request with 404: wrk",
        server: Server::Plain(not_found),
        line: "wrk -t1 -c1 -d1 --latency http://{}/",
        exit: 0,
        prints: &["  Non-2xx or 3xx responses: ", "Requests/sec: "],
        holds: &[],
    },
    Row {
        behaviour: "answers each fourth request with 404: hey",
        server: Server::Plain(not_found_fourth),
        line: "hey -n 20 -c 1 http://{}/",
        exit: 0,
        prints: &["  [200]\t15 responses\n  [404]\t5 responses\n"],
        holds: &[],
    },
    Row {
        behaviour: "answers every request with 404: hey",
        server: Server::Plain(not_found),
        line: "hey -n 20 -c 1 http://{}/",
        exit: 0,
        prints: &["Status code distribution:\n  [404]\t20 responses\n"],
        holds: &[],
    },
    Row {
        behaviour: "answers every command with an error: redis-benchmark",
        server: Server::Plain(errors),
        line: "redis-benchmark -p {port} -n 20 -c 1 -q PING",
        exit: 0,
        prints: &["PING: "],
        holds: &[],
    },
];

#[test]
fn unusual_answers_are_what_they_are() {
    check(ROWS);
}

fn answer_with(client: &mut Conversation, answer: &str) -> Result<()> {
    loop {
        client.request()?;
        client.say(answer)?;
    }
}

fn bare_lf(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 200 OK\nContent-Length: 6\n\n\r\n\r\nhi")
}

fn folded(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\n\tc\r\nContent-Length:\r\n 2\r\n\r\nhi")
}

fn until_end(client: &mut Conversation) -> Result<()> {
    client.request()?;
    client.say("HTTP/1.1 200 OK\r\n\r\nhi")
}

fn chunked(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n")
}

fn hinting(client: &mut Conversation) -> Result<()> {
    answer_with(client, &format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{OK}"))
}

fn redirect(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
}

fn basic(client: &mut Conversation) -> Result<()> {
    loop {
        // The example of RFC 7617, section 2.
        let is_right = client.request()?.contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
        client.say(if is_right { OK } else { "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n" })?;
    }
}

fn wrong_password(client: &mut Conversation) -> Result<()> {
    client.read_to(b"x\r\n")?;
    client.say("-WRONGPASS invalid username-password pair or user is disabled.\r\n")?;
    client.read_to(b"never").map(drop)
}

fn no_websocket(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
}

fn no_h2(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
}

fn streamed(client: &mut Conversation) -> Result<()> {
    loop {
        client.read_to(b"PING\r\n")?;
        client.say("*?\r\n$?\r\n;4\r\nPONG\r\n;0\r\n:1\r\n.\r\n")?;
    }
}

/// Answers the first stream of each three, and closes when it has sent GOAWAY.
fn goes_away(client: &mut Conversation) -> Result<()> {
    client.begin_h2()?;
    let Some(first) = client.h2_request()? else { return Ok(()) };
    client.h2_answer(first)?;
    let Some(second) = client.h2_request()? else { return Ok(()) };
    client.go_away(first)?;
    while let Some(stream) = client.h2_request()? {
        assert!(stream > second, "no stream comes twice");
    }
    Ok(())
}

fn goes_away_gently(client: &mut Conversation) -> Result<()> {
    client.begin_h2()?;
    let mut last = 0;
    for _ in 0..3 {
        let Some(stream) = client.h2_request()? else { return Ok(()) };
        client.h2_answer(stream)?;
        last = stream;
    }
    client.go_away(i32::MAX as u32)?;
    client.go_away(last)?;
    while client.h2_request()?.is_some() {}
    Ok(())
}

fn only_goes_away(client: &mut Conversation) -> Result<()> {
    client.begin_h2()?;
    client.go_away(0)?;
    while client.h2_request()?.is_some() {}
    Ok(())
}

fn not_found_fourth(client: &mut Conversation) -> Result<()> {
    for number in 1.. {
        client.request()?;
        client.say(if number % 4 == 0 { "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" } else { OK })?;
    }
    Ok(())
}

fn not_found(client: &mut Conversation) -> Result<()> {
    answer_with(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
}

fn errors(client: &mut Conversation) -> Result<()> {
    loop {
        client.command()?;
        client.say("-ERR no\r\n")?;
    }
}
