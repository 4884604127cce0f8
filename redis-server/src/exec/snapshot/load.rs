//! From the file.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fmt, io, thread};

use super::insert::{Inserter, Place, Terms, Twice};
use super::position::position;
use crate::config::{Config, settings};
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Ctx, Instance, Worker};
use crate::exec::gate::Alone;
use crate::exec::replication::Replication;
use crate::exec::search;
use crate::keyspace::{Access, Database, Garbage, View};
use crate::persistence::Outcome;
use crate::persistence::disk::{Disk, RealDisk};
use crate::persistence::rdb::{Batch, Fault, File, Item, Limits, Part, ReadError};
use crate::protocol::Reply;
use crate::protocol::error::{Error, shown};

/// Batches for each thread that wait to be decoded, so that none waits for the reader.
const QUEUED: usize = 4;
/// Keys for which room is made at once, of a source that is no file.
const ROOM: u64 = 1 << 22;
/// The shortest record: type, and two empty strings.
const RECORD_MIN: u64 = 3;

/// The rule for a key, or a library, that is there already.
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
    /// The server ends before it is loaded.
    Ends,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
            Self::Record(offset, what) => write!(f, "offset {offset}: {what}"),
            Self::Ends => f.write_str("the server ends"),
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

/// Loads the configuration's snapshot, if there is one, into a server that does not serve clients yet.
///
/// # Errors
/// [`LoadError`]. The server must not start then: it would replace the file by what little it has.
pub fn load_at_start(instance: &Arc<Instance>) -> Result<(), LoadError> {
    let path = super::files::path(&instance.config);
    // Without a name there is no file, though the path is that of a folder.
    if super::files::file_name(&instance.config).is_empty() || !path.exists() {
        return Ok(());
    }
    begin_from(instance, &RealDisk, &path)
}

/// Loads a snapshot into a server that does not serve clients yet, and goes on with the stream at whose end the file was made.
///
/// # Errors
/// [`LoadError`].
pub(crate) fn begin_from(instance: &Arc<Instance>, disk: &dyn Disk, path: &Path) -> Result<(), LoadError> {
    let began = Instant::now();
    let worker = Worker::new(Arc::clone(instance));
    instance.loading.expect(disk.len(path).map_err(LoadError::Io)?);
    let position = position(disk, path, limits(&instance.config));
    let is_replica = Replication::starts_as_replica(instance);
    // Expired keys are kept if the stream goes on: replicas must get their deletion, which follows when clients are served. A replica gets
    // it from its primary.
    load_alone(&worker, disk, path, position.is_none() && !is_replica)?;
    if let Some(position) = position {
        instance.replication.go_on_from(instance, position, is_replica);
    }
    tracing::info!("DB loaded from disk: {:.3} seconds", began.elapsed().as_secs_f64());
    Ok(())
}

/// Loads a snapshot into the empty databases of a server without other work, on as many threads as it has workers; returns where the
/// snapshot ends in the file. Keys whose time is over are left out if it `expires`.
///
/// # Errors
/// [`LoadError`], the same for any number of threads.
pub(crate) fn load_alone(worker: &Worker, disk: &dyn Disk, path: &Path, expires: bool) -> Result<u64, LoadError> {
    let instance = &worker.instance;
    let mut client = worker.unconnected_client();
    let mut reply = Reply::default();
    let mut cx = Ctx::new(worker, instance.database(0).lock_none(now_ms()), &mut reply, &mut client);
    let (_, end) = load_to(&mut cx, Place::Shared(instance.databases()), (disk, path), (Merge::Refuse, expires))?;
    Ok(end)
}

/// Takes a snapshot for all data, in the place of what there was.
///
/// # Errors
/// [`LoadError`]. The part in front of the fault has been loaded then.
pub fn load_in_place(instance: &Arc<Instance>, disk: &dyn Disk, path: &Path, _: &Alone) -> Result<(), LoadError> {
    let worker = Worker::of_loader(Arc::clone(instance));
    empty_by(&worker);
    load_alone(&worker, disk, path, false).map(drop)
}

