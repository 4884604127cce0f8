//! `INFO`: the server's state. Fields carry the genuine server's names and stand in its order. Programs read them by name, so each that it
//! has is there: 0 where this server has nothing of the kind, such as threads that do nothing but I/O.

mod stats;

pub(super) use stats::durations;

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use super::flags::ANY_TIME;
use super::memory::{Buffers, overhead};
use super::module::BUILT_IN;
use crate::clients::client::{ClientShared, count, flag};
use crate::command::{Args, Result, Role};
use crate::commands::definition::{Definition, cmd};
use crate::config::{Level, settings};
use crate::exec::core::Ctx;
use crate::exec::replication::{LinkStage, Primary};
use crate::exec::snapshot::Purpose;
use crate::keyspace::View;
use crate::observe::memory::{self, AllocatorPages};

/// A section: its name, whether it is shown when none is asked for, and what writes it.
struct Section {
    name: &'static str,
    by_default: bool,
    write: fn(&Ctx<'_>, &mut Fields),
}

const fn section(name: &'static str, by_default: bool, write: fn(&Ctx<'_>, &mut Fields)) -> Section {
    Section { name, by_default, write }
}

#[rustfmt::skip]
const SECTIONS: &[Section] = &[
    section("Server",       true,  server),
    section("Clients",      true,  clients),
    section("Memory",       true,  memory_section),
    section("Persistence",  true,  persistence),
    section("Stats",        true,  stats::counters),
    section("Replication",  true,  replication),
    section("CPU",          true,  cpu),
    section("Modules",      true,  modules),
    section("Commandstats", false, stats::commands),
    section("Errorstats",   true,  stats::errors),
    section("Latencystats", false, stats::latencies),
    section("Cluster",      true,  |cx, fields| fields.add("cluster_enabled", u8::from(cx.instance.cluster.is_enabled()))),
    section("Keyspace",     true,  keyspace),
];

fn modules(cx: &Ctx<'_>, fields: &mut Fields) {
    for module in BUILT_IN {
        let (name, version) = (module.name(cx.config().level()), module.version);
        let rest = "api=1,filters=0,usedby=[],using=[],options=[]";
        fields.add("module", format_args!("name={name},ver={version},{rest}"));
    }
}

/// Lines of `name:value`.
struct Fields {
    text: String,
    /// Bytes in use before the lines were written, which take some themselves.
    used: u64,
}

impl Fields {
    fn add(&mut self, name: impl Display, value: impl Display) {
        write!(self.text, "{name}:{value}\r\n").expect("a String takes any write");
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.add(name, bytes);
        self.add(format_args!("{name}_human"), human(bytes));
    }
}

/// Bytes as the genuine server writes them for people: `1.04M`.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", UNITS[unit])
}

/// `INFO [section …]`
fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let words: Vec<String> = args.from(1).iter().map(|word| String::from_utf8_lossy(word).to_lowercase()).collect();
    let has = |word: &str| words.iter().any(|asked| asked == word);
    let everything = has("all") || has("everything");
    let default = words.is_empty() || has("default");
    let mut fields = Fields { used: used_memory(), text: String::with_capacity(4096) };
    for section in SECTIONS {
        if everything || default && section.by_default || has(&section.name.to_lowercase()) {
            let gap = if fields.text.is_empty() { "" } else { "\r\n" };
            write!(fields.text, "{gap}# {}\r\n", section.name).expect("a String takes any write");
            (section.write)(cx, &mut fields);
        }
    }
    #[cfg(feature = "search")]
    if has("everything") || has("modules") {
        crate::commands::search::describe(cx, &mut |name, value| match value {
            Some(value) => fields.add(name, value),
            None => write!(fields.text, "\r\n# {name}\r\n").expect("a String takes any write"),
        });
    }
    cx.reply.verbatim(*b"txt", fields.text.as_bytes());
    Ok(())
}

