//! Nodes, connections and disks in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::moves::{Data, Moving};
use super::oaths::Oaths;
use crate::cluster::random::Random;
use crate::cluster::{Action, Endpoint, Facts, Link, Machine, Millis, NodeId, PrimaryLink, Routing, Settings};

/// When all begins; the epoch of Unix would be mistaken for "never".
pub(super) const START: Millis = 1_700_000_000_000;

/// How connections are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Net {
    /// The least and the most time that bytes are on their way.
    pub(super) delay: (Millis, Millis),
    /// Of a million packets, so many break their connection.
    pub(super) resets: u64,
    /// So many arrive twice.
    pub(super) duplicates: u64,
    /// So many arrive in two pieces.
    pub(super) cuts: u64,
    /// So many are lost and sent again, for which what comes behind them waits.
    pub(super) losses: u64,
}

/// When TCP sends again what is lost: Linux' least.
const AGAIN: Millis = 200;

impl Net {
    pub(super) const GOOD: Self = Self { delay: (1, 3), resets: 0, duplicates: 0, cuts: 0, losses: 0 };
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tick { host: usize, serial: u64 },
    Arrive { conn: usize },
    Open { conn: usize },
    Bytes { conn: usize, end: usize, bytes: Bytes },
    Closed { conn: usize, end: usize },
    Paused { host: usize, number: u64 },
    Write,
    Pass { name: NodeId, end: usize },
}

#[derive(Debug)]
struct Conn {
    hosts: [usize; 2],
    lives: [u64; 2],
    links: [Option<Link>; 2],
    /// When the last bytes to each end arrive.
    last: [Millis; 2],
    /// Packets were lost, so later ones cannot arrive either.
    is_torn: bool,
}

/// One server.
#[derive(Debug)]
pub(super) struct Host {
    /// None while it is down.
    pub(super) machine: Option<Machine>,
    pub(super) routing: Arc<Routing>,
    pub(super) offset: u64,
    settings: Settings,
    /// How often it has been started.
    pub(super) life: u64,
    /// The data of its slots, and the arriving data of other nodes' slots.
    pub(super) data: Data,
    pub(super) arriving: BTreeMap<NodeId, Data>,
    conns: HashMap<Link, usize>,
    /// Its file, as it is after a crash of the system; and as it is after one of the process.
    disk: [String; 2],
    following: Option<usize>,
    primary_link: PrimaryLink,
    paused_until: Millis,
    tick: (Millis, u64),
    /// Nothing happens there until then.
    pub(super) frozen_until: Millis,
}

/// All of them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Millis,
    pub(super) hosts: Vec<Host>,
    pub(super) net: Net,
    pub(super) random: Random,
    pub(super) oaths: Oaths,
    /// The part of the network that a host is in, for each direction. Hosts in different parts cannot reach each other.
    pub(super) parts: Vec<u32>,
    /// Bytes and packets that were sent.
    pub(super) sent: (u64, u64),
    /// Voters forget that they have voted.
    pub(super) forgets_votes: bool,
    pub(super) moving: Moving,
    events: BinaryHeap<Reverse<(Millis, u64, Event)>>,
    serial: u64,
    conns: BTreeMap<usize, Conn>,
    next_conn: usize,
}

impl Host {
    fn new(at: usize, settings: &Settings) -> Self {
        Self {
            machine: None,
            routing: Arc::new(Routing::alone(Endpoint::of_new(NodeId::from_random(|| 0)))),
            offset: 1,
            settings: Settings { announce_ip: ip(at), ..settings.clone() },
            life: 0,
            data: Data::new(),
            arriving: BTreeMap::new(),
            conns: HashMap::new(),
            disk: [String::new(), String::new()],
            following: None,
            primary_link: PrimaryLink::Never,
            paused_until: 0,
            tick: (Millis::MAX, 0),
            frozen_until: 0,
        }
    }
}

impl World {
    /// Servers that are not started yet.
    pub(super) fn new(hosts: usize, settings: &Settings, net: Net, seed: u64) -> Self {
        Self {
            now: START,
            hosts: (0..hosts).map(|at| Host::new(at, settings)).collect(),
            net,
            random: Random::new([seed, 2, 3, 4]),
            oaths: Oaths::default(),
            parts: vec![0; hosts],
            sent: (0, 0),
            forgets_votes: false,
            moving: Moving::default(),
            events: BinaryHeap::new(),
            serial: 0,
            conns: BTreeMap::new(),
            next_conn: 0,
        }
    }

    /// One more server, which is not started yet.
    pub(super) fn add_host(&mut self, timeout: Millis) -> usize {
        let at = self.hosts.len();
        self.hosts.push(Host::new(at, &super::settings(timeout)));
        self.parts.push(0);
        at
    }

