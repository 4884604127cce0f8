//! The system calls that no safe crate offers: batches of datagrams with their addresses, and the kernel's
//! list of interfaces.
//!
//! Addresses and control messages are read and written as bytes, so that each `unsafe` block is one system call over
//! buffers this module owns.

#![expect(unsafe_code, reason = "recvmmsg, sendmmsg and a socket option are reached through libc")]

use core::mem::size_of;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::ptr;
use std::boxed::Box;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::vec;
use std::vec::Vec;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::watch::Watched;
use crate::net::datagram::{Datagram, PacketInfo};
use crate::net::socket::{Sockets, Way};

/// Datagrams of one system call: a window of 32 requests is a short batch, which needs no second call to learn that
/// nothing is left.
const BATCH: usize = 64;

/// The fewest datagrams that a call has room for.
const EXPECTED_MIN: usize = 4;

/// The largest datagram of UDP over IPv4, and then some: 1025 cache lines, an odd number, so that the beginnings of
/// the buffers do not all fall into the same sets of the cache.
const DATAGRAM: usize = 1025 * 64;
/// The most that UDP over IPv4 carries.
const DATAGRAM_MAX: usize = 65_507;

/// The most datagrams that the kernel cuts one message into.
const SEGMENTS: usize = 64;
/// The largest of them: one that the smallest packets of IPv6 hold, with its headers of 40 and 8 bytes. Larger ones may
/// have to be cut into fragments on their way, and go by themselves.
const SEGMENT_MAX: usize = 1280 - 48;

/// Room for one address of either family as the kernel writes it, and for the control messages of packet info and of
/// the length of segments.
const NAME: usize = size_of::<libc::sockaddr_in6>();
const CONTROL: usize = 64;
const CONTROL_HEADER: usize = size_of::<libc::cmsghdr>();

/// A UDP socket.
pub(in crate::net) struct Udp(Watched<UdpSocket>);

impl Udp {
    /// Has a socket of one family say where each datagram came to, if that is wanted.
    pub(in crate::net) fn new(socket: UdpSocket, tells: bool, v6: bool) -> io::Result<Self> {
        if tells {
            receive_packet_info(socket.as_fd(), v6)?;
        }
        Ok(Self(Watched::new(socket)))
    }

    pub(in crate::net) fn socket(&self) -> &UdpSocket {
        &self.0
    }

    pub(in crate::net) fn watched(&mut self) -> &mut Watched<UdpSocket> {
        &mut self.0
    }
}

/// A byte buffer at the alignment that the kernel's structures want.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Aligned<const N: usize>([u8; N]);

/// The memory that the kernel reads and writes beside the payload of one message.
#[derive(Clone, Copy)]
struct Envelope {
    name: Aligned<NAME>,
    control: Aligned<CONTROL>,
}

const ENVELOPE: Envelope = Envelope { name: Aligned([0; NAME]), control: Aligned([0; CONTROL]) };

/// The arrays a batch call works on. Their pointers are set anew by every call and mean nothing between calls.
struct Headers {
    messages: Box<[libc::mmsghdr]>,
    pieces: Box<[libc::iovec]>,
}

// SAFETY: the raw pointers inside are written at the start of a call and never read afterwards, so moving the arrays
// to another thread moves plain memory.
unsafe impl Send for Headers {}
// SAFETY: a shared reference gives no access to the pointers: every use takes `&mut self`.
unsafe impl Sync for Headers {}

impl Headers {
    fn new() -> Self {
        let message = libc::mmsghdr { msg_hdr: empty_header(), msg_len: 0 };
        let piece = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Self { messages: vec![message; BATCH].into(), pieces: vec![piece; BATCH].into() }
    }

    /// Points message `at` to an envelope and a payload.
    fn set(
        &mut self,
        at: usize,
        envelope: &mut Envelope,
        name: usize,
        control: usize,
        payload: *mut u8,
        length: usize,
    ) {
        let piece = &mut self.pieces[at];
        piece.iov_base = payload.cast();
        piece.iov_len = length;
        let header = &mut self.messages[at].msg_hdr;
        header.msg_name = envelope.name.0.as_mut_ptr().cast();
        header.msg_namelen = name as libc::socklen_t;
        header.msg_control = if control == 0 { ptr::null_mut() } else { envelope.control.0.as_mut_ptr().cast() };
        header.msg_controllen = control as _;
        header.msg_flags = 0;
        header.msg_iov = piece;
        header.msg_iovlen = 1;
    }
}

fn empty_header() -> libc::msghdr {
    // SAFETY: msghdr is a C structure of integers and pointers, for which all zeros is a valid value.
    unsafe { core::mem::zeroed() }
}

