//! Polling: the bridge plans requests to nodes, and tasks report the answers.

use std::time::Duration;

use echonet_lite::controller::NodeAddr;
use echonet_lite::wire::{Eoj, PropertySet};
use tokio::time::Instant;

use super::Bridge;
use super::thing::Group;
use crate::circuits::Part;
use crate::directory::{Name, Namesake};
use crate::failure::Failure;
use crate::quirks::Quirks;

/// The bridge reads a property again this long after a write: some devices need a moment to apply it.
pub(super) const SETTLED: Duration = Duration::from_secs(2);
/// How often a node is asked who it is, though nothing was heard: an announcement can be lost.
pub(super) const RECOGNIZED: Duration = Duration::from_secs(60);
/// The same while it is doubtful who has its address.
pub(super) const DOUBTED: Duration = Duration::from_secs(10);
/// When to ask again for what was asked of an address that may have become another node's meanwhile.
const AGAIN: Duration = Duration::from_secs(1);

/// The result of a task of the bridge.
pub(super) enum Told {
    Reading(Reading),
    Circuits(ReadingOfCircuits),
    /// A command was carried out, or not; `reading` has the values read afterwards.
    Written {
        number: u64,
        failure: Option<WriteFailure>,
        reading: Reading,
    },
    /// The node that answers at `other`, the second address of the node at `addr`.
    Namesake {
        addr: NodeAddr,
        other: NodeAddr,
        namesake: Namesake,
    },
}

/// Why something was not written.
pub(super) enum WriteFailure {
    /// The node is not at its address: it can be at another one.
    Elsewhere(String),
    /// The device refuses it.
    Refused(String),
    /// It was sent and not answered, or could not be sent.
    Unanswered(String),
}

/// Values that were read from an object.
pub(super) struct Reading {
    pub(super) name: Name,
    pub(super) eoj: Eoj,
    /// The group that it was time for, if it was.
    pub(super) group: Option<Group>,
    pub(super) values: Vec<(u8, Vec<u8>)>,
    /// Where, and how often it was doubtful who is there.
    pub(super) place: (NodeAddr, u64),
}

/// Values of ranges of a board's circuits.
pub(super) struct ReadingOfCircuits {
    pub(super) name: Name,
    pub(super) eoj: Eoj,
    pub(super) values: Vec<(Part, Vec<u8>)>,
    /// Where, and how often it was doubtful who is there.
    pub(super) place: (NodeAddr, u64),
}

