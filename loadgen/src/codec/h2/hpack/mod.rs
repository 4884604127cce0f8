//! HPACK (RFC 7541): header fields as bytes, with a table of earlier ones on both sides.

mod decode;
mod encode;
mod huffman;
mod integer;
mod table;

pub(crate) use decode::MAX_HEADER_LIST;
pub use decode::{Decoder, Invalid};
pub use encode::{Block, Field, Form};
pub(crate) use encode::{append_literal, append_table_size};
pub(crate) use table::DEFAULT_TABLE_SIZE;
#[cfg(feature = "http3")]
pub(in crate::codec) use {
    decode::count, decode::read_text, encode::append_text, integer::append_integer, integer::read_integer,
};
