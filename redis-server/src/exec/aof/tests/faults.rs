//! A disk that fails and works again: all changes are there in the end, or the server has ended as it promises to.

use std::io::ErrorKind;

use super::life::{Life, path};
use crate::persistence::aof::{Fsync, Now, Policy};
use crate::persistence::disk::simulated::{Fault, SimulatedDisk};

/// A disk that is full, one that cannot be read or written (EIO), one that may only be read, one that refuses, a folder that is gone.
const KINDS: [ErrorKind; 5] = [
    ErrorKind::StorageFull,
    ErrorKind::Other,
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::PermissionDenied,
    ErrorKind::NotFound,
];
/// All that is done with a disk.
const CALLS: [&str; 8] = ["make_folder", "open", "remove", "rename", "sync", "sync_folder", "truncate", "write"];
/// Turns, of 300 ms each, after which a writer has tried again.
const TURNS: usize = 8;

/// The work of a server; false: it has to end, or keeps nothing any more.
type Work = fn(&mut Life, Fsync) -> bool;

/// Three units are there.
fn begin(is_rdb: bool, seed: u64) -> (SimulatedDisk, Life) {
    let disk = SimulatedDisk::new(seed);
    let mut life = Life::start(&disk, is_rdb, 0, 0).unwrap();
    (0..3).for_each(|_| life.say());
    assert!(life.write(Fsync::Always));
    disk.take_calls();
    (disk, life)
}

/// The disk works again: so does everything, nothing is missing, and a crash loses nothing of what is on disk.
fn recover(disk: &SimulatedDisk, mut life: Life, is_rdb: bool, what: &str) {
    disk.fail(None);
    (0..TURNS).for_each(|_| {
        assert!(life.write(Fsync::EverySecond), "{what}");
        life.heal();
    });
    assert_eq!(life.writer.failure(), None, "{what}");
    life.say();
    (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond), "{what}"));
    assert_eq!(life.writer.durable(), life.writer.written(), "{what}");
    life.try_rewrite(Fsync::EverySecond).unwrap_or_else(|error| panic!("{what}: {error}"));
    (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond), "{what}"));
    assert_eq!(life.acknowledged(), life.said, "{what}");
    disk.recover();
    assert!(Life::start(disk, is_rdb, life.said, life.said).is_ok(), "{what}");
}

/// `work` fails by `fault`: under `always` the server may end, and has what was acknowledged; under `everysec` it goes on.
fn check(is_rdb: bool, seed: u64, fault: Fault, work: Work, name: &str) {
    for fsync in [Fsync::Always, Fsync::EverySecond] {
        let what = format!("{name}, {fault:?}, {fsync:?}, seed {seed}, RDB {is_rdb}");
        let (disk, mut life) = begin(is_rdb, seed);
        disk.fail(Some(fault));
        let goes_on = work(&mut life, fsync);
        if goes_on {
            recover(&disk, life, is_rdb, &what);
        } else {
            // An append-only file that cannot begin stays off.
            assert!(fsync == Fsync::Always || name == WORK[2].0, "{what}");
            let (acknowledged, said) = (life.acknowledged(), life.said);
            assert!(acknowledged >= 3);
            disk.recover();
            assert!(Life::start(&disk, is_rdb, acknowledged, said).is_ok(), "{what}");
        }
    }
}

fn some_units(life: &mut Life, fsync: Fsync) -> bool {
    (0..TURNS).all(|_| {
        life.say();
        life.write(fsync)
    })
}

const WORK: [(&str, Work); 3] =
    [("units", some_units), ("a rewrite", Life::rewrite), ("a new beginning", Life::begin_anew)];

#[test]
fn one_failure_at_every_call() {
    for is_rdb in [true, false] {
        for (name, work) in WORK {
            let (disk, mut life) = begin(is_rdb, 3);
            assert!(work(&mut life, Fsync::Always));
            let calls = disk.take_calls().len();
            assert!(calls > 10, "{name}");
            for point in 0..calls {
                for kind in KINDS {
                    for seed in [3, 4, 5] {
                        check(is_rdb, seed, Fault::At(point, kind), work, name);
                    }
                }
            }
        }
    }
}

