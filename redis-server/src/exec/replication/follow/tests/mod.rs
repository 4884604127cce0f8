//! Servers, and links between them, in virtual time: everything that decides is what a real server runs ([`Replication`], links to
//! replicas, handshakes, the applier, snapshots, the journal); the test has the bytes in between, the clock, and the faults.
//!
//! A run is drawn from its seed. Links carry bytes in pieces, late, and are cut at any byte; servers end with a snapshot or without,
//! start again from what they have saved, are promoted, and are told whom to follow, in chains too. Then all faults end, and in the end
//! all servers must have the same data at the same offset of the same stream. Data that a replica had acknowledged must be
//! there when it has been promoted.

pub(in crate::exec::replication) mod node;
mod world;

use std::cell::Cell;
use std::collections::BTreeMap;

use world::World;

/// The fault of a broken build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A stream's former name is good for what came after it, too.
    OldNamesAreGoodForEver,
    /// A cut link's half of a command or a transaction stays.
    HalfUnitsStay,
    /// A server that starts again has forgotten for which database the stream's next command is.
    DatabaseIsForgotten,
}

thread_local! {
    static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
}

pub(crate) fn is_broken(defect: Defect) -> bool {
    DEFECT.get() == Some(defect)
}

/// How often what has happened.
type Counts = BTreeMap<&'static str, u64>;

/// Runs one seed.
///
/// # Errors
/// How the servers differ in the end.
fn run(seed: u64, counts: &mut Counts) -> Result<(), String> {
    let mut world = World::new(seed);
    world.live();
    let outcome = world.heal();
    for (name, count) in world.counts() {
        *counts.entry(name).or_default() += count;
    }
    outcome
}

/// Everything that a run may meet.
const FAULTS: &[&str] = &[
    "chain",
    "cut in a handshake",
    "cut in a snapshot",
    "cut in the stream",
    "delayed piece",
    "full synchronization",
    "later answered",
    "partial synchronization",
    "promise kept by a promoted replica",
    "promotion",
    "primary killed",
    "primary restarted",
    "replica killed",
    "replica restarted",
    "snapshot saved",
    "two primaries write",
];

/// `SIMULATED_RUNS=100000` has more of them.
#[test]
fn servers_converge_despite_link_and_process_faults() {
    let runs = std::env::var("SIMULATED_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(300u64);
    let first = std::env::var("SIMULATED_FROM").ok().and_then(|first| first.parse().ok()).unwrap_or(0u64);
    let mut counts = Counts::new();
    for seed in first..first + runs {
        if let Err(difference) = run(seed, &mut counts) {
            panic!("seed {seed}: {difference}");
        }
    }
    for (name, count) in &counts {
        println!("{count:>10} {name}");
    }
    let missing: Vec<_> = FAULTS.iter().filter(|fault| !counts.contains_key(**fault)).collect();
    assert!(missing.is_empty() || runs < 100, "never met: {missing:?}");
}

/// The simulation is worth what it finds.
#[test]
fn broken_builds_are_found() {
    for defect in [Defect::OldNamesAreGoodForEver, Defect::HalfUnitsStay, Defect::DatabaseIsForgotten] {
        DEFECT.set(Some(defect));
        let found = (0..400).find(|&seed| run(seed, &mut Counts::new()).is_err());
        DEFECT.set(None);
        assert!(found.is_some(), "{defect:?} makes no difference");
        println!("{defect:?}: found by seed {}", found.unwrap_or_default());
    }
}
