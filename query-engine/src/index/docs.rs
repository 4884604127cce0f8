//! The documents of an index: numbers, ids and what scores and sorting need.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::postings::DocNumber;

/// Numbers of a page. Pages of documents that are gone are dropped, so the table does not grow with updates.
const PAGE: u64 = 256;

/// The value of a sortable field.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKey {
    /// The document lacks the field.
    Missing,
    /// A NUMERIC field's.
    Number(f64),
    /// Any other's; case-folded unless the field is UNF.
    Text(Box<[u8]>),
}

impl SortKey {
    /// Rising order: numbers before strings, documents without a value last.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Text(_) => 1,
            Self::Missing => 2,
        }
    }

    fn memory(&self) -> usize {
        if let Self::Text(text) = self { text.len() } else { 0 }
    }
}

/// The data of one document in the index.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    pub(crate) id: Arc<[u8]>,
    pub(crate) payload: Option<Box<[u8]>>,
}

/// The part of a document that scorers read. A page of these stays in the processor's cache while its matches are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Brief {
    pub(crate) score: f32,
    /// Words, counted by the weight of their fields.
    pub(crate) length: u32,
    /// The highest frequency of one word.
    pub(crate) max_frequency: u32,
    /// False for a number whose document is gone.
    is_live: bool,
}

impl Brief {
    pub(crate) fn new(score: f32, length: u32, max_frequency: u32) -> Self {
        Self { score, length, max_frequency, is_live: true }
    }
}

/// A live document: its brief at once, and the rest when it is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Found<'d> {
    pub(crate) number: DocNumber,
    pub(crate) brief: Brief,
    docs: &'d Docs,
}

impl<'d> Found<'d> {
    pub(crate) fn doc(&self) -> &'d Doc {
        self.docs.get(self.number).expect("a number has a brief as long as it has a document")
    }

    /// The value of the sortable field with this place among those of the schema.
    pub(crate) fn sort_key(&self, slot: Option<usize>) -> &'d SortKey {
        self.docs.sort_key(self.number, slot)
    }
}

/// All documents, by number and by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs {
    /// Pages from [`Self::first_page`] on, with gaps where all documents of a page are gone; neither the first nor the last is a gap.
    pages: VecDeque<Option<Page>>,
    first_page: u64,
    numbers: HashMap<Arc<[u8]>, DocNumber>,
    last: DocNumber,
    total_length: u64,
}

#[derive(Clone, Debug)]
struct Page {
    briefs: Vec<Brief>,
    docs: Vec<Option<Doc>>,
    /// Values of sortable fields, [`Self::width`] of each document.
    keys: Vec<SortKey>,
    width: usize,
    live: u16,
}

impl Page {
    fn new(width: usize) -> Self {
        Self { briefs: Vec::new(), docs: Vec::new(), keys: Vec::new(), width, live: 0 }
    }

    /// Appends a document at a place, behind all others.
    fn push(&mut self, at: usize, doc: Doc, brief: Brief, keys: Vec<SortKey>) {
        if self.width < keys.len() {
            self.widen(keys.len());
        }
        self.docs.resize_with(at, || None);
        self.docs.push(Some(doc));
        self.briefs.resize(at, Brief::default());
        self.briefs.push(brief);
        self.keys.resize(at * self.width, SortKey::Missing);
        self.keys.extend(keys);
        self.live += 1;
    }

    /// Gives documents room for the values of sortable fields that were added to the schema, which they lack.
    fn widen(&mut self, width: usize) {
        let mut keys = std::mem::take(&mut self.keys).into_iter();
        for _ in 0..self.docs.len() {
            self.keys.extend(keys.by_ref().take(self.width));
            self.keys.resize(self.keys.len() + width - self.width, SortKey::Missing);
        }
        self.width = width;
    }

    fn key_memory(&self) -> usize {
        self.keys.capacity() * size_of::<SortKey>() + self.keys.iter().map(SortKey::memory).sum::<usize>()
    }

    /// Takes a document away.
    fn take(&mut self, at: usize) -> Option<Brief> {
        self.docs[at].take()?;
        self.keys[at * self.width..(at + 1) * self.width].fill(SortKey::Missing);
        self.live -= 1;
        Some(std::mem::take(&mut self.briefs[at]))
    }
}

