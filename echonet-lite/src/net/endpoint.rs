//! The endpoint of programs that run on tokio.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::boxed::Box;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::vec::Vec;

use tokio::io::Ready;
use tokio::io::unix::AsyncFd;
use tokio::sync::broadcast;
use tokio::time::Sleep;

use super::builder::Builder;
use super::engine::{Device, Engine};
use super::error::{BindError, Error};
use super::interface::Interface;
use super::io::Io;
use super::pending::Pending;
use super::shared::{Reentered, Shared, State};
use super::sys;
use super::watch::token;
use crate::controller::{Answer, Event, NodeAddr, NodeInfo, Notification, Request, RequestError, RequestId, Write};
use crate::node::Instant;
use crate::wire::Eoj;

/// Events that wait for a slow listener; the oldest are lost when there are more.
const EVENTS: usize = 1024;

/// Turns of the driver before it lets other tasks run.
const TURNS: usize = 16;

/// A node on the network: what it serves, and the means to ask others.
///
/// A background task moves the datagrams for as long as a clone of this exists. All methods can be called from any
/// task; a future that is dropped gives its request up.
///
/// An [`Object`](crate::node::Object) that panics ends the answer that it was asked for, with
/// [`Event::ObjectPanicked`]; the node goes on. (Not where the program is built with `panic = "abort"`.) An object cannot
/// call the endpoint that serves it, which waits for that very object: requests end with [`Error::Reentered`] there, and all
/// other methods panic. Have the object send to a channel what a task of the program then does.
#[derive(Debug)]
pub struct Endpoint<D: Device + Send + 'static = ()> {
    handle: Arc<Handle<D>>,
}

impl<D: Device + Send + 'static> Clone for Endpoint<D> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl Endpoint {
    /// Begins to describe an endpoint.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<D: Device + Send + 'static> Builder<D> {
    /// Opens the sockets and starts to serve.
    ///
    /// # Errors
    /// No socket could be opened as asked for.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    #[expect(clippy::unused_async, reason = "it has to run inside a runtime")]
    pub async fn bind(self) -> Result<Endpoint<D>, BindError> {
        let (engine, io) = self.open()?;
        let interfaces = io.departing.sockets.interfaces().to_vec();
        let listens_tcp = io.tcp.is_listening();
        let state = State { engine, interfaces, listens_tcp, pending: Pending::default(), driver: None };
        let shared = Arc::new(Shared::new(state, broadcast::Sender::new(EVENTS)));
        let driver = Driver::new(Arc::clone(&shared), io)?;
        tokio::spawn(driver);
        Ok(Endpoint { handle: Arc::new(Handle(shared)) })
    }
}

