//! The prefixes below which clients want to be told of every change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

/// Two prefixes of one client below which the same key may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The one.
    pub prefix: Bytes,
    /// The other.
    pub other: Bytes,
    /// Whether the other one was there before.
    pub existing: bool,
}

/// Whether some key begins with both.
fn overlap(a: &[u8], b: &[u8]) -> bool {
    let common = a.len().min(b.len());
    a[..common] == b[..common]
}

impl Overlap {
    /// The first overlap of `given` with each other or with what there is.
    pub fn find(given: &[Bytes], existing: &BTreeSet<Bytes>) -> Option<Self> {
        given.iter().enumerate().find_map(|(at, prefix)| {
            let of = |other: &Bytes, existing| Self { prefix: prefix.clone(), other: other.clone(), existing };
            let old = existing.iter().find(|other| overlap(prefix, other)).map(|other| of(other, true));
            old.or_else(|| given[at + 1..].iter().find(|other| overlap(prefix, other)).map(|other| of(other, false)))
        })
    }
}

/// Prefixes by length, so that a key is looked up once for each length there is; and the clients that have each.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    by_len: BTreeMap<usize, HashMap<Bytes, BTreeSet<u64>>>,
}

/// A prefix, and the numbers of its clients.
pub(super) struct Group<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) clients: &'a BTreeSet<u64>,
}

impl Prefixes {
    /// Number of different prefixes.
    pub(super) fn len(&self) -> usize {
        self.by_len.values().map(HashMap::len).sum()
    }

    pub(crate) fn add(&mut self, prefix: Bytes, client: u64) {
        self.by_len.entry(prefix.len()).or_default().entry(prefix).or_default().insert(client);
    }

    pub(crate) fn remove(&mut self, prefix: &[u8], client: u64) {
        let Some(prefixes) = self.by_len.get_mut(&prefix.len()) else { return };
        if let Some(clients) = prefixes.get_mut(prefix) {
            clients.remove(&client);
            if clients.is_empty() {
                prefixes.remove(prefix);
            }
        }
        if prefixes.is_empty() {
            self.by_len.remove(&prefix.len());
        }
    }

    /// The prefixes that some of the keys begin with, each once and in order.
    pub(super) fn concerned<'a>(&'a self, keys: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = Group<'a>> {
        let mut found: BTreeMap<&[u8], &BTreeSet<u64>> = BTreeMap::new();
        for key in keys {
            for (&len, prefixes) in self.by_len.range(..=key.len()) {
                if let Some((prefix, clients)) = prefixes.get_key_value(&key[..len]) {
                    found.insert(prefix, clients);
                }
            }
        }
        found.into_iter().map(|(prefix, clients)| Group { prefix, clients })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_find_their_prefixes() {
        let mut prefixes = Prefixes::default();
        for (prefix, client) in [("", 1), ("a:", 2), ("a:b", 3), ("b:", 2), ("a:", 4)] {
            prefixes.add(Bytes::from(prefix), client);
        }
        let check = |prefixes: &Prefixes, keys: &[&str], expected: &[(&str, &[u64])]| {
            let found = prefixes.concerned(keys.iter().map(|key| key.as_bytes()));
            let found: Vec<(Vec<u8>, Vec<u64>)> =
                found.map(|group| (group.prefix.to_vec(), group.clients.iter().copied().collect())).collect();
            let expected: Vec<(Vec<u8>, Vec<u64>)> =
                expected.iter().map(|(prefix, clients)| (prefix.as_bytes().to_vec(), clients.to_vec())).collect();
            assert_eq!(found, expected, "{keys:?}");
        };
        check(&prefixes, &["a:bc", "a:c"], &[("", &[1]), ("a:", &[2, 4]), ("a:b", &[3])]);
        check(&prefixes, &["a"], &[("", &[1])]);
        prefixes.remove(b"", 1);
        prefixes.remove(b"a:", 2);
        prefixes.remove(b"a:", 9);
        check(&prefixes, &["a", "b:1", "a:"], &[("a:", &[4]), ("b:", &[2])]);
        assert_eq!(prefixes.len(), 3);
    }

    #[test]
    fn overlaps_are_found() {
        let check = |given: &[&str], existing: &[&str], expected: Option<(&str, &str, bool)>| {
            let given: Vec<Bytes> = given.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
            let existing = existing.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect();
            let found = Overlap::find(&given, &existing);
            let expected = expected.map(|(prefix, other, existing)| Overlap {
                prefix: Bytes::copy_from_slice(prefix.as_bytes()),
                other: Bytes::copy_from_slice(other.as_bytes()),
                existing,
            });
            assert_eq!(found, expected);
        };
        check(&["FOO", "BAR"], &["BAZ"], None);
        check(&["FOOBAR", "FOO"], &[], Some(("FOOBAR", "FOO", false)));
        check(&["FO"], &["FOO"], Some(("FO", "FOO", true)));
        check(&["X", "FOO", ""], &["FOO"], Some(("X", "", false)));
    }
}
