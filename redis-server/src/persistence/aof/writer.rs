//! What is written and forced to disk when.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;

use super::log::{Log, Partial};

/// How long after a failure it is tried again, in milliseconds.
const RETRY: u64 = 1000;
/// How often `everysec` forces to disk, in milliseconds: so often that a disk which hangs for a second stays within the two that are promised.
const PERIOD: u64 = 900;
/// Bytes that are written at once: what a failure cuts off again at most.
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
    /// What such a line says.
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
    synced_at: u64,
    /// What fails, and when it is tried again.
    failure: Option<(String, u64)>,
    /// The time that the file has told last, in seconds, and what it has still to say of it.
    told: u64,
    telling: Vec<u8>,
    /// Why there is no next file, where one was wanted.
    no_switch: Option<io::Error>,
    /// What the stream is called, if others may go on with it.
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
            synced_at: 0,
            failure: None,
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

    /// What cannot be done at present, if anything: the data is safe no longer.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|(what, _)| what.as_str())
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

    /// What stands in the stream from `offset` on goes to the next file; in this database, if it does not say so itself.
    pub fn switch_at(&mut self, offset: u64, db: Option<usize>) {
        self.switch_at = Some((offset, db));
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

    /// Does what is to be done at `now`, in milliseconds. Where a failure has to wait, nothing.
    ///
    /// # Errors
    /// The disk's, under [`Fsync::Always`]: it can be kept no longer.
    pub fn advance(&mut self, now: u64, policy: Policy) -> Result<(), Failed> {
        if self.failure.as_ref().is_some_and(|(_, retry_at)| now < *retry_at) {
            return Ok(());
        }
        let done = self.write(now, policy).and_then(|()| self.sync(now, policy.fsync));
        match done {
            Ok(()) => {
                if self.failure.take().is_some() {
                    tracing::warn!("AOF write error looks solved. The server can write again.");
                }
                Ok(())
            }
            Err(error) if policy.fsync == Fsync::Always => Err(Failed(error.to_string())),
            Err(error) => {
                if self.failure.is_none() {
                    tracing::warn!("Error writing to the AOF file: {error}");
                }
                self.failure = Some((error.to_string(), now + RETRY));
                Ok(())
            }
        }
    }

    /// Writes everything, and has it outlive a crash.
    ///
    /// # Errors
    /// The disk's.
    pub fn finish(&mut self, now: u64, policy: Policy) -> io::Result<()> {
        self.write(now, policy)?;
        self.force(now)
    }

    fn write(&mut self, now: u64, policy: Policy) -> io::Result<()> {
        if let Some((at, db)) = self.switch_at {
            self.write_up_to(at, now, policy)?;
            if self.written == at {
                self.force(now)?;
                self.switch_at = None;
                self.no_switch = self.log.switch().err();
                if self.no_switch.is_none() {
                    self.begin_in(db);
                    self.marked = None;
                }
            }
        }
        if !self.pending.is_empty() {
            self.write_up_to(u64::MAX, now, policy)?;
            self.pending.shrink_to(KEPT);
        }
        self.mark()
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

    fn write_up_to(&mut self, end: u64, now: u64, policy: Policy) -> io::Result<()> {
        let wanted = usize::try_from(end - self.written).unwrap_or(usize::MAX).min(self.pending.len());
        if wanted > 0 && policy.timestamps && now / 1000 > self.told {
            self.told = now / 1000;
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

    fn sync(&mut self, now: u64, fsync: Fsync) -> io::Result<()> {
        let is_due = match fsync {
            Fsync::Always => true,
            Fsync::EverySecond => now >= self.synced_at + PERIOD || now < self.synced_at,
            Fsync::No => false,
        };
        if is_due { self.force(now) } else { Ok(()) }
    }

    fn force(&mut self, now: u64) -> io::Result<()> {
        if self.log.has_unsynced() {
            self.log.sync()?;
        }
        // Not where that fails: it is due again as soon as it is tried.
        self.synced_at = now;
        self.durable = self.written;
        Ok(())
    }
}
