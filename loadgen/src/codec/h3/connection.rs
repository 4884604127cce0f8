//! One connection: requests out, answers in.

use std::collections::{HashMap, VecDeque};

use quinn_proto::{Dir, Event, ReadError, StreamEvent, StreamId, VarInt, WriteError};

use super::answer::{Answer, Fault};
use super::control::{OneWay, Said, broken};
use super::frame::{self, append_head, append_number, error, kind, setting, stream_kind};
use super::qpack::{Block, Heads};
use super::quic::{self, Dialler, Quic};
use crate::clock::Nanos;
use crate::codec::h2::Judge;
use crate::codec::h2::hpack::MAX_HEADER_LIST;
use crate::codec::{Broken, Received};
use crate::record::{Failure, Tally};

/// Streams that are opened ahead of requests, as far as the server allows: their number is the room for requests.
const AHEAD: usize = 1024;

/// The longest piece of a body in one frame.
const LONGEST_PIECE: usize = 1 << 24;

/// One connection from the client's side. `E` is a [`Judge::Exchange`].
#[derive(Debug, Default)]
pub(in crate::codec) struct Connection<E> {
    quic: Option<Box<Quic>>,
    http: Http<E>,
}

/// HTTP's state of a connection.
#[derive(Debug)]
struct Http<E> {
    stage: Stage,
    /// Requests without a complete answer.
    streams: HashMap<StreamId, Stream<E>>,
    /// Exchanges of requests that have ended, for their memory.
    spare: Vec<E>,
    /// Streams for the next requests.
    ready: VecDeque<StreamId>,
    /// The server's streams.
    one_way: HashMap<StreamId, OneWay>,
    heads: Heads,
    /// Requests that the server has not processed before its GOAWAY, by their intended times.
    unprocessed: Vec<Nanos>,
    /// True if a byte of an answer has come.
    has_heard: bool,
    /// The error that the server is told when the connection ends.
    code: u32,
    /// Room for the frames of a request.
    frames: Vec<u8>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// QUIC shakes hands.
    Opening,
    /// Requests may be made.
    Open,
    /// The server ends: what it still answers is awaited.
    Leaving,
}

#[derive(Debug)]
struct Stream<E> {
    intended: Nanos,
    exchange: E,
    answer: Answer,
    /// The part of the request that the server's windows have kept back.
    rest: Option<Box<Rest>>,
}

#[derive(Debug)]
struct Rest {
    bytes: Vec<u8>,
    sent: usize,
}

/// A request to begin.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Request<'a> {
    /// The fields that were known before the run.
    pub(in crate::codec) block: &'a Block,
    /// The `:path`, as a literal field, if it is new with every request.
    pub(in crate::codec) path: &'a [u8],
    /// Literal fields that are new with every request.
    pub(in crate::codec) fields: &'a [u8],
    /// The body.
    pub(in crate::codec) body: &'a [u8],
}

impl<E> Default for Http<E> {
    fn default() -> Self {
        Self {
            stage: Stage::Opening,
            streams: HashMap::new(),
            spare: Vec::new(),
            ready: VecDeque::new(),
            one_way: HashMap::new(),
            heads: Heads::default(),
            unprocessed: Vec::new(),
            has_heard: false,
            code: error::NO_ERROR,
            frames: Vec::new(),
        }
    }
}

impl<E: Default> Connection<E> {
    /// Begins the handshake.
    pub(in crate::codec) fn dial(&mut self, dialler: &Dialler, seat: usize, now: Nanos) -> Result<(), Broken> {
        self.quic = Some(Box::new(Quic::dial(dialler, seat, dialler.instant(now))?));
        Ok(())
    }

    /// True after the handshake.
    pub(in crate::codec) fn is_connected(&self) -> bool {
        self.http.stage != Stage::Opening
    }

    /// True if a byte of an answer has come.
    pub(in crate::codec) fn has_heard(&self) -> bool {
        self.http.has_heard
    }

    /// How many more requests the server takes now.
    pub(in crate::codec) fn room(&self) -> usize {
        if self.http.stage == Stage::Open { self.http.ready.len() } else { 0 }
    }

    /// How many requests have no complete answer yet.
    pub(in crate::codec) fn in_flight(&self) -> usize {
        self.http.streams.len() + self.http.unprocessed.len()
    }

    /// Writes a request. `prepare` sets what is remembered of it; it finds there what an earlier one left.
    pub(in crate::codec) fn begin(&mut self, request: &Request<'_>, intended: Nanos, prepare: impl FnOnce(&mut E)) {
        let quic = self.quic.as_mut().expect("an open connection has been dialled");
        self.http.begin(&mut quic.connection, request, intended, prepare);
    }

