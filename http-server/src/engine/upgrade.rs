//! Requests for another protocol, WebSocket above all, by hyper: its hand-over of the stream is what axum's extractors
//! expect.

use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use server_runtime::{Place, Stream};

use super::exchange::Origin;
use super::h2::guarded;
use super::rewind::Rewind;
use super::worker::Worker;

/// Serves the one request in `read`, whose head is complete and was found good. If its upgrade is declined, the
/// connection ends after the answer.
pub(super) async fn serve(worker: Rc<Worker>, stream: Stream, place: Place, read: Bytes, origin: Origin) {
    worker.stats().upgrades.add(1);
    let peer = origin.peer.clone();
    let service = {
        let worker = Rc::clone(&worker);
        service_fn(move |request| {
            let response = guarded(Rc::clone(&worker), request, origin.clone());
            async move { Ok::<_, Infallible>(response.await) }
        })
    };
    let conn = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(Rewind::new(read, stream, place)), service)
        .with_upgrades();
    if let Err(error) = conn.await {
        tracing::debug!(%peer, "upgrade: {error}");
    }
}
