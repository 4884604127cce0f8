//! The interfaces of this machine and their addresses, asked of the kernel by netlink, and the news of changes.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::string::String;
use std::vec;
use std::vec::Vec;

use super::sys;

/// A network interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The number by which the kernel knows it; IPv6 scope ids are these.
    pub index: u32,
    /// Its name, as `ip link` shows it.
    pub name: String,
    /// Whether it leads to this machine only.
    pub loopback: bool,
    /// Its addresses of both families, in the kernel's order.
    pub addresses: Vec<IpAddr>,
    /// The addresses that reach all IPv4 hosts of its networks.
    pub(super) broadcasts: Vec<Ipv4Addr>,
    /// Whether a cable is plugged in, or what stands for one.
    pub(super) carrier: bool,
    /// Its networks: an address of each, and how many bits of it are the network's.
    pub(super) networks: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// Lists the interfaces that are up, in the order of their indices.
    ///
    /// # Errors
    /// What the kernel says when it does not tell them.
    pub fn list() -> io::Result<Vec<Self>> {
        let socket = sys::netlink(0)?;
        let mut interfaces = Vec::new();
        dump(&socket, libc::RTM_GETLINK, |body| interfaces.extend(link(body)))?;
        dump(&socket, libc::RTM_GETADDR, |body| add_address(&mut interfaces, body))?;
        interfaces.sort_by_key(|interface| interface.index);
        Ok(interfaces)
    }

    /// Whether an address is in a network of this interface, so that no router stands between.
    pub(super) fn is_near(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|&(network, bits)| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                // An address that was leased has all bits; the networks that hosts are in have 64.
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(bits.min(64))
            }
            _ => false,
        })
    }

    /// Whether something can be sent or received that could not when the interfaces were `before`.
    pub(super) fn has_gained(&self, before: &[Self]) -> bool {
        let old = before.iter().find(|old| old.index == self.index && old.carrier);
        let known = |address: &IpAddr| old.is_some_and(|old| old.addresses.contains(address));
        self.carrier && !self.addresses.iter().all(known)
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.addresses.iter().try_for_each(|address| write!(f, " {address}"))
    }
}

/// Hears of links that come and go and of addresses that change.
pub(super) struct Changes(OwnedFd);

