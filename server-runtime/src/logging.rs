//! Logs by `tracing`, with the same settings in every server.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, reload};

use crate::error::Error;
use crate::redis_line::RedisLine;

/// The level, the format and the destination of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`; or, by module, as `info,server_runtime=debug`.
    pub level: String,
    /// One line of text or of JSON for each event.
    pub format: LogFormat,
    /// Where to.
    pub output: LogOutput,
}

/// Where the log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogOutput {
    /// The standard error output.
    #[default]
    Stderr,
    /// The standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text, output: LogOutput::Stderr }
    }
}

/// The form of the log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For collectors.
    Json,
    /// As Redis writes it: `4711:M 01 Jan 2026 10:00:00.000 * text`.
    #[value(skip)]
    Redis,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Redis => "redis",
        })
    }
}

/// Sends the process' log where `options` say. Once per process; panics are logged too.
///
/// # Errors
/// When the level is none, the file cannot be opened, or the process has a log already.
pub fn init_logging(options: &LogOptions) -> Result<(), Error> {
    let filter = filter(&options.level)?;
    let (writer, colours) = match &options.output {
        LogOutput::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| Error::Log(format!("cannot open {}: {error}", path.display())))?;
            (BoxMakeWriter::new(file), false)
        }
        LogOutput::Stderr => (BoxMakeWriter::new(io::stderr), io::stderr().is_terminal()),
        LogOutput::Stdout => (BoxMakeWriter::new(io::stdout), io::stdout().is_terminal()),
    };
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours).with_thread_names(true);
    let lines = match options.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Redis => lines.event_format(RedisLine).boxed(),
    };
    let log = tracing_subscriber::registry().with(filter).with(lines);
    log.try_init().map_err(|error| Error::Log(error.to_string()))?;
    // A process has one log, which was just made.
    let _ = FILTER.set(handle);
    log_panics();
    Ok(())
}

/// The filter of the process' log.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Changes what is logged from now on; `level` as in [`LogOptions::level`]. A process whose log was not made by
/// [`init_logging`] keeps what it has.
///
/// # Errors
/// When the level is none.
pub fn set_log_level(level: &str) -> Result<(), Error> {
    let filter = filter(level)?;
    FILTER.get().map_or(Ok(()), |log| log.reload(filter)).map_err(|error| Error::Log(error.to_string()))
}

fn filter(level: &str) -> Result<Targets, Error> {
    let filter = Targets::from_str(level).map_err(|error| {
        Error::Log(format!(
            "\"{level}\" is no level ({error}): expected error, warn, info, debug, trace, off or MODULE=LEVEL,…"
        ))
    })?;
    // The input of strangers causes rustls' warnings; strangers could fill the log with them.
    let is_quiet = matches!(filter.default_level(), Some(LevelFilter::WARN | LevelFilter::INFO));
    let names_it = filter.iter().any(|(target, _)| target.starts_with(RUSTLS));
    Ok(if is_quiet && !names_it { filter.with_target(RUSTLS, LevelFilter::ERROR) } else { filter })
}

/// Where rustls' lines come from.
const RUSTLS: &str = "rustls";

/// A worker survives the panic of one connection; the log is where it is then seen.
fn log_panics() {
    let before = std::panic::take_hook();
    let is_asked = std::env::var_os("RUST_BACKTRACE").is_some() || std::env::var_os("RUST_LIB_BACKTRACE").is_some();
    std::panic::set_hook(Box::new(move |panic| {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return before(panic);
        }
        // Also where nobody has thought of RUST_BACKTRACE=1 beforehand; 0 turns it off.
        let trace = if is_asked { Backtrace::capture() } else { Backtrace::force_capture() };
        match trace.status() {
            BacktraceStatus::Captured => tracing::error!("{panic}\n{trace}"),
            _ => tracing::error!("{panic}"),
        }
    }));
}
