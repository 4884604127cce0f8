//! Snapshots that are begun for the snapshot file: by BGSAVE, by a save point, or later because something was in the way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::background::{self, Job};
use super::encoder::Format;
use super::files::folder;
use super::save;
use super::state::{Occupied, Purpose};
use super::target::Target;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::gate::Still;
use crate::persistence::SnapshotFile;

/// Seconds between a snapshot that has failed and the next that a save point asks for.
const RETRY_SECONDS: u64 = 5;

impl Target for SnapshotFile {
    fn commit(self: Box<Self>) -> io::Result<()> {
        Self::commit(*self)
    }
}

/// Begins a snapshot of this moment.
///
/// # Errors
/// There is one in the making.
pub fn begin_now(instance: &Arc<Instance>, still: &Still) -> Result<(), Occupied> {
    background::start_now(instance, job(instance), still)
}

/// Begins a snapshot if one is scheduled, or if a save point of a server that saves of its own accord is reached.
pub fn begin_if_due(instance: &Arc<Instance>) {
    let status = &instance.snapshots;
    if instance.background.running().is_some() {
        return;
    }
    let is_due = status.take_scheduled() || status.is_automatic() && has_reached_save_point(instance);
    if is_due && background::start(instance, job(instance)).is_err() {
        status.schedule();
    }
}

fn has_reached_save_point(instance: &Instance) -> bool {
    let (status, now) = (&instance.snapshots, now_ms() / 1000);
    let changes = status.unsaved(instance.changes());
    if changes == 0 || status.has_failed() && now.saturating_sub(status.tried_at()) <= RETRY_SECONDS {
        return false;
    }
    let age = now.saturating_sub(status.saved_at());
    let reached = instance.config.save_points().into_iter().find(|it| changes >= it.changes && age > it.seconds);
    if let Some(point) = &reached {
        tracing::info!("{} changes in {} seconds. Saving...", point.changes, point.seconds);
    }
    reached.is_some()
}

/// The job that writes the snapshot file.
pub fn job(instance: &Instance) -> Job {
    let create = move |instance: &Instance| {
        let thread = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let number = instance.background.stand_in().unwrap_or_else(thread);
        let temporary = folder(&instance.config).join(format!("temp-{number}.rdb"));
        Ok(Box::new(save::create(&instance.config, &temporary)?) as Box<dyn Target>)
    };
    let (changes, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let at_the_cut = Arc::clone(&changes);
    instance.snapshots.tries(now_ms() / 1000);
    Job {
        purpose: Purpose::Snapshot,
        format: Format::Rdb,
        create: Box::new(create),
        at_cut: Box::new(move |instance, _| {
            at_the_cut.store(instance.changes(), Relaxed);
            tracing::info!("Background saving started");
        }),
        record: Box::new(move |instance, written| {
            let status = &instance.snapshots;
            match written {
                Ok(()) => {
                    status.saved(now_ms() / 1000, changes.load(Relaxed));
                    status.took(began.elapsed().as_secs());
                    tracing::info!("Background saving terminated with success");
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    tracing::warn!("Background saving was ended before its time");
                }
                Err(error) => {
                    status.failed();
                    status.took(began.elapsed().as_secs());
                    tracing::warn!("Background saving error: {error}");
                }
            }
        }),
        ended: Box::new(|_, _| {}),
    }
}

/// A client has emptied all databases. A snapshot in the making is of no use any more, and the file's data must not come back: returns
/// whether the file is to be written anew, at once.
pub fn flushed(instance: &Instance) -> bool {
    instance.background.abort(Purpose::Snapshot);
    instance.background.abort(Purpose::Replicas);
    instance.snapshots.is_automatic() && !instance.config.save_points().is_empty()
}
