//! A primary's snapshot on its way into this server, in the place of all data: by a file, or as it comes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{Body, Length};
use super::{Ended, Link, READ, TICK, Wire};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::gate::Alone;
use crate::exec::replication::state::LinkStage;
use crate::exec::snapshot::{self, Aside, LoadError, NoSnapshot};
use crate::persistence::disk::RealDisk;

/// Pieces that wait to be loaded before no more is read.
const PIECES: usize = 4;
/// How long it waits for room for another piece between two looks.
const NAP: Duration = Duration::from_millis(1);
/// How often a primary is given a sign of life while its snapshot is loaded.
const ALIVE: Duration = Duration::from_secs(1);
/// Bytes that a snapshot may have whose end a mark tells.
const MOST: u64 = 1 << 48;

/// A snapshot that the primary sends, and behind which the stream `id` goes on at `offset`.
pub(super) struct Incoming<'i> {
    pub(super) id: &'i str,
    pub(super) offset: u64,
    pub(super) length: Length,
    /// The part of it that has come with the answer.
    pub(super) first: &'i [u8],
}

impl Incoming<'_> {
    fn bytes(&self) -> u64 {
        if let Length::Bytes(length) = self.length { length } else { 0 }
    }
}

/// How a snapshot is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is kept in a file first, and the old data is served until it is there; then clients are told LOADING.
    File,
    /// It is loaded beside the old data as it comes. Clients are told LOADING, as the old data is another stream's.
    Beside,
    /// The same, and clients are served the old data, which is older data of the same stream.
    BesideServing,
}

impl Link {
    /// Takes a snapshot for all data. Returns what has come behind it.
    pub(super) fn synchronize(&self, wire: &mut Wire<'_>, incoming: &Incoming<'_>) -> Result<Vec<u8>, Ended> {
        self.with_primary(|primary| {
            primary.stage = LinkStage::Sync;
            primary.sync = (incoming.bytes(), 0);
        });
        // The snapshot says which slots are on their way now.
        self.instance.cluster.forget_watched_imports(&self.instance);
        match self.way(incoming.id) {
            Way::File => self.take_by_file(wire, incoming),
            way => self.take_as_it_comes(wire, incoming, way == Way::BesideServing),
        }
    }

    fn way(&self, id: &str) -> Way {
        let instance = &self.instance;
        match instance.config.word(settings::REPL_DISKLESS_LOAD) {
            "swapdb" if instance.replication.ids().id == id => Way::BesideServing,
            "swapdb" => Way::Beside,
            "on-empty-db" if instance.databases().iter().all(|database| database.is_empty()) => Way::Beside,
            _ => Way::File,
        }
    }

    /// Receives a snapshot, and gives its bytes to `each`. Returns what has come behind it.
    fn receive(
        &self,
        wire: &mut Wire<'_>,
        incoming: &Incoming<'_>,
        mut each: impl FnMut(&[u8]) -> Result<(), Ended>,
    ) -> Result<Vec<u8>, Ended> {
        let mut body = Body::new(incoming.length);
        let mut buffer = vec![0; READ];
        let mut rest = body.receive(incoming.first, &mut each)?.map(<[u8]>::to_vec);
        while rest.is_none() {
            let count = wire.read(&mut buffer)?;
            rest = body.receive(&buffer[..count], &mut each)?.map(<[u8]>::to_vec);
            self.with_primary(|primary| primary.sync.1 = body.received()).ok_or(Ended::Obsolete)?;
        }
        Ok(rest.unwrap_or_default())
    }

    fn take_by_file(&self, wire: &mut Wire<'_>, incoming: &Incoming<'_>) -> Result<Vec<u8>, Ended> {
        let path = snapshot::path(&self.instance.config);
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let number = rustix::thread::gettid().as_raw_nonzero();
        let temporary = Temporary(folder.join(format!("temp-{}.{number}.rdb", now_ms() / 1000)));
        let mut file = File::create(&temporary.0)?;
        let rest = self.receive(wire, incoming, |bytes| Ok(file.write_all(bytes)?))?;
        drop(file);
        if self.is_guarded(incoming.id) && snapshot::is_empty(&self.instance, &temporary.0) {
            return Err(refused_as_empty());
        }
        self.check(wire, &temporary.0)?;
        // A snapshot in the making is of no use any more.
        self.instance.background.abort_and_wait();
        let keeps = self.pause_aof();
        let loaded = self.alone().and_then(|alone| self.load(wire, &temporary.0, incoming, alone));
        self.resume_aof(keeps);
        loaded.map(|()| rest)
    }

