//! HELP, of any command with subcommands.

use crate::exec::core::Ctx;

/// Writes a HELP reply: how to call the command, its subcommands, and HELP itself.
pub(super) fn help(cx: &mut Ctx<'_>, name: &str, lines: &[&str]) {
    cx.reply.array(lines.len() + 3);
    cx.reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| cx.reply.simple(line));
    cx.reply.simple("HELP");
    cx.reply.simple("    Prints this help.");
}
