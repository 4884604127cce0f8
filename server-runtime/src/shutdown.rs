//! The wish to end: telling it, and waiting for it.

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tracing::{error, info, warn};

use crate::{Handle, Running};

/// A flag that goes up once and can be awaited. Clones share it.
///
/// Each worker has one of its own, so that waiting connections of different workers never meet on a lock.
#[derive(Clone, Default)]
pub struct Shutdown(Arc<Flag>);

#[derive(Default)]
struct Flag {
    up: AtomicBool,
    waiters: Notify,
}

impl Shutdown {
    /// Whether the server wants to end.
    #[inline]
    pub fn is_triggered(&self) -> bool {
        self.0.up.load(Ordering::Acquire)
    }

    /// Ready when the server wants to end, at once if it already does. Cancel safe.
    pub async fn triggered(&self) {
        let mut up = pin!(self.0.waiters.notified());
        // Listen first, look second: a trigger between the two is not lost.
        up.as_mut().enable();
        if !self.is_triggered() {
            up.await;
        }
    }

    pub(crate) fn trigger(&self) {
        self.0.up.store(true, Ordering::Release);
        self.0.waiters.notify_waiters();
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shutdown").field(&self.is_triggered()).finish()
    }
}

/// The server's two flags: end in good order, and end at once.
pub(crate) struct Stop {
    /// For the acceptor.
    pub(crate) accept: Shutdown,
    /// One for each worker and its connections.
    pub(crate) workers: Vec<Shutdown>,
    /// Cuts the drain short.
    pub(crate) now: Shutdown,
}

impl Stop {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            accept: Shutdown::default(),
            workers: std::iter::repeat_with(Shutdown::default).take(workers).collect(),
            now: Shutdown::default(),
        }
    }

    pub(crate) fn drain(&self) {
        self.accept.trigger();
        self.workers.iter().for_each(Shutdown::trigger);
    }

    pub(crate) fn end(&self) {
        self.now.trigger();
        self.drain();
    }
}

/// Ends the server in good order on SIGTERM or SIGINT, and at once on the second of them. A third one, which only a
/// service that blocks its worker leaves time for, exits the process with status 1.
///
/// The handlers are in place when this returns.
///
/// # Errors
/// When the handlers or their thread cannot be set up.
pub fn shutdown_on_signals(running: &Running) -> io::Result<()> {
    shutdown_on_signals_if(running, |_, handle| {
        handle.trigger();
        true
    })
}

/// [`shutdown_on_signals`], with a first signal that does what the service says: `end` is given the signal's name and the
/// handle, ends the server or begins to, and tells whether it has; if not, the next signal is a first one again. It may
/// take its time: signals that come meanwhile are looked at when it returns.
///
/// # Errors
/// As [`shutdown_on_signals`].
pub fn shutdown_on_signals_if(
    running: &Running,
    mut end: impl FnMut(&'static str, &Handle) -> bool + Send + 'static,
) -> io::Result<()> {
    let handle = running.shutdown_handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut term, mut int) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let watch = async move {
        let mut count = 0;
        loop {
            let name = tokio::select! {
                _ = term.recv() => "SIGTERM",
                _ = int.recv() => "SIGINT",
            };
            let open = handle.connections();
            match count {
                0 => {
                    info!("{name}: shutting down, {open} connections open");
                    count += usize::from(end(name, &handle));
                    continue;
                }
                1 => {
                    warn!("{name} again: ending at once, {open} connections open");
                    handle.abort();
                }
                _ => {
                    error!("{name} a third time: exiting");
                    std::process::exit(1);
                }
            }
            count += 1;
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(watch))?;
    Ok(())
}
