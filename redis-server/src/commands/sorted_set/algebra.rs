//! Unions, intersections and differences of sorted sets and sets.

use smallvec::SmallVec;

use super::{reply_head, reply_pair, store};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, ValueRef, View};
use crate::protocol::error::Error;
use crate::protocol::number;
use crate::types::{Set, SortedSet, SortedSetBuilder};

/// `ZUNION numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zunion(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer(cx, args, Operation::Union, "zunion")
}

/// `ZINTER numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zinter(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer(cx, args, Operation::Inter, "zinter")
}

/// `ZDIFF numkeys key [key …] [WITHSCORES]`
pub(super) fn zdiff(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer(cx, args, Operation::Diff, "zdiff")
}

/// `ZUNIONSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zunionstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer_stored(cx, args, Operation::Union, Event::ZUNIONSTORE)
}

/// `ZINTERSTORE destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zinterstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer_stored(cx, args, Operation::Inter, Event::ZINTERSTORE)
}

/// `ZDIFFSTORE destination numkeys key [key …]`
pub(super) fn zdiffstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    answer_stored(cx, args, Operation::Diff, Event::ZDIFFSTORE)
}

/// `ZINTERCARD numkeys key [key …] [LIMIT limit]`
pub(super) fn zintercard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let numkeys = numkeys(args, 1, "zintercard")?;
    let mut inputs = inputs(&cx.db, args.keys())?;
    let mut limit = 0;
    let mut at = 2 + numkeys;
    while at < args.len() {
        if !args.is(at, "LIMIT") || at + 1 == args.len() {
            return Err(Error::Syntax);
        }
        limit = number::parse_i64(args.at(at + 1))
            .and_then(|limit| usize::try_from(limit).ok())
            .ok_or(Error::Static("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    inputs.sort_by_key(|input| input.members.len());
    let (first, others) = inputs.split_first().expect("numkeys is at least 1");
    let mut count = 0;
    first.members.for_each(&mut |member, _| {
        count += usize::from(others.iter().all(|other| other.members.score(member).is_some()));
        count < limit
    });
    cx.reply.count(count);
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// How the scores that a member has in several inputs become one.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    #[inline]
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            // The sum of both infinities.
            Self::Sum => zero_if_nan(a + b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
        }
    }
}

#[inline]
fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The members of an input.
#[derive(Clone, Copy)]
enum Members<'a> {
    None,
    Sorted(&'a SortedSet),
    /// All scores are 1.
    Plain(&'a Set),
}

impl Members<'_> {
    fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Sorted(set) => set.len(),
            Self::Plain(set) => set.len(),
        }
    }

    #[inline]
    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Sorted(set) => set.score(member),
            Self::Plain(set) => set.contains(member).then_some(1.0),
        }
    }

    /// Visits the members with their scores until `visit` returns false.
    fn for_each(self, visit: &mut dyn FnMut(&[u8], f64) -> bool) {
        match self {
            Self::None => {}
            Self::Sorted(set) => _ = set.members().all(|(member, score)| visit(&member, score)),
            Self::Plain(set) => _ = set.iter().all(|member| visit(&member, 1.0)),
        }
    }
}

struct Input<'a> {
    members: Members<'a>,
    weight: f64,
}

impl Input<'_> {
    #[inline]
    fn weigh(&self, score: f64) -> f64 {
        zero_if_nan(self.weight * score)
    }
}

type Inputs<'a> = SmallVec<[Input<'a>; 4]>;

/// The number of input keys, argument `at` of command `name`.
fn numkeys(args: Args<'_>, at: usize, name: &str) -> Result<usize> {
    let count = args.int(at)?;
    if count < 1 {
        return Err(Error::Message(format!("ERR at least 1 input key is needed for '{name}' command")));
    }
    usize::try_from(count).ok().filter(|&count| count < args.len() - at).ok_or(Error::Syntax)
}

/// The values of `keys`.
fn inputs<'v>(db: &'v View<'_>, keys: &[Key<'_>]) -> Result<Inputs<'v>> {
    let members = |key| match db.value(key) {
        None => Ok(Members::None),
        Some(ValueRef::SortedSet(set)) => Ok(Members::Sorted(set)),
        Some(ValueRef::Set(set)) => Ok(Members::Plain(set)),
        Some(_) => Err(Error::WrongType),
    };
    keys.iter().map(|key| Ok(Input { members: members(key)?, weight: 1.0 })).collect()
}

