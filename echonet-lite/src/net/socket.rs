//! The UDP sockets of one node: which are opened, what they join, how an answer finds its way back, and by which ways
//! a multicast leaves.
//!
//! Two arrangements exist. One socket per family bound to the wildcard address hears everything and learns from
//! packet information where each datagram came to. Sockets bound to one address each leave the other addresses of the
//! machine to other nodes; what is sent to the group reaches them through a further socket bound to the group, because
//! a socket bound to a unicast address hears nothing else.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::time::Duration;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::string::String;
use std::vec::Vec;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Type};

use super::error::BindError;
use super::interface::Interface;
use super::sys::{self, Datagram, PacketInfo};
use crate::wire::{MULTICAST_V4, MULTICAST_V6};

/// What the kernel is asked to hold while a burst waits; it gives at most `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub port: u16,
    pub v4: bool,
    pub v6: bool,
    /// Names of the interfaces to use; empty for all that are up.
    pub interfaces: Vec<String>,
    /// Addresses to bind to; empty for the wildcard address.
    pub addresses: Vec<IpAddr>,
    /// Number of processes that share each address.
    pub members: Option<u32>,
}

impl Plan {
    fn wants(&self, interface: &Interface) -> bool {
        self.interfaces.is_empty() || self.interfaces.contains(&interface.name)
    }
}

/// How a datagram reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Sent to the group or to all hosts rather than to us alone.
    pub to_all: bool,
    /// The way an answer takes.
    pub way: Way,
}

/// The way a datagram leaves: by which socket, and if the socket has several, from which address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub socket: usize,
    pub info: Option<PacketInfo>,
}

/// All UDP sockets of a node.
pub(super) struct Sockets {
    plan: Plan,
    sockets: Vec<Socket>,
    /// The interfaces in use, as last seen.
    interfaces: Vec<Interface>,
    /// One entry for each interface and family that a multicast leaves by.
    departures: Vec<(SocketAddr, Way)>,
}

struct Socket {
    udp: UdpSocket,
    v6: bool,
    role: Role,
    /// Indices of the interfaces on which the group is joined.
    joined: Vec<u32>,
}

/// What a socket is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The wildcard address: hears unicast, multicast and broadcast.
    Wildcard,
    /// One of our addresses, which is on the interface of this index: hears unicast only.
    Own { interface: u32 },
    /// The group, for the sockets bound to own addresses.
    Group,
    /// A broadcast address, likewise.
    Broadcast,
}

impl Sockets {
    pub(super) fn open(plan: Plan) -> Result<Self, BindError> {
        let interfaces = Interface::list().map_err(|source| io_error("listing interfaces", None, source))?;
        if let Some(name) = plan.interfaces.iter().find(|&name| interfaces.iter().all(|known| known.name != *name)) {
            return Err(BindError::NoInterface(name.clone()));
        }
        let mut sockets = Self { plan, sockets: Vec::new(), interfaces: Vec::new(), departures: Vec::new() };
        if sockets.plan.addresses.is_empty() {
            sockets.open_wildcards()?;
        } else {
            sockets.open_addresses(&interfaces)?;
        }
        sockets.adopt(interfaces);
        Ok(sockets)
    }

    /// One socket per family that the machine has.
    fn open_wildcards(&mut self) -> Result<(), BindError> {
        let port = self.plan.port;
        if self.plan.v4 {
            self.add((Ipv4Addr::UNSPECIFIED, port).into(), Role::Wildcard)?;
        }
        if self.plan.v6 {
            match self.add((Ipv6Addr::UNSPECIFIED, port).into(), Role::Wildcard) {
                // A kernel without IPv6 is no reason to do without IPv4.
                Err(BindError::Io { .. }) if self.plan.v4 => {}
                other => other?,
            }
        }
        if self.sockets.is_empty() { Err(BindError::NoFamily) } else { Ok(()) }
    }

