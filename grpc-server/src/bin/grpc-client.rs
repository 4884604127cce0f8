//! `grpc-client`: calls a greeter from the command line, and asks any server for its health.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use grpc_server::greeter::pb::greeter_client::GreeterClient;
use grpc_server::greeter::pb::{HelloManyTimesRequest, HelloReply, HelloRequest};
use tokio_stream::StreamExt as _;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// Calls helloworld.Greeter.
#[derive(Debug, Parser)]
#[command(name = "grpc-client", version)]
struct Flags {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    server: Server,
}

/// How to reach the server.
#[derive(Args, Debug)]
struct Server {
    /// The server: HOST:PORT, http://HOST:PORT, or https://HOST:PORT for TLS.
    #[arg(long, global = true, default_value = "127.0.0.1:50051", value_name = "ADDRESS")]
    address: String,

    /// Authorities of the server's certificate instead of the system's, a PEM file; implies TLS.
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The name in the server's certificate, if it is not the address'.
    #[arg(long, global = true, value_name = "NAME")]
    server_name: Option<String>,

    /// A certificate of our own, a PEM file.
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Its private key, a PEM file.
    #[arg(long, global = true, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// The call's deadline, in seconds.
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 10.0)]
    deadline: f64,

    /// Compress requests, and accept compressed answers.
    #[arg(long, global = true, value_name = "CODING")]
    compress: Option<grpc_server::Coding>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// One greeting for one name.
    SayHello {
        /// The name to greet.
        #[arg(long, default_value = "world")]
        name: String,
    },
    /// Many greetings for one name.
    SayHelloManyTimes {
        /// The name to greet.
        #[arg(long, default_value = "world")]
        name: String,
        /// Greetings.
        #[arg(long, default_value_t = 3)]
        count: u32,
        /// Milliseconds between greetings.
        #[arg(long, default_value_t = 0)]
        pause_ms: u32,
    },
    /// One greeting for all names.
    SayHelloToAll {
        /// Names to greet.
        names: Vec<String>,
    },
    /// A greeting for each name.
    SayHelloToEach {
        /// Names to greet.
        names: Vec<String>,
    },
    /// Health of a server: exit code 0 if it serves.
    Health {
        /// A service's full name; the server as a whole if there is none.
        #[arg(default_value = "")]
        service: String,
    },
}

fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(flags))
}

async fn run(Flags { command, server }: Flags) -> anyhow::Result<()> {
    let deadline = Duration::try_from_secs_f64(server.deadline).context("--deadline")?;
    let channel = server.channel(deadline).await?;
    let mut greeter = GreeterClient::new(channel.clone());
    if let Some(coding) = server.compress.map(grpc_server::Coding::encoding) {
        greeter = greeter.send_compressed(coding).accept_compressed(coding);
    }
    greeter = greeter.accept_compressed(CompressionEncoding::Gzip);
    let hello = |name: String| HelloRequest { name };
    match command {
        Command::SayHello { name } => {
            let reply = greeter.say_hello(timed(hello(name), deadline)).await.map_err(told)?;
            print(reply.into_inner())
        }
        Command::SayHelloManyTimes { name, count, pause_ms } => {
            let request = timed(HelloManyTimesRequest { name, count, pause_ms }, deadline);
            print_all(greeter.say_hello_many_times(request).await.map_err(told)?.into_inner()).await
        }
        Command::SayHelloToAll { names } => {
            let names = tokio_stream::iter(names).map(hello);
            print(greeter.say_hello_to_all(timed(names, deadline)).await.map_err(told)?.into_inner())
        }
        Command::SayHelloToEach { names } => {
            let names = tokio_stream::iter(names).map(hello);
            print_all(greeter.say_hello_to_each(timed(names, deadline)).await.map_err(told)?.into_inner()).await
        }
        Command::Health { service } => {
            let request = timed(HealthCheckRequest { service }, deadline);
            let status = HealthClient::new(channel).check(request).await.map_err(told)?.into_inner().status();
            println!("{}", status.as_str_name());
            anyhow::ensure!(status.as_str_name() == "SERVING", "the server does not serve");
            Ok(())
        }
    }
}

impl Server {
    async fn channel(&self, deadline: Duration) -> anyhow::Result<Channel> {
        let is_tls = self.ca.is_some() || self.cert.is_some();
        let address = match self.address.split_once("://") {
            Some(_) => self.address.clone(),
            None if is_tls => format!("https://{}", self.address),
            None => format!("http://{}", self.address),
        };
        let mut endpoint = Endpoint::from_shared(address.clone())?.connect_timeout(deadline);
        if is_tls || address.starts_with("https://") {
            endpoint = endpoint.tls_config(self.tls()?)?;
        }
        endpoint.connect().await.with_context(|| format!("cannot reach {address}"))
    }

    fn tls(&self) -> anyhow::Result<ClientTlsConfig> {
        let read = |path: &PathBuf| std::fs::read(path).with_context(|| path.display().to_string());
        let mut tls = ClientTlsConfig::new();
        tls = match &self.ca {
            Some(path) => tls.ca_certificate(Certificate::from_pem(read(path)?)),
            None => tls.with_native_roots(),
        };
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
        }
        Ok(match &self.server_name {
            Some(name) => tls.domain_name(name),
            None => tls,
        })
    }
}

fn timed<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// The server's error, in one line.
fn told(status: tonic::Status) -> anyhow::Error {
    anyhow::anyhow!("{:?}: {}", status.code(), status.message())
}

fn print(HelloReply { message }: HelloReply) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{message}").context("cannot write")
}

async fn print_all(mut replies: Streaming<HelloReply>) -> anyhow::Result<()> {
    while let Some(reply) = replies.message().await.map_err(told)? {
        print(reply)?;
    }
    Ok(())
}
