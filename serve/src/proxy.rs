//! The real client of a request, when a reverse proxy stands in between.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::HeaderMap;
use http::header::FORWARDED;

/// A network of proxies whose word is taken: `10.0.0.0/8`, `::1`, `192.0.2.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trusted {
    network: IpAddr,
    bits: u8,
}

impl Trusted {
    /// Whether an address belongs to the network.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match (self.network, addr.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(addr)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == addr.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(addr)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                network.to_bits() & mask == addr.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTrustedError;

impl fmt::Display for ParseTrustedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an address or a network, such as 10.0.0.0/8 or ::1")
    }
}

impl std::error::Error for ParseTrustedError {}

impl FromStr for Trusted {
    type Err = ParseTrustedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (addr, bits) = text.split_once('/').map_or((text, None), |(addr, bits)| (addr, Some(bits)));
        let network: IpAddr = addr.parse().map_err(|_| ParseTrustedError)?;
        let all = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(all), |bits| bits.parse().map_err(|_| ParseTrustedError))?;
        if bits > all { Err(ParseTrustedError) } else { Ok(Self { network, bits }) }
    }
}

/// The client, as an extension of the request: `Extension<Client>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address, from a trusted proxy or else of the connection. `None` behind a Unix socket whose proxy
    /// says nothing.
    pub addr: Option<IpAddr>,
    /// Whether the client's own connection is encrypted, as far as the trusted proxy says.
    pub is_secure: bool,
}

/// The client of a request that came over a connection from `peer`. The headers count only if the peer is trusted.
/// Their addresses are then read from the last one back, and the first that is no trusted proxy is the client. The
/// client may have invented the addresses in front of it.
pub(crate) fn client(headers: &HeaderMap, peer: Option<SocketAddr>, is_secure: bool, trusted: &[Trusted]) -> Client {
    let direct = Client { addr: peer.map(|peer| peer.ip()), is_secure };
    let is_trusted = |addr: IpAddr| trusted.iter().any(|network| network.contains(addr));
    // A Unix socket's peer is on this machine, under our own permissions.
    if trusted.is_empty() || !direct.addr.is_none_or(is_trusted) {
        return direct;
    }
    let mut client = direct;
    for hop in hops(headers).iter().rev() {
        // A proxy that hides its client's address is the last that is known.
        let Some(addr) = hop.addr else { break };
        client = Client { addr: Some(addr), is_secure: hop.is_secure.unwrap_or(client.is_secure) };
        if !is_trusted(addr) {
            break;
        }
    }
    client
}

/// A proxy's report on its own client.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hop {
    addr: Option<IpAddr>,
    is_secure: Option<bool>,
}

/// All hops, the client's first. `Forwarded` (RFC 7239) goes before its older relatives.
fn hops(headers: &HeaderMap) -> Vec<Hop> {
    let lines = |name: &http::HeaderName| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect::<Vec<_>>()
    };
    let forwarded = lines(&FORWARDED);
    if !forwarded.is_empty() {
        return forwarded.iter().flat_map(|line| line.split(',')).map(forwarded_hop).collect();
    }
    let older = http::HeaderName::from_static;
    let proto = lines(&older("x-forwarded-proto")).last().map(|proto| proto.trim().eq_ignore_ascii_case("https"));
    let addrs = lines(&older("x-forwarded-for"));
    let addrs = addrs.iter().flat_map(|line| line.split(','));
    addrs.map(|addr| Hop { addr: node(addr.trim()), is_secure: proto }).collect()
}

/// One element of `Forwarded`: `for=192.0.2.60;proto=http;by=203.0.113.43`.
fn forwarded_hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for (name, value) in element.split(';').filter_map(|pair| pair.trim().split_once('=')) {
        let value = value.trim_matches('"');
        if name.eq_ignore_ascii_case("for") {
            hop.addr = node(value);
        } else if name.eq_ignore_ascii_case("proto") {
            hop.is_secure = Some(value.eq_ignore_ascii_case("https"));
        }
    }
    hop
}

/// `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]`, `[2001:db8::1]:80`, or a bare IPv6 address; not `unknown` or `_hidden`.
fn node(text: &str) -> Option<IpAddr> {
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse();
    text.parse::<SocketAddr>().map(|addr| addr.ip()).or_else(|_| bare()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let check = |network: &str, addr: &str, expected| {
            assert_eq!(
                network.parse::<Trusted>().unwrap().contains(addr.parse().unwrap()),
                expected,
                "{network} {addr}"
            );
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.0.0.1", true);
        check("0.0.0.0/0", "1.2.3.4", true);
        check("192.0.2.7", "192.0.2.8", false);
        check("2001:db8::/32", "2001:db8:1::1", true);
        check("::1", "::2", false);
        check("::/0", "::2", true);
        for bad in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(bad.parse::<Trusted>(), Err(ParseTrustedError), "{bad}");
        }
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let check = |peer: Option<&str>, fields: &[(&'static str, &str)], addr: Option<&str>, is_secure| {
            let trusted = ["10.0.0.0/8".parse().unwrap()];
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, value.parse().unwrap());
            }
            let peer = peer.map(|peer| SocketAddr::new(peer.parse().unwrap(), 1));
            let expected = Client { addr: addr.map(|addr| addr.parse().unwrap()), is_secure };
            assert_eq!(client(&headers, peer, false, &trusted), expected, "{fields:?}");
        };
        let forged = ("x-forwarded-for", "6.6.6.6");
        check(Some("192.0.2.1"), &[forged, ("forwarded", "for=6.6.6.6;proto=https")], Some("192.0.2.1"), false);
        check(Some("10.0.0.1"), &[], Some("10.0.0.1"), false);
        check(Some("10.0.0.1"), &[("x-forwarded-for", "6.6.6.6, 192.0.2.9")], Some("192.0.2.9"), false);
        check(Some("10.0.0.1"), &[forged, ("x-forwarded-for", "192.0.2.9, 10.0.0.2")], Some("192.0.2.9"), false);
        check(Some("10.0.0.1"), &[forged, ("x-forwarded-proto", "https")], Some("6.6.6.6"), true);
        check(
            Some("10.0.0.1"),
            &[forged, ("forwarded", "For=\"[2001:db8::7]:4711\";Proto=https")],
            Some("2001:db8::7"),
            true,
        );
        check(Some("10.0.0.1"), &[("forwarded", "for=unknown")], Some("10.0.0.1"), false);
        check(Some("10.0.0.1"), &[("forwarded", "for=192.0.2.1, for=_hidden")], Some("10.0.0.1"), false);
        check(None, &[("x-forwarded-for", "192.0.2.9")], Some("192.0.2.9"), false);
    }
}
