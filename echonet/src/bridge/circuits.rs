//! The circuits of a distribution board: each has an entity for what is measured of it.

use echonet_lite::wire::Eoj;
use serde_json::{Map, Value as Json};

use super::asking::{ReadingOfCircuits, Told};
use super::shown::{self, Kind, Leaf, UNKNOWN};
use super::thing::{Group, Thing};
use super::{Bridge, device_class};
use crate::circuits::{self, List, Part};
use crate::directory::Name;
use crate::render;

impl Thing {
    /// The ranges in which the values of its circuits are read.
    pub(super) fn parts(&self) -> Vec<Part> {
        circuits::parts(self.class, &self.maps, &self.values)
    }

    fn lists(&self) -> impl Iterator<Item = &'static List> + use<> {
        circuits::lists(self.class, &self.maps)
    }

    /// The lists, their channels, and the parts of a channel's value.
    fn circuit_leaves(&self) -> impl Iterator<Item = (&'static List, u8, Leaf)> {
        self.lists().flat_map(move |list| {
            let leaves = move || list.items().map(shown::leaves).unwrap_or_default();
            let channels = 1..=list.channels(&self.values);
            channels.flat_map(move |channel| leaves().into_iter().map(move |leaf| (list, channel, leaf)))
        })
    }

    /// The topic of a part of a channel's value.
    fn circuit_topic(&self, list: &List, channel: u8, path: &[&str]) -> String {
        let channel = channel.to_string();
        let start = [self.base.as_str(), "circuits", list.kind, &channel, list.quantity];
        [&start[..], path].concat().join("/")
    }

    pub(super) fn circuit_topics(&self) -> impl Iterator<Item = String> {
        self.circuit_leaves().map(move |(list, channel, leaf)| self.circuit_topic(list, channel, &leaf.path))
    }

    /// The entities of all circuits.
    pub(super) fn circuit_components(&self, components: &mut Map<String, Json>) {
        for (list, channel, leaf) in self.circuit_leaves() {
            let (Some(spec), Some(kind)) = (list.spec(), Kind::of(leaf.data)) else { continue };
            let Some(mut component) = self.component(spec, &kind, true, false) else { continue };
            let number = channel.to_string();
            let id = [&["circuit", list.kind, &number, list.quantity][..], &leaf.path].concat().join("_");
            component.insert("name".into(), title(list, channel, &leaf).into());
            component.insert("unique_id".into(), format!("{}_{id}", self.unique).into());
            component.insert("state_topic".into(), self.circuit_topic(list, channel, &leaf.path).into());
            if self.wanted.enables(spec.short_name) == Some(false) {
                component.insert("enabled_by_default".into(), false.into());
            }
            components.insert(id, component.into());
        }
    }

    /// Takes the answer for a range; gives what is to be published because of it.
    fn take_part(&mut self, part: Part, edt: &[u8]) -> Vec<(String, String)> {
        // The board may have fewer channels since it was asked.
        let channels = part.list.channels(&self.values);
        let changed = self.circuits.take(part, edt);
        let there = changed.into_iter().filter(|channel| *channel <= channels);
        there.flat_map(|channel| self.topics_of_circuit(part.list, channel)).collect()
    }

    /// The topics of all circuits whose values are counted in a property, and their payloads.
    pub(super) fn circuit_topics_counted_in(&self, epc: u8) -> Vec<(String, String)> {
        let is_counted = |list: &&List| list.items().is_some_and(|data| render::counted_in(data).contains(&epc));
        let channels = |list: &'static List| (1..=list.channels(&self.values)).map(move |channel| (list, channel));
        let known = |(list, channel): &(&List, u8)| self.circuits.knows(list, *channel);
        let all = self.lists().filter(is_counted).flat_map(channels).filter(known);
        all.flat_map(|(list, channel)| self.topics_of_circuit(list, channel)).collect()
    }

    /// The topics of a channel's value, and their payloads. A value that the list cannot have is not known.
    fn topics_of_circuit(&self, list: &List, channel: u8) -> Vec<(String, String)> {
        let Some(data) = list.items() else { return Vec::new() };
        let parts = match self.circuits.value(list, channel) {
            Some(value) => {
                shown::values(value, data).into_iter().map(|(path, data, value)| (path, Some((data, value)))).collect()
            }
            None => shown::leaves(data).into_iter().map(|leaf| (leaf.path, None)).collect::<Vec<_>>(),
        };
        let said = parts.into_iter().filter_map(|(path, told)| {
            let payload = match told {
                Some((data, value)) => Kind::of(data)?.payload(self.scaled(data, value)?),
                None => UNKNOWN.to_owned(),
            };
            Some((self.circuit_topic(list, channel, &path), payload))
        });
        said.collect()
    }
}

