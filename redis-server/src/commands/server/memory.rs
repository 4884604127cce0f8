//! `MEMORY`: the memory of values, and of the server as a whole.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::flags::ANY_TIME;
use super::info::{human, used_memory};
use crate::clients::client::flag;
use crate::command::{Args, Flags, KeySpec, Result, Role, Weight, read, weight};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::config::Level;
use crate::exec::core::{Ctx, Instance};
use crate::keyspace::{BUCKET, Entry, View};
use crate::observe::memory::{self, AllocatorPages};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// Below so much memory, DOCTOR has nothing to judge.
const DOCTOR_MIN: u64 = 5 << 20;

/// Bytes that a key and its value take.
fn size(entry: &Entry) -> usize {
    BUCKET + entry.memory()
}

/// `MEMORY USAGE key [SAMPLES count]: collections know their size, so samples are checked and not needed.`
fn usage(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let mut at = 3;
    while at < args.len() {
        if !args.is(at, "SAMPLES") || at + 1 >= args.len() || args.int(at + 1)? < 0 {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    // As in the genuine server, a key whose time is over is one until it is removed.
    match cx.db.stored(args.key(0)) {
        Some(entry) => {
            let size = size(entry);
            cx.reply.count(size);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

/// The memory of a database besides its keys and values.
struct Tables {
    index: usize,
    keys: usize,
    main: usize,
    expires: usize,
}

/// Every database that has keys. A database that the call has locked is read through its view.
fn tables(cx: &Ctx<'_>) -> Vec<Tables> {
    let of = |index: usize, view: &View<'_>| {
        let (main, expires) = view.overhead();
        Tables { index, keys: view.len(), main, expires }
    };
    let all = (0..cx.instance().databases().len()).map(|index| match cx.view(index) {
        Some(view) => of(index, view),
        None => of(index, &cx.instance().database(index).lock_none(cx.now())),
    });
    all.filter(|tables| tables.keys > 0).collect()
}

/// Bytes that wait for somebody.
pub(super) struct Buffers {
    /// For the slowest replica: replicas share them.
    pub(super) replicas: u64,
    /// For replicas that may come back.
    pub(super) backlog: u64,
    /// For the disk.
    pub(super) aof: u64,
    /// For clients other than replicas.
    pub(super) clients: u64,
}

impl Buffers {
    pub(super) fn of(instance: &Instance) -> Self {
        let (journal, replication) = (&instance.journal, &instance.replication);
        let (replicas, aof) = instance.unread();
        let backlog = if replication.has_backlog() { journal.held().saturating_sub(replicas + aof) } else { 0 };
        let clients = instance.clients();
        let clients = clients.iter().filter(|client| !client.has_flag(flag::REPLICA)).map(|client| client.memory());
        Self { replicas, backlog, aof, clients: clients.sum() }
    }

    fn sum(&self) -> u64 {
        self.replicas + self.backlog + self.aof + self.clients
    }
}

/// Bytes that are in use besides keys and values.
pub(super) fn overhead(cx: &Ctx<'_>) -> u64 {
    overhead_with(cx, &tables(cx), &Buffers::of(cx.instance()))
}

fn overhead_with(cx: &Ctx<'_>, tables: &[Tables], buffers: &Buffers) -> u64 {
    let tables: usize = tables.iter().map(|tables| tables.main + tables.expires).sum();
    cx.instance().startup_memory.load(Relaxed) + tables as u64 + buffers.sum()
}

/// A figure of MEMORY STATS.
enum Figure {
    /// Bytes, or a number.
    Int(i64),
    Ratio(f64),
}

/// Names and figures as they are told.
fn tell(reply: &mut Reply, figures: &[(&str, Figure)]) {
    for (name, figure) in figures {
        reply.bulk(name.as_bytes());
        match figure {
            Figure::Int(value) => reply.int(*value),
            Figure::Ratio(value) => reply.double(*value),
        }
    }
}

/// MEMORY STATS
fn stats(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let tables = tables(cx);
    let buffers = Buffers::of(cx.instance());
    let level = cx.config().level();
    let (before, after) = (before_databases(cx, &buffers), behind_databases(cx, &tables, &buffers));
    let reply = &mut *cx.reply;
    reply.map(before.len() + tables.len() + after.len());
    tell(reply, &before);
    for Tables { index, main, expires, .. } in tables {
        let bytes = |bytes: usize| Figure::Int(bytes as i64);
        let mut figures =
            vec![("overhead.hashtable.main", bytes(main)), ("overhead.hashtable.expires", bytes(expires))];
        // Tables of the genuine server that have none of their kind here.
        figures.extend(match level {
            Level::Redis80 => {
                vec![("overhead.db.hashtable.lut", bytes(0)), ("overhead.db.hashtable.rehashing", bytes(0))]
            }
            _ => vec![("overhead.hashtable.slot-to-keys", bytes(0))],
        });
        reply.bulk(format!("db.{index}").as_bytes());
        reply.map(figures.len());
        tell(reply, &figures);
    }
    tell(reply, &after);
    Ok(())
}

/// The figures before those of the databases: the memory in use, and its part that is no user data.
fn before_databases(cx: &Ctx<'_>, buffers: &Buffers) -> Vec<(&'static str, Figure)> {
    let (instance, used) = (cx.instance(), used_memory());
    let scripts = &instance.scripts.figures;
    let figure = |figure: &AtomicU64| figure.load(Relaxed);
    let is_80 = cx.config().level() == Level::Redis80;
    let mut figures = vec![
        ("peak.allocated", memory::peak().max(used)),
        ("total.allocated", used),
        ("startup.allocated", figure(&instance.startup_memory)),
        ("replication.backlog", buffers.backlog),
    ];
    figures.extend(is_80.then_some(("replica.fullsync.buffer", 0)));
    figures.extend([
        ("clients.slaves", buffers.replicas),
        ("clients.normal", buffers.clients),
        ("cluster.links", instance.cluster.all_unsent()),
        ("aof.buffer", buffers.aof),
        ("lua.caches", figure(&scripts.scripts_bytes)),
        ("functions.caches", figure(&scripts.libraries_bytes)),
    ]);
    figures.extend(is_80.then(|| ("script.VMs", figure(&scripts.eval_vm) + figure(&scripts.functions_vm))));
    figures.into_iter().map(|(name, bytes)| (name, Figure::Int(bytes as i64))).collect()
}

/// The figures after those of the databases: the sums, and the allocator's memory.
fn behind_databases(cx: &Ctx<'_>, tables: &[Tables], buffers: &Buffers) -> Vec<(&'static str, Figure)> {
    use Figure::{Int, Ratio};
    let (used, resident) = (used_memory(), memory::resident());
    let keys: u64 = tables.iter().map(|tables| tables.keys as u64).sum();
    let overhead = overhead_with(cx, tables, buffers);
    let (dataset, net) =
        (used.saturating_sub(overhead), used.saturating_sub(cx.instance().startup_memory.load(Relaxed)));
    let AllocatorPages { active, resident: of_allocator } = AllocatorPages::now(used);
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let mut figures = vec![("overhead.total", Int(overhead as i64))];
    let is_80 = cx.config().level() == Level::Redis80;
    figures.extend(is_80.then_some(("db.dict.rehashing.count", Int(0))));
    figures.extend([
        ("keys.count", Int(keys as i64)),
        ("keys.bytes-per-key", Int(net.checked_div(keys).unwrap_or(0) as i64)),
        ("dataset.bytes", Int(dataset as i64)),
        ("dataset.percentage", Ratio((100.0 * share(dataset, net)).min(100.0))),
        ("peak.percentage", Ratio(100.0 * share(used, memory::peak().max(used)))),
        ("allocator.allocated", Int(used as i64)),
        ("allocator.active", Int(active as i64)),
        ("allocator.resident", Int(of_allocator as i64)),
    ]);
    figures.extend(is_80.then_some(("allocator.muzzy", Int(0))));
    figures.extend([
        ("allocator-fragmentation.ratio", Ratio(share(active, used))),
        ("allocator-fragmentation.bytes", Int((active - used) as i64)),
        ("allocator-rss.ratio", Ratio(share(of_allocator, active))),
        ("allocator-rss.bytes", Int(of_allocator as i64 - active as i64)),
        ("rss-overhead.ratio", Ratio(share(resident, of_allocator))),
        ("rss-overhead.bytes", Int(resident as i64 - of_allocator as i64)),
        ("fragmentation", Ratio(share(resident, used))),
        ("fragmentation.bytes", Int(resident as i64 - used as i64)),
    ]);
    figures
}

/// MEMORY DOCTOR
fn doctor(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let (used, resident) = (used_memory(), memory::resident());
    let text = if used < DOCTOR_MIN {
        "This server holds too little data for a judgement: fill it and ask again.\n".to_owned()
    } else if resident > used.saturating_mul(3) / 2 {
        format!(
            "{} are in use, but {} of physical memory are taken. That is usual after much data was removed; \
             the allocator gives it back in time.\n",
            human(used),
            human(resident)
        )
    } else if memory::peak() > used.saturating_mul(3) / 2 {
        format!("{} are in use; there were {} before.\n", human(used), human(memory::peak()))
    } else {
        "Nothing to complain about.\n".to_owned()
    };
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// MEMORY MALLOC-STATS: this server's counters, then the allocator's report on its pages and arenas.
fn malloc_stats(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let used = memory::used_here();
    let text = format!(
        "{used} bytes in use, {} at most, {} about to be freed, {} resident\n{}\n{}",
        memory::peak().max(used),
        cx.instance().memory_on_its_way(),
        memory::resident(),
        memory::allocator_version(),
        memory::allocator_report()
    );
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// MEMORY PURGE: the allocator gives free pages back by itself, some time after they became free; this has it do so at
/// once for this thread, and for the other workers as soon as they get to it.
fn purge(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    memory::give_back(true);
    cx.instance().workers.give_back(true);
    cx.reply.ok();
    Ok(())
}

/// MEMORY HELP
fn memory_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "MEMORY", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
];

const NONE: Flags = Flags(0);
const READ: KeySpec = read(2).flags("RO");
const SPECIAL: &[&str] = &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("memory", -2, &[
    sub("doctor",       2, doctor,       NONE,            &[]).tips(SPECIAL),
    sub("help",         2, memory_help,  ANY_TIME,        &[]),
    sub("malloc-stats", 2, malloc_stats, NONE,            &[]).tips(SPECIAL),
    sub("purge",        2, purge,        NONE,            &[]).tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    sub("stats",        2, stats,        NONE,            &[]).role(Role::Survey).tips(SPECIAL),
    sub("usage",       -3, usage,        Flags::READONLY, &[READ]).weighs(Weight::Of(weight::values)),
]);
