//! FAILOVER (<https://redis.io/docs/latest/commands/failover/>): a primary hands its place over to a replica, and nothing that was
//! answered is lost.
//!
//! ```text
//! no-failover ─▶ waiting-for-sync: writes wait, until the replica has all ─▶ failover-in-progress: this server follows it ─▶ no-failover
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::state::{Failover, FailoverStage, Replication, Stage};
use crate::clients::client::flag;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::gate::{Still, stand_still};
use crate::protocol::error::Error;
use crate::threads::{self, OnPanic};

/// How long it waits between two looks at what replicas have said.
const NAP: Duration = Duration::from_millis(2);

/// The arguments of FAILOVER.
#[derive(Clone, Debug, Default)]
pub struct FailoverRequest {
    /// The replica's address and port; none: the first that has everything.
    pub target: Option<(String, u16)>,
    /// Whether it takes over at the end of the time, too, whatever it has not got.
    pub force: bool,
    /// How long writes may wait for it.
    pub timeout: Option<Duration>,
}

impl Replication {
    /// Begins to hand this primary's place over.
    ///
    /// # Errors
    /// There is one already, or no such replica.
    pub fn begin_failover(&self, instance: &Arc<Instance>, request: FailoverRequest) -> Result<(), Error> {
        let mut state = self.state();
        if state.failover.stage != FailoverStage::None {
            return Err(Error::Static("ERR FAILOVER already in progress."));
        }
        if state.primary.is_some() {
            return Err(Error::Static("ERR FAILOVER is not valid when server is a replica."));
        }
        if state.replicas.is_empty() {
            return Err(Error::Static("ERR FAILOVER requires connected replicas."));
        }
        if request.force && (request.timeout.is_none() || request.target.is_none()) {
            return Err(Error::Static(
                "ERR FAILOVER with force option requires both a timeout and target HOST and IP.",
            ));
        }
        if let Some(target) = &request.target {
            let replica = state.replicas.values().find(|replica| replica.is_at(target));
            let unknown = Error::Static("ERR FAILOVER target HOST and PORT is not a replica.");
            if replica.ok_or(unknown)?.stage() != Stage::Online {
                return Err(Error::Static("ERR FAILOVER target replica is not online."));
            }
        }
        let number = state.failover.number + 1;
        let work = Work { instance: Arc::clone(instance), number, began: Instant::now(), request: request.clone() };
        let spawned = threads::spawn("failover", OnPanic::EndProcess, move || work.run_or_abort());
        spawned.map_err(|error| Error::Message(format!("ERR there is no thread for a failover: {error}")))?;
        match &request.target {
            Some((host, port)) => tracing::info!("FAILOVER requested to {host}:{port}."),
            None => tracing::info!("FAILOVER requested."),
        }
        state.failover = Failover { stage: FailoverStage::WaitsForSync, number, target: request.target };
        instance.hold_writes();
        Ok(())
    }

    /// Ends a failover where it is: this server is the primary. Whether there was one.
    pub fn abort_failover(&self, instance: &Arc<Instance>, why: &str, still: &Still) -> bool {
        let Some((stage, target)) = self.end_failover() else { return false };
        let target = target.map_or_else(String::new, |(host, port)| format!(" to {host}:{port}"));
        tracing::info!("Aborting failover{target} while in {}: {why}", stage.name());
        if stage == FailoverStage::InProgress {
            self.turn_to(instance, None, still);
        }
        instance.release_writes();
        true
    }

    /// The replica is the primary now.
    pub(super) fn failover_succeeded(&self, instance: &Instance) {
        if self.end_failover().is_some() {
            instance.release_writes();
        }
    }

    /// Follows another server from now on, or none. Tells clients that wait for keys, and the configuration.
    pub fn turn_to(&self, instance: &Arc<Instance>, target: Option<(String, u16)>, still: &Still) {
        if !instance.cluster.is_enabled() {
            let words = target.as_ref().map_or_else(String::new, |(host, port)| format!("{host} {port}"));
            instance.config.note(settings::REPLICAOF, &words);
        }
        if let Some((host, port)) = &target
            && !self.is_replica()
        {
            let unblocked = Error::Static(
                "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
            );
            for client in instance.clients() {
                let blocked = client.blocked().clone();
                let is_sent = client.has_flag(flag::REDIRECTS) && !instance.cluster.is_enabled();
                let error = if is_sent { &Error::redirect(host, *port) } else { &unblocked };
                // One that has just been answered waits no longer.
                let _ = blocked.is_some_and(|blocked| blocked.fail(error));
            }
        }
        self.follow(instance, target, still);
    }
}

