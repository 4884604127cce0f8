//! Feeders: rows of CSV files, one for each iteration.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::Rng;
use rand::rngs::SmallRng;
use serde::Deserialize;

/// The rows of a file, and which one is next.
#[derive(Debug)]
pub(crate) struct Feeder {
    columns: Vec<String>,
    /// All fields, row by row.
    fields: Vec<String>,
    order: Order,
    end: End,
    /// How many rows were given, over all threads.
    given: AtomicUsize,
}

/// In which order rows are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// As they stand in the file, each to one iteration of the run.
    #[default]
    Sequential,
    /// A random row for each iteration.
    Random,
}

/// The row that follows the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// The first one.
    #[default]
    Wrap,
    /// Nothing: the load ends.
    Stop,
}

impl Feeder {
    /// Reads a file: a line of column names, then at least one row.
    ///
    /// # Errors
    /// When it is not that; the text begins with the line's number.
    pub(super) fn parse(text: &str, order: Order, end: End) -> Result<Self, String> {
        let mut records = Records { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
        let columns = records.next().transpose()?.map(|(_, columns)| columns).unwrap_or_default();
        if columns.iter().all(String::is_empty) {
            return Err("line 1 is empty, expected the names of columns".to_owned());
        }
        if let Some(twice) = columns.iter().enumerate().find(|(place, name)| columns[..*place].contains(name)) {
            return Err(format!("line 1 has the column `{}` twice", twice.1));
        }
        let mut fields = Vec::new();
        for record in records {
            let (line, record) = record?;
            if record.len() != columns.len() {
                return Err(format!("line {line} has {} fields, expected {}", record.len(), columns.len()));
            }
            fields.extend(record);
        }
        if fields.is_empty() {
            return Err("there is no row behind the names of columns, expected at least one".to_owned());
        }
        Ok(Self { columns, fields, order, end, given: AtomicUsize::new(0) })
    }

    /// The names of its columns.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    fn rows(&self) -> usize {
        self.fields.len() / self.columns.len()
    }

    /// The next row; nothing behind the last one of a feeder that ends.
    pub(super) fn next(&self, rng: &mut SmallRng) -> Option<usize> {
        let rows = self.rows();
        if self.order == Order::Random {
            return Some(rng.random_range(0..rows));
        }
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        (self.end == End::Wrap || number < rows).then_some(number % rows)
    }

    pub(super) fn field(&self, row: usize, column: usize) -> &str {
        &self.fields[row * self.columns.len() + column]
    }

    /// Begins at the first row again.
    pub(super) fn rewind(&self) {
        self.given.store(0, Ordering::Relaxed);
    }
}

/// The records of a CSV text (RFC 4180), each with the number of its first line.
struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<(usize, Vec<String>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let first = self.line;
        let mut record = Vec::new();
        loop {
            let field = match self.field() {
                Ok(field) => field,
                Err(error) => {
                    self.rest = "";
                    return Some(Err(error));
                }
            };
            record.push(field);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            let rest = self.rest.strip_prefix('\r').unwrap_or(self.rest);
            self.rest = rest.strip_prefix('\n').unwrap_or(rest);
            self.line += 1;
            return Some(Ok((first, record)));
        }
    }
}

impl Records<'_> {
    /// Takes a field, up to the comma or the line end behind it.
    fn field(&mut self) -> Result<String, String> {
        let line = self.line;
        let Some(mut quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let field = self.rest[..end].trim_end_matches('\r');
            self.rest = &self.rest[field.len()..];
            return Ok(field.to_owned());
        };
        let mut field = String::new();
        loop {
            let (text, rest) =
                quoted.split_once('"').ok_or_else(|| format!("line {line} has a quote without an end"))?;
            field.push_str(text);
            self.line += text.matches('\n').count();
            match rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    quoted = rest;
                }
                None if rest.is_empty() || rest.starts_with([',', '\r', '\n']) => {
                    self.rest = rest;
                    return Ok(field);
                }
                None => return Err(format!("line {line} has text behind a quoted field, expected a comma")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn files_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Result<&[&str], &str>) {
            let found = Feeder::parse(text, Order::Sequential, End::Wrap).map(|feeder| feeder.fields);
            assert_eq!(
                found,
                expected.map(|fields| fields.iter().map(ToString::to_string).collect()).map_err(str::to_owned)
            );
        }
        check("a,b\n1,2\n3,\n", Ok(&["1", "2", "3", ""]));
        check("\u{feff}a,b\r\n1,2", Ok(&["1", "2"]));
        check("a,b\n\"x,\"\"y\"\"\nz\",2\n", Ok(&["x,\"y\"\nz", "2"]));
        check("", Err("line 1 is empty, expected the names of columns"));
        check("a,a\n1,2\n", Err("line 1 has the column `a` twice"));
        check("a,b\n", Err("there is no row behind the names of columns, expected at least one"));
        check("a,b\n\"1\n\",2\n3\n", Err("line 4 has 1 fields, expected 2"));
        check("a\n\"1\n", Err("line 2 has a quote without an end"));
        check("a\n\"1\"2\n", Err("line 2 has text behind a quoted field, expected a comma"));
    }

    #[test]
    fn rows_come_in_their_order() {
        #[track_caller]
        fn check(order: Order, end: End, expected: &[Option<usize>]) {
            let feeder = Feeder::parse("a\n1\n2\n", order, end).unwrap();
            let mut rng = SmallRng::seed_from_u64(1);
            let found: Vec<_> = expected.iter().map(|_| feeder.next(&mut rng)).collect();
            assert_eq!(found, expected, "{order:?} {end:?}");
        }
        check(Order::Sequential, End::Wrap, &[Some(0), Some(1), Some(0)]);
        check(Order::Sequential, End::Stop, &[Some(0), Some(1), None, None]);
        let feeder = Feeder::parse("a\n1\n2\n", Order::Random, End::Wrap).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        let first = (0..1000).filter(|_| feeder.next(&mut rng) == Some(0)).count();
        assert!((400..600).contains(&first), "{first}");
    }
}
