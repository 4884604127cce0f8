//! A connection: requests are taken as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, UPGRADE};
use http::{Request, Version};
use http2::shared::{Answers, Ended, Link, Requests, TURN_TASKS};
use http2::{Connection as Engine, Error, Event, Reason, RequestHead, StreamId};
use server_runtime::{Pace, Place, Progress, Stream};

use super::later::Laters;
use super::plain::{self, Short};
use super::session::Session;
use super::stream;
use crate::engine::app::{App, Origin};
use crate::engine::watch::{Phase, Slot};
use crate::engine::worker::{Drain, Worker};
use crate::tuning::LINGER_BYTES;

/// The engine of a connection that begins with a request in HTTP/1.1, and the request's stream.
pub(in crate::engine) type Begun = (Engine, StreamId);

/// The engine of a connection whose client has sent these settings with a request. `None` if they are none: then the request
/// is answered as if it had not asked for HTTP/2.
pub(in crate::engine) fn upgraded(worker: &Worker, settings: &[u8]) -> Option<Begun> {
    Engine::upgraded(&worker.settings.rules.http2, settings, Instant::now()).ok()
}

/// A connection that begins with a request in HTTP/1.1.
pub(in crate::engine) struct First {
    begun: Begun,
    request: Request<Body>,
}

impl First {
    pub(in crate::engine) fn new(begun: Begun, mut request: Request<Body>) -> Self {
        *request.version_mut() = Version::HTTP_2;
        for field in [CONNECTION, UPGRADE, HeaderName::from_static("http2-settings")] {
            request.headers_mut().remove(field);
        }
        Self { begun, request }
    }
}

/// Serves a connection of which `read` was read already, and perhaps a request in HTTP/1.1.
pub(in crate::engine) async fn serve<A: App>(
    (app, worker): (Rc<A>, Rc<Worker>),
    slot: Rc<Slot>,
    stream: Stream,
    place: Place,
    read: Bytes,
    origin: Origin<A::State>,
    first: Option<Box<First>>,
) {
    slot.renew(Phase::Head);
    let (engine, request) = match first.map(|first| *first) {
        Some(First { begun: (engine, id), request }) => (engine, Some((id, request))),
        None => (Engine::new(&worker.settings.rules.http2, Instant::now()), None),
    };
    let mut link = Link::new(engine, stream, read.into());
    let session = Session::new(&worker, link.shared(), &slot);
    if let Some((id, request)) = request {
        worker.stats().h2_requests.add(1);
        stream::begin(&app, &session, &origin, id, request);
    }
    let pulse = worker.watch.slot();
    pulse.enter(Phase::Silent);
    let mut conn = Conn {
        app,
        batch: A::Batch::default(),
        age: worker.watch.age(f64::from(worker.random()) / f64::from(u16::MAX)),
        pulse,
        paces: Paces::default(),
        laters: Laters::new(&session),
        requests: Requests::default(),
        rests: Vec::new(),
        is_ending: false,
        has_begun: false,
        is_within_head: false,
        session,
        slot,
        origin,
    };
    let ended = poll_fn(|cx| {
        if conn.is_too_slow(&link, cx) {
            return Poll::Ready(Ended::Lost);
        }
        let was_writing = conn.slot.phase() == Phase::Writing;
        let polled = link.poll(cx, &worker.h2.buffers, &mut conn);
        conn.note_head(link.is_within_head());
        if !was_writing && conn.slot.phase() == Phase::Writing {
            let least = worker.watch.least(Phase::Writing);
            conn.paces.writing.begin(progress(&link), least);
        }
        polled
    });
    let ended = ended.await;
    drop(conn);
    close(&worker, link, ended).await;
    drop(place);
}

fn progress(link: &Link<Stream>) -> Progress {
    link.socket().progress(link.written())
}

/// Ends the connection, and waits for the client to close for as long as it takes the bytes on their way to it.
async fn close(worker: &Worker, mut link: Link<Stream>, ended: Ended) {
    let (linger, least) = (worker.settings.options.timeouts.linger, worker.watch.least(Phase::Lingering));
    let mut pace = Pace::default();
    pace.begin(progress(&link), least);
    while tokio::time::timeout(linger, link.close(ended, LINGER_BYTES, server_runtime::end_turn)).await.is_err()
        && let now = progress(&link)
        && now.under_way > 0
        && pace.has_moved(now.received, least)
    {}
}

