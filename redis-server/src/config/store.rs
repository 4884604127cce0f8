//! The configuration in force, shared by all threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;

use super::error::{ConfigError, Origin, Reason, SetError};
use super::level::Level;
use super::parse::quote;
use super::setting::{Flags, Id, Kind, Lines, Number, Switch, Text, Words};
use super::settings;
use super::table::COUNT;
use super::value::{self, Expected, Value};
use crate::protocol::error::shown;
use crate::protocol::glob;

/// The configuration in force. Numbers and switches cost one relaxed load; the rest is behind a lock.
#[derive(Debug)]
pub struct Config {
    /// A copy of every number in `values`, by place in the table.
    numbers: [AtomicI64; COUNT],
    values: RwLock<Vec<Value>>,
    /// Held during a change, from the check to the end of its after-effects.
    writer: Mutex<()>,
    generation: AtomicU64,
    file: Option<PathBuf>,
    /// Where the lines were written that define users.
    user_origins: Vec<Origin>,
    /// Where the lines were written that rename commands.
    rename_origins: Vec<Origin>,
}

/// The origin of a change: some settings change only from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A client on this machine.
    Local,
    /// A client elsewhere.
    Remote,
}

/// One limit of `client-output-buffer-limit`. Zeros are no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes at which the client is cut off at once.
    pub hard: u64,
    /// Bytes at which it is cut off after `soft_seconds`.
    pub soft: u64,
    /// Seconds that it may stay above `soft`.
    pub soft_seconds: u64,
}

/// One pair of `save`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last snapshot.
    pub seconds: u64,
    /// Changes since the last snapshot.
    pub changes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self::new(defaults(), None)
    }
}

impl Config {
    pub(super) fn new(values: Vec<Value>, file: Option<PathBuf>) -> Self {
        Self {
            numbers: std::array::from_fn(|at| AtomicI64::new(values[at].number())),
            values: RwLock::new(values),
            writer: Mutex::new(()),
            generation: AtomicU64::new(0),
            file,
            user_origins: Vec::new(),
            rename_origins: Vec::new(),
        }
    }

    /// Where the lines were written that define users, and those that rename commands.
    pub(super) fn written_at(self, user_origins: Vec<Origin>, rename_origins: Vec<Origin>) -> Self {
        Self { user_origins, rename_origins, ..self }
    }

    /// The error for the `at`th line that renames a command.
    pub fn rename_error(&self, at: usize, reason: &str) -> ConfigError {
        let words = self.lines(settings::RENAME_COMMAND).into_iter().nth(at).unwrap_or_default();
        let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
        ConfigError {
            origin: self.rename_origins.get(at).cloned().unwrap_or(Origin::CommandLine),
            directive: format!("rename-command {}", words.join(" ")),
            reason: Reason::Refused(reason.to_owned()),
        }
    }

