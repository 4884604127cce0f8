//! For any response of a server to Redis commands, publishers, subscribers, WebSocket messages and the step of a flow, nothing panics, and
//! every request ends once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use loadgen::codec::{Flows, Login, Protocol, PubSub, PubSubSettings, Redis, RedisCommand, WebSocket};
use loadgen::flow::{Plan, Site};
use loadgen::record::{Failure, Tally};
use loadgen::workload::{Distribution, Keys, Sizes, Source, Subjects, Template, Values};

fn values() -> Values {
    Values::new(Sizes::Fixed(5), 0).expect("sizes are right")
}

fn subjects() -> Subjects {
    Subjects { keys: Keys::new(10, Distribution::Sequential).expect("there are keys"), values: values() }
}

static REDIS: LazyLock<Redis> = LazyLock::new(|| {
    let get = RedisCommand::new(["GET", "{key}"]).expect("it has words");
    Redis::new(vec![(get, 1)], subjects(), &Login::default(), true).expect("the mix is right")
});

static PUBSUB: LazyLock<PubSub> = LazyLock::new(|| {
    PubSub::new(&PubSubSettings {
        subscribers: 1,
        channels: 1,
        channel: "c".to_owned(),
        sharded: false,
        values: values(),
        login: Login::default(),
        verify: true,
    })
});

static WEBSOCKET: LazyLock<WebSocket> = LazyLock::new(|| {
    WebSocket::new("h", "/", &[], Template::new("{value}"), false, subjects(), true).expect("the message is right")
});

/// A step that takes and checks a value of each kind, and keeps cookies.
const FLOW: &str = r#"
cookies = true

[[flow]]
name = "flow"
[[flow.step]]
name = "step"
path = "/"
check = [{ status = 200 }, { json = "$.items[*].id", pick = "random" }, { header = "Location", regex = '/(\d+)' }]
take.one = { json = "$['a']" }
take.two = { cookie = "sid" }
take.three = { regex = "id=(.*?)\"" }
"#;

static FLOWS: LazyLock<Flows> = LazyLock::new(|| {
    let read = |_: &str| Err("no file".to_owned());
    Flows::new(Plan::parse(FLOW, &read, &[]).expect("the file has no fault"), Site::new("h", false))
});

/// The handshake's answer to the connection of seat 0: its key is always the same.
const GREETING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: qfzbJ0d/ryQ3HIyW0vQwtgy4fbU=\r\n\r\n";

/// Answers as many requests as there is room for, three at most, by these bytes, in two pieces.
fn answer<P: Protocol>(protocol: &P, seat: usize, first: &[u8], bytes: &[u8]) {
    let (mut connection, mut tally, mut out) = (protocol.connect(seat), Tally::new(1), Vec::new());
    let mut source = Source::new(0, 0, 1);
    protocol.control(&mut connection, &mut out);
    let _ = protocol.receive(&mut connection, first, &mut tally);
    let begun = protocol.room(&connection).min(3);
    for _ in 0..begun {
        protocol.begin(&mut connection, 1, &mut source, &mut out);
    }
    let mut unread = Vec::new();
    for piece in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
        unread.extend_from_slice(piece);
        let Ok(received) = protocol.receive(&mut connection, &unread, &mut tally) else { break };
        assert!(received.consumed <= unread.len());
        unread.drain(..received.consumed);
        protocol.control(&mut connection, &mut out);
    }
    protocol.end(&mut connection, &mut tally);
    protocol.abandon(&mut connection, Failure::Closed, &mut tally);
    // An unasked message is a delivery, and ends no request.
    assert!(tally.ended() >= begun as u64);
}

fuzz_target!(|bytes: &[u8]| {
    answer(&*REDIS, 0, b"", bytes);
    answer(&*PUBSUB, 0, b"", bytes);
    answer(&*PUBSUB, 1, b"", bytes);
    answer(&*WEBSOCKET, 0, GREETING, bytes);
    answer(&*WEBSOCKET, 0, b"", bytes);
    answer(&*FLOWS, 0, b"", bytes);
});
