//! Hashes: fields and their values.

use super::dense::{Dense, DenseIter, Keyed};
use super::listpack::{Form, Listpack, ListpackIter, Text};
use super::small_bytes::SmallBytes;

/// When a hash leaves its compact form.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    /// `hash-max-listpack-entries`: fields.
    pub max_listpack_entries: usize,
    /// `hash-max-listpack-value`: bytes of a field or a value.
    pub max_listpack_value: usize,
}

impl Default for HashLimits {
    fn default() -> Self {
        Self { max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// A map of fields to values.
///
/// ```
/// use redis_server::types::{Hash, HashLimits};
///
/// let mut hash = Hash::default();
/// assert!(hash.set(b"field", b"1", HashLimits::default()));
/// assert_eq!(&*hash.get(b"field").unwrap(), b"1");
/// assert_eq!(hash.encoding(), "listpack");
/// ```
#[derive(Clone)]
pub struct Hash(Repr);

#[derive(Clone)]
enum Repr {
    /// Fields and values in turn.
    Packed(Listpack),
    Table(Box<Dense<Pair>>),
}

#[derive(Clone)]
struct Pair {
    field: SmallBytes,
    value: SmallBytes,
}

impl Keyed for Pair {
    #[inline]
    fn key(&self) -> &SmallBytes {
        &self.field
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self(Repr::Packed(Listpack::default()))
    }
}

impl Hash {
    /// Number of fields.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(list) => list.len() / 2,
            Repr::Table(table) => table.len(),
        }
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `field`.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Text<'_>> {
        match &self.0 {
            Repr::Packed(list) => {
                let position = list.find(&Form::new(field), 2)?;
                Some(list.get(list.next(position)).into())
            }
            Repr::Table(table) => table.get(field).map(|pair| Text::Bytes(&pair.value)),
        }
    }

    /// Whether `field` exists.
    pub fn contains(&self, field: &[u8]) -> bool {
        match &self.0 {
            Repr::Packed(list) => list.find(&Form::new(field), 2).is_some(),
            Repr::Table(table) => table.find(field).is_some(),
        }
    }

    /// Sets `field` to `value`; true if the field is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        if field.len().max(value.len()) > limits.max_listpack_value {
            self.grow();
        }
        match &mut self.0 {
            Repr::Packed(list) => {
                let (field, value) = (Form::new(field), Form::new(value));
                let found = list.find(&field, 2);
                match found {
                    Some(position) => list.replace(list.next(position), &value),
                    None => list.push_back(&[field, value]),
                }
                // Also where nothing was added: the limit may have become lower.
                if list.len() / 2 > limits.max_listpack_entries {
                    self.grow();
                }
                found.is_none()
            }
            Repr::Table(table) => {
                let make = || Pair { field: SmallBytes::new(field), value: SmallBytes::new(value) };
                let (id, new) = table.find_or_insert_with(field, make);
                if !new {
                    table.entry_mut(id).value.assign(value);
                }
                new
            }
        }
    }

    /// Removes `field`; true if it existed.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Packed(list) => {
                let found = list.find(&Form::new(field), 2);
                if let Some(position) = found {
                    list.remove(position, 2);
                }
                found.is_some()
            }
            Repr::Table(table) => table.remove(field).is_some(),
        }
    }

    /// The field and value at a place from 0 to `len() - 1`, each place holding another one: a random place is a
    /// random field.
    pub fn at(&self, place: usize) -> Option<(Text<'_>, Text<'_>)> {
        match &self.0 {
            Repr::Packed(list) => {
                if place >= self.len() {
                    return None;
                }
                let position = list.seek(place * 2);
                Some((list.get(position).into(), list.get(list.next(position)).into()))
            }
            Repr::Table(table) => table.at(place).map(pair_texts),
        }
    }

    /// All fields with their values.
    pub fn iter(&self) -> HashIter<'_> {
        HashIter(match &self.0 {
            Repr::Packed(list) => IterRepr::Packed(list.iter()),
            Repr::Table(table) => IterRepr::Table(table.iter()),
        })
    }

    /// Visits about `count` fields and returns the next cursor, 0 at the end; all at once in the compact form. A
    /// field present from the first to the last call is visited once.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        match &self.0 {
            Repr::Packed(_) => {
                self.iter().for_each(|(field, value)| visit(&field, &value));
                0
            }
            Repr::Table(table) => table.scan(cursor, count, &mut |pair| visit(&pair.field, &pair.value)),
        }
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Packed(_) => "listpack",
            Repr::Table(_) => "hashtable",
        }
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Packed(list) => list.memory(),
            Repr::Table(table) => {
                let owned: usize = table.iter().map(|pair| pair.field.memory() + pair.value.memory()).sum();
                size_of::<Dense<Pair>>() + table.memory() + owned
            }
        }
    }

    fn grow(&mut self) {
        let Repr::Packed(list) = &self.0 else { return };
        let mut table = Dense::with_capacity(list.len());
        for (field, value) in self.iter() {
            table.insert_new(Pair { field: SmallBytes::new(&field), value: SmallBytes::new(&value) });
        }
        self.0 = Repr::Table(Box::new(table));
    }
}

