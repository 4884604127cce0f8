//! The journal: the changes of all calls in one order, as a stream of commands in RESP that makes an equal server of an empty one.
//!
//! Each call is recorded once, where handlers run, under the locks of its keys. The record is the call's own words, or other words if these
//! would not have the same effect again. It is gathered in the thread's **draft** and appended to the stream when the window ends, still
//! under the locks, so that the stream has the changes of a key in the order in which its shard was locked. Commands that belong together
//! (a transaction, a script, a call with several effects) form a **unit**: MULTI … EXEC, if it has more than one command. A unit is
//! appended as a whole or not at all. Offsets are bytes of the stream.
//!
//! It is read by any number of [`Reader`]s, each at its own pace: the append-only file, and one for each replica. They share the
//! bytes, which stay until all have read them, and as long as they belong to the **backlog**, the end of the stream that is kept
//! for replicas that come back.
//!
//! A server that keeps no journal pays one look at a flag per window.

mod draft;
mod stream;

pub(crate) use draft::{begin_call, command, end_call, forget, replace};
pub use stream::Piece;

use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use crossbeam_utils::CachePadded;

use crate::protocol::encode_command;
use crate::types::SmallBytes;
use draft::Draft;
use stream::Stream;

/// The users of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The append-only file.
    Aof = 1,
    /// Replicas, of which there are some or may be some again.
    Replicas = 2,
    /// Slots that move to another node.
    Moves = 4,
}

/// Proof that no window is open: none has looked at the journal's flags, or at where it ends, before they change.
#[derive(Debug)]
pub struct Standstill(());

impl Standstill {
    /// Only [`Exclusive`](crate::exec::gate::Exclusive) vouches for that, and tests.
    pub(crate) fn vouched() -> Self {
        Self(())
    }
}

/// The bit of [`Journal::users`] that says that nothing is written down for a while.
const MUTE: u8 = 1 << 6;
/// The bit of [`Journal::users`] that says that the stream is another server's.
const FOLLOWS: u8 = 1 << 7;

