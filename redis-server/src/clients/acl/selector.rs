//! A selector: commands, keys, channels and databases that go together. A call is allowed if one selector allows all of it.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::commands::CommandRules;
use super::pattern::{KeyPattern, Pattern, Permission};
use super::rule::{Defaults, RuleError, has_spaces};
use crate::command::{Args, Categories, Flags, Reach, Registry, Row};
use crate::keyspace::Access;
use crate::protocol::number;

/// The part of a call that is denied. Later ones are nearer to permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// The database whose number stands at this position among the arguments; at 0, the command's name, the client's own, or
    /// all of them.
    Database(usize),
    /// The command.
    Command,
    /// The key at this position among the arguments.
    Key(usize),
    /// The channel at this position.
    Channel(usize),
}

/// The permissions of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    commands: CommandRules,
    /// `None` is all.
    keys: Option<Vec<KeyPattern>>,
    /// `None` is all.
    channels: Option<Vec<Pattern>>,
    /// Numbers in ascending order; `None` is all, those included that only a server with more of them has.
    databases: Option<Vec<u32>>,
}

/// The largest number of a database that Valkey allows.
const MAX_DATABASE: i64 = i32::MAX as i64;

type Keys = SmallVec<[(usize, Permission); 8]>;

/// A call that asks for permission. Its keys are looked for once, when the first selector wants to know them.
#[derive(Debug)]
pub struct Asked<'a> {
    row: &'static Row,
    args: Args<'a>,
    place: Place,
    keys: OnceCell<Keys>,
}

/// Where a call is made.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The client's database.
    pub db: usize,
    /// How many databases there are.
    pub databases: usize,
}

impl<'a> Asked<'a> {
    /// A call of `row` with `args` in this place.
    pub fn new(row: &'static Row, args: Args<'a>, place: Place) -> Self {
        Self { row, args, place, keys: OnceCell::new() }
    }

    /// Where the keys are, and what is to happen to them.
    pub(crate) fn keys(&self) -> &[(usize, Permission)] {
        self.keys.get_or_init(|| {
            // A script may ask about a call that could not be made.
            if !self.row.command.accepts(self.args.len()) {
                return Keys::new();
            }
            // Where the arguments do not fit, the command finds no keys either, and says what is wrong.
            let uses = self.row.command.key_uses(self.args).unwrap_or_default();
            let uses = uses.into_iter().filter(|(_, flags)| !flags.contains("not_key"));
            let mut keys: Keys = uses.map(|(at, flags)| (at, Permission::needed(flags))).collect();
            // The specifications see the first STORE, the command follows the last.
            for (at, access) in self.row.command.finder.map(|find| find(self.args)).unwrap_or_default() {
                if !keys.iter().any(|(known, _)| *known == at) {
                    keys.push((at, Permission { read: access == Access::Read, write: access == Access::Write }));
                }
            }
            keys
        })
    }
}

/// How a command uses the channels among its arguments: whether as patterns, and where they are; `None` if it uses none,
/// or only gives them up.
fn channels(name: &str, args: Args<'_>) -> Option<(bool, std::ops::Range<usize>)> {
    match name {
        "publish" | "spublish" => Some((false, 1..args.len().min(2))),
        "subscribe" | "ssubscribe" => Some((false, 1..args.len())),
        "psubscribe" => Some((true, 1..args.len())),
        _ => None,
    }
}

impl Selector {
    /// One that allows nothing but to be in any database, and to use all channels if `acl-pubsub-default` says so.
    pub(super) fn new(defaults: Defaults) -> Self {
        let channels = if defaults.all_channels { None } else { Some(Vec::new()) };
        Self { commands: CommandRules::new(false), keys: Some(Vec::new()), channels, databases: None }
    }

    /// One that allows everything.
    pub(super) fn everything() -> Self {
        Self { commands: CommandRules::new(true), keys: None, channels: None, databases: None }
    }

    /// Whether it allows everything.
    pub(super) fn is_everything(&self) -> bool {
        self.commands.is_all() && self.keys.is_none() && self.channels.is_none() && self.databases.is_none()
    }

