//! Answers: windows, turns, header blocks, and the ends of connections.

use http2::frame::{ACK, END_HEADERS, END_STREAM, Kind};
use http2::hpack::{Block, Decoder, Field, Fields};
use http2::{Config, Connection, PREFACE, Priority, Reason, SendError, StreamId};

use crate::support::{Engine, Seen, Sent, block, data, headers, put, request, rst_stream, settings, window_update};

fn none<'a>() -> impl Iterator<Item = Field<'a>> {
    std::iter::empty()
}

fn shape(frames: &[Sent]) -> Vec<(Kind, u8, u32, usize)> {
    frames.iter().map(|frame| (frame.kind, frame.flags, frame.stream, frame.payload.len())).collect()
}

#[test]
fn an_answer_of_head_data_and_trailers() {
    let mut engine = Engine::open(&Config::default());
    let stream = engine.begin(1, true);
    let head = Block::new([Field::new(b":status", b"200"), Field::new(b"content-type", b"application/grpc")]);
    let trailers = Block::new([Field::new(b"grpc-status", b"0")]);
    assert_eq!(engine.connection.send_data(stream, b"x", false), Err(SendError::OutOfOrder));
    assert_eq!(engine.connection.send_trailers_block(stream, &trailers), Err(SendError::OutOfOrder));
    engine.connection.send_head(stream, 103, [Field::once(b"link", b"x")].into_iter(), false).unwrap();
    engine.connection.send_head_block(stream, &head, false).unwrap();
    assert_eq!(engine.connection.send_head_block(stream, &head, false), Err(SendError::OutOfOrder));
    assert_eq!(engine.connection.send_data(stream, b"hello", false), Ok(5));
    engine.connection.send_trailers_block(stream, &trailers).unwrap();
    assert_eq!(engine.connection.send_data(stream, b"x", false), Err(SendError::Gone));
    assert_eq!(engine.connection.open_streams(), 0);
    let frames = engine.take_output();
    let (mut decoder, mut fields, mut found) = (Decoder::new(4096), Fields::new(), Vec::new());
    for frame in frames.iter().filter(|frame| frame.kind == Kind::Headers) {
        decoder.decode(&frame.payload, 1000, &mut fields).unwrap();
        found.push((frame.flags, fields.iter().map(|(_, value)| value.to_vec()).collect::<Vec<_>>()));
    }
    assert_eq!(found[0], (END_HEADERS, vec![b"103".to_vec(), b"x".to_vec()]));
    assert_eq!(found[1], (END_HEADERS, vec![b"200".to_vec(), b"application/grpc".to_vec()]));
    assert_eq!(found[2], (END_HEADERS | END_STREAM, vec![b"0".to_vec()]));
}

#[test]
fn windows_hold_data_back() {
    let mut engine = Engine::open(&Config::default());
    engine.send(&settings(&[(4, 10)])).unwrap();
    let (one, three) = (engine.begin(1, true), engine.begin(3, true));
    for stream in [one, three] {
        engine.connection.send_head(stream, 200, none(), false).unwrap();
        assert_eq!(engine.connection.send_data(stream, &[b'x'; 15], true), Ok(10));
        // An end that does not fit is no end yet.
        assert_eq!(engine.connection.send_data(stream, &[b'x'; 5], true), Ok(0));
    }
    assert_eq!(engine.connection.next_writable(), None);
    engine.send(&window_update(3, 4)).unwrap();
    assert_eq!(engine.connection.next_writable(), Some(three));
    assert_eq!(engine.connection.send_data(three, &[b'x'; 5], true), Ok(4));
    // Settings open both.
    engine.send(&settings(&[(4, 11)])).unwrap();
    assert_eq!(engine.connection.next_writable(), Some(one));
    assert_eq!(engine.connection.next_writable(), Some(three));
    assert_eq!(engine.connection.send_data(three, b"x", true), Ok(1));
    assert_eq!(engine.connection.send_data(one, &[b'x'; 5], true), Ok(1));
    // And close one, which is woken by none but its own.
    engine.send(&settings(&[(4, 0)])).unwrap();
    engine.send(&window_update(1, 11)).unwrap();
    assert_eq!(engine.connection.next_writable(), None);
    engine.send(&window_update(1, 4)).unwrap();
    assert_eq!(engine.connection.next_writable(), Some(one));
    assert_eq!(engine.connection.send_data(one, &[b'x'; 4], true), Ok(4));
    assert_eq!(engine.connection.open_streams(), 0);
}