fn server(cx: &Ctx<'_>, fields: &mut Fields) {
    let config = cx.config();
    let uptime = cx.now().saturating_sub(cx.instance().started_at) / 1000;
    let system = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let level = config.level();
    fields.add("redis_version", level.redis_version());
    if level.is_valkey() {
        fields.add("server_name", "valkey");
        fields.add("valkey_version", crate::config::VALKEY_VERSION);
    } else {
        fields.add("server_name", env!("CARGO_PKG_NAME"));
    }
    fields.add("server_version", env!("CARGO_PKG_VERSION"));
    fields.add("redis_git_sha1", "00000000");
    fields.add("redis_git_dirty", 0);
    // Of a build that is not named, as in Redis of one from no repository.
    fields.add("redis_build_id", "0000000000000000");
    let is_plain = level.is_valkey() && !config.is_on(settings::EXTENDED_REDIS_COMPATIBILITY);
    fields.add(
        if is_plain { "server_mode" } else { "redis_mode" },
        if cx.instance.cluster.is_enabled() { "cluster" } else { "standalone" },
    );
    fields.add("os", format_args!("Linux {} {}", system.trim(), std::env::consts::ARCH));
    fields.add("arch_bits", usize::BITS);
    fields.add("monotonic_clock", "POSIX clock_gettime");
    fields.add("multiplexing_api", "epoll");
    // Redis' words for a compiler's own atomics, and for a compiler that is not GCC.
    fields.add("atomicvar_api", "c11-builtin");
    fields.add("gcc_version", "0.0.0");
    fields.add("process_id", std::process::id());
    fields.add("process_supervised", "no");
    fields.add("run_id", &cx.instance().run_id);
    fields.add("tcp_port", config.int(settings::PORT));
    fields.add("server_time_usec", cx.now() * 1000);
    fields.add("uptime_in_seconds", uptime);
    fields.add("uptime_in_days", uptime / 86_400);
    fields.add("hz", config.int(settings::HZ));
    fields.add("configured_hz", config.int(settings::HZ));
    fields.add("lru_clock", (cx.now() / 1000) & 0xff_ffff);
    fields.add("executable", std::env::current_exe().unwrap_or_default().display());
    fields.add("config_file", config.file().map(|path| path.display().to_string()).unwrap_or_default());
    fields.add("io_threads_active", 0);
    if level.is_valkey() {
        fields.add("availability_zone", String::from_utf8_lossy(&config.text(settings::AVAILABILITY_ZONE)));
    }
    if let Some(until) = cx.instance().ending.until() {
        fields.add("shutdown_in_milliseconds", until.saturating_sub(cx.now()));
    }
    fields.add("worker_threads", cx.instance().runtime().map_or(1, |runtime| runtime.connections_by_worker().len()));
}

fn clients(cx: &Ctx<'_>, fields: &mut Fields) {
    let clients = cx.instance().clients();
    let most = |figure: fn(&ClientShared) -> u64| clients.iter().map(|c| figure(c)).max().unwrap_or(0);
    fields.add("connected_clients", clients.len());
    fields.add("cluster_connections", 0);
    fields.add("maxclients", cx.config().int(settings::MAXCLIENTS));
    fields.add("client_recent_max_input_buffer", most(|client| client.input.load(Relaxed)));
    fields.add("client_recent_max_output_buffer", most(|client| client.output.load(Relaxed)));
    fields.add("blocked_clients", cx.instance().blocked_clients(0));
    fields.add("tracking_clients", cx.instance().tracking.figures().clients);
    let level = cx.config().level();
    if level >= Level::Redis80 {
        fields.add("pubsub_clients", clients.iter().filter(|client| client.has_flag(flag::PUBSUB)).count());
        let watched = |client: &ClientShared| client.counts[count::WATCHED].load(Relaxed);
        fields.add("watching_clients", clients.iter().filter(|client| watched(client) > 0).count());
    }
    if level.is_valkey() {
        paused(cx, fields);
    }
    let timed = clients.iter().filter(|client| client.flags.load(Relaxed) & flag::BLOCKED != 0).count();
    fields.add("clients_in_timeout_table", timed);
    if level >= Level::Redis80 {
        let watched = clients.iter().map(|client| u64::from(client.counts[count::WATCHED].load(Relaxed)));
        fields.add("total_watched_keys", watched.sum::<u64>());
    }
    if level.is_72() {
        let counts = cx.instance().databases().iter().map(crate::keyspace::Database::count_awaited);
        let (keys, on_nokey) = counts.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        fields.add("total_blocking_keys", keys);
        fields.add("total_blocking_keys_on_nokey", on_nokey);
    }
}

