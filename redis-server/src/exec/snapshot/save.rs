//! To the file.

use std::io::{self, Write};
use std::time::Instant;

use super::{file_name, folder};
use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::instance::Instance;
use crate::keyspace::{Access as Lock, Database, Entry, Usage, View};
use crate::observe::memory;
use crate::persistence::SnapshotFile;
use crate::persistence::rdb::{Access, WriteOptions, Writer};

/// All databases, locked for reading, in their order.
pub fn locked(instance: &Instance) -> Vec<View<'_>> {
    let now = now_ms();
    instance.databases().iter().map(|database| database.lock_all(Lock::Read, now)).collect()
}

/// Saves all databases, which nobody may change meanwhile: the caller is alone with the data.
///
/// # Errors
/// The disk's; the file is as it was then.
pub fn save(instance: &Instance) -> io::Result<()> {
    let views = locked(instance);
    save_views(instance, &views.iter().collect::<Vec<_>>())
}

/// Saves these views of all databases, each locked as a whole, in their order.
///
/// # Errors
/// The disk's; the file is as it was then.
pub fn save_views(instance: &Instance, views: &[&View<'_>]) -> io::Result<()> {
    let began = Instant::now();
    let changes = instance.changes();
    let written = write_file(instance, views);
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

fn write_file(instance: &Instance, views: &[&View<'_>]) -> io::Result<()> {
    let config = &instance.config;
    let incremental = config.is_on(settings::RDB_SAVE_INCREMENTAL_FSYNC);
    let file = SnapshotFile::create(&folder(config), &file_name(config), std::process::id(), incremental)?;
    write(instance, views, file)?.commit()
}

/// Writes a snapshot of these views.
fn write<W: Write>(instance: &Instance, views: &[&View<'_>], file: W) -> io::Result<W> {
    let config = &instance.config;
    let options = WriteOptions {
        compress: config.is_on(settings::RDBCOMPRESSION),
        checksum: config.is_on(settings::RDBCHECKSUM),
    };
    let mut writer = Writer::new(file, options);
    notes(&mut writer);
    instance.scripts.with_engine(|engine| engine.libraries().iter().for_each(|library| writer.function(&library.code)));
    let delay = super::delay(config, settings::RDB_KEY_SAVE_DELAY);
    for (number, view) in views.iter().enumerate().filter(|(_, view)| !view.is_empty()) {
        let (database, now) = (view.database(), view.now());
        let told = Told::of(config.word(settings::MAXMEMORY_POLICY), database);
        writer.database(number, view.len(), database.expiring());
        view.for_each(|entry| {
            writer.record(entry.key(), entry.value(), entry.expire_at(), told.access(entry, now));
            if let Some(delay) = delay {
                std::thread::sleep(delay);
            }
            !writer.has_failed()
        });
    }
    writer.finish()
}

/// What the genuine server notes in its files too.
fn notes<W: Write>(writer: &mut Writer<W>) {
    let number = |number: u64| number.to_string().into_bytes();
    writer.note("redis-ver", crate::REDIS_VERSION.as_bytes());
    writer.note("redis-bits", &number(usize::BITS.into()));
    writer.note("ctime", &number(now_ms() / 1000));
    writer.note("used-mem", &number(memory::used_here()));
    writer.note("aof-base", b"0");
}

/// What is told of the keys' use: what the policy of eviction asks for.
enum Told {
    Nothing,
    Idle,
    Frequency(crate::keyspace::Frequency),
}

impl Told {
    fn of(policy: &str, database: &Database) -> Self {
        match database.usage() {
            Usage::Frequency(frequency) => Self::Frequency(frequency),
            Usage::Time if policy.ends_with("-lru") => Self::Idle,
            Usage::Time => Self::Nothing,
        }
    }

    fn access(&self, entry: &Entry, now: u64) -> Access {
        match self {
            Self::Nothing => Access::Untold,
            Self::Idle => Access::Idle(entry.idle_seconds(now).into()),
            // A counter has eight bits.
            Self::Frequency(frequency) => Access::Frequency(frequency.count(entry, now) as u8),
        }
    }
}
