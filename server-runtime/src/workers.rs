//! The worker threads, and what a server is to them.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::runtime::LocalRuntime;
use tracing::warn;

use crate::accepted::{Accepted, Arriving, Routes, Transport};
use crate::counters::{Counters, Place};
use crate::event_loop::{EventLoop, Polled, TASKS_PER_LOOK, Work, spawn_local};
use crate::handle::Handle;
use crate::listen::{Dealer, Incoming, Listener, TURN_ACCEPTS};
use crate::peer::Peer;
use crate::pin::Home;
use crate::shutdown::{Shutdown, Stop};
use crate::stream::{Connection, Stream};
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

    /// True if each worker has a loop of this crate's own instead of a tokio runtime. A request that comes alone then costs about half
    /// the instructions, because tasks and sockets never leave their thread. In return, tasks begin by
    /// [`spawn_local`] and wait by [`sleep`](crate::sleep), which has another thread keep the time; tokio's own sockets,
    /// timers and `spawn_blocking` do not work there. Its channels do.
    const OWN_LOOP: bool = false;

    /// Makes the state of a worker, on its thread: [`spawn_local`] works here, and `tokio::task::spawn_local` unless
    /// the worker has a [loop of its own](Service::OWN_LOOP).
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

    /// Called on a worker's thread, and inside its runtime if it has one, when it can serve: for what it serves beside the connections of the
    /// listeners. `shutdown` goes up when they may end.
    ///
    /// # Errors
    /// When the server cannot start without it.
    fn started(self: &Arc<Self>, worker: &Rc<Self::Worker>, shutdown: &Shutdown) -> io::Result<()> {
        let _ = (worker, shutdown);
        Ok(())
    }

    /// Called once, before any worker is made: the handle gives the connection counts and can end the server.
    fn starting(&self, handle: &Handle) {
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
    /// The thread that keeps time for a worker without a runtime.
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

/// A runtime for one thread, all of whose tasks stay there.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    runtime_at(None)
}

/// The same, whose threads for blocking work are not bound to the home of its own thread.
fn runtime_at(home: Option<Home>) -> io::Result<LocalRuntime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(BLOCKING_THREADS);
    // tokio's default is 61.
    builder.event_interval(TASKS_PER_LOOK);
    if let Some(home) = home {
        builder.on_thread_start(move || home.leave());
    }
    builder.enable_io().enable_time();
    builder.build_local(Default::default())
}

impl<S: Service> Worker<S> {
    /// Serves until the shutdown what it accepts, if it does, and what others send it, then drains. Tells whether connections were cut.
    pub(crate) fn run(
        mut self,
        accepting: Option<Accepting>,
        arrivals: Arriving<S::Carried>,
        ready: SyncSender<io::Result<Work>>,
    ) -> bool {
        let home = self.home;
        let served = if S::OWN_LOOP {
            self.timers.take().into_iter().for_each(Timers::enter);
            EventLoop::new().map(|event_loop| {
                home.into_iter().for_each(|home| home.enter());
                let work = event_loop.work();
                event_loop.run(self.serve_all(accepting, arrivals, ready.clone(), work))
            })
        } else {
            runtime_at(home).map(|runtime| {
                home.into_iter().for_each(|home| home.enter());
                let work = Work::Runtime(runtime.handle().metrics());
                let cut = runtime.block_on(self.serve_all(accepting, arrivals, ready.clone(), work));
                // This is what cuts the connections that are still open. It does not wait for `spawn_blocking`'s threads.
                runtime.shutdown_background();
                cut
            })
        };
        served.unwrap_or_else(|error| {
            // The starter waits for this line; if it is gone, nobody is left to be told.
            let _ = ready.send(Err(error));
            false
        })
    }

    async fn serve_all(
        self,
        accepting: Option<Accepting>,
        mut arrivals: Arriving<S::Carried>,
        ready: SyncSender<io::Result<Work>>,
        work: Work,
    ) -> bool {
        let state = Rc::new(self.service.worker(self.index));
        let started = self.service.started(&state, &self.shutdown);
        let is_ready = started.is_ok();
        // The starter waits for this line; if it is gone, nobody is left to be told.
        let _ = ready.send(started.map(|()| work));
        // The starter tells a worker that fails by this end hanging up.
        drop(ready);
        if !is_ready {
            return false;
        }
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
            Transport::Tcp(socket) if S::OWN_LOOP => Ok(Stream::Polled(Polled::tcp(socket))),
            Transport::Unix(socket) if S::OWN_LOOP => Ok(Stream::Polled(Polled::unix(socket))),
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
                handshake = Stream::handshake(socket, session) => handshake,
                () = shutdown.triggered() => return,
            };
            match handshake {
                Ok(stream) => {
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
