//! The way to the node: requests that are sent again until they are answered, and the exchanges.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::format;
use std::io;
use std::net::UdpSocket;
use std::string::String;
use std::vec::Vec;

use socket2::{Domain, Protocol, Socket, Type};

use super::report::{Exchange, Item, Outcome, Report};
use crate::node::Instant;
use crate::wire::{Eoj, PORT};

/// The group of ECHONET Lite by IPv4.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 0);
/// The longest datagram there is.
const LONGEST: usize = 65_535;

/// How long a node is waited for that does not answer the simplest request any more.
const RESIGNED: Duration = Duration::from_millis(20);
/// So many requests may be left alone before the last try of the others is waited for less.
const PATIENT: u32 = 4;
/// The least and the longest time between two tries.
const APART: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// So many requests have to be answered at once before the network counts as one that loses nothing.
const STEADY: u32 = 32;
/// How often a request is sent on such a network before it counts as not answered.
const STEADY_TRIES: u32 = 3;
/// The identifier before that of the first request.
const FIRST_TID: u16 = 0x4000;
/// A mistake counts once a request was answered with it in so many tries. An answer to another program on this address
/// can look like a mistake once.
const SEEN: u32 = 3;

/// How a node is examined.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of this machine to speak from: not the node's own, because answers come to port 3610 of it. If not given,
    /// the one that the node is reached from.
    pub address: Option<IpAddr>,
    /// The port, 3610 but for tests.
    pub port: u16,
    /// Whether properties are written.
    pub writes: bool,
    /// How long an answer may take: 20 s is the most that the guidelines have controllers wait.
    pub answer: Duration,
    /// How long silence has to last.
    pub silence: Duration,
    /// How often a request is sent before it counts as not answered: datagrams get lost. With 8, one request in a hundred
    /// million is misjudged where one datagram in twenty is lost. Three times are enough once many requests were answered and
    /// none of them was lost.
    pub tries: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let (answer, silence) = (Duration::from_secs(5), Duration::from_secs(2));
        Self { address: None, port: PORT, writes: true, answer, silence, tries: 8 }
    }
}

/// Datagrams between the examination and one node, and the time: sockets, or a simulated network.
pub trait Transport {
    /// The time now.
    fn now(&self) -> Instant;

    /// Sends a datagram to the node.
    ///
    /// # Errors
    /// It cannot be sent.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;

    /// The next datagram from the node, to the group (`to_all`) or to the examination alone; none if there is none until a
    /// time.
    ///
    /// # Errors
    /// Nothing can be received.
    fn receive(&mut self, to_all: bool, until: Instant) -> io::Result<Option<Vec<u8>>>;

    /// Whether it hears what the node sends to the group.
    fn hears_all(&self) -> bool;
}

/// Why a requirement is not met.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The node does something else.
    Wrong(String),
    /// The node does not answer this, and answers other requests.
    Unanswered(String),
    /// The node answers nothing any more.
    Undecided(String),
}

impl From<String> for Why {
    fn from(wrong: String) -> Self {
        Self::Wrong(wrong)
    }
}

/// The transport, the transaction identifier of the next message, and the exchanges.
pub(super) struct Link<'t> {
    transport: &'t mut dyn Transport,
    pub(super) settings: Settings,
    tid: u16,
    /// The node has answered nothing at all lately, so requests do not wait long for it.
    is_gone: bool,
    /// Requests that were not answered.
    missed: u32,
    /// The usual response time, and the longest one so far.
    usual: Option<Duration>,
    slowest: Duration,
    /// Requests that were answered, and whether one of them had to be sent again for that.
    answered: u32,
    is_lossy: bool,
    /// Whether the node answers with transaction identifiers of its own.
    is_strange: bool,
    /// An answer took longer than the limit.
    pub(super) is_slow: bool,
    /// The exchanges for the item that is examined.
    log: Vec<Exchange>,
    is_added: bool,
    /// Everything that was sent.
    sent: Vec<Vec<u8>>,
    pub(super) repeated: u64,
    /// Whether anything has come from the node.
    pub(super) is_there: bool,
}

impl<'t> Link<'t> {
    pub(super) fn new(transport: &'t mut dyn Transport, settings: &Settings) -> Self {
        Self {
            transport,
            settings: settings.clone(),
            tid: FIRST_TID,
            is_gone: false,
            missed: 0,
            usual: None,
            slowest: Duration::ZERO,
            answered: 0,
            is_lossy: false,
            is_strange: false,
            is_slow: false,
            log: Vec::new(),
            is_added: false,
            sent: Vec::new(),
            repeated: 0,
            is_there: false,
        }
    }

    /// Whether what the node sends to all can be heard.
    pub(super) fn hears_all(&self) -> bool {
        self.transport.hears_all()
    }

    /// Adds an item with what was said for it.
    pub(super) fn add(
        &mut self,
        report: &mut Report,
        eoj: Eoj,
        id: impl Into<String>,
        requirement: impl Into<String>,
        source: &'static str,
        outcome: Outcome,
    ) {
        self.is_added = true;
        let (id, requirement, exchanges) = (id.into(), requirement.into(), self.log.clone());
        report.items.push(Item { id, eoj, requirement, source, outcome, exchanges });
    }

