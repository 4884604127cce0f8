//! The longest common subsequence of two strings.

use std::ops::Range;

use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::keyspace::StrRef;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// The options of LCS.
#[derive(Debug, Default)]
struct Options {
    len: bool,
    idx: bool,
    with_match_len: bool,
    min_match_len: usize,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            if args.is(at, "IDX") {
                options.idx = true;
            } else if args.is(at, "LEN") {
                options.len = true;
            } else if args.is(at, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
                options.min_match_len = usize::try_from(args.int(at + 1)?).unwrap_or(0);
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        if options.idx && options.len {
            let text = "ERR If you want both the length and indexes, please just use IDX.";
            return Err(Error::Static(text));
        }
        Ok(options)
    }
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]`
pub(super) fn lcs(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let string = |index| match cx.db.string(args.key(index)) {
        Ok(found) => Ok(found.unwrap_or(StrRef::Bytes { bytes: b"", raw: false })),
        Err(_) => Err(Error::Static("ERR The specified keys must contain string values")),
    };
    let (a, b) = (string(0)?, string(1)?);
    let options = Options::parse(args)?;
    check_size(a.len(), b.len(), cx.config().uint(settings::PROTO_MAX_BULK_LEN))?;
    a.with(|a| b.with(|b| answer(cx.reply, a, b, &options)));
    Ok(())
}

/// Refuses strings whose table would need more memory than `max` bytes; it has four bytes for each pair of theirs.
fn check_size(a: usize, b: usize, max: u64) -> Result {
    if a.max(b) >= u32::MAX as usize - 1 {
        return Err(Error::Static("ERR String too long for LCS"));
    }
    let cells = (a as u64 + 1) * (b as u64 + 1);
    if cells.checked_mul(4).is_none_or(|bytes| bytes > max) {
        let text = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
        return Err(Error::Static(text));
    }
    Ok(())
}

fn answer(reply: &mut Reply, a: &[u8], b: &[u8], options: &Options) {
    if options.len {
        return reply.count(length(a, b));
    }
    let table = Table::new(a, b);
    if !options.idx {
        let mut common = Vec::with_capacity(table.at(a.len(), b.len()) as usize);
        table.matches(a, b, |in_a, _| common.extend(a[in_a].iter().rev()));
        common.reverse();
        return reply.bulk(&common);
    }
    reply.map(2);
    reply.bulk(b"matches");
    let mark = reply.mark();
    let mut count = 0;
    table.matches(a, b, |in_a, in_b| {
        if in_a.len() < options.min_match_len {
            return;
        }
        count += 1;
        reply.array(2 + usize::from(options.with_match_len));
        for range in [&in_a, &in_b] {
            reply.array(2);
            reply.count(range.start);
            reply.count(range.end - 1);
        }
        if options.with_match_len {
            reply.count(in_a.len());
        }
    });
    reply.array_at(mark, count);
    reply.bulk(b"len");
    reply.int(table.at(a.len(), b.len()).into());
}

/// The length alone, by one row of the table at a time.
fn length(a: &[u8], b: &[u8]) -> usize {
    let mut row = vec![0u32; b.len() + 1];
    for &byte in a {
        let mut above_left = 0;
        for (at, &other) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if byte == other { above_left + 1 } else { above.max(row[at]) };
            above_left = above;
        }
    }
    row[b.len()] as usize
}

/// Lengths of the longest common subsequences of all pairs of prefixes.
struct Table {
    cells: Vec<u32>,
    width: usize,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let width = b.len() + 1;
        let mut cells = vec![0u32; (a.len() + 1) * width];
        for (&byte, rows) in a.iter().zip(0..) {
            let (above, row) = cells[rows * width..(rows + 2) * width].split_at_mut(width);
            for (at, &other) in b.iter().enumerate() {
                row[at + 1] = if byte == other { above[at] + 1 } else { above[at + 1].max(row[at]) };
            }
        }
        Self { cells, width }
    }

    /// For the first `a` and `b` bytes.
    fn at(&self, a: usize, b: usize) -> u32 {
        self.cells[a * self.width + b]
    }

    /// Calls `visit` with the places of every run of bytes in one longest common subsequence, the last run first.
    fn matches(&self, a: &[u8], b: &[u8], mut visit: impl FnMut(Range<usize>, Range<usize>)) {
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            let pairs = a[..i].iter().rev().zip(b[..j].iter().rev());
            let run = pairs.take_while(|(a, b)| a == b).count();
            if run > 0 {
                visit(i - run..i, j - run..j);
                (i, j) = (i - run, j - run);
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }
}
