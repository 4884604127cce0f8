//! The attacks on http-server over HTTP/3: frames as they are, on connections of quinn.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, TransportConfig, VarInt, WriteError,
};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::attacker::{BOUND_MIB, Row};

/// How long a connection may go on before it counts as one that does not end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Frames of a flood, and streams, unless the server ends it.
const FRAMES: usize = 100_000;
const STREAMS: usize = 20_000;

/// Frames that are sent at once.
const AT_ONCE: usize = 500;

/// Codes of HTTP/3 (RFC 9114 section 8.1).
const NO_ERROR: u64 = 0x100;
const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_CANCELLED: u32 = 0x10c;

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;
/// One of those that mean nothing.
const RESERVED: u64 = 0x21;

/// How it ends, as far as an attacker sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The connection is closed with this code.
    Closed(u64),
    /// The stream is reset with this code.
    Reset(u64),
    /// Nothing more of the stream is read, for this reason.
    Stopped(u64),
    /// There is an answer.
    Answered,
    /// Nothing was heard any more.
    Silence,
    /// The attacker has gone itself.
    Gone,
}

impl End {
    fn text(self) -> String {
        match self {
            Self::Closed(code) => format!("closed {code:#x}"),
            Self::Reset(code) => format!("reset {code:#x}"),
            Self::Stopped(code) => format!("stopped {code:#x}"),
            Self::Answered => "an answer".to_owned(),
            Self::Silence => "silence".to_owned(),
            Self::Gone => "gone".to_owned(),
        }
    }
}

/// A client that is too slow for a flood has sent all of it, or the server no longer listens and ends the connection as a silent one.
const FLOODED: &[End] = &[End::Closed(EXCESSIVE_LOAD), End::Closed(NO_ERROR), End::Gone];

/// Resets are counted, not timed.
const RESET: &[End] = &[End::Closed(EXCESSIVE_LOAD)];

/// A client that is too slow for a flood in a body gets the time-out of the body.
const FLOODED_BODY: &[End] = &[End::Closed(EXCESSIVE_LOAD), End::Answered, End::Gone];

/// The rows; the server's certificate is in the folder.
pub(super) fn rows(folder: &Path) -> Vec<Row> {
    let row = |name, ends, attack| Table { folder: folder.to_owned(), window: None }.row(name, ends, attack);
    let narrow = Table { folder: folder.to_owned(), window: Some(1000) };
    vec![
        row("frames that nobody knows", FLOODED, |conn| Box::pin(control(conn, frame(RESERVED, b"")))),
        row("MAX_PUSH_ID", FLOODED, |conn| Box::pin(control(conn, frame(13, &[1])))),
        row("empty DATA", FLOODED_BODY, |conn| Box::pin(body(conn, frame(DATA, b"")))),
        row("DATA of a byte", FLOODED_BODY, |conn| Box::pin(body(conn, frame(DATA, b"x")))),
        row("streams that nobody knows", FLOODED, |conn| Box::pin(streams(conn))),
        row("rapid reset", RESET, |conn| Box::pin(resets(conn, get("/healthz")))),
        row("resets within a head", RESET, |conn| Box::pin(resets(conn, vec![1]))),
        row("a head of a gigabyte", &[End::Answered], |conn| {
            Box::pin(request(conn, [&number(HEADERS)[..], &number(1 << 30), &[0; 1000]].concat()))
        }),
        row("header bombs", &[End::Answered], |conn| Box::pin(bombs(conn))),
        row("half a head", &[End::Reset(REQUEST_CANCELLED as u64)], |conn| Box::pin(request(conn, vec![1]))),
        row("a slow body", &[End::Answered], |conn| Box::pin(slow(conn))),
        row("silence", &[End::Closed(NO_ERROR), End::Silence], |conn| Box::pin(async move { closed(&conn).await })),
        // 2,000 connections of some 60 KiB, which the server has until they have been silent for too long.
        Row {
            bound_mib: 192,
            ..row("100 connections, opened and left", &[End::Gone], |_| Box::pin(async { Ok(End::Gone) })).again(100)
        },
        narrow.row("answers that nobody reads", &[End::Reset(REQUEST_CANCELLED as u64)], |conn| {
            Box::pin(unread(conn, 1))
        }),
        // A piece of a file (64 KiB) twice for each of 2,000, and 1 MiB for each connection.
        Row {
            bound_mib: 300,
            ..narrow.row("100 of them", &[End::Reset(REQUEST_CANCELLED as u64)], |conn| Box::pin(unread(conn, 100)))
        },
        noise(),
    ]
}

type Attempt<'a> = std::pin::Pin<Box<dyn Future<Output = Result<End>> + 'a>>;

