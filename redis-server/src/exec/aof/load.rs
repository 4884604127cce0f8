//! From the files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use std::{fmt, io};

use arrayvec::ArrayVec;

use super::layout;
use crate::clients::client::Client;
use crate::command::{Args, Role, Row};
use crate::config::settings;
use crate::exec::core::{Call, Worker};
use crate::exec::replication::Position;
use crate::exec::run::admission::Admission;
use crate::exec::run::invoke::{self, WINDOW};
use crate::exec::run::outcome::Passed;
use crate::exec::run::{dispatch, resolve};
use crate::exec::snapshot;
use crate::persistence::aof::{Batch, FindError, Layout, Manifest, Mark, ReadFault, Reader, find};
use crate::persistence::disk::{Disk, Open};
use crate::protocol::Reply;
use crate::protocol::error::shown;

/// Why the files were not loaded, in the genuine server's words. The server must not start then.
#[derive(Debug)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    pub(super) fn opening(error: &io::Error) -> Self {
        Self(format!("Can't open or create append-only files: {error}"))
    }
}

impl From<FindError> for LoadError {
    fn from(error: FindError) -> Self {
        Self(error.to_string())
    }
}

/// Loads the files into an empty server that does not serve yet, or with whose data this worker is alone; says which there are, and
/// which place of a stream of changes they end at, if they say so.
pub(super) fn load(worker: Worker, disk: &Arc<dyn Disk>) -> Result<(Manifest, Option<Position>), LoadError> {
    let instance = &Arc::clone(&worker.instance);
    let layout = layout(&instance.config);
    let manifest = find(&**disk, &layout)?;
    let mut sizes = Vec::new();
    for part in manifest.parts() {
        let size = disk.len(&layout.path(part)).map_err(|error| {
            LoadError(format!("Fatal error: the append log file {} cannot be read: {error}", part.name))
        })?;
        sizes.push(size);
    }
    if let Some(base) = manifest.base.as_ref().filter(|base| base.name.ends_with(".rdb") && sizes[0] == 0) {
        return Err(LoadError(format!(
            "Error reading the RDB base file {}: it is empty. AOF loading aborted",
            base.name
        )));
    }
    instance.loading.expect(sizes.iter().sum());
    // An incomplete end is cut off, if nothing stands behind it.
    let last = sizes.iter().rposition(|&size| size > 0);
    let mut replay = Replay::new(worker, Arc::clone(disk), layout);
    let mut position = None;
    for (number, part) in manifest.parts().enumerate().filter(|(number, _)| sizes[*number] > 0) {
        let began = Instant::now();
        position = replay.file(&part.name, &replay.layout.path(part), Some(number) >= last)?;
        let kind = if manifest.base.as_ref() == Some(part) { "base" } else { "incr" };
        tracing::info!("DB loaded from {kind} file {}: {:.3} seconds", part.name, began.elapsed().as_secs_f64());
    }
    Ok((manifest, position))
}

/// A session that says again what was said, and is not answered.
struct Replay {
    worker: Worker,
    client: Client,
    reply: Reply,
    disk: Arc<dyn Disk>,
    layout: Layout,
    /// Where the transaction begins that is being put together.
    multi: u64,
}

impl Replay {
    fn new(worker: Worker, disk: Arc<dyn Disk>, layout: Layout) -> Self {
        let client = worker.nobody();
        Self { worker, client, reply: Reply::default(), disk, layout, multi: 0 }
    }

