//! A hierarchical navigable small world (Malkov and Yashunin, 2018): approximate nearest neighbours.
//!
//! Links are kept in both directions, as Redis' vector sets keep them. So a removal finds all nodes that name the
//! removed one without a search, and links them to each other.

mod links;
mod search;

use links::Links;
use search::choose;
pub(super) use search::{Found, Rules};

use super::store::Vectors;

/// Levels above this one would be empty up to 2^64 vectors at M = 16.
pub(crate) const MAX_LEVEL: usize = 16;

/// Neighbours that are compared with each other. More than a node has up to M = 64; above it the work is to grow no faster
/// than the number of links.
const MAX_COMPARED: usize = 128;

#[derive(Clone, Debug)]
pub(super) struct Graph {
    links: Links,
    entry: Option<u32>,
    /// Links that a new node asks for on each level (M).
    most: usize,
    ef_construction: usize,
    random: u64,
}

impl Graph {
    pub(super) fn new(most: usize, ef_construction: usize, seed: u64) -> Self {
        Self { links: Links::new(most), entry: None, most, ef_construction, random: seed }
    }

    /// Adds the last vector of the store, with `ef` instead of EF_CONSTRUCTION if given. The level follows from `random`, or
    /// from a number that the graph draws.
    pub(super) fn push(&mut self, vectors: &Vectors, slot: u32, ef: Option<usize>, random: Option<u64>) {
        let ef = ef.unwrap_or(self.ef_construction);
        let level = match random {
            Some(random) => self.level_of(random),
            None => {
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                self.level_of(self.random)
            }
        };
        self.links.push(slot, level);
        let Some(entry) = self.entry else {
            self.entry = Some(slot);
            return;
        };
        let top = self.links.level(entry);
        let query = vectors.row(slot);
        let mut near = Found { distance: vectors.distance(query, entry), slot: entry };
        for level in (level + 1..=top).rev() {
            near = self.greedy(vectors, query, near, level);
        }
        for level in (0..=level.min(top)).rev() {
            let found = self.beam(vectors, query, &[near], level, ef, Rules::default());
            near = found.first().copied().unwrap_or(near);
            self.connect(vectors, level, slot, &found);
        }
        if level > top {
            self.entry = Some(slot);
        }
    }