impl Docs {
    /// Adds a document with the values of all sortable fields under the next number. The id must be free.
    pub(crate) fn insert(&mut self, doc: Doc, brief: Brief, keys: Vec<SortKey>) -> DocNumber {
        self.last += 1;
        let number = self.last;
        self.total_length += u64::from(brief.length);
        self.numbers.insert(Arc::clone(&doc.id), number);
        if self.pages.is_empty() {
            self.first_page = number / PAGE;
        }
        let at = (number / PAGE - self.first_page) as usize;
        if self.pages.len() <= at {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| Page::new(keys.len()));
        page.push((number % PAGE) as usize, doc, brief, keys);
        number
    }

    /// Removes the document of an id.
    pub(crate) fn remove(&mut self, id: &[u8]) -> Option<DocNumber> {
        let number = self.numbers.remove(id)?;
        let slot = self.pages.get_mut((number / PAGE - self.first_page) as usize)?;
        let page = slot.as_mut()?;
        let brief = page.take((number % PAGE) as usize)?;
        self.total_length -= u64::from(brief.length);
        if page.live == 0 {
            *slot = None;
            while self.pages.back().is_some_and(Option::is_none) {
                self.pages.pop_back();
            }
            while self.pages.front().is_some_and(Option::is_none) {
                self.pages.pop_front();
                self.first_page += 1;
            }
        }
        Some(number)
    }

    pub(crate) fn number(&self, id: &[u8]) -> Option<DocNumber> {
        self.numbers.get(id).copied()
    }

    pub(crate) fn get(&self, number: DocNumber) -> Option<&Doc> {
        self.page(number)?.docs.get((number % PAGE) as usize)?.as_ref()
    }

