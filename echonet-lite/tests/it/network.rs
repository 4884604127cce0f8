//! A network in virtual time: genuine nodes and controllers whose datagrams are lost, doubled, delayed and reordered as a
//! seed wants it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use echonet_lite::controller::{Controller, NodeAddr};
use echonet_lite::node::{Arrival, Destination, Handled, Instant, Node, Object, Outbox};

/// Store of the nodes, for messages that wait to be sent.
pub const STORE: usize = 4096;

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn time(&mut self, least: Duration, most: Duration) -> Duration {
        least + Duration::from_micros(self.below((most - least).as_micros() as u64 + 1))
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// The faults of the network.
#[derive(Clone, Copy)]
pub struct Weather {
    /// Lost, in percent.
    pub loss: u64,
    /// Delivered twice, in percent.
    pub doubled: u64,
    /// Delayed by up to `delay`, in percent: late, and after what was sent later.
    pub delayed: u64,
    pub delay: Duration,
    /// The others take up to so long.
    pub latency: Duration,
}

impl Weather {
    pub const FINE: Self =
        Self { loss: 0, doubled: 0, delayed: 0, delay: Duration::ZERO, latency: Duration::from_millis(3) };
}

/// A host: a device, or a program that asks.
pub struct Host<O> {
    pub addr: Addresses,
    pub side: Side<O>,
    /// How many bytes its datagrams can have.
    pub frame: usize,
    pub is_up: bool,
}

pub enum Side<O> {
    Device(Box<Node<Vec<O>, STORE>>),
    Controller(Box<Controller>),
}

/// The addresses of a host: of one family or of both.
#[derive(Clone, Copy)]
pub struct Addresses {
    pub v4: Option<Ipv4Addr>,
    pub v6: Option<Ipv6Addr>,
}

/// The interface that all nodes are on.
const SCOPE: u32 = 3;

impl Addresses {
    pub fn v4(last: u8) -> Self {
        Self { v4: Some(Ipv4Addr::new(192, 0, 2, last)), v6: None }
    }

    pub fn v6(last: u8) -> Self {
        Self { v4: None, v6: Some(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, last.into())) }
    }

    pub fn both(last: u8) -> Self {
        Self { v6: Self::v6(last).v6, ..Self::v4(last) }
    }

    /// The address by which a controller knows the host.
    pub fn node(self) -> NodeAddr {
        self.sockets().next().expect("every host has an address").into()
    }

    fn sockets(self) -> impl Iterator<Item = SocketAddr> {
        let v6 = self.v6.map(|ip| SocketAddr::V6(SocketAddrV6::new(ip, 3610, 0, SCOPE)));
        self.v4.map(|ip| SocketAddr::from((ip, 3610))).into_iter().chain(v6)
    }

    fn of_family(self, other: IpAddr) -> Option<SocketAddr> {
        self.sockets().find(|addr| addr.is_ipv4() == other.is_ipv4())
    }
}

struct Datagram {
    to: usize,
    from: SocketAddr,
    arrival: Arrival,
    bytes: Vec<u8>,
}

pub struct Network<O> {
    pub now: Instant,
    pub random: Random,
    pub weather: Weather,
    pub hosts: Vec<Host<O>>,
    /// When, in which order, and where in `datagrams`.
    agenda: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    datagrams: Vec<Option<Datagram>>,
    free: Vec<usize>,
    sent: u64,
}

