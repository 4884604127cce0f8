//! At the end.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::exec::exclusive::Exclusive;
use crate::exec::instance::Instance;

/// How long who wants to be alone waits between two tries.
const RETRY: Duration = Duration::from_millis(5);

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
    /// At once: all is saved, and nobody changes anything any more.
    Saved,
    /// As it likes: nothing was to be saved.
    Unsaved,
}

impl SaveAtEnd {
    /// Whether this instance has something to do.
    pub fn is_due(self, instance: &Instance) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Configured => instance.snapshots.is_automatic() && !instance.config.save_points().is_empty(),
        }
    }
}

/// Saves what is to be saved before the server ends; behind that nobody changes anything any more. Waits until it is alone
/// with the data. With `force` it is ready even if the save has failed.
///
/// # Errors
/// Nothing could be saved: the server goes on.
pub fn prepare_shutdown(instance: &Arc<Instance>, save: SaveAtEnd, force: bool) -> io::Result<Leave> {
    if !save.is_due(instance) {
        return Ok(Leave::Unsaved);
    }
    let alone = loop {
        match Exclusive::stop(instance) {
            Ok(alone) => break alone,
            Err(_) => thread::sleep(RETRY),
        }
    };
    let saved = save_at_end(instance, force);
    drop(alone);
    saved
}

/// [`prepare_shutdown`] for who is alone with the data already.
///
/// # Errors
/// As there.
pub fn save_at_end(instance: &Instance, force: bool) -> io::Result<Leave> {
    tracing::info!("Saving the final RDB snapshot before exiting.");
    if let Err(error) = super::save(instance) {
        if !force {
            tracing::warn!("Error trying to save the DB, can't exit.");
            return Err(error);
        }
        tracing::warn!("Error trying to save the DB, but FORCE was given: exiting anyway.");
    }
    instance.exclusive.close();
    Ok(Leave::Saved)
}
