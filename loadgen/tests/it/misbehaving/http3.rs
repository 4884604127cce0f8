//! Servers of HTTP/3: what QUIC's connections and streams do wrong.

use super::{Holds, Row, Server, check};
use crate::target::{Act, Deed, HEAD, Place, answer, answer_after};

/// How late the servers of this table are, in seconds, less what three digits of a histogram may take off.
const LATE: f64 = 0.099;

const ANSWERS: &str = "/summary/all/answers";
const FAILED: &str = "/summary/failed";
const MIN: &str = "/summary/all/min";
const CONNECT: &str = "/summary/openings/connect/p50";
const FIRST_BYTE: &str = "/summary/openings/first_byte/p50";

const ROWS: &[Row] = &[
    Row {
        behaviour: "QUIC: shakes hands 100 ms late, connections that are kept",
        server: Server::Quic(100, |_| answer()),
        line: "http https://localhost:{port}/ --http3 --insecure -c 3 -t 1 -n 30 --streams 2",
        exit: 0,
        prints: &["3 connections; p50 "],
        holds: &[Holds::Least(CONNECT, LATE), Holds::Is(ANSWERS, 30.0), Holds::Null("/summary/openings/tls")],
    },
    Row {
        behaviour: "QUIC: shakes hands 100 ms late, a connection per request",
        server: Server::Quic(100, |_| answer()),
        line: "http https://localhost:{port}/ --http3 --insecure --no-keep-alive -c 2 -t 1 -n 20",
        exit: 0,
        prints: &["a connection per request, HTTP/3"],
        holds: &[
            Holds::Least(MIN, LATE),
            Holds::Is(ANSWERS, 20.0),
            Holds::Is("/summary/openings/first_byte/connections", 20.0),
        ],
    },
    Row {
        behaviour: "QUIC: shakes hands 100 ms late, two requests per connection",
        server: Server::Quic(100, |_| answer()),
        line: "http https://localhost:{port}/ --http3 --insecure --requests-per-connection 2 -c 2 -t 1 -n 20",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least("/summary/all/p75", LATE), Holds::Least("/summary/openings/connect/connections", 10.0)],
    },
    Row {
        behaviour: "QUIC: never shakes hands",
        server: Server::Quic(600_000, |_| answer()),
        line: "http https://localhost:{port}/ --http3 --insecure -c 2 -t 1 -n 5 --timeout 300ms",
        exit: 1,
        prints: &["no connection could be opened: no connection within 300ms"],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "QUIC: has a certificate that nobody trusts",
        server: Server::Quic(0, |_| answer()),
        line: "http https://localhost:{port}/ --http3 -c 2 -t 1 -n 5",
        exit: 1,
        prints: &["invalid peer certificate", "TLS handshakes failed"],
        holds: &[Holds::Is(ANSWERS, 0.0)],
    },
    Row {
        behaviour: "QUIC: begins to answer 100 ms late",
        server: Server::Quic(0, |_| answer_after(100)),
        line: "http https://localhost:{port}/ --http3 --insecure -c 2 -t 1 -n 6",
        exit: 0,
        prints: &["\nFirst byte "],
        holds: &[Holds::Least(FIRST_BYTE, LATE), Holds::Least(MIN, LATE)],
    },
    Row {
        behaviour: "QUIC: sends a body 100 ms after its head",
        server: Server::Quic(0, |_| vec![(0, Act::Say(HEAD)), (100, Act::Say(b"\0\x02hi")), (100, Act::Finish)]),
        line: "http https://localhost:{port}/ --http3 --insecure -c 2 -t 1 -n 6 --verify --expect hi",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least(MIN, LATE), Holds::Is(ANSWERS, 6.0)],
    },
    Row {
        behaviour: "QUIC: delays one answer in 50 by 100 ms",
        server: Server::Quic(0, |place| answer_after(if place.of_all % 50 == 49 { 100 } else { 0 })),
        line: "http https://localhost:{port}/ --http3 --insecure -c 4 -t 1 -n 1000 --streams 2",
        exit: 0,
        prints: &[],
        holds: &[Holds::Least("/summary/all/p99", LATE), Holds::Is(ANSWERS, 1000.0)],
    },
    Row {
        behaviour: "QUIC: stalls for 500 ms, an open loop of one stream",
        server: Server::Quic(0, |place| answer_after(if place.of_all == 50 { 500 } else { 0 })),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 --rate 100 -d 2s --warm-up 0s",
        exit: 0,
        prints: &[],
        // The 50 requests that were due meanwhile have waited too, the first of them for 490 ms.
        holds: &[Holds::Least("/summary/all/p90", 0.25), Holds::Is(ANSWERS, 200.0)],
    },
    Row {
        behaviour: "QUIC: resets the stream instead of each third answer",
        server: Server::Quic(0, |place| if place.of_all % 3 == 2 { vec![(0, Act::Reset(0x102))] } else { answer() }),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 12",
        exit: 0,
        prints: &["4 reset by the server", "the stream was reset: H3_INTERNAL_ERROR"],
        holds: &[Holds::Is(ANSWERS, 8.0), Holds::Is("/kinds/reset/count", 4.0)],
    },
    Row {
        behaviour: "QUIC: never answers one stream, and the others at once",
        server: Server::Quic(0, |place| if place.of_all == 3 { Vec::new() } else { answer() }),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 40 --rate 30 --streams 4 --timeout 700ms",
        exit: 0,
        prints: &["1 timed out", "no answer in time; the stream was reset"],
        holds: &[Holds::Is(ANSWERS, 39.0), Holds::Is("/kinds/timed-out/count", 1.0)],
    },
    Row {
        behaviour: "QUIC: goes away after each connection's first stream, two behind it unseen",
        server: Server::Quic(0, first_alone),
        line: "http https://localhost:{port}/ --http3 --insecure --streams 3 -c 2 -t 1 -n 60",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 60.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "QUIC: goes away, and rejects what comes behind it",
        server: Server::Quic(0, first_and_rejected),
        line: "http https://localhost:{port}/ --http3 --insecure --streams 3 -c 2 -t 1 -n 60",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is(ANSWERS, 60.0), Holds::Is(FAILED, 0.0)],
    },
    Row {
        behaviour: "QUIC: closes each connection at its third request, with an error",
        server: Server::Quic(
            0,
            |place| if place.here == 2 { vec![(0, Act::Close(0x107, "too much"))] } else { answer() },
        ),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 12",
        exit: 0,
        prints: &["4 closed before", "the server closed the connection: H3_EXCESSIVE_LOAD too much"],
        holds: &[Holds::Is(ANSWERS, 8.0), Holds::Is("/kinds/closed/count", 4.0)],
    },
    Row {
        behaviour: "QUIC: closes each connection at its third request, without an error",
        server: Server::Quic(0, |place| if place.here == 2 { vec![(0, Act::Close(0x100, ""))] } else { answer() }),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 12",
        exit: 0,
        prints: &["4 closed before"],
        holds: &[Holds::Is(ANSWERS, 8.0), Holds::Is("/kinds/closed/count", 4.0)],
    },
    Row {
        behaviour: "QUIC: sends two bytes with a content-length of 3",
        server: Server::Quic(0, |_| {
            let head = b"\x01\x06\0\0\xd9\x54\x013";
            vec![(0, Act::Say(head)), (0, Act::Say(b"\0\x02hi")), (0, Act::Finish)]
        }),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 6",
        exit: 1,
        prints: &["a content-length of 3 with 2 bytes of body"],
        holds: &[Holds::Is(ANSWERS, 0.0), Holds::Is("/kinds/protocol/count", 6.0)],
    },
    Row {
        behaviour: "QUIC: ends each answer within a frame",
        server: Server::Quic(0, |_| vec![(0, Act::Say(HEAD)), (0, Act::Say(b"\0\x05hi")), (0, Act::Finish)]),
        line: "http https://localhost:{port}/ --http3 --insecure -c 1 -t 1 -n 3",
        exit: 1,
        prints: &["an answer that ends within a frame"],
        holds: &[Holds::Is(ANSWERS, 0.0), Holds::Is("/kinds/protocol/count", 3.0)],
    },
    Row {
        behaviour: "QUIC: answers 404",
        server: Server::Quic(0, |_| vec![(0, Act::Say(&[1, 3, 0, 0, 0xdb])), (0, Act::Finish)]),
        line: "http https://localhost:{port}/ --http3 --insecure -c 2 -t 1 -n 20 --slo errors=1%",
        exit: 1,
        prints: &["status 404"],
        holds: &[Holds::Is("/statuses/0/status", 404.0), Holds::Is("/kinds/rejected/count", 20.0)],
    },
];

#[test]
fn servers_of_http3() {
    check(ROWS);
}

/// Answers the first request of a connection, and says that it is the last.
fn first_alone(place: Place) -> Vec<Deed> {
    let mut deeds = if place.here == 0 { answer() } else { Vec::new() };
    if place.here == 0 {
        deeds.push((0, Act::GoAway(4)));
    }
    deeds
}

/// Says that all streams up to the 16th are looked at, and rejects all but the first.
fn first_and_rejected(place: Place) -> Vec<Deed> {
    if place.here == 0 {
        let mut deeds = answer();
        deeds.insert(0, (0, Act::GoAway(60)));
        return deeds;
    }
    vec![(20, Act::Reset(0x10b))]
}
