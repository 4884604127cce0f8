//! `MEMORY`: what values, and the server as a whole, take.

use super::info::{client_buffers, human, used_memory};
use super::{ANY_TIME, help, sub};
use crate::command::{Args, Command, Ctx, Flags, KeySpec, Result, container, read};
use crate::db::Entry;
use crate::error::Error;
use crate::memory;

/// Bytes of a bucket of the keyspace's hash tables: the pointer to the entry and the control byte.
const BUCKET: usize = size_of::<usize>() + 1;
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
    match cx.db.peek(args.key(0)) {
        Some(entry) => {
            let size = size(entry);
            cx.reply.count(size);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

/// MEMORY STATS
fn stats(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let (used, resident) = (used_memory(), memory::resident());
    let peak = memory::peak().max(used);
    let databases: Vec<(usize, usize, usize)> = (0..cx.instance.databases().len())
        .map(|index| {
            let database = cx.instance.database(index);
            let keys = match cx.others.get(index) {
                _ if index == cx.client.db => cx.db.len(),
                Some(view) => view.len(),
                None => database.len(),
            };
            (index, keys, database.expiring())
        })
        .filter(|(_, keys, _)| *keys > 0)
        .collect();
    let keys: usize = databases.iter().map(|(_, keys, _)| keys).sum();
    let table: usize = keys * BUCKET;
    let buffers = client_buffers(cx.instance);
    let overhead = table as u64 + buffers;
    let dataset = used.saturating_sub(overhead);
    let figures: [(&str, u64); 9] = [
        ("peak.allocated", peak),
        ("total.allocated", used),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", buffers),
        ("aof.buffer", 0),
        ("overhead.total", overhead),
        ("keys.count", keys as u64),
        ("keys.bytes-per-key", if keys == 0 { 0 } else { dataset / keys as u64 }),
    ];
    let ratios: [(&str, f64); 3] = [
        ("dataset.percentage", dataset as f64 * 100.0 / used.max(1) as f64),
        ("peak.percentage", used as f64 * 100.0 / peak.max(1) as f64),
        ("fragmentation", resident as f64 / used.max(1) as f64),
    ];
    let reply = &mut *cx.reply;
    reply.map(figures.len() + databases.len() + ratios.len() + 2);
    for (name, value) in figures {
        reply.bulk(name.as_bytes());
        reply.int(value as i64);
    }
    for (index, keys, expiring) in databases {
        reply.bulk(format!("db.{index}").as_bytes());
        reply.map(2);
        reply.bulk(b"overhead.hashtable.main");
        reply.count(keys * BUCKET);
        reply.bulk(b"overhead.hashtable.expires");
        reply.count(expiring * 2 * size_of::<u64>());
    }
    for (name, value) in [("dataset.bytes", dataset as i64), ("fragmentation.bytes", resident as i64 - used as i64)] {
        reply.bulk(name.as_bytes());
        reply.int(value);
    }
    for (name, value) in ratios {
        reply.bulk(name.as_bytes());
        reply.double(value);
    }
    Ok(())
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
    cx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// MEMORY MALLOC-STATS
fn malloc_stats(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let text = format!("mimalloc: {} bytes in use, {} at most\n", memory::used(), memory::peak());
    cx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// MEMORY PURGE: the allocator gives free pages back by itself, shortly after they became free.
fn purge(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
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
pub(super) const COMMAND: Command = container("memory", -2, &[
    sub("doctor",       2, doctor,       NONE,            &[]).tips(SPECIAL),
    sub("help",         2, memory_help,  ANY_TIME,        &[]),
    sub("malloc-stats", 2, malloc_stats, NONE,            &[]).tips(SPECIAL),
    sub("purge",        2, purge,        NONE,            &[]).tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    sub("stats",        2, stats,        NONE,            &[]).tips(SPECIAL),
    sub("usage",       -3, usage,        Flags::READONLY, &[READ]),
]);
