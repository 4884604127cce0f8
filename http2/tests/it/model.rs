//! A random client, and a random program that answers it, against a model that keeps all it has seen in plain lists.
//!
//! The client breaks no rule, so that nothing may be refused, and every byte has to arrive; every frame of the engine is held
//! against the windows and the states that the model has.

use std::collections::BTreeMap;

use http2::frame::{ACK, END_HEADERS, END_STREAM, Kind};
use http2::hpack::{Decoder, Encoder, Field, Fields};
use http2::{Config, PREFACE, Reason, StreamId};

use crate::support::{Engine, Seen, Sent, data, put, rst_stream, settings, window_update};

/// Where decisions come from: a number below the one that is given.
type Choose<'a> = dyn FnMut(usize) -> usize + 'a;

#[derive(Default)]
struct Call {
    id: Option<StreamId>,
    /// Sent by the client, and told by the engine.
    asked: Vec<u8>,
    heard: Vec<u8>,
    trailers: Option<String>,
    heard_trailers: Option<String>,
    is_asked: bool,
    is_heard: bool,
    /// Bytes that the client may still send.
    window: i64,
    unreleased: usize,
    /// The program's answer: whether the head is sent, the body, the bytes that the engine took.
    is_headed: bool,
    answer: Vec<u8>,
    taken: usize,
    is_waiting: bool,
    is_answered: bool,
    /// The part of the answer that the client has received.
    received_head: bool,
    received: usize,
    is_received: bool,
    /// Bytes that the engine may still send.
    allowed: i64,
    is_reset: bool,
}

struct Model {
    engine: Engine,
    calls: BTreeMap<u32, Call>,
    encoder: Encoder,
    decoder: Decoder,
    next: u32,
    window: i64,
    allowed: i64,
    initial: i64,
    pings: Vec<Vec<u8>>,
    settings: usize,
    to_engine: Vec<u8>,
    to_client: Vec<u8>,
}

const CONFIG: fn() -> Config =
    || Config { max_streams: 8, stream_window: 3000, max_output: 6000, max_control_frames: 0, ..Config::default() };

impl Model {
    fn new() -> Self {
        let mut engine = Engine::new(&CONFIG());
        engine.send(&[&PREFACE[..], &settings(&[])].concat()).unwrap();
        engine.take_output();
        Self {
            engine,
            calls: BTreeMap::new(),
            encoder: Encoder::new(),
            decoder: Decoder::new(4096),
            next: 1,
            window: 1024 * 1024,
            allowed: 65_535,
            initial: 65_535,
            pings: Vec::new(),
            settings: 0,
            to_engine: Vec::new(),
            to_client: Vec::new(),
        }
    }

    /// One random thing that the client does.
    fn client(&mut self, choose: &mut Choose<'_>) {
        let open: Vec<u32> = self.calls.iter().filter(|(_, call)| !call.is_reset).map(|(number, _)| *number).collect();
        let asking: Vec<u32> = open.iter().copied().filter(|number| !self.calls[number].is_asked).collect();
        let live = open.iter().filter(|number| !self.calls[number].is_asked || !self.calls[number].is_received).count();
        match choose(12) {
            0..=2 if live < 8 => self.begin(choose),
            3..=5 if !asking.is_empty() => self.ask(asking[choose(asking.len())], choose),
            6 if !asking.is_empty() => self.end_by_trailers(asking[choose(asking.len())]),
            7 if !open.is_empty() && choose(4) == 0 => {
                let number = open[choose(open.len())];
                let call = self.calls.get_mut(&number).unwrap();
                if !(call.is_asked && call.is_received) {
                    call.is_reset = true;
                    self.to_engine.extend(rst_stream(number, Reason::CANCEL));
                }
            }
            8 if !open.is_empty() => {
                let (number, bytes) = (open[choose(open.len())], 1 + choose(5000));
                self.calls.get_mut(&number).unwrap().allowed += bytes as i64;
                self.to_engine.extend(window_update(number, bytes as u32));
            }
            9 => {
                let bytes = 1 + choose(20_000);
                self.allowed += bytes as i64;
                self.to_engine.extend(window_update(0, bytes as u32));
            }
            10 => {
                let initial = choose(40_000) as i64;
                let more = initial - std::mem::replace(&mut self.initial, initial);
                // Data that is on its way was sent by the old rule.
                self.flush();
                while !self.engine.connection.output().is_empty() {
                    self.write(usize::MAX);
                }
                self.calls.values_mut().for_each(|call| call.allowed += more);
                self.settings += 1;
                self.to_engine.extend(settings(&[(4, initial as u32), (1, choose(5000) as u32)]));
                self.flush();
            }
            _ => {
                let payload = vec![choose(256) as u8; 8];
                self.to_engine.extend(put(Kind::Ping, 0, 0, &payload));
                self.pings.push(payload);
            }
        }
    }

