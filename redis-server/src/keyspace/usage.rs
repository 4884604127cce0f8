//! The usage of an entry, in the 24 bits that eviction has per entry: when it was used last, in seconds of Unix time, or, under a policy
//! that counts, how often (<https://redis.io/docs/latest/develop/reference/eviction/>).
//!
//! ```text
//! by time:       seconds 24
//! by frequency:  minutes of the last decay 16, counter 8
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::entry::Entry;

/// The count of a new entry: it must have time to be used before it looks unused.
const INITIAL: u32 = 5;
/// Where the counter ends.
const SATURATED: u32 = 255;
const MINUTES: u32 = 0xffff;
/// The longest step back of the clock that is told from a long time without a use.
const STEP_BACK_MINUTES: u32 = 24 * 60;

/// How uses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// The greater, the more uses it takes to saturate the counter (`lfu-log-factor`).
    pub log_factor: u32,
    /// Minutes after which the counter loses one; 0: it never does (`lfu-decay-time`).
    pub decay_minutes: u32,
}

/// The kind of usage that entries record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// When it was.
    Time,
    /// How often it was.
    Frequency(Frequency),
}

/// A [`Usage`] that all threads share.
#[derive(Debug, Default)]
pub(super) struct Shared(AtomicU64);

/// Says that a [`Shared`] holds a frequency; each of its numbers has the 31 bits that its setting has.
const COUNTS: u64 = 1 << 63;
const FACTOR_AT: u32 = 31;
const NUMBER: u64 = (1 << 31) - 1;

impl Shared {
    #[inline]
    pub(super) fn load(&self) -> Usage {
        let bits = self.0.load(Relaxed);
        if bits & COUNTS == 0 {
            return Usage::Time;
        }
        let [log_factor, decay_minutes] = [(bits >> FACTOR_AT & NUMBER) as u32, (bits & NUMBER) as u32];
        Usage::Frequency(Frequency { log_factor, decay_minutes })
    }

    pub(super) fn store(&self, usage: Usage) {
        self.0.store(
            match usage {
                Usage::Time => 0,
                Usage::Frequency(Frequency { log_factor, decay_minutes }) => {
                    COUNTS | (u64::from(log_factor) & NUMBER) << FACTOR_AT | u64::from(decay_minutes) & NUMBER
                }
            },
            Relaxed,
        );
    }
}

impl Usage {
    /// The usage of a new entry; `now` in milliseconds of Unix time.
    #[inline]
    pub fn fresh(self, now: u64) -> u32 {
        match self {
            Self::Time => (now / 1000) as u32,
            Self::Frequency(_) => counted(now, INITIAL),
        }
    }

    /// The usage of an entry that was last used `idle_seconds` ago. If entries record a frequency, that of a new entry.
    pub fn idle(self, now: u64, idle_seconds: u64) -> u32 {
        match self {
            Self::Time => (now / 1000).saturating_sub(idle_seconds) as u32,
            Self::Frequency(_) => self.fresh(now),
        }
    }

    /// The usage of an entry with the counter `count`. If entries record a time, that of a new entry.
    pub fn used(self, now: u64, count: u8) -> u32 {
        match self {
            Self::Time => self.fresh(now),
            Self::Frequency(_) => counted(now, count.into()),
        }
    }

    /// The update that a use at `now` makes.
    #[inline]
    pub(super) fn trace(self, now: u64) -> Trace {
        match self {
            Self::Time => Trace::Time((now / 1000) as u32),
            Self::Frequency(frequency) => Trace::Count(frequency, now),
        }
    }
}

/// The update of an entry's usage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trace {
    /// Nothing.
    None,
    /// When it was.
    Time(u32),
    /// One use more, at this moment.
    Count(Frequency, u64),
}

impl Trace {
    #[inline]
    pub(super) fn leave(self, entry: &Entry) {
        match self {
            Self::None => {}
            Self::Time(clock) => entry.set_access(clock),
            Self::Count(frequency, now) => frequency.note(entry, now),
        }
    }

    /// The entry is new: the call that makes it does not count as a use.
    #[inline]
    pub(super) fn made(self, entry: &Entry) {
        if let Self::Count(..) = self {
            is_first_use(entry);
        }
    }
}

thread_local! {
    /// The number of the call that this thread runs.
    static CALL: Cell<u64> = const { Cell::new(0) };
    /// The entries whose uses were counted last, and by which call.
    static COUNTED: Cell<([usize; 2], u64)> = const { Cell::new(([0; 2], 0)) };
}

/// A call begins: however often it looks at an entry, that is one use.
#[inline]
pub(crate) fn begin_call() {
    CALL.set(CALL.get().wrapping_add(1));
}

