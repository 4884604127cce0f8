//! The line that tells a person at a terminal what to type next.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Prints a command that shows the server at work, if a person started the program on a terminal. Logs of services stay as they are.
///
/// `command` gets the first address at which a client of this machine reaches the server. Without an address, or under a service
/// manager, nothing is printed.
pub fn suggest(listening: &[SocketAddr], command: impl FnOnce(SocketAddr) -> String) {
    if io::stdout().is_terminal()
        && io::stderr().is_terminal()
        && let Some(address) = listening.first()
    {
        // A terminal that is gone is no reason to end the server.
        let line = format!("Try in another terminal: {}\n", command(reachable(*address)));
        let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
    }
}

/// The address that a client of this machine uses: for "all addresses", the loopback one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_reaches_all_addresses_by_loopback() {
        for (listening, expected) in [
            ("0.0.0.0:6379", "127.0.0.1:6379"),
            ("[::]:6379", "[::1]:6379"),
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            let listening = listening.parse().expect("an address");
            assert_eq!(reachable(listening).to_string(), expected);
        }
    }
}
