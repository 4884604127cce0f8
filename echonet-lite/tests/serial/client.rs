//! The blocking client on a pty.