    /// A fresh transaction identifier.
    pub(super) fn tid(&mut self) -> u16 {
        self.tid = self.tid.wrapping_add(1);
        self.tid
    }

    pub(super) fn send(&mut self, datagram: Vec<u8>) -> io::Result<()> {
        self.transport.send(&datagram)?;
        if core::mem::take(&mut self.is_added) {
            self.log.clear();
        }
        self.sent.push(datagram.clone());
        self.log.push(Exchange { sent: datagram, received: Vec::new() });
        Ok(())
    }

    fn receive(&mut self, to_all: bool, until: Instant) -> io::Result<Option<Vec<u8>>> {
        let came = self.transport.receive(to_all, until)?;
        self.is_there |= came.is_some();
        if let (Some(bytes), Some(exchange)) = (&came, self.log.last_mut()) {
            exchange.received.push(bytes.clone());
        }
        Ok(came)
    }

    /// Everything that comes within a time.
    pub(super) fn gather(&mut self, time: Duration) -> io::Result<Vec<Vec<u8>>> {
        let (until, mut came) = (self.transport.now() + time, Vec::new());
        while let Some(bytes) = self.receive(false, until)? {
            came.push(bytes);
        }
        Ok(came)
    }

    /// Time to wait for the answer to a try: four times the usual time of answers, and for the last try the longest
    /// time that an answer may take. Both double until the node has answered once, to tell late answers from none. If a
    /// node has not answered several requests, the check stops waiting for late answers: hundreds of items would take
    /// hours.
    pub(super) fn patience(&self, is_last: bool) -> Duration {
        let [least, most] = APART;
        let between = self.usual.map_or(most, |usual| (4 * usual).clamp(least, most)).min(self.settings.answer);
        match self {
            Self { is_gone: true, .. } => RESIGNED,
            _ if !is_last => between,
            Self { missed: 0..PATIENT, usual: None, .. } => self.settings.answer * 2,
            Self { missed: 0..PATIENT, .. } => self.settings.answer,
            _ => between.max(2 * self.slowest).min(self.settings.answer),
        }
    }

    /// How often a request is sent before it counts as not answered.
    pub(super) fn tries(&self) -> u32 {
        let is_steady = self.answered >= STEADY && !self.is_lossy;
        match self.settings.tries.max(1) {
            _ if self.is_gone => 1,
            tries if is_steady => tries.min(STEADY_TRIES),
            tries => tries,
        }
    }

    /// Notes what an answer took, and whether it answers the first try.
    fn note(&mut self, took: Duration, is_first: bool) {
        self.usual = Some(self.usual.map_or(took, |usual| (usual * 7 + took) / 8));
        self.slowest = self.slowest.max(took);
        self.answered += 1;
        self.is_lossy |= !is_first;
        (self.is_gone, self.is_strange) = (false, false);
    }

    /// Makes a request until an answer has come; returns the answer with its identifier. Answers to other requests, of this
    /// examination or of other programs on this address, are passed over.
    pub(super) fn ask(&mut self, eoj: Eoj, body: &[u8]) -> io::Result<Result<(u16, Vec<u8>), Why>> {
        let (mut sent, mut strange, mut late) = (Vec::new(), 0, None);
        let tries = self.tries();
        let seen = if self.is_strange { 1 } else { SEEN.min(tries) };
        for number in 1..=tries {
            let tid = self.tid();
            self.send(frame(tid, eoj, body))?;
            self.repeated += u64::from(number > 1);
            let now = self.transport.now();
            sent.push((tid, now));
            let (until, mut is_strange) = (now + self.patience(number == tries), false);
            while let Some(bytes) = self.receive(false, until)? {
                let Some(told) = answers(&bytes) else { continue };
                let Some((_, at)) = sent.iter().find(|(of, _)| *of == told) else {
                    let is_late = self.is_late(&bytes);
                    strange += u32::from(!is_late && !core::mem::replace(&mut is_strange, true));
                    if is_strange && !is_late && strange >= seen {
                        self.is_strange = true;
                        return Ok(Ok((tid, bytes)));
                    }
                    continue;
                };
                let took = self.transport.now().since(*at);
                if took > self.settings.answer {
                    late = Some(took);
                    self.is_slow = true;
                    continue;
                }
                self.note(took, told == sent[0].0);
                return Ok(Ok((told, bytes)));
            }
            if late.is_some() {
                break;
            }
        }
        self.missed += 1;
        let within = self.settings.answer;
        if let Some(took) = late {
            return Ok(Err(Why::Wrong(format!("no answer within {within:?}, but after {took:?}"))));
        }
        Ok(Err(Why::Unanswered(format!("no answer to {tries} tries within {within:?}"))))
    }

