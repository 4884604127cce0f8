//! The server's figures for Prometheus; they are read when somebody asks, and cost nothing until then.

use server_runtime::metrics::{family, sample};

use crate::commands::REGISTRY;
use crate::exec::instance::Instance;
use crate::observe::memory;
use crate::observe::stats::{CommandStats, WorkerStats};

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// What reads one figure of a command.
type Figure = fn(&CommandStats) -> f64;

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
        ("redis_expired_keys_total", "Keys removed because their time was over.", totals.expired),
        ("redis_evicted_keys_total", "Keys removed because memory was short.", totals.evicted),
        ("redis_evicted_clients_total", "Clients cut off for what they held.", totals.evicted_clients),
    ] {
        family(out, name, help, "counter");
        sample(out, name, &[], value as f64);
    }
    for (name, help, value) in [
        ("redis_memory_used_bytes", "Memory in use, as the allocator counts it.", memory::used()),
        ("redis_memory_peak_bytes", "The most memory that was in use.", memory::peak()),
        ("redis_memory_resident_bytes", "Physical memory of the process.", memory::resident()),
        ("redis_blocked_clients", "Clients that wait for keys.", instance.blocked_clients(0).unsigned_abs()),
        ("redis_slowlog_length", "Calls in the slow log.", instance.observers.slow_len() as u64),
    ] {
        family(out, name, help, "gauge");
        sample(out, name, &[], value as f64);
    }
    keys(instance, out);
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