/// The common parts of rows.
struct Table {
    folder: PathBuf,
    /// The client's window of a stream, if it is not the usual one.
    window: Option<u32>,
}

impl Table {
    fn row(&self, name: &'static str, ends: &'static [End], attack: fn(Connection) -> Attempt<'static>) -> Row {
        let (folder, window) = (self.folder.clone(), self.window);
        let attack = move |addr| {
            let found = runtime()?.block_on(async {
                let (endpoint, conn) = connect(addr, &folder, window).await.context("no connection")?;
                let end = timeout(PATIENCE, attack(conn)).await.context("it does not end")??;
                drop(endpoint);
                anyhow::Ok(end)
            });
            Ok(match found {
                Ok(end) if ends.contains(&end) => Ok(end.text()),
                Ok(end) => Err(end.text()),
                Err(error) => Err(format!("{error:#}")),
            })
        };
        Row { name, attack: Box::new(attack), beside: None, bound_mib: BOUND_MIB, is_long: window.is_some() }
    }
}

impl Row {
    /// The same so often, one after another.
    fn again(self, times: u32) -> Self {
        let attack = self.attack;
        let all = move |addr| {
            for _ in 1..times {
                if let Err(wrong) = attack(addr)? {
                    return Ok(Err(wrong));
                }
            }
            attack(addr)
        };
        Self { attack: Box::new(all), ..self }
    }
}

fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn connect(addr: SocketAddr, folder: &Path, window: Option<u32>) -> Result<(Endpoint, Connection)> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("cert.pem"))?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    if let Some(window) = window {
        transport.stream_receive_window(window.into());
    }
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let conn = endpoint.connect_with(config, addr, "localhost")?.await?;
    Ok((endpoint, conn))
}

/// A number of variable length, in eight bytes.
fn number(value: u64) -> [u8; 8] {
    (value | 0xc000_0000_0000_0000).to_be_bytes()
}

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    [&number(kind)[..], &number(content.len() as u64), content].concat()
}

/// The head of a request as QPACK writes it, with its table's fields (RFC 9204 appendix A).
fn head(method: u8, path: &str, more: &[u8]) -> Vec<u8> {
    // `:scheme: https`, and names of the table with values of our own: `:authority`, `:path`.
    let mut block = vec![0, 0, 0xc0 | method, 0xc0 | 23, 0x50];
    for (at, value) in [(None, "localhost"), (Some(0x51), path)] {
        block.extend(at);
        block.push(u8::try_from(value.len()).expect("attacks' names are short"));
        block.extend(value.as_bytes());
    }
    block.extend(more);
    frame(HEADERS, &block)
}

/// A request that has no body.
pub(super) fn get(path: &str) -> Vec<u8> {
    head(17, path, &[])
}

fn put(path: &str) -> Vec<u8> {
    head(21, path, &[])
}

/// How a connection ends.
async fn closed(conn: &Connection) -> Result<End> {
    match conn.closed().await {
        ConnectionError::ApplicationClosed(close) => Ok(End::Closed(close.error_code.into())),
        ConnectionError::TimedOut => Ok(End::Silence),
        error => bail!("{error}"),
    }
}

/// How a stream ends.
async fn ended(mut receive: RecvStream) -> Result<End> {
    loop {
        match receive.read_chunk(usize::MAX, true).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(End::Answered),
            Err(ReadError::Reset(code)) => return Ok(End::Reset(code.into())),
            Err(error) => bail!("{error}"),
        }
    }
}

/// A control stream, and then this on it.
async fn control(conn: Connection, each: Vec<u8>) -> Result<End> {
    let mut stream = conn.open_uni().await?;
    stream.write_all(&[&[0][..], &frame(SETTINGS, b"")].concat()).await?;
    repeat(&conn, &mut stream, &each).await
}

/// A request, and this as its body.
async fn body(conn: Connection, each: Vec<u8>) -> Result<End> {
    let (mut send, receive) = conn.open_bi().await?;
    send.write_all(&put("/v1/SET/key")).await?;
    match repeat(&conn, &mut send, &each).await? {
        // The body has been waited for long enough: an answer of any kind is the rest (RFC 9114 section 4.1).
        End::Stopped(NO_ERROR) => ended(receive).await,
        end => Ok(end),
    }
}

async fn repeat(conn: &Connection, stream: &mut SendStream, each: &[u8]) -> Result<End> {
    let round = each.repeat(AT_ONCE);
    for _ in 0..FRAMES / AT_ONCE {
        match stream.write_all(&round).await {
            Ok(()) => {}
            Err(WriteError::Stopped(code)) => return Ok(End::Stopped(code.into())),
            Err(_) => return closed(conn).await,
        }
    }
    Ok(End::Gone)
}

