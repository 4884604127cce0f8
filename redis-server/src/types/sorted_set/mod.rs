//! Sorted sets: members in the order of their scores, equal scores in the order of the members' bytes.
//!
//! The small form is a listpack; the large one a dense table of members with their scores, beside a tree of
//! (score, id of the member) that knows ranks. A member's bytes are stored once.

mod build;
mod packed;
mod range;
mod tree;

use std::ops::Range;

pub use build::SortedSetBuilder;
pub use range::{LexBound, LexRange, ScoreRange};

use self::packed::{Packed, PackedIter};
use self::tree::{Key, Leaf, RankTree};
use super::dense::{Dense, Keyed, room_to_grow};
use super::listpack::Text;
use super::small_bytes::SmallBytes;

/// When a sorted set leaves its compact form.
#[derive(Clone, Copy, Debug)]
pub struct SortedSetLimits {
    /// `zset-max-listpack-entries`: members.
    pub max_listpack_entries: usize,
    /// `zset-max-listpack-value`: bytes of a member.
    pub max_listpack_value: usize,
}

impl Default for SortedSetLimits {
    fn default() -> Self {
        Self { max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// A set of members with scores, in order. Scores are never NaN: callers refuse it.
///
/// ```
/// use redis_server::types::{SortedSet, SortedSetLimits};
///
/// let mut set = SortedSet::default();
/// assert_eq!(set.insert(b"a", 2.0, SortedSetLimits::default()), None);
/// assert_eq!(set.insert(b"b", 1.0, SortedSetLimits::default()), None);
/// assert_eq!(set.rank(b"a"), Some((1, 2.0)));
/// ```
#[derive(Clone)]
pub struct SortedSet(Repr);

#[derive(Clone)]
enum Repr {
    Packed(Packed),
    Table(Box<Table>),
}

#[derive(Clone)]
struct Table {
    members: Dense<Scored>,
    order: RankTree,
}

#[derive(Clone)]
struct Scored {
    member: SmallBytes,
    score: f64,
}

impl Keyed for Scored {
    type Key = [u8];

    #[inline]
    fn key(&self) -> &[u8] {
        &self.member
    }
}

impl Default for SortedSet {
    fn default() -> Self {
        Self(Repr::Packed(Packed::default()))
    }
}

impl SortedSet {
    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.len(),
            Repr::Table(table) => table.order.len(),
        }
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of `member`.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Repr::Packed(packed) => packed.score(member),
            Repr::Table(table) => table.members.get(member).map(|scored| scored.score),
        }
    }

    /// Whether `member` is in the set.
    pub fn contains(&self, member: &[u8]) -> bool {
        self.score(member).is_some()
    }

