//! Effects on the groups' pending entries when entries leave the stream (`KEEPREF`, `DELREF`, `ACKED`).

use super::{Stream, StreamId, Trim, TrimTo};

/// The treatment of references: pending entries in groups, or groups that have not read an entry yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// Nothing: it stays pending, without content.
    #[default]
    Keep,
    /// It is pending no longer.
    Delete,
    /// The entry stays until all groups have acknowledged it.
    Acknowledged,
}

/// The effects of a trimming, in the order in which a replica must repeat them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Entries that went.
    pub count: u64,
    /// How many were left when those had gone that stood in front of all others.
    pub left: u64,
    /// Those that went from between others.
    pub between: Vec<StreamId>,
    /// By group, the entries that are pending no longer.
    pub forgotten: Vec<(Box<[u8]>, Vec<StreamId>)>,
}

impl Stream {
    /// Whether a group has an entry still to be given, or has not acknowledged it.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        self.groups.values().any(|group| group.refers_to(id))
    }

    /// Has all groups forget which of these entries are pending. Returns by group those that were.
    pub fn forget(&mut self, ids: &[StreamId]) -> Vec<(Box<[u8]>, Vec<StreamId>)> {
        let mut forgotten = Vec::new();
        for (name, group) in &mut self.groups {
            let were: Vec<StreamId> = ids.iter().copied().filter(|&id| group.acknowledge(id)).collect();
            if !were.is_empty() {
                forgotten.push((name.clone(), were));
            }
        }
        forgotten
    }

    /// Removes entries from the front, as far as the groups' references to them allow.
    pub fn trim(&mut self, trim: &Trim, references: References) -> Trimmed {
        if references == References::Keep || self.groups.is_empty() {
            let count = self.log.trim(trim);
            return Trimmed { count, left: self.log.len(), ..Trimmed::default() };
        }
        let gone = self.log.to_trim(trim, |id| references == References::Delete || !self.is_referenced(id));
        let front = self.log.range(StreamId::MIN, StreamId::MAX).zip(&gone).take_while(|(entry, id)| entry.id == **id);
        let (front, between) = gone.split_at(front.count());
        let left = self.log.len() - front.len() as u64;
        self.log.trim(&Trim { to: TrimTo::Len(left), approximate: false, limit: 0 });
        // They leave a gap, which readers of the groups' lags must know of.
        between.iter().for_each(|&id| _ = self.log.delete(id));
        let forgotten = if references == References::Delete { self.forget(&gone) } else { Vec::new() };
        Trimmed { count: gone.len() as u64, left, between: between.to_vec(), forgotten }
    }
}
