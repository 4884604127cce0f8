//! The thread that moves the datagrams of an endpoint on tokio: nothing that tokio waits for tells packet information on
//! every system.

use core::task::Waker;
use std::io;
use std::sync::Arc;
use std::thread;
use std::vec::Vec;

use tokio::sync::oneshot;

use crate::net::engine::Device;
use crate::net::error::BindError;
use crate::net::io::Io;
use crate::net::shared::Shared;
use crate::net::token;

/// Batches taken from one socket in a turn, so that no socket can keep the others from their turn.
const BATCHES: usize = 64;

/// Starts the thread, which ends when the last endpoint is gone, or the runtime.
///
/// # Panics
/// Outside of a tokio runtime.
pub(in crate::net) fn drive<D: Device + Send + 'static>(shared: Arc<Shared<D>>, mut io: Io) -> Result<(), BindError> {
    let failed = |source| BindError::Io { doing: "starting a thread that watches the sockets", address: None, source };
    io.follow_sockets().map_err(failed)?;
    let generation = io.departing.sockets.generation();
    let waker = Arc::new(io.watch.waker().map_err(failed)?).into();
    let (alive, ended) = oneshot::channel();
    let guard = Guard(Arc::clone(&shared));
    tokio::spawn(async move {
        let _guard = guard;
        // An error, as nothing is ever sent.
        let _ = ended.await;
    });
    let driver = Driver { shared, io, generation, waker, wakers: Vec::new(), _alive: alive };
    thread::Builder::new().name("echonet-lite".into()).spawn(|| driver.run()).map(drop).map_err(failed)
}

struct Driver<D: Device> {
    shared: Arc<Shared<D>>,
    io: Io,
    /// Of the sockets that are followed.
    generation: u32,
    waker: Waker,
    wakers: Vec<Waker>,
    /// Ends the task that waits for the end of the runtime.
    _alive: oneshot::Sender<()>,
}

/// Ends the thread with the runtime.
struct Guard<D: Device>(Arc<Shared<D>>);

impl<D: Device> Drop for Guard<D> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<D: Device> Driver<D> {
    /// Goes on until the last endpoint is gone, or the system no longer lets this thread wait.
    fn run(mut self) {
        while let Some(()) = self.turn().ok().flatten() {}
    }

    /// Sends what is due, waits for something to come, and deals with it; none when it is over.
    fn turn(&mut self) -> io::Result<Option<()>> {
        let Self { shared, io, wakers, .. } = self;
        let mut state = shared.lock();
        if shared.is_closed() {
            return Ok(None);
        }
        let now = state.engine.now();
        shared.sweep(&mut state);
        io.transmit(now, &mut state.engine);
        state.dispatch(&shared.events, wakers);
        state.driver = Some(self.waker.clone());
        let time = io.deadline(&state.engine).map(|deadline| deadline.since(now));
        drop(state);
        io.departing.flush();
        wakers.drain(..).for_each(Waker::wake);
        let happened = io.watch.wait(time)?;
        for &event in happened.tokens() {
            if (token::SOCKETS..token::CONNECTIONS).contains(&event) {
                self.receive((event - token::SOCKETS) as usize);
            } else if self.attend(event)? {
                // The other events name sockets that may be others by now; datagrams left there come as events again.
                break;
            }
        }
        Ok(Some(()))
    }

    /// Takes what has come by a socket.
    fn receive(&mut self, at: usize) {
        for _ in 0..BATCHES {
            let (count, more) = self.io.receive(at, false);
            if count > 0 {
                let mut state = self.shared.lock();
                let now = state.engine.now();
                self.io.deliver(now, at, count, &mut state.engine);
            }
            if !more {
                break;
            }
        }
    }

    /// Deals with one event that is not a UDP socket's; says whether the sockets are others now.
    fn attend(&mut self, event: u64) -> io::Result<bool> {
        let mut state = self.shared.lock();
        let now = state.engine.now();
        self.io.attend(now, event, &mut state.engine);
        if event == token::CHANGES {
            state.interfaces = self.io.departing.sockets.interfaces().to_vec();
            state.listens_tcp = self.io.tcp.is_listening();
        }
        drop(state);
        let generation = self.io.departing.sockets.generation();
        if generation == self.generation {
            return Ok(false);
        }
        self.generation = generation;
        self.io.follow_sockets()?;
        Ok(true)
    }
}

impl<D: Device> Drop for Driver<D> {
    /// The last endpoint is gone: nothing will move any more.
    fn drop(&mut self) {
        self.shared.end();
    }
}
