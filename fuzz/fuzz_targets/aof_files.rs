//! An append-only file in pieces: what is read is what is there, and nothing panics.

#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use redis_server::persistence::aof::Reader;

/// Reads in pieces of one size.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(self.1).min(into.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Where commands end, and how the file does.
fn ends(bytes: &[u8], piece: usize) -> (Vec<u64>, String) {
    let mut reader = Reader::new(Pieces(bytes, piece), 0);
    let mut ends = Vec::new();
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => ends.extend(batch.ends.iter().map(|&(_, end)| batch.offset + end as u64)),
            Ok(None) => return (ends, String::new()),
            Err(fault) => return (ends, fault.to_string()),
        }
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = ends(bytes, usize::MAX);
    assert!(whole.0.is_sorted() && whole.0.last().is_none_or(|&end| end <= bytes.len() as u64));
    assert_eq!(ends(bytes, usize::from(piece) + 1), whole);
});
