//! What is known of the home, and who is told when it changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use echonet_lite::controller::{NodeAddr, NodeInfo};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, Value as Json, json};
use tokio::sync::{Notify, broadcast};

use super::device::{Device, Values};
use super::events::message;
use super::histories::Histories;
use super::problem::Problem;
use super::stored::Stored;
use super::{bulks, groups};
use crate::quirks::Table;
use crate::{names, render};

/// Messages that a slow reader may be behind; who is further behind is told everything anew.
const BEHIND: usize = 1024;

/// How long a device has rest at least: readers may come as often as they like.
const REST: Duration = Duration::from_millis(500);

/// In one of so many rounds a device is asked for what it announces, too.
const ALL_EACH: u32 = 30;

/// A message of the stream of events, as it is sent.
pub(super) type Message = Arc<str>;

/// The home.
pub(super) struct Home {
    state: Mutex<State>,
    readers: broadcast::Sender<Message>,
    /// Somebody wants values at other times than before.
    pub(super) replanned: Notify,
}

/// What is known.
pub(super) struct State {
    devices: BTreeMap<String, Known>,
    /// The first part of the ids of a node's devices.
    nodes: HashMap<NodeAddr, String>,
    pub(super) groups: Stored<groups::Group>,
    pub(super) bulks: Stored<bulks::Bulk>,
    pub(super) histories: Histories,
}

/// A device, and what it last said.
pub(super) struct Known {
    pub(super) device: Arc<Device>,
    pub(super) values: Values,
    is_lost: bool,
    /// When it was last asked for what it does not announce, how often, and whether it is being asked.
    asked: Option<Instant>,
    rounds: u32,
    is_asked: bool,
    /// Whether what was written is going to be read.
    is_settling: bool,
}

impl Home {
    pub(super) fn new() -> Self {
        let state = State {
            devices: BTreeMap::new(),
            nodes: HashMap::new(),
            groups: Stored::new("group"),
            bulks: Stored::new("bulk"),
            histories: Histories::new(),
        };
        Self { state: Mutex::new(state), readers: broadcast::Sender::new(BEHIND), replanned: Notify::new() }
    }

    /// Nothing that is done with it can leave it half done.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// There is no such device.
    pub(super) fn device(&self, id: &str) -> Result<Arc<Device>, Problem> {
        self.state().known(id).map(|known| Arc::clone(&known.device))
    }

    /// The devices that are as wanted.
    pub(super) fn devices(&self, wanted: impl Fn(&Device) -> bool) -> Vec<Arc<Device>> {
        let state = self.state();
        let wanted = state.devices.values().filter(|known| wanted(&known.device));
        wanted.map(|known| Arc::clone(&known.device)).collect()
    }

    /// Everything as messages, and what comes after that.
    pub(super) fn read(&self) -> (Vec<Message>, broadcast::Receiver<Message>) {
        let state = self.state();
        (state.devices.values().map(Known::message).collect(), self.readers.subscribe())
    }

    /// Whether somebody wants to know what devices do not announce.
    pub(super) fn is_watched(&self) -> bool {
        self.readers.receiver_count() > 0
    }

    fn tell(&self, make: impl FnOnce() -> Message) {
        if self.is_watched() {
            // Without readers, nobody misses it.
            let _ = self.readers.send(make());
        }
    }

