//! Starting a server, and waiting for its end.

use std::fmt;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_local;
use tracing::{error, info};

use crate::accepted::{Arriving, Routes};
use crate::balance;
use crate::counters::Counters;
use crate::error::Error;
use crate::event_loop::Work;
use crate::files;
use crate::handle::Handle;
use crate::held_up;
use crate::listen::{Dealer, Listener};
use crate::metrics::Registry;
use crate::options::{Listen, Options};
use crate::pin::Home;
use crate::scrape;
use crate::shutdown::{Shutdown, Stop};
use crate::socket;
use crate::timers::Timers;
use crate::tls::Tls;
use crate::workers::{self, Accepting, Service, Told, Worker};

/// Binds every place, starts the threads, and returns when all of them are ready to serve.
///
/// With TLS, SIGHUP reads the certificate again instead of ending the process.
///
/// # Errors
/// When a place cannot be listened on, a certificate does not load, or a thread cannot be made; nothing stays behind.
pub fn start<S: Service>(options: Options, service: Arc<S>) -> Result<Running, Error> {
    Bound::new(options)?.start(service)
}

/// Places that are listened on: clients that connect wait until [`Bound::start`].
pub struct Bound {
    options: Options,
    tls: Option<Arc<Tls>>,
    listeners: Vec<Listener>,
    metrics: Option<socket2::Socket>,
}

impl Bound {
    /// Binds every place.
    ///
    /// # Errors
    /// When one cannot be listened on, or a certificate does not load; nothing stays behind.
    pub fn new(options: Options) -> Result<Self, Error> {
        if options.listen.is_empty() {
            return Err(Error::NowhereToListen);
        }
        let tls = match &options.rustls {
            Some(config) => Some(Arc::new(Tls::given(Arc::clone(config)))),
            None => options.tls.clone().map(Tls::load).transpose()?.map(Arc::new),
        };
        let listeners = options
            .listen
            .iter()
            .map(|place| Listener::bind(place, &options, tls.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let metrics = options.metrics_listen.map(|addr| socket::tcp(&Listen::Tcp(addr), addr, &options)).transpose()?;
        Ok(Self { options, tls, listeners, metrics })
    }

    /// UDP sockets at the address of each place with TLS, for protocols that bring their own, as HTTP/3 does by QUIC. Each place has
    /// `shares` sockets (1 to [`QUIC_SHARES_MAX`](crate::QUIC_SHARES_MAX)) on Linux, which gives a datagram to the socket that
    /// [`quic_share`](crate::quic_share) names; on other systems it has one.
    ///
    /// # Errors
    /// When one cannot be bound.
    pub fn udp_beside_tls(&self, shares: usize) -> Result<Vec<Vec<UdpSocket>>, Error> {
        let addrs = self.listeners.iter().filter(|listener| listener.is_tls()).filter_map(Listener::local_addr);
        addrs.map(|addr| socket::udp(addr, shares, &self.options)).collect()
    }

    /// The configuration of TLS at the start, if there is one; [`Handle::tls_config`] gives the one in use later.
    pub fn tls_config(&self) -> Option<Arc<rustls::ServerConfig>> {
        Some(self.tls.as_ref()?.session().config)
    }

    /// Starts the threads, and returns when all of them are ready to serve.
    ///
    /// # Errors
    /// When one cannot be made; nothing stays behind.
    pub fn start<S: Service>(self, service: Arc<S>) -> Result<Running, Error> {
        let Self { options, tls, listeners, metrics } = self;
        let local_addrs = listeners.iter().filter_map(Listener::local_addr).collect();
        let metrics_addr = metrics.as_ref().and_then(|socket| socket.local_addr().ok()?.as_socket());

        let workers = worker_count(options.workers);
        let limit = files::connections_allowed(options.max_connections);
        files::make_room(limit);
        let counters = Arc::new(Counters::new(workers, limit, service.moves()));
        let handle = Handle { stop: Arc::new(Stop::new(workers)), counters, tls };
        service.starting(&handle);
        let mut running = Running { handle, threads: Vec::new(), local_addrs, metrics_addr };
        let timers = if S::OWN_LOOP { Some(running.start_timers()?) } else { None };
        let (routes, arrivals): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded_channel()).unzip();
        let routes = Routes(routes.into());
        let failed = |source| Error::Thread { name: BESIDE.to_owned(), source };
        let shares = listeners.iter().map(Listener::share).collect::<Result<_, _>>().map_err(failed)?;
        let told = Arc::new(Told(Arc::clone(&running.handle.stop)));
        let accepting = |listeners| Accepting { listeners, until: running.handle.closing(), told: Arc::clone(&told) };
        let (first, beside) = (accepting(listeners), accepting(shares));
        drop(told);
        let work = running.start_workers(&options, &service, first, (&routes, arrivals), timers.as_ref())?;
        drop(timers);
        // Read only when a scrape comes, so the figures cost nothing until then.
        let counters = Arc::clone(&running.handle.counters);
        options.metrics.collect(move |out| counters.render(out));
        running.start_beside(Beside {
            metrics: metrics.map(|socket| (socket.into(), options.metrics)),
            handle: running.handle.clone(),
            hangup_reloads: options.hangup_reloads,
            several: (workers > 1).then(|| Several {
                accepting: beside,
                routes,
                refusal: service.refusal().to_vec(),
                work,
                serial_nanos: service.moves().then(|| Box::new(move || service.serial_nanos()) as Box<_>),
            }),
        })?;
        Ok(running)
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("options", &self.options).finish_non_exhaustive()
    }
}

fn worker_count(wanted: usize) -> usize {
    match wanted {
        0 => thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}

/// A server that runs. Dropped, it begins to shut down and nobody waits for it; see [`Running::wait`].
#[must_use = "a server that is dropped shuts down"]
pub struct Running {
    handle: Handle,
    threads: Vec<JoinHandle<bool>>,
    local_addrs: Vec<SocketAddr>,
    metrics_addr: Option<SocketAddr>,
}

impl Running {
    /// The addresses listened on, in the order of [`Options::listen`] without its Unix sockets; port 0 is resolved.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// The address of the metrics endpoint, if there is one.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// A handle for other threads.
    pub fn shutdown_handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.handle.connections()
    }

    /// See [`Handle::set_max_connections`].
    pub fn set_max_connections(&self, limit: usize) -> usize {
        self.handle.set_max_connections(limit)
    }

    /// Waits until the server has ended, which somebody else has to bring about: [`Handle::trigger`],
    /// [`shutdown_on_signals`](crate::shutdown_on_signals). Tells whether connections were still open at the end of the
    /// drain and were cut.
    pub fn wait(mut self) -> bool {
        self.join()
    }

    fn join(&mut self) -> bool {
        let mut cut = false;
        for thread in self.threads.drain(..) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            match thread.join() {
                Ok(missed) => cut |= missed,
                Err(_) => error!("the thread {name} panicked"),
            }
        }
        cut
    }

