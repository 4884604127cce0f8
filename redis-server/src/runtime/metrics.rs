//! The server's figures for Prometheus; they are read when a client asks, and cost nothing until then.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use server_runtime::metrics::{family, sample};

use crate::commands::REGISTRY;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::replication::{LinkStage, Replica};
use crate::observe::stats::{CommandStats, WorkerStats};
use crate::observe::{Log, memory};

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// Reads one figure of a command.
type Figure = fn(&CommandStats) -> f64;
/// Reads one figure of a replica, of the stream's end and of the time.
type ReplicaFigure = fn(&Replica, u64, u64) -> f64;

/// Appends all figures in Prometheus' text format.
pub(crate) fn render(instance: &Instance, out: &mut String) {
    commands(instance, out);
    let sum = |figure: fn(&WorkerStats) -> u64| instance.stats.sum(figure);
    let totals = instance.totals();
    for (name, help, value) in [
        ("redis_keyspace_hits_total", "Reads that found their key.", sum(|worker| worker.hits.get())),
        ("redis_keyspace_misses_total", "Reads that did not find their key.", sum(|worker| worker.misses.get())),
        ("redis_net_input_bytes_total", "Bytes received from clients.", sum(|worker| worker.input.get())),
        ("redis_net_output_bytes_total", "Bytes sent to clients.", sum(|worker| worker.output.get())),
        ("redis_error_replies_total", "Errors sent to clients.", sum(|worker| worker.errors.get())),
        ("redis_expired_keys_total", "Keys removed because they expired.", totals.expired),
        ("redis_evicted_keys_total", "Keys evicted at maxmemory.", totals.evicted),
        ("redis_evicted_clients_total", "Clients disconnected at maxmemory-clients.", totals.evicted_clients),
    ] {
        family(out, name, help, "counter");
        sample(out, name, &[], value as f64);
    }
    for (name, help, value) in [
        ("redis_memory_used_bytes", "Memory in use, as the allocator counts it.", memory::used()),
        ("redis_memory_peak_bytes", "Peak of the memory in use.", memory::peak()),
        ("redis_memory_resident_bytes", "Physical memory of the process.", memory::resident()),
        ("redis_blocked_clients", "Clients that wait for keys.", instance.blocked_clients(0).unsigned_abs()),
        ("redis_slowlog_length", "Calls in the slow log.", instance.observers.len(Log::Slow) as u64),
    ] {
        family(out, name, help, "gauge");
        sample(out, name, &[], value as f64);
    }
    keys(instance, out);
    replication(instance, out);
}

/// The replicas, the primary, and how far they are.
fn replication(instance: &Instance, out: &mut String) {
    let (replication, now) = (&instance.replication, now_ms());
    let figure = |figure: &AtomicU64| figure.load(Relaxed) as f64;
    let figures = &replication.figures;
    for (name, help, value) in [
        ("redis_replication_full_syncs_total", "Replicas that were sent a snapshot.", figure(&figures.full)),
        (
            "redis_replication_partial_syncs_total",
            "Replicas that resumed without a snapshot.",
            figure(&figures.partial),
        ),
        ("redis_replication_refused_partial_syncs_total", "Replicas that could not resume.", figure(&figures.refused)),
        ("redis_replication_offset_bytes", "Replication offset.", instance.journal.offset() as f64),
    ] {
        family(out, name, help, if name.ends_with("_total") { "counter" } else { "gauge" });
        sample(out, name, &[], value);
    }
    let (kept, replicas) = (instance.journal.kept(), replication.replicas());
    let primary = replication.primary();
    let is_up = primary.as_ref().is_some_and(|primary| primary.stage == LinkStage::Connected);
    let heard = primary.as_ref().map_or(0, |primary| now.saturating_sub(primary.heard_at));
    for (name, help, value) in [
        ("redis_replication_is_replica", "1 for a replica, else 0.", f64::from(u8::from(primary.is_some()))),
        ("redis_replication_link_up", "1 while the link to the primary is up.", f64::from(u8::from(is_up))),
        ("redis_replication_link_silent_seconds", "Time since the last data of the primary.", heard as f64 / 1e3),
        ("redis_replication_backlog_bytes", "Bytes in the replication backlog.", (kept.end - kept.start) as f64),
        ("redis_replication_unread_bytes", "Bytes that are kept for slow replicas alone.", instance.unread().0 as f64),
        ("redis_replication_replicas", "Replicas, including those that wait for a snapshot.", replicas.len() as f64),
    ] {
        family(out, name, help, "gauge");
        sample(out, name, &[], value);
    }
    let figures: [(&str, &str, ReplicaFigure); 2] = [
        ("redis_replica_behind_bytes", "Bytes that a replica has not acknowledged.", |replica, end, _| {
            end.saturating_sub(replica.acknowledged()) as f64
        }),
        ("redis_replica_silent_seconds", "Time since the last message of a replica.", |replica, _, now| {
            replica.lag(now) as f64
        }),
    ];
    for (name, help, figure) in figures {
        family(out, name, help, "gauge");
        for replica in &replicas {
            let labels = (replica.address(), replica.follower.port.to_string(), replica.stage().name());
            let labels = [("ip", labels.0.as_str()), ("port", labels.1.as_str()), ("state", labels.2)];
            sample(out, name, &labels, figure(replica, kept.end, now));
        }
    }
}

/// Calls, failures, refusals and time by command, of those that were called at all.
fn commands(instance: &Instance, out: &mut String) {
    let workers = instance.stats.workers();
    let figures: [(&str, &str, Figure); 4] = [
        ("redis_commands_total", "Calls, by command.", |stats| stats.calls.get() as f64),
        ("redis_commands_duration_seconds_total", "Time spent, by command.", |stats| stats.nanos.get() as f64 / NANOS),
        ("redis_commands_failed_total", "Calls that ran and failed, by command.", |stats| stats.failed.get() as f64),
        ("redis_commands_rejected_total", "Calls refused before they ran, by command.", |stats| {
            stats.rejected.get() as f64
        }),
    ];
    for (name, help, figure) in figures {
        family(out, name, help, "counter");
        for row in REGISTRY.rows() {
            let value: f64 = workers.iter().map(|worker| figure(&worker.commands[usize::from(row.id)])).sum();
            if value > 0.0 {
                sample(out, name, &[("command", &row.name())], value);
            }
        }
    }
}

fn keys(instance: &Instance, out: &mut String) {
    for (name, help, expiring) in [
        ("redis_db_keys", "Keys, by database.", false),
        ("redis_db_keys_expiring", "Keys that expire, by database.", true),
    ] {
        family(out, name, help, "gauge");
        for (index, database) in instance.databases().iter().enumerate() {
            let value = if expiring { database.expiring() } else { database.len() };
            if value > 0 {
                sample(out, name, &[("db", &index.to_string())], value as f64);
            }
        }
    }
}