impl<O: Object> Network<O> {
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self {
            now: Instant::ZERO,
            random: Random::new(seed),
            weather,
            hosts: Vec::new(),
            agenda: BinaryHeap::new(),
            datagrams: Vec::new(),
            free: Vec::new(),
            sent: 0,
        }
    }

    pub fn add(&mut self, addr: Addresses, side: Side<O>) -> usize {
        self.hosts.push(Host { addr, side, frame: 1452, is_up: true });
        self.hosts.len() - 1
    }

    pub fn controller(&mut self, host: usize) -> &mut Controller {
        match &mut self.hosts[host].side {
            Side::Controller(controller) => controller,
            Side::Device(_) => panic!("host {host} is a device"),
        }
    }

    pub fn device(&mut self, host: usize) -> &mut Node<Vec<O>, STORE> {
        match &mut self.hosts[host].side {
            Side::Device(node) => node,
            Side::Controller(_) => panic!("host {host} is a controller"),
        }
    }

    /// Sends what the hosts have to send now.
    pub fn flush(&mut self) {
        for host in 0..self.hosts.len() {
            self.flush_host(host);
        }
    }

    fn flush_host(&mut self, host: usize) {
        let mut buffer = [0; 1452];
        let now = self.now;
        loop {
            let Host { side, frame, is_up, .. } = &mut self.hosts[host];
            if !*is_up {
                return;
            }
            let sent = match side {
                Side::Device(node) => node.poll_transmit(now, &mut buffer[..*frame]),
                Side::Controller(controller) => controller.poll_transmit(now, &mut buffer),
            };
            let Some((destination, size)) = sent else { return };
            self.send(host, destination, &buffer[..size]);
        }
    }

    /// When something happens next: a datagram comes, or a host has something to do.
    pub fn next(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter(|host| host.is_up).filter_map(|host| match &host.side {
            Side::Device(node) => node.poll_timeout(),
            Side::Controller(controller) => controller.poll_timeout(),
        });
        hosts.chain(self.agenda.peek().map(|Reverse((at, ..))| *at)).min()
    }

    /// Lets time pass until `until`, calling `watch` with the host that something may have happened at.
    pub fn run(&mut self, until: Instant, mut watch: impl FnMut(&mut Self, usize)) {
        self.flush();
        while let Some(at) = self.next().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            while let Some(Reverse((at, _, place))) = self.agenda.peek().copied().filter(|entry| entry.0.0 <= self.now)
            {
                debug_assert!(at <= self.now);
                self.agenda.pop();
                let datagram = self.datagrams[place].take().expect("what is on the agenda was sent");
                self.free.push(place);
                let host = datagram.to;
                self.deliver(datagram);
                self.flush_host(host);
                watch(self, host);
            }
            for host in 0..self.hosts.len() {
                let due = match &self.hosts[host].side {
                    Side::Device(node) => node.poll_timeout(),
                    Side::Controller(controller) => controller.poll_timeout(),
                };
                if due.is_some_and(|due| due <= self.now) {
                    self.flush_host(host);
                    watch(self, host);
                }
            }
        }
        self.now = until;
    }

    fn send(&mut self, host: usize, destination: Destination, bytes: &[u8]) {
        match destination {
            Destination::Unicast(to) => {
                assert_eq!(to.port(), 3610, "everything goes to 3610");
                let Some(from) = self.hosts[host].addr.of_family(to.ip()) else { return };
                let target = self.hosts.iter().position(|other| other.addr.sockets().any(|addr| addr == to));
                if let Some(target) = target {
                    self.carry(target, from, Arrival::Unicast, bytes);
                }
            }
            Destination::Multicast => {
                for target in 0..self.hosts.len() {
                    let addr = self.hosts[host].addr;
                    let heard = addr.sockets().find(|from| self.hosts[target].addr.of_family(from.ip()).is_some());
                    if let Some(from) = heard.filter(|_| target != host) {
                        self.carry(target, from, Arrival::Multicast, bytes);
                    }
                }
            }
        }
    }

    /// Puts a datagram on its way.
    fn carry(&mut self, to: usize, from: SocketAddr, arrival: Arrival, bytes: &[u8]) {
        let weather = self.weather;
        if self.random.percent(weather.loss) {
            return;
        }
        let copies = if self.random.percent(weather.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let most = if self.random.percent(weather.delayed) { weather.delay } else { weather.latency };
            let at = self.now + self.random.time(Duration::from_micros(200), most.max(Duration::from_micros(200)));
            let datagram = Some(Datagram { to, from, arrival, bytes: bytes.into() });
            let place = self.free.pop().unwrap_or(self.datagrams.len());
            if place == self.datagrams.len() {
                self.datagrams.push(datagram);
            } else {
                self.datagrams[place] = datagram;
            }
            self.sent += 1;
            self.agenda.push(Reverse((at, self.sent, place)));
        }
    }

    fn deliver(&mut self, datagram: Datagram) {
        let (now, to) = (self.now, datagram.to);
        let Host { side, frame, is_up, .. } = &mut self.hosts[to];
        if !*is_up {
            return;
        }
        let mut answers = Vec::new();
        match side {
            Side::Controller(controller) => controller.handle(now, datagram.from, &datagram.bytes),
            Side::Device(node) => {
                let mut buffer = [0; 1452];
                let mut out = Outbox::new(&mut buffer[..*frame], |to, bytes: &[u8]| answers.push((to, bytes.to_vec())));
                let handled = node.handle(now, datagram.from, datagram.arrival, &datagram.bytes, &mut out);
                assert!(!matches!(handled, Handled::Malformed(_)), "only frames are sent: {handled:?}");
            }
        }
        for (destination, bytes) in answers {
            self.send(to, destination, &bytes);
        }
    }
}
