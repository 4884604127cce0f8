//! Costs of servers other than rates: memory, and the expiry of fields. Speed is compared by the plans in `benches/scenarios`.

pub(crate) mod collections;
pub(crate) mod fields;
mod memory;
pub(crate) mod stats;
mod subject;

use std::fs;

use anyhow::{Result, bail};
use clap::Args;

pub(crate) use subject::memory_only;
use subject::{Pinning, Subject, parse_pinning};

/// Options of `cargo xtask compare`.
///
/// Example: cargo xtask compare --memory --subject ours=target/dist/redis-server --subject redis=/usr/bin/redis-server
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// A server to measure, as NAME=COMMAND; at least one, the first is compared with each of the others.
    /// `--bind 127.0.0.1 --port N --save '' --appendonly no` is appended, unless the command places its port itself by {port}.
    #[arg(long = "subject", value_name = "NAME=COMMAND", required = true, value_parser = subject::parse)]
    subjects: Vec<Subject>,
    /// Keys of 16 bytes that are loaded.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of each loaded value.
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// Cores for the servers (a list may be 0-1).
    #[arg(long, value_parser = parse_pinning)]
    pin: Option<Pinning>,
    /// Measure resident bytes per loaded key.
    #[arg(long)]
    memory: bool,
    /// Measure resident bytes per element of collections.
    #[arg(long, conflicts_with = "memory")]
    collections: bool,
    /// Measure a hash of this many fields that expire: memory, processor time, and how long another client waits.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["memory", "collections"])]
    fields: Option<usize>,
    /// Keep what is measured in benches/record/collections.jsonl, or fields.jsonl.
    #[arg(long, conflicts_with = "memory")]
    record: bool,
}

/// Measures and prints.
///
/// # Errors
/// When a server cannot be started, or answers wrongly.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = crate::workspace::target_dir().join("compare");
    fs::create_dir_all(&folder)?;
    if options.memory {
        return memory::run(options, &folder);
    }
    if options.collections {
        return collections::run(options, &folder);
    }
    if let Some(fields) = options.fields {
        return fields::run(options, fields, &folder);
    }
    bail!("expected what is to be measured: --memory, --collections or --fields")
}
