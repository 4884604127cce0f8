//! A meter behind a module as a node of a network: datagrams of controllers in, the meter's answers out. Waits for nothing.

use std::boxed::Box;
use std::collections::VecDeque;
use std::fmt;
use std::net::{SocketAddr, SocketAddrV6};
use std::time::Duration;
use std::vec::Vec;

use super::{Config, Event, Failure, PAYLOAD_MAX, Pan, Skstack, Step};
use crate::node::Instant;
use crate::wire::{Esv, Frame};

/// Requests that wait for the session or for air time. One more ends the oldest.
const WAITING: usize = 64;
/// A request is not sent after so long: its controller has given it up or made it again.
const STALE: Duration = Duration::from_secs(60);
/// Requests of which an answer can still come, and for how long. The guidelines give meters 60 s.
const ASKED: usize = 256;
const ANSWERED: Duration = Duration::from_secs(120);
/// Controllers that get announcements, and how long after their last datagram.
const LISTENERS: usize = 16;
const LISTENING: Duration = Duration::from_secs(3600);
/// Datagrams for controllers that wait to be fetched. One more ends the oldest.
const ARRIVED: usize = 256;

/// The announcement of a node with a low-voltage smart meter: 0EF001 D5, with the object 028801.
const ANNOUNCEMENT: &[u8] = b"\x10\x81\0\0\x0E\xF0\x01\x0E\xF0\x01\x73\x01\xD5\x04\x01\x02\x88\x01";

