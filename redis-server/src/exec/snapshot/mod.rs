//! Snapshots: the data of all databases, and the function libraries, in a file, and back.
//!
//! What is saved is locked as a whole meanwhile, so that the file shows one moment. A server that was started from its
//! configuration loads the file before it serves, and saves when it ends; one that is part of another program touches
//! files only when a client says so.

mod load;
mod save;
mod shutdown;

pub use load::{LoadError, Merge, load, load_at_start};
pub use save::{locked, save, save_views};
pub use shutdown::{Leave, SaveAtEnd, prepare_shutdown, save_at_end};

use std::path::PathBuf;
use std::time::Duration;

use crate::config::{Config, Number, settings};

/// The file of snapshots.
pub fn path(config: &Config) -> PathBuf {
    folder(config).join(file_name(config))
}

/// What tests have each key's saving or loading wait. Negative numbers are fractions of a microsecond, and too short to be kept.
fn delay(config: &Config, setting: Number) -> Option<Duration> {
    u64::try_from(config.int(setting)).ok().filter(|&micros| micros > 0).map(Duration::from_micros)
}

fn folder(config: &Config) -> PathBuf {
    config.string(settings::DIR).unwrap_or_default().into()
}

fn file_name(config: &Config) -> String {
    config.string(settings::DBFILENAME).unwrap_or_default()
}
