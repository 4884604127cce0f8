//! Resident bytes per key.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::options::Options;
use crate::load::Connection;

/// Time for an allocator to give back what the loading left over.
pub(super) const SETTLE: Duration = Duration::from_millis(1500);

/// Loads the keys into a fresh server of every subject and divides the growth of its resident memory by their number.
pub(super) fn run(options: &Options, folder: &Path) -> Result<()> {
    println!("{} keys of 16 bytes, values of {} bytes:", options.keys, options.value_size);
    println!("{:<16} {:>14} {:>14} {:>10} {:>8}", "subject", "empty MiB", "loaded MiB", "bytes/key", "ratio");
    let mut first = None;
    for subject in &options.subjects {
        let server = subject.start(options.pin.as_ref(), folder)?;
        let before = server.resident_bytes()?;
        Connection::open(server.port(), options.value_size)?.fill(options.keys)?;
        thread::sleep(SETTLE);
        let after = server.resident_bytes()?;
        let per_key = after.saturating_sub(before) as f64 / options.keys as f64;
        let ratio = *first.get_or_insert(per_key) / per_key;
        let (before, after) = (mebibytes(before), mebibytes(after));
        println!("{:<16} {before:>14.1} {after:>14.1} {per_key:>10.1} {ratio:>8.3}", subject.name);
    }
    println!("(ratio: bytes per key of the first subject divided by this one's)");
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
