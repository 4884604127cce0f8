//! What befalls clusters.

use std::fmt;

use super::world::{Net, World};
use crate::cluster::Failover;
use crate::cluster::random::Random;

/// What may happen.
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
}

const ALL: [Fault; 11] = [
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
        }
        world.run(time);
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
    }
}
