//! A connection against frames written by hand.

use super::frame::{append_head, append_number, append_settings, flag, kind};
use super::hpack::{Block, Decoder, Field, append_literal};
use super::*;
use crate::clock::Nanos;
use crate::codec::Broken;
use crate::record::{Failure, Tally, Window};

/// Takes every answer of status 200 for right, and notes its body.
#[derive(Default)]
struct Plain;

#[derive(Debug, Default)]
struct Seen {
    status: u16,
    body: Vec<u8>,
    trailers: bool,
}

impl Judge for Plain {
    type Exchange = Seen;

    fn head(&self, seen: &mut Seen, head: &Head) {
        seen.status = head.status;
    }

    fn data(&self, seen: &mut Seen, data: &[u8]) {
        seen.body.extend_from_slice(data);
    }

    fn trailers(&self, seen: &mut Seen, _: &Head) {
        seen.trailers = true;
    }

    fn complete(&self, seen: &mut Seen, intended: Nanos, tally: &mut Tally) {
        let text = format!("{} {} {}", seen.status, String::from_utf8_lossy(&seen.body), seen.trailers);
        if seen.status == 200 {
            tally.finished(0, intended)
        } else {
            tally.failed(intended, Failure::Rejected, || text)
        }
    }
}

struct Client {
    connection: Connection<Seen>,
    tally: Tally,
    block: Block,
    out: Vec<u8>,
}

impl Client {
    fn new() -> Self {
        let mut client = Self::unheard();
        client.connection.control(&mut client.out);
        client
    }

    /// A client that has said nothing yet.
    fn unheard() -> Self {
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 9 });
        let block = Block::new(&[Field::shared(":method", "POST"), Field::shared("x-name", "value")]);
        Self { connection: Connection::new(), tally, block, out: Vec::new() }
    }

    /// A client to which the server has sent these settings.
    fn open(settings: &[(u16, u32)]) -> Self {
        let mut client = Self::new();
        let mut hello = Vec::new();
        append_settings(&mut hello, settings);
        client.receive(&hello).unwrap();
        client.sent();
        client
    }

    fn begin(&mut self, body: &[u8]) {
        let request = Request { block: &self.block, path: &[], fields: &[], body };
        self.connection.begin(&request, 1, &mut self.out, |seen| *seen = Seen::default());
    }

    fn receive(&mut self, input: &[u8]) -> Result<crate::codec::Received, Broken> {
        self.connection.receive(&Plain, input, &mut self.tally)
    }

    /// Frames sent since the last time: type, flags, stream and payload.
    fn sent(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        self.connection.control(&mut self.out);
        let bytes = std::mem::take(&mut self.out);
        let mut rest = bytes.strip_prefix(frame::PREFACE).unwrap_or(&bytes);
        let mut frames = Vec::new();
        while let Some(head) = frame::Head::read(rest) {
            let end = frame::HEAD + head.length;
            frames.push((head.kind, head.flags, head.stream, rest[frame::HEAD..end].to_vec()));
            rest = &rest[end..];
        }
        assert!(rest.is_empty());
        frames
    }

    fn failures(&self) -> Vec<(Failure, String)> {
        let list = self.tally.failures().list();
        list.iter().flat_map(|count| count.examples.iter().map(|example| (count.kind, example.clone()))).collect()
    }

    fn right(&self) -> u64 {
        self.tally.latencies()[0].count()
    }
}

fn frame_of(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append_head(&mut out, payload.len(), kind, flags, stream);
    out.extend_from_slice(payload);
    out
}

fn fields(list: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in list {
        append_literal(&mut block, name, value.as_bytes());
    }
    block
}

/// The first frames of a server.
pub(in crate::codec) fn settings() -> Vec<u8> {
    frame_of(kind::SETTINGS, 0, 0, &[])
}

/// A server's HEADERS.
pub(in crate::codec) fn headers(stream: u32, list: &[(&str, &str)], end: bool) -> Vec<u8> {
    let end = if end { flag::END_STREAM } else { 0 };
    frame_of(kind::HEADERS, flag::END_HEADERS | end, stream, &fields(list))
}

/// A server's DATA.
pub(in crate::codec) fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame_of(kind::DATA, if end { flag::END_STREAM } else { 0 }, stream, bytes)
}

/// The streams and bodies of requests: what their DATA frames hold.
pub(in crate::codec) fn bodies(mut sent: &[u8]) -> Vec<(u32, Vec<u8>)> {
    sent = sent.strip_prefix(frame::PREFACE).unwrap_or(sent);
    let mut found = Vec::new();
    while let Some(head) = frame::Head::read(sent) {
        let end = frame::HEAD + head.length;
        if head.kind == kind::DATA {
            found.push((head.stream, sent[frame::HEAD..end].to_vec()));
        }
        sent = &sent[end..];
    }
    found
}

