//! A run of a stream's entries in one listpack.
//!
//! The layout is that of Redis' own nodes, so that a dump is a copy:
//!
//! ```text
//! live · deleted · n · name 1 … name n · 0                       the head: counts, and the first entry's field names
//! flags · ms · seq · value 1 … value n · count                   an entry with those names
//! flags · ms · seq · n · name 1 · value 1 … value n · count      any other
//! ```
//!
//! `ms` and `seq` are differences to the block's key; `count` is the number of elements before it, for walking backwards.

use smallvec::SmallVec;

use super::super::listpack::{Entry, Form, Listpack, Text};
use super::StreamId;

const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;

/// A field's name and value.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

#[derive(Clone)]
pub(super) struct Block(Listpack);

/// Where things are in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) live: u64,
    pub(super) deleted: u64,
    /// Number of field names.
    fields: usize,
    /// Position of the first of them.
    names: usize,
    /// Position of the first entry.
    pub(super) entries: usize,
}

/// An entry's place in its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) id: StreamId,
    pub(super) is_deleted: bool,
    /// Position of the flags.
    pub(super) at: usize,
    same_names: bool,
    fields: usize,
    /// Position of the first value, or of the first name if the names are its own.
    body: usize,
    /// Position behind the entry.
    pub(super) next: usize,
}

/// An entry of a stream.
#[derive(Clone, Debug)]
pub struct StreamEntry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Its fields.
    pub fields: Fields<'a>,
}

/// Walks the fields of an entry, names with values.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    list: &'a Listpack,
    /// Position of the next name, where names and values stand apart.
    name: Option<usize>,
    at: usize,
    left: usize,
}

