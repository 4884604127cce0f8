//! Full synchronization: one snapshot for all who wait for one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, channel};

use super::state::{Feed, Part, Receivers, Replica, Stage};
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::gate::Alone;
use crate::exec::snapshot::{self, Format, Job, Purpose, Target};

/// Bytes of a snapshot that go to a replica together.
const CHUNK: usize = 256 * 1024;
/// Chunks that wait for a replica before the snapshot waits too.
const CHUNKS: usize = 8;
/// How long it waits for room between two looks.
const NAP: Duration = Duration::from_micros(200);

/// Ends the snapshot in the making if all whom it is for have left, unless there is a file to be made anyway.
pub(super) fn end_if_useless(instance: &Instance) {
    let Some(running) = instance.background.running() else { return };
    let mut current = instance.replication.receivers.lock().unwrap_or_else(PoisonError::into_inner);
    // One who is slow has the sender wait, and that is looked at again.
    let is_useless = current
        .try_lock()
        .is_ok_and(|receivers| !receivers.is_empty() && receivers.iter().all(|(sender, _)| sender.is_closed()));
    let wants_file = running.purpose == Purpose::Snapshot && !instance.config.save_points().is_empty();
    if is_useless && !wants_file {
        tracing::info!("Diskless rdb transfer, last replica dropped, killing fork child.");
        instance.background.abort(running.purpose);
        *current = Receivers::default();
    }
}

/// Begins a snapshot for replicas that wait for one, unless more are still to be waited for.
pub(super) fn begin_if_due(instance: &Arc<Instance>, now: u64) {
    let mut waiting = instance.replication.replicas();
    waiting.retain(|replica| replica.stage() == Stage::Waits);
    waiting.retain(|replica| !replica.follower.wants_functions_only || !send_functions(instance, replica));
    let Some(asked_at) = waiting.iter().map(|replica| replica.asked_at).min() else { return };
    if instance.background.running().is_some() {
        return;
    }
    let config = &instance.config;
    let is_direct = config.is_on(settings::REPL_DISKLESS_SYNC)
        && waiting.iter().all(|replica| replica.follower.takes_snapshots_of_unknown_length);
    let enough = config.size(settings::REPL_DISKLESS_SYNC_MAX_REPLICAS);
    let delay = config.uint(settings::REPL_DISKLESS_SYNC_DELAY) * 1000;
    if is_direct && now < asked_at + delay && (enough == 0 || waiting.len() < enough) {
        return;
    }
    let receivers = Receivers::default();
    *instance.replication.receivers.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&receivers);
    let job = if is_direct { direct(instance, &receivers) } else { by_file(instance, &receivers) };
    // Another one that has begun meanwhile is waited for.
    let _ = snapshot::start(instance, job);
}

/// Sends the function libraries to a replica that wants nothing else; says whether it does.
fn send_functions(instance: &Instance, replica: &Replica) -> bool {
    if !replica.follower.wants_snapshot_only {
        return false;
    }
    let snapshot = snapshot::functions_only(instance);
    let length = snapshot.len();
    let (sender, parts) = channel(2);
    let client = Arc::clone(&replica.client);
    let stream = instance.journal.reader(move || client.wake());
    replica.read_by(&stream);
    let head = if replica.is_told { format!("+FULLRESYNC {} 0\r\n", super::state::new_id()) } else { String::new() };
    // There is room for both, and the receiver is here.
    let _ = sender.try_send(Part::Bytes(snapshot.into()));
    let _ = sender.try_send(Part::End { is_measured: true });
    let head = format!("{head}${length}\r\n");
    *replica.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Feed { head, parts, stream });
    replica.set_stage(Stage::Receives);
    replica.client.wake();
    true
}

/// The cut of a snapshot: all who wait now are sent it.
fn cut(instance: &Instance, receivers: &Receivers, is_direct: bool, alone: &Alone) {
    let begun = instance.replication.begin_stream(instance, alone);
    feed(instance, receivers, is_direct, &begun);
}

