//! The server on the runtime that all our servers share.

use std::rc::Rc;
use std::sync::Arc;

use server_runtime::{Connection, Error, Running, Service};

use super::conn;
use super::connect;
use super::stats::{self, Stats};
use super::worker::{Shared, Worker};
use crate::options::Options;
use crate::routes::Routes;
use crate::{health, reflection};

/// Serves the routes on threads of its own until the handle is triggered; returns when it is ready.
///
/// # Errors
/// When a place cannot be listened on, a certificate does not load, a descriptor set is none, or a thread cannot be made.
pub fn serve(routes: Routes, mut options: Options) -> Result<Running, Error> {
    // HTTP/1.1 is for clients that cannot do HTTP/2.
    options.runtime.offer(if options.speaks_http1() { &[b"h2", b"http/1.1", b"http/1.0"] } else { &[b"h2"] });
    let (routes, health) = if options.health { health::add(routes) } else { (routes, None) };
    let routes = reflection::add(routes, &options.descriptors)?;
    let definitions = options.connect.then(|| connect::definitions(&options.descriptors)).transpose()?;
    options.timeouts = options.timeouts.bounded();
    let runtime = options.runtime.clone();
    let workers = match runtime.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let stats = std::iter::repeat_with(Stats::default).take(workers).collect();
    let shared = Arc::new(Shared { options, stats, health, definitions });
    let figures = Arc::clone(&shared);
    runtime.metrics.collect(move |out| stats::render(&figures.stats, out));
    server_runtime::start(runtime, Arc::new(Server { routes, shared }))
}

struct Server {
    routes: Routes,
    shared: Arc<Shared>,
}

impl Service for Server {
    type Worker = Worker;
    type Carried = ();

    fn worker(self: &Arc<Self>, index: usize) -> Worker {
        Worker::new(index, &self.shared, self.routes.clone())
    }

    fn serve(self: Arc<Self>, worker: Rc<Worker>, connection: Connection) -> impl Future<Output = ()> + 'static {
        worker.start(&connection.shutdown);
        conn::serve(worker, connection)
    }
}
