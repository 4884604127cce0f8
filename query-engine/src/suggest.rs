//! Suggestions for what somebody begins to type (FT.SUGADD, SUGGET, SUGDEL, SUGLEN).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::eval::Table;

/// Changes that [`Suggestions::get`] forgives.
const FUZZY_DISTANCE: u8 = 1;

/// The score of an entry that equals the text: it always comes first.
const EXACT: f64 = 2_147_483_648.0;

/// A text in lower case, and as it was given.
type Key = (String, String);

/// Entries with scores, found by how they begin.
#[derive(Clone, Debug, Default)]
pub struct Suggestions {
    /// By the text in lower case, then as it was given.
    entries: BTreeMap<Key, Entry>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    score: f64,
    payload: Option<Arc<[u8]>>,
}

/// An entry that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion<'s> {
    /// As it was added.
    pub text: &'s str,
    /// Its score, less for what the text lacks and for changes.
    pub score: f64,
    /// Its payload.
    pub payload: Option<&'s [u8]>,
}

impl Suggestions {
    /// Adds an entry or changes its score, which `increment` adds to the one that is there. Without a payload the old one
    /// stays. Empty texts are left out.
    pub fn add(&mut self, text: &str, score: f64, increment: bool, payload: Option<&[u8]>) {
        if text.is_empty() {
            return;
        }
        let entry = self.entries.entry(key(text)).or_default();
        entry.score = if increment { entry.score + score } else { score };
        if let Some(payload) = payload {
            entry.payload = Some(payload.into());
        }
    }

    /// Removes an entry; upper and lower case count. `false` if it is not there.
    pub fn remove(&mut self, text: &str) -> bool {
        self.entries.remove(&key(text)).is_some()
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries in order, for what saves them: text, score, payload.
    pub fn iter(&self) -> impl Iterator<Item = Suggestion<'_>> {
        self.entries.iter().map(|((_, text), entry)| suggestion(text, entry, entry.score))
    }

    /// The best entries that begin with a text, at most `most`; case does not count. `fuzzy` forgives one change. Entries
    /// without a positive score are never found.
    #[must_use]
    pub fn get(&self, beginning: &str, fuzzy: bool, most: usize) -> Vec<Suggestion<'_>> {
        let lower = beginning.to_lowercase();
        let length = lower.chars().count();
        let mut found = Vec::new();
        let mut add = |text: &'_ Key, entry: &'_ Entry, distance: usize| {
            let lacking = text.1.chars().count().abs_diff(length) as f64;
            let near = if text.1 == lower { EXACT } else { entry.score / (1.0 + lacking).sqrt() };
            found.push((near * (-2.0 * distance as f64).exp(), text.clone()));
        };
        if fuzzy {
            self.each_near(&lower, &mut add);
        } else {
            let from = (Bound::Included((lower.clone(), String::new())), Bound::Unbounded);
            let under = self.entries.range::<Key, _>(from).take_while(|((text, _), _)| text.starts_with(&lower));
            under.filter(|(_, entry)| entry.score > 0.0).for_each(|(text, entry)| add(text, entry, 0));
        }
        found.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        found.truncate(most);
        let found = found.into_iter().filter_map(|(score, key)| {
            let ((_, text), entry) = self.entries.get_key_value(&key)?;
            Some(suggestion(text, entry, score))
        });
        found.collect()
    }

    /// Calls `each` for entries that have a beginning near the text. Skips what has a hopeless beginning.
    fn each_near(&self, lower: &str, each: &mut dyn FnMut(&Key, &Entry, usize)) {
        let mut table = Table::new(lower.as_bytes(), FUZZY_DISTANCE);
        let mut from: Bound<Key> = Bound::Unbounded;
        while let Some((text, entry)) = self.entries.range::<Key, _>((from.as_ref(), Bound::Unbounded)).next() {
            let checked = table.check(&text.0);
            let distance = table.nearest_beginning();
            if distance <= usize::from(FUZZY_DISTANCE) {
                if entry.score > 0.0 {
                    each(text, entry, distance);
                }
            } else if let Some(above) = checked.err().and_then(|hopeless| after(&hopeless)) {
                from = Bound::Included((above, String::new()));
                continue;
            }
            from = Bound::Excluded(text.clone());
        }
    }
}

