//! The worker threads, and what a server is to them.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::runtime::{Handle, LocalRuntime, RuntimeMetrics};
use tokio::task::spawn_local;
use tracing::warn;

use crate::counters::{Counters, Place};
use crate::listen::{Accepted, Arriving, Dealer, Incoming, Listener, TURN_ACCEPTS, Transport};
use crate::pin::Home;
use crate::shutdown::{Shutdown, Stop};
use crate::stream::{Connection, Peer, Routes, Stream};
use crate::tcp::Tcp;
use crate::timers::{self, Timers};
use crate::tls;
use crate::turns;

/// The handling of connections. One value is shared by all workers.
pub trait Service: Send + Sync + 'static {
    /// State of one worker, made on the worker's own thread; it never leaves it.
    type Worker: 'static;

    /// The state that a connection takes along when it moves to another worker: `()` where none [moves](Service::moves).
    type Carried: Send + 'static;

    /// Whether tokio's timers work on the workers. If not, only [`sleep`](crate::sleep) does, which has another thread keep the
    /// time, and a worker that waits for its sockets spends nothing on timers.
    const TIMERS: bool = true;

    /// Makes the state of a worker, on its thread and inside its runtime: `tokio::task::spawn_local` works here.
    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker;

    /// Serves one connection to its end, on its worker's thread; the future need not be `Send`.
    fn serve(
        self: Arc<Self>,
        worker: Rc<Self::Worker>,
        connection: Connection<Self::Carried>,
    ) -> impl Future<Output = ()> + 'static;

    /// Whether [`serve`](Service::serve) looks at [`Place::is_asked_to`] and follows it, as long as it has not
    /// [settled](Place::settle). If so, connections gather on as few workers as can carry them and spread when those are busy; if not,
    /// they are dealt out evenly and stay. Asked once, at the start.
    fn moves(&self) -> bool {
        false
    }

    /// Nanoseconds that all workers together have spent so far on what only one of them can do at a time. Where that is a
    /// large part of their work, connections do not spread: the workers would wait for each other. None by default.
    fn serial_nanos(&self) -> u64 {
        0
    }

    /// The bytes that a connection receives before it is closed because the limit is reached. Nothing by default.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Called on a worker's thread and inside its runtime when it can serve: for what it serves beside the connections of the
    /// listeners. `shutdown` goes up when they may end.
    fn started(self: &Arc<Self>, worker: &Rc<Self::Worker>, shutdown: &Shutdown) {
        let _ = (worker, shutdown);
    }

    /// Called once, before any worker is made: the handle gives the connection counts and can end the server.
    fn starting(&self, handle: &crate::Handle) {
        let _ = handle;
    }
}

/// Both ends of a connection, and its place in the count.
type Ends = (Peer, Peer, Place);

/// One worker's view of the server.
pub(crate) struct Worker<S: Service> {
    pub(crate) index: usize,
    /// Where it is to stay.
    pub(crate) home: Option<Home>,
    pub(crate) service: Arc<S>,
    /// The ways to all workers.
    pub(crate) routes: Routes<S::Carried>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) shutdown: Shutdown,
    /// Ends the drain at once.
    pub(crate) now: Shutdown,
    pub(crate) drain: Duration,
    /// The thread that keeps time, if the worker's runtime does not.
    pub(crate) timers: Option<Timers>,
}

/// The listeners of a thread, and the end of accepting.
pub(crate) struct Accepting {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) until: Shutdown,
    /// Dropped when it listens no more.
    pub(crate) told: Arc<Told>,
}

/// Tells the connections, when its last clone is dropped, that nobody listens any more.
pub(crate) struct Told(pub(crate) Arc<Stop>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.listens_no_more();
    }
}

/// Threads of one worker for `spawn_blocking`: for handlers that block, and files that have to come from a disk. tokio's default is 512 for
/// each runtime, and so for each worker here. A task without a free thread waits for one.
const BLOCKING_THREADS: usize = 64;

/// Tasks that are polled between two looks at the sockets: tokio's default is 61. A look costs less than half a microsecond, a
/// task some, or tens where it reads a file: so many of them keep others waiting.
const EVENT_INTERVAL: u32 = 16;

/// A runtime for one thread, all of whose tasks stay there.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    runtime_at(None, true)
}

/// The same, whose threads for blocking work are not bound to the home that its own thread enters.
fn runtime_at(home: Option<Home>, keeps_time: bool) -> io::Result<LocalRuntime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(BLOCKING_THREADS);
    builder.event_interval(EVENT_INTERVAL);
    if let Some(home) = home {
        builder.on_thread_start(move || home.leave());
    }
    builder.enable_io();
    if keeps_time {
        builder.enable_time();
    }
    let runtime = builder.build_local(Default::default())?;
    if let Some(home) = home {
        home.enter();
    }
    Ok(runtime)
}

