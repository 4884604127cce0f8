//! This node's machine: it is told what happens, and what it wants done is done here, or by the bus's thread.

use std::hash::BuildHasher as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::quality::RandomState;

use super::file::NodesFile;
use super::{Cluster, clients};
use crate::cluster::moves::Order;
use crate::cluster::{Action, Facts, Level, Machine, Millis, PrimaryLink, SLOTS, Settings, SlotSet};
use crate::config::{Config, settings};
use crate::exec::cluster::bus_port;
use crate::exec::cluster::state::lock;
use crate::exec::core::Instance;
use crate::exec::replication::LinkStage;
use crate::protocol::error::Error;
use crate::threads::Vital;

/// A node's settings, from its configuration.
pub fn settings_of(config: &Config) -> Settings {
    let port = |setting| u16::try_from(config.int(setting)).unwrap_or(0);
    let or = |first: u16, second: u16| if first == 0 { second } else { first };
    let (plain, tls_port) = (port(settings::PORT), port(settings::TLS_PORT));
    let tls = config.is_on(settings::TLS_CLUSTER);
    Settings {
        node_timeout: config.uint(settings::CLUSTER_NODE_TIMEOUT),
        replica_validity_factor: config.uint(settings::CLUSTER_REPLICA_VALIDITY_FACTOR),
        replica_ping_period: config.uint(settings::REPL_PING_REPLICA_PERIOD) * 1000,
        migration_barrier: config.size(settings::CLUSTER_MIGRATION_BARRIER),
        allow_replica_migration: config.is_on(settings::CLUSTER_ALLOW_REPLICA_MIGRATION),
        require_full_coverage: config.is_on(settings::CLUSTER_REQUIRE_FULL_COVERAGE),
        replica_no_failover: config.is_on(settings::CLUSTER_REPLICA_NO_FAILOVER),
        manual_failover_timeout: config.uint(settings::CLUSTER_MANUAL_FAILOVER_TIMEOUT),
        max_failover_repl_bytes: u64::try_from(config.int(settings::SLOT_MIGRATION_MAX_FAILOVER_REPL_BYTES)).ok(),
        migration_log_max_len: config.size(settings::CLUSTER_SLOT_MIGRATION_LOG_MAX_LEN),
        repl_timeout: config.uint(settings::REPL_TIMEOUT) * 1000,
        replica_buffer_limit: config.output_limits()[1].hard,
        tls,
        port: or(port(settings::CLUSTER_ANNOUNCE_PORT), plain),
        tls_port: or(port(settings::CLUSTER_ANNOUNCE_TLS_PORT), tls_port),
        bus_port: or(port(settings::CLUSTER_ANNOUNCE_BUS_PORT), bus_port(config)),
        announce_ip: config.string(settings::CLUSTER_ANNOUNCE_IP).unwrap_or_default(),
        hostname: config.string(settings::CLUSTER_ANNOUNCE_HOSTNAME).unwrap_or_default(),
        nodename: config.string(settings::CLUSTER_ANNOUNCE_HUMAN_NODENAME).unwrap_or_default(),
    }
}

impl Cluster {
    /// Takes up what the file says of this node, before anybody is served.
    ///
    /// # Errors
    /// The file is another server's, or says nothing that can be understood.
    pub fn begin(&self, instance: &Instance) -> Result<(), String> {
        let config = &instance.config;
        let name = config.string(settings::CLUSTER_CONFIG_FILE).unwrap_or_default();
        let (file, text) = NodesFile::open(Path::new(&name))?;
        let saved = (!text.is_empty()).then_some(text.as_str());
        let seed = std::array::from_fn(|part| RandomState::default().hash_one(part));
        let machine = Machine::new(settings_of(config), seed, saved, self.now())
            .map_err(|error| format!("Unrecoverable error: corrupted cluster config file {name}: {error}"))?;
        let waker = Arc::clone(&self.node.waker);
        self.node.saver.start(file, move || waker.wake())?;
        *lock(&self.node.machine) = Some(machine);
        self.with_file(instance, |_, _| ());
        Ok(())
    }

    /// The data is there.
    ///
    /// # Errors
    /// It has keys where a node must have none.
    pub fn data_loaded(&self, instance: &Instance) -> Result<(), String> {
        if instance.databases().iter().skip(1).any(|database| !database.is_empty()) {
            return Err("You can't have keys in a DB different than DB 0 when in Cluster mode. Exiting.".to_owned());
        }
        let mut slots = SlotSet::EMPTY;
        for slot in (0..SLOTS as u16).filter(|&slot| instance.database(0).keys_in_slot(slot) > 0) {
            slots.add(slot);
        }
        self.with(instance, |machine, now| machine.data_loaded(&slots, now));
        Ok(())
    }

