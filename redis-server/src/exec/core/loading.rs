//! The load of a server's files at its start: how far it is, and what has become of it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::exec::core::clock::now_ms;
use crate::process::Supervisor;

/// Seconds between two lines in the log that say how far a load is.
const TOLD_EVERY: u64 = 5;

/// How far a load is, and what has become of it. A server that has nothing to load is ready from the beginning.
#[derive(Debug, Default)]
pub struct Loading {
    /// When it began, and when the log was told last, in seconds of Unix time.
    began: AtomicU64,
    told: AtomicU64,
    /// Bytes of all files, and of those that are loaded.
    total: AtomicU64,
    loaded: AtomicU64,
    /// The memory of the server that wrote the snapshot.
    memory: AtomicU64,
    /// Whether another server's snapshot is loaded beside the data, which is served meanwhile.
    is_aside: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Ready,
    Loads,
    /// The server ends: nothing more is loaded.
    Ends,
    Failed(String),
}

/// Why a server has not become ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// It was told to end before.
    Ends,
    /// Its files cannot be loaded, for this reason. It must end, and never write any.
    Failed(String),
}

impl std::fmt::Display for NotReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ends => f.write_str("the server ends before its data is loaded"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotReady {}

/// How far a load is. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// When it began, since 1970.
    pub began: u64,
    /// Bytes to be loaded.
    pub total: u64,
    /// Those that are.
    pub loaded: u64,
    /// The memory of the server that wrote the snapshot, in bytes.
    pub memory: u64,
    /// How long it will take, if it goes on like this.
    pub left: u64,
}

impl Progress {
    /// How much is loaded.
    pub fn percent(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.loaded as f64 * 100.0 / self.total as f64 }
    }
}

impl Loading {
    /// Waits until the server has loaded what it is to have: from then on it answers. Clients are told LOADING before.
    ///
    /// # Errors
    /// [`NotReady`].
    pub fn wait(&self) -> Result<(), NotReady> {
        let mut state = self.state();
        loop {
            state = match &*state {
                State::Ready => return Ok(()),
                State::Ends => return Err(NotReady::Ends),
                State::Failed(why) => return Err(NotReady::Failed(why.clone())),
                State::Loads => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// A load begins.
    pub(crate) fn begin(&self) {
        self.begin_again(0);
        *self.state() = State::Loads;
    }

    /// Begins a load of so many bytes on a server that was ready before: a replica gets a snapshot.
    pub(crate) fn begin_again(&self, bytes: u64) {
        let now = now_ms() / 1000;
        self.began.store(now, Relaxed);
        self.told.store(now, Relaxed);
        self.memory.store(0, Relaxed);
        self.expect(bytes);
    }

    /// Whether another server's snapshot is loaded beside the data, which is served meanwhile (`repl-diskless-load swapdb`).
    pub fn is_aside(&self) -> bool {
        self.is_aside.load(Relaxed)
    }

    /// It is from now on, or no longer.
    pub(crate) fn set_aside(&self, on: bool) {
        self.is_aside.store(on, Relaxed);
    }

    /// Ends a load, and tells the threads that wait for it.
    pub(crate) fn end(&self, result: Result<(), String>) {
        let mut state = self.state();
        if matches!(*state, State::Loads) {
            *state = result.map_or_else(State::Failed, |()| State::Ready);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Stops the load because the server ends, and ends all waits for it.
    pub(crate) fn give_up(&self) {
        let mut state = self.state();
        if matches!(*state, State::Loads) {
            *state = State::Ends;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// So many bytes are to be loaded.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.store(bytes, Relaxed);
        self.loaded.store(0, Relaxed);
    }

    /// Notes the memory of the server that wrote the snapshot.
    pub(crate) fn note_memory(&self, bytes: u64) {
        self.memory.store(bytes, Relaxed);
    }

    /// So many bytes more are loaded. The log is told now and then.
    pub(crate) fn advance(&self, bytes: u64) {
        self.loaded.fetch_add(bytes, Relaxed);
    }

    /// Tells the log and the service manager how far it is, now and then.
    pub(crate) fn tell(&self, supervisor: Option<&Supervisor>) {
        let (now, told) = (now_ms() / 1000, self.told.load(Relaxed));
        if now >= told + TOLD_EVERY && self.told.compare_exchange(told, now, Relaxed, Relaxed).is_ok() {
            let progress = self.progress();
            tracing::info!("Loading DB in memory: {:.2}%, {} s to go", progress.percent(), progress.left);
            if let Some(supervisor) = supervisor {
                supervisor.loading(progress.percent());
            }
        }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let figure = |figure: &AtomicU64| figure.load(Relaxed);
        let (began, total, loaded) = (figure(&self.began), figure(&self.total), figure(&self.loaded));
        let elapsed = (now_ms() / 1000).saturating_sub(began);
        // As the genuine server has it: a second, where nothing is known yet.
        let left = if elapsed == 0 { 1 } else { elapsed * total.saturating_sub(loaded) / (loaded + 1) };
        Progress { began, total, loaded, memory: figure(&self.memory), left }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