/// Removes all data, and the function libraries.
pub fn empty(instance: &Arc<Instance>, _: &Alone) {
    empty_by(&Worker::of_loader(Arc::clone(instance)));
}

fn empty_by(worker: &Worker) {
    let instance = &worker.instance;
    let mut client = worker.unconnected_client();
    let mut reply = Reply::default();
    let mut cx = Ctx::new(worker, instance.database(0).lock_none(now_ms()), &mut reply, &mut client);
    for database in instance.databases() {
        let removed = database.lock_all(Access::Write, now_ms()).clear();
        for removed in database.save_removed(removed) {
            cx.discard_all(Garbage::Entries(removed), false);
        }
    }
    cx.forget_read_keys();
    instance.scripts.with_engine(|engine| engine.flush_libraries(&cx));
    search::clear(instance);
}

/// Loads a snapshot into these views of all databases, each locked as a whole for writing, in their order.
///
/// # Errors
/// [`LoadError`]. The part in front of the fault has been loaded then.
pub fn load(cx: &mut Ctx<'_>, views: Vec<&mut View<'_>>, path: &Path, merge: Merge) -> Result<Outcome, LoadError> {
    load_to(cx, Place::Locked(views), (&RealDisk, path), (merge, true)).map(|(outcome, _)| outcome)
}

/// Data that was loaded and is not served yet.
pub struct Aside {
    databases: Vec<Database>,
    functions: Vec<Vec<u8>>,
    outcome: Outcome,
    end: u64,
}

/// Loads what another server sends, at most so many bytes, beside the data, which is served meanwhile; no snapshot may
/// [begin](super::Background::keep_out) until it has taken the data's place.
///
/// # Errors
/// [`LoadError`]. The data is as it was.
pub fn load_aside(instance: &Arc<Instance>, source: Box<dyn io::Read>, most: u64) -> Result<Aside, LoadError> {
    let databases: Vec<_> = instance.databases().iter().map(Database::sibling).collect();
    let file = File::of(source, most, limits(&instance.config), checks(instance));
    let (outcome, end, functions) =
        load_file(instance, Place::Shared(&databases), (file, None), (Merge::Refuse, false))?;
    Ok(Aside { databases, functions, outcome, end })
}

impl Aside {
    /// Whether it has no key.
    pub fn is_empty(&self) -> bool {
        self.databases.iter().all(Database::is_empty)
    }

    /// Takes the place of all data.
    ///
    /// # Errors
    /// Its libraries cannot be taken: there are none then.
    pub fn take_place(self, instance: &Arc<Instance>, _: &Alone) -> Result<(), LoadError> {
        let worker = &Worker::of_loader(Arc::clone(instance));
        let mut client = worker.unconnected_client();
        let mut reply = Reply::default();
        let mut cx = Ctx::new(worker, instance.database(0).lock_none(now_ms()), &mut reply, &mut client);
        for (database, aside) in instance.databases().iter().zip(&self.databases) {
            let (mut old, mut new) =
                (database.lock_all(Access::Write, now_ms()), aside.lock_all(Access::Write, now_ms()));
            // A client that watches a key finds it changed.
            database.touch_where(|_| true);
            Database::swap(&mut old, &mut new);
            new.clear().into_iter().for_each(|removed| cx.discard_all(Garbage::Entries(removed), false));
        }
        cx.forget_read_keys();
        instance.scripts.with_engine(|engine| engine.flush_libraries(&cx));
        search::clear(instance);
        finish(&mut cx, &self.functions, (self.outcome, self.end), Merge::Refuse)
    }
}

/// Whether this snapshot has no key; one that cannot be read has, for all that is known.
pub fn is_empty(instance: &Instance, path: &Path) -> bool {
    let Ok(mut file) = File::open(&RealDisk, path, limits(&instance.config), false) else { return false };
    loop {
        match file.next(|item| matches!(item, Item::Record(_))) {
            Ok(Some(false)) => {}
            Ok(Some(true)) | Err(_) => return false,
            Ok(None) => return true,
        }
    }
}

