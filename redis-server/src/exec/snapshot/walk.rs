//! The walk of a snapshot through the entries that were not handed over.

use std::sync::Arc;
use std::time::Duration;
use std::{io, mem, thread};

use super::background::{Create, Moment};
use super::encoder::Encoder;
use super::file::{self, ToFile};
use super::handover::{CHUNK, HandedOver};
use super::state::NAP;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::pace::Pace;
use crate::exec::gate::{self, Marks};
use crate::keyspace::{Access, Cut, Entry, Garbage, Key, Removed, View, Walk};
use crate::threads;

/// Entries that are saved under one lock: some ten microseconds.
const SLICE: usize = 64;
/// How long the thread sleeps at a time where it is told to wait.
const LONG_NAP: Duration = Duration::from_millis(10);

/// Saves all entries of this moment.
///
/// # Errors
/// The file's, or the snapshot is to end.
pub(super) fn save(instance: &Arc<Instance>, moment: &Moment, create: Create) -> io::Result<()> {
    thread::scope(|scope| {
        let (to_file, file) = file::way();
        let write = || {
            threads::panic_point();
            file.write(instance, moment, create)
        };
        let file = threads::spawn_scoped(scope, "snapshot-file", write)?;
        threads::panic_point();
        let walked = Scribe::new(instance, moment, to_file).run();
        let written = file.join().unwrap_or_else(|_| Err(io::Error::other("a panic")));
        written.and(walked)
    })
}

/// Lets all entries of this moment count as saved.
///
/// # Errors
/// None.
pub(super) fn forget(instance: &Instance, moment: &Moment) -> io::Result<()> {
    moment.handover.close();
    walk(instance, &mut Forget)?;
    discard(instance, moment.handover.take().removed);
    Ok(())
}

fn discard(instance: &Instance, removed: Vec<(usize, Vec<Removed>)>) {
    for entries in removed.into_iter().flat_map(|(_, entries)| entries) {
        instance.reaper.free(Garbage::Entries(entries), false);
    }
}

/// The action on each entry of the walk.
trait Visitor {
    /// Takes an unsaved entry of database `number`, under the lock of its shard; false leaves it for [`Visitor::between`].
    fn save(&mut self, number: usize, entry: &Entry) -> bool;

    /// Is called behind some of them, without a lock.
    ///
    /// # Errors
    /// The walk ends.
    fn between(&mut self) -> io::Result<()>;
}

/// Goes through all unsaved entries.
fn walk(instance: &Instance, visitor: &mut impl Visitor) -> io::Result<()> {
    let is_slowed = super::files::delay(&instance.config, settings::RDB_KEY_SAVE_DELAY).is_some();
    let slice = if is_slowed { 1 } else { SLICE };
    loop {
        let swaps = Cut::swaps(instance.databases());
        for (number, database) in instance.databases().iter().enumerate() {
            let mut left: Vec<(usize, u64)> = (0..database.shards()).map(|shard| (shard, 0)).collect();
            while !left.is_empty() {
                let mut busy = Vec::new();
                for (shard, mut cursor) in left {
                    loop {
                        let walk = database.walk_unsaved(shard, cursor, slice, |entry| visitor.save(number, entry));
                        visitor.between()?;
                        match walk {
                            Walk::Done => break,
                            Walk::At(next) => cursor = next,
                            Walk::Busy => {
                                busy.push((shard, cursor));
                                break;
                            }
                        }
                    }
                }
                if !busy.is_empty() {
                    thread::sleep(NAP);
                }
                left = busy;
            }
        }
        while !Cut::is_settled(instance.databases()) {
            thread::sleep(NAP);
        }
        // A database that was swapped meanwhile may have been passed by.
        if Cut::swaps(instance.databases()) == swaps {
            return Ok(());
        }
    }
}

/// Lets entries count as saved.
struct Forget;

impl Visitor for Forget {
    fn save(&mut self, _: usize, _: &Entry) -> bool {
        true
    }

