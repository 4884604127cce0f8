//! Descriptors that the process got from the one that started it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A descriptor of its own for what a number stands for; the number stays with whom it belongs to.
#[allow(unsafe_code, reason = "std takes descriptors by their numbers in unsafe functions alone")]
pub(crate) fn duplicate(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call reads and writes no memory of ours; a number that stands for nothing is an error.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, so that nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
