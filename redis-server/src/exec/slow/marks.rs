//! What a slow call locks, and a window wants to.

use smallvec::SmallVec;

use crate::keyspace::Access;

/// Shards of the databases that are locked, or to be locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marks {
    /// None.
    None,
    /// Some of one database: their numbers in ascending order.
    Shards {
        /// The database's number.
        db: usize,
        /// Each once.
        shards: SmallVec<[(u32, Access); 8]>,
    },
    /// All of one database, or of all databases.
    Whole {
        /// The database's number; `None`: all of them.
        db: Option<usize>,
        /// How.
        access: Access,
    },
}

impl Marks {
    /// Those shards of a database, in any order, some of them repeated.
    pub fn shards(db: usize, shards: impl Iterator<Item = (u32, Access)>) -> Self {
        let mut shards: SmallVec<[(u32, Access); 8]> = shards.collect();
        // Write sorts behind Read, and the last of each shard is kept.
        shards.sort_unstable_by(|a, b| b.cmp(a));
        shards.dedup_by_key(|(shard, _)| *shard);
        shards.reverse();
        if shards.is_empty() { Self::None } else { Self::Shards { db, shards } }
    }

    fn db(&self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Shards { db, .. } => Some(*db),
            Self::Whole { db, .. } => *db,
        }
    }

    /// Whether something is locked in both, and for writing in one of them.
    pub fn forbid(&self, wanted: &Self) -> bool {
        let is_elsewhere = self.db().zip(wanted.db()).is_some_and(|(ours, theirs)| ours != theirs);
        if is_elsewhere {
            return false;
        }
        let writes = |shards: &[(u32, Access)]| shards.iter().any(|(_, access)| *access == Access::Write);
        match (self, wanted) {
            (Self::None, _) | (_, Self::None) => false,
            (Self::Whole { access: ours, .. }, Self::Whole { access: theirs, .. }) => {
                *ours == Access::Write || *theirs == Access::Write
            }
            (Self::Whole { access, .. }, Self::Shards { shards, .. })
            | (Self::Shards { shards, .. }, Self::Whole { access, .. }) => *access == Access::Write || writes(shards),
            (Self::Shards { shards: ours, .. }, Self::Shards { shards: theirs, .. }) => {
                let (few, many) = if ours.len() < theirs.len() { (ours, theirs) } else { (theirs, ours) };
                few.iter().any(|(shard, access)| {
                    let same = many.binary_search_by_key(shard, |(shard, _)| *shard);
                    same.is_ok_and(|at| *access == Access::Write || many[at].1 == Access::Write)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Read, Write};

    #[test]
    fn marks_forbid_what_cannot_be_locked_beside_them() {
        let some = |db, shards: &[(u32, Access)]| Marks::shards(db, shards.iter().copied());
        let whole = |db, access| Marks::Whole { db, access };
        assert_eq!(some(0, &[(3, Read), (1, Write), (3, Write), (1, Read)]), some(0, &[(1, Write), (3, Write)]));
        assert_eq!(some(0, &[]), Marks::None);
        for (ours, theirs, expected) in [
            (Marks::None, whole(None, Write), false),
            (some(0, &[(1, Read), (7, Read)]), some(0, &[(7, Read)]), false),
            (some(0, &[(1, Read), (7, Read)]), some(0, &[(7, Write)]), true),
            (some(0, &[(1, Read), (7, Write)]), some(0, &[(7, Read)]), true),
            (some(0, &[(1, Write)]), some(0, &[(2, Write)]), false),
            (some(0, &[(1, Write)]), some(1, &[(1, Write)]), false),
            (some(0, &[(1, Write)]), whole(Some(0), Read), true),
            (some(0, &[(1, Read)]), whole(Some(0), Read), false),
            (some(0, &[(1, Read)]), whole(None, Write), true),
            (whole(Some(0), Write), whole(Some(1), Write), false),
            (whole(None, Read), whole(Some(1), Write), true),
            (whole(None, Read), whole(Some(1), Read), false),
        ] {
            assert_eq!(ours.forbid(&theirs), expected, "{ours:?} {theirs:?}");
            assert_eq!(theirs.forbid(&ours), expected, "{theirs:?} {ours:?}");
        }
    }
}