/// Told of everything that the module does.
type Observer = Box<dyn FnMut(&Event<'_>) + Send>;

/// A meter behind a module as a node of a network, without a port, a socket and a clock.
///
/// Give it the datagrams that controllers send to the meter's address in that network, and send what
/// [`poll_datagram`](Self::poll_datagram) returns from that address. Any controller can then use the meter.
///
/// - Requests of several controllers get transaction identifiers of the relay's own, and answers go back to the asker.
/// - Announcements of the meter go to every controller that has asked it something within the last hour.
/// - Requests wait for the session, for at most a minute. The same request again replaces the one that waits.
pub struct Relay {
    module: Skstack,
    observer: Option<Observer>,
    pan: Option<Pan>,
    failure: Option<Failure>,
    waiting: VecDeque<Waiting>,
    asked: VecDeque<Asked>,
    listeners: VecDeque<(SocketAddr, Instant)>,
    arrived: VecDeque<(SocketAddr, Vec<u8>)>,
    tid: u16,
}

/// A request that is not sent yet, or a confirmation.
struct Waiting {
    from: SocketAddr,
    at: Instant,
    is_request: bool,
    bytes: Vec<u8>,
}

/// A request that was sent, by its identifiers on both sides.
struct Asked {
    from: SocketAddr,
    at: Instant,
    tid: u16,
    theirs: [u8; 2],
}

impl Relay {
    /// A relay that has not begun. `tid` is the first transaction identifier: different in each life of a program.
    pub fn new(config: Config, tid: u16) -> Self {
        Self {
            pan: config.pan,
            module: Skstack::new(config),
            observer: None,
            failure: None,
            waiting: VecDeque::new(),
            asked: VecDeque::new(),
            listeners: VecDeque::new(),
            arrived: VecDeque::new(),
            tid,
        }
    }

    /// Calls a function with everything that the module does, for logs and progress.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// The meter's network, worth keeping for [`Config::pan`].
    pub const fn pan(&self) -> Option<Pan> {
        self.pan
    }

    /// Begins, or begins again with a reset of the module: after [`failure`](Self::failure), or on another port.
    pub fn start(&mut self, now: Instant) {
        self.failure = None;
        self.module.start(now);
    }

    /// The meter's address behind the module, while there is a session.
    pub fn meter(&self) -> Option<SocketAddrV6> {
        self.module.meter()
    }

    /// The failure after which the module is not tried again before [`start`](Self::start).
    pub fn failure(&self) -> Option<Failure> {
        self.failure.filter(|failure| failure.retry_in.is_none())
    }

    /// The step that the module is in.
    pub fn step(&self) -> Step {
        self.module.step()
    }

    /// How many datagrams are stored: all have a limit.
    pub fn stored(&self) -> usize {
        self.waiting.len() + self.asked.len() + self.arrived.len()
    }

    /// Takes a datagram that a controller has sent to the meter. Anything but a request, or a confirmation of an
    /// announcement, is ignored.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let Ok(Frame::Format1(message)) = Frame::parse(datagram) else { return };
        let is_request = message.esv().is_request();
        if datagram.len() > PAYLOAD_MAX || !(is_request || message.esv() == Esv::InfcRes) {
            return;
        }
        self.listeners.retain(|(known, at)| *known != from && now.since(*at) < LISTENING);
        if self.listeners.len() == LISTENERS {
            self.listeners.pop_front();
        }
        self.listeners.push_back((from, now));
        let waiting = Waiting { from, at: now, is_request, bytes: datagram.to_vec() };
        let is_again = |other: &&mut Waiting| other.from == from && is_request && other.bytes[4..] == datagram[4..];
        if let Some(same) = self.waiting.iter_mut().find(is_again) {
            *same = waiting;
            return;
        }
        push(&mut self.waiting, WAITING, waiting);
    }

    /// The next datagram for a controller, and its address.
    pub fn poll_datagram(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.arrived.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.module.poll_timeout()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.module.poll_timeout().is_some_and(|due| due <= now) {
            self.module.handle_timeout(now);
            self.take_events(now);
        }
    }

    /// Takes bytes from the module, all of them.
    pub fn receive(&mut self, now: Instant, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.module.receive(now, bytes)..];
            self.take_events(now);
        }
    }

    /// Writes the next bytes for the module to `buffer`, of at least [`COMMAND_MAX`](super::COMMAND_MAX) bytes, and tells
    /// how many.
    ///
    /// They can contain the credentials: not for logs.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if self.module.can_send().is_ok()
            && let Some(next) = self.next_waiting(now)
        {
            let bytes = if next.is_request { self.ask(now, next) } else { next.bytes };
            let sent = self.module.send(now, &bytes);
            debug_assert_eq!(sent, Ok(()), "can_send said so");
        }
        self.module.poll_transmit(buffer)
    }

    fn next_waiting(&mut self, now: Instant) -> Option<Waiting> {
        while let Some(next) = self.waiting.pop_front() {
            if now.since(next.at) < STALE {
                return Some(next);
            }
        }
        None
    }

    /// Gives a request an identifier of the relay's own, and remembers the asker.
    fn ask(&mut self, now: Instant, request: Waiting) -> Vec<u8> {
        let Waiting { from, mut bytes, .. } = request;
        self.tid = self.tid.wrapping_add(1);
        let theirs = [bytes[2], bytes[3]];
        bytes[2..4].copy_from_slice(&self.tid.to_be_bytes());
        self.asked.retain(|asked| now.since(asked.at) < ANSWERED);
        push(&mut self.asked, ASKED, Asked { from, at: now, tid: self.tid, theirs });
        bytes
    }

    fn take_events(&mut self, now: Instant) {
        let Self { module, observer, pan, failure, asked, listeners, arrived, tid, .. } = self;
        while let Some(event) = module.poll_event() {
            if let Some(observer) = observer {
                observer(&event);
            }
            let listening = listeners.iter().filter(|(_, at)| now.since(*at) < LISTENING).map(|(addr, _)| *addr);
            match event {
                Event::Received(datagram) => {
                    let Ok(Frame::Format1(message)) = Frame::parse(datagram.payload) else { continue };
                    let asker = asked.iter().find(|asked| asked.tid == message.tid());
                    let mut bytes = datagram.payload.to_vec();
                    match (message.esv(), asker) {
                        (Esv::Infc, _) | (Esv::Inf, None) => {
                            listening.for_each(|to| push(arrived, ARRIVED, (to, bytes.clone())));
                        }
                        (esv, Some(asker)) if esv.is_answer() || esv == Esv::Inf => {
                            bytes[2..4].copy_from_slice(&asker.theirs);
                            push(arrived, ARRIVED, (asker.from, bytes));
                        }
                        // An answer that came too late, or that no controller has asked for.
                        _ => {}
                    }
                }
                // A session can begin long after a controller has looked for nodes.
                Event::Joined(_) => {
                    *failure = None;
                    *tid = tid.wrapping_add(1);
                    let mut announcement = ANNOUNCEMENT.to_vec();
                    announcement[2..4].copy_from_slice(&tid.to_be_bytes());
                    listening.for_each(|to| push(arrived, ARRIVED, (to, announcement.clone())));
                }
                Event::Joining(network) => *pan = Some(network),
                Event::Failed(why) => *failure = Some(why),
                Event::Version(_)
                | Event::Scanning(_)
                | Event::Found(_)
                | Event::Sent
                | Event::NotSent(_)
                | Event::Limited
                | Event::Unlimited
                | Event::Lost(_) => {}
            }
        }
    }
}

/// Adds to a store of so many; one that is full loses its oldest.
fn push<T>(store: &mut VecDeque<T>, most: usize, item: T) {
    if store.len() == most {
        store.pop_front();
    }
    store.push_back(item);
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.module.fmt(f)
    }
}