struct Conn<A: App> {
    app: Rc<A>,
    batch: A::Batch,
    session: Rc<Session>,
    requests: Requests,
    laters: Laters,
    /// The parts of short answers that found no room; between turns none.
    rests: Vec<(StreamId, Bytes)>,
    /// Whether the client was told that we take no more.
    is_ending: bool,
    /// Whether a request has come.
    has_begun: bool,
    /// Whether the client has begun a head that has not come whole.
    is_within_head: bool,
    slot: Rc<Slot>,
    /// Since when nothing was heard of the client.
    pulse: Rc<Slot>,
    /// Its age, if that has an end.
    age: Option<Rc<Slot>>,
    paces: Paces,
    origin: Origin<A::State>,
}

/// The client's progress in the time of `slot`, and in that of `pulse`.
#[derive(Default)]
struct Paces {
    writing: Pace,
    pulse: Pace,
}

impl<A: App> Conn<A> {
    /// Looks at the clock; whether the client was too slow.
    fn is_too_slow(&mut self, link: &Link<Stream>, cx: &Context<'_>) -> bool {
        self.slot.wake_by(cx.waker());
        self.pulse.wake_by(cx.waker());
        if self.session.is_asked() {
            self.session.report(progress(link));
        }
        if self.slot.is_expired()
            && let phase @ (Phase::Writing | Phase::Free) = self.slot.phase()
            && let now = progress(link)
            // Bytes on their way outlast the time between requests.
            && (phase == Phase::Writing || now.under_way > 0)
            && self.paces.writing.has_moved(now.received, self.session.worker.watch.least(phase))
        {
            self.slot.renew(phase);
        }
        let is_idle = self.slot.phase() == Phase::Free;
        if self.slot.is_expired() && !is_idle {
            self.session.worker.stats().timeouts.add(1);
            return true;
        }
        let drain = self.session.worker.drain.get();
        if drain == Drain::Closing && !self.session.shared.engine().is_open() {
            return true;
        }
        if self.slot.is_expired() || drain != Drain::No {
            self.end();
        }
        if self.is_too_old(cx) || self.pulse.is_expired() && self.is_gone(link) {
            self.session.worker.stats().timeouts.add(1);
            return true;
        }
        false
    }

    /// Looks at the connection's age: an old one takes no more requests. True if its open requests have taken too long.
    fn is_too_old(&mut self, cx: &Context<'_>) -> bool {
        let Some(age) = &self.age else { return false };
        age.wake_by(cx.waker());
        let is_expired = age.is_expired();
        if is_expired && age.phase() == Phase::Young {
            age.renew(Phase::Old);
            self.end();
            return false;
        }
        is_expired
    }

    /// Nothing was heard of the client for some time. A client that should speak gets a PING. True if it has not answered one.
    fn is_gone(&mut self, link: &Link<Stream>) -> bool {
        let Session { worker, shared, .. } = &*self.session;
        let least = worker.watch.least(Phase::Asked);
        let is_asked = self.pulse.phase() == Phase::Asked;
        let should_speak = {
            let engine = shared.engine();
            engine.open_streams() > 0 || worker.watch.keepalive.is_some() && engine.is_open()
        };
        match is_asked {
            _ if !should_speak => self.pulse.renew(Phase::Silent),
            false => {
                shared.engine().ping(*b"are you?");
                self.paces.pulse.begin(progress(link), least);
                self.pulse.renew(Phase::Asked);
            }
            // The question is behind all bytes on their way.
            true if !self.paces.pulse.has_moved(progress(link).received, least) => return true,
            true => self.pulse.renew(Phase::Asked),
        }
        false
    }

    /// Notes whether the client has begun a head that has not come whole. Nothing else comes of it before, so its time is that of a head.
    fn note_head(&mut self, is_within: bool) {
        if self.is_within_head != is_within {
            self.is_within_head = is_within;
            if self.slot.phase() != Phase::Writing {
                self.slot.stay(self.phase());
            }
        }
    }

    /// The phase of a connection that has written all.
    fn phase(&self) -> Phase {
        let engine = self.session.shared.engine();
        match engine.open_streams() {
            _ if !engine.is_open() || self.is_within_head => Phase::Head,
            0 if self.is_ending => Phase::Writing,
            0 => Phase::Free,
            _ => Phase::Busy,
        }
    }

