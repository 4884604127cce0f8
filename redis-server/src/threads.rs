//! The server's threads, and the end of each in a panic.
//!
//! Each thread of redis-server but the workers, which server-runtime starts, begins by [`spawn`], and so says what a panic ends. `DEBUG PANIC
//! thread` has a thread panic at its next [`panic_point`]; the tests do that to every one of [`NAMES`].

use std::io;
#[cfg(feature = "search")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};
#[cfg(feature = "search")]
use std::time::Duration;

/// The work of the thread `search` that removes what deleted documents have left in an index.
pub(crate) const COMPACTION: &str = "search-compaction";

/// The names of all threads that have a [`panic_point`], and of work that has one of its own ([`panic_point_of`]).
pub(crate) const NAMES: [&str; 19] = [
    "aof",
    "cluster",
    "cluster-file",
    "cluster-role",
    "crash-report",
    "failover",
    "load",
    "reaper",
    "replica",
    "search",
    COMPACTION,
    "shutdown",
    "slots-gone",
    "slots-in",
    "slots-out",
    "slow-calls",
    "snapshot",
    "snapshot-file",
    "stand-in",
];

/// The time before work that has panicked begins again: the cause may well be there still.
#[cfg(feature = "search")]
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The consequence of a panic that leaves the work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnPanic {
    /// Ends the process: others rely on the thread, or nobody knows in which state it leaves what it works on.
    EndProcess,
    /// Logs it. A waiting thread sees the end.
    Report,
}

/// Starts a thread of this name.
///
/// # Errors
/// The system has no further thread.
pub(crate) fn spawn(
    name: &'static str,
    on_panic: OnPanic,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    builder(name).spawn(move || {
        let _vital = (on_panic == OnPanic::EndProcess).then_some(Vital(name));
        let _reported = (on_panic == OnPanic::Report).then_some(Reported(name));
        work();
    })
}

/// Starts a thread of this name in a scope, whose owner sees a panic when it joins.
///
/// # Errors
/// As [`spawn`].
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    builder(name).spawn_scoped(scope, work)
}

fn builder(name: &'static str) -> thread::Builder {
    debug_assert!(NAMES.contains(&name), "{name} is missing in NAMES");
    thread::Builder::new().name(name.to_owned())
}

/// [`spawn`] of work that begins again a second after a panic.
///
/// # Errors
/// As [`spawn`].
#[cfg(feature = "search")]
pub(crate) fn spawn_again(name: &'static str, mut work: impl FnMut() + Send + 'static) -> io::Result<JoinHandle<()>> {
    spawn(name, OnPanic::EndProcess, move || {
        while catch_unwind(AssertUnwindSafe(&mut work)).is_err() {
            tracing::error!("a panic in the thread {name}: its work begins again");
            thread::sleep(RESTART_DELAY);
        }
    })
}

/// Ends the process if a panic leaves the scope that holds it: the named work would be half done, or done no more, and others rely on it.
pub(crate) struct Vital(pub(crate) &'static str);

impl Drop for Vital {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("a panic in {}: the process ends", self.0);
            std::process::abort();
        }
    }
}

struct Reported(&'static str);

impl Drop for Reported {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("a panic in the thread {}: it ends", self.0);
        }
    }
}

/// Whether a thread is to panic.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// The name of the thread.
static ASKED: Mutex<String> = Mutex::new(String::new());

/// Has the next thread of this name that reaches its [`panic_point`] panic, for `DEBUG PANIC`. An empty name takes that back.
pub(crate) fn ask_for_panic(name: &str) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    name.clone_into(&mut asked);
    IS_ASKED.store(!name.is_empty(), Relaxed);
}

/// A place at which this thread panics if it is asked to.
#[inline]
pub(crate) fn panic_point() {
    if IS_ASKED.load(Relaxed) {
        panic_if_meant(thread::current().name());
    }
}

/// A place at which named work panics if it is asked to. On the way there its thread passes other points.
#[cfg(feature = "search")]
pub(crate) fn panic_point_of(work: &str) {
    if IS_ASKED.load(Relaxed) {
        panic_if_meant(Some(work));
    }
}

#[cold]
fn panic_if_meant(here: Option<&str>) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if here == Some(asked.as_str()) {
        IS_ASKED.store(false, Relaxed);
        let name = std::mem::take(&mut *asked);
        drop(asked);
        panic!("DEBUG PANIC asked the thread {name} to panic");
    }
}
