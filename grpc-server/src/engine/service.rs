//! The server on the runtime that all our servers share.

use std::rc::Rc;
use std::sync::Arc;

use server_runtime::{Connection, Error, Running, Service};

use super::conn;
use super::worker::Worker;
use crate::options::Options;
use crate::routes::Routes;

/// Serves the routes on threads of its own until the handle is triggered; returns when it is ready.
///
/// # Errors
/// When a place cannot be listened on, a certificate does not load, or a thread cannot be made.
pub fn serve(routes: Routes, mut options: Options) -> Result<Running, Error> {
    if let Some(tls) = &mut options.runtime.tls
        && tls.alpn.is_empty()
    {
        tls.alpn = vec![b"h2".to_vec()];
    }
    let runtime = options.runtime.clone();
    server_runtime::start(runtime, Arc::new(Server { routes, options: Arc::new(options) }))
}

struct Server {
    routes: Routes,
    options: Arc<Options>,
}

impl Service for Server {
    type Worker = Worker;
    type Carried = ();

    fn worker(self: &Arc<Self>, _index: usize) -> Worker {
        Worker::new(&self.options, self.routes.clone())
    }

    fn serve(self: Arc<Self>, worker: Rc<Worker>, connection: Connection) -> impl Future<Output = ()> + 'static {
        conn::serve(worker, connection)
    }
}