    /// Reads a file to its end before it takes the place of data, which stays if the file cannot be loaded.
    fn check(&self, wire: &mut Wire<'_>, path: &Path) -> Result<(), Ended> {
        let instance = &self.instance;
        if instance.databases().iter().all(|database| database.is_empty()) {
            return Ok(());
        }
        alive(wire, || snapshot::check_file(instance, path)).map_err(not_loaded)
    }

    /// Takes a file for all data, alone with it.
    fn load(&self, wire: &mut Wire<'_>, path: &Path, incoming: &Incoming<'_>, alone: Alone) -> Result<(), Ended> {
        let instance = &self.instance;
        // As at the start, clients are not told LOADING for little.
        let size = path.metadata()?.len();
        let is_told = size >= instance.config.uint(settings::LOADING_PROCESS_EVENTS_INTERVAL_BYTES);
        instance.loading.begin_again(size);
        if is_told {
            instance.exclusive.begin_loading();
        }
        tracing::info!("MASTER <-> REPLICA sync: Flushing old data");
        tracing::info!("MASTER <-> REPLICA sync: Loading DB in memory");
        instance.replication.note_database(0);
        let loaded = alive(wire, || snapshot::load_in_place(instance, &RealDisk, path, &alone));
        self.loaded(&loaded, incoming, &alone);
        drop(alone);
        // A server that ends now must not save its incomplete data in place of the old data.
        if is_told && !instance.is_ending() {
            instance.exclusive.end_loading();
        }
        loaded.map_err(not_loaded)
    }

    /// All data is the primary's, or none is there any more.
    fn loaded(&self, loaded: &Result<(), LoadError>, Incoming { id, offset, .. }: &Incoming<'_>, alone: &Alone) {
        let instance = &self.instance;
        match loaded {
            Ok(()) => instance.replication.begin_as(instance, id, *offset, alone),
            // The data that is there belongs to no stream.
            Err(_) => {
                instance.replication.forget(instance, alone);
                snapshot::empty(instance, alone);
            }
        }
    }

    fn take_as_it_comes(&self, wire: &mut Wire<'_>, incoming: &Incoming<'_>, serves: bool) -> Result<Vec<u8>, Ended> {
        let instance = &self.instance;
        // Which cut they belong to is what old and new data must agree in.
        let no_snapshot = self.keep_snapshots_out()?;
        instance.loading.begin_again(incoming.bytes());
        let mut shown = Shown::new(self, serves)?;
        tracing::info!("MASTER <-> REPLICA sync: Loading DB in memory");
        instance.replication.note_database(0);
        let (rest, aside) = self.load_aside(wire, incoming)?;
        if aside.is_empty() && self.is_guarded(incoming.id) {
            return Err(refused_as_empty());
        }
        let keeps = self.pause_aof();
        let loaded = shown.alone().and_then(|alone| {
            tracing::info!("MASTER <-> REPLICA sync: Swapping active DB with loaded DB");
            let loaded = aside.take_place(instance, &alone);
            self.loaded(&loaded, incoming, &alone);
            loaded.map_err(not_loaded)
        });
        drop((shown, no_snapshot));
        self.resume_aof(keeps);
        loaded.map(|()| rest)
    }

