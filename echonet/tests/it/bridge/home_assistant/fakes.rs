//! Lights that misbehave: what Home Assistant shows of each, and what becomes of a command.

use echonet_lite::emulate::{Fault, Kind, NodePlan, ObjectPlan};
use echonet_lite::wire::Eoj;

use super::*;

const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);
const LEVEL: u8 = 0xB0;
/// The level that each light begins with.
const BEFORE: u8 = 20;
/// The level that each is commanded to.
const WANTED: u8 = 60;

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Device and user have the new level.
    Done,
    /// Device and user have the old level, and an event of this type says so.
    Trouble(&'static str),
    /// The device lies about it: both have the old level.
    Lie,
    /// The brightness is not known, and cannot be commanded.
    NoBrightness,
    /// It is no device at all.
    Absent,
}

/// A fake: its name, its faults, the properties that they are of, the end of a command.
type Row = (&'static str, &'static [Kind], End);

const FAKES: &[Row] = &[
    ("honest", &[], End::Done),
    ("slow", &[Kind::Late], End::Done),
    ("answers twice", &[Kind::Repeated], End::Done),
    ("refuses", &[Kind::Unwritable], End::Trouble("refused")),
    ("refuses without the value", &[Kind::Unwritable, Kind::RefusalWithoutValue], End::Trouble("refused")),
    ("refuses and says it does", &[Kind::Unwritable, Kind::RefusalAsSuccess], End::Lie),
    ("refuses without an answer", &[Kind::Unwritable, Kind::NoRefusal], End::Trouble("unanswered")),
    ("confirms with the value", &[Kind::ConfirmationWithValue], End::Done),
    ("answers the first property only", &[Kind::OnlyFirst], End::Done),
    ("answers in the reverse order", &[Kind::Reversed], End::Done),
    ("announces nothing", &[Kind::NoAnnouncement], End::Done),
    ("answers for absent objects", &[Kind::AnswersForAbsent], End::Done),
    ("counts its objects wrong", &[Kind::WrongCount], End::Done),
    ("counts its classes wrong", &[Kind::WrongClassCount], End::Done),
    ("has long maps as lists", &[Kind::LongMapAsList], End::Done),
    ("takes anything", &[Kind::TakesAnything], End::Done),
    ("hides the level in its maps", &[Kind::HiddenInMap], End::NoBrightness),
    ("has a level of two bytes", &[Kind::WrongSize], End::NoBrightness),
    ("has a level of 200 %", &[Kind::WrongValue], End::NoBrightness),
    ("has another TID", &[Kind::WrongTid], End::Absent),
    ("has no objects in its list", &[Kind::WrongInstances], End::Absent),
    ("says nothing", &[Kind::Silent], End::Absent),
];

fn plan(serial: usize, kinds: &[Kind]) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name("0290").unwrap(), 1);
    object.values.push((LEVEL, vec![BEFORE]));
    // Otherwise the times of its timers are those of its making: a light made in the next minute would be another device.
    object.values.extend([0x91, 0x95].map(|timer| (timer, vec![7, 30])));
    let fault = |kind: &Kind| {
        let fault = if kind.is_of_property() { Fault::of_property(*kind, LIGHT, LEVEL) } else { Fault::new(*kind) };
        Fault { edt: vec![200], delay: Duration::from_secs(1), ..fault }
    };
    NodePlan { faults: kinds.iter().map(fault).collect(), ..NodePlan::new(serial as u64, [object]) }
}

/// A light's permanent id.
fn id(serial: usize) -> String {
    format!("echonet_fe000077{serial:026x}_029001")
}

/// Brightness in Home Assistant, which counts to 255 and rounds halves to even numbers.
pub(super) fn is_lit(state: &Value, level: u8) -> bool {
    let is_close = |brightness: f64| (brightness - f64::from(level) * 2.55).abs() < 1.0;
    state["state"] == "on" && state["attributes"]["brightness"].as_f64().is_some_and(is_close)
}

struct Fakes {
    broker: Mosquitto,
    home: Home,
    bridge: Option<Running>,
    hass: HomeAssistant,
}

impl Fakes {
    fn entity(&self, unique: &str) -> Option<String> {
        let found = self.hass.registry("entity").into_iter().find(|entity| entity["unique_id"] == unique)?;
        Some(found["entity_id"].as_str()?.to_owned())
    }

