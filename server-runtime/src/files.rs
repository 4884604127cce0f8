//! Room for a connection is a file descriptor first.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// File descriptors beside those of connections: listeners, log, certificate and data files, one poller for each runtime.
const RESERVE: usize = 64;

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
