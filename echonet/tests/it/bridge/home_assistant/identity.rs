//! Lights that swap their addresses, move, are replaced or go: what MQTT, the web server and Home Assistant show within
//! five seconds, and which light a command of each reaches. Prints the table of docs/echonet-lite/home.md.

use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use echonet_lite::wire::Eoj;

use super::page::Page;
use super::*;
use crate::web::client::{Web, id, one, path};

const NET: u8 = 70;
const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);

/// The time in which a change must be seen.
const LIMIT: Duration = Duration::from_secs(5);
/// A row that took longer is measured again: a busy machine is no verdict.
const ATTEMPTS: usize = 4;
/// The time from a command to the swap that it is caught in.
const ON_ITS_WAY: Duration = Duration::from_millis(150);

/// The programs that show and command the lights.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    Mqtt,
    Web,
    HomeAssistant,
}

use Program::{HomeAssistant as Hass, Mqtt, Web as WebServer};

/// The property that all programs show.
const LEVEL: (u8, &str) = (0xB0, "lightLevel");

impl Program {
    fn name(self) -> &'static str {
        match self {
            Mqtt => "bridge (MQTT)",
            WebServer => "web",
            Hass => "Home Assistant",
        }
    }

    /// The property that it commands: one of its own, so that no command passes for another.
    fn commanded(self) -> (u8, &'static str) {
        match self {
            Hass => LEVEL,
            Mqtt => (0xB7, "lightLevelForMainLighting"),
            WebServer => (0xB9, "lightLevelForNightLighting"),
        }
    }

    /// The value that it commands a light to.
    fn command(self, serial: u64) -> u8 {
        20 + 4 * (serial % 10) as u8 + self as u8
    }
}

/// The level that a light begins with.
fn first_level(serial: u64) -> u8 {
    1 + (serial % 10) as u8
}

/// The level that a light has when it returns.
fn next_level(serial: u64) -> u8 {
    61 + (serial % 10) as u8
}

/// The level that a light is given by hand.
fn last_level(serial: u64) -> u8 {
    71 + (serial % 10) as u8
}

fn plan(serial: u64, level: u8, kinds: &[Kind]) -> NodePlan {
    let epcs = [Mqtt, WebServer, Hass].map(|program| program.commanded().0);
    let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
    object.values.extend(epcs.map(|epc| (epc, vec![level])));
    // Otherwise the times of its timers are those of its making: a light made in the next minute would be another device.
    object.values.extend([0x91, 0x95].map(|timer| (timer, vec![7, 30])));
    let mut faults = Vec::new();
    for kind in kinds {
        if kind.is_of_property() {
            faults.extend(epcs.map(|epc| Fault::of_property(*kind, LIGHT, epc)));
        } else {
            faults.push(Fault::new(*kind));
        }
    }
    NodePlan { faults, ..NodePlan::new(serial, [object]) }
}

fn base(serial: u64) -> String {
    format!("echonet/fe000077{serial:026x}/029001")
}

fn available(serial: u64) -> String {
    format!("echonet/fe000077{serial:026x}/availability")
}

fn web_id(serial: u64) -> String {
    id(serial as usize, "0290")
}

/// Has the web server command a light; returns whether it says that this is done.
fn put(web: &Web, serial: u64, value: u8) -> bool {
    let (_, name) = WebServer.commanded();
    let path = path(&id(serial as usize, "0290"), &format!("properties/{name}"));
    web.ask("PUT", &path, &one(name, value)).status == 200
}

/// The lights after a change.
#[derive(Default)]
struct After<'a> {
    present: &'a [u64],
    absent: &'a [u64],
    /// The present lights that no program knows yet: they are commanded when they are shown.
    new: &'a [u64],
    /// The commands were sent before the change.
    is_commanded: bool,
    /// The lights announce nothing, so that their changes by hand are not waited for.
    is_silent: bool,
    /// The programs never knew the absent lights.
    is_forgotten: bool,
}

/// The longest times of a program, of all lights.
#[derive(Clone, Copy, Default)]
struct Times {
    command: Option<Duration>,
    value: Option<Duration>,
    gone: Option<Duration>,
}

impl Times {
    fn worst(self) -> Duration {
        [self.command, self.value, self.gone].into_iter().flatten().max().unwrap_or_default()
    }

    fn cell(self) -> String {
        let parts = [("command", self.command), ("value", self.value), ("gone", self.gone)];
        let told = parts.into_iter().filter_map(|(what, took)| Some(format!("{what} {}", shown(took?))));
        told.collect::<Vec<_>>().join(", ")
    }
}

