//! A connection's socket: opening, TLS, and what could not be sent yet.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::ClientConnection;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::load::{Endpoint, Tls};
use crate::record::Failure;

/// Connections from one source address to one port; Linux has some 28,000 ephemeral ports by default.
const PER_SOURCE_ADDRESS: usize = 20_000;

/// A socket that is opening or open.
pub(super) struct Link {
    socket: Socket,
    /// Where an unconnected socket sends its datagrams.
    to: Option<SockAddr>,
    tls: Option<Box<ClientConnection>>,
    /// Whether TLS asks for HTTP/2 (ALPN).
    wants_h2: bool,
    opened: bool,
    /// Which of the target's addresses this is.
    attempt: usize,
    /// The bytes that the socket did not take, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
}

/// Why a link is lost.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) failure: Failure,
    pub(super) example: String,
}

impl Link {
    /// Begins to open a connection, from `local` if that is said; `seat` numbers it, `attempt` counts the addresses tried.
    pub(super) fn open(
        endpoint: &Endpoint,
        local: Option<SocketAddr>,
        seat: usize,
        attempt: usize,
    ) -> Result<Self, Lost> {
        let (tls, kind) = match endpoint {
            Endpoint::Tcp(_, tls) | Endpoint::Unix(_, tls) => (tls.as_ref(), Type::STREAM),
            // QUIC has its own TLS, which the codec speaks.
            Endpoint::Udp(_) | Endpoint::Quic(..) => (None, Type::DGRAM),
        };
        let address = address(endpoint, attempt).ok_or_else(|| Lost {
            failure: Failure::Refused,
            example: "the target has no address that can be connected to".to_owned(),
        })?;
        // A socket bound for answers does not know their source: a device may send from any of its ports.
        let is_plain = matches!(endpoint, Endpoint::Udp(_));
        let to = (is_plain && local.is_some()).then(|| address.clone());
        let local = local.or_else(|| source_address(address.as_socket(), seat));
        let socket = match to {
            Some(_) => bound(&address, kind, local),
            None => connect(&address, kind, local),
        };
        let socket = socket.map_err(|error| lost_connecting(Some(&address), &error))?;
        let wants_h2 = tls.is_some_and(|tls| tls.config.alpn_protocols.iter().any(|protocol| protocol == b"h2"));
        let tls = tls.map(client).transpose()?;
        Ok(Self { socket, to, tls, wants_h2, opened: false, attempt, unsent: Vec::new(), sent: 0 })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Goes on opening after the socket had an event. Gives whether requests can be sent now.
    pub(super) fn advance(&mut self, endpoint: &Endpoint) -> Result<bool, Lost> {
        if !self.opened {
            if let Some(error) = self.socket.take_error().unwrap_or_else(Some) {
                return Err(lost_connecting(address(endpoint, self.attempt).as_ref(), &error));
            }
            if self.to.is_none() && self.socket.peer_addr().is_err() {
                return Ok(false);
            }
            self.opened = true;
        }
        if self.is_handshaking() {
            // To the end of what there is, because only more of it is reported.
            while self.pump()? && self.is_handshaking() {}
            self.flush()?;
        }
        if self.is_handshaking() {
            return Ok(false);
        }
        self.check_protocol()?;
        Ok(true)
    }

    /// Whether the transport is connected; TLS may still be shaking hands.
    pub(super) fn is_connected(&self) -> bool {
        self.opened
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the socket waits to be writable.
    pub(super) fn wants_write(&self) -> bool {
        !self.opened || self.sent < self.unsent.len()
    }

    /// Reads once.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<Arrived, Lost> {
        if self.tls.is_some() {
            return self.read_tls(buffer);
        }
        match (&self.socket).read(buffer) {
            Ok(0) => Ok(Arrived::End),
            Ok(read) => Ok(Arrived::Bytes(read)),
            Err(error) => nothing_yet(&error).ok_or_else(|| lost_reading(&error)),
        }
    }

    /// Sends `bytes` after what is unsent, as far as the socket takes them.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes).map_err(|error| lost_reading(&error))?;
        } else if self.wants_write() {
            self.unsent.extend_from_slice(bytes);
        } else {
            let sent = self.write(bytes)?;
            self.unsent.extend_from_slice(&bytes[sent..]);
            return Ok(());
        }
        self.flush()
    }

    /// Sends one datagram. One that the kernel has no room for is lost, as a network would lose it.
    pub(super) fn send_datagram(&self, bytes: &[u8]) -> Result<(), Lost> {
        self.write(bytes).map(drop)
    }

    /// Sends one datagram of QUIC. One that is too long for the path is lost too: so QUIC learns how long they may be.
    pub(super) fn send_quic(&self, bytes: &[u8]) -> Result<(), Lost> {
        match (&self.socket).write(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => Ok(()),
            Err(error) => nothing_yet(&error).map(drop).ok_or_else(|| lost_reading(&error)),
        }
    }

    /// Sends what is unsent, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.unsent).map_err(|error| lost_reading(&error))?;
            }
        }
        while self.sent < self.unsent.len() {
            let sent = self.write(&self.unsent[self.sent..])?;
            if sent == 0 {
                return Ok(());
            }
            self.sent += sent;
        }
        // A connection that once had to wait does not keep the memory.
        self.unsent = Vec::new();
        self.sent = 0;
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Lost> {
        let written = match &self.to {
            Some(address) => self.socket.send_to(bytes, address),
            None => (&self.socket).write(bytes),
        };
        match written {
            Ok(sent) => Ok(sent),
            Err(error) => nothing_yet(&error).map(|_| 0).ok_or_else(|| lost_reading(&error)),
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Where a protocol was asked for in the handshake (ALPN), the server must have agreed to one.
    fn check_protocol(&self) -> Result<(), Lost> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        if self.wants_h2 && tls.alpn_protocol().is_none() {
            let example = "the server's TLS did not agree to HTTP/2 (ALPN h2)".to_owned();
            return Err(Lost { failure: Failure::Tls, example });
        }
        Ok(())
    }

    /// Decrypts what arrived. Gives whether something did.
    fn pump(&mut self) -> Result<bool, Lost> {
        let Some(tls) = &mut self.tls else {
            return Ok(false);
        };
        match tls.read_tls(&mut &self.socket) {
            Ok(0) if tls.is_handshaking() => {
                return Err(Lost { failure: Failure::Tls, example: "TLS: closed during the handshake".to_owned() });
            }
            Ok(_) => {}
            Err(error) => return nothing_yet(&error).map(|_| false).ok_or_else(|| lost_reading(&error)),
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert tells the server why; if it cannot be sent, the connection ends all the same.
            let _ = self.flush();
            return Err(Lost { failure: Failure::Tls, example: format!("TLS: {error}") });
        }
        Ok(true)
    }

    fn read_tls(&mut self, buffer: &mut [u8]) -> Result<Arrived, Lost> {
        loop {
            // Earlier records may have held more than the reader had room for.
            let Some(tls) = &mut self.tls else {
                return Ok(Arrived::Nothing);
            };
            match tls.reader().read(buffer) {
                Ok(0) => return Ok(Arrived::End),
                Ok(read) => return Ok(Arrived::Bytes(read)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Closed without TLS' farewell.
                Err(_) => return Ok(Arrived::End),
            }
            if !self.pump()? {
                return Ok(Arrived::Nothing);
            }
        }
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// There is nothing to read.
    Nothing,
    /// So many bytes.
    Bytes(usize),
    /// The peer sends no more.
    End,
}

/// The address that an attempt tries.
fn address(endpoint: &Endpoint, attempt: usize) -> Option<SockAddr> {
    match endpoint {
        Endpoint::Tcp(addresses, _) | Endpoint::Quic(addresses, _) => {
            addresses.get(attempt % addresses.len().max(1)).copied().map(SockAddr::from)
        }
        Endpoint::Unix(path, _) => SockAddr::unix(path).ok(),
        Endpoint::Udp(address) => Some(SockAddr::from(*address)),
    }
}

fn client(tls: &Tls) -> Result<Box<ClientConnection>, Lost> {
    ClientConnection::new(tls.config.clone(), tls.name.clone())
        .map(Box::new)
        .map_err(|error| Lost { failure: Failure::Tls, example: format!("TLS: {error}") })
}

/// A socket that never waits, at its local address.
fn bound(address: &SockAddr, kind: Type, local: Option<SocketAddr>) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), kind, None)?;
    socket.set_nonblocking(true)?;
    if address.domain() != Domain::UNIX && kind == Type::STREAM {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(local) = local {
        socket.bind(&local.into())?;
    }
    Ok(socket)
}

