//! Faults of simulated clusters.

use std::fmt;
use std::sync::Arc;

use super::world::{Net, World};
use crate::cluster::random::Random;
use crate::cluster::{Failover, NOBODY, SLOTS, SetSlot};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    CrashProcess,
    CrashSystem,
    CrashMany,
    Isolate,
    Split,
    Stall,
    Resets,
    Repeats,
    Slowness,
    FailoverAsked,
    FailoverForced,
    MoveSlot,
}

const ALL: [Fault; 12] = [
    Fault::CrashProcess,
    Fault::CrashSystem,
    Fault::CrashMany,
    Fault::Isolate,
    Fault::Split,
    Fault::Stall,
    Fault::Resets,
    Fault::Repeats,
    Fault::Slowness,
    Fault::FailoverAsked,
    Fault::FailoverForced,
    Fault::MoveSlot,
];

/// How often each has happened.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) faults: [u64; ALL.len()],
    pub(super) votes: u64,
    /// The longest time until all agreed, in milliseconds.
    pub(super) longest: u64,
    pub(super) keeps_lines: bool,
}

impl Counts {
    pub(super) fn note(&mut self, fault: Fault) {
        self.faults[ALL.iter().position(|other| *other == fault).expect("it is one of all")] += 1;
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.faults.contains(&0) && self.votes > 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in ALL.iter().zip(self.faults) {
            write!(f, "{fault:?} {count}, ")?;
        }
        write!(f, "votes {}; longest until they agreed {} ms", self.votes, self.longest)
    }
}

impl Fault {
    pub(super) fn draw(random: &mut Random) -> Self {
        ALL[random.below(ALL.len() as u64) as usize]
    }

    /// Lets it happen, and some time pass.
    pub(super) fn befall(self, world: &mut World, random: &mut Random) {
        let hosts = world.hosts.len();
        let any = |random: &mut Random| random.below(hosts as u64) as usize;
        let host = any(random);
        let time = 200 + random.below(6000);
        match self {
            Self::CrashProcess | Self::CrashSystem => {
                if world.is_up(host) {
                    world.crash(host, self == Self::CrashSystem);
                    world.run(time);
                    // Some come back at once, some when all is over.
                    if random.below(2) == 0 && !world.is_up(host) {
                        world.start(host);
                    }
                }
            }
            Self::CrashMany => {
                for host in 0..hosts {
                    if world.is_up(host) && random.below(2) == 0 {
                        world.crash(host, random.below(2) == 0);
                    }
                }
                world.run(time);
            }
            Self::Isolate => world.split((0..hosts).map(|other| u32::from(other == host)).collect()),
            Self::Split => {
                let parts = 2 + random.below(2);
                world.split((0..hosts).map(|_| random.below(parts) as u32).collect());
            }
            Self::Stall => world.hosts[host].frozen_until = world.now + time,
            Self::Resets => world.net.resets = 20_000,
            Self::Repeats => (world.net.duplicates, world.net.cuts) = (100_000, 200_000),
            Self::Slowness => world.net.delay = (1, 400),
            Self::FailoverAsked | Self::FailoverForced => {
                let how = if self == Self::FailoverAsked { Failover::Ask } else { Failover::Force };
                if world.is_up(host) {
                    // Primaries refuse, and so does who cannot.
                    let _ = world.tell(host, |machine, now| machine.failover(how, now));
                }
            }
            Self::MoveSlot => move_slot(world, random),
        }
        world.run(time);
    }
}

/// A slot goes to another primary as redis-cli moves it, or half of the way. An operator must close a slot that is left open.
fn move_slot(world: &mut World, random: &mut Random) {
    let slot = random.below(SLOTS as u64) as u16;
    let primaries: Vec<usize> = (0..world.hosts.len())
        .filter(|host| world.is_up(*host) && world.hosts[*host].routing.primary == NOBODY)
        .collect();
    let owns = |world: &World, host: &usize| {
        let routing = &world.hosts[*host].routing;
        routing.owners[usize::from(slot)] == routing.me
    };
    let Some(from) = primaries.iter().copied().find(|host| owns(world, host)) else { return };
    let to = primaries[random.below(primaries.len() as u64) as usize];
    let id = |world: &World, host: usize| world.hosts[host].machine.as_ref().expect("it is up").my_id();
    let (source, target) = (id(world, from), id(world, to));
    let steps = [
        (to, SetSlot::Importing(source.as_bytes())),
        (from, SetSlot::Migrating(target.as_bytes())),
        (to, SetSlot::Node(target.as_bytes())),
        (from, SetSlot::Node(target.as_bytes())),
    ];
    let count = if random.below(3) == 0 { random.below(4) as usize } else { 4 };
    for (host, what) in steps.into_iter().take(count).filter(|_| from != to) {
        // An error ends the move, as in redis-cli.
        if world.tell(host, |machine, now| machine.set_slot(slot, what, 0, now)).is_err() {
            return;
        }
        world.run(random.below(20));
        if !world.is_up(host) {
            return;
        }
    }
}

/// Nothing disturbs them any more.
pub(super) fn make_peace(world: &mut World) {
    world.split(vec![0; world.hosts.len()]);
    world.net = Net::GOOD;
    for host in 0..world.hosts.len() {
        world.hosts[host].frozen_until = 0;
        if !world.is_up(host) {
            world.start(host);
        }
        let routing = Arc::clone(&world.hosts[host].routing);
        for slot in routing.migrating.keys().chain(routing.importing.keys()) {
            let _ = world.tell(host, |machine, now| machine.set_slot(*slot, SetSlot::Stable, 0, now));
        }
    }
}
