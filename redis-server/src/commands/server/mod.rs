//! The server (<https://redis.io/docs/latest/commands/?group=server>).

mod command;
mod config;
mod debug;
mod digest;
mod memory;

use crate::command::{Categories, Command, Ctx, Family, Flags, sub};

/// Writes a HELP reply: how to call the command, its subcommands, and HELP itself.
pub(super) fn help(cx: &mut Ctx<'_>, name: &str, lines: &[&str]) {
    cx.reply.array(lines.len() + 3);
    cx.reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| cx.reply.simple(line));
    cx.reply.simple("HELP");
    cx.reply.simple("    Prints this help.");
}

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