/// The options besides the weights, which are set in the inputs.
struct Options {
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    /// Reads the options from argument `at` on.
    fn parse(
        args: Args<'_>,
        mut at: usize,
        operation: Operation,
        stores: bool,
        inputs: &mut Inputs<'_>,
    ) -> Result<Self> {
        let mut options = Self { aggregate: Aggregate::Sum, with_scores: false };
        let combines = operation != Operation::Diff;
        while at < args.len() {
            let left = args.len() - at - 1;
            if combines && left >= inputs.len() && args.is(at, "WEIGHTS") {
                for input in inputs.iter_mut() {
                    at += 1;
                    let weight = number::parse_f64(args.at(at));
                    input.weight = weight.ok_or(Error::Static("ERR weight value is not a float"))?;
                }
            } else if combines && left >= 1 && args.is(at, "AGGREGATE") {
                at += 1;
                options.aggregate = match args.at(at) {
                    word if word.eq_ignore_ascii_case(b"SUM") => Aggregate::Sum,
                    word if word.eq_ignore_ascii_case(b"MIN") => Aggregate::Min,
                    word if word.eq_ignore_ascii_case(b"MAX") => Aggregate::Max,
                    _ => return Err(Error::Syntax),
                };
            } else if !stores && args.is(at, "WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// Computes and answers the result.
fn answer(cx: &mut Ctx<'_>, args: Args<'_>, operation: Operation, name: &str) -> Result {
    let numkeys = numkeys(args, 1, name)?;
    let mut inputs = inputs(&cx.db, args.keys())?;
    let options = Options::parse(args, 2 + numkeys, operation, false, &mut inputs)?;
    let result = compute(operation, inputs, options.aggregate);
    let members = result.sorted();
    reply_head(cx.reply, members.len(), options.with_scores);
    let nested = cx.reply.is_resp3();
    for (member, score) in members {
        if options.with_scores {
            reply_pair(cx.reply, member, score, nested);
        } else {
            cx.reply.bulk(member);
        }
    }
    Ok(())
}

/// Computes and stores the result; the event is called like the command.
fn answer_stored(cx: &mut Ctx<'_>, args: Args<'_>, operation: Operation, event: Event) -> Result {
    let numkeys = numkeys(args, 2, event.name())?;
    let (destination, keys) = args.keys().split_first().ok_or(Error::Syntax)?;
    let mut inputs = inputs(&cx.db, keys)?;
    let options = Options::parse(args, 3 + numkeys, operation, true, &mut inputs)?;
    let result = compute(operation, inputs, options.aggregate).finish(cx.sorted_set_limits());
    store(cx, destination, result, event);
    Ok(())
}

fn compute(operation: Operation, mut inputs: Inputs<'_>, aggregate: Aggregate) -> SortedSetBuilder {
    if operation == Operation::Diff {
        return difference(&inputs);
    }
    // Sums of floats depend on their order: it is the genuine server's, by size.
    inputs.sort_by_key(|input| input.members.len());
    match operation {
        Operation::Inter => intersection(&inputs, aggregate),
        Operation::Union | Operation::Diff => union(&inputs, aggregate),
    }
}

fn union(inputs: &Inputs<'_>, aggregate: Aggregate) -> SortedSetBuilder {
    let longest = inputs.last().map_or(0, |input| input.members.len());
    let mut result = SortedSetBuilder::with_capacity(longest);
    for input in inputs {
        input.members.for_each(&mut |member, score| {
            result.merge(member, input.weigh(score), |old, new| aggregate.of(old, new));
            true
        });
    }
    result
}

fn intersection(inputs: &Inputs<'_>, aggregate: Aggregate) -> SortedSetBuilder {
    let mut result = SortedSetBuilder::default();
    let Some((first, others)) = inputs.split_first() else { return result };
    first.members.for_each(&mut |member, score| {
        let mut sum = first.weigh(score);
        let everywhere = others.iter().all(|other| {
            let score = other.members.score(member);
            if let Some(score) = score {
                sum = aggregate.of(sum, other.weight * score);
            }
            score.is_some()
        });
        if everywhere {
            result.push(member, sum);
        }
        true
    });
    result
}

fn difference(inputs: &Inputs<'_>) -> SortedSetBuilder {
    let mut result = SortedSetBuilder::default();
    let Some((first, others)) = inputs.split_first() else { return result };
    // The largest is the likeliest to have a member, and ends the search.
    let mut others: SmallVec<[Members<'_>; 4]> = others.iter().map(|other| other.members).collect();
    others.retain(|other| other.len() > 0);
    others.sort_by_key(|other| std::cmp::Reverse(other.len()));
    first.members.for_each(&mut |member, score| {
        if others.iter().all(|other| other.score(member).is_none()) {
            result.push(member, score);
        }
        true
    });
    result
}
