//! HTTP/3: requests in good order, and attacks, frame by frame. A foreign client is in `clients`.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use bytes::Buf as _;
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use http::{Request, Response};
use http_server::{Options, serve};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ConnectionError, ReadError, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

mod asides;
mod bodies;
mod floods;

use crate::support::{PATIENCE, Server, router, tls_options, until};

const NO_ERROR: u32 = 0x100;
const FRAME_ERROR: u32 = 0x106;
const EXCESSIVE_LOAD: u32 = 0x107;
const REQUEST_CANCELLED: u32 = 0x10c;
const MESSAGE_ERROR: u32 = 0x10e;

/// A server of HTTP/3, and the certificate that its clients trust.
pub(crate) struct Peer {
    server: Server,
    certificate: PathBuf,
}

impl Peer {
    fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = tls_options();
        options.http3 = true;
        change(&mut options);
        Self::serving(router(), options)
    }

    /// A server of these routes.
    pub(crate) fn serving(routes: axum::Router, options: Options) -> Self {
        let certificate = options.runtime.tls.as_ref().unwrap().cert.clone();
        // The port is one that is free for TCP; another test's client may have it for UDP.
        let server = (0..4).find_map(|_| Server::try_serving(routes.clone(), options.clone()).ok());
        Self { server: server.unwrap_or_else(|| Server::try_serving(routes, options).unwrap()), certificate }
    }

    /// The configuration of a client; `h3` is the usual protocol.
    fn config(&self, alpn: &[u8], transport: TransportConfig) -> quinn::ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.certificate).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut tls = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![alpn.to_vec()];
        tls.enable_early_data = true;
        let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(Arc::new(transport));
        config
    }

    /// A connection of QUIC, of which nothing has been made yet.
    async fn raw(&self) -> Raw {
        self.raw_with(TransportConfig::default()).await
    }

    pub(crate) async fn raw_with(&self, transport: TransportConfig) -> Raw {
        self.raw_at(self.server.addr, transport).await
    }

    /// One by way of this address.
    async fn raw_at(&self, addr: SocketAddr, transport: TransportConfig) -> Raw {
        let endpoint = endpoint();
        let connecting = endpoint.connect_with(self.config(b"h3", transport), addr, "localhost");
        Raw { conn: connecting.unwrap().await.unwrap(), endpoint }
    }

    /// One that speaks HTTP/3.
    pub(crate) async fn client(&self) -> Client {
        Client::new(self.raw().await).await
    }

    fn metric(&self, name: &str) -> u64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse::<f64>().unwrap() as u64
    }

    fn metrics(&self) -> String {
        let addr = self.server.running.metrics_addr().unwrap();
        let mut client = crate::support::Client::connect(addr);
        client.send("GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        client.answer().unwrap().text().to_owned()
    }
}

