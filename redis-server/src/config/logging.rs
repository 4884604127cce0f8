//! The options of the log, from the configuration.

use server_runtime::{LogFormat, LogOptions, LogOutput};

use super::{Config, settings};

/// Levels of the log by the place of the words of `loglevel`: `debug`, `verbose`, `notice`, `warning`.
const LEVELS: [&str; 4] = ["debug", "info", "info", "warn"];

/// The level of the log that `loglevel` stands for.
pub fn level(config: &Config) -> &'static str {
    LEVELS[config.size(settings::LOGLEVEL).min(LEVELS.len() - 1)]
}

/// The settings of the log.
pub fn options(config: &Config) -> LogOptions {
    LogOptions {
        level: level(config).to_owned(),
        format: if config.int(settings::LOG_FORMAT) == 1 { LogFormat::Json } else { LogFormat::Redis },
        output: config.string(settings::LOGFILE).map_or(LogOutput::Stdout, |file| LogOutput::File(file.into())),
    }
}
