//! Before the server ends: replicas get what they have not got yet.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{io, thread};

use super::Replication;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::gate::stand_still;

/// How long it waits between two looks at what replicas have said.
const NAP: Duration = Duration::from_millis(2);

impl Replication {
    /// Holds writes and waits until all replicas have the stream, at most for `shutdown-timeout`. Whether writes are held from
    /// now on: they are, if there are replicas.
    ///
    /// # Errors
    /// The wish to end was taken back; writes go on.
    pub fn take_leave(&self, instance: &Arc<Instance>) -> io::Result<bool> {
        let timeout = instance.config.uint(settings::SHUTDOWN_TIMEOUT) * 1000;
        if self.replicas().is_empty() || timeout == 0 {
            return Ok(false);
        }
        let until = now_ms() + timeout;
        instance.hold_writes();
        instance.ending.begin(until);
        let waited = self.wait_for_all(instance, until);
        if !instance.ending.take_back() {
            instance.release_writes();
            return Err(io::ErrorKind::Interrupted.into());
        }
        let (mut replicas, offset) = (self.replicas(), instance.journal.offset());
        replicas.retain(|replica| !replica.follower.wants_snapshot_only);
        let is_lagging = |offset: u64| replicas.iter().filter(move |replica| replica.acknowledged() < offset);
        for replica in is_lagging(waited.unwrap_or(offset)) {
            tracing::warn!(
                "Lagging replica {}:{} reported offset {} behind master, lag={}, state={}.",
                replica.address(),
                replica.follower.port,
                offset.saturating_sub(replica.acknowledged()),
                replica.lag(now_ms()),
                replica.stage().name()
            );
        }
        let lagging = is_lagging(waited.unwrap_or(offset)).count();
        if !replicas.is_empty() {
            let all = replicas.len();
            tracing::info!("{} of {all} replicas are in sync when shutting down.", all - lagging);
        }
        Ok(true)
    }

    /// Waits until all have what is there, or the time is over. Returns the end of what is there; `None` if a script kept it from
    /// being known.
    fn wait_for_all(&self, instance: &Arc<Instance>, until: u64) -> Option<u64> {
        let goes_on = || instance.ending.is_wanted() && now_ms() < until;
        let check = || if goes_on() { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) };
        // Windows that began before writes were held are over then.
        let still = stand_still(&instance.exclusive, check).ok()?;
        let end = instance.journal.offset();
        drop(still);
        let all_have = || {
            let lags = |replica: &super::state::Replica| {
                !replica.follower.wants_snapshot_only && replica.acknowledged.load(Relaxed) < end
            };
            !self.replicas().iter().any(|replica| lags(replica))
        };
        if all_have() {
            return Some(end);
        }
        tracing::info!("Waiting for replicas before shutting down.");
        instance.journal.tell_replicas(&[b"REPLCONF", b"GETACK", b"*"]);
        while !all_have() && goes_on() {
            thread::sleep(NAP);
        }
        Some(end)
    }
}