fn pair_texts(pair: &Pair) -> (Text<'_>, Text<'_>) {
    (Text::Bytes(&pair.field), Text::Bytes(&pair.value))
}

/// Walks the fields and values of a [`struct@Hash`].
#[derive(Clone)]
pub struct HashIter<'a>(IterRepr<'a>);

#[derive(Clone)]
enum IterRepr<'a> {
    Packed(ListpackIter<'a>),
    Table(DenseIter<'a, Pair>),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (Text<'a>, Text<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            IterRepr::Packed(iter) => Some((iter.next()?, iter.next()?)),
            IterRepr::Table(iter) => iter.next().map(pair_texts),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            IterRepr::Packed(iter) => iter.len() / 2,
            IterRepr::Table(iter) => iter.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for HashIter<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::testing::Rng;
    use super::*;

    fn check(hash: &Hash, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let owned = |(field, value): (Text<'_>, Text<'_>)| (field.to_vec(), value.to_vec());
        assert_eq!(hash.len(), model.len());
        assert_eq!(&hash.iter().map(owned).collect::<BTreeMap<_, _>>(), model);
        assert_eq!(&(0..hash.len()).filter_map(|place| hash.at(place)).map(owned).collect::<BTreeMap<_, _>>(), model);
        assert!(hash.at(hash.len()).is_none());
    }

    #[test]
    fn behaves_like_a_map() {
        let limits = HashLimits { max_listpack_entries: 20, max_listpack_value: 10 };
        for (seed, fields, longest) in [(1, 15, 10), (2, 25, 5), (3, 15, 11), (4, 3000, 40)] {
            let (mut hash, mut model, mut rng) = (Hash::default(), BTreeMap::new(), Rng::new(seed));
            let (mut most, mut long) = (0, false);
            for step in 0..10_000 {
                let field = rng.below(fields).to_string().into_bytes();
                if rng.below(3) == 0 || (step > 9000 && rng.below(10) > 0) {
                    assert_eq!(hash.remove(&field), model.remove(&field).is_some());
                } else {
                    let value = format!("{:1$}", rng.below(9), rng.below(longest) + 1).into_bytes();
                    long |= value.len() > limits.max_listpack_value;
                    assert_eq!(hash.set(&field, &value, limits), model.insert(field.clone(), value).is_none());
                }
                assert_eq!(hash.get(&field).map(|text| text.to_vec()), model.get(&field).cloned());
                assert_eq!(hash.contains(&field), model.contains_key(&field));
                most = most.max(model.len());
                let large = long || most > limits.max_listpack_entries;
                assert_eq!(hash.encoding(), if large { "hashtable" } else { "listpack" });
                if step % 100 == 0 {
                    check(&hash, &model);
                }
            }
            check(&hash, &model);
        }
    }

    /// Every field that is there from the first to the last call is visited, whatever else comes and goes.
    #[test]
    fn scan_returns_what_stays() {
        let mut rng = Rng::new(5);
        for round in 0..50 {
            let mut hash = Hash::default();
            let stays: BTreeSet<Vec<u8>> = (0..500).map(|i| format!("stays:{i}").into_bytes()).collect();
            let goes = |i: usize| format!("goes:{i}").into_bytes();
            for (i, field) in stays.iter().enumerate() {
                hash.set(field, b"", HashLimits::default());
                hash.set(&goes(i * 2), b"", HashLimits::default());
            }
            let (mut seen, mut cursor) = (BTreeSet::new(), 0);
            loop {
                cursor = hash.scan(cursor, 7, &mut |field, _| {
                    seen.insert(field.to_vec());
                });
                if cursor == 0 {
                    break;
                }
                for _ in 0..rng.below(30) {
                    if rng.below(2) == round % 2 {
                        hash.set(&goes(rng.below(4000)), b"", HashLimits::default());
                    } else {
                        hash.remove(&goes(rng.below(1000)));
                    }
                }
            }
            assert!(seen.is_superset(&stays));
        }
    }
}