    /// Follows a rule.
    pub(super) fn apply(&mut self, word: &[u8], registry: &Registry) -> Result<(), RuleError> {
        match word.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => self.keys = None,
            b"resetkeys" => self.keys = Some(Vec::new()),
            b"allchannels" | b"&*" => self.channels = None,
            b"resetchannels" => self.channels = Some(Vec::new()),
            b"alldbs" => self.databases = None,
            b"resetdbs" => self.databases = Some(Vec::new()),
            [b'd', b'b', b'=', numbers @ ..] => self.databases = Some(numbered(numbers)?),
            b"allcommands" => self.commands = CommandRules::new(true),
            b"nocommands" => self.commands = CommandRules::new(false),
            [b'~' | b'%', ..] => return self.add_keys(word),
            [b'&', ..] => return self.add_channels(&word[1..]),
            [b'+' | b'-', ..] => return self.commands.apply(word, registry),
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    /// `~pattern`, `%R~pattern`
    fn add_keys(&mut self, word: &[u8]) -> Result<(), RuleError> {
        let keys = self.keys.as_mut().ok_or(RuleError::AllKeys)?;
        let (permission, text) = match word {
            [b'%', rest @ ..] => permission(rest).ok_or(RuleError::Syntax)?,
            _ => (Permission::ALL, &word[1..]),
        };
        if has_spaces(text) {
            return Err(RuleError::Syntax);
        }
        match keys.iter_mut().find(|key| key.pattern.text() == text) {
            Some(known) => {
                known.permission.read |= permission.read;
                known.permission.write |= permission.write;
            }
            None => keys.push(KeyPattern { pattern: Pattern::new(text), permission }),
        }
        Ok(())
    }

    fn add_channels(&mut self, text: &[u8]) -> Result<(), RuleError> {
        let channels = self.channels.as_mut().ok_or(RuleError::AllChannels)?;
        if has_spaces(text) {
            return Err(RuleError::Syntax);
        }
        if !channels.iter().any(|known| known.text() == text) {
            channels.push(Pattern::new(text));
        }
        Ok(())
    }

    /// Whether it allows all of a call.
    ///
    /// # Errors
    /// If it denies a part of the call.
    pub fn allow(&self, asked: &Asked<'_>) -> Result<(), Denied> {
        let Asked { row, args, .. } = *asked;
        if let Some(databases) = &self.databases {
            check_databases(databases, asked)?;
        }
        if !row.command.flags.has(Flags::NO_AUTH) && !self.commands.allow(row, args) {
            return Err(Denied::Command);
        }
        if self.keys.is_some() && !row.command.keys.is_empty() {
            let denied = asked.keys().iter().find(|(at, needed)| !self.allows_key(args.at(*at), *needed));
            if let Some((at, _)) = denied {
                return Err(Denied::Key(*at));
            }
        }
        if self.channels.is_some()
            && row.command.flags.has(Flags::PUBSUB)
            && let Some((is_pattern, mut positions)) = channels(row.command.name, args)
            && let Some(at) = positions.find(|at| !self.allows_channel(args.at(*at), is_pattern))
        {
            return Err(Denied::Channel(at));
        }
        Ok(())
    }

    fn allows_key(&self, key: &[u8], needed: Permission) -> bool {
        let allows = |known: &KeyPattern| known.permission.allows(needed) && known.pattern.matches(key);
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(allows))
    }

