//! Room for a connection is a file descriptor first.

use std::fs::File;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// File descriptors beside those of connections: listeners, log, certificate and data files, one poller for each runtime.
const RESERVE: usize = 64;

/// File descriptors that the kernel's table of them has room for from the start, at most: half a megabyte.
const ROOM: usize = 65_536;

/// The connections, of the `wanted` ones, that the process may have file descriptors for.
/// Raises the process' limit of them as far as it has to and may.
pub(crate) fn connections_allowed(wanted: usize) -> usize {
    let needed = wanted.saturating_add(RESERVE) as u64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return wanted;
    }
    let before = limit.current;
    limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
    let current = setrlimit(Resource::Nofile, limit).map_or(before, |()| limit.current);
    let allowed = allowed(wanted, current);
    if allowed < wanted {
        warn!(
            "{wanted} connections need {needed} open files, which the system does not allow (ulimit -n); using {allowed}"
        );
    }
    allowed
}

/// Has the kernel make its table of the process' files as large as so many connections need. It would double it whenever it is full;
/// each time who opens a file then waits until all processors have been elsewhere once, which takes some 16 ms where there are threads.
pub(crate) fn make_room(connections: usize) {
    let last = connections.saturating_add(RESERVE).min(ROOM) - 1;
    // The table stays as it is when the file is closed. A refusal is no harm: the table then grows by and by.
    let _ = File::open("/dev/null").and_then(|file| Ok(fcntl_dupfd_cloexec(file, last as i32)?));
}

fn allowed(wanted: usize, files: Option<u64>) -> usize {
    let Some(files) = files.and_then(|files| usize::try_from(files).ok()) else { return wanted };
    // With hardly any files at all, half for connections is the better guess.
    wanted.min(files.saturating_sub(RESERVE).max(files / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_the_files() {
        fn check(wanted: usize, files: Option<u64>, expected: usize) {
            assert_eq!(allowed(wanted, files), expected, "{wanted} {files:?}");
        }
        check(10, None, 10);
        check(10_000, Some(1024), 960);
        check(10_000, Some(100), 50);
        check(100, Some(1024), 100);
        check(0, Some(0), 0);
    }
}