    /// Reads a file to its end. The `last` one may end early. Returns where in a stream it ends, if it says so.
    fn file(&mut self, name: &str, path: &Path, is_last: bool) -> Result<Option<Position>, LoadError> {
        let unreadable =
            |error: io::Error| LoadError(format!("Unrecoverable error reading the append only file {name}: {error}"));
        // The next commands say which database they are for.
        self.client.db = 0;
        let begin = self.snapshot(name, path)?;
        let mut source = self.disk.read(path).map_err(unreadable)?;
        io::copy(&mut io::Read::take(&mut source, begin), &mut io::sink()).map_err(unreadable)?;
        let mut reader = Reader::new(source, begin);
        let end = loop {
            if self.worker.instance.is_ending() {
                return Err(LoadError("the server ends".to_owned()));
            }
            match reader.next_batch() {
                Ok(Some(batch)) => {
                    let bytes = batch.ends.last().map_or(0, |&(_, end)| end - batch.begin);
                    self.batch(name, &batch)?;
                    self.delay(batch.ends.len());
                    self.worker.instance.loading.advance(bytes as u64);
                    self.worker.instance.loading.tell(self.worker.instance.supervisor());
                }
                Ok(None) if self.client.multi.is_none() => {
                    let mark = reader.mark().cloned();
                    return Ok(mark.map(|Mark { stream: id, offset }| Position { id, offset, db: self.client.db }));
                }
                Ok(None) => break reader.offset(),
                Err(ReadFault::Short(offset)) => break offset,
                Err(ReadFault::Io(error)) => return Err(unreadable(error)),
                Err(ReadFault::Format(offset, what)) => {
                    return Err(LoadError(format!(
                        "Bad file format reading the append only file {name}: offset {offset}: {what}. Make a backup of the \
                         file; redis-server --check says more."
                    )));
                }
            }
        };
        drop(reader);
        self.short(name, path, end, is_last).map(|()| None)
    }

    /// Cuts off what is not whole, from `end` on.
    fn short(&mut self, name: &str, path: &Path, mut end: u64, is_last: bool) -> Result<(), LoadError> {
        if self.client.multi.is_some() {
            tracing::warn!("Revert incomplete MULTI/EXEC transaction in AOF file {name}");
            crate::exec::run::transaction::discard_transaction(&self.worker.instance, &mut self.client);
            end = self.multi;
        }
        if !is_last {
            return Err(LoadError(format!(
                "Unexpected end of file reading the append only file {name}: offset {end}. Fatal error: the truncated file is \
                 not the last file"
            )));
        }
        if !self.worker.instance.config.is_on(settings::AOF_LOAD_TRUNCATED) {
            return Err(LoadError(format!(
                "Unexpected end of file reading the append only file {name}: offset {end}. You can: 1) Make a backup of your \
                 AOF file, then use redis-server --fix <filename.manifest>. 2) Alternatively you can set the \
                 'aof-load-truncated' configuration option to yes and restart the server."
            )));
        }
        tracing::warn!("!!! Warning: short read while loading the AOF file {name}!!!");
        tracing::warn!("!!! Truncating the AOF {name} at offset {end} !!!");
        let cut = self.disk.open(path, Open::Append).and_then(|file| {
            file.truncate(end)?;
            file.sync()
        });
        cut.map_err(|error| LoadError(format!("Error truncating the AOF file {name}: {error}")))?;
        tracing::warn!("AOF {name} loaded anyway because aof-load-truncated is enabled");
        Ok(())
    }

    /// Loads the snapshot with which a file may begin; returns where it ends.
    fn snapshot(&self, name: &str, path: &Path) -> Result<u64, LoadError> {
        let mut head = Vec::new();
        let read = self.disk.read(path).and_then(|file| io::Read::read_to_end(&mut io::Read::take(file, 6), &mut head));
        read.map_err(|error| LoadError(format!("Unrecoverable error reading the append only file {name}: {error}")))?;
        if !head.starts_with(b"REDIS") && head != b"VALKEY" {
            return Ok(0);
        }
        tracing::info!("Reading RDB base file on AOF loading...");
        snapshot::load_alone(&self.worker, &*self.disk, path, false)
            .map_err(|error| LoadError(format!("Error reading the RDB base file {name}: {error}. AOF loading aborted")))
    }