/// Reads a snapshot to its end, and changes nothing.
///
/// # Errors
/// Why it cannot be loaded, but for keys that are in it twice and libraries that do not run.
pub fn check_file(instance: &Instance, path: &Path) -> Result<(), LoadError> {
    let databases = instance.databases().len();
    let mut file = File::open(&RealDisk, path, limits(&instance.config), checks(instance))?;
    while let Some(unknown) = file.next(|item| match item {
        Item::Database(number) => Some(number).filter(|&number| number >= databases as u64),
        _ => None,
    })? {
        if let Some(number) = unknown {
            return Err(LoadError::Record(file.offset(), no_such_database(number, databases)));
        }
        if instance.is_ending() {
            return Err(LoadError::Ends);
        }
    }
    Ok(())
}

fn no_such_database(number: u64, databases: usize) -> String {
    format!("the file has a database {number}, and this server is configured to have {databases}")
}

fn checks(instance: &Instance) -> bool {
    instance.config.is_on(settings::RDBCHECKSUM) && instance.snapshots.checks_sums()
}

fn load_to(
    cx: &mut Ctx<'_>,
    place: Place<'_, '_>,
    (disk, path): (&dyn Disk, &Path),
    (merge, expires): (Merge, bool),
) -> Result<(Outcome, u64), LoadError> {
    let file = File::open(disk, path, limits(&cx.instance.config), checks(cx.instance))?;
    let (outcome, end, functions) = load_file(cx.instance, place, (file, Some((disk, path))), (merge, expires))?;
    finish(cx, &functions, (outcome, end), merge)?;
    Ok((outcome, end))
}

/// Puts what a file says into its place. Returns what that was, where it ends, and the code of its libraries.
fn load_file(
    instance: &Instance,
    place: Place<'_, '_>,
    (file, again): (File, Option<(&dyn Disk, &Path)>),
    (merge, expires): (Merge, bool),
) -> Result<(Outcome, u64, Vec<Vec<u8>>), LoadError> {
    let config = &*instance.config;
    let terms = Terms { instance, limits: limits(config), merge, now: now_ms(), expires };
    let mut load = Load { file, terms, again, database: 0, functions: Vec::new() };
    let outcome = match place {
        // With a delay for tests, keys are loaded one by one.
        Place::Shared(databases) if super::files::delay(config, settings::KEY_LOAD_DELAY).is_none() => {
            load.in_parallel(databases, threads(config))?
        }
        place => load.in_order(place)?,
    };
    if instance.is_ending() {
        return Err(LoadError::Ends);
    }
    Ok((outcome, load.file.offset(), load.functions))
}

fn finish(
    cx: &mut Ctx<'_>,
    functions: &[Vec<u8>],
    (outcome, end): (Outcome, u64),
    merge: Merge,
) -> Result<(), LoadError> {
    add_functions(cx, functions, merge)
        .map_err(|error| LoadError::Record(end, format!("Failed creating the function library: {error}")))?;
    search::restore(cx);
    cx.instance.snapshots.loaded(outcome);
    tracing::info!("Done loading RDB, keys loaded: {}, keys expired: {}.", outcome.loaded, outcome.expired);
    if outcome.empty > 0 {
        tracing::warn!("empty keys skipped: {}.", outcome.empty);
    }
    Ok(())
}

fn limits(config: &Config) -> Limits {
    Limits {
        hash: config.hash_limits(),
        list: config.list_limits(),
        set: config.set_limits(),
        sorted_set: config.sorted_set_limits(),
    }
}

/// How many threads load.
fn threads(config: &Config) -> usize {
    match config.size(settings::WORKERS) {
        0 => thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    }
}

fn add_functions(cx: &mut Ctx<'_>, codes: &[Vec<u8>], merge: Merge) -> Result<(), Error> {
    if codes.is_empty() {
        return Ok(());
    }
    let scripts = &cx.instance.scripts;
    scripts.with_engine(|engine| engine.restore(cx, codes, false, merge == Merge::Replace))
}

/// A file on its way into the databases.
struct Load<'l> {
    file: File,
    terms: Terms<'l>,
    /// Where the file can be read again, if it can.
    again: Option<(&'l dyn Disk, &'l Path)>,
    /// Which one is next.
    database: usize,
    functions: Vec<Vec<u8>>,
}

