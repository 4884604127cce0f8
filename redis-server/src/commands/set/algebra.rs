//! Intersection, union and difference of sets.

use std::cmp::Reverse;

use smallvec::SmallVec;

use crate::command::{Args, Result};
use crate::commands::store;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, Object, View};
use crate::protocol::error::Error;
use crate::protocol::number;
use crate::types::{Set, SetLimits, Text};

/// The sets of a call; a key that does not exist is the empty set.
type Sets<'a> = SmallVec<[Option<&'a Set>; 8]>;

/// `SINTER key [key …]`
pub(super) fn sinter(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let sets = sets(&cx.db, args.keys())?;
    let mark = cx.reply.mark();
    let mut len = 0;
    intersect(sets, |member| {
        cx.reply.bulk(member);
        len += 1;
        true
    });
    cx.reply.set_at(mark, len);
    Ok(())
}

/// `SINTERSTORE destination key [key …]`
pub(super) fn sinterstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limits = cx.set_limits();
    let mut result = Set::default();
    intersect(sets(&cx.db, &args.keys()[1..])?, |member| result.add(member, limits));
    store(cx, args.key(0), result, Event::SINTERSTORE);
    Ok(())
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]`
pub(super) fn sintercard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limit = card_limit(args)?;
    let mut count = 0;
    intersect(sets(&cx.db, args.keys())?, |_| {
        count += 1;
        count != limit
    });
    cx.reply.count(count);
    Ok(())
}

/// The limit of SINTERCARD, 0 for none; its number of keys is checked too.
fn card_limit(args: Args<'_>) -> Result<usize> {
    let keys = number::parse_i64(args.at(1)).and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let keys = keys.ok_or(Error::Static("ERR numkeys should be greater than 0"))?;
    if keys > args.len() - 2 {
        return Err(Error::Static("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    for at in (2 + keys..args.len()).step_by(2) {
        if !args.is(at, "LIMIT") || at + 1 == args.len() {
            return Err(Error::Syntax);
        }
        let value = number::parse_i64(args.at(at + 1)).and_then(|limit| usize::try_from(limit).ok());
        limit = value.ok_or(Error::Static("ERR LIMIT can't be negative"))?;
    }
    Ok(limit)
}

/// `SUNION key [key …]`
pub(super) fn sunion(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limits = cx.set_limits();
    let result = union(&sets(&cx.db, args.keys())?, limits);
    cx.reply.set(result.len());
    result.iter().for_each(|member| cx.reply.bulk(&member));
    Ok(())
}

/// `SUNIONSTORE destination key [key …]`
pub(super) fn sunionstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limits = cx.set_limits();
    let result = union(&sets(&cx.db, &args.keys()[1..])?, limits);
    store(cx, args.key(0), result, Event::SUNIONSTORE);
    Ok(())
}

/// `SDIFF key [key …]`
pub(super) fn sdiff(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limits = cx.set_limits();
    let difference = Difference::of(&sets(&cx.db, args.keys())?, limits);
    let mark = cx.reply.mark();
    let mut len = 0;
    difference.for_each(|member| {
        cx.reply.bulk(member);
        len += 1;
    });
    cx.reply.set_at(mark, len);
    Ok(())
}

/// `SDIFFSTORE destination key [key …]`
pub(super) fn sdiffstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let limits = cx.set_limits();
    let result = Difference::of(&sets(&cx.db, &args.keys()[1..])?, limits).into_set(limits);
    store(cx, args.key(0), result, Event::SDIFFSTORE);
    Ok(())
}

/// The sets at `keys`; all types are checked, whatever the sets hold.
fn sets<'a>(db: &'a View<'_>, keys: &[Key<'_>]) -> Result<Sets<'a>> {
    keys.iter().map(|key| db.set_at(key)).collect()
}

/// Calls `visit` with every member that all sets have, until it returns false; walks the smallest set.
fn intersect(sets: Sets<'_>, mut visit: impl FnMut(&Text<'_>) -> bool) {
    let Some(mut sets) = sets.into_iter().collect::<Option<SmallVec<[&Set; 8]>>>() else { return };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in smallest.iter() {
        if others.iter().all(|set| std::ptr::eq(*set, *smallest) || set.contains(&member)) && !visit(&member) {
            return;
        }
    }
}

fn union(sets: &Sets<'_>, limits: SetLimits) -> Set {
    let mut result = Set::default();
    for member in sets.iter().flatten().flat_map(|set| set.iter()) {
        result.add(&member, limits);
    }
    result
}

/// The members of the first set that no other set has.
enum Difference<'a> {
    /// Its members are looked up in the others, the largest of which come first.
    LookUp { first: &'a Set, others: SmallVec<[&'a Set; 8]> },
    /// The others' members were taken out of a copy.
    Rest(Set),
}

impl<'a> Difference<'a> {
    /// Chooses the cheaper way.
    fn of(sets: &Sets<'a>, limits: SetLimits) -> Self {
        let Some((Some(first), others)) = sets.split_first() else { return Self::Rest(Set::default()) };
        let mut others: SmallVec<[&Set; 8]> = others.iter().copied().flatten().collect();
        if others.iter().any(|set| std::ptr::eq(*set, *first)) {
            return Self::Rest(Set::default());
        }
        // Looking up stops at the first set that has the member and copies nothing: that counts as half the work.
        let look_up = first.len() * (others.len() + 1) / 2;
        let take_out = first.len() + others.iter().map(|set| set.len()).sum::<usize>();
        if look_up <= take_out {
            others.sort_by_key(|set| Reverse(set.len()));
            return Self::LookUp { first, others };
        }
        let mut rest = union(&SmallVec::from_slice(&[Some(*first)]), limits);
        for member in others.iter().flat_map(|set| set.iter()) {
            if rest.remove(&member) && rest.is_empty() {
                break;
            }
        }
        Self::Rest(rest)
    }

    fn for_each(&self, mut visit: impl FnMut(&[u8])) {
        match self {
            Self::LookUp { first, others } => {
                let only_there = |member: &Text<'_>| !others.iter().any(|set| set.contains(member));
                first.iter().filter(only_there).for_each(|member| visit(&member));
            }
            Self::Rest(rest) => rest.iter().for_each(|member| visit(&member)),
        }
    }

    fn into_set(self, limits: SetLimits) -> Set {
        if let Self::Rest(rest) = self {
            return rest;
        }
        let mut result = Set::default();
        self.for_each(|member| {
            result.add(member, limits);
        });
        result
    }
}

/// Puts a computed set in the place of `key` and answers its size.
fn store(cx: &mut Ctx<'_>, key: &Key<'_>, set: Set, event: Event) {
    store::store(cx, key, set.len(), Object::Set(Box::new(set)), event);
}