impl<S: Service> Worker<S> {
    /// Serves until the shutdown what it accepts, if it does, and what others send it, then drains. Tells whether connections were cut.
    pub(crate) fn run(
        mut self,
        accepting: Option<Accepting>,
        mut arrivals: Arriving<S::Carried>,
        ready: SyncSender<io::Result<RuntimeMetrics>>,
    ) -> bool {
        let timers = self.timers.take();
        let runtime = match runtime_at(self.home, timers.is_none()) {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this line; if it is gone, nobody is left to be told.
                let _ = ready.send(Err(error));
                return false;
            }
        };
        if let Some(timers) = timers {
            timers.enter();
        }
        let cut = runtime.block_on(async move {
            let state = Rc::new(self.service.worker(self.index));
            self.service.started(&state, &self.shutdown);
            let _ = ready.send(Ok(Handle::current().metrics()));
            // The starter tells a worker that fails by this end hanging up.
            drop(ready);
            let worker = Rc::new(self);
            accepting.into_iter().for_each(|accepting| worker.start_accepting(&state, accepting));
            let mut triggered = pin!(worker.shutdown.triggered());
            let mut served = 0_usize;
            loop {
                tokio::select! {
                    biased;
                    Some(accepted) = arrivals.recv() => {
                        worker.serve(&state, accepted);
                        served += 1;
                        if served.is_multiple_of(TURN_ACCEPTS) {
                            turns::others().await;
                        }
                    }
                    () = &mut triggered => break,
                    () = worker.counters.answer(worker.index) => {}
                }
            }
            worker.drain(&state, &mut arrivals).await
        });
        // This is what cuts the connections that are still open. It does not wait for `spawn_blocking`'s threads.
        runtime.shutdown_background();
        cut
    }

    fn start_accepting(self: &Rc<Self>, state: &Rc<S::Worker>, Accepting { listeners, until, told }: Accepting) {
        let dealer = Rc::new(Dealer {
            counters: Arc::clone(&self.counters),
            here: Some(self.index),
            routes: self.routes.clone(),
            refusal: self.service.refusal().into(),
        });
        for listener in listeners {
            let (worker, state, dealer) = (Rc::clone(self), Rc::clone(state), Rc::clone(&dealer));
            let (until, told) = (until.clone(), Arc::clone(&told));
            spawn_local(async move {
                let take = |incoming: Incoming<'_>| {
                    dealer.deal(incoming).into_iter().for_each(|accepted| worker.serve(&state, accepted));
                };
                tokio::select! {
                    () = listener.accept(&worker.counters, take) => {}
                    () = until.triggered() => {}
                }
                // The listener is closed by now.
                drop(told);
            });
        }
    }

    fn connection(
        &self,
        stream: Stream,
        (peer, local, place): Ends,
        carried: Option<S::Carried>,
    ) -> Connection<S::Carried> {
        let (shutdown, routes) = (self.shutdown.clone(), self.routes.clone());
        Connection { stream, peer, local, shutdown, place, carried, routes }
    }

    fn serve(&self, state: &Rc<S::Worker>, accepted: Accepted<S::Carried>) {
        let Accepted { socket, peer, local, place, carried } = accepted;
        let stream = match socket {
            Transport::Tcp(socket) => Ok(Stream::Tcp(Tcp::new(socket))),
            Transport::Unix(socket) => UnixStream::from_std(socket).map(Stream::Unix),
            Transport::Tls(socket, session) => return self.serve_tls(state, socket, session, (peer, local, place)),
        };
        match stream {
            // The service's future is the task: nothing is wrapped around it that every idle connection would pay for.
            Ok(stream) => {
                let connection = self.connection(stream, (peer, local, place), carried);
                spawn_local(Arc::clone(&self.service).serve(Rc::clone(state), connection));
            }
            Err(error) => warn!("cannot serve {peer}: {error}"),
        }
    }

    fn serve_tls(
        &self,
        state: &Rc<S::Worker>,
        socket: std::net::TcpStream,
        session: tls::Session,
        (peer, local, place): Ends,
    ) {
        let (service, state) = (Arc::clone(&self.service), Rc::clone(state));
        let (shutdown, routes) = (self.shutdown.clone(), self.routes.clone());
        spawn_local(async move {
            let handshake = tokio::select! {
                handshake = session.handshake(socket) => handshake,
                () = shutdown.triggered() => return,
            };
            match handshake {
                Ok(stream) => {
                    let stream = Stream::Tls(Box::new(stream));
                    let connection = Connection { stream, peer, local, shutdown, place, carried: None, routes };
                    service.serve(state, connection).await;
                }
                Err(error) => {
                    place.counters().handshake_failed(&error, &peer);
                }
            }
        });
    }

    async fn drain(&self, state: &Rc<S::Worker>, moved: &mut Arriving<S::Carried>) -> bool {
        // Connections that were on their way from another worker when the shutdown began. Never over: this worker has a way to itself.
        let stragglers = async {
            while let Some(accepted) = moved.recv().await {
                self.serve(state, accepted);
            }
        };
        tokio::select! {
            biased;
            () = self.counters.drained(self.index) => return false,
            () = stragglers => {}
            () = timers::sleep(self.drain) => {}
            () = self.now.triggered() => {}
        }
        let open = self.counters.open_on(self.index);
        if open > 0 {
            warn!("worker-{} cuts {open} connections", self.index);
        }
        open > 0
    }
}
