//! All commands in one compile-time table, with an index by name.

use crate::command::{Categories, Command, Family, Flags};
use crate::commands::FAMILIES;

/// A command or subcommand in the table.
#[derive(Debug)]
pub struct Row {
    /// Position in the table, and in every table of counters.
    pub id: u16,
    /// The command.
    pub command: &'static Command,
    /// The family it belongs to.
    pub family: &'static Family,
    /// The command whose subcommand it is.
    pub parent: Option<&'static Command>,
}

impl Row {
    /// The full name: `get`, `client|list`.
    pub fn name(&self) -> String {
        match self.parent {
            Some(parent) => format!("{}|{}", parent.name, self.command.name),
            None => self.command.name.to_owned(),
        }
    }

    /// Its ACL categories: its own, its family's, and those that its flags imply.
    pub fn categories(&self) -> Categories {
        let flags = self.command.flags;
        let implied = [
            (Flags::WRITE, Categories::WRITE),
            (Flags::READONLY, Categories::READ),
            (Flags::ADMIN, Categories::ADMIN.and(Categories::DANGEROUS)),
            (Flags::PUBSUB, Categories::PUBSUB),
            (Flags::BLOCKING, Categories::BLOCKING),
        ];
        let speed = if flags.has(Flags::FAST) { Categories::FAST } else { Categories::SLOW };
        // What only groups subcommands belongs to no family.
        let family = if self.command.subcommands.is_empty() { self.family.category } else { Categories(0) };
        let own = family.and(self.command.categories).and(speed);
        // What a script reads, the commands that it calls have said.
        let is_script = self.family.category.0 & Categories::SCRIPTING.0 != 0;
        let implies = |flag: Flags| flags.has(flag) && !(is_script && flag == Flags::READONLY);
        implied.iter().filter(|(flag, _)| implies(*flag)).fold(own, |all, (_, category)| all.and(*category))
    }

    /// The rows of its subcommands, which stand right behind it.
    pub fn subcommands(&self) -> &'static [Self] {
        let first = usize::from(self.id) + 1;
        &ROWS[first..first + self.command.subcommands.len()]
    }
}

/// Number of commands and subcommands.
pub const COUNT: usize = {
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
pub static ROWS: [Row; COUNT] = {
    const BLANK: Row = Row { id: 0, command: &FAMILIES[0].commands[0], family: FAMILIES[0], parent: None };
    let mut rows = [BLANK; COUNT];
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let commands = FAMILIES[family].commands;
        let mut at = 0;
        while at < commands.len() {
            let command = &commands[at];
            rows[count] = Row { id: count as u16, command, family: FAMILIES[family], parent: None };
            count += 1;
            let mut sub = 0;
            while sub < command.subcommands.len() {
                let child = &command.subcommands[sub];
                rows[count] = Row { id: count as u16, command: child, family: FAMILIES[family], parent: Some(command) };
                count += 1;
                sub += 1;
            }
            at += 1;
        }
        family += 1;
    }
    rows
};

/// Slots of the index: at least four times the number of names, so that nearly every probe is the first.
const SLOTS: usize = (COUNT * 4).next_power_of_two();
const VACANT: u16 = u16::MAX;

/// Position in [`ROWS`] by hash of the name, with linear probing.
static INDEX: [u16; SLOTS] = {
    let mut index = [VACANT; SLOTS];
    let mut id = 0;
    while id < COUNT {
        if ROWS[id].parent.is_none() {
            let mut slot = hash(ROWS[id].command.name.as_bytes());
            while index[slot] != VACANT {
                slot = (slot + 1) % SLOTS;
            }
            index[slot] = id as u16;
        }
        id += 1;
    }
    index
};

/// FNV-1a over the lower-case name.
const fn hash(name: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ (name[at] | 0x20) as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ hash >> 15) as usize % SLOTS
}

/// The command that `name` names, in any case of letters.
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static Row> {
    let mut slot = hash(name);
    while INDEX[slot] != VACANT {
        let row = &ROWS[usize::from(INDEX[slot])];
        if row.command.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(row);
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}

/// The row that `COMMAND INFO` and its like name by `name` or `name|subcommand`.
pub fn lookup_full(name: &[u8]) -> Option<&'static Row> {
    let (parent, sub) = match memchr::memchr(b'|', name) {
        Some(at) => (&name[..at], Some(&name[at + 1..])),
        None => (name, None),
    };
    let row = lookup(parent)?;
    let Some(sub) = sub else { return Some(row) };
    row.subcommands().iter().find(|row| row.command.name.as_bytes().eq_ignore_ascii_case(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for row in ROWS.iter().filter(|row| row.parent.is_none()) {
            for name in [row.command.name.to_owned(), row.command.name.to_uppercase()] {
                assert_eq!(lookup(name.as_bytes()).map(|row| row.id), Some(row.id), "{name}");
            }
        }
        assert!(lookup(b"nonesuch").is_none());
        assert!(lookup(b"").is_none());
    }
}