    /// One socket per address, and what lets them hear what is sent to all.
    fn open_addresses(&mut self, interfaces: &[Interface]) -> Result<(), BindError> {
        let port = self.plan.port;
        let mut groups = Vec::new();
        for address in self.plan.addresses.clone() {
            let interface = holder(interfaces, &self.plan, address).ok_or(BindError::NoAddress(address))?;
            let role = Role::Own { interface: interface.index };
            self.add(scoped(address, port, interface.index), role)?;
            match address {
                IpAddr::V4(_) => {
                    let all = interface.broadcasts.iter().copied().chain([Ipv4Addr::BROADCAST]);
                    groups.push(((MULTICAST_V4, port).into(), Role::Group));
                    groups.extend(all.map(|address| ((address, port).into(), Role::Broadcast)));
                }
                // Bound with a scope, the socket hears its own interface only.
                IpAddr::V6(_) => groups.push((scoped(MULTICAST_V6.into(), port, interface.index), Role::Group)),
            }
        }
        groups.sort_unstable_by_key(|&(address, _)| address);
        groups.dedup();
        for (address, role) in groups {
            match self.add(address, role) {
                // Broadcast is recommended, not required.
                Err(_) if role == Role::Broadcast => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn add(&mut self, address: SocketAddr, role: Role) -> Result<(), BindError> {
        let doing = "opening a socket on";
        let socket =
            configured(address, role, self.plan.members).map_err(|source| io_error(doing, Some(address), source))?;
        socket.bind(&address.into()).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::PortHeld { address, protocol: "udp", source },
            _ => io_error("binding to", Some(address), source),
        })?;
        if let (Role::Own { .. }, Some(members)) = (role, self.plan.members) {
            sys::steer_by_instance(socket.as_fd(), members)
                .map_err(|source| io_error("steering by instance on", Some(address), source))?;
        }
        self.sockets.push(Socket { udp: socket.into(), v6: address.is_ipv6(), role, joined: Vec::new() });
        Ok(())
    }

    /// Looks at the interfaces again and joins or leaves the group where they have come or gone. Says whether our
    /// addresses have changed, upon which a node announces itself again.
    pub(super) fn refresh(&mut self) -> io::Result<bool> {
        let before = core::mem::take(&mut self.interfaces);
        match Interface::list() {
            Ok(interfaces) => {
                self.adopt(interfaces);
                Ok(self.interfaces != before)
            }
            Err(error) => {
                self.interfaces = before;
                Err(error)
            }
        }
    }

    fn adopt(&mut self, mut interfaces: Vec<Interface>) {
        interfaces.retain(|interface| self.plan.wants(interface));
        self.interfaces = interfaces;
        for at in 0..self.sockets.len() {
            let wanted = self.wanted(&self.sockets[at]);
            self.sockets[at].join_exactly(&wanted);
        }
        self.departures = self.ways_out();
    }

    /// The interfaces on which a socket should hear the group.
    fn wanted(&self, socket: &Socket) -> Vec<u32> {
        let owns = |interface: &Interface| {
            let own = Role::Own { interface: interface.index };
            self.sockets.iter().any(|other| other.v6 == socket.v6 && other.role == own)
        };
        let usable = self.interfaces.iter().filter(|interface| interface.has(socket.v6));
        match socket.role {
            Role::Wildcard => usable.map(|interface| interface.index).collect(),
            Role::Group => usable.filter(|interface| owns(interface)).map(|interface| interface.index).collect(),
            Role::Own { .. } | Role::Broadcast => Vec::new(),
        }
    }

    /// All ways by which a multicast leaves.
    fn ways_out(&self) -> Vec<(SocketAddr, Way)> {
        let mut ways = Vec::new();
        for (at, socket) in self.sockets.iter().enumerate() {
            for interface in &self.interfaces {
                let ours = match socket.role {
                    Role::Wildcard => interface.has(socket.v6),
                    Role::Own { interface: index } => index == interface.index,
                    Role::Group | Role::Broadcast => false,
                };
                // The all-nodes group is never delivered on the loopback interface.
                if !ours || (socket.v6 && interface.loopback) {
                    continue;
                }
                let (group, info): (IpAddr, _) = if socket.v6 {
                    (MULTICAST_V6.into(), None)
                } else {
                    let any = Ipv4Addr::UNSPECIFIED.into();
                    let info = PacketInfo { interface: interface.index, address: any, local: any };
                    (MULTICAST_V4.into(), (socket.role == Role::Wildcard).then_some(info))
                };
                ways.push((scoped(group, self.plan.port, interface.index), Way { socket: at, info }));
            }
        }
        ways
    }

    /// Where a multicast goes, and by which way, once for each interface and family.
    pub(super) fn departures(&self) -> &[(SocketAddr, Way)] {
        &self.departures
    }

    /// The way to an address to which this is no answer.
    pub(super) fn way_to(&self, to: SocketAddr) -> Option<Way> {
        let v6 = to.is_ipv6();
        let speaks = |socket: &Socket| match socket.role {
            Role::Wildcard => socket.v6 == v6,
            Role::Own { .. } => socket.v6 == v6,
            Role::Group | Role::Broadcast => false,
        };
        let candidates = || self.sockets.iter().enumerate().filter(|(_, socket)| speaks(socket));
        // Of several addresses, one that is on the other's side: its interface, or loopback to loopback.
        let near = candidates().find(|(_, socket)| match (socket.role, to) {
            (Role::Own { interface }, SocketAddr::V6(to)) if to.scope_id() != 0 => interface == to.scope_id(),
            (Role::Own { interface }, _) => {
                let found = self.interfaces.iter().find(|known| known.index == interface);
                found.is_some_and(|known| known.loopback == to.ip().is_loopback())
            }
            _ => true,
        });
        near.or_else(|| candidates().next()).map(|(socket, _)| Way { socket, info: None })
    }

    /// Classifies a datagram that came by socket `at`; none if it came by an interface that is not in use.
    pub(super) fn arrival(&self, at: usize, datagram: &Datagram<'_>) -> Option<Arrived> {
        let socket = &self.sockets[at];
        match (socket.role, datagram.info) {
            (Role::Own { .. }, _) => Some(Arrived { to_all: false, way: Way { socket: at, info: None } }),
            (Role::Wildcard, Some(info)) => {
                if !self.plan.interfaces.is_empty() && !self.hears(&info) {
                    return None;
                }
                let to_all = info.local != info.address;
                Some(Arrived { to_all, way: Way { socket: at, info: answering(&info, datagram.from) } })
            }
            (Role::Wildcard, None) => Some(Arrived { to_all: false, way: Way { socket: at, info: None } }),
            (Role::Group | Role::Broadcast, info) => {
                let own = Role::Own { interface: info?.interface };
                let own = self.sockets.iter().position(|other| other.v6 == socket.v6 && other.role == own)?;
                Some(Arrived { to_all: true, way: Way { socket: own, info: None } })
            }
        }
    }

    /// Whether a datagram came to an interface in use, or, from this machine, to an address of one.
    fn hears(&self, info: &PacketInfo) -> bool {
        self.interfaces.iter().any(|known| known.index == info.interface || known.addresses.contains(&info.local))
    }

    /// Whether an address is one that this node sends from.
    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        if self.plan.addresses.is_empty() {
            self.interfaces.iter().any(|known| known.addresses.contains(&address))
        } else {
            self.plan.addresses.contains(&address)
        }
    }

