//! Dense tables against `HashMap`, and what a scan returns while they grow and shrink.

use std::collections::{BTreeMap, HashMap};

use super::super::small_bytes::SmallBytes;
use super::super::testing::Rng;
use super::*;

#[derive(Clone, Debug, PartialEq)]
struct Item(SmallBytes, usize);

impl Keyed for Item {
    type Key = [u8];

    fn key(&self) -> &[u8] {
        &self.0
    }
}

fn key(number: usize) -> SmallBytes {
    let width = number % 40;
    SmallBytes::new(format!("{number:width$}").as_bytes())
}

type Model = HashMap<Vec<u8>, usize>;

fn check(table: &Dense<Item>, model: &Model) {
    assert_eq!(table.len(), model.len());
    assert_eq!(table.iter().len(), model.len());
    assert_eq!(&table.iter().map(|Item(key, value)| (key.to_vec(), *value)).collect::<Model>(), model);
    for (place, item) in table.iter().enumerate() {
        assert_eq!(table.at(place), Some(item));
        assert_eq!(table.find(&item.0), Some(place as u32));
    }
    assert_eq!(table.at(table.len()), None);
}

/// One random step of three: an addition or a change, a removal by key, one by place.
fn step(table: &mut Dense<Item>, model: &mut Model, rng: &mut Rng, universe: usize, additions: usize) {
    let (key, value) = (key(rng.below(universe)), rng.below(1000));
    match rng.below(100) {
        n if n < additions => {
            let (id, new) = table.find_or_insert_with(&key, || Item(key.clone(), value));
            table.entry_mut(id).1 = value;
            assert_eq!(model.insert(key.to_vec(), value).is_none(), new);
        }
        n if n % 2 == 0 && table.len() > 0 => {
            let Item(key, value) = table.remove_id(rng.below(table.len()) as u32);
            assert_eq!(model.remove(&key[..]), Some(value));
        }
        _ => assert_eq!(table.remove(&key).map(|item| item.1), model.remove(&key[..])),
    }
    assert_eq!(table.get(&key).map(|item| item.1), model.get(&key[..]).copied());
}

/// Up and down through pieces of the array and of the index, twice.
#[test]
fn behaves_like_a_hash_map() {
    for (seed, universe, steps) in [(1, 30, 2_000), (2, 1_000, 10_000), (3, 60_000, 60_000)] {
        let (mut table, mut model, mut rng) = (Dense::with_capacity(0), Model::new(), Rng::new(seed));
        let empty = table.memory();
        for phase in 0..4 {
            for _ in 0..steps {
                step(&mut table, &mut model, &mut rng, universe, if phase % 2 == 0 { 90 } else { 5 });
            }
            check(&table, &model);
        }
        check(&table.clone(), &model);
        while table.len() > 0 {
            table.remove_id(0);
        }
        assert!(table.memory() <= empty + 16 * 1024, "{} bytes stay", table.memory());
    }
}

/// A scan returns what is there from its first call to its last exactly once, and nothing twice at all, however the
/// table grows, shrinks, or does both meanwhile.
#[test]
fn scans_return_once_what_stays() {
    for (seed, (first, stays, grows, shrinks)) in
        [(3000, 1000, 10, 0), (40_000, 500, 0, 30), (20_000, 5_000, 20, 20), (500, 100, 40, 0), (20_000, 50, 0, 500)]
            .into_iter()
            .enumerate()
    {
        let mut rng = Rng::new(seed as u64);
        let mut table = Dense::with_capacity(0);
        (0..first).for_each(|number| _ = table.insert_new(Item(key(number), number)));
        let (mut seen, mut cursor, mut next) = (BTreeMap::<usize, usize>::new(), 0, first);
        loop {
            cursor = table.scan(cursor, 10, &mut |_, item| *seen.entry(item.1).or_default() += 1);
            if cursor == 0 {
                break;
            }
            for _ in 0..rng.below(grows + 1) {
                table.insert_new(Item(key(next), next));
                next += 1;
            }
            for _ in 0..rng.below(shrinks + 1) {
                table.remove(&key(stays + rng.below(next - stays)));
            }
        }
        assert!((0..stays).all(|number| seen.get(&number) == Some(&1)), "{first}");
        assert!(seen.values().all(|&times| times == 1), "{first}: twice");
    }
}

/// A cursor that nobody was given leads on to the end, or is the end.
#[test]
fn any_cursor_comes_to_an_end() {
    let mut table = Dense::with_capacity(0);
    (0..1000).for_each(|number| _ = table.insert_new(Item(key(number), number)));
    for cursor in [1, 77, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        let (mut at, mut visited) = (cursor, 0);
        for _ in 0..1000 {
            at = table.scan(at, 1, &mut |_, _| visited += 1);
            if at == 0 {
                break;
            }
        }
        assert!(at == 0 && visited <= 1000, "{cursor}");
    }
    let mut visited = 0;
    assert_eq!(table.scan(0, usize::MAX, &mut |_, _| visited += 1), 0);
    assert_eq!(visited, 1000);
}
