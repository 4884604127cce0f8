//! The state machine that takes a module from reset to a session, and keeps it there.

use core::fmt;
use core::net::{Ipv6Addr, SocketAddrV6};
use core::time::Duration;

use super::command::Command;
use super::event::{Cause, Datagram, Event, FailCode, Failure, Loss, Step, Version};
use super::line::Scanner;
use super::message::{Message, Notice, PanField, Received};
use super::{Config, PAYLOAD_MAX, Pan};
use crate::node::Instant;
use crate::wire::PORT;

/// How often a command is given before its step has failed.
const ATTEMPTS: u8 = 3;
/// An answer to a command that needs no radio; SKRESET takes longest.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);
/// PANA over a lossy link: the module itself repeats for most of a minute.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Event 21 comes within a second unless the air is busy or the neighbour has to be found first.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Before a refused command is repeated.
const COMMAND_PAUSE: Duration = Duration::from_millis(500);
/// Before a join is repeated: the meter needs some time after a failed one, and a module that renews a session by itself is let to.
const JOIN_PAUSE: Duration = Duration::from_secs(5);
/// The time that a scan takes beside listening.
const SCAN_MARGIN: Duration = Duration::from_secs(5);
/// Before everything is begun again; doubles up to the maximum with every failure.
const RESTART_PAUSE: Duration = Duration::from_secs(5);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(320);
/// Successive datagrams that did not go out, after which the module is started over.
const SEND_FAILURES: u8 = 3;
/// The law counts air time per hour: no restriction lasts longer, even if the event of its end was lost.
const LIMIT_MAX: Duration = Duration::from_secs(3600);
/// Networks kept from a scan; more than one answers only if two meters have the same id.
const FOUND_MAX: usize = 4;
/// Events waiting to be polled; one line or timeout causes three at most, and none is processed while one waits.
const EVENTS_MAX: usize = 4;

/// Drives a module. Bytes and time go in, bytes, events and a deadline come out.
///
/// ```text
/// start ─► Reset ─► EchoOff ─► Version ─► ReadMode (─► WriteMode) ─► Password ─► Id
///            ▲                                                                    │ network known
///            │ pause, doubling                                             Scan ◄─┴─┐
///           Idle ◄──────────── any step failed three times                  │       ▼
///                                              Join ◄─ PanId ◄─ Channel ◄─ Address ◄┘
///                                    event 25  │  ▲
///                                              ▼  │ session lost
///                                             Session
/// ```
///
/// The loop around it, whatever it runs on:
///
/// ```
/// use echonet_lite::node::Instant;
/// use echonet_lite::serial::{COMMAND_MAX, Config, Credentials, Module, Skstack};
///
/// let credentials = Credentials::new("00112233445566778899AABBCCDDEEFF", "0123456789AB")?;
/// let mut module = Skstack::new(Config::new(Module::Bp35a1, credentials));
/// let now = Instant(0);
/// module.start(now);
///
/// let mut command = [0; COMMAND_MAX];
/// let length = module.poll_transmit(&mut command).expect("the first command");
/// assert_eq!(&command[..length], b"SKRESET\r\n");
///
/// let mut bytes: &[u8] = b"OK\r\n";
/// while !bytes.is_empty() {
///     let taken = module.receive(now, bytes);
///     bytes = &bytes[taken..];
///     while let Some(_event) = module.poll_event() {}
/// }
/// assert!(module.poll_transmit(&mut command).is_some(), "the second command");
/// assert!(module.poll_timeout().is_some(), "call handle_timeout then");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Skstack {
    scanner: Scanner,
    core: Core,
}

struct Core {
    config: Config,
    step: Step,
    phase: Phase,
    attempt: u8,
    deadline: Option<Instant>,
    restart_pause: Duration,
    /// The network to join without a scan.
    known: Option<Pan>,
    scan_duration: u8,
    found: Found,
    pan: Pan,
    meter: Ipv6Addr,
    sending: Option<Sending>,
    send_failures: u8,
    limited_until: Option<Instant>,
    ignored: u32,
    events: Events,
    outgoing: [u8; PAYLOAD_MAX],
    incoming: [u8; PAYLOAD_MAX],
    incoming_length: usize,
}

/// Where a step's command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To be written.
    Unsent,
    /// Written; its answer is awaited.
    Waiting,
    /// To be written again at the deadline.
    Pausing,
}

/// A datagram on its way.
#[derive(Clone, Copy)]
struct Sending {
    length: usize,
    written: bool,
    accepted: bool,
    transmitted: Option<bool>,
}

