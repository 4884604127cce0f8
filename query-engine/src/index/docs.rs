//! The documents of an index: numbers, ids and what scores and sorting need.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
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
    pub(crate) score: f32,
    /// Words, counted by the weight of their fields.
    pub(crate) length: u32,
    /// The highest frequency of one word.
    pub(crate) max_frequency: u32,
    pub(crate) payload: Option<Box<[u8]>>,
    /// By field; empty if no field is sortable.
    pub(crate) sort_keys: Box<[SortKey]>,
}

/// All documents, by number and by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Docs {
    pages: BTreeMap<u64, Page>,
    numbers: HashMap<Arc<[u8]>, DocNumber>,
    last: DocNumber,
    total_length: u64,
}

#[derive(Clone, Debug)]
struct Page {
    docs: Vec<Option<Doc>>,
    live: u16,
}

impl Docs {
    /// Adds a document under the next number. The id must be free.
    pub(crate) fn insert(&mut self, doc: Doc) -> DocNumber {
        self.last += 1;
        let number = self.last;
        self.total_length += u64::from(doc.length);
        self.numbers.insert(Arc::clone(&doc.id), number);
        let page = self.pages.entry(number / PAGE).or_insert_with(|| Page { docs: Vec::new(), live: 0 });
        page.docs.resize_with((number % PAGE) as usize, || None);
        page.docs.push(Some(doc));
        page.live += 1;
        number
    }

    /// Removes the document of an id.
    pub(crate) fn remove(&mut self, id: &[u8]) -> Option<DocNumber> {
        let number = self.numbers.remove(id)?;
        let page = self.pages.get_mut(&(number / PAGE))?;
        let doc = page.docs[(number % PAGE) as usize].take()?;
        page.live -= 1;
        self.total_length -= u64::from(doc.length);
        if page.live == 0 {
            self.pages.remove(&(number / PAGE));
        }
        Some(number)
    }

    pub(crate) fn number(&self, id: &[u8]) -> Option<DocNumber> {
        self.numbers.get(id).copied()
    }

    pub(crate) fn get(&self, number: DocNumber) -> Option<&Doc> {
        self.pages.get(&(number / PAGE))?.docs.get((number % PAGE) as usize)?.as_ref()
    }

    /// The first live document from a number on.
    pub(crate) fn seek(&self, target: DocNumber) -> Option<DocNumber> {
        self.pages.range(target / PAGE..).find_map(|(page, content)| {
            let first = page * PAGE;
            let from = target.saturating_sub(first).min(PAGE) as usize;
            let docs = content.docs.get(from..)?;
            let at = docs.iter().position(Option::is_some)?;
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
        let docs = self.pages.values().flat_map(|page| &page.docs).flatten();
        docs.flat_map(|doc| &doc.sort_keys).map(|key| size_of::<SortKey>() + key.memory()).sum()
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
        let tables = self.id_table() + self.pages.len() * size_of::<(u64, Page)>() * 4 / 3;
        let docs = self.pages.values().flat_map(|page| &page.docs).flatten();
        let spare = self.pages.values().map(|page| page.docs.capacity() * size_of::<Option<Doc>>()).sum::<usize>();
        let owned = docs.map(|doc| {
            let keys = doc.sort_keys.iter().map(|key| size_of::<SortKey>() + key.memory()).sum::<usize>();
            doc.id.len() + 2 * size_of::<usize>() + keys + doc.payload.as_ref().map_or(0, |payload| payload.len())
        });
        tables + spare + owned.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(id: &str, length: u32) -> Doc {
        let id = id.as_bytes().into();
        Doc { id, score: 1.0, length, max_frequency: 1, payload: None, sort_keys: Box::default() }
    }

    #[test]
    fn numbers_are_never_used_twice() {
        let mut docs = Docs::default();
        let first: Vec<u64> = (0..1000).map(|at| docs.insert(doc(&format!("d{at}"), 2))).collect();
        assert_eq!((first[0], first[999], docs.average_length()), (1, 1000, 2.0));
        for at in 0..999 {
            assert_eq!(docs.remove(format!("d{at}").as_bytes()), Some(at + 1));
        }
        assert_eq!((docs.remove(b"d0"), docs.len(), docs.pages.len()), (None, 1, 1));
        assert_eq!((docs.seek(1), docs.seek(1001)), (Some(1000), None));
        assert_eq!((docs.insert(doc("d0", 4)), docs.seek(1001), docs.average_length()), (1001, Some(1001), 3.0));
        assert_eq!((docs.get(1).is_none(), docs.get(1001).is_some(), docs.number(b"d0")), (true, true, Some(1001)));
    }
}
