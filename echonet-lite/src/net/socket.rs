//! The UDP sockets of one node: which are opened, the groups they join, how an answer finds its way back, and by which
//! ways a multicast leaves.
//!
//! Two arrangements exist. One socket per family bound to the wildcard address hears everything and learns from packet
//! information where each datagram came to. Sockets bound to one address each leave the other addresses of the machine
//! to other nodes. A further socket bound to the group receives multicasts for them, because a socket bound to a
//! unicast address hears nothing else. On Windows it is the other way round: no socket can be bound to a group, and one
//! that is bound to an address hears the groups that it has joined.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::io;
use std::net::UdpSocket;
use std::string::String;
use std::vec;
use std::vec::Vec;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Type};

use super::datagram::{Datagram, PacketInfo};
use super::error::BindError;
use super::interface::Interface;
use super::system::{self, Udp, Watched};
use crate::wire::{MULTICAST_V4, MULTICAST_V6};

/// The receive buffer for a burst that waits; the kernel gives at most `net.core.rmem_max`.
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
    /// Whether to wait for interfaces and addresses that are not there yet.
    pub waits: bool,
    /// Whether to hear only what is sent to all.
    pub listens_only: bool,
}

impl Plan {
    /// Whether all that is named is there.
    fn check(&self, interfaces: &[Interface]) -> Result<(), BindError> {
        if let Some(name) = self.interfaces.iter().find(|&name| interfaces.iter().all(|known| known.name != *name)) {
            return Err(BindError::NoInterface(name.clone()));
        }
        let wanted: Vec<_> = interfaces.iter().filter(|known| self.wants(known)).cloned().collect();
        let missing = self.addresses.iter().find(|&&address| holder(&wanted, address).is_none());
        missing.map_or(Ok(()), |&address| Err(BindError::NoAddress(address)))
    }

    /// Whether it opens sockets for what is there, rather than for all that may come.
    fn is_particular(&self) -> bool {
        !self.addresses.is_empty() || self.listens_only
    }

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
    /// All interfaces of the machine: a host in a network of one of them is near.
    machine: Vec<Interface>,
    /// One entry for each interface and family that a multicast leaves by.
    departures: Vec<(SocketAddr, Way)>,
    /// How often the sockets have become others.
    generation: u32,
}

struct Socket {
    udp: Udp,
    address: SocketAddr,
    v6: bool,
    role: Role,
    /// Indices of the interfaces on which the group is joined.
    joined: Vec<u32>,
}

