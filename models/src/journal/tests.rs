use std::task::Waker;

use super::*;
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
fn all_that_is_written_is_read_by_whoever_sleeps() {
    model(|| {
        let journal = Arc::new(Journal::default());
        journal.set_on(User::Aof, true);
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
fn who_comes_while_another_reads_misses_nothing() {
    model(|| {
        let journal = Arc::new(Journal::default());
        journal.set_on(User::Replicas, true);
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
