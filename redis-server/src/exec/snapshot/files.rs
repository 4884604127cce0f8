//! Where snapshots are, and how slowly tests have them written and read.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Config, Number, settings};

/// Bytes of the file of snapshots; none where there is no file.
pub fn size(config: &Config) -> u64 {
    path(config).metadata().map_or(0, |file| if file.is_file() { file.len() } else { 0 })
}

/// The file of snapshots.
pub fn path(config: &Config) -> PathBuf {
    folder(config).join(file_name(config))
}

/// The delay of each key's saving or loading, for tests. Negative numbers are fractions of a microsecond, and too short to be kept.
pub(in crate::exec) fn delay(config: &Config, setting: Number) -> Option<Duration> {
    u64::try_from(config.int(setting)).ok().filter(|&micros| micros > 0).map(Duration::from_micros)
}

/// The file that the process' own thread writes before it takes the file's place.
pub(super) fn temporary(config: &Config) -> PathBuf {
    folder(config).join(format!("temp-{}.rdb", std::process::id()))
}

pub(super) fn folder(config: &Config) -> PathBuf {
    config.string(settings::DIR).unwrap_or_default().into()
}

pub(super) fn file_name(config: &Config) -> String {
    config.string(settings::DBFILENAME).unwrap_or_default()
}
