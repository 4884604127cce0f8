//! Sets of members.

mod table;

use self::table::{Table, TableIter};
use super::dense::room_to_grow;
use super::int_set::{IntSet, IntSetIter};
use super::listpack::{Form, Listpack, ListpackIter, Text};
use crate::protocol::number::parse_i64;

/// When a set leaves a compact form.
#[derive(Clone, Copy, Debug)]
pub struct SetLimits {
    /// `set-max-intset-entries`: members, all integers.
    pub max_intset_entries: usize,
    /// `set-max-listpack-entries`: members.
    pub max_listpack_entries: usize,
    /// `set-max-listpack-value`: bytes of a member.
    pub max_listpack_value: usize,
}

impl Default for SetLimits {
    fn default() -> Self {
        Self { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// A set of members.
///
/// ```
/// use redis_server::types::{Set, SetLimits};
///
/// let mut set = Set::default();
/// assert!(set.add(b"10", SetLimits::default()));
/// assert!(set.is_intset());
/// assert!(set.add(b"ten", SetLimits::default()));
/// assert_eq!(set.encoding(), "listpack");
/// ```
#[derive(Clone)]
pub struct Set(Repr);

#[derive(Clone)]
enum Repr {
    Ints(IntSet),
    Packed(Listpack),
    Table(Table),
}

impl Default for Set {
    fn default() -> Self {
        Self(Repr::Ints(IntSet::default()))
    }
}

impl Set {
    /// Number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Ints(ints) => ints.len(),
            Repr::Packed(list) => list.len(),
            Repr::Table(table) => table.len(),
        }
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the set is kept as sorted integers, and so is walked in numeric order.
    pub fn is_intset(&self) -> bool {
        matches!(self.0, Repr::Ints(_))
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.0 {
            Repr::Ints(ints) => parse_i64(member).is_some_and(|value| ints.contains(value)),
            Repr::Packed(list) => list.find(&Form::new(member), 1).is_some(),
            Repr::Table(table) => table.contains(member),
        }
    }

    /// Adds `member`; true if it is new.
    pub fn add(&mut self, member: &[u8], limits: SetLimits) -> bool {
        match &mut self.0 {
            Repr::Ints(ints) => match parse_i64(member) {
                Some(value) if ints.len() > 0 || limits.max_intset_entries > 0 => {
                    let new = ints.add(value);
                    if ints.len() > limits.max_intset_entries {
                        self.grow_to_table();
                    }
                    new
                }
                Some(_) | None => {
                    self.leave_intset(member, limits);
                    self.add(member, limits)
                }
            },
            Repr::Packed(list) => {
                let form = Form::new(member);
                if list.find(&form, 1).is_some() {
                    return false;
                }
                if list.len() < limits.max_listpack_entries && member.len() <= limits.max_listpack_value {
                    list.push_back(&[form]);
                    return true;
                }
                self.grow_to_table();
                self.add(member, limits)
            }
            Repr::Table(table) => table.add(member),
        }
    }

    /// Removes `member`; true if it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Ints(ints) => parse_i64(member).is_some_and(|value| ints.remove(value)),
            Repr::Packed(list) => {
                let found = list.find(&Form::new(member), 1);
                if let Some(position) = found {
                    list.remove(position, 1);
                }
                found.is_some()
            }
            Repr::Table(table) => table.remove(member),
        }
    }

