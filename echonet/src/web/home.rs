//! The known state of the home, and the readers of its changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use echonet_lite::controller::{NodeAddr, NodeInfo};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, Value as Json, json};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use super::device::{Device, Values};
use super::histories::Histories;
use super::problem::Problem;
use super::stored::Stored;
use super::{bulks, groups, schema};
use crate::circuits::{Circuits, Part};
use crate::directory::{Directory, Found, Name, Namesake};
use crate::quirks::Table;
use crate::{data, names};

/// Messages that a slow reader may be behind. A reader that is further behind gets everything anew.
const BEHIND: usize = 1024;

/// How long a device has rest at least: readers may come as often as they like.
const REST: Duration = Duration::from_millis(500);

/// How long after its last request a reader of the metrics counts as one: two of its usual intervals, and more.
const SCRAPED: Duration = Duration::from_secs(300);

/// In one of so many rounds a device is asked for what it announces, too.
const ALL_EACH: u32 = 30;

/// A message of the stream of events, as it is sent.
pub(super) type Message = Arc<str>;

/// The home.
pub(super) struct Home {
    state: Mutex<State>,
    readers: broadcast::Sender<Message>,
    /// A reader or a history needs values at other times than before.
    pub(super) replanned: Notify,
    /// A node has been found, perhaps at another address.
    pub(super) moved: Notify,
    /// When the metrics were last read.
    scraped: Mutex<Option<Instant>>,
}

/// The known state.
pub(super) struct State {
    devices: BTreeMap<String, Known>,
    /// The first part of the ids of a node's devices is its name.
    directory: Directory,
    pub(super) groups: Stored<groups::Group>,
    pub(super) bulks: Stored<bulks::Bulk>,
    pub(super) histories: Histories,
}

/// The result of meeting a node that has told its identity.
pub(super) enum Met {
    /// These of its devices are new, or somewhere else.
    Devices(Vec<Arc<Device>>),
    /// It is known at another address.
    Elsewhere(NodeAddr),
}

/// A device that is to be asked.
pub(super) struct Due {
    pub(super) device: Arc<Device>,
    pub(super) epcs: PropertySet,
    /// Ranges of its circuits.
    pub(super) parts: Vec<Part>,
}