const ENDS: u8 = flag::END_STREAM | flag::END_HEADERS;

/// `:status: 200` from the static table.
const OK: &[u8] = &[0x88];

#[test]
fn the_client_opens_with_preface_and_settings() {
    let mut client = Client::new();
    assert!(client.out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let frames: Vec<_> = client.sent().into_iter().map(|(kind, flags, stream, _)| (kind, flags, stream)).collect();
    assert_eq!(frames, [(kind::SETTINGS, 0, 0), (kind::WINDOW_UPDATE, 0, 0)]);
    assert_eq!(client.connection.room(), 0);
    client.receive(&frame_of(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 7])).unwrap();
    assert_eq!(client.sent(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
    assert_eq!(client.connection.room(), 7);
    client.begin(b"");
    assert_eq!((client.connection.room(), client.connection.in_flight()), (6, 1));
}

#[test]
fn the_server_may_speak_first() {
    let mut client = Client::unheard();
    client.receive(&[settings(), frame_of(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])].concat()).unwrap();
    assert_eq!(client.connection.room(), 0);
    let frames: Vec<_> = client.sent().into_iter().map(|(kind, flags, ..)| (kind, flags)).collect();
    assert_eq!(frames, [(kind::SETTINGS, 0), (kind::WINDOW_UPDATE, 0), (kind::SETTINGS, flag::ACK)]);
    assert!(client.connection.room() > 0);
}

#[test]
fn answers_come_in_pieces_of_any_size() {
    let mut answer = frame_of(kind::HEADERS, flag::END_HEADERS, 3, &fields(&[(":status", "100")]));
    answer.extend(frame_of(kind::HEADERS, flag::PADDED | flag::PRIORITY, 3, &[1, 0, 0, 0, 0, 7, 0x88, 0]));
    answer.extend(frame_of(kind::CONTINUATION, flag::END_HEADERS, 3, &fields(&[("a", "b")])));
    answer.extend(frame_of(kind::HEADERS, ENDS, 1, OK));
    answer.extend(frame_of(kind::DATA, flag::PADDED, 3, &[2, b'h', b'i', 0, 0]));
    answer.extend(frame_of(200, 255, 9, b"unknown"));
    answer.extend(frame_of(kind::PING, 0, 0, b"12345678"));
    answer.extend(frame_of(kind::HEADERS, ENDS, 3, &fields(&[("grpc-status", "0")])));
    for size in 1..answer.len() {
        let mut client = Client::open(&[]);
        client.begin(b"");
        client.begin(b"x");
        client.sent();
        let mut unread = Vec::new();
        for piece in answer.chunks(size) {
            unread.extend_from_slice(piece);
            let received = client.receive(&unread).unwrap();
            unread.drain(..received.consumed);
        }
        assert_eq!((client.right(), client.failures(), unread.len()), (2, vec![], 0), "{size}");
        assert_eq!(client.sent(), [(kind::PING, flag::ACK, 0, b"12345678".to_vec())]);
    }
}

#[test]
fn requests_name_repeated_fields_by_index() {
    let mut client = Client::open(&[]);
    let mut decoder = Decoder::new();
    for _ in 0..3 {
        client.begin(b"");
    }
    let mut lengths = Vec::new();
    for (kind, flags, _, block) in client.sent() {
        let mut names = Vec::new();
        decoder.decode(&block, |name, value| names.push((name.to_vec(), value.to_vec()))).unwrap();
        assert_eq!((kind, flags, names.len()), (kind::HEADERS, ENDS, 2));
        assert_eq!(names[1], (b"x-name".to_vec(), b"value".to_vec()));
        lengths.push(block.len());
    }
    assert_eq!(lengths[1..], [2, 2]);
}

#[test]
fn a_server_without_a_table_gets_every_field_in_full() {
    let mut client = Client::open(&[(frame::setting::HEADER_TABLE_SIZE, 0)]);
    client.begin(b"");
    client.begin(b"");
    let blocks: Vec<_> = client.sent().into_iter().map(|(.., block)| block).collect();
    // The first one says that the smaller table is known.
    assert_eq!(blocks[0], [&[0x20], &blocks[1][..]].concat());
    assert_eq!(blocks[1], *client.block.plain.bytes);
}

#[test]
fn bodies_wait_for_the_servers_windows() {
    let mut client = Client::open(&[(frame::setting::INITIAL_WINDOW_SIZE, 5)]);
    client.begin(b"0123456789");
    client.begin(b"abc");
    let data = |client: &mut Client| -> Vec<_> {
        client
            .sent()
            .into_iter()
            .filter(|frame| frame.0 == kind::DATA)
            .map(|(_, flags, id, body)| (flags, id, body))
            .collect()
    };
    assert_eq!(data(&mut client), [(0, 1, b"01234".to_vec()), (1, 3, b"abc".to_vec())]);
    let mut update = Vec::new();
    append_number(&mut update, kind::WINDOW_UPDATE, 1, 2);
    client.receive(&update).unwrap();
    assert_eq!(data(&mut client), [(0, 1, b"56".to_vec())]);
    // A larger initial window opens the streams that there are.
    let mut settings = Vec::new();
    append_settings(&mut settings, &[(frame::setting::INITIAL_WINDOW_SIZE, 100)]);
    client.receive(&settings).unwrap();
    assert_eq!(data(&mut client), [(1, 1, b"789".to_vec())]);
    // The connection's window, and frames of the size that the server takes.
    client.begin(&[0; 200]);
    assert_eq!(data(&mut client), [(0, 5, vec![0; 100])]);
    // An answer before the body's end: the rest is not sent.
    client.receive(&frame_of(kind::HEADERS, ENDS, 5, OK)).unwrap();
    assert_eq!(client.sent(), [(kind::RST_STREAM, 0, 5, vec![0; 4])]);
    let mut settings = Vec::new();
    append_settings(&mut settings, &[(frame::setting::INITIAL_WINDOW_SIZE, 1 << 20)]);
    client.receive(&settings).unwrap();
    client.begin(&[0; 100_000]);
    let sizes: Vec<_> = data(&mut client).into_iter().map(|(_, _, body)| body.len()).collect();
    assert_eq!(sizes, [16_384, 16_384, 16_384, 65_535 - 113 - 3 * 16_384]);
    let mut update = Vec::new();
    append_number(&mut update, kind::WINDOW_UPDATE, 0, 1 << 20);
    client.receive(&update).unwrap();
    assert_eq!(data(&mut client).iter().map(|(_, _, body)| body.len()).sum::<usize>(), 100_000 - 65_535 + 113);
}

#[test]
fn a_leaving_server_answers_what_it_has_seen() {
    let mut client = Client::open(&[]);
    client.begin(b"");
    client.begin(b"");
    let goaway = frame_of(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0, b'b', b'y', b'e']);
    assert!(!client.receive(&goaway).unwrap().close);
    assert_eq!(client.connection.room(), 0);
    assert_eq!((client.failures(), client.connection.in_flight()), (Vec::new(), 2));
    assert!(client.receive(&frame_of(kind::HEADERS, ENDS, 1, OK)).unwrap().close);
    assert_eq!(client.right(), 1);
    // The other one was not processed: it is begun again elsewhere.
    let mut waiting = Vec::new();
    client.connection.take_back(&mut waiting);
    assert_eq!((waiting.len(), client.connection.in_flight()), (1, 0));
}

