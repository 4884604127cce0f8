//! The data of one match that scores and phrases need.

use crate::index::postings::Positions;
use crate::text::FoundWord;

/// A word of the query, as scorers see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    pub(crate) text: Vec<u8>,
    /// A tag is no word that is marked in texts.
    pub(crate) is_tag: bool,
    /// Inverse document frequency of TFIDF and BM25.
    pub(crate) idf: f64,
    /// That of BM25STD.
    pub(crate) bm25_idf: f64,
}

/// How a document matches a node of the query.
#[derive(Clone, Debug)]
pub(crate) struct Record<'r> {
    pub(crate) weight: f64,
    pub(crate) frequency: u32,
    pub(crate) data: Data<'r>,
}

#[derive(Clone, Debug)]
pub(crate) enum Data<'r> {
    Word {
        word: &'r Word,
        positions: &'r [u8],
    },
    Intersection(Vec<Record<'r>>),
    Union(Vec<Record<'r>>),
    /// A number or a place.
    Number,
    /// Matches without a cause of its own: `*`, negations, ids.
    Virtual,
}

impl<'r> Record<'r> {
    pub(crate) fn all(weight: f64, children: Vec<Self>) -> Self {
        Self { weight, frequency: sum(&children), data: Data::Intersection(children) }
    }

    pub(crate) fn any(weight: f64, children: Vec<Self>) -> Self {
        Self { weight, frequency: sum(&children), data: Data::Union(children) }
    }

    /// The words of texts that it was found by, each once, in the query's order.
    pub(crate) fn words(&self) -> Vec<FoundWord> {
        let (mut words, mut open) = (Vec::<FoundWord>::new(), vec![self]);
        while let Some(record) = open.pop() {
            match &record.data {
                Data::Word { word, .. } => {
                    if !word.is_tag && words.iter().all(|known| *known.text != *word.text) {
                        words.push(FoundWord { text: word.text.as_slice().into(), rarity: word.idf });
                    }
                }
                Data::Intersection(children) | Data::Union(children) => open.extend(children.iter().rev()),
                Data::Number | Data::Virtual => {}
            }
        }
        words
    }

    /// Whether it has positions, as RediSearch sees it.
    pub(crate) fn has_positions(&self) -> bool {
        match &self.data {
            Data::Word { positions, .. } => !positions.is_empty(),
            Data::Intersection(children) | Data::Union(children) => {
                !children.iter().all(|child| matches!(child.data, Data::Virtual))
                    && !children.iter().all(|child| matches!(child.data, Data::Number))
            }
            Data::Number | Data::Virtual => false,
        }
    }

    /// All positions, rising.
    pub(crate) fn positions(&self) -> Vec<u32> {
        match &self.data {
            Data::Word { positions, .. } => Positions::new(positions).collect(),
            Data::Intersection(children) | Data::Union(children) => {
                let mut all: Vec<u32> = children.iter().flat_map(Record::positions).collect();
                all.sort_unstable();
                all
            }
            Data::Number | Data::Virtual => Vec::new(),
        }
    }
}

fn sum(children: &[Record<'_>]) -> u32 {
    children.iter().fold(0, |sum, child| sum.saturating_add(child.frequency))
}