    /// The member at a place from 0 to `len() - 1`, each place holding another one: a random place is a random
    /// member.
    pub fn at(&self, place: usize) -> Option<Text<'_>> {
        if place >= self.len() {
            return None;
        }
        Some(match &self.0 {
            Repr::Ints(ints) => Text::int(ints.at(place)),
            Repr::Packed(list) => list.get(list.seek(place)).into(),
            Repr::Table(table) => table.at(place)?,
        })
    }

    /// Removes the member at a place from 0 to `len() - 1` and hands it to `take`, whose answer is returned; `None`
    /// if there is no such place.
    pub fn pop_at<R>(&mut self, place: usize, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if place >= self.len() {
            return None;
        }
        Some(match &mut self.0 {
            Repr::Ints(ints) => take(&Text::int(ints.remove_at(place))),
            Repr::Packed(list) => {
                let position = list.seek(place);
                let taken = take(&Text::from(list.get(position)));
                list.remove(position, 1);
                taken
            }
            Repr::Table(table) => return table.pop_at(place, take),
        })
    }

    /// All members.
    pub fn iter(&self) -> SetIter<'_> {
        SetIter(match &self.0 {
            Repr::Ints(ints) => IterRepr::Ints(ints.iter()),
            Repr::Packed(list) => IterRepr::Packed(list.iter()),
            Repr::Table(table) => IterRepr::Table(table.iter()),
        })
    }

    /// Visits about `count` members and returns the next cursor, 0 at the end; all at once in a compact form. A
    /// member present from the first to the last call is visited once.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8])) -> u64 {
        match &self.0 {
            Repr::Ints(_) | Repr::Packed(_) => {
                self.iter().for_each(|member| visit(&member));
                0
            }
            Repr::Table(table) => table.scan(cursor, count, visit),
        }
    }

    /// The reply of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Ints(_) => "intset",
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "hashtable",
        }
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Ints(ints) => ints.memory(),
            Repr::Packed(list) => list.memory(),
            Repr::Table(table) => table.memory(),
        }
    }

    /// Turns a set of integers into a form that can take `member`.
    fn leave_intset(&mut self, member: &[u8], limits: SetLimits) {
        let Repr::Ints(ints) = &self.0 else { return };
        // In a sorted set the longest text is that of the least or the greatest.
        let longest = match ints.len() {
            0 => 0,
            len => Text::int(ints.at(0)).len().max(Text::int(ints.at(len - 1)).len()),
        };
        if ints.len() >= limits.max_listpack_entries || longest.max(member.len()) > limits.max_listpack_value {
            return self.grow_to_table();
        }
        let mut list = Listpack::default();
        for value in ints.iter() {
            list.push_back(&[Form::int(value)]);
        }
        self.0 = Repr::Packed(list);
    }

    fn grow_to_table(&mut self) {
        let room = room_to_grow(self.len());
        let mut table = if self.is_intset() { Table::with_capacity(room, 0) } else { Table::with_capacity(0, room) };
        for member in self.iter() {
            table.add(&member);
        }
        self.0 = Repr::Table(table);
    }
}

/// Walks the members of a [`Set`].
#[derive(Clone)]
pub struct SetIter<'a>(IterRepr<'a>);

