//! A server to test, and a client that says exactly what it is told.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{self, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Html;
use axum::routing::{any, get, post};
use http_body_util::BodyExt as _;
use http_server::{Options, routes, serve};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use server_runtime::{Error, Running, TlsOptions};

/// Longer than anything that goes well takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) addr: SocketAddr,
}

impl Server {
    /// The usual routes and those of [`router`].
    pub(crate) fn start() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: Options) -> Self {
        Self::try_with(options).unwrap()
    }

    pub(crate) fn try_with(options: Options) -> Result<Self, Error> {
        Self::try_serving(router(), options)
    }

    pub(crate) fn try_serving(routes: Router, options: Options) -> Result<Self, Error> {
        let running = serve(routes, options)?;
        let addr = running.local_addrs()[0];
        Ok(Self { running, addr })
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// A client that trusts this certificate and offers these protocols.
    pub(crate) fn tls_client(&self, certificate: &Path, alpn: &[&[u8]]) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), self.client().stream)
    }

    /// The answer to a GET, on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        let mut client = self.client();
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
        client.answer().unwrap()
    }
}

/// Two workers on a free port, everything on.
pub(crate) fn options() -> Options {
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    options.runtime.workers = 2;
    options.runtime.drain = Duration::from_secs(5);
    options.instants = routes::instants();
    options.health = true;
    options.compress = true;
    options
}

/// The same options with time-outs short enough for a test.
pub(crate) fn impatient(mut options: Options) -> Options {
    let short = Duration::from_millis(200);
    options.timeouts.idle = Duration::from_secs(20);
    options.timeouts.head = short;
    options.timeouts.body = short;
    options.timeouts.write = short;
    options
}

/// [`options`] with a self-signed certificate.
pub(crate) fn tls_options() -> Options {
    let folder = folder("tls");
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let mut options = options();
    options.runtime.listen = vec!["tls:127.0.0.1:0".parse().unwrap()];
    options.runtime.tls = Some(TlsOptions::new(cert, key));
    options
}

/// A fresh folder below the target folder.
pub(crate) fn folder(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Routes that tests need.
pub(crate) fn router() -> Router {
    routes::router()
        .route("/t/echo", post(|body: Bytes| async move { body }))
        .route("/t/mirror", post(|request: Request| async { Body::new(request.into_body()) }))
        .route("/t/block", get(block).layer(http_server::BlockingLayer))
        .route("/t/nap", get(nap))
        .route("/t/nap-apart", get(nap).layer(http_server::BlockingLayer))
        .route("/t/count", post(count))
        .route("/t/pieces", post(pieces))
        .route("/t/ignore", post(|| async { "ignored" }))
        .route("/t/stream", get(|| async { stream() }))
        .route("/t/big", get(|| async { vec![b'x'; 8 * 1024 * 1024] }))
        .route("/t/text", get(|| async { "hello world ".repeat(1000) }))
        .route("/t/h2spec", any(|_: Bytes| async { "hello world ".repeat(1000) }))
        .route("/t/endless", get(|| async { endless(|| ()) }))
        .route("/t/counted", get(counted))
        .route("/t/slow", get(slow))
        .route("/t/panic", get(panics))
        .route("/t/broken", get(|| async { broken() }))
        .route("/t/page", get(|| async { Html(include_str!("../clients/page.html")) }))
        .route("/t/headers", get(|request: Request| async move { format!("{:?}", request.headers()) }))
        .route("/t/client", get(client_of))
        .route("/t/nothing", get(|| async { axum::http::StatusCode::NO_CONTENT }))
        .route("/t/socket", get(|upgrade: axum::extract::WebSocketUpgrade| async { upgrade.on_upgrade(socket) }))
        .route("/t/flood", get(|upgrade: axum::extract::WebSocketUpgrade| async { upgrade.on_upgrade(flood) }))
}

async fn client_of(axum::Extension(client): axum::Extension<http_server::Client>) -> String {
    format!("{:?} {}", client.addr, client.is_secure)
}

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_millis(300)).await;
    "slow"
}

async fn panics() -> &'static str {
    panic!("as the test wants it")
}

/// Reads piece by piece; the number of bytes.
async fn count(request: Request) -> Result<String, String> {
    let (mut body, mut count) = (request.into_body(), 0);
    while let Some(frame) = body.frame().await {
        count += frame.map_err(|error| error.to_string())?.into_data().map_or(0, |data| data.len());
    }
    Ok(count.to_string())
}

/// Reads piece by piece; their number.
async fn pieces(request: Request) -> String {
    let (mut body, mut pieces) = (request.into_body(), 0);
    while let Some(Ok(_)) = body.frame().await {
        pieces += 1;
    }
    pieces.to_string()
}