fn endpoint() -> quinn::Endpoint {
    quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// A client that says exactly what it is told.
pub(crate) struct Raw {
    conn: quinn::Connection,
    endpoint: quinn::Endpoint,
}

impl Raw {
    /// Opens a request and sends this on it.
    pub(crate) async fn request(&self, bytes: &[u8]) -> (quinn::SendStream, quinn::RecvStream) {
        let (mut send, receive) = self.conn.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        (send, receive)
    }

    /// Asks for this; how the answer ends.
    async fn get(&self, path: &str) -> Result<Vec<u8>, u32> {
        let (mut send, mut receive) = self.request(&get_of(path, &[])).await;
        send.finish().unwrap();
        answer(&mut receive).await
    }

    /// Sends this on a control stream, as far as it is taken.
    async fn control(&self, bytes: &[u8]) -> quinn::SendStream {
        self.aside(&[&[0][..], &frame(4, b""), bytes].concat()).await
    }

    /// Sends this on a stream of one direction, as far as it is taken.
    async fn aside(&self, bytes: &[u8]) -> quinn::SendStream {
        let mut stream = self.conn.open_uni().await.unwrap();
        let _ = stream.write_all(bytes).await;
        stream
    }

    /// Ends the connection, and waits until the server has been told.
    async fn leave(self) {
        self.conn.close(VarInt::from_u32(NO_ERROR), b"");
        self.endpoint.wait_idle().await;
    }

    /// The code with which the server ends the connection.
    async fn closed(&self) -> u32 {
        match tokio::time::timeout(PATIENCE, self.conn.closed()).await.expect("the connection goes on") {
            ConnectionError::ApplicationClosed(close) => code(close.error_code),
            error => panic!("{error}"),
        }
    }
}

fn code(code: VarInt) -> u32 {
    u32::try_from(code.into_inner()).unwrap()
}

/// How an answer ends: with its bytes, or a code.
async fn answer(receive: &mut quinn::RecvStream) -> Result<Vec<u8>, u32> {
    let read = tokio::time::timeout(PATIENCE, receive.read_to_end(1 << 20)).await.expect("no answer");
    read.map_err(|error| match error {
        quinn::ReadToEndError::Read(ReadError::Reset(error)) => code(error),
        error => panic!("{error}"),
    })
}

/// A client in good order.
pub(crate) struct Client {
    raw: Raw,
    requests: SendRequest<OpenStreams, Bytes>,
}

impl Client {
    async fn new(raw: Raw) -> Self {
        let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(raw.conn.clone())).await.unwrap();
        tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
        Self { raw, requests }
    }

    pub(crate) async fn ask(
        &mut self,
        request: Request<()>,
        body: &[u8],
    ) -> Result<(Response<()>, Vec<u8>), h3::error::StreamError> {
        let mut stream = self.requests.send_request(request).await?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body)).await?;
        }
        stream.finish().await?;
        let response = stream.recv_response().await?;
        let mut all = Vec::new();
        while let Some(piece) = stream.recv_data().await? {
            all.extend_from_slice(piece.chunk());
        }
        Ok((response, all))
    }

    async fn get(&mut self, path: &str) -> (u16, String) {
        let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
        let (response, body) = self.ask(request, b"").await.unwrap();
        (response.status().as_u16(), String::from_utf8(body).unwrap())
    }
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE * 4, test).await.expect("the test takes too long") })
}

/// A number of variable length, always in eight bytes.
fn number(value: u64) -> [u8; 8] {
    (value | 0xc000_0000_0000_0000).to_be_bytes()
}

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    [&number(kind)[..], &number(content.len() as u64), content].concat()
}

/// A number as QPACK writes it behind flags (RFC 7541 section 5.1).
fn put(block: &mut Vec<u8>, flags: u8, bits: u32, mut value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return block.push(flags | value as u8);
    }
    block.push(flags | most as u8);
    value -= most;
    while value >= 128 {
        block.push(value as u8 | 0x80);
        value >>= 7;
    }
    block.push(value as u8);
}

/// A head as QPACK writes it without its tables.
fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    for (name, value) in fields {
        put(&mut block, 0x20, 3, name.len());
        block.extend(name.as_bytes());
        put(&mut block, 0, 7, value.len());
        block.extend(value.as_bytes());
    }
    frame(1, &block)
}

/// `:method: GET`, `:scheme: https`, `:authority: h`, `:path: /`, and `:method`, by its name in Huffman's code, once more.
const HUFFMAN: [u8; 16] = [0, 0, 0xd1, 0xd7, 0x50, 1, b'h', 0xc1, 0x2d, 0xb9, 0x49, 0x53, 0x39, 0xe4, 1, b'G'];

pub(crate) fn get_of(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)];
    head(&[&fields[..], more].concat())
}

fn post_of(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let fields = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", path)];
    head(&[&fields[..], more].concat())
}

#[test]
fn requests_and_answers() {
    let peer = Peer::start();
    run(async {
        let mut client = peer.client().await;
        assert_eq!(client.get("/").await, (200, "Hello from Rust".to_owned()));
        assert_eq!(client.get("/t/stream").await, (200, "onetwo".to_owned()));
        assert_eq!(client.get("/t/panic").await.0, 500);
        assert_eq!(client.get("/healthz").await, (200, "ok\n".to_owned()));
        let request =
            |method: &str, path: &str| Request::builder().method(method).uri(format!("https://localhost{path}"));
        let (response, body) = client.ask(request("POST", "/t/echo").body(()).unwrap(), b"hello").await.unwrap();
        assert_eq!((response.status().as_u16(), &body[..]), (200, &b"hello"[..]));
        for name in ["alt-svc", "date", "x-request-id", "content-length"] {
            assert!(response.headers().contains_key(name), "{name}: {response:?}");
        }
        let (response, body) = client.ask(request("HEAD", "/t/big").body(()).unwrap(), b"").await.unwrap();
        assert_eq!((response.headers()["content-length"].to_str().unwrap(), body.len()), ("8388608", 0));
        // Bodies that differ from their announced length.
        for (length, sent) in [("4", "hello"), ("6", "hello")] {
            let wrong = request("POST", "/t/count").header("content-length", length).body(()).unwrap();
            let (_, body) = client.ask(wrong, sent.as_bytes()).await.unwrap();
            let said = String::from_utf8_lossy(&body).into_owned();
            assert!(said.contains("than its content-length"), "{length}: {said}");
        }
        let broken = client.ask(request("GET", "/t/broken").body(()).unwrap(), b"").await;
        assert!(broken.is_err(), "{broken:?}");
        assert_eq!(client.get("/t/client").await.1, "Some(127.0.0.1) true");
        client.raw.leave().await;
    });
    until(|| peer.server.running.connections() == 0);
}

