//! Sorted sets against a sorted vector.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::super::testing::Rng;
use super::*;

type Model = BTreeMap<Vec<u8>, f64>;

const LIMITS: SortedSetLimits = SortedSetLimits { max_listpack_entries: 20, max_listpack_value: 10 };

fn sorted(model: &Model) -> Vec<(Vec<u8>, f64)> {
    let mut sorted: Vec<_> = model.iter().map(|(member, &score)| (member.clone(), score)).collect();
    sorted.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap().then_with(|| a.0.cmp(&b.0)));
    sorted
}

fn owned((member, score): (Text<'_>, f64)) -> (Vec<u8>, f64) {
    (member.to_vec(), score)
}

fn check(set: &SortedSet, model: &Model, rng: &mut Rng) {
    let sorted = sorted(model);
    assert_eq!(set.len(), sorted.len());
    assert!(set.iter().map(owned).eq(sorted.iter().cloned()));
    let (start, end) = (rng.below(sorted.len() + 1), rng.below(sorted.len() + 2));
    let part = sorted.iter().take(end).skip(start).cloned();
    assert!(set.range(start..end).map(owned).eq(part.clone()));
    assert!(set.range(start..end).rev().map(owned).eq(part.rev()));
    let (mut both, mut expected) = (set.iter(), sorted.iter().cloned());
    while both.len() > 0 {
        if rng.below(2) == 0 {
            assert_eq!(both.next().map(owned), expected.next());
        } else {
            assert_eq!(both.next_back().map(owned), expected.next_back());
        }
    }
    for (rank, (member, score)) in sorted.iter().enumerate() {
        assert_eq!(set.rank(member), Some((rank, *score)));
        assert_eq!(set.at(rank).map(owned), Some((member.clone(), *score)));
    }
    assert_eq!((0..set.len()).filter_map(|place| set.any(place)).map(owned).collect::<Model>(), *model);
    check_ranges(set, &sorted, rng);
}

fn check_ranges(set: &SortedSet, sorted: &[(Vec<u8>, f64)], rng: &mut Rng) {
    let mut bound = || [Bound::Unbounded, Bound::Included(score(rng)), Bound::Excluded(score(rng))][rng.below(3)];
    let range = ScoreRange { min: bound(), max: bound() };
    let in_range: Vec<usize> =
        (0..sorted.len()).filter(|&rank| !range.is_after(sorted[rank].1) && range.reaches(sorted[rank].1)).collect();
    assert!(set.ranks_by_score(&range).eq(in_range));
    if sorted.iter().all(|(_, score)| *score == sorted[0].1) {
        let texts = [member(rng, 1000), member(rng, 1000)];
        let mut bound = |text| [LexBound::Min, LexBound::Max, LexBound::Incl(text), LexBound::Excl(text)][rng.below(4)];
        let range = LexRange { min: bound(&texts[0]), max: bound(&texts[1]) };
        let in_range: Vec<usize> = (0..sorted.len())
            .filter(|&rank| !range.is_after(&sorted[rank].0) && range.reaches(&sorted[rank].0))
            .collect();
        assert!(set.ranks_by_lex(&range).eq(in_range));
    }
}

fn member(rng: &mut Rng, universe: usize) -> Vec<u8> {
    let number = rng.below(universe);
    if number.is_multiple_of(2) { number.to_string().into_bytes() } else { format!("m{number}").into_bytes() }
}

fn score(rng: &mut Rng) -> f64 {
    match rng.below(10) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.5,
        3 => 1e300,
        _ => rng.below(50) as f64 - 25.0,
    }
}

#[test]
fn behaves_like_a_sorted_map() {
    // A universe of members, whether all scores are the same, and how often a step adds.
    for (seed, universe, same, additions) in
        [(1, 20, false, 5), (2, 60, false, 5), (3, 19, true, 5), (4, 2000, false, 7), (5, 2000, true, 7)]
    {
        let (mut set, mut model, mut rng) = (SortedSet::default(), Model::new(), Rng::new(seed));
        let mut most = 0;
        for step in 0..8000 {
            let member = member(&mut rng, universe);
            match rng.below(10) {
                n if n < additions && step % 4000 < 3000 => {
                    let score = if same { 1.0 } else { score(&mut rng) };
                    assert_eq!(set.insert(&member, score, LIMITS), model.insert(member, score));
                }
                8 => {
                    let expected = sorted(&model).first().cloned();
                    assert_eq!(set.pop_min(|member, score| (member.to_vec(), score)), expected);
                    expected.map(|(member, _)| model.remove(&member));
                }
                9 if rng.below(2) == 0 => {
                    let expected = sorted(&model).last().cloned();
                    assert_eq!(set.pop_max(|member, score| (member.to_vec(), score)), expected);
                    expected.map(|(member, _)| model.remove(&member));
                }
                9 => {
                    let start = rng.below(model.len() + 1);
                    let end = start + rng.below(5);
                    let gone: Vec<_> = sorted(&model).into_iter().take(end).skip(start).collect();
                    assert_eq!(set.remove_range(start..end), gone.len());
                    model.retain(|member, _| !gone.iter().any(|(other, _)| other == member));
                }
                _ => assert_eq!(set.remove(&member), model.remove(&member)),
            }
            most = most.max(model.len());
            assert_eq!(set.encoding(), if most > LIMITS.max_listpack_entries { "skiplist" } else { "listpack" });
            if step % 50 == 0 {
                check(&set, &model, &mut rng);
            }
        }
        check(&set, &model, &mut rng);
    }
}

