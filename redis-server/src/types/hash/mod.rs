//! Hashes: fields and their values, some of which may expire.
//!
//! The type has no clock: reads go [`at`](Hash::at) a moment, and skip fields that have expired by then. They stay in the hash, and in its
//! length, until somebody takes them out.

mod deadlines;
mod live;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use self::deadlines::Deadlines;
pub use self::live::{HashIter, LiveHash, Places};
use super::dense::{Dense, Keyed, room_to_grow};
use super::listpack::{Form, Listpack, Text};
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
/// assert_eq!(&*hash.at(0).get(b"field").unwrap(), b"1");
/// assert_eq!(hash.encoding(), "listpack");
/// ```
#[derive(Clone)]
pub struct Hash(Repr);

#[derive(Clone)]
enum Repr {
    /// Fields and values in turn.
    Packed(Listpack),
    Table(Box<Table>),
}

/// The large form, and that of any hash of which a field expires.
#[derive(Clone)]
struct Table {
    pairs: Dense<Pair>,
    /// None where no field expires.
    deadlines: Option<Box<Deadlines>>,
}

#[derive(Clone)]
struct Pair {
    field: SmallBytes,
    value: SmallBytes,
}

impl Keyed for Pair {
    type Key = [u8];

    #[inline]
    fn key(&self) -> &[u8] {
        &self.field
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self(Repr::Packed(Listpack::default()))
    }
}

impl Table {
    /// Sets or clears a field's time.
    fn set_deadline(&mut self, id: u32, at: Option<u64>) {
        match &mut self.deadlines {
            None if at.is_none() => {}
            deadlines => deadlines.get_or_insert_default().set(id, at),
        }
        self.forget_none();
    }

    fn remove(&mut self, field: &[u8]) -> bool {
        if self.deadlines.is_none() {
            return self.pairs.remove(field).is_some();
        }
        let found = self.pairs.find(field);
        if let Some(id) = found {
            drop(self.remove_id(id));
        }
        found.is_some()
    }

    fn remove_id(&mut self, id: u32) -> Pair {
        let pair = self.pairs.remove_id(id);
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.removed(id, self.pairs.len() as u32);
        }
        self.forget_none();
        pair
    }

    /// A hash of which no field expires any more costs what one costs of which none ever did.
    fn forget_none(&mut self) {
        self.deadlines.take_if(|deadlines| deadlines.is_empty());
    }
}

