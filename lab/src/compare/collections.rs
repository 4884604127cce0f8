//! Resident bytes per element of collections.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use loadgen::compare::Machine;
use serde::{Deserialize, Serialize};

use super::memory::SETTLE;
use super::options::Options;
use crate::record;

/// In the folder of records.
const RECORD: &str = "collections.jsonl";
/// Elements of each kind that are loaded, so that a server's own memory does not count, nor what its buffers grow by meanwhile.
const ELEMENTS: usize = 8_000_000;
/// Elements that one command adds.
const BATCH: usize = 50;

/// A kind of collection.
struct Shape {
    name: &'static str,
    /// Elements of each collection.
    size: usize,
    /// The command that adds elements.
    command: &'static str,
    /// Words that an element consists of.
    words: fn(usize) -> Vec<String>,
}

/// The loaded collections.
const SHAPES: &[Shape] = &[
    Shape {
        name: "hash, 50 fields",
        size: 50,
        command: "HSET",
        words: |at| vec![format!("field:{at:04}"), format!("value:{at:010}")],
    },
    Shape { name: "set, 1,000 integers", size: 1_000, command: "SADD", words: |at| vec![(at * 7).to_string()] },
    Shape { name: "set, 1,000 strings", size: 1_000, command: "SADD", words: |at| vec![format!("member:{at:09}")] },
    Shape {
        name: "sorted set, 10,000",
        size: 10_000,
        command: "ZADD",
        words: |at| vec![format!("{}.5", at * 3), format!("member:{at:09}")],
    },
    Shape { name: "list, 100,000", size: 100_000, command: "RPUSH", words: |at| vec![format!("element:{at:08}")] },
    Shape {
        name: "stream, 100,000 entries",
        size: 100_000,
        command: "XADD",
        words: |at| vec![format!("{}-0", at + 1), "field".to_owned(), format!("value:{at:010}")],
    },
];

/// The figures of a subject, as the record keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    shape: String,
    subject: String,
    bytes_per_element: f64,
    /// Of the workspace.
    commit: Option<String>,
    machine: Option<Machine>,
}

/// Loads each kind into a fresh server of every subject and divides the growth of its resident memory by the number of elements.
/// With `--record` the figures take the place of older ones of the same subjects.
pub(super) fn run(options: &Options, folder: &Path) -> Result<()> {
    let (mut rows, commit) = (Vec::new(), loadgen::compare::commit(xtask::workspace::root()));
    for shape in SHAPES {
        for subject in &options.subjects {
            let server = subject.start(options.pin.as_ref(), folder)?;
            let before = server.resident_bytes()?;
            load(server.port(), shape).with_context(|| format!("{}: {}", subject.name, shape.name))?;
            thread::sleep(SETTLE);
            let grown = server.resident_bytes()?.saturating_sub(before);
            let bytes_per_element = grown as f64 / ELEMENTS as f64;
            println!("{}: {}: {bytes_per_element:.1} bytes per element", shape.name, subject.name);
            rows.push(Row {
                shape: shape.name.to_owned(),
                subject: subject.name.clone(),
                bytes_per_element,
                commit: commit.clone(),
                machine: Some(Machine::this()),
            });
        }
    }
    print!("{}", in_columns(&rows));
    if options.record {
        record::write(RECORD, &replaced(record::read(RECORD)?, rows))?;
    }
    Ok(())
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(in_columns(&record::read(RECORD)?))
}

/// Rows that were kept, with those of the same shape and subject measured anew, and further ones behind them.
fn replaced(mut kept: Vec<Row>, fresh: Vec<Row>) -> Vec<Row> {
    for row in fresh {
        match kept.iter_mut().find(|old| (&old.shape, &old.subject) == (&row.shape, &row.subject)) {
            Some(old) => *old = row,
            None => kept.push(row),
        }
    }
    kept
}