/// The client's address changes: the connection does not.
#[test]
fn migration() {
    let peer = Peer::start();
    run(async {
        let mut client = peer.client().await;
        assert_eq!(client.get("/t/client").await.1, "Some(127.0.0.1) true");
        client.raw.endpoint.rebind(UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
        assert_eq!(client.get("/t/client").await.1, "Some(127.0.0.2) true");
        assert_eq!((peer.server.running.connections(), peer.server.running.shutdown_handle().accepted()), (1, 1));
    });
}

/// Connections of one client address have several workers, and keep them when the address changes.
#[test]
fn several_connections_of_one_address() {
    let peer = Peer::with(|options| options.runtime.workers = 4);
    run(async {
        let endpoint = endpoint();
        let mut clients = Vec::new();
        for _ in 0..32 {
            let connecting =
                endpoint.connect_with(peer.config(b"h3", TransportConfig::default()), peer.server.addr, "localhost");
            clients
                .push(Client::new(Raw { conn: connecting.unwrap().await.unwrap(), endpoint: endpoint.clone() }).await);
        }
        let by_worker = peer.server.running.shutdown_handle().connections_by_worker();
        assert_eq!(by_worker.iter().sum::<usize>(), 32);
        // A worker without any of 32 is one chance in ten thousand, so two of them are none.
        assert!(by_worker.iter().filter(|count| **count > 0).count() > 2, "{by_worker:?}");
        for address in ["127.0.0.2:0", "127.0.0.3:0"] {
            endpoint.rebind(UdpSocket::bind(address).unwrap()).unwrap();
            let body = vec![b'x'; 100_000];
            // All at once: their datagrams are full, and follow each other.
            let mut sent = tokio::task::JoinSet::new();
            for mut client in clients.drain(..) {
                let body = body.clone();
                sent.spawn(async move {
                    let request = Request::post("https://localhost/t/count").body(()).unwrap();
                    let (response, told) = client.ask(request, &body).await.unwrap();
                    assert_eq!((response.status().as_u16(), &told[..]), (200, &b"100000"[..]));
                    client
                });
            }
            clients = sent.join_all().await;
        }
        let handle = peer.server.running.shutdown_handle();
        assert_eq!((peer.server.running.connections(), handle.accepted()), (32, 32));
        assert_eq!(handle.connections_by_worker(), by_worker);
    });
}

/// Requests before the handshake is over (0-RTT) could be replayed: none is taken, even where TLS would.
#[test]
fn nothing_before_the_handshake() {
    let peer = Peer::with(|options| {
        let files = options.runtime.tls.as_ref().unwrap();
        let (cert, key) = (CertificateDer::from_pem_file(&files.cert), PrivateKeyDer::from_pem_file(&files.key));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_no_client_auth();
        let mut tls = builder.with_single_cert(vec![cert.unwrap()], key.unwrap()).unwrap();
        tls.max_early_data_size = u32::MAX;
        options.runtime.rustls = Some(Arc::new(tls));
    });
    run(async {
        let endpoint = endpoint();
        let config = peer.config(b"h3", TransportConfig::default());
        let connect = || endpoint.connect_with(config.clone(), peer.server.addr, "localhost").unwrap();
        let raw = Raw { conn: connect().await.unwrap(), endpoint: endpoint.clone() };
        // The ticket to come again with has come before the answer.
        assert!(raw.get("/").await.is_ok());
        let Err(again) = connect().into_0rtt() else { panic!("the ticket is for data before the handshake") };
        let raw = Raw { conn: again.await.unwrap(), endpoint: endpoint.clone() };
        assert!(raw.get("/").await.unwrap().ends_with(b"Hello from Rust"));
    });
}

/// Whether an answer's status is 431, as it is or in Huffman's code.
fn is_431(answer: &[u8]) -> bool {
    let has = |status: &[u8]| answer.windows(status.len()).any(|bytes| bytes == status);
    has(b"431") || has(&[0x69, 0x90, 0xff])
}

#[test]
fn heads_are_bounded() {
    let peer = Peer::with(|options| options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap()));
    run(async {
        let mut honest = peer.client().await;
        let raw = peer.raw().await;
        // A gigabyte is announced: that is enough.
        let announced = [&number(1)[..], &number(1 << 30), &[0; 1000]].concat();
        let (send, mut receive) = raw.request(&announced).await;
        assert!(is_431(&answer(&mut receive).await.unwrap()));
        assert_eq!(send.stopped().await.unwrap().map(code), Some(NO_ERROR));
        // And so are as many bytes as that, if they come.
        let (mut send, mut receive) = raw.request(&get_of("/", &[("x-long", &"y".repeat(70_000))])).await;
        let _ = send.finish();
        assert!(is_431(&answer(&mut receive).await.unwrap()));
        // As short as it is sent, it is long when it is read: 2,000 fields of QPACK's own table.
        let bomb = frame(1, &[&[0, 0][..], &[0xc0 | 31; 2000]].concat());
        let (mut send, mut receive) = raw.request(&bomb).await;
        send.finish().unwrap();
        assert!(is_431(&answer(&mut receive).await.unwrap()));
        assert_eq!(peer.metric("http_responses_total{status=\"4xx\"}"), 3);
        // Trailers are a head, too.
        let (mut send, mut receive) = raw.request(&[post_of("/t/count", &[]), announced].concat()).await;
        let _ = send.finish();
        let told = String::from_utf8_lossy(&answer(&mut receive).await.unwrap()).into_owned();
        assert!(told.contains("a head of 1073741824 bytes"), "{told}");
        let (mut send, mut receive) = raw.request(&get_of("/", &[])).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.unwrap().ends_with(b"Hello from Rust"));
        assert_eq!(honest.get("/").await.0, 200);
    });
}

