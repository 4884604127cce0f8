//! `redis-server`: starts the server from redis.conf, environment and flags.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use redis_server::REDIS_VERSION;
use redis_server::clients::acl::Table;
use redis_server::commands::REGISTRY;
use redis_server::config::logging;
use redis_server::config::{Config, Launch, Request, help, settings};
use redis_server::observe::memory::Counting;
use redis_server::persistence::rdb::{self, ReadError};
use redis_server::runtime::{StartError, shutdown_on_signals};
use server_runtime::init_logging;

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    match Request::parse(std::env::args_os().skip(1))? {
        Request::Serve(launch) => serve(&launch)?,
        Request::CheckConfig(launch) => {
            let (config, warnings) = Config::load(&launch, std::env::vars_os())?;
            Table::from_config(&config, REGISTRY)?;
            warnings.iter().for_each(|warning| println!("warning: {warning}"));
            println!("the configuration is good");
        }
        Request::CheckFile(path) => check(&path)?,
        Request::Help(None) => print!("{}", help::overview()),
        Request::Help(Some(name)) => print!("{}", help::page(&name)?),
        Request::Version => println!("redis-server {} (commands of Redis {REDIS_VERSION})", env!("CARGO_PKG_VERSION")),
    }
    Ok(())
}

/// Says what a file of the server's holds.
fn check(path: &Path) -> Result<(), String> {
    let (contents, error) = rdb::check(path);
    let path = path.display();
    match error {
        None => println!("{path}: sound: {contents}"),
        Some(ReadError::Io(error)) => return Err(format!("{path}: {error}")),
        Some(ReadError::Fault(fault)) => {
            return Err(format!("{path}: damaged at {fault}; in front of that: {contents}"));
        }
    }
    Ok(())
}

fn serve(launch: &Launch) -> Result<(), Box<dyn std::error::Error>> {
    let (config, warnings) = Config::load(launch, std::env::vars_os())?;
    init_logging(&logging::options(&config))?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if let Some(dir) = config.string(settings::DIR) {
        std::env::set_current_dir(&dir).map_err(|error| format!("dir: cannot change to {dir}: {error}"))?;
    }
    tracing::info!(
        "redis-server {} (Redis {REDIS_VERSION}), process {}, {}",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        config
            .file()
            .map_or_else(|| "no configuration file".to_owned(), |path| format!("configuration {}", path.display()))
    );
    let pidfile = config.string(settings::PIDFILE).map(PathBuf::from);
    let (running, instance) = match redis_server::runtime::start(config) {
        Err(error @ StartError::Load(_)) => {
            // The last line that is seen, wherever the log goes.
            println!("{error}");
            return Err(error.into());
        }
        started => started?,
    };
    shutdown_on_signals(&running, &instance)?;
    if let Some(path) = &pidfile
        && let Err(error) = std::fs::write(path, format!("{}\n", std::process::id()))
    {
        // Like the genuine server, which serves without the file then.
        tracing::warn!("pidfile: cannot write {}: {error}", path.display());
    }
    for addr in running.local_addrs() {
        tracing::info!("ready to accept connections on {addr}");
    }
    if running.wait() {
        tracing::warn!("some connections did not end in time and were cut");
    }
    if let Some(path) = &pidfile {
        // It may be gone, or never have been written; there is nothing left to be done about it.
        let _ = std::fs::remove_file(path);
    }
    tracing::info!("Redis is now ready to exit, bye bye...");
    Ok(())
}
