//! At the end.

use std::sync::Arc;
use std::{io, thread};

use crate::clients::client::{ClientShared, flag};
use crate::exec::core::Instance;
use crate::exec::gate::Still;
use crate::exec::replication::Position;
use crate::exec::snapshot::state::RETRY;
use crate::protocol::error::Error;
use crate::threads::{self, OnPanic};

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
    let _ = std::fs::remove_file(super::files::temporary(&instance.config));
}
