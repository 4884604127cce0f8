//! The schedule of writes and syncs.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::log::{Log, Partial};
use crate::persistence::disk::DiskFile;

/// How long after a failure it is tried again, in milliseconds.
const RETRY: u64 = 1000;
/// How often `everysec` forces to disk, in milliseconds: so often that a disk which hangs for a second stays within the two that are promised.
/// Marks are written as often, and where nothing more has come between two looks.
const PERIOD: u64 = 900;
/// Bytes of one write: the most that a failure must cut off again.
const PIECE: usize = 1024 * 1024;
/// Bytes of room that are kept for what comes next.
const KEPT: usize = 4 * 1024 * 1024;

/// When what was written is forced to disk: `appendfsync`, in the order of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Once a second.
    EverySecond,
    /// Before anybody is told.
    Always,
    /// When the system likes.
    No,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// When it is forced to disk.
    pub fsync: Fsync,
    /// Whether it says now and then when it was written.
    pub timestamps: bool,
}

/// A reading of two clocks, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Unix time, which may be set back.
    pub unix: u64,
    /// A clock that never steps, since some moment.
    pub steady: u64,
}

/// A line that says which place of which stream the file has reached: `#REPL:<id>:<offset>`. It counts only where nothing stands behind it,
/// as whoever else writes to the file does not say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The stream's name.
    pub stream: String,
    /// Everything before this offset is in the files.
    pub offset: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#REPL:{}:{}\r\n", self.stream, self.offset)
    }
}

impl Mark {
    /// Parses the line of a mark.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.trim_end().strip_prefix("#REPL:")?;
        let (stream, offset) = line.split_once(':')?;
        (stream.len() == 40).then_some(())?;
        Some(Self { stream: stream.to_owned(), offset: offset.parse().ok()? })
    }
}

/// Nothing that is acknowledged may go on being acknowledged: `always` cannot be kept.
#[derive(Debug)]
pub struct Failed(pub String);

/// One file, to be forced to disk by the thread that calls [`Sync::run`], while others may write more to it.
#[derive(Debug)]
pub struct Sync {
    file: Arc<dyn DiskFile>,
    /// Everything before this offset is in the file.
    offset: u64,
}