    /// The entities of the lights that are to come.
    fn arrived(&self) -> Vec<Option<String>> {
        let end = Instant::now() + PATIENCE;
        let mut lights: Vec<_> = (1..=FAKES.len()).map(|serial| self.entity(&id(serial))).collect();
        while FAKES.iter().zip(&lights).any(|((.., end), light)| *end != End::Absent && light.is_none()) {
            assert!(Instant::now() < end, "lights are missing: {lights:?}");
            thread::sleep(Duration::from_millis(500));
            lights = (1..=FAKES.len()).map(|serial| self.entity(&id(serial))).collect();
        }
        lights
    }

    fn until(&self, what: &str, entity: &str, wanted: impl Fn(&Value) -> bool) {
        match self.hass.socket.until(entity, SOON, wanted) {
            Ok(took) => println!("{what}: Home Assistant shows it after {} ms", took.as_millis()),
            Err(state) => panic!("{what}: {entity} is {state}"),
        }
    }

    fn command(&self, what: &str, light: &str, level: u8) {
        let called = self.hass.socket.call(light, "turn_on", &json!({"brightness_pct": level}));
        assert_eq!(called, Ok(()), "{what}");
    }

    /// One fake shows what it has, and a command ends as it must.
    fn check(&self, at: usize, light: Option<&String>) {
        let (what, _, end) = FAKES[at];
        let Some(light) = light else {
            assert_eq!(end, End::Absent, "{what}");
            println!("{what}: no device in Home Assistant");
            return;
        };
        if end == End::NoBrightness {
            let has_none = |state: &Value| state["state"] == "on" && state["attributes"]["brightness"].is_null();
            return self.until(&format!("{what}: on, without a brightness"), light, has_none);
        }
        self.until(&format!("{what}: {BEFORE} %"), light, |state| is_lit(state, BEFORE));
        self.command(what, light, WANTED);
        if let End::Trouble(kind) = end {
            let event = self.entity(&format!("{}_trouble", id(at + 1))).unwrap();
            self.until(&format!("{what}: the event `{kind}`"), &event, |state| {
                state["attributes"]["event_type"] == kind && state["attributes"]["property"] == "lightLevel"
            });
        }
        let level = if end == End::Done { WANTED } else { BEFORE };
        self.until(&format!("{what}: {level} % after a command"), light, |state| is_lit(state, level));
        assert_eq!(self.home.value(at, LEVEL), [level], "{what}");
    }
}

#[test]
fn lights_that_misbehave() {
    if !is_there() {
        return;
    }
    const NET: u8 = 41;
    let broker = Mosquitto::start("hass-fakes");
    let Some(hass) = HomeAssistant::start("fakes", &broker) else { return };
    let plans = FAKES.iter().enumerate().map(|(at, (_, kinds, _))| plan(at + 1, kinds));
    let home = Home::of([127, 74, NET], PORT + u16::from(NET), plans);
    let bridge = Some(bridge(NET, &broker, "1"));
    let mut fakes = Fakes { broker, home, bridge, hass };
    let lights = fakes.arrived();
    (0..FAKES.len()).for_each(|at| fakes.check(at, lights[at].as_ref()));

    // A storm of announcements.
    let [first, second] = [0, 2].map(|at| lights[at].clone().unwrap());
    (0..2000_u16).for_each(|turn| fakes.home.change(0, LEVEL, &[(turn % 90) as u8]));
    fakes.home.change(0, LEVEL, &[77]);
    fakes.until("2,000 announcements: the last", &first, |state| is_lit(state, 77));

    // Two lights swap their addresses, and the others go.
    fakes.home.nodes.clear();
    fakes.home.serve(&plan(1, &[]), 3);
    fakes.home.serve(&plan(3, &[]), 1);
    for (what, light, at, level) in [("first", &first, 0, 31), ("second", &second, 1, 32)] {
        // A command that comes before the node is found again can end as an event; the tests of identity send some then.
        fakes.home.change(at, LEVEL, &[level - 20]);
        fakes.until(&format!("swapped, the {what}: {} %", level - 20), light, |state| is_lit(state, level - 20));
        fakes.command(what, light, level);
        fakes.until(&format!("swapped, the {what}: {level} %"), light, |state| is_lit(state, level));
        assert_eq!(fakes.home.value(at, LEVEL), [level], "the {what}, swapped");
    }

    // The bridge starts anew, and one of them has gone.
    drop(fakes.bridge.take());
    fakes.until("without the bridge: unavailable", &first, |state| state["state"] == "unavailable");
    fakes.home.nodes.pop();
    fakes.bridge = Some(super::bridge(NET, &fakes.broker, "1"));
    fakes.until("after a restart, the first: 31 %", &first, |state| is_lit(state, 31));
    fakes.until("after a restart, the second: unavailable", &second, |state| state["state"] == "unavailable");
    let complaints = fakes.hass.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}
