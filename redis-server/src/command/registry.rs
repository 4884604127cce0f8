//! All commands and subcommands of a server, in one table with an index by name.

use super::args::Args;
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
        // A mere container of subcommands belongs to no group.
        let group = if self.subcommands == 0 { self.category } else { Categories(0) };
        let own = group.and(self.command.categories).and(speed);
        // A script's reads already count for the commands that it calls.
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
    len: usize,
    /// Its row; none, where the slot is vacant.
    row: Option<&'static Row>,
}

impl Slot {
    const VACANT: Self = Self { word: 0, len: 0, row: None };
}

/// A name that was looked for, and what was found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent {
    /// Its [`word`], as it was written.
    word: u64,
    len: usize,
    row: Option<&'static Row>,
}

/// Most rows that a table may have: sets of commands are bits of this width.
pub const MAX_ROWS: usize = 576;

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
        self.lookup_word(word(name), name)
    }

    /// [`Registry::lookup`] for a call, whose words stand one behind the other.
    ///
    /// `recent` is what was found before, and becomes what is found: the commands of a pipeline mostly have the same name.
    #[inline]
    pub fn lookup_call(&self, args: Args<'_>, recent: &mut Recent) -> Option<&'static Row> {
        let (name, following) = args.name_and_following()?;
        let word = match following.first_chunk() {
            Some(first) if name.len() < 8 => u64::from_le_bytes(*first) & !(u64::MAX << (8 * name.len())),
            Some(first) => u64::from_le_bytes(*first),
            None => word(name),
        };
        if recent.len != name.len() || recent.word != word || name.len() > 8 {
            *recent = Recent { word, len: name.len(), row: self.lookup_word(word, name) };
        }
        recent.row
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every command passes here")]
    fn lookup_word(&self, word: u64, name: &[u8]) -> Option<&'static Row> {
        let word = lower_case(word);
        let mask = self.index.len() - 1;
        let mut at = hash(word, name.len()) & mask;
        loop {
            let slot = &self.index[at];
            let row = slot.row?;
            // Up to eight bytes, the word is the whole name.
            if slot.word == word
                && slot.len == name.len()
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
pub const fn index<const SLOTS: usize>(rows: &'static [Row]) -> [Slot; SLOTS] {
    assert!(SLOTS.is_power_of_two() && SLOTS >= 4 * rows.len());
    let mut index = [Slot::VACANT; SLOTS];
    let mut id = 0;
    while id < rows.len() {
        if rows[id].parent.is_none() {
            let name = rows[id].command.name.as_bytes();
            let word = lower_case(word(name));
            let mut at = hash(word, name.len()) & (SLOTS - 1);
            while index[at].row.is_some() {
                at = (at + 1) & (SLOTS - 1);
            }
            index[at] = Slot { word, len: name.len(), row: Some(&rows[id]) };
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

/// The first eight bytes of a name; zeros behind it, if it is shorter.
#[inline]
const fn word(name: &[u8]) -> u64 {
    // Parts that overlap hold the same bytes.
    if let Some(first) = name.first_chunk::<8>() {
        u64::from_le_bytes(*first)
    } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        u32::from_le_bytes(*first) as u64 | (u32::from_le_bytes(*last) as u64) << (8 * (name.len() - 4))
    } else if name.is_empty() {
        0
    } else {
        let (middle, last) = (name.len() / 2, name.len() - 1);
        name[0] as u64 | (name[middle] as u64) << (8 * middle) | (name[last] as u64) << (8 * last)
    }
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

    /// A call is found by what stands in the input behind its name, too.
    #[test]
    fn lookup_call_ignores_input_after_the_name() {
        use crate::protocol::Span;
        let mut recent = Recent::default();
        for row in REGISTRY.rows().iter().filter(|row| row.parent.is_none()) {
            for following in ["", "\r", "\r\n$1\r\nk\r\n", "xxxxxxxxxxxxxxx"] {
                let input = format!("{}{following}", row.command.name);
                let spans = [Span { start: 0, len: row.command.name.len() as u32 }];
                let found = REGISTRY.lookup_call(Args::new(input.as_bytes(), &spans), &mut recent);
                assert_eq!(found.map(|row| row.id), Some(row.id), "{input:?}");
            }
        }
        assert!(REGISTRY.lookup_call(Args::new(b"", &[]), &mut recent).is_none());
    }

    #[test]
    fn letters_become_small_and_nothing_else_changes() {
        for byte in 0..=u8::MAX {
            let word = u64::from_le_bytes([byte; 8]);
            assert_eq!(lower_case(word), u64::from_le_bytes([byte.to_ascii_lowercase(); 8]), "{byte}");
        }
    }
}
