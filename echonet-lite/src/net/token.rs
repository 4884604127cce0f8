//! The kinds of events to watch for, and the numbers that name their sources.

/// Changes of interfaces and addresses.
pub(super) const CHANGES: u64 = 0;
/// Another thread wants something.
pub(super) const WAKER: u64 = 1;
/// A TCP listener, by its place.
pub(super) const LISTENERS: u64 = 1 << 8;
/// A UDP socket, by its place.
pub(super) const SOCKETS: u64 = 1 << 16;
/// A TCP connection, by its place.
pub(super) const CONNECTIONS: u64 = 1 << 24;

/// The readiness of a socket to watch for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Nothing for now.
    Nothing,
    /// That it can be read.
    Reading,
    /// That it can be written to.
    Writing,
    /// That it can be read or written to.
    Both,
}
