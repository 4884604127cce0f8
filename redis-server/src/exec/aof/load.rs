//! From the files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use std::{fmt, io};

use super::layout;
use crate::command::{Args, Role};
use crate::config::settings;
use crate::exec::apply::{Failed, Replay, Window};
use crate::exec::core::{Call, Instance, Worker};
use crate::exec::replication::Position;
use crate::exec::snapshot;
use crate::persistence::aof::{Batch, FindError, Layout, Manifest, Mark, ReadFault, Reader, find};
use crate::persistence::disk::{Disk, Open};

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

/// Loads the files into an empty server. The server must not serve yet, or this worker must be alone with its data. Returns the files, and
/// the offset in a stream of changes at which they end, if they name one.
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
    let mut loader = Loader::new(worker, Arc::clone(disk), layout);
    let mut position = None;
    for (number, part) in manifest.parts().enumerate().filter(|(number, _)| sizes[*number] > 0) {
        let began = Instant::now();
        position = loader.file(&part.name, &loader.layout.path(part), Some(number) >= last)?;
        let kind = if manifest.base.as_ref() == Some(part) { "base" } else { "incr" };
        tracing::info!("DB loaded from {kind} file {}: {:.3} seconds", part.name, began.elapsed().as_secs_f64());
    }
    Ok((manifest, position))
}

/// Reads the files.
struct Loader {
    replay: Replay,
    disk: Arc<dyn Disk>,
    layout: Layout,
    /// Where the transaction begins that is being put together.
    multi: u64,
}

impl Loader {
    fn new(worker: Worker, disk: Arc<dyn Disk>, layout: Layout) -> Self {
        Self { replay: Replay::new(worker), disk, layout, multi: 0 }
    }

    fn instance(&self) -> &Instance {
        &self.replay.worker.instance
    }

    /// Reads a file to its end. The `last` one may end early. Returns where in a stream it ends, if it says so.
    fn file(&mut self, name: &str, path: &Path, is_last: bool) -> Result<Option<Position>, LoadError> {
        let unreadable =
            |error: io::Error| LoadError(format!("Unrecoverable error reading the append only file {name}: {error}"));
        // The next commands say which database they are for.
        self.replay.client.db = 0;
        let begin = self.snapshot(name, path)?;
        let mut source = self.disk.read(path).map_err(unreadable)?;
        io::copy(&mut io::Read::take(&mut source, begin), &mut io::sink()).map_err(unreadable)?;
        let mut reader = Reader::new(source, begin);
        let end = loop {
            if self.instance().is_ending() {
                return Err(LoadError("the server ends".to_owned()));
            }
            match reader.next_batch() {
                Ok(Some(batch)) => {
                    let bytes = batch.ends.last().map_or(0, |&(_, end)| end - batch.begin);
                    self.batch(name, &batch)?;
                    self.delay(batch.ends.len());
                    self.instance().loading.advance(bytes as u64);
                    self.instance().loading.tell(self.instance().supervisor());
                }
                Ok(None) if !self.replay.is_in_transaction() => {
                    let mark = reader.mark().cloned();
                    return Ok(mark.map(|Mark { stream: id, offset }| Position {
                        id,
                        offset,
                        db: self.replay.client.db,
                    }));
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
        if self.replay.is_in_transaction() {
            tracing::warn!("Revert incomplete MULTI/EXEC transaction in AOF file {name}");
            self.replay.discard_transaction();
            end = self.multi;
        }
        if !is_last {
            return Err(LoadError(format!(
                "Unexpected end of file reading the append only file {name}: offset {end}. Fatal error: the truncated file is \
                 not the last file"
            )));
        }
        if !self.instance().config.is_on(settings::AOF_LOAD_TRUNCATED) {
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
        snapshot::load_alone(&self.replay.worker, &*self.disk, path, false)
            .map_err(|error| LoadError(format!("Error reading the RDB base file {name}: {error}. AOF loading aborted")))
    }

    fn batch(&mut self, name: &str, batch: &Batch<'_>) -> Result<(), LoadError> {
        let mut window = Window::new();
        let (mut first, mut begin) = (0, batch.begin);
        for &(last, end) in batch.ends {
            let args = Args::new(batch.bytes, &batch.spans[first..last]);
            let row = self.replay.resolve(args).map_err(|Failed { command, why }| {
                let (offset, why) = (batch.offset + begin as u64, why.strip_prefix("ERR ").unwrap_or(&why));
                LoadError(format!(
                    "Unknown command '{command}' reading the append only file {name}: offset {offset}: {why}"
                ))
            })?;
            if self.replay.batches(row, args) {
                window.push(Call { row, args });
            } else {
                self.run(&mut window, name)?;
                if row.command.role == Role::Begin {
                    self.multi = batch.offset + begin as u64;
                }
                let passed = self.replay.pass(row, args);
                passed.or_else(|failed| self.failed(&failed, name))?;
            }
            (first, begin) = (last, end);
        }
        self.run(&mut window, name)
    }

    fn run(&mut self, calls: &mut Window<'_>, name: &str) -> Result<(), LoadError> {
        while let Err(failed) = self.replay.run_window(calls) {
            self.failed(&failed, name)?;
        }
        Ok(())
    }

    /// Takes the time that tests want each command to take.
    fn delay(&self, commands: usize) {
        for _ in 0..commands {
            match snapshot::delay(&self.instance().config, settings::KEY_LOAD_DELAY) {
                Some(delay) if !self.instance().is_ending() => std::thread::sleep(delay),
                _ => return,
            }
        }
    }

    /// A command that fails now has not failed when it was written: the data may be another than it was, which ends the start only if
    /// `propagation-error-behavior` says so, as in Redis.
    fn failed(&self, Failed { command, why }: &Failed, name: &str) -> Result<(), LoadError> {
        let instance = self.instance();
        instance.stats.unexpected_errors.fetch_add(1, Relaxed);
        tracing::error!(
            "== CRITICAL == This server is sending an error to its AOF-loading-client: '{why}' after processing the command \
             '{command}' of {name}"
        );
        if instance.config.word(settings::PROPAGATION_ERROR_BEHAVIOR) == "panic" {
            return Err(LoadError(format!("Error reading the append only file {name}: '{command}' fails: {why}")));
        }
        Ok(())
    }
}