    /// Sets the content of a server's file.
    pub(super) fn write_disk(&mut self, host: usize, text: &str) {
        self.hosts[host].disk = [text.to_owned(), text.to_owned()];
    }

    /// Starts a server from its file.
    pub(super) fn start(&mut self, host: usize) {
        let seed = [(); 4].map(|()| self.random.next());
        let at = &mut self.hosts[host];
        assert!(at.machine.is_none(), "it is up");
        at.life += 1;
        (at.following, at.primary_link, at.tick) = (None, PrimaryLink::Never, (Millis::MAX, 0));
        at.paused_until = 0;
        let machine = Machine::new(at.settings.clone(), seed, Some(&at.disk[1]), self.now).expect("files are whole");
        at.machine = Some(machine);
        self.perform(host);
    }

    /// Ends a server's process, or its system.
    pub(super) fn crash(&mut self, host: usize, with_system: bool) {
        let at = &mut self.hosts[host];
        at.machine = None;
        if with_system {
            at.disk[1] = at.disk[0].clone();
        } else {
            at.disk[0] = at.disk[1].clone();
        }
        let mut conns: Vec<usize> = std::mem::take(&mut at.conns).into_values().collect();
        conns.sort_unstable();
        for conn in conns {
            self.tear(conn);
        }
        self.end_moves_of(host);
    }

    pub(super) fn is_up(&self, host: usize) -> bool {
        self.hosts[host].machine.is_some()
    }

    /// Does something to a server that is up.
    pub(super) fn tell<T>(&mut self, host: usize, act: impl FnOnce(&mut Machine, Millis) -> T) -> T {
        self.observe(host);
        let now = self.now;
        let result = act(self.hosts[host].machine.as_mut().expect("it is up"), now);
        self.perform(host);
        result
    }

    /// Puts hosts into parts of the network. Packets on their way between parts are lost.
    pub(super) fn split(&mut self, parts: Vec<u32>) {
        let is_healed = parts.iter().all(|part| *part == parts[0]);
        self.parts = parts;
        let torn: Vec<usize> = self.conns.iter().filter(|(_, conn)| conn.is_torn).map(|(at, _)| *at).collect();
        for conn in torn.into_iter().filter(|_| is_healed) {
            self.tear(conn);
        }
    }

