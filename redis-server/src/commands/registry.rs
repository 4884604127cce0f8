//! All commands in one compile-time table.

use super::FAMILIES;
use super::definition::{Definition, Family};
use crate::command::{Command, Registry, Row, Slot, index};
use crate::exec::core::{CommandTable, Handler};

/// Number of commands and subcommands.
const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let commands = FAMILIES[family].commands;
        let mut at = 0;
        while at < commands.len() {
            count += 1 + commands[at].subcommands.len();
            at += 1;
        }
        family += 1;
    }
    count
};

/// Every command and subcommand, a command's subcommands right behind it.
static ROWS: [Row; COUNT] = {
    const BLANK: Row = row(0, FAMILIES[0], &FAMILIES[0].commands[0], None);
    let mut rows = [BLANK; COUNT];
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let commands = FAMILIES[family].commands;
        let mut at = 0;
        while at < commands.len() {
            let definition = &commands[at];
            rows[count] = row(count, FAMILIES[family], definition, None);
            count += 1;
            let mut sub = 0;
            while sub < definition.subcommands.len() {
                let child = &definition.subcommands[sub];
                rows[count] = row(count, FAMILIES[family], child, Some(&definition.command));
                count += 1;
                sub += 1;
            }
            at += 1;
        }
        family += 1;
    }
    rows
};

const fn row(
    id: usize,
    family: &'static Family,
    definition: &'static Definition,
    parent: Option<&'static Command>,
) -> Row {
    let Definition { command, subcommands, .. } = definition;
    let (group, category) = (family.group, family.category);
    Row { id: id as u16, command, group, category, parent, subcommands: subcommands.len() as u16 }
}

/// The handlers, by the number of the row.
static HANDLERS: [Handler; COUNT] = {
    let mut handlers = [FAMILIES[0].commands[0].handler; COUNT];
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let commands = FAMILIES[family].commands;
        let mut at = 0;
        while at < commands.len() {
            handlers[count] = commands[at].handler;
            count += 1;
            let mut sub = 0;
            while sub < commands[at].subcommands.len() {
                handlers[count] = commands[at].subcommands[sub].handler;
                count += 1;
                sub += 1;
            }
            at += 1;
        }
        family += 1;
    }
    handlers
};

/// Slots of the index.
const SLOTS: usize = (COUNT * 4).next_power_of_two();

static INDEX: [Slot; SLOTS] = index(&ROWS);

/// Every command of this server, with what runs for it.
pub static TABLE: CommandTable =
    CommandTable { registry: Registry::new(&ROWS, &INDEX), handlers: &HANDLERS, gather: super::GATHER };

/// The properties of every command.
pub const REGISTRY: &Registry = &TABLE.registry;
