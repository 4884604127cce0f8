//! When fields of a hash expire.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Fields whose times stand together: at most a page of memory, less while it is the first ones that expire. Where no field
/// of a page expires there is none.
const PAGE: usize = 512;
/// Times for which there is room at least.
const LEAST: usize = 4;

/// Nothing is due then.
const NEVER: u64 = u64::MAX;

/// The times of a table's fields, in milliseconds of Unix time, by their ids. It has one at least, or is dropped.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// By id; 0: the field does not expire.
    pages: Vec<Option<Box<[u64]>>>,
    due: BTreeSet<Due>,
    watch: Watch,
}

/// A time and the field's id, in 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    high: u32,
    low: u32,
    id: u32,
}

impl Due {
    fn new(at: u64, id: u32) -> Self {
        Self { high: (at >> 32) as u32, low: at as u32, id }
    }

    fn at(self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// The state of the expiry index: the first deadline that it has noted for this hash, and the counter of such hashes.
#[derive(Debug, Default)]
struct Watch {
    at: Option<u64>,
    count: Option<Arc<AtomicUsize>>,
}

impl Watch {
    fn leave(&mut self) {
        if let Some(count) = self.count.take() {
            count.fetch_sub(1, Relaxed);
        }
        self.at = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Clone for Deadlines {
    /// The copy is not in the expiry index.
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), due: self.due.clone(), watch: Watch::default() }
    }
}

impl Deadlines {
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// When a field expires.
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<u64> {
        let page = self.pages.get(id as usize / PAGE)?.as_ref()?;
        page.get(id as usize % PAGE).copied().filter(|&at| at != 0)
    }

    /// Whether a field's time is over at `now`.
    #[inline]
    pub(super) fn is_over(&self, id: u32, now: u64) -> bool {
        self.get(id).is_some_and(|at| at <= now)
    }

    /// Sets or clears a field's time; one that is before all others counts as the first millisecond.
    pub(super) fn set(&mut self, id: u32, at: Option<u64>) {
        if let Some(old) = self.get(id) {
            self.due.remove(&Due::new(old, id));
        }
        let at = at.map(|at| at.max(1));
        if let Some(at) = at {
            self.due.insert(Due::new(at, id));
        }
        let page = id as usize / PAGE;
        if at.is_some() && self.pages.len() <= page {
            if self.pages.is_empty() {
                // Most hashes have no other page.
                self.pages.reserve_exact(page + 1);
            }
            self.pages.resize(page + 1, None);
        }
        let Some(slot) = self.pages.get_mut(page) else { return };
        let place = id as usize % PAGE;
        if let Some(times) = slot
            && place < times.len()
        {
            times[place] = at.unwrap_or(0);
            return;
        }
        let Some(at) = at else { return };
        let mut grown = vec![0; (place + 1).next_power_of_two().max(LEAST)].into_boxed_slice();
        let times = slot.as_deref().unwrap_or_default();
        grown[..times.len()].copy_from_slice(times);
        grown[place] = at;
        *slot = Some(grown);
    }

    /// A field is gone, and what was the `last` one has its id.
    pub(super) fn removed(&mut self, id: u32, last: u32) {
        self.set(id, None);
        if let Some(at) = self.get(last) {
            self.set(last, None);
            self.set(id, Some(at));
        }
        self.pages.truncate((last as usize).div_ceil(PAGE));
    }

    /// When the first field expires.
    pub(super) fn earliest(&self) -> Option<u64> {
        self.due.first().map(|due| due.at())
    }

    /// Fields whose time is over at `now`, the first of them first.
    pub(super) fn over(&self, now: u64) -> impl Iterator<Item = u32> {
        self.due.iter().take_while(move |due| due.at() <= now).map(|due| due.id)
    }

    /// Heap bytes, estimated: nodes of the tree are two thirds full.
    pub(super) fn memory(&self) -> usize {
        let pages: usize = self.pages.iter().flatten().map(|page| size_of_val(&**page)).sum();
        pages + self.pages.capacity() * size_of::<Option<Box<[u64]>>>() + self.due.len() * size_of::<Due>() * 3 / 2
    }

