//! Every state of a stream and of a connection, and every frame in it, against what RFC 9113 wants.

use http2::frame::{ACK, END_HEADERS, END_STREAM, Kind};
use http2::hpack::Field;
use http2::{Config, PREFACE, Reason};

use crate::support::{Engine, block, data, headers, put, request, rst_stream, settings, window_update};

/// The stream that is looked at: 3 is left for what came before, 7 for what comes behind.
const STREAM: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// A later stream has begun.
    LeftOut,
    Open,
    /// Open, and an answer's head is sent.
    Answering,
    HalfClosedRemote,
    HalfClosedLocal,
    Finished,
    ResetByPeer,
    ResetByUs,
}

const STATES: [State; 9] = [
    State::Idle,
    State::LeftOut,
    State::Open,
    State::Answering,
    State::HalfClosedRemote,
    State::HalfClosedLocal,
    State::Finished,
    State::ResetByPeer,
    State::ResetByUs,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Data,
    LastData,
    Request,
    Trailers,
    Priority,
    SelfPriority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    NoWindowUpdate,
    WideWindowUpdate,
    Continuation,
    PriorityUpdate,
    Unknown,
}

const FRAMES: [Sends; 17] = [
    Sends::Data,
    Sends::LastData,
    Sends::Request,
    Sends::Trailers,
    Sends::Priority,
    Sends::SelfPriority,
    Sends::RstStream,
    Sends::Settings,
    Sends::PushPromise,
    Sends::Ping,
    Sends::GoAway,
    Sends::WindowUpdate,
    Sends::NoWindowUpdate,
    Sends::WideWindowUpdate,
    Sends::Continuation,
    Sends::PriorityUpdate,
    Sends::Unknown,
];

