//! Random elements of a collection, for HRANDFIELD, SRANDMEMBER and ZRANDMEMBER.

use std::collections::HashSet;

use crate::command::{Args, Result};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// Collections up to this length are read into an array before many elements are picked: finding an element of a
/// compact one means walking to it, and compact ones are not longer by default.
const COLLECT_MAX: usize = 1024;

/// More picks than this are worth that array.
const COLLECT_MIN_PICKS: usize = 16;

/// Distinct elements are picked by a walk over all of them unless they are fewer than one in so many: a walk reads
/// memory in order and needs no set of what was picked.
const WALK_SHARE: usize = 16;

/// Repeated elements may ask for any number; a reply longer than this many bytes is refused.
const MAX_REPLY: usize = 512 * 1024 * 1024;

/// Bytes of the shortest element, `$0\r\n\r\n`.
const MIN_ELEMENT: usize = 6;

/// A count argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Different elements, as far as there are so many.
    Distinct(usize),
    /// So many in random order, the same one possibly again (a negative count).
    Repeated(usize),
}

impl Count {
    /// Argument `index`.
    ///
    /// # Errors
    /// It is not an integer, or the one whose absolute value is out of range.
    pub(super) fn parse(args: Args<'_>, index: usize) -> Result<Self> {
        let count = args.int(index)?;
        if count == i64::MIN {
            let text = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
            return Err(Error::Static(text));
        }
        let size = count.unsigned_abs() as usize;
        Ok(if count < 0 { Self::Repeated(size) } else { Self::Distinct(size) })
    }

    /// Number of elements picked from a collection of `len`.
    pub(super) fn of(self, len: usize) -> usize {
        match self {
            Self::Distinct(count) => count.min(len),
            Self::Repeated(count) => count,
        }
    }
}

/// The arguments behind the key of HRANDFIELD and ZRANDMEMBER: a count, and whether values or scores are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairOptions {
    /// How many.
    pub(super) count: Count,
    /// With their values or scores.
    pub(super) with: bool,
}

impl PairOptions {
    /// The arguments from number 2 on; `word` is `WITHVALUES` or `WITHSCORES`.
    ///
    /// # Errors
    /// As [`Count::parse`], a syntax error, or a count too large to be doubled.
    pub(super) fn parse(args: Args<'_>, word: &str) -> Result<Self> {
        let count = Count::parse(args, 2)?;
        let with = args.len() > 3;
        if args.len() > 4 || (with && !args.is(3, word)) {
            return Err(Error::Syntax);
        }
        let (Count::Distinct(size) | Count::Repeated(size)) = count;
        if with && size > i64::MAX as usize / 2 {
            return Err(Error::OutOfRange);
        }
        Ok(Self { count, with })
    }

    /// Appends the head of the answer for a collection of `len`: pairs are flat in RESP2 and nested in RESP3.
    pub(super) fn head(&self, reply: &mut Reply, len: usize) {
        let count = self.count.of(len);
        reply.array(if self.with && !reply.is_resp3() { count * 2 } else { count });
    }

    /// Appends the head of one element.
    pub(super) fn element_head(&self, reply: &mut Reply) {
        if self.with && reply.is_resp3() {
            reply.array(2);
        }
    }
}

/// Picks random elements and calls `write` with each: every element is as likely as any other, and every choice of
/// distinct elements as likely as any other choice.
///
/// `elements` walks the collection, `at` finds the element at a place from 0 to its length, and `below` gives a
/// random number below its argument.
///
/// # Errors
/// The reply becomes too long.
pub(super) fn sample<T>(
    reply: &mut Reply,
    count: Count,
    elements: impl ExactSizeIterator<Item = T>,
    at: impl Fn(usize) -> Option<T>,
    mut below: impl FnMut(usize) -> usize,
    mut write: impl FnMut(&mut Reply, &T),
) -> Result {
    let len = elements.len();
    match count {
        _ if len == 0 => {}
        Count::Distinct(count) if count >= len => elements.for_each(|element| write(reply, &element)),
        Count::Distinct(count) if count > len / WALK_SHARE => {
            select(elements, count, below, |element| write(reply, &element));
        }
        Count::Distinct(count) => {
            distinct_places(len, count, below).into_iter().filter_map(at).for_each(|element| write(reply, &element));
        }
        Count::Repeated(count) if count > MAX_REPLY / MIN_ELEMENT => return Err(Error::OutOfRange),
        Count::Repeated(count) if count > COLLECT_MIN_PICKS && len <= COLLECT_MAX => {
            let elements: Vec<T> = elements.collect();
            for _ in 0..count {
                write(reply, &elements[below(len)]);
                check_length(reply)?;
            }
        }
        Count::Repeated(count) => {
            for _ in 0..count {
                at(below(len)).iter().for_each(|element| write(reply, element));
                check_length(reply)?;
            }
        }
    }
    Ok(())
}