impl Sync {
    /// Forces the file to disk. [`Writer::end_sync`] has to be told what has come of it.
    ///
    /// # Errors
    /// The disk's.
    pub fn run(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Bytes of the stream of changes on their way to the files.
#[derive(Debug)]
pub struct Writer {
    log: Log,
    pending: Vec<u8>,
    /// Parts of the stream that no file keeps.
    apart: VecDeque<Range<u64>>,
    /// Where in the stream `pending` begins: everything before is in the files.
    written: u64,
    /// Everything before is on disk.
    durable: u64,
    /// Where the next file begins, and in which database, if what comes there does not say it.
    switch_at: Option<(u64, Option<usize>)>,
    /// When the file was last forced to disk, and when it was last marked.
    synced_at: Option<u64>,
    marked_at: Option<u64>,
    /// The value of `written` at the last check for a due sync.
    looked_at: u64,
    /// The failure, and the time of the next attempt.
    failure: Option<(String, u64)>,
    /// Whether the last file could not be forced to disk: the system may have dropped what it had not written, and a later attempt
    /// that succeeds says nothing of that (<https://lwn.net/Articles/752063/>).
    is_torn: bool,
    /// Whether that is so of the file in front of it, and the last counts when there is a base.
    was_torn: bool,
    /// The time that the file has told last, in seconds, and what it has still to say of it.
    told: u64,
    telling: Vec<u8>,
    /// Why there is no next file, where one was wanted.
    no_switch: Option<io::Error>,
    /// The replication id of the stream, if other servers may continue it.
    stream: Option<String>,
    /// Of what place in which stream the file says last that it is there.
    marked: Option<(String, u64)>,
}

impl Writer {
    /// Writes what the stream holds from `offset` on.
    pub fn new(log: Log, offset: u64) -> Self {
        Self {
            log,
            pending: Vec::new(),
            apart: VecDeque::new(),
            written: offset,
            durable: offset,
            switch_at: None,
            synced_at: None,
            marked_at: None,
            looked_at: offset,
            failure: None,
            is_torn: false,
            was_torn: false,
            told: 0,
            telling: Vec::new(),
            no_switch: None,
            stream: None,
            marked: None,
        }
    }

    /// The files.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The current failure, if there is one: the data is then no longer safe.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|(what, _)| what.as_str())
    }

    /// Whether only a new base makes the files whole again: a file could not be forced to disk.
    pub fn needs_base(&self) -> bool {
        self.is_torn || self.was_torn
    }

    /// Everything before this offset is on disk.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Everything before this offset is in the files.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Where in the stream that begins which comes next.
    pub fn end(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Bytes that wait to be written.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The stream is another server's, and is in this database where the file begins.
    pub fn begin_in(&mut self, db: Option<usize>) {
        if let Some(db) = db {
            let db = db.to_string();
            self.telling.extend_from_slice(format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{db}\r\n", db.len()).as_bytes());
        }
    }

    /// Says behind what is written from now on which place of which stream that is, or of none: a server that starts from the
    /// files can go on with it.
    pub fn belongs_to(&mut self, stream: Option<String>) {
        self.stream = stream;
    }

    /// The stream from `offset` on goes to the next file. `db` is the database that it continues in, if it does not select one itself.
    /// Bytes that are already written stay in their file: those behind a cut can only be the ones that stand apart.
    pub fn switch_at(&mut self, offset: u64, db: Option<usize>) {
        self.switch_at = Some((offset.max(self.written), db));
        // That of an earlier one concerns nobody any more.
        self.no_switch = None;
    }

    /// Whether the switch that was asked for last is done; an error, if everything goes to the same file instead.
    ///
    /// # Errors
    /// Why.
    pub fn switched(&mut self) -> io::Result<bool> {
        self.no_switch.take().map_or_else(|| Ok(self.switch_at.is_none()), Err)
    }

    /// Makes the base of what [`Log::adopt`] says. Files that could not be forced to disk count no longer then.
    ///
    /// # Errors
    /// The disk's; the files are as they were.
    pub fn adopt(&mut self, is_rdb: bool, goes_on: bool, now: Now) -> io::Result<()> {
        if !self.log.is_listed() && !self.is_torn {
            self.force(now)?;
        }
        self.log.adopt(is_rdb, goes_on)?;
        if std::mem::take(&mut self.was_torn) {
            // The bytes behind the base must be on disk by the next sync, which is due now.
            self.synced_at = None;
        }
        Ok(())
    }

    /// Takes whole units, which stand behind those that were taken before; those that stand `apart` in the stream are passed
    /// by. Leaves empty buffers.
    pub fn take(&mut self, bytes: &mut Vec<u8>, apart: &mut Vec<Range<u64>>) {
        self.apart.extend(apart.drain(..));
        if self.pending.is_empty() {
            std::mem::swap(&mut self.pending, bytes);
        } else {
            self.pending.append(bytes);
        }
        bytes.clear();
        bytes.shrink_to(KEPT);
    }

    /// Writes what was taken, up to where the next file begins, which takes longer: [`Writer::advance`]. Forces nothing to disk.
    pub fn write(&mut self, now: Now, timestamps: bool) {
        if !self.is_waiting(now) {
            let end = self.switch_at.map_or(u64::MAX, |(at, _)| at);
            let written = self.write_up_to(end, now, timestamps);
            self.note(written, now);
        }
    }

    /// Does all that is to be done at `now`, but forcing to disk what others may do, with [`Writer::begin_sync`]. Where a failure has
    /// to wait, nothing.
    pub fn advance(&mut self, now: Now, timestamps: bool) {
        if !self.is_waiting(now) {
            let done = self.write_all(now, timestamps);
            self.note(done, now);
        }
    }

    /// [`Writer::advance`], and forces to disk what is to be.
    ///
    /// # Errors
    /// The disk's, under [`Fsync::Always`]: it can be kept no longer.
    pub fn advance_and_sync(&mut self, now: Now, policy: Policy) -> Result<(), Failed> {
        self.advance(now, policy.timestamps);
        if let Some(sync) = self.begin_sync(now, policy.fsync) {
            let synced = sync.run();
            self.end_sync(&sync, synced, now);
        }
        match &self.failure {
            Some((what, _)) if policy.fsync == Fsync::Always => Err(Failed(what.clone())),
            _ => Ok(()),
        }
    }

    /// The sync that is due at `now`, if any. The caller runs it, and says what has come of it.
    pub fn begin_sync(&mut self, now: Now, fsync: Fsync) -> Option<Sync> {
        if self.is_waiting(now) {
            return None;
        }
        let is_due = |at: Option<u64>| at.is_none_or(|at| now.steady >= at + PERIOD);
        let is_quiet = std::mem::replace(&mut self.looked_at, self.written) == self.written;
        if is_quiet || is_due(self.marked_at) {
            self.marked_at = Some(now.steady);
            let marked = self.mark();
            self.note(marked, now);
        }
        let is_wanted = match fsync {
            Fsync::Always => true,
            Fsync::EverySecond => is_due(self.synced_at),
            Fsync::No => false,
        };
        if is_wanted { self.sync(now) } else { None }
    }

    /// Takes the result of a sync.
    pub fn end_sync(&mut self, sync: &Sync, synced: io::Result<()>, now: Now) {
        let ended = self.synced(sync, synced);
        self.note(ended, now);
    }

    /// Writes everything, and has it outlive a crash.
    ///
    /// # Errors
    /// The disk's.
    pub fn finish(&mut self, now: Now, timestamps: bool) -> io::Result<()> {
        self.write_all(now, timestamps)?;
        self.mark()?;
        self.force(now)
    }

    /// Whether what has failed is not tried again yet.
    fn is_waiting(&self, now: Now) -> bool {
        self.failure.as_ref().is_some_and(|(_, retry_at)| now.steady < *retry_at)
    }

    /// Notes what has come of an attempt.
    fn note(&mut self, done: io::Result<()>, now: Now) {
        match done {
            Err(error) => {
                if self.failure.is_none() {
                    tracing::warn!("Error writing to the AOF file: {error}");
                }
                self.failure = Some((error.to_string(), now.steady + RETRY));
            }
            Ok(()) if self.failure.is_some() && !self.needs_base() => {
                self.failure = None;
                tracing::warn!("AOF write error looks solved. The server can write again.");
            }
            Ok(()) => {}
        }
    }

    fn write_all(&mut self, now: Now, timestamps: bool) -> io::Result<()> {
        if let Some((at, db)) = self.switch_at {
            self.write_up_to(at, now, timestamps)?;
            if self.written == at {
                self.switch(db, now)?;
            }
        }
        if !self.pending.is_empty() {
            self.write_up_to(u64::MAX, now, timestamps)?;
            self.pending.shrink_to(KEPT);
        }
        Ok(())
    }

    /// Switches to the next file.
    fn switch(&mut self, db: Option<usize>, now: Now) -> io::Result<()> {
        if !self.is_torn {
            self.force(now)?;
        }
        self.switch_at = None;
        self.no_switch = self.log.switch(self.is_torn).err();
        if self.no_switch.is_none() {
            self.was_torn |= std::mem::take(&mut self.is_torn);
            self.begin_in(db);
            self.marked = None;
        }
        Ok(())
    }

    /// Says where in the stream the file ends.
    fn mark(&mut self) -> io::Result<()> {
        let Some(stream) = &self.stream else { return Ok(()) };
        if self.marked.as_ref().is_some_and(|(name, offset)| name == stream && *offset == self.written) {
            return Ok(());
        }
        self.telling.extend_from_slice(Mark { stream: stream.clone(), offset: self.written }.to_string().as_bytes());
        self.marked = Some((stream.clone(), self.written));
        self.tell()
    }

    fn tell(&mut self) -> io::Result<()> {
        if self.telling.is_empty() {
            return Ok(());
        }
        let told = self.log.append(&self.telling);
        let kept = told.as_ref().map_or_else(|partial| partial.kept, |()| self.telling.len());
        self.telling.drain(..kept);
        told.map_err(|partial| partial.error)
    }

    fn write_up_to(&mut self, end: u64, now: Now, timestamps: bool) -> io::Result<()> {
        let wanted = usize::try_from(end.saturating_sub(self.written)).unwrap_or(usize::MAX).min(self.pending.len());
        if wanted > 0 && timestamps && now.unix / 1000 > self.told {
            self.told = now.unix / 1000;
            self.telling.extend_from_slice(format!("#TS:{}\r\n", self.told).as_bytes());
        }
        self.tell()?;
        let mut done = 0;
        let mut failed = None;
        while done < wanted && failed.is_none() {
            let at = self.written + done as u64;
            if let Some(apart) = self.apart.front()
                && apart.start <= at
            {
                done = done.max(wanted.min(apart.end.saturating_sub(self.written) as usize));
                self.apart.pop_front();
                continue;
            }
            let next = self.apart.front().map_or(wanted, |apart| wanted.min((apart.start - self.written) as usize));
            let piece = done..next.min(done + PIECE);
            match self.log.append(&self.pending[piece.clone()]) {
                Ok(()) => done = piece.end,
                Err(Partial { kept, error }) => {
                    done += kept;
                    failed = Some(error);
                }
            }
        }
        if done == self.pending.len() {
            self.pending.clear();
        } else {
            self.pending.drain(..done);
        }
        self.written += done as u64;
        failed.map_or(Ok(()), Err)
    }

    /// The sync that is needed, if any. A file that could not be is not tried again: it would count for nothing.
    fn sync(&mut self, now: Now) -> Option<Sync> {
        if self.is_torn {
            return None;
        }
        self.synced_at = Some(now.steady);
        if self.log.has_unsynced() {
            return Some(Sync { file: self.log.begin_sync(), offset: self.written });
        }
        if !self.needs_base() {
            self.durable = self.written;
        }
        None
    }

    fn synced(&mut self, sync: &Sync, synced: io::Result<()>) -> io::Result<()> {
        self.is_torn |= synced.is_err();
        if !self.needs_base() {
            self.durable = sync.offset;
        }
        synced
    }

    fn force(&mut self, now: Now) -> io::Result<()> {
        match self.sync(now) {
            Some(sync) => self.synced(&sync, sync.run()),
            None if self.is_torn => Err(io::Error::other("the file could not be forced to disk before")),
            None => Ok(()),
        }
    }
}
