//! Whether words stand near enough, and how near.

use super::record::{Data, Record};

/// Whether the children of a match stand within `slop` words of each other, in the query's order if `in_order`.
pub(super) fn is_near(children: &[Record<'_>], slop: Option<u32>, in_order: bool) -> bool {
    let lists: Vec<Vec<u32>> = children.iter().filter(|child| child.has_positions()).map(Record::positions).collect();
    if lists.len() <= 1 {
        return true;
    }
    let slop = slop.map_or(i64::MAX, i64::from);
    if in_order { is_ordered(&lists, slop) } else { is_close(&lists, slop) }
}

/// Each list in turn goes on to a position at or behind the one before. The gaps between them add up to the slop.
fn is_ordered(lists: &[Vec<u32>], slop: i64) -> bool {
    let mut at = vec![0usize; lists.len()];
    for first in &lists[0] {
        let (mut last, mut span, mut fits) = (*first, 0, true);
        for (list, at) in lists.iter().zip(&mut at).skip(1) {
            while list.get(*at).is_some_and(|position| *position < last) {
                *at += 1;
            }
            let Some(position) = list.get(*at) else { return false };
            span += i64::from(*position) - i64::from(last) - 1;
            last = *position;
            if span > slop {
                fits = false;
                break;
            }
        }
        if fits {
            return true;
        }
    }
    false
}

/// One position of each list, of which the lowest goes on until the window is small enough.
fn is_close(lists: &[Vec<u32>], slop: i64) -> bool {
    let mut at = vec![0usize; lists.len()];
    let Some(mut positions) = lists.iter().map(|list| list.first().copied()).collect::<Option<Vec<u32>>>() else {
        return false;
    };
    loop {
        let highest = positions.iter().copied().max().unwrap_or_default();
        let (lowest_at, lowest) =
            positions.iter().copied().enumerate().min_by_key(|(_, position)| *position).unwrap_or_default();
        let span = i64::from(highest) - i64::from(lowest) - (lists.len() as i64 - 1);
        if highest != lowest && span <= slop {
            return true;
        }
        at[lowest_at] += 1;
        let Some(next) = lists[lowest_at].get(at[lowest_at]) else { return false };
        positions[lowest_at] = *next;
    }
}

/// RediSearch's measure of how far the words of a match stand apart: the root of the summed squares of the smallest distances between
/// neighbours in the query. TFIDF and BM25 divide by it.
pub(super) fn slop(record: &Record<'_>) -> u32 {
    let (Data::Intersection(children) | Data::Union(children)) = &record.data else { return 1 };
    if children.len() <= 1 {
        return 1;
    }
    let lists: Vec<Vec<u32>> = children.iter().filter(|child| child.has_positions()).map(Record::positions).collect();
    let distances = lists.windows(2).map(|pair| smallest_distance(&pair[0], &pair[1]));
    let squares: u64 = distances.map(|distance| distance * distance).sum();
    if squares > 0 { (squares as f64).sqrt() as u32 } else { children.len() as u32 - 1 }
}

/// A list without positions, a group of tags, counts as one that stands at −1, as in RediSearch.
fn smallest_distance(one: &[u32], other: &[u32]) -> u64 {
    let at_or_before = |list: &[u32], at: usize| list.get(at).map_or(-1, |position| i64::from(*position));
    let (mut at, mut other_at) = (0, 0);
    let mut smallest = at_or_before(one, 0).abs_diff(at_or_before(other, 0));
    while let (Some(position), Some(other_position)) = (one.get(at), other.get(other_at)) {
        smallest = smallest.min(u64::from(position.abs_diff(*other_position)));
        if position < other_position { at += 1 } else { other_at += 1 }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found() {
        let check = |lists: &[&[u32]], ordered: Option<i64>, close: Option<i64>| {
            let lists: Vec<Vec<u32>> = lists.iter().map(|list| list.to_vec()).collect();
            let least = |fits: &dyn Fn(i64) -> bool| (0..50).find(|slop| fits(*slop));
            assert_eq!(least(&|slop| is_ordered(&lists, slop)), ordered, "{lists:?} in order");
            assert_eq!(least(&|slop| is_close(&lists, slop)), close, "{lists:?} in any order");
        };
        check(&[&[1], &[2]], Some(0), Some(0));
        check(&[&[2], &[1]], None, Some(0));
        check(&[&[1, 9, 13, 16, 22], &[4, 7, 32]], Some(2), Some(1));
        check(&[&[1], &[3], &[9]], Some(6), Some(6));
        check(&[&[1], &[]], None, None);
    }

    #[test]
    fn the_smallest_distance_is_found() {
        assert_eq!(smallest_distance(&[1, 10, 20], &[14, 21]), 1);
        assert_eq!((smallest_distance(&[1], &[]), smallest_distance(&[], &[])), (2, 0));
    }
}