/// The pause that commands wait for.
fn paused(cx: &Ctx<'_>, fields: &mut Fields) {
    let (now, asked) = (cx.now(), cx.instance().asked_pause(cx.now()));
    let pause = cx.instance().paused(now);
    fields.add(
        "paused_reason",
        match (asked, pause) {
            (_, None) => "none",
            (Some(_), Some(_)) => "client_pause",
            (None, Some(_)) => "failover_in_progress",
        },
    );
    fields.add("paused_actions", pause.map_or("none", |pause| if pause.writes_only { "write" } else { "all" }));
    fields.add("paused_timeout_milliseconds", pause.map_or(0, |pause| pause.until.saturating_sub(now)));
}

/// Bytes in use: as counted, or as the system counts where the process has an allocator that does not count.
pub(super) fn used_memory() -> u64 {
    match memory::used_here() {
        0 => memory::resident(),
        used => used,
    }
}

fn memory_section(cx: &Ctx<'_>, fields: &mut Fields) {
    let config = cx.config();
    let (used, resident) = (fields.used, memory::resident());
    let peak = memory::peak().max(used);
    fields.bytes("used_memory", used);
    fields.bytes("used_memory_rss", resident);
    fields.bytes("used_memory_peak", peak);
    let overhead = overhead(cx);
    let startup = cx.instance().startup_memory.load(Relaxed);
    let dataset = used.saturating_sub(overhead);
    let percent = dataset as f64 * 100.0 / used.saturating_sub(startup).max(1) as f64;
    fields.add("used_memory_overhead", overhead);
    fields.add("used_memory_startup", startup);
    fields.add("used_memory_dataset", dataset);
    fields.add("used_memory_dataset_perc", format_args!("{:.2}%", percent.min(100.0)));
    fields.add("used_memory_peak_perc", format_args!("{:.2}%", used as f64 * 100.0 / peak.max(1) as f64));
    fields.bytes("total_system_memory", memory::of_system());
    scripts(cx, fields);
    fields.bytes("maxmemory", config.uint(settings::MAXMEMORY));
    fields.add("maxmemory_policy", config.word(settings::MAXMEMORY_POLICY));
    allocator(used, resident, fields);
    fields.add("mem_fragmentation_ratio", format_args!("{:.2}", resident as f64 / used.max(1) as f64));
    fields.add("mem_fragmentation_bytes", resident as i64 - used as i64);
    fields.add("lazyfree_pending_objects", cx.instance().reaper.pending());
    fields.add("lazyfreed_objects", cx.instance().reaper.freed());
    fields.add("mem_not_counted_for_evict", cx.instance().memory_on_its_way());
    let buffers = Buffers::of(cx.instance());
    fields.add("mem_clients_slaves", buffers.replicas);
    fields.add("mem_replication_backlog", buffers.backlog);
    fields.add("mem_total_replication_buffers", buffers.replicas + buffers.backlog);
    fields.add("mem_clients_normal", buffers.clients);
    fields.add("mem_cluster_links", cx.instance().cluster.all_unsent());
    fields.add("mem_aof_buffer", buffers.aof);
    if config.level() >= Level::Redis80 {
        fields.add("mem_replica_full_sync_buffer", 0);
        fields.add("mem_overhead_db_hashtable_rehashing", 0);
        fields.add("allocator_muzzy", 0);
    }
    fields.add("mem_allocator", memory::allocator_version());
    fields.add("active_defrag_running", 0);
}