/// This thread's call uses the entry for the first time. The last two entries of a call are known.
fn is_first_use(entry: &Entry) -> bool {
    let (address, call) = (entry.key().as_ptr().addr(), CALL.get());
    let ([last, other], of) = COUNTED.get();
    if of != call {
        COUNTED.set(([address, 0], call));
        return true;
    }
    let is_first = address != last && address != other;
    if is_first {
        COUNTED.set(([address, last], call));
    }
    is_first
}

fn counted(now: u64, count: u32) -> u32 {
    ((now / 60_000) as u32 & MINUTES) << 8 | count
}

impl Frequency {
    #[cold]
    fn note(self, entry: &Entry, now: u64) {
        if !is_first_use(entry) {
            return;
        }
        let count = self.count(entry, now);
        entry.set_access(counted(now, self.one_more(count, random)));
    }

    /// The entry's counter at `now`, in milliseconds of Unix time: it has decayed since the last use.
    pub fn count(self, entry: &Entry, now: u64) -> u32 {
        let access = entry.access();
        let minutes = ((now / 60_000) as u32).wrapping_sub(access >> 8) & MINUTES;
        // A use in the future: the clock has stepped back, and the counter must not lose all that it has.
        let minutes = if minutes > MINUTES - STEP_BACK_MINUTES { 0 } else { minutes };
        (access & SATURATED).saturating_sub(minutes.checked_div(self.decay_minutes).unwrap_or(0))
    }

    /// The counter after one more use: it grows the less likely, the greater it is. `random` gives numbers in [0, 1).
    fn one_more(self, count: u32, random: impl FnOnce() -> f64) -> u32 {
        if count == SATURATED {
            return count;
        }
        let above = count.saturating_sub(INITIAL);
        let likely = 1.0 / (f64::from(above) * f64::from(self.log_factor) + 1.0);
        count + u32::from(random() < likely)
    }
}

/// A number in [0, 1), of which nothing depends but how fast counters grow (SplitMix64, one sequence per thread).
fn random() -> f64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        let mut x = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(x);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) as f64 / 2.0_f64.powi(64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Value;

    const MINUTE: u64 = 60_000;

    #[test]
    fn shared_usage_round_trips() {
        let shared = Shared::default();
        assert_eq!(shared.load(), Usage::Time);
        let most = i32::MAX as u32;
        for (log_factor, decay_minutes) in [(10, 1), (0, 0), (most, most)] {
            let usage = Usage::Frequency(Frequency { log_factor, decay_minutes });
            shared.store(usage);
            assert_eq!(shared.load(), usage);
        }
    }

    #[test]
    fn a_clock_that_steps_back_makes_no_key_idle() {
        let entry = Entry::new(b"key", Value::Int(1), None);
        entry.set_access(Usage::Time.fresh(200_000_000));
        for (now, expected) in [(200_007_000, 7), (199_999_000, 0), (200_000_000 - 86_400_000, 0)] {
            assert_eq!(entry.idle_seconds(now), expected, "at {now}");
        }
    }

    #[test]
    fn counters_decay_with_time() {
        let entry = Entry::new(b"key", Value::Int(1), None);
        let count = |decay_minutes, now| Frequency { log_factor: 10, decay_minutes }.count(&entry, now);
        entry.set_access(counted(7 * MINUTE, 100));
        let cases = [(1, 7, 100), (1, 8, 99), (1, 107, 0), (1, 60_000, 0), (5, 11, 100), (5, 12, 99), (0, 9999, 100)];
        for (decay, minute, expected) in cases {
            assert_eq!(count(decay, minute * MINUTE), expected, "decay {decay}, minute {minute}");
        }
        // The clock has stepped back, by a minute and by a day.
        entry.set_access(counted(2000 * MINUTE, 100));
        assert_eq!([count(1, 1999 * MINUTE), count(1, 561 * MINUTE), count(1, 500 * MINUTE)], [100, 100, 0]);
        // The minutes wrap around.
        entry.set_access(counted(0xffff * MINUTE, 100));
        assert_eq!(count(1, 0x1_0001 * MINUTE), 98);
    }

    /// The table of redis.conf: the counter after so many uses, by factor.
    #[test]
    fn counters_grow_with_the_logarithm_of_uses() {
        for (log_factor, uses, expected) in
            [(0, 300, 255..=255), (1, 1000, 44..=54), (10, 1000, 14..=22), (100, 1000, 7..=11)]
        {
            let frequency = Frequency { log_factor, decay_minutes: 1 };
            let count = (0..uses).fold(INITIAL, |count, _| frequency.one_more(count, random));
            assert!(expected.contains(&count), "factor {log_factor}: {count} after {uses} uses");
        }
    }
}