/// Those who wait are sent the stream of this name from this offset on, behind the snapshot.
fn feed(instance: &Instance, receivers: &Receivers, is_direct: bool, (id, offset): &(String, u64)) {
    let replication = &instance.replication;
    let mut senders = receivers.lock().unwrap_or_else(PoisonError::into_inner);
    for replica in replication.replicas() {
        if replica.stage() != Stage::Waits || is_direct && !replica.follower.takes_snapshots_of_unknown_length {
            continue;
        }
        let (sender, parts) = channel(CHUNKS);
        let client = Arc::clone(&replica.client);
        // Not from the end: the sign of life that is sent to replicas may stand behind the offset by now.
        let Some(stream) = instance.journal.reader_from(*offset, move || client.wake()) else {
            // The backlog has what was said since; where it has not, the replica asks again.
            replica.client.kill();
            continue;
        };
        replica.read_by(&stream);
        let head = if replica.is_told { format!("+FULLRESYNC {id} {offset}\r\n") } else { String::new() };
        *replica.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Feed { head, parts, stream });
        replica.set_stage(if is_direct { Stage::Streams } else { Stage::Promised });
        replication.figures.full.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        replica.client.wake();
        senders.push((sender, replica));
    }
}

impl Replica {
    pub(super) fn take_feed(&self) -> Option<Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Sends a snapshot to replicas that wait for one, made at once by this thread: for tests in which there is no other.
#[cfg(test)]
pub(super) fn send_now(instance: &Arc<Instance>) -> io::Result<()> {
    let receivers = Receivers::default();
    cut(instance, &receivers, true, &instance.exclusive.already_stopped());
    let mut fan = Fan { receivers, buffer: Vec::new(), mark: super::state::new_id(), making: None };
    let head = format!("$EOF:{}\r\n", fan.mark);
    fan.write_all(head.as_bytes())?;
    fan.write_all(&snapshot::whole(instance)?)?;
    Box::new(fan).commit()
}

/// A snapshot that goes to its receivers as it is made.
fn direct(instance: &Arc<Instance>, receivers: &Receivers) -> Job {
    let (at_cut, targets) = (Arc::clone(receivers), Arc::clone(receivers));
    let making = Arc::clone(instance);
    Job {
        purpose: Purpose::Replicas,
        format: Format::Rdb,
        create: Box::new(move |_| {
            let (mark, making) = (super::state::new_id(), Some(making));
            let mut fan = Fan { receivers: targets, buffer: Vec::with_capacity(CHUNK), mark, making };
            let head = format!("$EOF:{}\r\n", fan.mark);
            fan.write_all(head.as_bytes())?;
            // They know then that it has begun, however long the first part takes.
            fan.send_buffer()?;
            Ok(Box::new(fan) as Box<dyn Target>)
        }),
        at_cut: Box::new(move |instance, alone| {
            cut(instance, &at_cut, true, alone);
            let pid = instance.background.stand_in().unwrap_or_else(std::process::id);
            tracing::info!("Background RDB transfer started by pid {pid}");
        }),
        record: Box::new(|_, written| match written {
            Ok(()) => tracing::info!("Background RDB transfer terminated with success"),
            Err(error) => tracing::warn!("Background transfer error: {error}"),
        }),
        ended: Box::new(|_, _| {}),
    }
}

/// A snapshot that is sent from the snapshot file.
fn by_file(instance: &Arc<Instance>, receivers: &Receivers) -> Job {
    let path = snapshot::path(&instance.config);
    let (at_cut, targets) = (Arc::clone(receivers), Arc::clone(receivers));
    let job = snapshot::job(instance);
    let (opened, file) = mpsc::channel();
    Job {
        at_cut: Box::new(move |instance, alone| {
            (job.at_cut)(instance, alone);
            cut(instance, &at_cut, false, alone);
        }),
        record: Box::new(move |instance, written| {
            (job.record)(instance, written);
            if written.is_ok() {
                // The next snapshot, which has a cut of its own, may take the file's place as soon as this one has ended.
                let _ = opened.send(File::open(&path));
            }
        }),
        ended: Box::new(move |_, _| {
            // A replica that is sent nothing asks again.
            if let Ok(Err(error)) = file.try_recv().map(|file| file.and_then(|file| send_file(file, targets))) {
                tracing::warn!("the snapshot file cannot be sent to replicas: {error}");
            }
        }),
        ..job
    }
}

fn send_file(mut file: File, receivers: Receivers) -> io::Result<()> {
    let length = file.metadata()?.len();
    for (_, replica) in receivers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        replica.set_stage(Stage::Receives);
    }
    let mut fan = Fan { receivers, buffer: Vec::with_capacity(CHUNK), mark: String::new(), making: None };
    fan.write_all(format!("${length}\r\n").as_bytes())?;
    let copied = io::copy(&mut Read::by_ref(&mut file).take(length), &mut fan)?;
    if copied < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    fan.end(true)
}