#[test]
fn a_stream_that_ends_badly_does_not_end_the_others() {
    #[track_caller]
    fn check(frames: &[Vec<u8>], failure: Failure, example: &str, sent: Option<u8>) {
        let mut client = Client::open(&[]);
        client.begin(b"");
        client.begin(b"");
        client.sent();
        client.receive(&frames.concat()).unwrap();
        assert_eq!(client.failures(), [(failure, example.to_owned())]);
        let resets: Vec<_> = client.sent().into_iter().map(|(kind, _, id, body)| (kind, id, body[3])).collect();
        assert_eq!(resets, sent.map(|code| (kind::RST_STREAM, 1, code)).into_iter().collect::<Vec<_>>());
        // Frames still on their way for it are passed over.
        client.receive(&frame_of(kind::DATA, 0, 1, b"late")).unwrap();
        client.receive(&frame_of(kind::HEADERS, ENDS, 3, OK)).unwrap();
        assert_eq!((client.right(), client.connection.in_flight()), (1, 0));
    }
    let reset = frame_of(kind::RST_STREAM, 0, 1, &[0, 0, 0, 7]);
    check(&[reset], Failure::Reset, "RST_STREAM REFUSED_STREAM", None);
    let body = frame_of(kind::DATA, 0, 1, b"x");
    check(&[body], Failure::Protocol, "a body without a head", Some(1));
    let head = frame_of(kind::HEADERS, flag::END_HEADERS, 1, OK);
    let open_trailers = frame_of(kind::HEADERS, flag::END_HEADERS, 1, &fields(&[("a", "b")]));
    check(&[head.clone(), open_trailers], Failure::Protocol, "trailers that do not end the answer", Some(1));
    let again = frame_of(kind::HEADERS, ENDS, 1, OK);
    check(&[head, again], Failure::Protocol, "a status in the trailers", Some(1));
    let none = frame_of(kind::HEADERS, ENDS, 1, &fields(&[("a", "b")]));
    check(&[none], Failure::Protocol, "a head without a status", Some(1));
    let update = frame_of(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 255, 255, 255]);
    check(&[update], Failure::Protocol, "WINDOW_UPDATE of a stream by 2147483647", Some(3));
}

