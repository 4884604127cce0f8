//! The server on the runtime that all our servers share.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use axum::Router;
use server_runtime::{Bound, Connection, Error, Handle, Running, Service, Shutdown};

use super::app::{App, Rules};
use super::conn::{self, Carried};
use super::exchange::Routed;
use super::http3::{self, Gate};
use super::stats::Stats;
use super::worker::{Settings, Worker};
use crate::h1;
use crate::options::{Engine, Options};

/// Bounds of the durations in the metrics, in seconds: from the time of a handler without I/O to one beyond any
/// client's patience.
const DURATIONS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 10.0];

/// The answer to a connection beyond the limit.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 21\r\nretry-after: 1\r\nconnection: close\r\n\r\ntoo many connections\n";

/// Serves the router on threads of its own until the handle is triggered; returns when it is ready.
///
/// # Errors
/// When a place cannot be listened on, a certificate does not load, a thread cannot be made, or HTTP/3 is wanted where it is not
/// built in or has no place.
pub fn serve(router: Router, options: Options) -> Result<Running, Error> {
    let name = "http_request_duration_seconds";
    let durations = options.runtime.metrics.histogram(name, "Time until the router's response.", &[], &DURATIONS);
    let rules = Rules::new(&options);
    start(options, rules, move |worker| Routed {
        worker: Rc::clone(worker),
        router: RefCell::new(router.clone()),
        durations: durations.clone(),
    })
}

/// The same for any application; `app` makes that of each worker, on its thread.
///
/// # Errors
/// As [`serve`].
pub fn start<A: App>(
    mut options: Options,
    rules: Rules,
    app: impl Fn(&Rc<Worker>) -> A + Send + Sync + 'static,
) -> Result<Running, Error> {
    options.runtime.offer(if rules.http1 { &[b"h2", b"http/1.1", b"http/1.0"] } else { &[b"h2"] });
    options.limits.headers = options.limits.headers.min(h1::MAX_HEADERS);
    let runtime = options.runtime.clone();
    let workers = match runtime.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let stats = std::iter::repeat_with(Stats::default).take(workers).collect();
    let metrics = runtime.metrics.clone();
    let bound = Bound::new(runtime)?;
    let gate = http3::open(&options, &bound, workers)?;
    let alt_svc = gate.as_ref().map(Gate::alt_svc);
    let settings = Arc::new(Settings { options, rules, stats, alt_svc });
    let figures = Arc::clone(&settings);
    metrics.collect(move |out| (figures.rules.figures)(&figures.stats, out));
    bound.start(Arc::new(Server { app, settings, gate }))
}

struct Server<F> {
    app: F,
    settings: Arc<Settings>,
    /// The sockets of HTTP/3, if it is served.
    gate: Option<Gate>,
}

impl<A: App, F: Fn(&Rc<Worker>) -> A + Send + Sync + 'static> Service for Server<F> {
    type Worker = (Rc<Worker>, Rc<A>);
    type Carried = Carried;

    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker {
        let worker = Rc::new(Worker::new(index, &self.settings));
        let app = Rc::new((self.app)(&worker));
        (worker, app)
    }

    fn starting(&self, handle: &Handle) {
        if let Some(gate) = &self.gate {
            gate.starting(handle);
        }
    }

    fn started(self: &Arc<Self>, on: &Rc<Self::Worker>, shutdown: &Shutdown) -> io::Result<()> {
        self.gate.as_ref().map_or(Ok(()), |gate| gate.serve(&on.1, &on.0, shutdown))
    }

    /// Connections whose requests are answered without the router gather: nothing holds up the worker that they share.
    fn moves(&self) -> bool {
        let options = &self.settings.options;
        options.engine == Engine::Serve && (!options.instants.is_empty() || options.later.is_some())
    }

    fn serve(
        self: Arc<Self>,
        on: Rc<Self::Worker>,
        connection: Connection<Carried>,
    ) -> impl Future<Output = ()> + 'static {
        conn::serve(Rc::clone(&on.1), Rc::clone(&on.0), connection)
    }

    fn refusal(&self) -> &[u8] {
        if self.settings.rules.http1 { REFUSAL } else { &[] }
    }
}
