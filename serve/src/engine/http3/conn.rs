//! A connection: its requests are taken as they come, each of them is a task.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h3::error::{Code, ConnectionError};
use h3::server::RequestResolver;
use server_runtime::{Peer, Shutdown, others};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{sleep, timeout};

use super::gate::Arrival;
use super::stream;
use super::wire::{Intake, Shared, Wire};
use crate::engine::app::{App, End as Ends, Origin};
use crate::engine::watch::{Phase, Slot};
use crate::engine::worker::{Drain, Worker};
use crate::tuning::{H3_ABANDONED, H3_STREAMS, H3_TURN_REQUESTS, HEAD_TIMEOUT, LINGER_TIMEOUT};

/// For a handshake, if TLS has no time-out for it.
const HANDSHAKE_TIMEOUT: Duration = HEAD_TIMEOUT;

/// How long a client may wait with an acknowledgement if it says nothing else (RFC 9000 section 18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);

type Resolver = RequestResolver<Wire, Bytes>;

/// Serves a client to its end.
pub(super) async fn serve<A: App>(app: Rc<A>, worker: Rc<Worker>, arrival: Arrival, shutdown: Shutdown) {
    let Arrival { incoming, config, place, handshake } = arrival;
    let peer = incoming.remote_address();
    let tls = worker.settings.options.runtime.tls.as_ref();
    let patience = tls.map_or(HANDSHAKE_TIMEOUT, |tls| tls.handshake_timeout);
    let connecting = match incoming.accept_with(config) {
        Ok(connecting) => connecting,
        Err(error) => return tracing::debug!(%peer, "QUIC: {error}"),
    };
    let connecting = tokio::select! {
        connecting = timeout(patience, connecting) => connecting,
        () = shutdown.triggered() => return,
    };
    drop(handshake);
    let quic = match connecting {
        Ok(Ok(quic)) => quic,
        Ok(Err(error)) => return tracing::debug!(%peer, "QUIC handshake: {error}"),
        Err(_) => return worker.stats().timeouts.add(1),
    };
    let peer = Peer::Tcp(peer);
    let state = app.open(&Ends { peer: &peer, here: None, shutdown: &shutdown });
    let origin = Origin { peer, is_secure: true, state };
    let limits = &worker.settings.options.limits;
    let shared = Shared::new(quic.clone(), limits.head as u64, limits.control_frames);
    match talk(&app, &origin, &worker, &quic, &shared).await {
        Ok(()) => {}
        Err(Broken::TooSlow) => {
            worker.stats().timeouts.add(1);
            shared.close(Code::H3_NO_ERROR, b"");
        }
        Err(Broken::Ended(error)) => tracing::debug!(peer = %origin.peer, "HTTP/3: {error}"),
    }
    worker.stats().floods.add(shared.is_flooded().into());
    // quinn's task, woken for it, tells the client of the close. A worker that ends forgets the connection; packets
    // that the client sends before it has heard would be answered by a reset (RFC 9000 section 10.2).
    if worker.is_draining() {
        sleep((3 * (3 * quic.rtt() + ACK_DELAY)).min(LINGER_TIMEOUT)).await;
    } else {
        yield_now().await;
    }
    drop(place);
}

/// The next step of a connection.
#[expect(clippy::large_enum_variant, reason = "made and taken apart once for each request, in one place")]
enum Turn {
    Request(Resolver),
    /// The connection comes so far towards its end.
    End(End),
    /// It is over.
    Over,
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    No,
    /// The client is not to begin new requests; those on their way come in.
    Leaving,
    /// No request is taken any more.
    Closing,
}

/// Why a connection has not ended in good order.
enum Broken {
    /// The client lets us open no streams, or takes nothing on them.
    TooSlow,
    /// The client has gone, or has sent what nobody may.
    Ended(ConnectionError),
}

/// Within the time that a client has to take something.
async fn in_time<T>(worker: &Worker, sent: impl Future<Output = Result<T, ConnectionError>>) -> Result<T, Broken> {
    let sent = timeout(worker.settings.options.timeouts.write, sent).await.map_err(|_| Broken::TooSlow)?;
    sent.map_err(Broken::Ended)
}

