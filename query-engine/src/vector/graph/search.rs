//! Searches of a graph, and the choice of neighbours.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::Graph;
use crate::vector::store::{Row, Vectors};
use crate::vector::{Accept, IsOver};

/// A slot and how far it is; ordered by that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::vector) struct Found {
    pub(in crate::vector) distance: f64,
    pub(in crate::vector) slot: u32,
}

impl Eq for Found {}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance.total_cmp(&other.distance).then(self.slot.cmp(&other.slot))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Slots that a search has met. A hash table as long as these are few: its memory stays in the processor's nearest cache.
enum Seen {
    /// Slots plus one by a hash of them, at most half full; 0 is an empty place.
    Few { places: Vec<u32>, count: usize, slots: usize },
    /// One bit per slot.
    Many(Vec<u64>),
}

/// Places of a search that meets few slots: 32 KiB.
const FEW: usize = 8192;

impl Seen {
    fn new(slots: usize) -> Self {
        if slots.div_ceil(32) <= FEW { Self::bits(slots) } else { Self::Few { places: vec![0; FEW], count: 0, slots } }
    }

    fn bits(slots: usize) -> Self {
        Self::Many(vec![0; slots.div_ceil(64)])
    }

    /// Whether the slot was not yet there.
    fn insert(&mut self, slot: u32) -> bool {
        match self {
            Self::Many(words) => {
                let (word, bit) = (&mut words[slot as usize / 64], 1 << (slot % 64));
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            Self::Few { places, count, slots } => {
                // The upper bits of the product depend on all bits of the slot.
                let mut at = slot.wrapping_mul(0x9e37_79b1) as usize >> (u32::BITS - FEW.trailing_zeros());
                loop {
                    match places[at % FEW] {
                        0 => break,
                        known if known == slot + 1 => return false,
                        _ => at += 1,
                    }
                }
                places[at % FEW] = slot + 1;
                *count += 1;
                if *count > FEW / 2 {
                    let mut many = Self::bits(*slots);
                    places.iter().filter(|place| **place > 0).for_each(|place| _ = many.insert(place - 1));
                    *self = many;
                }
                true
            }
        }
    }
}

/// The best `most` candidates, which are sorted: first those that are nearer to the node than to any that was chosen
/// before (Malkov and Yashunin, algorithm 4), then the nearest of the others.
pub(super) fn choose(vectors: &Vectors, candidates: &[Found], most: usize) -> Vec<Found> {
    let (mut chosen, mut others): (Vec<Found>, Vec<Found>) = (Vec::new(), Vec::new());
    for found in candidates {
        if chosen.len() >= most {
            others.push(*found);
            continue;
        }
        let is_near = |near: &Found| vectors.between(near.slot, found.slot) < found.distance;
        if chosen.iter().any(is_near) { others.push(*found) } else { chosen.push(*found) }
    }
    chosen.extend(others);
    chosen
}

/// The nodes that a search finds, and when it ends.
#[derive(Clone, Copy, Default)]
pub(in crate::vector) struct Rules<'a> {
    pub(in crate::vector) accept: Option<&'a Accept<'a>>,
    pub(in crate::vector) is_over: Option<&'a IsOver<'a>>,
    /// The most nodes whose neighbours are looked at.
    pub(in crate::vector) max_visits: Option<usize>,
}

/// Nodes of level 1 from which a search of level 0 starts. A search from one node may stay in a group of vectors near each other while the
/// nearest vectors are in another group.
const ENTRIES: usize = 8;

/// Nodes between two questions whether the query is over.
const ASK_EVERY: usize = 64;

impl Graph {
    /// Walks to the nearest node of a level, always to the best neighbour.
    pub(super) fn greedy(&self, vectors: &Vectors, query: Row<'_>, start: Found, level: usize) -> Found {
        let mut near = start;
        loop {
            let neighbours = self.links.of(level, near.slot);
            vectors.touch(neighbours);
            let found = neighbours.iter().map(|&slot| Found { distance: vectors.distance(query, slot), slot });
            match found.min().filter(|best| best.distance < near.distance) {
                Some(best) => near = best,
                None => return near,
            }
        }
    }

    /// Fills `fresh` with the neighbours of a node that a search meets for the first time, and asks for their vectors.
    fn meet(&self, vectors: &Vectors, level: usize, slot: u32, seen: &mut Seen, fresh: &mut Vec<u32>) {
        fresh.clear();
        for &neighbour in self.links.of(level, slot) {
            if seen.insert(neighbour) {
                fresh.push(neighbour);
            }
        }
        vectors.touch(fresh);
    }