/// Buffers for a batch of received datagrams, used again by every call.
pub(in crate::net) struct Incoming {
    headers: Headers,
    /// How many datagrams to have room for at the next call: one that seldom gets several need not prepare for many.
    expected: usize,
    envelopes: Box<[Envelope]>,
    payload: Vec<u8>,
}

impl Incoming {
    pub(in crate::net) fn new() -> Self {
        // Zeroed memory of this size comes from the system untouched: only pages that datagrams reach become real.
        Self {
            headers: Headers::new(),
            expected: EXPECTED_MIN,
            envelopes: vec![ENVELOPE; BATCH].into(),
            payload: vec![0; BATCH * DATAGRAM],
        }
    }

    /// Receives up to [`BATCH`] datagrams; says how many, and whether there may be more. With `wait`, waits for the
    /// first on a blocking socket.
    pub(in crate::net) fn receive(&mut self, udp: &Udp, wait: bool) -> io::Result<(usize, bool)> {
        let expected = self.expected;
        let chunks = self.payload.chunks_exact_mut(DATAGRAM);
        for (at, (envelope, chunk)) in self.envelopes.iter_mut().zip(chunks).take(expected).enumerate() {
            self.headers.set(at, envelope, NAME, CONTROL, chunk.as_mut_ptr(), DATAGRAM);
        }
        let flags = if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: each of the `expected` headers points to one envelope and one chunk of `payload`, all owned by `self`,
        // distinct, of the stated lengths, and untouched by Rust until the call returns.
        let received = unsafe {
            libc::recvmmsg(
                udp.socket().as_raw_fd(),
                self.headers.messages.as_mut_ptr(),
                expected as _,
                flags as _,
                ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        self.expected = (2 * received).clamp(EXPECTED_MIN, BATCH);
        Ok((received, received == expected))
    }

    /// Datagram `at` of the last batch; none if it was cut off or its sender is of no known family.
    pub(in crate::net) fn datagram(&self, at: usize) -> Option<Datagram<'_>> {
        let message = &self.headers.messages[at];
        if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let envelope = &self.envelopes[at];
        let bytes = &self.payload[at * DATAGRAM..][..message.msg_len as usize];
        let control = &envelope.control.0[..message.msg_hdr.msg_controllen as _];
        Some(Datagram { from: read_name(&envelope.name.0)?, info: read_info(control), bytes })
    }
}

/// Buffers for a batch of departing datagrams, used again by every call.
pub(in crate::net) struct Outgoing {
    headers: Headers,
    envelopes: Box<[Envelope]>,
    queued: Vec<Queued>,
    payload: Vec<u8>,
    filled: usize,
    /// The sockets whose datagrams go one by one, because the kernel would not cut for them.
    uncut: Vec<usize>,
}

/// A message for the kernel: one datagram, or several in a row that differ only in their content. The kernel takes
/// several as one and cuts them up as late as it can, which saves most of their cost.
#[derive(Debug, Clone, Copy)]
struct Queued {
    to: SocketAddr,
    way: Way,
    /// Which envelope, and the lengths of its parts.
    envelope: usize,
    name: usize,
    control: usize,
    /// The part of the payload.
    start: usize,
    length: usize,
    /// The length of each datagram but the last, which may be shorter.
    segment: usize,
}

impl Queued {
    /// Whether a further datagram can be part of this message.
    fn admits(&self, start: usize, length: usize, to: SocketAddr, way: Way) -> bool {
        self.start + self.length == start
            && (1..=self.segment.min(SEGMENT_MAX)).contains(&length)
            && self.segment <= SEGMENT_MAX
            && self.length.is_multiple_of(self.segment)
            && self.length < SEGMENTS * self.segment
            && self.length + length <= DATAGRAM_MAX
            && (self.to, self.way) == (to, way)
            && !to.ip().is_multicast()
    }

    /// Each datagram as a message of its own.
    fn datagrams(&self) -> impl Iterator<Item = Self> + use<> {
        let (whole, step) = (*self, self.segment.max(1));
        (0..whole.length.max(1)).step_by(step).map(move |offset| {
            let length = step.min(whole.length - offset);
            Self { start: whole.start + offset, length, segment: length, ..whole }
        })
    }
}

impl Outgoing {
    pub(in crate::net) fn new() -> Self {
        Self {
            headers: Headers::new(),
            envelopes: vec![ENVELOPE; BATCH].into(),
            queued: Vec::with_capacity(BATCH),
            payload: vec![0; 2 * DATAGRAM],
            filled: 0,
            uncut: Vec::new(),
        }
    }

