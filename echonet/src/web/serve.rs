//! Connections of HTTP: so many at a time, each of which has to keep moving.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at a time; more wait to be taken.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, and a connection may wait for the next one.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest head.
const HEAD: usize = 16 * 1024;
/// When nothing can be taken any more, as without descriptors, how long to wait until it is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// Serves for ever.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        prepare(&stream);
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let _place = place;
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
            // The client sees a fault of its connection itself.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Sends data at once, and gives up a client that reads nothing.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        // Without it, a client that reads nothing holds a place for as long as it likes.
        let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(PATIENCE));
    }
}
