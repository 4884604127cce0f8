//! Starting the server on the runtime that all our servers share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use server_runtime::{Connection, Handle, Listen, Options, Running, Service};

use super::supervise::{RESTART_DELAY, supervise};
use super::{conn, cron, housekeeping};
use crate::clients::acl;
use crate::commands::TABLE;
use crate::config::tls::{self, TlsError};
use crate::config::{Config, settings};
use crate::exec::CommandTable;
use crate::exec::instance::Instance;
use crate::exec::session::ConnectedClient;
use crate::exec::snapshot::{self, LoadError};
use crate::exec::worker::Worker;
use crate::observe::memory;
use crate::runtime::metrics;

/// The service behind every connection.
pub struct Server {
    instance: Arc<Instance>,
    refusal: String,
}

impl Server {
    /// What its workers share.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
}

impl Server {
    fn begin_periodic_work(&self) {
        let instance = Arc::clone(&self.instance);
        supervise("housekeeping", RESTART_DELAY, move || housekeeping::run(Arc::clone(&instance)));
        let cron = Rc::new(Worker::new(Arc::clone(&self.instance)));
        supervise("cron", RESTART_DELAY, move || cron::run(Rc::clone(&cron)));
        let evictor = Rc::new(Worker::new(Arc::clone(&self.instance)));
        supervise("eviction", RESTART_DELAY, move || cron::evict(Rc::clone(&evictor)));
    }
}

impl Service for Server {
    type Worker = Worker;
    type Carried = ConnectedClient;
    const MOVES: bool = true;

    fn worker(self: &Arc<Self>, index: usize) -> Worker {
        let worker = Worker::new(Arc::clone(&self.instance));
        worker.goes_on.set(true);
        let (instance, member) = (Arc::clone(&self.instance), self.instance.workers.join());
        supervise("turns", RESTART_DELAY, move || housekeeping::turns(Arc::clone(&instance), Arc::clone(&member)));
        if index == 0 {
            self.begin_periodic_work();
        }
        worker
    }

    fn serve(
        self: Arc<Self>,
        worker: Rc<Worker>,
        connection: Connection<ConnectedClient>,
    ) -> impl Future<Output = ()> + 'static {
        conn::serve(worker, connection)
    }

    fn serial_nanos(&self) -> u64 {
        self.instance.exclusive.alone_nanos()
    }

    fn refusal(&self) -> &[u8] {
        self.refusal.as_bytes()
    }

    fn starting(&self, handle: &Handle) {
        self.instance.set_runtime(handle.clone());
    }
}

