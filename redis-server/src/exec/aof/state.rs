//! The state of the append-only file that all threads share.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};

use super::lock::lock;
use super::waiters::Waiters;
use crate::journal::Reader;
use crate::persistence::aof::{Log, Writer};

/// An order to the keeper.
#[derive(Debug)]
pub(super) enum Order {
    /// To make a base, and to write to these files what the journal says from its cut on, if anything is kept.
    Begin(Box<Log>),
    /// To rewrite the files.
    Rewrite,
    /// The base of this rewrite has its cut.
    Cut(u64),
    /// The base in the making is whole, or will never be.
    Base(io::Result<()>),
    /// To remove what belongs to no state any more.
    RemoveHistory(Sender<()>),
    /// To write no more.
    End(Sender<()>),
    /// To end.
    Leave,
}

/// The files, and what the journal has said for them.
#[derive(Debug, Default)]
pub(super) struct Pen {
    pub(super) writer: Option<Writer>,
    /// Files that wait for the cut of their first base.
    pub(super) begun: Option<Box<Log>>,
    /// The rewrite whose cut is awaited.
    pub(super) awaits: Option<u64>,
    pub(super) journal: Option<Reader>,
    /// Room for what is taken of the journal, and for what among that is for replicas only.
    pub(super) bytes: Vec<u8>,
    pub(super) apart: Vec<Range<u64>>,
}

/// Where the base of a rewrite has its cut in the journal; and in which database, if what comes there does not say it.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) rewrite: u64,
    pub(super) offset: u64,
    pub(super) db: Option<usize>,
}

/// The condition for a reply that shows the journal up to some offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Until {
    /// Nothing: there are no files, or nothing can be written at present, so that nothing is changed either.
    Nothing,
    /// The files have that.
    Written,
    /// The disk has that.
    Durable,
}

/// The state of the append-only file that all threads share.
#[derive(Debug, Default)]
pub struct Aof {
    pub(super) is_on: AtomicBool,
    /// An [`Until`].
    pub(super) until: AtomicU8,
    /// The files have the journal up to here.
    pub(super) written: AtomicU64,
    /// The journal is on disk up to here.
    pub(super) durable: AtomicU64,
    /// Changes before this moment are on disk; in milliseconds of the steady clock.
    pub(super) durable_at: AtomicU64,
    /// Whether there are files that are written to.
    pub(super) has_writer: AtomicBool,
    /// Whether that is so long ago that replies wait for the disk.
    pub(super) is_late: AtomicBool,
    /// Held while [`Aof::until`] is decided.
    pub(super) reviewing: Mutex<()>,
    pub(super) pen: Mutex<Pen>,
    /// The cut of a base that the next writer has to heed. Held while the cut is made.
    pub(super) cut: Mutex<Option<Cut>>,
    /// Clients whose replies wait.
    pub(super) waiters: Waiters,
    pub(super) is_failing: AtomicBool,
    pub(super) failure: Mutex<String>,
    pub(super) bell: Arc<Bell>,
    /// Microseconds by which every write takes longer, so that one can see what a slow disk does.
    pub(super) delay: AtomicU64,
    pub(super) orders: Mutex<Vec<Order>>,
    pub(super) keeper: Mutex<Option<JoinHandle<()>>>,
    /// The figures of INFO.
    pub figures: Figures,
}

/// INFO's figures of the append-only file. Times are in seconds.
#[derive(Debug, Default)]
pub struct Figures {
    /// Bytes of all files, and what they were when the base was made.
    pub size: AtomicU64,
    /// See [`Figures::size`].
    pub base_size: AtomicU64,
    /// Bytes that wait to be written.
    pub buffer: AtomicU64,
    /// Whether files are being rewritten, or will be.
    pub is_rewriting: AtomicBool,
    /// See [`Figures::is_rewriting`].
    pub is_scheduled: AtomicBool,
    /// Rewrites so far, those that failed included.
    pub rewrites: AtomicU64,
    /// Failed ones since the last that did not.
    pub failures: AtomicU64,
    /// Replies that have waited under `everysec`, because the disk took too long.
    pub delayed: AtomicU64,
    /// How long the last one took, plus one; 0: there was none.
    pub last_seconds: AtomicI64,
    /// When the present one began, in seconds of Unix time.
    pub began: AtomicU64,
}

/// Wakes the keeper.
#[derive(Debug, Default)]
pub(super) struct Bell {
    pub(super) has_rung: AtomicBool,
    /// Whether it is to ring when the journal goes on.
    pub(super) is_wanted: AtomicBool,
    pub(super) thread: OnceLock<Thread>,
}

impl Bell {
    pub(super) fn ring(&self) {
        if !self.has_rung.swap(true, Release) {
            self.unpark();
        }
    }

    pub(super) fn ring_if_wanted(&self) {
        if self.is_wanted.load(Relaxed) {
            self.ring();
        }
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Aof {
    /// Whether what changes is kept.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Up to where the journal is on disk, if it is kept.
    pub fn durable(&self) -> Option<u64> {
        self.is_on().then(|| self.durable.load(Acquire))
    }

    /// Why nothing can be written at present; then nothing must be changed.
    #[inline]
    pub fn failure(&self) -> Option<String> {
        self.is_failing().then(|| lock(&self.failure).clone())
    }

    /// Whether nothing can be written at present.
    #[inline]
    pub fn is_failing(&self) -> bool {
        self.is_failing.load(Relaxed)
    }

    pub(super) fn until(&self) -> Until {
        match self.until.load(Acquire) {
            0 => Until::Nothing,
            1 => Until::Written,
            _ => Until::Durable,
        }
    }
}

impl Aof {
    /// Whether replies wait for the disk, and not for the files alone.
    #[inline]
    pub fn is_awaiting_disk(&self) -> bool {
        self.until() == Until::Durable
    }

    /// Has every write take so many microseconds longer.
    pub fn set_delay(&self, micros: u64) {
        self.delay.store(micros, Relaxed);
    }
}
