//! The way to the node: two plain sockets, one for what is sent to us alone, one for the group.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io;
use std::net::UdpSocket;
use std::time::Instant;
use std::vec::Vec;

use socket2::{Domain, Protocol, Socket, Type};

use crate::wire::PORT;

/// The group of ECHONET Lite by IPv4.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 0);
/// The longest datagram there is.
const LONGEST: usize = 65_535;

/// How long a node is waited for that has not answered the simplest request.
const RESIGNED: Duration = Duration::from_millis(20);
/// So many requests may be left alone before the others are waited for less.
const PATIENT: u32 = 4;
/// Before the identifier of the first request.
pub(super) const FIRST_TID: u16 = 0x4000;

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
}

impl Default for Settings {
    fn default() -> Self {
        let (answer, silence) = (Duration::from_secs(5), Duration::from_secs(2));
        Self { address: None, port: PORT, writes: true, answer, silence }
    }
}

/// Sockets, and the transaction identifier of the next message.
pub(super) struct Link {
    unicast: UdpSocket,
    group: Option<UdpSocket>,
    node: SocketAddr,
    pub(super) settings: Settings,
    tid: u16,
    /// Set when the node has not answered a simple request: then nobody waits long for the others.
    pub(super) silent: bool,
    /// Requests that were not answered.
    missed: u32,
}

impl Link {
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
        let unicast = bound(SocketAddr::new(own, settings.port))?;
        let group = match own {
            IpAddr::V4(own) => {
                let group = bound(SocketAddr::new(GROUP.into(), settings.port))?;
                group.join_multicast_v4(&GROUP, &own)?;
                Some(group)
            }
            // By IPv6 what is announced is not examined.
            IpAddr::V6(_) => None,
        };
        Ok(Self { unicast, group, node, settings: settings.clone(), tid: FIRST_TID, silent: false, missed: 0 })
    }

    /// Whether what the node sends to all can be heard.
    pub(super) fn hears_all(&self) -> bool {
        self.group.is_some()
    }

    /// How long to wait for an answer: of a node that has left several requests alone nobody expects the next answer late, and
    /// hundreds of items would take hours.
    pub(super) fn patience(&self) -> Duration {
        match self {
            Self { silent: true, .. } => RESIGNED,
            Self { missed: 0..PATIENT, .. } => self.settings.answer,
            _ => self.settings.answer / 20,
        }
    }

    /// Notes that a request was not answered.
    pub(super) fn missed(&mut self) {
        self.missed += 1;
    }

    /// A fresh transaction identifier.
    pub(super) fn tid(&mut self) -> u16 {
        self.tid = self.tid.wrapping_add(1);
        self.tid
    }

    /// Forgets what has come and was not asked for.
    pub(super) fn drain(&self) -> io::Result<()> {
        for socket in core::iter::once(&self.unicast).chain(&self.group) {
            socket.set_nonblocking(true)?;
            let mut buffer = [0; 1];
            while socket.recv_from(&mut buffer).is_ok() {}
        }
        Ok(())
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.unicast.send_to(bytes, self.node).map(drop)
    }

    /// Everything that comes from the node to us, or to all, until `enough` or the time is over.
    pub(super) fn gather(
        &self,
        to_all: bool,
        time: Duration,
        mut enough: impl FnMut(&[Vec<u8>]) -> bool,
    ) -> io::Result<Vec<Vec<u8>>> {
        let mut came = Vec::new();
        let Some(socket) = (if to_all { self.group.as_ref() } else { Some(&self.unicast) }) else { return Ok(came) };
        let (end, mut buffer) = (Instant::now() + time, std::vec![0; LONGEST]);
        socket.set_nonblocking(false)?;
        while !enough(&came) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) if from.ip() == self.node.ip() => came.push(buffer[..length].to_vec()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(error),
            }
        }
        Ok(came)
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
