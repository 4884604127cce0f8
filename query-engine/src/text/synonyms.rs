//! Words that stand for each other (FT.SYNUPDATE, FT.SYNDUMP).

use std::collections::BTreeMap;

use super::lower;

/// Precedes a group in the term dictionary, so that groups and words do not meet.
const GROUP_PREFIX: u8 = b'~';

/// The most groups of one word; each makes a document with the word longer by an entry.
pub const MAX_SYNONYM_GROUPS: usize = 1024;

/// Groups of words. A word may be in several.
#[derive(Clone, Debug, Default)]
pub struct Synonyms {
    /// By word: its groups, marked, in the order of their coming.
    groups: BTreeMap<Box<[u8]>, Vec<Box<[u8]>>>,
}

impl Synonyms {
    /// Adds words to a group, which is there from its first word on. Groups beyond [`MAX_SYNONYM_GROUPS`] of a word are left out.
    pub fn add<W: AsRef<[u8]>>(&mut self, group: &[u8], words: impl IntoIterator<Item = W>) {
        let marked: Box<[u8]> = [&[GROUP_PREFIX], group].concat().into();
        for word in words {
            let groups = self.groups.entry(lower(word.as_ref()).into()).or_default();
            if !groups.contains(&marked) && groups.len() < MAX_SYNONYM_GROUPS {
                groups.push(marked.clone());
            }
        }
    }

    /// All words with their groups.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], impl Iterator<Item = &[u8]>)> {
        self.groups.iter().map(|(word, groups)| (word.as_ref(), groups.iter().map(|group| &group[1..])))
    }

    /// The groups of a word in lower case, as they stand in the term dictionary.
    pub(crate) fn of(&self, word: &[u8]) -> &[Box<[u8]>] {
        self.groups.get(word).map_or(&[], Vec::as_slice)
    }
}
