//! Linux: batches of datagrams, changes told by the kernel, a task of tokio that waits for it all.

mod driver;
mod netlink;
mod sys;
mod watch;

use std::io;

pub(super) use driver::drive;
pub(super) use netlink::{Changes, interfaces};
pub(super) use sys::{Incoming, Outgoing, Udp};
pub(super) use watch::{Waker, Watch, Watched};

/// Whether the system tells our own address beside that to which a datagram was sent.
pub(super) const TELLS_LOCAL: bool = true;
/// Whether a socket can be bound to a group or broadcast address, and then hears what is sent there alone.
pub(super) const BINDS_GROUPS: bool = true;

/// Lets other programs use the port of a socket, too.
pub(super) fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// Whether a connection is being made, though the call has ended.
pub(super) fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS)
}
