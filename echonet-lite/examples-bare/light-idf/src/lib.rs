//! A light on the sockets of `std`, which ESP-IDF has: [`serve`] is the whole device once the network is up.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant as Clock};

use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LightLevel, OperationMode};
use echonet_lite::node::{AnswerPort, Arrival, Config, Destination, Identity, Instant, Node, Outbox, Stored};
use echonet_lite::wire::{MULTICAST_V4, PORT};

/// The code for makers that have none is 00 00 00; experiments use FF FF FF.
const MAKER: [u8; 3] = [0xFF, 0xFF, 0xFF];
/// Longest request and longest answer.
const DATAGRAM: usize = 512;
/// How long a multicast request may wait for its turn, and the node for its next notification.
const TURN: Duration = Duration::from_millis(20);

/// Answers at an address of this machine until a socket fails. `serial` is the device's own number, `first_tid` a random one. The
/// port is 3610; only tests have others, whose nodes answer to the port that asked.
///
/// # Errors
/// The port is taken, the group cannot be joined, or receiving fails.
pub fn serve(own: SocketAddrV4, serial: u64, first_tid: u16) -> io::Result<Infallible> {
    let sockets = Sockets::open(own)?;
    let light = Stored::new(&GENERAL_LIGHTING, 1, MAKER).with(LightLevel::of::<100>()).with(OperationMode::Normal);
    let answer_port = if own.port() == PORT { AnswerPort::Standard } else { AnswerPort::Source };
    let config = Config { first_tid, answer_port, ..Config::new(Identity::new(MAKER, serial)) };
    let mut node: Node<[Stored; 1]> = Node::new(config, [light]);
    let started = Clock::now();
    let (mut request, mut answer) = ([0; DATAGRAM], [0; DATAGRAM]);
    loop {
        for (socket, arrival) in [(&sockets.own, Arrival::Unicast), (&sockets.group, Arrival::Multicast)] {
            if let Some((length, from)) = received(socket.recv_from(&mut request))? {
                let mut out = Outbox::new(&mut answer, |to, datagram: &[u8]| sockets.send(to, datagram));
                node.handle(now(started), from, arrival, &request[..length], &mut out);
            }
        }
        while let Some((to, length)) = node.poll_transmit(now(started), &mut answer) {
            sockets.send(to, &answer[..length]);
        }
    }
}

fn now(started: Clock) -> Instant {
    Instant::from_micros(started.elapsed().as_micros() as u64)
}

/// A datagram; none if none came in time.
fn received(result: io::Result<(usize, SocketAddr)>) -> io::Result<Option<(usize, SocketAddr)>> {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    match result {
        Ok(datagram) => Ok(Some(datagram)),
        // A refused datagram is an earlier one, of ours.
        Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Two sockets, because `std` does not tell where a datagram was sent to.
struct Sockets {
    own: UdpSocket,
    group: UdpSocket,
    to_all: SocketAddrV4,
}

impl Sockets {
    fn open(own: SocketAddrV4) -> io::Result<Self> {
        let to_all = SocketAddrV4::new(MULTICAST_V4, own.port());
        let group = UdpSocket::bind(to_all)?;
        group.join_multicast_v4(to_all.ip(), own.ip())?;
        group.set_nonblocking(true)?;
        let own = UdpSocket::bind(own)?;
        // Nothing of ECHONET Lite leaves the link.
        own.set_multicast_ttl_v4(1)?;
        own.set_read_timeout(Some(TURN))?;
        Ok(Self { own, group, to_all })
    }

    fn send(&self, to: Destination, datagram: &[u8]) {
        // A datagram that the system does not take is lost, as UDP may lose any.
        let _ = match to {
            Destination::Unicast(to) => self.own.send_to(datagram, to),
            Destination::Multicast => self.own.send_to(datagram, self.to_all),
        };
    }
}
