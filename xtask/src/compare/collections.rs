//! Resident bytes per element of collections.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};

use super::Options;
use super::memory::SETTLE;

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

/// What is loaded.
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

/// Loads each kind into a fresh server of every subject and divides the growth of its resident memory by the number of elements.
pub(super) fn run(options: &Options, folder: &Path) -> Result<()> {
    let names: Vec<&str> = options.subjects.iter().map(|subject| subject.name.as_str()).collect();
    println!("| bytes per element | {} |", names.join(" | "));
    println!("|---|{}", "--:|".repeat(names.len()));
    for shape in SHAPES {
        let mut row = Vec::new();
        for subject in &options.subjects {
            let server = subject.start(options.pin.as_ref(), folder)?;
            let before = server.resident_bytes()?;
            load(server.port(), shape).with_context(|| format!("{}: {}", subject.name, shape.name))?;
            thread::sleep(SETTLE);
            let grown = server.resident_bytes()?.saturating_sub(before);
            row.push(format!("{:.1}", grown as f64 / ELEMENTS as f64));
        }
        println!("| {} | {} |", shape.name, row.join(" | "));
    }
    Ok(())
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

    #[test]
    fn shapes_fill_what_is_loaded_evenly() {
        for shape in SHAPES {
            assert_eq!(ELEMENTS % shape.size, 0, "{}", shape.name);
            assert_eq!(shape.size % BATCH, 0, "{}", shape.name);
            assert_ne!((shape.words)(1), (shape.words)(2), "{}", shape.name);
        }
    }
}
