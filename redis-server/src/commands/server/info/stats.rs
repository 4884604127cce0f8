//! Sections of INFO that count: Stats, Commandstats, Errorstats, Latencystats.

use std::sync::atomic::Ordering::Relaxed;

use super::Fields;
use crate::clients::acl::Reason;
use crate::clients::pubsub::Kind;
use crate::command::Row;
use crate::config::{Level, settings};
use crate::exec::core::{Ctx, Instance};
use crate::observe::stats::{Totals, WorkerStats};

/// Section Stats.
pub(super) fn counters(cx: &Ctx<'_>, fields: &mut Fields) {
    let totals = cx.instance().stats.since_reset(cx.instance().totals());
    traffic(cx.instance(), &totals, fields);
    keys(cx, &totals, fields);
    services(cx.instance(), fields);
    replies(cx.instance(), cx.config().level(), &totals, fields);
    refusals(cx, fields);
}

/// Connections, commands and network traffic.
fn traffic(instance: &Instance, totals: &Totals, fields: &mut Fields) {
    let sum = |figure: fn(&WorkerStats) -> u64| instance.stats.sum(figure);
    let rate = instance.stats.rate();
    fields.add("total_connections_received", totals.accepted);
    fields.add("total_commands_processed", instance.stats.calls());
    fields.add("instantaneous_ops_per_sec", rate.commands);
    // A thread of its own, not a worker, reads the stream of the primary.
    let (from_primary, to_replicas) = instance.replication.figures.traffic();
    fields.add("total_net_input_bytes", sum(|worker| worker.input.get()) + from_primary);
    fields.add("total_net_output_bytes", sum(|worker| worker.output.get()));
    fields.add("total_net_repl_input_bytes", from_primary);
    fields.add("total_net_repl_output_bytes", to_replicas);
    fields.add("instantaneous_input_kbps", format_args!("{:.2}", rate.input as f64 / 1024.0));
    fields.add("instantaneous_output_kbps", format_args!("{:.2}", rate.output as f64 / 1024.0));
    fields.add("instantaneous_input_repl_kbps", format_args!("{:.2}", rate.replication_input as f64 / 1024.0));
    fields.add("instantaneous_output_repl_kbps", format_args!("{:.2}", rate.replication_output as f64 / 1024.0));
    fields.add("rejected_connections", totals.refused);
    fields.add("sync_full", instance.replication.figures.full.load(Relaxed));
    fields.add("sync_partial_ok", instance.replication.figures.partial.load(Relaxed));
    fields.add("sync_partial_err", instance.replication.figures.refused.load(Relaxed));
}

/// Keys that have expired or were evicted, and that were looked for.
fn keys(cx: &Ctx<'_>, totals: &Totals, fields: &mut Fields) {
    let (instance, level) = (cx.instance(), cx.config().level());
    let sum = |figure: fn(&WorkerStats) -> u64| instance.stats.sum(figure);
    fields.add("expired_keys", totals.expired);
    fields.add(if level == Level::Redis80 { "expired_subkeys" } else { "expired_fields" }, totals.expired_fields);
    let expiry = &instance.stats.expiry;
    fields.add("expired_stale_perc", "0.00");
    fields.add("expired_time_cap_reached_count", expiry.cut_short.get());
    fields.add("expire_cycle_cpu_milliseconds", expiry.nanos.get() / 1_000_000);
    fields.add("evicted_keys", totals.evicted);
    fields.add("evicted_clients", totals.evicted_clients);
    if level >= Level::Redis80 {
        fields.add("evicted_scripts", instance.scripts.figures.evicted.load(Relaxed));
    }
    fields.add("total_eviction_exceeded_time", instance.shortage.total(cx.now()));
    fields.add("current_eviction_exceeded_time", instance.shortage.present(cx.now()));
    fields.add("keyspace_hits", sum(|worker| worker.hits.get()));
    fields.add("keyspace_misses", sum(|worker| worker.misses.get()));
}

/// Work besides commands: Pub/Sub, tracking and the like.
fn services(instance: &Instance, fields: &mut Fields) {
    let pubsub = &instance.pubsub;
    fields.add("pubsub_channels", pubsub.count(Kind::Channel));
    fields.add("pubsub_patterns", pubsub.patterns());
    fields.add("pubsubshard_channels", pubsub.count(Kind::Shard));
    // Nothing is forked: how long everybody has stood still for the last snapshot, and how many there were.
    let (cut, snapshots) = instance.background.cuts();
    fields.add("latest_fork_usec", cut.as_nanos().div_ceil(1000));
    fields.add("total_forks", snapshots);
    fields.add("migrate_cached_sockets", instance.peers.count());
    fields.add("slave_expires_tracked_keys", instance.replication.local_expires());
    // The allocator moves nothing.
    for name in ["hits", "misses", "key_hits", "key_misses"] {
        fields.add(format_args!("active_defrag_{name}"), 0);
    }
    fields.add("total_active_defrag_time", 0);
    fields.add("current_active_defrag_time", 0);
    let tracking = instance.tracking.figures();
    fields.add("tracking_total_keys", tracking.keys);
    fields.add("tracking_total_items", tracking.items);
    fields.add("tracking_total_prefixes", tracking.prefixes);
}

