//! The task that moves the datagrams of an endpoint on tokio.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::boxed::Box;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::vec::Vec;

use tokio::io::Ready;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant as SystemInstant, Sleep};

use super::sys;
use crate::net::engine::Device;
use crate::net::error::BindError;
use crate::net::io::Io;
use crate::net::shared::Shared;
use crate::net::token;
use crate::node::Instant;

/// Turns of the driver before it lets other tasks run.
const TURNS: usize = 16;

/// Starts the task.
///
/// # Panics
/// Outside of a tokio runtime with I/O and time enabled.
pub(in crate::net) fn drive<D: Device + Send + 'static>(shared: Arc<Shared<D>>, io: Io) -> Result<(), BindError> {
    tokio::spawn(Driver::new(shared, io)?);
    Ok(())
}

/// The task that moves the datagrams.
struct Driver<D: Device> {
    shared: Arc<Shared<D>>,
    io: Io,
    /// One for each socket, in the same order; then the one for everything rare.
    ready: Vec<AsyncFd<OwnedFd>>,
    /// Of the sockets that `ready` watches.
    generation: u32,
    rare: AsyncFd<OwnedFd>,
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
    wakers: Vec<Waker>,
}

impl<D: Device> Driver<D> {
    fn new(shared: Arc<Shared<D>>, io: Io) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { doing: "registering a socket", address: None, source };
        let ready = registered(&io).map_err(failed)?;
        let rare = io.watch.as_fd().try_clone_to_owned().and_then(sys::watch).map_err(failed)?;
        let generation = io.departing.sockets.generation();
        Ok(Self { shared, io, ready, generation, rare, sleep: None, wakers: Vec::new() })
    }

    /// Receives what has come, and says whether anything had.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        for (at, ready) in self.ready.iter().enumerate() {
            let Poll::Ready(Ok(mut guard)) = ready.poll_read_ready(cx) else { continue };
            any = true;
            let (count, more) = self.io.receive(at, false);
            if !more {
                // A datagram that comes from here on makes the socket ready anew.
                guard.clear_ready_matching(Ready::READABLE);
            }
            if count > 0 {
                let mut state = self.shared.lock();
                let now = state.engine.now();
                self.io.deliver(now, at, count, &mut state.engine);
            }
        }
        any | self.attend(cx)
    }

    /// Deals with what happens rarely, and says whether anything had.
    fn attend(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(Ok(mut guard)) = self.rare.poll_read_ready(cx) else { return false };
        let happened = self.io.watch.wait(Some(Duration::ZERO));
        let tokens = happened.as_ref().map_or(&[][..], |happened| happened.tokens());
        if tokens.is_empty() {
            guard.clear_ready();
        }
        let mut state = self.shared.lock();
        let now = state.engine.now();
        for &token in tokens {
            self.io.attend(now, token, &mut state.engine);
            if token == token::CHANGES {
                state.interfaces = self.io.departing.sockets.interfaces().to_vec();
                state.listens_tcp = self.io.tcp.is_listening();
            }
        }
        drop(state);
        let generation = self.io.departing.sockets.generation();
        if generation != self.generation {
            // Without descriptors for it, it is tried again when something happens next.
            if let Ok(ready) = registered(&self.io) {
                (self.ready, self.generation) = (ready, generation);
            } else {
                self.ready.clear();
            }
        }
        true
    }

    /// Has the task polled again at a deadline; says whether that is now.
    fn await_deadline(&mut self, cx: &mut Context<'_>, deadline: Option<(Instant, SystemInstant)>) -> bool {
        let Some((deadline, system)) = deadline else {
            self.sleep = None;
            return false;
        };
        match &mut self.sleep {
            // One that comes too early costs a poll; setting it anew for each request would cost more.
            Some((armed, _)) if *armed <= deadline => {}
            Some((armed, sleep)) => {
                *armed = deadline;
                sleep.as_mut().reset(system);
            }
            None => self.sleep = Some((deadline, Box::pin(tokio::time::sleep_until(system)))),
        }
        let Some((_, sleep)) = &mut self.sleep else { return false };
        let due = sleep.as_mut().poll(cx).is_ready();
        if due {
            self.sleep = None;
        }
        due
    }
}

/// Has the runtime say when one of the sockets can be read.
fn registered(io: &Io) -> io::Result<Vec<AsyncFd<OwnedFd>>> {
    let sockets = &io.departing.sockets;
    let clones = (0..sockets.len()).map(|at| sockets.udp(at).socket().as_fd().try_clone_to_owned());
    clones.map(|descriptor| sys::watch(descriptor?)).collect()
}

impl<D: Device> Drop for Driver<D> {
    /// The last endpoint is gone, or the runtime: nothing will move any more.
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl<D: Device> Future for Driver<D> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        for _ in 0..TURNS {
            let received = this.receive(cx);
            let mut state = this.shared.lock();
            if this.shared.is_closed() {
                return Poll::Ready(());
            }
            let now = state.engine.now();
            this.shared.sweep(&mut state);
            this.io.transmit(now, &mut state.engine);
            state.dispatch(&this.shared.events, &mut this.wakers);
            state.driver = Some(cx.waker().clone());
            let deadline = this.io.deadline(&state.engine).map(|at| (at, state.engine.system_time(at)));
            drop(state);
            this.io.departing.flush();
            this.wakers.drain(..).for_each(Waker::wake);
            let due = this.await_deadline(cx, deadline);
            if !received && !due {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
