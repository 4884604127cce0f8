//! Where a node is: an address without a port, because every ECHONET Lite datagram goes to the same one.

use core::fmt;
use core::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::str::FromStr;

/// The address of a node; link-local IPv6 addresses carry the scope (the interface's index) they are valid in.
///
/// Written `192.168.1.5`, `2001:db8::5` or `fe80::5%2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddr {
    ip: IpAddr,
    scope: u32,
}

impl NodeAddr {
    /// A node's address in the given scope. The scope is kept for link-local IPv6 addresses only, where it is part of
    /// the address; an IPv4 address mapped into IPv6 becomes the IPv4 address.
    pub fn new(ip: IpAddr, scope: u32) -> Self {
        let ip = ip.to_canonical();
        let local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
        Self { ip, scope: if local { scope } else { 0 } }
    }

    /// The address itself.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// The index of the interface that a link-local address belongs to; 0 where that is unknown or meaningless.
    pub const fn scope(self) -> u32 {
        self.scope
    }

    /// The socket address of this node at a port.
    pub const fn at(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), port),
            IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.scope)),
        }
    }

    /// Whether something that came from `source` can come from this node: the same address, in the same scope unless
    /// this one names none. Its port says nothing, because devices differ in the port that they send from.
    pub fn covers(self, source: Self) -> bool {
        self.ip == source.ip && (self.scope == source.scope || self.scope == 0)
    }

    /// The same address without its scope.
    pub(super) const fn unscoped(self) -> Self {
        Self { ip: self.ip, scope: 0 }
    }
}

impl From<SocketAddr> for NodeAddr {
    fn from(addr: SocketAddr) -> Self {
        match addr {
            SocketAddr::V4(v4) => Self::new(IpAddr::V4(*v4.ip()), 0),
            SocketAddr::V6(v6) => Self::new(IpAddr::V6(*v6.ip()), v6.scope_id()),
        }
    }
}

impl From<IpAddr> for NodeAddr {
    fn from(ip: IpAddr) -> Self {
        Self::new(ip, 0)
    }
}

impl From<Ipv4Addr> for NodeAddr {
    fn from(ip: Ipv4Addr) -> Self {
        Self::new(IpAddr::V4(ip), 0)
    }
}

impl From<Ipv6Addr> for NodeAddr {
    fn from(ip: Ipv6Addr) -> Self {
        Self::new(IpAddr::V6(ip), 0)
    }
}

impl FromStr for NodeAddr {
    type Err = AddrParseError;

    /// Parses an address with an optional `%` and the number of its scope.
    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let scoped = text.split_once('%').and_then(|(ip, scope)| Some((ip, scope.parse().ok()?)));
        let (ip, scope) = scoped.unwrap_or((text, 0));
        Ok(Self::new(ip.parse()?, scope))
    }
}

impl fmt::Display for NodeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip.fmt(f)?;
        if self.scope == 0 { Ok(()) } else { write!(f, "%{}", self.scope) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn texts_name_addresses() {
        for text in ["192.168.1.5", "2001:db8::5", "fe80::5%2", "fe80::5"] {
            let addr: NodeAddr = text.parse().unwrap();
            assert_eq!(addr.to_string(), text);
        }
        assert_eq!("::ffff:10.0.0.1".parse::<NodeAddr>(), "10.0.0.1".parse());
        assert_eq!("2001:db8::5%2".parse::<NodeAddr>(), "2001:db8::5".parse());
        for text in ["", "fe80::5%eth0", "fe80::5%", "10.0.0.1:3610"] {
            assert!(text.parse::<NodeAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_scope_covers_every_scope() {
        let addr = |text: &str| text.parse::<NodeAddr>().unwrap();
        assert!(addr("fe80::5").covers(addr("fe80::5%2")));
        assert!(addr("fe80::5%2").covers(addr("fe80::5%2")));
        assert!(!addr("fe80::5%1").covers(addr("fe80::5%2")));
        assert!(!addr("fe80::6").covers(addr("fe80::5%2")));
        assert_eq!(addr("fe80::5%2").at(3610).to_string(), "[fe80::5%2]:3610");
    }
}
