//! Bounds on the answers to each host: a datagram's source can be forged, and its answers then reach a victim.

use core::net::IpAddr;
use std::boxed::Box;
use std::hash::{BuildHasher, RandomState};

use crate::node::Instant;

/// The hosts whose requests by UDP are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reach {
    /// Those of hosts in the networks of this machine's interfaces, which is where ECHONET Lite lives. Requests from
    /// elsewhere get no answer at all, so that an attacker cannot use the node to flood others.
    #[default]
    Near,
    /// Those of all hosts. An answer to one that is not near is at most twice as long as its request, and there are at
    /// most twenty a second. A client that needs more asks by TCP, which proves its address.
    Everywhere,
}

/// The settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) reach: Reach,
    /// The most bytes of one answer.
    pub(super) answer: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { reach: Reach::default(), answer: 1452 }
    }
}

/// All answers to one request are about so many bytes at most: those of 127 objects with the ten properties that a
/// controller asks for together.
const ANSWERS: usize = 16 * 1024;
/// An answer takes at most this part of what is left for all.
const SHARE: usize = 8;
/// The least room of an answer to a host that is near: even behind many other answers, an object says that it is there.
const LEAST: usize = 64;
/// How much longer than the request all answers to a host that is not near are together.
const FACTOR: usize = 2;

/// How much may be answered to one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// The most bytes of one answer.
    answer: usize,
    /// Bytes left for all of them.
    left: usize,
    least: usize,
    share: usize,
}

impl Allowance {
    /// The allowance of a host that is near.
    pub(super) fn near(bounds: &Bounds) -> Self {
        Self { answer: bounds.answer, left: ANSWERS, least: LEAST, share: SHARE }
    }

    /// The allowance of a request of so many bytes whose source cannot be told to be true.
    pub(super) fn far(bounds: &Bounds, request: usize) -> Self {
        Self { answer: bounds.answer, left: FACTOR * request, least: 0, share: 1 }
    }

    /// The room for the next answer.
    pub(super) fn room(&self) -> usize {
        self.answer.min((self.left / self.share).max(self.least))
    }

    /// An answer took so much.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

/// Answers in a row to one host that is not near, and a second.
const BURST: u8 = 20;
/// Hosts are counted in so many groups: memory has a bound, and the hosts of a group share its rate.
const GROUPS: usize = 256;
const SECOND_MICROS: u64 = 1_000_000;

/// How often hosts that are not near have been answered.
pub(super) struct Rates {
    hasher: RandomState,
    /// Answers that are left, and when they were counted last.
    groups: Box<[(u8, Instant); GROUPS]>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { hasher: RandomState::new(), groups: Box::new([(BURST, Instant::ZERO); GROUPS]) }
    }
}

impl Rates {
    /// Whether one more request of a host may be answered now.
    pub(super) fn admit(&mut self, now: Instant, host: IpAddr) -> bool {
        let group = self.hasher.hash_one(host) as usize % GROUPS;
        let (left, counted) = &mut self.groups[group];
        let step = SECOND_MICROS / u64::from(BURST);
        let earned = now.since(*counted).as_micros() as u64 / step;
        if earned > 0 {
            *left = u8::try_from(earned).unwrap_or(BURST).saturating_add(*left).min(BURST);
            *counted = now;
        }
        let admitted = *left > 0;
        *left = left.saturating_sub(1);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_many_objects_stay_within_the_bound() {
        let bounds = Bounds::default();
        let mut allowance = Allowance::near(&bounds);
        let total: usize = (0..127).fold(0, |total, _| {
            let room = allowance.room();
            assert!((LEAST..=bounds.answer).contains(&room));
            allowance.spend(room);
            total + room
        });
        assert!(total < ANSWERS + 127 * LEAST, "{total}");
        // Short ones are never cut.
        let mut allowance = Allowance::near(&bounds);
        for _ in 0..127 {
            assert!(allowance.room() >= 60);
            allowance.spend(60);
        }
        let mut allowance = Allowance::far(&bounds, 14);
        allowance.spend(15);
        assert_eq!(allowance.room(), 13);
    }

    #[test]
    fn a_host_that_is_not_near_has_a_rate() {
        let mut rates = Rates::default();
        let host = "203.0.113.5".parse().unwrap();
        let mut admitted = |millis: u64| {
            let now = Instant::from_micros(millis * 1000);
            (0..100).filter(|_| rates.admit(now, host)).count()
        };
        assert_eq!((admitted(0), admitted(49), admitted(50), admitted(1050)), (20, 0, 1, 20));
    }
}
