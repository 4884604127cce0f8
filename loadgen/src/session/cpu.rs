//! A thread's use of a processor.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::Nanos;
use crate::record::Cpu;

/// A point in a thread's use of the processor. To be made and asked by the thread itself.
pub(super) struct ThreadCpu {
    at: Nanos,
    nanos: Nanos,
    ticks: Option<(u64, u64)>,
}

impl ThreadCpu {
    pub(super) fn start(now: Nanos) -> Self {
        Self { at: now, nanos: thread_nanos(), ticks: thread_ticks() }
    }

    /// CPU time and wall time since then.
    pub(super) fn since(&self, now: Nanos) -> (Cpu, Nanos) {
        let seconds = thread_nanos().saturating_sub(self.nanos) as f64 / 1e9;
        // The clock is exact, but only the coarse counters tell program and kernel apart.
        let user = match (self.ticks, thread_ticks()) {
            (Some((user, system)), Some((user_now, system_now))) if (user_now, system_now) != (user, system) => {
                let (user, system) = (user_now.saturating_sub(user), system_now.saturating_sub(system));
                seconds * user as f64 / (user + system).max(1) as f64
            }
            _ => seconds,
        };
        (Cpu { user, system: seconds - user }, now.saturating_sub(self.at))
    }
}

pub(super) fn thread_nanos() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// User and system time in the kernel's ticks.
fn thread_ticks() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/thread-self/stat").ok()?;
    // Fields after the name, which may contain anything: utime and stime are the 12th and 13th (proc(5)).
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
