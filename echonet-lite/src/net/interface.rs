//! The interfaces of this machine and their addresses.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::io;
use std::string::String;
use std::vec::Vec;

use super::system;

/// A network interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The number by which the kernel knows it; IPv6 scope ids are these.
    pub index: u32,
    /// Its name, as the system shows it.
    pub name: String,
    /// Whether it leads to this machine only.
    pub loopback: bool,
    /// Its addresses of both families, in the kernel's order.
    pub addresses: Vec<IpAddr>,
    /// The addresses that reach all IPv4 hosts of its networks.
    pub(super) broadcasts: Vec<Ipv4Addr>,
    /// Whether a cable is plugged in, or the link is up in another way.
    pub(super) carrier: bool,
    /// Its networks: an address of each, and how many bits of it are the network's.
    pub(super) networks: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// Lists the interfaces that are up, in the order of their indices.
    ///
    /// # Errors
    /// The kernel's error, if it does not tell them.
    pub fn list() -> io::Result<Vec<Self>> {
        let mut interfaces = system::interfaces()?;
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
}
