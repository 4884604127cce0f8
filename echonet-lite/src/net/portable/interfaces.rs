//! The interfaces and their addresses, by the `if-addrs` crate, and the changes since they were looked at last.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::io;
use std::net::UdpSocket;
use std::vec::Vec;

use if_addrs::{IfAddr, get_if_addrs};

use super::watch::Watch;
use crate::net::interface::Interface;

/// The interfaces that are up, with the addresses that can be used. One without an address is not seen; no node could reach it either.
pub(in crate::net) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for found in get_if_addrs()? {
        let Some(index) = found.index.filter(|index| is_usable(found.ip(), *index)) else { continue };
        let at = interfaces.iter().position(|known| known.index == index).unwrap_or(interfaces.len());
        if at == interfaces.len() {
            interfaces.push(Interface {
                index,
                name: found.name.clone(),
                loopback: found.is_loopback(),
                addresses: Vec::new(),
                broadcasts: Vec::new(),
                carrier: found.is_oper_up(),
                networks: Vec::new(),
            });
        }
        let interface = &mut interfaces[at];
        let bits = match &found.addr {
            IfAddr::V4(v4) => {
                interface.broadcasts.extend(v4.broadcast.filter(|_| !found.is_loopback()));
                v4.prefixlen
            }
            IfAddr::V6(v6) => v6.prefixlen,
        };
        interface.networks.push((found.ip(), bits));
        interface.addresses.push(found.ip());
    }
    Ok(interfaces)
}

/// Returns true if the program can send from this address. The system lists a new address before it has checked for duplicates in the
/// network. The end of this check shows only in that a socket can be bound to the address.
fn is_usable(address: IpAddr, interface: u32) -> bool {
    let own = match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => SocketAddrV6::new(v6, 0, 0, interface).into(),
        address => SocketAddr::new(address, 0),
    };
    !UdpSocket::bind(own).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Sees that interfaces and addresses have changed.
pub(in crate::net) struct Changes(RefCell<Vec<Interface>>);

impl Changes {
    /// Has `watch` tell from now on when to look.
    pub(in crate::net) fn listen(_: &Watch) -> io::Result<Self> {
        Interface::list().map(|interfaces| Self(RefCell::new(interfaces)))
    }

    /// Whether anything is otherwise than at the last call. A cable that was unplugged for less than the time in
    /// between is not noticed.
    pub(in crate::net) fn any(&self, _: &mut Vec<u32>) -> bool {
        // If the interfaces cannot be listed now, the next call asks again.
        let Ok(interfaces) = Interface::list() else { return false };
        let changed = *self.0.borrow() != interfaces;
        self.0.replace(interfaces);
        changed
    }
}
