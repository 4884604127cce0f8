//! Adding, changing and removing members.

use smallvec::SmallVec;

use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::types::{SortedSet, SortedSetLimits};

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member …]`
pub(super) fn zadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, Options::default())
}

/// ZINCRBY key increment member
pub(super) fn zincrby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, Options { incr: true, ..Options::default() })
}

/// `ZREM key member [member …]`
pub(super) fn zrem(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let (mut removed, mut empty) = (0, false);
    if let Some(set) = cx.db.sorted_set_mut(key)? {
        removed = args.from(2).iter().filter(|member| set.remove(member).is_some()).count();
        empty = set.is_empty();
    }
    cx.taken(key, removed, empty, Event::ZREM);
    Ok(())
}

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

/// The result for one member.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Added(f64),
    Updated(f64),
    /// The member has this score already.
    Same(f64),
    /// The options forbid the change.
    Refused,
}

impl Options {
    /// Reads the options from argument 2 on; returns the position behind them.
    fn read(&mut self, args: Args<'_>) -> usize {
        let mut at = 2;
        while let Some(flag) = args.get(at).and_then(|word| self.flag(word)) {
            *flag = true;
            at += 1;
        }
        at
    }

    fn flag(&mut self, word: &[u8]) -> Option<&mut bool> {
        // Most words are scores.
        if !word.first().is_some_and(u8::is_ascii_alphabetic) {
            return None;
        }
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        Some(if is("nx") {
            &mut self.nx
        } else if is("xx") {
            &mut self.xx
        } else if is("gt") {
            &mut self.gt
        } else if is("lt") {
            &mut self.lt
        } else if is("ch") {
            &mut self.ch
        } else if is("incr") {
            &mut self.incr
        } else {
            return None;
        })
    }

    /// Refuses options that contradict each other, or the number of `pairs` of score and member.
    fn check(self, pairs: usize) -> Result {
        let Self { nx, xx, gt, lt, incr, .. } = self;
        Err(Error::Static(if nx && xx {
            "ERR XX and NX options at the same time are not compatible"
        } else if (gt && (nx || lt)) || (lt && nx) {
            "ERR GT, LT, and/or NX options at the same time are not compatible"
        } else if incr && pairs > 1 {
            "ERR INCR option supports a single increment-element pair"
        } else {
            return Ok(());
        }))
    }

    /// Whether a member is simply given its score.
    fn are_plain(self) -> bool {
        !(self.nx || self.xx || self.gt || self.lt || self.incr)
    }

    /// Gives `member` a score as far as the options allow it.
    fn put(self, set: &mut SortedSet, member: &[u8], score: f64, limits: SortedSetLimits) -> Result<Outcome> {
        if self.are_plain() {
            return Ok(match set.insert(member, score, limits) {
                None => Outcome::Added(score),
                Some(old) if old != score => Outcome::Updated(score),
                Some(_) => Outcome::Same(score),
            });
        }
        let Some(old) = set.score(member) else {
            if self.xx {
                return Ok(Outcome::Refused);
            }
            set.insert(member, score, limits);
            return Ok(Outcome::Added(score));
        };
        if self.nx {
            return Ok(Outcome::Refused);
        }
        let score = if self.incr { old + score } else { score };
        if score.is_nan() {
            return Err(Error::Static("ERR resulting score is not a number (NaN)"));
        }
        if (self.lt && score >= old) || (self.gt && score <= old) {
            return Ok(Outcome::Refused);
        }
        if score == old {
            return Ok(Outcome::Same(score));
        }
        set.insert(member, score, limits);
        Ok(Outcome::Updated(score))
    }
}

/// ZADD and ZINCRBY, which is ZADD with the option INCR.
fn add(cx: &mut Ctx<'_>, args: Args<'_>, mut options: Options) -> Result {
    let first = options.read(args);
    let count = args.len() - first;
    if count == 0 || !count.is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    options.check(count / 2)?;
    let scores: SmallVec<[f64; 8]> = (first..args.len()).step_by(2).map(|at| args.float(at)).collect::<Result<_>>()?;

    let limits = cx.sorted_set_limits();
    let call = Call { options, scores: &scores, members: args.from(first + 1), stride: 2, limits };
    run(cx, args.key(0), &call)
}

/// Which members `GEOADD` adds or changes, and how it counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct AddRule {
    /// Only new ones.
    pub(in crate::commands) nx: bool,
    /// Only those that are there.
    pub(in crate::commands) xx: bool,
    /// Changed ones are counted too.
    pub(in crate::commands) ch: bool,
}

/// Adds members, every `stride`th of the arguments, with scores of their own, as ZADD does.
pub(in crate::commands) fn add_scored(
    cx: &mut Ctx<'_>,
    key: &Key<'_>,
    rule: AddRule,
    scores: &[f64],
    members: Args<'_>,
    stride: usize,
) -> Result {
    let options = Options { nx: rule.nx, xx: rule.xx, ch: rule.ch, ..Options::default() };
    let limits = cx.sorted_set_limits();
    run(cx, key, &Call { options, scores, members, stride, limits })
}

/// Adds, and answers how many or with the new score.
fn run(cx: &mut Ctx<'_>, key: &Key<'_>, call: &Call<'_>) -> Result {
    let options = call.options;
    let tally = match cx.db.sorted_set_mut(key)? {
        Some(set) => call.run(set)?,
        None if options.xx => Tally::default(),
        None => call.run(cx.db.sorted_set_or_new(key)?)?,
    };
    let Tally { added, updated, last } = tally;
    if added + updated > 0 {
        cx.changed(key, if options.incr { Event::ZINCR } else { Event::ZADD });
    }
    match last {
        _ if !options.incr => cx.reply.count(if options.ch { added + updated } else { added }),
        Some(score) => cx.reply.double(score),
        None => cx.reply.null(),
    }
    Ok(())
}

/// Scores for members: the latter are every `stride`th argument.
struct Call<'a> {
    options: Options,
    scores: &'a [f64],
    members: Args<'a>,
    stride: usize,
    limits: SortedSetLimits,
}

/// The results of all members.
#[derive(Default)]
struct Tally {
    added: usize,
    updated: usize,
    /// The score of the last member, unless the options forbade its change.
    last: Option<f64>,
}

impl Call<'_> {
    fn run(&self, set: &mut SortedSet) -> Result<Tally> {
        let mut tally = Tally::default();
        for (&score, member) in self.scores.iter().zip(self.members.iter().step_by(self.stride)) {
            tally.last = match self.options.put(set, member, score, self.limits)? {
                Outcome::Added(score) => {
                    tally.added += 1;
                    Some(score)
                }
                Outcome::Updated(score) => {
                    tally.updated += 1;
                    Some(score)
                }
                Outcome::Same(score) => Some(score),
                Outcome::Refused => None,
            };
        }
        Ok(tally)
    }
}