impl Bridge<'_> {
    /// Has a group of an object asked for after a time, instead of when it was planned before.
    pub(super) fn plan(&mut self, name: &Name, eoj: Eoj, group: Group, after: Duration) {
        self.due.retain(|(_, of, object, which)| (of, *object, *which) != (name, eoj, group));
        self.due.insert((Instant::now() + after, name.clone(), eoj, group));
    }

    /// Has an object asked for all that it has, once it is described; until then that is planned.
    pub(super) fn ask_object_soon(&mut self, place: &(Name, Eoj), after: Duration) {
        let Some(thing) = self.things.get(place) else { return };
        let groups: &[Group] = if thing.is_described { &[Group::Silent, Group::Announced] } else { &[Group::First] };
        let has_circuits = thing.is_described && !thing.parts().is_empty();
        groups.iter().for_each(|group| self.plan(&place.0, place.1, *group, after));
        let is_planned = |(_, name, eoj, group): &(Instant, Name, Eoj, Group)| {
            (name, *eoj, *group) == (&place.0, place.1, Group::Circuits)
        };
        // A command to a board is no reason to read all circuits.
        if has_circuits && !self.due.iter().any(is_planned) {
            self.plan(&place.0, place.1, Group::Circuits, after);
        }
    }

    /// Has all objects of a node asked for.
    pub(super) fn ask_soon(&mut self, name: &Name, after: Duration) {
        let eojs = self.nodes.get(name).map(|node| node.eojs.clone()).unwrap_or_default();
        eojs.into_iter().for_each(|eoj| self.ask_object_soon(&(name.clone(), eoj), after));
    }

    /// Asks for what it is time for.
    pub(super) fn ask_due(&mut self) {
        let now = Instant::now();
        while let Some((_, name, eoj, group)) = self.due.first().filter(|(at, ..)| *at <= now).cloned() {
            self.due.pop_first();
            if group == Group::Identity {
                self.recognize(&name);
                continue;
            }
            if group == Group::Circuits {
                self.ask_circuits(&name, eoj);
                continue;
            }
            // A node that is found again is asked then.
            let Some((addr, _)) = self.certain_place(&name) else { continue };
            let Some(thing) = self.things.get(&(name.clone(), eoj)) else { continue };
            let batches = thing.quirks.batches(thing.properties(group));
            let (endpoint, told, place) =
                (self.endpoint.clone(), self.told.clone(), (addr, self.directory.doubts(addr)));
            tokio::spawn(async move {
                let values = read(&endpoint, addr, eoj, batches).await;
                // The bridge has ended.
                let _ = told.send(Told::Reading(Reading { name, eoj, group: Some(group), values, place }));
            });
        }
    }

    /// Asks a node for its identity. Another answer than the known one arrives as an event.
    fn recognize(&mut self, name: &Name) {
        let Some((addr, _)) = self.directory.place(name) else { return };
        if self.directory.is_doubted(addr) {
            self.endpoint.interview(addr);
            self.plan(name, Eoj::NODE_PROFILE, Group::Identity, DOUBTED);
            return;
        }
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move { endpoint.get(addr, Eoj::NODE_PROFILE, &[0x83, 0x8A, 0xD6]).await.map(drop) });
        self.plan(name, Eoj::NODE_PROFILE, Group::Identity, RECOGNIZED);
    }

    /// Takes what a task has found out.
    pub(super) fn take(&mut self, told: Told) -> Result<(), Failure> {
        match told {
            Told::Reading(reading) => self.take_reading(reading),
            Told::Circuits(reading) => self.take_circuits(reading),
            Told::Written { number, failure, reading } => {
                self.take_reading(reading);
                self.written(number, failure);
            }
            Told::Namesake { addr, other, namesake } => self.resolved(addr, other, namesake)?,
        }
        Ok(())
    }

    fn take_reading(&mut self, reading: Reading) {
        let Reading { name, eoj, group, values, place: (addr, doubts) } = reading;
        if !self.things.contains_key(&(name.clone(), eoj)) {
            return;
        }
        if !self.is_its_own(&name, (addr, doubts)) {
            if let Some(group) = group {
                self.plan(&name, eoj, group, AGAIN);
            }
            return;
        }
        let changed = self.take_values(&name, eoj, values.iter().map(|(epc, edt)| (*epc, edt.as_slice())));
        let Some(thing) = self.things.get_mut(&(name.clone(), eoj)) else { return };
        match group {
            Some(Group::First) if values.is_empty() && !thing.properties(Group::First).is_empty() => {
                let after = thing.next(Group::First, self.args.poll, false);
                self.plan(&name, eoj, Group::First, after);
            }
            // It has told a product code whose devices have other properties.
            Some(Group::First) if thing.is_now_of_product() => self.plan(&name, eoj, Group::First, Duration::ZERO),
            Some(Group::First) => self.describe(&name, eoj),
            Some(group) => {
                let after = thing.next(group, self.args.poll, changed);
                if !thing.properties(group).is_empty() {
                    self.plan(&name, eoj, group, after);
                }
            }
            None => {}
        }
    }

    /// A node at a place has answered as itself: nothing has made it doubtful since it was asked.
    pub(super) fn is_its_own(&self, name: &Name, (addr, doubts): (NodeAddr, u64)) -> bool {
        self.directory.certain_name(addr) == Some(name) && self.directory.doubts(addr) == doubts
    }

    /// Publishes values of an object; true if one is another than before. An object that has other circuits than before is
    /// described anew.
    pub(super) fn take_values<'v>(
        &mut self,
        name: &Name,
        eoj: Eoj,
        values: impl Iterator<Item = (u8, &'v [u8])>,
    ) -> bool {
        let Some(thing) = self.things.get_mut(&(name.clone(), eoj)) else { return false };
        let before = thing.parts();
        let topics: Vec<_> = values.flat_map(|(epc, edt)| thing.take(epc, edt)).collect();
        let is_other = thing.is_described && thing.parts() != before;
        let changed = !topics.is_empty();
        topics.into_iter().for_each(|(topic, payload)| self.broker.publish(topic, payload));
        if is_other {
            // Not at once: of many changes the last one counts.
            self.plan(name, eoj, Group::First, self.args.poll);
        }
        changed
    }

    /// Tells Home Assistant of an object.
    fn describe(&mut self, name: &Name, eoj: Eoj) {
        let topics = ["bridge", name].map(|id| super::availability(self.args, id));
        let Some(thing) = self.things.get_mut(&(name.clone(), eoj)) else { return };
        let description = thing.description(topics.each_ref().map(String::as_str));
        let was_described = std::mem::replace(&mut thing.is_described, true);
        let circuits = thing.next(Group::Circuits, self.args.poll, true);
        let circuits = if was_described { circuits } else { Duration::ZERO };
        let has_circuits = !thing.parts().is_empty();
        let groups = [Group::Silent, Group::Announced].map(|group| (group, thing.next(group, self.args.poll, true)));
        let groups = groups.map(|(group, after)| (group, after, thing.properties(group).is_empty()));
        self.broker.publish(thing.description_topic(&self.args.discovery), description.to_string());
        self.forget_other_topics(name, eoj);
        for (group, after, _) in groups.into_iter().filter(|(.., is_empty)| !is_empty) {
            self.plan(name, eoj, group, after);
        }
        if has_circuits {
            self.plan(name, eoj, Group::Circuits, circuits);
        }
    }
}

/// Reads properties, in as many requests as the device needs.
pub(super) async fn read(
    endpoint: &echonet_lite::net::Endpoint,
    addr: NodeAddr,
    eoj: Eoj,
    batches: Vec<Vec<u8>>,
) -> Vec<(u8, Vec<u8>)> {
    let mut values = Vec::new();
    for batch in batches {
        // The next poll asks again for properties without an answer.
        let Ok(answer) = endpoint.get(addr, eoj, &batch).await else { continue };
        values.extend(answer.outcomes().filter_map(|outcome| Some((outcome.epc, outcome.value?.to_vec()))));
    }
    values
}

/// The properties to read after a write: those that were written and can be read.
pub(super) fn batches(quirks: &Quirks, written: &[(u8, Vec<u8>)], readable: PropertySet) -> Vec<Vec<u8>> {
    let epcs = written.iter().fold(PropertySet::EMPTY, |set, (epc, _)| set.with(*epc));
    quirks.batches(epcs.intersection(readable))
}
