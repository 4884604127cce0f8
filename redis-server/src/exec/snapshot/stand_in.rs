//! The process that stands for a snapshot in the making: operators and their tools look for one, because the genuine server saves by a
//! fork of itself. Nothing is saved by it; but its end cancels the snapshot, which counts as failed.

use std::io::{self, PipeReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use crate::exec::core::priority;
use crate::threads::{self, OnPanic};

/// The argument by which the program is nothing but such a process.
pub const ARGUMENT: &str = "--stand-in-for-a-save";

/// A file's number above those of what a server opens first, where it listens.
const HIGH: i32 = 512;

/// The work of such a process: it waits until the server, or the snapshot, has ended.
pub fn run() {
    // Nothing is ever sent: this ends when the other end of the pipe does.
    let _ = io::stdin().read(&mut [0]);
}

/// Such a process; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct StandIn {
    pid: u32,
    is_over: Arc<AtomicBool>,
    /// Its standard input.
    _life: Option<ChildStdin>,
}

impl StandIn {
    /// Starts one that is called `name`; `ended` is called if another process ends it.
    ///
    /// # Errors
    /// There can be none.
    pub(super) fn start(name: &str, ended: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(name).arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let (begun, open) = io::pipe()?;
        let open = rustix::io::fcntl_dupfd_cloexec(&open, HIGH).unwrap_or_else(|_| OwnedFd::from(open));
        let mut child = command.spawn()?;
        drop(open);
        let is_over = Arc::new(AtomicBool::new(false));
        let stand_in = Self { pid: child.id(), is_over: Arc::clone(&is_over), _life: child.stdin.take() };
        // Without a watcher, the end of the process is not noticed; the snapshot goes on.
        let watch = move || watch(child, begun, &is_over, ended);
        threads::spawn("stand-in", OnPanic::Report, watch)?;
        Ok(stand_in)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
    }
}

/// Waits until the process has ended. `begun` ends when its program has begun: until then it has all files of this one open, which are
/// closed in the order of their numbers, the ports it listens on among them. Had it only what others leave of the processors, a server
/// that starts again meanwhile would find them taken. From then on it does not compete with workers for the milliseconds in which it comes up.
fn watch(mut child: Child, mut begun: PipeReader, is_over: &AtomicBool, ended: impl FnOnce()) {
    // There is nothing to be read but the end.
    let _ = begun.read(&mut [0]);
    threads::panic_point();
    priority::yield_to_all(child.id());
    let status = child.wait();
    if !is_over.load(SeqCst) {
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        tracing::warn!("The process that stands for the snapshot was ended ({status})");
        ended();
    }
}
