//! How a family writes its table: each command with what runs for it.

use crate::command::{
    Args, BATCH_ARGS, Begin, Categories, Command, Find, Flags, Footprint, KeyPositions, KeySpec, NO_BATCH, Reach,
    Result, Role, Weight,
};
use crate::exec::core::{Ctx, Handler};
use crate::keyspace::{Access, View};
use crate::protocol::error::Error;

/// A command, and what runs when it is called.
#[derive(Debug)]
pub struct Definition {
    /// The command's row in the registry.
    pub command: Command,
    /// The function that runs it.
    pub handler: Handler,
    /// Its subcommands; empty for most.
    pub subcommands: &'static [Self],
}

/// The commands of one group.
#[derive(Debug)]
pub struct Family {
    /// The group's name in `COMMAND DOCS`.
    pub group: &'static str,
    /// ACL category of all its commands.
    pub category: Categories,
    /// The commands.
    pub commands: &'static [Definition],
}

/// A row: name, arity, handler, flags, keys.
pub const fn cmd(
    name: &'static str,
    arity: i8,
    handler: Handler,
    flags: Flags,
    keys: &'static [KeySpec],
) -> Definition {
    let (only_key, only_access) = match keys {
        [KeySpec { begin: Begin::Index(index), find: Find::Range { last: 0, .. }, usage }] => (*index, usage.access),
        _ => (0, Access::Write),
    };
    let command = Command {
        name,
        arity,
        flags: if moves(keys) { flags.and(Flags::MOVABLEKEYS) } else { flags },
        keys,
        footprint: Footprint::Keys,
        reach: Reach::Own,
        categories: Categories(0),
        tips: &[],
        finder: None,
        only_key,
        only_access,
        batch: if only_key != 0 && flags.has(Flags::FAST) && !flags.has(Flags::BLOCKING) {
            batch(arity, BATCH_ARGS)
        } else {
            NO_BATCH
        },
        batches_if_light: false,
        takes_over: false,
        weight: Weight::Little,
        gathers: false,
        role: Role::Plain,
    };
    Definition { command, handler, subcommands: &[] }
}

/// The numbers of arguments that a command of this arity accepts, up to `most` where it accepts any.
const fn batch(arity: i8, most: u16) -> (u16, u16) {
    let least = arity.unsigned_abs() as u16;
    (least, if arity < 0 { most } else { least })
}

/// Whether some key's position depends on the arguments.
const fn moves(keys: &[KeySpec]) -> bool {
    let mut at = 0;
    while at < keys.len() {
        if !matches!(keys[at], KeySpec { begin: Begin::Index(_), find: Find::Range { .. }, .. }) {
            return true;
        }
        at += 1;
    }
    false
}

/// A subcommand's row.
pub const fn sub(
    name: &'static str,
    arity: i8,
    handler: Handler,
    flags: Flags,
    keys: &'static [KeySpec],
) -> Definition {
    cmd(name, arity, handler, flags, keys)
}

/// A command that only groups subcommands.
pub const fn container(name: &'static str, arity: i8, subcommands: &'static [Definition]) -> Definition {
    Definition { subcommands, ..cmd(name, arity, no_subcommand, Flags(0), &[]) }
}

/// The dispatcher resolves subcommands before it calls, and refuses unknown ones.
fn no_subcommand(_: &mut Ctx<'_>, args: Args<'_>) -> Result {
    Err(Error::unknown_subcommand(args))
}

impl Definition {
    /// The same row with another footprint.
    pub const fn locks(mut self, footprint: Footprint) -> Self {
        self.command.footprint = footprint;
        self.command.batch = NO_BATCH;
        self
    }

    /// The same row, which reaches into other databases than the client's.
    pub const fn reaches(mut self, reach: Reach) -> Self {
        self.command.reach = reach;
        self
    }

    /// The same row with more ACL categories.
    pub const fn also(mut self, categories: Categories) -> Self {
        self.command.categories = categories;
        self
    }

    /// The same row, to run under the same locks as its neighbours in a pipeline though the table does not call it fast.
    pub const fn batched(mut self) -> Self {
        assert!(self.command.only_key != 0, "a window locks one key per command");
        self.command.batch = batch(self.command.arity, BATCH_ARGS);
        self
    }

    /// The same row, whose calls run under the same locks as their neighbours unless `weight` of them is much.
    pub const fn batched_if_light(mut self, weight: fn(&View<'_>, Args<'_>) -> usize) -> Self {
        assert!(self.command.only_key != 0, "a window locks one key per command");
        self.command.batch = NO_BATCH;
        self.command.batches_if_light = true;
        self.weighs(Weight::Of(weight))
    }

    /// The same row, which takes a large argument over as its value.
    pub const fn takes_over(mut self) -> Self {
        self.command.takes_over = true;
        self
    }

    /// The same row, of so much work.
    pub const fn weighs(mut self, weight: Weight) -> Self {
        self.command.weight = weight;
        self
    }

    /// The same row, of which other nodes of a cluster do a part.
    pub const fn gathers(mut self) -> Self {
        self.command.gathers = true;
        self
    }

    /// The same row, which plays a part for those who run it.
    pub const fn role(mut self, role: Role) -> Self {
        self.command.role = role;
        self
    }

    /// The same row, of which only calls with so many arguments run under the locks of their neighbours.
    pub const fn batched_up_to(mut self, args: u16) -> Self {
        self.command.batch.1 = args;
        self
    }

    /// The same row, whose keys `finder` finds.
    pub const fn finder(mut self, finder: fn(Args<'_>) -> KeyPositions) -> Self {
        assert!(self.command.only_key == 0, "the only key's position is known");
        self.command.finder = Some(finder);
        self
    }

    /// The same row with tips.
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.command.tips = tips;
        self
    }
}

/// A row with subcommands.
pub(super) const fn with_subcommands(definition: Definition, subcommands: &'static [Definition]) -> Definition {
    Definition { subcommands, ..definition }
}
