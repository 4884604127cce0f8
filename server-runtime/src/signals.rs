//! SIGTERM and SIGINT, and SIGHUP.

use std::fmt;
use std::future::pending;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot::{self, Receiver, Sender};
use tracing::{error, info, warn};

use crate::{Handle, Running};

/// Ends the server in good order on SIGTERM or SIGINT, and at once on the second of them. A third one, which only a
/// service that blocks its worker leaves time for, exits the process with status 1.
///
/// The handlers are in place when this returns.
///
/// # Errors
/// When the handlers or their thread cannot be set up.
pub fn shutdown_on_signals(running: &Running) -> io::Result<()> {
    let end = |_: &'static str, handle: &Handle| {
        handle.trigger();
        true
    };
    Signals::catch()?.shut_down(&running.shutdown_handle(), end, |_| ());
    Ok(())
}

/// SIGTERM and SIGINT, caught: as long as nobody says what they do to which server, they end the process.
#[derive(Debug)]
pub struct Signals {
    serves: Sender<Server>,
    reload: Option<Reload>,
}

type End = Box<dyn FnMut(&'static str, &Handle) -> bool + Send>;
type Insist = Box<dyn Fn(&'static str) + Send>;

/// The callback for SIGHUP.
struct Reload(Box<dyn FnMut(&Handle) + Send>);

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

/// The server that signals end, and the callbacks for it.
struct Server {
    handle: Handle,
    end: End,
    insist: Insist,
    reload: Option<Reload>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Signals {
    /// Puts the handlers in place.
    ///
    /// # Errors
    /// When they or their thread cannot be set up.
    pub fn catch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let caught = {
            let _inside = runtime.enter();
            Caught { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? }
        };
        let (serves, served) = oneshot::channel();
        let watch = move || runtime.block_on(watch(caught, served));
        std::thread::Builder::new().name("signals".into()).spawn(watch)?;
        Ok(Self { serves, reload: None })
    }

    /// Has `reload` called with each SIGHUP, once the server serves; without it, SIGHUP does what it did before.
    #[must_use]
    pub fn with_reload(self, reload: impl FnMut(&Handle) + Send + 'static) -> Self {
        Self { reload: Some(Reload(Box::new(reload))), ..self }
    }

    /// From now on the first signal does what the service says: `end` is given the signal's name and the handle, ends the
    /// server or begins to, and tells whether it has; if not, the next signal is a first one again. It may take its time;
    /// `insist` is told of signals that come meanwhile. A second signal ends the server at once, a third one exits the process with status 1.
    pub fn shut_down(
        self,
        handle: &Handle,
        end: impl FnMut(&'static str, &Handle) -> bool + Send + 'static,
        insist: impl Fn(&'static str) + Send + 'static,
    ) {
        let Self { serves, reload } = self;
        let server = Server { handle: handle.clone(), end: Box::new(end), insist: Box::new(insist), reload };
        // The thread ends with the process alone.
        let _ = serves.send(server);
    }
}

struct Caught {
    term: Signal,
    int: Signal,
}

impl Caught {
    /// The next one's name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

async fn watch(mut caught: Caught, served: Receiver<Server>) {
    let server = tokio::select! {
        biased;
        server = served => server,
        name = caught.next() => {
            info!("{name} before the server serves: exiting now");
            process::exit(0);
        }
    };
    let Ok(Server { handle, end, insist, reload }) = server else { return };
    let reloads = async {
        match reload {
            Some(reload) => reload_on_hangup(&handle, reload).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = end_on_signals(&mut caught, &handle, end, insist) => {}
        () = reloads => {}
    }
}

async fn reload_on_hangup(handle: &Handle, Reload(mut reload): Reload) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            warn!("SIGHUP will be ignored: {error}");
            return pending().await;
        }
    };
    while hangups.recv().await.is_some() {
        if catch_unwind(AssertUnwindSafe(|| reload(handle))).is_err() {
            error!("SIGHUP: the reload has panicked");
        }
    }
}

async fn end_on_signals(caught: &mut Caught, handle: &Handle, mut end: End, insist: Insist) {
    loop {
        let name = caught.next().await;
        info!("{name}: shutting down, {} connections open", handle.connections());
        let of_call = handle.clone();
        let mut call = tokio::task::spawn_blocking(move || {
            let ended = end(name, &of_call);
            (end, ended)
        });
        let ended = loop {
            tokio::select! {
                ended = &mut call => break ended,
                name = caught.next() => insist(name),
            }
        };
        match ended {
            Ok((_, true)) => break,
            Ok((again, false)) => end = again,
            Err(panic) => {
                error!("{name}: {panic}");
                break;
            }
        }
    }
    let name = caught.next().await;
    warn!("{name} again: ending at once, {} connections open", handle.connections());
    handle.abort();
    let name = caught.next().await;
    error!("{name} a third time: exiting");
    process::exit(1);
}