    fn begin(&mut self, choose: &mut Choose<'_>) {
        let (number, end) = (self.next, choose(3) == 0);
        self.next += 2 * (1 + choose(2) as u32);
        let path = format!("/{number}");
        let fields = [
            Field::new(b":method", b"POST"),
            Field::new(b":scheme", b"http"),
            if choose(2) == 0 { Field::once(b":path", path.as_bytes()) } else { Field::new(b":path", path.as_bytes()) },
            Field::new(b"same", b"value"),
        ];
        let mut block = Vec::new();
        self.encoder.encode(fields.into_iter(), &mut block);
        let flags = if end { END_STREAM } else { 0 };
        let cut = choose(block.len() + 1);
        if cut == block.len() {
            self.to_engine.extend(put(Kind::Headers, flags | END_HEADERS, number, &block));
        } else {
            self.to_engine.extend(put(Kind::Headers, flags, number, &block[..cut]));
            self.to_engine.extend(put(Kind::Continuation, END_HEADERS, number, &block[cut..]));
        }
        let call = Call { is_asked: end, window: 3000, allowed: self.initial, ..Call::default() };
        self.calls.insert(number, call);
    }

    fn ask(&mut self, number: u32, choose: &mut Choose<'_>) {
        let call = self.calls.get_mut(&number).unwrap();
        let most = call.window.min(self.window).max(0) as usize;
        let bytes: Vec<u8> = (0..choose(most.min(1500) + 1)).map(|at| at as u8).collect();
        call.window -= bytes.len() as i64;
        self.window -= bytes.len() as i64;
        call.asked.extend_from_slice(&bytes);
        call.is_asked = choose(4) == 0;
        self.to_engine.extend(data(number, &bytes, call.is_asked));
    }

    fn end_by_trailers(&mut self, number: u32) {
        let call = self.calls.get_mut(&number).unwrap();
        let value = format!("trailer-{number}");
        let mut block = Vec::new();
        self.encoder.encode([Field::new(b"t", value.as_bytes())].into_iter(), &mut block);
        call.is_asked = true;
        call.trailers = Some(value);
        self.to_engine.extend(put(Kind::Headers, END_HEADERS | END_STREAM, number, &block));
    }

