//! The wire: RESP2, RESP3 and inline commands (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! `request` turns bytes into argument vectors without copying them, `encode` the other way round; `reply` appends answers to an output
//! buffer.
//! Neither knows sockets, commands or the clock.

mod encode;
pub mod error;
pub mod glob;
pub mod number;
#[cfg(test)]
pub(crate) mod oracle;
mod reply;
mod request;

pub use encode::encode_command;
pub use reply::{Mark, Reply};
pub use request::{
    Inline, MAX_REQUEST, Parser, ProtocolError, RequestLimits, Span, parse_whole_commands, split_inline, split_words,
};
