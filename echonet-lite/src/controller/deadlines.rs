//! Deadlines of numbered things: a binary heap that knows where each key lies, so that a deadline is moved or dropped
//! without a search, and nothing that is dropped lingers.

use std::vec::Vec;

use crate::node::Instant;

/// The place of a key that has no deadline.
const NOWHERE: u32 = u32::MAX;

/// At most one deadline for each key; keys are small numbers.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<(Instant, u32)>,
    /// Where in the heap a key lies.
    places: Vec<u32>,
}

impl Deadlines {
    /// Sets or moves the deadline of a key.
    pub(super) fn set(&mut self, key: u32, at: Instant) {
        let index = key as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
        }
        let place = self.places[index];
        if place == NOWHERE {
            self.heap.push((at, key));
            self.rise(self.heap.len() - 1);
        } else {
            self.heap[place as usize].0 = at;
            let place = self.rise(place as usize);
            self.sink(place);
        }
    }

    /// Drops the deadline of a key, if it has one.
    pub(super) fn clear(&mut self, key: u32) {
        let Some(place) = self.places.get(key as usize).copied().filter(|place| *place != NOWHERE) else { return };
        let place = place as usize;
        self.places[key as usize] = NOWHERE;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Takes a key whose deadline has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (at, key) = *self.heap.first()?;
        if at > now {
            return None;
        }
        self.clear(key);
        Some(key)
    }

    /// Moves the entry at `place` towards the root as far as it belongs; returns where it is then.
    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    /// Moves the entry at `place` away from the root as far as it belongs.
    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let left = 2 * place + 1;
            let right = left + 1;
            if left >= self.heap.len() {
                break;
            }
            let child = if right < self.heap.len() && self.heap[right].0 < self.heap[left].0 { right } else { left };
            if self.heap[child].0 >= entry.0 {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Instant, u32)) {
        self.heap[place] = entry;
        // The heap holds each key once, and keys are u32.
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_plain_map() {
        let mut random = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let (mut deadlines, mut model) = (Deadlines::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let (key, at) = ((next() % 40) as u32, Instant::from_micros(next() % 1000));
            match next() % 4 {
                0 | 1 => {
                    deadlines.set(key, at);
                    model.insert(key, at);
                }
                2 => {
                    deadlines.clear(key);
                    model.remove(&key);
                }
                _ => {
                    let now = Instant::from_micros(100);
                    let taken = deadlines.take_due(now).map(|key| model.remove(&key).unwrap());
                    assert!(taken.is_none_or(|at| at <= now && model.values().all(|other| *other >= at)));
                    assert!(taken.is_some() || model.values().all(|at| *at > now));
                }
            }
            assert_eq!(deadlines.next(), model.values().min().copied());
            assert_eq!(deadlines.heap.len(), model.len());
        }
    }
}
