//! Slots that others have now, as far as their keys are still here: these go by and by, on a thread of its own.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Cluster;
use crate::cluster::SlotSet;
use crate::exec::cluster::state::{LostSlots, lock};
use crate::exec::core::pace::Pace;
use crate::exec::core::{Instance, priority};
use crate::threads::{self, OnPanic};

/// Keys of a slot that are removed under one lock.
const SLICE: usize = 256;
/// How long to wait, between two looks, for threads that work with a slot's keys.
const NAP: Duration = Duration::from_millis(1);

/// How much of a slot's keys has been removed.
#[derive(PartialEq, Eq)]
enum Dropped {
    /// None are left, or they are not lost any more.
    All,
    Part,
    /// Another thread works with the slot, or with all that is left.
    Nothing,
}

impl LostSlots {
    /// Keys of these slots are to be removed.
    pub(super) fn add(&self, lost: &SlotSet) {
        let mut slots = lock(&self.slots);
        lost.iter().for_each(|slot| _ = slots.add(slot));
    }

    /// Slots of which this is so are this node's again. The rest of their keys goes now, unless another thread works with it,
    /// and nothing goes later.
    pub(super) fn give_back(&self, instance: &Instance, is_back: impl Fn(u16) -> bool) {
        let back: Vec<u16> = lock(&self.slots).iter().filter(|&slot| is_back(slot)).collect();
        for slot in back {
            self.drop_slot(instance, slot);
            lock(&self.slots).remove(slot);
        }
    }

    fn is_empty(&self) -> bool {
        lock(&self.slots).is_empty()
    }

    /// Removes some keys of a slot.
    fn drop_some(&self, instance: &Instance, slot: u16) -> Dropped {
        let database = instance.database(0);
        // As long as this is locked, the slot does not come back.
        let mut slots = lock(&self.slots);
        if !slots.has(slot) {
            return Dropped::All;
        }
        let entries = database.drop_slot(slot, SLICE).unwrap_or_default();
        let is_empty = database.keys_in_slot(slot) == 0;
        if is_empty {
            slots.remove(slot);
        }
        drop(slots);
        let dropped = match (is_empty, entries.is_empty()) {
            (true, _) => Dropped::All,
            (false, false) => Dropped::Part,
            (false, true) => Dropped::Nothing,
        };
        entries.into_iter().for_each(|entry| instance.reaper.discard(entry));
        dropped
    }

    /// Removes all keys of a slot, in one go; whether none is left.
    fn drop_slot(&self, instance: &Instance, slot: u16) -> bool {
        loop {
            match self.drop_some(instance, slot) {
                Dropped::Part => {}
                dropped => return dropped == Dropped::All,
            }
        }
    }

    /// Removes all keys of all slots, and rests while clients are served.
    fn drop_all(&self, instance: &Instance) {
        let mut pace = Pace::new(instance);
        loop {
            threads::panic_point();
            let lost: Vec<u16> = lock(&self.slots).iter().collect();
            for slot in lost {
                loop {
                    let dropped = self.drop_some(instance, slot);
                    pace.rest(Duration::ZERO);
                    if dropped != Dropped::Part || instance.is_ending() {
                        break;
                    }
                }
            }
            if self.is_empty() || instance.is_ending() {
                return;
            }
            thread::sleep(NAP);
        }
    }
}

impl Cluster {
    /// Has keys removed of slots that others have now; whether some are left.
    pub fn drop_lost_keys(&self, instance: &Arc<Instance>) -> bool {
        let lost = &self.node.lost;
        let mut dropping = lock(&lost.thread);
        if !lost.is_empty() && dropping.as_ref().is_none_or(JoinHandle::is_finished) {
            let shared = Arc::clone(instance);
            let run = move || {
                priority::lower(priority::MOVES);
                shared.cluster.node.lost.drop_all(&shared);
            };
            // The next look finds that it has ended, and starts another.
            match threads::spawn("slots-gone", OnPanic::Report, run) {
                Ok(begun) => *dropping = Some(begun),
                Err(error) => {
                    tracing::error!("there is no thread that removes keys of slots that others have: {error}");
                }
            }
        }
        drop(dropping);
        self.look_after_drops(instance);
        !lost.is_empty()
    }

    /// Removes what is left of the keys of a slot that others have, before any can come; whether none is left.
    pub(crate) fn drop_lost_slot(&self, instance: &Instance, slot: u16) -> bool {
        self.node.lost.drop_slot(instance, slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::TABLE;
    use crate::config::{Config, Launch};
    use crate::keyspace::{Access, Value};

    /// The slot of the tag `{a}`.
    const SLOT: u16 = 15_495;

    fn node() -> Instance {
        let launch = Launch::from_flags(&["--cluster-enabled", "yes"]).expect("a flag");
        let (config, _) = Config::load(&launch, std::iter::empty()).expect("valid settings");
        Instance::new(Arc::new(config), &TABLE)
    }

    fn fill(instance: &Instance, keys: usize) {
        let database = instance.database(0);
        for at in 0..keys {
            let name = format!("{{a}}{at}");
            let mut keys = [(database.key(name.as_bytes()), Access::Write)];
            let mut view = database.lock_keys(&mut keys, 1);
            view.set(&keys[0].0, Value::Int(1), None);
        }
    }

    #[test]
    fn keys_added_after_a_slot_removal_stay() {
        let (instance, lost) = (node(), LostSlots::default());
        let slots: SlotSet = [SLOT].into_iter().collect();
        let keys = || instance.database(0).keys_in_slot(SLOT);
        fill(&instance, 1000);
        lost.add(&slots);
        assert!(lost.drop_some(&instance, SLOT) == Dropped::Part && keys() == 1000 - SLICE);
        // It is this node's again: nothing of what it had is to be seen, and nothing goes of what it gets.
        lost.give_back(&instance, |slot| slot == SLOT);
        assert_eq!(keys(), 0);
        fill(&instance, 10);
        lost.drop_all(&instance);
        assert_eq!(keys(), 10);
        // It gets keys before it is, which come behind the removal of all.
        lost.add(&slots);
        assert!(lost.drop_slot(&instance, SLOT));
        fill(&instance, 10);
        lost.drop_all(&instance);
        assert!(lost.is_empty() && keys() == 10);
    }
}
