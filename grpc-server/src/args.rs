//! The command line.

use clap::Parser;
use server_runtime::{Error, Listen, RuntimeArgs};

use crate::greeter::{Greeter, pb::greeter_server::GreeterServer};
use crate::options::{Limits, Options};
use crate::routes::Routes;

/// Where the server listens if no flag says so: this machine alone, at the port of gRPC's examples.
const LISTEN: &str = "127.0.0.1:50051";

/// Serves gRPC: helloworld.Greeter.
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
    /// Calls at one time on one connection.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().streams)]
    pub max_streams: u32,

    /// Bytes of a call's header fields.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().headers)]
    pub max_headers: u32,
}

impl Args {
    /// The options of the server that the flags stand for.
    ///
    /// # Errors
    /// When flags do not fit together.
    pub fn options(&self) -> Result<Options, Error> {
        let default: Listen = LISTEN.parse().expect("a constant address");
        let grpc = &self.grpc;
        Ok(Options {
            runtime: self.runtime.options(default)?,
            limits: Limits { streams: grpc.max_streams, headers: grpc.max_headers },
            ..Options::default()
        })
    }

    /// The services that the flags stand for.
    pub fn routes(&self) -> Routes {
        Routes::new().add_service(GreeterServer::new(Greeter))
    }
}
