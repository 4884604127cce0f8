//! The worker threads, and what a server is to them.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::LocalRuntime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;
use tracing::{debug, warn};

use crate::Handle;
use crate::counters::{Counters, Place};
use crate::listen::{Accepted, Transport};
use crate::shutdown::Shutdown;
use crate::stream::{Connection, Peer, Stream};
use crate::tls;

/// What a server does with a connection. One value is shared by all workers.
pub trait Service: Send + Sync + 'static {
    /// State of one worker, made on the worker's own thread; it never leaves it.
    type Worker: 'static;

    /// Makes the state of a worker, on its thread and inside its runtime: `tokio::task::spawn_local` works here.
    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker;

    /// Serves one connection to its end, on its worker's thread; the future need not be `Send`.
    fn serve(self: Arc<Self>, worker: Rc<Self::Worker>, connection: Connection) -> impl Future<Output = ()> + 'static;

    /// What a connection is told before it is closed because the limit is reached. Nothing by default.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Called once, before any worker is made: the handle gives the connection counts and can end the server.
    fn starting(&self, handle: &Handle) {
        let _ = handle;
    }
}

/// One worker's view of the server.
pub(crate) struct Worker<S> {
    pub(crate) index: usize,
    pub(crate) service: Arc<S>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) shutdown: Shutdown,
    /// Ends the drain at once.
    pub(crate) now: Shutdown,
    pub(crate) drain: Duration,
}

/// A runtime for one thread, all of whose tasks stay there.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())
}

impl<S: Service> Worker<S> {
    /// Serves what arrives until the acceptor hangs up, then drains. Tells whether connections were cut.
    pub(crate) fn run(self, mut arrivals: UnboundedReceiver<Accepted>, ready: SyncSender<io::Result<()>>) -> bool {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this line; if it is gone, nobody is left to be told.
                let _ = ready.send(Err(error));
                return false;
            }
        };
        runtime.block_on(async move {
            let state = Rc::new(self.service.worker(self.index));
            let _ = ready.send(Ok(()));
            // The starter tells a worker that fails by this end hanging up.
            drop(ready);
            while let Some(accepted) = arrivals.recv().await {
                self.serve(&state, accepted);
            }
            self.drain().await
        })
        // Dropping the runtime cuts what is still open.
    }

    fn serve(&self, state: &Rc<S::Worker>, Accepted { socket, peer, local, place }: Accepted) {
        let connect =
            |stream, peer, local, place| Connection { stream, peer, local, shutdown: self.shutdown.clone(), place };
        let stream = match socket {
            Transport::Tcp(socket) => TcpStream::from_std(socket).map(Stream::Tcp),
            Transport::Unix(socket) => UnixStream::from_std(socket).map(Stream::Unix),
            Transport::Tls(socket, session) => return self.serve_tls(state, socket, session, (peer, local, place)),
        };
        match stream {
            // The service's future is the task: nothing is wrapped around it that every idle connection would pay for.
            Ok(stream) => {
                spawn_local(Arc::clone(&self.service).serve(Rc::clone(state), connect(stream, peer, local, place)));
            }
            Err(error) => warn!("cannot serve {peer}: {error}"),
        }
    }

    fn serve_tls(
        &self,
        state: &Rc<S::Worker>,
        socket: std::net::TcpStream,
        session: tls::Session,
        (peer, local, place): (Peer, Peer, Place),
    ) {
        let (service, state, shutdown) = (Arc::clone(&self.service), Rc::clone(state), self.shutdown.clone());
        spawn_local(async move {
            let handshake = tokio::select! {
                handshake = session.handshake(socket) => handshake,
                () = shutdown.triggered() => return,
            };
            match handshake {
                Ok(stream) => {
                    let stream = Stream::Tls(Box::new(stream));
                    service.serve(state, Connection { stream, peer, local, shutdown, place }).await;
                }
                Err(error) => {
                    place.counters().handshake_errors.fetch_add(1, Relaxed);
                    debug!("TLS handshake with {peer}: {error}");
                }
            }
        });
    }

    async fn drain(&self) -> bool {
        tokio::select! {
            biased;
            () = self.counters.drained(self.index) => return false,
            () = tokio::time::sleep(self.drain) => {}
            () = self.now.triggered() => {}
        }
        warn!("worker-{} cuts {} connections", self.index, self.counters.open_on(self.index));
        true
    }
}
