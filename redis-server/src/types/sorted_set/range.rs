//! Ranges of a sorted set.

use std::ops::Bound;

/// A range of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreRange {
    /// Where it begins.
    pub min: Bound<f64>,
    /// Where it ends.
    pub max: Bound<f64>,
}

impl ScoreRange {
    /// Whether `score` lies before the range.
    #[inline]
    pub fn is_after(&self, score: f64) -> bool {
        match self.min {
            Bound::Included(min) => score < min,
            Bound::Excluded(min) => score <= min,
            Bound::Unbounded => false,
        }
    }

    /// Whether `score` does not lie behind the range.
    #[inline]
    pub fn reaches(&self, score: f64) -> bool {
        match self.max {
            Bound::Included(max) => score <= max,
            Bound::Excluded(max) => score < max,
            Bound::Unbounded => true,
        }
    }
}

/// An end of a range of members, as `-`, `+`, `[member` and `(member` say it.
#[derive(Clone, Copy, Debug)]
pub enum LexBound<'a> {
    /// Before every member.
    Min,
    /// Behind every member.
    Max,
    /// At this member, which belongs to the range.
    Incl(&'a [u8]),
    /// At this member, which does not.
    Excl(&'a [u8]),
}

/// A range of members, in a sorted set whose scores are all the same.
#[derive(Clone, Copy, Debug)]
pub struct LexRange<'a> {
    /// Where it begins.
    pub min: LexBound<'a>,
    /// Where it ends.
    pub max: LexBound<'a>,
}

impl LexRange<'_> {
    /// Whether `member` lies before the range.
    #[inline]
    pub fn is_after(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Incl(min) => member < min,
            LexBound::Excl(min) => member <= min,
        }
    }

    /// Whether `member` does not lie behind the range.
    #[inline]
    pub fn reaches(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Incl(max) => member <= max,
            LexBound::Excl(max) => member < max,
        }
    }
}
