//! The endpoint of programs without an async runtime: one thread that waits, receives, answers.
//!
//! ```no_run
//! use echonet_lite::net::blocking::Endpoint;
//! use echonet_lite::wire::Eoj;
//!
//! let mut endpoint = Endpoint::builder().bind_blocking()?;
//! let answer = endpoint.get("192.168.1.5".parse::<core::net::IpAddr>()?, Eoj::new(0x02, 0x90, 1), &[0x80])?;
//! println!("{answer}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Vec;

use super::builder::Builder;
use super::engine::{Device, Engine};
use super::error::{BindError, Error};
use super::interface::Interface;
use super::io::Io;
use super::system::Waker;
use super::token;
use crate::controller::{Answer, Event, NodeAddr, NodeInfo, Request, RequestError, RequestId, Write};
use crate::node::Instant;
use crate::wire::Eoj;

/// Events that are kept for [`Endpoint::next_event`] while a call waits for something else.
const EVENTS: usize = 1024;

/// Batches taken from one socket in a turn.
const BATCHES: usize = 8;
/// How often in a row the same socket is waited at, so that the others get their turn.
const LEAD: u32 = 32;
/// How long it is waited at: the kernel's clock tick rounds this to 1 to 10 ms. Another socket may have to wait as
/// long.
const LEAD_WAIT: Duration = Duration::from_millis(10);
/// A node on the network: it serves objects, and asks other nodes.
///
/// Nothing moves unless a method is called that waits: [`run`](Self::run) for a device, [`get`](Self::get) and its kin
/// or [`next_event`](Self::next_event) for a controller, [`turn`](Self::turn) for a loop of one's own. Each of these
/// methods serves the objects meanwhile.
pub struct Endpoint<D: Device = ()> {
    engine: Engine<D>,
    io: Io,
    /// Of the sockets that are watched.
    generation: u32,
    events: VecDeque<Event>,
    lead: Option<Lead>,
    stop: Arc<Stop>,
}

/// The socket that something has just come by, and how often to wait there before looking at all again.
struct Lead {
    socket: usize,
    left: u32,
}

struct Stop {
    asked: AtomicBool,
    waker: Waker,
}

/// Ends [`Endpoint::run`] from another thread or a signal's.
#[derive(Clone)]
pub struct Stopper(Arc<Stop>);

impl Stopper {
    /// Has `run` return.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

impl core::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Stopper").finish_non_exhaustive()
    }
}

impl<D: Device> core::fmt::Debug for Endpoint<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint").field("interfaces", &self.interfaces()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Begins to describe an endpoint; [`Builder::bind_blocking`] opens it.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<D: Device> Builder<D> {
    /// Opens the sockets, for a program without an async runtime.
    ///
    /// # Errors
    /// No socket could be opened as asked for.
    pub fn bind_blocking(self) -> Result<Endpoint<D>, BindError> {
        let (engine, mut io) = self.open()?;
        let failed = |source| BindError::Io { doing: "watching a socket", address: None, source };
        io.follow_sockets().map_err(failed)?;
        let stop = Stop { asked: AtomicBool::new(false), waker: io.watch.waker().map_err(failed)? };
        let generation = io.departing.sockets.generation();
        Ok(Endpoint { engine, io, generation, events: VecDeque::new(), lead: None, stop: Arc::new(stop) })
    }
}