/// Networks found by a scan, best first when it is over.
#[derive(Default)]
struct Found {
    pans: [Pan; FOUND_MAX],
    count: usize,
    next: usize,
    /// Whether fields belong to the last of `pans`.
    open: bool,
}

impl Found {
    fn begin(&mut self) {
        self.open = self.count < FOUND_MAX;
        if self.open {
            self.pans[self.count] = Pan::default();
            self.count += 1;
        }
    }

    fn field(&mut self, field: PanField) {
        if !self.open {
            return;
        }
        let PanField::Side(1..) = field else {
            field.apply(&mut self.pans[self.count - 1]);
            return;
        };
        // Another network of a module with two.
        self.open = false;
        self.count -= 1;
    }

    fn sort(&mut self) {
        self.open = false;
        self.pans[..self.count].sort_unstable_by_key(|pan| core::cmp::Reverse(pan.quality));
    }

    fn take(&mut self) -> Option<Pan> {
        let pan = self.pans[..self.count].get(self.next).copied();
        self.next += 1;
        pan
    }
}

/// A queue of events without their payloads.
#[derive(Default)]
struct Events {
    queue: [Option<Event<'static>>; EVENTS_MAX],
    first: usize,
    count: usize,
}

impl Events {
    fn push(&mut self, event: Event<'static>) {
        debug_assert!(self.count < EVENTS_MAX, "one cause has more events than EVENTS_MAX");
        if self.count < EVENTS_MAX {
            self.queue[(self.first + self.count) % EVENTS_MAX] = Some(event);
            self.count += 1;
        }
    }

    fn pop(&mut self) -> Option<Event<'static>> {
        let event = self.queue[self.first].take()?;
        self.first = (self.first + 1) % EVENTS_MAX;
        self.count -= 1;
        Some(event)
    }
}

/// Why a datagram was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no session.
    NotJoined,
    /// The datagram before is still on its way: [`Event::Sent`] or [`Event::NotSent`] tells when it is not.
    Busy,
    /// The allowed air time is used up; [`Event::Unlimited`] tells when there is more.
    Limited,
    /// It is empty or longer than [`PAYLOAD_MAX`].
    Length,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotJoined => "there is no session with the meter",
            Self::Busy => "the datagram before is still on its way",
            Self::Limited => "the air time that the law allows is used up for now",
            Self::Length => "a payload has 1 to 1232 bytes",
        })
    }
}

impl core::error::Error for SendError {}

impl Skstack {
    /// A driver that has not begun.
    pub fn new(config: Config) -> Self {
        Self { scanner: Scanner::new(), core: Core::new(config) }
    }

    /// Begins, or begins again, with a reset of the module.
    pub fn start(&mut self, now: Instant) {
        self.scanner.restart();
        self.core.enter(now, Step::Reset);
    }

    /// Takes bytes from the module and tells how many; fewer than all if an event wants polling first, none while one waits.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while self.core.events.count == 0 && taken < bytes.len() {
            let (count, complete) = self.scanner.feed(&bytes[taken..]);
            taken += count;
            if complete {
                self.core.handle(now, Message::parse(self.scanner.line()));
            }
        }
        taken
    }

    /// Does what is due; to be called when [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.core.events.count == 0 {
            self.core.handle_timeout(now);
        }
    }

    /// Writes the next bytes for the module to the start of `buffer`, of at least [`COMMAND_MAX`](super::COMMAND_MAX) bytes, and tells how many.
    ///
    /// They can contain the credentials: not for logs.
    pub fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.core.poll_transmit(buffer)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.core.deadline, self.core.limited_until].into_iter().flatten().min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        let event = self.core.events.pop()?;
        Some(match event {
            Event::Received(datagram) => {
                Event::Received(Datagram { payload: &self.core.incoming[..self.core.incoming_length], ..datagram })
            }
            other => other,
        })
    }

    /// Sends a datagram to the meter.
    ///
    /// # Errors
    /// Tells why not now.
    pub fn send(&mut self, now: Instant, payload: &[u8]) -> Result<(), SendError> {
        self.can_send()?;
        let core = &mut self.core;
        let slot = core.outgoing.get_mut(..payload.len()).filter(|slot| !slot.is_empty());
        slot.ok_or(SendError::Length)?.copy_from_slice(payload);
        core.sending = Some(Sending { length: payload.len(), written: false, accepted: false, transmitted: None });
        core.deadline = Some(now + SEND_TIMEOUT);
        Ok(())
    }

    /// Whether [`send`](Self::send) would take a datagram.
    ///
    /// # Errors
    /// Tells why not now.
    pub fn can_send(&self) -> Result<(), SendError> {
        match &self.core {
            core if core.step != Step::Session => Err(SendError::NotJoined),
            core if core.sending.is_some() => Err(SendError::Busy),
            core if core.limited_until.is_some() => Err(SendError::Limited),
            _ => Ok(()),
        }
    }

    /// The step that the driver is in.
    pub fn step(&self) -> Step {
        self.core.step
    }

    /// The meter, while there is a session.
    pub fn meter(&self) -> Option<SocketAddrV6> {
        (self.core.step == Step::Session).then(|| endpoint(self.core.meter))
    }

    /// How many datagrams were ignored: not encrypted, not from the meter, or too long.
    pub fn ignored(&self) -> u32 {
        self.core.ignored
    }
}

