//! WebSockets (RFC 6455).

pub mod codec;