    /// All is known of a node: has the devices that have come, and no more those that have gone. The new ones.
    pub(super) fn has(&self, info: &NodeInfo, quirks: &Table, is_there: impl Fn(NodeAddr) -> bool) -> Vec<Arc<Device>> {
        let mut state = self.state();
        let node = state.node(info, is_there);
        let ids: Vec<_> = info.objects.iter().map(|object| id(&node, object.eoj)).collect();
        let below = format!("{node}-");
        let gone: Vec<_> = state
            .devices
            .keys()
            .filter(|id| id.strip_prefix(&below).is_some_and(is_eoj) && !ids.contains(id))
            .cloned()
            .collect();
        gone.iter().for_each(|id| self.forget(&mut state, id));
        let mut new = Vec::new();
        for (object, id) in info.objects.iter().zip(ids) {
            let (Some(class), Some(maps)) = (names::class_of(object.eoj), object.maps) else { continue };
            let quirks = quirks.of(info.maker, object.eoj.class_code());
            let maps = quirks.mend(maps);
            let is_known = |known: &Known| (known.device.addr, known.device.maps) == (info.addr, maps);
            if state.devices.get(&id).is_some_and(is_known) {
                continue;
            }
            let (addr, eoj, atomic) = (info.addr, object.eoj, tokio::sync::Mutex::default());
            let (maker, standard) = (info.maker, info.version);
            let device = Arc::new(Device { id: id.clone(), addr, eoj, class, maps, quirks, maker, standard, atomic });
            let known = Known {
                device: Arc::clone(&device),
                values: Values::new(),
                is_lost: info.is_lost,
                asked: None,
                rounds: 0,
                is_asked: false,
                is_settling: false,
            };
            self.tell(|| known.message());
            state.devices.insert(id, known);
            new.push(device);
        }
        new
    }

    fn forget(&self, state: &mut State, id: &str) {
        if state.devices.remove(id).is_some() {
            self.tell(|| message("gone", &json!({ "id": id })));
        }
    }

    /// A node is no more, or is another one.
    pub(super) fn lacks(&self, addr: NodeAddr) {
        let mut state = self.state();
        state.nodes.remove(&addr);
        let ids: Vec<_> = state.of(addr).map(|known| known.device.id.clone()).collect();
        ids.iter().for_each(|id| self.forget(&mut state, id));
    }

    /// A node answers no more, or again.
    pub(super) fn is_lost(&self, addr: NodeAddr, is_lost: bool) {
        let mut state = self.state();
        for known in state.devices.values_mut().filter(|known| known.device.addr == addr) {
            if std::mem::replace(&mut known.is_lost, is_lost) != is_lost {
                self.tell(|| message("status", &json!({ "id": known.device.id, "online": !is_lost })));
            }
        }
    }

    /// A device has said something.
    pub(super) fn take(&self, addr: NodeAddr, eoj: Eoj, said: &[(u8, Vec<u8>)]) {
        let mut state = self.state();
        let Some(id) = state.nodes.get(&addr).map(|node| id(node, eoj)) else { return };
        let State { devices, histories, .. } = &mut *state;
        let Some(known) = devices.get_mut(&id) else { return };
        let is_new = |(epc, edt): &&(u8, Vec<u8>)| known.values.get(epc) != Some(edt);
        let news: Vec<_> = said.iter().filter(is_new).cloned().collect();
        let changed = news.iter().fold(PropertySet::EMPTY, |set, (epc, _)| set.with(*epc));
        known.values.extend(news);
        let touched =
            |epc: u8, counted_in: PropertySet| changed.contains(epc) || !counted_in.intersection(changed).is_empty();
        let resources = known.device.resources().filter(|resource| resource.is_readable);
        for resource in resources.filter(|of| touched(of.spec.epc, known.device.coefficients(of.spec))) {
            let Some(value) = known.device.read(resource.spec, &known.values) else { continue };
            histories.changed(&id, resource.spec.epc, &value);
            self.tell(|| message("property", &json!({ "id": id, "name": resource.name, "value": value })));
        }
    }

