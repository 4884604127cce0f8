//! From the file.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::config::settings;
use crate::exec::Ctx;
use crate::exec::clock::now_ms;
use crate::exec::instance::Instance;
use crate::exec::script;
use crate::exec::worker::Worker;
use crate::keyspace::{Access, Entry, Value, View};
use crate::persistence::Outcome;
use crate::persistence::rdb::{Fault, File, Item, Limits, Loaded, ReadError, Record};
use crate::protocol::Reply;
use crate::protocol::error::{Error, shown};

/// Strings from this length on are stored in the buffer in which they come.
const LARGE: usize = 16 * 1024;

/// What happens to a key, or a library, that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The load fails.
    Refuse,
    /// The file's takes its place.
    Replace,
}

/// Why a snapshot was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is damaged, or says what is not understood.
    Fault(Fault),
    /// A record that cannot be taken, and the place behind it.
    Record(u64, String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Record(offset, what) => write!(f, "offset {offset}: {what}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => Self::Io(error),
            ReadError::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Loads the configuration's snapshot into a server that does not serve yet, if there is one.
///
/// # Errors
/// [`LoadError`]. The server must not start then: it would replace the file by what little it has.
pub fn load_at_start(instance: &Arc<Instance>) -> Result<(), LoadError> {
    let path = super::path(&instance.config);
    if !path.exists() {
        return Ok(());
    }
    let began = Instant::now();
    let worker = Worker::new(Arc::clone(instance));
    let now = now_ms();
    let mut views: Vec<_> = instance.databases().iter().map(|db| db.lock_all(Access::Write, now)).collect();
    let mut client = script::nobody(&worker);
    let mut reply = Reply::default();
    let mut cx = Ctx::new(&worker, instance.database(0).lock_none(now), &mut reply, &mut client);
    load(&mut cx, views.iter_mut().collect(), &path, Merge::Refuse)?;
    tracing::info!("DB loaded from disk: {:.3} seconds", began.elapsed().as_secs_f64());
    Ok(())
}

/// Loads a snapshot into these views of all databases, each locked as a whole for writing, in their order.
///
/// # Errors
/// [`LoadError`]. What stood in front of the fault has been loaded then.
pub fn load(cx: &mut Ctx<'_>, views: Vec<&mut View<'_>>, path: &Path, merge: Merge) -> Result<Outcome, LoadError> {
    let config = &cx.instance.config;
    let limits = Limits {
        hash: config.hash_limits(),
        list: config.list_limits(),
        set: config.set_limits(),
        sorted_set: config.sorted_set_limits(),
    };
    let mut file =
        File::open(path, limits, config.is_on(settings::RDBCHECKSUM) && cx.instance.snapshots.checks_sums())?;
    let mut loader = Loader { views, database: 0, merge, outcome: Outcome::default(), functions: Vec::new() };
    let delay = super::delay(config, settings::KEY_LOAD_DELAY);
    while let Some(taken) = file.next(|item| loader.take(item))? {
        taken.map_err(|what| LoadError::Record(file.offset(), what))?;
        if let Some(delay) = delay {
            std::thread::sleep(delay);
        }
    }
    let Loader { functions, outcome, .. } = loader;
    add_functions(cx, &functions, merge)
        .map_err(|error| LoadError::Record(file.offset(), format!("Failed creating the function library: {error}")))?;
    cx.instance.snapshots.loaded(outcome);
    tracing::info!("Done loading RDB, keys loaded: {}, keys expired: {}.", outcome.loaded, outcome.expired);
    if outcome.empty > 0 {
        tracing::warn!("empty keys skipped: {}.", outcome.empty);
    }
    Ok(outcome)
}

fn add_functions(cx: &mut Ctx<'_>, codes: &[Vec<u8>], merge: Merge) -> Result<(), Error> {
    if codes.is_empty() {
        return Ok(());
    }
    let scripts = &cx.instance.scripts;
    scripts.with_engine(|engine| engine.restore(cx, codes, false, merge == Merge::Replace))
}

/// What has been loaded, and where the next record goes.
struct Loader<'l, 'v> {
    views: Vec<&'l mut View<'v>>,
    database: usize,
    merge: Merge,
    outcome: Outcome,
    functions: Vec<Vec<u8>>,
}

impl Loader<'_, '_> {
    /// # Errors
    /// What speaks against the item.
    fn take(&mut self, item: Item<'_>) -> Result<(), String> {
        match item {
            Item::Header(_) | Item::Sizes { .. } | Item::End => {}
            Item::Note { name, text } => note(&name, &text),
            Item::Module => tracing::warn!("what a module has left in the file is skipped: there are no modules here"),
            Item::Function(code) => self.functions.push(code.into_owned()),
            Item::Database(number) => {
                let database = usize::try_from(number).ok().filter(|&number| number < self.views.len());
                self.database = database.ok_or_else(|| {
                    let count = self.views.len();
                    format!("the file has a database {number}, and this server is configured to have {count}")
                })?;
            }
            Item::Record(record) => self.record(record)?,
        }
        Ok(())
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), String> {
        let Record { key, value, expire_at, idle, frequency } = record;
        let Some(value) = value else {
            self.outcome.empty += 1;
            tracing::info!("skipping empty key: {}", shown(&key));
            return Ok(());
        };
        let view = &mut *self.views[self.database];
        let now = view.now();
        if expire_at.is_some_and(|at| at < now) {
            self.outcome.expired += 1;
            return Ok(());
        }
        let entry = entry(&key, value, expire_at);
        let usage = view.database().usage();
        entry.set_access(match frequency {
            Some(frequency) => usage.used(now, frequency),
            None => usage.idle(now, idle.unwrap_or(0)),
        });
        let hashed = view.key(&key);
        if self.merge == Merge::Replace {
            drop(view.put(&hashed, entry));
        } else if !view.add(&hashed, entry) {
            return Err(format!("the key {} is there twice", shown(&key)));
        }
        self.outcome.loaded += 1;
        Ok(())
    }
}

fn entry(key: &[u8], value: Loaded, expire_at: Option<u64>) -> Entry {
    let value = match value {
        Loaded::Str(text) if text.len() < LARGE => return Entry::new(key, Value::Bytes(&text), expire_at),
        Loaded::Str(text) => Value::Shared(text.into()),
        Loaded::Object(object) => Value::Object(object),
    };
    Entry::new(key, value, expire_at)
}

/// Says in the log what the file says of who wrote it.
fn note(name: &[u8], text: &[u8]) {
    match name {
        b"redis-ver" | b"valkey-ver" => tracing::info!("Loading RDB produced by version {}", shown(text)),
        b"ctime" => {
            let written = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            tracing::info!("RDB age {} seconds", (now_ms() / 1000).saturating_sub(written));
        }
        b"used-mem" => tracing::info!("RDB memory usage when created {} bytes", shown(text)),
        _ => {}
    }
}