    /// Starts the workers, of which the first accepts; connections come to each by its end of the `arrivals`.
    fn start_workers<S: Service>(
        &mut self,
        options: &Options,
        service: &Arc<S>,
        first: Accepting,
        (routes, arrivals): (&Routes<S::Carried>, Vec<Arriving<S::Carried>>),
        timers: Option<&Timers>,
    ) -> Result<Vec<Work>, Error> {
        let mut ready = Vec::new();
        let mut accepting = Some(first);
        let Stop { workers, now, .. } = &*self.handle.stop;
        for ((index, shutdown), arrivals) in workers.iter().enumerate().zip(arrivals) {
            let (tell, told) = sync_channel(1);
            let worker = Worker {
                index,
                home: options.pin_workers.then(|| Home::of(index, workers.len())).flatten(),
                service: Arc::clone(service),
                routes: routes.clone(),
                counters: Arc::clone(&self.handle.counters),
                shutdown: shutdown.clone(),
                now: now.clone(),
                drain: options.drain,
                timers: timers.cloned(),
            };
            let name = format!("worker-{index}");
            let accepting = accepting.take();
            self.threads.push(spawn(&name, move || worker.run(accepting, arrivals, tell))?);
            ready.push((name, told));
        }
        ready.into_iter().map(|(name, told)| await_ready(name, &told)).collect()
    }

    /// Starts the thread that keeps time for workers who do not; it ends behind the last of them.
    fn start_timers(&mut self) -> Result<Timers, Error> {
        let name = "timers";
        let (tell, told) = sync_channel(1);
        let keep = move || {
            Timers::keep(&tell);
            false
        };
        self.threads.push(spawn(name, keep)?);
        await_ready(name.to_owned(), &told)
    }