fn key(text: &str) -> Key {
    (text.to_lowercase(), text.to_owned())
}

fn suggestion<'s>(text: &'s str, entry: &'s Entry, score: f64) -> Suggestion<'s> {
    Suggestion { text, score, payload: entry.payload.as_deref() }
}

/// The lowest text above all that begin so, if its last character has a next one.
fn after(beginning: &str) -> Option<String> {
    let mut letters: Vec<char> = beginning.chars().collect();
    let last = letters.last_mut()?;
    *last = char::from_u32(u32::from(*last) + 1)?;
    Some(letters.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Suggestions {
        let mut suggestions = Suggestions::default();
        for (text, score) in [
            ("hello world", 1.0),
            ("hello", 2.0),
            ("help", 0.5),
            ("hell", 1.0),
            ("jello", 1.0),
            ("Hello There", 3.0),
            ("h", 1.0),
            ("held", -1.0),
        ] {
            suggestions.add(text, score, false, None);
        }
        suggestions
    }

    /// Replies of RediSearch 2.10, with scores shortened to three digits.
    #[test]
    fn the_best_entries_come_first() {
        let suggestions = words();
        let check = |text: &str, fuzzy: bool, most: usize, expected: &[(&str, f64)]| {
            let found = suggestions.get(text, fuzzy, most);
            let shown: Vec<(&str, f64)> =
                found.iter().map(|found| (found.text, (found.score * 1e3).round() / 1e3)).collect();
            assert_eq!(shown, expected, "{text}");
        };
        let hel = [("hello", 1.155), ("Hello There", 1.0), ("hell", 0.707), ("help", 0.354), ("hello world", 0.333)];
        check("hel", false, 5, &hel);
        check("HEL", false, 2, &hel[..2]);
        check("hello", false, 5, &[("hello", EXACT), ("Hello There", 1.134), ("hello world", 0.378)]);
        check(
            "jel",
            true,
            5,
            &[("jello", 0.577), ("hello", 0.156), ("Hello There", 0.135), ("hell", 0.096), ("help", 0.048)],
        );
        check("", false, 3, &[("Hello There", 0.866), ("hello", 0.816), ("h", 0.707)]);
        check("ehl", true, 5, &[]);
        check("zzz", false, 5, &[]);
    }

    #[test]
    fn fuzzy_finds_what_a_scan_finds() {
        let mut suggestions = Suggestions::default();
        let letters = ["a", "b", "c", "é"];
        for number in 0..4_usize.pow(5) {
            let text: String = (0..5).map(|at| letters[number / 4_usize.pow(at) % 4]).collect();
            suggestions.add(&text, 1.0, false, None);
        }
        for text in ["abc", "ccé", "", "a", "zab", "aéé", "bbbbbbb"] {
            let found = suggestions.get(text, true, usize::MAX).len();
            let near = |entry: &str| {
                (0..=entry.chars().count()).any(|length| {
                    let beginning: String = entry.chars().take(length).collect();
                    Table::new(text.as_bytes(), 1).check(&beginning) == Ok(true)
                })
            };
            assert_eq!(found, suggestions.iter().filter(|entry| near(entry.text)).count(), "{text}");
        }
    }

    #[test]
    fn entries_change_and_go() {
        let mut suggestions = words();
        suggestions.add("", 1.0, false, None);
        suggestions.add("hello", 1.0, true, Some(b"x"));
        suggestions.add("help", 4.0, false, None);
        suggestions.add("hello", 0.0, true, None);
        let hello = suggestions.iter().find(|entry| entry.text == "hello").expect("it is there");
        assert_eq!((hello.score, hello.payload), (3.0, Some(&b"x"[..])));
        assert_eq!(suggestions.get("hel", false, 1)[0].text, "help");
        assert!(!suggestions.remove("HELLO"));
        assert!(suggestions.remove("hello") && !suggestions.remove("hello"));
        assert_eq!((suggestions.len(), suggestions.is_empty()), (7, false));
    }
}
