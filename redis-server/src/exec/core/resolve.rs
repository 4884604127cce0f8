//! From a command's words to its row.

use crate::command::{Args, Flags, Footprint, Recent, Row};
use crate::exec::core::{Instance, Worker};
use crate::protocol::error::Error;

/// The command of this name, as `rename-command` has left it.
#[inline]
pub(crate) fn lookup(instance: &Instance, name: &[u8]) -> Option<&'static Row> {
    if !instance.has_renamed() {
        return instance.registry.lookup(name);
    }
    instance.renamed(name).unwrap_or_else(|| instance.registry.lookup(name))
}

/// The command that `args` name, with its subcommand; arity is checked.
///
/// # Errors
/// Unknown command or subcommand, or a wrong number of arguments.
pub fn resolve(instance: &Instance, args: Args<'_>) -> Result<&'static Row, Error> {
    let Some(mut row) = lookup(instance, args.at(0)) else { return Err(Error::unknown_command(args)) };
    if row.subcommands != 0
        && let Some(name) = args.get(1)
    {
        row = instance.registry.subcommand(row, name).ok_or_else(|| Error::unknown_subcommand(args))?;
    }
    if row.command.accepts(args.len()) { Ok(row) } else { Err(Error::WrongArity(row.name().into())) }
}

/// The command that `args` name, with its subcommand, whatever the number of arguments.
pub(crate) fn find(instance: &Instance, args: Args<'_>) -> Option<&'static Row> {
    let row = lookup(instance, args.at(0))?;
    match args.get(1) {
        Some(name) if row.subcommands != 0 => instance.registry.subcommand(row, name),
        _ => Some(row),
    }
}

/// The command that `args` name, if it runs under the same locks as its neighbours, whatever it meets; of a server that has
/// renamed none.
#[inline]
pub(crate) fn find_batched(worker: &Worker, args: Args<'_>, recent: &mut Recent) -> Option<&'static Row> {
    let row = worker.instance.registry.lookup_call(args, recent)?;
    row.command.batches_anyway(args.len()).then_some(row)
}

/// The flags of a call: a script's own, where it has declared some.
#[inline]
pub(crate) fn flags_of(instance: &Instance, row: &Row, args: Args<'_>) -> Flags {
    match row.command.footprint {
        Footprint::Alone => instance.scripts.flags_of_call(row, args),
        _ => row.command.flags,
    }
}