    /// The document of a number; `None` if it is gone.
    pub(crate) fn find(&self, number: DocNumber) -> Option<Found<'_>> {
        let brief = *self.page(number)?.briefs.get((number % PAGE) as usize)?;
        brief.is_live.then_some(Found { number, brief, docs: self })
    }

    /// A value of a document, by the place of its field among the sortable ones.
    pub(crate) fn sort_key(&self, number: DocNumber, slot: Option<usize>) -> &SortKey {
        let key = || {
            let page = self.page(number)?;
            page.keys.get((number % PAGE) as usize * page.width + slot.filter(|slot| *slot < page.width)?)
        };
        key().unwrap_or(&SortKey::Missing)
    }

    fn page(&self, number: DocNumber) -> Option<&Page> {
        let at = (number / PAGE).checked_sub(self.first_page)?;
        self.pages.get(usize::try_from(at).ok()?)?.as_ref()
    }

    /// The first live document from a number on.
    pub(crate) fn seek(&self, target: DocNumber) -> Option<DocNumber> {
        let skipped = (target / PAGE).saturating_sub(self.first_page) as usize;
        let pages = self.pages.range(skipped.min(self.pages.len())..);
        (self.first_page + skipped as u64..).zip(pages).find_map(|(page, content)| {
            let first = page * PAGE;
            let from = target.saturating_sub(first).min(PAGE) as usize;
            let briefs = content.as_ref()?.briefs.get(from..)?;
            let at = briefs.iter().position(|brief| brief.is_live)?;
            Some(first + (from + at) as u64)
        })
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        self.numbers.keys().map(AsRef::as_ref)
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of the last document that was put.
    pub(crate) fn last(&self) -> DocNumber {
        self.last
    }

    /// Bytes of sort keys.
    pub(crate) fn sort_keys(&self) -> usize {
        self.pages.iter().flatten().map(Page::key_memory).sum()
    }

    /// Words in a document, on average.
    pub(crate) fn average_length(&self) -> f64 {
        if self.len() == 0 { 0.0 } else { self.total_length as f64 / self.len() as f64 }
    }

    /// Bytes of the table of ids, as far as it is in use.
    pub(crate) fn id_table(&self) -> usize {
        self.numbers.len() * (size_of::<(Arc<[u8]>, DocNumber)>() * 8 / 7 + 1)
    }

    /// Bytes in memory, without `self`. The memory of a hash table and of a shared id is an estimate.
    pub(crate) fn memory(&self) -> usize {
        let tables = self.id_table() + self.pages.capacity() * size_of::<Option<Page>>();
        let pages = || self.pages.iter().flatten();
        let docs = pages().flat_map(|page| &page.docs).flatten();
        let page = |page: &Page| {
            let briefs = page.briefs.capacity() * size_of::<Brief>();
            page.docs.capacity() * size_of::<Option<Doc>>() + briefs + page.key_memory()
        };
        let spare = pages().map(page).sum::<usize>();
        let owned = docs
            .map(|doc| doc.id.len() + 2 * size_of::<usize>() + doc.payload.as_ref().map_or(0, |payload| payload.len()));
        tables + spare + owned.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(docs: &mut Docs, id: &str, length: u32) -> DocNumber {
        let doc = Doc { id: id.as_bytes().into(), payload: None };
        docs.insert(doc, Brief::new(1.0, length, 1), Vec::new())
    }

    #[test]
    fn numbers_are_never_used_twice() {
        let mut docs = Docs::default();
        let first: Vec<u64> = (0..1000).map(|at| insert(&mut docs, &format!("d{at}"), 2)).collect();
        assert_eq!((first[0], first[999], docs.average_length()), (1, 1000, 2.0));
        for at in 0..999 {
            assert_eq!(docs.remove(format!("d{at}").as_bytes()), Some(at + 1));
        }
        assert_eq!((docs.remove(b"d0"), docs.len(), docs.pages.len()), (None, 1, 1));
        assert_eq!((docs.seek(1), docs.seek(1001)), (Some(1000), None));
        assert_eq!((insert(&mut docs, "d0", 4), docs.seek(1001), docs.average_length()), (1001, Some(1001), 3.0));
        assert_eq!((docs.get(1).is_none(), docs.get(1001).is_some(), docs.number(b"d0")), (true, true, Some(1001)));
        assert_eq!((docs.find(999).is_none(), docs.find(1001).unwrap().brief), (true, Brief::new(1.0, 4, 1)));
    }

    #[test]
    fn documents_lack_the_values_of_fields_that_came_later() {
        let mut docs = Docs::default();
        let put = |docs: &mut Docs, id: &str, values: &[f64]| {
            let keys = values.iter().map(|value| SortKey::Number(*value)).collect();
            docs.insert(Doc { id: id.as_bytes().into(), payload: None }, Brief::new(1.0, 1, 1), keys)
        };
        put(&mut docs, "none", &[]);
        put(&mut docs, "one", &[1.0]);
        put(&mut docs, "two", &[2.0, 3.0]);
        docs.remove(b"one");
        put(&mut docs, "four", &[4.0, 5.0]);
        let key = |number, slot| match docs.sort_key(number, Some(slot)) {
            SortKey::Number(number) => Some(*number),
            _ => None,
        };
        let keys: Vec<_> = (0..=5).map(|number| [key(number, 0), key(number, 1), key(number, 2)]).collect();
        let none = [None; 3];
        let expected = [none, none, none, [Some(2.0), Some(3.0), None], [Some(4.0), Some(5.0), None], none];
        assert_eq!(keys, expected);
        assert_eq!(docs.sort_key(3, None), &SortKey::Missing);
    }

    #[test]
    fn pages_come_and_go_at_both_ends_and_between() {
        let mut docs = Docs::default();
        let name = |number: u64| format!("d{number}");
        (1..=2000).for_each(|number| _ = insert(&mut docs, &name(number), 1));
        let remove = |docs: &mut Docs, numbers: std::ops::RangeInclusive<u64>| {
            numbers.for_each(|number| assert_eq!(docs.remove(name(number).as_bytes()), Some(number)));
        };
        remove(&mut docs, 600..=1400);
        assert_eq!((docs.seek(600), docs.seek(599), docs.get(1000).is_none()), (Some(1401), Some(599), true));
        remove(&mut docs, 1401..=2000);
        assert_eq!((docs.seek(600), docs.find(2000).is_none(), docs.pages.len()), (None, true, 3));
        assert_eq!((insert(&mut docs, "new", 1), docs.seek(600)), (2001, Some(2001)));
        remove(&mut docs, 1..=599);
        assert_eq!((docs.seek(0), docs.first_page, docs.pages.len()), (Some(2001), 2001 / PAGE, 1));
        assert_eq!((docs.remove(b"new"), docs.len(), docs.pages.len()), (Some(2001), 0, 0));
        assert_eq!(
            (insert(&mut docs, "last", 1), docs.find(2002).is_some(), docs.find(1).is_none()),
            (2002, true, true)
        );
    }
}
