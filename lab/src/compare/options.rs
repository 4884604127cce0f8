//! Options of `cargo xtask compare`.

use clap::Args;

use super::subject::{self, Pinning, Subject, parse_pinning};

/// Options of `cargo xtask compare`.
///
/// Example: cargo xtask compare --memory --subject ours=target/dist/redis-server --subject redis=/usr/bin/redis-server
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// A server to measure, as NAME=COMMAND; at least one, the first is compared with each of the others.
    /// `--bind 127.0.0.1 --port N --save '' --appendonly no` is appended, unless the command places its port itself by {port}.
    #[arg(long = "subject", value_name = "NAME=COMMAND", required = true, value_parser = subject::parse)]
    pub(super) subjects: Vec<Subject>,
    /// Keys of 16 bytes that are loaded.
    #[arg(long, default_value_t = 1_000_000)]
    pub(super) keys: u64,
    /// Bytes of each loaded value.
    #[arg(long, default_value_t = 100)]
    pub(super) value_size: usize,
    /// Cores for the servers (a list may be 0-1).
    #[arg(long, value_parser = parse_pinning)]
    pub(super) pin: Option<Pinning>,
    /// Measure resident bytes per loaded key.
    #[arg(long)]
    pub(super) memory: bool,
    /// Measure resident bytes per element of collections.
    #[arg(long, conflicts_with = "memory")]
    pub(super) collections: bool,
    /// Measure a hash of this many fields that expire: memory, processor time, and how long another client waits.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["memory", "collections"])]
    pub(super) fields: Option<usize>,
    /// Keep what is measured in benches/record/collections.jsonl, or fields.jsonl.
    #[arg(long, conflicts_with = "memory")]
    pub(super) record: bool,
}
