//! Logs by `tracing`, with the same settings in every server.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::error::Error;

/// What is logged, how, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`; or, by module, as `info,server_runtime=debug`.
    pub level: String,
    /// One line of text or of JSON for each event.
    pub format: LogFormat,
    /// Appended to; `None` is the standard error output.
    pub file: Option<PathBuf>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text, file: None }
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
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// Sends the process' log where `options` say. Once per process; panics are logged too.
///
/// # Errors
/// When the level is none, the file cannot be opened, or the process has a log already.
pub fn init_logging(options: &LogOptions) -> Result<(), Error> {
    let filter = EnvFilter::from_str(&options.level).map_err(|error| {
        Error::Log(format!(
            "\"{}\" is no level ({error}): expected error, warn, info, debug, trace, off or MODULE=LEVEL,…",
            options.level
        ))
    })?;
    let (writer, colours) = match &options.file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.map_err(|error| Error::Log(format!("cannot open {}: {error}", path.display())))?;
            (BoxMakeWriter::new(file), false)
        }
        None => (BoxMakeWriter::new(io::stderr), io::stderr().is_terminal()),
    };
    install(filter, options.format, writer, colours).map_err(|error| Error::Log(error.to_string()))?;
    log_panics();
    Ok(())
}

fn install<W>(filter: EnvFilter, format: LogFormat, writer: W, colours: bool) -> Result<(), impl fmt::Display>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(colours)
        .with_thread_names(true);
    match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    }
}

/// A worker survives the panic of one connection; the log is where it is then seen.
fn log_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        before(panic);
    }));
}