    /// Reads a datagram, if it is not empty, and has the answers judged that are complete then.
    ///
    /// # Errors
    /// When the connection is lost, or what comes is not HTTP/3.
    pub(in crate::codec) fn receive<J>(
        &mut self,
        judge: &J,
        dialler: &Dialler,
        datagram: &[u8],
        tally: &mut Tally,
    ) -> Result<Received, Broken>
    where
        J: Judge<Exchange = E>,
    {
        let Some(quic) = &mut self.quic else {
            return Ok(Received { consumed: datagram.len(), close: false });
        };
        if !datagram.is_empty() {
            quic.datagram(dialler.instant(tally.now()), datagram);
        }
        while let Some(event) = quic.connection.poll() {
            self.http.event(&mut quic.connection, event, judge, tally).inspect_err(|broken| {
                if broken.failure == Failure::Protocol {
                    self.http.code = error::GENERAL_PROTOCOL_ERROR;
                }
            })?;
        }
        self.http.refill(&mut quic.connection);
        Ok(Received { consumed: datagram.len(), close: self.http.is_done() })
    }

    /// Appends the next datagram to send. Gives whether there is one.
    pub(in crate::codec) fn transmit(&mut self, dialler: &Dialler, now: Nanos, out: &mut Vec<u8>) -> bool {
        self.quic.as_mut().is_some_and(|quic| quic.transmit(dialler.instant(now), out))
    }

    /// When [`wake`](Self::wake) is to be called.
    pub(in crate::codec) fn timer(&self, dialler: &Dialler) -> Option<Nanos> {
        self.quic.as_ref()?.timer.map(|timer| dialler.nanos(timer))
    }

    /// The time of the timer may have come.
    pub(in crate::codec) fn wake(&mut self, dialler: &Dialler, now: Nanos) {
        let now = dialler.instant(now);
        if let Some(quic) = self.quic.as_mut().filter(|quic| quic.timer.is_some_and(|timer| timer <= now)) {
            quic.timeout(now);
        }
    }

    /// Ends the connection; what [`transmit`](Self::transmit) gives then tells the server.
    pub(in crate::codec) fn hang_up(&mut self, dialler: &Dialler, now: Nanos) {
        if let Some(quic) = &mut self.quic {
            quic.close(dialler.instant(now), self.http.code);
        }
    }

    /// Gives up the requests that were intended before `before`. The server is told.
    pub(in crate::codec) fn expire(&mut self, before: Nanos, tally: &mut Tally) {
        let late = |stream: &Stream<E>| stream.intended < before;
        self.close_where(late, |stream| {
            tally.failed(stream.intended, Failure::TimedOut, || "no answer in time; the stream was reset".to_owned());
        });
        self.http.unprocessed.retain(|intended| {
            let late = *intended < before;
            if late {
                tally.failed(*intended, Failure::TimedOut, || "not processed before GOAWAY, and then late".to_owned());
            }
            !late
        });
    }

    /// Moves the intended times of the requests that the server has not processed to `waiting` (RFC 9114, 5.2: they can be
    /// sent again safely).
    pub(in crate::codec) fn take_back(&mut self, waiting: &mut Vec<Nanos>) {
        waiting.append(&mut self.http.unprocessed);
    }

    /// Accounts all requests as failed: the connection is lost.
    pub(in crate::codec) fn abandon(&mut self, failure: Failure, tally: &mut Tally) {
        self.close_where(|_| true, |stream| tally.failed(stream.intended, failure, || failure.words().to_owned()));
        for intended in self.http.unprocessed.drain(..) {
            tally.failed(intended, failure, || failure.words().to_owned());
        }
    }

    fn close_where(&mut self, ends: impl Fn(&Stream<E>) -> bool, account: impl FnMut(Stream<E>)) {
        if let Some(quic) = &mut self.quic {
            self.http.close_where(&mut quic.connection, |_, stream| ends(stream), account);
        }
    }
}