    /// A level with the probability M^−level.
    fn level_of(&self, random: u64) -> usize {
        // SplitMix64.
        let mut mixed = random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let uniform = ((mixed >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        ((-uniform.ln() / (self.most as f64).ln()) as usize).min(MAX_LEVEL)
    }

    /// A graph of nodes with the links that they had, by slot, from level 0 up. The caller has checked that all links go both
    /// ways, to other nodes, on levels that both have.
    pub(super) fn restore(&mut self, nodes: Vec<Vec<Vec<u32>>>) {
        self.links.make_room_for(&nodes);
        for (slot, levels) in nodes.into_iter().enumerate() {
            let (slot, level) = (slot as u32, levels.len() - 1);
            if self.entry.is_none_or(|entry| level > self.links.level(entry)) {
                self.entry = Some(slot);
            }
            self.links.push(slot, level);
            levels.into_iter().enumerate().for_each(|(level, links)| self.links.restore(level, slot, links));
        }
    }

    /// Links a node to the best of its candidates, nearest first.
    fn connect(&mut self, vectors: &Vectors, level: usize, slot: u32, candidates: &[Found]) {
        let mut open = self.most;
        for candidate in choose(vectors, candidates, self.most) {
            if open > 0 && self.try_link(vectors, level, slot, candidate) {
                open -= 1;
            }
        }
        if open < self.most {
            return;
        }
        // All refused. The nearest one gives up a neighbour that has others.
        let Some(near) = candidates.first() else { return };
        let richest = self.links.of(level, near.slot).iter().copied().max_by_key(|at| self.links.of(level, *at).len());
        match richest {
            Some(richest) if self.links.of(level, richest).len() > 1 => {
                self.links.unlink(level, near.slot, richest);
                self.links.link(level, near.slot, slot);
            }
            Some(poorest) => self.links.link(level, poorest, slot),
            None => self.links.link(level, near.slot, slot),
        }
    }

    /// Links two nodes if the second has room, or has a worse neighbour that it can drop.
    fn try_link(&mut self, vectors: &Vectors, level: usize, slot: u32, other: Found) -> bool {
        if self.links.is_full(level, other.slot) {
            let Some(victim) = self.worst_link(vectors, level, slot, other) else { return false };
            self.links.unlink(level, other.slot, victim);
        }
        self.links.link(level, other.slot, slot);
        true
    }

    /// The neighbour of `of` that it needs least, if it needs `slot` more: the farthest that has enough other links and is no
    /// farther from a needed neighbour than from `of` itself. Such a neighbour is not needed (algorithm 4).
    fn worst_link(&self, vectors: &Vectors, level: usize, slot: u32, of: Found) -> Option<u32> {
        let neighbours = self.links.of(level, of.slot);
        vectors.touch(neighbours);
        let mut all: Vec<Found> =
            neighbours.iter().map(|&slot| Found { distance: vectors.between(of.slot, slot), slot }).collect();
        all.push(Found { distance: of.distance, slot });
        all.sort_unstable();
        let may_drop = |found: &Found| found.slot == slot || self.links.of(level, found.slot).len() > self.most / 2;
        let (mut needed, mut redundant): (Vec<Found>, Option<Found>) = (Vec::new(), None);
        for found in &all {
            // `<=`: an equal vector is redundant. Were all equal vectors needed, each would be compared with each.
            let is_near = |near: &Found| vectors.between(near.slot, found.slot) <= found.distance;
            if needed.iter().any(is_near) {
                if may_drop(found) {
                    redundant = Some(*found);
                }
            } else if needed.len() < MAX_COMPARED {
                needed.push(*found);
            }
        }
        let worst = redundant.or_else(|| all.iter().rev().find(|found| may_drop(found)).copied())?;
        (worst.slot != slot).then_some(worst.slot)
    }

    /// The links of a node, from its highest level down to 0.
    pub(super) fn neighbours(&self, slot: u32) -> Vec<&[u32]> {
        (0..=self.links.level(slot)).rev().map(|level| self.links.of(level, slot)).collect()
    }

    pub(super) fn max_level(&self) -> usize {
        self.entry.map_or(0, |entry| self.links.level(entry))
    }

    pub(super) fn memory(&self) -> usize {
        self.links.memory()
    }

    /// Removes a node with its vector; the last one takes its slot.
    pub(super) fn swap_remove(&mut self, vectors: &mut Vectors, slot: u32, last: u32) {
        let mut lonely = Vec::new();
        for level in 0..=self.links.level(slot) {
            let neighbours = self.links.of(level, slot).to_vec();
            for neighbour in &neighbours {
                self.links.unlink(level, slot, *neighbour);
            }
            neighbours.chunks(MAX_COMPARED).for_each(|some| self.rejoin(vectors, level, some));
            let alone = neighbours.into_iter().filter(|at| self.links.of(level, *at).is_empty());
            lonely.extend(alone.map(|at| (level, at)));
        }
        let renamed = |at: u32| if at == last { slot } else { at };
        if self.entry == Some(slot) {
            self.entry = None;
        }
        self.links.swap_remove(slot, last);
        vectors.swap_remove(slot as usize);
        self.entry = self.entry.map(renamed).or_else(|| self.links.highest()).or_else(|| (last > 0).then_some(0));
        for (level, at) in lonely {
            self.reconnect(vectors, level, renamed(at));
        }
    }

    /// Links a node that has lost all neighbours of a level.
    fn reconnect(&mut self, vectors: &Vectors, level: usize, slot: u32) {
        let entry = self.entry.filter(|entry| *entry != slot);
        let Some(start) = entry.or_else(|| self.links.other(level, slot)) else { return };
        let query = vectors.row(slot);
        let mut near = Found { distance: vectors.distance(query, start), slot: start };
        for level in (level + 1..=self.links.level(start)).rev() {
            near = self.greedy(vectors, query, near, level);
        }
        let is_other = |found: u32| found != slot;
        let found = self.beam(
            vectors,
            query,
            &[near],
            level,
            self.ef_construction,
            Rules { accept: Some(&is_other), ..Rules::default() },
        );
        self.connect(vectors, level, slot, &found);
    }

    /// Links former neighbours of a removed node to each other: each gets one new link, the nearest pairs first.
    fn rejoin(&mut self, vectors: &Vectors, level: usize, nodes: &[u32]) {
        let mut pairs = Vec::with_capacity(nodes.len() * nodes.len().saturating_sub(1) / 2);
        for (at, &one) in nodes.iter().enumerate() {
            let known = self.links.of(level, one);
            let others = nodes[at + 1..].iter().filter(|other| !known.contains(other));
            pairs.extend(others.map(|&other| (Found { distance: vectors.between(one, other), slot: one }, other)));
        }
        pairs.sort_unstable();
        let mut joined = Vec::new();
        for (Found { slot: one, .. }, other) in pairs {
            if !joined.contains(&one) && !joined.contains(&other) {
                self.links.link(level, one, other);
                joined.extend([one, other]);
            }
        }
    }
}