#[inline]
fn check_length(reply: &Reply) -> Result {
    if reply.len() > MAX_REPLY { Err(Error::OutOfRange) } else { Ok(()) }
}

/// Selection sampling (Knuth, The Art of Computer Programming 3.4.2, algorithm S): each element is taken with the
/// probability of those still wanted to those still left.
fn select<T>(
    elements: impl ExactSizeIterator<Item = T>,
    count: usize,
    mut below: impl FnMut(usize) -> usize,
    mut take: impl FnMut(T),
) {
    let (mut wanted, mut left) = (count, elements.len());
    for element in elements {
        if below(left) < wanted {
            take(element);
            wanted -= 1;
            if wanted == 0 {
                return;
            }
        }
        left -= 1;
    }
}

/// Floyd's sampling: `count` different places below `len` in as many steps.
fn distinct_places(len: usize, count: usize, mut below: impl FnMut(usize) -> usize) -> HashSet<usize> {
    let mut places = HashSet::with_capacity(count);
    for last in len - count..len {
        if !places.insert(below(last + 1)) {
            places.insert(last);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed sequence (SplitMix64).
    fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
        move |bound| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
        }
    }

    fn picked(len: usize, count: Count, below: &mut impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut picked = Vec::new();
        let at = |place| (place < len).then_some(place);
        sample(&mut Reply::default(), count, 0..len, at, below, |_, place| picked.push(*place)).unwrap();
        picked
    }

    /// Every element comes equally often, by the chi-square test.
    fn check(len: usize, count: Count) {
        let mut below = numbers((len * 31 + count.of(len)) as u64);
        let mut times = vec![0usize; len];
        let rounds = 20_000 / count.of(len).max(1) + 1;
        for _ in 0..rounds {
            let picked = picked(len, count, &mut below);
            assert_eq!(picked.len(), count.of(len), "{count:?} of {len}");
            if let Count::Distinct(_) = count {
                assert_eq!(picked.iter().collect::<HashSet<_>>().len(), picked.len(), "{count:?} of {len}");
            }
            picked.into_iter().for_each(|place| times[place] += 1);
        }
        let expected = (rounds * count.of(len)) as f64 / len as f64;
        let chi_square: f64 = times.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        // Mean and variance of the distribution are the degrees of freedom and twice as many.
        let freedom = len as f64 - 1.0;
        assert!(chi_square <= freedom + 5.0 * (2.0 * freedom).sqrt(), "{count:?} of {len}: {chi_square}");
    }

    #[test]
    fn samples_are_even() {
        for len in [1, 2, 10, 100, 1000] {
            for count in [1, 2, 5, len / 20, len / 2, len - 1, len, len + 1].into_iter().filter(|&count| count > 0) {
                check(len, Count::Distinct(count));
            }
        }
        for (len, count) in [(10, 1), (10, 16), (10, 17), (1000, 3000), (2000, 3000)] {
            check(len, Count::Repeated(count));
        }
    }

    #[test]
    fn replies_are_limited() {
        let pick = |count| {
            let mut reply = Reply::default();
            let write = |reply: &mut Reply, _: &usize| reply.bulk(b"x");
            sample(&mut reply, Count::Repeated(count), 0..3, Some, numbers(1), write)
        };
        assert_eq!(pick(2), Ok(()));
        assert_eq!(pick(MAX_REPLY), Err(Error::OutOfRange));
        assert_eq!(pick(i64::MAX as usize), Err(Error::OutOfRange));
    }

    #[test]
    fn nothing_comes_of_nothing() {
        for count in [Count::Distinct(0), Count::Distinct(3), Count::Repeated(3)] {
            assert!(picked(0, count, &mut numbers(1)).is_empty());
        }
        assert!(picked(5, Count::Distinct(0), &mut numbers(1)).is_empty());
    }
}
