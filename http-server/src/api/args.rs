//! The flags of the Redis routes, and the options made of them.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use http::HeaderValue;

use super::Api;
use super::access::{Access, Rules};
use super::get::Getter;
use super::hosts::Hosts;
use crate::redis::{Redis, Settings, Target};
use crate::{Options, Ready};

/// Flags of the Redis routes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Redis")]
pub struct RedisArgs {
    /// Where Redis is: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`, `rediss://…` (TLS), `unix:///PATH[?db=DB]`, `HOST:PORT`,
    /// or `embedded`, a server of our own in this process
    #[arg(long, value_name = "PLACE", env = "HTTP_SERVER_REDIS", hide_env_values = true)]
    pub redis: Option<Target>,

    /// Certificate authorities for rediss://, a PEM file [default: the system's]
    #[arg(long, requires = "redis", value_name = "FILE")]
    pub redis_ca: Option<PathBuf>,

    /// Longest wait for an answer of Redis, in milliseconds
    #[arg(long, requires = "redis", value_name = "MS", default_value_t = 2000)]
    pub redis_timeout: u64,

    /// Longest wait for a connection to Redis, in milliseconds
    #[arg(long, requires = "redis", value_name = "MS", default_value_t = 1000)]
    pub redis_connect_timeout: u64,

    /// Rights of callers, a TOML file: `[anonymous]` and `[[token]]` with commands, keys and channels
    #[arg(long, requires = "redis", value_name = "FILE", conflicts_with_all = ["redis_allow", "redis_keys"])]
    pub redis_access: Option<PathBuf>,

    /// Commands that every caller may send: names, and the groups @read, @write, @publish, @script, @admin, @all
    #[arg(
        long,
        requires = "redis",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "@read",
        allow_hyphen_values = true
    )]
    pub redis_allow: Vec<String>,

    /// Prefixes of keys that every caller may use; * is all
    #[arg(long, requires = "redis", value_name = "LIST", value_delimiter = ',', default_value = "*")]
    pub redis_keys: Vec<String>,

    /// Longest request body, in bytes
    #[arg(long, requires = "redis", value_name = "BYTES", default_value_t = 1024 * 1024)]
    pub redis_max_request: usize,

    /// Longest answer of Redis to one request, in bytes
    #[arg(long, requires = "redis", value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    pub redis_max_answer: usize,

    /// Bytes of requests and answers that all clients together may hold; requests that find no room are answered 503
    #[arg(long, requires = "redis", value_name = "BYTES", default_value_t = 256 * 1024 * 1024)]
    pub redis_max_held: usize,

    /// Origins of web pages elsewhere that may use the Redis routes, such as `https://app.example`; `*` is any
    #[arg(long, requires = "redis", value_name = "LIST", value_delimiter = ',')]
    pub cors_origin: Vec<String>,

    /// Host names by which the Redis routes are reached, beside addresses and localhost; `*` is any
    #[arg(long, requires = "redis", value_name = "LIST", value_delimiter = ',')]
    pub host: Vec<String>,
}

impl RedisArgs {
    fn settings(&self, target: Target) -> Settings {
        Settings {
            connect_timeout: Duration::from_millis(self.redis_connect_timeout),
            answer_timeout: Duration::from_millis(self.redis_timeout),
            ca: self.redis_ca.clone(),
            max_answer: self.redis_max_answer,
            max_held: self.redis_max_held,
            ..Settings::new(target)
        }
    }

    fn access(&self) -> Result<Access> {
        match &self.redis_access {
            Some(path) => Access::load(path).map_err(anyhow::Error::msg),
            None => {
                let rules = Rules::parse(&self.redis_allow, &self.redis_keys, None).map_err(anyhow::Error::msg);
                Ok(Access::open(rules.context("--redis-allow")?))
            }
        }
    }

    fn hosts(&self) -> Result<Hosts> {
        Hosts::parse(&self.host).map_err(anyhow::Error::msg).context("--host")
    }

    fn origins(&self) -> Result<Vec<HeaderValue>> {
        let origins = self.cors_origin.iter().map(|origin| {
            // Browsers send an origin without a path, and compare byte by byte.
            if origin != "*" && (!origin.contains("://") || origin.ends_with('/')) {
                bail!("--cors-origin: {origin:?} is no origin, such as https://app.example");
            }
            HeaderValue::from_str(origin).context("--cors-origin")
        });
        origins.collect()
    }
}

/// The routes `/get`, `/v1` and `/_/`; `options` learn of the short way to `/get`, and whom to ask for `/readyz`.
///
/// Their handlers run on the thread of the worker that has the connection, inside its runtime.
///
/// # Errors
/// When the flags name something that cannot be had.
pub fn routes(args: &RedisArgs, options: &mut Options) -> Result<Router> {
    if args.redis_timeout == 0 || args.redis_connect_timeout == 0 {
        bail!("--redis-timeout and --redis-connect-timeout are at least 1");
    }
    if args.redis_max_held < args.redis_max_answer {
        bail!("--redis-max-held is at least --redis-max-answer");
    }
    let redis = args.redis.clone().map(|target| Redis::new(args.settings(target))).transpose()?;
    let (origins, hosts) = (args.origins()?, args.hosts()?);
    options.ready = redis.clone().map(|redis| Arc::new(Reachable(redis)) as _);
    let api = Api::new(redis, args.access()?, origins, hosts, args.redis_max_request, &options.runtime.metrics);
    options.later = Getter::of(&api).map(|getter| Arc::new(getter) as _);
    Ok(super::router(api))
}

/// Whether Redis answers, even with an error.
#[derive(Debug)]
struct Reachable(Redis);

impl Ready for Reachable {
    fn is_ready(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let answer = self.0.command(&["PING"]);
        Box::pin(async move { answer.await.is_ok() })
    }
}
