//! The timing loop.
