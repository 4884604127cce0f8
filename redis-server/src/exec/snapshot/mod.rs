//! Snapshots: the data of all databases, and the function libraries, in a file, and back.
//!
//! SAVE locks what it saves as a whole meanwhile; BGSAVE and save points let the server go on ([`Background`]). Either way the file
//! shows one moment. A server that was started from its configuration loads the file before it serves, saves at its save
//! points and when it ends; one that is part of another program touches files only when a client says so.

mod automatic;
mod background;
mod encoder;
mod file;
mod handover;
mod insert;
mod load;
mod position;
mod save;
mod shutdown;
mod stand_in;
mod walk;

pub use automatic::{begin_if_due, begin_now, flushed, job, refuses_writes};
pub use background::{
    AtCut, Background, Create, Ended, Job, NoSnapshot, Occupied, Purpose, Record, Running, Target, start, start_now,
};
pub use encoder::Format;
#[cfg(test)]
pub(crate) use load::begin_from;
pub(crate) use load::load_alone;
pub use load::{Aside, LoadError, Merge, check_file, empty, is_empty, load, load_aside, load_at_start, load_in_place};
#[cfg(test)]
pub(crate) use save::whole;
pub(crate) use save::{functions_only, write_empty};
pub use save::{locked, save_views};
pub use shutdown::{Ending, GOES_ON, Leave, SaveAtEnd, Shutdown, forget_temporary, prepare_shutdown, shut_down};
pub use stand_in::{ARGUMENT as STAND_IN, run as stand_in};

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
pub(super) fn delay(config: &Config, setting: Number) -> Option<Duration> {
    u64::try_from(config.int(setting)).ok().filter(|&micros| micros > 0).map(Duration::from_micros)
}

/// The file that the process' own thread writes before it takes the file's place.
fn temporary(config: &Config) -> PathBuf {
    folder(config).join(format!("temp-{}.rdb", std::process::id()))
}

fn folder(config: &Config) -> PathBuf {
    config.string(settings::DIR).unwrap_or_default().into()
}

fn file_name(config: &Config) -> String {
    config.string(settings::DBFILENAME).unwrap_or_default()
}