impl Hash {
    /// Number of fields, with those whose time is over.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(list) => list.len() / 2,
            Repr::Table(table) => table.pairs.len(),
        }
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash as it is at `now`, in milliseconds of Unix time; at 0 all fields are there.
    #[inline]
    pub fn at(&self, now: u64) -> LiveHash<'_> {
        LiveHash::new(self, now)
    }

    /// All fields with their values, also those whose time is over.
    pub fn iter(&self) -> HashIter<'_> {
        self.at(0).iter()
    }

    /// Sets `field` to `value`, so that it does not expire; true if the field is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        self.put(field, value, limits, false)
    }

    /// [`Hash::set`], but when the field expires stays as it is.
    pub fn update(&mut self, field: &[u8], value: &[u8], limits: HashLimits) -> bool {
        self.put(field, value, limits, true)
    }

    #[inline]
    fn put(&mut self, field: &[u8], value: &[u8], limits: HashLimits, keeps_deadline: bool) -> bool {
        if field.len().max(value.len()) > limits.max_listpack_value {
            self.grow(room_to_grow(self.len()));
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
                    self.grow(room_to_grow(self.len()));
                }
                found.is_none()
            }
            Repr::Table(table) => {
                let make = || Pair { field: SmallBytes::new(field), value: SmallBytes::new(value) };
                let (id, new) = table.pairs.find_or_insert_with(field, make);
                if !new {
                    table.pairs.entry_mut(id).value.assign(value);
                    if !keeps_deadline {
                        table.set_deadline(id, None);
                    }
                }
                new
            }
        }
    }

    /// Removes `field`; true if it existed, even if its time was over.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.0 {
            Repr::Packed(list) => {
                let found = list.find(&Form::new(field), 2);
                if let Some(position) = found {
                    list.remove(position, 2);
                }
                found.is_some()
            }
            Repr::Table(table) => table.remove(field),
        }
    }

    /// Whether any field expires.
    #[inline]
    pub fn expires(&self) -> bool {
        self.deadlines().is_some()
    }

    #[inline]
    fn deadlines(&self) -> Option<&Deadlines> {
        match &self.0 {
            Repr::Packed(_) => None,
            Repr::Table(table) => table.deadlines.as_deref(),
        }
    }

    fn deadlines_mut(&mut self) -> Option<&mut Deadlines> {
        match &mut self.0 {
            Repr::Packed(_) => None,
            Repr::Table(table) => table.deadlines.as_deref_mut(),
        }
    }

    /// Sets when `field` expires, in milliseconds of Unix time, or that it does not; false if there is no such field. A hash
    /// of which a field expires is not compact.
    pub fn expire(&mut self, field: &[u8], at: Option<u64>) -> bool {
        if at.is_some() {
            self.grow(self.len());
        }
        match &mut self.0 {
            Repr::Packed(list) => list.find(&Form::new(field), 2).is_some(),
            Repr::Table(table) => {
                let found = table.pairs.find(field);
                if let Some(id) = found {
                    table.set_deadline(id, at);
                }
                found.is_some()
            }
        }
    }

    /// Whether there are fields, and the time of all of them is over at `now`.
    pub fn is_over(&self, now: u64) -> bool {
        let over = self.deadlines().map_or(0, |deadlines| deadlines.over(now).take(self.len()).count());
        over > 0 && over == self.len()
    }

    /// Takes out up to `most` fields whose time is over at `now`, the earliest first.
    pub fn take_over(&mut self, now: u64, most: usize) -> Vec<SmallBytes> {
        let mut taken = Vec::new();
        let Repr::Table(table) = &mut self.0 else { return taken };
        while taken.len() < most {
            let first = table.deadlines.as_ref().and_then(|deadlines| deadlines.over(now).next());
            let Some(id) = first else { break };
            taken.push(table.remove_id(id).field);
        }
        taken
    }

    /// Takes out those of `fields` whose time is over at `now`.
    #[inline]
    pub fn take_over_of<'f>(&mut self, now: u64, fields: impl Iterator<Item = &'f [u8]>) -> Vec<SmallBytes> {
        if self.expires() { self.take_some_over(now, fields) } else { Vec::new() }
    }

    #[cold]
    fn take_some_over<'f>(&mut self, now: u64, fields: impl Iterator<Item = &'f [u8]>) -> Vec<SmallBytes> {
        let is_taken = |field: &&[u8]| self.at(now).is_over(field) && self.remove(field);
        fields.filter(is_taken).map(SmallBytes::new).collect()
    }

    /// When the first field expires, unless whoever keeps track of it knows of that time or an earlier one.
    pub fn unwatched(&self) -> Option<u64> {
        self.deadlines().and_then(Deadlines::unwatched)
    }

    /// When the first field expires.
    pub fn earliest(&self) -> Option<u64> {
        self.deadlines().and_then(Deadlines::earliest)
    }

    /// The time that whoever keeps track knows of.
    pub fn watched(&self) -> Option<u64> {
        self.deadlines().and_then(Deadlines::watched)
    }

    /// Notes that the expiry index has the deadline `at`. `count` includes the hash as long as fields of it expire.
    pub fn watch(&mut self, at: u64, count: &Arc<AtomicUsize>) {
        if let Some(deadlines) = self.deadlines_mut() {
            deadlines.watch(at, count);
        }
    }

    /// Ends the effect of `watch`, as the hash leaves its database.
    pub fn unwatch(&mut self) {
        if let Some(deadlines) = self.deadlines_mut() {
            deadlines.unwatch();
        }
    }

    /// The reply of `OBJECT ENCODING`.
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
                let owned: usize = table.pairs.iter().map(|pair| pair.field.memory() + pair.value.memory()).sum();
                let deadlines =
                    table.deadlines.as_ref().map_or(0, |deadlines| size_of::<Deadlines>() + deadlines.memory());
                size_of::<Table>() + table.pairs.memory() + owned + deadlines
            }
        }
    }

    /// Makes a table of it, with room for so many fields.
    fn grow(&mut self, room: usize) {
        let Repr::Packed(_) = &self.0 else { return };
        let mut pairs = Dense::with_capacity(room);
        for (field, value) in self.iter() {
            pairs.insert_new(Pair { field: SmallBytes::new(&field), value: SmallBytes::new(&value) });
        }
        self.0 = Repr::Table(Box::new(Table { pairs, deadlines: None }));
    }
}

fn pair_texts(pair: &Pair) -> (Text<'_>, Text<'_>) {
    (Text::Bytes(&pair.field), Text::Bytes(&pair.value))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::testing::Rng;
    use super::*;

    fn check(hash: &Hash, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let owned = |(field, value): (Text<'_>, Text<'_>)| (field.to_vec(), value.to_vec());
        assert_eq!(hash.len(), model.len());
        assert_eq!(&hash.iter().map(owned).collect::<BTreeMap<_, _>>(), model);
        assert_eq!(
            &(0..hash.len()).filter_map(|place| hash.at(0).places().at(place)).map(owned).collect::<BTreeMap<_, _>>(),
            model
        );
        assert!(hash.at(0).places().at(hash.len()).is_none());
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
                assert_eq!(hash.at(0).get(&field).map(|text| text.to_vec()), model.get(&field).cloned());
                assert_eq!(hash.at(0).contains(&field), model.contains_key(&field));
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
                cursor = hash.at(0).scan(cursor, 7, &mut |field, _| {
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
