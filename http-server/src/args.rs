//! The command line.

use std::io;
use std::time::Duration;

use axum::Router;
use clap::Parser;
use server_runtime::{Error, Listen, RuntimeArgs};

use crate::api::RedisArgs;
use crate::routes;
use serve::Instants;
use serve::Trusted;
use serve::h1;
use serve::tuning;
use serve::{Engine, Limits, Options, Timeouts};

/// Where the server listens if no flag says so: this machine alone.
const LISTEN: &str = "127.0.0.1:8000";

/// Serves HTTP: a greeting, JSON, and Redis.
#[derive(Debug, Parser)]
#[command(name = "http-server", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub runtime: RuntimeArgs,

    /// Flags of HTTP.
    #[command(flatten)]
    pub http: HttpArgs,

    /// Flags of the Redis routes.
    #[command(flatten)]
    pub redis: RedisArgs,
}

/// Flags of HTTP.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpArgs {
    /// A directory whose files are served instead of the greetings; FILE.br, FILE.zst and FILE.gz stand for FILE.
    #[arg(long, value_name = "DIRECTORY")]
    pub root: Option<std::path::PathBuf>,

    /// Leave responses as they are instead of compressing those of a kilobyte and more (br, zstd, gzip).
    #[arg(long)]
    pub no_compression: bool,

    /// Serve HTTP/1.1 by hyper: with its trailers, its CONNECT, and its reading of malformed requests. HTTP/2 needs TLS then.
    #[arg(long, value_name = "serve|hyper", default_value = "serve", value_parser = engine)]
    pub engine: Engine,

    /// Write every Nth request to the log; 0 writes none, 1 all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub access_log: u64,

    /// An address or network of proxies whose Forwarded and X-Forwarded-For are believed; may be given several times.
    #[arg(long = "trusted-proxy", value_name = "NETWORK")]
    pub trusted_proxies: Vec<Trusted>,

    /// Bytes of a request's head.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().head)]
    pub max_head: usize,

    /// Bytes of a request's target.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().target)]
    pub max_target: usize,

    /// Header fields of a request, at most 128.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().headers, value_parser = headers)]
    pub max_headers: usize,

    /// Bytes of a request's body.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body)]
    pub max_body: u64,

    /// Requests on one connection; 0 is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests)]
    pub max_requests: u64,

    /// Frames of HTTP/2 and HTTP/3 in a second that carry neither a request nor its data, on one connection; 0 is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().control_frames)]
    pub max_control_frames: u32,

    /// Serve HTTP/3 too, beside TLS at the same port, over UDP; in builds with the feature http3.
    #[arg(long)]
    pub http3: bool,

    /// Seconds between requests of a connection.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeouts::default().idle.as_secs_f64(), value_parser = seconds)]
    pub idle_timeout: f64,

    /// Seconds for the head of a request.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeouts::default().head.as_secs_f64(), value_parser = seconds)]
    pub head_timeout: f64,

    /// Seconds for a part of a request's body, of 500 bytes for each of these seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeouts::default().body.as_secs_f64(), value_parser = seconds)]
    pub body_timeout: f64,

    /// Seconds for a client to take a part of its response, of 500 bytes for each of these seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeouts::default().write.as_secs_f64(), value_parser = seconds)]
    pub write_timeout: f64,

    /// Seconds from a request's head to the head of its answer, reading its body included [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub handler_timeout: Option<f64>,
}

impl Args {
    /// The options of the server that the flags stand for.
    ///
    /// # Errors
    /// When flags do not fit together.
    pub fn options(&self) -> Result<Options, Error> {
        let default: Listen = LISTEN.parse().expect("a constant address");
        let http = &self.http;
        let pin_workers = self.runtime.pin_workers.unwrap_or(tuning::PIN_WORKERS);
        Ok(Options {
            engine: http.engine,
            runtime: server_runtime::Options { pin_workers, ..self.runtime.options(default)? },
            limits: Limits {
                head: http.max_head,
                target: http.max_target,
                headers: http.max_headers,
                body: http.max_body,
                requests: http.max_requests,
                control_frames: http.max_control_frames,
            },
            timeouts: Timeouts {
                idle: Duration::from_secs_f64(http.idle_timeout),
                head: Duration::from_secs_f64(http.head_timeout),
                body: Duration::from_secs_f64(http.body_timeout),
                write: Duration::from_secs_f64(http.write_timeout),
                handler: http.handler_timeout.map(Duration::from_secs_f64),
                ..Timeouts::default()
            },
            // With files, `/` is one of them.
            instants: if http.root.is_some() { Instants::default() } else { routes::instants() },
            later: None,
            ready: None,
            health: true,
            access_log: http.access_log,
            trusted_proxies: http.trusted_proxies.clone(),
            http3: http.http3,
            compress: !http.no_compression,
        })
    }

    /// The routes that need no Redis.
    ///
    /// # Errors
    /// When the directory of `--root` is none.
    pub fn router(&self) -> io::Result<Router> {
        let Some(root) = &self.http.root else { return Ok(routes::router()) };
        routes::files(root).map_err(|error| io::Error::new(error.kind(), format!("--root {}: {error}", root.display())))
    }
}

/// An implementation of HTTP/1.1.
fn engine(text: &str) -> Result<Engine, &'static str> {
    match text {
        "serve" => Ok(Engine::Serve),
        "hyper" => Ok(Engine::Hyper),
        _ => Err("expected serve or hyper"),
    }
}

/// A number of header fields that can be had.
fn headers(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=h1::MAX_HEADERS).contains(count));
    count.ok_or_else(|| format!("expected 1 to {}", h1::MAX_HEADERS))
}

/// A positive number of seconds; a day at most, so that it always fits.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    if (0.01..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("expected 0.01 to 86400 seconds".to_owned()) }
}