/// Why the server could not start.
#[derive(Debug)]
pub enum StartError {
    /// A word of `bind` is no address.
    Bind(String),
    /// `metrics-listen` is no address with a port.
    Metrics(String),
    /// TLS cannot be served as the configuration says.
    Tls(TlsError),
    /// A user of the configuration, or of its file of users, cannot be made.
    Users(acl::LoadError),
    /// The snapshot cannot be loaded.
    Load(LoadError),
    /// The runtime refused.
    Runtime(server_runtime::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(word) => {
                write!(
                    f,
                    "bind: \"{word}\" is no address: expected an IPv4 or IPv6 address, * or ::*, or one with '-' before it"
                )
            }
            Self::Metrics(text) => {
                write!(f, "metrics-listen: \"{text}\" is no address with a port, like 127.0.0.1:9121")
            }
            Self::Tls(error) => error.fmt(f),
            Self::Users(error) => error.fmt(f),
            Self::Load(error) => write!(f, "Fatal error loading the DB: {error}. Exiting."),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

/// Starts a server with this configuration; it runs on threads of its own until its handle is triggered.
///
/// It has what its snapshot has, and writes others when the configuration says so; [`shutdown_on_signals`] has it save at
/// its end.
///
/// # Errors
/// [`StartError`]: a place to listen that cannot be had, TLS files that cannot be used, or a snapshot that cannot be loaded.
///
/// [`shutdown_on_signals`]: super::shutdown_on_signals
pub fn start(config: Config) -> Result<(Running, Arc<Instance>), StartError> {
    let places = places(&config)?;
    serve(places, config, &TABLE, |instance| {
        instance.snapshots.make_automatic();
        snapshot::load_at_start(instance).map_err(StartError::Load)
    })
}

/// Starts a server that listens at these places instead of those that the configuration names, port 0 being any free one,
/// and keeps its data in memory: it reads and writes snapshots only when a client says so.
///
/// # Errors
/// As [`start`].
pub fn start_at(places: Vec<Listen>, config: Config) -> Result<(Running, Arc<Instance>), StartError> {
    start_with(places, config, &TABLE)
}

/// [`start_at`], with these commands.
pub(super) fn start_with(
    places: Vec<Listen>,
    config: Config,
    commands: &'static CommandTable,
) -> Result<(Running, Arc<Instance>), StartError> {
    serve(places, config, commands, |_| Ok(()))
}

fn serve(
    places: Vec<Listen>,
    config: Config,
    commands: &'static CommandTable,
    load: impl FnOnce(&Arc<Instance>) -> Result<(), StartError>,
) -> Result<(Running, Arc<Instance>), StartError> {
    let options = options(places, &config)?;
    let instance = Arc::new(Instance::try_new(Arc::new(config), commands).map_err(StartError::Users)?);
    load(&instance)?;
    let figures = Arc::clone(&instance);
    options.metrics.collect(move |out| metrics::render(&figures, out));
    let server = Arc::new(Server { instance: Arc::clone(&instance), refusal: conn::refusal() });
    let running = server_runtime::start(options, server).map_err(StartError::Runtime)?;
    instance.startup_memory.store(memory::used_here(), Relaxed);
    Ok((running, instance))
}

fn options(places: Vec<Listen>, config: &Config) -> Result<Options, StartError> {
    let keepalive = config.uint(settings::TCP_KEEPALIVE);
    let metrics_listen = config.string(settings::METRICS_LISTEN);
    let metrics_listen = metrics_listen.map(|text| text.parse().map_err(|_| StartError::Metrics(text))).transpose()?;
    Ok(Options {
        listen: places,
        workers: config.size(settings::WORKERS),
        max_connections: config.size(settings::MAXCLIENTS),
        drain: Duration::from_secs(config.uint(settings::DRAIN_TIMEOUT)),
        backlog: u32::try_from(config.uint(settings::TCP_BACKLOG)).unwrap_or(u32::MAX),
        keepalive: (keepalive > 0).then(|| Duration::from_secs(keepalive)),
        tls: tls::options(config).map_err(StartError::Tls)?,
        metrics_listen,
        ..Options::default()
    })
}

fn places(config: &Config) -> Result<Vec<Listen>, StartError> {
    let mut places = Vec::new();
    let ports = [(settings::PORT, Listen::Tcp as fn(SocketAddr) -> Listen), (settings::TLS_PORT, Listen::Tls)];
    for (setting, place) in ports {
        let port = match u16::try_from(config.int(setting)) {
            // Port 0 means "none" in a configuration.
            Ok(0) | Err(_) => continue,
            Ok(port) => port,
        };
        for word in config.words(settings::BIND) {
            let word = String::from_utf8_lossy(&word).into_owned();
            if let Some(ip) = address(&word)? {
                places.push(place(SocketAddr::new(ip, port)));
            }
        }
    }
    if let Some(path) = config.string(settings::UNIXSOCKET) {
        let mode = config.uint(settings::UNIXSOCKETPERM);
        places.push(Listen::Unix { path: path.into(), mode: (mode > 0).then_some(mode as u32) });
    }
    Ok(places)
}

/// A word of `bind`: `-` before it means that a machine without this address is fine.
fn address(word: &str) -> Result<Option<IpAddr>, StartError> {
    let (optional, text) = word.strip_prefix('-').map_or((false, word), |rest| (true, rest));
    let ip = match text {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "::*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => text.parse().map_err(|_| StartError::Bind(word.to_owned()))?,
    };
    let there = !optional || std::net::TcpListener::bind(SocketAddr::new(ip, 0)).is_ok();
    Ok(there.then_some(ip))
}