impl Changes {
    pub(super) fn listen() -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        sys::netlink(groups as u32).map(Self)
    }

    /// Whether anything has changed since the last call. What it was is better asked for anew than pieced together:
    /// news can be lost, which counts as a change here. Only a cable that is plugged in again by then looks as if nothing
    /// had happened: `unplugged` takes the indices of the interfaces that have lost theirs.
    pub(super) fn any(&self, unplugged: &mut Vec<u32>) -> bool {
        let mut changed = false;
        let mut news = [0; 4096];
        loop {
            match rustix::io::read(&self.0, &mut news) {
                Ok(length) => {
                    changed = true;
                    unplugged.extend(without_carrier(&news[..length]));
                }
                Err(rustix::io::Errno::NOBUFS) => changed = true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return changed,
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `struct nlmsghdr`: length 4, type 2, flags 2, sequence 4, port 4.
const HEADER: usize = 16;
/// `struct ifinfomsg` and `struct ifaddrmsg`, which attributes follow.
const LINK: usize = 16;
const ADDRESS: usize = 8;
/// Flags of an address, which have outgrown the byte in `struct ifaddrmsg`.
const IFA_FLAGS: u16 = 8;

/// Asks for all entries of a kind and gives the body of each to `each`.
fn dump(socket: &OwnedFd, kind: u16, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut request = [0; HEADER + LINK];
    request[..4].copy_from_slice(&((HEADER + LINK) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    rustix::io::write(socket, &request)?;
    // The kernel fills at most 32 KiB of a dump at once.
    let mut answer = vec![0; 1 << 15];
    loop {
        let length = rustix::io::read(socket, &mut answer[..])?;
        let mut rest = &answer[..length];
        while let Some((kind, body, next)) = message(rest) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(()),
                libc::NLMSG_ERROR => return Err(refusal(body)),
                _ => each(body),
            }
            rest = next;
        }
    }
}

/// The error number inside an `NLMSG_ERROR`.
fn refusal(body: &[u8]) -> io::Error {
    match body.first_chunk() {
        Some(&number) => io::Error::from_raw_os_error(i32::from_ne_bytes(number).wrapping_neg()),
        None => io::ErrorKind::InvalidData.into(),
    }
}

/// Splits off the first message: its type, its body, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The attributes (`struct rtattr`) after a message's fixed part.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The interfaces of which news says that no cable is plugged in.
fn without_carrier(mut news: &[u8]) -> impl Iterator<Item = u32> {
    let messages = core::iter::from_fn(move || {
        let (kind, body, next) = message(news)?;
        news = next;
        Some((kind, body))
    });
    messages.filter(|&(kind, _)| kind == libc::RTM_NEWLINK || kind == libc::RTM_DELLINK).filter_map(|(kind, body)| {
        let (index, flags) = index_and_flags(body)?;
        (kind == libc::RTM_DELLINK || flags & libc::IFF_RUNNING == 0).then_some(index)
    })
}

/// The first fields of a `struct ifinfomsg`.
fn index_and_flags(body: &[u8]) -> Option<(u32, i32)> {
    let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let flags = u32::from_ne_bytes(*body.get(8..)?.first_chunk()?) as i32;
    Some((index, flags))
}

/// An interface out of an `RTM_NEWLINK`, if it is up.
fn link(body: &[u8]) -> Option<Interface> {
    let (index, flags) = index_and_flags(body)?;
    if flags & libc::IFF_UP == 0 {
        return None;
    }
    let name = attributes(body.get(LINK..)?).find(|&(kind, _)| kind == libc::IFLA_IFNAME)?.1;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    Some(Interface {
        index,
        name: String::from_utf8_lossy(name).into_owned(),
        loopback: flags & libc::IFF_LOOPBACK != 0,
        addresses: Vec::new(),
        broadcasts: Vec::new(),
        carrier: flags & libc::IFF_RUNNING != 0,
        networks: Vec::new(),
    })
}

/// Adds the address of an `RTM_NEWADDR` to its interface.
fn add_address(interfaces: &mut [Interface], body: &[u8]) {
    let Some(index) = body.get(4..).and_then(|rest| rest.first_chunk()).map(|&index| u32::from_ne_bytes(index)) else {
        return;
    };
    let Some(interface) = interfaces.iter_mut().find(|interface| interface.index == index) else { return };
    // A point-to-point link has its peer under ADDRESS and itself under LOCAL; IPv6 otherwise has ADDRESS alone.
    let (mut own, mut local) = (None, None);
    let &[_, bits, flags, ..] = body else { return };
    let mut flags = u32::from(flags);
    for (kind, value) in attributes(body.get(ADDRESS..).unwrap_or_default()) {
        match kind {
            libc::IFA_ADDRESS => own = ip(value),
            libc::IFA_LOCAL => local = ip(value),
            IFA_FLAGS => flags = value.first_chunk().map_or(flags, |&flags| u32::from_ne_bytes(flags)),
            libc::IFA_BROADCAST => {
                if let Some(IpAddr::V4(broadcast)) = ip(value) {
                    interface.broadcasts.push(broadcast);
                }
            }
            _ => {}
        }
    }
    // While the network is asked whether another host has it, nothing can be sent from an address; the end of that is a
    // change that is told.
    let is_unsettled = flags & (libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED) != 0;
    if !is_unsettled || flags & libc::IFA_F_OPTIMISTIC != 0 {
        interface.networks.extend(own.or(local).map(|network| (network, bits)));
        interface.addresses.extend(local.or(own));
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|&octets| Ipv4Addr::from(octets).into()),
        16 => bytes.first_chunk::<16>().map(|&octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_with_its_address() {
        let interfaces = Interface::list().expect("the kernel lists its interfaces");
        let loopback = interfaces.iter().find(|interface| interface.loopback).expect("loopback is up");
        assert_eq!(loopback.name, "lo");
        assert!(loopback.addresses.contains(&Ipv4Addr::LOCALHOST.into()), "{loopback:?}");
    }

    #[test]
    fn near_is_what_is_in_a_network_of_the_interface() {
        let networks = [("192.0.2.7", 24), ("198.51.100.1", 32), ("2001:db8::7", 128), ("fe80::7", 64)];
        let networks = networks.map(|(address, bits)| (address.parse().unwrap(), bits)).to_vec();
        let interface = Interface {
            index: 2,
            name: "eth0".into(),
            loopback: false,
            addresses: Vec::new(),
            broadcasts: Vec::new(),
            carrier: true,
            networks,
        };
        for (address, expected) in [
            ("192.0.2.255", true),
            ("192.0.3.1", false),
            ("198.51.100.1", true),
            ("198.51.100.2", false),
            ("2001:db8::ffff", true),
            ("2001:db8:0:1::7", false),
            ("fe80::1", true),
        ] {
            assert_eq!(interface.is_near(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_cable_that_was_unplugged_for_a_moment_is_noticed() {
        let mut news = Vec::new();
        for (kind, index, flags) in [
            (libc::RTM_NEWLINK, 2, libc::IFF_UP),
            (libc::RTM_NEWLINK, 2, libc::IFF_UP | libc::IFF_RUNNING),
            (libc::RTM_NEWLINK, 3, libc::IFF_UP | libc::IFF_RUNNING),
            (libc::RTM_NEWADDR, 4, 0),
            (libc::RTM_DELLINK, 5, libc::IFF_RUNNING),
        ] {
            news.extend(((HEADER + LINK) as u32).to_ne_bytes());
            news.extend(kind.to_ne_bytes());
            news.extend([0; HEADER - 6 + 4]);
            news.extend(u32::to_ne_bytes(index));
            news.extend(flags.to_ne_bytes());
            news.extend([0; 4]);
        }
        assert_eq!(without_carrier(&news).collect::<Vec<_>>(), [2, 5]);
    }

    #[test]
    fn cut_messages_end_the_walk() {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&24_u32.to_ne_bytes());
        for length in 0..24 {
            assert!(message(&bytes[..length]).is_none(), "{length}");
        }
        bytes[..4].copy_from_slice(&3_u32.to_ne_bytes());
        assert!(message(&bytes).is_none(), "a length below the header's own");
        assert_eq!(attributes(&[3, 0, 1, 0, 9]).count(), 0);
        assert_eq!(attributes(&[5, 0, 1, 0, 9]).collect::<Vec<_>>(), [(1, &[9][..])]);
    }
}
