//! The bytes that somebody has still to read, or may ask for.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

/// Bytes from which on what was written is a piece of its own, which is not moved any more.
const PIECE: usize = 64 * 1024;
/// Up to this length, bytes are copied for each reader, because a piece takes some fifty bytes besides.
const SMALL: usize = 4 * 1024;

/// The least that a backlog has, as in a genuine server.
const BACKLOG_MIN: u64 = 16 * 1024;

/// Wakes a reader.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;
pub(super) type Wakers = SmallVec<[Wake; 4]>;

/// A part of the stream.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first byte's offset.
    pub begin: u64,
    /// Its bytes.
    pub bytes: Bytes,
    /// Whether it is for replicas only.
    pub is_apart: bool,
}

impl Piece {
    fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    /// Its bytes in front of an offset.
    pub fn in_front_of(mut self, offset: u64) -> Bytes {
        self.bytes.truncate(usize::try_from(offset.saturating_sub(self.begin)).unwrap_or(usize::MAX));
        self.bytes
    }

    fn behind(&self, offset: u64) -> Self {
        let from = offset.saturating_sub(self.begin) as usize;
        Self { begin: self.begin + from as u64, bytes: self.bytes.slice(from..), is_apart: self.is_apart }
    }
}

struct Position {
    offset: u64,
    wake: Wake,
    /// Whether it has read all, and is to be woken when there is more.
    waits: bool,
    /// Whether what it has read was another stream.
    is_cut: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Stream {
    /// In their order, without gaps; the bytes behind them are in `tail`.
    pieces: VecDeque<Piece>,
    tail: Vec<u8>,
    tail_begin: u64,
    /// The database of the command that comes next, if nothing else is said.
    pub(super) db: Option<usize>,
    backlog: u64,
    readers: Vec<Option<Position>>,
    /// How many readers there are, and how many of them wait.
    reading: usize,
    waiting: usize,
}

impl Stream {
    pub(super) fn end(&self) -> u64 {
        self.tail_begin + self.tail.len() as u64
    }

    /// The first offset that is still there.
    pub(super) fn begin(&self) -> u64 {
        self.pieces.front().map_or(self.tail_begin, |piece| piece.begin)
    }

    /// The first offset from which a replica that comes back can continue. The bytes that are kept for a slow reader are available to all.
    pub(super) fn backlog_begin(&self) -> u64 {
        if self.backlog == 0 { self.end() } else { self.begin().max(self.needed()) }
    }

    /// Bytes that are taken by what is there.
    pub(super) fn held(&self) -> u64 {
        let besides = self.pieces.capacity() * size_of::<Piece>() + self.tail.capacity() - self.tail.len();
        self.end() - self.begin() + besides as u64
    }

    /// Bytes that are kept for readers alone.
    pub(super) fn beyond_backlog(&self) -> u64 {
        self.held().saturating_sub(self.backlog)
    }

    /// Forgets everything, and goes on at `offset`.
    pub(super) fn begin_at(&mut self, offset: u64) {
        self.pieces.clear();
        self.tail.clear();
        (self.tail_begin, self.db) = (offset, None);
        self.readers.iter_mut().flatten().for_each(|reader| (reader.offset, reader.is_cut) = (offset, true));
    }

    pub(super) fn keep_backlog(&mut self, bytes: u64) {
        self.backlog = if bytes == 0 { 0 } else { bytes.max(BACKLOG_MIN) };
        self.trim();
    }

    pub(super) fn join(&mut self, offset: u64, wake: Wake) -> usize {
        let position = Some(Position { offset, wake, waits: false, is_cut: false });
        let free = self.readers.iter().position(Option::is_none);
        let id = free.unwrap_or(self.readers.len());
        match free {
            Some(id) => self.readers[id] = position,
            None => self.readers.push(position),
        }
        self.reading += 1;
        id
    }

    pub(super) fn leave(&mut self, id: usize) {
        self.reading -= 1;
        if self.readers[id].take().is_some_and(|reader| reader.waits) {
            self.waiting -= 1;
        }
        self.trim();
    }

    pub(super) fn cut(&mut self, id: usize) {
        self.readers[id].iter_mut().for_each(|reader| reader.is_cut = true);
        self.trim();
    }

    pub(super) fn offset_of(&self, id: usize) -> u64 {
        self.reader(id).offset
    }

    fn reader(&self, id: usize) -> &Position {
        self.readers[id].as_ref().expect("a reader leaves when it is dropped")
    }

