//! Starting the server on the runtime that all our servers share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use server_runtime::metrics::Registry;
use server_runtime::{Bound, Connection, Handle, Listen, Options, Running, Service, Signals};

use super::signals;
use super::supervise::{RESTART_DELAY, supervise};
use super::{bus, conn, crash, cron, housekeeping};
use crate::clients::acl;
use crate::commands::TABLE;
use crate::config::tls::{self, TlsError};
use crate::config::{Config, settings};
use crate::exec::aof;
use crate::exec::core::{CommandTable, Instance, Worker};
use crate::exec::gate::Still;
use crate::exec::run::session::ConnectedClient;
use crate::exec::snapshot::{self, LoadError};
use crate::observe::memory;
use crate::process::Process;
use crate::threads::{self, OnPanic};

/// The service behind every connection.
pub struct Server {
    instance: Arc<Instance>,
    refusal: String,
    /// Those that end it, until it serves.
    signals: Mutex<Option<Signals>>,
}

impl Server {
    /// The state that its workers share.
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
    const OWN_LOOP: bool = true;

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

    fn moves(&self) -> bool {
        true
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
        let signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(signals) = signals {
            signals::obey(signals, &self.instance, handle);
        }
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
    /// The files cannot be loaded, for this reason.
    Load(String),
    /// It cannot be the node of a cluster that it is to be.
    Bus(String),
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
            Self::Load(why) | Self::Bus(why) => f.write_str(why),
            Self::Runtime(error @ server_runtime::Error::Listen { .. }) => {
                write!(f, "Failed listening on port: {error}")
            }
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

/// Starts a server with this configuration; it runs on threads of its own until its handle is triggered.
///
/// It has what its snapshot or its append-only file has, and writes others when the configuration says so. From its first connection
/// on, `signals` end it in good order. While it loads data that takes long (`loading-process-events-interval-bytes`), it
/// listens and tells clients LOADING: `instance.loading.`[`wait`] tells when it is ready, or that it never will be, and must be ended
/// then. `process` is the process, where the server is the only thing in it.
///
/// # Errors
/// [`StartError`]: a place to listen that cannot be had, TLS files that cannot be used, files that cannot be looked at.
///
/// [`wait`]: crate::exec::core::loading::Loading::wait
pub fn start(
    config: Config,
    signals: Option<Signals>,
    process: Option<Process>,
) -> Result<(Running, Arc<Instance>), StartError> {
    let places = places(&config)?;
    let prepared = Prepared::new(places, config, &TABLE)?;
    let instance = Arc::clone(&prepared.instance);
    instance.snapshots.make_automatic();
    if let Some(process) = process {
        instance.own_process(process);
        show(&instance);
    }
    if let Err(error) = instance.set_oom_score() {
        tracing::warn!("oom-score-adj cannot be set: {error}");
    }
    let config = &instance.config;
    let size = if config.is_on(settings::APPENDONLY) { aof::size(config) } else { snapshot::size(config) };
    // As in the genuine server, clients are not told LOADING for little.
    if size < config.uint(settings::LOADING_PROCESS_EVENTS_INTERVAL_BYTES) {
        instance.loading.begin_again(size);
        load(&instance).map_err(StartError::Load)?;
        instance.replication.begin(&instance, &Still::before_service(&instance.exclusive));
        return prepared.serve(signals);
    }
    instance.exclusive.begin_loading();
    instance.loading.begin();
    instance.loading.expect(size);
    let (running, instance) = prepared.serve(signals)?;
    let loaded = Arc::clone(&instance);
    let loader = threads::spawn("load", OnPanic::EndProcess, move || load_while_serving(&loaded));
    loader.map_err(|error| StartError::Load(error.to_string()))?;
    Ok((running, instance))
}

/// Makes the process known to the system before the server answers its first client: by its title, and by a report should it crash.
fn show(instance: &Arc<Instance>) {
    if let Some(title) = instance.process().and_then(|process| process.title.as_ref()) {
        title.refresh(&instance.config);
    }
    crash::leave_reports(instance);
}

fn load_while_serving(instance: &Arc<Instance>) {
    let result = catch_unwind(AssertUnwindSafe(|| load(instance)));
    let result = result.unwrap_or_else(|_| Err("Fatal error loading the DB: a panic. Exiting.".to_owned()));
    if instance.is_ending() {
        return instance.loading.give_up();
    }
    if result.is_ok() {
        instance.replication.begin(instance, &Still::before_service(&instance.exclusive));
        instance.exclusive.end_loading();
    }
    instance.loading.end(result);
}

fn load(instance: &Arc<Instance>) -> Result<(), String> {
    load_files(instance)?;
    if instance.cluster.is_enabled() { instance.cluster.data_loaded(instance) } else { Ok(()) }
}

fn load_files(instance: &Arc<Instance>) -> Result<(), String> {
    if instance.config.is_on(settings::APPENDONLY) {
        return aof::start(instance).map_err(|error| error.to_string());
    }
    snapshot::load_at_start(instance).map_err(|error| match error {
        LoadError::Io(_) => format!("Fatal error loading the DB: {error}. Exiting."),
        _ => {
            format!("Fatal error loading the DB: {error}. Terminating server after rdb file reading failure. Exiting.")
        }
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
    let prepared = Prepared::new(places, config, commands)?;
    if prepared.instance.cluster.is_enabled() {
        prepared.instance.cluster.data_loaded(&prepared.instance).map_err(StartError::Bus)?;
    }
    prepared.serve(None)
}

/// A server that has its places, and does not serve yet.
struct Prepared {
    bound: Bound,
    /// Where other nodes of its cluster find it.
    bus: Vec<TcpListener>,
    metrics: Registry,
    instance: Arc<Instance>,
}

impl Prepared {
    fn new(places: Vec<Listen>, config: Config, commands: &'static CommandTable) -> Result<Self, StartError> {
        let bus = match config.is_on(settings::CLUSTER_ENABLED) {
            true => bus::listen(&config, &places).map_err(StartError::Bus)?,
            false => Vec::new(),
        };
        let options = options(places, &config)?;
        let metrics = options.metrics.clone();
        let port = config.int(settings::PORT);
        let mode = if config.is_on(settings::CLUSTER_ENABLED) { "cluster" } else { "standalone" };
        let bound = Bound::new(options).map_err(StartError::Runtime)?;
        tracing::info!("Running mode={mode}, port={port}, PID: {}", std::process::id());
        tracing::info!("Server initialized");
        let instance = Arc::new(Instance::try_new(Arc::new(config), commands).map_err(StartError::Users)?);
        if instance.cluster.is_enabled() {
            instance.cluster.begin(&instance).map_err(StartError::Bus)?;
        }
        Ok(Self { bound, bus, metrics, instance })
    }

    fn serve(self, signals: Option<Signals>) -> Result<(Running, Arc<Instance>), StartError> {
        let Self { bound, bus, metrics, instance } = self;
        let figures = Arc::clone(&instance);
        metrics.collect(move |out| super::metrics::render(&figures, out));
        let server = Arc::new(Server {
            instance: Arc::clone(&instance),
            refusal: conn::refusal(),
            signals: Mutex::new(signals),
        });
        let running = bound.start(server).map_err(StartError::Runtime)?;
        if instance.cluster.is_enabled() {
            bus::start(&instance, bus).map_err(|error| StartError::Bus(error.to_string()))?;
        }
        instance.startup_memory.store(memory::used_here(), Relaxed);
        Ok((running, instance))
    }
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
        // See `signals::obey`: in another program's process, its signals are that program's.
        hangup_reloads: false,
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
