//! What the HELP subcommands answer.

use crate::resp::Reply;

/// The subcommands of `name`, in the genuine server's frame.
pub(super) fn reply(reply: &mut Reply, name: &str, lines: &[&str]) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.simple(line));
    reply.simple("HELP");
    reply.simple("    Prints this help.");
}
