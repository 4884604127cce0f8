//! The error for an unknown command.

use super::Args;
use crate::protocol::error::{Error, c_string, echo, shown};

/// Longest part of a client's argument that an error repeats, in bytes.
const MAX_ECHO: usize = 128;

impl Error {
    /// No command has this name.
    pub fn unknown_command(args: Args<'_>) -> Self {
        let (mut rest, mut len) = (String::new(), 0);
        for arg in args.iter().skip(1) {
            if len >= MAX_ECHO {
                break;
            }
            let arg = &c_string(arg)[..c_string(arg).len().min(MAX_ECHO - len)];
            rest.push_str(&format!("'{}' ", shown(arg)));
            len += arg.len() + "'' ".len();
        }
        Self::Message(format!("ERR unknown command '{}', with args beginning with: {rest}", echo(args.at(0), MAX_ECHO)))
    }

    /// The command has no such subcommand.
    pub fn unknown_subcommand(args: Args<'_>) -> Self {
        let sub = echo(args.get(1).unwrap_or_default(), MAX_ECHO);
        let name = echo(args.at(0), MAX_ECHO).to_ascii_uppercase();
        Self::Message(format!("ERR unknown subcommand '{sub}'. Try {name} HELP."))
    }

    /// The arguments of a subcommand do not fit.
    pub fn subcommand_syntax(args: Args<'_>) -> Self {
        let sub = echo(args.get(1).unwrap_or_default(), MAX_ECHO);
        let name = echo(args.at(0), MAX_ECHO).to_ascii_uppercase();
        Self::Message(format!("ERR unknown subcommand or wrong number of arguments for '{sub}'. Try {name} HELP."))
    }
}
