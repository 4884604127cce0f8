use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::*;

/// The stream's commands since the last look, in one line.
fn taken(reader: &mut Reader) -> String {
    let mut bytes = Vec::new();
    reader.take(&mut bytes, &mut Vec::new());
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    let mut commands = Vec::new();
    while let Some(head) = lines.next() {
        let count: usize = head.strip_prefix('*').unwrap().parse().unwrap();
        let words = (0..count).map(|_| {
            let len: usize = lines.next().unwrap().strip_prefix('$').unwrap().parse().unwrap();
            let word = lines.next().unwrap();
            assert_eq!(word.len(), len);
            word
        });
        commands.push(words.collect::<Vec<_>>().join(" "));
    }
    commands.join("; ")
}

fn call(db: usize, text: &str) {
    begin_call();
    end_call(db, Some(text.split(' ').map(str::as_bytes).collect::<Vec<_>>().into_iter()));
}

#[test]
fn units_databases_and_removals() {
    let journal = Arc::new(Journal::default());
    let mut reader = journal.reader(|| {});
    journal.removed(0, b"unheard", false);
    assert_eq!(journal.offset(), 0);
    journal.turn_on(User::Aof, &Standstill::vouched());

    call(0, "SET a 1");
    call(0, "SET b 2");
    assert_eq!(journal.offset(), 0, "nothing is appended before the window ends");
    let end = journal.commit();
    assert_eq!((end, journal.commit()), (Some(journal.offset()), None));
    assert_eq!(taken(&mut reader), "SELECT 0; SET a 1; SET b 2");

    // A transaction that ends in another database.
    begin_call();
    call(0, "SET a 1");
    assert_eq!(journal.commit(), None, "a call is under way");
    call(3, "SET a 3");
    end_call(3, None::<std::iter::Empty<&[u8]>>);
    call(3, "SET b 3");
    journal.commit();
    assert_eq!(taken(&mut reader), "MULTI; SET a 1; SELECT 3; SET a 3; EXEC; SET b 3");

    // The removal of an expired key comes first in the same unit. Alone, it is a unit of its own.
    begin_call();
    journal.removed(3, b"k", false);
    end_call(3, Some([&b"SET"[..], b"k", b"v"].into_iter()));
    journal.removed(4, b"l", true);
    journal.commit();
    journal.removed(4, b"m", true);
    assert_eq!(taken(&mut reader), "MULTI; DEL k; SET k v; EXEC; SELECT 4; UNLINK l; UNLINK m");

    // One that is only met goes first if anything is said, once.
    begin_call();
    journal.met(4, b"m", false);
    end_call(4, None::<std::iter::Empty<&[u8]>>);
    begin_call();
    journal.met(4, b"m", false);
    journal.met(4, b"n", false);
    journal.removed(4, b"n", false);
    end_call(4, Some([&b"COPY"[..], b"m", b"n"].into_iter()));
    journal.commit();
    assert_eq!(taken(&mut reader), "MULTI; DEL m; DEL n; COPY m n; EXEC");

    journal.reset_db(&Standstill::vouched());
    begin_call();
    replace();
    command(4, [&b"PERSIST"[..], b"k"].into_iter());
    end_call(4, Some([&b"GETEX"[..], b"k", b"PERSIST"].into_iter()));
    begin_call();
    replace();
    end_call(4, Some([&b"GETEX"[..], b"k"].into_iter()));
    call(4, "GETEX");
    journal.commit();
    assert_eq!(taken(&mut reader), "SELECT 4; PERSIST k; GETEX");
}

#[test]
fn offsets_are_bytes_and_the_reader_is_woken_once() {
    let (journal, woken) = (Arc::new(Journal::default()), Arc::new(AtomicU64::new(0)));
    journal.begin_at(1000, None, &Standstill::vouched());
    let count = Arc::clone(&woken);
    let mut reader = journal.reader(move || _ = count.fetch_add(1, Relaxed));
    let (mut bytes, mut apart) = (vec![1, 2, 3], Vec::new());
    assert_eq!(reader.take(&mut bytes, &mut apart), 1000);
    assert!(bytes.is_empty());
    journal.turn_on(User::Aof, &Standstill::vouched());
    let large = "x".repeat(100_000);
    for text in ["A", &large, "B"] {
        call(0, text);
        journal.commit();
    }
    assert_eq!(woken.load(Relaxed), 1);
    assert_eq!(reader.take(&mut bytes, &mut apart), 1000);
    assert_eq!(journal.offset(), 1000 + bytes.len() as u64);
    call(0, &large);
    let end = journal.commit();
    assert_eq!(woken.load(Relaxed), 2);
    let begin = reader.take(&mut bytes, &mut apart);
    assert_eq!(Some(begin + bytes.len() as u64), end);
    assert_eq!(reader.take(&mut bytes, &mut apart), journal.offset());
    assert!(bytes.is_empty() && apart.is_empty());
}

