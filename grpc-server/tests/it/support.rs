//! A server to test, and its clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use grpc_server::greeter::pb::greeter_client::GreeterClient;
use grpc_server::greeter::pb::{HelloManyTimesRequest, HelloRequest};
use grpc_server::greeter::{self, Greeter, pb::greeter_server::GreeterServer};
use grpc_server::{Options, Routes, serve};
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use prost::Message;
use server_runtime::Running;
use tonic::transport::{Channel, Endpoint};

use crate::odd::Odd;

/// Longer than anything that goes well takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) addr: SocketAddr,
}

impl Server {
    /// The greeter.
    pub(crate) fn start() -> Self {
        Self::greeter_with(options())
    }

    pub(crate) fn greeter_with(options: Options) -> Self {
        Self::with(Routes::new().add_service(GreeterServer::new(Greeter)), options)
    }

    /// A greeter that does as it is told.
    pub(crate) fn odd(options: Options) -> (Self, Odd) {
        let odd = Odd::default();
        (Self::with(Routes::new().add_service(GreeterServer::new(odd.clone())), options), odd)
    }

    pub(crate) fn with(routes: Routes, options: Options) -> Self {
        let running = serve(routes, options).unwrap();
        let addr = running.local_addrs()[0];
        Self { running, addr }
    }

    /// A connection of its own.
    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.addr)).unwrap().timeout(PATIENCE).connect().await.unwrap()
    }

    pub(crate) async fn greeter(&self) -> GreeterClient<Channel> {
        GreeterClient::new(self.channel().await)
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw::connect(self.addr).await
    }
}

/// Two workers on a free port, everything on.
pub(crate) fn options() -> Options {
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    options.runtime.workers = 2;
    options.runtime.drain = Duration::from_secs(5);
    options.descriptors = vec![greeter::pb::DESCRIPTORS];
    options
}

/// Runs a test's asynchronous part.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE * 4, test).await.expect("the test takes too long") })
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(tokio::time::Instant::now() < end, "{what} has not come about");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
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

pub(crate) const SAY_HELLO: &str = "/helloworld.Greeter/SayHello";
pub(crate) const MANY_TIMES: &str = "/helloworld.Greeter/SayHelloManyTimes";

/// A message as gRPC frames it.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

pub(crate) fn hello(name: &str) -> Bytes {
    framed(&HelloRequest { name: name.to_owned() })
}

pub(crate) fn many_times(name: &str, count: u32, pause_ms: u32) -> Bytes {
    framed(&HelloManyTimesRequest { name: name.to_owned(), count, pause_ms })
}

/// A client that does no more than HTTP/2.
pub(crate) struct Raw(pub(crate) SendRequest<Bytes>);

/// An answer in its parts.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Reply {
    /// The code, wherever it is.
    pub(crate) fn code(&self) -> Option<&str> {
        self.trailers.as_ref().unwrap_or(&self.headers).get("grpc-status")?.to_str().ok()
    }

    pub(crate) fn message(&self) -> &str {
        let trailers = self.trailers.as_ref().unwrap_or(&self.headers);
        trailers.get("grpc-message").map_or("", |message| message.to_str().unwrap())
    }

    pub(crate) async fn of(response: h2::client::ResponseFuture) -> Result<Self, h2::Error> {
        let (head, mut stream) = response.await?.into_parts();
        let mut body = Vec::new();
        while let Some(piece) = stream.data().await {
            let piece = piece?;
            stream.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        let trailers = stream.trailers().await?;
        Ok(Self { status: head.status.as_u16(), headers: head.headers, body, trailers })
    }
}

/// A request for a call.
pub(crate) fn post(path: &str) -> http::request::Builder {
    let builder = Request::post(format!("http://test{path}"));
    builder.header("content-type", "application/grpc").header("te", "trailers")
}

impl Raw {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        let (requests, conn) = h2::client::Builder::new().initial_window_size(65_535).handshake(stream).await.unwrap();
        tokio::spawn(conn);
        Self(requests)
    }

    /// Begins a call with one message.
    pub(crate) async fn begin(
        &mut self,
        request: Request<()>,
        message: Bytes,
    ) -> Result<(h2::client::ResponseFuture, h2::SendStream<Bytes>), h2::Error> {
        self.0 = self.0.clone().ready().await?;
        let (response, mut stream) = self.0.send_request(request, false)?;
        stream.send_data(message, true)?;
        Ok((response, stream))
    }

    pub(crate) async fn call(&mut self, request: Request<()>, message: Bytes) -> Reply {
        let (response, _stream) = self.begin(request, message).await.unwrap();
        Reply::of(response).await.unwrap()
    }
}
