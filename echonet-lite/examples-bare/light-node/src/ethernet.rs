//! A light on Ethernet: the same node over UDP, by smoltcp.
#![no_std]
#![no_main]

mod board;
mod lan9118;
mod light;
mod smoltcp_device;
mod startup;

use core::net::SocketAddr;

use board::{Clock, sleep};
use echonet_lite::node::{Arrival, Destination, Node, Outbox};
use echonet_lite::wire::{MULTICAST_V4, MULTICAST_V6, PORT};
use lan9118::Lan9118;
use light::{CONFIG, Light};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, IpEndpoint};
use startup::Once;

const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// A real light would ask DHCP for it.
const V4: IpCidr = IpCidr::new(IpAddress::v4(192, 0, 2, 1), 24);
/// Link-local, by the hardware address (RFC 4291, appendix A).
const V6: IpCidr = IpCidr::new(IpAddress::v6(0xFE80, 0, 0, 0, 0x0000, 0x00FF, 0xFE00, 0x0001), 64);
/// Datagrams that may wait in each direction, and the bytes for them.
const DATAGRAMS: usize = 4;
const BYTES: usize = 1024;
/// Longest request and longest answer.
const DATAGRAM: usize = 512;

/// The memory that smoltcp borrows for ever.
struct Buffers {
    sockets: [SocketStorage<'static>; 1],
    metadata: [[PacketMetadata; DATAGRAMS]; 2],
    bytes: [[u8; BYTES]; 2],
}

/// All else that the program keeps.
struct State {
    clock: Clock,
    device: Lan9118,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    node: Node<[Light; 1]>,
    request: [u8; DATAGRAM],
    answer: [u8; DATAGRAM],
}

static BUFFERS: Once<Buffers> = Once::new();
static STATE: Once<State> = Once::new();

fn program() -> ! {
    let state = STATE.set(State::new());
    loop {
        state.turn();
    }
}

startup::entry!(program);

impl State {
    fn new() -> Self {
        let Buffers { sockets, metadata: [in_metadata, out_metadata], bytes: [in_bytes, out_bytes] } =
            BUFFERS.set(Buffers {
                sockets: [SocketStorage::EMPTY],
                metadata: [[PacketMetadata::EMPTY; DATAGRAMS]; 2],
                bytes: [[0; BYTES]; 2],
            });
        let (mut clock, mut device) = (Clock::start(), Lan9118::start(MAC));
        let now = Instant::from_micros(clock.now_us() as i64);
        let mut interface = Interface::new(Config::new(EthernetAddress(MAC).into()), &mut device, now);
        // None can fail: the interface has room for two addresses and four groups.
        interface.update_ip_addrs(|addresses| drop([V4, V6].map(|address| addresses.push(address))));
        drop(interface.join_multicast_group(MULTICAST_V4));
        let receive = PacketBuffer::new(&mut in_metadata[..], &mut in_bytes[..]);
        let send = PacketBuffer::new(&mut out_metadata[..], &mut out_bytes[..]);
        let mut socket = Socket::new(receive, send);
        // Nothing of ECHONET Lite leaves the link.
        socket.set_hop_limit(Some(1));
        // Cannot fail: the port is not 0 and the socket is new.
        drop(socket.bind(PORT));
        let mut sockets = SocketSet::new(&mut sockets[..]);
        let socket = sockets.add(socket);
        let node = Node::new(CONFIG, [Light::new()]);
        Self { clock, device, interface, sockets, socket, node, request: [0; DATAGRAM], answer: [0; DATAGRAM] }
    }

    fn turn(&mut self) {
        let now_us = self.clock.now_us();
        self.interface.poll(Instant::from_micros(now_us as i64), &mut self.device, &mut self.sockets);
        let now = echonet_lite::node::Instant::from_micros(now_us);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
        if !socket.can_send() {
            sleep();
        } else if let Ok((length, metadata)) = socket.recv_slice(&mut self.request) {
            let arrival = match metadata.local_address {
                Some(address) if !address.is_multicast() && !address.is_broadcast() => Arrival::Unicast,
                _ => Arrival::Multicast,
            };
            let from = SocketAddr::new(metadata.endpoint.addr.into(), metadata.endpoint.port);
            let mut out = Outbox::new(&mut self.answer, |to, datagram: &[u8]| send(socket, to, datagram));
            self.node.handle(now, from, arrival, &self.request[..length], &mut out);
        } else if let Some((to, length)) = self.node.poll_transmit(now, &mut self.answer) {
            send(socket, to, &self.answer[..length]);
        } else {
            sleep();
        }
    }
}

fn send(socket: &mut Socket<'_>, to: Destination, datagram: &[u8]) {
    // An answer for which there is no room is lost, as UDP may lose any.
    let mut send = |to: IpEndpoint| drop(socket.send_slice(datagram, to));
    match to {
        Destination::Unicast(to) => send(to.into()),
        Destination::Multicast => {
            send(IpEndpoint::new(MULTICAST_V4.into(), PORT));
            send(IpEndpoint::new(MULTICAST_V6.into(), PORT));
        }
    }
}