    fn batch(&mut self, name: &str, batch: &Batch<'_>) -> Result<(), LoadError> {
        let mut window: ArrayVec<Call<'_>, WINDOW> = ArrayVec::new();
        let (mut first, mut begin) = (0, batch.begin);
        for &(last, end) in batch.ends {
            let args = Args::new(batch.bytes, &batch.spans[first..last]);
            let row = resolve::resolve(&self.worker.instance, args).map_err(|error| {
                let (offset, name_of) = (batch.offset + begin as u64, shown(args.at(0)));
                let error = error.to_string();
                let error = error.strip_prefix("ERR ").unwrap_or(&error);
                LoadError(format!(
                    "Unknown command '{name_of}' reading the append only file {name}: offset {offset}: {error}"
                ))
            })?;
            if self.client.multi.is_none() && row.command.batches(args.len()) && !self.worker.is_alone {
                window.push(Call { row, args });
            } else {
                self.run(&mut window, name)?;
                if row.command.role == Role::Begin {
                    self.multi = batch.offset + begin as u64;
                }
                let is_queued = self.client.multi.is_some() && !row.command.role.runs_inside_multi();
                let admission = if is_queued { Admission::Queue(row) } else { Admission::Run(row) };
                let errors = self.worker.stats.errors.get();
                let passed = if self.worker.is_alone && !is_queued {
                    self.run_alone(row, args);
                    Passed::Done
                } else {
                    dispatch::pass(&self.worker, &mut self.client, admission, args, &mut self.reply)
                };
                self.end(passed, errors, args, name)?;
            }
            (first, begin) = (last, end);
        }
        self.run(&mut window, name)
    }

    /// Runs a command of one that is alone with the data: each has locks of its own, those of a transaction too, which therefore
    /// must not be locked together.
    fn run_alone(&mut self, row: &'static Row, args: Args<'_>) {
        let multi = (row.command.role == Role::Exec).then(|| self.client.multi.take()).flatten();
        let Some(multi) = multi else {
            drop(invoke::run_among_others(&self.worker, &mut self.client, row, args, &mut self.reply));
            return;
        };
        crate::exec::run::transaction::discard_transaction(&self.worker.instance, &mut self.client);
        for (row, args) in &multi.queue {
            drop(invoke::run_among_others(&self.worker, &mut self.client, row, args.args(), &mut self.reply));
        }
    }

    fn run(&mut self, calls: &mut ArrayVec<Call<'_>, WINDOW>, name: &str) -> Result<(), LoadError> {
        let Some(last) = calls.last().copied() else { return Ok(()) };
        let errors = self.worker.stats.errors.get();
        let (_, passed) = dispatch::run(&self.worker, &mut self.client, calls, &mut self.reply);
        calls.clear();
        self.end(passed, errors, last.args, name)
    }

    /// Takes the time that tests want each command to take.
    fn delay(&self, commands: usize) {
        for _ in 0..commands {
            match snapshot::delay(&self.worker.instance.config, settings::KEY_LOAD_DELAY) {
                Some(delay) if !self.worker.instance.is_ending() => std::thread::sleep(delay),
                _ => return,
            }
        }
    }

    /// No client is answered, and no client waits. A command that fails now has not failed when it was written: the data may be another
    /// than it was, which ends the start only if `propagation-error-behavior` says so, as in Redis.
    fn end(&mut self, passed: Passed, errors: u64, args: Args<'_>, name: &str) -> Result<(), LoadError> {
        if let Passed::Blocked(waiting) = passed {
            waiting.leave(&self.client);
        }
        if self.worker.stats.errors.get() == errors {
            self.reply.clear();
            return Ok(());
        }
        self.worker.instance.stats.unexpected_errors.fetch_add(1, Relaxed);
        let said = self.reply.to_vec();
        self.reply.clear();
        let first = said.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"-")).unwrap_or_default();
        let (why, command) = (shown(first.trim_ascii_end()), shown(args.at(0)));
        tracing::error!(
            "== CRITICAL == This server is sending an error to its AOF-loading-client: '{why}' after processing the command \
             '{command}' of {name}"
        );
        let config = &self.worker.instance.config;
        if config.word(settings::PROPAGATION_ERROR_BEHAVIOR) == "panic" {
            return Err(LoadError(format!("Error reading the append only file {name}: '{command}' fails: {why}")));
        }
        Ok(())
    }
}