impl<D: Device + Send + 'static> Endpoint<D> {
    /// Reads properties of an object.
    ///
    /// # Errors
    /// The request was impossible, or nobody answered in time. A refusal is an answer.
    pub async fn get(&self, node: impl Into<NodeAddr>, eoj: Eoj, epcs: &[u8]) -> Result<Answer, Error> {
        self.request(node, &Request::get(eoj, epcs)).await
    }

    /// Writes properties of an object and waits for the confirmation.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn set(&self, node: impl Into<NodeAddr>, eoj: Eoj, writes: &[Write<'_>]) -> Result<Answer, Error> {
        self.request(node, &Request::set(eoj, writes)).await
    }

    /// Makes any request to one object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn request(&self, node: impl Into<NodeAddr>, request: &Request<'_>) -> Result<Answer, Error> {
        let node = node.into();
        let reply = self.begin(|engine, now| engine.controller.request(now, node, request))?;
        let ended = poll_fn(|cx| match reply.shared.try_with(|state| state.pending.poll_answer(reply.place, cx)) {
            Ok(poll) => poll.map(Ok),
            Err(Reentered) => Poll::Ready(Err(Error::Reentered)),
        });
        ended.await?.ok_or(Error::Closed)?.map_err(Error::Failed)
    }

    /// Makes a request to all nodes, or to all objects of a class (instance 0) of one, and collects the answers of all
    /// who gave one in time.
    ///
    /// # Errors
    /// The request was impossible.
    pub async fn request_all(&self, node: Option<NodeAddr>, request: &Request<'_>) -> Result<Vec<Answer>, Error> {
        let reply = self.begin(|engine, now| match node {
            Some(node) => engine.controller.request(now, node, request),
            None => engine.controller.request_all(now, request),
        })?;
        let ended = poll_fn(|cx| match reply.shared.try_with(|state| state.pending.poll_answers(reply.place, cx)) {
            Ok(poll) => poll.map(Ok),
            Err(Reentered) => Poll::Ready(Err(Error::Reentered)),
        });
        ended.await?.ok_or(Error::Closed)
    }

    /// Searches for nodes, for as long as given, and tells what is known of those that answered.
    ///
    /// # Errors
    /// Too many requests are outstanding.
    pub async fn discover(&self, time: Duration) -> Result<Vec<NodeInfo>, Error> {
        let reply = self.begin(|engine, now| engine.controller.discover(now))?;
        tokio::time::sleep(time).await;
        let mut found = Vec::new();
        self.handle.0.with(|state| {
            let answered = |node: &&NodeInfo| state.pending.has_answered(reply.place, node.addr);
            found = state.engine.controller.nodes().filter(answered).cloned().collect();
        });
        found.sort_by_key(|node: &NodeInfo| node.addr);
        Ok(found)
    }

    /// The interfaces in use.
    pub fn interfaces(&self) -> Vec<Interface> {
        self.handle.0.with(|state| state.interfaces.clone())
    }

    /// Whether it listens for TCP connections.
    pub fn listens_tcp(&self) -> bool {
        self.handle.0.with(|state| state.listens_tcp)
    }

    /// The nodes that are known.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        self.handle.0.with(|state| state.engine.controller.nodes().cloned().collect())
    }

    /// What is known of a node.
    pub fn node(&self, node: impl Into<NodeAddr>) -> Option<NodeInfo> {
        let node = node.into();
        self.handle.0.with(|state| state.engine.controller.node(node).cloned())
    }

    /// What nodes announce from now on.
    pub fn notifications(&self) -> Notifications {
        Notifications { events: self.events() }
    }

    /// What happens from now on: notifications, nodes that are found, that change or move.
    pub fn events(&self) -> Events {
        Events { events: self.handle.0.events.subscribe() }
    }

    /// Lets a function work on the node that is served, and sends what it wants sent: to read and change objects, and
    /// to notify others of it. The node answers nobody meanwhile, so be quick.
    ///
    /// # Panics
    /// Called from within an object of this endpoint, or from within `work`.
    pub fn with_node<R>(&self, work: impl FnOnce(&mut D) -> R) -> R {
        self.handle.0.with_waking(|state| work(&mut state.engine.device))
    }

    /// Gives a request to the controller and a place to wait for its end.
    fn begin(
        &self,
        make: impl FnOnce(&mut Engine<D>, Instant) -> Result<RequestId, RequestError>,
    ) -> Result<Reply<'_, D>, Error> {
        let shared = &self.handle.0;
        let begun = shared.try_with_waking(|state| {
            if shared.is_closed() {
                return Err(Error::Closed);
            }
            let now = state.engine.now();
            let id = make(&mut state.engine, now).map_err(Error::Refused)?;
            Ok(state.pending.begin(id))
        });
        let place = begun.map_err(|Reentered| Error::Reentered)??;
        Ok(Reply { shared, place })
    }
}

/// Ends the driver when the last endpoint is gone.
#[derive(Debug)]
struct Handle<D: Device + Send + 'static>(Arc<Shared<D>>);

impl<D: Device + Send + 'static> Drop for Handle<D> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The end of a request, when it comes. Dropped before, it gives the request up.
struct Reply<'a, D: Device> {
    shared: &'a Shared<D>,
    place: usize,
}

impl<D: Device> Drop for Reply<'_, D> {
    fn drop(&mut self) {
        self.shared.give_up(self.place);
    }
}

/// The stream of what happens.
#[derive(Debug)]
pub struct Events {
    events: broadcast::Receiver<Event>,
}

impl Events {
    /// The next event; none when the endpoint is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// The stream of what nodes announce.
#[derive(Debug)]
pub struct Notifications {
    events: Events,
}

impl Notifications {
    /// The next notification; none when the endpoint is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Notification> {
        loop {
            if let Event::Notification(notification) = self.events.next().await? {
                return Some(notification);
            }
        }
    }
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
                // What comes from here on makes the socket ready anew.
                guard.clear_ready_matching(Ready::READABLE);
            }
            if count > 0 {
                let mut state = self.shared.lock();
                let now = state.engine.now();
                state.engine.take_batch(now, &mut self.io, at, count);
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
    fn await_deadline(&mut self, cx: &mut Context<'_>, deadline: Option<(Instant, std::time::Instant)>) -> bool {
        let Some((deadline, system)) = deadline else {
            self.sleep = None;
            return false;
        };
        let system = tokio::time::Instant::from_std(system);
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
fn registered(io: &Io) -> std::io::Result<Vec<AsyncFd<OwnedFd>>> {
    let sockets = &io.departing.sockets;
    let clones = (0..sockets.len()).map(|at| sockets.descriptor(at).try_clone_to_owned());
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