    /// The devices that are to be asked now, and for what: those that have told nothing yet for everything, the others for
    /// what they do not announce, while somebody looks.
    pub(super) fn due(&self, now: Instant) -> Vec<(Arc<Device>, PropertySet)> {
        let is_watched = self.is_watched();
        let mut state = self.state();
        let mut due = Vec::new();
        for known in state.devices.values_mut().filter(|known| !known.is_lost && !known.is_asked) {
            let epcs = match (known.values.is_empty(), is_watched) {
                (true, _) => known.device.readable(),
                // An announcement may have been lost.
                (false, true) if known.rounds % ALL_EACH == ALL_EACH - 1 => known.device.state(),
                (false, true) => known.device.silent(),
                (false, false) => continue,
            };
            known.rounds = known.rounds.wrapping_add(1);
            let rest = known.device.quirks.poll_least.max(REST);
            let is_early = known.asked.is_some_and(|asked| now < asked + rest);
            if is_early || epcs.is_empty() {
                continue;
            }
            (known.asked, known.is_asked) = (Some(now), true);
            due.push((Arc::clone(&known.device), epcs));
        }
        due
    }

    /// A device has been asked.
    pub(super) fn was_asked(&self, id: &str) {
        if let Some(known) = self.state().devices.get_mut(id) {
            known.is_asked = false;
        }
    }

    /// Whether what was written has to be read by whoever asks this; not if somebody else is about to.
    pub(super) fn settles(&self, id: &str) -> bool {
        let mut state = self.state();
        state.devices.get_mut(id).is_some_and(|known| !std::mem::replace(&mut known.is_settling, true))
    }

    pub(super) fn has_settled(&self, id: &str) {
        if let Some(known) = self.state().devices.get_mut(id) {
            known.is_settling = false;
        }
    }
}

impl State {
    /// # Errors
    /// There is no such device.
    pub(super) fn known(&self, id: &str) -> Result<&Known, Problem> {
        self.devices.get(id).ok_or_else(|| Problem::unknown(format!("there is no device {id:.100}")))
    }

    /// All devices, by their ids.
    pub(super) fn devices(&self) -> impl ExactSizeIterator<Item = &Known> {
        self.devices.values()
    }

    fn of(&self, addr: NodeAddr) -> impl Iterator<Item = &Known> {
        self.devices.values().filter(move |known| known.device.addr == addr)
    }

    /// The first part of the ids of a node's devices: its identification number. Makers who give all their devices the same
    /// have the address behind it, unless who had the number before is there no more, and so has moved.
    fn node(&mut self, info: &NodeInfo, is_there: impl Fn(NodeAddr) -> bool) -> String {
        if let Some(known) = self.nodes.get(&info.addr) {
            return known.clone();
        }
        let number = info.identification.as_ref().map(|number| render::hex(number).to_lowercase());
        let mut name = number.unwrap_or_else(|| plain(info.addr));
        let namesake = self.nodes.iter().find(|(_, known)| **known == name).map(|(addr, _)| *addr);
        match namesake {
            Some(other) if is_there(other) => name = format!("{name}-{}", plain(info.addr)),
            Some(other) => {
                self.nodes.remove(&other);
            }
            None => {}
        }
        self.nodes.insert(info.addr, name.clone());
        name
    }
}

impl Known {
    pub(super) fn profile(&self) -> Json {
        self.device.profile(&self.values)
    }

    /// Its description with its values.
    fn message(&self) -> Message {
        let mut description = self.device.description();
        for resource in self.device.resources().filter(|resource| resource.is_readable) {
            let value = self.device.read(resource.spec, &self.values);
            description["properties"][resource.name]["value"] = value.unwrap_or(Json::Null);
        }
        let mut all = Map::new();
        all.insert("id".into(), self.device.id.clone().into());
        all.insert("address".into(), self.device.addr.to_string().into());
        all.insert("instance".into(), self.device.eoj.instance().into());
        all.insert("online".into(), (!self.is_lost).into());
        if let Json::Object(description) = description {
            all.extend(description);
        }
        message("device", &all.into())
    }
}

/// The id of a node's device.
fn id(node: &str, eoj: Eoj) -> String {
    format!("{node}-{}", eoj.to_string().to_lowercase())
}

/// Whether the rest of an id names an object, and not a namesake's address.
fn is_eoj(rest: &str) -> bool {
    rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An address as a part of an id.
fn plain(addr: NodeAddr) -> String {
    addr.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