    /// Gives `member` a score; the old one if it was there already.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: SortedSetLimits) -> Option<f64> {
        match &mut self.0 {
            Repr::Packed(packed) => {
                let old = packed.score(member);
                if old.is_none()
                    && (packed.len() >= limits.max_listpack_entries || member.len() > limits.max_listpack_value)
                {
                    self.grow();
                    return self.insert(member, score, limits);
                }
                if old != Some(score) {
                    packed.remove(member);
                    packed.insert(member, score);
                }
                old
            }
            Repr::Table(table) => table.insert(member, score),
        }
    }

    /// Removes `member`; its score if it was there.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.0 {
            Repr::Packed(packed) => packed.remove(member),
            Repr::Table(table) => {
                let id = table.members.find(member)?;
                Some(table.remove(id).score)
            }
        }
    }

    /// How many members precede `member`, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.0 {
            Repr::Packed(packed) => packed.rank(member),
            Repr::Table(table) => {
                let id = table.members.find(member)?;
                let score = table.members.entry(id).score;
                Some((table.order.count_while(&up_to(&table.members, (score, id))) - 1, score))
            }
        }
    }

    /// The member with this rank, and its score.
    pub fn at(&self, rank: usize) -> Option<(Text<'_>, f64)> {
        self.range(rank..rank.saturating_add(1)).next()
    }

    /// The member at a place from 0 to `len() - 1`, each place holding another one, in no order: a random place is a
    /// random member.
    pub fn any(&self, place: usize) -> Option<(Text<'_>, f64)> {
        match &self.0 {
            Repr::Packed(_) => self.at(place),
            Repr::Table(table) => table.members.at(place).map(|scored| (Text::Bytes(&scored.member), scored.score)),
        }
    }

    /// Removes the member with the lowest score and hands it to `take`, whose answer is returned.
    pub fn pop_min<R>(&mut self, take: impl FnOnce(&[u8], f64) -> R) -> Option<R> {
        self.pop(0, take)
    }

    /// Removes the member with the highest score and hands it to `take`, whose answer is returned.
    pub fn pop_max<R>(&mut self, take: impl FnOnce(&[u8], f64) -> R) -> Option<R> {
        self.pop(self.len().checked_sub(1)?, take)
    }

    /// Removes the members with these ranks; how many.
    pub fn remove_range(&mut self, ranks: Range<usize>) -> usize {
        let (start, end) = self.cut(ranks);
        match &mut self.0 {
            Repr::Packed(packed) => packed.remove_range(start, end),
            Repr::Table(table) => (start..end).for_each(|_| drop(table.remove(table.id_at(start)))),
        }
        end - start
    }

    /// The ranks of the members whose scores lie in `range`.
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        let (start, end) = match &self.0 {
            Repr::Packed(packed) => (
                packed.count_while(|score, _| range.is_after(score)),
                packed.count_while(|score, _| range.reaches(score)),
            ),
            Repr::Table(table) => (
                table.order.count_while(&|(score, _)| range.is_after(score)),
                table.order.count_while(&|(score, _)| range.reaches(score)),
            ),
        };
        start..end.max(start)
    }

    /// The ranks of the members that lie in `range`; of use only if all scores are the same.
    pub fn ranks_by_lex(&self, range: &LexRange<'_>) -> Range<usize> {
        let (start, end) = match &self.0 {
            Repr::Packed(packed) => (
                packed.count_while(|_, member| range.is_after(member)),
                packed.count_while(|_, member| range.reaches(member)),
            ),
            Repr::Table(table) => {
                let member = |id| &*table.members.entry(id).member;
                (
                    table.order.count_while(&|(_, id)| range.is_after(member(id))),
                    table.order.count_while(&|(_, id)| range.reaches(member(id))),
                )
            }
        };
        start..end.max(start)
    }

    /// All members in order.
    pub fn iter(&self) -> SortedSetIter<'_> {
        self.range(0..self.len())
    }

    /// All members, in no order: faster than [`SortedSet::iter`].
    pub fn members(&self) -> impl Iterator<Item = (Text<'_>, f64)> {
        let (packed, table) = match &self.0 {
            Repr::Packed(packed) => (Some(packed.range(0, packed.len())), None),
            Repr::Table(table) => (None, Some(table.members.iter())),
        };
        let scored = table.into_iter().flatten().map(|scored| (Text::Bytes(&scored.member), scored.score));
        packed.into_iter().flatten().chain(scored)
    }

    /// The members with these ranks, in order; backwards with `rev()`. The range is cut to the set.
    pub fn range(&self, ranks: Range<usize>) -> SortedSetIter<'_> {
        let (start, end) = self.cut(ranks);
        SortedSetIter(match &self.0 {
            Repr::Packed(packed) => IterRepr::Packed(packed.range(start, end)),
            Repr::Table(table) => IterRepr::Table(TableIter { table, start, end, front: None, back: None }),
        })
    }

    /// Visits about `count` members and returns the next cursor, 0 at the end; all at once in the compact form. A
    /// member present from the first to the last call is visited once.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], f64)) -> u64 {
        match &self.0 {
            Repr::Packed(_) => {
                self.iter().for_each(|(member, score)| visit(&member, score));
                0
            }
            Repr::Table(table) => {
                table.members.scan(cursor, count, &mut |_, scored| visit(&scored.member, scored.score))
            }
        }
    }

    /// The reply of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "skiplist",
        }
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.memory(),
            Repr::Table(table) => {
                let owned: usize = table.members.iter().map(|scored| scored.member.memory()).sum();
                size_of::<Table>() + table.members.memory() + table.order.memory() + owned
            }
        }
    }

    fn pop<R>(&mut self, rank: usize, take: impl FnOnce(&[u8], f64) -> R) -> Option<R> {
        if let Repr::Table(table) = &mut self.0 {
            if table.order.len() == 0 {
                return None;
            }
            let scored = table.remove(table.id_at(rank));
            return Some(take(&scored.member, scored.score));
        }
        let (member, score) = self.at(rank)?;
        let taken = take(&member, score);
        self.remove_range(rank..rank + 1);
        Some(taken)
    }

    fn cut(&self, ranks: Range<usize>) -> (usize, usize) {
        let end = ranks.end.min(self.len());
        (ranks.start.min(end), end)
    }

    fn grow(&mut self) {
        let mut table = Table { members: Dense::with_capacity(room_to_grow(self.len())), order: RankTree::default() };
        for (member, score) in self.iter() {
            table.insert(&member, score);
        }
        self.0 = Repr::Table(Box::new(table));
    }
}

