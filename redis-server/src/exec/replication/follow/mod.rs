//! Replication, the replica's side: a thread that follows a primary.

mod apply;
mod handshake;
mod snapshot;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::state::{FailoverStage, LinkStage, Primary};
use crate::clients::client::{ClientShared, flag};
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::core::peers::connect_from_source;
use crate::exec::core::transport::Transport;
use crate::exec::gate::stand_still;
use crate::exec::replication::state::RETRY;
use crate::threads::{self, OnPanic};
use apply::Applier;
use handshake::{Agreed, Handshake, Introduction, Refusal, say};
use snapshot::Incoming;

/// How often it looks whether something else is to be done.
const TICK: Duration = Duration::from_millis(100);
/// How often the primary is told how far this is.
const ACKNOWLEDGE: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const READ: usize = 256 * 1024;
/// Bytes of the stream that are held while clients are paused, about. The bytes behind them wait on the primary's side.
const HELD_MAX: usize = 16 * 1024 * 1024;

/// Why a link has ended.
enum Ended {
    /// The server is to follow another primary, or none, or ends.
    Obsolete,
    /// By a client, maybe in a transaction that does more.
    Killed,
    Lost(String),
    /// The primary has sent a snapshot that cannot be loaded.
    NotLoaded(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Begins to follow: a thread for it.
pub(super) fn begin(instance: &Arc<Instance>, generation: u64) {
    let link = Link { instance: Arc::clone(instance), generation };
    // A panic while it follows is caught there; elsewhere nobody would connect again.
    let spawned = threads::spawn("replica", OnPanic::EndProcess, move || link.run());
    if let Err(error) = spawned {
        tracing::error!("there is no thread to follow the primary: {error}");
    }
}

struct Link {
    instance: Arc<Instance>,
    generation: u64,
}

impl Link {
    fn run(self) {
        let mut applier = Applier::new(&self.instance);
        // Windows that began before this server followed anybody are over then.
        if !self.let_windows_end() {
            return;
        }
        loop {
            // A command that panics has changed nothing.
            let ended = catch_unwind(AssertUnwindSafe(|| self.follow(&mut applier)));
            let ended = ended.unwrap_or_else(|_| Ended::Lost("a command of its stream panicked".to_owned()));
            let pause = match &ended {
                Ended::Obsolete => return,
                Ended::Killed => {
                    tracing::warn!("Connection with master lost: a client has ended it");
                    RETRY
                }
                Ended::Lost(why) => {
                    tracing::warn!("Connection with master lost: {why}");
                    RETRY
                }
                Ended::NotLoaded(why) => self.note_failed_sync(why),
            };
            applier.cut();
            let was_connected = self.with_primary(|primary| {
                let was_connected = primary.stage == LinkStage::Connected;
                if was_connected {
                    primary.down_since = now_ms();
                }
                primary.stage = LinkStage::Connect;
                was_connected
            });
            let Some(was_connected) = was_connected else { return };
            if matches!(ended, Ended::Killed) && !self.let_windows_end() {
                return;
            }
            // A link that was up is likely to be up again at once.
            let until = Instant::now() + if was_connected { Duration::ZERO } else { pause };
            while Instant::now() < until {
                if self.is_obsolete() {
                    return;
                }
                thread::sleep(TICK);
            }
        }
    }

    /// Says that a snapshot could not be loaded; returns how long to wait for the next.
    fn note_failed_sync(&self, why: &str) -> Duration {
        let pause = self.with_primary(|primary| primary.failed_syncs.add(why, now_ms())).unwrap_or(RETRY);
        let keeps = self.instance.databases().iter().any(|database| !database.is_empty());
        let data = if keeps { "this replica keeps its old data" } else { "this replica has no data" };
        let seconds = pause.as_secs();
        tracing::error!("MASTER <-> REPLICA sync: {why}; {data}, and asks for another snapshot in {seconds} s");
        pause
    }

    /// Waits until all windows that have begun are over. Returns whether this is still the one to follow.
    fn let_windows_end(&self) -> bool {
        let is_wanted = || if self.is_obsolete() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
        stand_still(&self.instance.exclusive, is_wanted).is_ok()
    }

    /// Calls `work` with what is known of the primary, if it is still the one.
    fn with_primary<R>(&self, work: impl FnOnce(&mut Primary) -> R) -> Option<R> {
        self.instance.replication.state().primary_of(self.generation).map(work)
    }

    fn is_obsolete(&self) -> bool {
        self.instance.is_ending() || self.with_primary(|_| ()).is_none()
    }

    fn set_stage(&self, stage: LinkStage) {
        self.with_primary(|primary| primary.stage = stage);
    }

    /// Follows until the link ends.
    fn follow(&self, applier: &mut Applier) -> Ended {
        match self.try_follow(applier) {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    fn try_follow(&self, applier: &mut Applier) -> Result<std::convert::Infallible, Ended> {
        self.note_held(&[]);
        let (host, port) = self.with_primary(|primary| (primary.host.clone(), primary.port)).ok_or(Ended::Obsolete)?;
        tracing::info!("Connecting to MASTER {host}:{port}");
        let mut wire = Wire::connect(self, &host, port)?;
        self.set_stage(LinkStage::Handshake);
        let (agreed, rest) = self.agree(&mut wire)?;
        self.instance.replication.failover_succeeded(&self.instance);
        let rest = match agreed {
            Agreed::Continue { id } => {
                tracing::info!("Successful partial resynchronization with master.");
                if !self.instance.replication.go_on_as(&self.instance, id, self.generation) {
                    return Err(Ended::Obsolete);
                }
                rest
            }
            Agreed::Full { id, offset, length } => {
                tracing::info!("Full resync from master: {id}:{offset}");
                let rest = self.synchronize(&mut wire, &Incoming { id: &id, offset, length, first: &rest })?;
                applier.begin();
                tracing::info!("MASTER <-> REPLICA sync: Finished with success");
                rest
            }
        };
        self.with_primary(Primary::connected).ok_or(Ended::Obsolete)?;
        self.acknowledge(&mut wire)?;
        self.stream(&mut wire, applier, &rest)
    }

    fn agree(&self, wire: &mut Wire<'_>) -> Result<(Agreed, Vec<u8>), Ended> {
        let mut output = Vec::new();
        let mut handshake = Handshake::new(introduction(&self.instance), &mut output);
        let mut buffer = vec![0; 4096];
        loop {
            wire.write(&output)?;
            output.clear();
            let count = wire.read(&mut buffer)?;
            match handshake.receive(&buffer[..count], &mut output) {
                Ok(None) => {}
                Ok(Some(agreed)) => return Ok((agreed, handshake.rest())),
                Err(refusal @ (Refusal::Later(_) | Refusal::Refused(_))) => {
                    if handshake.has_asked()
                        && let Ok(still) = self.instance.stand_still()
                    {
                        let why = "Failover target rejected psync request";
                        self.instance.replication.abort_failover(&self.instance, why, &still);
                    }
                    return Err(Ended::Lost(refusal.to_string()));
                }
            }
        }
    }

    fn apply(&self, applier: &mut Applier, bytes: &[u8]) -> Result<(), Ended> {
        let _units = self.instance.exclusive.units.lock();
        if self.is_obsolete() {
            return Err(Ended::Obsolete);
        }
        applier.receive(bytes).map_err(Ended::Lost)?;
        // Must come before the primary is told how far this server is. The next report covers bytes that another thread is
        // still writing.
        let _ = self.instance.aof.holds(&self.instance);
        Ok(())
    }

    /// Says how far this server is; returns whether the disk has all of that too, where it keeps what it is told.
    fn acknowledge(&self, wire: &mut Wire<'_>) -> Result<bool, Ended> {
        let (offset, durable) = (self.instance.journal.offset(), self.instance.aof.durable());
        let mut output = Vec::new();
        match durable {
            Some(durable) => {
                say(&mut output, &["REPLCONF", "ACK", &offset.to_string(), "FACK", &durable.min(offset).to_string()])
            }
            None => say(&mut output, &["REPLCONF", "ACK", &offset.to_string()]),
        }
        wire.write(&output)?;
        Ok(durable.is_none_or(|durable| durable >= offset))
    }

    fn note_held(&self, held: &[u8]) {
        self.with_primary(|primary| primary.held = held.len() as u64);
    }

    fn stream(
        &self,
        wire: &mut Wire<'_>,
        applier: &mut Applier,
        rest: &[u8],
    ) -> Result<std::convert::Infallible, Ended> {
        let mut buffer = vec![0; READ];
        let mut told = Instant::now();
        // Up to where the disk must have what the primary has asked for.
        let mut owed: Option<u64> = None;
        // Bytes that have come while clients are paused.
        let mut held = rest.to_vec();
        loop {
            threads::panic_point();
            let is_paused = || self.instance.asked_pause(now_ms()).is_some();
            if !held.is_empty() && !is_paused() {
                self.apply(applier, &held)?;
                held = Vec::new();
                self.note_held(&held);
            }
            if held.len() >= HELD_MAX {
                thread::sleep(TICK);
            } else if let Some(count) = wire.try_read(&mut buffer)? {
                // The pause may have begun while nothing came.
                if !held.is_empty() || is_paused() {
                    held.extend_from_slice(&buffer[..count]);
                    self.note_held(&held);
                } else {
                    self.apply(applier, &buffer[..count])?;
                }
            }
            let is_paid = |owed: u64| self.instance.aof.durable().is_none_or(|durable| durable >= owed);
            let is_asked = applier.is_asked();
            if is_asked || owed.is_some_and(is_paid) || told.elapsed() >= ACKNOWLEDGE {
                told = Instant::now();
                let is_durable = self.acknowledge(wire)?;
                owed = if is_durable {
                    None
                } else if is_asked {
                    Some(self.instance.journal.offset())
                } else {
                    owed
                };
            }
        }
    }
}

/// This server's statements about itself.
fn introduction(instance: &Instance) -> Introduction {
    let config = &instance.config;
    let announced = config.uint(settings::REPLICA_ANNOUNCE_PORT);
    let own = if config.is_on(settings::TLS_REPLICATION) { settings::TLS_PORT } else { settings::PORT };
    let port = if announced > 0 { announced } else { config.uint(own) };
    Introduction {
        user: config.string(settings::MASTERUSER),
        password: config.string(settings::MASTERAUTH),
        port: u16::try_from(port).unwrap_or(0),
        address: config.string(settings::REPLICA_ANNOUNCE_IP),
        known: instance.replication.known(instance),
        takes_over: instance.replication.failover() == FailoverStage::InProgress,
    }
}

/// The primary as a client: others see it listed, and can end its connection.
struct Listed {
    instance: Arc<Instance>,
    client: Arc<ClientShared>,
    hang_up: Arc<HangUp>,
}

/// Ends the connection of a client that is killed, while what is read of it waits for others.
struct HangUp {
    client: Weak<ClientShared>,
    stream: TcpStream,
}

impl Wake for HangUp {
    fn wake(self: Arc<Self>) {
        if self.client.upgrade().is_some_and(|client| client.has_flag(flag::KILLED)) {
            // It may have ended by itself.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Listed {
    fn new(instance: &Arc<Instance>, stream: &TcpStream) -> io::Result<Self> {
        let text = |addr: io::Result<SocketAddr>| addr.map_or_else(|_| String::new(), |addr| addr.to_string());
        let id = instance.next_client_id();
        let (addr, laddr) = (text(stream.peer_addr()), text(stream.local_addr()));
        let client = Arc::new(ClientShared::new(id, addr, laddr, stream.as_raw_fd(), now_ms()));
        client.set_flag(flag::PRIMARY, true);
        let hang_up = Arc::new(HangUp { client: Arc::downgrade(&client), stream: stream.try_clone()? });
        instance.add_client(&client);
        Ok(Self { instance: Arc::clone(instance), client, hang_up })
    }

    fn is_killed(&self) -> bool {
        self.client.wake_by(&Waker::from(Arc::clone(&self.hang_up)));
        self.client.has_flag(flag::KILLED)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.instance.client_left(&self.client);
        // Others may still look at the client, which has the socket, too.
        let _ = self.hang_up.stream.shutdown(Shutdown::Both);
    }
}

/// The connection to the primary; it is given up when it is silent for `repl-timeout`, or nobody wants it any more.
struct Wire<'l> {
    link: &'l Link,
    stream: Transport,
    listed: Listed,
    heard: Instant,
}

impl<'l> Wire<'l> {
    fn connect(link: &'l Link, host: &str, port: u16) -> Result<Self, Ended> {
        let mut failure = None;
        for addr in (host, port).to_socket_addrs()? {
            match connect_from_source(&link.instance.config, addr, link.timeout()) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(link.timeout()))?;
                    stream.set_write_timeout(Some(link.timeout()))?;
                    let stream = Transport::of(stream, host, &link.instance.config)?;
                    stream.socket().set_read_timeout(Some(TICK))?;
                    let listed = Listed::new(&link.instance, stream.socket())?;
                    link.with_primary(|primary| primary.connection = Some(Arc::clone(&listed.client)));
                    return Ok(Self { link, stream, listed, heard: Instant::now() });
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.map_or_else(|| Ended::Lost(format!("{host} has no address")), Ended::from))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.stream.write_all(bytes).map_err(|error| self.lost(error.to_string()))
    }

    /// Why a connection has ended that does not work any more.
    fn lost(&self, why: String) -> Ended {
        if self.link.is_obsolete() {
            Ended::Obsolete
        } else if self.listed.is_killed() {
            Ended::Killed
        } else {
            Ended::Lost(why)
        }
    }

    /// Reads what there is; `None` if that is nothing for a moment.
    fn try_read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Ended> {
        if self.link.is_obsolete() {
            return Err(Ended::Obsolete);
        }
        if self.listed.is_killed() {
            return Err(Ended::Killed);
        }
        match self.stream.read(buffer) {
            Ok(0) => Err(self.lost("the primary has closed the connection".to_owned())),
            Ok(count) => {
                self.heard = Instant::now();
                self.link.instance.replication.figures.received.fetch_add(count as u64, Relaxed);
                let now = now_ms();
                self.listed.client.active_at.store(now, Relaxed);
                self.link.with_primary(|primary| primary.heard_at = now);
                Ok(Some(count))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) =>
            {
                if self.heard.elapsed() > self.link.timeout() {
                    return Err(Ended::Lost(self.link.silence().to_owned()));
                }
                Ok(None)
            }
            Err(error) => Err(self.lost(error.to_string())),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Ended> {
        loop {
            if let Some(count) = self.try_read(buffer)? {
                return Ok(count);
            }
        }
    }
}

impl Link {
    /// The error for a primary that has been silent for too long.
    fn silence(&self) -> &'static str {
        match self.with_primary(|primary| primary.stage) {
            Some(LinkStage::Connected) => "MASTER timeout: no data nor PING received...",
            Some(LinkStage::Sync) => "Timeout receiving bulk data from MASTER...",
            Some(LinkStage::Connect | LinkStage::Handshake) | None => "Timeout connecting to the MASTER...",
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.instance.config.uint(settings::REPL_TIMEOUT))
    }
}

#[cfg(test)]
pub(super) mod tests;