    /// Has `write` append to the stream; it is told, and says, which database a command is for.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut Option<usize>, &mut Vec<u8>)) {
        if self.tail.capacity() == 0 {
            // Grown by and by, it would be copied over and over, and nearly half of it stay empty.
            self.tail.reserve_exact(PIECE + SMALL);
        }
        write(&mut self.db, &mut self.tail);
        if self.reading == 0 && self.backlog == 0 {
            // There is no reader.
            self.tail_begin = self.end();
            self.tail.clear();
        } else if self.tail.len() >= PIECE {
            self.seal();
            self.trim();
        }
    }

    /// Appends a piece that is for replicas only.
    pub(super) fn push_apart(&mut self, bytes: Bytes) {
        self.seal();
        let begin = self.tail_begin;
        self.tail_begin += bytes.len() as u64;
        self.pieces.push_back(Piece { begin, bytes, is_apart: true });
        self.trim();
    }

    /// Those that are to be told that there is more.
    pub(super) fn wakers(&mut self) -> Wakers {
        if self.waiting == 0 {
            return Wakers::new();
        }
        self.waiting = 0;
        let waiting =
            self.readers.iter_mut().flatten().filter_map(|reader| mem::take(&mut reader.waits).then_some(reader));
        waiting.map(|reader| Arc::clone(&reader.wake)).collect()
    }

    /// Makes the tail a piece.
    fn seal(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let begin = self.tail_begin;
        self.tail_begin = self.end();
        let bytes = mem::take(&mut self.tail).into_boxed_slice().into();
        self.pieces.push_back(Piece { begin, bytes, is_apart: false });
    }

    /// The first offset that somebody will read, or may.
    fn needed(&self) -> u64 {
        let backlog = self.end().saturating_sub(self.backlog);
        let readers = self.readers.iter().flatten().filter(|reader| !reader.is_cut);
        readers.map(|reader| reader.offset).fold(backlog, u64::min)
    }

    /// Drops what nobody will read.
    fn trim(&mut self) {
        let needed = self.needed();
        while self.pieces.front().is_some_and(|piece| piece.end() <= needed) {
            self.pieces.pop_front();
        }
        if needed == self.end() {
            self.tail_begin = needed;
            self.tail.clear();
        }
    }

    /// A reader has read up to here.
    fn advance(&mut self, id: usize, offset: u64) {
        let waits = offset == self.end();
        let reader = self.readers[id].as_mut().expect("a reader leaves when it is dropped");
        reader.offset = offset;
        if waits != mem::replace(&mut reader.waits, waits) {
            if waits { self.waiting += 1 } else { self.waiting -= 1 }
        }
        self.trim();
    }

    pub(super) fn read(&mut self, id: usize, most: usize, pieces: &mut Vec<Piece>) -> u64 {
        let from = self.reader(id).offset;
        if self.reader(id).is_cut {
            return from;
        }
        let written = self.written_behind(from).len();
        if written > SMALL {
            self.seal();
        }
        let (mut at, mut read) = (from, 0);
        let mut take = |piece: Piece| {
            let fits = read == 0 || read + piece.bytes.len() <= most;
            if fits {
                (at, read) = (piece.end(), read + piece.bytes.len());
                pieces.push(piece);
            }
            fits
        };
        let takes_all = self.sealed_behind(from).all(&mut take);
        if takes_all && (1..=SMALL).contains(&written) {
            let bytes = Bytes::copy_from_slice(self.written_behind(from));
            take(Piece { begin: self.end() - written as u64, bytes, is_apart: false });
        }
        self.advance(id, at);
        from
    }

    /// The pieces from an offset on.
    fn sealed_behind(&self, offset: u64) -> impl Iterator<Item = Piece> {
        let first = self.pieces.partition_point(|piece| piece.end() <= offset);
        self.pieces.range(first..).map(move |piece| piece.behind(offset))
    }

    /// The bytes from an offset on that do not belong to a piece yet.
    fn written_behind(&self, offset: u64) -> &[u8] {
        &self.tail[offset.saturating_sub(self.tail_begin) as usize..]
    }

    pub(super) fn take(&mut self, id: usize, bytes: &mut Vec<u8>, apart: &mut Vec<Range<u64>>) -> u64 {
        bytes.clear();
        let from = self.reader(id).offset;
        if self.reader(id).is_cut {
            return from;
        }
        if self.reading == 1 && self.backlog == 0 && from == self.tail_begin {
            // A single reader takes the bytes without a copy.
            mem::swap(bytes, &mut self.tail);
            self.tail_begin += bytes.len() as u64;
        } else {
            for piece in self.sealed_behind(from) {
                if piece.is_apart {
                    apart.push(piece.begin..piece.end());
                }
                bytes.extend_from_slice(&piece.bytes);
            }
            bytes.extend_from_slice(self.written_behind(from));
        }
        self.advance(id, self.end());
        from
    }
}
