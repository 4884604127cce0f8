//! Options of `cargo xtask suite`.

use std::path::PathBuf;

use clap::Args;

use super::nodes::Nodes;
use super::source::Of;

/// Options of `cargo xtask suite`.
#[derive(Args)]
pub(crate) struct Options {
    /// The project whose test suite runs.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["spawn", "cluster", "sentinel"])]
    pub(super) of: Of,
    /// Test a server that already runs on this port of the loopback interface (default: starts the shipped build).
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// Have the suite start its servers itself, ours in the place of `src/redis-server`.
    #[arg(long, conflicts_with = "port")]
    pub(super) spawn: bool,
    /// Of the files that are run so, only those that the gates run.
    #[arg(long, requires = "spawn")]
    pub(super) gate: bool,
    /// Run its tests of clusters, with ours as the nodes.
    #[arg(long, group = "nodes", conflicts_with_all = ["port", "spawn"])]
    pub(super) cluster: bool,
    /// Run its tests of Sentinel, with ours as the servers that genuine Sentinels watch.
    #[arg(long, group = "nodes", conflicts_with_all = ["port", "spawn"])]
    pub(super) sentinel: bool,
    /// Have the genuine server as every second node.
    #[arg(long, requires = "nodes")]
    pub(super) mixed: bool,
    /// Run RediSearch's own Python tests instead.
    #[arg(long, conflicts_with_all = ["of", "port", "spawn", "nodes", "genuine", "compare_genuine"])]
    pub(super) search: bool,
    /// A git repository of RediSearch with the tag v2.10.5, for `--search`.
    #[arg(long, env = "REDISEARCH_REPOSITORY", value_name = "FOLDER")]
    pub(super) repository: Option<PathBuf>,
    /// Run valkey-search's own integration tests instead.
    #[arg(long, conflicts_with_all = ["of", "port", "spawn", "nodes", "genuine", "compare_genuine", "search"])]
    pub(super) valkey_search: bool,
    /// A git repository of valkey-search, for `--valkey-search`.
    #[arg(long, env = "VALKEY_SEARCH_REPOSITORY", value_name = "FOLDER")]
    pub(super) valkey_search_repository: Option<PathBuf>,
    /// A git repository of valkey-test-framework, for `--valkey-search`.
    #[arg(long, env = "VALKEY_TEST_FRAMEWORK_REPOSITORY", value_name = "FOLDER")]
    pub(super) test_framework_repository: Option<PathBuf>,
    /// Only this file of the suite, such as unit/type/string, test_tags of RediSearch's or valkey-search's, or 07 of those about clusters or Sentinel; may be repeated.
    #[arg(long = "file", value_name = "UNIT")]
    pub(super) files: Vec<String>,
    /// Print what Debian's own redis-server does beside ours, freshly run.
    #[arg(long)]
    pub(super) compare_genuine: bool,
    /// Test Debian's redis-server in place of ours: a check of this command itself.
    #[arg(long)]
    pub(super) genuine: bool,
    /// Our program (default: the shipped build).
    #[arg(long, value_name = "PROGRAM")]
    pub(super) ours: Option<PathBuf>,
    /// Files that are run at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
    pub(super) jobs: u32,
    /// Seconds for one file, all its retries included.
    #[arg(long, default_value_t = 600)]
    pub(super) time_limit: u64,
}

impl Options {
    /// Of what kind the servers are, where a file starts many.
    pub(super) fn nodes(&self) -> Option<Nodes> {
        match (self.cluster, self.sentinel) {
            (true, _) => Some(Nodes::Cluster),
            (_, true) => Some(Nodes::Sentinel),
            _ => None,
        }
    }
}

/// Most files that are run at the same time.
pub(super) const LANES_MAX: u32 = 4;
