//! Going into the background, as daemon(7) describes it for services without a service manager.
#![allow(unsafe_code, reason = "std has neither fork nor a way to ignore a signal")]

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process;

/// Goes on as a child of its own session, with `/dev/null` for standard input, output and error. The parent exits with 0, so that
/// the shell or the script that has started it goes on.
///
/// The process must have one thread: a child has none of the others, and what they had locked stays locked in it.
///
/// # Errors
/// The system refuses a process, or there is no `/dev/null`.
pub fn detach() -> io::Result<()> {
    // SAFETY: the caller's promise that there is one thread makes every function safe in the child.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        _ => process::exit(0),
    }
    rustix::process::setsid()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: `null` is open, and what it takes the place of is owned by nobody.
        if unsafe { libc::dup2(null.as_raw_fd(), standard) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Has SIGHUP do nothing: a terminal that closes must not end a server without a word. A handler that is installed later takes its
/// place.
pub fn ignore_hangup() {
    // SAFETY: SIG_IGN runs no code.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Writes this process' id into a file.
///
/// # Errors
/// The file cannot be written.
pub fn create_pidfile(path: &Path) -> io::Result<()> {
    fs::write(path, format!("{}\n", process::id()))
}