/// One failover, on a thread of its own.
struct Work {
    instance: Arc<Instance>,
    number: u64,
    began: Instant,
    request: FailoverRequest,
}

impl Work {
    /// A panic aborts the failover, unless another has begun: clients that wait to write would wait for ever.
    fn run_or_abort(&self) {
        let replication = &self.instance.replication;
        let is_last = || replication.state().failover.number == self.number;
        if catch_unwind(AssertUnwindSafe(|| self.run())).is_err()
            && let Ok(still) = self.instance.stand_still()
            && is_last()
        {
            replication.abort_failover(&self.instance, "A panic, see the log", &still);
        }
    }

    fn run(&self) {
        threads::panic_point();
        let replication = &self.instance.replication;
        while self.is_wanted() {
            if self.is_late() {
                match &self.request.target {
                    Some(target) if self.request.force => {
                        tracing::info!("Failover to {}:{} time out exceeded, failing over.", target.0, target.1);
                        self.hand_over(target.clone(), None);
                    }
                    _ => {
                        if let Ok(still) = self.instance.stand_still() {
                            let why = "Replica never caught up before timeout";
                            replication.abort_failover(&self.instance, why, &still);
                        }
                    }
                }
                return;
            }
            // Windows that began before writes were held are over then.
            let Ok(still) = stand_still(&self.instance.exclusive, || self.check(true)) else { continue };
            let synced_at = self.instance.journal.offset();
            drop(still);
            let end = self.instance.journal.tell_replicas(&[b"REPLCONF", b"GETACK", b"*"]);
            if let Some(target) = self.wait(synced_at, end)
                && self.hand_over(target, Some(end))
            {
                return;
            }
        }
    }

    /// Waits until the replica has what stands in front of `synced_at`; `None` if something has come behind `end`, or it has taken too long.
    fn wait(&self, synced_at: u64, end: u64) -> Option<(String, u16)> {
        while self.check(true).is_ok() && self.instance.journal.offset() == end {
            let replicas = self.instance.replication.replicas();
            let is_meant = |replica: &super::state::Replica| match &self.request.target {
                Some(target) => replica.is_at(target),
                None => true,
            };
            let synced = replicas
                .iter()
                .find(|replica| is_meant(replica) && replica.is_online() && replica.acknowledged() >= synced_at);
            if let Some(replica) = synced {
                let meant = self.request.target.clone();
                return Some(meant.unwrap_or_else(|| (replica.address(), replica.follower.port)));
            }
            thread::sleep(NAP);
        }
        None
    }

    /// Follows the replica, unless something has come behind `end` that it has not got.
    fn hand_over(&self, target: (String, u16), end: Option<u64>) -> bool {
        let replication = &self.instance.replication;
        let Ok(still) = stand_still(&self.instance.exclusive, || self.check(end.is_some())) else { return false };
        if end.is_some_and(|end| end != self.instance.journal.offset()) {
            return false;
        }
        let mut state = replication.state();
        if state.failover.number != self.number || state.failover.stage != FailoverStage::WaitsForSync {
            return false;
        }
        state.failover.stage = FailoverStage::InProgress;
        state.failover.target = Some(target.clone());
        drop(state);
        if end.is_some() {
            tracing::info!("Failover target {}:{} is synced, failing over.", target.0, target.1);
        }
        replication.turn_to(&self.instance, Some(target), &still);
        true
    }

    fn is_wanted(&self) -> bool {
        let state = self.instance.replication.state();
        let failover = &state.failover;
        failover.number == self.number && failover.stage == FailoverStage::WaitsForSync && !self.instance.is_ending()
    }

    fn is_late(&self) -> bool {
        self.request.timeout.is_some_and(|timeout| self.began.elapsed() >= timeout)
    }

    fn check(&self, is_timed: bool) -> io::Result<()> {
        if !self.is_wanted() || is_timed && self.is_late() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}