#[test]
fn persistent_disk_failures_lose_no_acknowledged_unit() {
    for is_rdb in [true, false] {
        for (name, work) in WORK {
            for kind in KINDS {
                let named = CALLS.map(|call| Fault::Named(call, kind));
                for fault in named.into_iter().chain([Fault::All(kind)]) {
                    (1..=5).for_each(|seed| check(is_rdb, seed, fault, work, name));
                }
            }
        }
    }
}

/// Linux drops what it could not force to disk, and says so once. Later acknowledged writes are on disk nevertheless: a new base has it,
/// and nothing is said to be on disk before.
#[test]
fn a_failed_fsync_requires_a_new_base() {
    for is_rdb in [true, false] {
        for seed in 1..=50 {
            let (disk, mut life) = begin(is_rdb, seed);
            disk.forget();
            let before = life.acknowledged();
            disk.fail(Some(Fault::Named("sync", ErrorKind::Other)));
            some_units(&mut life, Fsync::EverySecond);
            assert!(life.writer.needs_base() && life.writer.failure().is_some());
            disk.fail(None);
            (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond)));
            let torn = life.acknowledged();
            assert_eq!(torn, before, "seed {seed}: the disk does not have it, whatever it says");
            life.heal();
            (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond)));
            assert_eq!((life.writer.needs_base(), life.writer.failure()), (false, None));
            assert_eq!(life.acknowledged(), life.said);
            disk.recover();
            assert!(Life::start(&disk, is_rdb, life.said, life.said).is_ok(), "seed {seed}");
        }
    }
}

/// A clock that is set back puts off neither what is to be tried again nor what is to be forced to disk.
#[test]
fn a_clock_that_is_set_back_puts_nothing_off() {
    let (disk, mut life) = begin(true, 1);
    disk.fail(Some(Fault::Named("write", ErrorKind::StorageFull)));
    life.say();
    assert!(life.write(Fsync::EverySecond));
    assert!(life.writer.failure().is_some());
    disk.fail(None);
    life.set_back();
    (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond)));
    assert_eq!(life.writer.failure(), None);
    assert_eq!(life.acknowledged(), life.said);
}

/// Bytes for replicas only may be written past when a cut is told in front of them.
#[test]
fn a_cut_that_is_passed_already_is_made_all_the_same() {
    let (disk, mut life) = begin(true, 1);
    life.cut_in_front_of_what_is_apart();
    assert!(life.write(Fsync::EverySecond));
    assert!(life.writer.switched().unwrap(), "the next file is there");
    disk.recover();
    assert!(Life::start(&disk, true, life.said, life.said).is_ok());
}

/// A mark after every write would be most of the file where writes are small. There is one each 900 ms, and one at the end.
#[test]
fn a_file_is_marked_now_and_then_and_at_its_end() {
    let (disk, mut life) = begin(true, 1);
    life.writer.belongs_to(Some("0123456789abcdef0123456789abcdef01234567".to_owned()));
    let turn = |life: &mut Life, number: u64| {
        let now = Now { unix: 5000 + 10 * number, steady: 5000 + 10 * number };
        life.writer.advance_and_sync(now, Policy { fsync: Fsync::EverySecond, timestamps: false }).unwrap();
        let text = String::from_utf8(disk.bytes(&path("appendonly.aof.1.incr.aof"))).unwrap();
        (text.lines().filter(|line| line.starts_with("#REPL:")).count(), text)
    };
    let marks = (0..200).map(|number| {
        life.say();
        turn(&mut life, number).0
    });
    let marks: Vec<_> = marks.collect();
    assert_eq!((marks[0], marks[89], marks[90], marks[179], marks[180], marks[199]), (1, 1, 2, 2, 3, 3));
    let (marks, text) = turn(&mut life, 200);
    let offset = life.writer.written();
    assert_eq!(marks, 4);
    assert!(text.ends_with(&format!("\r\n#REPL:0123456789abcdef0123456789abcdef01234567:{offset}\r\n")), "{text}");
    assert_eq!(turn(&mut life, 500).0, 4, "it has not become longer");
}
