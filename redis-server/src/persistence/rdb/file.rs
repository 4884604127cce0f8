//! A whole file, read item by item.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::{Decoder, Fault, Item, Limits, Step};

/// Bytes of the file that are looked at together; a record that is larger has them grow until it fits.
const WINDOW: usize = 1024 * 1024;

/// A file of which no more is in memory than the item that is next.
pub struct File {
    file: fs::File,
    decoder: Decoder,
    /// What was read of it.
    buffer: Vec<u8>,
    /// Where in `buffer` that begins which was not decoded.
    at: usize,
    /// Bytes of the file behind `buffer`.
    beyond: u64,
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
    /// The system's.
    pub fn open(path: &Path, limits: Limits, checks: bool) -> Result<Self, ReadError> {
        let file = fs::File::open(path).map_err(ReadError::Io)?;
        let beyond = file.metadata().map_err(ReadError::Io)?.len();
        Ok(Self { file, decoder: Decoder::new(limits, checks), buffer: Vec::new(), at: 0, beyond })
    }

    /// Bytes of the items so far.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// What `take` makes of the next item; `None` behind the last.
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

    /// Reads at least `missing` bytes more, which the file has.
    fn read(&mut self, missing: usize) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        // What is begun is decoded from its beginning again: twice as much each time makes that twice the work at most.
        let wanted = missing.max(self.buffer.len()).max(WINDOW) as u64;
        let read = (&self.file).take(wanted).read_to_end(&mut self.buffer)? as u64;
        self.beyond = self.beyond.saturating_sub(read);
        if read < missing as u64 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was cut while it was read"));
        }
        Ok(())
    }
}
