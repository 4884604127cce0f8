//! For any response of a server to gRPC calls and HTTP/2 requests, nothing panics, and every request ends once.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use loadgen::codec::grpc::{Compression, Grpc, GrpcCall};
use loadgen::codec::{Http2, HttpRequest, Protocol};
use loadgen::record::{Failure, Tally};
use loadgen::schema;
use loadgen::workload::{Distribution, Keys, Sizes, Source, Subjects, Values};

fn subjects() -> Subjects {
    Subjects {
        keys: Keys::new(10, Distribution::Sequential).expect("there are keys"),
        values: Values::new(Sizes::Fixed(5), 0).expect("sizes are right"),
    }
}

static GRPC: LazyLock<Grpc> = LazyLock::new(|| {
    let call = GrpcCall {
        method: schema::method(&schema::built_in(), schema::GREETER).expect("it is built in"),
        authority: "localhost".to_owned(),
        tls: false,
        data: vec![r#"{"name":"{key}"}"#.to_owned()],
        messages: None,
        expected: vec![r#"{"message":"Hello {key}"}"#.to_owned()],
        metadata: Vec::new(),
        deadline: None,
        compression: Compression::Gzip,
    };
    Grpc::new(&[(call, 1)], subjects(), true).expect("the call is right")
});

static HTTP: LazyLock<Http2> = LazyLock::new(|| {
    let request = HttpRequest::new("GET", "/{key}").expect("the request is right");
    Http2::new(vec![(request, 1)], subjects(), false, true).expect("the mix is right")
});

/// Answers three requests by these bytes, in two pieces.
fn answer<P: Protocol>(protocol: &P, bytes: &[u8]) {
    const HELLO: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let (mut connection, mut tally, mut out) = (protocol.connect(0), Tally::new(1), Vec::new());
    let mut source = Source::new(0, 0, 1);
    protocol.control(&mut connection, &mut out);
    protocol.receive(&mut connection, HELLO, &mut tally).expect("these are settings");
    for _ in 0..3 {
        protocol.begin(&mut connection, 1, &mut source, &mut out);
    }
    let mut unread = Vec::new();
    for piece in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
        unread.extend_from_slice(piece);
        let Ok(received) = protocol.receive(&mut connection, &unread, &mut tally) else { break };
        unread.drain(..received.consumed);
        protocol.control(&mut connection, &mut out);
    }
    protocol.end(&mut connection, &mut tally);
    protocol.abandon(&mut connection, Failure::Closed, &mut tally);
    assert_eq!((tally.ended(), protocol.in_flight(&connection)), (3, 0));
}

fuzz_target!(|bytes: &[u8]| {
    answer(&*GRPC, bytes);
    answer(&*HTTP, bytes);
});
