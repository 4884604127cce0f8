//! `redis-server`: starts the server from redis.conf, environment and flags.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use redis_server::clients::acl::Table;
use redis_server::commands::REGISTRY;
use redis_server::config::{Config, Launch, Request, help, logging, settings};
use redis_server::exec::core::loading::NotReady;
use redis_server::exec::core::{priority, renamed};
use redis_server::exec::snapshot;
use redis_server::observe::memory::Counting;
use redis_server::persistence::aof::{self, Damage};
use redis_server::persistence::disk::RealDisk;
use redis_server::persistence::rdb::{self, ReadError};
use redis_server::process::{self, Process, Supervisor, Title};
use redis_server::{REDIS_VERSION, runtime};
use server_runtime::{Allocator, Signals, allow_huge_pages, init_logging, suggest};

#[global_allocator]
static ALLOCATOR: Counting<Allocator> = Counting(Allocator);

fn main() -> ExitCode {
    // Before the first large allocation. mimalloc asks for huge pages, of which an idle server would touch a few bytes each.
    allow_huge_pages(false);
    if std::env::args_os().nth(1).is_some_and(|argument| argument == snapshot::STAND_IN) {
        snapshot::stand_in();
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == priority::PROBE) {
        priority::probe();
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    match Request::parse(std::env::args_os().skip(1))? {
        Request::Serve(launch) => return serve(&launch),
        Request::CheckConfig(launch) => {
            let (config, warnings) = Config::load(&launch, std::env::vars_os())?;
            Table::from_config(&config, REGISTRY)?;
            renamed(&config, REGISTRY)?;
            warnings.iter().for_each(|warning| println!("warning: {warning}"));
            println!("the configuration is good");
        }
        Request::CheckFile(path) => check(&path)?,
        Request::FixFile { path, yes } => fix(&path, yes)?,
        Request::Help(None) => print!("{}", help::overview(&own_name())),
        Request::Help(Some(name)) => print!("{}", help::page(&name)?),
        // In the form that others take apart; the version is that whose commands there are.
        Request::Version => println!(
            "Redis server v={REDIS_VERSION} sha=00000000:0 malloc=mimalloc bits={} build={}",
            usize::BITS,
            env!("CARGO_PKG_VERSION")
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// The name by which the program was started.
fn own_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    path.file_name().map_or_else(|| "redis-server".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Says what a file of the server's holds.
fn check(path: &Path) -> Result<(), String> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(6).read_to_end(&mut head));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    if path.extension().is_none_or(|extension| extension != "rdb") && !head.starts_with(b"REDIS") && head != b"VALKEY" {
        return check_commands(path).map(drop);
    }
    let (contents, error) = rdb::check(&RealDisk, path);
    if error.is_none() && path.metadata().is_ok_and(|file| file.len() > contents.end) {
        // Commands follow.
        return check_commands(path).map(drop);
    }
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

/// Says what an append-only file holds.
fn check_commands(path: &Path) -> Result<(), String> {
    let (contents, damage) = aof::check(&RealDisk, path)?;
    let Some(damage) = damage else {
        println!("{}: sound: {contents}", path.display());
        return Ok(());
    };
    Err(format!("{}; in front of that: {contents}", told(&damage)))
}

fn told(damage: &Damage) -> String {
    let kept = match damage.keeps {
        Some(keeps) => format!(
            "what is whole ends at {keeps}: redis-server --fix can cut off the {} bytes behind it",
            damage.len - keeps
        ),
        None => "nothing can be cut off".to_owned(),
    };
    format!("{}: damaged at {}; {kept}", damage.path.display(), damage.cause)
}

/// Cuts off what is damaged at the end of an append-only file.
fn fix(path: &Path, yes: bool) -> Result<(), String> {
    let (contents, damage) = aof::check(&RealDisk, path)?;
    let Some(damage) = damage else {
        println!("{}: sound: {contents}", path.display());
        return Ok(());
    };
    println!("{}", told(&damage));
    let Some(keeps) = damage.keeps else { return Err("nothing was changed".to_owned()) };
    if !yes {
        print!("Cut off {} bytes of {}? [y/N] ", damage.len - keeps, damage.path.display());
        let mut answer = String::new();
        let asked = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
        asked.map_err(|error| error.to_string())?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err("nothing was changed".to_owned());
        }
    }
    aof::fix(&RealDisk, &damage).map_err(|error| format!("{}: {error}", damage.path.display()))?;
    println!("{}: cut off at {keeps}", damage.path.display());
    Ok(())
}

/// Says why the server cannot go on.
fn fails(why: &str, has_logfile: bool) -> ExitCode {
    tracing::error!("{why}");
    if has_logfile {
        // The last line that is seen, too.
        println!("{why}");
    }
    ExitCode::FAILURE
}

fn serve(launch: &Launch) -> Result<ExitCode, Box<dyn std::error::Error>> {
    process::ignore_hangup();
    let (config, warnings) = Config::load(launch, std::env::vars_os())?;
    // As all that is wrong with the configuration, before anything of it is followed.
    renamed(&config, REGISTRY)?;
    if !config.is_on(settings::DISABLE_THP) {
        allow_huge_pages(true);
    }
    // First, because the log may be there.
    if let Some(dir) = config.string(settings::DIR) {
        std::env::set_current_dir(&dir).map_err(|error| format!("dir: cannot change to {dir}: {error}"))?;
    }
    init_logging(&logging::options(&config))?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let supervisor = Supervisor::detect(config.word(settings::SUPERVISED));
    let is_daemon = config.is_on(settings::DAEMONIZE) && !supervisor.is_there();
    if is_daemon {
        process::detach()?;
    }
    supervisor.starting();
    let title = config.is_on(settings::SET_PROC_TITLE).then(Title::take).flatten();
    let signals = Signals::catch()?;
    let pidfile = config.string(settings::PIDFILE).or_else(|| is_daemon.then(|| PIDFILE.to_owned()));
    run_server(config, signals, Process { supervisor, title }, pidfile.map(PathBuf::from).as_deref())
}

/// Where a server in the background has its process id unless told otherwise, as the genuine one does.
const PIDFILE: &str = "/var/run/redis.pid";

/// Returns true if any client of this machine may write without further ado, as after a start by hand without a configuration file.
fn is_trial(config: &Config) -> bool {
    let is_set = |setting| config.string(setting).is_some();
    config.file().is_none()
        && ![settings::LOGFILE, settings::REQUIREPASS].into_iter().any(is_set)
        && config.words(settings::REPLICAOF).is_empty()
        && !config.is_on(settings::CLUSTER_ENABLED)
        && config.uint(settings::TLS_PORT) == 0
}

/// Runs the server from its start to its end.
fn run_server(
    config: Config,
    signals: Signals,
    process: Process,
    pidfile: Option<&Path>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let file = config.file().map_or_else(|| "no configuration file".to_owned(), |path| path.display().to_string());
    tracing::info!("redis-server {} (Redis {REDIS_VERSION}), configuration: {file}", env!("CARGO_PKG_VERSION"));
    let has_logfile = config.string(settings::LOGFILE).is_some();
    let is_trial = is_trial(&config);
    let (running, instance) = match runtime::start(config, Some(signals), Some(process)) {
        Ok(started) => started,
        Err(error) => return Ok(fails(&error.to_string(), has_logfile)),
    };
    if let Some(path) = pidfile
        && let Err(error) = process::create_pidfile(path)
    {
        tracing::warn!("Failed to write PID file {}: {error}", path.display());
    }
    match instance.loading.wait() {
        Ok(()) => {
            for addr in running.local_addrs() {
                tracing::info!("Listening on {addr}");
            }
            tracing::info!("{}", runtime::READY);
            if is_trial {
                suggest(running.local_addrs(), |at| format!("redis-cli -p {} SET greeting hello", at.port()));
            }
            if let Some(supervisor) = instance.supervisor() {
                supervisor.ready(runtime::READY);
            }
        }
        Err(NotReady::Ends) => {}
        // The server must neither serve nor write the loaded data.
        Err(NotReady::Failed(why)) => {
            fails(&why, has_logfile);
            std::process::exit(1)
        }
    }
    if running.wait() {
        tracing::warn!("some connections did not end in time and were cut");
    }
    instance.aof.finish();
    // A table of nodes that changed a moment ago is in the file.
    instance.cluster.end();
    if let Some(path) = pidfile {
        // It may be gone, or never have been written; there is nothing left to be done about it.
        let _ = std::fs::remove_file(path);
    }
    tracing::info!("Redis is now ready to exit, bye bye...");
    Ok(ExitCode::SUCCESS)
}