#[derive(Clone)]
enum IterRepr<'a> {
    Ints(IntSetIter<'a>),
    Packed(ListpackIter<'a>),
    Table(TableIter<'a>),
}

impl<'a> Iterator for SetIter<'a> {
    type Item = Text<'a>;

    #[inline]
    fn next(&mut self) -> Option<Text<'a>> {
        match &mut self.0 {
            IterRepr::Ints(iter) => iter.next().map(Text::int),
            IterRepr::Packed(iter) => iter.next(),
            IterRepr::Table(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            IterRepr::Ints(iter) => iter.size_hint(),
            IterRepr::Packed(iter) => iter.size_hint(),
            IterRepr::Table(iter) => iter.size_hint(),
        }
    }
}

impl ExactSizeIterator for SetIter<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing::Rng;
    use super::*;

    const LIMITS: SetLimits = SetLimits { max_intset_entries: 40, max_listpack_entries: 20, max_listpack_value: 10 };

    fn member(rng: &mut Rng, universe: usize, words: bool) -> Vec<u8> {
        let number = rng.below(universe) as i64 - universe as i64 / 2;
        match rng.below(3) {
            0 if words => format!("m{number}").into_bytes(),
            1 => (number << 20).to_string().into_bytes(),
            _ => number.to_string().into_bytes(),
        }
    }

    #[test]
    fn behaves_like_a_set() {
        for (seed, universe, words) in [(1, 10, false), (2, 100, false), (3, 7, true), (4, 5000, true)] {
            let (mut set, mut model, mut rng) = (Set::default(), BTreeSet::new(), Rng::new(seed));
            for step in 0..10_000 {
                let member = member(&mut rng, universe, words && step > 20);
                match rng.below(4) {
                    0 => assert_eq!(set.remove(&member), model.remove(&member)),
                    1 if rng.below(2) == 0 => {
                        let place = rng.below(set.len() + 1);
                        let at = set.at(place).map(|text| text.to_vec());
                        let taken = set.pop_at(place, <[u8]>::to_vec);
                        assert_eq!(taken, at);
                        assert_eq!(taken.is_some_and(|member| model.remove(&member)), at.is_some());
                    }
                    _ => assert_eq!(set.add(&member, LIMITS), model.insert(member.clone())),
                }
                assert_eq!(set.contains(&member), model.contains(&member));
                if step % 100 == 0 {
                    let members: Vec<_> = set.iter().map(|text| text.to_vec()).collect();
                    assert_eq!(members.len(), set.len());
                    assert_eq!(members.into_iter().collect::<BTreeSet<_>>(), model);
                    let mut seen = BTreeSet::new();
                    let mut cursor = 0;
                    while {
                        cursor = set.scan(cursor, 10, &mut |member| assert!(seen.insert(member.to_vec())));
                        cursor != 0
                    } {}
                    assert_eq!(seen, model);
                }
            }
        }
    }

    #[test]
    fn encoding_follows_the_members() {
        let check = |members: &[&str], expected| {
            let mut set = Set::default();
            members.iter().for_each(|member| assert!(set.add(member.as_bytes(), LIMITS)));
            assert_eq!(set.encoding(), expected, "{members:?}");
        };
        let numbers: Vec<String> = (0..41).map(|n: i32| n.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let and_word = |count| [&numbers[..count], &["word"]].concat();
        check(&[], "intset");
        check(&["1", "-9223372036854775808"], "intset");
        check(&["1", "9223372036854775808"], "hashtable");
        check(&["01"], "listpack");
        check(&["1234567890a"], "hashtable");
        check(&["12345678901", "a"], "hashtable");
        check(&numbers[..40], "intset");
        check(&numbers[..41], "hashtable");
        check(&and_word(19), "listpack");
        check(&and_word(20), "hashtable");
    }

    #[test]
    fn integers_are_walked_in_numeric_order() {
        let mut set = Set::default();
        for value in ["5", "-1", "70000", "-5000000000", "10", "9"] {
            set.add(value.as_bytes(), LIMITS);
        }
        let walked: Vec<_> = set.iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
        assert_eq!(walked, ["-5000000000", "-1", "5", "9", "10", "70000"]);
    }

    /// A scan that has begun among integers finds all of them, whatever comes to them meanwhile.
    #[test]
    fn a_scan_goes_on_where_words_come_to_integers() {
        let (mut set, mut rng) = (Set::default(), Rng::new(5));
        let numbers: Vec<_> = (0..2000).map(|number: i32| number.to_string().into_bytes()).collect();
        numbers.iter().for_each(|number| assert!(set.add(number, LIMITS)));
        let (mut seen, mut cursor, mut words) = (BTreeSet::new(), 0, 0);
        loop {
            cursor = set.scan(cursor, 10, &mut |member| assert!(seen.insert(member.to_vec()), "twice"));
            if cursor == 0 {
                break;
            }
            for _ in 0..rng.below(20) {
                words += usize::from(set.add(format!("word {}", rng.below(3000)).as_bytes(), LIMITS));
            }
        }
        assert!(numbers.iter().all(|number| seen.contains(number)));
        assert!(words > 0 && seen.len() > numbers.len(), "{words}");
        assert_eq!((set.len(), set.encoding()), (numbers.len() + words, "hashtable"));
        // With a large count, one step returns numbers and words.
        let mut seen = BTreeSet::new();
        assert_eq!(set.scan(0, 100_000, &mut |member| assert!(seen.insert(member.to_vec()))), 0);
        assert_eq!(seen.len(), set.len());
    }
}
