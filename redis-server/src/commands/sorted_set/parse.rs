//! Ranges as clients write them.

use std::ops::{Bound, Range};

use crate::command::Result;
use crate::protocol::error::{Error, c_string};
use crate::protocol::number;
use crate::types::{LexBound, LexRange, ScoreRange, SortedSet};

/// The order that a range refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range of a sorted set.
pub(super) enum Wanted<'a> {
    /// Ranks; negative ones count from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Lex(LexRange<'a>),
}

impl<'a> Wanted<'a> {
    /// The range from `min` to `max`.
    pub(super) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self> {
        Ok(match by {
            By::Rank => {
                let rank = |arg| number::parse_i64(arg).ok_or(Error::NotInteger);
                Self::Ranks(rank(min)?, rank(max)?)
            }
            By::Score => Self::Scores(ScoreRange { min: score_bound(min)?, max: score_bound(max)? }),
            By::Lex => Self::Lex(LexRange { min: lex_bound(min)?, max: lex_bound(max)? }),
        })
    }

    /// The members that it means, by their ranks; given ranks count from the end where `rev`.
    pub(super) fn ranks(&self, set: &SortedSet, rev: bool) -> Range<usize> {
        match self {
            Self::Scores(range) => set.ranks_by_score(range),
            Self::Lex(range) => set.ranks_by_lex(range),
            &Self::Ranks(start, end) => {
                let len = set.len();
                let place = |rank: i64| if rank < 0 { rank.saturating_add(len as i64) } else { rank };
                let start = (place(start).max(0) as usize).min(len);
                let end = ((place(end).saturating_add(1)).max(0) as usize).clamp(start, len.max(start));
                if rev { len - end..len - start } else { start..end }
            }
        }
    }
}

/// One end of a range of scores: a number, or `(` and a number that does not belong to it.
fn score_bound(arg: &[u8]) -> Result<Bound<f64>> {
    let (text, bound): (_, fn(f64) -> Bound<f64>) = match arg {
        [b'(', text @ ..] => (text, Bound::Excluded),
        text => (text, Bound::Included),
    };
    loose_f64(text).map(bound).ok_or(Error::Static("ERR min or max is not a float"))
}

/// A number as the ends of ranges are read: more kindly than scores. Nothing is 0, leading blanks are skipped, and what
/// is too large is infinite; a zero byte ends it.
fn loose_f64(text: &[u8]) -> Option<f64> {
    let text = c_string(text);
    if text.is_empty() {
        return Some(0.0);
    }
    let text = text.trim_ascii_start();
    number::parse_f64(text).or_else(|| {
        let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        (!value.is_nan()).then_some(value)
    })
}

fn lex_bound(arg: &[u8]) -> Result<LexBound<'_>> {
    match arg {
        b"-" => Ok(LexBound::Min),
        b"+" => Ok(LexBound::Max),
        [b'[', member @ ..] => Ok(LexBound::Incl(member)),
        [b'(', member @ ..] => Ok(LexBound::Excl(member)),
        _ => Err(Error::Static("ERR min or max not valid string range item")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_ranges_are_read_kindly() {
        let check = |text: &str, expected: Option<Bound<f64>>| {
            assert_eq!(score_bound(text.as_bytes()).ok(), expected, "{text:?}");
        };
        check("1", Some(Bound::Included(1.0)));
        check("(1.5", Some(Bound::Excluded(1.5)));
        check("", Some(Bound::Included(0.0)));
        check("(", Some(Bound::Excluded(0.0)));
        check("  2", Some(Bound::Included(2.0)));
        check("( 2", Some(Bound::Excluded(2.0)));
        check("1e999", Some(Bound::Included(f64::INFINITY)));
        check("-1e999", Some(Bound::Included(f64::NEG_INFINITY)));
        check("+inf", Some(Bound::Included(f64::INFINITY)));
        check("(-inf", Some(Bound::Excluded(f64::NEG_INFINITY)));
        check("nan", None);
        check("2 ", None);
        check(" ", None);
        check("[1", None);
        check("((1", None);
    }

    #[test]
    fn ranks_count_from_both_ends() {
        let mut set = SortedSet::default();
        for member in ["a", "b", "c", "d"] {
            set.insert(member.as_bytes(), 0.0, crate::types::SortedSetLimits::default());
        }
        let check = |start, end, forward: Range<usize>, backward: Range<usize>| {
            let wanted = Wanted::Ranks(start, end);
            let same = |a: Range<usize>, b: &Range<usize>| a == *b || (a.is_empty() && b.is_empty());
            assert!(same(wanted.ranks(&set, false), &forward), "{start} {end}");
            assert!(same(wanted.ranks(&set, true), &backward), "{start} {end}, backwards");
        };
        check(0, -1, 0..4, 0..4);
        check(1, 2, 1..3, 1..3);
        check(0, 0, 0..1, 3..4);
        check(-2, -1, 2..4, 0..2);
        check(-100, 1, 0..2, 2..4);
        check(3, 100, 3..4, 0..1);
        check(2, 1, 0..0, 0..0);
        check(4, 5, 0..0, 0..0);
        check(0, -5, 0..0, 0..0);
        check(i64::MIN, i64::MAX, 0..4, 0..4);
    }
}
