//! Replication, the replica's side: a thread that follows a primary.

mod apply;
mod handshake;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use apply::Applier;
use handshake::{Agreed, Body, Handshake, Introduction, Length, Refusal, say};

use super::{FailoverStage, State};
use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::exclusive::Exclusive;
use crate::exec::instance::Instance;
use crate::exec::snapshot;

/// How often it looks whether something else is to be done.
const TICK: Duration = Duration::from_millis(100);
/// How long it waits before it tries again.
const RETRY: Duration = Duration::from_secs(1);
/// How often the primary is told how far this is.
const ACKNOWLEDGE: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const READ: usize = 256 * 1024;

/// How far the link to the primary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkStage {
    /// It is to be made.
    Connect,
    /// They introduce themselves.
    Handshake,
    /// A snapshot comes.
    Sync,
    /// The stream comes.
    Connected,
}

impl LinkStage {
    /// As ROLE calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Handshake => "handshake",
            Self::Sync => "sync",
            Self::Connected => "connected",
        }
    }
}

/// Whom this server follows.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Where it is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How far the link is.
    pub stage: LinkStage,
    /// When it said something last, in milliseconds of Unix time.
    pub heard_at: u64,
    /// Since when there is no stream, in milliseconds of Unix time.
    pub down_since: u64,
    /// Bytes of the snapshot that comes, and how many have come.
    pub sync: (u64, u64),
    /// Which of those whom it has followed: a thread that follows another one ends.
    generation: u64,
}

