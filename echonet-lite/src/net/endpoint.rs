//! The endpoint of programs that run on tokio.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use std::vec::Vec;

use tokio::sync::broadcast;

use super::builder::Builder;
use super::engine::{Device, Engine};
use super::error::{BindError, Error};
use super::interface::Interface;
use super::pending::Pending;
use super::shared::{Reentered, Shared, State};
use super::system;
use crate::controller::{Answer, Event, NodeAddr, NodeInfo, Notification, Request, RequestError, RequestId, Write};
use crate::node::Instant;
use crate::wire::Eoj;

/// Events that wait for a slow listener; the oldest are lost when there are more.
const EVENTS: usize = 1024;

/// A node on the network: it serves objects, and asks other nodes.
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
        system::drive(Arc::clone(&shared), io)?;
        Ok(Endpoint { handle: Arc::new(Handle(shared)) })
    }
}

impl<D: Device + Send + 'static> Endpoint<D> {
    /// Reads properties of an object.
    ///
    /// # Errors
    /// The request was impossible, or no answer came in time. A refusal is an answer.
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
        #[cfg(feature = "tracing")]
        let span = tracing::debug_span!("request", %node, request = ?request);
        let ended = poll_fn(|cx| match reply.shared.try_with(|state| state.pending.poll_answer(reply.place, cx)) {
            Ok(poll) => poll.map(Ok),
            Err(Reentered) => Poll::Ready(Err(Error::Reentered)),
        });
        #[cfg(feature = "tracing")]
        let ended = tracing::Instrument::instrument(ended, span);
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

    /// The known facts about a node.
    pub fn node(&self, node: impl Into<NodeAddr>) -> Option<NodeInfo> {
        let node = node.into();
        self.handle.0.with(|state| state.engine.controller.node(node).cloned())
    }

    /// Asks a node again who it is and what objects it has, as when it was found. Ends with [`Event::NodeReady`] if it
    /// answers. Returns whether there is such a node.
    pub fn interview(&self, node: impl Into<NodeAddr>) -> bool {
        let node = node.into();
        self.handle.0.with_waking(|state| state.engine.controller.interview(node))
    }

    /// The announcements of nodes from now on.
    pub fn notifications(&self) -> Notifications {
        Notifications { events: self.events() }
    }

    /// The events from now on: notifications, nodes that are found, that change or move.
    pub fn events(&self) -> Events {
        Events { events: self.handle.0.events.subscribe() }
    }

    /// Lets a function work on the node that is served, and sends what it wants sent: to read and change objects, and
    /// to notify others of it. The node answers no request meanwhile, so be quick.
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