/// Malformed requests end by themselves, and not with others (RFC 9114 section 4.1.2).
#[test]
fn malformed_heads_and_trailers_fail_only_their_request() {
    let peer = Peer::start();
    let (method, scheme) = ((":method", "GET"), (":scheme", "https"));
    let (authority, path) = ((":authority", "localhost"), (":path", "/"));
    let whole = [method, scheme, authority, path];
    let without = |name| whole.into_iter().filter(|field| field.0 != name).collect::<Vec<_>>();
    let with = |field| [&whole[..], &[field]].concat();
    let rows = [
        without(":method"),
        without(":scheme"),
        without(":authority"),
        without(":path"),
        with((":unknown", "x")),
        with(("", "x")),
        with(("Upper", "x")),
        with(("a b", "x")),
        with(("a", "x\r\nb: y")),
        with(("a", "x\0")),
        with(("host", "elsewhere")),
        [&whole[..], &[("host", "localhost"), ("host", "elsewhere")]].concat(),
        with(("connection", "close")),
        with(("transfer-encoding", "chunked")),
        with(("te", "gzip")),
        with(("content-length", "x")),
        [&whole[..], &[("content-length", "0"), ("content-length", "1")]].concat(),
        // Twice, behind another field, or of an answer (section 4.3).
        with(method),
        with(scheme),
        with(authority),
        with((":path", "/json")),
        [&[method, scheme, authority, ("accept", "*/*")][..], &[path]].concat(),
        with((":status", "200")),
        with((":protocol", "websocket")),
        // User information is no part of a host (section 4.3.1).
        [method, scheme, (":authority", "user@localhost"), path].to_vec(),
        [method, scheme, ("host", "user@localhost"), path].to_vec(),
        [method, scheme, authority, (":path", "json")].to_vec(),
        [method, scheme, authority, (":path", "*")].to_vec(),
        // A tunnel has nothing but a host (section 4.4).
        [(":method", "CONNECT"), scheme, authority, path].to_vec(),
    ];
    run(async {
        let raw = peer.raw().await;
        for fields in rows {
            let (mut send, mut receive) = raw.request(&head(&fields)).await;
            let _ = send.finish();
            assert_eq!(answer(&mut receive).await, Err(MESSAGE_ERROR), "{fields:?}");
        }
        // The same by QPACK's own table, and in Huffman's code: `:path` behind `accept`, and `:method` twice.
        for block in [&[0, 0, 0xd1, 0xd7, 0x50, 1, b'h', 0xdd, 0xc1][..], &HUFFMAN] {
            let (mut send, mut receive) = raw.request(&frame(1, block)).await;
            let _ = send.finish();
            assert_eq!(answer(&mut receive).await, Err(MESSAGE_ERROR), "{block:x?}");
        }
        // Trailers have none at all: the reader of the body hears of it.
        for trailers in [head(&[("x", "y"), (":path", "/")]), head(&[(":status", "200")])] {
            let (mut send, mut receive) = raw.request(&[post_of("/t/count", &[]), trailers].concat()).await;
            let _ = send.finish();
            let told = String::from_utf8_lossy(&answer(&mut receive).await.unwrap()).into_owned();
            assert!(told.contains("pseudo-header"), "{told}");
        }
        let (mut send, mut receive) = raw.request(&[post_of("/t/count", &[]), head(&[("x", "y")])].concat()).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.unwrap().ends_with(b"0"));
        // `OPTIONS *` is the one request whose path is no path.
        let asterisk = [(":method", "OPTIONS"), scheme, authority, (":path", "*")];
        let (mut send, mut receive) = raw.request(&head(&asterisk)).await;
        send.finish().unwrap();
        let told = answer(&mut receive).await.unwrap();
        // `:status: 200` of the static table stands behind the frame's head and the block's.
        assert_eq!(told.iter().find(|byte| **byte >= 0xc0), Some(&0xd9), "{told:?}");
        // A client that asks for a tunnel gets none.
        let (mut send, mut receive) = raw.request(&head(&[(":method", "CONNECT"), authority])).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.is_ok());
        let (mut send, mut receive) = raw.request(&head(&whole)).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.unwrap().ends_with(b"Hello from Rust"));
    });
}