/// Hands written bytes to every receiver that is still there. One that is slow holds the others up, until its connection
/// ends for that.
struct Fan {
    receivers: Receivers,
    buffer: Vec<u8>,
    /// The mark of the end, where there is no length.
    mark: String,
    /// The server whose snapshot in the making that is. The snapshot may be aborted while a receiver is slow.
    making: Option<Arc<Instance>>,
}

impl Fan {
    fn check(&self) -> io::Result<()> {
        self.making.as_ref().map_or(Ok(()), |instance| instance.background.check())
    }

    /// Waits until the receiver has room. Returns whether it is still there.
    fn send_to(&self, receiver: &Sender<Part>, mut part: Part) -> io::Result<bool> {
        loop {
            part = match receiver.try_send(part) {
                Ok(()) => return Ok(true),
                Err(TrySendError::Closed(_)) => return Ok(false),
                Err(TrySendError::Full(part)) => part,
            };
            self.check()?;
            thread::sleep(NAP);
        }
    }

    fn send(&self, part: impl Fn() -> Part) -> io::Result<()> {
        let mut receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = 0;
        while let Some((receiver, _)) = receivers.get(next) {
            if self.send_to(receiver, part())? {
                next += 1;
            } else {
                receivers.remove(next);
            }
        }
        if receivers.is_empty() {
            tracing::warn!("Diskless rdb transfer, last replica dropped, killing fork child.");
            return Err(io::Error::other("all replicas are gone"));
        }
        Ok(())
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK)));
        self.send(|| Part::Bytes(bytes.clone()))
    }

    fn end(mut self, is_measured: bool) -> io::Result<()> {
        self.send_buffer()?;
        self.send(|| Part::End { is_measured })
    }
}

impl Write for Fan {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.send_buffer()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Target for Fan {
    fn commit(mut self: Box<Self>) -> io::Result<()> {
        let mark = std::mem::take(&mut self.mark);
        self.write_all(mark.as_bytes())?;
        let receivers = Arc::clone(&self.receivers);
        self.end(false)?;
        let left = receivers.lock().unwrap_or_else(PoisonError::into_inner).len();
        tracing::info!("Diskless rdb transfer, done reading from pipe, {left} replicas still up.");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::client::{ClientShared, Follower, SyncRequest};
    use crate::config::Config;

    /// A sign of life between the cut and the moment at which a replica begins to read is the first that it reads.
    #[test]
    fn a_replica_reads_from_the_offset_that_it_is_told() {
        let instance = Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE));
        let client = Arc::new(ClientShared::new(1, String::new(), String::new(), -1, 0));
        let request = Some(SyncRequest::Partial("?".to_owned(), -1));
        let follower = Follower { takes_snapshots_of_unknown_length: true, request, ..Follower::default() };
        let _link = instance.replication.join(&instance, &client, follower, 0);
        let begun = instance.replication.begin_stream(&instance, &instance.exclusive.already_stopped());
        instance.journal.tell_replicas(&[b"PING"]);
        feed(&instance, &Receivers::default(), true, &begun);
        let replica = instance.replication.replicas().pop().expect("it has joined");
        let feed = replica.take_feed().expect("it is sent a snapshot");
        assert_eq!(feed.head, format!("+FULLRESYNC {} {}\r\n", begun.0, begun.1));
        assert_eq!((feed.stream.offset(), instance.journal.offset()), (begun.1, begun.1 + 14));
    }
}