/// The allocator's memory: for data, free, and in physical memory.
fn allocator(used: u64, resident: u64, fields: &mut Fields) {
    let AllocatorPages { active, resident: of_allocator } = AllocatorPages::now(used);
    let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    fields.add("allocator_allocated", used);
    fields.add("allocator_active", active);
    fields.add("allocator_resident", of_allocator);
    fields.add("allocator_frag_ratio", format_args!("{:.2}", ratio(active, used)));
    fields.add("allocator_frag_bytes", active - used);
    fields.add("allocator_rss_ratio", format_args!("{:.2}", ratio(of_allocator, active)));
    fields.add("allocator_rss_bytes", of_allocator as i64 - active as i64);
    fields.add("rss_overhead_ratio", format_args!("{:.2}", ratio(resident, of_allocator)));
    fields.add("rss_overhead_bytes", resident as i64 - of_allocator as i64);
}

/// The memory of scripts and functions at the end of the last call.
fn scripts(cx: &Ctx<'_>, fields: &mut Fields) {
    let figures = &cx.instance().scripts.figures;
    let (eval, functions) = (figures.eval_vm.load(Relaxed), figures.functions_vm.load(Relaxed));
    let (scripts, libraries) = (figures.scripts_bytes.load(Relaxed), figures.libraries_bytes.load(Relaxed));
    fields.bytes("used_memory_lua", eval);
    fields.add("used_memory_vm_eval", eval);
    fields.add("used_memory_scripts_eval", scripts);
    fields.add("number_of_cached_scripts", figures.scripts.load(Relaxed));
    fields.add("number_of_functions", figures.functions.load(Relaxed));
    fields.add("number_of_libraries", figures.libraries.load(Relaxed));
    fields.add("used_memory_vm_functions", functions);
    fields.bytes("used_memory_vm_total", eval + functions);
    fields.add("used_memory_functions", libraries);
    fields.bytes("used_memory_scripts", scripts + libraries);
}

fn persistence(cx: &Ctx<'_>, fields: &mut Fields) {
    fields.add("loading", u8::from(cx.instance().exclusive.is_loading()));
    fields.add("async_loading", u8::from(cx.instance().loading.is_aside()));
    let (status, background) = (&cx.instance().snapshots, &cx.instance().background);
    let last_load = status.last_load();
    let running = background.running();
    let kept = if running.is_some() { background.handed_over() } else { 0 };
    let (saved, all) = background.progress();
    fields.add("current_cow_peak", kept);
    fields.add("current_cow_size", kept);
    fields.add("current_cow_size_age", 0);
    fields.add(
        "current_fork_perc",
        format_args!("{:.2}", if all == 0 { 0.0 } else { saved as f64 * 100.0 / all as f64 }),
    );
    fields.add("current_save_keys_processed", saved);
    fields.add("current_save_keys_total", all);
    fields.add("rdb_changes_since_last_save", status.unsaved(cx.instance().changes()));
    let saves = running.is_some_and(|running| matches!(running.purpose, Purpose::Snapshot | Purpose::Replicas));
    fields.add("rdb_bgsave_in_progress", u8::from(saves));
    fields.add("rdb_last_save_time", status.saved_at());
    fields.add("rdb_last_bgsave_status", if status.has_failed() { "err" } else { "ok" });
    fields.add("rdb_last_bgsave_time_sec", status.last_seconds());
    let since = running.filter(|_| saves).map_or(-1, |running| running.since.elapsed().as_secs().cast_signed());
    fields.add("rdb_current_bgsave_time_sec", since);
    fields.add("rdb_saves", status.saves());
    fields.add("rdb_last_cow_size", if running.is_none() { background.handed_over() } else { 0 });
    fields.add("rdb_last_load_keys_expired", last_load.expired);
    fields.add("rdb_last_load_keys_loaded", last_load.loaded);
    append_only(cx, fields);
}

