//! Options of `cargo xtask differ`.

use std::path::PathBuf;

use clap::Args;

use super::pair::Program;

/// Options of `cargo xtask differ`.
#[derive(Args)]
pub(crate) struct Options {
    /// The seed of the commands.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// How many commands are sent.
    #[arg(long, default_value_t = 100_000, conflicts_with = "until_difference")]
    pub(super) commands: u64,
    /// End at the first difference, and only then.
    #[arg(long)]
    pub(super) until_difference: bool,
    /// End after this many seconds, however many commands were sent.
    #[arg(long)]
    pub(super) seconds: Option<u64>,
    /// The first case's number, as a report names it.
    #[arg(long, default_value_t = 0)]
    pub(super) case: u64,
    /// Commands of a case.
    #[arg(long, default_value_t = 1000)]
    pub(super) case_length: usize,
    /// End after this many differences.
    #[arg(long, default_value_t = 20)]
    pub(super) differences: usize,
    /// Behind one case in so many, both servers load what came of it again, by DEBUG RELOAD and from both kinds of files, and must
    /// have the same data as before; 0: behind none.
    #[arg(long, default_value_t = 0)]
    pub(super) reload_each: u64,
    /// Behind one case in so many, the same commands run on the primaries of chains of three servers, ours and genuine ones, all of
    /// which must have the same data then; 0: behind none.
    #[arg(long, default_value_t = 0)]
    pub(super) replicate_each: u64,
    /// Pairs of servers that run cases side by side. More than there are cores, because what waits in one pair (a command
    /// for its time to be over) leaves the cores to the others.
    #[arg(long, default_value_t = 6)]
    pub(super) pairs: usize,
    /// Our server; by default as `cargo build --profile dist -p redis-server` leaves it.
    #[arg(long)]
    pub(super) ours: Option<PathBuf>,
    /// The genuine server.
    #[arg(long, default_value = "redis-server")]
    pub(super) genuine: PathBuf,
    /// The genuine server is a Valkey (by default the one that `cargo xtask suite --of valkey` has built): ours is to be
    /// compatible with that, and what Redis 7.0 does not have is sent, too.
    #[arg(long)]
    pub(super) valkey: bool,
}

impl Options {
    /// Our server.
    pub(super) fn ours(&self) -> Program {
        Program::ours(self.ours.clone().unwrap_or_else(xtask::workspace::shipped_server), self.valkey)
    }

    /// The genuine server.
    pub(super) fn genuine(&self) -> Program {
        let is_default = self.genuine.as_os_str() == "redis-server";
        if self.valkey && is_default {
            return Program::genuine(xtask::workspace::target_dir().join("suite-valkey/valkey/src/valkey-server"));
        }
        Program::genuine(self.genuine.clone())
    }
}