    /// [`Cluster::with`] for a client that is told of a change when it is in the file. The bus's thread must not call this.
    pub fn with_file<R>(&self, instance: &Instance, work: impl FnOnce(&mut Machine, Millis) -> R) -> Option<R> {
        let before = self.node.saver.asked();
        let result = self.with(instance, work);
        if self.node.saver.asked() != before {
            self.node.saver.wait();
        }
        result
    }

    /// Calls `work` on the machine, and carries out the machine's actions. Returns `None` while there is no machine. Never waits
    /// for the disk.
    pub fn with<R>(&self, instance: &Instance, work: impl FnOnce(&mut Machine, Millis) -> R) -> Option<R> {
        let mut guard = lock(&self.node.machine);
        let machine = guard.as_mut()?;
        let _vital = Vital("the state machine of the cluster");
        machine.observe(facts(instance));
        let result = work(machine, self.now());
        let (mut is_asked, holding) = (false, self.holding());
        while let Some(action) = machine.poll() {
            is_asked |= self.take(instance, action);
        }
        drop(guard);
        if holding != 0 && holding != self.holding() {
            instance.wake_paused();
        }
        if is_asked {
            self.node.waker.wake();
        }
        Some(result)
    }

    /// Does what can be done at once, and leaves the rest to the bus's thread; whether there is any.
    fn take(&self, instance: &Instance, action: Action) -> bool {
        match action {
            Action::Route(routing) => {
                self.node.lost.give_back(instance, |slot| routing.owners[usize::from(slot)] == routing.me);
                self.route(routing);
                // Clients that wait for keys may need an answer.
                self.node.routed.store(true, Relaxed);
                true
            }
            Action::Save { text, sync } => {
                self.node.saver.ask(text, sync);
                false
            }
            Action::Log(level, line) => {
                match level {
                    Level::Debug => tracing::trace!("{line}"),
                    Level::Verbose => tracing::debug!("{line}"),
                    Level::Notice => tracing::info!("{line}"),
                    Level::Warning => tracing::warn!("{line}"),
                }
                false
            }
            Action::SlotsLost { ref slots, delete_keys } => {
                if delete_keys {
                    self.node.lost.add(slots);
                }
                self.leave(action)
            }
            Action::Move { order: Order::Hide(slots), .. } => {
                Self::hide(instance, &slots);
                false
            }
            Action::Move { name, order: Order::Settle(settled) } => {
                Self::settle(instance, name, &settled);
                false
            }
            Action::Move { .. }
            | Action::Connect { .. }
            | Action::Send { .. }
            | Action::Close { .. }
            | Action::Follow { .. }
            | Action::Promote
            | Action::DeleteAll
            | Action::PauseWrites { .. }
            | Action::ResumeWrites
            | Action::Publish { .. } => self.leave(action),
        }
    }

    /// Tells the machine what `CONFIG SET` has changed.
    pub fn refresh_settings(&self, instance: &Instance) {
        let settings = settings_of(&instance.config);
        self.with(instance, |machine, now| {
            if *machine.settings() != settings {
                machine.set_settings(settings, now);
            }
        });
    }

    /// Tells those of the slots' going who wait for keys, or listen to channels, of slots that others have.
    pub fn tell_clients(&self, instance: &Instance, lost: Option<&SlotSet>) {
        if let Some(slots) = lost {
            clients::end_shard_subscriptions(instance, slots);
        }
        self.node.routed.store(false, Relaxed);
        if instance.blocked_clients(0) > 0 {
            clients::redirect_blocked(instance);
        }
    }
}

/// Facts that the machine does not know: they are about the data.
fn facts(instance: &Instance) -> Facts {
    let primary = instance.replication.primary();
    // Its data is about to be replaced, so others have no reason to choose it.
    let is_synced = primary.as_ref().is_none_or(|primary| primary.stage != LinkStage::Sync);
    let primary_link = match primary {
        None => PrimaryLink::Never,
        Some(primary) if primary.stage == LinkStage::Connected => PrimaryLink::Up { heard_at: primary.heard_at },
        Some(primary) if !primary.had_stream => PrimaryLink::Never,
        Some(primary) => PrimaryLink::Down { since: primary.down_since },
    };
    Facts {
        offset: if is_synced { instance.journal.offset() } else { 0 },
        primary_link,
        is_loading: instance.exclusive.is_loading(),
        follows: instance.replication.is_replica(),
    }
}

/// The error for cluster commands on a server that is no node of one.
pub const DISABLED: Error = Error::Static("ERR This instance has cluster support disabled");
