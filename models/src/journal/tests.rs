use std::task::Waker;

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::*;
use crate::exec::gate::Exclusive;
use crate::exec::core::Instance;
use crate::park::{Park, model};

/// Commands of each writer.
const COMMANDS: u8 = 2;

/// Writers whose commands are read.
const WRITERS: u8 = 2;

/// The bytes of one command of a writer.
fn command(writer: u8, number: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, [&b"SET"[..], &[writer], &[number]].into_iter());
    bytes
}

/// Bytes of a whole stream: the database is said once.
fn length() -> usize {
    let mut select = Vec::new();
    draft::select(&mut select, 0);
    select.len() + usize::from(WRITERS * COMMANDS) * command(0, 0).len()
}

fn writers(journal: &Arc<Journal>) -> Vec<shuttle::thread::JoinHandle<()>> {
    let write = |writer| {
        let journal = Arc::clone(journal);
        shuttle::thread::spawn(move || {
            for number in 0..COMMANDS {
                journal.tell(0, &[b"SET", &[writer], &[number]]);
            }
        })
    };
    (0..WRITERS).map(write).collect()
}

/// Reads as much as there will be, by `read`, asleep whenever there is nothing.
fn reading(journal: &Arc<Journal>, read: fn(&mut Reader, &mut Vec<u8>)) -> shuttle::thread::JoinHandle<Vec<u8>> {
    let (park, waker): (_, Waker) = Park::new();
    let mut reader = journal.reader(move || waker.wake_by_ref());
    shuttle::thread::spawn(move || {
        let mut bytes = Vec::new();
        while bytes.len() < length() {
            let before = bytes.len();
            read(&mut reader, &mut bytes);
            assert_eq!(reader.offset(), bytes.len() as u64);
            if bytes.len() == before {
                park.sleep();
            }
        }
        bytes
    })
}

/// Readers at different paces, in both of the ways in which they may read, are woken whenever there is more, and read the same
/// stream, in which nobody's commands change places.
#[test]
fn sleeping_readers_wake_and_read_the_whole_stream() {
    model(|| {
        let journal = Arc::new(Journal::default());
        journal.turn_on(User::Aof, &Standstill::vouched());
        let taking = reading(&journal, |reader, bytes| {
            let mut more = Vec::new();
            reader.take(&mut more, &mut Vec::new());
            bytes.extend_from_slice(&more);
        });
        let in_pieces = reading(&journal, |reader, bytes| {
            let mut pieces = Vec::new();
            reader.read(1, &mut pieces);
            pieces.iter().for_each(|piece| bytes.extend_from_slice(&piece.bytes));
        });
        writers(&journal).into_iter().for_each(|writer| writer.join().unwrap());
        let stream = taking.join().unwrap();
        assert_eq!(stream, in_pieces.join().unwrap());
        assert_eq!(journal.offset(), stream.len() as u64);
        for writer in 0..WRITERS {
            let at = |number| {
                let command = command(writer, number);
                stream.windows(command.len()).position(|window| window == command).expect("it is there, as a whole")
            };
            assert!((1..COMMANDS).all(|number| at(number - 1) < at(number)));
        }
    });
}

/// A reader alone takes the stream's own buffer; another one that comes meanwhile reads all behind the offset at which it came.
#[test]
fn a_late_reader_misses_nothing_after_its_offset() {
    model(|| {
        let journal = Arc::new(Journal::default());
        journal.turn_on(User::Replicas, &Standstill::vouched());
        let mut first = journal.reader(|| {});
        let writers = writers(&journal);
        let late = {
            let journal = Arc::clone(&journal);
            shuttle::thread::spawn(move || {
                let reader = journal.reader(|| {});
                let from = reader.offset();
                (reader, from)
            })
        };
        let (mut stream, mut more) = (Vec::new(), Vec::new());
        first.take(&mut more, &mut Vec::new());
        stream.extend_from_slice(&more);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        first.take(&mut more, &mut Vec::new());
        stream.extend_from_slice(&more);
        assert_eq!(stream.len(), length());
        let (mut reader, from) = late.join().unwrap();
        assert_eq!(reader.take(&mut more, &mut Vec::new()), from);
        assert_eq!(more, stream[from as usize..]);
    });
}

/// A server with a journal, whose role changes while its clients write.
struct Server {
    instance: Arc<Instance>,
    journal: Arc<Journal>,
    /// Writes that are in the data.
    applied: AtomicU64,
}

impl Server {
    fn new() -> Arc<Self> {
        let journal = Arc::new(Journal::default());
        journal.turn_on(User::Replicas, &Standstill::vouched());
        Arc::new(Self { instance: Arc::default(), journal, applied: AtomicU64::new(0) })
    }

    /// A window of a write, as the product's: it looks at the role behind its door, and once.
    fn write(&self) {
        let activity = self.instance.exclusive.activity();
        let _inside = self.instance.exclusive.enter(&activity).expect("nobody is busy");
        if !self.journal.is_on() {
            return;
        }
        begin_call();
        self.applied.fetch_add(1, SeqCst);
        draft::command(0, [&b"SET"[..], b"k", b"v"].into_iter());
        end_call(0, None::<std::iter::Empty<&[u8]>>);
        self.journal.commit();
    }

    fn writers(self: &Arc<Self>) -> Vec<shuttle::thread::JoinHandle<()>> {
        let write = |_| {
            let server = Arc::clone(self);
            shuttle::thread::spawn(move || server.write())
        };
        (0..2).map(write).collect()
    }

    /// Becomes a replica, or a primary again. Returns where the stream ends at that moment.
    fn turn(&self, follows: bool, is_alone: bool) -> u64 {
        let alone = is_alone.then(|| self.instance.exclusive.stop().expect("nobody is busy"));
        let vouched = Standstill::vouched();
        self.journal.follow(follows, alone.as_deref().unwrap_or(&vouched));
        self.journal.offset()
    }
}

/// The data of a server that becomes a replica is in the stream with which it goes on, and no more data comes.
fn becomes_a_replica(is_alone: bool) {
    let server = Server::new();
    let writers = server.writers();
    let end = server.turn(true, is_alone);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(server.journal.offset(), end, "a change stands behind the end of the own stream");
    assert_eq!(end > 0, server.applied.load(SeqCst) > 0, "a change is in the data and not in the stream");
}

/// The old name of a promoted server's stream is good up to where its primary's stream has ended: nothing of its own is there.
fn becomes_a_primary(is_alone: bool) {
    let server = Server::new();
    server.turn(true, true);
    let writers = server.writers();
    assert_eq!(server.turn(false, is_alone), 0, "a change of its own goes by the old name");
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}

#[test]
fn role_changes_are_alone() {
    model(|| becomes_a_replica(true));
    model(|| becomes_a_primary(true));
}

/// The model finds the fault that role changes had, which only held back a primary's commands.
#[test]
#[should_panic(expected = "a change stands behind the end of the own stream")]
fn a_replica_that_is_made_beside_windows_is_found() {
    model(|| becomes_a_replica(false));
}

/// The same the other way round.
#[test]
#[should_panic(expected = "a change of its own goes by the old name")]
fn a_primary_that_is_made_beside_windows_is_found() {
    model(|| becomes_a_primary(false));
}
