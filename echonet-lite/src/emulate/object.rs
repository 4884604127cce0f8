//! An object that is nothing but the table of its class and a value for each property.

use core::fmt;
use core::time::Duration;
use std::borrow::ToOwned;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

use super::defaults;
use super::live::Live;
use crate::class::{Class, Rule};
use crate::node::{self, Object, PropertyAccess, Refused};
use crate::wire::{Eoj, PropertySet};

/// Told of every value that is written: object, property, value.
type Listener = Box<dyn FnMut(Eoj, u8, &[u8]) + Send>;

/// An object of any class: it has the properties of the class's table, takes what that allows and gives back what it took.
pub struct Emulated {
    class: &'static Class,
    eoj: Eoj,
    access: PropertyAccess,
    values: BTreeMap<u8, Vec<u8>>,
    listener: Option<Listener>,
    live: Option<Live>,
    /// The last value of the live property whose changes are announced.
    announced: Option<Vec<u8>>,
    pub(super) takes_anything: bool,
    pub(super) unwritable: PropertySet,
}

impl fmt::Debug for Emulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulated").field("eoj", &self.eoj).field("values", &self.values).finish_non_exhaustive()
    }
}

impl Emulated {
    /// An object of a class with plausible values, of a maker, with a serial number; with all properties of the class, or only
    /// those that every device of it must have.
    pub fn new(class: &'static Class, instance: u8, mandatory: bool, maker: [u8; 3], serial: u64) -> Self {
        let is_wanted = |rule: Rule| if mandatory { rule.is_required() } else { rule.is_applicable() };
        let mut access = PropertyAccess::NONE.union(PropertyAccess::new(&[], &[], &[]));
        let mut values = BTreeMap::new();
        // Of alternatives the first is the least that a device must have.
        let chosen: PropertySet = class.either.iter().filter_map(|set| set.iter().next()).collect();
        for spec in class.all_properties() {
            // The node does the maps.
            if PropertyAccess::MAPS.contains(spec.epc) {
                continue;
            }
            let is_chosen = chosen.contains(spec.epc);
            let [get, set] =
                [spec.access.get, spec.access.set].map(|rule| is_wanted(rule) || (is_chosen && rule.is_applicable()));
            if get || set {
                access = access.with(spec.epc, [get, set, spec.access.inf.is_required_if_present()]);
                values.insert(spec.epc, defaults::value(class, spec, maker, serial));
            }
        }
        let eoj = class.code.instance(instance);
        let unwritable = PropertySet::EMPTY;
        let (live, announced) = (None, None);
        Self { class, eoj, access, values, listener: None, live, announced, takes_anything: false, unwritable }
    }

    /// Has its values change with time from a moment on, counted from 1970. The `given` ones begin as they are.
    pub(super) fn enliven(&mut self, given: &[u8], now: Duration) {
        self.live = Live::new(self.class, &mut self.values, given, now);
        self.announced = self.live_announcement().map(|(_, edt)| edt);
    }

    /// Goes on to a moment. The property to announce, if one has another value than before.
    pub(super) fn advance(&mut self, now: Duration) -> Option<u8> {
        self.live.as_mut()?.advance(now);
        let (epc, edt) = self.live_announcement()?;
        let is_changed = self.announced.as_ref() != Some(&edt);
        self.announced = Some(edt);
        is_changed.then_some(epc)
    }

    /// When a value changes that is announced.
    pub(super) fn next(&self) -> Option<Duration> {
        self.live.as_ref()?.next()
    }

    /// The property whose changes are announced while time goes on, and its value.
    fn live_announcement(&self) -> Option<(u8, Vec<u8>)> {
        let live = self.live.as_ref()?;
        let epc = live.announced().filter(|epc| self.access.announce.contains(*epc))?;
        Some((epc, live.value(epc, &self.values)?))
    }

    /// Takes a value.
    fn store(&mut self, epc: u8, edt: &[u8]) -> bool {
        let Some(value) = self.values.get_mut(&epc) else { return false };
        edt.clone_into(value);
        if let Some(live) = &mut self.live {
            live.told(epc, &self.values);
        }
        true
    }

    /// Has a function told of every value that others write.
    pub fn on_write(&mut self, listener: impl FnMut(Eoj, u8, &[u8]) + Send + 'static) {
        self.listener = Some(Box::new(listener));
    }

    /// Its class.
    pub fn class(&self) -> &'static Class {
        self.class
    }

    /// Its values, by property; of one that changes with time the last that was written.
    pub fn values(&self) -> impl Iterator<Item = (u8, &[u8])> {
        self.values.iter().map(|(epc, edt)| (*epc, &edt[..]))
    }

    /// Changes the value of a property, whatever its class allows; announcing that is up to the caller. False if it has no
    /// such property.
    pub fn put(&mut self, epc: u8, edt: &[u8]) -> bool {
        self.store(epc, edt)
    }

    /// Takes a property away.
    pub(super) fn remove(&mut self, epc: u8) {
        self.values.remove(&epc);
        self.access = self.access.without(PropertySet::EMPTY.with(epc));
    }
}

impl Object for Emulated {
    fn eoj(&self) -> Eoj {
        self.eoj
    }

    fn access(&self) -> &PropertyAccess {
        &self.access
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        let stored = self.values.get(&epc).ok_or(Refused::NoProperty)?;
        match self.live.as_ref().and_then(|live| live.value(epc, &self.values)) {
            Some(live) => node::put(edt, &live),
            None => node::put(edt, stored),
        }
    }

    fn check(&self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        if self.unwritable.contains(epc) {
            return Err(Refused::NotNow);
        }
        if self.takes_anything { Ok(()) } else { node::check(self.class, epc, edt) }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        if !self.store(epc, edt) {
            return Err(Refused::NoProperty);
        }
        if let Some(listener) = &mut self.listener {
            listener(self.eoj, epc, edt);
        }
        Ok(())
    }
}
