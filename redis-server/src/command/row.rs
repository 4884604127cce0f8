//! A command's row in the table.

use smallvec::SmallVec;

use super::args::Args;
use super::flags::{Categories, Flags};
use super::keys::{Begin, Find, KeySpec};
use super::role::Role;
use super::weight::Weight;
use crate::keyspace::Access;
use crate::protocol::error::Error;

/// The result of a handler: either its reply is written, or the error must be sent instead.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// Positions of keys among the arguments, and how each is used.
pub type KeyPositions = SmallVec<[(usize, Access); 8]>;

/// Positions of keys among the arguments, and what happens to each in the words of a key specification.
pub type KeyUses = SmallVec<[(usize, &'static str); 8]>;

/// Positions of databases' numbers among the arguments.
pub type DatabasePositions = SmallVec<[usize; 2]>;

/// Which databases a call reaches into, for the rights of users by database.
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    /// The client's, if the command has keys, reads or writes; otherwise none.
    Own,
    /// Those whose numbers stand where the function says; and the client's, if the command has keys.
    Named(fn(Args<'_>) -> DatabasePositions),
    /// All.
    All,
}

/// The locks that a command needs.
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
    /// Nothing, because the handler itself locks one shard after the other for a look at a key, and releases it; a transaction with such a
    /// command runs alone.
    Free,
    /// Nothing, because nobody else runs meanwhile: scripts, whose keys are not known before.
    Alone,
    /// Nothing, because the server stands still meanwhile: no other command runs, and no unit of a primary's stream either.
    Still,
    /// The footprint that the function returns for the arguments, which is never this variant again.
    Depends(fn(Args<'_>) -> Self),
}

/// One command, or subcommand.
#[derive(Debug)]
pub struct Command {
    /// Name in lower case; subcommands: their own name only.
    pub name: &'static str,
    /// Number of arguments with the name; negative: at least so many.
    pub arity: i8,
    /// Flags of `COMMAND INFO`.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// Its locks.
    pub footprint: Footprint,
    /// Which databases it reaches into.
    pub reach: Reach,
    /// ACL categories beyond those that family and flags imply.
    pub categories: Categories,
    /// Hints for clients and proxies, as in `COMMAND INFO`.
    pub tips: &'static [&'static str],
    /// Finds the keys where the specifications alone cannot.
    pub finder: Option<fn(Args<'_>) -> KeyPositions>,
    /// The only key's position, when the keys are as simple as that: the fast path's shortcut. 0: look at `keys`.
    pub only_key: u8,
    /// The use of the only key.
    pub only_access: Access,
    /// With how many arguments, at least and at most, calls may run under the same locks as their neighbours in a pipeline,
    /// which have one key and little work; an empty range where they may not.
    pub batch: (u16, u16),
    /// Calls beyond `batch` may run under the locks of their neighbours, too, where their [`Weight::Of`] is little.
    pub batches_if_light: bool,
    /// True if a large argument becomes the value without a copy.
    pub takes_over: bool,
    /// How much work a call is likely to be.
    pub weight: Weight,
    /// In a cluster, other nodes do a part of each call first.
    pub gathers: bool,
    /// The part that it plays for those who run it.
    pub role: Role,
}

/// Arguments up to which a call of a command that is fast by its row is fast indeed.
pub(crate) const BATCH_ARGS: u16 = 64;
/// The range of no number.
pub(crate) const NO_BATCH: (u16, u16) = (1, 0);

impl Command {
    /// True if each call of so many arguments is accepted, and may run under the same locks as its neighbours.
    #[inline]
    pub const fn batches_anyway(&self, args: usize) -> bool {
        args >= self.batch.0 as usize && args <= self.batch.1 as usize
    }

    /// True if a call of so many arguments may run under the same locks as its neighbours. The values that it meets may still
    /// be too much work ([`Command::batches_if_light`]).
    #[inline]
    pub fn batches(&self, args: usize) -> bool {
        self.batches_anyway(args) || self.batches_if_light && self.accepts(args) && args <= BATCH_ARGS as usize
    }

    /// Whether `args` has an allowed number of arguments.
    #[inline]
    pub fn accepts(&self, len: usize) -> bool {
        if self.arity >= 0 { len == self.arity as usize } else { len >= self.arity.unsigned_abs() as usize }
    }

    /// The locks that a call with `args` needs.
    #[inline]
    pub fn footprint_of(&self, args: Args<'_>) -> Footprint {
        match self.footprint {
            Footprint::Depends(judge) => judge(args),
            fixed => fixed,
        }
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

    /// Whether some argument is a key, and not only a channel.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(|spec| spec.usage.flags != "not_key")
    }

    /// The databases that `args` name, of `count` that there are, each with its position; none if one of them is none, as the
    /// call does nothing then.
    pub fn named_databases(&self, args: Args<'_>, count: usize) -> SmallVec<[(usize, usize); 2]> {
        let Reach::Named(positions) = self.reach else { return SmallVec::new() };
        let number = |at| {
            let number = usize::try_from(args.int(at).ok()?).ok()?;
            (number < count).then_some((at, number))
        };
        positions(args).into_iter().map(number).collect::<Option<_>>().unwrap_or_default()
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