impl Sends {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Data => data(STREAM, b"x", false),
            Self::LastData => data(STREAM, b"x", true),
            Self::Request => headers(STREAM, false),
            Self::Trailers => put(Kind::Headers, END_HEADERS | END_STREAM, STREAM, &block(&[("x", "y")])),
            Self::Priority => put(Kind::Priority, 0, STREAM, &[0, 0, 0, 0, 15]),
            Self::SelfPriority => put(Kind::Priority, 0, STREAM, &[0, 0, 0, STREAM as u8, 15]),
            Self::RstStream => rst_stream(STREAM, Reason::CANCEL),
            Self::Settings => put(Kind::Settings, 0, STREAM, &[]),
            Self::PushPromise => put(Kind::PushPromise, END_HEADERS, STREAM, &[&[0, 0, 0, 2][..], &request()].concat()),
            Self::Ping => put(Kind::Ping, 0, STREAM, &[0; 8]),
            Self::GoAway => put(Kind::GoAway, 0, STREAM, &[0; 8]),
            Self::WindowUpdate => window_update(STREAM, 1),
            Self::NoWindowUpdate => window_update(STREAM, 0),
            Self::WideWindowUpdate => window_update(STREAM, 0x7fff_ffff),
            Self::Continuation => put(Kind::Continuation, END_HEADERS, STREAM, &[]),
            Self::PriorityUpdate => put(Kind::PriorityUpdate, 0, 0, &[&STREAM.to_be_bytes()[..], b"u=1"].concat()),
            Self::Unknown => put(Kind::Unknown, 0xff, STREAM, b"what?"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The driver is told.
    Event,
    Nothing,
    Stream(Reason),
    Connection(Reason),
}

/// The answer that RFC 9113 requires: section 5.1 for the states, section 6 for the frames.
fn expected(state: State, frame: Sends) -> Answer {
    use Answer::{Connection, Event, Nothing, Stream};
    let protocol = Connection(Reason::PROTOCOL_ERROR);
    let closed = Stream(Reason::STREAM_CLOSED);
    let is_live =
        !matches!(state, State::Idle | State::LeftOut | State::Finished | State::ResetByPeer | State::ResetByUs);
    let is_sending = is_live && state != State::HalfClosedRemote;
    match frame {
        // They belong to the connection (6.5, 6.7, 6.8), or to servers (8.4), or behind HEADERS (6.10).
        Sends::Settings | Sends::Ping | Sends::GoAway | Sends::PushPromise | Sends::Continuation => protocol,
        // In every state (5.1, 5.5; RFC 9218 section 7.1).
        Sends::Priority | Sends::Unknown | Sends::PriorityUpdate => Nothing,
        // RFC 7540 section 5.3.1.
        Sends::SelfPriority if state == State::Idle => protocol,
        Sends::SelfPriority => Stream(Reason::PROTOCOL_ERROR),
        Sends::Data | Sends::LastData => match state {
            State::Idle => protocol,
            State::ResetByUs => Nothing,
            _ if is_sending => Event,
            _ => closed,
        },
        Sends::Request | Sends::Trailers => match state {
            State::Idle if frame == Sends::Request => Event,
            // A request without a method is malformed (8.1.1), and so are trailers with one, or that end nothing.
            State::Idle => Stream(Reason::PROTOCOL_ERROR),
            // Numbers only grow (5.1.1).
            State::LeftOut => protocol,
            State::ResetByUs => Nothing,
            State::Finished => Connection(Reason::STREAM_CLOSED),
            State::HalfClosedRemote | State::ResetByPeer => closed,
            _ if frame == Sends::Trailers => Event,
            _ => Stream(Reason::PROTOCOL_ERROR),
        },
        Sends::RstStream | Sends::WindowUpdate | Sends::NoWindowUpdate | Sends::WideWindowUpdate => {
            match (state, frame) {
                (State::Idle, _) => protocol,
                (_, Sends::RstStream) if is_live => Event,
                (_, Sends::NoWindowUpdate) if is_live => Stream(Reason::PROTOCOL_ERROR),
                (_, Sends::WideWindowUpdate) if is_live => Stream(Reason::FLOW_CONTROL_ERROR),
                _ => Nothing,
            }
        }
    }
}

fn engine_in(state: State) -> Engine {
    let mut engine = Engine::open(&Config::default());
    let none = std::iter::empty::<Field<'_>>;
    let before = engine.begin(3, true);
    engine.connection.send_head(before, 200, none(), true).unwrap();
    match state {
        State::Idle => {}
        State::LeftOut => drop(engine.begin(7, false)),
        State::Open => drop(engine.begin(STREAM, false)),
        State::HalfClosedRemote => drop(engine.begin(STREAM, true)),
        State::Answering | State::HalfClosedLocal => {
            let stream = engine.begin(STREAM, false);
            engine.connection.send_head(stream, 200, none(), state == State::HalfClosedLocal).unwrap();
        }
        State::Finished => {
            let stream = engine.begin(STREAM, true);
            engine.connection.send_head(stream, 200, none(), true).unwrap();
        }
        State::ResetByPeer => {
            engine.begin(STREAM, false);
            engine.send(&rst_stream(STREAM, Reason::CANCEL)).unwrap();
        }
        State::ResetByUs => {
            let stream = engine.begin(STREAM, false);
            engine.connection.reset(stream, Reason::INTERNAL_ERROR);
        }
    }
    engine.take_output();
    engine
}

/// An engine's answer to bytes.
fn answer(engine: &mut Engine, bytes: &[u8]) -> Answer {
    let seen = engine.send(bytes);
    let sent = engine.take_output();
    let find = |kind| sent.iter().find(|frame| frame.kind == kind);
    match seen {
        Err(error) => {
            assert_eq!(find(Kind::GoAway).map(|frame| frame.reason()), Some(error.reason));
            assert!(engine.connection.is_over());
            Answer::Connection(error.reason)
        }
        Ok(_) if find(Kind::RstStream).is_some() => Answer::Stream(find(Kind::RstStream).unwrap().reason()),
        Ok(seen) if seen.is_empty() => Answer::Nothing,
        Ok(_) => Answer::Event,
    }
}

#[test]
fn every_frame_in_every_state_of_a_stream() {
    for state in STATES {
        for frame in FRAMES {
            for piece in [usize::MAX, 1] {
                let mut engine = engine_in(state);
                engine.piece = piece;
                let answer = answer(&mut engine, &frame.bytes());
                assert_eq!(answer, expected(state, frame), "{frame:?} in state {state:?}");
                // A frame that is no error of the connection leaves it as it should be.
                if !matches!(answer, Answer::Connection(_)) {
                    let ping = put(Kind::Ping, 0, 0, b"12345678");
                    engine.send(&ping).unwrap();
                    let sent = engine.take_output();
                    assert!(
                        sent.iter().any(|sent| sent.kind == Kind::Ping && sent.flags == ACK),
                        "{frame:?} {state:?}"
                    );
                    engine.begin(9, true);
                }
            }
        }
    }
}

#[test]
fn every_frame_inside_a_header_block() {
    for frame in FRAMES {
        let mut engine = Engine::open(&Config::default());
        let block = request();
        engine.send(&put(Kind::Headers, 0, STREAM, &block[..2])).unwrap();
        // Only the block's next piece may come (6.10); that of the table is empty and ends it.
        let expected = match frame {
            Sends::Continuation => Answer::Stream(Reason::PROTOCOL_ERROR),
            _ => Answer::Connection(Reason::PROTOCOL_ERROR),
        };
        assert_eq!(answer(&mut engine, &frame.bytes()), expected, "{frame:?}");
    }
    let mut engine = Engine::open(&Config::default());
    let block = request();
    engine.send(&put(Kind::Headers, END_STREAM, STREAM, &block[..2])).unwrap();
    engine.send(&put(Kind::Continuation, 0, STREAM, &[])).unwrap();
    let rest = put(Kind::Continuation, END_HEADERS, STREAM, &block[2..]);
    assert_eq!(answer(&mut engine, &rest), Answer::Event);
}

#[test]
fn every_frame_before_settings() {
    for frame in FRAMES {
        let mut engine = Engine::new(&Config::default());
        engine.send(PREFACE).unwrap();
        assert_eq!(answer(&mut engine, &frame.bytes()), Answer::Connection(Reason::PROTOCOL_ERROR), "{frame:?}");
    }
    let mut engine = Engine::new(&Config::default());
    engine.send(PREFACE).unwrap();
    assert_eq!(answer(&mut engine, &put(Kind::Settings, ACK, 0, &[])), Answer::Connection(Reason::PROTOCOL_ERROR));
    // A wrong byte is seen as soon as it comes.
    let mut engine = Engine::new(&Config::default());
    assert_eq!(answer(&mut engine, b"PRI * HTTP/2.0\r\n\r\nSN"), Answer::Connection(Reason::PROTOCOL_ERROR));
}

#[test]
fn every_frame_beyond_the_end() {
    for frame in FRAMES {
        let mut engine = Engine::open(&Config::default());
        engine.begin(3, false);
        engine.connection.shutdown();
        let ping = engine.take_output().into_iter().find(|frame| frame.kind == Kind::Ping).unwrap();
        engine.send(&put(Kind::Ping, ACK, 0, &ping.payload)).unwrap();
        engine.take_output();
        // Frames on a stream beyond the final GOAWAY's last one are thrown away (6.8), except those that are wrong on
        // any stream.
        let expected = match expected(State::Open, frame) {
            Answer::Connection(reason) => Answer::Connection(reason),
            _ if frame == Sends::SelfPriority => Answer::Connection(Reason::PROTOCOL_ERROR),
            Answer::Event | Answer::Nothing | Answer::Stream(_) => Answer::Nothing,
        };
        assert_eq!(answer(&mut engine, &frame.bytes()), expected, "{frame:?}");
    }
}

#[test]
fn frames_of_wrong_length_or_place() {
    fn check(bytes: &[u8], expected: Answer) {
        let mut engine = engine_in(State::Open);
        assert_eq!(answer(&mut engine, bytes), expected, "{bytes:?}");
    }
    let size = Answer::Connection(Reason::FRAME_SIZE_ERROR);
    let protocol = Answer::Connection(Reason::PROTOCOL_ERROR);
    check(&put(Kind::Settings, 0, 0, &[0; 5]), size);
    check(&put(Kind::Settings, ACK, 0, &[0; 6]), size);
    check(&put(Kind::Ping, 0, 0, &[0; 7]), size);
    check(&put(Kind::GoAway, 0, 0, &[0; 7]), size);
    check(&put(Kind::RstStream, 0, STREAM, &[0; 5]), size);
    check(&put(Kind::WindowUpdate, 0, 0, &[0; 3]), size);
    check(&put(Kind::WindowUpdate, 0, STREAM, &[0; 3]), size);
    check(&put(Kind::Priority, 0, STREAM, &[0; 4]), Answer::Stream(Reason::FRAME_SIZE_ERROR));
    check(&put(Kind::PriorityUpdate, 0, 0, &[0; 3]), size);
    check(&put(Kind::PriorityUpdate, 0, 0, &[0; 4]), protocol);
    check(&put(Kind::PriorityUpdate, 0, STREAM, &[0; 4]), protocol);
    check(&put(Kind::Data, 0, STREAM, &[0; 16_385])[..9], size);
    check(&put(Kind::Data, 8, STREAM, &[]), size);
    check(&put(Kind::Data, 8, STREAM, &[1]), protocol);
    for kind in [Kind::Data, Kind::Headers, Kind::Priority, Kind::RstStream, Kind::Continuation] {
        check(&put(kind, END_HEADERS, 0, &[0; 5]), protocol);
    }
    check(&put(Kind::Headers, END_HEADERS, 8, &request()), protocol);
    check(&data(2, b"x", false), protocol);
    check(&window_update(2, 1), protocol);
    check(&window_update(0, 0), protocol);
    check(&window_update(0, 0x7fff_ffff), Answer::Connection(Reason::FLOW_CONTROL_ERROR));
    // As large as a window may be, and one byte more.
    check(&window_update(0, 0x7fff_ffff - 65_535), Answer::Nothing);
    check(&window_update(0, 0x7fff_ffff - 65_534), Answer::Connection(Reason::FLOW_CONTROL_ERROR));
    check(&window_update(STREAM, 0x7fff_ffff - 65_535), Answer::Nothing);
    check(&window_update(STREAM, 0x7fff_ffff - 65_534), Answer::Stream(Reason::FLOW_CONTROL_ERROR));
    let interrupted = [put(Kind::Headers, 0, 7, &request()), put(Kind::Continuation, END_HEADERS, STREAM, &[])];
    check(&interrupted.concat(), protocol);
    check(&put(Kind::Headers, END_HEADERS, 7, &[0x80]), Answer::Connection(Reason::COMPRESSION_ERROR));
    check(
        &put(Kind::Headers, END_HEADERS | 0x20, 7, &[&[0, 0, 0, 7, 1][..], &request()].concat()),
        Answer::Stream(Reason::PROTOCOL_ERROR),
    );
    check(&settings(&[]), Answer::Nothing);
}
