//! The links of a graph: each one is there in both directions, so a node knows all nodes that name it.

use std::collections::HashMap;

use crate::vector::store::Blocks;

/// Links of level 0 per block.
const BLOCK: usize = 1024;

/// The neighbours of each node, by level.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Level 0: the count, then the neighbours.
    base: Blocks<u32>,
    /// Level 1 and above.
    upper: Vec<HashMap<u32, Vec<u32>>>,
    most: usize,
}

impl Links {
    /// At most `most` links per node, twice as many on level 0.
    pub(super) fn new(most: usize) -> Self {
        Self { base: Blocks::new(2 * most + 1, BLOCK), upper: Vec::new(), most }
    }

    pub(super) fn capacity(&self, level: usize) -> usize {
        if level == 0 { 2 * self.most } else { self.most }
    }

    /// The neighbours of a node; none above its own level.
    #[inline(always)]
    pub(super) fn of(&self, level: usize, slot: u32) -> &[u32] {
        if level == 0 {
            let row = self.base.row(slot as usize);
            return &row[1..=row[0] as usize];
        }
        self.upper.get(level - 1).and_then(|nodes| nodes.get(&slot)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_full(&self, level: usize, slot: u32) -> bool {
        self.of(level, slot).len() >= self.capacity(level)
    }

    /// The highest level of a node.
    pub(super) fn level(&self, slot: u32) -> usize {
        self.upper.iter().take_while(|nodes| nodes.contains_key(&slot)).count()
    }

    /// Appends a node without links.
    pub(super) fn push(&mut self, slot: u32, level: usize) {
        self.base.push(&[0]);
        if self.upper.len() < level {
            self.upper.resize_with(level, HashMap::new);
        }
        for nodes in &mut self.upper[..level] {
            nodes.insert(slot, Vec::new());
        }
    }

    pub(super) fn link(&mut self, level: usize, one: u32, other: u32) {
        self.add(level, one, other);
        self.add(level, other, one);
    }

    pub(super) fn unlink(&mut self, level: usize, one: u32, other: u32) {
        self.forget(level, one, other);
        self.forget(level, other, one);
    }

    fn add(&mut self, level: usize, slot: u32, other: u32) {
        if level == 0 {
            let row = self.base.row_mut(slot as usize);
            row[0] += 1;
            row[row[0] as usize] = other;
        } else if let Some(links) = self.upper[level - 1].get_mut(&slot) {
            links.push(other);
        }
    }

    /// Drops one direction of a link.
    pub(super) fn forget(&mut self, level: usize, slot: u32, other: u32) {
        if level == 0 {
            let row = self.base.row_mut(slot as usize);
            let count = row[0] as usize;
            if let Some(at) = row[1..=count].iter().position(|known| *known == other) {
                row[at + 1] = row[count];
                row[0] -= 1;
            }
        } else if let Some(links) = self.upper[level - 1].get_mut(&slot) {
            links.retain(|known| *known != other);
        }
    }

    /// Removes a node that no other names; the last one takes its slot.
    pub(super) fn swap_remove(&mut self, slot: u32, last: u32) {
        for nodes in &mut self.upper {
            nodes.remove(&slot);
        }
        if slot != last {
            for level in 0..=self.level(last) {
                for neighbour in self.of(level, last).to_vec() {
                    self.rename(level, neighbour, last, slot);
                }
            }
            for nodes in &mut self.upper {
                if let Some(links) = nodes.remove(&last) {
                    nodes.insert(slot, links);
                }
            }
        }
        self.base.swap_remove(slot as usize);
        while self.upper.last().is_some_and(HashMap::is_empty) {
            self.upper.pop();
        }
    }

    fn rename(&mut self, level: usize, slot: u32, from: u32, to: u32) {
        let links = if level == 0 {
            let row = self.base.row_mut(slot as usize);
            let count = row[0] as usize;
            &mut row[1..=count]
        } else {
            self.upper[level - 1].get_mut(&slot).map_or(&mut [][..], Vec::as_mut_slice)
        };
        links.iter_mut().filter(|known| **known == from).for_each(|known| *known = to);
    }

    /// Nodes.
    pub(super) fn len(&self) -> usize {
        self.base.len()
    }

    /// Another node of a level.
    pub(super) fn other(&self, level: usize, slot: u32) -> Option<u32> {
        if level == 0 {
            return (0..2).find(|other| *other != slot && (*other as usize) < self.len());
        }
        self.upper.get(level - 1)?.keys().filter(|other| **other != slot).min().copied()
    }

    /// A node of the highest level above 0.
    pub(super) fn highest(&self) -> Option<u32> {
        self.upper.last().and_then(|nodes| nodes.keys().min().copied())
    }

    pub(super) fn memory(&self) -> usize {
        let entry = (size_of::<(u32, Vec<u32>)>() + 1) * 8 / 7;
        let level = |nodes: &HashMap<u32, Vec<u32>>| {
            nodes.capacity() * entry + nodes.values().map(|links| links.capacity() * size_of::<u32>()).sum::<usize>()
        };
        self.base.memory() + self.upper.iter().map(level).sum::<usize>()
    }
}