impl<E: Default> Http<E> {
    fn begin(
        &mut self,
        quic: &mut quinn_proto::Connection,
        request: &Request<'_>,
        intended: Nanos,
        prepare: impl FnOnce(&mut E),
    ) {
        let id = self.ready.pop_front().expect("a request begins where there is room");
        let mut exchange = self.spare.pop().unwrap_or_default();
        prepare(&mut exchange);
        let (Block { bytes, split }, frames) = (request.block, &mut self.frames);
        frames.clear();
        append_head(frames, kind::HEADERS, bytes.len() + request.path.len() + request.fields.len());
        for part in [&bytes[..*split], request.path, &bytes[*split..], request.fields] {
            frames.extend_from_slice(part);
        }
        for piece in request.body.chunks(LONGEST_PIECE) {
            append_head(frames, kind::DATA, piece.len());
            frames.extend_from_slice(piece);
        }
        let sent = write(quic, id, frames);
        let rest = (sent < frames.len()).then(|| Box::new(Rest { bytes: frames[sent..].to_vec(), sent: 0 }));
        self.streams.insert(id, Stream { intended, exchange, answer: Answer::default(), rest });
    }

    fn event<J>(
        &mut self,
        quic: &mut quinn_proto::Connection,
        event: Event,
        judge: &J,
        tally: &mut Tally,
    ) -> Result<(), Broken>
    where
        J: Judge<Exchange = E>,
    {
        match event {
            Event::Connected => {
                self.stage = Stage::Open;
                greet(quic)
            }
            Event::ConnectionLost { reason } => self.lost(&reason),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = quic.streams().accept(Dir::Uni) {
                    self.one_way.insert(id, OneWay::default());
                    self.read_one_way(quic, id)?;
                }
                Ok(())
            }
            Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Uni => self.read_one_way(quic, id),
            Event::Stream(StreamEvent::Readable { id }) => self.read_answer(quic, id, judge, tally),
            Event::Stream(StreamEvent::Writable { id }) => {
                self.write_rest(quic, id);
                Ok(())
            }
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.rest = None;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The connection has ended. Without an error and with nothing owed, it is a farewell.
    fn lost(&mut self, reason: &quinn_proto::ConnectionError) -> Result<(), Broken> {
        let is_idle = self.streams.is_empty() && self.stage != Stage::Opening;
        let is_farewell = match quic::failure(reason) {
            None => true,
            // The server may end what is not used.
            Some(broken) if broken.failure == Failure::TimedOut && is_idle => true,
            Some(broken) => return Err(broken),
        };
        if is_farewell && is_idle {
            self.stage = Stage::Leaving;
            return Ok(());
        }
        Err(Broken { failure: Failure::Closed, example: "the server closed the connection".to_owned() })
    }

    /// Opens streams ahead, as far as the server allows.
    fn refill(&mut self, quic: &mut quinn_proto::Connection) {
        while self.stage == Stage::Open && self.ready.len() < AHEAD {
            let Some(id) = quic.streams().open(Dir::Bi) else { return };
            self.ready.push_back(id);
        }
    }

    fn read_one_way(&mut self, quic: &mut quinn_proto::Connection, id: StreamId) -> Result<(), Broken> {
        let Some(stream) = self.one_way.get_mut(&id) else { return Ok(()) };
        let mut said = Vec::new();
        let is_over = read(quic, id, |piece| stream.read(piece, |new| said.push(new)))?;
        if is_over != Over::NotYet {
            stream.end()?;
            self.one_way.remove(&id);
        }
        for said in said {
            if let Said::GoAway(first) = said {
                self.go_away(quic, first);
            }
        }
        Ok(())
    }

    /// The server takes no more requests. Those from stream `first` on are sent again elsewhere.
    fn go_away(&mut self, quic: &mut quinn_proto::Connection, first: u64) {
        self.stage = Stage::Leaving;
        let mut unprocessed = Vec::new();
        let is_unseen = |id: StreamId, _: &Stream<E>| VarInt::from(id).into_inner() >= first;
        self.close_where(quic, is_unseen, |stream| unprocessed.push(stream.intended));
        self.unprocessed.append(&mut unprocessed);
    }

    fn read_answer<J>(
        &mut self,
        quic: &mut quinn_proto::Connection,
        id: StreamId,
        judge: &J,
        tally: &mut Tally,
    ) -> Result<(), Broken>
    where
        J: Judge<Exchange = E>,
    {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let (heads, has_heard) = (&mut self.heads, &mut self.has_heard);
        let over = read(quic, id, |piece| {
            *has_heard = true;
            stream.answer.read(judge, &mut stream.exchange, heads, piece)
        });
        let over =
            over.and_then(|over| if over == Over::Finished { stream.answer.end().map(|()| over) } else { Ok(over) });
        match over {
            Ok(Over::NotYet) => {}
            Ok(Over::Finished) => {
                judge.complete(&mut stream.exchange, stream.intended, tally);
                self.close(quic, id);
            }
            Ok(Over::Reset(code)) => self.reset(quic, id, code, tally),
            Err(Fault::Message(problem)) => {
                tally.failed(stream.intended, Failure::Protocol, || problem.to_owned());
                stop(quic, id, error::MESSAGE_ERROR);
                self.close(quic, id);
            }
            Err(Fault::Connection(problem)) => return Err(broken(problem)),
        }
        Ok(())
    }

    /// The server has reset a stream. A request that it rejects as it goes away is sent again (RFC 9114, 4.1.1).
    fn reset(&mut self, quic: &mut quinn_proto::Connection, id: StreamId, code: u64, tally: &mut Tally) {
        if let Some(stream) = self.streams.get(&id) {
            if self.stage == Stage::Leaving && code == u64::from(error::REQUEST_REJECTED) {
                self.unprocessed.push(stream.intended);
            } else {
                let example = || format!("the stream was reset: {}", frame::error_name(code));
                tally.failed(stream.intended, Failure::Reset, example);
            }
        }
        self.close(quic, id);
    }

    /// Forgets a request.
    fn close(&mut self, quic: &mut quinn_proto::Connection, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            if stream.rest.is_some() {
                // The server does not want the rest of the body.
                let _ = quic.send_stream(id).reset(VarInt::from_u32(error::REQUEST_CANCELLED));
            }
            self.spare.push(stream.exchange);
        }
    }