impl fmt::Debug for Skstack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skstack")
            .field("module", &self.core.config.module)
            .field("step", &self.core.step)
            .field("attempt", &self.core.attempt)
            .field("meter", &self.meter())
            .finish_non_exhaustive()
    }
}

const fn endpoint(address: Ipv6Addr) -> SocketAddrV6 {
    SocketAddrV6::new(address, PORT, 0, 0)
}

impl Core {
    fn new(config: Config) -> Self {
        Self {
            step: Step::Idle,
            phase: Phase::Waiting,
            attempt: 0,
            deadline: None,
            restart_pause: RESTART_PAUSE,
            known: config.pan,
            scan_duration: 0,
            found: Found::default(),
            pan: Pan::default(),
            meter: Ipv6Addr::UNSPECIFIED,
            sending: None,
            send_failures: 0,
            limited_until: None,
            ignored: 0,
            events: Events::default(),
            outgoing: [0; PAYLOAD_MAX],
            incoming: [0; PAYLOAD_MAX],
            incoming_length: 0,
            config,
        }
    }

    fn enter(&mut self, now: Instant, step: Step) {
        self.step = step;
        self.attempt = 0;
        match step {
            Step::Reset => {
                self.sending = None;
                self.limited_until = None;
                self.send_failures = 0;
            }
            Step::Scan => {
                self.found = Found::default();
                self.events.push(Event::Scanning(self.scan_duration));
            }
            Step::Join => self.events.push(Event::Joining(self.pan)),
            _ => {}
        }
        self.issue(now);
    }

    /// Gives the step's command, again if need be.
    fn issue(&mut self, now: Instant) {
        self.attempt += 1;
        self.phase = Phase::Unsent;
        self.deadline = Some(now + self.timeout());
    }

    fn timeout(&self) -> Duration {
        match self.step {
            Step::Scan => {
                // 9.6 ms × (2ⁿ + 1) on each of at most 32 channels.
                SCAN_MARGIN + Duration::from_micros(32 * 9_600 * ((1 << self.scan_duration) + 1))
            }
            Step::Join => JOIN_TIMEOUT,
            _ => COMMAND_TIMEOUT,
        }
    }

    fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if let (Step::Session, Some(sending)) = (self.step, &mut self.sending) {
            if sending.written {
                return None;
            }
            let command = Command::Send {
                to: self.meter,
                side: self.config.module.has_side(),
                payload: &self.outgoing[..sending.length],
            };
            let length = command.write(buffer)?;
            sending.written = true;
            return Some(length);
        }
        if self.phase != Phase::Unsent {
            return None;
        }
        let length = self.command()?.write(buffer)?;
        self.phase = Phase::Waiting;
        Some(length)
    }

    fn command(&self) -> Option<Command<'_>> {
        Some(match self.step {
            Step::Idle | Step::Session => return None,
            Step::Reset => Command::Reset,
            Step::EchoOff => Command::EchoOff,
            Step::Version => Command::Version,
            Step::ReadMode => Command::ReadMode,
            Step::WriteMode => Command::WriteMode(self.config.payload.code()?),
            Step::Password => Command::Password(self.config.credentials.password()),
            Step::Id => Command::Id(self.config.credentials.id()),
            Step::Scan => Command::Scan { duration: self.scan_duration, side: self.config.module.has_side() },
            Step::Address => Command::Address(self.pan.address),
            Step::Channel => Command::Channel(self.pan.channel),
            Step::PanId => Command::PanId(self.pan.id),
            Step::Join => Command::Join(self.meter),
        })
    }

    fn handle(&mut self, now: Instant, message: Message<'_>) {
        match message {
            Message::Ok(value) if self.phase == Phase::Waiting => self.handle_ok(now, value),
            Message::Fail(code) if self.phase == Phase::Waiting => self.handle_fail(now, code),
            Message::Version(text) if self.step == Step::Version => {
                self.events.push(Event::Version(Version::new(text)));
            }
            Message::PanBegin if self.step == Step::Scan => self.found.begin(),
            Message::PanField(field) if self.step == Step::Scan => self.found.field(field),
            Message::Address(address) if self.step == Step::Address => {
                self.meter = address;
                self.enter(now, Step::Channel);
            }
            Message::Event(notice) => self.handle_notice(now, notice),
            Message::Datagram(received) => self.handle_datagram(received),
            Message::Ok(_)
            | Message::Fail(_)
            | Message::Version(_)
            | Message::PanBegin
            | Message::PanField(_)
            | Message::Address(_)
            | Message::Echo
            | Message::Unknown => {}
        }
    }

    fn handle_ok(&mut self, now: Instant, value: &str) {
        let next = match self.step {
            Step::Reset => Step::EchoOff,
            Step::EchoOff => Step::Version,
            Step::Version => Step::ReadMode,
            Step::ReadMode if self.config.payload.code().is_some_and(|wanted| wanted != value) => Step::WriteMode,
            Step::ReadMode | Step::WriteMode => Step::Password,
            Step::Password => Step::Id,
            Step::Id => return self.find_meter(now),
            Step::Channel => Step::PanId,
            Step::PanId => Step::Join,
            // These end with an event or another answer.
            Step::Idle | Step::Scan | Step::Address | Step::Join => return,
            Step::Session => {
                if let Some(sending) = self.sending.as_mut().filter(|sending| sending.written) {
                    sending.accepted = true;
                    self.finish_sending(now);
                }
                return;
            }
        };
        self.enter(now, next);
    }

    fn handle_fail(&mut self, now: Instant, code: FailCode) {
        match self.step {
            Step::Idle => {}
            Step::ReadMode | Step::WriteMode if code.is_final() => self.enter(now, Step::Password),
            Step::Session => self.end_sending(now, Err(Cause::Refused(code))),
            _ => self.try_again(now, COMMAND_PAUSE, Cause::Refused(code)),
        }
    }

    fn handle_notice(&mut self, now: Instant, notice: Notice) {
        match (notice.number, self.step) {
            (0x21, Step::Session) => self.handle_transmitted(now, notice.parameter),
            (0x22, Step::Scan) => self.end_scan(now),
            (0x24, Step::Join) => self.handle_not_admitted(now),
            (0x24, Step::Session) => self.lose(now, Loss::NotRenewed),
            (0x25, Step::Join) => self.begin_session(),
            (0x26..=0x28, Step::Session) => self.lose(now, Loss::Closed),
            (0x29, Step::Session) => self.lose(now, Loss::Expired),
            (0x32, _) => self.begin_limit(now),
            (0x33, _) => self.end_limit(),
            // Beacons, neighbour discovery, echo requests, and events of no step of ours.
            _ => {}
        }
    }

    fn begin_limit(&mut self, now: Instant) {
        if self.limited_until.replace(now + LIMIT_MAX).is_none() {
            self.events.push(Event::Limited);
        }
    }

    fn end_limit(&mut self) {
        if self.limited_until.take().is_some() {
            self.events.push(Event::Unlimited);
        }
    }

    /// Event 21: 0 done, 1 failed, 2 the neighbour is being looked for and the datagram follows.
    fn handle_transmitted(&mut self, now: Instant, parameter: Option<u8>) {
        let Some(sending) = self.sending.as_mut().filter(|sending| sending.written) else {
            return;
        };
        match parameter {
            Some(2) => {}
            Some(1) => sending.transmitted = Some(false),
            _ => sending.transmitted = Some(true),
        }
        self.finish_sending(now);
    }

    /// Events 21 and OK come in either order.
    fn finish_sending(&mut self, now: Instant) {
        if let Some(Sending { accepted: true, transmitted: Some(transmitted), .. }) = self.sending {
            self.end_sending(now, transmitted.then_some(()).ok_or(Cause::NotTransmitted));
        }
    }

    fn end_sending(&mut self, now: Instant, result: Result<(), Cause>) {
        if self.sending.take().is_none() {
            return;
        }
        self.deadline = None;
        let Err(cause) = result else {
            self.send_failures = 0;
            self.events.push(Event::Sent);
            return;
        };
        self.events.push(Event::NotSent(cause));
        self.send_failures += 1;
        if self.send_failures >= SEND_FAILURES && self.limited_until.is_none() {
            self.events.push(Event::Lost(Loss::Unreachable));
            self.known = Some(self.pan);
            self.enter(now, Step::Reset);
        }
    }

    fn find_meter(&mut self, now: Instant) {
        self.scan_duration = self.config.scan.0;
        self.found = Found::default();
        match self.known.take() {
            Some(pan) => self.approach(now, pan),
            None => self.enter(now, Step::Scan),
        }
    }

    fn end_scan(&mut self, now: Instant) {
        self.found.sort();
        if let Some(pan) = self.found.take() {
            self.events.push(Event::Found(pan));
            self.approach(now, pan);
        } else if self.scan_duration < self.config.scan.1 {
            self.scan_duration += 1;
            self.enter(now, Step::Scan);
        } else {
            self.fail(now, Cause::NoMeter);
        }
    }

    fn approach(&mut self, now: Instant, pan: Pan) {
        self.pan = pan;
        self.enter(now, Step::Address);
    }

    fn handle_not_admitted(&mut self, now: Instant) {
        if self.phase == Phase::Pausing {
            return;
        }
        if self.attempt < ATTEMPTS {
            self.pause(now, JOIN_PAUSE);
        } else if let Some(pan) = self.found.take() {
            self.approach(now, pan);
        } else {
            self.fail(now, Cause::NotAdmitted);
        }
    }

    fn begin_session(&mut self) {
        self.step = Step::Session;
        // Nothing awaits an answer now but what is sent.
        self.phase = Phase::Waiting;
        self.deadline = None;
        self.sending = None;
        self.send_failures = 0;
        self.restart_pause = RESTART_PAUSE;
        self.events.push(Event::Joined(endpoint(self.meter)));
    }

    /// Joins again, after a pause in which the module may renew the session by itself.
    fn lose(&mut self, now: Instant, loss: Loss) {
        if self.sending.take().is_some() {
            self.events.push(Event::NotSent(Cause::SessionLost));
        }
        self.events.push(Event::Lost(loss));
        self.enter(now, Step::Join);
        self.attempt = 0;
        self.pause(now, JOIN_PAUSE);
    }

    fn pause(&mut self, now: Instant, length: Duration) {
        self.phase = Phase::Pausing;
        self.deadline = Some(now + length);
    }

    fn try_again(&mut self, now: Instant, pause: Duration, cause: Cause) {
        if self.attempt < ATTEMPTS {
            self.pause(now, pause);
        } else {
            self.fail(now, cause);
        }
    }

    /// Gives a step up: starts over after a pause, unless the same would happen again.
    fn fail(&mut self, now: Instant, cause: Cause) {
        if matches!(self.step, Step::ReadMode | Step::WriteMode) {
            // Firmware without this setting: both forms are understood.
            return self.enter(now, Step::Password);
        }
        let hopeless = matches!(cause, Cause::Refused(code) if code.is_final() && self.step != Step::Reset);
        let retry_in = (!hopeless).then_some(self.restart_pause);
        self.events.push(Event::Failed(Failure { step: self.step, cause, retry_in }));
        self.restart_pause = (self.restart_pause * 2).min(RESTART_PAUSE_MAX);
        self.step = Step::Idle;
        self.phase = Phase::Waiting;
        self.deadline = retry_in.map(|pause| now + pause);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.limited_until.is_some_and(|until| until <= now) {
            self.end_limit();
        }
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.step {
            Step::Idle => self.enter(now, Step::Reset),
            Step::Session => self.handle_send_timeout(now),
            _ if self.phase == Phase::Pausing => self.issue(now),
            Step::Join => self.handle_not_admitted(now),
            _ if self.attempt < ATTEMPTS => self.issue(now),
            _ => self.fail(now, Cause::Silent),
        }
    }

    fn handle_send_timeout(&mut self, now: Instant) {
        self.deadline = None;
        // One of OK and event 21 may have been lost to noise; the event counts.
        let transmitted = self.sending.and_then(|sending| sending.transmitted);
        let result = match transmitted {
            Some(true) => Ok(()),
            Some(false) => Err(Cause::NotTransmitted),
            None => Err(Cause::Silent),
        };
        self.end_sending(now, result);
    }

    /// Takes only datagrams that the session protects: the others can come from any sender.
    fn handle_datagram(&mut self, received: Received<'_>) {
        if self.step != Step::Session || received.to_port != PORT {
            // PANA and MLE: the module's own business.
            return;
        }
        let length = received.payload.decode(&mut self.incoming);
        let (true, true, Some(length)) = (received.secured, received.from == self.meter, length) else {
            self.ignored = self.ignored.saturating_add(1);
            return;
        };
        self.incoming_length = length;
        self.events.push(Event::Received(Datagram {
            from: SocketAddrV6::new(received.from, received.from_port, 0, 0),
            multicast: received.to.is_multicast(),
            payload: &[],
        }));
    }
}
