//! Service managers: systemd is told of the server's state (sd_notify(3)), upstart sees it stop itself.
//!
//! A message is one datagram, which the standard library sends as well as a crate would.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

/// How much longer a start may take from each message that says how far it is, in microseconds.
const EXTENSION: u64 = 30_000_000;

/// The service manager that started the server, if it wants to know the state.
#[derive(Debug, Default)]
pub struct Supervisor {
    manager: Option<Manager>,
}

#[derive(Debug)]
enum Manager {
    Upstart,
    Systemd(Systemd),
}

#[derive(Debug)]
struct Systemd {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How often it must hear of the server, if it wants to.
    watchdog: Option<Duration>,
    /// When it last heard of it, in microseconds of the monotonic clock.
    kept_alive: AtomicU64,
}

impl Supervisor {
    /// The manager that `supervised` (`no`, `upstart`, `systemd`, `auto`) and the environment name. One that is asked for and not there
    /// is told to the log; so is one that is.
    pub fn detect(supervised: &str) -> Self {
        let wanted = match supervised {
            "auto" if env::var_os("UPSTART_JOB").is_some() => "upstart",
            "auto" if env::var_os("NOTIFY_SOCKET").is_some() => "systemd",
            other => other,
        };
        let manager = match wanted {
            "upstart" if env::var_os("UPSTART_JOB").is_none() => {
                tracing::warn!("upstart supervision requested, but UPSTART_JOB not found!");
                None
            }
            "upstart" => Some(Manager::Upstart),
            "systemd" => {
                let found = Systemd::from_environment();
                found
                    .inspect_err(|error| tracing::warn!("systemd supervision error: {error}"))
                    .ok()
                    .map(Manager::Systemd)
            }
            _ => None,
        };
        Self { manager }
    }

    /// Whether there is one: the server stays in the foreground then.
    pub fn is_there(&self) -> bool {
        self.manager.is_some()
    }

    /// The server starts: upstart waits for it to stop itself once, and wakes it.
    pub fn starting(&self) {
        match &self.manager {
            Some(Manager::Upstart) => {
                tracing::info!("supervised by upstart, will stop to signal readiness.");
                // It cannot be refused: the process is our own.
                let _ = kill_process(Pid::from_raw(process::id() as i32).unwrap_or(Pid::INIT), Signal::STOP);
            }
            Some(Manager::Systemd(_)) => {
                self.say("STATUS=Redis is loading...\n");
                tracing::info!(
                    "Supervised by systemd. Please make sure you set appropriate values for TimeoutStartSec and TimeoutStopSec in \
                     your service unit."
                );
            }
            None => {}
        }
    }

    /// How far the load is, in percent. A start that takes longer than systemd allows may take longer still.
    pub fn loading(&self, percent: f64) {
        self.say(&format!("STATUS=Redis is loading: {percent:.2}%\nEXTEND_TIMEOUT_USEC={EXTENSION}\n"));
    }

    /// The server serves, or serves again.
    pub fn ready(&self, status: &str) {
        self.say(&format!("STATUS={status}\nREADY=1\n"));
    }

    /// Another state than ready, in words for people.
    pub fn status(&self, status: &str) {
        self.say(&format!("STATUS={status}\n"));
    }

    /// The configuration is about to be read again; [`Supervisor::ready`] follows.
    pub fn reloading(&self) {
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", monotonic_micros()));
    }

    /// The server ends, whatever comes.
    pub fn stopping(&self) {
        self.say("STOPPING=1\n");
    }

    /// The server is alive. The thread that serves clients says so: it is silent when it hangs.
    pub fn keep_alive(&self) {
        let Some(Manager::Systemd(systemd)) = &self.manager else { return };
        let Some(watchdog) = systemd.watchdog else { return };
        let now = monotonic_micros();
        // Twice as often as it must, as sd_watchdog_enabled(3) recommends.
        if now.saturating_sub(systemd.kept_alive.load(Relaxed)) >= watchdog.as_micros() as u64 / 2 {
            systemd.kept_alive.store(now, Relaxed);
            self.say("WATCHDOG=1\n");
        }
    }

    fn say(&self, message: &str) {
        if let Some(Manager::Systemd(systemd)) = &self.manager
            && let Err(error) = systemd.socket.send_to_addr(message.as_bytes(), &systemd.address)
        {
            tracing::warn!("systemd supervision error: sd_notify: {error}");
        }
    }
}

impl Systemd {
    fn from_environment() -> io::Result<Self> {
        let path = env::var_os("NOTIFY_SOCKET").ok_or_else(|| io::Error::other("NOTIFY_SOCKET not found!"))?;
        let interval = |text: String| text.parse().ok().map(Duration::from_micros);
        // The variable may be meant for another process, whose environment this one has inherited.
        let is_ours = env::var("WATCHDOG_PID").map_or(true, |pid| pid == process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| is_ours).and_then(interval);
        let (socket, address) = (UnixDatagram::unbound()?, address(&path)?);
        Ok(Self { socket, address, watchdog, kept_alive: AtomicU64::new(0) })
    }
}

/// The monotonic clock, in microseconds.
fn monotonic_micros() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

/// The address of a socket in the file system, or behind `@` an abstract one.
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(path),
        _ => Err(io::Error::other(format!("NOTIFY_SOCKET {} is neither a path nor @ and a name", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_files_or_abstract() {
        assert!(address(OsStr::new("/run/systemd/notify")).unwrap().as_pathname().is_some());
        assert_eq!(address(OsStr::new("@name")).unwrap().as_abstract_name(), Some(&b"name"[..]));
        for wrong in ["", "name", "vsock:2:3"] {
            assert!(address(OsStr::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unsupervised_server_sends_no_notifications() {
        let nobody = Supervisor::detect("no");
        assert!(!nobody.is_there());
        nobody.starting();
        nobody.ready("ready");
        nobody.keep_alive();
    }
}