fn append_only(cx: &Ctx<'_>, fields: &mut Fields) {
    let aof = &cx.instance().aof;
    let figures = &aof.figures;
    let is_rewriting = figures.is_rewriting.load(Relaxed);
    let seconds = (cx.now() / 1000).saturating_sub(figures.began.load(Relaxed)) as i64;
    let status = |is_good: bool| if is_good { "ok" } else { "err" };
    fields.add("aof_enabled", u8::from(aof.is_on()));
    fields.add("aof_rewrite_in_progress", u8::from(is_rewriting));
    fields.add("aof_rewrite_scheduled", u8::from(figures.is_scheduled.load(Relaxed)));
    fields.add("aof_last_rewrite_time_sec", figures.last_seconds.load(Relaxed) - 1);
    fields.add("aof_current_rewrite_time_sec", if is_rewriting { seconds } else { -1 });
    fields.add("aof_last_bgrewrite_status", status(figures.failures.load(Relaxed) == 0));
    fields.add("aof_rewrites", figures.rewrites.load(Relaxed));
    fields.add("aof_rewrites_consecutive_failures", figures.failures.load(Relaxed));
    fields.add("aof_last_write_status", status(!aof.is_failing()));
    fields.add("aof_last_cow_size", 0);
    if aof.is_on() {
        fields.add("aof_current_size", figures.size.load(Relaxed));
        fields.add("aof_base_size", figures.base_size.load(Relaxed));
        fields.add("aof_pending_rewrite", 0);
        fields.add("aof_buffer_length", figures.buffer.load(Relaxed));
        fields.add("aof_pending_bio_fsync", 0);
        fields.add("aof_delayed_fsync", figures.delayed.load(Relaxed));
    }
    fields.add("module_fork_in_progress", 0);
    fields.add("module_fork_last_cow_size", 0);
    if cx.instance().exclusive.is_loading() {
        let progress = cx.instance().loading.progress();
        fields.add("loading_start_time", progress.began);
        fields.add("loading_total_bytes", progress.total);
        fields.add("loading_rdb_used_mem", progress.memory);
        fields.add("loading_loaded_bytes", progress.loaded);
        fields.add("loading_loaded_perc", format_args!("{:.2}", progress.percent()));
        fields.add("loading_eta_seconds", progress.left);
    }
}

fn replication(cx: &Ctx<'_>, fields: &mut Fields) {
    let (replication, journal) = (&cx.instance().replication, &cx.instance().journal);
    let (ids, replicas) = (replication.ids(), replication.replicas());
    match replication.primary() {
        None => fields.add("role", "master"),
        Some(primary) => following(cx, &primary, fields),
    }
    fields.add("connected_slaves", replicas.len());
    let most = cx.config().uint(settings::MIN_REPLICAS_MAX_LAG);
    if cx.config().uint(settings::MIN_REPLICAS_TO_WRITE) > 0 && most > 0 {
        fields.add("min_slaves_good_slaves", replication.good(most, cx.now()));
    }
    for (number, replica) in replicas.iter().enumerate() {
        let (address, port, state) = (replica.address(), replica.follower.port, replica.stage().name());
        let (offset, lag) = (replica.acknowledged(), replica.lag(cx.now()));
        fields.add(
            format!("slave{number}"),
            format_args!("ip={address},port={port},state={state},offset={offset},lag={lag}"),
        );
    }
    fields.add("master_failover_state", replication.failover().name());
    fields.add("master_replid", &ids.id);
    // Offsets begin with 1 there.
    let (second, until) = ids.second.map_or_else(|| ("0".repeat(40), -1), |(id, until)| (id, until as i64 + 1));
    fields.add("master_replid2", second);
    fields.add("master_repl_offset", journal.offset());
    fields.add("second_repl_offset", until);
    let has_backlog = replication.has_backlog();
    let kept = if has_backlog { journal.kept() } else { 0..0 };
    fields.add("repl_backlog_active", u8::from(has_backlog));
    fields.add("repl_backlog_size", cx.config().uint(settings::REPL_BACKLOG_SIZE));
    fields.add("repl_backlog_first_byte_offset", if has_backlog { kept.start + 1 } else { 0 });
    fields.add("repl_backlog_histlen", kept.end - kept.start);
}

