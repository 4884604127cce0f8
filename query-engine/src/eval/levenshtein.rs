//! Words at most so many insertions, deletions and exchanges of characters away, in a sorted dictionary.
//!
//! Sorted words share their beginnings, so the rows of the distance table are kept for the beginning that a word shares with
//! the one before. A beginning whose row has no cell within the distance is left at once, with all words that have it.

/// The rows of the table for one pattern.
pub(crate) struct Table {
    pattern: Vec<char>,
    distance: usize,
    /// The characters of the word whose rows stand here.
    word: Vec<char>,
    /// Rows by length of the word's beginning; the first is that of the empty one.
    rows: Vec<Vec<usize>>,
}

impl Table {
    pub(crate) fn new(pattern: &[u8], distance: u8) -> Self {
        let pattern: Vec<char> = String::from_utf8_lossy(pattern).chars().collect();
        let first = (0..=pattern.len()).collect();
        Self { pattern, distance: usize::from(distance), word: Vec::new(), rows: vec![first] }
    }

    /// Whether a word is near enough. If not, the beginning that no word may have, if there is one.
    pub(crate) fn check(&mut self, word: &str) -> Result<bool, String> {
        let shared = self.word.iter().copied().zip(word.chars()).take_while(|(one, other)| one == other).count();
        self.word.truncate(shared);
        self.rows.truncate(shared + 1);
        for letter in word.chars().skip(shared) {
            let row = self.next_row(letter);
            let is_out = row.iter().all(|cell| *cell > self.distance);
            self.word.push(letter);
            self.rows.push(row);
            if is_out {
                return Err(self.word.iter().collect());
            }
        }
        Ok(self.rows.last().and_then(|row| row.last()).is_some_and(|cell| *cell <= self.distance))
    }

    /// The distance of the beginning of the last word, up to where it was hopeless, that is nearest to the pattern.
    pub(crate) fn nearest_beginning(&self) -> usize {
        self.rows.iter().filter_map(|row| row.last().copied()).min().unwrap_or(usize::MAX)
    }

    fn next_row(&self, letter: char) -> Vec<usize> {
        let above = &self.rows[self.rows.len() - 1];
        let mut row = Vec::with_capacity(above.len());
        row.push(above[0] + 1);
        for (at, expected) in self.pattern.iter().enumerate() {
            let exchanged = above[at] + usize::from(*expected != letter);
            row.push(exchanged.min(above[at + 1] + 1).min(row[at] + 1));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_exact_in_any_order_of_words() {
        let mut table = Table::new(b"hello", 1);
        let check = |table: &mut Table, word: &str, expected: bool| {
            assert_eq!(table.check(word).unwrap_or(false), expected, "{word}");
        };
        for (word, expected) in [
            ("hell", true),
            ("hello", true),
            ("hellow", true),
            ("helo", true),
            ("help", false),
            ("jello", true),
            ("world", false),
        ] {
            check(&mut table, word, expected);
        }
        for (word, expected) in [("hello", true), ("", false), ("ello", true), ("hallo", true), ("hällo", true)] {
            check(&mut table, word, expected);
        }
    }

    #[test]
    fn hopeless_beginnings_are_named() {
        assert_eq!(Table::new(b"hello", 1).check("worldly"), Err("wo".to_owned()));
    }
}
