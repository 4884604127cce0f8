//! TCP connections: those that others make to us, and those we make to others before falling back to UDP.
//!
//! There is no framing beyond the messages themselves. The bytes of an incomplete message wait in the connection's
//! buffer; answers go back on the connection that brought the request.

use core::cmp::Reverse;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::vec::Vec;

use socket2::{Domain, Protocol, Socket, Type};

use super::departing::Departing;
use super::engine::{Device, Engine};
use super::error::BindError;
use super::report::report;
use super::system::{self, Watch, Watched};
use super::token::{self, Interest};
use crate::node::{Arrival, Destination, Instant, Transmit};
use crate::wire::{MessageLength, message_length};

/// Connections at a time. One more ends the connection that has been silent longest among those of the host that has the
/// most: a flood from one host takes no other host's.
const CONNECTIONS: usize = 64;
/// A connection that has been silent so long is closed.
const IDLE: Duration = Duration::from_secs(120);
/// How long a connection may take to be made before its messages go by UDP.
const CONNECT: Duration = Duration::from_secs(1);
/// How long a node that did not accept a connection is spoken to by UDP.
const FALLBACK: Duration = Duration::from_secs(300);
/// Nodes that are remembered for that.
const FALLBACKS: usize = 256;
/// How long no connection is accepted after the system had no room for one.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest message: a header, and two lists of 255 properties of 255 bytes.
const MESSAGE_MAX: usize = 12 + 2 * (1 + 255 * 257);
/// The most bytes that may wait to be written; a connection that exceeds it is closed, as its peer does not read.
const OUTPUT_MAX: usize = 2 * MESSAGE_MAX;
/// Read at a time.
const READ: usize = 16 * 1024;
const BACKLOG: i32 = 16;

/// Whether to listen for TCP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listen {
    /// Never.
    Off,
    /// If there is a node to serve, and no other program listens on the same address: UDP, which every node must speak, can be shared; TCP
    /// cannot. A program that only asks leaves it to the devices of its machine, which it can reach in no other way.
    #[default]
    IfFree,
    /// Always; an endpoint that cannot is not opened.
    Required,
}

/// All connections.
pub(super) struct Tcp {
    listen: Listen,
    /// A place of an address that is gone is empty.
    listeners: Vec<Option<(SocketAddr, Watched<TcpListener>)>>,
    connections: Vec<Option<Connection>>,
    /// Whether our requests go by TCP where that is accepted.
    preferred: bool,
    /// Nodes that did not accept, and until when that counts.
    fallbacks: VecDeque<(IpAddr, Instant)>,
    /// Until when no connection is accepted.
    paused: Option<Instant>,
    scratch: Vec<u8>,
}

struct Connection {
    stream: Watched<TcpStream>,
    peer: SocketAddr,
    state: State,
    /// When anything was last read, or the connection begun.
    last: Instant,
    input: Vec<u8>,
    output: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Open {
        /// Whether the system is asked to say when more can be written.
        writing: bool,
    },
}

/// The next step of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Close,
}

impl Tcp {
    /// Listens on these addresses.
    pub(super) fn open(
        listen: Listen,
        preferred: bool,
        addresses: impl Iterator<Item = SocketAddr>,
        watch: &Watch,
    ) -> Result<Self, BindError> {
        let mut tcp = Self {
            listen,
            listeners: Vec::new(),
            connections: Vec::new(),
            preferred,
            fallbacks: VecDeque::new(),
            paused: None,
            scratch: Vec::new(),
        };
        for address in addresses {
            match tcp.listen_on(address, watch) {
                Err(source) if source.kind() == io::ErrorKind::AddrInUse => {
                    return Err(BindError::PortHeld { address, protocol: "tcp", source });
                }
                Err(source) => return Err(BindError::Io { doing: "listening on", address: Some(address), source }),
                Ok(()) => {}
            }
        }
        Ok(tcp)
    }

    /// Listens on an address, as far as that is wanted.
    fn listen_on(&mut self, address: SocketAddr, watch: &Watch) -> io::Result<()> {
        if self.listen == Listen::Off {
            return Ok(());
        }
        let listener = match listener(address) {
            Err(error) if self.listen == Listen::IfFree => {
                report!(warn, "no TCP on {address}: {error}");
                return Ok(());
            }
            opened => opened?,
        };
        let mut listener = Watched::new(listener);
        let free = self.listeners.iter().position(Option::is_none).unwrap_or(self.listeners.len());
        watch.follow(&mut listener, token::LISTENERS + free as u64, Interest::Reading)?;
        if free == self.listeners.len() {
            self.listeners.push(None);
        }
        self.listeners[free] = Some((address, listener));
        Ok(())
    }

