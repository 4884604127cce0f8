//! The server on the runtime that all our servers share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use server_runtime::{Connection, Error, Running, Service};
use tower_service::Service as _;
use tracing::debug;

use crate::options::Options;
use crate::tuning;

/// Serves the router until its handle is triggered; returns when it is ready.
///
/// # Errors
/// When a place cannot be listened on, or a certificate does not load.
pub fn serve(router: Router, options: Options) -> Result<Running, Error> {
    server_runtime::start(options.runtime, Arc::new(Server { router }))
}

struct Server {
    router: Router,
}

/// What one worker has to itself.
struct Worker {
    router: RefCell<Router>,
}

impl Service for Server {
    type Worker = Worker;
    type Carried = ();

    fn worker(self: &Arc<Self>, _index: usize) -> Worker {
        Worker { router: RefCell::new(self.router.clone()) }
    }

    async fn serve(self: Arc<Self>, worker: Rc<Worker>, connection: Connection) {
        let Connection { stream, peer, shutdown, place, .. } = connection;
        let service = service_fn(|request| worker.router.borrow_mut().call(request));
        let mut conn = std::pin::pin!(
            http1::Builder::new()
                .pipeline_flush(tuning::PIPELINE_FLUSH)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
        );
        let ended = tokio::select! {
            ended = conn.as_mut() => ended,
            () = shutdown.triggered() => {
                conn.as_mut().graceful_shutdown();
                conn.await
            }
        };
        if let Err(error) = ended {
            debug!("{peer}: {error}");
        }
        drop(place);
    }
}
