//! Changes of a document: other bytes in the place of some.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::build::Head;
use super::document::{Json, MAX_BYTES, MAX_DEPTH, Refused};
use super::locate::{Holder, Matches, NOWHERE, Place, locate};
use super::node::{Children, Node};
use super::overlap::change_within;
use super::path::{Budget, Path};

/// Up to so many changes that move what stands behind them are made in the document as it is; for more it is written anew.
const FEW: usize = 8;
/// A document that grows in its place gets so much of its length more, as it may do so again.
const SPARE: usize = 16;

/// Values of a document that a path has led to, and what is to become of them. Nothing changes before [`Edits::apply`].
#[derive(Debug)]
pub struct Edits<'j> {
    document: &'j mut Vec<u8>,
    places: Vec<Place>,
    holders: Vec<Holder>,
    edits: Vec<Edit>,
    /// The new bytes of all edits, one after the other.
    fresh: Vec<u8>,
}

/// Other bytes in the place of those from `start` to `end`.
#[derive(Clone, Debug)]
struct Edit {
    start: usize,
    end: usize,
    fresh: Range<usize>,
    /// The number of the container that they are in.
    holder: u32,
    /// Values that it has more.
    count: isize,
}

/// By how much a container grows.
struct Growth {
    /// Its number.
    holder: u32,
    bytes: isize,
    count: isize,
}

impl<'j> Edits<'j> {
    pub(super) fn new(document: &'j mut Vec<u8>, path: &Path, budget: &mut Budget) -> Result<Self, Refused> {
        let mut found = path.values(document, budget)?;
        if path.repeats() {
            let mut seen = HashSet::<u32, RandomState>::default();
            found.retain(|at| seen.insert(*at));
        }
        let Matches { places, holders } = locate(document, &found);
        Ok(Self { document, places, holders, edits: Vec::new(), fresh: Vec::new() })
    }