/// The address that a socket is bound to.
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
        if !plan.waits {
            plan.check(&interfaces)?;
        }
        if !plan.v4 && !plan.v6 {
            return Err(BindError::NoFamily);
        }
        if plan.listens_only && !system::BINDS_GROUPS {
            return Err(io_error(
                "listening only, for which this system has no sockets,",
                None,
                io::ErrorKind::Unsupported.into(),
            ));
        }
        let (sockets, departures, generation) = (Vec::new(), Vec::new(), 0);
        let mut sockets = Self { plan, sockets, interfaces: Vec::new(), machine: Vec::new(), departures, generation };
        match sockets.adopt(interfaces) {
            Err(error) => Err(error),
            // Every address is waited for, or no family is there.
            Ok(()) if sockets.sockets.is_empty() && !sockets.plan.is_particular() => Err(BindError::NoFamily),
            Ok(()) => Ok(sockets),
        }
    }

    /// The sockets to open while the interfaces are these: their addresses and roles.
    fn wanted_sockets(&self) -> Vec<(SocketAddr, Role)> {
        let Plan { port, v4, v6, listens_only, .. } = self.plan;
        if self.plan.addresses.is_empty() && !listens_only {
            let any: [(bool, IpAddr); 2] = [(v4, Ipv4Addr::UNSPECIFIED.into()), (v6, Ipv6Addr::UNSPECIFIED.into())];
            return any
                .iter()
                .filter(|(wanted, _)| *wanted)
                .map(|(_, ip)| ((*ip, port).into(), Role::Wildcard))
                .collect();
        }
        let (mut own, mut groups) = (Vec::new(), Vec::new());
        let mut hear = |interface: &Interface, is_v4: bool| {
            if !system::BINDS_GROUPS {
                return;
            }
            if is_v4 {
                let all = interface.broadcasts.iter().copied().chain([Ipv4Addr::BROADCAST]);
                groups.push(((MULTICAST_V4, port).into(), Role::Group));
                groups.extend(all.map(|address| ((address, port).into(), Role::Broadcast)));
            } else if !interface.loopback {
                // Bound with a scope, the socket hears its own interface only.
                groups.push((scoped(MULTICAST_V6.into(), port, interface.index), Role::Group));
            }
        };
        for &address in &self.plan.addresses {
            let Some(interface) = holder(&self.interfaces, address) else { continue };
            if !listens_only {
                own.push((scoped(address, port, interface.index), Role::Own { interface: interface.index }));
            }
            hear(interface, address.is_ipv4());
        }
        if self.plan.addresses.is_empty() {
            for interface in &self.interfaces {
                [(v4, true), (v6, false)]
                    .iter()
                    .filter(|(wanted, is_v4)| *wanted && interface.has(!is_v4))
                    .for_each(|(_, is_v4)| hear(interface, *is_v4));
            }
        }
        groups.sort_unstable_by_key(|&(address, _)| address);
        groups.dedup();
        own.append(&mut groups);
        own
    }

    /// Opens what is wanted and not open, and closes what is not wanted any more.
    fn follow_addresses(&mut self) -> Result<(), BindError> {
        let wanted = self.wanted_sockets();
        let before = self.sockets.len();
        self.sockets.retain(|socket| wanted.contains(&(socket.address, socket.role)));
        let mut changed = self.sockets.len() != before;
        let mut result = Ok(());
        for (address, role) in wanted {
            if self.sockets.iter().any(|socket| (socket.address, socket.role) == (address, role)) {
                continue;
            }
            match self.add(address, role) {
                Ok(()) => changed = true,
                // Broadcast is recommended, not required; a kernel without IPv6 is no reason to do without IPv4.
                Err(_) if role == Role::Broadcast => {}
                Err(BindError::Io { .. }) if role == Role::Wildcard && address.is_ipv6() && self.plan.v4 => {}
                Err(error) => result = Err(error),
            }
        }
        self.generation = self.generation.wrapping_add(u32::from(changed));
        result
    }

    fn add(&mut self, address: SocketAddr, role: Role) -> Result<(), BindError> {
        let doing = "opening a socket on";
        let udp = configured(address, role).map_err(|source| io_error(doing, Some(address), source))?;
        SockRef::from(udp.socket()).bind(&address.into()).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::PortHeld { address, protocol: "udp", source },
            _ => io_error("binding to", Some(address), source),
        })?;
        self.sockets.push(Socket { udp, address, v6: address.is_ipv6(), role, joined: Vec::new() });
        Ok(())
    }

    /// Looks at the interfaces again: opens, closes, joins and leaves what has come or gone. Says whether others can be
    /// reached that could not before, or not while interfaces were `unplugged`, upon which a node announces itself again.
    pub(super) fn refresh(&mut self, unplugged: &[u32]) -> io::Result<bool> {
        let interfaces = Interface::list()?;
        let mut before = core::mem::take(&mut self.interfaces);
        before.retain(|interface| !unplugged.contains(&interface.index));
        // A socket that cannot be opened now is tried again at the next change.
        let _ = self.adopt(interfaces);
        for interface in self.interfaces.iter().filter(|interface| interface.has_gained(&before)) {
            // The switch at the other end of a cable has to be told anew which ports hear the group.
            self.sockets.iter_mut().for_each(|socket| socket.leave(interface.index));
        }
        self.join();
        Ok(self.interfaces.iter().any(|interface| interface.has_gained(&before)))
    }

    fn adopt(&mut self, interfaces: Vec<Interface>) -> Result<(), BindError> {
        self.machine.clone_from(&interfaces);
        self.interfaces = interfaces;
        self.interfaces.retain(|interface| self.plan.wants(interface));
        let result = self.follow_addresses();
        self.join();
        self.departures = self.ways_out();
        result
    }

    fn join(&mut self) {
        for at in 0..self.sockets.len() {
            let wanted = self.wanted(&self.sockets[at]);
            self.sockets[at].join_exactly(&wanted);
        }
    }

    /// Whether an address is in a network that this machine is in. A datagram from there can hardly have been sent from
    /// elsewhere: routers drop those that pretend to come from within.
    pub(super) fn is_near(&self, address: IpAddr) -> bool {
        let is_local = match address {
            IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
        };
        is_local || self.machine.iter().any(|interface| interface.is_near(address))
    }

    /// A number that is another when the sockets are others.
    pub(super) fn generation(&self) -> u32 {
        self.generation
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
            Role::Group if self.plan.listens_only => {
                let SocketAddr::V6(group) = socket.address else {
                    return usable.map(|interface| interface.index).collect();
                };
                vec![group.scope_id()]
            }
            Role::Group => usable.filter(|interface| owns(interface)).map(|interface| interface.index).collect(),
            Role::Own { interface } if !system::BINDS_GROUPS => vec![interface],
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
                    // The kernel would give none on an interface that leads to this machine only.
                    let Some(&from) = interface.addresses.iter().find(|address| address.is_ipv4()) else { continue };
                    let info = PacketInfo { interface: interface.index, address: from, local: from };
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
            (Role::Own { .. }, info) => {
                // Packet information there is only where such a socket hears groups, too.
                let to_all = info.is_some_and(|info| self.is_to_all(&info));
                Some(Arrived { to_all, way: Way { socket: at, info: None } })
            }
            (Role::Wildcard, Some(info)) => {
                if !self.plan.interfaces.is_empty() && !self.hears(&info) {
                    return None;
                }
                let to_all = self.is_to_all(&info);
                let way = if to_all && !system::TELLS_LOCAL { None } else { answering(&info, datagram.from) };
                Some(Arrived { to_all, way: Way { socket: at, info: way } })
            }
            (Role::Wildcard, None) => Some(Arrived { to_all: false, way: Way { socket: at, info: None } }),
            (Role::Group | Role::Broadcast, _) if self.plan.listens_only => {
                Some(Arrived { to_all: true, way: Way { socket: at, info: None } })
            }
            (Role::Group | Role::Broadcast, info) => {
                let own = Role::Own { interface: self.interface_of(&info?, datagram.from)? };
                let own = self.sockets.iter().position(|other| other.v6 == socket.v6 && other.role == own)?;
                Some(Arrived { to_all: true, way: Way { socket: own, info: None } })
            }
        }
    }

    /// Whether a datagram was sent to more hosts than this.
    fn is_to_all(&self, info: &PacketInfo) -> bool {
        let is_broadcast = |address| self.interfaces.iter().any(|known| known.broadcasts.contains(&address));
        info.local != info.address
            || (!system::TELLS_LOCAL && matches!(info.address, IpAddr::V4(address) if is_broadcast(address)))
    }

    /// The interface that a datagram came by; where the system does not tell, the one in whose network its sender is.
    fn interface_of(&self, info: &PacketInfo, from: SocketAddr) -> Option<u32> {
        match info.interface {
            0 => self.interfaces.iter().find(|known| known.is_near(from.ip())).map(|known| known.index),
            index => Some(index),
        }
    }

    /// Whether a datagram came to an interface in use, or, from this machine, to an address of one. Where the system
    /// does not tell the interface, a multicast has come by one whose group was joined.
    fn hears(&self, info: &PacketInfo) -> bool {
        (info.interface == 0 && info.local != info.address)
            || self
                .interfaces
                .iter()
                .any(|known| known.index == info.interface || known.addresses.contains(&info.local))
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

    #[cfg(all(target_os = "linux", not(echonet_portable)))]
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn udp(&self, at: usize) -> &Udp {
        &self.sockets[at].udp
    }

    /// All of them, to be followed.
    pub(super) fn watched(&mut self) -> impl Iterator<Item = &mut Watched<UdpSocket>> {
        self.sockets.iter_mut().map(|socket| socket.udp.watched())
    }

    /// The addresses that a TCP listener for this node binds to.
    pub(super) fn unicast_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let unicast = |socket: &&Socket| matches!(socket.role, Role::Wildcard | Role::Own { .. });
        self.sockets.iter().filter(unicast).filter_map(|socket| socket.udp.socket().local_addr().ok())
    }

    pub(super) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }
}

