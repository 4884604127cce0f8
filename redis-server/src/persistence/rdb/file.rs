//! A whole file, read item by item.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::decoder::whole_record;
use super::{Cut, Decoder, Fault, Item, Limits, Record, Step};
use crate::persistence::disk::Disk;

/// Bytes of the file that are looked at together; a record that is larger has them grow until it fits.
const WINDOW: usize = 1024 * 1024;
/// Bytes of records that are decoded together: little enough that all who decode are done at about the same time, and much beside what
/// it costs to hand them over.
const BATCH: usize = 128 * 1024;

/// A file of which no more is in memory than the item that is next.
pub struct File {
    file: Box<dyn Read>,
    decoder: Decoder,
    /// The bytes read so far; batches may still refer to them.
    buffer: Arc<Vec<u8>>,
    /// Buffers of batches, to be used again when these are gone: fresh memory costs more than decoding what is read into it.
    spare: Vec<Arc<Vec<u8>>>,
    /// Where in `buffer` that begins which was not decoded.
    at: usize,
    /// Bytes of the file behind `buffer`.
    beyond: u64,
}

/// A piece of a file.
pub enum Part<'a> {
    /// Records that were not decoded.
    Records(Batch),
    /// Something else.
    Item(Item<'a>),
}

/// Whole records of a file, one behind the other.
pub struct Batch {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
    offset: u64,
}

impl Batch {
    /// Where in the file the first one begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The records, each with how many bytes it takes, up to the first that is damaged.
    pub fn records(&self, limits: &Limits) -> impl Iterator<Item = Result<(Record<'_>, usize), Fault>> {
        let mut rest = &self.buffer[self.range.clone()];
        let mut offset = self.offset;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let read = whole_record(rest, offset, limits);
            let used = read.as_ref().map_or(rest.len(), |(_, used)| *used);
            rest = &rest[used..];
            offset += used as u64;
            Some(read)
        })
    }
}

/// Why a file is not read to its end.
#[derive(Debug)]
pub enum ReadError {
    /// The system cannot read it.
    Io(io::Error),
    /// It is damaged, or says what is not understood.
    Fault(Fault),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl File {
    /// The file at `path`; see [`Decoder::new`].
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: &dyn Disk, path: &Path, limits: Limits, checks: bool) -> Result<Self, ReadError> {
        let file = disk.read(path).map_err(ReadError::Io)?;
        Ok(Self::of(file, disk.len(path).map_err(ReadError::Io)?, limits, checks))
    }

    /// A file from `source`, which has at most `most` bytes.
    pub fn of(source: Box<dyn Read>, most: u64, limits: Limits, checks: bool) -> Self {
        let decoder = Decoder::new(limits, checks);
        Self { file: source, decoder, buffer: Arc::default(), spare: Vec::new(), at: 0, beyond: most }
    }

    /// Bytes of the items so far.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Bytes of the file behind the items so far.
    pub fn left(&self) -> u64 {
        self.beyond + (self.buffer.len() - self.at) as u64
    }

    /// Passes the next item to `take` and returns its result; `None` behind the last.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing more can be read then.
    pub fn next<R>(&mut self, take: impl FnOnce(Item<'_>) -> R) -> Result<Option<R>, ReadError> {
        loop {
            let window = &self.buffer[self.at..];
            match self.decoder.next(window, self.beyond).map_err(ReadError::Fault)? {
                Step::Item(Item::End, _) => return Ok(None),
                Step::Item(item, len) => {
                    self.at += len;
                    return Ok(Some(take(item)));
                }
                Step::More(missing) => self.read(missing).map_err(ReadError::Io)?,
            }
        }
    }

    /// Passes the next part to `take` and returns its result; `None` behind the last. A part is a batch of records that another thread may
    /// decode, or an item that is no record.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing more can be read then.
    pub fn next_part<R>(&mut self, take: impl FnOnce(Part<'_>) -> R) -> Result<Option<R>, ReadError> {
        let offset = self.decoder.offset();
        loop {
            match self.decoder.cut(&self.buffer[self.at..], self.beyond, BATCH) {
                Cut::Records(len) => {
                    self.at += len;
                    return Ok(Some(take(Part::Records(self.batch(offset)))));
                }
                Cut::More(missing) => self.read(missing).map_err(ReadError::Io)?,
                Cut::Other => break,
            }
        }
        let mut take = Some(take);
        let taken = self.next(|item| match item {
            Item::Record(_) => None,
            other => take.take().map(|take| take(Part::Item(other))),
        })?;
        Ok(match (taken, take) {
            // It could be decoded, though not skipped.
            (Some(None), Some(take)) => Some(take(Part::Records(self.batch(offset)))),
            (taken, _) => taken.flatten(),
        })
    }

    /// The records from `offset` to where the decoder is.
    fn batch(&self, offset: u64) -> Batch {
        let len = (self.decoder.offset() - offset) as usize;
        Batch { buffer: Arc::clone(&self.buffer), range: self.at - len..self.at, offset }
    }

    /// Reads some of the `missing` bytes, which the file is said to have, and maybe more.
    fn read(&mut self, missing: usize) -> io::Result<()> {
        let left = self.buffer.len() - self.at;
        // An incomplete item is parsed again from its beginning. Reading twice as much each time at most doubles the work. Room is made for
        // no more than that, as of a source that is no file nobody knows how much it has.
        let wanted = left.max(WINDOW);
        let buffer = match Arc::get_mut(&mut self.buffer) {
            Some(buffer) => {
                buffer.drain(..self.at);
                buffer
            }
            None => {
                let is_free = |spare: &Arc<Vec<u8>>| Arc::strong_count(spare) == 1;
                let free = self.spare.iter().position(is_free).map(|at| self.spare.swap_remove(at));
                let used = std::mem::replace(&mut self.buffer, free.unwrap_or_default());
                let buffer = Arc::get_mut(&mut self.buffer).expect("nobody else has it");
                buffer.clear();
                buffer.reserve_exact(left + wanted);
                buffer.extend_from_slice(&used[self.at..]);
                if used.capacity() <= 2 * WINDOW {
                    self.spare.push(used);
                }
                buffer
            }
        };
        self.at = 0;
        let read = (&mut self.file).take(wanted as u64).read_to_end(buffer)? as u64;
        self.beyond = self.beyond.saturating_sub(read);
        if read < missing.min(wanted) as u64 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was cut while it was read"));
        }
        Ok(())
    }
}