/// A socket that connects without waiting.
fn connect(address: &SockAddr, kind: Type, local: Option<SocketAddr>) -> io::Result<Socket> {
    let socket = bound(address, kind, local)?;
    match socket.connect(address) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Ok(socket),
        Err(error) if error.kind() == ErrorKind::WouldBlock && address.domain() != Domain::UNIX => Ok(socket),
        Err(error) => Err(error),
        Ok(()) => Ok(socket),
    }
}

/// Further loopback addresses for connections that one address has no ports for.
fn source_address(target: Option<SocketAddr>, seat: usize) -> Option<SocketAddr> {
    let block = seat / PER_SOURCE_ADDRESS;
    match target?.ip() {
        IpAddr::V4(ip) if ip.is_loopback() && block > 0 => {
            let source = Ipv4Addr::new(127, 0, 1, u8::try_from(block).ok()?);
            Some(SocketAddr::from((source, 0)))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// That there is nothing to read or no room to write is no error.
fn nothing_yet(error: &io::Error) -> Option<Arrived> {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted).then_some(Arrived::Nothing)
}

fn lost_connecting(address: Option<&SockAddr>, error: &io::Error) -> Lost {
    use rustix::io::Errno;
    let resources = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL, Errno::AGAIN];
    let code = error.raw_os_error();
    let failure = if resources.iter().any(|errno| code == Some(errno.raw_os_error())) {
        Failure::Resources
    } else if error.kind() == ErrorKind::ConnectionReset {
        Failure::Reset
    } else if error.kind() == ErrorKind::TimedOut {
        Failure::TimedOut
    } else {
        Failure::Refused
    };
    Lost { failure, example: format!("connect{}: {error}", address.map(name).unwrap_or_default()) }
}

/// " to ADDRESS".
fn name(address: &SockAddr) -> String {
    match (address.as_socket(), address.as_pathname()) {
        (Some(socket), _) => format!(" to {socket}"),
        (None, Some(path)) => format!(" to {}", path.display()),
        (None, None) => String::new(),
    }
}

fn lost_reading(error: &io::Error) -> Lost {
    let failure = match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Failure::Reset,
        ErrorKind::ConnectionRefused => Failure::Refused,
        ErrorKind::TimedOut => Failure::TimedOut,
        _ => Failure::Closed,
    };
    Lost { failure, example: error.to_string() }
}