    /// Whether we are among those that receive what is sent to an address.
    pub(super) fn receives(&self, address: IpAddr) -> bool {
        self.is_own(address) || (self.plan.addresses.is_empty() && address.is_loopback())
    }

    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn descriptor(&self, at: usize) -> BorrowedFd<'_> {
        self.sockets[at].udp.as_fd()
    }

    /// Limits how long a receive that waits does so.
    pub(super) fn set_timeout(&self, at: usize, timeout: Duration) -> io::Result<()> {
        self.sockets[at].udp.set_read_timeout(Some(timeout))
    }

    /// What a TCP listener for this node binds to.
    pub(super) fn unicast_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let unicast = |socket: &&Socket| matches!(socket.role, Role::Wildcard | Role::Own { .. });
        self.sockets.iter().filter(unicast).filter_map(|socket| socket.udp.local_addr().ok())
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }
}

impl Socket {
    /// Joins the group on these interfaces and leaves it on all others.
    fn join_exactly(&mut self, wanted: &[u32]) {
        let (socket, v6) = (socket2::SockRef::from(&self.udp), self.v6);
        self.joined.retain(|index| {
            let keep = wanted.contains(index);
            if !keep {
                // Of an interface that is gone the kernel has already forgotten the membership.
                let _ = if v6 {
                    socket.leave_multicast_v6(&MULTICAST_V6, *index)
                } else {
                    socket.leave_multicast_v4_n(&MULTICAST_V4, &InterfaceIndexOrAddress::Index(*index))
                };
            }
            keep
        });
        for &index in wanted {
            if self.joined.contains(&index) {
                continue;
            }
            let joined = if v6 {
                socket.join_multicast_v6(&MULTICAST_V6, index)
            } else {
                socket.join_multicast_v4_n(&MULTICAST_V4, &InterfaceIndexOrAddress::Index(index))
            };
            // One that cannot be joined now (too many, or just gone) is tried again at the next change.
            if joined.is_ok() {
                self.joined.push(index);
            }
        }
    }
}