/// A client that acknowledges nothing, so that no more of an answer may be on its way, is told all the same.
#[test]
fn a_close_waits_for_no_acknowledgement() {
    let peer = Peer::with(|options| {
        options.limits.control_frames = 10;
        options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    run(async {
        let front = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = front.local_addr().unwrap();
        let (is_held, held) = (watch::Sender::new(false), watch::Sender::new(0));
        tokio::spawn(carry(front, peer.server.addr, is_held.subscribe(), held.clone()));
        let raw = peer.raw_at(addr, TransportConfig::default()).await;
        assert!(raw.get("/").await.is_ok());
        is_held.send_replace(true);
        let _request = raw.request(&get_of("/t/big", &[])).await;
        // QUIC's first window (RFC 9002 section 7.2), of which a part of a datagram may be left.
        held.subscribe().wait_for(|bytes| *bytes > 10_000).await.unwrap();
        let _control = raw.control(&frame(0x21, b"").repeat(100)).await;
        while peer.metric("http_floods_total") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        is_held.send_replace(false);
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD);
    });
}

/// Carries datagrams between a client and the server; the server's datagrams are held up for a time, and counted.
async fn carry(
    front: tokio::net::UdpSocket,
    server: SocketAddr,
    mut is_held: watch::Receiver<bool>,
    held: watch::Sender<usize>,
) {
    let back = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (mut waiting, mut to) = (VecDeque::<Vec<u8>>::new(), None);
    let (mut up, mut down) = ([0; 2000], [0; 2000]);
    loop {
        tokio::select! {
            sent = front.recv_from(&mut up) => {
                let (length, client) = sent.unwrap();
                to = Some(client);
                back.send_to(&up[..length], server).await.unwrap();
            }
            sent = back.recv_from(&mut down) => waiting.push_back(down[..sent.unwrap().0].to_vec()),
            changed = is_held.changed() => if changed.is_err() { return },
        }
        if *is_held.borrow() {
            held.send_replace(waiting.iter().map(Vec::len).sum());
        } else if let Some(client) = to {
            for datagram in waiting.drain(..) {
                front.send_to(&datagram, client).await.unwrap();
            }
        }
    }
}

/// A frame that means nothing is no part of a request, and a request that breaks off within a frame is none.
#[test]
fn frames_that_mean_nothing() {
    let peer = Peer::start();
    run(async {
        let mut honest = peer.client().await;
        let raw = peer.raw().await;
        let nothing = [frame(0, b""), frame(0x21, b"whatever"), frame(0x41, b"")].concat();
        let pieces =
            [&frame(0x21, b""), &post_of("/t/echo", &[]), &nothing, &frame(0, b"one"), &nothing, &frame(0, b"two")];
        let (mut send, mut receive) =
            raw.request(&[&pieces.map(|piece| &piece[..]).concat()[..], &nothing].concat()).await;
        send.finish().unwrap();
        let told = answer(&mut receive).await.unwrap();
        assert!(told.ends_with(b"onetwo"), "{}", String::from_utf8_lossy(&told));
        raw.leave().await;
        for broken in [[&frame(0, b"whole")[..], &[0, 20], b"half"].concat(), vec![0], vec![0x21, 1], vec![0x40]] {
            let raw = peer.raw().await;
            let (mut send, _receive) = raw.request(&post_of("/t/count", &[])).await;
            send.write_all(&broken).await.unwrap();
            // The frames that have come are read before the end comes.
            tokio::time::sleep(Duration::from_millis(20)).await;
            send.finish().unwrap();
            assert_eq!(raw.closed().await, FRAME_ERROR, "{broken:?}");
        }
        assert_eq!(honest.get("/").await.0, 200);
        honest.raw.leave().await;
    });
    until(|| peer.server.running.connections() == 0);
}

/// The server does not wait for a slow client: heads, bodies, answers, and connections without requests.
#[test]
fn time_outs() {
    let short = Duration::from_millis(300);
    let peer = Peer::with(|options| {
        options.timeouts.head = short;
        options.timeouts.body = short;
        options.timeouts.write = short;
        options.timeouts.idle = Duration::from_secs(5);
        options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    run(async {
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(1000_u32.into()).keep_alive_interval(Some(Duration::from_millis(500)));
        let raw = peer.raw_with(transport).await;
        let (_send, mut receive) = raw.request(&[1]).await;
        assert_eq!(answer(&mut receive).await, Err(REQUEST_CANCELLED), "half a head");
        let (_send, mut receive) = raw.request(&post_of("/t/count", &[("content-length", "5")])).await;
        let told = String::from_utf8_lossy(&answer(&mut receive).await.unwrap()).into_owned();
        assert!(told.contains("too slowly"), "{told}");
        // Nothing of this answer is read.
        let before = peer.metric("http_timeouts_total");
        let (_send, mut receive) = raw.request(&get_of("/t/big", &[])).await;
        while peer.metric("http_timeouts_total") == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut all = Vec::new();
        let ended = loop {
            match receive.read_chunk(usize::MAX, true).await {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk.bytes),
                Ok(None) => panic!("{} bytes are an answer", all.len()),
                Err(error) => break error,
            }
        };
        assert!(matches!(ended, ReadError::Reset(error) if code(error) == REQUEST_CANCELLED), "{ended}");
        // PINGs keep no connection.
        assert_eq!(raw.closed().await, NO_ERROR);
        // And who lets us open no streams has none.
        let mut transport = TransportConfig::default();
        transport.max_concurrent_uni_streams(0_u32.into()).keep_alive_interval(Some(short));
        assert_eq!(peer.raw_with(transport).await.closed().await, NO_ERROR);
    });
    until(|| peer.server.running.connections() == 0);
}

/// A client that gives up an answer gets none, and holds nothing.
#[test]
fn answers_that_are_given_up() {
    let peer = Peer::start();
    run(async {
        let raw = peer.raw().await;
        for _ in 0..250 {
            // More than may be open at one time.
            let (_send, mut receive) = raw.request(&get_of("/t/endless", &[])).await;
            receive.read_chunk(1, true).await.unwrap();
            receive.stop(VarInt::from_u32(REQUEST_CANCELLED)).unwrap();
        }
        let (mut send, mut receive) = raw.request(&get_of("/", &[])).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.unwrap().ends_with(b"Hello from Rust"));
    });
}

#[test]
fn limits_of_connections_and_requests() {
    let peer = Peer::with(|options| {
        options.runtime.max_connections = 1;
        options.limits.requests = 2;
    });
    run(async {
        let client = peer.raw().await;
        let _control = client.control(b"").await;
        let second = endpoint();
        let config = peer.config(b"h3", TransportConfig::default());
        let refused = second.connect_with(config, peer.server.addr, "localhost").unwrap().await;
        // CONNECTION_REFUSED (RFC 9000 section 20.1).
        let is_refused = |error: &ConnectionError| matches!(error, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 2);
        assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
        assert_eq!(peer.server.running.shutdown_handle().refused(), 1);
        for _ in 0..2 {
            assert!(client.get("/").await.unwrap().ends_with(b"Hello from Rust"));
        }
        assert_eq!(client.closed().await, NO_ERROR);
        // The place is free again.
        while peer.server.running.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(peer.client().await.get("/").await.0, 200);
    });
}

#[test]
fn other_protocols_are_refused() {
    let peer = Peer::start();
    run(async {
        let config = peer.config(b"h2", TransportConfig::default());
        let refused = endpoint().connect_with(config, peer.server.addr, "localhost").unwrap().await;
        // no_application_protocol, as QUIC writes alerts.
        let is_alert = |error: &ConnectionError| matches!(error, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0x178);
        assert!(refused.as_ref().is_err_and(is_alert), "{refused:?}");
        assert_eq!(peer.client().await.get("/").await.0, 200);
    });
}

/// The server says which requests it still takes before it ends a connection.
#[test]
fn a_shutdown_is_announced() {
    let peer = Peer::start();
    run(async {
        let raw = peer.raw().await;
        let _control = raw.control(b"").await;
        let (mut send, mut receive) = raw.request(&get_of("/", &[])).await;
        send.finish().unwrap();
        assert!(answer(&mut receive).await.is_ok());
        let control = loop {
            let mut stream = raw.conn.accept_uni().await.unwrap();
            let mut kind = [0];
            stream.read_exact(&mut kind).await.unwrap();
            if kind == [0] {
                break stream;
            }
        };
        peer.server.running.shutdown_handle().trigger();
        let (mut control, mut said) = (control, Vec::new());
        while let Ok(Some(chunk)) = control.read_chunk(usize::MAX, true).await {
            said.extend_from_slice(&chunk.bytes);
        }
        // SETTINGS, a GOAWAY that takes 200 requests more, whose streams are every fourth, and one that takes nothing behind
        // the first request (RFC 9114 section 5.2): short frames with short numbers.
        let (mut frames, mut rest) = (Vec::new(), &said[..]);
        while let [kind, length, content @ ..] = rest {
            let (content, behind) = content.split_at(usize::from(*length));
            frames.push((*kind, content));
            rest = behind;
        }
        let [(4, _), goaways @ ..] = &frames[..] else { panic!("no SETTINGS: {said:?}") };
        assert_eq!(goaways, [(7, &[0x43, 0x24][..]), (7, &[4][..])]);
        assert_eq!(raw.closed().await, NO_ERROR);
    });
}

/// Those under way end as they should, and those that wait for nothing end.
#[test]
fn a_shutdown_finishes_requests() {
    let peer = Peer::with(|options| options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap()));
    let Peer { server, .. } = run(async {
        let (busy, idle) = (peer.raw().await, peer.raw().await);
        let _controls = (busy.control(b"").await, idle.control(b"").await);
        let trigger = async {
            while peer.metric("http_h3_requests_total") == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            peer.server.running.shutdown_handle().trigger();
        };
        let (answer, (), busy, idle) = tokio::join!(busy.get("/t/slow"), trigger, busy.closed(), idle.closed());
        assert!(answer.unwrap().ends_with(b"slow"));
        assert_eq!((busy, idle), (NO_ERROR, NO_ERROR));
        peer
    });
    let addr = server.addr;
    assert!(!server.running.wait(), "a connection was cut");
    // The socket is free.
    drop(UdpSocket::bind(addr).unwrap());
}

#[test]
fn where_http3_has_no_place() {
    let mut options = crate::support::options();
    options.http3 = true;
    let error = serve(router(), options).unwrap_err().to_string();
    assert!(error.contains("beside TLS"), "{error}");
    // The test has the UDP port; another process may have the same port of TCP.
    let is_told = (0..20).any(|_| {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut options = tls_options();
        options.http3 = true;
        options.runtime.listen = vec![format!("tls:{}", taken.local_addr().unwrap()).parse().unwrap()];
        let error = serve(router(), options).unwrap_err().to_string();
        error.contains(&format!("udp:{}", taken.local_addr().unwrap()))
    });
    assert!(is_told);
}
