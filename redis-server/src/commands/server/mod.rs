//! The server (<https://redis.io/docs/latest/commands/?group=server>).

mod command;
mod config;
mod debug;
mod digest;
mod memory;

use super::help;
use crate::command::{Categories, Command, Family, Flags, sub};

/// A row with subcommands.
const fn with_subcommands(command: Command, subcommands: &'static [Command]) -> Command {
    Command { subcommands, ..command }
}

const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(ANY_TIME);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
    command::COMMAND,
    config::COMMAND,
    debug::COMMAND,
] };
