//! A hash at a moment, at which fields whose time is over are not there.

use super::deadlines::Deadlines;
use super::{Hash, Pair, Repr, pair_texts};
use crate::types::dense::DenseIter;
use crate::types::listpack::{Form, ListpackIter, Text};

/// A hash as it is at a moment.
#[derive(Clone, Copy)]
pub struct LiveHash<'a> {
    hash: &'a Hash,
    now: u64,
}

impl<'a> LiveHash<'a> {
    #[inline]
    pub(super) fn new(hash: &'a Hash, now: u64) -> Self {
        Self { hash, now }
    }

    /// The hash at any moment.
    pub fn hash(&self) -> &'a Hash {
        self.hash
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.hash.len() - self.over().count()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of those that are not there any more.
    fn over(&self) -> impl Iterator<Item = u32> + use<'a> {
        let now = self.now;
        self.hash.deadlines().into_iter().flat_map(move |deadlines| deadlines.over(now))
    }

    /// The id of `field` where the hash is a table, and its times.
    #[inline]
    fn pair(&self, field: &[u8]) -> Option<(&'a Pair, Option<u64>)> {
        let Repr::Table(table) = &self.hash.0 else { return None };
        let id = table.pairs.find(field)?;
        let at = table.deadlines.as_ref().and_then(|deadlines| deadlines.get(id));
        at.is_none_or(|at| at > self.now).then(|| (table.pairs.entry(id), at))
    }

    /// The value of `field`.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Text<'a>> {
        match &self.hash.0 {
            Repr::Packed(list) => {
                let position = list.find(&Form::new(field), 2)?;
                Some(list.get(list.next(position)).into())
            }
            Repr::Table(_) => self.pair(field).map(|(pair, _)| Text::Bytes(&pair.value)),
        }
    }

    /// Whether `field` exists.
    pub fn contains(&self, field: &[u8]) -> bool {
        match &self.hash.0 {
            Repr::Packed(list) => list.find(&Form::new(field), 2).is_some(),
            Repr::Table(_) => self.pair(field).is_some(),
        }
    }

    /// Whether `field` is in the hash, and its time is over.
    pub fn is_over(&self, field: &[u8]) -> bool {
        self.hash.expires() && self.hash.at(0).contains(field) && !self.contains(field)
    }

    /// If `field` exists, when it expires, in milliseconds of Unix time.
    pub fn deadline(&self, field: &[u8]) -> Option<Option<u64>> {
        match &self.hash.0 {
            Repr::Packed(_) => self.contains(field).then_some(None),
            Repr::Table(_) => self.pair(field).map(|(_, at)| at),
        }
    }

    /// All fields with their values.
    pub fn iter(&self) -> HashIter<'a> {
        match &self.hash.0 {
            Repr::Packed(list) => HashIter(IterRepr::Packed(list.iter())),
            Repr::Table(table) => HashIter(IterRepr::Table(TableIter {
                pairs: table.pairs.iter(),
                id: 0,
                deadlines: table.deadlines.as_deref(),
                now: self.now,
                left: self.len(),
            })),
        }
    }

    /// All fields with their values and when they expire.
    pub fn iter_timed(&self) -> impl Iterator<Item = (Text<'a>, Text<'a>, Option<u64>)> + use<'a> {
        let (deadlines, now) = (self.hash.deadlines(), self.now);
        let timed =
            self.hash.iter().enumerate().map(move |(id, (field, value))| {
                (field, value, deadlines.and_then(|deadlines| deadlines.get(id as u32)))
            });
        timed.filter(move |(_, _, at)| at.is_none_or(|at| at > now))
    }

    /// The fields by place.
    pub fn places(&self) -> Places<'a> {
        let mut over: Vec<u32> = self.over().collect();
        over.sort_unstable();
        Places { hash: self.hash, over }
    }

    /// Visits about `count` fields and returns the next cursor, 0 at the end; all at once in the compact form. A
    /// field present from the first to the last call is visited once.
    pub fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&[u8], &[u8])) -> u64 {
        match &self.hash.0 {
            Repr::Packed(_) => {
                self.iter().for_each(|(field, value)| visit(&field, &value));
                0
            }
            Repr::Table(table) => table.pairs.scan(cursor, count, &mut |id, pair| {
                if table.deadlines.as_ref().is_none_or(|deadlines| !deadlines.is_over(id, self.now)) {
                    visit(&pair.field, &pair.value);
                }
            }),
        }
    }
}

/// The fields of a hash by place: a random place is a random field.
pub struct Places<'a> {
    hash: &'a Hash,
    /// Ids of fields that are not there, in ascending order.
    over: Vec<u32>,
}

impl<'a> Places<'a> {
    /// Number of places.
    pub fn len(&self) -> usize {
        self.hash.len() - self.over.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The field and value at a place from 0 to `len() - 1`, each place holding another one.
    pub fn at(&self, place: usize) -> Option<(Text<'a>, Text<'a>)> {
        if place >= self.len() {
            return None;
        }
        match &self.hash.0 {
            Repr::Packed(list) => {
                let position = list.seek(place * 2);
                Some((list.get(position).into(), list.get(list.next(position)).into()))
            }
            Repr::Table(table) => {
                // As many that are not there stand in front of the field as make ids of places.
                let (mut low, mut high) = (0, self.over.len());
                while low < high {
                    let middle = usize::midpoint(low, high);
                    if self.over[middle] as usize - middle <= place {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                table.pairs.at(place + low).map(pair_texts)
            }
        }
    }
}

/// Walks the fields and values of a hash.
#[derive(Clone)]
pub struct HashIter<'a>(IterRepr<'a>);

#[derive(Clone)]
enum IterRepr<'a> {
    Packed(ListpackIter<'a>),
    Table(TableIter<'a>),
}

#[derive(Clone)]
struct TableIter<'a> {
    pairs: DenseIter<'a, Pair>,
    /// Of the next pair.
    id: u32,
    deadlines: Option<&'a Deadlines>,
    now: u64,
    left: usize,
}

impl<'a> Iterator for TableIter<'a> {
    type Item = (Text<'a>, Text<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let pair = self.pairs.next()?;
            let id = self.id;
            self.id += 1;
            if self.deadlines.is_none_or(|deadlines| !deadlines.is_over(id, self.now)) {
                self.left -= 1;
                return Some(pair_texts(pair));
            }
        }
    }
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (Text<'a>, Text<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            IterRepr::Packed(iter) => Some((iter.next()?, iter.next()?)),
            IterRepr::Table(iter) => iter.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            IterRepr::Packed(iter) => iter.len() / 2,
            IterRepr::Table(iter) => iter.left,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for HashIter<'_> {}