/// A body of unknown length.
struct Pieces(Vec<Result<&'static str, std::io::Error>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        let piece = (!self.0.is_empty()).then(|| self.0.remove(0));
        std::task::Poll::Ready(
            piece.map(|piece| piece.map(|piece| http_body::Frame::data(Bytes::from_static(piece.as_bytes())))),
        )
    }
}

pub(crate) fn stream() -> Body {
    Body::new(Pieces(vec![Ok("one"), Ok(""), Ok("two")]))
}

fn broken() -> Body {
    Body::new(Pieces(vec![Ok("one"), Err(std::io::Error::other("as the test wants it"))]))
}

/// A body without end; `asked` is called when it is asked for something first.
fn endless(asked: impl FnOnce() + Send + 'static) -> Body {
    let mut asked = Some(asked);
    let pieces = std::iter::repeat_with(move || {
        if let Some(asked) = asked.take() {
            asked();
        }
        Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 65_536]))
    });
    Body::from_stream(tokio_stream::iter(pieces))
}

/// Bodies without end of one test: how many were made, and how many of them were asked for something.
pub(crate) static COUNTED: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

async fn counted() -> Body {
    let [made, asked] = &COUNTED;
    made.fetch_add(1, SeqCst);
    endless(|| {
        asked.fetch_add(1, SeqCst);
    })
}

async fn socket(mut socket: axum::extract::ws::WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, axum::extract::ws::Message::Text(_)) && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Handlers that block their thread, and whether they may go on.
pub(crate) static BLOCKED: (Mutex<(usize, bool)>, Condvar) = (Mutex::new((0, false)), Condvar::new());

async fn block() -> &'static str {
    let (state, changed) = &BLOCKED;
    let mut state = state.lock().unwrap();
    state.0 += 1;
    drop(changed.wait_while(state, |(_, may_go)| !*may_go).unwrap());
    "blocked"
}

/// Grows when a handler begins to nap, and when it has: odd in between.
pub(crate) static NAPS: AtomicUsize = AtomicUsize::new(0);

async fn nap() -> &'static str {
    NAPS.fetch_add(1, SeqCst);
    std::thread::sleep(Duration::from_millis(100));
    NAPS.fetch_add(1, SeqCst);
    "napped"
}

/// Sends for as long as it can.
async fn flood(mut socket: axum::extract::ws::WebSocket) {
    let message = "x".repeat(65536);
    while socket.send(message.as_str().into()).await.is_ok() {}
}

/// Waits for something that comes about by itself.
#[track_caller]
pub(crate) fn until(condition: impl Fn() -> bool) {
    for _ in 0..3000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come about");
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// Bytes behind the last answer.
    pub(crate) rest: Vec<u8>,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, rest: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Sends a GET and reads its answer.
    pub(crate) fn get(&mut self, path: &str) -> Option<Answer> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).ok()?;
        self.answer()
    }

    /// The next answer; `None` if the connection ends before it begins.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        self.answer_to("GET")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Option<Answer> {
        let end = loop {
            if let Some(end) = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if !self.read() {
                assert!(self.rest.is_empty(), "half a head: {}", String::from_utf8_lossy(&self.rest));
                return None;
            }
        };
        let head = String::from_utf8(self.rest.drain(..end + 4).take(end + 2).collect()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        if method == "HEAD" || matches!(status, 100..200 | 204 | 304) {
            return Some(answer);
        }
        if answer.header("transfer-encoding").is_some() {
            while let Some(size) = self.chunk(&mut answer.body) {
                if size == 0 {
                    return Some(answer);
                }
            }
            panic!("half a body: {answer:?}");
        }
        match answer.header("content-length").map(|length| length.parse::<usize>().unwrap()) {
            Some(length) => {
                while self.rest.len() < length {
                    assert!(self.read(), "half a body: {}", answer.head);
                }
                answer.body = self.rest.drain(..length).collect();
            }
            None => {
                while self.read() {}
                answer.body = std::mem::take(&mut self.rest);
            }
        }
        Some(answer)
    }

    fn chunk(&mut self, body: &mut Vec<u8>) -> Option<usize> {
        let line = loop {
            if let Some(end) = self.rest.windows(2).position(|bytes| bytes == b"\r\n") {
                break end;
            }
            if !self.read() {
                return None;
            }
        };
        let size = usize::from_str_radix(std::str::from_utf8(&self.rest[..line]).unwrap(), 16).unwrap();
        while self.rest.len() < line + 2 + size + 2 {
            if !self.read() {
                return None;
            }
        }
        body.extend_from_slice(&self.rest[line + 2..line + 2 + size]);
        self.rest.drain(..line + 2 + size + 2);
        Some(size)
    }

    /// Reads something; false at the end.
    pub(crate) fn read(&mut self) -> bool {
        let mut bytes = [0; 65536];
        match test_peers::read(&mut self.stream, &mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.rest.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the server has closed the connection, or does so now, without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.rest.is_empty() && !self.read()
    }

    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}
