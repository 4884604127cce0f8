//! HTTP/1.1 without sockets: bytes to requests, responses to bytes (RFC 9112).
//!
//! The parser is stricter than the RFC where two readers of a message could disagree about its end, because that allows
//! request smuggling. Every line must end in CRLF. A length stands once. A coding other than `chunked` is refused, and
//! so is an invalid chunk extension; a valid one is ignored.

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