/// The outcome of one of several threads.
struct Done {
    outcome: Outcome,
    twice: Vec<Twice>,
    fault: Option<Fault>,
}

impl<'l> Load<'l> {
    fn in_order(&mut self, place: Place<'_, '_>) -> Result<Outcome, LoadError> {
        let databases = match &place {
            Place::Locked(views) => views.len(),
            Place::Shared(databases) => databases.len(),
        };
        let mut inserter = Inserter::new(place, self.terms);
        let mut fault = None;
        let read = self.read(
            databases,
            |_, _| {},
            |batch, database| {
                fault = inserter.insert(&batch, database).err();
                fault.is_none() && inserter.twice.is_empty() && !self.terms.instance.is_ending()
            },
        );
        if let Some(twice) = inserter.twice.first() {
            return Err(is_twice(&twice.key, twice.end));
        }
        fault.map_or(read, |fault| Err(LoadError::Fault(fault))).map(|()| inserter.outcome)
    }

    fn in_parallel(&mut self, databases: &'l [Database], threads: usize) -> Result<Outcome, LoadError> {
        let terms = self.terms;
        let (sender, receiver) = mpsc::sync_channel(threads * QUEUED);
        let receiver = Arc::new(Mutex::new(receiver));
        let is_failing = AtomicBool::new(false);
        let (read, done) = thread::scope(|scope| {
            let start = |_| {
                let (receiver, is_failing) = (Arc::clone(&receiver), &is_failing);
                scope.spawn(move || work(&receiver, Inserter::new(Place::Shared(databases), terms), is_failing))
            };
            let workers: Vec<_> = (0..threads).map(start).collect();
            // The threads end when no more batches come; if all have panicked, no thread waits for them.
            drop(receiver);
            let reserve = |database: usize, keys| databases[database].lock_all(Access::Write, 0).reserve(keys);
            let read = self.read(databases.len(), reserve, |batch, database| {
                !is_failing.load(Relaxed) && !terms.instance.is_ending() && sender.send((batch, database)).is_ok()
            });
            drop(sender);
            let join = |worker: thread::ScopedJoinHandle<'_, Done>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (read, workers.into_iter().map(join).collect::<Vec<_>>())
        });
        let twice: Vec<_> = done.iter().flat_map(|done| &done.twice).collect();
        if !twice.is_empty() {
            self.find_first(&twice)?;
        }
        // Batches in front of a fault were handed out before it, and each batch handed out is decoded.
        if let Some(fault) = done.iter().filter_map(|done| done.fault.as_ref()).min_by_key(|fault| fault.offset) {
            return Err(LoadError::Fault(fault.clone()));
        }
        read?;
        Ok(done.iter().fold(Outcome::default(), |sum, Done { outcome, .. }| Outcome {
            loaded: sum.loaded + outcome.loaded,
            expired: sum.expired + outcome.expired,
            empty: sum.empty + outcome.empty,
        }))
    }

    /// Reads the file to its end, or until `hand` says no to records; `room` is told how many keys will come.
    fn read(
        &mut self,
        databases: usize,
        room: impl Fn(usize, usize),
        mut hand: impl FnMut(Batch, usize) -> bool,
    ) -> Result<(), LoadError> {
        // A file from a connection may be shorter than it says.
        let most = if self.again.is_some() { u64::MAX } else { ROOM };
        loop {
            let (left, instance) = (self.file.left(), self.terms.instance);
            let (database, functions) = (&mut self.database, &mut self.functions);
            let taken = self.file.next_part(|part| match part {
                Part::Records(batch) => Ok(hand(batch, *database)),
                Part::Item(Item::Sizes { keys, .. }) => {
                    room(*database, keys.min(left / RECORD_MIN).min(most) as usize);
                    Ok(true)
                }
                Part::Item(Item::Function(code)) => {
                    functions.push(code.into_owned());
                    Ok(true)
                }
                Part::Item(Item::Database(number)) => {
                    let known = usize::try_from(number).ok().filter(|&number| number < databases);
                    *database = known.ok_or_else(|| no_such_database(number, databases))?;
                    Ok(true)
                }
                Part::Item(item) => {
                    tell(instance, &item);
                    Ok(true)
                }
            })?;
            if instance.exclusive.is_loading() {
                instance.loading.tell(instance.supervisor());
            }
            match taken {
                Some(Ok(true)) => {}
                Some(Ok(false)) | None => return Ok(()),
                Some(Err(what)) => return Err(LoadError::Record(self.file.offset(), what)),
            }
        }
    }

