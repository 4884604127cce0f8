//! One HTTP/1.1 connection: reads, answers what is complete, writes once per batch.
//!
//! ```text
//!          head complete              response begins              body sent
//! Waiting ───────────────► Calling ─────────────────► Sending ──────────────► Waiting
//!    │ instant, later: stays │ reads the body for the handler                   or closing
//!    ├──► HTTP/2             └─────────────► Switching ─► another protocol
//!    └──► Switching ─► HTTP/2, which answers the request
//! ```

mod file;
mod slow;

use std::future::poll_fn;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf, Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderMap, Method, Request, StatusCode};
use server_runtime::{Connection, Pace, Place, Stream, end_turn};
use tokio::io::AsyncWrite as _;

use super::app::{App, End, Origin};
use super::by_hyper;
use super::find::{Found, Terms, find};
use super::http2;
use super::later::{Queue, Turn};
use super::output::Output;
use super::request_line::RequestLine;
use super::sending::{Endless, Sending, framing};
use super::sending_file::SendingFile;
use super::state::{Call, Close, Served, State, Step};
use super::upgrade::Offer;
use super::upload::{Allowance, BodyError, Fed, Upload};
use super::watch::{Phase, Slot};
use super::websocket::{self, Offered, Taken};
use super::wire::Wire;
use super::worker::{Drain, Scratch, Worker};
use crate::compress;
use crate::file_part::FilePart;
use crate::h1::{self, Ending, Framed, Framing};
use crate::instant;
use crate::options::{Engine, Timeouts};
use crate::tuning::{
    CHUNK_COST, GATHER_MAX, LARGE_ANSWER, LINGER_BYTES, LONG_TURN, READ_AHEAD, READ_BUFFER, SMALL_BODY, TURN_BATCHES,
    TURN_BYTES,
};

/// The state that a connection takes along to another worker.
#[derive(Default)]
pub(super) struct Carried {
    /// Bytes read and not used up.
    input: BytesMut,
    requests: u64,
}

/// Serves one connection to its end, or until it moves.
pub(super) async fn serve<A: App>(app: Rc<A>, worker: Rc<Worker>, connection: Connection<Carried>) {
    let Connection { stream, peer, local, shutdown, place, carried, routes } = connection;
    worker.start(&shutdown);
    let state = app.open(&End { peer: &peer, here: Some((&local, &stream)), shutdown: &shutdown });
    let origin = Origin { peer: peer.clone(), is_secure: stream.is_tls(), state };
    let slot = worker.watch.slot();
    if stream.alpn_protocol() == Some(b"h2") || !worker.settings.rules.http1 {
        return Box::pin(http2::serve((app, worker), slot, stream, place, Bytes::new(), origin, None)).await;
    }
    if worker.settings.options.engine == Engine::Hyper {
        return Box::pin(by_hyper::serve(app, worker, slot, stream, place, origin)).await;
    }
    let Carried { input, requests } = carried.unwrap_or_default();
    // Apart, as what follows it is, so that no protocol needs room for another.
    let mut conn = Box::new(Conn {
        app: Rc::clone(&app),
        worker: Rc::clone(&worker),
        slot,
        stream,
        place,
        origin,
        input,
        searched: 0,
        turn: 0,
        was_long: false,
        later: Queue::new(&worker),
        output: Output::default(),
        state: State::Waiting,
        close: Close::No,
        is_half_closed: false,
        is_drained: false,
        has_waited: false,
        sent: 0,
        pace: Pace::default(),
        requests,
    });
    // An error of the socket ends the connection like its orderly end: there is nobody to be told.
    let Ok(handed_over) = poll_fn(|cx| conn.poll(cx)).await else { return };
    let Conn { slot, stream, place, origin, input, requests, .. } = *conn;
    match handed_over {
        Served::Over => {}
        Served::Moves(target) => {
            let connection = Connection { stream, peer, local, shutdown, place, carried: None, routes };
            if let Err(error) = connection.move_to(target, Carried { input, requests }) {
                tracing::debug!(peer = %origin.peer, "cannot go to worker-{target}: {error}");
            }
        }
        Served::H2(first) => {
            Box::pin(http2::serve((app, worker), slot, stream, place, input.freeze(), origin, first)).await;
        }
        Served::Upgrade(offer) => {
            worker.stats().upgrades.add(1);
            let patience = worker.settings.options.timeouts.write;
            offer.keep(Wire::new(input.freeze(), stream, place, patience)).await;
        }
        Served::WebSocket(accepted) => {
            worker.stats().upgrades.add(1);
            Box::pin(websocket::serve(worker, slot, stream, place, input, *accepted)).await;
        }
    }
}