    /// One random thing that the program does.
    fn program(&mut self, choose: &mut Choose<'_>) {
        let known: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, call)| call.id.is_some() && !call.is_answered)
            .map(|(number, _)| *number)
            .collect();
        if known.is_empty() {
            return;
        }
        let number = known[choose(known.len())];
        let call = self.calls.get_mut(&number).unwrap();
        let id = call.id.unwrap();
        if !self.engine.connection.is_alive(id) {
            assert!(call.is_reset, "{number} is gone");
            call.is_answered = true;
            return;
        }
        match choose(6) {
            0 | 1 if !call.is_headed => {
                let value = [b'v', choose(3) as u8 + b'0'];
                let fields = [Field::new(b"x", &value)];
                self.engine.connection.send_head(id, 200, fields.into_iter(), false).unwrap();
                call.is_headed = true;
            }
            2 | 3 if call.is_headed && !call.is_waiting => {
                let more = choose(4000);
                call.answer.extend((0..more).map(|at| (at ^ number as usize) as u8));
                self.send(number, false);
            }
            4 if call.is_headed && !call.is_waiting => match choose(3) {
                0 => {
                    self.engine.connection.send_trailers(id, [Field::new(b"t", b"1")].into_iter()).unwrap();
                    call.is_answered = true;
                }
                1 => self.send(number, true),
                _ => {}
            },
            _ if call.unreleased > 0 => {
                let bytes = 1 + choose(call.unreleased);
                call.unreleased -= bytes;
                self.engine.connection.release(id, bytes);
            }
            _ => {}
        }
    }

    fn send(&mut self, number: u32, end: bool) {
        let call = self.calls.get_mut(&number).unwrap();
        let rest = &call.answer[call.taken..];
        let taken = self.engine.connection.send_data(call.id.unwrap(), rest, end).unwrap();
        call.is_waiting = taken < rest.len();
        call.taken += taken;
        call.is_answered = end && !call.is_waiting;
    }

    /// The engine reads all that was sent to it; its events are the client's actions.
    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.to_engine);
        let mut seen = self.engine.send(&bytes);
        loop {
            let is_full = self.engine.connection.output().len() >= CONFIG().max_output;
            seen.expect("the client breaks no rule").into_iter().for_each(|seen| self.saw(seen));
            if !is_full {
                break;
            }
            // Input that had to wait is read when there is room.
            self.write(usize::MAX);
            seen = self.engine.read_on();
        }
    }

    fn saw(&mut self, seen: Seen) {
        let call = |calls: &mut BTreeMap<u32, Call>, id: StreamId| calls.remove(&id.number()).expect("it was begun");
        match seen {
            Seen::Request { stream, path, fields, end } => {
                let mut call = call(&mut self.calls, stream);
                assert_eq!((path, fields, call.id), (format!("/{}", stream.number()), 1, None));
                assert!(stream.slot() < 8);
                (call.id, call.is_heard) = (Some(stream), end);
                self.calls.insert(stream.number(), call);
            }
            Seen::Data { stream, data, end } => {
                let mut call = call(&mut self.calls, stream);
                assert!(!call.is_heard);
                call.unreleased += data.len();
                call.heard.extend(data);
                call.is_heard = end;
                self.calls.insert(stream.number(), call);
            }
            Seen::Trailers { stream, fields } => {
                let mut call = call(&mut self.calls, stream);
                assert!(!call.is_heard);
                (call.is_heard, call.heard_trailers) = (true, Some(fields[0].1.clone()));
                self.calls.insert(stream.number(), call);
            }
            Seen::Reset { stream, by_peer, .. } => {
                assert!(by_peer && self.calls[&stream.number()].is_reset);
            }
            Seen::TooLarge { .. } | Seen::Pong(_) | Seen::GoAway(_) => panic!("{seen:?}"),
        }
    }

    /// So many bytes of the output reach the client.
    fn write(&mut self, most: usize) {
        let output = self.engine.connection.output();
        let count = output.len().min(most);
        self.to_client.extend_from_slice(&output[..count]);
        self.engine.connection.advance(count);
        while let Some(id) = self.engine.connection.next_writable() {
            let call = &self.calls[&id.number()];
            assert!(call.is_waiting, "it has something to say");
            self.send(id.number(), false);
        }
        while let Some(frame) = cut_frame(&mut self.to_client) {
            self.receive(&frame);
        }
    }

    fn receive(&mut self, frame: &Sent) {
        let end = frame.flags & END_STREAM != 0;
        match frame.kind {
            Kind::Headers => {
                let mut fields = Fields::new();
                self.decoder.decode(&frame.payload, 1000, &mut fields).unwrap();
                let call = self.calls.get_mut(&frame.stream).unwrap();
                assert!(!call.is_received && (end == call.received_head), "a head, or trailers");
                assert_eq!(fields.get(b":status").is_some(), !call.received_head);
                call.received_head = true;
                call.is_received = end;
            }
            Kind::Data => {
                let call = self.calls.get_mut(&frame.stream).unwrap();
                assert!(call.received_head && !call.is_received);
                let length = frame.payload.len();
                call.allowed -= length as i64;
                self.allowed -= length as i64;
                assert!(self.allowed >= 0 && (length == 0 || call.allowed >= 0), "more than the windows");
                assert_eq!(call.answer[call.received..call.received + length], frame.payload);
                call.received += length;
                call.is_received = end;
            }
            Kind::WindowUpdate => {
                let bytes = i64::from(u32::from_be_bytes(frame.payload[..].try_into().unwrap()));
                match self.calls.get_mut(&frame.stream) {
                    Some(call) => call.window += bytes,
                    None => self.window += bytes,
                }
            }
            Kind::Ping => assert_eq!((frame.flags, &frame.payload), (ACK, &self.pings.remove(0))),
            Kind::Settings => {
                assert_eq!(frame.flags, ACK);
                self.settings -= 1;
            }
            _ => panic!("{frame:?}"),
        }
    }

    /// Opens all windows; then everything must be where it belongs.
    fn finish(mut self) {
        self.flush();
        self.write(usize::MAX);
        self.allowed += 1 << 24;
        self.to_engine.extend(window_update(0, 1 << 24));
        let numbers: Vec<u32> = self.calls.keys().copied().collect();
        for number in &numbers {
            self.calls.get_mut(number).unwrap().allowed += 1 << 20;
            self.to_engine.extend(window_update(*number, 1 << 20));
        }
        self.flush();
        for _ in 0..2000 {
            self.write(usize::MAX);
        }
        for (number, call) in &self.calls {
            if call.is_reset {
                continue;
            }
            assert_eq!((&call.heard, call.is_heard), (&call.asked, call.is_asked), "{number}");
            assert_eq!(call.heard_trailers, call.trailers, "{number}");
            assert_eq!((call.received, call.is_received), (call.answer.len(), call.is_answered), "{number}");
            assert!(call.window >= 0, "{number}");
        }
        assert!(self.pings.is_empty() && self.settings == 0);
        let open = |call: &&Call| !(call.is_reset || call.is_asked && call.is_received);
        assert_eq!(self.engine.connection.open_streams(), self.calls.values().filter(open).count());
    }
}

/// The first frame of the bytes, if it is complete.
fn cut_frame(bytes: &mut Vec<u8>) -> Option<Sent> {
    let head = http2::frame::Head::parse(bytes.first_chunk()?);
    let length = http2::frame::HEAD + head.length;
    if bytes.len() < length {
        return None;
    }
    let payload = bytes.drain(..length).skip(http2::frame::HEAD).collect();
    Some(Sent { kind: head.kind, flags: head.flags, stream: head.stream, payload })
}

/// Client and program do so many random things.
pub(crate) fn run(steps: usize, choose: &mut Choose<'_>) {
    let mut model = Model::new();
    for _ in 0..steps {
        match choose(5) {
            0 | 1 => model.client(choose),
            2 | 3 => model.program(choose),
            _ if choose(2) == 0 => {
                model.engine.piece = 1 + choose(40);
                model.flush();
            }
            _ => {
                let most = choose(3000);
                model.write(most);
            }
        }
    }
    model.finish();
}

#[test]
fn random_clients_and_answers() {
    use rand::{Rng as _, SeedableRng as _};
    for seed in 0..300 {
        let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
        run(1500, &mut |below| random.random_range(0..below.max(1)));
    }
}
