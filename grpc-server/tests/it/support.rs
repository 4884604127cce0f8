//! A server to test, and its clients.

use std::net::SocketAddr;
use std::time::Duration;

use grpc_server::greeter::pb::greeter_client::GreeterClient;
use grpc_server::greeter::{Greeter, pb::greeter_server::GreeterServer};
use grpc_server::{Options, Routes, serve};
use server_runtime::Running;
use tonic::transport::{Channel, Endpoint};

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
        Self::with(Routes::new().add_service(GreeterServer::new(Greeter)), options())
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
}

/// Two workers on a free port.
pub(crate) fn options() -> Options {
    let mut options = Options::listening("127.0.0.1:0".parse().unwrap());
    options.runtime.workers = 2;
    options.runtime.drain = Duration::from_secs(5);
    options
}

/// Runs a test's asynchronous part.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE * 4, test).await.expect("the test takes too long") })
}