    fn between(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encodes entries for the file.
struct Scribe<'a> {
    instance: &'a Arc<Instance>,
    moment: &'a Moment,
    file: ToFile,
    delay: Option<Duration>,
    pace: Pace,
    encoder: Encoder,
    /// Entries saved since the last look.
    entries: u64,
    /// Keys, and their databases' numbers, of entries that are too large to be saved under the lock of their shard.
    vast: Vec<(usize, Box<[u8]>)>,
}

impl Visitor for Scribe<'_> {
    fn save(&mut self, number: usize, entry: &Entry) -> bool {
        if entry.is_vast() {
            self.vast.push((number, entry.key().into()));
            return false;
        }
        let database = self.instance.database(number);
        self.moment.handover.encode(&mut self.encoder, database.number_at_cut(), entry);
        self.entries += 1;
        true
    }

    fn between(&mut self) -> io::Result<()> {
        let background = &self.instance.background;
        let is_chunk = self.encoder.len() >= CHUNK;
        if is_chunk || self.delay.is_some() {
            self.send_all();
        }
        if is_chunk && !self.moment.is_urgent() {
            self.pace.rest(self.file.worked());
        }
        for (number, key) in mem::take(&mut self.vast) {
            self.save_vast(number, &key)?;
        }
        background.check()?;
        self.file.check()?;
        let entries = mem::take(&mut self.entries);
        background.note_saved(entries);
        let mut wait = self.delay.map_or(Duration::ZERO, |delay| delay.saturating_mul(entries as u32));
        while !wait.is_zero() {
            let nap = wait.min(LONG_NAP);
            thread::sleep(nap);
            wait -= nap;
            background.check()?;
            self.send_handed_over();
        }
        Ok(())
    }
}

impl<'a> Scribe<'a> {
    fn new(instance: &'a Arc<Instance>, moment: &'a Moment, file: ToFile) -> Self {
        let delay = super::files::delay(&instance.config, settings::RDB_KEY_SAVE_DELAY);
        let (pace, encoder) = (Pace::new(instance), moment.encoder());
        Self { instance, moment, file, delay, pace, encoder, entries: 0, vast: Vec::new() }
    }

    fn run(mut self) -> io::Result<()> {
        walk(self.instance, &mut self)?;
        // Every entry is saved now: nothing is handed over any more.
        self.send_all();
        self.file.end();
        Ok(())
    }

    /// Saves an entry as a slow call reads it: other commands read it too, commands that change it wait; no lock is held.
    fn save_vast(&mut self, number: usize, key: &[u8]) -> io::Result<()> {
        let database = self.instance.database(number);
        let key = database.key(key);
        let slow = loop {
            let marks = Marks::keys(number, std::iter::once((key.hash(), Access::Read)));
            if let Some(slow) = self.instance.exclusive.try_enter_slow(marks) {
                break slow;
            }
            self.instance.background.check()?;
            self.send_handed_over();
            thread::sleep(NAP);
        };
        // At this time no entry has expired: all are lent.
        let mut view = database.lock_none(0);
        gate::lend(&mut view, &[(key, Access::Read)]);
        self.save_key(&view, &key);
        drop(view);
        drop(slow);
        Ok(())
    }

    fn save_key(&mut self, view: &View<'_>, key: &Key<'_>) {
        let number = view.database().number_at_cut();
        view.save_key(key, |entry| {
            let told = (entry.expire_at(), self.moment.handover.access(number, entry));
            let file = &mut self.file;
            self.encoder.add_in_pieces(number, (entry.key(), entry.value()), told, CHUNK, |chunk| file.send(chunk));
            self.entries += 1;
        });
    }

    fn send_all(&mut self) {
        self.file.send_chunk(&mut self.encoder);
        self.send_handed_over();
    }

    fn send_handed_over(&mut self) {
        let HandedOver { encoded, removed, entries, bytes } = self.moment.handover.take();
        self.entries += entries;
        self.instance.background.note_handed_over(bytes);
        encoded.into_iter().for_each(|encoded| self.file.send(encoded));
        for (db, entries) in &removed {
            for entry in entries.iter().flat_map(Removed::unsaved) {
                self.moment.handover.encode(&mut self.encoder, *db, entry);
                self.entries += 1;
                if self.encoder.len() >= CHUNK {
                    self.file.send_chunk(&mut self.encoder);
                }
            }
        }
        self.file.send_chunk(&mut self.encoder);
        discard(self.instance, removed);
    }
}
