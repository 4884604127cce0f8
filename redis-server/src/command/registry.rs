//! All commands and subcommands of a server, in one table with an index by name.

use super::flags::{Categories, Flags};
use super::row::Command;

/// A command or subcommand in the table.
#[derive(Debug)]
pub struct Row {
    /// Position in the table, and in every table of counters.
    pub id: u16,
    /// The command.
    pub command: &'static Command,
    /// The group that it belongs to, as in `COMMAND DOCS`.
    pub group: &'static str,
    /// ACL category of its group.
    pub category: Categories,
    /// The command whose subcommand it is.
    pub parent: Option<&'static Command>,
    /// Number of its subcommands, whose rows stand right behind it.
    pub subcommands: u16,
}

impl Row {
    /// The full name: `get`, `client|list`.
    pub fn name(&self) -> String {
        match self.parent {
            Some(parent) => format!("{}|{}", parent.name, self.command.name),
            None => self.command.name.to_owned(),
        }
    }

    /// Its ACL categories: its own, its group's, and those that its flags imply.
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
        // What only groups subcommands belongs to no group.
        let group = if self.subcommands == 0 { self.category } else { Categories(0) };
        let own = group.and(self.command.categories).and(speed);
        // What a script reads, the commands that it calls have said.
        let is_script = self.category.0 & Categories::SCRIPTING.0 != 0;
        let implies = |flag: Flags| flags.has(flag) && !(is_script && flag == Flags::READONLY);
        implied.iter().filter(|(flag, _)| implies(*flag)).fold(own, |all, (_, category)| all.and(*category))
    }
}

/// The table: every command, a command's subcommands right behind it, and where each name is.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    rows: &'static [Row],
    /// Names by their [`hash`], with linear probing; [`Slot::VACANT`] ends a search.
    index: &'static [Slot],
}

/// A name in the index.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its [`word`].
    word: u64,
    len: u32,
    /// Position of its row; of none, where the slot is vacant.
    row: u32,
}

impl Slot {
    const VACANT: Self = Self { word: 0, len: 0, row: u32::MAX };
}

/// Most rows that a table may have: sets of commands are bits of this width.
pub const MAX_ROWS: usize = 512;

impl Registry {
    /// The table of these rows, which [`index`] has put into `index`.
    pub const fn new(rows: &'static [Row], index: &'static [Slot]) -> Self {
        assert!(rows.len() <= MAX_ROWS && index.len().is_power_of_two() && index.len() > rows.len());
        Self { rows, index }
    }

    /// Every row in its order.
    pub fn rows(&self) -> &'static [Row] {
        self.rows
    }

    /// The command that `name` names, in any case of letters.
    #[inline]
    pub fn lookup(&self, name: &[u8]) -> Option<&'static Row> {
        let mask = self.index.len() - 1;
        let word = word(name);
        let mut at = hash(word, name.len()) & mask;
        loop {
            let slot = &self.index[at];
            let row = self.rows.get(slot.row as usize)?;
            // Up to eight bytes, the word is the whole name.
            if slot.word == word
                && slot.len as usize == name.len()
                && (name.len() <= 8 || row.command.name.as_bytes().eq_ignore_ascii_case(name))
            {
                return Some(row);
            }
            at = (at + 1) & mask;
        }
    }

    /// The row that `COMMAND INFO` and its like name by `name` or `name|subcommand`.
    pub fn lookup_full(&self, name: &[u8]) -> Option<&'static Row> {
        let (parent, sub) = match memchr::memchr(b'|', name) {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let row = self.lookup(parent)?;
        match sub {
            Some(sub) => self.subcommand(row, sub),
            None => Some(row),
        }
    }

    /// The rows of a command's subcommands.
    pub fn subcommands(&self, row: &Row) -> &'static [Row] {
        let first = usize::from(row.id) + 1;
        &self.rows[first..first + usize::from(row.subcommands)]
    }

    /// The subcommand of `row` that `name` names, in any case of letters.
    pub fn subcommand(&self, row: &Row, name: &[u8]) -> Option<&'static Row> {
        self.subcommands(row).iter().find(|row| row.command.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// The index of a table: at least four times as many slots as rows make nearly every probe the first.
pub const fn index<const SLOTS: usize>(rows: &[Row]) -> [Slot; SLOTS] {
    assert!(SLOTS.is_power_of_two() && SLOTS >= 4 * rows.len());
    let mut index = [Slot::VACANT; SLOTS];
    let mut id = 0;
    while id < rows.len() {
        if rows[id].parent.is_none() {
            let name = rows[id].command.name.as_bytes();
            let word = word(name);
            let mut at = hash(word, name.len()) & (SLOTS - 1);
            while index[at].row != Slot::VACANT.row {
                at = (at + 1) & (SLOTS - 1);
            }
            index[at] = Slot { word, len: name.len() as u32, row: id as u32 };
        }
        id += 1;
    }
    index
}

/// Spreads the [`word`] and the length of a name.
#[inline]
const fn hash(word: u64, len: usize) -> usize {
    let mixed = (word ^ len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize
}

/// The first eight bytes of a name in lower case; all of them, if it is not longer.
#[inline]
const fn word(name: &[u8]) -> u64 {
    let word = if let Some(first) = name.first_chunk::<8>() {
        u64::from_le_bytes(*first)
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        // They overlap, in the same way for names of the same length.
        u32::from_le_bytes(*first) as u64 | (u32::from_le_bytes(*last) as u64) << 32
    } else if name.is_empty() {
        0
    } else {
        name[0] as u64 | (name[name.len() / 2] as u64) << 8 | (name[name.len() - 1] as u64) << 16
    };
    lower_case(word)
}

/// Eight bytes at once: those from `A` to `Z` become small.
#[inline]
const fn lower_case(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let seven_bits = word & (0x7f * ONES);
    let from_a = seven_bits + (0x80 - b'A' as u64) * ONES;
    let behind_z = seven_bits + (0x80 - b'Z' as u64 - 1) * ONES;
    let capitals = (from_a ^ behind_z) & !word & (0x80 * ONES);
    word | capitals >> 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::REGISTRY;

    #[test]
    fn every_command_is_found_in_any_case() {
        for row in REGISTRY.rows().iter().filter(|row| row.parent.is_none()) {
            for name in [row.command.name.to_owned(), row.command.name.to_uppercase()] {
                assert_eq!(REGISTRY.lookup(name.as_bytes()).map(|row| row.id), Some(row.id), "{name}");
            }
        }
        for name in ["", "g", "nonesuch", "getx", "get\0", "ge\x14", "ge\u{f4}", "georadius\u{7f}ro", "flushall\0"] {
            assert!(REGISTRY.lookup(name.as_bytes()).is_none(), "{name:?}");
        }
    }

    #[test]
    fn letters_become_small_and_nothing_else_changes() {
        for byte in 0..=u8::MAX {
            let word = u64::from_le_bytes([byte; 8]);
            assert_eq!(lower_case(word), u64::from_le_bytes([byte.to_ascii_lowercase(); 8]), "{byte}");
        }
    }
}
