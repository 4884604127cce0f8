//! To the file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{Config, settings};
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::replication::Position;
use crate::exec::search;
use crate::keyspace::{Access as Lock, Database, Entry, Usage, View};
use crate::observe::memory;
use crate::persistence::SnapshotFile;
use crate::persistence::disk::{Disk, RealDisk};
use crate::persistence::rdb::{Access, Fork, WriteOptions, Writer};

/// How long SAVE waits for a primary's commands that run.
const PATIENCE: Duration = Duration::from_millis(100);

/// All databases, locked for reading, in their order.
pub fn locked(instance: &Instance) -> Vec<View<'_>> {
    let now = now_ms();
    instance.databases().iter().map(|database| database.lock_all(Lock::Read, now)).collect()
}

/// Saves all databases, which no other thread may change meanwhile: the caller is alone with the data, and passes the stream's position.
///
/// # Errors
/// The disk's; the file is as it was then.
pub(super) fn save(instance: &Instance, position: Option<Position>) -> io::Result<()> {
    let views = locked(instance);
    save_at(instance, &views.iter().collect::<Vec<_>>(), position)
}

/// Saves these views of all databases, each locked as a whole, in their order.
///
/// # Errors
/// The disk's; the file is as it was then.
pub fn save_views(instance: &Instance, views: &[&View<'_>]) -> io::Result<()> {
    // While a primary's commands run that are not passed on yet, there is no such place.
    let units = instance.exclusive.units.borrow_within(PATIENCE);
    save_at(instance, views, units.and_then(|_units| instance.replication.position_of_locked(instance)))
}

fn save_at(instance: &Instance, views: &[&View<'_>], position: Option<Position>) -> io::Result<()> {
    let began = Instant::now();
    let changes = instance.changes();
    let written = write_file(instance, views, position.as_ref());
    let status = &instance.snapshots;
    match &written {
        Ok(()) => {
            status.saved(now_ms() / 1000, changes);
            tracing::info!("DB saved on disk: {:.3} seconds", began.elapsed().as_secs_f64());
        }
        Err(error) => tracing::warn!("Error saving DB on disk: {error}"),
    }
    written
}

fn write_file(instance: &Instance, views: &[&View<'_>], position: Option<&Position>) -> io::Result<()> {
    let file = create(&instance.config, &super::files::temporary(&instance.config))?;
    write(instance, views, file, position)?.commit()
}

/// Begins the snapshot file, as `temporary` until it is complete.
///
/// # Errors
/// The disk's.
pub(super) fn create(config: &Config, temporary: &Path) -> io::Result<SnapshotFile> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    SnapshotFile::create(
        &disk,
        temporary,
        &super::files::path(config),
        config.is_on(settings::RDB_SAVE_INCREMENTAL_FSYNC),
    )
}

/// The code of all function libraries.
pub(crate) fn libraries(instance: &Instance) -> Vec<Box<[u8]>> {
    instance.scripts.with_engine(|engine| engine.libraries().iter().map(|library| library.code.clone()).collect())
}

/// A snapshot of all data, without any change meanwhile.
#[cfg(test)]
pub(crate) fn whole(instance: &Instance) -> io::Result<Vec<u8>> {
    let views = locked(instance);
    let position = instance.replication.position_of_locked(instance);
    write(instance, &views.iter().collect::<Vec<_>>(), Vec::new(), position.as_ref())
}

/// A snapshot of the function libraries alone.
pub(crate) fn functions_only(instance: &Instance) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options(&instance.config, &[]));
    write_notes(&mut writer, now_ms(), false);
    libraries(instance).iter().for_each(|code| writer.function(code));
    writer.finish().expect("memory does not fail")
}

/// Writes a snapshot without data, as the base of an append-only file.
pub(crate) fn write_empty(file: &mut SnapshotFile) -> io::Result<()> {
    let mut writer = Writer::new(file, WriteOptions::default());
    write_notes(&mut writer, now_ms(), true);
    writer.finish().map(drop)
}

