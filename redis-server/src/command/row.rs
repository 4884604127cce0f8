//! A command's row in the table.

use smallvec::SmallVec;

use super::args::Args;
use super::flags::{Categories, Flags};
use super::keys::{Begin, Find, KeySpec};
use crate::exec::Ctx;
use crate::keyspace::Access;
use crate::protocol::error::Error;

/// What a handler returns: the reply is in [`Ctx::reply`], or the error is to be sent instead of it.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// Positions of keys among the arguments, and how each is used.
pub type KeyPositions = SmallVec<[(usize, Access); 8]>;

/// Positions of keys among the arguments, and what happens to each in the words of a key specification.
pub type KeyUses = SmallVec<[(usize, &'static str); 8]>;

/// What runs when a command is called.
pub type Handler = fn(&mut Ctx<'_>, Args<'_>) -> Result;

/// What a command needs locked.
#[derive(Clone, Copy, Debug)]
pub enum Footprint {
    /// The keys that the row declares (none, if it declares none).
    Keys,
    /// The shards of the client's database one after the other, which the handler locks by walking through them; in
    /// a transaction, all of them from its beginning on.
    Walk,
    /// The same with all databases.
    WalkEverything,
    /// Every shard of the client's database.
    Database(Access),
    /// Every shard of every database.
    Everything,
    /// Nothing, because nobody else runs meanwhile: scripts, whose keys are not known before.
    Alone,
    /// What the function makes of the arguments; never this variant again.
    Depends(fn(Args<'_>) -> Self),
}

/// One command, or subcommand.
#[derive(Debug)]
pub struct Command {
    /// Name in lower case; subcommands: their own name only.
    pub name: &'static str,
    /// Number of arguments with the name; negative: at least so many.
    pub arity: i8,
    /// What runs.
    pub handler: Handler,
    /// Flags of `COMMAND INFO`.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// What to lock.
    pub footprint: Footprint,
    /// ACL categories beyond those that family and flags imply.
    pub categories: Categories,
    /// Hints for clients and proxies, as in `COMMAND INFO`.
    pub tips: &'static [&'static str],
    /// Finds the keys where the specifications alone cannot.
    pub finder: Option<fn(Args<'_>) -> KeyPositions>,
    /// Subcommands by name; empty for most.
    pub subcommands: &'static [Self],
    /// The only key's position, when the keys are as simple as that: the fast path's shortcut. 0: look at `keys`.
    pub only_key: u8,
    /// Whether neighbours in a pipeline may run under the same locks: one key, and little work.
    pub batched: bool,
}

/// The commands of one group.
#[derive(Debug)]
pub struct Family {
    /// The group's name in `COMMAND DOCS`.
    pub group: &'static str,
    /// ACL category of all its commands.
    pub category: Categories,
    /// The commands.
    pub commands: &'static [Command],
}

/// A row: name, arity, handler, flags, keys.
pub const fn cmd(name: &'static str, arity: i8, handler: Handler, flags: Flags, keys: &'static [KeySpec]) -> Command {
    let only_key = match keys {
        [KeySpec { begin: Begin::Index(index), find: Find::Range { last: 0, .. }, .. }] => *index,
        _ => 0,
    };
    Command {
        name,
        arity,
        handler,
        flags: if moves(keys) { flags.and(Flags::MOVABLEKEYS) } else { flags },
        keys,
        footprint: Footprint::Keys,
        categories: Categories(0),
        tips: &[],
        finder: None,
        subcommands: &[],
        only_key,
        batched: only_key != 0 && flags.has(Flags::FAST) && !flags.has(Flags::BLOCKING),
    }
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
pub const fn sub(name: &'static str, arity: i8, handler: Handler, flags: Flags, keys: &'static [KeySpec]) -> Command {
    cmd(name, arity, handler, flags, keys)
}

/// A command that only groups subcommands.
pub const fn container(name: &'static str, arity: i8, subcommands: &'static [Command]) -> Command {
    let mut command = cmd(name, arity, no_subcommand, Flags(0), &[]);
    command.subcommands = subcommands;
    command
}

/// The dispatcher resolves subcommands before it calls, and refuses unknown ones.
fn no_subcommand(_: &mut Ctx<'_>, args: Args<'_>) -> Result {
    Err(Error::unknown_subcommand(args))
}

impl Command {
    /// The same row with another footprint.
    pub const fn locks(mut self, footprint: Footprint) -> Self {
        self.footprint = footprint;
        self.batched = false;
        self
    }

    /// The same row with more ACL categories.
    pub const fn also(mut self, categories: Categories) -> Self {
        self.categories = categories;
        self
    }

    /// The same row, to run under the same locks as its neighbours in a pipeline though the table does not call it fast.
    pub const fn batched(mut self) -> Self {
        assert!(self.only_key != 0, "a window locks one key per command");
        self.batched = true;
        self
    }

    /// The same row, whose keys `finder` finds.
    pub const fn finder(mut self, finder: fn(Args<'_>) -> KeyPositions) -> Self {
        assert!(self.only_key == 0, "the only key's position is known");
        self.finder = Some(finder);
        self
    }

    /// The same row with tips.
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Whether `args` has an allowed number of arguments.
    #[inline]
    pub fn accepts(&self, len: usize) -> bool {
        if self.arity >= 0 { len == self.arity as usize } else { len >= self.arity.unsigned_abs() as usize }
    }

    /// What a call with `args` needs locked.
    #[inline]
    pub fn footprint_of(&self, args: Args<'_>) -> Footprint {
        match self.footprint {
            Footprint::Depends(judge) => judge(args),
            fixed => fixed,
        }
    }

    /// The subcommand that `name` names.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        self.subcommands.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Positions of the keys in `args` with what would happen to each, in the words of `COMMAND GETKEYSANDFLAGS`; none when
    /// the arguments do not fit. As in the genuine server, the specifications come first where they can say it.
    pub fn key_uses(&self, args: Args<'_>) -> Option<KeyUses> {
        let is_unknown = |spec: &KeySpec| spec.begin == Begin::Unknown || spec.usage.flags.ends_with("incomplete");
        if let Some(finder) = self.finder.filter(|_| self.keys.iter().any(is_unknown)) {
            let flags = |access| self.keys.iter().find(|spec| spec.usage.access == access).map(|spec| spec.usage.flags);
            let found: KeyUses =
                finder(args).into_iter().map(|(at, access)| (at, flags(access).unwrap_or_default())).collect();
            return (!found.is_empty()).then_some(found);
        }
        let mut uses = KeyUses::new();
        for spec in self.keys {
            let mut found = SmallVec::new();
            let fits = spec.find(args, &mut found).is_some();
            // Further keys may be missing where their number is open: `PFMERGE destination`.
            let may_miss = self.arity < 0 && matches!(spec.find, Find::Range { .. });
            if !fits && !may_miss && !self.flags.has(Flags::NO_MANDATORY_KEYS) {
                return None;
            }
            let flags = usage(self.name, spec.usage.flags, args);
            uses.extend(found.iter().map(|(at, _)| (*at, flags)));
        }
        (!uses.is_empty() || self.flags.has(Flags::NO_MANDATORY_KEYS)).then_some(uses)
    }

    /// Positions of the keys in `args` and how each is used; empty when the arguments do not fit.
    pub fn key_positions(&self, args: Args<'_>) -> KeyPositions {
        if let Some(finder) = self.finder {
            return finder(args);
        }
        let mut found = SmallVec::new();
        for spec in self.keys {
            if spec.find(args, &mut found).is_none() {
                // The handler will find the same fault and say what is wrong; until then nothing may be locked twice.
                found.clear();
                return found;
            }
        }
        found
    }
}

/// Flags of a key; for a few commands they depend on the options of the call.
fn usage(name: &str, flags: &'static str, args: Args<'_>) -> &'static str {
    if !flags.contains("variable_flags") {
        return flags;
    }
    let has = |from: usize, words: &[&str]| (from..args.len()).any(|at| words.iter().any(|word| args.is(at, word)));
    match name {
        "set" if has(3, &["GET"]) => "RW access update",
        "set" => "OW update",
        "bitfield" if !has(2, &["SET", "INCRBY"]) => "RO access",
        _ => "RW access update",
    }
}
