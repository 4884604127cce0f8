//! How much the system prefers others to a thread that works beside the workers, and how much such a thread has had.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The niceness of slow calls: they take what workers leave, but a lock that they hold is not held for long.
pub(in crate::exec) const SLOW_CALLS: i32 = 5;
/// The niceness of the thread that feeds search indexes, with the lock of a shard now and then; a query may wait for it.
#[cfg(feature = "search")]
pub(in crate::exec) const SEARCH: i32 = 5;
/// The niceness of threads that move slots as a whole, here and there, with the lock of a slot that is read or filled.
pub(in crate::exec) const MOVES: i32 = 5;
/// The niceness of threads that go through the entries for a snapshot, with the lock of a shard now and then.
pub(in crate::exec) const SNAPSHOT: i32 = 5;
/// The niceness of threads that write a snapshot, and hold no lock that others want. It adds to [`SNAPSHOT`], as a thread begins with
/// the niceness of its creator. A thirtieth of a processor is left where others want it all.
pub(in crate::exec) const SNAPSHOT_FILE: i32 = 10;

/// How long this thread may run on before another that has become ready, in nanoseconds; some milliseconds by default.
const SLICE: u64 = 100_000;

/// The argument by which the program does nothing but ask for another priority.
pub const PROBE: &str = "--probe-priorities";

/// The work of such a process. A signal ends the process where a filter of system calls forbids it.
pub fn probe() {
    // SIGSYS would leave a core otherwise.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let _ = schedule(0, libc::SCHED_OTHER, 0, 0);
    let _ = rustix::process::setpriority_process(None, 0);
}

/// Whether a priority may be asked for at all. Under a filter of system calls (`SystemCallFilter=~@resources` of Debian's unit) a call
/// that is forbidden ends the process, so that another process tries first.
fn may_ask() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let is_filtered =
            status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"));
        let tried = || {
            let mut command = Command::new("/proc/self/exe");
            command.arg(PROBE).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        !is_filtered || tried().is_ok_and(|status| status.success())
    })
}

/// Has the system prefer others to the calling thread by so many more steps of `nice`, and let them have its processor after a
/// short while, where it can (Linux 6.12).
pub(in crate::exec) fn lower(steps: i32) {
    if !may_ask() {
        return;
    }
    let me = Some(rustix::thread::gettid());
    let Ok(niceness) = rustix::process::getpriority_process(me) else { return };
    if !schedule(0, libc::SCHED_OTHER, niceness + steps, SLICE) {
        // A second refusal is no harm: this thread then shares the processors evenly with the workers.
        let _ = rustix::process::setpriority_process(me, niceness + steps);
    }
}

/// Gives another process only what others leave of the processors (sched(7), `SCHED_IDLE`). Nothing that shares memory with workers may
/// have so little: they would wait for what it holds in the kernel.
pub(in crate::exec) fn yield_to_all(process: u32) {
    if !may_ask() {
        return;
    }
    // A refusal is no harm.
    let _ = schedule(process, libc::SCHED_IDLE, 0, 0);
}

/// Has a thread, or a process' first one, scheduled so; 0: the calling one. `slice` is in nanoseconds, 0: the system's. Says whether it is.
fn schedule(thread: u32, policy: i32, niceness: i32, slice: u64) -> bool {
    let wanted = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy as u32,
        sched_flags: 0,
        sched_nice: niceness,
        sched_priority: 0,
        sched_runtime: slice,
        sched_deadline: 0,
        sched_period: 0,
    };
    #[allow(unsafe_code, reason = "no library has this call")]
    // SAFETY: the call reads `wanted`, which is as long as it says.
    let refused = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const wanted, 0) } != 0;
    !refused
}

/// For how long the calling thread has had a processor.
pub(in crate::exec) fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
