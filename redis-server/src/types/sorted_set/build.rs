//! Making a sorted set at once, from members in any order.

use super::packed::Packed;
use super::tree::{Key, RankTree};
use super::{Repr, Scored, SortedSet, SortedSetLimits, Table};
use crate::types::dense::Dense;
use crate::types::small_bytes::SmallBytes;

/// Collects members with their scores and sorts them once, at the end.
///
/// ```
/// use redis_server::types::{SortedSetBuilder, SortedSetLimits};
///
/// let mut builder = SortedSetBuilder::with_capacity(2);
/// builder.merge(b"b", 2.0, |old, new| old + new);
/// builder.merge(b"a", 3.0, |old, new| old + new);
/// builder.merge(b"b", 2.0, |old, new| old + new);
/// let set = builder.finish(SortedSetLimits::default());
/// assert_eq!(set.rank(b"b"), Some((1, 4.0)));
/// ```
pub struct SortedSetBuilder {
    members: Dense<Scored>,
    /// Bytes of the longest member.
    longest: usize,
}

impl Default for SortedSetBuilder {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl SortedSetBuilder {
    /// Room for `capacity` members.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { members: Dense::with_capacity(capacity), longest: 0 }
    }

    /// Adds a member that was not added before.
    pub fn push(&mut self, member: &[u8], score: f64) {
        self.longest = self.longest.max(member.len());
        self.members.insert_new(Scored { member: SmallBytes::new(member), score });
    }

    /// Adds a member; one that was added before gets the score that `combine` makes of the old and the new one.
    pub fn merge(&mut self, member: &[u8], score: f64, combine: impl FnOnce(f64, f64) -> f64) {
        let make = || Scored { member: SmallBytes::new(member), score };
        let (id, new) = self.members.find_or_insert_with(member, make);
        if new {
            self.longest = self.longest.max(member.len());
        } else {
            let scored = self.members.entry_mut(id);
            scored.score = combine(scored.score, score);
        }
    }

    /// The members in order, without making a sorted set of them.
    pub fn sorted(&self) -> impl ExactSizeIterator<Item = (&[u8], f64)> {
        self.keys().into_iter().map(|(score, id)| (self.member(id), score))
    }

    /// The sorted set.
    pub fn finish(self, limits: SortedSetLimits) -> SortedSet {
        let keys = self.keys();
        if keys.len() <= limits.max_listpack_entries && self.longest <= limits.max_listpack_value {
            let mut packed = Packed::default();
            keys.iter().for_each(|&(score, id)| packed.push(self.member(id), score));
            return SortedSet(Repr::Packed(packed));
        }
        SortedSet(Repr::Table(Box::new(Table { order: RankTree::from_sorted(&keys), members: self.members })))
    }

    fn member(&self, id: u32) -> &[u8] {
        &self.members.entry(id).member
    }

    /// Scores and ids in order.
    fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.members.iter().zip(0..).map(|(scored, id)| (scored.score, id)).collect();
        keys.sort_unstable_by(|a, b| {
            // Scores are never NaN; 0 and -0 are the same.
            let by_score = a.0.partial_cmp(&b.0).filter(|order| order.is_ne());
            by_score.unwrap_or_else(|| self.member(a.1).cmp(self.member(b.1)))
        });
        keys
    }
}