fn following(cx: &Ctx<'_>, primary: &Primary, fields: &mut Fields) {
    let (config, now) = (cx.config(), cx.now());
    let is_up = primary.stage == LinkStage::Connected;
    let since = |at: u64| (now.saturating_sub(at) / 1000) as i64;
    let offset = cx.instance().journal.offset();
    fields.add("role", "slave");
    fields.add("master_host", &primary.host);
    fields.add("master_port", primary.port);
    fields.add("master_link_status", if is_up { "up" } else { "down" });
    fields.add("master_last_io_seconds_ago", if is_up { since(primary.heard_at) } else { -1 });
    let (total, read) = primary.sync;
    let syncs = primary.stage == LinkStage::Sync;
    fields.add("master_sync_in_progress", u8::from(syncs));
    fields.add("slave_read_repl_offset", offset + primary.held);
    fields.add("slave_repl_offset", offset);
    if syncs {
        fields.add("master_sync_total_bytes", total);
        fields.add("master_sync_read_bytes", read);
        fields.add("master_sync_left_bytes", total as i64 - read as i64);
        let share = if total > 0 { read as f64 / total as f64 * 100.0 } else { 0.0 };
        fields.add("master_sync_perc", format_args!("{share:.2}"));
        fields.add("master_sync_last_io_seconds_ago", since(primary.heard_at));
    }
    if !is_up {
        fields.add("master_link_down_since_seconds", since(primary.down_since));
    }
    let failed = &primary.failed_syncs;
    if failed.count > 0 {
        fields.add("master_sync_failures", failed.count);
        fields.add("master_sync_last_error", &failed.why);
        fields.add("master_sync_retry_in_seconds", failed.retry_at.saturating_sub(now).div_ceil(1000));
    }
    fields.add("slave_priority", config.uint(settings::REPLICA_PRIORITY));
    fields.add("slave_read_only", u8::from(config.is_on(settings::REPLICA_READ_ONLY)));
    fields.add("replica_announced", u8::from(config.is_on(settings::REPLICA_ANNOUNCED)));
}

fn cpu(_: &Ctx<'_>, fields: &mut Fields) {
    let [user, system, user_children, system_children] = cpu_seconds().unwrap_or_default();
    fields.add("used_cpu_sys", format_args!("{system:.6}"));
    fields.add("used_cpu_user", format_args!("{user:.6}"));
    fields.add("used_cpu_sys_children", format_args!("{system_children:.6}"));
    fields.add("used_cpu_user_children", format_args!("{user_children:.6}"));
    // The first thread's number is the process'.
    let main = format!("/proc/self/task/{}/stat", std::process::id());
    let [user, system, ..] = seconds_of(&main).unwrap_or_default();
    fields.add("used_cpu_sys_main_thread", format_args!("{system:.6}"));
    fields.add("used_cpu_user_main_thread", format_args!("{user:.6}"));
}

/// Processor time of this process and of its children.
pub(super) fn cpu_seconds() -> Option<[f64; 4]> {
    seconds_of("/proc/self/stat")
}

/// User and system time, and that of children, as `proc_pid_stat(5)` has it: fields 14 to 17, in ticks of which Linux shows a
/// hundred per second to every program.
fn seconds_of(file: &str) -> Option<[f64; 4]> {
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string(file).ok()?;
    // The name in parentheses may hold any character; field 3 begins behind it.
    let mut ticks = text.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || Some(ticks.next()?.ok()? / TICKS);
    Some([next()?, next()?, next()?, next()?])
}

fn keyspace(cx: &Ctx<'_>, fields: &mut Fields) {
    for (index, database) in cx.instance().databases().iter().enumerate() {
        // A database that the call has locked must be read through its view.
        let keys = cx.view(index).map_or_else(|| database.shown_len(), View::shown_len);
        if keys > 0 {
            let expires = database.expiring();
            let ttl = database.average_ttl(cx.now());
            let mut text = format!("keys={keys},expires={expires},avg_ttl={ttl}");
            // Hashes of which fields expire, under the name that the server gives them.
            match (cx.config().level(), database.with_fields()) {
                (Level::Redis80, count) => text += &format!(",subexpiry={count}"),
                (Level::Redis70 | Level::Redis72, 0) => {}
                (_, count) => text += &format!(",keys_with_volatile_items={count}"),
            }
            fields.add(format_args!("db{index}"), text);
        }
    }
}

/// The row.
pub(super) const COMMAND: Definition = cmd("info", -1, info, ANY_TIME, &[])
    .role(Role::Survey)
    .also(crate::command::Categories::DANGEROUS)
    .locks(crate::command::Footprint::WalkEverything)
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]);