    /// Whether a channel may be used; a pattern only if it is literally one of the selector's.
    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let allows = |known: &Pattern| if is_pattern { known.text() == channel } else { known.matches(channel) };
        self.channels.as_ref().is_none_or(|channels| channels.iter().any(allows))
    }

    /// Whether every channel may be used.
    pub(super) fn uses_all_channels(&self) -> bool {
        self.channels.is_none()
    }

    /// Whether every database may be used.
    pub(super) fn uses_all_databases(&self) -> bool {
        self.databases.is_none()
    }

    /// Whether every key may be read.
    pub(super) fn reads_all_keys(&self) -> bool {
        let is_all = |known: &KeyPattern| known.permission.read && known.pattern.text() == b"*";
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(is_all))
    }

    /// The commands as rules.
    pub fn commands(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.commands.describe(&mut out);
        out
    }

    /// The keys as rules.
    pub fn keys(&self) -> Vec<u8> {
        let Some(keys) = &self.keys else { return b"~*".to_vec() };
        let mut out = Vec::new();
        for key in keys {
            separate(&mut out);
            key.describe(&mut out);
        }
        out
    }

    /// The channels as rules.
    pub fn channels(&self) -> Vec<u8> {
        let Some(channels) = &self.channels else { return b"&*".to_vec() };
        let mut out = Vec::new();
        for channel in channels {
            separate(&mut out);
            out.push(b'&');
            out.extend_from_slice(channel.text());
        }
        out
    }

    /// The databases as a rule: `alldbs`, `db=0,1`, or nothing.
    pub fn databases(&self) -> String {
        let Some(databases) = &self.databases else { return "alldbs".to_owned() };
        let numbers: Vec<_> = databases.iter().map(u32::to_string).collect();
        if numbers.is_empty() { String::new() } else { format!("db={}", numbers.join(",")) }
    }

    /// Appends all of it as rules.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        for keys in [self.keys()].iter().filter(|keys| !keys.is_empty()) {
            out.extend_from_slice(keys);
            out.push(b' ');
        }
        if self.channels.is_some() {
            out.extend_from_slice(b"resetchannels ");
        }
        for channels in [self.channels()].iter().filter(|channels| !channels.is_empty()) {
            out.extend_from_slice(channels);
            out.push(b' ');
        }
        match self.databases.as_deref() {
            // Where nothing is said, all are allowed: a server that knows no such rules can read it, too.
            None => {}
            Some([]) => out.extend_from_slice(b"resetdbs "),
            Some(_) => out.extend_from_slice(format!("{} ", self.databases()).as_bytes()),
        }
        self.commands.describe(out);
    }
}

/// Whether a call stays within these databases.
///
/// # Errors
/// Where it does not.
fn check_databases(databases: &[u32], asked: &Asked<'_>) -> Result<(), Denied> {
    let Asked { row, args, place, .. } = *asked;
    let allows = |db: usize| u32::try_from(db).is_ok_and(|db| databases.binary_search(&db).is_ok());
    if let Some((at, _)) = row.command.named_databases(args, place.databases).iter().find(|(_, db)| !allows(*db)) {
        return Err(Denied::Database(*at));
    }
    let allowed = match row.command.reach {
        Reach::All => (0..place.databases).all(allows),
        Reach::Named(_) => !row.command.has_keys() || allows(place.db),
        Reach::Own => !uses_keys(row) || allows(place.db),
    };
    if allowed { Ok(()) } else { Err(Denied::Database(0)) }
}

/// Whether a command has keys, or is about them without naming any: SCAN, FLUSHDB.
fn uses_keys(row: &Row) -> bool {
    const ABOUT_KEYS: Categories = Categories::KEYSPACE.and(Categories::READ).and(Categories::WRITE);
    row.command.has_keys() || row.categories().0 & ABOUT_KEYS.0 != 0
}

/// The databases behind `db=`, of which there is at least one.
fn numbered(list: &[u8]) -> Result<Vec<u32>, RuleError> {
    let number = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(RuleError::Syntax);
        }
        let number = number::parse_i64(text).filter(|number| (0..=MAX_DATABASE).contains(number));
        number.map(|number| number as u32).ok_or(RuleError::DatabaseRange)
    };
    let mut numbers = list.split(|byte| *byte == b',').map(number).collect::<Result<Vec<_>, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b' ');
    }
}

/// The letters in front of a key pattern's `~`, and the pattern. As in the genuine server, the `~` may be missing where the
/// pattern is.
fn permission(letters: &[u8]) -> Option<(Permission, &[u8])> {
    let end = letters.iter().position(|&byte| byte == b'~').unwrap_or(letters.len());
    let mut permission = Permission::default();
    for letter in &letters[..end] {
        match letter.to_ascii_lowercase() {
            b'r' if !permission.read => permission.read = true,
            b'w' if !permission.write => permission.write = true,
            _ => return None,
        }
    }
    (permission != Permission::default()).then(|| (permission, letters.get(end + 1..).unwrap_or_default()))
}
