//! The command line.

use clap::Parser;
use server_runtime::{Error, Listen, RuntimeArgs};

use crate::api::RedisArgs;
use crate::options::Options;

/// Where the server listens if no flag says so: this machine alone.
const LISTEN: &str = "127.0.0.1:8000";

/// Serves HTTP: a greeting, JSON, and Redis.
#[derive(Debug, Parser)]
#[command(name = "http-server", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub runtime: RuntimeArgs,

    /// Flags of the Redis routes.
    #[command(flatten)]
    pub redis: RedisArgs,
}

impl Args {
    /// The options of the server that the flags stand for.
    ///
    /// # Errors
    /// When flags do not fit together.
    pub fn options(&self) -> Result<Options, Error> {
        let default: Listen = LISTEN.parse().expect("a constant address");
        Ok(Options { runtime: self.runtime.options(default)? })
    }
}