struct Conn<A: App> {
    app: Rc<A>,
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    stream: Stream,
    place: Place,
    origin: Origin<A::State>,
    /// Bytes read and not used up; without room of their own while the connection is idle.
    input: BytesMut,
    /// How much of an incomplete head was searched for its end.
    searched: usize,
    /// Bytes that may be read before others have their turn.
    turn: usize,
    /// Whether the last turn was a long one, and ended because nothing more had come.
    was_long: bool,
    /// Requests whose answers come later, all of them before what is in `input`.
    later: Queue,
    output: Output,
    state: State,
    close: Close,
    /// Whether the client has sent all it has to say. It may still wait for an answer.
    is_half_closed: bool,
    /// Whether all that has come was read, as far as that is known in this turn.
    is_drained: bool,
    /// Whether the client was waited for to take an answer: some of it may be on its way for long.
    has_waited: bool,
    /// Bytes that were given to the stream.
    sent: u64,
    pace: Pace,
    requests: u64,
}

impl<A: App> Conn<A> {
    /// Works until there is nothing to be done.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Served>> {
        if mem::take(&mut self.was_long) {
            // A client that sends much, bit by bit, stands in the queue like one that sends it at once.
            end_turn(cx);
            return Poll::Pending;
        }
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        if self.input.capacity() == 0 {
            self.input = mem::take(&mut scratch.input);
        }
        // A connection that ended may have left unsent output. It is not for the next client, which shares the buffer.
        scratch.out.clear();
        let polled = self.work(cx, &mut scratch);
        self.was_long = (1..TURN_BYTES - LONG_TURN).contains(&self.turn);
        self.give_back(&mut scratch);
        polled
    }

    /// A connection that waits holds no more than what it waits with.
    fn give_back(&mut self, scratch: &mut Scratch) {
        if scratch.input.capacity() > 0 || self.input.len() > READ_BUFFER / 4 {
            return;
        }
        let rest = if self.input.is_empty() { BytesMut::new() } else { BytesMut::from(&self.input[..]) };
        scratch.input = mem::replace(&mut self.input, rest);
        scratch.input.clear();
    }

    fn work(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<Served>> {
        self.slot.wake_by(cx.waker());
        (self.turn, self.is_drained) = (TURN_BYTES, false);
        if self.slot.is_expired() && self.expire(scratch) {
            return Poll::Ready(Ok(Served::Over));
        }
        let (mut flush, mut blocked, mut batches) = (true, false, 0);
        loop {
            if flush || self.close != Close::No || scratch.out.len() + self.output.len() > GATHER_MAX {
                blocked = self.flush(cx, scratch)?;
                flush = false;
                if blocked && (self.close != Close::No || self.output.len() > GATHER_MAX) {
                    return Poll::Pending;
                }
                if batches > TURN_BATCHES && self.close == Close::No {
                    end_turn(cx);
                    return Poll::Pending;
                }
            }
            if !blocked && self.close != Close::No && !matches!(self.state, State::Lingering { .. }) {
                if self.close == Close::Yes && !self.worker.settings.rules.reads_rest && !self.has_more(cx)? {
                    // Dropping a plain socket closes it in good order.
                    if !self.origin.is_secure {
                        return Poll::Ready(Ok(Served::Over));
                    }
                    self.slot.stay(Phase::Writing);
                    return Pin::new(&mut self.stream).poll_shutdown(cx).map_ok(|()| Served::Over);
                }
                self.slot.renew(Phase::Lingering);
                self.state = State::Lingering { left: LINGER_BYTES, is_shut: false };
            }
            let step = match &mut self.state {
                State::Waiting => self.wait(cx, scratch)?,
                State::Calling(_) => self.call(cx, scratch)?,
                State::Sending(..) => self.send(cx, scratch)?,
                State::SendingFile(..) => self.send_file(cx, scratch)?,
                State::Lingering { .. } => self.linger(cx)?,
                State::Discarding(..) => self.discard(cx, scratch)?,
                State::Switching(_) => self.switch(scratch),
            };
            match step {
                Step::Again => {}
                Step::Flush => (flush, batches) = (true, batches + 1),
                Step::Wait if scratch.out.is_empty() && (blocked || self.output.len() == 0) => return Poll::Pending,
                Step::Wait => flush = true,
                Step::Ended(served) => return Poll::Ready(Ok(served)),
            }
        }
    }

    /// Sends what there is; true if the socket does not take all of it now.
    #[inline]
    fn flush(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<bool> {
        if scratch.out.is_empty() && self.output.len() == 0 {
            return Ok(false);
        }
        let mut sent = 0;
        let flushed = self.output.flush(cx, &mut self.stream, &mut scratch.out, &mut sent);
        self.worker.stats().sent.add(sent);
        self.sent += sent;
        match flushed {
            Poll::Ready(result) => {
                if self.slot.phase() == Phase::Writing {
                    self.slot.enter(Phase::Busy);
                }
                result.map(|()| false)
            }
            Poll::Pending => {
                self.note_blocked();
                Ok(true)
            }
        }
    }

    /// Whether the client has sent more than was read, or may do so while the answer is on its way. A socket that is closed with
    /// something unread, or gets something then, sends a reset and takes the answer with it.
    fn has_more(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if self.is_half_closed {
            return Ok(false);
        }
        let is_on_its_way = self.sent > LARGE_ANSWER && self.stream.unacknowledged() > LARGE_ANSWER;
        if !self.input.is_empty() || self.has_waited || self.turn == 0 || is_on_its_way {
            return Ok(true);
        }
        Ok(!self.is_drained && matches!(self.read(cx)?, Poll::Ready(1..)))
    }

    /// Answers what was received, and reads when there is no complete request.
    fn wait(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<Step> {
        if self.input.len() > self.searched
            && !self.later.is_full()
            && let Some(step) = self.requests(scratch)
        {
            return Ok(step);
        }
        if !self.later.is_empty() && self.answers(cx, scratch) {
            return Ok(if matches!(self.state, State::Waiting) { Step::Flush } else { Step::Again });
        }
        if !scratch.out.is_empty() || self.close != Close::No {
            return Ok(Step::Flush);
        }
        if !self.later.is_empty() {
            if self.output.len() == 0 {
                self.slot.stay(Phase::Busy);
            }
            return self.read_ahead(cx);
        }
        if self.is_half_closed {
            self.close = Close::Yes;
            return Ok(Step::Again);
        }
        if let Some(target) = self.is_asked_to_move() {
            return Ok(Step::Ended(Served::Moves(target)));
        }
        match self.read(cx)? {
            Poll::Ready(0) => {
                self.is_half_closed = true;
                Ok(Step::Again)
            }
            Poll::Ready(_) => Ok(Step::Again),
            Poll::Pending if self.input.is_empty() && self.worker.drain.get() == Drain::Closing => {
                self.close = Close::Yes;
                Ok(Step::Again)
            }
            Poll::Pending => {
                if self.output.len() == 0 {
                    self.slot.stay(if self.input.is_empty() { Phase::Idle } else { Phase::Head });
                }
                Ok(Step::Wait)
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<usize>> {
        if self.turn == 0 {
            end_turn(cx);
            return Ok(Poll::Pending);
        }
        if self.input.capacity() - self.input.len() < READ_BUFFER / 8 {
            self.input.reserve(READ_BUFFER);
        }
        let room = self.input.capacity() - self.input.len();
        match tokio_util::io::poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.input) {
            Poll::Ready(Ok(count)) => {
                // Over TLS a read ends with a record.
                self.is_drained = count < room && !self.origin.is_secure;
                self.turn = self.turn.saturating_sub(count);
                self.worker.stats().received.add(count as u64);
                Ok(Poll::Ready(count))
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => {
                self.is_drained = true;
                Ok(Poll::Pending)
            }
        }
    }

    /// Writes answers that have come; whether there were any.
    fn answers(&mut self, cx: &Context<'_>, scratch: &mut Scratch) -> bool {
        let mut any = false;
        while !self.later.is_empty() && scratch.out.len() < GATHER_MAX {
            let (turn, ends) = self.later.turn(cx, scratch);
            let close = match (ends, self.input.is_empty()) {
                (false, _) => Close::No,
                (true, true) => Close::Yes,
                (true, false) => Close::AfterLinger,
            };
            match turn {
                Turn::Waits => return any,
                Turn::Written => self.sent(close, None),
                Turn::Response(response) => {
                    self.encode(*response, None, (false, false), close, None, scratch);
                    return true;
                }
                Turn::Packed(response, encoding) => {
                    let future = Box::pin(compress::apply(*response, encoding, false, None));
                    let (is_http10, is_head) = (false, false);
                    let (upload, offer, line) = (None, None, None);
                    self.state = State::Calling(Call { future, upload, is_http10, ends, is_head, offer, line });
                    return true;
                }
            }
            any = true;
        }
        any
    }

    /// The worker where the connection is wanted, if it has nothing under way, and may move.
    fn is_asked_to_move(&mut self) -> Option<usize> {
        let is_at_rest = self.input.is_empty() && self.output.len() == 0 && !self.is_half_closed;
        if !is_at_rest || self.place.is_settled() {
            return None;
        }
        self.place.is_asked_to(|| self.worker.random())
    }

    /// Answers complete requests, one after the other. `None` if there is none, or as much output as is sent at a time.
    fn requests(&mut self, scratch: &mut Scratch) -> Option<Step> {
        let worker = Rc::clone(&self.worker);
        while self.close == Close::No && scratch.out.len() < GATHER_MAX && !self.later.is_full() {
            match find(
                &self.input,
                self.searched,
                &worker,
                self.requests,
                !self.later.is_empty(),
                self.origin.is_secure,
            ) {
                Found::Later { entry, len } => {
                    self.slot.enter(Phase::Busy);
                    self.later.push(entry);
                    self.taken(len);
                }
                Found::Behind => return None,
                Found::Instant { answer, ends, len } => {
                    let clock = worker.clock.borrow();
                    instant::write(answer, clock.date(), ends, &mut scratch.body, &mut scratch.out);
                    worker.count_instant(StatusCode::OK);
                    self.slot.enter(Phase::Idle);
                    self.taken(len);
                    if ends {
                        self.close = Close::Yes;
                    }
                }
                // Handlers may hold a worker up, and HTTP/2 stays where it begins: both are dealt out evenly. Answers that were made go
                // out before the connection moves.
                Found::Routed { .. } | Found::H2 if !self.place.is_settled() && !scratch.out.is_empty() => {
                    return Some(Step::Flush);
                }
                Found::Routed { .. } | Found::H2 if !self.place.is_settled() && self.output.len() > 0 => {
                    return Some(Step::Wait);
                }
                Found::Routed { .. } | Found::H2 if let Some(target) = self.place.settle() => {
                    return Some(Step::Ended(Served::Moves(target)));
                }
                Found::Routed { request, terms, len } => {
                    self.slot.enter(Phase::Busy);
                    self.taken(len);
                    self.begin(*request, &terms, scratch);
                    return Some(Step::Again);
                }
                Found::Incomplete => {
                    self.searched = self.input.len();
                    return None;
                }
                Found::Refused(reject) => {
                    self.refuse(reject.status(), reject.reason(), scratch);
                    return Some(Step::Again);
                }
                // Answers that were made go out before the connection changes hands.
                Found::H2 if !scratch.out.is_empty() => return Some(Step::Flush),
                Found::H2 if self.output.len() > 0 => return Some(Step::Wait),
                Found::H2 => return Some(Step::Ended(Served::H2(None))),
            }
        }
        None
    }

    fn taken(&mut self, len: usize) {
        self.input.advance(len);
        self.searched = 0;
        self.requests += 1;
    }

    /// Calls the router.
    fn begin(&mut self, mut request: Request<()>, terms: &Terms, scratch: &mut Scratch) {
        let options = &self.worker.settings.options;
        let allowance = Allowance { bytes: options.limits.body, window: Timeouts::least(options.timeouts.body) };
        let (body, upload) = match terms.framing {
            Framing::None => (Body::empty(), None),
            Framing::Length(length) if length > allowance.bytes => {
                return self.refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than allowed", scratch);
            }
            Framing::Length(length) if length <= self.input.len().min(SMALL_BODY) as u64 => {
                (Body::from(copy_front(&mut self.input, length as usize)), None)
            }
            framing => {
                let (upload, incoming) = Upload::new(framing, allowance, terms.expects_continue);
                (Body::new(incoming), Some(upload))
            }
        };
        if upload.is_none()
            && let Some(begun) = self.upgraded(terms)
        {
            scratch.out.extend_from_slice(SWITCHING_TO_HTTP2);
            let first = http2::First::new(begun, request.map(|()| body));
            self.state = State::Switching(Served::H2(Some(Box::new(first))));
            return;
        }
        let is_head = request.method() == Method::HEAD;
        let offer = if terms.offers { Offer::to(&mut request) } else { None };
        if terms.offers {
            request.extensions_mut().insert(Offered);
        }
        let line = RequestLine::of(&request);
        let app = Rc::clone(&self.app);
        let response = app.respond(request.map(|()| body), self.origin.clone(), Rc::clone(&line));
        let line = Some(line);
        let Terms { is_http10, ends, .. } = *terms;
        self.state = State::Calling(Call { future: Box::pin(response), upload, is_http10, ends, is_head, offer, line });
    }

    /// HTTP/2, if it is what the request asks for and is answered by.
    fn upgraded(&self, terms: &Terms) -> Option<http2::Begun> {
        let options = &self.worker.settings.options;
        let is_trusted = |peer: IpAddr| options.trusted_proxies.iter().any(|network| network.contains(peer));
        // A proxy that passes the upgrade on does not look at the requests behind it, even if it is there to keep them
        // out.
        let is_direct = self.origin.peer.socket_addr().is_some_and(|peer| !is_trusted(peer.ip()));
        let may_be = is_direct && !self.origin.is_secure;
        terms.h2c.as_ref().filter(|_| may_be).and_then(|settings| http2::upgraded(&self.worker, settings))
    }

    /// Waits for the router's answer, and reads the body that it asks for.
    fn call(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<Step> {
        let State::Calling(call) = &mut self.state else { return Ok(Step::Again) };
        if let Poll::Ready(response) = call.future.as_mut().poll(cx) {
            self.answer(response, scratch);
            return Ok(Step::Again);
        }
        // Earlier answers need not wait for this one.
        if !scratch.out.is_empty() {
            return Ok(Step::Flush);
        }
        let fed = match &mut call.upload {
            Some(upload) => feed(upload, &mut self.input, &mut self.turn, cx),
            None => Fed::Unwanted,
        };
        match (fed, &mut call.upload) {
            (Fed::Hungry(_), Some(upload)) if upload.is_awaited && self.input.is_empty() => {
                upload.is_awaited = false;
                scratch.out.extend_from_slice(CONTINUE);
                Ok(Step::Flush)
            }
            (Fed::Hungry(_), Some(upload)) if self.is_half_closed => {
                upload.fail(BodyError::Gone);
                Ok(Step::Again)
            }
            (Fed::Unwanted, _) if self.is_half_closed && !self.worker.settings.rules.half_close => {
                Ok(Step::Ended(Served::Over))
            }
            (Fed::Ready, _) if self.turn > 0 => Ok(Step::Again),
            (Fed::Ready, _) => {
                end_turn(cx);
                Ok(Step::Wait)
            }
            (fed, _) => self.hear(fed, cx),
        }
    }

    /// Reads the part of the body that the handler waits for, or the bytes behind the body.
    fn hear(&mut self, fed: Fed, cx: &mut Context<'_>) -> io::Result<Step> {
        // While output is unsent, the time-out is for the client to take it.
        let is_sent = self.output.len() == 0;
        match fed {
            Fed::Hungry(true) if is_sent => self.slot.enter(Phase::Body),
            Fed::Hungry(_) if is_sent => self.slot.stay(Phase::Body),
            Fed::Unwanted if is_sent => self.slot.stay(Phase::Busy),
            Fed::Hungry(_) | Fed::Unwanted | Fed::Ready => {}
        }
        if matches!(fed, Fed::Hungry(_)) { self.read_on(cx) } else { self.read_ahead(cx) }
    }

    /// Reads what comes next, within bounds, so that a reset is noticed while a handler works.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> io::Result<Step> {
        if self.is_half_closed || self.input.len() >= READ_AHEAD {
            return Ok(Step::Wait);
        }
        self.read_on(cx)
    }

    fn read_on(&mut self, cx: &mut Context<'_>) -> io::Result<Step> {
        Ok(match self.read(cx)? {
            Poll::Pending => Step::Wait,
            Poll::Ready(count) => {
                self.is_half_closed |= count == 0;
                Step::Again
            }
        })
    }

    /// Begins the response.
    fn answer(&mut self, mut response: Response, scratch: &mut Scratch) {
        let State::Calling(call) = mem::replace(&mut self.state, State::Waiting) else { return };
        let Call { mut upload, is_http10, ends, is_head, offer, line, .. } = call;
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(offer)) = (response.status(), offer) {
            let accepted = response.extensions_mut().remove::<Taken>().and_then(Taken::take);
            let served = accepted.map_or(Served::Upgrade(offer), |accepted| Served::WebSocket(Box::new(accepted)));
            let (clock, headers) = (self.worker.clock.borrow(), response.headers());
            let status = response.status();
            h1::encode_head(status, headers, Framed::Nothing, Ending::Upgrade, clock.date(), &mut scratch.out);
            self.state = State::Switching(served);
            return;
        }
        let is_last = self.worker.is_draining() && self.later.is_empty();
        let mut ends = ends || wants_close(response.headers()) || is_last;
        // The answer may be made of a body that a handler still reads.
        let rest = upload.take_if(|upload| upload.is_read());
        if let Some(upload) = &mut upload {
            upload.discard(&mut self.input);
            if let Some((status, reason)) = upload.error().and_then(BodyError::refusal) {
                return self.refuse(status, reason, scratch);
            }
            ends |= !upload.is_done() && !self.reads_rest(upload);
        }
        if response.status().is_informational() {
            // Only an upgrade has such a final answer, and upgrades are not served here.
            tracing::error!(status = response.status().as_u16(), "a handler answered what is no final answer");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
        let unread = upload.as_ref().is_some_and(|upload| !upload.is_done()) || !self.input.is_empty();
        ends |= framing(&response, is_head, is_http10).0 == Framed::Close;
        let close = match (ends, unread) {
            (false, _) => Close::No,
            (true, false) => Close::Yes,
            (true, true) => Close::AfterLinger,
        };
        let rest = rest.or_else(|| upload.filter(|upload| !upload.is_done() && self.reads_rest(upload)));
        self.encode(response, rest, (is_head, is_http10), close, line, scratch);
    }

    /// The server reads the rest of this body behind its answer. A client that waits for 100 (Continue) sends none.
    fn reads_rest(&self, upload: &Upload) -> bool {
        self.worker.settings.rules.reads_rest && !upload.is_awaited && upload.error().is_none()
    }

    /// Writes the head of a response, whose body is sent next.
    fn encode(
        &mut self,
        response: Response,
        mut rest: Option<Upload>,
        (is_head, is_http10): (bool, bool),
        close: Close,
        line: Option<Rc<RequestLine>>,
        scratch: &mut Scratch,
    ) {
        // A handler that reads on still wants the body.
        if rest.as_mut().is_some_and(|rest| mem::take(&mut rest.is_awaited)) {
            scratch.out.extend_from_slice(CONTINUE);
        }
        let (framed, is_bodyless) = framing(&response, is_head, is_http10);
        let ending = match (close, is_http10) {
            (Close::Yes | Close::AfterLinger, _) => Ending::Close,
            (Close::No, true) => Ending::KeepAlive,
            (Close::No, false) => Ending::Silent,
        };
        let is_endless = response.extensions().get::<Endless>().is_some();
        let (mut parts, body) = response.into_parts();
        let clock = self.worker.clock.borrow();
        h1::encode_head(parts.status, &parts.headers, framed, ending, clock.date(), &mut scratch.out);
        drop(clock);
        let may_send_file = !is_bodyless && rest.is_none() && self.stream.can_send_file();
        let part = parts.extensions.remove::<FilePart>().filter(|_| may_send_file);
        if is_bodyless {
            drop(body);
            self.sent(close, rest);
        } else if let Some(part) = part.filter(|part| framed == Framed::Length(part.left)) {
            self.state = State::SendingFile(SendingFile::new(part, line), close);
        } else {
            self.state = State::Sending(Sending::new(body, framed, is_endless, line), close, rest);
        }
    }

    /// Sends the response's body.
    fn send(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<Step> {
        let State::Sending(sending, close, rest) = &mut self.state else { return Ok(Step::Again) };
        let is_for_open = sending.is_endless() || !self.worker.settings.rules.half_close;
        while scratch.out.len() + self.output.len() <= GATHER_MAX {
            match sending.poll(cx, &mut self.output, &mut scratch.out) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(None) => {
                    let (close, rest) = (*close, rest.take());
                    self.sent(close, rest);
                    return Ok(Step::Again);
                }
                // The body has failed, or differs from its announced length; the client has to see that.
                Poll::Ready(Some(Err(error))) => {
                    sending.failed(&error);
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Poll::Pending if !scratch.out.is_empty() => return Ok(Step::Flush),
                Poll::Pending if is_for_open && self.is_half_closed => return Ok(Step::Ended(Served::Over)),
                Poll::Pending => {
                    let Some(rest) = rest else {
                        if self.output.len() == 0 {
                            self.slot.stay(Phase::Busy);
                        }
                        return self.read_ahead(cx);
                    };
                    match feed(rest, &mut self.input, &mut self.turn, cx) {
                        Fed::Ready if self.turn > 0 => {}
                        Fed::Ready => {
                            end_turn(cx);
                            return Ok(Step::Wait);
                        }
                        Fed::Hungry(_) if self.is_half_closed => rest.fail(BodyError::Gone),
                        fed => return self.hear(fed, cx),
                    }
                }
            }
        }
        Ok(Step::Flush)
    }

    /// Sends what is left of the answer behind which another protocol begins.
    fn switch(&mut self, scratch: &Scratch) -> Step {
        if !scratch.out.is_empty() {
            return Step::Flush;
        }
        if self.output.len() > 0 {
            return Step::Wait;
        }
        match mem::replace(&mut self.state, State::Waiting) {
            State::Switching(served) => Step::Ended(served),
            _ => Step::Again,
        }
    }

    /// The response is complete; `rest` is what was left of the request's body when it began.
    fn sent(&mut self, close: Close, rest: Option<Upload>) {
        self.state = State::Waiting;
        self.close = close;
        if let Some(mut rest) = rest {
            rest.discard(&mut self.input);
            if close == Close::No && !rest.is_done() && self.reads_rest(&rest) {
                self.slot.renew(Phase::Lingering);
                self.state = State::Discarding(rest, LINGER_BYTES);
                return;
            }
            let is_unread = !rest.is_done() || (close != Close::No && !self.input.is_empty());
            self.close = if is_unread { Close::AfterLinger } else { close };
        }
        self.slot.enter(if self.input.is_empty() { Phase::Idle } else { Phase::Head });
    }

    /// Answers a request that is not to be understood. The connection ends: where the next one starts is not known.
    fn refuse(&mut self, status: StatusCode, reason: &str, scratch: &mut Scratch) {
        self.worker.stats().refused.add(1);
        self.worker.stats().response(status);
        let clock = self.worker.clock.borrow();
        h1::refusal(status, reason, clock.date(), &mut scratch.out);
        drop(clock);
        self.state = State::Waiting;
        self.close = Close::AfterLinger;
        self.input.clear();
    }

    fn linger(&mut self, cx: &mut Context<'_>) -> io::Result<Step> {
        let State::Lingering { left, is_shut } = &mut self.state else { return Ok(Step::Again) };
        // Half of the end: the client reads the answer and then its end.
        *is_shut = *is_shut || Pin::new(&mut self.stream).poll_shutdown(cx)?.is_ready();
        let left = *left;
        self.input.clear();
        Ok(match self.read(cx)? {
            Poll::Pending => Step::Wait,
            Poll::Ready(count @ 1..) if count < left => {
                if let State::Lingering { left, .. } = &mut self.state {
                    *left -= count;
                }
                Step::Again
            }
            Poll::Ready(_) => Step::Ended(Served::Over),
        })
    }
}

/// Passes on what was received of a body, and takes what that costs from the turn.
fn feed(upload: &mut Upload, input: &mut BytesMut, turn: &mut usize, cx: &Context<'_>) -> Fed {
    let fed = upload.feed(input, cx.waker());
    *turn = turn.saturating_sub(CHUNK_COST * upload.take_overhead());
    fed
}

/// The interim answer to a client that waits for it before it sends its body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The interim answer to a request that is answered over HTTP/2.
const SWITCHING_TO_HTTP2: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";

fn copy_front(input: &mut BytesMut, len: usize) -> Bytes {
    let body = Bytes::copy_from_slice(&input[..len]);
    input.advance(len);
    body
}

fn wants_close(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}
