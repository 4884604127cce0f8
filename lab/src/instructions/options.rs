//! Options of `cargo xtask instructions`.

use clap::Args;

/// Options of `cargo xtask instructions`.
#[derive(Args)]
pub(crate) struct Options {
    /// Keys of 16 bytes in the server.
    #[arg(long, default_value_t = 100_000)]
    pub(super) keys: u64,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100)]
    pub(super) value_size: usize,
    /// Requests sent at a time.
    #[arg(long, default_value_t = 16)]
    pub(super) depth: u64,
    /// Requests that are counted.
    #[arg(long, default_value_t = 160_000)]
    pub(super) requests: u64,
    /// The server's command, without its port (default: the shipped build).
    #[arg(long)]
    pub(super) server: Option<String>,
    /// The server is the only node of a Redis Cluster.
    #[arg(long, conflicts_with_all = ["http", "grpc"])]
    pub(super) cluster: bool,
    /// Count http-server's instead, which is built if need be; `/get` with a genuine redis-server behind it.
    #[arg(long)]
    pub(super) http: bool,
    /// Count grpc-server's, and the default tonic greeter's for comparison, by library; --server names another greeter.
    #[arg(long, conflicts_with = "http")]
    pub(super) grpc: bool,
    /// With --grpc, write the figures to lab/record/instructions-grpc.txt.
    #[arg(long, requires = "grpc", conflicts_with = "server")]
    pub(super) record: bool,
}