/// The stream of a server's changes, between those who write it and those who read it.
#[derive(Default)]
pub struct Journal {
    /// Bits of [`User`]. All windows look at them, so what changes write has cache lines of its own.
    users: AtomicU8,
    end: CachePadded<AtomicU64>,
    /// How many moves there are.
    moves: Mutex<usize>,
    stream: CachePadded<Mutex<Stream>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("users", &self.users).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Journal {
    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether changes are recorded: a user wants them, and this server follows no primary, which records them itself.
    #[inline]
    pub fn is_on(&self) -> bool {
        (1..MUTE).contains(&self.users.load(Relaxed))
    }

    /// Whether this user wants changes written down.
    pub fn is_on_for(&self, user: User) -> bool {
        self.users.load(Relaxed) & user as u8 != 0
    }

    /// From now on the stream is another server's ([`Journal::relay`]), or its own again.
    pub fn follow(&self, on: bool, _: &Standstill) {
        let mut stream = self.stream();
        if on {
            self.users.fetch_or(FOLLOWS, Relaxed);
        } else {
            stream.db = None;
            self.users.fetch_and(!FOLLOWS, Relaxed);
        }
    }

    /// Appends whole units of the stream of the server that this one follows; `apart` are those parts that are for replicas
    /// only, and behind them commands are for database `db`. If it follows none any more, nothing.
    pub fn relay(&self, bytes: &[u8], apart: &[Range<usize>], db: usize) {
        let mut stream = self.stream();
        if bytes.is_empty() || self.users.load(Relaxed) & FOLLOWS == 0 {
            return;
        }
        let mut at = 0;
        for range in apart {
            stream.write(|_, tail| tail.extend_from_slice(&bytes[at..range.start]));
            stream.push_apart(Bytes::copy_from_slice(&bytes[range.clone()]));
            at = range.end;
        }
        stream.write(|_, tail| tail.extend_from_slice(&bytes[at..]));
        stream.db = Some(db);
        self.appended(stream);
    }

    /// From now on changes are written down for this user. A window checks the flag once.
    pub fn turn_on(&self, user: User, standstill: &Standstill) {
        if !self.is_on() {
            self.reset_db(standstill);
        }
        self.users.fetch_or(user as u8, Relaxed);
    }

    /// Changes are no longer written down for this user. Windows that are open may still write some down, which it ignores.
    pub fn turn_off(&self, user: User) {
        self.users.fetch_and(!(user as u8), Relaxed);
    }

    /// [`Journal::turn_on`] for one of several [moves](User::Moves).
    pub fn begin_move(&self, standstill: &Standstill) {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        *moves += 1;
        if *moves == 1 {
            self.turn_on(User::Moves, standstill);
        }
    }

    /// It is over: changes are written down as long as others want them.
    pub fn end_move(&self) {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        *moves -= 1;
        if *moves == 0 {
            self.turn_off(User::Moves);
        }
    }

    /// The stream's end, behind the bytes of all earlier changes.
    pub fn offset(&self) -> u64 {
        self.end.load(Acquire)
    }

    /// The stream goes on at `offset`, as another one, in this database if it is known. The journal drops the earlier bytes, and readers of
    /// them get nothing more.
    pub fn begin_at(&self, offset: u64, db: Option<usize>, _: &Standstill) {
        let mut stream = self.stream();
        stream.begin_at(offset);
        stream.db = db;
        self.end.store(offset, Release);
    }

    /// Suspends the recording of changes for all users (`DEBUG LOADAOF`), or resumes it.
    pub fn mute(&self, on: bool, _: &Standstill) {
        if on {
            self.users.fetch_or(MUTE, Relaxed);
        } else {
            self.users.fetch_and(!MUTE, Relaxed);
        }
    }

    /// The next command starts with its database (SELECT), whatever the database before. Returns the offset at which it will stand. A
    /// stream that is another server's cannot be told to say so: its database is returned, too.
    pub fn reset_db(&self, _: &Standstill) -> (u64, Option<usize>) {
        let mut stream = self.stream();
        if self.users.load(Relaxed) & FOLLOWS != 0 {
            return (self.offset(), stream.db);
        }
        stream.db = None;
        (self.offset(), None)
    }

    /// The database of the command that comes next, if nothing else is said there.
    pub fn database(&self) -> Option<usize> {
        self.stream().db
    }

    /// Reads from the stream's end on. `wake` runs when bytes arrive after the reader had read all. It runs under the locks of the
    /// writing thread, so it must neither wait nor touch the data.
    pub fn reader(self: &Arc<Self>, wake: impl Fn() + Send + Sync + 'static) -> Reader {
        let mut stream = self.stream();
        let id = stream.join(self.offset(), Arc::new(wake));
        drop(stream);
        Reader { journal: Arc::clone(self), id }
    }

    /// [`Journal::reader`] for what stands at `offset` and behind it, if that is still there.
    pub fn reader_from(self: &Arc<Self>, offset: u64, wake: impl Fn() + Send + Sync + 'static) -> Option<Reader> {
        let mut stream = self.stream();
        if !(stream.backlog_begin()..=self.offset()).contains(&offset) {
            return None;
        }
        let id = stream.join(offset, Arc::new(wake));
        drop(stream);
        Some(Reader { journal: Arc::clone(self), id })
    }

    /// This reader reads nothing any more, and nothing is kept for it.
    pub fn let_go(&self, reader: ReaderId) {
        self.stream().cut(reader.0);
    }

    /// Keeps so many bytes before the end for replicas that come back; 0: none.
    pub fn keep_backlog(&self, bytes: u64) {
        let mut stream = self.stream();
        stream.keep_backlog(bytes);
    }

    /// The range of the stream that is kept.
    pub fn kept(&self) -> Range<u64> {
        let stream = self.stream();
        stream.backlog_begin()..self.offset()
    }

    /// Bytes of memory that the stream takes, for all readers.
    pub fn held(&self) -> u64 {
        self.stream().held()
    }

    /// Bytes that are taken only because a reader is behind.
    pub fn beyond_backlog(&self) -> u64 {
        self.stream().beyond_backlog()
    }

    /// Appends what this thread has gathered, unless a call is under way; returns the offset behind it, if there was anything.
    pub(crate) fn commit(&self) -> Option<u64> {
        draft::with(|draft| draft.is_ready().then(|| self.append(draft)))
    }

    /// An entry was removed by the server itself, under the exclusive lock of its shard: as part of the call that has met it, or
    /// for its own sake.
    pub(crate) fn removed(&self, db: usize, key: &[u8], unlink: bool) {
        self.say(|draft| draft.delete(db, key, unlink));
    }

    /// Fields of a hash were removed by the server itself, under the exclusive lock of its shard.
    pub(crate) fn fields_removed(&self, db: usize, key: &[u8], fields: &[SmallBytes]) {
        self.say(|draft| {
            let words: Vec<&[u8]> =
                [&b"HDEL"[..], key].into_iter().chain(fields.iter().map(|field| &**field)).collect();
            draft.push(db, words.into_iter());
        });
    }

    /// Says a command that the server itself has thought of.
    pub fn tell(&self, db: usize, words: &[&[u8]]) {
        self.say(|draft| draft.push(db, words.iter().copied()));
    }

    /// Says what the server itself has done: as part of the call under way, or for its own sake.
    fn say(&self, what: impl FnOnce(&mut Draft)) {
        if !self.is_on() {
            return;
        }
        draft::with(|draft| {
            let is_alone = draft.is_idle();
            draft.begin();
            what(draft);
            draft.end();
            if is_alone {
                self.append(draft);
            }
        });
    }

    /// A call under way has met an entry whose time is over, and takes it for absent; it is removed later. If the call
    /// changes anything, the key must be deleted before.
    pub(crate) fn met(&self, db: usize, key: &[u8], unlink: bool) {
        if self.is_on() {
            draft::with(|draft| draft.meet(db, key, unlink));
        }
    }

    /// Appends a command that is for replicas only: it changes nothing, and no file keeps it. Returns the offset behind it. A stream
    /// that is another server's takes none: its offsets are that server's.
    pub fn tell_replicas(&self, words: &[&[u8]]) -> u64 {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words.iter().copied());
        let mut stream = self.stream();
        if self.users.load(Relaxed) & FOLLOWS != 0 {
            return stream.end();
        }
        stream.push_apart(bytes.into());
        self.appended(stream)
    }

