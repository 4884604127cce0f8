//! Ports for programs that cannot be asked for the port which the system chose.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A free port, below the range from which the system takes ports of its own choice: a port of that range may be taken by the time the
/// program starts, or starts again, even by an attempt to connect to that program.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin apart.
    let of_this_process = std::process::id().wrapping_mul(97);
    let next = |_| FIRST + of_this_process.wrapping_add(TAKEN.fetch_add(1, Relaxed)) % COUNT;
    let mut ports = (0..COUNT).map(next).filter_map(|port| u16::try_from(port).ok());
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("a port is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_is_another_and_none_is_of_the_systems_choice() {
        let ports: std::collections::HashSet<_> = (0..100).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| (10_000..32_000).contains(port)), "{ports:?}");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).unwrap();
        assert!((0..22_000).all(|_| free_port() != taken.local_addr().unwrap().port()));
    }
}