    /// Starts the thread for what goes on beside the workers, if anything does.
    fn start_beside<C: Send + 'static>(&mut self, beside: Beside<C>) -> Result<(), Error> {
        if beside.metrics.is_none() && beside.handle.tls.is_none() && beside.several.is_none() {
            return Ok(());
        }
        let (tell, told) = sync_channel(1);
        self.threads.push(spawn(BESIDE, move || beside.run(tell))?);
        await_ready(BESIDE.to_owned(), &told)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.trigger();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("local_addrs", &self.local_addrs)
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

fn spawn(name: &str, run: impl FnOnce() -> bool + Send + 'static) -> Result<JoinHandle<bool>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map_err(|source| Error::Thread { name: name.to_owned(), source })
}

fn await_ready<T>(name: String, told: &Receiver<io::Result<T>>) -> Result<T, Error> {
    let panicked = || Err(io::Error::other("it ended before it was ready"));
    told.recv().unwrap_or_else(|_| panicked()).map_err(|source| Error::Thread { name, source })
}

/// The thread for what goes on beside the workers.
const BESIDE: &str = "beside";

/// The work of that thread: scrapes, the certificate's SIGHUP, and the coordination of several workers.
struct Beside<C> {
    metrics: Option<(std::net::TcpListener, Registry)>,
    handle: Handle,
    hangup_reloads: bool,
    several: Option<Several<C>>,
}

/// The state for the coordination of several workers.
struct Several<C> {
    /// For the time that the worker who accepts is held up.
    accepting: Accepting,
    routes: Routes<C>,
    refusal: Vec<u8>,
    /// How busy the workers are.
    work: Vec<Work>,
    /// See [`Service::serial_nanos`]; where connections move.
    serial_nanos: Option<Box<dyn Fn() -> u64 + Send>>,
}

impl<C> Beside<C> {
    fn run(self, ready: SyncSender<io::Result<()>>) -> bool {
        let runtime = match workers::runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                // The starter waits for this line; if it is gone, nobody is left to be told.
                let _ = ready.send(Err(error));
                return false;
            }
        };
        runtime.block_on(self.until_shutdown(ready));
        false
    }

    async fn until_shutdown(self, ready: SyncSender<io::Result<()>>) {
        let Self { metrics, handle, hangup_reloads, several } = self;
        let shutdown = &handle.stop.accept;
        if let Err(error) = begin(metrics, handle.tls.as_ref().filter(|_| hangup_reloads), shutdown) {
            let _ = ready.send(Err(error));
            return;
        }
        let _ = ready.send(Ok(()));
        match several {
            Some(several) => several.see_to(&handle.counters).await,
            None => shutdown.triggered().await,
        }
    }
}

impl<C> Several<C> {
    /// Goes on until the shutdown.
    async fn see_to(self, counters: &Arc<Counters>) {
        let Self { accepting: Accepting { listeners, until, told }, routes, refusal, work, serial_nanos } = self;
        let dealer = Dealer { counters: Arc::clone(counters), here: None, routes, refusal: refusal.into() };
        let balance = async {
            match serial_nanos {
                Some(serial_nanos) => balance::watch(counters, &work, serial_nanos).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = held_up::watch(listeners, &work, dealer) => {}
            () = balance => {}
            () = until.triggered() => {}
        }
        // The listeners are closed by now.
        drop(told);
    }
}

/// Starts the metrics endpoint, and waiting for the certificate's SIGHUP.
fn begin(
    metrics: Option<(std::net::TcpListener, Registry)>,
    tls: Option<&Arc<Tls>>,
    shutdown: &Shutdown,
) -> io::Result<()> {
    if let Some((listener, registry)) = metrics {
        spawn_local(scrape::serve(tokio::net::TcpListener::from_std(listener)?, registry, shutdown.clone()));
    }
    if let Some(tls) = tls.map(Arc::clone) {
        let mut hangups = signal(SignalKind::hangup())?;
        spawn_local(async move {
            while hangups.recv().await.is_some() {
                info!("SIGHUP: reading the certificate again");
                tls.reload_or_log();
            }
        });
    }
    Ok(())
}