    /// How many values the path has led to.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has led nowhere.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A value as it is before all changes.
    pub fn value(&self, index: usize) -> Node<'_> {
        Node::new(self.document, self.places[index].at as usize)
    }

    /// Whether nothing is to change.
    pub fn is_untouched(&self) -> bool {
        self.edits.is_empty()
    }

    /// The values that are in none of the others, in the document's order.
    pub fn outermost(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_unstable_by_key(|index| self.places[*index].at);
        let mut end = 0;
        order.retain(|index| {
            let value = self.value(*index);
            let is_outside = value.at() >= end;
            if is_outside {
                end = value.end();
            }
            is_outside
        });
        order
    }

    /// Where the values stand in the document, ascending.
    pub(super) fn found(&self) -> Vec<usize> {
        let mut found: Vec<_> = self.places.iter().map(|place| place.at as usize).collect();
        found.sort_unstable();
        found
    }

    /// `change` makes a new value of each value, as [`change_within`] does where one is inside of another.
    ///
    /// # Errors
    /// Those of `change`; [`Refused::Depth`], [`Refused::Size`].
    pub fn replace_all(&mut self, change: &dyn Fn(Node<'_>) -> Result<Json, Refused>) -> Result<(), Refused> {
        let found = self.found();
        for index in self.outermost() {
            let fresh = change_within(self.value(index), &found, change)?;
            self.replace(index, fresh.root())?;
        }
        Ok(())
    }

    fn depth(&self, holder: u32) -> usize {
        depth(&self.holders, holder)
    }

    fn edit(&mut self, range: Range<usize>, fresh: &[&[u8]], holder: u32, count: isize) -> Result<(), Refused> {
        // A large value may be meant to go to many places.
        if fresh.iter().map(|part| part.len()).sum::<usize>() > MAX_BYTES - self.fresh.len() {
            return Err(Refused::Size);
        }
        let start = self.fresh.len();
        fresh.iter().for_each(|part| self.fresh.extend_from_slice(part));
        let fresh = start..self.fresh.len();
        self.edits.push(Edit { start: range.start, end: range.end, fresh, holder, count });
        Ok(())
    }

    fn cut(&mut self, range: Range<usize>, holder: u32, count: usize) {
        let fresh = self.fresh.len()..self.fresh.len();
        self.edits.push(Edit { start: range.start, end: range.end, fresh, holder, count: -(count as isize) });
    }

    /// A value becomes another one.
    ///
    /// # Errors
    /// [`Refused::Depth`], [`Refused::Size`].
    pub fn replace(&mut self, index: usize, value: Node<'_>) -> Result<(), Refused> {
        let Place { at, holder, .. } = self.places[index];
        if self.depth(holder) + value.depth() > MAX_DEPTH {
            return Err(Refused::Depth);
        }
        let end = Node::new(self.document, at as usize).end();
        self.edit(at as usize..end, &[value.raw()], holder, 0)
    }

    /// A value goes, with its name if it has one. The whole document cannot.
    pub fn remove(&mut self, index: usize) {
        let Place { at, member, holder } = self.places[index];
        let end = Node::new(self.document, at as usize).end();
        if holder != NOWHERE {
            self.cut(member as usize..end, holder, 1);
        }
    }

    /// The number of a value's own container.
    fn inside(&mut self, index: usize) -> u32 {
        let Place { at, holder, .. } = self.places[index];
        let depth = self.depth(holder) as u32 + 1;
        self.holders.push(Holder { at, parent: holder, depth });
        self.holders.len() as u32 - 1
    }

    /// An array, which the value is, gets elements in front of the one at a place; at its end, if there is none.
    ///
    /// # Errors
    /// [`Refused::Depth`], [`Refused::Size`].
    pub fn insert(&mut self, index: usize, before: usize, values: &[Json]) -> Result<(), Refused> {
        let holder = self.inside(index);
        let depth = self.depth(holder);
        if values.iter().any(|value| depth + value.root().depth() > MAX_DEPTH) {
            return Err(Refused::Depth);
        }
        let array = self.value(index);
        let at = Children::of(array).nth(before).map_or_else(|| array.end(), |(_, element)| element.at());
        let parts: Vec<&[u8]> = values.iter().map(|value| value.root().raw()).collect();
        self.edit(at..at, &parts, holder, values.len() as isize)
    }

    /// An array, which the value is, keeps the elements at these places only.
    pub fn keep(&mut self, index: usize, kept: Range<usize>) {
        let holder = self.inside(index);
        let array = self.value(index);
        let content = array.content();
        let (start, end, count) = (content.at, array.end(), content.len());
        let kept = kept.start.min(count)..kept.end.min(count);
        if kept.is_empty() {
            return self.cut(start..end, holder, count);
        }
        let place = |place: usize| Children::of(array).nth(place).map_or(end, |(_, element)| element.at());
        let (from, to) = (place(kept.start), place(kept.end));
        self.cut(start..from, holder, kept.start);
        self.cut(to..end, holder, count - kept.end);
    }

    /// An array, which the value is, loses the element at a place that it has.
    pub fn remove_element(&mut self, index: usize, place: usize) {
        let holder = self.inside(index);
        if let Some((_, element)) = Children::of(self.value(index)).nth(place) {
            let range = element.at()..element.end();
            self.cut(range, holder, 1);
        }
    }

    /// An object, which the value is, gets a member that it does not have.
    ///
    /// # Errors
    /// [`Refused::Depth`], [`Refused::Size`].
    pub fn add_member(&mut self, index: usize, name: &[u8], value: Node<'_>) -> Result<(), Refused> {
        let holder = self.inside(index);
        if self.depth(holder) + value.depth() > MAX_DEPTH {
            return Err(Refused::Depth);
        }
        let mut key = Vec::with_capacity(name.len() + 5);
        super::build::put_string(&mut key, name);
        let end = self.value(index).end();
        self.edit(end..end, &[&key, value.raw()], holder, 1)
    }

    /// Makes the changes. A change inside of a removed or replaced value has no effect.
    ///
    /// # Errors
    /// [`Refused::Size`]; nothing has changed then.
    pub fn apply(mut self) -> Result<(), Refused> {
        let holders = &self.holders;
        self.edits.sort_by_key(|edit| (edit.start, Reverse(depth(holders, edit.holder)), edit.end));
        self.drop_covered();
        self.add_heads();
        let [removed, added] = self
            .edits
            .iter()
            .fold([0, 0], |[removed, added], edit| [removed + (edit.end - edit.start), added + edit.fresh.len()]);
        let len = self.document.len() - removed + added;
        if len > MAX_BYTES {
            return Err(Refused::Size);
        }
        let moving = self.edits.iter().filter(|edit| edit.end - edit.start != edit.fresh.len()).count();
        if moving <= FEW {
            if len > self.document.capacity() {
                self.document.reserve_exact(len + len / SPARE - self.document.len());
            }
            for edit in self.edits.iter().rev() {
                splice(self.document, edit.start..edit.end, &self.fresh[edit.fresh.clone()]);
            }
        } else {
            *self.document = self.written_anew(len);
        }
        self.document.shrink_to(len + len / SPARE);
        Ok(())
    }

    /// Takes out what changes something inside of what goes.
    fn drop_covered(&mut self) {
        let mut covered = 0..0;
        let holders = &self.holders;
        self.edits.retain(|edit| {
            let at = if edit.holder == NOWHERE { None } else { Some(holders[edit.holder as usize].at as usize) };
            let is_inside = at.is_some_and(|at| covered.contains(&at));
            if !is_inside && edit.end > covered.end {
                covered = edit.start..edit.end;
            }
            !is_inside
        });
    }

    /// Adds the changes of the heads of all containers whose content changes, from the innermost outwards.
    fn add_heads(&mut self) {
        let mut growths: BTreeMap<u32, Growth> = BTreeMap::new();
        for Edit { start, end, fresh, holder, count } in &self.edits {
            self.grow(&mut growths, *holder, fresh.len() as isize - (end - start) as isize, *count);
        }
        // A nested container starts behind the container that holds it, so the last is the innermost.
        while let Some((at, Growth { holder, bytes, count })) = growths.pop_last() {
            let node = Node::new(self.document, at as usize);
            let content = node.content();
            let len = (node.end() - content.at).wrapping_add_signed(bytes);
            let head = Head::new(node.is_object(), len, content.len().wrapping_add_signed(count));
            let start = self.fresh.len();
            self.fresh.extend_from_slice(head.bytes());
            let (old, new) = (node.at()..content.at, start..self.fresh.len());
            let change = bytes + new.len() as isize - old.len() as isize;
            self.grow(&mut growths, self.holders[holder as usize].parent, change, 0);
            self.edits.push(Edit { start: old.start, end: old.end, fresh: new, holder, count: 0 });
        }
        // Bytes that are inserted in front of a container stand in front of its head, too.
        self.edits.sort_by_key(|edit| edit.start);
    }

    fn grow(&self, growths: &mut BTreeMap<u32, Growth>, holder: u32, bytes: isize, count: isize) {
        if holder != NOWHERE {
            let at = self.holders[holder as usize].at;
            let growth = growths.entry(at).or_insert(Growth { holder, bytes: 0, count: 0 });
            growth.bytes += bytes;
            growth.count += count;
        }
    }

    /// The document with all changes, which has so many bytes then.
    fn written_anew(&self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len);
        let mut from = 0;
        for edit in &self.edits {
            out.extend_from_slice(&self.document[from..edit.start]);
            out.extend_from_slice(&self.fresh[edit.fresh.clone()]);
            from = edit.end;
        }
        out.extend_from_slice(&self.document[from..]);
        out
    }
}

/// Containers around what is in a container.
fn depth(holders: &[Holder], holder: u32) -> usize {
    if holder == NOWHERE { 0 } else { holders[holder as usize].depth as usize }
}

/// Puts bytes in the place of others.
fn splice(document: &mut Vec<u8>, range: Range<usize>, fresh: &[u8]) {
    if range.len() == fresh.len() {
        document[range].copy_from_slice(fresh);
    } else {
        document.splice(range, fresh.iter().copied());
    }
}