    /// Lets `time` pass.
    pub(super) fn run(&mut self, time: Millis) {
        let end = self.now + time;
        while let Some(Reverse((at, _, _))) = self.events.peek()
            && *at <= end
        {
            let Reverse((at, _, event)) = self.events.pop().expect("there is one");
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    /// Lets time pass until something is so; how long that took. None if it never was.
    pub(super) fn wait(&mut self, limit: Millis, step: Millis, is_so: impl Fn(&Self) -> bool) -> Option<Millis> {
        let begin = self.now;
        while !is_so(self) {
            if self.now - begin >= limit {
                return None;
            }
            self.run(step);
        }
        Some(self.now - begin)
    }

    fn schedule(&mut self, at: Millis, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    pub(super) fn schedule_write(&mut self, delay: Millis) {
        self.schedule(self.now + delay, Event::Write);
    }

    pub(super) fn schedule_pass(&mut self, at: Millis, name: NodeId, end: usize) {
        self.schedule(at, Event::Pass { name, end });
    }

    fn happen(&mut self, event: Event) {
        if event == Event::Write {
            return self.write_somewhere();
        }
        let host = match &event {
            Event::Tick { host, .. } | Event::Paused { host, .. } => Some(*host),
            Event::Arrive { conn } => self.conns.get(conn).map(|conn| conn.hosts[1]),
            Event::Open { conn } => self.conns.get(conn).map(|conn| conn.hosts[0]),
            Event::Bytes { conn, end, .. } | Event::Closed { conn, end } => {
                self.conns.get(conn).map(|conn| conn.hosts[*end])
            }
            Event::Pass { name, end } => self.end_of_move(*name, *end),
            Event::Write => None,
        };
        let Some(host) = host else { return };
        if self.hosts[host].frozen_until > self.now {
            return self.schedule(self.hosts[host].frozen_until, event);
        }
        match event {
            Event::Tick { host, serial } => {
                if self.hosts[host].tick.1 == serial && self.is_up(host) {
                    self.hosts[host].tick.0 = Millis::MAX;
                    self.tell(host, Machine::tick);
                }
            }
            Event::Paused { host, number } => {
                if self.is_up(host) {
                    let offset = self.hosts[host].offset;
                    self.tell(host, |machine, now| machine.writes_paused(number, offset, now));
                }
            }
            Event::Arrive { conn } => self.arrive(conn),
            Event::Open { conn } => self.open(conn),
            Event::Bytes { conn, end, bytes } => self.deliver(conn, end, &bytes),
            Event::Closed { conn, end } => self.end_conn(conn, end),
            Event::Pass { name, end } => self.arrive_at_move(name, end),
            Event::Write => {}
        }
    }

    fn arrive(&mut self, conn: usize) {
        let at = &self.conns[&conn];
        let [from, to] = at.hosts;
        if self.parts[from] != self.parts[to] {
            self.conns.get_mut(&conn).expect("it is there").is_torn = true;
            return;
        }
        let now = self.now;
        let Some(machine) = &mut self.hosts[to].machine else { return self.tear(conn) };
        let Some(link) = machine.accept(&ip(from), &ip(to), now) else { return self.tear(conn) };
        let life = self.hosts[to].life;
        self.hosts[to].conns.insert(link, conn);
        let at = self.conns.get_mut(&conn).expect("it is there");
        (at.links[1], at.lives[1]) = (Some(link), life);
        let delay = self.delay();
        self.schedule(now + delay, Event::Open { conn });
    }

    fn open(&mut self, conn: usize) {
        let at = &self.conns[&conn];
        let [host, peer] = at.hosts;
        if at.lives[0] != self.hosts[host].life || !self.is_up(host) {
            return self.tear(conn);
        }
        if let Some(link) = at.links[0] {
            self.tell(host, |machine, now| machine.opened(link, &ip(peer), &ip(host), now));
        }
    }

    fn deliver(&mut self, conn: usize, end: usize, bytes: &Bytes) {
        let at = self.conns.get_mut(&conn).expect("it was looked for");
        let [from, to] = [at.hosts[1 - end], at.hosts[end]];
        if at.is_torn || self.parts[from] != self.parts[to] {
            at.is_torn = true;
            return;
        }
        let (life, link) = (at.lives[end], at.links[end]);
        if life != self.hosts[to].life || !self.is_up(to) {
            return;
        }
        let Some(link) = link else { return };
        let times = if self.chance(self.net.duplicates) { 2 } else { 1 };
        for _ in 0..times {
            let cut = if self.chance(self.net.cuts) { self.random.below(bytes.len() as u64) as usize } else { 0 };
            let (head, tail) = bytes.split_at(cut);
            for piece in [head, tail].into_iter().filter(|piece| !piece.is_empty()) {
                self.tell(to, |machine, now| machine.receive(link, piece, now));
            }
        }
        if self.forgets_votes
            && let Some(machine) = &mut self.hosts[to].machine
        {
            machine.forget_votes();
        }
    }

    fn end_conn(&mut self, conn: usize, end: usize) {
        let at = &self.conns[&conn];
        let (host, life) = (at.hosts[end], at.lives[end]);
        let link = at.links[end];
        if let Some(link) = link.filter(|_| life == self.hosts[host].life && self.is_up(host)) {
            self.hosts[host].conns.remove(&link);
            self.tell(host, |machine, now| machine.closed(link, false, now));
        }
        let at = self.conns.get_mut(&conn).expect("it is there");
        at.links[end] = None;
        if at.links == [None, None] {
            self.conns.remove(&conn);
        }
    }

    /// Both ends learn that a connection is no more.
    fn tear(&mut self, conn: usize) {
        let Some(at) = self.conns.get_mut(&conn) else { return };
        at.is_torn = true;
        for end in 0..2 {
            let delay = self.delay();
            self.schedule(self.now + delay, Event::Closed { conn, end });
        }
    }

    pub(super) fn delay(&mut self) -> Millis {
        let (least, most) = self.net.delay;
        least + self.random.below(most - least + 1)
    }

    fn chance(&mut self, per_million: u64) -> bool {
        per_million > 0 && self.random.below(1_000_000) < per_million
    }

    /// The data of a server as time goes by.
    fn observe(&mut self, host: usize) {
        let now = self.now;
        let at = &self.hosts[host];
        match at.following {
            Some(primary) => {
                let is_heard = self.is_up(primary)
                    && self.parts[primary] == self.parts[host]
                    && self.hosts[primary].frozen_until <= now;
                let offset = self.hosts[primary].offset;
                let at = &mut self.hosts[host];
                at.primary_link = match (is_heard, at.primary_link) {
                    (true, _) => PrimaryLink::Up { heard_at: now },
                    (false, PrimaryLink::Up { heard_at }) => PrimaryLink::Down { since: heard_at },
                    (false, link) => link,
                };
                if is_heard {
                    at.offset = offset;
                }
            }
            None => {
                let writes = at.routing.is_ok && now >= at.paused_until && at.machine.is_some();
                self.hosts[host].offset += u64::from(writes);
            }
        }
        let at = &mut self.hosts[host];
        let facts = Facts { offset: at.offset, primary_link: at.primary_link, ..Facts::default() };
        if let Some(machine) = &mut at.machine {
            machine.observe(facts);
        }
    }

    fn perform(&mut self, host: usize) {
        while let Some(action) = self.hosts[host].machine.as_mut().and_then(Machine::poll) {
            self.do_one(host, action);
        }
        let Some(deadline) = self.hosts[host].machine.as_ref().map(Machine::deadline) else { return };
        let deadline = deadline.max(self.now + 1);
        if deadline < self.hosts[host].tick.0 {
            let serial = self.serial + 1;
            self.hosts[host].tick = (deadline, serial);
            self.schedule(deadline, Event::Tick { host, serial });
        }
    }

    fn do_one(&mut self, host: usize, action: Action) {
        match action {
            Action::Connect { link, ip, .. } => self.connect(host, link, &ip),
            Action::Send { link, bytes } => self.send(host, link, bytes),
            Action::Close { link } => {
                if let Some(conn) = self.hosts[host].conns.remove(&link) {
                    let at = self.conns.get_mut(&conn).expect("it is there");
                    let end = usize::from(at.hosts[0] != host);
                    at.links[end] = None;
                    self.tear(conn);
                }
            }
            Action::Save { text, sync } => {
                if sync {
                    self.hosts[host].disk[0].clone_from(&text);
                }
                self.hosts[host].disk[1] = text;
            }
            Action::Follow { ip: address, .. } => {
                let primary = host_of(&address).filter(|primary| *primary < self.hosts.len());
                self.hosts[host].following = primary;
                self.hosts[host].primary_link = PrimaryLink::Never;
            }
            Action::Promote => self.hosts[host].following = None,
            Action::DeleteAll => self.hosts[host].offset = 0,
            Action::PauseWrites { number, until } => {
                self.hosts[host].paused_until = until;
                self.schedule(self.now + 1, Event::Paused { host, number });
            }
            Action::ResumeWrites => self.hosts[host].paused_until = 0,
            Action::Route(routing) => self.hosts[host].routing = routing,
            Action::Log(_, line) => self.oaths.log(self.now, host, line),
            Action::Move { name, order } => self.perform_move(host, name, order),
            Action::SlotsLost { slots, delete_keys: true } => self.lose_keys(host, &slots),
            Action::SlotsLost { .. } | Action::Publish { .. } => {}
        }
    }

    fn connect(&mut self, host: usize, link: Link, address: &str) {
        let target = host_of(address).filter(|target| *target < self.hosts.len());
        let conn = self.next_conn;
        self.next_conn += 1;
        let life = self.hosts[host].life;
        let hosts = [host, target.unwrap_or(host)];
        let at = Conn { hosts, lives: [life, 0], links: [Some(link), None], last: [0; 2], is_torn: false };
        self.conns.insert(conn, at);
        self.hosts[host].conns.insert(link, conn);
        if target.is_none() {
            return self.tear(conn);
        }
        let delay = self.delay();
        self.schedule(self.now + delay, Event::Arrive { conn });
    }

    fn send(&mut self, host: usize, link: Link, bytes: Bytes) {
        self.sent = (self.sent.0 + bytes.len() as u64, self.sent.1 + 1);
        let Some(conn) = self.hosts[host].conns.get(&link).copied() else { return };
        let end = usize::from(self.conns[&conn].hosts[0] == host);
        self.oaths.hear(&bytes, self.conns[&conn].hosts[end], self.now);
        if self.chance(self.net.resets) {
            return self.tear(conn);
        }
        let again = if self.chance(self.net.losses) { AGAIN } else { 0 };
        let delay = self.delay() + again;
        let now = self.now;
        let at = self.conns.get_mut(&conn).expect("ends are told of what is gone");
        if at.is_torn {
            return;
        }
        at.last[end] = at.last[end].max(now + delay);
        let when = at.last[end];
        self.schedule(when, Event::Bytes { conn, end, bytes });
    }
}

/// The address of a host.
pub(super) fn ip(host: usize) -> String {
    format!("10.0.{}.{}", host / 250, host % 250 + 1)
}

pub(super) fn host_of(ip: &str) -> Option<usize> {
    let mut parts = ip.split('.').skip(2).map(|part| part.parse::<usize>().ok());
    Some(parts.next()?? * 250 + parts.next()?? - 1)
}
