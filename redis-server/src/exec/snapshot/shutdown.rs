//! At the end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use crate::clients::client::{ClientShared, flag};
use crate::exec::gate::Still;
use crate::exec::instance::Instance;
use crate::exec::replication::Position;
use crate::protocol::error::Error;
use crate::threads::{self, OnPanic};

/// The time between two tries to be alone with the data.
const RETRY: Duration = Duration::from_millis(5);

/// The wish to end, which can be held up and taken back.
#[derive(Debug, Default)]
pub struct Ending {
    is_wanted: AtomicBool,
    is_held: AtomicBool,
    /// Until when replicas are waited for, in milliseconds of Unix time; 0: they are not.
    until: AtomicU64,
}

impl Ending {
    /// Whether signals have to wait (`DEBUG PAUSE-CRON`).
    pub fn hold(&self, on: bool) {
        self.is_held.store(on, SeqCst);
    }

    /// A signal wants the server to end; waits as long as that is held up. Whether it was not taken back.
    pub fn wait(&self) -> bool {
        self.is_wanted.store(true, SeqCst);
        while self.is_held.load(SeqCst) && self.is_wanted.load(SeqCst) {
            thread::sleep(RETRY);
        }
        self.is_wanted.swap(false, SeqCst)
    }

    /// Replicas are waited for, until then, in milliseconds of Unix time.
    pub(crate) fn begin(&self, until: u64) {
        self.until.store(until, SeqCst);
        self.is_wanted.store(true, SeqCst);
    }

    /// Whether the server is to end, and can still go on.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(SeqCst)
    }

    /// Until when replicas are waited for, in milliseconds of Unix time.
    pub fn until(&self) -> Option<u64> {
        let until = self.until.load(SeqCst);
        (until > 0 && self.is_wanted()).then_some(until)
    }

    /// Takes the wish back; whether there was one.
    pub fn take_back(&self) -> bool {
        let was_wanted = self.is_wanted.swap(false, SeqCst);
        self.until.store(0, SeqCst);
        was_wanted
    }
}

/// Whether the data is saved when the server ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveAtEnd {
    /// If there are save points.
    #[default]
    Configured,
    /// It is.
    Always,
    /// It is not.
    Never,
}

/// How the server may end now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// At once: all is saved, and no change follows.
    Saved,
    /// As it likes: nothing was to be saved.
    Unsaved,
}

impl SaveAtEnd {
    /// Whether this instance has something to do.
    pub fn is_due(self, instance: &Instance) -> bool {
        match self {
            // The file has more than what is here.
            _ if instance.exclusive.is_loading() => false,
            Self::Always => true,
            Self::Never => false,
            Self::Configured => instance.snapshots.is_automatic() && !instance.config.save_points().is_empty(),
        }
    }
}

/// How the server is to end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shutdown {
    /// Whether its data is saved.
    pub save: SaveAtEnd,
    /// Whether it ends even if that fails.
    pub force: bool,
    /// Whether it waits for no replica.
    pub now: bool,
}

/// Waits for replicas, and saves what is to be saved before the server ends; behind that no change follows. Waits until it is alone with
/// the data. With `force` it is ready even if the save has failed.
///
/// # Errors
/// Nothing could be saved, or the wish to end was taken back: the server goes on.
pub fn prepare_shutdown(instance: &Arc<Instance>, shutdown: Shutdown) -> io::Result<Leave> {
    let prepared = prepare(instance, shutdown);
    if let Some(supervisor) = instance.supervisor() {
        match &prepared {
            // Not before: systemd takes no word of this back.
            Ok(_) => supervisor.stopping(),
            Err(error) => supervisor.status(&format!("Error trying to save the DB, can't exit: {error}")),
        }
    }
    prepared
}

fn prepare(instance: &Arc<Instance>, shutdown: Shutdown) -> io::Result<Leave> {
    let holds = !shutdown.now && instance.replication.take_leave(instance)?;
    instance.background.abort_and_wait();
    if !shutdown.save.is_due(instance) {
        return Ok(if holds { Leave::Saved } else { Leave::Unsaved });
    }
    let still = loop {
        if let Ok(still) = Still::stop(&instance.exclusive) {
            break still;
        }
        thread::sleep(RETRY);
    };
    let position = instance.replication.position(instance, &still);
    let saved = save_at_end(instance, shutdown.force, position);
    drop(still);
    if holds && saved.is_err() {
        instance.release_writes();
    }
    saved
}

/// [`prepare_shutdown`] on a thread of its own, for a client that waits, and is told if the server goes on.
///
/// # Errors
/// There is no thread.
pub fn shut_down(instance: &Arc<Instance>, shutdown: Shutdown, client: &Arc<ClientShared>) -> io::Result<()> {
    let (instance, client) = (Arc::clone(instance), Arc::clone(client));
    let prepare = move |instance: &Arc<Instance>| {
        threads::panic_point();
        prepare_shutdown(instance, shutdown)
    };
    let work = move || match prepare(&instance) {
        // Every command has run to its end; idle connections have nothing to wait for.
        Ok(_) => instance.runtime().expect("a server that has none is not asked to end").abort(),
        Err(_) => {
            let goes_on = || {
                let blocked = client.blocked().clone();
                blocked.is_some_and(|blocked| blocked.fail(&GOES_ON)) || client.has_flag(flag::GONE)
            };
            // It may be about to wait.
            for _ in 0..TRIES {
                if goes_on() {
                    break;
                }
                thread::sleep(RETRY);
            }
        }
    };
    // A server that was asked to end must not stay half ended.
    threads::spawn("shutdown", OnPanic::EndProcess, work).map(drop)
}

/// The error text of a shutdown that fails.
pub const GOES_ON: Error = Error::Static("ERR Errors trying to SHUTDOWN. Check logs.");
/// How often it looks whether the client to be told waits already.
const TRIES: usize = 200;

fn save_at_end(instance: &Instance, force: bool, position: Option<Position>) -> io::Result<Leave> {
    tracing::info!("Saving the final RDB snapshot before exiting.");
    if let Some(supervisor) = instance.supervisor() {
        supervisor.status("Saving the final RDB snapshot");
    }
    if let Err(error) = super::save::save(instance, position) {
        if !force {
            tracing::warn!("Error trying to save the DB, can't exit.");
            return Err(error);
        }
        tracing::warn!("Error trying to save the DB, but FORCE was given: exiting anyway.");
    }
    instance.exclusive.close();
    Ok(Leave::Saved)
}

/// The process ends at once: removes what it has written of a snapshot on its own thread.
pub fn forget_temporary(instance: &Instance) {
    // There may be none.
    let _ = std::fs::remove_file(super::temporary(&instance.config));
}