/// Replies, and clients that were disconnected by a limit.
fn replies(instance: &Instance, level: Level, totals: &Totals, fields: &mut Fields) {
    let sum = |figure: fn(&WorkerStats) -> u64| instance.stats.sum(figure);
    fields.add("unexpected_error_replies", instance.stats.unexpected_errors.load(Relaxed));
    fields.add("total_error_replies", sum(|worker| worker.errors.get()));
    fields.add("dump_payload_sanitizations", sum(|worker| worker.sanitizations.get()));
    fields.add("total_reads_processed", sum(|worker| worker.reads.get()));
    fields.add("total_writes_processed", sum(|worker| worker.writes.get()));
    fields.add("io_threaded_reads_processed", 0);
    fields.add("io_threaded_writes_processed", 0);
    if level >= Level::Redis80 {
        fields.add("client_query_buffer_limit_disconnections", totals.over_input_limit);
        fields.add("client_output_buffer_limit_disconnections", totals.over_output_limit);
    }
    // Clients have no buffers of their own for replies, and no event loop is timed.
    fields.add("reply_buffer_shrinks", 0);
    fields.add("reply_buffer_expands", 0);
    if level.is_72() {
        for name in ["eventloop_cycles", "eventloop_duration_sum", "eventloop_duration_cmd_sum"] {
            fields.add(name, 0);
        }
        fields.add("instantaneous_eventloop_cycles_per_sec", 0);
        fields.add("instantaneous_eventloop_duration_usec", 0);
    }
}

/// Calls that the ACL denied.
fn refusals(cx: &Ctx<'_>, fields: &mut Fields) {
    let (level, log) = (cx.config().level(), cx.instance().acl.lock_log());
    let all = [
        ("auth", Reason::Auth, Level::Redis72),
        ("cmd", Reason::Command, Level::Redis72),
        ("key", Reason::Key, Level::Redis72),
        ("channel", Reason::Channel, Level::Redis72),
        ("tls_cert", Reason::Certificate, Level::Redis80),
        ("db", Reason::Database, Level::Valkey9),
    ];
    for (name, reason, _) in all.into_iter().filter(|(_, _, since)| level >= *since) {
        fields.add(format_args!("acl_access_denied_{name}"), log.refused(reason));
    }
}

/// Section Commandstats.
pub(super) fn commands(cx: &Ctx<'_>, fields: &mut Fields) {
    let workers = cx.instance().stats.workers();
    for row in cx.instance().registry.rows() {
        let sum = |figure: fn(&crate::observe::stats::CommandStats) -> u64| -> u64 {
            workers.iter().map(|worker| figure(&worker.commands[usize::from(row.id)])).sum()
        };
        let (calls, micros) = (sum(|stats| stats.calls.get()), sum(|stats| stats.nanos.get()) / 1000);
        let (rejected, failed) = (sum(|stats| stats.rejected.get()), sum(|stats| stats.failed.get()));
        if calls + rejected + failed == 0 {
            continue;
        }
        let each = if calls == 0 { 0.0 } else { micros as f64 / calls as f64 };
        fields.add(
            format_args!("cmdstat_{}", row.name()),
            format_args!(
                "calls={calls},usec={micros},usec_per_call={each:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

/// Section Errorstats.
pub(super) fn errors(cx: &Ctx<'_>, fields: &mut Fields) {
    for (code, count) in cx.instance().stats.errors().iter() {
        fields.add(format_args!("errorstat_{code}"), format_args!("count={count}"));
    }
}

/// Calls of one command by duration: bucket n holds those below 2^n microseconds.
pub(in crate::commands::server) fn durations(instance: &Instance, row: &Row) -> Vec<u64> {
    let workers = instance.stats.workers();
    let bucket = |at: usize| workers.iter().map(|w| w.commands[usize::from(row.id)].durations[at].get()).sum();
    (0..24).map(bucket).collect()
}

/// Section Latencystats.
pub(super) fn latencies(cx: &Ctx<'_>, fields: &mut Fields) {
    if !cx.config().is_on(settings::LATENCY_TRACKING) {
        return;
    }
    let percentiles = cx.config().words(settings::LATENCY_TRACKING_INFO_PERCENTILES);
    let percentiles: Vec<(String, f64)> = percentiles
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .filter_map(|word| word.parse().ok().map(|value| (word, value)))
        .collect();
    for row in cx.instance().registry.rows() {
        let durations = durations(cx.instance(), row);
        if durations.iter().all(|&count| count == 0) {
            continue;
        }
        let values = percentiles.iter().map(|(word, value)| {
            // As in the genuine server: `99.90` is p99.9, `50` stays p50.
            let word = if word.contains('.') { word.trim_end_matches('0').trim_end_matches('.') } else { word };
            format!("p{word}={:.3}", percentile(&durations, *value))
        });
        let values: Vec<String> = values.collect();
        fields.add(format_args!("latency_percentiles_usec_{}", row.name()), values.join(","));
    }
}

/// Microseconds below which `percent` of the calls stayed, interpolated within the bucket.
fn percentile(durations: &[u64], percent: f64) -> f64 {
    let calls: u64 = durations.iter().sum();
    let wanted = (calls as f64 * percent / 100.0).max(1.0);
    let mut below = 0.0;
    for (at, &count) in durations.iter().enumerate() {
        let count = count as f64;
        if count > 0.0 && below + count >= wanted {
            let (low, high) = (if at == 0 { 0.0 } else { (1u64 << (at - 1)) as f64 }, (1u64 << at) as f64);
            return low + (high - low) * (wanted - below) / count;
        }
        below += count;
    }
    0.0
}