    /// The `ef` nearest accepted nodes of a level that a best-first search finds, sorted. It starts from at most `ef` nodes.
    pub(super) fn beam(
        &self,
        vectors: &Vectors,
        query: Row<'_>,
        starts: &[Found],
        level: usize,
        ef: usize,
        rules: Rules<'_>,
    ) -> Vec<Found> {
        let Rules { accept, is_over, max_visits } = rules;
        let accepts = |slot| accept.is_none_or(|accept| accept(slot));
        let mut seen = Seen::new(self.links.len());
        let mut open: BinaryHeap<_> = starts.iter().copied().map(Reverse).collect();
        let mut best: BinaryHeap<_> = starts.iter().filter(|start| accepts(start.slot)).copied().collect();
        starts.iter().for_each(|start| _ = seen.insert(start.slot));
        let (mut visited, mut fresh) = (0_usize, Vec::new());
        while let Some(Reverse(next)) = open.pop() {
            if max_visits.is_some_and(|most| visited >= most) {
                break;
            }
            let worst = |best: &BinaryHeap<Found>| best.peek().filter(|_| best.len() >= ef).map(|found| found.distance);
            if worst(&best).is_some_and(|worst| next.distance > worst) {
                break;
            }
            visited += 1;
            if visited.is_multiple_of(ASK_EVERY) && is_over.is_some_and(|is_over| is_over()) {
                break;
            }
            self.meet(vectors, level, next.slot, &mut seen, &mut fresh);
            for &slot in &fresh {
                let found = Found { distance: vectors.distance(query, slot), slot };
                if worst(&best).is_some_and(|worst| found.distance >= worst) {
                    continue;
                }
                open.push(Reverse(found));
                if accepts(slot) {
                    best.push(found);
                    if best.len() > ef {
                        best.pop();
                    }
                }
            }
        }
        best.into_sorted_vec()
    }

    /// The nearest nodes that a search with `ef` places finds, sorted.
    pub(in crate::vector) fn nearest(
        &self,
        vectors: &Vectors,
        query: Row<'_>,
        ef: usize,
        rules: Rules<'_>,
    ) -> Vec<Found> {
        let Some(entry) = self.entry else { return Vec::new() };
        let mut near = Found { distance: vectors.distance(query, entry), slot: entry };
        let top = self.links.level(entry);
        for level in (2..=top).rev() {
            near = self.greedy(vectors, query, near, level);
        }
        let starts = match top {
            0 => vec![near],
            _ => self.beam(vectors, query, &[near], 1, ENTRIES.min(ef), Rules::default()),
        };
        self.beam(vectors, query, &starts, 0, ef, rules)
    }

    /// Accepted nodes at most `radius` away that can be reached over nodes at most `reach` away, from the nearest ones on.
    pub(in crate::vector) fn within(
        &self,
        vectors: &Vectors,
        query: Row<'_>,
        (radius, reach): (f64, f64),
        ef: usize,
        accept: Option<&Accept<'_>>,
        is_over: Option<&IsOver<'_>>,
    ) -> Vec<Found> {
        let mut open = self.nearest(vectors, query, ef, Rules { is_over, ..Rules::default() });
        open.retain(|found| found.distance <= reach);
        let mut seen = Seen::new(self.links.len());
        for found in &open {
            seen.insert(found.slot);
        }
        let (mut within, mut visited, mut fresh) = (Vec::new(), 0_usize, Vec::new());
        while let Some(next) = open.pop() {
            visited += 1;
            if visited.is_multiple_of(ASK_EVERY) && is_over.is_some_and(|is_over| is_over()) {
                break;
            }
            if next.distance <= radius && accept.is_none_or(|accept| accept(next.slot)) {
                within.push(next);
            }
            self.meet(vectors, 0, next.slot, &mut seen, &mut fresh);
            for &slot in &fresh {
                let found = Found { distance: vectors.distance(query, slot), slot };
                open.extend((found.distance <= reach).then_some(found));
            }
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn a_search_meets_each_slot_once() {
        let random = &mut SmallRng::seed_from_u64(1);
        for slots in [1, 64, 1000, 32 * FEW, 32 * FEW + 1, 1 << 22] {
            for met in [100, 3 * FEW] {
                let (mut seen, mut expected) = (Seen::new(slots), HashSet::new());
                for _ in 0..met {
                    // Neighbours in the table, too: half of them are near each other, and the last slot is among them.
                    let near = random.random_range(0..slots.min(2 * FEW)) as u32;
                    let slot =
                        if random.random() { slots as u32 - 1 - near } else { random.random_range(0..slots) as u32 };
                    assert_eq!(seen.insert(slot), expected.insert(slot), "slot {slot} of {slots}");
                }
            }
        }
    }
}