    /// The time that others should know of, if it comes before the one that they do.
    pub(super) fn unwatched(&self) -> Option<u64> {
        self.earliest().filter(|&at| at < self.watch.at.unwrap_or(NEVER))
    }

    /// The time that others know of.
    pub(super) fn watched(&self) -> Option<u64> {
        self.watch.at
    }

    /// Others know of this time from now on; the hash is one of those that `count` counts.
    pub(super) fn watch(&mut self, at: u64, count: &Arc<AtomicUsize>) {
        if self.watch.count.is_none() {
            count.fetch_add(1, Relaxed);
            self.watch.count = Some(Arc::clone(count));
        }
        self.watch.at = Some(at);
    }

    /// Removes the hash from the expiry index.
    pub(super) fn unwatch(&mut self) {
        self.watch.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::testing::Rng;
    use super::*;

    /// Times follow their fields, wherever removal moves them.
    #[test]
    fn behaves_like_a_map_of_ids() {
        let mut rng = Rng::new(11);
        for _ in 0..20 {
            let (mut deadlines, mut model, len) = (Deadlines::default(), BTreeMap::new(), rng.below(3000) + 1);
            let mut len = len as u32;
            for _ in 0..4000 {
                let id = rng.below(len as usize) as u32;
                match rng.below(4) {
                    0 if len > 1 => {
                        len -= 1;
                        deadlines.removed(id, len);
                        model.remove(&id);
                        if let Some(at) = model.remove(&len)
                            && id != len
                        {
                            model.insert(id, at);
                        }
                    }
                    1 => {
                        deadlines.set(id, None);
                        model.remove(&id);
                    }
                    _ => {
                        let at = rng.next() >> rng.below(64) | 1;
                        deadlines.set(id, Some(at));
                        model.insert(id, at);
                    }
                }
                let probe = rng.below(len as usize) as u32;
                assert_eq!(deadlines.get(probe), model.get(&probe).copied());
                assert_eq!(deadlines.earliest(), model.values().min().copied());
                assert_eq!(deadlines.is_empty(), model.is_empty());
            }
            let now = rng.next() >> 30;
            let over: Vec<_> = model.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
            let mut found: Vec<_> = deadlines.over(now).collect();
            found.sort_unstable();
            assert_eq!(found, over);
        }
    }

    /// A hash of a few fields does not pay for a whole page.
    #[test]
    fn a_few_times_take_little() {
        let mut deadlines = Deadlines::default();
        (0..3).for_each(|id| deadlines.set(id, Some(70)));
        assert!(deadlines.memory() < 120, "{}", deadlines.memory());
        assert_eq!(deadlines.memory(), deadlines.clone().memory());
        deadlines.set(PAGE as u32 - 1, Some(70));
        assert!((PAGE * 8..PAGE * 8 + 200).contains(&deadlines.memory()), "{}", deadlines.memory());
    }

    /// The counter includes each hash with deadlines once, as long as it has some. A copy does not count.
    #[test]
    fn is_counted_while_it_is_there() {
        let count = Arc::<AtomicUsize>::default();
        let mut deadlines = Deadlines::default();
        deadlines.set(3, Some(70));
        assert_eq!(deadlines.unwatched(), Some(70));
        deadlines.watch(70, &count);
        deadlines.set(4, Some(60));
        assert_eq!((deadlines.unwatched(), deadlines.watched()), (Some(60), Some(70)));
        deadlines.watch(60, &count);
        let copy = deadlines.clone();
        assert_eq!((deadlines.unwatched(), copy.unwatched(), count.load(Relaxed)), (None, Some(60), 1));
        drop(copy);
        assert_eq!(count.load(Relaxed), 1);
        drop(deadlines);
        assert_eq!(count.load(Relaxed), 0);
    }
}