/// A line for each shape, a column for each subject, and the first one's by the least of the others.
fn in_columns(rows: &[Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.subject.as_str()) {
            names.push(&row.subject);
        }
    }
    let first = names.first().copied().unwrap_or_default();
    let mut table = format!("| bytes per element | {} | {first} / best |\n", names.join(" | "));
    table += &format!("|---|{}--:|\n", "--:|".repeat(names.len()));
    for shape in SHAPES {
        let of = |name: &&str| {
            let row = rows.iter().find(|row| row.shape == shape.name && row.subject == **name)?;
            Some(row.bytes_per_element)
        };
        let values: Vec<Option<f64>> = names.iter().map(of).collect();
        let best = values.iter().skip(1).flatten().copied().reduce(f64::min);
        let ratio = values.first().copied().flatten().zip(best).map(|(own, best)| own / best);
        let text = |value: &Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
        let cells: Vec<String> = values.iter().map(text).collect();
        let ratio = ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(table, "| {} | {} | {ratio} |", shape.name, cells.join(" | "))
            .expect("writing to memory does not fail");
    }
    table
}

/// Makes as many collections of a kind as it takes, one after the other.
fn load(port: u16, shape: &Shape) -> Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port))?);
    // A stream's entries are added one by one.
    let batch = if shape.command == "XADD" { 1 } else { BATCH };
    for number in 0..ELEMENTS / shape.size {
        let key = format!("collection:{number:05}");
        let (mut request, mut sent) = (Vec::new(), 0);
        for first in (0..shape.size).step_by(batch) {
            let words: Vec<String> = (first..shape.size.min(first + batch)).flat_map(shape.words).collect();
            write!(request, "*{}\r\n", words.len() + 2)?;
            for word in [shape.command, &key].into_iter().chain(words.iter().map(String::as_str)) {
                write!(request, "${}\r\n{word}\r\n", word.len())?;
            }
            sent += 1;
            if sent == 1000 {
                exchange(&mut stream, &mut request, &mut sent)?;
            }
        }
        exchange(&mut stream, &mut request, &mut sent)?;
    }
    Ok(())
}

/// Sends what is collected, and reads as many replies.
fn exchange(stream: &mut BufReader<TcpStream>, request: &mut Vec<u8>, sent: &mut usize) -> Result<()> {
    stream.get_mut().write_all(request)?;
    let mut line = String::new();
    for _ in 0..*sent {
        line.clear();
        stream.read_line(&mut line)?;
        ensure!(!line.starts_with('-'), "{line}");
        if line.starts_with('$') {
            // An entry's id.
            line.clear();
            stream.read_line(&mut line)?;
        }
    }
    request.clear();
    *sent = 0;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, bytes_per_element: f64) -> Row {
        let shape = SHAPES[0].name.to_owned();
        Row { shape, subject: subject.to_owned(), bytes_per_element, commit: None, machine: None }
    }

    #[test]
    fn the_first_subject_is_compared_with_the_best_of_the_others() {
        let rows = [row("ours", 20.0), row("a", 50.0), row("b", 40.0)];
        let table = in_columns(&rows);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "| bytes per element | ours | a | b | ours / best |");
        assert_eq!(lines[2], "| hash, 50 fields | 20.0 | 50.0 | 40.0 | 0.50 |");
        assert_eq!(lines[3], "| set, 1,000 integers | – | – | – | – |");
    }

    #[test]
    fn new_measurements_replace_old_rows_in_place() {
        let kept = vec![row("ours", 20.0), row("a", 50.0)];
        let found = replaced(kept, vec![row("b", 1.0), row("ours", 30.0)]);
        assert_eq!(found, [row("ours", 30.0), row("a", 50.0), row("b", 1.0)]);
    }

    #[test]
    fn shapes_fill_what_is_loaded_evenly() {
        for shape in SHAPES {
            assert_eq!(ELEMENTS % shape.size, 0, "{}", shape.name);
            assert_eq!(shape.size % BATCH, 0, "{}", shape.name);
            assert_ne!((shape.words)(1), (shape.words)(2), "{}", shape.name);
        }
    }
}