    /// Cancels requests.
    fn close_where(
        &mut self,
        quic: &mut quinn_proto::Connection,
        ends: impl Fn(StreamId, &Stream<E>) -> bool,
        mut account: impl FnMut(Stream<E>),
    ) {
        for (id, stream) in self.streams.extract_if(|id, stream| ends(*id, stream)) {
            stop(quic, id, error::REQUEST_CANCELLED);
            account(stream);
        }
    }

    fn write_rest(&mut self, quic: &mut quinn_proto::Connection, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(rest) = &mut stream.rest {
            rest.sent += write(quic, id, &rest.bytes[rest.sent..]);
            if rest.sent == rest.bytes.len() {
                stream.rest = None;
            }
        }
    }

    /// True if nothing more will come of this connection.
    fn is_done(&self) -> bool {
        self.stage == Stage::Leaving && self.streams.is_empty()
    }
}

/// Opens our control stream. QPACK's streams may be left out without a dynamic table (RFC 9204, 4.2).
fn greet(quic: &mut quinn_proto::Connection) -> Result<(), Broken> {
    let Some(id) = quic.streams().open(Dir::Uni) else {
        return Err(broken("the server allows no control stream"));
    };
    let mut settings = Vec::new();
    append_number(&mut settings, setting::MAX_FIELD_SECTION_SIZE as usize);
    append_number(&mut settings, MAX_HEADER_LIST);
    let mut greeting = Vec::new();
    append_number(&mut greeting, stream_kind::CONTROL as usize);
    append_head(&mut greeting, kind::SETTINGS, settings.len());
    greeting.append(&mut settings);
    match quic.send_stream(id).write(&greeting) {
        Ok(written) if written == greeting.len() => Ok(()),
        _ => Err(broken("the server's window has no room for SETTINGS")),
    }
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    NotYet,
    Finished,
    Reset(u64),
}

/// Reads what has come on a stream.
fn read<F>(
    quic: &mut quinn_proto::Connection,
    id: StreamId,
    mut piece: impl FnMut(&[u8]) -> Result<(), F>,
) -> Result<Over, F> {
    let mut stream = quic.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return Ok(Over::NotYet);
    };
    let over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                if let Err(fault) = piece(&chunk.bytes) {
                    break Err(fault);
                }
            }
            Ok(None) => break Ok(Over::Finished),
            Err(ReadError::Blocked) => break Ok(Over::NotYet),
            Err(ReadError::Reset(code)) => break Ok(Over::Reset(code.into_inner())),
        }
    };
    // The next transmission carries the credit that it asks for.
    let _ = chunks.finalize();
    over
}

/// Writes as much as the windows allow, and ends the stream behind all of it. Gives how much needs no further attempt.
fn write(quic: &mut quinn_proto::Connection, id: StreamId, bytes: &[u8]) -> usize {
    let mut stream = quic.send_stream(id);
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(written) => sent += written,
            Err(WriteError::Blocked) => return sent,
            // The server does not want it.
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return bytes.len(),
        }
    }
    let _ = stream.finish();
    sent
}

/// Asks for no more of an answer, and sends no more of its request.
fn stop(quic: &mut quinn_proto::Connection, id: StreamId, code: u32) {
    // Errors say that the stream has ended already.
    let _ = quic.recv_stream(id).stop(VarInt::from_u32(code));
    let _ = quic.send_stream(id).reset(VarInt::from_u32(code));
}