async fn talk<A: App>(
    app: &Rc<A>,
    origin: &Origin<A::State>,
    worker: &Rc<Worker>,
    quic: &quinn::Connection,
    shared: &Arc<Shared>,
) -> Result<(), Broken> {
    let intake = Rc::new(Intake::default());
    let limits = &worker.settings.options.limits;
    let mut builder = h3::server::builder();
    builder.max_field_section_size(limits.head as u64).send_grease(false);
    let wire = Wire::new(Arc::clone(shared), Rc::clone(&intake));
    let mut h3 = in_time(worker, builder.build::<_, Bytes>(wire)).await?;
    let state = Rc::new(State::new(worker));
    let (mut end, mut requests, mut at_once) = (End::No, 0_u64, 0);
    loop {
        let turn = {
            let mut accept = pin!(h3.accept());
            poll_fn(|cx| {
                state.slot.wake_by(cx.waker());
                match accept.as_mut().poll(cx) {
                    Poll::Ready(Ok(Some(resolver))) => return Poll::Ready(Ok(Turn::Request(resolver))),
                    // The client has said that it is done, and all its requests are.
                    Poll::Ready(Ok(None)) => return Poll::Ready(Ok(Turn::Over)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => at_once = 0,
                }
                look_at_the_clock(worker, &state, end).map(Ok)
            })
            .await
            .map_err(Broken::Ended)?
        };
        match turn {
            Turn::Request(resolver) => {
                requests += 1;
                let (shared, running) = (Arc::clone(shared), Running::new(&state));
                spawn_local(stream::answer(
                    (Rc::clone(app), origin.clone()),
                    Rc::clone(worker),
                    quic.clone(),
                    shared,
                    resolver,
                    intake.take_gone(),
                    running,
                ));
                if requests < limits.requests || limits.requests == 0 {
                    at_once += 1;
                    if at_once == H3_TURN_REQUESTS {
                        at_once = 0;
                        others().await;
                    }
                    continue;
                }
                end = End::Closing;
            }
            Turn::End(how) => end = how,
            Turn::Over => return Ok(()),
        }
        state.leave();
        let more = if end == End::Closing { 0 } else { H3_STREAMS };
        intake.end_after(more.into());
        // h3 counts from the last request that it has, RFC 9114 section 5.2 from the first that is taken no more.
        in_time(worker, h3.shutdown(more as usize + 1)).await?;
        // It leaves before the connection is closed, which takes with it what has not left.
        yield_now().await;
    }
}

/// The step that the clock or the end of the server demands of a connection that waits.
fn look_at_the_clock(worker: &Worker, state: &State, end: End) -> Poll<Turn> {
    let wanted = match worker.drain.get() {
        Drain::No if end == End::No && state.is_worn() => End::Leaving,
        Drain::No => end,
        Drain::LameDuck => End::Leaving,
        Drain::Closing => End::Closing,
    };
    if wanted > end {
        return Poll::Ready(Turn::End(wanted));
    }
    let may_end = end == End::Closing || (end == End::Leaving && state.slot.is_expired());
    if may_end && state.active.get() == 0 { Poll::Ready(Turn::Over) } else { Poll::Pending }
}

/// State that a connection and its requests share.
struct State {
    slot: Rc<Slot>,
    /// Requests under way.
    active: Cell<usize>,
    /// Those that were given up within their heads.
    abandoned: Cell<u32>,
    /// The phase of the connection when there are none.
    rest: Cell<Phase>,
    /// Bytes of answers that were given to QUIC. It takes as many as were acknowledged of those before.
    given: Cell<u64>,
}

impl State {
    fn new(worker: &Worker) -> Self {
        let (slot, rest) = (worker.watch.slot(), Cell::new(Phase::Idle));
        Self { slot, active: Cell::new(0), abandoned: Cell::new(0), rest, given: Cell::new(0) }
    }

    /// Whether the connection should end by itself.
    fn is_worn(&self) -> bool {
        self.slot.is_expired() || self.abandoned.get() >= H3_ABANDONED
    }

    /// The connection begins to end.
    fn leave(&self) {
        self.rest.set(Phase::Lingering);
        if self.active.get() == 0 {
            self.slot.renew(Phase::Lingering);
        }
    }
}

/// A request that is under way.
pub(super) struct Running(Rc<State>);

impl Running {
    fn new(state: &Rc<State>) -> Self {
        state.active.set(state.active.get() + 1);
        state.slot.renew(Phase::Busy);
        Self(Rc::clone(state))
    }

    /// Bytes of answers that were given to QUIC, also for other requests of the connection.
    pub(super) fn given(&self) -> u64 {
        self.0.given.get()
    }

    /// QUIC has taken these bytes of the answer.
    pub(super) fn gave(&self, bytes: usize) {
        self.0.given.set(self.0.given.get() + bytes as u64);
    }

    /// The request is none.
    pub(super) fn abandon(self) {
        self.0.abandoned.set(self.0.abandoned.get().saturating_add(1));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        if self.0.active.get() == 0 {
            self.0.slot.renew(self.0.rest.get());
            self.0.slot.wake();
        }
    }
}