fn shown(took: Duration) -> String {
    match took.as_millis() {
        short @ 0..1000 => format!("{short} ms"),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}

/// The web server and an open page of it.
struct Opened {
    web: Web,
    page: Page,
}

struct Lights {
    home: Home,
    /// Serial number and end of the address of each node of the home.
    places: Vec<(u64, u8)>,
    /// The last serial number, and the end of the last address.
    last: (u64, u8),
    bridge: Option<Running>,
    listener: Listener,
    web: Option<Opened>,
    hass: Option<HomeAssistant>,
    broker: Mosquitto,
}

impl Lights {
    fn new() -> Option<Self> {
        if !is_there() {
            return None;
        }
        let broker = Mosquitto::start("hass-identity");
        let hass = HomeAssistant::start("identity", &broker);
        let listener = Listener::new(&broker);
        let home = Home::of([127, 74, NET], PORT + u16::from(NET), []);
        let (places, last) = (Vec::new(), (0, 0));
        let mut lights = Self { home, places, last, bridge: None, listener, web: None, hass, broker };
        lights.start_programs();
        Some(lights)
    }

    /// The bridge, and the web server with the lights that there are.
    fn start_programs(&mut self) {
        self.bridge = Some(bridge(NET, &self.broker, "1"));
        let (address, port) = (format!("127.75.{NET}.2"), PORT + u16::from(NET));
        let web = Web::start(&address, port, self.places.len(), &["--poll", "1"]);
        let page = Page::open(&web);
        self.web = Some(Opened { web, page });
    }

    fn programs(&self) -> Vec<Program> {
        let of_hass = self.hass.as_ref().map(|_| Hass);
        [Mqtt, WebServer].into_iter().chain(of_hass).collect()
    }

    fn next_host(&mut self) -> u8 {
        self.last.1 += 1;
        self.last.1
    }

    /// A light comes to an address.
    fn come(&mut self, (serial, host): (u64, u8), level: u8, kinds: &[Kind]) {
        self.home.serve(&plan(serial, level, kinds), host);
        self.places.push((serial, host));
    }

    /// Lights leave their addresses.
    fn leave(&mut self, hosts: &[u8]) {
        while let Some(at) = self.places.iter().position(|(_, host)| hosts.contains(host)) {
            self.places.remove(at);
            drop(self.home.nodes.remove(at));
        }
    }

    /// New lights, which all programs show: their serial numbers and the ends of their addresses.
    fn arrive<const N: usize>(&mut self, kinds: &[Kind]) -> [(u64, u8); N] {
        let new = std::array::from_fn(|_| {
            self.last.0 += 1;
            let place = (self.last.0, self.next_host());
            self.come(place, first_level(place.0), kinds);
            place
        });
        for program in self.programs() {
            for (serial, _) in new {
                self.shows(program, serial, LEVEL.1, first_level(serial));
            }
        }
        new
    }

    fn node(&self, serial: u64) -> usize {
        self.places.iter().position(|(own, _)| *own == serial).unwrap()
    }

    fn opened(&self) -> &Opened {
        self.web.as_ref().unwrap()
    }

    fn hass(&self) -> &HomeAssistant {
        self.hass.as_ref().unwrap()
    }

    fn entity(&self, serial: u64) -> String {
        let (unique, end) = (base(serial).replace('/', "_"), Instant::now() + PATIENCE);
        loop {
            let found = self.hass().registry("entity").into_iter().find(|entity| entity["unique_id"] == unique);
            if let Some(entity) = found {
                return entity["entity_id"].as_str().unwrap().to_owned();
            }
            assert!(Instant::now() < end, "Home Assistant has no {unique}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a program shows a value of a light.
    fn shows(&self, program: Program, serial: u64, property: &str, value: u8) {
        match program {
            Mqtt => {
                self.listener.wait_for(&format!("{}/{property}", base(serial)), &value.to_string());
                self.listener.wait_for(&available(serial), "online");
            }
            WebServer => self.opened().page.until(&web_id(serial), |light| {
                let shown = |light: &Value| light["properties"][property]["value"] == value;
                light.is_some_and(|light| light["online"] == true && shown(light))
            }),
            Hass => {
                let is_lit = |state: &Value| fakes::is_lit(state, value);
                let found = self.hass().socket.until(&self.entity(serial), PATIENCE, is_lit);
                found.unwrap_or_else(|state| panic!("{serial} is not at {value} % in Home Assistant: {state}"));
            }
        }
    }

    /// Waits until a program shows that a light is away.
    fn shows_gone(&self, program: Program, serial: u64) {
        match program {
            Mqtt => drop(self.listener.wait_for(&available(serial), "offline")),
            WebServer => {
                let is_gone = |light: Option<&Value>| light.is_none_or(|light| light["online"] == false);
                self.opened().page.until(&web_id(serial), is_gone);
            }
            Hass => {
                let is_gone = |state: &Value| state["state"] == "unavailable";
                let found = self.hass().socket.until(&self.entity(serial), PATIENCE, is_gone);
                found.unwrap_or_else(|state| panic!("{serial} is not unavailable in Home Assistant: {state}"));
            }
        }
    }

    /// Has a program command a light; returns whether it says that this is done, if it says anything.
    fn command(&self, program: Program, serial: u64, value: u8) -> Option<bool> {
        let name = program.commanded().1;
        match program {
            Mqtt => {
                self.listener.command(&format!("{}/{name}", base(serial)), &value.to_string());
                None
            }
            WebServer => Some(put(&self.opened().web, serial, value)),
            Hass => {
                let data = json!({"brightness_pct": value});
                self.hass().socket.call(&self.entity(serial), "turn_on", &data).unwrap();
                None
            }
        }
    }

    /// Waits until the command of a program has reached a light and is shown.
    fn is_commanded(&self, program: Program, serial: u64) {
        let ((epc, name), value) = (program.commanded(), program.command(serial));
        let end = Instant::now() + PATIENCE;
        while self.home.value(self.node(serial), epc) != [value] {
            assert!(Instant::now() < end, "{program:?}: the command did not reach {serial}");
            thread::sleep(Duration::from_millis(1));
        }
        self.shows(program, serial, name, value);
    }

    /// Does something with all programs at once.
    fn with_each<R: Send>(&self, job: impl Fn(Program) -> R + Sync) -> Vec<R> {
        let job = &job;
        thread::scope(|scope| {
            let jobs: Vec<_> = self.programs().into_iter().map(|program| scope.spawn(move || job(program))).collect();
            jobs.into_iter().map(|job| job.join().unwrap()).collect()
        })
    }

    /// The longest time from a moment until something has been done for all of some lights, at once.
    fn longest(begun: Instant, serials: &[u64], job: impl Fn(u64) + Sync) -> Option<Duration> {
        let job = &job;
        thread::scope(|scope| {
            let timed = |serial: &u64| {
                let serial = *serial;
                scope.spawn(move || {
                    job(serial);
                    begun.elapsed()
                })
            };
            let jobs: Vec<_> = serials.iter().map(timed).collect();
            jobs.into_iter().map(|job| job.join().unwrap()).max()
        })
    }

    /// Returns the times of all programs after a change, and which lights their commands reach.
    fn row(&self, begun: Instant, after: &After<'_>) -> Vec<Times> {
        let mut times = self.with_each(|program| {
            let gone = Self::longest(begun, after.absent, |serial| self.shows_gone(program, serial));
            let command = Self::longest(begun, after.present, |serial| {
                if after.new.contains(&serial) {
                    self.shows(program, serial, LEVEL.1, next_level(serial));
                }
                if !after.is_commanded {
                    let said = self.command(program, serial, program.command(serial));
                    assert_ne!(said, Some(false), "{program:?} does not command {serial}");
                }
                self.is_commanded(program, serial);
            });
            Times { command, gone, value: None }
        });
        if !after.is_silent {
            let begun = Instant::now();
            for serial in after.present {
                self.home.change(self.node(*serial), LEVEL.0, &[last_level(*serial)]);
            }
            let shows = |program, serial| self.shows(program, serial, LEVEL.1, last_level(serial));
            let values = self.with_each(|program| Self::longest(begun, after.present, |serial| shows(program, serial)));
            times.iter_mut().zip(values).for_each(|(times, value)| times.value = value);
        }
        self.with_each(|program| {
            let command = |serial: &u64| {
                self.shows_gone(program, *serial);
                assert_ne!(
                    self.command(program, *serial, NOWHERE),
                    Some(true),
                    "{program:?} commands {serial}, which is away"
                );
                if program == Mqtt && !after.is_forgotten {
                    self.is_told_that_it_failed(*serial);
                }
            };
            after.absent.iter().for_each(command);
        });
        for (at, (serial, _)) in self.places.iter().enumerate() {
            for (epc, _) in [Mqtt, WebServer, Hass].map(Program::commanded) {
                let value = self.home.value(at, epc);
                assert!(own_values(*serial).contains(&value[0]), "{serial} has {value:?}, which is for another light");
            }
        }
        times
    }

    /// A user of MQTT sees that a command has reached no light.
    fn is_told_that_it_failed(&self, serial: u64) {
        let topic = format!("{}/trouble", base(serial));
        let event = |heard: &Heard| serde_json::from_str::<Value>(&heard.get(&topic)?.0).ok();
        let is_told = |event: &Value| {
            event["value"].as_str().is_some_and(|value| value.parse() == Ok(NOWHERE))
                && event["event_type"] == "unanswered"
        };
        self.listener.wait(&topic, |heard| event(heard).filter(is_told).map(drop));
    }
}

/// A level that no light must have.
const NOWHERE: u8 = 99;

/// The values that a light can have by itself or by commands for it.
fn own_values(serial: u64) -> Vec<u8> {
    let levels = [first_level(serial), next_level(serial), last_level(serial)];
    levels.into_iter().chain([Mqtt, WebServer, Hass].map(|program| program.command(serial))).collect()
}

/// The lights change; returns what the programs show.
type Case = fn(&mut Lights) -> Vec<Times>;

const CASES: &[(&str, Case)] = &[
    ("two lights swap their addresses", |lights| swap(lights, &[])),
    ("two lights swap them and announce nothing", |lights| swap(lights, &[Kind::NoAnnouncement])),
    ("they swap them while commands are on their way", swap_during_commands),
    ("a light moves to another address", |lights| {
        let [(first, at), (second, _)] = lights.arrive(&[]);
        let (begun, host) = (Instant::now(), lights.next_host());
        lights.leave(&[at]);
        lights.come((first, host), next_level(first), &[]);
        lights.row(begun, &After { present: &[first, second], ..After::default() })
    }),
    ("another light replaces it at its address", |lights| {
        let [(first, at), (second, _)] = lights.arrive(&[]);
        lights.last.0 += 1;
        let (begun, new) = (Instant::now(), lights.last.0);
        lights.leave(&[at]);
        lights.come((new, at), next_level(new), &[]);
        lights.row(begun, &After { present: &[new, second], absent: &[first], new: &[new], ..After::default() })
    }),
    ("a light with two addresses loses the first", two_addresses),
    ("the programs start again, and half of the lights are gone", |lights| {
        let [(first, _), (second, _), (third, at), (fourth, next)] = lights.arrive(&[]);
        drop((lights.bridge.take(), lights.web.take()));
        lights.leave(&[at, next]);
        let begun = Instant::now();
        lights.start_programs();
        let (present, absent) = (&[first, second], &[third, fourth]);
        lights.row(begun, &After { present, absent, is_forgotten: true, ..After::default() })
    }),
];

fn swap(lights: &mut Lights, kinds: &[Kind]) -> Vec<Times> {
    let [(first, at), (second, to)] = lights.arrive(&[]);
    let begun = Instant::now();
    lights.leave(&[at, to]);
    lights.come((first, to), next_level(first), kinds);
    lights.come((second, at), next_level(second), kinds);
    lights.row(begun, &After { present: &[first, second], is_silent: !kinds.is_empty(), ..After::default() })
}

/// The lights have heard commands and not obeyed them when they change their addresses.
fn swap_during_commands(lights: &mut Lights) -> Vec<Times> {
    let [(first, at), (second, to)] = lights.arrive(&[Kind::Unwritable, Kind::NoRefusal]);
    let serials = [first, second];
    for serial in serials {
        lights.command(Mqtt, serial, Mqtt.command(serial));
        if lights.hass.is_some() {
            lights.command(Hass, serial, Hass.command(serial));
        }
    }
    // The web server answers when a command has ended.
    let opened = lights.web.take().unwrap();
    let begun = thread::scope(|scope| {
        let web = &opened.web;
        let puts = serials.map(|serial| scope.spawn(move || put(web, serial, WebServer.command(serial))));
        thread::sleep(ON_ITS_WAY);
        let begun = Instant::now();
        lights.leave(&[at, to]);
        lights.come((first, to), next_level(first), &[]);
        lights.come((second, at), next_level(second), &[]);
        for (serial, put) in serials.into_iter().zip(puts) {
            assert!(put.join().unwrap(), "the web server does not command {serial}");
        }
        begun
    });
    lights.web = Some(opened);
    lights.row(begun, &After { present: &serials, is_commanded: true, ..After::default() })
}

/// The second address is known when a light that came later is shown.
fn two_addresses(lights: &mut Lights) -> Vec<Times> {
    let [(first, at)] = lights.arrive(&[]);
    let host = lights.next_host();
    lights.come((first, host), first_level(first), &[]);
    let [(second, _)] = lights.arrive(&[]);
    let begun = Instant::now();
    lights.leave(&[at]);
    lights.row(begun, &After { present: &[first, second], ..After::default() })
}

#[test]
fn lights_that_change_their_places() {
    let Some(mut lights) = Lights::new() else { return };
    let names: Vec<_> = lights.programs().into_iter().map(Program::name).collect();
    println!("| change | {} |", names.join(" | "));
    for (change, case) in CASES {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let times = case(&mut lights);
            let all: Vec<_> = lights.places.iter().map(|(_, host)| *host).collect();
            lights.leave(&all);
            let cells: Vec<_> = times.iter().map(|times| times.cell()).collect();
            println!("| {change} | {} |", cells.join(" | "));
            if times.iter().all(|times| times.worst() <= LIMIT) {
                break;
            }
            assert!(attempts < ATTEMPTS, "{change}: not within {LIMIT:?}");
        }
    }
    if let Some(hass) = &lights.hass {
        assert_eq!(hass.complaints(), Vec::<String>::new());
    }
}
