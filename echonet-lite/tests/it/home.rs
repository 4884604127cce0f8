//! A day at home in virtual time: a smart meter, an air conditioner, two lights and a storage battery do what a script says,
//! and a controller sees exactly that: values, notifications, announcements, outages, a change of address.

use std::time::Duration;

use echonet_lite::controller::{Config, Controller, Event, Failure, NodeAddr, Request, RequestId};
use echonet_lite::node::{self, CommonProperties, Identity, Instant, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

use crate::network::{Addresses, Network, STORE, Side, Weather};

const METER: Eoj = Eoj::new(0x02, 0x88, 1);
const AIR_CONDITIONER: Eoj = Eoj::new(0x01, 0x30, 1);
const LIGHTS: [Eoj; 2] = [Eoj::new(0x02, 0x90, 1), Eoj::new(0x02, 0x90, 2)];
const BATTERY: Eoj = Eoj::new(0x02, 0x7D, 1);

/// The hosts of the network, in order.
const OBJECTS: [&[Eoj]; 4] = [&[METER], &[AIR_CONDITIONER], &LIGHTS, &[BATTERY]];
const METER_HOST: usize = 0;
const AIR_CONDITIONER_HOST: usize = 1;
const LIGHTS_HOST: usize = 2;
const BATTERY_HOST: usize = 3;
const GATEWAY: usize = 4;

const ON: u8 = 0x30;
const OFF: u8 = 0x31;

/// A moment of the day in half minutes, which the script counts in.
const fn at(hour: u32, minute: u32) -> u32 {
    (hour * 60 + minute) * 2
}

const DAY: u32 = at(24, 0);
const HALF_MINUTE: Duration = Duration::from_secs(30);

/// The events that the gateway does not cause.
#[derive(Clone, Copy)]
enum Happening {
    /// An inhabitant uses the switch of a light.
    Switch(usize, u8),
    /// The battery begins to charge (42), discharge (43), or idles (44); announced.
    Battery(u8),
    /// The air conditioner has a fault (41) or none any more (42); it insists that the gateway knows.
    Fault(u8),
    /// A host loses power, or has it again.
    Power(usize, bool),
    /// The router gives the battery another address.
    Moves,
}

const SCRIPT: [(u32, Happening); 17] = [
    (at(3, 0) + 1, Happening::Power(METER_HOST, false)),
    (at(3, 1) + 1, Happening::Power(METER_HOST, true)),
    (at(6, 30), Happening::Switch(0, ON)),
    (at(8, 0), Happening::Switch(0, OFF)),
    (at(10, 0), Happening::Battery(0x42)),
    (at(13, 0), Happening::Fault(0x41)),
    (at(13, 20), Happening::Fault(0x42)),
    (at(13, 29) + 1, Happening::Power(AIR_CONDITIONER_HOST, false)),
    (at(13, 39) + 1, Happening::Power(AIR_CONDITIONER_HOST, true)),
    (at(15, 0), Happening::Moves),
    (at(17, 45), Happening::Switch(0, ON)),
    (at(18, 0), Happening::Switch(1, ON)),
    (at(18, 0), Happening::Battery(0x43)),
    (at(22, 0), Happening::Switch(1, OFF)),
    (at(23, 0), Happening::Battery(0x44)),
    (at(23, 10), Happening::Switch(0, OFF)),
    (at(23, 30), Happening::Switch(0, ON)),
];

/// The gateway's writes to the air conditioner: operation, mode, temperature.
const COMFORT: [(u32, u8, u8, u8); 4] =
    [(at(6, 0), ON, 0x43, 22), (at(9, 0), OFF, 0x43, 22), (at(17, 0), ON, 0x43, 21), (at(22, 30), OFF, 0x43, 18)];

/// Cumulative energy in tenths of a kilowatt hour: more in the evening.
fn energy(time: u32) -> u32 {
    let evening = time.saturating_sub(at(17, 0)).min(at(6, 0));
    123_456 + time / 20 + evening / 5
}

/// Power in watts; the battery makes it negative around noon.
fn power(time: u32) -> i32 {
    let minute = (time / 2) as i32;
    if (660..780).contains(&minute) { -(minute % 60) * 10 } else { 200 + minute % 97 }
}

fn room_temperature(time: u32) -> u8 {
    18 + (time / at(4, 0)) as u8
}

fn charge(time: u32) -> u8 {
    (20 + time * 70 / DAY) as u8
}

/// An appliance whose measurements follow the clock.
struct Appliance {
    eoj: Eoj,
    common: CommonProperties,
    time: u32,
    mode: u8,
    temperature: u8,
    working: u8,
}

impl Appliance {
    fn new(eoj: Eoj) -> Self {
        let mut common = CommonProperties::new([0, 0, 0x16]);
        common.on = eoj.group() != 0x02 || eoj.class() != 0x90;
        Self { eoj, common, time: 0, mode: 0x41, temperature: 20, working: 0x44 }
    }
}

const METER_ACCESS: PropertyAccess =
    CommonProperties::ACCESS.union(PropertyAccess::new(&[0xD3, 0xD7, 0xE0, 0xE1, 0xE2, 0xE7, 0xEA], &[0xE5], &[0xEA]));
const AIR_CONDITIONER_ACCESS: PropertyAccess =
    CommonProperties::ACCESS.union(PropertyAccess::new(&[0xB0, 0xB3, 0xBB], &[0xB0, 0xB3], &[0xB0]));
const LIGHT_ACCESS: PropertyAccess = CommonProperties::ACCESS;
const BATTERY_ACCESS: PropertyAccess = CommonProperties::ACCESS.union(PropertyAccess::new(&[0xCF, 0xE4], &[], &[0xCF]));

impl Object for Appliance {
    fn eoj(&self) -> Eoj {
        self.eoj
    }

    fn access(&self) -> &PropertyAccess {
        match (self.eoj.group(), self.eoj.class()) {
            (0x02, 0x88) => &METER_ACCESS,
            (0x01, 0x30) => &AIR_CONDITIONER_ACCESS,
            (0x02, 0x90) => &LIGHT_ACCESS,
            _ => &BATTERY_ACCESS,
        }
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match (self.eoj, epc) {
            (METER, 0xD3) => put(edt, &1u32.to_be_bytes()),
            (METER, 0xD7) => put(edt, &[6]),
            (METER, 0xE0) => put(edt, &energy(self.time).to_be_bytes()),
            // Counted in tenths of a kilowatt hour.
            (METER, 0xE1) => put(edt, &[0x01]),
            (METER, 0xE2) => {
                let mut history = [0; 194];
                for (half_hour, entry) in history[2..].chunks_exact_mut(4).enumerate() {
                    let then = half_hour as u32 * at(0, 30);
                    entry.copy_from_slice(&if then <= self.time { energy(then) } else { 0xFFFF_FFFE }.to_be_bytes());
                }
                put(edt, &history)
            }
            (METER, 0xE7) => put(edt, &power(self.time).to_be_bytes()),
            (METER, 0xEA) => put(edt, &reading(self.time)),
            (AIR_CONDITIONER, 0xB0) => put(edt, &[self.mode]),
            (AIR_CONDITIONER, 0xB3) => put(edt, &[self.temperature]),
            (AIR_CONDITIONER, 0xBB) => put(edt, &[room_temperature(self.time)]),
            (BATTERY, 0xCF) => put(edt, &[self.working]),
            (BATTERY, 0xE4) => put(edt, &[charge(self.time)]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match (self.eoj, epc, edt) {
            (AIR_CONDITIONER, 0xB0, [mode @ 0x40..=0x45]) => self.mode = *mode,
            (AIR_CONDITIONER, 0xB3, [temperature @ 0..=50]) => self.temperature = *temperature,
            (AIR_CONDITIONER, 0xB0 | 0xB3, _) => return Err(Refused::Value),
            _ => return self.common.set(epc, edt),
        }
        Ok(())
    }
}

/// The reading that the meter announces every half hour: date, time and cumulative energy.
fn reading(time: u32) -> [u8; 11] {
    let time = time - time % at(0, 30);
    let (hour, minute) = ((time / at(1, 0)) as u8, (time / 2 % 60) as u8);
    let [a, b, c, d] = energy(time).to_be_bytes();
    [0x07, 0xEA, 11, 21, hour, minute, 0, a, b, c, d]
}

/// The events that the gateway has seen, each with its half minute.
#[derive(Debug, Default, PartialEq, Eq)]
struct Diary {
    /// Object, property, value, and whether confirmed.
    notifications: Vec<(u32, Eoj, u8, Vec<u8>, bool)>,
    /// Hosts that announced themselves.
    announcements: Vec<(u32, NodeAddr)>,
    moves: Vec<(u32, NodeAddr, NodeAddr)>,
    failures: Vec<(u32, Eoj)>,
}

struct Home {
    network: Network<Appliance>,
    time: u32,
    asked: Vec<(RequestId, u32, Eoj)>,
    diary: Diary,
    values: u32,
}

fn addresses(host: usize) -> Addresses {
    Addresses::v4(10 + host as u8)
}

const NEW_BATTERY_ADDRESS: u8 = 99;

fn power_up(host: usize, appliances: Vec<Appliance>) -> Side<Appliance> {
    let config = node::Config::new(Identity::new([0, 0, 0x16], 1000 + host as u64));
    Side::Device(Box::new(Node::<_, STORE>::with_store(config, appliances)))
}

impl Home {
    fn new(seed: u64) -> Self {
        // A home network loses little; doubled datagrams come from its repeaters.
        let mut network = Network::new(seed, Weather { doubled: 10, ..Weather::FINE });
        network.add_hosts();
        Self { network, time: 0, asked: Vec::new(), diary: Diary::default(), values: 0 }
    }

    /// A half minute.
    fn tick(&mut self) {
        for host in 0..OBJECTS.len() {
            let time = self.time;
            self.network.device(host).objects_mut().iter_mut().for_each(|appliance| appliance.time = time);
        }
        for (time, happening) in SCRIPT {
            if time == self.time {
                self.happen(happening);
            }
        }
        if self.time > 0 && self.time.is_multiple_of(at(0, 30)) {
            self.network.device(METER_HOST).notify(METER, 0xEA).expect("there is room");
        }
        self.poll();
        let until = Instant::ZERO + HALF_MINUTE * (self.time + 1);
        self.network.run(until, |_, _| {});
        self.take();
        self.time += 1;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Switch(light, state) => {
                let lights = self.network.device(LIGHTS_HOST);
                lights.objects_mut()[light].common.on = state == ON;
                lights.notify(LIGHTS[light], 0x80).expect("there is room");
            }
            Happening::Battery(working) => {
                let battery = self.network.device(BATTERY_HOST);
                battery.objects_mut()[0].working = working;
                battery.notify(BATTERY, 0xCF).expect("there is room");
            }
            Happening::Fault(fault) => {
                let gateway = addresses(GATEWAY).node().at(3610);
                let air_conditioner = self.network.device(AIR_CONDITIONER_HOST);
                air_conditioner.objects_mut()[0].common.fault = fault == 0x41;
                let told = air_conditioner.notify_confirmed(gateway, Eoj::CONTROLLER, AIR_CONDITIONER, 0x88);
                told.expect("there is room");
            }
            Happening::Power(host, is_on) => {
                if is_on {
                    let appliances = core::mem::take(self.network.device(host).objects_mut());
                    self.network.hosts[host].side = power_up(host, appliances);
                }
                self.network.hosts[host].is_up = is_on;
            }
            Happening::Moves => {
                self.network.hosts[BATTERY_HOST].addr = Addresses::v4(NEW_BATTERY_ADDRESS);
                self.network.device(BATTERY_HOST).address_changed();
            }
        }
    }

    fn address(&self, host: usize) -> NodeAddr {
        self.network.hosts[host].addr.node()
    }

    /// The gateway's requests and writes.
    fn poll(&mut self) {
        let write = COMFORT.into_iter().find(|(time, ..)| *time == self.time);
        if let Some((_, operation, mode, temperature)) = write {
            let (operation, mode, temperature) = ([operation], [mode], [temperature]);
            let writes = [(0x80, &operation[..]), (0xB0, &mode[..]), (0xB3, &temperature[..])];
            self.ask(AIR_CONDITIONER_HOST, &Request::set(AIR_CONDITIONER, &writes));
        }
        let time = self.time;
        let every = |period: u32| time.is_multiple_of(period);
        let [minutely, often, now_and_then] = [every(at(0, 1)), every(at(0, 5)), every(at(0, 10))];
        if minutely {
            self.ask(METER_HOST, &Request::get(METER, &[0xE0, 0xE7]));
        }
        if often {
            self.ask(AIR_CONDITIONER_HOST, &Request::get(AIR_CONDITIONER, &[0x80, 0xB0, 0xB3, 0xBB]));
        }
        if now_and_then {
            self.ask(BATTERY_HOST, &Request::get(BATTERY, &[0xCF, 0xE4]));
            LIGHTS.into_iter().for_each(|light| self.ask(LIGHTS_HOST, &Request::get(light, &[0x80])));
        }
        if every(at(6, 0)) {
            self.ask(METER_HOST, &Request::get(METER, &[0xE2]));
        }
    }

    fn ask(&mut self, host: usize, request: &Request<'_>) {
        let (now, node) = (self.network.now, self.address(host));
        let id = self.network.controller(GATEWAY).request(now, node, request).expect("there is room");
        self.asked.push((id, self.time, request.eoj));
    }

    fn take(&mut self) {
        while let Some(event) = self.network.controller(GATEWAY).poll_event() {
            match event {
                Event::Done { id, result } => {
                    let place = self.asked.iter().position(|(asked, ..)| *asked == id).expect("it was asked");
                    let (_, since, eoj) = self.asked.swap_remove(place);
                    match result {
                        Ok(answer) => {
                            assert!(answer.is_ok(), "{answer}");
                            for outcome in answer.outcomes().filter(|outcome| !outcome.written) {
                                let value = outcome.value.expect("it was read");
                                self.check_value(since, eoj, outcome.epc, value);
                            }
                        }
                        Err(Failure::TimedOut { tries: 3, .. }) => self.diary.failures.push((since, eoj)),
                        Err(failure) => panic!("{failure}"),
                    }
                }
                Event::Notification(notification) => {
                    for (epc, value) in notification.properties().filter(|(epc, _)| *epc != 0xD5) {
                        let (eoj, confirmed) = (notification.eoj, notification.confirmed);
                        self.diary.notifications.push((self.time, eoj, epc, value.to_vec(), confirmed));
                    }
                }
                Event::NodeAnnounced(node) => self.diary.announcements.push((self.time, node)),
                Event::NodeMoved { from, to } => self.diary.moves.push((self.time, from, to)),
                Event::Missed(count) => panic!("{count} events were not taken"),
                _ => {}
            }
        }
    }

    /// The value is what the script says, of a moment between the question and now.
    fn check_value(&mut self, since: u32, eoj: Eoj, epc: u8, value: &[u8]) {
        self.values += 1;
        let is_right = (since..=self.time).any(|time| value == scripted(time, eoj, epc));
        assert!(is_right, "{eoj} {epc:02X} is {value:02X?} after {} minutes", self.time / 2);
    }
}

/// The value that a property has at a moment.
fn scripted(time: u32, eoj: Eoj, epc: u8) -> Vec<u8> {
    let last_write = COMFORT.iter().rfind(|(written, ..)| *written <= time);
    let &(_, operation, mode, temperature) = last_write.unwrap_or(&(0, ON, 0x41, 20));
    let happened = |of: fn(Happening) -> Option<u8>| {
        let before = SCRIPT.iter().filter(|(then, _)| *then <= time);
        before.filter_map(|(_, happening)| of(*happening)).next_back()
    };
    match (eoj, epc) {
        (METER, 0xE0) => energy(time).to_be_bytes().to_vec(),
        (METER, 0xE7) => power(time).to_be_bytes().to_vec(),
        (METER, 0xE2) => {
            let entries = (0..48).map(|half_hour| half_hour * at(0, 30));
            let entries = entries.map(|then| if then <= time { energy(then) } else { 0xFFFF_FFFE });
            [0, 0].into_iter().chain(entries.flat_map(u32::to_be_bytes)).collect()
        }
        (AIR_CONDITIONER, 0x80) => vec![operation],
        (AIR_CONDITIONER, 0xB0) => vec![mode],
        (AIR_CONDITIONER, 0xB3) => vec![temperature],
        (AIR_CONDITIONER, 0xBB) => vec![room_temperature(time)],
        (BATTERY, 0xE4) => vec![charge(time)],
        (BATTERY, 0xCF) => {
            let working = |happening| if let Happening::Battery(working) = happening { Some(working) } else { None };
            vec![happened(working).unwrap_or(0x44)]
        }
        (light, 0x80) if light == LIGHTS[0] => {
            let state = |happening| if let Happening::Switch(0, state) = happening { Some(state) } else { None };
            vec![happened(state).unwrap_or(OFF)]
        }
        (light, 0x80) if light == LIGHTS[1] => {
            let state = |happening| if let Happening::Switch(1, state) = happening { Some(state) } else { None };
            vec![happened(state).unwrap_or(OFF)]
        }
        _ => panic!("{eoj} {epc:02X} is not in the script"),
    }
}

/// The events that the gateway has to have seen by the end of the day.
fn expected() -> Diary {
    let battery = [addresses(BATTERY_HOST).node(), Addresses::v4(NEW_BATTERY_ADDRESS).node()];
    let mut diary = Diary::default();
    for host in 0..OBJECTS.len() {
        diary.announcements.push((0, addresses(host).node()));
    }
    let mut before = (ON, 0x41);
    for time in 0..DAY {
        for (_, happening) in SCRIPT.into_iter().filter(|(then, _)| *then == time) {
            match happening {
                Happening::Switch(light, state) => {
                    diary.notifications.push((time, LIGHTS[light], 0x80, vec![state], false));
                }
                Happening::Battery(working) => diary.notifications.push((time, BATTERY, 0xCF, vec![working], false)),
                Happening::Fault(fault) => diary.notifications.push((time, AIR_CONDITIONER, 0x88, vec![fault], true)),
                Happening::Power(_, false) => {}
                Happening::Power(host, true) => diary.announcements.push((time, addresses(host).node())),
                Happening::Moves => {
                    diary.announcements.push((time, battery[1]));
                    diary.moves.push((time, battery[0], battery[1]));
                }
            }
        }
        if time > 0 && time % at(0, 30) == 0 {
            diary.notifications.push((time, METER, 0xEA, reading(time).to_vec(), false));
        }
        // Writes of the gateway are announced where they change something; the temperature is not announced.
        for (_, operation, mode, _) in COMFORT.into_iter().filter(|(then, ..)| *then == time) {
            let (old_operation, old_mode) = core::mem::replace(&mut before, (operation, mode));
            if operation != old_operation {
                diary.notifications.push((time, AIR_CONDITIONER, 0x80, vec![operation], false));
            }
            if mode != old_mode {
                diary.notifications.push((time, AIR_CONDITIONER, 0xB0, vec![mode], false));
            }
        }
    }
    diary.failures = vec![(at(13, 30), AIR_CONDITIONER), (at(13, 35), AIR_CONDITIONER)];
    diary
}

impl Network<Appliance> {
    fn add_hosts(&mut self) {
        for (host, objects) in OBJECTS.into_iter().enumerate() {
            let appliances = objects.iter().copied().map(Appliance::new).collect();
            self.add(addresses(host), power_up(host, appliances));
        }
        let gateway = Controller::new(Config::new(5));
        self.add(addresses(GATEWAY), Side::Controller(Box::new(gateway)));
    }
}

#[test]
fn a_day_at_home_is_seen_as_it_is_scripted() {
    for seed in 1..=2 {
        let mut home = Home::new(seed);
        while home.time < DAY {
            home.tick();
        }
        let mut expected = expected();
        for diary in [&mut home.diary, &mut expected] {
            // Events of the same half minute come in any order.
            diary.notifications.sort();
            diary.announcements.sort();
        }
        assert_eq!(home.diary, expected);
        assert!(home.asked.is_empty(), "everything was answered: {:?}", home.asked);
        assert_eq!(home.values, 24 * (60 * 2 + 12 * 4 + 6 * 4) + 4 - 2 * 4);

        let gateway = home.network.controller(GATEWAY);
        let statistics = gateway.statistics();
        // Two requests to the air conditioner, and the question whether the battery is still at its old address, asked twice.
        assert_eq!((statistics.malformed, statistics.timeouts), (0, 4));
        assert!(statistics.repeated_notifications > 0, "doubled notifications are told apart");
        assert_eq!(gateway.nodes().count(), OBJECTS.len() + 1, "the battery has two addresses");
        // The node at the battery's old address is not known, because no node answers there.
        let old = addresses(BATTERY_HOST).node();
        assert!(gateway.nodes().all(|node| node.is_ready == (node.addr != old)));
        assert!(gateway.footprint() < 1 << 20, "{} bytes", gateway.footprint());
    }
}