#[test]
fn the_connections_window_is_shared_in_turns() {
    let config = Config { max_output: 1 << 20, ..Config::default() };
    let mut engine = Engine::open(&config);
    engine.send(&settings(&[(4, 1 << 20)])).unwrap();
    let streams: Vec<StreamId> = (0..3).map(|at| engine.begin(1 + 2 * at, true)).collect();
    for stream in &streams {
        engine.connection.send_head(*stream, 200, none(), false).unwrap();
    }
    assert_eq!(engine.connection.send_data(streams[0], &[0; 100_000], true), Ok(65_535));
    assert_eq!(engine.connection.send_data(streams[1], &[0; 10], true), Ok(0));
    assert_eq!(engine.connection.send_data(streams[2], &[0; 10], true), Ok(0));
    assert_eq!(engine.connection.next_writable(), None);
    engine.send(&window_update(0, 1000)).unwrap();
    // A stream that was reset has no turn any more.
    engine.send(&rst_stream(3, Reason::CANCEL)).unwrap();
    assert_eq!(engine.connection.next_writable(), Some(streams[0]));
    assert_eq!(engine.connection.next_writable(), Some(streams[2]));
    assert_eq!(engine.connection.next_writable(), None);
}

#[test]
fn pieces_are_made_when_their_turn_has_come() {
    let mut engine = Engine::open(&Config { max_output: 1000, ..Config::default() });
    engine.send(&settings(&[(4, 1000)])).unwrap();
    let [one, three, five, seven] = [1, 3, 5, 7].map(|number| engine.begin(number, true));
    for stream in [one, three, five, seven] {
        engine.connection.send_head(stream, 200, none(), false).unwrap();
        assert!(!engine.connection.must_wait(stream, false));
    }
    engine.take_output();
    assert_eq!(engine.connection.send_data(seven, &[0; 500], false), Ok(500));
    engine.take_output();
    assert_eq!(engine.connection.send_data(one, &[0; 1100], false), Ok(1000));
    for (stream, has_begun) in [(three, false), (five, false), (seven, true), (three, false)] {
        assert!(engine.connection.must_wait(stream, has_begun));
    }
    // Its window is shut, which its own piece waits for.
    assert!(!engine.connection.must_wait(one, true));
    assert_eq!(engine.connection.next_writable(), None);
    engine.take_output();
    assert_eq!([(); 4].map(|()| engine.connection.next_writable()), [Some(seven), Some(three), Some(five), None]);
    assert!(!engine.connection.must_wait(three, false));
}

