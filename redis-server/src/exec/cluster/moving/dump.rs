//! The content of a slot at one moment, as commands that make it of nothing.
//!
//! A slot is a shard, and a thread that changes its keys tells the journal under its lock. So a thread that has it locked knows
//! where in the stream of changes it stands. Slots are dumped one by one. For each, only changes behind its own moment count; no
//! moment is common to all. A slot that has much is not locked for so long: its keys are marked, as a slow call does, so that only
//! clients that want to change them wait. The dump rests between the pieces of a large value, so that it does not take the
//! processors from others either.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::exec::core::clock::now_ms;
use crate::exec::core::pace::Pace;
use crate::exec::core::{Instance, Worker};
use crate::exec::gate::{self, Marks};
use crate::keyspace::{Access, Entry};
use crate::persistence::aof::PlainWriter;

/// Bytes of commands that are made under a slot's lock: somewhat more than a millisecond of copying.
const LOCKED_MAX: usize = 2 * 1024 * 1024;
/// How long it waits for others between two looks.
const NAP: Duration = Duration::from_millis(1);

/// The commands that are taken under the lock, until they are too much.
struct Bounded<'a>(&'a mut Vec<u8>);

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LOCKED_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The commands that are taken while nothing is locked: between two pieces others have the processor.
struct Resting<'a> {
    commands: &'a mut Vec<u8>,
    pace: &'a mut Pace,
}

impl Write for Resting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.commands.extend_from_slice(bytes);
        self.pace.rest(Duration::ZERO);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Puts a slot's commands in the place of what `commands` had. Returns where in the journal the changes begin that come behind them.
/// `goes_on` is asked while others have to be waited for.
///
/// # Errors
/// The error of `goes_on`.
pub(super) fn dump(
    worker: &Worker,
    slot: u16,
    commands: &mut Vec<u8>,
    pace: &mut Pace,
    goes_on: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<u64> {
    let instance = &worker.instance;
    loop {
        // A script's changes are in the journal when it has ended.
        let Some(inside) = instance.exclusive.try_enter(&worker.activity) else {
            goes_on()?;
            thread::sleep(NAP);
            continue;
        };
        let dumped = dump_locked(instance, slot, commands);
        drop(inside);
        return match dumped {
            Some(offset) => Ok(offset),
            None => dump_marked(instance, slot, commands, pace, goes_on),
        };
    }
}

/// Under the slot's lock. None if it has too much, or something of it is lent.
fn dump_locked(instance: &Instance, slot: u16, commands: &mut Vec<u8>) -> Option<u64> {
    commands.clear();
    let database = instance.database(0);
    database.read_slot(slot, |entries| {
        let offset = instance.journal.offset();
        let mut writer = PlainWriter::to_file(Bounded(commands));
        for entry in entries {
            if entry.is_vast() || database.is_lent(entry.key()) {
                return None;
            }
            writer.record(entry.key(), entry.value(), entry.expire_at());
            if writer.has_failed() {
                return None;
            }
        }
        writer.finish().ok().map(|_| offset)
    })
}

/// As a slow call reads what it has marked.
fn dump_marked(
    instance: &Arc<Instance>,
    slot: u16,
    commands: &mut Vec<u8>,
    pace: &mut Pace,
    goes_on: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<u64> {
    let database = instance.database(0);
    loop {
        goes_on()?;
        let names = database.slot_keys(slot, usize::MAX);
        let keys: Vec<_> = names.iter().map(|name| (database.key(name), Access::Read)).collect();
        let marks = Marks::keys(0, keys.iter().map(|(key, access)| (key.hash(), *access)));
        let Some(slow) = instance.exclusive.try_enter_slow(marks) else {
            thread::sleep(NAP);
            continue;
        };
        let mut view = database.lock_none(now_ms());
        gate::lend(&mut view, &keys);
        commands.clear();
        let mut writer = PlainWriter::to_file(&mut *commands);
        // Keys that have come to the slot since the marking are not marked.
        let marked: HashSet<&[u8]> = names.iter().map(|name| &**name).collect();
        let offset = database.read_slot(slot, |entries| {
            let offset = instance.journal.offset();
            let mut new = entries.filter(|entry| !marked.contains(entry.key()));
            let is_whole = new.all(|entry: &Entry| {
                let is_free = !database.is_lent(entry.key());
                if is_free {
                    writer.record(entry.key(), entry.value(), entry.expire_at());
                }
                is_free
            });
            is_whole.then_some(offset)
        });
        writer.finish()?;
        if let Some(offset) = offset {
            let mut writer = PlainWriter::to_file(Resting { commands, pace });
            for entry in keys.iter().filter_map(|(key, _)| view.stored(key)) {
                writer.record(entry.key(), entry.value(), entry.expire_at());
            }
            writer.finish()?;
            return Ok(offset);
        }
        drop(view);
        drop(slow);
        thread::sleep(NAP);
    }
}