    /// Whether the next datagram has no room, so that those that wait have to be sent first.
    pub(in crate::net) fn is_full(&self) -> bool {
        self.queued.len() == BATCH || self.filled + DATAGRAM > self.payload.len()
    }

    pub(in crate::net) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// The sockets are others now; nothing may wait.
    pub(in crate::net) fn sockets_changed(&mut self) {
        debug_assert!(self.is_empty(), "what waits names its socket by place");
        self.uncut.clear();
    }

    /// Where the next datagram is written before [`push`](Self::push); `is_full` must have been false.
    pub(in crate::net) fn buffer(&mut self) -> &mut [u8] {
        &mut self.payload[self.filled..][..DATAGRAM_MAX]
    }

    /// Queues the first `length` bytes of the buffer, once for each way and address. More of them than fit are left
    /// out: no machine has so many interfaces.
    pub(in crate::net) fn push(&mut self, length: usize, targets: impl IntoIterator<Item = (SocketAddr, Way)>) {
        let start = self.filled;
        for (to, way) in targets {
            match self.queued.last_mut() {
                Some(last) if last.admits(start, length, to, way) && !self.uncut.contains(&way.socket) => {
                    last.length += length;
                }
                _ => {
                    let at = self.queued.len();
                    let Some(envelope) = self.envelopes.get_mut(at) else { break };
                    let name = write_name(&mut envelope.name.0, to);
                    let control = way.info.map_or(0, |info| write_info(&mut envelope.control.0, info));
                    self.queued.push(Queued { to, way, envelope: at, name, control, start, length, segment: length });
                }
            }
        }
        self.filled += length;
    }

    /// Sends the messages from `first` on that leave by the same socket; says how many the kernel took.
    fn send_run(&mut self, first: usize, sockets: &Sockets) -> io::Result<usize> {
        let socket = self.queued[first].way.socket;
        let mut run = 0;
        for queued in self.queued[first..].iter().take_while(|queued| queued.way.socket == socket).take(BATCH) {
            let envelope = &mut self.envelopes[queued.envelope];
            let control = match queued.length > queued.segment {
                true => write_segment(&mut envelope.control.0, queued.control, queued.segment as u16),
                false => queued.control,
            };
            let payload = self.payload[queued.start..][..queued.length].as_ptr().cast_mut();
            self.headers.set(run, envelope, queued.name, control, payload, queued.length);
            run += 1;
        }
        // SAFETY: the first `run` headers point to envelopes and parts of `payload` that `push` has written, all owned
        // by `self` and untouched until the call returns; of a message to send the kernel only reads.
        let sent = unsafe {
            libc::sendmmsg(
                sockets.udp(socket).socket().as_raw_fd(),
                self.headers.messages.as_mut_ptr(),
                run as _,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Sends all that is queued. Datagrams that the kernel refuses (no route, no room) are lost as any datagram can be.
    /// Returns how many were.
    pub(in crate::net) fn flush(&mut self, sockets: &Sockets) -> u64 {
        let (mut first, mut lost) = (0, 0);
        while first < self.queued.len() {
            match self.send_run(first, sockets) {
                Ok(sent) => first += sent,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let refused = self.queued[first];
                    if refused.length > refused.segment && is_uncut(&error) {
                        // Once for each such message that still waits, which does no harm.
                        self.uncut.push(refused.way.socket);
                        self.queued.splice(first..=first, refused.datagrams());
                    } else {
                        first += 1;
                        lost += refused.datagrams().count() as u64;
                    }
                }
            }
        }
        self.queued.clear();
        self.filled = 0;
        lost
    }
}

/// Whether the kernel may have refused a message because it will not cut it: it is old, the packets of the route are
/// small, or the interface has no checksums.
fn is_uncut(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE | libc::EOPNOTSUPP | libc::ENOPROTOOPT))
}

fn read_name(name: &[u8; NAME]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([name[2], name[3]]);
    match i32::from(u16::from_ne_bytes([name[0], name[1]])) {
        libc::AF_INET => Some(SocketAddrV4::new(ipv4(&name[4..8]), port).into()),
        libc::AF_INET6 => {
            let [flow, scope] = [&name[4..8], &name[24..28]].map(word);
            Some(SocketAddrV6::new(ipv6(&name[8..24]), port, u32::from_be(flow), scope).into())
        }
        _ => None,
    }
}

/// Writes a socket address as the kernel's structure and says how long it is.
fn write_name(name: &mut [u8; NAME], address: SocketAddr) -> usize {
    name.fill(0);
    name[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            name[4..8].copy_from_slice(&v4.ip().octets());
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            name[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            name[8..24].copy_from_slice(&v6.ip().octets());
            name[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            size_of::<libc::sockaddr_in6>()
        }
    }
}

/// Finds `IP_PKTINFO` or `IPV6_PKTINFO` in the control messages. They are asked for alone, so only the first is read.
fn read_info(control: &[u8]) -> Option<PacketInfo> {
    let (header, data) = control.split_at_checked(CONTROL_HEADER)?;
    let kind = &header[CONTROL_HEADER - 8..];
    match (word(&kind[..4]) as i32, word(&kind[4..]) as i32) {
        (libc::IPPROTO_IP, libc::IP_PKTINFO) if data.len() >= 12 => Some(PacketInfo {
            interface: word(&data[..4]),
            local: ipv4(&data[4..8]).into(),
            address: ipv4(&data[8..12]).into(),
        }),
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) if data.len() >= 20 => {
            let address = ipv6(&data[..16]);
            let local = if address.is_multicast() { Ipv6Addr::UNSPECIFIED } else { address };
            Some(PacketInfo { interface: word(&data[16..20]), local: local.into(), address: address.into() })
        }
        _ => None,
    }
}

/// Writes the control message that chooses interface and source address, and says how long it is.
fn write_info(control: &mut [u8; CONTROL], info: PacketInfo) -> usize {
    control.fill(0);
    let (level, kind, size) = match info.address {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_PKTINFO, 12),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20),
    };
    control[..size_of::<usize>()].copy_from_slice(&(CONTROL_HEADER + size).to_ne_bytes());
    control[CONTROL_HEADER - 8..CONTROL_HEADER - 4].copy_from_slice(&level.to_ne_bytes());
    control[CONTROL_HEADER - 4..CONTROL_HEADER].copy_from_slice(&kind.to_ne_bytes());
    let data = &mut control[CONTROL_HEADER..];
    match info.address {
        IpAddr::V4(source) => {
            data[..4].copy_from_slice(&info.interface.to_ne_bytes());
            data[4..8].copy_from_slice(&source.octets());
        }
        IpAddr::V6(source) => {
            data[..16].copy_from_slice(&source.octets());
            data[16..20].copy_from_slice(&info.interface.to_ne_bytes());
        }
    }
    (CONTROL_HEADER + size).next_multiple_of(size_of::<usize>())
}

