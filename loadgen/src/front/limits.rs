//! File descriptors: each connection needs one.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::cli::Invalid;

/// The open files of a process besides its connections: standard streams, event loops, output files, /proc.
const OTHERS: u64 = 64;

/// Lets this process open as many files as the system allows, and checks that `connections` fit.
pub(crate) fn allow_connections(connections: usize) -> Result<(), Invalid> {
    let limits = getrlimit(Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limits.maximum, maximum: limits.maximum };
    // Where it is refused, the check below uses what there is.
    let _ = setrlimit(Resource::Nofile, wanted);
    check(connections, getrlimit(Resource::Nofile).current)
}

fn check(connections: usize, open_files: Option<u64>) -> Result<(), Invalid> {
    let Some(most) = open_files else { return Ok(()) };
    if connections as u64 + OTHERS <= most {
        return Ok(());
    }
    Err(Invalid::new(
        "--connections",
        connections,
        format_args!(
            "at most {}: this process may open {most} files (raise the hard limit, see `ulimit -Hn`)",
            most.saturating_sub(OTHERS)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_must_fit() {
        assert_eq!(check(1000, None), Ok(()));
        assert_eq!(check(960, Some(1024)), Ok(()));
        let error = check(961, Some(1024)).unwrap_err().to_string();
        assert!(
            error.starts_with("--connections is `961`, expected at most 960: this process may open 1024"),
            "{error}"
        );
    }
}