impl Table {
    fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let make = || Scored { member: SmallBytes::new(member), score };
        let (id, new) = self.members.find_or_insert_with(member, make);
        let old = self.members.entry(id).score;
        if !new {
            if old == score {
                return Some(old);
            }
            self.order.change((old, id), score, |key| up_to(&self.members, key));
            self.members.entry_mut(id).score = score;
            return Some(old);
        }
        self.order.insert((score, id), &up_to(&self.members, (score, id)));
        None
    }

    fn remove(&mut self, id: u32) -> Scored {
        let score = self.members.entry(id).score;
        self.order.remove(&up_to(&self.members, (score, id)));
        let last = (self.members.len() - 1) as u32;
        if id != last {
            // The table moves its last element to this id.
            let score = self.members.entry(last).score;
            self.order.set_id(last, id, &up_to(&self.members, (score, last)));
        }
        self.members.remove_id(id)
    }

    /// The id of the member with this rank, which must exist.
    fn id_at(&self, rank: usize) -> u32 {
        let (leaf, place) = self.order.select(rank);
        leaf.key(place).1
    }

    fn member(&self, (score, id): Key) -> (Text<'_>, f64) {
        (Text::Bytes(&self.members.entry(id).member), score)
    }
}

/// Whether a key precedes or is `(score, id)`.
#[inline]
fn up_to(members: &Dense<Scored>, (score, id): Key) -> impl Fn(Key) -> bool {
    let member = &*members.entry(id).member;
    move |(other_score, other)| {
        other_score < score || (other_score == score && (other == id || &*members.entry(other).member < member))
    }
}

/// Walks members of a [`SortedSet`] in order, from both ends.
#[derive(Clone)]
pub struct SortedSetIter<'a>(IterRepr<'a>);

#[derive(Clone)]
enum IterRepr<'a> {
    Packed(PackedIter<'a>),
    Table(TableIter<'a>),
}

#[derive(Clone)]
struct TableIter<'a> {
    table: &'a Table,
    /// Ranks that are left.
    start: usize,
    end: usize,
    /// The leaf of `start` and the place in it.
    front: Option<(&'a Leaf, usize)>,
    /// The leaf of `end` and the place in it; its keys before the place are left.
    back: Option<(&'a Leaf, usize)>,
}

impl<'a> TableIter<'a> {
    fn next(&mut self) -> Option<(Text<'a>, f64)> {
        if self.start == self.end {
            return None;
        }
        let (leaf, place) = match self.front {
            Some((leaf, place)) if place < leaf.len() => (leaf, place),
            _ => self.table.order.select(self.start),
        };
        self.start += 1;
        self.front = Some((leaf, place + 1));
        Some(self.table.member(leaf.key(place)))
    }

    fn next_back(&mut self) -> Option<(Text<'a>, f64)> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        let (leaf, place) = match self.back {
            Some((leaf, place)) if place > 0 => (leaf, place - 1),
            _ => self.table.order.select(self.end),
        };
        self.back = Some((leaf, place));
        Some(self.table.member(leaf.key(place)))
    }
}

impl<'a> Iterator for SortedSetIter<'a> {
    type Item = (Text<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            IterRepr::Packed(iter) => iter.next(),
            IterRepr::Table(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            IterRepr::Packed(iter) => iter.size_hint(),
            IterRepr::Table(iter) => (iter.end - iter.start, Some(iter.end - iter.start)),
        }
    }
}

impl DoubleEndedIterator for SortedSetIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            IterRepr::Packed(iter) => iter.next_back(),
            IterRepr::Table(iter) => iter.next_back(),
        }
    }
}

impl ExactSizeIterator for SortedSetIter<'_> {}

#[cfg(test)]
mod tests;