#[test]
fn long_members_leave_the_compact_form() {
    let mut set = SortedSet::default();
    set.insert(b"0123456789", 1.0, LIMITS);
    assert_eq!(set.encoding(), "listpack");
    set.insert(b"0123456789a", 1.0, LIMITS);
    assert_eq!(set.encoding(), "skiplist");
}

#[test]
fn builders_sort() {
    for (seed, count) in [(1, 0), (2, 1), (3, 20), (4, 21), (5, 55), (6, 56), (7, 3000)] {
        let (mut builder, mut model, mut rng) =
            (SortedSetBuilder::with_capacity(count / 2), Model::new(), Rng::new(seed));
        for number in 0..count {
            let (member, score) = (number.to_string().into_bytes(), score(&mut rng));
            builder.push(&member, score);
            model.insert(member, score);
        }
        for _ in 0..count / 2 {
            let (member, score) = (member(&mut rng, count * 2), score(&mut rng));
            builder.merge(&member, score, f64::max);
            model.entry(member).and_modify(|old| *old = old.max(score)).or_insert(score);
        }
        assert!(builder.sorted().map(|(member, score)| (member.to_vec(), score)).eq(sorted(&model)));
        let mut set = builder.finish(LIMITS);
        assert_eq!(set.encoding(), if model.len() > LIMITS.max_listpack_entries { "skiplist" } else { "listpack" });
        check(&set, &model, &mut rng);
        assert_eq!(set.members().map(owned).collect::<Model>(), model);
        // A set that was built at once changes like any other.
        for _ in 0..2 * count {
            let (member, score) = (member(&mut rng, count * 2), score(&mut rng));
            match rng.below(2) {
                0 => assert_eq!(set.insert(&member, score, LIMITS), model.insert(member, score)),
                _ => assert_eq!(set.remove(&member), model.remove(&member)),
            }
        }
        check(&set, &model, &mut rng);
    }
}

/// Scores that move a little, within a leaf, to its neighbours, and not at all.
#[test]
fn changed_scores_keep_order() {
    const COUNT: usize = 3000;
    let (mut set, mut model, mut rng) = (SortedSet::default(), Model::new(), Rng::new(1));
    for number in 0..COUNT {
        let member = number.to_string().into_bytes();
        set.insert(&member, number as f64, LIMITS);
        model.insert(member, number as f64);
    }
    for step in 0..20_000 {
        let member = rng.below(COUNT).to_string().into_bytes();
        let moved = [0.25, 1.0, 3.0, 40.0, 1000.0][rng.below(5)] * (rng.below(3) as f64 - 1.0);
        let score = model[&member] + moved;
        assert_eq!(set.insert(&member, score, LIMITS), model.insert(member, score));
        if step % 1000 == 0 {
            check(&set, &model, &mut rng);
        }
    }
    check(&set, &model, &mut rng);
}

/// Ascending, descending and random additions and removals, deep enough for three levels.
#[test]
fn large_sets_keep_order() {
    const COUNT: usize = 60_000;
    for order in 0..3 {
        let (mut set, mut rng) = (SortedSet::default(), Rng::new(order));
        let place = |i: usize| [i, COUNT - 1 - i, i * 7919 % COUNT][order as usize];
        for i in 0..COUNT {
            set.insert(place(i).to_string().as_bytes(), (place(i) / 3) as f64, LIMITS);
        }
        assert!(set.iter().map(|(_, score)| score).is_sorted());
        let removed: BTreeSet<usize> = (0..COUNT).filter(|_| rng.below(20) > 0).collect();
        for &i in &removed {
            let number = place(i).to_string();
            assert_eq!(set.remove(number.as_bytes()), Some((place(i) / 3) as f64));
        }
        assert_eq!(set.len(), COUNT - removed.len());
        let left: Vec<_> = set.iter().map(owned).collect();
        assert!(left.is_sorted_by(|a, b| a.1 < b.1 || (a.1 == b.1 && a.0 < b.0)));
        for (rank, (member, score)) in left.iter().enumerate() {
            assert_eq!(set.rank(member), Some((rank, *score)));
        }
        while set.pop_max(|_, _| ()).is_some() {}
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
