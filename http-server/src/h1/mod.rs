//! HTTP/1.1 without sockets: bytes to requests, responses to bytes (RFC 9112).
//!
//! Stricter than the RFC asks for wherever two readers of one message could disagree about where it ends, because that is
//! how requests are smuggled: every line ends in CRLF, a length is said once, a coding is `chunked` or refused, chunk
//! extensions are refused.

mod chunked;
mod encode;
mod head;

pub use chunked::{BadChunk, Decoder, chunk_end, chunk_start};
pub(crate) use encode::status_line;
pub use encode::{Ending, Framed, head as encode_head, refusal};
pub use head::{Framing, Head, Limits, MAX_HEADERS, Reject, is_complete, parse};