impl Socket {
    /// Joins the group on these interfaces and leaves it on all others.
    fn join_exactly(&mut self, wanted: &[u32]) {
        let (socket, v6) = (SockRef::from(self.udp.socket()), self.v6);
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
            let joined = if v6 {
                socket.join_multicast_v6(&MULTICAST_V6, index)
            } else {
                socket.join_multicast_v4_n(&MULTICAST_V4, &InterfaceIndexOrAddress::Index(index))
            };
            // One that cannot be joined now (too many, or just gone) is tried again at the next change. One that is joined is
            // tried, too: of an interface that went and came with the same index the kernel has forgotten it.
            if joined.is_ok() && !self.joined.contains(&index) {
                self.joined.push(index);
            }
        }
    }

    /// Leaves the group on an interface.
    fn leave(&mut self, index: u32) {
        let others: Vec<_> = self.joined.iter().copied().filter(|&joined| joined != index).collect();
        self.join_exactly(&others);
    }
}

impl Interface {
    fn has(&self, v6: bool) -> bool {
        self.addresses.iter().any(|address| address.is_ipv6() == v6)
    }
}

/// A socket with every option set, ready to be bound.
fn configured(address: SocketAddr, role: Role) -> io::Result<Udp> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // Other tools set it on their sockets, and none of two sockets may lack it.
    system::share_port(&socket)?;
    let own = matches!(role, Role::Own { .. });
    // A smaller buffer than asked for is still a buffer.
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
    match address {
        SocketAddr::V4(v4) => {
            socket.set_broadcast(true)?;
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v4(false)?;
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(1)?;
            if own {
                socket.set_multicast_if_v4(v4.ip())?;
            }
        }
        SocketAddr::V6(v6) => {
            socket.set_only_v6(true)?;
            #[cfg(target_os = "linux")]
            socket.set_multicast_all_v6(false)?;
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(1)?;
            if own {
                socket.set_multicast_if_v6(v6.scope_id())?;
            }
        }
    }
    Udp::new(socket.into(), !own, address.is_ipv6())
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
fn holder(interfaces: &[Interface], address: IpAddr) -> Option<&Interface> {
    let has = |known: &&Interface| {
        known.addresses.contains(&address) || (known.loopback && address.is_ipv4() && address.is_loopback())
    };
    interfaces.iter().find(has)
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