/// A device, and its latest values.
pub(super) struct Known {
    pub(super) device: Arc<Device>,
    pub(super) values: Values,
    pub(super) circuits: Circuits,
    /// Rounds until its circuits are asked for: one for each of their ranges.
    circuits_rest: usize,
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
            directory: Directory::new('-'),
            groups: Stored::new("group"),
            bulks: Stored::new("bulk"),
            histories: Histories::new(),
        };
        Self {
            state: Mutex::new(state),
            readers: broadcast::Sender::new(BEHIND),
            replanned: Notify::new(),
            moved: Notify::new(),
            scraped: Mutex::new(None),
        }
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

    /// Everything as messages, and a receiver of the later ones.
    pub(super) fn read(&self) -> (Vec<Message>, broadcast::Receiver<Message>) {
        let state = self.state();
        (state.devices.values().map(Known::message).collect(), self.readers.subscribe())
    }

    /// True while a reader needs values that devices do not announce.
    pub(super) fn is_watched(&self) -> bool {
        self.readers.receiver_count() > 0 || self.is_scraped()
    }

    fn is_scraped(&self) -> bool {
        let scraped = *self.scraped.lock().unwrap_or_else(PoisonError::into_inner);
        scraped.is_some_and(|at| at.elapsed() < SCRAPED)
    }

    /// The metrics have been read. The first time, values that devices do not announce are asked for at once.
    pub(super) fn was_scraped(&self) {
        let was_watched = self.is_watched();
        *self.scraped.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !was_watched {
            self.replanned.notify_one();
        }
    }

    fn tell(&self, make: impl FnOnce() -> Message) {
        if self.is_watched() {
            // Without a reader, the message is dropped.
            let _ = self.readers.send(make());
        }
    }

    /// All is known of a node: has the devices that have come, and no more those that have gone.
    pub(super) fn has(&self, info: &NodeInfo, quirks: &Table) -> Met {
        let found = self.state().directory.ready(info);
        self.found(info, quirks, found)
    }

    /// It has been asked whether a node is at the address that it had before.
    pub(super) fn resolved(&self, info: &NodeInfo, quirks: &Table, other: NodeAddr, namesake: Namesake) -> Met {
        let found = self.state().directory.resolve(info, other, namesake);
        self.found(info, quirks, found)
    }

    fn found(&self, info: &NodeInfo, quirks: &Table, found: Found) -> Met {
        match found {
            Found::Nameless => Met::Devices(Vec::new()),
            Found::Here(name) | Found::Arrived(name) => Met::Devices(self.has_devices(info, quirks, &name)),
            Found::Elsewhere(other) => Met::Elsewhere(other),
        }
    }

    /// The devices of a node that are new, or somewhere else.
    fn has_devices(&self, info: &NodeInfo, quirks: &Table, node: &str) -> Vec<Arc<Device>> {
        let mut state = self.state();
        let Some((addr, node_id)) = state.directory.place(node) else { return Vec::new() };
        let ids: Vec<_> = info.objects.iter().map(|object| id(node, object.eoj)).collect();
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
            let class = data::variant(class, info.maker, None);
            let quirks = quirks.of(info.maker, object.eoj.class_code());
            let maps = quirks.mend(maps);
            if let Some(known) = state.devices.get_mut(&id) {
                self.is_online(known, !info.is_lost);
                if (known.device.addr, known.device.maps) == (addr, maps) {
                    continue;
                }
            }
            let (eoj, atomic) = (object.eoj, tokio::sync::Mutex::default());
            let (maker, standard) = (info.maker, info.version);
            let device =
                Device { id: id.clone(), node: node_id, addr, eoj, class, maps, quirks, maker, standard, atomic };
            let device = Arc::new(device);
            let known = Known {
                device: Arc::clone(&device),
                values: Values::new(),
                circuits: Circuits::default(),
                circuits_rest: 0,
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

    /// Another node can have an address since: its answers say nothing until it has told its identity.
    pub(super) fn doubt(&self, addr: NodeAddr) {
        self.state().directory.doubt(addr);
    }

    /// The node that was at an address is there no more: its devices are offline if it has no other.
    pub(super) fn left(&self, addr: NodeAddr) {
        self.leaves(addr, Directory::left);
    }

    /// A node answers no more at an address.
    pub(super) fn lost(&self, addr: NodeAddr) {
        self.leaves(addr, Directory::lost);
    }

    fn leaves(&self, addr: NodeAddr, leave: impl Fn(&mut Directory, NodeAddr) -> Option<Name>) {
        let mut state = self.state();
        let Some(name) = state.directory.last_known_name(addr).cloned() else { return };
        match leave(&mut state.directory, addr) {
            Some(name) => self.is_node_online(&mut state, &name, false),
            None => self.follow(&mut state, &name),
        }
    }

    /// True for a device whose node has more than one address.
    pub(super) fn has_other(&self, device: &Device) -> bool {
        let node = device.id.rsplit_once('-').map(|(node, _)| node);
        node.is_some_and(|node| self.state().directory.has_other(node))
    }

    /// Returns when a device is at another address than this one.
    pub(super) async fn has_moved(&self, device: &Device, from: NodeAddr) {
        loop {
            // Looked at before the address is, so that no move is missed.
            let moved = self.moved.notified();
            if self.device(&device.id).is_ok_and(|device| device.addr != from) {
                return;
            }
            moved.await;
        }
    }

    /// A device does not answer at an address of its node: the next one is used, if there is one.
    pub(super) fn turns(&self, device: &Device, addr: NodeAddr) -> bool {
        let mut state = self.state();
        let Some((node, _)) = device.id.rsplit_once('-') else { return false };
        let is_turned = state.directory.use_next(node, addr);
        if is_turned {
            self.follow(&mut state, node);
        }
        is_turned
    }

    /// Has the devices of a node where the node is now.
    fn follow(&self, state: &mut State, node: &str) {
        let Some((addr, _)) = state.directory.place(node) else { return };
        for known in state.devices.values_mut().filter(|known| is_of(known, node)) {
            if known.device.addr != addr {
                known.device = Arc::new(known.device.at(addr));
            }
        }
        self.moved.notify_waiters();
    }

    fn is_node_online(&self, state: &mut State, node: &str, is_online: bool) {
        let devices = state.devices.values_mut().filter(|known| is_of(known, node));
        devices.for_each(|known| self.is_online(known, is_online));
    }

    fn is_online(&self, known: &mut Known, is_online: bool) {
        if std::mem::replace(&mut known.is_lost, !is_online) == is_online {
            self.tell(|| message("status", &json!({ "id": known.device.id, "online": is_online })));
        }
    }

    /// How often it was doubtful who is at a device's address; none while it is, or while the device is at no address.
    pub(super) fn certainty(&self, device: &Device) -> Option<u64> {
        let state = self.state();
        let who = state.directory.certain_name(device.addr)?;
        let is_its_own = device.id.strip_prefix(&**who).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_eoj);
        is_its_own.then(|| state.directory.doubts(device.addr))
    }

    /// Whether a device is certain to be at an address.
    pub(super) fn is_certainly_at(&self, device: &Device, addr: NodeAddr) -> bool {
        let place = self.device(&device.id).map(|device| (device.addr, self.certainty(&device).is_some()));
        place.is_ok_and(|place| place == (addr, true))
    }

    /// A node has announced something.
    pub(super) fn hear(&self, addr: NodeAddr, eoj: Eoj, said: &[(u8, Vec<u8>)]) {
        let mut state = self.state();
        let Some(id) = state.directory.certain_name(addr).map(|node| id(node, eoj)) else { return };
        self.learn(&mut state, &id, said);
    }

    /// A device has answered; `certainty` is what it was when it was asked.
    pub(super) fn take(&self, device: &Device, certainty: Option<u64>, said: &[(u8, Vec<u8>)]) {
        if certainty.is_some() && self.certainty(device) == certainty {
            self.learn(&mut self.state(), &device.id, said);
        }
    }

    /// A device has answered a request that was only for its node, wherever that is now.
    pub(super) fn take_its_own(&self, device: &Device, said: &[(u8, Vec<u8>)]) {
        // Meanwhile it may have gone.
        let Ok(device) = self.device(&device.id) else { return };
        self.take(&device, self.certainty(&device), said);
    }

    /// A device has said something.
    fn learn(&self, state: &mut State, id: &str, said: &[(u8, Vec<u8>)]) {
        let State { devices, histories, .. } = state;
        let Some(known) = devices.get_mut(id) else { return };
        let is_new = |(epc, edt): &&(u8, Vec<u8>)| known.values.get(epc) != Some(edt);
        let news: Vec<_> = said.iter().filter(is_new).cloned().collect();
        let changed = news.iter().fold(PropertySet::EMPTY, |set, (epc, _)| set.with(*epc));
        known.values.extend(news);
        if let Some(device) = known.device.of_product(&known.values) {
            // Its further properties are asked for as those of a new device.
            (known.device, known.values) = (Arc::new(device), Values::new());
            self.tell(|| known.message());
            self.replanned.notify_one();
            return;
        }
        let touched =
            |epc: u8, counted_in: PropertySet| changed.contains(epc) || !counted_in.intersection(changed).is_empty();
        let resources = known.device.resources().filter(|resource| resource.is_readable);
        for resource in resources.filter(|of| touched(of.spec.epc, known.device.coefficients(of.spec))) {
            let Some(value) = known.device.read(resource.spec, &known.values) else { continue };
            histories.changed(id, resource.spec.epc, &value);
            self.tell(|| message("property", &json!({ "id": id, "name": resource.name, "value": value })));
        }
    }

    /// A board has told values of its circuits; `certainty` is as for [`take`](Self::take).
    pub(super) fn take_circuits(&self, device: &Device, certainty: Option<u64>, said: &[(Part, Vec<u8>)]) {
        if certainty.is_none() || self.certainty(device) != certainty {
            return;
        }
        let mut state = self.state();
        let Some(known) = state.devices.get_mut(&device.id) else { return };
        let changes = said.iter().map(|(part, edt)| known.circuits.take(*part, edt).len());
        if changes.sum::<usize>() > 0 {
            let value = known.circuits();
            self.tell(|| message("property", &json!({ "id": device.id, "name": schema::CIRCUITS, "value": value })));
        }
    }

    /// The devices that are to be asked now, and for what: those that have told nothing yet for everything, the others for
    /// the values that they do not announce, while a reader is there.
    pub(super) fn due(&self, now: Instant) -> Vec<Due> {
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
            let parts = if is_watched { known.circuits_due() } else { Vec::new() };
            due.push(Due { device: Arc::clone(&known.device), epcs, parts });
        }
        due
    }

    /// A device has been asked.
    pub(super) fn was_asked(&self, id: &str) {
        if let Some(known) = self.state().devices.get_mut(id) {
            known.is_asked = false;
        }
    }

    /// The caller has to read a written value unless another task is about to: true if the caller has to.
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
}