    /// Listens on these addresses and no others. Where it cannot, UDP has to do.
    pub(super) fn follow(&mut self, addresses: impl Iterator<Item = SocketAddr>, watch: &Watch) {
        let addresses: Vec<_> = addresses.collect();
        for place in &mut self.listeners {
            place.take_if(|(address, _)| !addresses.contains(address));
        }
        for address in addresses {
            if !self.listeners.iter().flatten().any(|(known, _)| *known == address) {
                let _ = self.listen_on(address, watch);
            }
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listeners.iter().any(Option::is_some)
    }

    /// Accepts the clients that want to connect.
    pub(super) fn accept(&mut self, now: Instant, at: usize, watch: &Watch) {
        while let Some(Some((_, listener))) = self.listeners.get(at) {
            match listener.accept() {
                Ok((stream, peer)) => {
                    let open = State::Open { writing: false };
                    // One that cannot be watched is closed by being dropped.
                    let _ = self.add(now, stream, peer, open, watch);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    report!(warn, "no TCP connections are accepted for {PAUSE:?}: {error}");
                    // No descriptors or memory: asking again at once would only spin.
                    self.paused = Some(now + PAUSE);
                    self.listen(watch, Interest::Nothing);
                    break;
                }
            }
        }
    }

    fn listen(&mut self, watch: &Watch, interest: Interest) {
        let listeners = self.listeners.iter_mut().enumerate();
        for (at, (_, listener)) in listeners.filter_map(|(at, place)| Some((at, place.as_mut()?))) {
            // A socket that is watched can always be watched for something else.
            let _ = watch.follow(listener, token::LISTENERS + at as u64, interest);
        }
    }

    /// Takes a connection into the table; says where.
    fn add(
        &mut self,
        now: Instant,
        stream: TcpStream,
        peer: SocketAddr,
        state: State,
        watch: &Watch,
    ) -> io::Result<usize> {
        let place = self.free_place(peer.ip());
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let interest = if state == State::Connecting { Interest::Writing } else { Interest::Reading };
        let mut stream = Watched::new(stream);
        watch.follow(&mut stream, token::CONNECTIONS + place as u64, interest)?;
        let connection = Connection { stream, peer, state, last: now, input: Vec::new(), output: Vec::new() };
        if place == self.connections.len() {
            self.connections.push(Some(connection));
        } else {
            self.connections[place] = Some(connection);
        }
        Ok(place)
    }

    /// A place in the table for a connection with a host. If all places are in use, the host with the most connections,
    /// the new one counted, loses the connection that has been silent longest. If several hosts have as many, the new
    /// connection's host loses one.
    fn free_place(&self, host: IpAddr) -> usize {
        if let Some(free) = self.connections.iter().position(Option::is_none) {
            return free;
        }
        if self.connections.len() < CONNECTIONS {
            return self.connections.len();
        }
        let mut counts = HashMap::from([(host, 1_usize)]);
        for connection in self.connections.iter().flatten() {
            *counts.entry(connection.peer.ip()).or_default() += 1;
        }
        let rank = |connection: &Connection| {
            let of = connection.peer.ip();
            (Reverse(counts.get(&of).copied()), of != host, connection.last)
        };
        let used = self.connections.iter().zip(0..).filter_map(|(known, place)| Some((rank(known.as_ref()?), place)));
        used.min().map(|(_, place)| place).unwrap_or_default()
    }

    /// Sends a request on the connection to a node, which is made if there is none. False if it has to go by UDP.
    ///
    /// A datagram to an address that we listen on too (`shared`) would come back to us, as the kernel gives it to the
    /// program that came last. A connection reaches the program that listens.
    pub(super) fn send(&mut self, now: Instant, to: SocketAddr, shared: bool, message: &[u8], watch: &Watch) -> bool {
        let wanted = self.preferred || (shared && !self.is_listening());
        if !wanted || self.falls_back(now, to.ip()) {
            return false;
        }
        let found = self.connections.iter().position(|known| known.as_ref().is_some_and(|known| known.peer == to));
        let place = match found {
            Some(place) => place,
            None => match connect(to).and_then(|stream| self.add(now, stream, to, State::Connecting, watch)) {
                Ok(place) => place,
                Err(_) => {
                    self.fall_back(now, to.ip());
                    return false;
                }
            },
        };
        let Some(connection) = self.connections[place].as_mut() else { return false };
        if connection.output.len() + message.len() > OUTPUT_MAX {
            return false;
        }
        connection.output.extend_from_slice(message);
        if connection.write(watch, place) == Fate::Close {
            self.connections[place] = None;
            return false;
        }
        true
    }

    fn falls_back(&self, now: Instant, node: IpAddr) -> bool {
        self.fallbacks.iter().any(|&(known, until)| known == node && until > now)
    }

    fn fall_back(&mut self, now: Instant, node: IpAddr) {
        self.fallbacks.retain(|&(known, until)| known != node && until > now);
        if self.fallbacks.len() == FALLBACKS {
            self.fallbacks.pop_front();
        }
        self.fallbacks.push_back((node, now + FALLBACK));
    }

    /// Reads from and writes to the connection at `place`, as it can.
    pub(super) fn attend<D: Device>(
        &mut self,
        now: Instant,
        place: usize,
        engine: &mut Engine<D>,
        departing: &mut Departing,
        watch: &Watch,
    ) {
        let Some(mut connection) = self.connections.get_mut(place).and_then(Option::take) else { return };
        if connection.state == State::Connecting {
            match connection.stream.take_error() {
                Ok(None) if connection.stream.peer_addr().is_ok() => {
                    connection.state = State::Open { writing: true };
                    connection.last = now;
                }
                // Writable, yet not connected: not yet.
                Ok(None) => {
                    self.connections[place] = Some(connection);
                    return;
                }
                _ => return self.give_up(now, &connection, departing),
            }
        }
        if self.scratch.is_empty() {
            self.scratch.resize(READ, 0);
        }
        let fate = match connection.read(now, &mut self.scratch, engine, departing) {
            // The last request may still be answered, if the peer closed only its own half.
            Fate::Close => {
                let _ = connection.write(watch, place);
                Fate::Close
            }
            Fate::Keep => connection.write(watch, place),
        };
        if fate == Fate::Keep {
            self.connections[place] = Some(connection);
        }
    }

    /// Sends by UDP what should have gone by a connection that could not be made.
    fn give_up(&mut self, now: Instant, connection: &Connection, departing: &mut Departing) {
        self.fall_back(now, connection.peer.ip());
        let mut rest = &connection.output[..];
        while let MessageLength::Complete(length) = message_length(rest) {
            let (message, next) = rest.split_at(length);
            if length <= departing.buffer().len() {
                departing.buffer()[..length].copy_from_slice(message);
                departing.send(Destination::Unicast(connection.peer), length, None);
            }
            rest = next;
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.connections.iter().flatten().map(Connection::deadline).chain(self.paused).min()
    }

    /// Ends connections that have been silent for too long, and attempts to make one.
    pub(super) fn expire(&mut self, now: Instant, departing: &mut Departing, watch: &Watch) {
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
            self.listen(watch, Interest::Reading);
        }
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections[place].take_if(|known| known.deadline() <= now) else { continue };
            if connection.state == State::Connecting {
                self.give_up(now, &connection, departing);
            }
        }
    }
}