    fn append(&self, draft: &mut Draft) -> u64 {
        let mut stream = self.stream();
        let (first, last) = draft.databases();
        stream.write(|db, bytes| {
            if *db != Some(first) {
                draft::select(bytes, first);
            }
            *db = Some(last);
            draft.pour(bytes);
        });
        self.appended(stream)
    }

    fn appended(&self, mut stream: MutexGuard<'_, Stream>) -> u64 {
        let end = stream.end();
        self.end.store(end, Release);
        let wakers = stream.wakers();
        drop(stream);
        wakers.iter().for_each(|wake| wake());
        end
    }
}

/// Names a [`Reader`] while it is there.
#[derive(Clone, Copy, Debug)]
pub struct ReaderId(usize);

/// Reads the stream from some offset on.
#[derive(Debug)]
pub struct Reader {
    journal: Arc<Journal>,
    id: usize,
}

impl Reader {
    /// The argument for [`Journal::let_go`].
    pub fn id(&self) -> ReaderId {
        ReaderId(self.id)
    }

    /// Appends what comes next to `pieces`, up to `most` bytes, or one piece where that has more. Returns the offset of its
    /// first byte.
    pub fn read(&mut self, most: usize, pieces: &mut Vec<Piece>) -> u64 {
        self.journal.stream().read(self.id, most, pieces)
    }

    /// Puts all that comes next in the place of what `bytes` held, and adds to `apart` where in the stream stands what is for
    /// replicas only. Returns the offset of the first byte.
    pub fn take(&mut self, bytes: &mut Vec<u8>, apart: &mut Vec<Range<u64>>) -> u64 {
        self.journal.stream().take(self.id, bytes, apart)
    }

    /// Where it reads next.
    pub fn offset(&self) -> u64 {
        self.journal.stream().offset_of(self.id)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.journal.stream().leave(self.id);
    }
}

#[cfg(test)]
mod tests;
