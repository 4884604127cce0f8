//! Datagrams with their packet information, by the `quinn-udp` crate.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::vec;
use std::vec::Vec;

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::SockRef;

use super::watch::Watched;
use crate::net::datagram::{Datagram, PacketInfo};
use crate::net::socket::{Sockets, Way};

/// Room for what comes by one call: the largest datagram, or several that the system has put together.
const ROOM: usize = 65_535;
/// The most that UDP over IPv4 carries.
const DATAGRAM_MAX: usize = 65_507;
/// Room for a batch of ordinary datagrams, and the largest one behind it.
const PAYLOAD: usize = 4 * ROOM;
/// Datagrams that are received or sent together.
const BATCH: usize = 64;

/// A UDP socket.
pub(in crate::net) struct Udp {
    socket: Watched<UdpSocket>,
    state: UdpSocketState,
}

impl Udp {
    /// Has a socket say where each datagram came to.
    pub(in crate::net) fn new(socket: UdpSocket, _tells: bool, _v6: bool) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Self { socket: Watched::new(socket), state })
    }

    pub(in crate::net) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(in crate::net) fn watched(&mut self) -> &mut Watched<UdpSocket> {
        &mut self.socket
    }
}

/// The buffer for a batch of received datagrams, used again by every call.
pub(in crate::net) struct Incoming {
    received: Vec<Received>,
    payload: Vec<u8>,
}

/// A datagram: whence, and which part of the payload.
struct Received {
    from: SocketAddr,
    info: Option<PacketInfo>,
    start: usize,
    length: usize,
}

impl Incoming {
    pub(in crate::net) fn new() -> Self {
        Self { received: Vec::with_capacity(BATCH), payload: vec![0; PAYLOAD] }
    }

    /// Receives up to [`BATCH`] datagrams without waiting, or a few more that the system has put together; says how many, and
    /// whether there may be more.
    pub(in crate::net) fn receive(&mut self, udp: &Udp, _wait: bool) -> io::Result<(usize, bool)> {
        self.received.clear();
        let mut start = 0;
        while start + ROOM <= PAYLOAD && self.received.len() < BATCH {
            let mut meta = [RecvMeta::default()];
            let mut buffer = [IoSliceMut::new(&mut self.payload[start..][..ROOM])];
            match udp.state.recv(UdpSockRef::from(&*udp.socket), &mut buffer, &mut meta) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && start > 0 => {
                    return Ok((self.received.len(), false));
                }
                // The datagrams before the error are taken; the error is not told twice.
                Err(_) if !self.received.is_empty() => break,
                Err(error) => return Err(error),
            }
            self.take(&meta[0], start);
            start += meta[0].len;
        }
        Ok((self.received.len(), true))
    }

    /// Takes what one call has brought.
    fn take(&mut self, meta: &RecvMeta, begin: usize) {
        let interface = meta.interface_index.unwrap_or(0);
        let info = meta.dst_ip.map(|address| PacketInfo { interface, address, local: local(address) });
        let step = meta.stride.max(1);
        self.received.extend((0..meta.len.max(1)).step_by(step).map(|offset| {
            let length = step.min(meta.len - offset);
            Received { from: meta.addr, info, start: begin + offset, length }
        }));
    }

    /// Datagram `at` of the last batch.
    pub(in crate::net) fn datagram(&self, at: usize) -> Option<Datagram<'_>> {
        let Received { from, info, start, length } = *self.received.get(at)?;
        Some(Datagram { from, info, bytes: &self.payload[start..][..length] })
    }
}

/// Our own address, as far as that to which a datagram was sent tells it.
fn local(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_multicast() || v4.is_broadcast() => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(v6) if v6.is_multicast() => Ipv6Addr::UNSPECIFIED.into(),
        own => own,
    }
}

/// Departing datagrams.
pub(in crate::net) struct Outgoing {
    queued: Vec<Queued>,
    payload: Vec<u8>,
    filled: usize,
}

/// A datagram: to whom, by which way, and which part of the payload.
#[derive(Debug, Clone, Copy)]
struct Queued {
    to: SocketAddr,
    way: Way,
    start: usize,
    length: usize,
}

impl Outgoing {
    pub(in crate::net) fn new() -> Self {
        Self { queued: Vec::with_capacity(BATCH), payload: vec![0; 2 * ROOM], filled: 0 }
    }

    /// Whether the next datagram has no room, so that those that wait have to be sent first.
    pub(in crate::net) fn is_full(&self) -> bool {
        self.queued.len() >= BATCH || self.filled + ROOM > self.payload.len()
    }

    pub(in crate::net) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// The sockets are others now; nothing may wait.
    pub(in crate::net) fn sockets_changed(&self) {
        debug_assert!(self.is_empty(), "what waits names its socket by place");
    }

    /// Where the next datagram is written before [`push`](Self::push); `is_full` must have been false.
    pub(in crate::net) fn buffer(&mut self) -> &mut [u8] {
        &mut self.payload[self.filled..][..DATAGRAM_MAX]
    }

    /// Queues the first `length` bytes of the buffer, once for each way and address.
    pub(in crate::net) fn push(&mut self, length: usize, targets: impl IntoIterator<Item = (SocketAddr, Way)>) {
        let start = self.filled;
        self.queued.extend(targets.into_iter().map(|(to, way)| Queued { to, way, start, length }));
        self.filled += length;
    }

    /// Sends all that is queued. Datagrams that the system refuses (no route, no room) are lost as any datagram can be.
    /// Returns how many were.
    pub(in crate::net) fn flush(&mut self, sockets: &Sockets) -> u64 {
        let (queued, payload) = (&self.queued, &self.payload);
        let send = |one: &&Queued| one.send(sockets.udp(one.way.socket), &payload[one.start..][..one.length]).is_err();
        let lost = queued.iter().filter(send).count() as u64;
        self.queued.clear();
        self.filled = 0;
        lost
    }
}

impl Queued {
    fn send(&self, udp: &Udp, contents: &[u8]) -> io::Result<()> {
        let source = self.way.info.map(|info| info.address);
        match (self.to, source) {
            // The interface by which a multicast leaves is an option of the socket, not of the datagram.
            (SocketAddr::V4(to), Some(IpAddr::V4(source))) if to.ip().is_multicast() => {
                SockRef::from(udp.socket()).set_multicast_if_v4(&source)?;
            }
            (SocketAddr::V6(to), _) if to.ip().is_multicast() => {
                SockRef::from(udp.socket()).set_multicast_if_v6(to.scope_id())?;
            }
            _ => {}
        }
        // Of link-local addresses each interface has its own, and the destination names the interface.
        let src_ip = source.filter(|source| !matches!(source, IpAddr::V6(v6) if v6.is_unicast_link_local()));
        let transmit = Transmit { destination: self.to, ecn: None, contents, segment_size: None, src_ip };
        udp.state.try_send(UdpSockRef::from(udp.socket()), &transmit)
    }
}
