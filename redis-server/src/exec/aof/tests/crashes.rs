//! Crashes, anywhere.

use std::collections::BTreeSet;

use super::life::{Life, base, layout};
use crate::persistence::aof::Fsync;
use crate::persistence::disk::folder_of;
use crate::persistence::disk::simulated::SimulatedDisk;

#[test]
fn ten_thousand_crashes() {
    for seed in 1..=2500u64 {
        let disk = SimulatedDisk::new(seed);
        let fsync = if seed % 3 == 0 { Fsync::EverySecond } else { Fsync::Always };
        let is_rdb = |life: u64| (seed + life).is_multiple_of(2);
        let (mut acknowledged, mut said) = (0, 0);
        for number in 0..4 {
            disk.fail_one_in((seed % 4 == 1).then_some(25));
            disk.crash_in(disk.below(120) as usize);
            // Of a start that fails what was there by then stays.
            if let Ok(life) = Life::start(&disk, is_rdb(number), acknowledged, said) {
                (acknowledged, said) = life.live(fsync);
            }
            disk.recover();
        }
        let life = Life::start(&disk, true, acknowledged, said);
        assert!(life.is_ok(), "seed {seed}");
    }
}

/// Crashes at every call of what `work` does behind three units, and of what a crash leaves, many possibilities.
fn check(is_rdb: bool, work: fn(&mut Life) -> bool, kinds: &[&str]) {
    let begin = || {
        let disk = SimulatedDisk::new(7);
        let mut life = Life::start(&disk, is_rdb, 0, 0).unwrap();
        (0..3).for_each(|_| life.say());
        assert!(life.write(Fsync::Always));
        disk.take_calls();
        (disk, life)
    };
    let (disk, mut life) = begin();
    assert!(work(&mut life));
    let calls = disk.take_calls();
    let found: BTreeSet<_> = calls.iter().copied().collect();
    assert!(found.iter().eq(kinds), "{found:?}");
    assert!(calls.len() > 15, "{calls:?}");
    for point in 0..=calls.len() {
        for chance in 0..50 {
            let (disk, mut life) = begin();
            (0..chance).for_each(|_| _ = disk.below(2));
            disk.crash_in(point);
            work(&mut life);
            let (acknowledged, said) = (life.acknowledged(), life.said);
            assert!(acknowledged >= 3);
            disk.recover();
            assert!(Life::start(&disk, is_rdb, acknowledged, said).is_ok(), "crash at call {point} of {calls:?}");
        }
    }
}

#[test]
fn a_crash_at_every_call_of_a_rewrite() {
    let kinds = ["open", "remove", "rename", "sync", "sync_folder", "truncate", "write"];
    for is_rdb in [true, false] {
        check(is_rdb, |life| life.rewrite(Fsync::Always), &kinds);
    }
}

#[test]
fn a_crash_at_every_call_of_a_new_beginning() {
    let kinds = ["make_folder", "open", "remove", "rename", "sync", "sync_folder", "truncate", "write"];
    for is_rdb in [true, false] {
        check(is_rdb, |life| life.begin_anew(Fsync::Always), &kinds);
    }
}

#[test]
fn a_crash_at_every_call_of_the_upgrade_of_an_old_file() {
    let layout = layout();
    let old = folder_of(layout.folder()).join("appendonly.aof");
    for is_rdb in [true, false] {
        let begin = || {
            let disk = SimulatedDisk::new(9);
            disk.put(&old, &base(2, is_rdb));
            disk
        };
        let disk = begin();
        Life::start(&disk, is_rdb, 2, 2).unwrap();
        let calls = disk.take_calls().len();
        for point in 0..=calls {
            for chance in 0..20 {
                let disk = begin();
                (0..chance).for_each(|_| _ = disk.below(2));
                disk.crash_in(point);
                let _ = Life::start(&disk, is_rdb, 2, 2);
                disk.recover();
                assert!(Life::start(&disk, is_rdb, 2, 2).is_ok(), "crash at call {point}");
            }
        }
    }
}