impl Known {
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    pub(super) fn profile(&self) -> Json {
        self.device.profile(&self.values)
    }

    /// The ranges of its circuits, if it is their turn. Each range counts as a round, so that a board of many circuits is
    /// asked no more often than other devices.
    fn circuits_due(&mut self) -> Vec<Part> {
        let parts = self.device.parts(&self.values);
        match self.circuits_rest.checked_sub(1) {
            Some(rest) => {
                self.circuits_rest = rest;
                Vec::new()
            }
            None => {
                self.circuits_rest = parts.len().saturating_sub(1);
                parts
            }
        }
    }

    /// The values of its circuits.
    pub(super) fn circuits(&self) -> Json {
        self.device.circuits(&self.circuits, &self.values)
    }

    /// Its description with its values.
    fn message(&self) -> Message {
        let mut description = self.device.description();
        for resource in self.device.resources().filter(|resource| resource.is_readable) {
            let value = self.device.read(resource.spec, &self.values);
            description["properties"][resource.name]["value"] = value.unwrap_or(Json::Null);
        }
        if self.device.has_circuits() {
            description["properties"][schema::CIRCUITS]["value"] = self.circuits();
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

/// A message of an event.
fn message(event: &str, data: &Json) -> Message {
    format!("event: {event}\ndata: {data}\n\n").into()
}

/// The id of a node's device.
fn id(node: &str, eoj: Eoj) -> String {
    format!("{node}-{}", eoj.to_string().to_lowercase())
}

/// Whether a device is one of a node.
fn is_of(known: &Known, node: &str) -> bool {
    known.device.id.strip_prefix(node).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_eoj)
}

/// Whether the rest of an id names an object, and not a namesake's address.
fn is_eoj(rest: &str) -> bool {
    rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
}