    /// True for a frame that has the identifier, the object and the first property of an earlier request. Many requests are alike,
    /// so some of these frames answer another one; no answer to an earlier request is missed.
    fn is_late(&self, answer: &[u8]) -> bool {
        let is_of = |request: &&Vec<u8>| {
            request.get(2..4) == answer.get(2..4)
                && request.get(7..10) == answer.get(4..7)
                && request.get(12) == answer.get(12)
        };
        self.sent.iter().rev().any(|request| is_of(&request))
    }

    /// The transaction identifier of the last message.
    pub(super) const fn last_tid(&self) -> u16 {
        self.tid
    }

    /// Whether the node has answered nothing lately.
    pub(super) const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether the node answers the simplest request.
    pub(super) fn is_alive(&mut self) -> io::Result<bool> {
        // An answer that comes late is one.
        let is_alive = !matches!(self.ask(Eoj::NODE_PROFILE, &[0x62, 1, 0x80, 0])?, Err(Why::Unanswered(_)));
        self.is_gone = !is_alive;
        Ok(is_alive)
    }

    /// Passes over what was told to all before now.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let until = self.transport.now() + Duration::from_millis(1);
        while self.transport.receive(true, until)?.is_some() {}
        Ok(())
    }

    /// Sends a message and waits until the node announces the wanted frame; returns that frame. `is_it` gets each
    /// announced frame and the identifier of the sent message.
    pub(super) fn hear(
        &mut self,
        eoj: Eoj,
        body: &[u8],
        is_it: impl Fn(&[u8], u16) -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let tid = self.tid();
        self.send(frame(tid, eoj, body))?;
        let until = self.transport.now() + self.patience(false).max(APART[0] * 6).min(self.settings.answer);
        while let Some(bytes) = self.receive(true, until)? {
            if is_it(&bytes, tid) {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

/// A message of the tester to an object.
pub(super) fn frame(tid: u16, eoj: Eoj, body: &[u8]) -> Vec<u8> {
    [&[0x10, 0x81][..], &tid.to_be_bytes(), &Eoj::CONTROLLER.to_bytes(), &eoj.to_bytes(), body].concat()
}

/// The identifier of a message that answers something, if only in its own way: no request and no news.
fn answers(frame: &[u8]) -> Option<u16> {
    let is_answer = !matches!(frame.get(10), Some(0x60..=0x6F | 0x73 | 0x74));
    frame.get(2..4).filter(|_| is_answer).map(|tid| u16::from_be_bytes([tid[0], tid[1]]))
}

/// Two plain sockets, one for what is sent to the examination alone, one for the group.
pub(super) struct Sockets {
    unicast: UdpSocket,
    group: Option<UdpSocket>,
    node: SocketAddr,
    begun: std::time::Instant,
    /// Whether another program has the address and the port, too: the answers can go there.
    pub(super) is_shared: bool,
}

impl Sockets {
    pub(super) fn open(node: IpAddr, settings: &Settings) -> io::Result<Self> {
        let node = SocketAddr::new(node, settings.port);
        let own = match settings.address {
            Some(own) => own,
            None => own_address(node)?,
        };
        if own == node.ip() {
            let text = "the node is on this machine: give another address of it to speak from";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        let address = SocketAddr::new(own, settings.port);
        let is_shared = matches!(UdpSocket::bind(address), Err(error) if error.kind() == io::ErrorKind::AddrInUse);
        let unicast = bound(address)?;
        let group = match own {
            IpAddr::V4(own) => {
                let group = bound(SocketAddr::new(GROUP.into(), settings.port))?;
                group.join_multicast_v4(&GROUP, &own)?;
                Some(group)
            }
            // By IPv6 what is announced is not examined.
            IpAddr::V6(_) => None,
        };
        Ok(Self { unicast, group, node, begun: std::time::Instant::now(), is_shared })
    }
}

impl Transport for Sockets {
    fn now(&self) -> Instant {
        Instant::ZERO + self.begun.elapsed()
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.unicast.send_to(datagram, self.node).map(drop)
    }

    fn receive(&mut self, to_all: bool, until: Instant) -> io::Result<Option<Vec<u8>>> {
        let Some(socket) = (if to_all { self.group.as_ref() } else { Some(&self.unicast) }) else { return Ok(None) };
        let mut buffer = std::vec![0; LONGEST];
        loop {
            let left = until.since(self.now());
            if left.is_zero() {
                return Ok(None);
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from.ip() == self.node.ip() => return Ok(Some(buffer[..length].to_vec())),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn hears_all(&self) -> bool {
        self.group.is_some()
    }
}

/// The address of this machine that the node is reached from; one of its own on loopback.
fn own_address(node: SocketAddr) -> io::Result<IpAddr> {
    const BESIDE: [u8; 4] = [127, 0, 0, 250];
    if matches!(node.ip(), IpAddr::V4(ip) if ip.is_loopback()) {
        return Ok(IpAddr::from(BESIDE));
    }
    let any: IpAddr =
        if node.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { core::net::Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(node)?;
    Ok(probe.local_addr()?.ip())
}

fn bound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