/// Reads all in pieces of about `most` bytes.
fn read(reader: &mut Reader, most: usize) -> Vec<u8> {
    let (mut bytes, mut pieces) = (Vec::new(), Vec::new());
    loop {
        let at = reader.read(most, &mut pieces);
        if pieces.is_empty() {
            return bytes;
        }
        assert_eq!(pieces[0].begin, at);
        for piece in pieces.drain(..) {
            bytes.extend_from_slice(&piece.bytes);
        }
    }
}

/// Readers come and go, read at their own pace, and are compared with the whole stream.
#[test]
fn every_reader_reads_the_same_stream() {
    for seed in 0..300_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 33) as usize % below
        };
        let journal = Arc::new(Journal::default());
        journal.turn_on(User::Replicas, &Standstill::vouched());
        let backlog = [0, 100, 10_000, 1_000_000][random(4)];
        journal.keep_backlog(backlog);
        let (mut whole, mut readers) = (Vec::new(), Vec::<Reader>::new());
        let mut witness = journal.reader(|| {});
        for _ in 0..200 {
            match random(10) {
                0 if readers.len() < 5 => readers.push(journal.reader(|| {})),
                1 => {
                    let offset = random(whole.len() + 1) as u64;
                    let kept = journal.kept();
                    let reader = journal.reader_from(offset, || {});
                    assert_eq!(reader.is_some(), kept.contains(&offset) || offset == kept.end);
                    assert!(kept.start == 0 || kept.end - kept.start >= backlog);
                    readers.extend(reader);
                }
                2 if !readers.is_empty() => drop(readers.swap_remove(random(readers.len()))),
                3..6 if !readers.is_empty() => {
                    let chosen = random(readers.len());
                    let reader = &mut readers[chosen];
                    let from = reader.offset() as usize;
                    if random(2) == 0 {
                        assert_eq!(read(reader, 1 + random(5000)), whole[from..]);
                    } else {
                        let (mut bytes, mut apart) = (Vec::new(), Vec::new());
                        assert_eq!(reader.take(&mut bytes, &mut apart), from as u64);
                        assert_eq!(bytes, whole[from..]);
                        // A reader that began in the middle of such a piece has its end.
                        let told = |range: &Range<u64>| {
                            b"*1\r\n$4\r\nPING\r\n".ends_with(&whole[range.start as usize..range.end as usize])
                        };
                        assert!(apart.iter().all(told), "{apart:?}");
                    }
                    assert_eq!(reader.offset(), whole.len() as u64);
                }
                6 => _ = journal.tell_replicas(&[b"PING"]),
                _ => {
                    let length = [3, 500, 3000, 70_000][random(4)];
                    call(random(2), &"y".repeat(length));
                    journal.commit();
                }
            }
            whole.extend(read(&mut witness, 1000));
            assert_eq!(journal.offset(), whole.len() as u64);
        }
    }
}

#[test]
fn a_slow_reader_extends_the_readable_backlog() {
    let journal = Arc::new(Journal::default());
    journal.turn_on(User::Replicas, &Standstill::vouched());
    journal.keep_backlog(16 * 1024);
    let (slow, begin) = (journal.reader(|| {}), journal.offset());
    for _ in 0..100 {
        call(0, &"y".repeat(10_000));
        journal.commit();
    }
    assert!(journal.reader_from(begin, || {}).is_some());
    assert!(journal.held() > 1_000_000 && journal.kept() == (begin..journal.offset()));
    journal.let_go(slow.id());
    assert!(journal.reader_from(begin, || {}).is_none());
    assert_eq!(journal.kept().end - journal.kept().start, 16 * 1024);
    assert!(journal.held() < 200_000);
}

#[test]
fn a_panic_leaves_nothing_of_its_call() {
    let journal = Arc::new(Journal::default());
    let mut reader = journal.reader(|| {});
    journal.turn_on(User::Aof, &Standstill::vouched());
    begin_call();
    begin_call();
    forget();
    call(0, "SET a 1");
    journal.commit();
    assert_eq!(taken(&mut reader), "SELECT 0; SET a 1");
}

/// All windows look at the journal's users.
#[test]
fn journal_writes_cause_no_false_sharing() {
    crate::cache_lines::assert_apart!(Journal, end);
    crate::cache_lines::assert_apart!(Journal, stream);
}
