//! The thread that writes a snapshot's file: compressing, the checksum and the disk are its part. It holds no lock that others wait
//! for, so the system may prefer all of them to it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use super::background::{Create, Moment};
use super::encoder::{Encoder, Format, Out};
use super::save::{write_imports, write_notes, write_position, write_search};
use super::state::Purpose;
use super::target::Target;
use crate::cluster::note::note_of_imports;
use crate::config::settings;
use crate::exec::core::{Instance, priority};
use crate::persistence::aof::PlainWriter;
use crate::persistence::rdb::{Encoded, Writer};

/// Chunks that are on their way to the file at most.
const ON_THE_WAY: usize = 8;

enum Message {
    Chunk(Encoded),
    /// All are there.
    End,
}

/// Takes chunks to the file.
pub(super) struct ToFile {
    messages: SyncSender<Message>,
    /// Written chunks, whose buffers are used again.
    rooms: Receiver<Encoded>,
    /// Whether the file takes no more.
    is_closed: bool,
    /// For how long the file's thread has had a processor, in nanoseconds.
    worked: Arc<AtomicU64>,
}

/// The file's end of the way.
pub(super) struct FileEnd {
    messages: Receiver<Message>,
    rooms: SyncSender<Encoded>,
    worked: Arc<AtomicU64>,
}

/// A way to the file.
pub(super) fn way() -> (ToFile, FileEnd) {
    let (messages, received) = mpsc::sync_channel(ON_THE_WAY);
    let (written, rooms) = mpsc::sync_channel(ON_THE_WAY);
    let worked = Arc::new(AtomicU64::new(0));
    let file = FileEnd { messages: received, rooms: written, worked: Arc::clone(&worked) };
    (ToFile { messages, rooms, is_closed: false, worked }, file)
}

impl ToFile {
    /// Sends what there is, and waits while too much is on the way.
    pub(super) fn send_chunk(&mut self, encoder: &mut Encoder) {
        if !encoder.is_empty() {
            let room = self.rooms.try_recv().unwrap_or_default();
            self.send(encoder.take(room));
        }
    }

    pub(super) fn send(&mut self, encoded: Encoded) {
        self.is_closed |= self.messages.send(Message::Chunk(encoded)).is_err();
    }

    /// For how long the file's thread has had a processor.
    pub(super) fn worked(&self) -> Duration {
        Duration::from_nanos(self.worked.load(Relaxed))
    }

    /// # Errors
    /// The file takes no more; its thread knows why.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_closed { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Tells that all is sent; without it the file is given up.
    pub(super) fn end(self) {
        // The file's thread says why it took no more.
        let _ = self.messages.send(Message::End);
    }
}

impl FileEnd {
    /// Writes the file of this moment, until all is there or the sender is gone.
    ///
    /// # Errors
    /// The disk's, or the snapshot is to end.
    pub(super) fn write(self, instance: &Arc<Instance>, moment: &Moment, create: Create) -> io::Result<()> {
        if !moment.is_urgent() {
            priority::lower(priority::SNAPSHOT_FILE);
        }
        let mut out = begin(instance, moment, create(instance)?);
        for message in self.messages {
            let Message::Chunk(mut encoded) = message else { return out.commit() };
            instance.background.check()?;
            out.chunk(&encoded);
            out.check()?;
            encoded.clear();
            // Where there are rooms enough it goes.
            let _ = self.rooms.try_send(encoded);
            self.worked.store(priority::worked().as_nanos() as u64, Relaxed);
        }
        Ok(())
    }
}

/// The file with what stands before its entries.
fn begin(instance: &Instance, moment: &Moment, target: Box<dyn Target>) -> Out {
    match moment.format {
        Format::Rdb => {
            let mut writer = Writer::new(target, moment.options);
            write_notes(&mut writer, moment.at, moment.purpose == Purpose::AofBase);
            write_position(&mut writer, moment.position.as_ref());
            write_imports(&mut writer, &note_of_imports(&moment.imports));
            write_search(&mut writer, &moment.search);
            moment.libraries.iter().for_each(|code| writer.function(code));
            for (number, &(keys, expiring)) in moment.sizes.iter().enumerate().filter(|(_, (keys, _))| *keys > 0) {
                writer.database(number, keys, expiring);
            }
            Out::Rdb(writer)
        }
        Format::Commands => {
            let mut writer = PlainWriter::to_file(target);
            if instance.config.is_on(settings::AOF_TIMESTAMP_ENABLED) {
                writer.timestamp(moment.at / 1000);
            }
            moment.libraries.iter().for_each(|code| writer.function(code));
            moment.search.commands(|command| writer.commands(command));
            moment.imports.iter().for_each(|(name, slots)| writer.import(name.as_str(), &slots.ranges()));
            Out::Commands(writer)
        }
    }
}