    /// Reads the file again up to what is wrong first: of two records of a key, any can have been stored first.
    ///
    /// # Errors
    /// The fault.
    fn find_first(&self, twice: &[&Twice]) -> Result<(), LoadError> {
        let Some((disk, path)) = self.again else {
            return twice
                .iter()
                .min_by_key(|twice| twice.end)
                .map_or(Ok(()), |twice| Err(is_twice(&twice.key, twice.end)));
        };
        let mut suspects: HashMap<usize, HashSet<&[u8]>> = HashMap::new();
        for twice in twice {
            suspects.entry(twice.database).or_default().insert(&twice.key);
        }
        let (mut database, mut seen) = (0, HashSet::new());
        let mut file = File::open(disk, path, self.terms.limits, false)?;
        loop {
            let again = file.next(|item| match item {
                Item::Database(number) => {
                    database = usize::try_from(number).unwrap_or(usize::MAX);
                    None
                }
                Item::Record(record) if record.value.is_some() && !self.terms.is_over(record.expire_at) => {
                    let suspect = suspects.get(&database).and_then(|keys| keys.get(&*record.key)).copied();
                    suspect.filter(|&key| !seen.insert((database, key)))
                }
                _ => None,
            })?;
            match again {
                Some(None) => {}
                Some(Some(key)) => return Err(is_twice(key, file.offset())),
                None => return Ok(()),
            }
        }
    }
}

/// The work of one of several threads.
fn work(batches: &Mutex<Receiver<(Batch, usize)>>, mut inserter: Inserter<'_, '_>, is_failing: &AtomicBool) -> Done {
    let mut fault = None;
    // The lock ends with the statement; a thread that waits for a batch holds it.
    while let Ok((batch, database)) = next(batches) {
        // Behind its first fault nothing matters any more: batches come in the order of the file.
        if fault.is_none() {
            fault = inserter.insert(&batch, database).err();
            if fault.is_some() || !inserter.twice.is_empty() {
                is_failing.store(true, Relaxed);
            }
        }
    }
    Done { outcome: inserter.outcome, twice: inserter.twice, fault }
}

fn next<T>(batches: &Mutex<Receiver<T>>) -> Result<T, RecvError> {
    batches.lock().unwrap_or_else(PoisonError::into_inner).recv()
}

fn is_twice(key: &[u8], end: u64) -> LoadError {
    LoadError::Record(end, format!("the key {} is there twice", shown(key)))
}

/// Says in the log what the file says of itself.
fn tell(instance: &Instance, item: &Item<'_>) {
    match item {
        Item::Note { name, text } => note(instance, name, text),
        Item::Module => tracing::warn!("what a module has left in the file is skipped: there are no modules here"),
        _ => {}
    }
}

/// Logs the writer of the file.
fn note(instance: &Instance, name: &[u8], text: &[u8]) {
    let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    match name {
        b"redis-ver" | b"valkey-ver" => tracing::info!("Loading RDB produced by version {}", shown(text)),
        b"ctime" => {
            tracing::info!("RDB age {} seconds", (now_ms() / 1000).saturating_sub(number()));
        }
        b"used-mem" => {
            tracing::info!("RDB memory usage when created {} bytes", shown(text));
            instance.loading.note_memory(number());
        }
        _ if name == search::NOTE.as_bytes() => search::note(instance, text),
        b"repl-stream-db" => instance.replication.note_database(number()),
        b"slot-imports" if instance.cluster.is_enabled() => {
            instance.cluster.take_note_of_imports(instance, &String::from_utf8_lossy(text));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
