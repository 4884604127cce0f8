//! The command line.

use std::time::Duration;

use clap::Parser;
use server_runtime::{Error, Listen, RuntimeArgs};
use tonic::codec::CompressionEncoding;

use crate::greeter::{self, Greeter, pb::greeter_server::GreeterServer};
use crate::options::{Limits, Options, Timeouts, Web};
use crate::routes::Routes;
use crate::tuning;

/// Where the server listens if no flag says so: this machine alone, at the port of gRPC's examples.
const LISTEN: &str = "127.0.0.1:50051";

/// Serves gRPC: helloworld.Greeter, health, reflection.
#[derive(Debug, Parser)]
#[command(name = "grpc-server", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub runtime: RuntimeArgs,

    /// Flags of gRPC.
    #[command(flatten)]
    pub grpc: GrpcArgs,
}

/// Flags of gRPC.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "gRPC")]
pub struct GrpcArgs {
    /// Leave reflection out.
    #[arg(long)]
    pub no_reflection: bool,

    /// Compress answers for clients that accept it; compressed requests are always understood.
    #[arg(long, value_name = "CODING")]
    pub compress: Option<Coding>,

    /// Serve gRPC-Web too, to pages of this origin (`https://example.com`; `*` is every one); may be given several times.
    #[arg(long = "web-origin", value_name = "ORIGIN")]
    pub web_origins: Vec<String>,

    /// Serve the Connect protocol too: curl can call, in JSON.
    #[arg(long)]
    pub connect: bool,

    /// Write every Nth call to the log; 0 writes none, 1 all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub access_log: u64,

    /// Calls at one time on one connection.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().streams)]
    pub max_streams: u32,

    /// Calls that wait for something at one time, on all connections; 0 is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().calls)]
    pub max_calls: u64,

    /// Bytes of a call's header fields, 32 more for each; a call with more ends with RESOURCE_EXHAUSTED.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().headers)]
    pub max_headers: u32,

    /// Bytes of a message.
    #[arg(long, value_name = "BYTES", default_value_t = tuning::MAX_MESSAGE)]
    pub max_message: usize,

    /// Frames a second that carry nothing of a call; 0 is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().control_frames)]
    pub max_control_frames: u32,

    /// Seconds for a call, if its client does not want less.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub call_timeout: Option<Duration>,

    /// Seconds without a byte from a client, after which it is asked for an answer (PING).
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub keepalive: Duration,

    /// Seconds for that answer.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub keepalive_timeout: Duration,

    /// Seconds without a call, after which a connection is ended in good order.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_idle: Option<Duration>,

    /// Seconds that a connection may live before it is ended in good order, a tenth more or less.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_age: Option<Duration>,

    /// Seconds for the calls of such a connection, after which it is cut.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "max_age")]
    pub max_age_grace: Option<Duration>,
}

/// How answers are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Coding {
    /// gzip, which every client knows.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Coding {
    /// tonic's name for it.
    pub fn encoding(self) -> CompressionEncoding {
        match self {
            Self::Gzip => CompressionEncoding::Gzip,
            Self::Zstd => CompressionEncoding::Zstd,
        }
    }
}

impl Args {
    /// The options of the server that the flags stand for.
    ///
    /// # Errors
    /// When flags do not fit together.
    pub fn options(&self) -> Result<Options, Error> {
        let default: Listen = LISTEN.parse().expect("a constant address");
        let grpc = &self.grpc;
        let pin_workers = self.runtime.pin_workers.unwrap_or(tuning::PIN_WORKERS);
        Ok(Options {
            runtime: server_runtime::Options { pin_workers, ..self.runtime.options(default)? },
            limits: Limits {
                streams: grpc.max_streams,
                headers: grpc.max_headers,
                calls: grpc.max_calls,
                control_frames: grpc.max_control_frames,
                message: grpc.max_message,
            },
            timeouts: Timeouts {
                call: grpc.call_timeout,
                keepalive: grpc.keepalive,
                keepalive_answer: grpc.keepalive_timeout,
                idle: grpc.max_idle,
                age: grpc.max_age,
                age_grace: grpc.max_age_grace,
                ..Timeouts::default()
            },
            descriptors: if grpc.no_reflection { Vec::new() } else { vec![greeter::pb::DESCRIPTORS] },
            web: (!grpc.web_origins.is_empty()).then(|| Web { origins: grpc.web_origins.clone() }),
            connect: grpc.connect,
            access_log: grpc.access_log,
            ..Options::default()
        })
    }

    /// The services that the flags stand for.
    pub fn routes(&self) -> Routes {
        let greeter = GreeterServer::new(Greeter)
            .max_decoding_message_size(self.grpc.max_message)
            .accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Zstd);
        Routes::new().add_service(match self.grpc.compress {
            None => greeter,
            Some(coding) => greeter.send_compressed(coding.encoding()),
        })
    }
}

/// A positive number of seconds; a day at most, so that it always fits.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    if (0.01..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("expected 0.01 to 86400 seconds".to_owned())
    }
}
