//! Datagrams as the system gives them: with the interface that they came by, and where they were sent.

use core::net::{IpAddr, SocketAddr};

/// Which interface and local address a datagram came to, or is to leave by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketInfo {
    /// Index of the interface; 0 leaves the choice to the routing table.
    pub interface: u32,
    /// On arrival the destination in the packet; on departure the source.
    pub address: IpAddr,
    /// On arrival: our own address, which differs from `address` for multicast and broadcast.
    pub local: IpAddr,
}

/// One received datagram.
pub(super) struct Datagram<'a> {
    pub from: SocketAddr,
    /// Absent on sockets without the packet-info option.
    pub info: Option<PacketInfo>,
    pub bytes: &'a [u8],
}