/// Writes, behind `used` bytes of others, the control message that has a message cut into datagrams of `length` bytes, and
/// says how long they are together.
fn write_segment(control: &mut [u8; CONTROL], used: usize, length: u16) -> usize {
    let (header, data) = control[used..].split_at_mut(CONTROL_HEADER);
    header[..size_of::<usize>()].copy_from_slice(&(CONTROL_HEADER + size_of::<u16>()).to_ne_bytes());
    header[CONTROL_HEADER - 8..CONTROL_HEADER - 4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    header[CONTROL_HEADER - 4..].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    data[..size_of::<u16>()].copy_from_slice(&length.to_ne_bytes());
    used + (CONTROL_HEADER + size_of::<u16>()).next_multiple_of(size_of::<usize>())
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn ipv4(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

fn ipv6(bytes: &[u8]) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(bytes);
    octets.into()
}

/// Makes the kernel tell the interface and destination of every datagram.
fn receive_packet_info(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    let one: libc::c_int = 1;
    match v6 {
        false => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &one),
        true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &one),
    }
}

fn set_option<T>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; callers pass the type that the
    // option expects, and the kernel copies it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket to the kernel's routing tables that hears the given groups of changes (`RTMGRP_…`).
pub(in crate::net) fn netlink(groups: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a plain call without pointers.
    let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us alone.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let mut address = Aligned([0; size_of::<libc::sockaddr_nl>()]);
    address.0[..2].copy_from_slice(&(libc::AF_NETLINK as u16).to_ne_bytes());
    address.0[8..12].copy_from_slice(&groups.to_ne_bytes());
    // SAFETY: the pointer and the length describe `address`, which is laid out as a sockaddr_nl.
    let result = unsafe { libc::bind(descriptor, address.0.as_ptr().cast(), address.0.len() as libc::socklen_t) };
    if result == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Has the tokio runtime say when a descriptor can be read.
pub(in crate::net) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and no code takes it out of the
    // result, which forgets the registration before it closes it.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::socket::Plan;

    const FIRST: &str = "192.0.2.1:3610";
    const SECOND: &str = "192.0.2.2:3610";
    const GROUP: &str = "224.0.23.0:3610";

    fn push(outgoing: &mut Outgoing, length: usize, to: SocketAddr, socket: usize) {
        outgoing.push(length, [(to, Way { socket, info: None })]);
    }

    /// Queues datagrams by length and address and checks the lengths in the messages they end up in.
    fn check(datagrams: &[(usize, &str)], messages: &[&[usize]]) {
        let mut outgoing = Outgoing::new();
        datagrams.iter().for_each(|&(length, to)| push(&mut outgoing, length, to.parse().unwrap(), 0));
        let lengths = |queued: &Queued| queued.datagrams().map(|one| one.length).collect::<Vec<_>>();
        assert_eq!(outgoing.queued.iter().map(lengths).collect::<Vec<_>>(), messages, "{datagrams:?}");
        let parts = outgoing.queued.iter().flat_map(Queued::datagrams).map(|one| (one.start, one.length));
        let end = parts.fold(0, |end, (start, length)| {
            assert_eq!(start, end, "{datagrams:?}");
            start + length
        });
        assert_eq!(end, outgoing.filled, "{datagrams:?}");
    }

    #[test]
    fn datagrams_that_are_alike_make_one_message() {
        check(&[], &[]);
        check(&[(15, FIRST)], &[&[15]]);
        check(&[(15, FIRST), (15, FIRST), (15, FIRST)], &[&[15, 15, 15]]);
        check(&[(15, FIRST), (14, FIRST), (14, FIRST)], &[&[15, 14], &[14]]);
        check(&[(14, FIRST), (15, FIRST), (15, FIRST)], &[&[14], &[15, 15]]);
        check(&[(15, FIRST), (15, SECOND), (15, SECOND), (15, FIRST)], &[&[15], &[15, 15], &[15]]);
        check(&[(15, GROUP), (15, GROUP)], &[&[15], &[15]]);
        check(&[(0, FIRST), (0, FIRST), (15, FIRST), (0, FIRST)], &[&[0], &[0], &[15], &[0]]);
        check(&[(1232, FIRST); 2], &[&[1232; 2]]);
        check(&[(1233, FIRST); 2], &[&[1233], &[1233]]);
        check(&[(1233, FIRST), (15, FIRST)], &[&[1233], &[15]]);
        check(&[(15, FIRST); 66], &[&[15; 64], &[15; 2]]);
        check(&[(1232, FIRST); 54], &[&[1232; 53], &[1232]]);
    }

    #[test]
    fn ways_are_not_mixed() {
        let (to, local) = (FIRST.parse().unwrap(), [192, 0, 2, 9].into());
        let mut outgoing = Outgoing::new();
        for socket in [0, 0, 1, 1, 0] {
            push(&mut outgoing, 15, to, socket);
        }
        let info = PacketInfo { interface: 0, address: local, local };
        outgoing.push(15, [(to, Way { socket: 0, info: Some(info) })]);
        let counts: Vec<_> = outgoing.queued.iter().map(|queued| queued.datagrams().count()).collect();
        assert_eq!(counts, [2, 2, 1, 1]);
    }

    #[test]
    fn datagrams_go_singly_without_kernel_segmentation() {
        const PORT: u16 = 13_650;
        let addresses = [[127, 0, 65, 1], [127, 0, 65, 2]].map(IpAddr::from);
        let plan = Plan {
            port: PORT,
            v4: true,
            v6: false,
            interfaces: Vec::new(),
            addresses: addresses.to_vec(),
            waits: false,
            listens_only: false,
        };
        let sockets = Sockets::open(plan).unwrap();
        // A socket that sends without checksums cannot have the kernel cut.
        let one: libc::c_int = 1;
        set_option(sockets.udp(0).socket().as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, &one).unwrap();
        let mut outgoing = Outgoing::new();
        for round in 0..2 {
            for (fill, length) in [(1, 20), (2, 20), (3, 20), (4, 19), (5, 21)] {
                outgoing.buffer()[..length].fill(fill);
                push(&mut outgoing, length, (addresses[1], PORT).into(), 0);
            }
            assert_eq!(outgoing.queued.len(), [2, 5][round]);
            assert_eq!(outgoing.flush(&sockets), 0);
            assert_eq!(outgoing.uncut, [0]);
            let mut incoming = Incoming::new();
            let mut came = Vec::new();
            while let Ok((count, _)) = incoming.receive(sockets.udp(1), false) {
                came.extend((0..count).map(|at| incoming.datagram(at).unwrap().bytes.to_vec()));
            }
            assert_eq!(came, [vec![1; 20], vec![2; 20], vec![3; 20], vec![4; 19], vec![5; 21]]);
        }
    }
}
