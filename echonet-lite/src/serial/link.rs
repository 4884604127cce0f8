//! A module and a controller joined: bytes of the serial line in, answers of the meter out. Waits for nothing.

use std::boxed::Box;
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use super::{Config, Event, Failure, PAYLOAD_MAX, Pan, Skstack, Step};
use crate::controller::{self, Answer, Controller, NodeAddr, Notification, Request, RequestError, RequestId};
use crate::node::Instant;

/// Notifications kept for a caller who does not fetch them; then the oldest go.
const NOTIFICATIONS_MAX: usize = 256;
/// A request without a time of its own is given up then, even if the session cannot be had again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Told of everything that the module does.
type Observer = Box<dyn FnMut(&Event<'_>) + Send>;

/// The settings that a controller needs behind a slow radio with one node at its other end.
fn controller_config(seed: u64) -> controller::Config {
    controller::Config {
        // Every question costs air time, which the law limits.
        interview: controller::Interview::Nothing,
        max_frame: PAYLOAD_MAX,
        max_nodes: 4,
        max_requests: 64,
        ..controller::Config::new(seed)
    }
}

/// A request that was made to the meter.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    id: RequestId,
    deadline: Instant,
}

impl Pending {
    /// When [`Link::answer`] has an answer or a failure at the latest.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// A meter behind a module, without a port and a clock, for programs with a loop of their own.
/// [`Client`](super::Client) runs one on a port that it waits for.
///
/// One request at a time: a second one before the first has its answer makes the first one's answer lost.
pub struct Link {
    module: Skstack,
    controller: Controller,
    observer: Option<Observer>,
    meter: Option<SocketAddrV6>,
    pan: Option<Pan>,
    failure: Option<Failure>,
    done: Option<(RequestId, Result<Answer, controller::Failure>)>,
    notifications: VecDeque<Notification>,
}

impl Link {
    /// A link that has not begun. `seed` is the controller's: different in each life of a program.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            pan: config.pan,
            module: Skstack::new(config),
            controller: Controller::new(controller_config(seed)),
            observer: None,
            meter: None,
            failure: None,
            done: None,
            notifications: VecDeque::new(),
        }
    }

    /// Has everything that the module does told, for logs and progress.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// The meter's network, worth keeping for [`Config::pan`].
    pub const fn pan(&self) -> Option<Pan> {
        self.pan
    }

    /// Begins if nothing has begun or everything was given up.
    pub fn start(&mut self, now: Instant) {
        if self.module.step() == Step::Idle && self.module.poll_timeout().is_none() {
            self.failure = None;
            self.module.start(now);
        }
    }

    /// Whether joining has ended, well or badly.
    pub fn joined(&self) -> Option<Result<SocketAddrV6, Failure>> {
        match (self.module.meter(), self.hopeless()) {
            (Some(meter), _) => Some(Ok(meter)),
            (None, Some(failure)) => Some(Err(failure)),
            (None, None) => None,
        }
    }

    /// The failure after which the module is not tried again.
    fn hopeless(&self) -> Option<Failure> {
        self.failure.filter(|failure| failure.retry_in.is_none())
    }

    /// Why joining took longer than the caller would wait.
    pub fn late(&self) -> Error {
        self.failure.map_or_else(|| Error::TimedOut(self.module.step()), Error::Failed)
    }

    /// Makes a request to the meter; it is sent as soon as there is a session.
    ///
    /// # Errors
    /// There never was a session, or the request is not one that can be sent.
    pub fn request(&mut self, now: Instant, request: &Request<'_>) -> Result<Pending, Error> {
        let meter = self.meter.ok_or_else(|| self.late())?;
        let timeout = request.timeout.unwrap_or(REQUEST_TIMEOUT);
        let request = Request { timeout: Some(timeout), ..*request };
        self.done = None;
        let id = self.controller.request(now, NodeAddr::new(IpAddr::V6(*meter.ip()), 0), &request)?;
        Ok(Pending { id, deadline: now + timeout })
    }

    /// The answer if there is one, or why there will be none.
    pub fn answer(&mut self, now: Instant, pending: &Pending) -> Option<Result<Answer, Error>> {
        if let Some((done, result)) = self.done.take()
            && done == pending.id
        {
            return Some(result.map_err(Error::Unanswered));
        }
        // The controller ends a request in time unless there is no session to send anything by.
        let failure = match self.hopeless() {
            Some(failure) => Error::Failed(failure),
            None if now >= pending.deadline => self.late(),
            None => return None,
        };
        self.controller.cancel(now, pending.id);
        Some(Err(failure))
    }

    /// The next notification that the meter sent by itself, the oldest first.
    pub fn notification(&mut self) -> Option<Notification> {
        self.notifications.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) are due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Without a session, or with a datagram under way, the controller can do nothing about what is due.
        let due = self.controller.poll_timeout().filter(|_| self.module.can_send().is_ok());
        [self.module.poll_timeout(), due].into_iter().flatten().min()
    }

    /// Takes bytes from the module, all of them.
    pub fn receive(&mut self, now: Instant, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.module.receive(now, bytes)..];
            self.take_events(now);
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.module.poll_timeout().is_some_and(|due| due <= now) {
            self.module.handle_timeout(now);
            self.take_events(now);
        }
    }

    /// Writes the next bytes for the module to `buffer`, of at least [`COMMAND_MAX`](super::COMMAND_MAX) bytes, and tells how many.
    ///
    /// They can contain the credentials: not for logs.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if self.module.can_send().is_ok() {
            let mut datagram = [0; PAYLOAD_MAX];
            // The meter is the only other node, so the destination, a group or the meter, does not matter.
            if let Some((_, length)) = self.controller.poll_transmit(now, &mut datagram) {
                let sent = self.module.send(now, &datagram[..length]);
                debug_assert_eq!(sent, Ok(()), "can_send said so");
            }
            self.take_answers();
        }
        self.module.poll_transmit(buffer)
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.module.poll_event() {
            if let Some(observer) = &mut self.observer {
                observer(&event);
            }
            match event {
                Event::Received(datagram) => {
                    self.controller.handle(now, SocketAddr::V6(datagram.from), datagram.payload);
                }
                Event::Joined(meter) => {
                    self.meter = Some(meter);
                    self.failure = None;
                }
                Event::Joining(pan) => self.pan = Some(pan),
                Event::Failed(failure) => self.failure = Some(failure),
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
        self.take_answers();
    }

    fn take_answers(&mut self) {
        while let Some(event) = self.controller.poll_event() {
            match event {
                controller::Event::Done { id, result } => self.done = Some((id, result)),
                controller::Event::Notification(notification) => {
                    if self.notifications.len() == NOTIFICATIONS_MAX {
                        self.notifications.pop_front();
                    }
                    self.notifications.push_back(notification);
                }
                // News of nodes: there is one, and it is known.
                _ => {}
            }
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.module.fmt(f)
    }
}

/// Why a client could not do what was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The serial port failed.
    Port(std::io::Error),
    /// The module or the meter refused, or is not there.
    Failed(Failure),
    /// The time given was over in this step.
    TimedOut(Step),
    /// The request is not one that can be sent.
    Request(RequestError),
    /// The meter did not answer the request.
    Unanswered(controller::Failure),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(error) => write!(f, "serial port: {error}"),
            Self::Failed(failure) => failure.fmt(f),
            Self::TimedOut(step) => write!(f, "time over while trying to {}", step.describe()),
            Self::Request(error) => error.fmt(f),
            Self::Unanswered(failure) => write!(f, "the meter: {failure}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Port(error) => Some(error),
            Self::Failed(_) | Self::TimedOut(_) | Self::Request(_) | Self::Unanswered(_) => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Port(error)
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}
