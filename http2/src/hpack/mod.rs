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
mod pattern;
mod sizes;
mod statics;
mod table;

pub use decode::{Decoded, Decoder, Malformed};
pub use encode::{Block, Encoder};
pub use fields::{Field, Fields};
pub use sizes::{MOST_TABLE_SIZE, OVERHEAD, TABLE_SIZE};

#[cfg(test)]
mod tests;
