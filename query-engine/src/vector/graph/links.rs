//! The links of a graph: each one is there in both directions, so a node knows all nodes that name it.

use std::collections::HashMap;

use crate::vector::store::Blocks;

/// Links of level 0 per block.
const BLOCK: usize = 1024;

/// The greatest M whose nodes have room for all links of level 0 from the beginning: 516 bytes. Above it few nodes need all.
const MAX_ROW_LINKS: usize = 64;

/// The neighbours of each node, by level.
#[derive(Clone, Debug)]
pub(super) struct Links {
    base: Base,
    /// Level 1 and above.
    upper: Vec<HashMap<u32, Vec<u32>>>,
    most: usize,
}

/// The links of level 0.
#[derive(Clone, Debug)]
enum Base {
    /// The count, then the neighbours.
    Rows(Blocks<u32>),
    Lists(Vec<Vec<u32>>),
}

impl Base {
    #[inline(always)]
    fn of(&self, slot: u32) -> &[u32] {
        match self {
            Self::Rows(rows) => {
                let row = rows.row(slot as usize);
                &row[1..=row[0] as usize]
            }
            Self::Lists(lists) => &lists[slot as usize],
        }
    }

    fn of_mut(&mut self, slot: u32) -> &mut [u32] {
        match self {
            Self::Rows(rows) => {
                let row = rows.row_mut(slot as usize);
                let count = row[0] as usize;
                &mut row[1..=count]
            }
            Self::Lists(lists) => &mut lists[slot as usize],
        }
    }

    fn add(&mut self, slot: u32, other: u32) {
        match self {
            Self::Rows(rows) => {
                let row = rows.row_mut(slot as usize);
                row[0] += 1;
                row[row[0] as usize] = other;
            }
            Self::Lists(lists) => lists[slot as usize].push(other),
        }
    }

    fn forget(&mut self, slot: u32, other: u32) {
        let links = self.of_mut(slot);
        let Some(at) = links.iter().position(|known| *known == other) else { return };
        let last = links.len() - 1;
        links.swap(at, last);
        match self {
            Self::Rows(rows) => rows.row_mut(slot as usize)[0] -= 1,
            Self::Lists(lists) => lists[slot as usize].truncate(last),
        }
    }
}

impl Links {
    /// At most `most` links per node, twice as many on level 0.
    pub(super) fn new(most: usize) -> Self {
        let base =
            if most <= MAX_ROW_LINKS { Base::Rows(Blocks::new(2 * most + 1, BLOCK)) } else { Base::Lists(Vec::new()) };
        Self { base, upper: Vec::new(), most }
    }

    /// Makes an empty graph take nodes with more links than others may get. Files of Redis have such nodes, though seldom.
    pub(super) fn make_room_for(&mut self, nodes: &[Vec<Vec<u32>>]) {
        if nodes.iter().any(|levels| levels[0].len() > self.capacity(0)) {
            self.base = Base::Lists(Vec::new());
        }
    }

    /// Gives a node without links of a level those that it had.
    pub(super) fn restore(&mut self, level: usize, slot: u32, links: Vec<u32>) {
        match &mut self.base {
            Base::Lists(lists) if level == 0 => lists[slot as usize] = links,
            Base::Rows(_) if level == 0 => links.into_iter().for_each(|other| self.base.add(slot, other)),
            _ => _ = self.upper[level - 1].insert(slot, links),
        }
    }

    pub(super) fn capacity(&self, level: usize) -> usize {
        if level == 0 { 2 * self.most } else { self.most }
    }

    /// The neighbours of a node; none above its own level.
    #[inline(always)]
    pub(super) fn of(&self, level: usize, slot: u32) -> &[u32] {
        if level == 0 {
            return self.base.of(slot);
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
        match &mut self.base {
            Base::Rows(rows) => rows.push(&[0]),
            Base::Lists(lists) => lists.push(Vec::new()),
        }
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
            self.base.add(slot, other);
        } else if let Some(links) = self.upper[level - 1].get_mut(&slot) {
            links.push(other);
        }
    }

    /// Drops one direction of a link.
    pub(super) fn forget(&mut self, level: usize, slot: u32, other: u32) {
        if level == 0 {
            self.base.forget(slot, other);
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
        match &mut self.base {
            Base::Rows(rows) => rows.swap_remove(slot as usize),
            Base::Lists(lists) => drop(lists.swap_remove(slot as usize)),
        }
        while self.upper.last().is_some_and(HashMap::is_empty) {
            self.upper.pop();
        }
    }

    fn rename(&mut self, level: usize, slot: u32, from: u32, to: u32) {
        let links = if level == 0 {
            self.base.of_mut(slot)
        } else {
            self.upper[level - 1].get_mut(&slot).map_or(&mut [][..], Vec::as_mut_slice)
        };
        links.iter_mut().filter(|known| **known == from).for_each(|known| *known = to);
    }

    /// Nodes.
    pub(super) fn len(&self) -> usize {
        match &self.base {
            Base::Rows(rows) => rows.len(),
            Base::Lists(lists) => lists.len(),
        }
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

    /// An estimate in a time that does not depend on the number of nodes: lists are taken for half full.
    pub(super) fn memory(&self) -> usize {
        let entry = (size_of::<(u32, Vec<u32>)>() + 1) * 8 / 7;
        let list = self.most / 2 * size_of::<u32>();
        let level = |nodes: &HashMap<u32, Vec<u32>>| nodes.capacity() * entry + nodes.len() * list;
        let base = match &self.base {
            Base::Rows(rows) => rows.memory(),
            Base::Lists(lists) => lists.capacity() * size_of::<Vec<u32>>() + lists.len() * 2 * list,
        };
        base + self.upper.iter().map(level).sum::<usize>()
    }
}