async fn streams(conn: Connection) -> Result<End> {
    for _ in 0..STREAMS {
        let Ok(mut stream) = conn.open_uni().await else { return closed(&conn).await };
        if stream.write_all(&[0x21]).await.is_err() || stream.finish().is_err() {
            return closed(&conn).await;
        }
    }
    Ok(End::Gone)
}

/// Requests that are given up as soon as this of them was sent.
async fn resets(conn: Connection, begun: Vec<u8>) -> Result<End> {
    let code = VarInt::from_u32(REQUEST_CANCELLED);
    for _ in 0..STREAMS {
        let Ok((mut send, mut receive)) = conn.open_bi().await else { return closed(&conn).await };
        if send.write_all(&begun).await.is_err() {
            return closed(&conn).await;
        }
        // Either may be over already.
        let _ = (send.reset(code), receive.stop(code));
    }
    Ok(End::Gone)
}

async fn request(conn: Connection, bytes: Vec<u8>) -> Result<End> {
    let (mut send, receive) = conn.open_bi().await?;
    // It may be stopped before all was sent.
    let _ = send.write_all(&bytes).await;
    ended(receive).await
}

/// Heads of 2 KB that are 128 KB when they are read: `accept-encoding: gzip, deflate, br`, again and again.
async fn bombs(conn: Connection) -> Result<End> {
    let bomb = head(17, "/healthz", &[0xc0 | 31; 2000]);
    for _ in 1..100 {
        let (mut send, receive) = conn.open_bi().await?;
        send.write_all(&bomb).await?;
        send.finish()?;
        if ended(receive).await? != End::Answered {
            bail!("a bomb has no answer");
        }
    }
    request(conn, bomb).await
}

/// A byte of a body every now and then.
async fn slow(conn: Connection) -> Result<End> {
    let (mut send, receive) = conn.open_bi().await?;
    send.write_all(&put("/v1/SET/key")).await?;
    let sending = async {
        while send.write_all(&frame(DATA, b"x")).await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        end = ended(receive) => end,
        () = sending => bail!("it is never over"),
    }
}

/// So many answers, of which nothing is read.
async fn unread(conn: Connection, count: usize) -> Result<End> {
    let mut answers = Vec::new();
    for _ in 0..count {
        let (mut send, receive) = conn.open_bi().await?;
        send.write_all(&get("/big")).await?;
        send.finish()?;
        answers.push(receive);
    }
    // Longer than the server waits.
    sleep(Duration::from_secs(3)).await;
    let mut end = End::Answered;
    for receive in answers {
        end = ended(receive).await?;
        if end == End::Answered {
            break;
        }
    }
    Ok(end)
}

/// Datagrams that are nothing, or look like the beginning of a connection.
fn noise() -> Row {
    let attack = |addr| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let mut state = 1_u64;
        // More of them at once would lose what honest clients send: the kernel keeps so many until they are read.
        for round in 0..500_usize {
            let mut datagram: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 33) as u8
            })
            .take(1200 + round % 200)
            .collect();
            if round % 2 == 0 {
                // A long header of version 1, whose connection ids are as long as they are.
                datagram[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
            }
            // The kernel may have no room for it.
            let _ = socket.send_to(&datagram, addr);
        }
        Ok(Ok(End::Gone.text()))
    };
    Row { name: "noise", attack: Box::new(attack), beside: None, bound_mib: BOUND_MIB, is_long: false }
}

/// A client that does what it should.
pub(super) struct Honest {
    runtime: Runtime,
    conn: Connection,
    _endpoint: Endpoint,
}

impl Honest {
    /// # Errors
    /// When there is no connection to be had.
    pub(super) fn connect(addr: SocketAddr, folder: &Path) -> Result<Self> {
        let runtime = runtime()?;
        let (endpoint, conn) = runtime.block_on(connect(addr, folder, None))?;
        Ok(Self { runtime, conn, _endpoint: endpoint })
    }

    /// # Errors
    /// When there is no answer.
    pub(super) fn ask(&self) -> Result<()> {
        let asking = async {
            let (mut send, mut receive) = self.conn.open_bi().await?;
            send.write_all(&get("/healthz")).await?;
            send.finish()?;
            let answer = receive.read_to_end(64 * 1024).await?;
            if !answer.ends_with(b"ok\n") {
                bail!("{} bytes are no answer", answer.len());
            }
            anyhow::Ok(())
        };
        self.runtime.block_on(async { timeout(PATIENCE, asking).await })?
    }
}
