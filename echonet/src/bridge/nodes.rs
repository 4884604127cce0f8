//! Nodes that come, move and go, and their objects.

use echonet_lite::controller::{NodeAddr, NodeInfo};
use echonet_lite::wire::Eoj;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

use super::asking::{DOUBTED, RECOGNIZED, Told};
use super::broker::{OFFLINE, ONLINE};
use super::thing::{Group, Thing};
use super::{Bridge, availability};
use crate::directory::{Found, Name, Namesake, inquire};
use crate::failure::Failure;
use crate::{data, names, render};

/// How long a node whose address another one has is looked for before it is offline.
const MISSED: Duration = Duration::from_secs(1);

/// A node that is shown.
#[derive(Default)]
pub(super) struct Node {
    pub(super) eojs: Vec<Eoj>,
}

impl Bridge<'_> {
    /// All is known of a node at an address: its objects are asked for their values, and then shown.
    pub(super) fn ready(&mut self, addr: NodeAddr) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(addr).filter(|info| info.is_ready) else { return Ok(()) };
        let info = self.places.mended(info);
        let found = self.directory.ready(&info);
        self.found(&info, found)
    }

    /// It has been asked whether a node is at the address that it had before.
    pub(super) fn resolved(&mut self, addr: NodeAddr, other: NodeAddr, namesake: Namesake) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(addr).filter(|info| info.is_ready) else { return Ok(()) };
        let info = self.places.mended(info);
        let found = self.directory.resolve(&info, other, namesake);
        self.found(&info, found)
    }

    fn found(&mut self, info: &NodeInfo, found: Found) -> Result<(), Failure> {
        match found {
            Found::Nameless => Ok(()),
            Found::Here(name) | Found::Arrived(name) => self.show(info, &name),
            Found::Elsewhere(other) => {
                let (endpoint, told, info) = (self.endpoint.clone(), self.told.clone(), info.clone());
                tokio::spawn(async move {
                    let namesake = match endpoint.node(other) {
                        Some(old) => inquire(&endpoint, &old, &info).await,
                        None => Namesake::Gone,
                    };
                    // The bridge has ended.
                    let _ = told.send(Told::Namesake { addr: info.addr, other, namesake });
                });
                Ok(())
            }
        }
    }

    /// Has the objects of a node that have come, and no more those that have gone.
    fn show(&mut self, info: &NodeInfo, name: &Name) -> Result<(), Failure> {
        let known = self.nodes.remove(name).unwrap_or_default();
        let gone: Vec<_> = known.eojs.into_iter().filter(|eoj| info.object(*eoj).is_none()).collect();
        gone.into_iter().for_each(|eoj| self.hide(name, eoj));
        let mut eojs = Vec::new();
        for object in &info.objects {
            let (Some(class), Some(maps)) = (names::class_of(object.eoj), object.maps) else { continue };
            let class = data::variant(class, info.maker, None);
            eojs.push(object.eoj);
            let quirks = self.quirks.of(info.maker, object.eoj.class_code());
            let place = (name.clone(), object.eoj);
            if self.things.get(&place).is_some_and(|thing| thing.maps == quirks.mend(maps)) {
                self.ask_object_soon(&place, Duration::ZERO);
                continue;
            }
            let names = (self.args.topic.as_str(), &**name);
            let mut thing = Thing::new(class, object.eoj, maps, (quirks, info.maker), names, self.args.poll);
            (thing.wanted, thing.language) = (self.config.of(name, object.eoj), self.language);
            let base = thing.base.clone();
            self.topics.insert(base.clone(), place.clone());
            self.things.insert(place, thing);
            self.out.result(
                || json!({ "event": "found", "address": info.addr.to_string(), "object": render::object_json(object.eoj), "topic": base }),
                || format!("{} {} is {base}", info.addr, render::object(object.eoj)),
            )?;
            self.plan(name, object.eoj, Group::First, Duration::ZERO);
        }
        self.forget_other_objects(name, &eojs);
        self.nodes.insert(name.clone(), Node { eojs });
        self.say_available(name, if info.is_lost { OFFLINE } else { ONLINE });
        self.plan(name, Eoj::NODE_PROFILE, Group::Identity, RECOGNIZED);
        self.carry_out_waiting(name);
        Ok(())
    }

    pub(super) fn say_available(&mut self, name: &Name, state: &str) {
        self.missing.retain(|(_, missing)| missing != name);
        if self.nodes.contains_key(name) {
            self.broker.publish(availability(self.args, name), state.to_owned());
        }
    }

    /// Takes an object back.
    fn hide(&mut self, name: &Name, eoj: Eoj) {
        self.due.retain(|(_, of, object, _)| (of, *object) != (name, eoj));
        let Some(thing) = self.things.remove(&(name.clone(), eoj)) else { return };
        self.topics.remove(&thing.base);
        self.broker.publish(thing.description_topic(&self.args.discovery), String::new());
        self.broker.withdraw(&format!("{}/", thing.base));
    }

    /// Another node may have an address since: its answers are not taken until it has told its identity.
    pub(super) fn doubt(&mut self, addr: NodeAddr) {
        self.directory.doubt(addr);
        if let Some(name) = self.directory.last_known_name(addr).cloned() {
            self.plan(&name, Eoj::NODE_PROFILE, Group::Identity, DOUBTED);
        }
    }

    /// Another node has an address: the one that had it is offline unless it is found elsewhere soon. Home Assistant drops
    /// commands to what is offline, so nodes that swap their addresses stay online.
    pub(super) fn replaced(&mut self, addr: NodeAddr) {
        self.doubt(addr);
        if let Some(name) = self.directory.left(addr) {
            self.missing.retain(|(_, missing)| *missing != name);
            self.missing.push((Instant::now() + MISSED, name));
            self.search_missing();
        }
    }

    /// Nodes that were not found elsewhere in time are offline.
    pub(super) fn miss(&mut self) {
        let now = Instant::now();
        let missed: Vec<_> = self.missing.extract_if(.., |(at, _)| *at <= now).collect();
        missed.iter().for_each(|(_, name)| self.say_available(name, OFFLINE));
    }
}