#[test]
fn the_urgent_come_first_and_the_incremental_take_turns() {
    let mut engine = Engine::open(&Config { max_output: 1000, ..Config::default() });
    let mut begin = |number: u32, priority: &str| {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), ("priority", priority)];
        let bytes = put(Kind::Headers, END_HEADERS | END_STREAM, number, &block(&fields));
        let Seen::Request { stream, .. } = engine.send(&bytes).unwrap()[0] else { panic!() };
        engine.take_output();
        stream
    };
    let streams = [begin(1, "u=5"), begin(3, "u=1, i"), begin(5, "u=1, i"), begin(7, "u=0")];
    // One is told otherwise afterwards, and one before it begins.
    engine.send(&put(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x07u=7")).unwrap();
    engine.send(&put(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x09u=0")).unwrap();
    let late = engine.begin(9, true);
    let streams = [streams[0], streams[1], streams[2], streams[3], late];
    assert_eq!(engine.connection.priority(late), Some(Priority { urgency: 0, incremental: false }));
    let body = [0; 2500];
    let mut sent = [0; 5];
    let mut order = Vec::new();
    for (at, stream) in streams.iter().enumerate() {
        engine.connection.send_head(*stream, 200, none(), false).unwrap();
        sent[at] = engine.connection.send_data(*stream, &body, true).unwrap();
    }
    engine.take_output();
    while let Some(stream) = engine.connection.next_writable() {
        let at = streams.iter().position(|known| *known == stream).unwrap();
        order.push(stream.number());
        sent[at] += engine.connection.send_data(stream, &body[sent[at]..], true).unwrap();
        engine.take_output();
    }
    assert_eq!(sent, [2500; 5]);
    assert_eq!(order, [9, 9, 9, 3, 5, 3, 5, 3, 5, 1, 1, 7, 7, 7]);
}

#[test]
fn a_full_output_holds_the_input_back() {
    let mut engine = Engine::open(&Config { max_output: 100, ..Config::default() });
    let pings: Vec<u8> = (0..100_u64).flat_map(|number| put(Kind::Ping, 0, 0, &number.to_be_bytes())).collect();
    engine.send(&pings).unwrap();
    let mut answers = Vec::new();
    loop {
        assert!(engine.connection.output().len() < 100 + 17);
        let frames = engine.take_output();
        if frames.is_empty() {
            break;
        }
        answers.extend(frames.into_iter().map(|frame| (frame.flags, frame.payload)));
        engine.read_on().unwrap();
    }
    let expected: Vec<_> = (0..100_u64).map(|number| (ACK, number.to_be_bytes().to_vec())).collect();
    assert_eq!(answers, expected);
}

#[test]
fn bodies_count_until_they_are_released() {
    let config = Config { stream_window: 1000, connection_window: 65_535, ..Config::default() };
    let mut engine = Engine::open(&config);
    let stream = engine.begin(1, false);
    engine.send(&data(1, &[0; 1000], false)).unwrap();
    engine.connection.release(stream, 499);
    assert_eq!(shape(&engine.take_output()), []);
    engine.connection.release(stream, 1);
    let frames = engine.take_output();
    assert_eq!(shape(&frames), [(Kind::WindowUpdate, 0, 1, 4)]);
    assert_eq!(frames[0].payload, 500_u32.to_be_bytes());
    // 501 bytes are one more than was released; the connection gets all of it back.
    let seen = engine.send(&data(1, &[0; 501], false)).unwrap();
    assert_eq!(seen, [Seen::Reset { stream, reason: Reason::FLOW_CONTROL_ERROR, by_peer: false }]);
    assert_eq!(shape(&engine.take_output()), [(Kind::RstStream, 0, 1, 4)]);
    engine.connection.release(stream, 500);
    for round in 0..100 {
        let number = 3 + 2 * round;
        engine.begin(number, false);
        // Padding is nobody's, and counts.
        let padded = put(Kind::Data, 8 | END_STREAM, number, &[&[200][..], &[0; 900]].concat());
        engine.send(&padded).unwrap();
        engine.send(&rst_stream(number, Reason::CANCEL)).unwrap();
        engine.take_output();
    }
}

#[test]
fn padding_is_given_back_to_its_stream() {
    let config = Config { stream_window: 1000, ..Config::default() };
    let mut engine = Engine::open(&config);
    let stream = engine.begin(1, false);
    let padded = put(Kind::Data, 8, 1, &[&[200][..], &[0; 300]].concat());
    for round in 0..20 {
        let seen = engine.send(&padded).unwrap();
        assert_eq!(seen, [Seen::Data { stream, data: vec![0; 100], end: false }], "{round}");
        engine.connection.release(stream, 100);
        engine.take_output();
    }
}

#[test]
fn the_connection_takes_no_more_than_its_window() {
    let config = Config { stream_window: 100_000, connection_window: 65_535, ..Config::default() };
    let mut engine = Engine::open(&config);
    engine.begin(1, false);
    for length in [16_384, 16_384, 16_384, 16_383] {
        engine.send(&data(1, &vec![0; length], false)).unwrap();
    }
    assert_eq!(engine.send(&data(1, b"x", false)).unwrap_err().reason, Reason::FLOW_CONTROL_ERROR);
}

#[test]
fn content_length_is_kept() {
    fn check(length: &str, pieces: &[(&[u8], bool)], expected: Option<Reason>) {
        let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/"), ("content-length", length)];
        let mut engine = Engine::open(&Config::default());
        let end = pieces.is_empty();
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        let mut bytes = put(Kind::Headers, flags, 1, &block(&fields));
        pieces.iter().for_each(|(piece, end)| bytes.extend(data(1, piece, *end)));
        engine.send(&bytes).unwrap();
        let frames = engine.take_output();
        let reset = frames.iter().find(|frame| frame.kind == Kind::RstStream).map(Sent::reason);
        assert_eq!(reset, expected, "{length} {pieces:?}");
    }
    check("0", &[], None);
    check("3", &[(b"abc", true)], None);
    check("3", &[(b"ab", false), (b"c", false), (b"", true)], None);
    check("3", &[], Some(Reason::PROTOCOL_ERROR));
    check("3", &[(b"ab", true)], Some(Reason::PROTOCOL_ERROR));
    check("3", &[(b"abcd", false)], Some(Reason::PROTOCOL_ERROR));
}

#[test]
fn a_large_head_takes_several_frames() {
    let mut engine = Engine::open(&Config::default());
    let stream = engine.begin(1, true);
    let value = "\u{80}".repeat(20_000);
    engine.connection.send_head(stream, 200, [Field::once(b"x", value.as_bytes())].into_iter(), true).unwrap();
    let frames = engine.take_output();
    let flags: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(flags, [(Kind::Headers, END_STREAM), (Kind::Continuation, 0), (Kind::Continuation, END_HEADERS)]);
    let block: Vec<u8> = frames.into_iter().flat_map(|frame| frame.payload).collect();
    let mut fields = Fields::new();
    Decoder::new(4096).decode(&block, usize::MAX, &mut fields).unwrap();
    assert_eq!(fields.get(b"x"), Some(value.as_bytes()));
}

#[test]
fn a_graceful_end_answers_what_is_on_its_way() {
    let mut engine = Engine::open(&Config::default());
    let one = engine.begin(1, true);
    engine.connection.shutdown();
    engine.connection.shutdown();
    let frames = engine.take_output();
    assert_eq!(shape(&frames), [(Kind::GoAway, 0, 0, 8), (Kind::Ping, 0, 0, 8)]);
    assert_eq!(frames[0].payload, 0x7fff_ffff_0000_0000_u64.to_be_bytes());
    // It was on its way.
    let three = engine.begin(3, true);
    engine.send(&put(Kind::Ping, ACK, 0, &frames[1].payload)).unwrap();
    let frames = engine.take_output();
    assert_eq!((frames[0].kind, &frames[0].payload[..]), (Kind::GoAway, &3_u64.rotate_left(32).to_be_bytes()[..]));
    assert_eq!(engine.send(&headers(5, true)).unwrap(), []);
    for stream in [one, three] {
        assert!(!engine.connection.is_over());
        engine.connection.send_head(stream, 200, none(), true).unwrap();
    }
    assert!(engine.connection.is_over());
}

#[test]
fn an_end_at_once() {
    let mut engine = Engine::open(&Config::default());
    let stream = engine.begin(1, true);
    engine.connection.close(Reason::INTERNAL_ERROR);
    assert_eq!(engine.take_output()[0].reason(), Reason::INTERNAL_ERROR);
    assert_eq!(engine.connection.send_head(stream, 200, none(), true), Err(SendError::Gone));
    assert!(engine.send(&headers(3, true)).is_err() && engine.connection.is_over());
    assert_eq!(engine.take_output(), []);
}

#[test]
fn an_upgrade_begins_with_its_request() {
    let now = std::time::Instant::now();
    // A window of 10 bytes.
    let (mut connection, stream) = Connection::upgraded(&Config::default(), b"AAQAAAAK", now).unwrap();
    connection.send_head(stream, 200, none(), false).unwrap();
    assert_eq!(connection.send_data(stream, &[0; 20], true), Ok(10));
    let bytes = [&PREFACE[..], &settings(&[(4, 20)]), &headers(3, true)].concat();
    let mut input = &bytes[..];
    let event = connection.next(&mut input, now).unwrap().map(Seen::from);
    assert!(matches!(event, Some(Seen::Request { .. })), "{event:?}");
    assert_eq!(connection.next_writable(), Some(stream));
    assert_eq!(connection.send_data(stream, &[0; 10], true), Ok(10));
    for wrong in [&b"AAQAAAA"[..], b"!", b"AAIAAAAC"] {
        assert!(Connection::upgraded(&Config::default(), wrong, now).is_err());
    }
}

#[test]
fn connections_share_a_buffer() {
    let mut engine = Engine::open(&Config::default());
    let mut buffer = Vec::with_capacity(12_345);
    engine.connection.swap_buffer(&mut buffer);
    engine.connection.ping([7; 8]);
    let (old, capacity) = (engine.connection.output().to_vec(), buffer.capacity());
    engine.connection.swap_buffer(&mut buffer);
    assert_eq!((engine.connection.output(), buffer.capacity()), (&old[..], capacity), "it is in use");
    engine.take_output();
    engine.connection.swap_buffer(&mut buffer);
    assert_eq!((buffer.capacity(), buffer.len()), (12_345, 0));
    assert_eq!(engine.begin(1, true).slot(), 0);
    assert!(!request().is_empty());
}

#[test]
fn an_idle_connection_is_small() {
    // The heap holds its output, the table of header fields, heads, and 128 streams that are over.
    assert!(size_of::<Connection>() <= 3 * 1024, "{}", size_of::<Connection>());
}
