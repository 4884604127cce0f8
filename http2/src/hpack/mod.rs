//! HPACK (RFC 7541): header blocks to fields and back.
//!
//! ```
//! use http2::hpack::{Decoder, Encoder, Field, Fields};
//!
//! let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
//! let (mut block, mut fields) = (Vec::new(), Fields::new());
//! encoder.encode([Field::new(b":status", b"200"), Field::secret(b"set-cookie", b"id=1")].into_iter(), &mut block);
//! let decoded = decoder.decode(&block, 1000, &mut fields)?;
//! assert!(decoded.is_whole);
//! assert_eq!(fields.get(b":status"), Some(&b"200"[..]));
//! # Ok::<(), http2::hpack::Malformed>(())
//! ```

mod decode;
mod encode;
mod fields;
mod huffman;
mod statics;
mod table;

pub use decode::{Decoded, Decoder, Malformed};
pub use encode::{Block, Encoder};
pub use fields::{Field, Fields};

/// The overhead of a header table's entry beside its text (RFC 7541 section 4.1), and of a field in the size of a
/// header list (RFC 9113 section 6.5.2).
pub const OVERHEAD: usize = 32;

/// The size of header tables until settings say otherwise (RFC 9113 section 6.5.2).
pub const TABLE_SIZE: usize = 4096;

/// The largest header table that is kept: texts' lengths have 16 bits.
pub const MOST_TABLE_SIZE: usize = 65_535;

/// The bits in a field's first byte that say how it is represented (RFC 7541 section 6).
mod pattern {
    pub(super) const INDEXED: u8 = 0x80;
    pub(super) const WITH_INDEXING: u8 = 0x40;
    pub(super) const SIZE_UPDATE: u8 = 0x20;
    pub(super) const NEVER_INDEXED: u8 = 0x10;
}

#[cfg(test)]
mod tests;