impl Connection {
    fn deadline(&self) -> Instant {
        self.last + if self.state == State::Connecting { CONNECT } else { IDLE }
    }

    /// Reads once and takes the messages that are complete. Further bytes make the connection ready again.
    fn read<D: Device>(
        &mut self,
        now: Instant,
        scratch: &mut [u8],
        engine: &mut Engine<D>,
        departing: &mut Departing,
    ) -> Fate {
        match (&*self.stream).read(scratch) {
            Ok(0) => return Fate::Close,
            Ok(length) => {
                self.input.extend_from_slice(&scratch[..length]);
                self.last = now;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Fate::Close,
        }
        let mut taken = 0;
        let fate = loop {
            match message_length(&self.input[taken..]) {
                MessageLength::Complete(length) => {
                    let message = &self.input[taken..][..length];
                    let mut answers = Answers { output: &mut self.output, peer: self.peer, departing };
                    engine.take(now, self.peer, Arrival::Connection, message, &mut answers);
                    taken += length;
                }
                MessageLength::NeedMore if self.input.len() - taken < MESSAGE_MAX => break Fate::Keep,
                MessageLength::NeedMore | MessageLength::Bad(_) => break Fate::Close,
            }
        };
        self.input.drain(..taken);
        fate
    }

    /// Writes what waits to be written, and has the system say when the rest can be.
    fn write(&mut self, watch: &Watch, place: usize) -> Fate {
        let State::Open { writing } = self.state else { return Fate::Keep };
        let mut written = 0;
        while written < self.output.len() {
            match (&*self.stream).write(&self.output[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Fate::Close,
            }
        }
        self.output.drain(..written);
        if self.output.len() > OUTPUT_MAX {
            return Fate::Close;
        }
        let more = !self.output.is_empty();
        if more != writing {
            let interest = if more { Interest::Both } else { Interest::Reading };
            if watch.follow(&mut self.stream, token::CONNECTIONS + place as u64, interest).is_err() {
                return Fate::Close;
            }
        }
        self.state = State::Open { writing: more };
        Fate::Keep
    }
}

/// Takes a node's answers to a message that came by a connection.
struct Answers<'a> {
    output: &'a mut Vec<u8>,
    peer: SocketAddr,
    departing: &'a mut Departing,
}

impl Transmit for Answers<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.departing.buffer()
    }

    fn transmit(&mut self, destination: Destination, length: usize) {
        if destination == Destination::Unicast(self.peer) {
            // Of a peer that asks without reading, only so many answers wait; then the connection ends.
            if self.output.len() <= OUTPUT_MAX {
                self.output.extend_from_slice(&self.departing.buffer()[..length]);
            }
        } else {
            self.departing.send(destination, length, None);
        }
    }
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart need not wait for the connections of the life before. On Windows that is so, and the option lets others in.
    socket.set_reuse_address(cfg!(unix))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Begins to connect.
fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if !system::is_under_way(&error) => Err(error),
        _ => Ok(socket.into()),
    }
}