#[test]
fn requests_end_in_time_or_with_the_connection() {
    let mut client = Client::open(&[]);
    client.begin(b"");
    client.begin(b"");
    client.sent();
    client.connection.expire(1, &mut client.tally);
    assert_eq!(client.connection.in_flight(), 2);
    client.connection.expire(2, &mut client.tally);
    assert_eq!(client.sent().iter().map(|frame| (frame.0, frame.2)).collect::<Vec<_>>(), [(3, 1), (3, 3)]);
    client.begin(b"");
    client.connection.abandon(Failure::Reset, &mut client.tally);
    let counts = [Failure::TimedOut, Failure::Reset].map(|failure| client.tally.failures().count(failure));
    assert_eq!((counts, client.connection.in_flight()), ([2, 1], 0));
}

#[test]
fn http2_protocol_errors_end_the_connection() {
    #[track_caller]
    fn check(input: &[u8], failure: Failure, example: &str) {
        let mut client = Client::open(&[]);
        client.begin(b"");
        assert_eq!(client.receive(input).unwrap_err(), Broken { failure, example: example.to_owned() });
    }
    let protocol = Failure::Protocol;
    let mut first = Client::new();
    assert!(first.receive(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err().example.contains("HTTP/1.1, not HTTP/2"));
    let goaway = frame_of(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11, b'c', b'a', b'l', b'm']);
    check(&goaway, Failure::Closed, "GOAWAY ENHANCE_YOUR_CALM calm");
    check(&frame_of(kind::HEADERS, ENDS, 3, OK), protocol, "HEADERS on stream 3, which was never opened");
    check(&frame_of(kind::DATA, 0, 2, b""), protocol, "DATA on stream 2, which was never opened");
    check(&frame_of(kind::PUSH_PROMISE, 4, 1, &[0; 5]), protocol, "PUSH_PROMISE, which was forbidden");
    check(&frame_of(kind::DATA, flag::PADDED, 1, &[1]), protocol, "a frame with more padding than it has room for");
    check(&frame_of(kind::CONTINUATION, 4, 1, OK), protocol, "CONTINUATION without HEADERS");
    check(
        &frame_of(kind::HEADERS, ENDS, 1, &[0x80]),
        protocol,
        "a header block names entry 0, which is not in the table",
    );
    check(&frame_of(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), protocol, "WINDOW_UPDATE by 0 to 65535");
    check(&frame_of(kind::SETTINGS, 0, 0, &[0; 5]), protocol, "SETTINGS of a wrong length or on a stream");
    let frame_size = frame_of(kind::SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]);
    check(&frame_size, protocol, "setting 5 is 1, which is out of its range");
    check(&[0x01, 0, 0, 0, 0, 0, 0, 0, 1], protocol, "a frame of 65536 bytes, expected at most 16384");
    let interrupted = [frame_of(kind::HEADERS, 0, 1, OK), frame_of(kind::PING, 0, 0, &[0; 8])].concat();
    check(&interrupted, protocol, "a header block is interrupted by another frame");
    check(&frame_of(kind::PING, 0, 0, &[0; 8]).repeat(5000), protocol, "SETTINGS or PING without end");
    let endless =
        [frame_of(kind::HEADERS, 0, 1, &[]), frame_of(kind::CONTINUATION, 0, 1, &[0; 16_384]).repeat(5)].concat();
    check(&endless, protocol, "a header block of more than 65536 bytes");
}

proptest::proptest! {
    #[test]
    fn random_frames_never_panic(frames in proptest::collection::vec(
        (0_u8..11, proptest::prelude::any::<u8>(), 0_u32..8, proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)),
        0..30,
    )) {
        let mut client = Client::open(&[]);
        client.begin(b"");
        client.begin(&[0; 70_000]);
        for (kind, flags, stream, payload) in frames {
            if client.receive(&frame_of(kind, flags, stream, &payload)).is_err() {
                break;
            }
            client.sent();
        }
        let in_flight = client.connection.in_flight() as u64;
        client.connection.abandon(Failure::Closed, &mut client.tally);
        proptest::prop_assert_eq!(client.tally.ended(), 2);
        proptest::prop_assert!(in_flight <= 2);
    }

    #[test]
    fn random_header_blocks_never_panic(block in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = Decoder::new().decode(&block, |_, _| ());
    }
}
