//! A disk that fails and works again: what was said is all there in the end, or the server has ended as it promises to.

use std::io::ErrorKind;

use super::life::Life;
use crate::persistence::aof::Fsync;
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

/// What a server does; false: it has to end, or keeps nothing any more.
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
    (0..TURNS).for_each(|_| assert!(life.write(Fsync::EverySecond), "{what}"));
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
            // Who cannot begin stays off.
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
fn what_is_refused_for_long() {
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