/// Writes a snapshot of these views.
fn write<W: Write>(instance: &Instance, views: &[&View<'_>], file: W, position: Option<&Position>) -> io::Result<W> {
    let config = &instance.config;
    let mut writer = Writer::new(file, options(config, instance.databases()));
    write_notes(&mut writer, now_ms(), false);
    write_position(&mut writer, position);
    write_imports(&mut writer, &instance.cluster.note_of_imports(instance));
    write_search(&mut writer, &search::Kept::of(instance));
    libraries(instance).iter().for_each(|code| writer.function(code));
    let delay = super::files::delay(config, settings::RDB_KEY_SAVE_DELAY);
    for (number, view) in views.iter().enumerate().filter(|(_, view)| !view.is_empty()) {
        let (database, now) = (view.database(), view.now());
        let told = Told::of(config.word(settings::MAXMEMORY_POLICY), database);
        writer.database(number, view.len(), database.expiring());
        view.for_each_stored(|entry| {
            writer.record(entry.key(), entry.value(), entry.expire_at(), told.access(entry, now));
            if let Some(delay) = delay {
                std::thread::sleep(delay);
            }
            !writer.has_failed()
        });
    }
    writer.finish()
}

/// How the configuration wants files of these databases written.
pub(super) fn options(config: &Config, databases: &[Database]) -> WriteOptions {
    WriteOptions {
        compress: config.is_on(settings::RDBCOMPRESSION),
        checksum: config.is_on(settings::RDBCHECKSUM),
        fork: Fork::of(config),
        fields_expire: databases.iter().any(|database| database.with_fields() > 0),
    }
}

/// The notes that Redis also writes into its files; `at` in milliseconds of Unix time.
pub(super) fn write_notes<W: Write>(writer: &mut Writer<W>, at: u64, is_aof_base: bool) {
    let number = |number: u64| number.to_string().into_bytes();
    writer.note("redis-ver", crate::REDIS_VERSION.as_bytes());
    writer.note("redis-bits", &number(usize::BITS.into()));
    writer.note("ctime", &number(at / 1000));
    writer.note("used-mem", &number(memory::used_here()));
    writer.note("aof-base", &number(is_aof_base.into()));
}

/// Where the stream of changes is whose outcome the file shows.
pub(super) fn write_position<W: Write>(writer: &mut Writer<W>, position: Option<&Position>) {
    if let Some(Position { id, offset, db }) = position {
        writer.note("repl-stream-db", db.to_string().as_bytes());
        writer.note("repl-id", id.as_bytes());
        writer.note("repl-offset", offset.to_string().as_bytes());
    }
}

/// The commands that make search indexes anew, which other servers pass over.
pub(super) fn write_search<W: Write>(writer: &mut Writer<W>, kept: &search::Kept) {
    kept.commands(|command| writer.note(search::NOTE, command));
}

/// Which slots are on their way to this node: their keys are not its own yet.
pub(super) fn write_imports<W: Write>(writer: &mut Writer<W>, imports: &str) {
    if !imports.is_empty() {
        writer.note("slot-imports", imports.as_bytes());
    }
}

/// The access data of the keys: those that the policy of eviction needs.
pub(super) enum Told {
    Nothing,
    Idle,
    Frequency(crate::keyspace::Frequency),
}

impl Told {
    pub(super) fn of(policy: &str, database: &Database) -> Self {
        match database.usage() {
            Usage::Frequency(frequency) => Self::Frequency(frequency),
            Usage::Time if policy.ends_with("-lru") => Self::Idle,
            Usage::Time => Self::Nothing,
        }
    }

    pub(super) fn access(&self, entry: &Entry, now: u64) -> Access {
        match self {
            Self::Nothing => Access::Untold,
            Self::Idle => Access::Idle(entry.idle_seconds(now).into()),
            // A counter has eight bits.
            Self::Frequency(frequency) => Access::Frequency(frequency.count(entry, now) as u8),
        }
    }
}
