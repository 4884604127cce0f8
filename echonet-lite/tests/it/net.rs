//! The socket layer over loopback and, where network namespaces can be made, over virtual Ethernet.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod gateway;
mod link;
#[cfg(feature = "log")]
mod logged;
mod loopback;
mod panics;
mod port;
mod readme;
mod stream;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a discovery waits: longer than answers take that are put off at random, on a machine that is busy.
const DISCOVERY: Duration = Duration::from_secs(3);

/// A light that knows which of several it is: its level is its number.
pub(crate) struct Light {
    common: CommonProperties,
    instance: u8,
    level: u8,
}

impl Light {
    fn new(instance: u8, level: u8) -> Self {
        Self { common: CommonProperties::new([0, 0, 0x77]), instance, level }
    }
}

impl Object for Light {
    fn eoj(&self) -> Eoj {
        light(self.instance)
    }

    fn access(&self) -> &PropertyAccess {
        const ACCESS: PropertyAccess =
            CommonProperties::ACCESS.union(PropertyAccess::new(&[0xB0, 0xB6], &[0xB0, 0xB6], &[0xB0]));
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            0xB0 => put(edt, &[self.level]),
            0xB6 => put(edt, &[0x42]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match (epc, edt) {
            (0xB0, &[level]) => self.level = level,
            (0xB6, &[0x42]) => {}
            _ => self.common.set(epc, edt)?,
        }
        Ok(())
    }
}

/// The lighting object of this instance.
fn light(instance: u8) -> Eoj {
    Eoj::new(0x02, 0x90, instance)
}

/// A node of one light, which answers multicast at once.
fn node(instance: u8, level: u8) -> Node<[Light; 1]> {
    let mut config = Config::new(Identity::new([0, 0, 0x77], u64::from(level)));
    config.multicast_delay = Duration::ZERO;
    Node::new(config, [Light::new(instance, level)])
}

/// A Get of the level of a light.
fn get_level(tid: u8, instance: u8) -> [u8; 14] {
    [0x10, 0x81, 0, tid, 0x05, 0xFF, 0x01, 0x02, 0x90, instance, 0x62, 1, 0xB0, 0]
}

/// Its answer.
fn level_is(tid: u8, instance: u8, level: u8) -> [u8; 15] {
    [0x10, 0x81, 0, tid, 0x02, 0x90, instance, 0x05, 0xFF, 0x01, 0x72, 1, 0xB0, 1, level]
}

/// A plain socket on a loopback address, as any other program would use.
fn plain(address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::from((address, port))).expect("the address is free");
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}