impl<D: Device> Endpoint<D> {
    /// Serves until a [`Stopper`] ends it.
    ///
    /// # Errors
    /// The system no longer lets this thread wait, which does not happen in normal operation.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.stop.asked.swap(false, Ordering::Acquire) {
            self.turn(None)?;
            // No other call asks for these events.
            while self.engine.controller.poll_event().is_some() {}
        }
        Ok(())
    }

    /// A handle that ends [`run`](Self::run).
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// One turn of the loop: sends what is due, waits for something to come (at most `time`, not at all if zero), and
    /// deals with it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn turn(&mut self, time: Option<Duration>) -> io::Result<()> {
        let now = self.transmit();
        let due = self.io.deadline(&self.engine).map(|deadline| deadline.since(now));
        let time = [time, due].into_iter().flatten().min();
        if !self.follow_lead(time) {
            let happened = self.io.watch.wait(time)?;
            let now = self.engine.now();
            for &event in happened.tokens() {
                if (token::SOCKETS..token::CONNECTIONS).contains(&event) {
                    let at = (event - token::SOCKETS) as usize;
                    self.receive_all(now, at);
                    self.lead = Some(Lead { socket: at, left: LEAD });
                } else {
                    self.io.attend(now, event, &mut self.engine);
                    if self.io.departing.sockets.generation() != self.generation {
                        self.follow_sockets()?;
                        // The other events name sockets that may be others by now; datagrams left there come as events
                        // again.
                        break;
                    }
                }
            }
        }
        self.transmit();
        Ok(())
    }

    /// Watches the sockets that have come.
    fn follow_sockets(&mut self) -> io::Result<()> {
        self.lead = None;
        self.generation = self.io.departing.sockets.generation();
        self.io.follow_sockets()
    }

    /// Takes what has come by a socket, up to a few batches, so that no socket can keep the others from their turn.
    fn receive_all(&mut self, now: Instant, at: usize) {
        for _ in 0..BATCHES {
            let (count, more) = self.io.receive(at, false);
            self.io.deliver(now, at, count, &mut self.engine);
            if !more {
                break;
            }
        }
    }

    /// Waits at the socket that something has just come by, without asking for the others: where one datagram follows
    /// the other, this halves the system calls beside that of the answer. Says whether something came.
    fn follow_lead(&mut self, time: Option<Duration>) -> bool {
        let Some(lead) = &mut self.lead else { return false };
        let socket = lead.socket;
        if lead.left == 0 || time.is_some_and(|time| time < LEAD_WAIT) {
            return false;
        }
        lead.left -= 1;
        let (count, _) = self.io.receive(socket, true);
        if count == 0 {
            self.lead = None;
            return false;
        }
        let now = self.engine.now();
        self.io.deliver(now, socket, count, &mut self.engine);
        true
    }

    /// Sends all there is to send; returns the time.
    fn transmit(&mut self) -> Instant {
        let now = self.engine.now();
        self.io.transmit(now, &mut self.engine);
        self.io.departing.flush();
        now
    }

    /// Reads properties of an object.
    ///
    /// # Errors
    /// The request was impossible, no answer came in time, or waiting failed. A refusal is an answer.
    pub fn get(&mut self, node: impl Into<NodeAddr>, eoj: Eoj, epcs: &[u8]) -> Result<Answer, Error> {
        self.request(node, &Request::get(eoj, epcs))
    }

    /// Writes properties of an object and waits for the confirmation.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set(&mut self, node: impl Into<NodeAddr>, eoj: Eoj, writes: &[Write<'_>]) -> Result<Answer, Error> {
        self.request(node, &Request::set(eoj, writes))
    }

    /// Makes any request to one object and waits for its end.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn request(&mut self, node: impl Into<NodeAddr>, request: &Request<'_>) -> Result<Answer, Error> {
        let wanted = self.begin(node, request).map_err(Error::Refused)?;
        loop {
            match self.wait_event(None)? {
                Some(Event::Done { id, result }) if id == wanted => return result.map_err(Error::Failed),
                Some(event) => self.keep(event),
                None => {}
            }
        }
    }

    /// Makes a request without waiting: [`Event::Done`] ends it. Many can be outstanding.
    ///
    /// # Errors
    /// The request was impossible, or a limit is reached.
    pub fn begin(&mut self, node: impl Into<NodeAddr>, request: &Request<'_>) -> Result<RequestId, RequestError> {
        let now = self.engine.now();
        self.engine.controller.request(now, node.into(), request)
    }

    /// Makes a request to all nodes, or to all objects of a class (instance 0) of one, and collects the answers of all
    /// who gave one in time.
    ///
    /// # Errors
    /// The request was impossible, or waiting failed.
    pub fn request_all(&mut self, node: Option<NodeAddr>, request: &Request<'_>) -> Result<Vec<Answer>, Error> {
        let now = self.engine.now();
        let controller = &mut self.engine.controller;
        let wanted = match node {
            Some(node) => controller.request(now, node, request),
            None => controller.request_all(now, request),
        };
        let wanted = wanted.map_err(Error::Refused)?;
        let mut answers = Vec::new();
        loop {
            match self.wait_event(None)? {
                Some(Event::Gathered { id, answer }) if id == wanted => answers.push(answer),
                Some(Event::GatheringEnded { id, .. }) if id == wanted => return Ok(answers),
                Some(event) => self.keep(event),
                None => {}
            }
        }
    }

    /// Searches for nodes, for as long as given, and tells what is known of those that answered.
    ///
    /// # Errors
    /// Too many requests are outstanding, or waiting failed.
    pub fn discover(&mut self, time: Duration) -> Result<Vec<NodeInfo>, Error> {
        let begin = self.engine.now();
        let end = begin + time;
        let search = self.engine.controller.discover(begin).map_err(Error::Refused)?;
        let mut answered = Vec::new();
        loop {
            let now = self.engine.now();
            if now >= end {
                break;
            }
            match self.wait_event(Some(end.since(now)))? {
                Some(Event::Gathered { id, answer }) if id == search => answered.push(answer.node),
                Some(Event::GatheringEnded { id, .. }) if id == search => {}
                Some(event) => self.keep(event),
                None => {}
            }
        }
        let controller = &mut self.engine.controller;
        controller.cancel(end, search);
        let mut found: Vec<_> = controller.nodes().filter(|node| answered.contains(&node.addr)).cloned().collect();
        found.sort_by_key(|node| node.addr);
        Ok(found)
    }

    /// The next event, within `time` if given; `None` when that is over.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn next_event(&mut self, time: Option<Duration>) -> io::Result<Option<Event>> {
        match self.events.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.wait_event(time),
        }
    }

    /// The controller's next event, past those that were kept.
    fn wait_event(&mut self, time: Option<Duration>) -> io::Result<Option<Event>> {
        let end = time.map(|time| self.engine.now() + time);
        loop {
            if let Some(event) = self.engine.controller.poll_event() {
                return Ok(Some(event));
            }
            let now = self.engine.now();
            if end.is_some_and(|end| now >= end) {
                return Ok(None);
            }
            self.turn(end.map(|end| end.since(now)))?;
        }
    }

    fn keep(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// The node that is served.
    pub fn node(&self) -> &D {
        &self.engine.device
    }

    /// The node that is served, to change its objects and notify others. The next turn sends what it wants sent.
    pub fn node_mut(&mut self) -> &mut D {
        &mut self.engine.device
    }

    /// The nodes that are known.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
        self.engine.controller.nodes()
    }

    /// The interfaces in use.
    pub fn interfaces(&self) -> &[Interface] {
        self.io.departing.sockets.interfaces()
    }

    /// Whether it listens for TCP connections.
    pub fn listens_tcp(&self) -> bool {
        self.io.tcp.is_listening()
    }
}
