//! The entries of a snapshot, encoded in the format of its file.

use super::target::Target;
use crate::keyspace::ValueRef;
use crate::persistence::aof::{Buffered, PlainWriter, Put};
use crate::persistence::rdb::{Access, Encoded, Records, WriteOptions, Writer};

/// The format of a snapshot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RDB.
    Rdb,
    /// The commands that make the data (`aof-use-rdb-preamble no`).
    Commands,
}

/// Encodes entries. Each chunk begins with its database, so that chunks of several encoders can follow each other in any order.
pub(super) enum Encoder {
    Rdb(Records),
    Commands { chunk: Encoded, database: Option<usize> },
}

impl Encoder {
    pub(super) fn new(format: Format, options: WriteOptions) -> Self {
        match format {
            Format::Rdb => Self::Rdb(Records::new(options)),
            Format::Commands => Self::Commands { chunk: Encoded::default(), database: None },
        }
    }

    /// A key of database `number` with its value; `expire_at` in milliseconds of Unix time.
    pub(super) fn add(
        &mut self,
        number: usize,
        (key, value): (&[u8], ValueRef<'_>),
        (expire_at, access): (Option<u64>, Access),
    ) {
        match self {
            Self::Rdb(records) => records.add(number, key, value, expire_at, access),
            Self::Commands { chunk, database } => {
                let mut writer = PlainWriter::new(chunk);
                begin(&mut writer, database, number);
                writer.record(key, value, expire_at);
            }
        }
    }

    /// [`Encoder::add`] of what may be large: `send` gets a chunk whenever there are some `piece` bytes.
    pub(super) fn add_in_pieces(
        &mut self,
        number: usize,
        (key, value): (&[u8], ValueRef<'_>),
        (expire_at, access): (Option<u64>, Access),
        piece: usize,
        mut send: impl FnMut(Encoded),
    ) {
        match self {
            Self::Rdb(records) => {
                records.add_in_pieces(number, (key, value), (expire_at, access), piece, |records| {
                    send(records.take(Encoded::with_room(piece)));
                });
            }
            Self::Commands { chunk, database } => {
                let mut writer = PlainWriter::new(InPieces { chunk, piece, send });
                begin(&mut writer, database, number);
                writer.record(key, value, expire_at);
                // A chunk may have been sent since the database was named.
                *database = None;
            }
        }
    }

    /// Bytes of the chunk so far.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Rdb(records) => records.len(),
            Self::Commands { chunk, .. } => chunk.bytes().len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the chunk out; `room` takes the next one.
    pub(super) fn take(&mut self, room: Encoded) -> Encoded {
        match self {
            Self::Rdb(records) => records.take(room),
            Self::Commands { chunk, database } => {
                *database = None;
                std::mem::replace(chunk, room)
            }
        }
    }
}

fn begin(writer: &mut PlainWriter<impl Put>, database: &mut Option<usize>, number: usize) {
    if *database != Some(number) {
        *database = Some(number);
        writer.database(number);
    }
}

/// Commands that are sent piece by piece.
struct InPieces<'c, F> {
    chunk: &'c mut Encoded,
    piece: usize,
    send: F,
}

impl<F: FnMut(Encoded)> Put for InPieces<'_, F> {
    fn put(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(self.piece) {
            self.chunk.put(part);
            if self.chunk.bytes().len() >= self.piece {
                (self.send)(std::mem::replace(self.chunk, Encoded::with_room(self.piece)));
            }
        }
    }
}

/// The file, which gets the chunks.
pub(super) enum Out {
    Rdb(Writer<Box<dyn Target>>),
    Commands(PlainWriter<Buffered<Box<dyn Target>>>),
}

impl Out {
    pub(super) fn chunk(&mut self, chunk: &Encoded) {
        match self {
            Self::Rdb(writer) => writer.records(chunk),
            Self::Commands(writer) => writer.commands(chunk.bytes()),
        }
    }

    /// # Errors
    /// The first one of the file, once.
    pub(super) fn check(&mut self) -> std::io::Result<()> {
        match self {
            Self::Rdb(writer) => writer.check(),
            Self::Commands(writer) => writer.check(),
        }
    }

    /// Ends the file, and puts it in its place.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn commit(self) -> std::io::Result<()> {
        match self {
            Self::Rdb(writer) => writer.finish()?.commit(),
            Self::Commands(writer) => writer.finish()?.commit(),
        }
    }
}