    /// Loads what comes beside the data.
    fn load_aside(&self, wire: &mut Wire<'_>, incoming: &Incoming<'_>) -> Result<(Vec<u8>, Aside), Ended> {
        let (sender, receiver) = sync_channel(PIECES);
        let most = if let Length::Bytes(length) = incoming.length { length } else { MOST };
        let (received, loaded) = thread::scope(|scope| {
            let pieces = Box::new(Pieces { receiver, piece: Vec::new(), at: 0 });
            let loader = scope.spawn(move || snapshot::load_aside(&self.instance, pieces, most));
            let received = self.receive(wire, incoming, |bytes| self.hand_on(&sender, bytes));
            drop(sender);
            (received, loader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        match (received, loaded) {
            (Ok(rest), Ok(aside)) => Ok((rest, aside)),
            (Err(ended @ (Ended::Obsolete | Ended::Killed)), _) => Err(ended),
            // The loader says why it has ended.
            (Ok(_) | Err(Ended::NotLoaded(_)), Err(error)) => {
                tracing::warn!("Internal error in RDB: {error}");
                Err(not_loaded(error))
            }
            (Err(Ended::Lost(why) | Ended::NotLoaded(why)), loaded) => {
                let error = loaded.err().map_or_else(String::new, |error| format!(": {error}"));
                tracing::warn!("Internal error in RDB: {why}{error}");
                Err(Ended::Lost(why))
            }
        }
    }

    /// Waits for room: the primary waits too, then.
    fn hand_on(&self, sender: &SyncSender<Vec<u8>>, bytes: &[u8]) -> Result<(), Ended> {
        if bytes.is_empty() {
            // An empty piece would be the end for the reader, which may have left by then.
            return Ok(());
        }
        let mut piece = bytes.to_vec();
        while let Err(error) = sender.try_send(piece) {
            match error {
                TrySendError::Full(back) => piece = back,
                TrySendError::Disconnected(_) => return Err(Ended::NotLoaded("it cannot be loaded".to_owned())),
            }
            if self.is_obsolete() {
                return Err(Ended::Obsolete);
            }
            thread::sleep(NAP);
        }
        Ok(())
    }

    fn keep_snapshots_out(&self) -> Result<NoSnapshot<'_>, Ended> {
        loop {
            if let Some(none) = self.instance.background.keep_out() {
                return Ok(none);
            }
            if self.is_obsolete() {
                return Err(Ended::Obsolete);
            }
            thread::sleep(NAP);
        }
    }

    fn alone(&self) -> Result<Alone, Ended> {
        loop {
            if self.is_obsolete() {
                return Err(Ended::Obsolete);
            }
            match self.instance.exclusive.stop_after_slow_calls() {
                // It may have become so while this waited.
                Ok(_) if self.is_obsolete() => return Err(Ended::Obsolete),
                Ok(alone) => return Ok(alone),
                Err(_) => thread::sleep(TICK),
            }
        }
    }

    /// Keeps nothing while all data is another's. Returns whether it did.
    fn pause_aof(&self) -> bool {
        let keeps = self.instance.aof.is_on();
        if keeps {
            self.instance.aof.turn_off();
        }
        keeps
    }

    fn resume_aof(&self, keeps: bool) {
        if keeps && let Err(error) = self.instance.aof.turn_on(&self.instance) {
            tracing::error!("the append-only file cannot be begun anew: {error}");
        }
    }

    /// Whether an empty snapshot is not to take the place of the data: this server has followed the primary before, by another
    /// stream, so it is likely to have lost its data (`replica-refuse-empty-primary`).
    fn is_guarded(&self, id: &str) -> bool {
        let instance = &self.instance;
        instance.config.is_on(settings::REPLICA_REFUSE_EMPTY_PRIMARY)
            && instance.replication.ids().id != id
            && self.with_primary(|primary| primary.had_stream).unwrap_or(false)
            && instance.databases().iter().any(|database| !database.is_empty())
    }
}

fn refused_as_empty() -> Ended {
    Ended::Lost(
        "the primary has started without data, and this replica keeps what it has. Promote a replica by REPLICAOF NO ONE, \
         or have it follow all the same: CONFIG SET replica-refuse-empty-primary no"
            .to_owned(),
    )
}

fn not_loaded(error: LoadError) -> Ended {
    match error {
        LoadError::Ends => Ended::Obsolete,
        LoadError::Io(_) | LoadError::Fault(_) | LoadError::Record(..) => {
            Ended::NotLoaded(format!("the primary's snapshot cannot be loaded: {error}"))
        }
    }
}

/// Does `work`, while the primary is told now and then that this server is there.
fn alive<R: Send>(wire: &mut Wire<'_>, work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut told = Instant::now();
        while !worker.is_finished() {
            thread::sleep(NAP);
            if told.elapsed() >= ALIVE {
                told = Instant::now();
                // That it is gone is found soon enough.
                let _ = wire.write(b"\n");
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The state that clients see while a snapshot is loaded beside the data, until this is dropped.
struct Shown<'l> {
    link: &'l Link,
    /// While clients are told LOADING.
    alone: Option<Alone>,
}

impl<'l> Shown<'l> {
    fn new(link: &'l Link, serves: bool) -> Result<Self, Ended> {
        if serves {
            link.instance.loading.set_aside(true);
            return Ok(Self { link, alone: None });
        }
        let alone = link.alone()?;
        link.instance.exclusive.begin_loading();
        Ok(Self { link, alone: Some(alone) })
    }

    /// For the moment in which the data is exchanged.
    fn alone(&mut self) -> Result<Alone, Ended> {
        self.alone.take().map_or_else(|| self.link.alone(), Ok)
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let instance = &self.link.instance;
        drop(self.alone.take());
        if instance.loading.is_aside() {
            instance.loading.set_aside(false);
        } else if !instance.is_ending() {
            instance.exclusive.end_loading();
        }
    }
}

/// The bytes that come, as they are handed on.
struct Pieces {
    receiver: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let Ok(piece) = self.receiver.recv() else { return Ok(0) };
            (self.piece, self.at) = (piece, 0);
        }
        let count = into.len().min(self.piece.len() - self.at);
        into[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A file that is removed when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may not have been made; there is nobody to tell.
        let _ = fs::remove_file(&self.0);
    }
}
