//! The keys and databases that a slow call works on, and those that a window wants.

use smallvec::SmallVec;

use crate::keyspace::Access;

/// Keys of the databases that are worked on, or to be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marks {
    /// None.
    None,
    /// Some of one database: their hashes in ascending order.
    Keys {
        /// The database's number.
        db: usize,
        /// Each once.
        hashes: SmallVec<[(u64, Access); 8]>,
    },
    /// All of one database, or of all databases.
    Whole {
        /// The database's number; `None`: all of them.
        db: Option<usize>,
        /// How.
        access: Access,
    },
    /// A walk that locks shard by shard, and looks at no values: only a call that has locked all of them is in its way.
    Walk {
        /// The database's number; `None`: all of them.
        db: Option<usize>,
    },
}

impl Marks {
    /// The keys of a database with these hashes, in any order, some of them repeated.
    pub fn keys(db: usize, hashes: impl Iterator<Item = (u64, Access)>) -> Self {
        let mut hashes: SmallVec<[(u64, Access); 8]> = hashes.collect();
        if hashes.len() > 1 {
            // Write sorts behind Read, and the last of each key is kept.
            hashes.sort_unstable_by(|a, b| b.cmp(a));
            hashes.dedup_by_key(|(hash, _)| *hash);
            hashes.reverse();
        }
        if hashes.is_empty() { Self::None } else { Self::Keys { db, hashes } }
    }

    fn db(&self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Keys { db, .. } => Some(*db),
            Self::Whole { db, .. } | Self::Walk { db } => *db,
        }
    }

    /// Whether something is worked on in both, and changed in one of them.
    pub fn forbid(&self, wanted: &Self) -> bool {
        let is_elsewhere = self.db().zip(wanted.db()).is_some_and(|(ours, theirs)| ours != theirs);
        if is_elsewhere {
            return false;
        }
        match (self, wanted) {
            (Self::Whole { access: ours, .. }, Self::Whole { access: theirs, .. }) => {
                *ours == Access::Write || *theirs == Access::Write
            }
            (Self::Whole { access, .. }, Self::Walk { .. }) | (Self::Walk { .. }, Self::Whole { access, .. }) => {
                *access == Access::Write
            }
            (Self::Whole { access, .. }, Self::Keys { hashes, .. })
            | (Self::Keys { hashes, .. }, Self::Whole { access, .. }) => {
                *access == Access::Write || hashes.iter().any(|(_, access)| *access == Access::Write)
            }
            (Self::Keys { hashes: ours, .. }, Self::Keys { hashes: theirs, .. }) => {
                let (few, many) = if ours.len() < theirs.len() { (ours, theirs) } else { (theirs, ours) };
                few.iter().any(|(hash, access)| {
                    let same = many.binary_search_by_key(hash, |(hash, _)| *hash);
                    same.is_ok_and(|at| *access == Access::Write || many[at].1 == Access::Write)
                })
            }
            (Self::None | Self::Keys { .. } | Self::Walk { .. }, Self::None | Self::Walk { .. })
            | (Self::Whole { .. }, Self::None)
            | (Self::None, Self::Keys { .. } | Self::Whole { .. })
            | (Self::Walk { .. }, Self::Keys { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Read, Write};

    #[test]
    fn marks_forbid_what_cannot_run_beside_them() {
        let some = |db, hashes: &[(u64, Access)]| Marks::keys(db, hashes.iter().copied());
        let whole = |db, access| Marks::Whole { db, access };
        let walk = |db| Marks::Walk { db };
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
            (walk(Some(0)), some(0, &[(1, Write)]), false),
            (walk(Some(0)), whole(Some(0), Read), false),
            (walk(None), whole(Some(0), Write), true),
            (walk(Some(1)), whole(Some(0), Write), false),
            (walk(None), walk(None), false),
        ] {
            assert_eq!(ours.forbid(&theirs), expected, "{ours:?} {theirs:?}");
            assert_eq!(theirs.forbid(&ours), expected, "{theirs:?} {ours:?}");
        }
    }
}
