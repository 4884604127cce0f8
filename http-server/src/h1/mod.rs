//! HTTP/1.1 without sockets: bytes to requests, responses to bytes (RFC 9112).
//!
//! Stricter than the RFC asks for wherever two readers of one message could disagree about where it ends, because that is
//! how requests are smuggled: every line ends in CRLF, a length is said once, a coding is `chunked` or refused, chunk
//! extensions are refused.

mod chunked;
mod encode;
mod head;
mod plain;

pub use chunked::{BadChunk, Decoder, chunk_end, chunk_start};
pub(crate) use encode::status_line;
pub use encode::{Ending, Framed, head as encode_head, refusal};
pub use head::{Framing, Head, Limits, MAX_HEADERS, Reject, Room, is_complete, parse};

/// A table of the ASCII letters, the digits and `others`: which bytes may stand in one of the grammar's elements.
pub(crate) const fn alphanumerics_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
}