impl Block {
    /// A block without entries, whose names are those of its first entry to be.
    pub(super) fn new<'a>(pairs: impl Iterator<Item = Pair<'a>> + Clone) -> Self {
        let mut forms: SmallVec<[Form<'_>; 16]> = SmallVec::new();
        forms.extend([Form::int(0), Form::int(0), Form::int(pairs.clone().count() as i64)]);
        forms.extend(pairs.map(|(name, _)| Form::new(name)));
        forms.push(Form::int(0));
        let mut list = Listpack::default();
        list.push_back(&forms);
        Self(list)
    }

    /// A block in the listpack of a dump, if it is laid out like one and holds an entry. All its entries may be deleted:
    /// `XTRIM key MINID id` leaves such a block where the last id of the block, `id` or a later one, is deleted.
    pub(super) fn from_packed(list: Listpack) -> Option<Self> {
        let block = Self(list);
        block.check().map(|()| block)
    }

    pub(super) fn packed(&self) -> &Listpack {
        &self.0
    }

    /// Fails unless every number stands where it should, and the counts are right.
    fn check(&self) -> Option<()> {
        let mut walk = Walk { list: &self.0, at: 0 };
        let (live, deleted, names) = (walk.int()?, walk.int()?, walk.int()?);
        walk.skip(names)?;
        (walk.int()? == 0).then_some(())?;
        let mut counts = [0, 0];
        while walk.at < self.end() {
            let flags = walk.int()?;
            walk.skip_ints(2)?;
            let (elements, before) =
                if flags & SAME_NAMES != 0 { (names, 3) } else { (walk.int()?.checked_mul(2)?, 4) };
            walk.skip(elements)?;
            (walk.int()? == elements + before).then_some(())?;
            counts[usize::from(flags & DELETED != 0)] += 1;
        }
        (counts == [live, deleted] && counts != [0, 0]).then_some(())
    }

    /// The size that Redis' own node of the same entries has.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    pub(super) fn memory(&self) -> usize {
        self.0.memory()
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink();
    }

    pub(super) fn end(&self) -> usize {
        self.0.end()
    }

    fn int(&self, position: usize) -> i64 {
        match self.0.get(position) {
            Entry::Int(value) => value,
            Entry::Bytes(_) => unreachable!("the layout has an integer here"),
        }
    }

    fn skip(&self, position: usize, count: usize) -> usize {
        (0..count).fold(position, |position, _| self.0.next(position))
    }

    pub(super) fn head(&self) -> Head {
        let deleted = self.0.next(0);
        let fields = self.0.next(deleted);
        let names = self.0.next(fields);
        let count = self.int(fields) as usize;
        Head {
            live: self.int(0) as u64,
            deleted: self.int(deleted) as u64,
            fields: count,
            names,
            // Behind the names stands a zero.
            entries: self.skip(names, count + 1),
        }
    }

    /// The entry at `at`; `key` is the block's.
    pub(super) fn item(&self, key: StreamId, head: &Head, at: usize) -> Item {
        let ms = self.0.next(at);
        let seq = self.0.next(ms);
        let rest = self.0.next(seq);
        let flags = self.int(at);
        let same_names = flags & SAME_NAMES != 0;
        let (fields, body) =
            if same_names { (head.fields, rest) } else { (self.int(rest) as usize, self.0.next(rest)) };
        let elements = if same_names { fields } else { fields * 2 };
        Item {
            id: StreamId {
                ms: key.ms.wrapping_add(self.int(ms) as u64),
                seq: key.seq.wrapping_add(self.int(seq) as u64),
            },
            is_deleted: flags & DELETED != 0,
            at,
            same_names,
            fields,
            body,
            next: self.skip(body, elements + 1),
        }
    }

    /// Position of the entry before `position`, which is not the first's.
    pub(super) fn before(&self, position: usize) -> usize {
        let count = self.0.previous(position);
        (0..self.int(count)).fold(count, |position, _| self.0.previous(position))
    }

    /// The entry's content.
    pub(super) fn entry(&self, head: &Head, item: &Item) -> StreamEntry<'_> {
        let name = item.same_names.then_some(head.names);
        StreamEntry { id: item.id, fields: Fields { list: &self.0, name, at: item.body, left: item.fields } }
    }

    /// Adds the entry `id`, which is larger than all others here.
    pub(super) fn push<'a>(&mut self, key: StreamId, id: StreamId, pairs: impl Iterator<Item = Pair<'a>> + Clone) {
        let head = self.head();
        let fields = pairs.clone().count();
        let same_names = self.has_names(&head, fields, pairs.clone());
        let mut forms: SmallVec<[Form<'_>; 16]> = SmallVec::new();
        forms.push(Form::int(if same_names { SAME_NAMES } else { 0 }));
        forms.push(Form::int(id.ms.wrapping_sub(key.ms) as i64));
        forms.push(Form::int(id.seq.wrapping_sub(key.seq) as i64));
        if same_names {
            forms.extend(pairs.map(|(_, value)| Form::new(value)));
        } else {
            forms.push(Form::int(fields as i64));
            forms.extend(pairs.flat_map(|(name, value)| [Form::new(name), Form::new(value)]));
        }
        forms.push(Form::int(forms.len() as i64));
        self.0.push_back(&forms);
        self.count(head.live + 1, head.deleted);
    }

    fn has_names<'a>(&self, head: &Head, fields: usize, mut pairs: impl Iterator<Item = Pair<'a>>) -> bool {
        let mut at = head.names;
        fields == head.fields
            && pairs.all(|(name, _)| {
                let same = self.0.is_at(at, &Form::new(name));
                at = self.0.next(at);
                same
            })
    }

    /// Sets the head's counts.
    fn count(&mut self, live: u64, deleted: u64) {
        self.0.replace(0, &Form::int(live as i64));
        self.0.replace(self.0.next(0), &Form::int(deleted as i64));
    }

    /// Marks the entry at `at` as deleted, which leaves `head.live - 1`.
    pub(super) fn delete(&mut self, head: &Head, at: usize) {
        self.mark(at);
        self.count(head.live - 1, head.deleted + 1);
    }

    fn mark(&mut self, at: usize) {
        // Flags take one byte before and after: no position changes.
        self.0.replace(at, &Form::int(self.int(at) | DELETED));
    }

    /// Marks entries smaller than `bound` as deleted, up to `most` of them from the first on; how many.
    pub(super) fn delete_front(&mut self, key: StreamId, most: u64, bound: StreamId) -> u64 {
        let head = self.head();
        let mut at = head.entries;
        let mut count = 0;
        while count < most && at < self.end() {
            let item = self.item(key, &head, at);
            if item.id >= bound {
                break;
            }
            if !item.is_deleted {
                self.mark(at);
                count += 1;
            }
            at = item.next;
        }
        self.count(head.live - count, head.deleted + count);
        count
    }

    /// The last entry's id, be it deleted or not.
    pub(super) fn last_id(&self, key: StreamId) -> StreamId {
        self.item(key, &self.head(), self.before(self.end())).id
    }
}

/// Walks elements of which nothing is known.
struct Walk<'a> {
    list: &'a Listpack,
    at: usize,
}

impl Walk<'_> {
    /// The next element, which must be a number.
    fn int(&mut self) -> Option<i64> {
        if self.at == self.list.end() {
            return None;
        }
        let Entry::Int(value) = self.list.get(self.at) else { return None };
        self.at = self.list.next(self.at);
        Some(value)
    }

    fn skip_ints(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.int().map(drop))
    }

    /// Passes `count` elements of any kind.
    fn skip(&mut self, count: i64) -> Option<()> {
        for _ in 0..u64::try_from(count).ok()? {
            if self.at == self.list.end() {
                return None;
            }
            self.at = self.list.next(self.at);
        }
        Some(())
    }
}

impl Fields<'_> {
    /// Number of fields that are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Text<'a>, Text<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (name, value) = match &mut self.name {
            Some(name) => {
                let at = *name;
                *name = self.list.next(at);
                (at, self.at)
            }
            None => (self.at, self.list.next(self.at)),
        };
        self.at = self.list.next(value);
        Some((self.list.get(name).into(), self.list.get(value).into()))
    }
}