impl Interface {
    fn has(&self, v6: bool) -> bool {
        self.addresses.iter().any(|address| address.is_ipv6() == v6)
    }
}

/// A socket with every option set, ready to be bound.
fn configured(address: SocketAddr, role: Role, members: Option<u32>) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // Other tools set it on their sockets, and none of two sockets may lack it.
    socket.set_reuse_address(true)?;
    let own = matches!(role, Role::Own { .. });
    if own && members.is_some() {
        socket.set_reuse_port(true)?;
    }
    // A smaller buffer than asked for is still a buffer.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    match address {
        SocketAddr::V4(v4) => {
            socket.set_broadcast(true)?;
            socket.set_multicast_all_v4(false)?;
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(1)?;
            if own {
                socket.set_multicast_if_v4(v4.ip())?;
            }
        }
        SocketAddr::V6(v6) => {
            socket.set_only_v6(true)?;
            socket.set_multicast_all_v6(false)?;
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(1)?;
            if own {
                socket.set_multicast_if_v6(v6.scope_id())?;
            }
        }
    }
    if !own {
        sys::receive_packet_info(socket.as_fd(), address.is_ipv6())?;
    }
    Ok(socket)
}

/// From which address to answer what came to `info`: from the one that was asked, which need not be the one that
/// the routing table would choose.
fn answering(info: &PacketInfo, from: SocketAddr) -> Option<PacketInfo> {
    let interface = match (info.local, from) {
        (IpAddr::V6(local), _) if local.is_unspecified() => return None,
        (IpAddr::V6(_), SocketAddr::V6(from)) => from.scope_id(),
        _ => 0,
    };
    Some(PacketInfo { interface, address: info.local, local: info.local })
}

/// The interface that has an address. Loopback has all of 127.0.0.0/8.
fn holder<'a>(interfaces: &'a [Interface], plan: &Plan, address: IpAddr) -> Option<&'a Interface> {
    let has = |known: &&Interface| {
        known.addresses.contains(&address) || (known.loopback && address.is_ipv4() && address.is_loopback())
    };
    interfaces.iter().filter(|known| plan.wants(known)).find(has)
}

/// An address with the scope that link-local ones need, and only those.
fn scoped(address: IpAddr, port: u16, interface: u32) -> SocketAddr {
    match address {
        IpAddr::V4(v4) => (v4, port).into(),
        IpAddr::V6(v6) => {
            let link_local = v6.is_unicast_link_local() || v6.is_multicast();
            SocketAddrV6::new(v6, port, 0, if link_local { interface } else { 0 }).into()
        }
    }
}

fn io_error(doing: &'static str, address: Option<SocketAddr>, source: io::Error) -> BindError {
    BindError::Io { doing, address, source }
}