    /// The error for the `at`th line that defines a user. Its rules may hold passwords.
    pub fn user_error(&self, at: usize, reason: String) -> ConfigError {
        let line = self.lines(settings::USER).into_iter().nth(at).unwrap_or_default();
        let name = line.first().map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned());
        ConfigError {
            origin: self.user_origins.get(at).cloned().unwrap_or(Origin::CommandLine),
            directive: format!("user {name} (rules hidden)"),
            reason: Reason::Refused(reason),
        }
    }

    /// The number; a word of an enumeration is its place in the list, bytes are bytes.
    pub fn int(&self, setting: Number) -> i64 {
        self.numbers[setting.id().index()].load(Ordering::Relaxed)
    }

    /// The number of a setting whose least value is not negative.
    pub fn uint(&self, setting: Number) -> u64 {
        u64::try_from(self.int(setting)).unwrap_or(0)
    }

    /// [`Self::uint`], for lengths.
    pub fn size(&self, setting: Number) -> usize {
        usize::try_from(self.int(setting)).unwrap_or(0)
    }

    /// Whether it says `yes`.
    pub fn is_on(&self, setting: Switch) -> bool {
        self.numbers[setting.id().index()].load(Ordering::Relaxed) != 0
    }

    /// The word of an enumeration, as it is written; empty for other numbers.
    pub fn word(&self, setting: Number) -> &'static str {
        match setting.id().setting().kind {
            Kind::Enum(choices) => choices.get(self.size(setting)).copied().unwrap_or_default(),
            _ => "",
        }
    }

    /// The text, empty where none is set.
    pub fn text(&self, setting: Text) -> Bytes {
        self.format(setting.id())
    }

    /// The text as UTF-8, for paths and addresses; `None` where none is set.
    pub fn string(&self, setting: Text) -> Option<String> {
        let text = self.text(setting);
        (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// The words.
    pub fn words(&self, setting: Words) -> Vec<Bytes> {
        self.read()[setting.id().index()].words().to_vec()
    }

    /// The arguments of every line of a directive that repeats.
    pub fn lines(&self, setting: Lines) -> Vec<Vec<Bytes>> {
        match &self.read()[setting.id().index()] {
            Value::Lines(lines) => lines.clone(),
            Value::Number(_) | Value::Text(_) | Value::Words(_) => Vec::new(),
        }
    }

    /// The limits of normal clients, replicas and subscribers, in this order.
    pub fn output_limits(&self) -> [OutputLimit; 3] {
        let words = self.words(super::settings::CLIENT_OUTPUT_BUFFER_LIMIT);
        let number = |at: usize| words.get(at).map_or(0, as_u64);
        [0, 4, 8].map(|at| OutputLimit { hard: number(at + 1), soft: number(at + 2), soft_seconds: number(at + 3) })
    }

    /// When a snapshot is due.
    pub fn save_points(&self) -> Vec<SavePoint> {
        let words = self.words(super::settings::SAVE);
        words.chunks_exact(2).map(|pair| SavePoint { seconds: as_u64(&pair[0]), changes: as_u64(&pair[1]) }).collect()
    }

    /// The file that the server was started with.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Grows by one with every change, for the owners of cached values to compare.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// `CONFIG GET`: names and values, each name once, of all settings that one of the patterns matches.
    pub fn get<P: AsRef<[u8]>>(&self, patterns: &[P]) -> Vec<(&'static str, Bytes)> {
        let values = self.read();
        let mut found = Vec::new();
        for id in Id::all().filter(|id| id.setting().is_readable()) {
            let setting = id.setting();
            let is_wanted = |name: &str| {
                !name.is_empty()
                    && patterns.iter().map(AsRef::as_ref).any(|pattern| {
                        if setting.flags.has(Flags::HIDDEN) {
                            pattern.eq_ignore_ascii_case(name.as_bytes())
                        } else {
                            glob::matches(pattern, name.as_bytes(), true)
                        }
                    })
            };
            let names = [setting.name, setting.alias].into_iter().filter(|name| is_wanted(name));
            found.extend(names.map(|name| (name, value::format(setting.kind, &values[id.index()]))));
        }
        found
    }

    /// Notes the value of a setting that a command of its own changes (`REPLICAOF`), so that it is told and rewritten; it is one
    /// that the setting can have.
    pub fn note(&self, setting: Words, text: &str) {
        let _writer = self.lock_writer();
        let mut values = self.read().clone();
        let (id, words) = (setting.id(), text.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())));
        if let Ok(value) = value::parse(id.setting().kind, &words.collect::<Vec<_>>(), &values[id.index()]) {
            values[id.index()] = value;
            self.publish(values);
        }
    }

    /// `CONFIG SET`: all pairs or none. Returns the settings whose value is another one now, and those that
    /// [name a content](Flags::NAMES_CONTENT), which may be another one.
    ///
    /// # Errors
    /// The text of the error reply; nothing has changed then.
    pub fn set<N: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(N, V)], caller: Caller) -> Result<Vec<Id>, SetError> {
        self.set_and(pairs, caller, |_| Ok(()))
    }

    /// [`Self::set`] with an after-effect that may still refuse (a port that cannot be listened on): it is given
    /// what changed, sees the new values, and names the setting and the reason. All values are as before then, and `apply` is
    /// called with those that came before that setting, to put its effects back.
    ///
    /// # Errors
    /// The text of the error reply; nothing has changed then.
    pub fn set_and<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(N, V)],
        caller: Caller,
        apply: impl Fn(&[Id]) -> Result<(), (Id, String)>,
    ) -> Result<Vec<Id>, SetError> {
        let _writer = self.lock_writer();
        let before = self.read().clone();
        let mut after = before.clone();
        let mut named = Vec::new();
        for (id, text) in self.resolve(pairs, caller)? {
            after[id.index()] = changed(id, text.1, &before[id.index()]).map_err(|reason| failed(text.0, reason))?;
            named.extend(id.setting().flags.has(Flags::NAMES_CONTENT).then_some(id));
        }
        let is_changed = |id: &Id| before[id.index()] != after[id.index()] || named.contains(id);
        let changed: Vec<Id> = Id::all().filter(is_changed).collect();
        if changed.is_empty() {
            return Ok(changed);
        }
        self.publish(after);
        apply(&changed).map_err(|(id, reason)| {
            self.publish(before);
            let done = changed.iter().position(|other| *other == id).unwrap_or(0);
            // They were in force a moment ago; one that cannot be had back stays as it is, as in the genuine server.
            let _ = apply(&changed[..done]);
            failed(id.setting().name.as_bytes(), reason.into())
        })?;
        Ok(changed)
    }

    /// The settings that the pairs name, each allowed to change and named once.
    #[expect(clippy::type_complexity, reason = "a list of settings with the pair that names each")]
    fn resolve<'a, N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &'a [(N, V)],
        caller: Caller,
    ) -> Result<Vec<(Id, (&'a [u8], &'a [u8]))>, SetError> {
        let mut resolved: Vec<(Id, (&[u8], &[u8]))> = Vec::with_capacity(pairs.len());
        for (name, text) in pairs {
            let (name, text) = (name.as_ref(), text.as_ref());
            let id = Id::find(name).filter(|id| id.setting().is_readable());
            let id = id.ok_or_else(|| SetError::Unknown(shown(name).into_owned()))?;
            let flags = id.setting().flags;
            if flags.has(Flags::OURS) && self.format(id) == text {
                continue;
            }
            if flags.has(Flags::IMMUTABLE) {
                return Err(failed(name, "can't set immutable config".into()));
            }
            if flags.has(Flags::PROTECTED) && !self.allows_protected(caller) {
                return Err(failed(name, "can't set protected config".into()));
            }
            // Two names of one setting are two settings to the genuine server; the last one wins.
            if resolved.iter().any(|(_, (earlier, _))| earlier.eq_ignore_ascii_case(name)) {
                return Err(failed(name, "duplicate parameter".into()));
            }
            resolved.push((id, (name, text)));
        }
        Ok(resolved)
    }

    fn allows_protected(&self, caller: Caller) -> bool {
        const YES: i64 = 1;
        const LOCAL: i64 = 2;
        match self.int(super::settings::ENABLE_PROTECTED_CONFIGS) {
            YES => true,
            LOCAL => caller == Caller::Local,
            _ => false,
        }
    }

    fn publish(&self, values: Vec<Value>) {
        for (number, value) in self.numbers.iter().zip(&values) {
            number.store(value.number(), Ordering::Relaxed);
        }
        *self.values.write().unwrap_or_else(PoisonError::into_inner) = values;
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn format(&self, id: Id) -> Bytes {
        value::format(id.setting().kind, &self.read()[id.index()])
    }

    pub(super) fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Value>> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values in the making, from directives read one after the other.
pub(super) struct Draft {
    values: Vec<Value>,
    /// Which settings were given: the first save point replaces the default ones, the next ones are added.
    touched: Vec<bool>,
}

impl Default for Draft {
    fn default() -> Self {
        let values = defaults();
        Self { touched: vec![false; values.len()], values }
    }
}

impl Draft {
    /// Follows one directive.
    pub(super) fn apply(&mut self, id: Id, words: &[Bytes]) -> Result<(), Expected> {
        let kind = id.setting().kind;
        let at = id.index();
        let adds_up = kind == Kind::OutputLimits || self.touched[at];
        let before = if adds_up { self.values[at].clone() } else { value::empty(kind) };
        self.touched[at] = true;
        self.values[at] = value::parse(kind, words, &before)?;
        Ok(())
    }

    /// Gives what no directive has named the value that the server has with which this one is to be compatible.
    pub(super) fn take_level_defaults(&mut self) {
        let level = Level::of(self.value(settings::COMPATIBILITY.id()).number());
        for id in Id::all().filter(|id| !self.touched[id.index()]).collect::<Vec<_>>() {
            self.values[id.index()] = default_at(id, level);
        }
    }

    pub(super) fn value(&self, id: Id) -> &Value {
        &self.values[id.index()]
    }

    /// Whether a directive gave the setting a value.
    pub(super) fn is_touched(&self, id: Id) -> bool {
        self.touched[id.index()]
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.values
    }
}

/// Every setting's default.
fn defaults() -> Vec<Value> {
    Id::all().map(default).collect()
}

/// The setting's default at this level.
pub(super) fn default_at(id: Id, level: Level) -> Value {
    let own = level.defaults().find(|(name, _)| *name == id.setting().name);
    let parsed = own.map(|(_, text)| from_text(id, text.as_bytes(), &value::empty(id.setting().kind)));
    parsed.and_then(Result::ok).unwrap_or_else(|| default(id))
}

/// The setting's default.
pub(super) fn default(id: Id) -> Value {
    let setting = id.setting();
    let empty = value::empty(setting.kind);
    if setting.default.is_empty() {
        return empty;
    }
    // A directory that is gone keeps its name: the server says so when it writes there.
    from_text(id, setting.default.as_bytes(), &empty)
        .unwrap_or_else(|_| Value::Text(Bytes::from_static(setting.default.as_bytes())))
}

/// The value after `CONFIG SET` with this text.
fn changed(id: Id, text: &[u8], before: &Value) -> Result<Value, Expected> {
    // A list is replaced; of the limits only the classes that are named.
    let kind = id.setting().kind;
    let base = if kind == Kind::OutputLimits { before.clone() } else { value::empty(kind) };
    from_text(id, text, &base)
}

/// The value of a text that stands for all of a line's words.
pub(super) fn from_text(id: Id, text: &[u8], before: &Value) -> Result<Value, Expected> {
    value::parse(id.setting().kind, &[Bytes::copy_from_slice(text)], before)
}

fn failed(name: &[u8], reason: Expected) -> SetError {
    SetError::Failed { name: shown(name).into_owned(), reason: reason.into_owned() }
}

fn as_u64(word: &Bytes) -> u64 {
    value::integer(word).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

impl Config {
    /// The server that clients are to take this one for.
    pub fn level(&self) -> Level {
        Level::of(self.int(settings::COMPATIBILITY))
    }
}
