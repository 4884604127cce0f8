//! Fifty nodes and two controllers in a network that loses a fifth of everything, doubles, reorders and delays, while nodes
//! restart: every request ends in its own answer or in a clear timeout, and nothing grows without bound.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use echonet_lite::controller::{
    Answer, Config, Controller, Event, Failure, NodeAddr, Notification, Operation, Request, RequestError, RequestId,
    Status,
};
use echonet_lite::node::{self, Identity, Instant, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::{Eoj, PropertySet};

use crate::network::{Addresses, Network, STORE, Side, Weather};

const DEVICES: usize = 50;
const CONTROLLERS: [usize; 2] = [DEVICES, DEVICES + 1];
const LIGHTS: [Eoj; 2] = [Eoj::new(0x02, 0x90, 1), Eoj::new(0x02, 0x90, 2)];
const SENSOR: Eoj = Eoj::new(0x00, 0x11, 1);
const OBJECTS: [Eoj; 3] = [LIGHTS[0], LIGHTS[1], SENSOR];

/// Values that say whose they are and of when: E0 to E5.
const READABLE: [u8; 6] = [0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5];
/// Announced once per value by INFC, and once per value by INF.
const CONFIRMED: u8 = 0xE6;
const ANNOUNCED: u8 = 0xE7;
/// Takes what is written; refuses what is written; cannot be read though it is listed; is not there.
const WRITABLE: u8 = 0xF0;
const STUBBORN: u8 = 0xF1;
const UNREADABLE: u8 = 0xF2;
const ABSENT: u8 = 0xEF;

const MINUTES: u64 = 4;
const STEP: Duration = Duration::from_millis(20);
const STORM: Weather =
    Weather { loss: 20, doubled: 8, delayed: 8, delay: Duration::from_secs(8), latency: Duration::from_millis(40) };

/// An object whose every value names its node, itself, the property and the generation.
struct Thing {
    node: u8,
    eoj: Eoj,
    generations: HashMap<u8, u32>,
    written: u64,
    accepted: HashSet<u64>,
}

impl Thing {
    fn new(node: u8, eoj: Eoj) -> Self {
        Self { node, eoj, generations: HashMap::new(), written: 0, accepted: HashSet::new() }
    }

    fn generation(&self, epc: u8) -> u32 {
        self.generations.get(&epc).copied().unwrap_or(0)
    }

    fn value(&self, epc: u8) -> [u8; 9] {
        let [group, class, instance] = self.eoj.to_bytes();
        let [a, b, c, d] = self.generation(epc).to_be_bytes();
        [self.node, group, class, instance, epc, a, b, c, d]
    }
}

impl Object for Thing {
    fn eoj(&self) -> Eoj {
        self.eoj
    }

    fn access(&self) -> &PropertyAccess {
        const ACCESS: PropertyAccess = PropertyAccess::new(
            &[0x80, 0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, CONFIRMED, ANNOUNCED, WRITABLE, UNREADABLE],
            &[WRITABLE, STUBBORN],
            &[ANNOUNCED],
        );
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            0x80 => put(edt, &[0x30]),
            WRITABLE => put(edt, &self.written.to_be_bytes()),
            UNREADABLE => Err(Refused::NotNow),
            _ => put(edt, &self.value(epc)),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        let Ok(value) = edt.try_into().map(u64::from_be_bytes) else { return Err(Refused::Length) };
        if epc != WRITABLE {
            return Err(Refused::Value);
        }
        self.written = value;
        self.accepted.insert(value);
        Ok(())
    }
}

/// A request, and the state at its time.
struct Asked {
    /// The number of the node; past the last one, it does not exist.
    node: usize,
    eoj: Eoj,
    reads: Vec<u8>,
    write: Option<(u8, u64)>,
    is_confirmed: bool,
    /// The generations of E0 to E5 when it was asked.
    generations: [u32; 6],
    at: Instant,
}

#[derive(Debug, Default)]
struct Tally {
    answers: u64,
    timeouts: u64,
    unsent: u64,
    gathered: u64,
    refused_before: u64,
    cancelled: u64,
    notifications: u64,
    confirmed: u64,
}

struct World {
    network: Network<Thing>,
    asked: HashMap<(usize, RequestId), Asked>,
    heard: HashSet<(usize, [u8; 9])>,
    tally: Tally,
    down: Vec<(Instant, usize)>,
    last_confirmed: [Instant; DEVICES],
    footprint: usize,
}

fn address(node: usize) -> Addresses {
    // The last ten have IPv6 only.
    if node < 40 { Addresses::v4(100 + node as u8) } else { Addresses::v6(100 + node as u8) }
}

fn device(node: usize, seed: u64, things: Vec<Thing>) -> Side<Thing> {
    let mut config = node::Config::new(Identity::new([0, 0, 1], node as u64 + 1));
    config.seed = seed;
    if node % 7 == 3 {
        config.set_get = node::SetGet::Refused;
    }
    Side::Device(Box::new(Node::<_, STORE>::with_store(config, things)))
}

impl World {
    fn new(seed: u64) -> Self {
        let mut network = Network::new(seed, STORM);
        for node in 0..DEVICES {
            let things = OBJECTS.iter().map(|eoj| Thing::new(node as u8, *eoj)).collect();
            let host = network.add(address(node), device(node, seed + node as u64, things));
            // Some can send no more than a few properties at a time.
            network.hosts[host].frame = if node % 5 == 4 { 70 } else { 1452 };
        }
        for (number, _) in CONTROLLERS.iter().enumerate() {
            let mut config = Config::new(seed + number as u64);
            config.window = [1, 4][number];
            config.refusal_memory = Duration::from_secs(30);
            let controller = Box::new(Controller::new(config));
            network.add(Addresses::both(1 + number as u8), Side::Controller(controller));
        }
        Self {
            network,
            asked: HashMap::new(),
            heard: HashSet::new(),
            tally: Tally::default(),
            down: Vec::new(),
            last_confirmed: [Instant::ZERO; DEVICES],
            footprint: 0,
        }
    }

    fn thing(&mut self, node: usize, eoj: Eoj) -> &mut Thing {
        let things = self.network.device(node).objects_mut();
        things.iter_mut().find(|thing| thing.eoj == eoj).expect("all nodes have the same objects")
    }

    /// Makes some request of the many kinds.
    fn ask(&mut self, controller: usize) {
        let random = &mut self.network.random;
        let node = random.below(DEVICES as u64 + 1) as usize;
        let eoj = *random.pick(&OBJECTS);
        let kind = random.below(12);
        let start = random.below(6) as usize;
        let mut reads: Vec<u8> =
            READABLE.iter().cycle().skip(start).take(1 + random.below(6) as usize).copied().collect();
        let value = random.next();
        let mut write = None;
        match kind {
            0..=3 => reads.truncate(1),
            4 | 5 => reads.push(WRITABLE),
            6 => reads.push(ABSENT),
            7 => reads.push(UNREADABLE),
            8 | 9 => write = Some((WRITABLE, value)),
            _ => write = Some((*random.pick(&[WRITABLE, STUBBORN]), value)),
        }
        if matches!(kind, 8 | 10 | 11) {
            reads.clear();
        }
        let edt = value.to_be_bytes();
        let writes = [(write.map_or(0, |(epc, _)| epc), &edt[..])];
        let operation = match kind {
            3 => Operation::InfReq(&reads),
            0..=7 => Operation::Get(&reads),
            9 => Operation::SetGet(&writes, &reads),
            8 | 10 => Operation::SetC(&writes),
            _ => Operation::SetI(&writes),
        };
        let request = Request::new(eoj, operation);
        let is_confirmed = !matches!(request.operation, Operation::SetI(_));
        let addr = address(node).node();
        let now = self.network.now;
        match self.network.controller(CONTROLLERS[controller]).request(now, addr, &request) {
            Ok(id) => {
                let generations =
                    if node < DEVICES { READABLE.map(|epc| self.thing(node, eoj).generation(epc)) } else { [0; 6] };
                let asked = Asked { node, eoj, reads, write, is_confirmed, generations, at: now };
                assert!(self.asked.insert((controller, id), asked).is_none(), "identifiers are not used twice");
            }
            Err(error) => assert_eq!(error, RequestError::NodeFull),
        }
    }

    /// Cancels some request.
    fn cancel(&mut self, controller: usize) {
        let some = self.asked.keys().filter(|(of, _)| *of == controller).map(|(_, id)| *id);
        // Hash maps have no order that repeats itself.
        let Some(id) = some.min_by_key(|id| id.index()) else { return };
        let now = self.network.now;
        assert!(self.network.controller(CONTROLLERS[controller]).cancel(now, id));
        assert!(!self.network.controller(CONTROLLERS[controller]).cancel(now, id), "it is cancelled already");
        self.asked.remove(&(controller, id));
        self.tally.cancelled += 1;
    }

    /// Lets values change, be announced, and nodes come and go.
    fn live(&mut self) {
        let now = self.network.now;
        let node = self.network.random.below(DEVICES as u64) as usize;
        let eoj = *self.network.random.pick(&OBJECTS);
        let epc = *self.network.random.pick(&READABLE);
        *self.thing(node, eoj).generations.entry(epc).or_default() += 1;
        if !self.network.hosts[node].is_up {
            return;
        }
        if self.network.random.percent(10) {
            *self.thing(node, eoj).generations.entry(ANNOUNCED).or_default() += 1;
            self.network.device(node).notify(eoj, ANNOUNCED).expect("the store is large");
            self.network.flush();
        }
        if self.network.random.percent(10) && now.since(self.last_confirmed[node]) > Duration::from_secs(60) {
            self.last_confirmed[node] = now;
            *self.thing(node, eoj).generations.entry(CONFIRMED).or_default() += 1;
            let host = *self.network.random.pick(&CONTROLLERS);
            let to = self.network.hosts[host].addr;
            let to = if node < 40 { to.v4.map(IpAddr::V4) } else { to.v6.map(IpAddr::V6) };
            let to = NodeAddr::new(to.expect("controllers have both"), 3).at(3610);
            self.network
                .device(node)
                .notify_confirmed(to, Eoj::CONTROLLER, eoj, CONFIRMED)
                .expect("the store is large");
        }
        if self.network.random.percent(1) {
            self.network.hosts[node].is_up = false;
            let back = self.network.random.time(Duration::from_secs(1), Duration::from_secs(30));
            self.down.push((now + back, node));
        }
    }

    /// Starts the nodes again whose time has come.
    fn restart(&mut self) {
        let now = self.network.now;
        let (back, down) = self.down.drain(..).partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.down = down;
        for (_, node) in back {
            let things = core::mem::take(self.network.device(node).objects_mut());
            let seed = self.network.random.next();
            self.network.hosts[node].side = device(node, seed, things);
            self.network.hosts[node].is_up = true;
        }
    }

    /// Takes and checks all events.
    fn take(&mut self) {
        for (number, host) in CONTROLLERS.into_iter().enumerate() {
            self.footprint = self.footprint.max(self.network.controller(host).footprint());
            while let Some(event) = self.network.controller(host).poll_event() {
                match event {
                    Event::Done { id, result } => {
                        let asked = self.asked.remove(&(number, id)).expect("a request ends once");
                        self.check_end(&asked, result);
                    }
                    Event::Gathered { answer, .. } => self.check_gathered(&answer),
                    Event::Notification(notification) => self.check_notification(number, &notification),
                    // In the next life it may say the same again; a late copy of its start looks like one.
                    Event::NodeAnnounced(addr) => {
                        self.heard.retain(|(of, value)| *of != number || address(value[0].into()).node() != addr);
                    }
                    Event::Missed(count) => panic!("{count} events were not taken in time"),
                    _ => {}
                }
            }
        }
    }

    fn check_end(&mut self, asked: &Asked, result: Result<Answer, Failure>) {
        let waited = self.network.now.since(asked.at);
        assert!(waited < Duration::from_secs(300), "{waited:?}");
        let answer = match result {
            Ok(answer) => answer,
            Err(Failure::TimedOut { tries, waited: told }) => {
                assert!(tries >= 1 && told <= waited, "{tries} tries, {told:?} of {waited:?}");
                self.tally.timeouts += 1;
                return;
            }
            Err(Failure::NodeSilent { .. }) => {
                self.tally.unsent += 1;
                return;
            }
            Err(failure) => panic!("{failure}"),
        };
        self.tally.answers += 1;
        assert_eq!((answer.node, answer.eoj), (address(asked.node).node(), asked.eoj));
        let outcomes = answer.outcomes();
        let mut reads = asked.reads.clone();
        let mut write = asked.write;
        let mut whole_refused = asked.node % 7 == 3 && asked.write.is_some() && !asked.reads.is_empty();
        for outcome in outcomes {
            if outcome.written {
                let (epc, value) = write.take().expect("as much was asked");
                assert_eq!(epc, outcome.epc);
                if outcome.is_ok() && asked.is_confirmed {
                    assert!(self.thing(asked.node, asked.eoj).accepted.contains(&value));
                    whole_refused = false;
                }
                let may_fail = epc == STUBBORN || whole_refused;
                assert!(outcome.is_ok() || may_fail, "{outcome:?}");
                assert!(outcome.status != Status::Done || epc != STUBBORN || !asked.is_confirmed, "{outcome:?}");
                continue;
            }
            let place = reads.iter().position(|epc| *epc == outcome.epc).expect("it was asked, once");
            let epc = reads.swap_remove(place);
            match (epc, outcome.status) {
                (ABSENT | UNREADABLE, Status::KnownRefused) => self.tally.refused_before += 1,
                (ABSENT | UNREADABLE, Status::Refused) => {}
                (_, Status::Refused) if whole_refused => {}
                (WRITABLE, Status::Done) => {}
                (_, Status::Done) => self.check_value(asked, epc, outcome.value.expect("what was read has a value")),
                _ => panic!("{outcome:?} of node {} {}", asked.node, asked.eoj),
            }
        }
        assert!(reads.is_empty() && write.is_none(), "all that was asked has an outcome");
    }

    /// The value is that of the node, object and property, and not older than the question.
    fn check_value(&mut self, asked: &Asked, epc: u8, value: &[u8]) {
        let now = self.thing(asked.node, asked.eoj).value(epc);
        assert_eq!(value[..5], now[..5], "somebody else's value");
        let generation = |value: &[u8]| u32::from_be_bytes(value[5..].try_into().expect("four bytes"));
        let then = asked.generations[usize::from(epc - 0xE0)];
        assert!((then..=generation(&now)).contains(&generation(value)), "a value of another time");
    }

    fn check_gathered(&mut self, answer: &Answer) {
        self.tally.gathered += 1;
        let Some(value) = answer.get(0xE0) else { return };
        let node = usize::from(value[0]);
        assert_eq!(answer.node, address(node).node());
        assert_eq!(value[1..4], answer.eoj.to_bytes());
    }

    /// Checks that a notification is of the node it names, and does not come twice in a life.
    fn check_notification(&mut self, controller: usize, notification: &Notification) {
        for (epc, value) in notification.properties() {
            if epc != ANNOUNCED && epc != CONFIRMED {
                continue;
            }
            let value: [u8; 9] = value.try_into().expect("nine bytes");
            assert_eq!(notification.node, address(usize::from(value[0])).node());
            assert_eq!((&value[1..4], value[4]), (&notification.eoj.to_bytes()[..], epc));
            assert_eq!(notification.confirmed, epc == CONFIRMED);
            assert!(self.heard.insert((controller, value)), "{notification} is no news");
            self.tally.notifications += 1;
            self.tally.confirmed += u64::from(notification.confirmed);
        }
    }
}

fn simulate(seed: u64) -> World {
    let mut world = World::new(seed);
    let end = Instant::ZERO + Duration::from_secs(60 * MINUTES);
    for host in CONTROLLERS {
        world.network.controller(host).discover(Instant::ZERO).expect("there is room");
    }
    while world.network.now < end {
        for controller in 0..CONTROLLERS.len() {
            if world.network.random.percent(60) {
                world.ask(controller);
            }
            if world.network.random.percent(1) {
                world.cancel(controller);
            }
        }
        if world.network.random.percent(1) {
            let host = *world.network.random.pick(&CONTROLLERS);
            let now = world.network.now;
            let all_lights = Request::get(LIGHTS[0].with_instance(0), &[0xE0]);
            world.network.controller(host).request_all(now, &all_lights).expect("there is room");
        }
        world.live();
        world.restart();
        let until = world.network.now + STEP;
        world.network.run(until, |_, _| {});
        world.take();
    }
    world
}

/// Lets everything come to its end.
fn settle(world: &mut World) {
    world.network.weather = Weather::FINE;
    let patience = world.network.now + Duration::from_secs(3600);
    while CONTROLLERS.into_iter().any(|host| world.network.controller(host).outstanding() > 0) {
        assert!(world.network.now < patience, "some requests do not end");
        let until = world.network.now + Duration::from_secs(1);
        world.network.run(until, |_, _| {});
        world.restart();
        world.take();
    }
    assert!(world.asked.is_empty(), "{} requests ended without a word", world.asked.len());
}

/// Both controllers know all nodes as they are.
fn check_knowledge(world: &mut World) {
    let now = world.network.now;
    for host in CONTROLLERS {
        world.network.controller(host).discover(now).expect("there is room");
    }
    world.network.run(now + Duration::from_secs(120), |_, _| {});
    world.take();
    let readable = PropertySet::of(&[0x80, 0x9D, 0x9E, 0x9F, 0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, CONFIRMED, ANNOUNCED])
        .union(PropertySet::of(&[WRITABLE, UNREADABLE]));
    for host in CONTROLLERS {
        for node in 0..DEVICES {
            let info = world.network.controller(host).node(address(node).node()).expect("it was found");
            assert!(info.is_ready, "{info:?}");
            let mut objects = OBJECTS;
            objects.sort();
            assert_eq!(info.objects.iter().map(|object| object.eoj).collect::<Vec<_>>(), objects);
            assert_eq!((info.maker, info.instance_count), (Some([0, 0, 1]), Some(3)));
            let maps = info.maps(SENSOR).expect("it was asked");
            assert_eq!(maps.readable, readable);
            assert_eq!(maps.writable, PropertySet::of(&[WRITABLE, STUBBORN]));
            assert!(info.profile_maps.expect("it was asked").readable.contains(0xD6));
        }
        assert_eq!(world.network.controller(host).nodes().count(), DEVICES + 1, "and the one that does not exist");
    }
}

fn check(seed: u64) {
    let mut world = simulate(seed);
    settle(&mut world);
    check_knowledge(&mut world);
    let tally = &world.tally;
    assert!(tally.answers > 8_000 && tally.timeouts > 500 && tally.gathered > 4_000, "{seed}: {}", tally.answers);
    assert!(tally.refused_before > 100 && tally.notifications > 1_000 && tally.confirmed > 80 && tally.cancelled > 100);
    assert!(world.footprint < 4 << 20, "{} bytes", world.footprint);
    for host in CONTROLLERS {
        let statistics = world.network.controller(host).statistics();
        assert!(statistics.late > 50 && statistics.repeated > 500 && statistics.malformed == 0, "{statistics:?}");
    }
}

#[test]
fn every_request_ends_with_its_own_answer_or_in_a_clear_timeout() {
    for seed in 1..=4 {
        check(seed);
    }
}

#[test]
fn the_same_seed_is_the_same_story() {
    let tell = |seed| {
        let mut world = simulate(seed);
        CONTROLLERS.map(|host| world.network.controller(host).statistics())
    };
    assert_eq!(tell(99), tell(99));
}