    /// Takes no more requests. The client gets as long to finish as it would to take an answer.
    fn end(&mut self) {
        if !self.is_ending {
            self.is_ending = true;
            self.session.shared.engine().shutdown();
            self.slot.renew(Phase::Writing);
        }
    }

    /// A request has begun; whether it is one that can be answered.
    fn begin(&mut self, stream: StreamId, head: &RequestHead, end: bool, short: Option<Short>) -> bool {
        self.session.worker.stats().h2_requests.add(1);
        self.slot.enter(Phase::Free);
        match short {
            Some(Short::Instant(_)) => true,
            Some(Short::Later(id, encoding)) => {
                self.laters.push(stream, id, encoding);
                true
            }
            None => self.session.worker.h2.buffers.arrivals().request(&mut self.requests, stream, head, end),
        }
    }
}

impl<A: App> Answers for Conn<A> {
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        let session = Rc::clone(&self.session);
        let (shared, buffers) = (&session.shared, &session.worker.h2.buffers);
        let mut engine = shared.engine();
        let now = Instant::now();
        while let Some(event) = engine.next(input, now)? {
            match event {
                Event::Request { stream, head, end } => {
                    let tells = self.session.worker.tells_of_http3(self.origin.is_secure, self.has_begun);
                    let short = if tells { None } else { plain::find(&self.session.worker, head, end) };
                    self.has_begun = true;
                    if !self.begin(stream, head, end, short) {
                        engine.reset(stream, Reason::PROTOCOL_ERROR);
                    } else if let Some(Short::Instant(kind)) = short {
                        self.rests.extend(plain::answer(&self.session.worker, &mut engine, stream, kind));
                    }
                }
                Event::Data { stream, data, end } => {
                    let (length, piece) = (data.len(), buffers.pieces().copy(data));
                    if buffers.arrivals().data(shared, stream, piece, end) {
                        engine.release(stream, length);
                    }
                }
                Event::Trailers { stream, fields } => {
                    self.slot.enter(Phase::Free);
                    buffers.arrivals().trailers(shared, stream, fields);
                }
                Event::TooLarge { stream, head, end } => {
                    self.slot.enter(Phase::Free);
                    if !buffers.arrivals().too_large(shared, stream, head, end) {
                        engine.refuse_large(stream);
                    }
                }
                Event::Reset { stream, reason, .. } => {
                    self.laters.forget(stream);
                    buffers.arrivals().reset(shared, stream, reason);
                }
                Event::Pong(_) | Event::GoAway { .. } => {}
            }
        }
        Ok(())
    }

    fn forget(&mut self, error: Error) {
        tracing::debug!(peer = %self.origin.peer, "HTTP/2: {error}");
        self.session.worker.h2.buffers.arrivals().clear();
        self.rests.clear();
        if error.reason == Reason::ENHANCE_YOUR_CALM {
            self.session.worker.stats().floods.add(1);
        }
    }

    fn answer(&mut self, cx: &mut Context<'_>) {
        // The arrivals are not borrowed while one is answered.
        let next = || self.session.worker.h2.buffers.arrivals().pop(&self.session.shared);
        let mut tasks = 0;
        while tasks < TURN_TASKS
            && let Some((stream, request)) = next()
        {
            let is_task = self.app.begin(&self.session, &self.origin, stream, request, &mut self.batch);
            tasks += usize::from(is_task);
        }
        self.app.has_begun(&mut self.batch);
        self.laters.answer(cx, &mut self.rests);
        for (stream, rest) in self.rests.drain(..) {
            stream::send_rest(&self.session, stream, rest);
        }
    }

    fn has_read(&mut self) {
        self.pulse.renew(Phase::Silent);
    }

    fn end_turn(&mut self, cx: &mut Context<'_>) {
        server_runtime::end_turn(cx);
    }

    /// Notes what the connection waits for, and so how long it may.
    fn has_written(&mut self, some: bool, all: bool) {
        match all {
            false if some => self.slot.enter(Phase::Writing),
            false => self.slot.stay(Phase::Writing),
            true => self.slot.stay(self.phase()),
        }
    }
}
