//! The `/metrics` endpoint: just enough HTTP/1.1 for Prometheus, and nothing for anybody else to lean on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tracing::{debug, warn};

use crate::metrics::Registry;
use crate::shutdown::Shutdown;

/// The largest request head that is read. Prometheus sends some 300 bytes.
const REQUEST_MAX: u64 = 8 * 1024;

/// Scrapes served at one time; more wait.
const SCRAPES_MAX: usize = 8;

/// Rest after a failure to accept.
const BACK_OFF: Duration = Duration::from_secs(1);

/// How long a scrape may take, slow readers included.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the figures until the shutdown.
pub(crate) async fn serve(listener: TcpListener, registry: Registry, shutdown: Shutdown) {
    tokio::select! {
        () = serve_forever(listener, registry) => {}
        () = shutdown.triggered() => {}
    }
}

async fn serve_forever(listener: TcpListener, registry: Registry) {
    let places = Arc::new(Semaphore::new(SCRAPES_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                let registry = registry.clone();
                spawn_local(async move {
                    let _place = place;
                    match tokio::time::timeout(SCRAPE_TIMEOUT, scrape(stream, &registry)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => debug!("metrics: {peer}: {error}"),
                        Err(_) => debug!("metrics: {peer} took too long"),
                    }
                });
            }
            Err(error) => {
                warn!("metrics: cannot accept: {error}");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

async fn scrape(mut stream: TcpStream, registry: &Registry) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let (status, body, with_body) = answer(&head, registry);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if with_body {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await?;
    // Closing over unread bytes would reset the connection and could take the answer with it.
    let mut rest = stream.take(REQUEST_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The bytes up to the empty line that ends a head, or as many as are allowed, or as came.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(512);
    while head.len() < REQUEST_MAX as usize && !has_end(&head) {
        if stream.take(REQUEST_MAX - head.len() as u64).read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

fn has_end(head: &[u8]) -> bool {
    head.windows(4).any(|bytes| bytes == b"\r\n\r\n") || head.windows(2).any(|bytes| bytes == b"\n\n")
}

/// Status, body, and whether the body is sent.
fn answer(head: &[u8], registry: &Registry) -> (&'static str, String, bool) {
    if !has_end(head) {
        let status =
            if head.len() < REQUEST_MAX as usize { "400 Bad Request" } else { "431 Request Header Fields Too Large" };
        return (status, format!("{status}\n"), true);
    }
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with(b"HTTP/1.")) && words.next().is_none();
    let path = target.and_then(|target| target.split(|byte| *byte == b'?').next());
    let status = match (is_http, method, path) {
        (true, Some(b"GET"), Some(b"/metrics")) => return ("200 OK", registry.render(), true),
        (true, Some(b"HEAD"), Some(b"/metrics")) => return ("200 OK", registry.render(), false),
        (true, Some(b"GET" | b"HEAD"), Some(_)) => "404 Not Found",
        (true, Some(_), Some(_)) => "405 Method Not Allowed",
        _ => "400 Bad Request",
    };
    (status, format!("{status}\n"), method != Some(b"HEAD"))
}
