//! All other systems: a datagram at a time with its packet information (quinn-udp), sockets that are waited for (polling), and
//! interfaces that are looked at now and then (if-addrs). The endpoint of tokio has a thread that waits.

mod datagrams;
mod driver;
mod interfaces;
mod watch;

use std::io;

pub(super) use datagrams::{Incoming, Outgoing, Udp};
pub(super) use driver::drive;
pub(super) use interfaces::{Changes, interfaces};
pub(super) use watch::{Waker, Watch, Watched};

/// Whether the system tells our own address beside that to which a datagram was sent.
pub(super) const TELLS_LOCAL: bool = false;
/// Whether a socket can be bound to a group or broadcast address, and then hears what is sent there alone.
pub(super) const BINDS_GROUPS: bool = cfg!(unix);

/// Lets other programs use the port of a socket, too.
pub(super) fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    // BSD's kernels, macOS' among them, ask for this of programs that use the same address; so Node.js sets it there.
    #[cfg(all(unix, not(target_os = "linux")))]
    socket.set_reuse_port(true)?;
    Ok(())
}

/// Whether a connection is being made, though the call has ended.
pub(super) fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::EINPROGRESS) {
        return true;
    }
    error.kind() == io::ErrorKind::WouldBlock
}