/// The name of an entity: "Circuit 3 energy".
fn title(list: &List, channel: u8, leaf: &Leaf) -> String {
    let circuit = if list.kind == "simplex" { "Circuit" } else { "Two-way circuit" };
    let part = match leaf.path[..] {
        ["normalDirectionElectricEnergy"] => "forward".to_owned(),
        ["reverseDirectionElectricEnergy"] => "reverse".to_owned(),
        _ => device_class::readable(&leaf.name),
    };
    let title = format!("{circuit} {channel} {}", list.quantity);
    if part.is_empty() { title } else { format!("{title}: {part}") }
}

impl Bridge<'_> {
    /// Asks a board for the values of its circuits.
    pub(super) fn ask_circuits(&mut self, name: &Name, eoj: Eoj) {
        // A node that is found again is asked then.
        let Some((addr, id)) = self.certain_place(name) else { return };
        let place = (addr, self.directory.doubts(addr));
        let Some(thing) = self.things.get_mut(&(name.clone(), eoj)).filter(|thing| !thing.asks_circuits) else {
            return;
        };
        let (parts, writable) = (thing.parts(), thing.maps.writable);
        thing.asks_circuits = true;
        let (endpoint, told, name) = (self.endpoint.clone(), self.told.clone(), name.clone());
        tokio::spawn(async move {
            let mut values = Vec::new();
            for part in parts {
                // A board that does not answer is not asked for the rest.
                let Ok(answer) = circuits::read(&endpoint, (addr, id), (eoj, writable), part).await else { break };
                values.extend(answer.map(|edt| (part, edt)));
            }
            // The bridge has ended.
            let _ = told.send(Told::Circuits(ReadingOfCircuits { name, eoj, values, place }));
        });
    }

    pub(super) fn take_circuits(&mut self, reading: ReadingOfCircuits) {
        let ReadingOfCircuits { name, eoj, values, place } = reading;
        let is_its_own = self.is_its_own(&name, place);
        let Some(thing) = self.things.get_mut(&(name.clone(), eoj)) else { return };
        thing.asks_circuits = false;
        let values = values.into_iter().filter(|_| is_its_own);
        let topics: Vec<_> = values.flat_map(|(part, edt)| thing.take_part(part, &edt)).collect();
        let after = thing.next(Group::Circuits, self.args.poll, !topics.is_empty());
        let has_parts = !thing.parts().is_empty();
        topics.into_iter().for_each(|(topic, payload)| self.broker.publish(topic, payload));
        if has_parts {
            self.plan(&name, eoj, Group::Circuits, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::quirks::Quirks;
    use echonet_lite::class;
    use echonet_lite::controller::PropertyMaps;
    use echonet_lite::wire::PropertySet;
    use serde_json::json;

    const SECOND: Duration = Duration::from_secs(1);

    /// A board with so many channels of each kind.
    fn board(simplex: u8, duplex: u8) -> Thing {
        let class = class::by_name("0287").unwrap();
        let readable = class.all_properties().fold(PropertySet::EMPTY, |set, spec| set.with(spec.epc));
        let maps = PropertyMaps { readable, ..PropertyMaps::default() };
        let eoj = class.code.instance(1);
        let mut board = Thing::new(class, eoj, maps, (Quirks::default(), None), ("echonet", "fe00"), SECOND);
        for (epc, edt) in [(0xB1, simplex), (0xB8, duplex), (0xC2, 1)] {
            board.take(epc, &[edt]);
        }
        board
    }

    #[test]
    fn every_circuit_has_entities_with_stable_ids() {
        let description = board(3, 1).description(["a", "b"]);
        let components = description["components"].as_object().unwrap();
        for (id, name, class, state_class, unit) in [
            ("circuit_simplex_3_energy", "Circuit 3 energy", "energy", "total_increasing", "kWh"),
            ("circuit_simplex_1_power", "Circuit 1 power", "power", "measurement", "W"),
            ("circuit_simplex_2_current_rPhase", "Circuit 2 current: R phase", "current", "measurement", "A"),
            (
                "circuit_duplex_1_energy_reverseDirectionElectricEnergy",
                "Two-way circuit 1 energy: reverse",
                "energy",
                "total_increasing",
                "kWh",
            ),
        ] {
            let entity = &components[id];
            let told =
                ["name", "device_class", "state_class", "unit_of_measurement"].map(|key| entity[key].as_str().unwrap());
            assert_eq!(told, [name, class, state_class, unit], "{id}");
            assert_eq!(entity["unique_id"], format!("echonet_fe00_028701_{id}"));
            assert_eq!(entity["enabled_by_default"], Json::Null);
        }
        assert_eq!(components.keys().filter(|id| id.starts_with("circuit_")).count(), 3 * 4 + 5);
        assert!(!components.keys().any(|id| id.contains("List") || id.contains("channelRange")), "{components:#?}");
        let topics: Vec<_> = board(3, 1).circuit_topics().collect();
        assert_eq!(topics.len(), 3 * 4 + 5);
        assert!(topics.contains(&"echonet/fe00/028701/circuits/simplex/2/current/tPhase".to_owned()), "{topics:?}");
        assert!(board(252, 252).description(["a", "b"]).to_string().len() < 1 << 20, "a message holds it");
    }

    #[test]
    fn values_are_those_of_their_channels() {
        let mut board = board(3, 0);
        let energy = board.parts()[0];
        let list = [1, 3, 0, 0, 0, 25, 0xFF, 0xFF, 0xFF, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF];
        let topic = |channel: u8| format!("echonet/fe00/028701/circuits/simplex/{channel}/energy");
        let said = |told: [&str; 3]| {
            (1..).zip(told).map(|(channel, payload)| (topic(channel), payload.to_owned())).collect::<Vec<_>>()
        };
        // No data, and a number out of range, are not known.
        assert_eq!(board.take_part(energy, &list), said(["2.5", UNKNOWN, UNKNOWN]));
        assert!(board.take_part(energy, &list).is_empty());
        for wrong in [&list[..13], &[1, 2, 0, 0, 0, 1, 0, 0, 0, 1], &[2, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], &[]] {
            assert!(board.take_part(energy, wrong).is_empty(), "{wrong:02X?}");
        }
        // It counts in another unit.
        let topics = board.take(0xC2, &[2]);
        assert!(said(["0.25", UNKNOWN, UNKNOWN]).iter().all(|one| topics.contains(one)), "{topics:?}");
        // A channel that the board has no more says nothing.
        board.take(0xB1, &[1]);
        assert_eq!(board.take_part(energy, &[1, 3, 0, 0, 0, 26, 0, 0, 0, 1, 0, 0, 0, 1]), said(["0.26", "", ""])[..1]);
        assert_eq!(board.circuit_topics().count(), 4);
    }

    #[test]
    fn a_board_is_asked_no_more_often_than_its_ranges_allow() {
        let mut board = board(252, 0);
        assert_eq!(board.parts().len(), 15);
        for changed in [true, true, false, true, true] {
            assert!(board.next(Group::Circuits, SECOND, changed) >= 15 * SECOND);
        }
        assert!((0..50).map(|_| board.next(Group::Circuits, SECOND, false)).max() == Some(30 * 15 * SECOND));
        assert_eq!(board.next(Group::Silent, SECOND, true), SECOND);
    }

    /// An object of a class with properties to read, of which some can be written.
    fn thing(code: &str, readable: &[u8], writable: &[u8]) -> Thing {
        let class = class::by_name(code).unwrap();
        let (readable, writable) = (PropertySet::of(readable), PropertySet::of(writable));
        let maps = PropertyMaps { readable, writable, announced: PropertySet::EMPTY };
        Thing::new(class, class.code.instance(1), maps, (Quirks::default(), None), ("echonet", "fe00006c"), SECOND)
    }

    /// banban525/echonetlite2mqtt 32: the objects of a node tell one identification number.
    #[test]
    fn objects_that_share_a_number_are_devices_of_their_own() {
        let ids = ["0279", "027D", "02A5"].map(|code| thing(code, &[0x80, 0x83], &[0x80]).unique);
        assert_eq!(ids, ["echonet_fe00006c_027901", "echonet_fe00006c_027d01", "echonet_fe00006c_02a501"]);
    }

    /// scottyphillips/echonetlite_homeassistant 179 and 263, sayurin/hems_echonet_lite 10.
    #[test]
    fn an_air_conditioner_has_whole_degrees_all_swings_and_energy_that_is_on() {
        let readable = [0x80, 0x84, 0x85, 0xA3, 0xB0, 0xB3, 0xBB];
        let conditioner = thing("0130", &readable, &[0x80, 0xA3, 0xB0, 0xB3]);
        let description = conditioner.description(["a", "b"]);
        let main = &description["components"]["main"];
        assert_eq!((&main["temp_step"], &main["temperature_unit"]), (&json!(1), &json!("C")));
        assert!(main["swing_modes"].as_array().unwrap().contains(&json!("horizontal")), "{main}");
        for (id, class) in
            [("instantaneousElectricPowerConsumption", "power"), ("consumedCumulativeElectricEnergy", "energy")]
        {
            let entity = &description["components"][id];
            assert_eq!((&entity["device_class"], &entity["enabled_by_default"]), (&json!(class), &Json::Null), "{id}");
        }
    }
}