/// Why a link has ended.
enum Ended {
    /// Somebody else is to be followed, or nobody, or the server ends.
    Obsolete,
    Lost(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl State {
    pub(super) fn primary_of(&mut self, generation: u64) -> Option<&mut Primary> {
        self.primary.as_mut().filter(|primary| primary.generation == generation)
    }
}

/// Begins to follow: a thread for it.
pub(super) fn begin(instance: &Arc<Instance>, generation: u64) {
    let link = Link { instance: Arc::clone(instance), generation };
    let spawned = thread::Builder::new().name("replica".to_owned()).spawn(move || link.run());
    if let Err(error) = spawned {
        tracing::error!("there is no thread to follow the primary: {error}");
    }
}

impl Primary {
    pub(super) fn new(host: String, port: u16, generation: u64, now: u64) -> Self {
        Self { host, port, stage: LinkStage::Connect, heard_at: now, down_since: now, sync: (0, 0), generation }
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
        if snapshot::stand_still(&self.instance, || {
            if self.is_obsolete() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        })
        .is_err()
        {
            return;
        }
        loop {
            // A command that panics has changed nothing.
            let ended = catch_unwind(AssertUnwindSafe(|| self.follow(&mut applier)));
            match ended.unwrap_or_else(|_| Ended::Lost("a command of its stream panicked".to_owned())) {
                Ended::Obsolete => return,
                Ended::Lost(why) => tracing::warn!("Connection with master lost: {why}"),
            }
            applier.cut();
            if self
                .with_primary(|primary| {
                    if primary.stage == LinkStage::Connected {
                        primary.down_since = now_ms();
                    }
                    primary.stage = LinkStage::Connect;
                })
                .is_none()
            {
                return;
            }
            let until = Instant::now() + RETRY;
            while Instant::now() < until {
                if self.is_obsolete() {
                    return;
                }
                thread::sleep(TICK);
            }
        }
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
        let (host, port) = self.with_primary(|primary| (primary.host.clone(), primary.port)).ok_or(Ended::Obsolete)?;
        tracing::info!("Connecting to MASTER {host}:{port}");
        let mut wire = Wire::connect(self, &host, port)?;
        self.set_stage(LinkStage::Handshake);
        let (agreed, rest) = self.agree(&mut wire)?;
        self.instance.replication.failover_succeeded(&self.instance);
        let rest = match agreed {
            Agreed::Continue { id } => {
                tracing::info!("Successful partial resynchronization with master.");
                self.instance.replication.go_on_as(&self.instance, id);
                rest
            }
            Agreed::Full { id, offset, length } => {
                tracing::info!("Full resync from master: {id}:{offset}");
                self.synchronize(&mut wire, applier, (&id, offset), length, &rest)?
            }
        };
        self.with_primary(|primary| primary.stage = LinkStage::Connected).ok_or(Ended::Obsolete)?;
        self.acknowledge(&mut wire)?;
        self.stream(&mut wire, applier, &rest)
    }

    fn agree(&self, wire: &mut Wire<'_>) -> Result<(Agreed, Vec<u8>), Ended> {
        let config = &self.instance.config;
        let announced = config.uint(settings::REPLICA_ANNOUNCE_PORT);
        let port = if announced > 0 { announced } else { config.uint(settings::PORT) };
        let introduction = Introduction {
            user: config.string(settings::MASTERUSER),
            password: config.string(settings::MASTERAUTH),
            port: u16::try_from(port).unwrap_or(0),
            address: config.string(settings::REPLICA_ANNOUNCE_IP),
            known: self.instance.replication.known(&self.instance),
            takes_over: self.instance.replication.failover() == FailoverStage::InProgress,
        };
        let mut output = Vec::new();
        let mut handshake = Handshake::new(introduction, &mut output);
        let mut buffer = vec![0; 4096];
        loop {
            wire.write(&output)?;
            output.clear();
            let count = wire.read(&mut buffer)?;
            match handshake.receive(&buffer[..count], &mut output) {
                Ok(None) => {}
                Ok(Some(agreed)) => return Ok((agreed, handshake.rest())),
                Err(refusal @ (Refusal::Later(_) | Refusal::Refused(_))) => {
                    if handshake.has_asked() {
                        let why = "Failover target rejected psync request";
                        self.instance.replication.abort_failover(&self.instance, why);
                    }
                    return Err(Ended::Lost(refusal.to_string()));
                }
            }
        }
    }

    /// Receives a snapshot, and takes it for all data. Returns what has come behind it.
    fn synchronize(
        &self,
        wire: &mut Wire<'_>,
        applier: &mut Applier,
        (id, offset): (&str, u64),
        length: Length,
        first: &[u8],
    ) -> Result<Vec<u8>, Ended> {
        self.with_primary(|primary| {
            primary.stage = LinkStage::Sync;
            primary.sync = (if let Length::Bytes(length) = length { length } else { 0 }, 0);
        });
        let folder = snapshot::path(&self.instance.config);
        let folder = folder.parent().unwrap_or_else(|| Path::new("."));
        let number = rustix::thread::gettid().as_raw_nonzero();
        let temporary = Temporary(folder.join(format!("temp-{}.{number}.rdb", now_ms() / 1000)));
        let mut file = File::create(&temporary.0)?;
        let mut body = Body::new(length);
        let mut buffer = vec![0; READ];
        let mut rest = body.receive(first, |bytes| file.write_all(bytes))?.map(<[u8]>::to_vec);
        while rest.is_none() {
            let count = wire.read(&mut buffer)?;
            rest = body.receive(&buffer[..count], |bytes| file.write_all(bytes))?.map(<[u8]>::to_vec);
            self.with_primary(|primary| primary.sync.1 = body.received()).ok_or(Ended::Obsolete)?;
        }
        drop(file);
        self.load(&temporary.0, id, offset)?;
        applier.begin();
        tracing::info!("MASTER <-> REPLICA sync: Finished with success");
        Ok(rest.unwrap_or_default())
    }

    /// Takes a snapshot for all data, alone with it.
    fn load(&self, path: &Path, id: &str, offset: u64) -> Result<(), Ended> {
        let instance = &self.instance;
        // What they write is of no use any more.
        instance.background.abort_and_wait();
        let keeps = instance.aof.is_on();
        if keeps {
            instance.aof.turn_off();
        }
        let alone = loop {
            if self.is_obsolete() {
                return Err(Ended::Obsolete);
            }
            match Exclusive::stop_after_slow_calls(instance) {
                Ok(alone) => break alone,
                Err(_) => thread::sleep(TICK),
            }
        };
        // As at the start, nobody is told LOADING for little.
        let size = path.metadata()?.len();
        let is_told = size >= instance.config.uint(settings::LOADING_PROCESS_EVENTS_INTERVAL_BYTES);
        instance.loading.begin_again(size);
        if is_told {
            instance.exclusive.begin_loading();
        }
        tracing::info!("MASTER <-> REPLICA sync: Flushing old data");
        tracing::info!("MASTER <-> REPLICA sync: Loading DB in memory");
        instance.replication.note_database(0);
        let loaded = snapshot::load_in_place(instance, path);
        match &loaded {
            Ok(()) => instance.replication.begin_as(instance, id, offset),
            // What there is belongs to no stream.
            Err(_) => {
                instance.replication.forget(instance);
                snapshot::empty(instance);
            }
        }
        drop(alone);
        // What is here when the server ends must not be saved for all that there was.
        if is_told && !instance.is_ending() {
            instance.exclusive.end_loading();
        }
        if keeps && let Err(error) = instance.aof.turn_on(instance) {
            tracing::error!("the append-only file cannot be begun anew: {error}");
        }
        loaded.map_err(|error| Ended::Lost(format!("the primary's snapshot cannot be loaded: {error}")))
    }

    fn apply(&self, applier: &mut Applier, bytes: &[u8]) -> Result<(), Ended> {
        let _units = self.instance.replication.between_units();
        if self.is_obsolete() {
            return Err(Ended::Obsolete);
        }
        applier.receive(bytes).map_err(Ended::Lost)
    }

    fn acknowledge(&self, wire: &mut Wire<'_>) -> Result<(), Ended> {
        let mut output = Vec::new();
        say(&mut output, &["REPLCONF", "ACK", &self.instance.journal.offset().to_string()]);
        wire.write(&output)
    }

    fn stream(
        &self,
        wire: &mut Wire<'_>,
        applier: &mut Applier,
        rest: &[u8],
    ) -> Result<std::convert::Infallible, Ended> {
        let mut buffer = vec![0; READ];
        let mut told = Instant::now();
        self.apply(applier, rest)?;
        loop {
            if let Some(count) = wire.try_read(&mut buffer)? {
                self.apply(applier, &buffer[..count])?;
            }
            if applier.is_asked() || told.elapsed() >= ACKNOWLEDGE {
                told = Instant::now();
                self.acknowledge(wire)?;
            }
        }
    }
}

/// A file that is removed when this is dropped.
struct Temporary(std::path::PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may not have been made; there is nobody to tell.
        let _ = fs::remove_file(&self.0);
    }
}

/// The connection to the primary; it is given up when it is silent for `repl-timeout`, or nobody wants it any more.
struct Wire<'l> {
    link: &'l Link,
    stream: TcpStream,
    heard: Instant,
}

impl<'l> Wire<'l> {
    fn connect(link: &'l Link, host: &str, port: u16) -> Result<Self, Ended> {
        let mut failure = None;
        for addr in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, link.timeout()) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(TICK))?;
                    stream.set_write_timeout(Some(link.timeout()))?;
                    return Ok(Self { link, stream, heard: Instant::now() });
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.map_or_else(|| Ended::Lost(format!("{host} has no address")), Ended::from))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Reads what there is; `None` if that is nothing for a moment.
    fn try_read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Ended> {
        if self.link.is_obsolete() {
            return Err(Ended::Obsolete);
        }
        match self.stream.read(buffer) {
            Ok(0) => Err(Ended::Lost("the primary has closed the connection".to_owned())),
            Ok(count) => {
                self.heard = Instant::now();
                self.link.with_primary(|primary| primary.heard_at = now_ms());
                Ok(Some(count))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) =>
            {
                if self.heard.elapsed() > self.link.timeout() {
                    return Err(Ended::Lost("MASTER timeout: no data nor PING received".to_owned()));
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
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
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.instance.config.uint(settings::REPL_TIMEOUT))
    }
}
