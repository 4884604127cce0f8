//! The interfaces and their addresses, asked of the kernel by netlink, and the news of changes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::string::String;
use std::vec;
use std::vec::Vec;

use rustix::event::epoll::EventFlags;

use super::sys;
use super::watch::Watch;
use crate::net::interface::Interface;
use crate::net::token;

/// The interfaces that are up.
pub(in crate::net) fn interfaces() -> io::Result<Vec<Interface>> {
    let socket = sys::netlink(0)?;
    let mut interfaces = Vec::new();
    dump(&socket, libc::RTM_GETLINK, |body| interfaces.extend(link(body)))?;
    dump(&socket, libc::RTM_GETADDR, |body| add_address(&mut interfaces, body))?;
    Ok(interfaces)
}

/// Hears of links that come and go and of addresses that change.
pub(in crate::net) struct Changes(OwnedFd);

impl Changes {
    /// Has `watch` tell of changes from now on.
    pub(in crate::net) fn listen(watch: &Watch) -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        let socket = sys::netlink(groups as u32)?;
        watch.add(socket.as_fd(), token::CHANGES, EventFlags::IN)?;
        Ok(Self(socket))
    }

    /// Whether anything has changed since the last call. The caller asks for the interfaces anew, as news can be lost;
    /// a loss counts as a change here. Only a cable that is plugged in again by then looks as if nothing had happened:
    /// `unplugged` takes the indices of the interfaces that have lost theirs.
    pub(in crate::net) fn any(&self, unplugged: &mut Vec<u32>) -> bool {
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

/// Splits off the first message: its type, its body, and the bytes behind it.
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
