//! Values as Redis writes them down: the object format of its RDB files, which `DUMP` and `RESTORE` carry.
//!
//! Written is version 10, that of Redis 7.0; read is everything from there back to ziplists, and what version 11 added.
//! What is read is checked down to the last byte: a payload can come from anybody.

mod crc;
#[cfg(test)]
mod differential;
mod load;
mod lzf;
mod reader;
mod save;
mod stream;
#[cfg(test)]
mod tests;
mod ziplist;

pub use load::{Limits, Loaded};

use crate::keyspace::ValueRef;

/// The version that is written.
const VERSION: u16 = 10;
/// The newest version that is read.
const NEWEST: u16 = 11;
/// Version and checksum behind a payload.
const FOOTER: usize = 2 + 8;

/// Announces the code of a function library.
const FUNCTION: u8 = 245;

/// The types of values, as the format numbers them.
mod kind {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_SET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED_SET: u8 = 5;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const STREAM: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const SORTED_SET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const STREAM_2: u8 = 19;
    pub(super) const SET_LISTPACK: u8 = 20;
    pub(super) const STREAM_3: u8 = 21;
}

/// Why a payload cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its version is too new, or its checksum is another one.
    Footer,
    /// It is no value.
    Content,
}

/// A value as `DUMP` answers it.
pub fn dump(value: ValueRef<'_>) -> Vec<u8> {
    let mut bytes = save::value(value);
    sign(&mut bytes);
    bytes
}

/// How many bytes a value has in a file, without its type.
pub fn saved_len(value: ValueRef<'_>) -> usize {
    save::value(value).len() - size_of::<u8>()
}

/// Puts version and checksum behind what is to be restored.
pub fn sign(bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc::crc64(bytes).to_le_bytes());
}

/// Why a payload of `FUNCTION DUMP` cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionsRefused {
    /// Its version is too new, or its checksum is another one.
    Footer,
    /// It holds something else than libraries.
    Type,
    /// A library is cut off.
    Content,
}

/// Function libraries as `FUNCTION DUMP` answers them.
pub fn dump_functions<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for code in codes {
        bytes.push(FUNCTION);
        save::string(&mut bytes, code);
    }
    sign(&mut bytes);
    bytes
}

/// The code of the libraries that a payload of `FUNCTION DUMP` holds.
///
/// # Errors
/// It is none.
pub fn restore_functions(payload: &[u8]) -> Result<Vec<Vec<u8>>, FunctionsRefused> {
    let body = body(payload).map_err(|_| FunctionsRefused::Footer)?;
    let mut reader = reader::Reader(body);
    let mut codes = Vec::new();
    while let Some(opcode) = reader.byte() {
        if opcode != FUNCTION {
            return Err(FunctionsRefused::Type);
        }
        codes.push(reader.string().ok_or(FunctionsRefused::Content)?.into_owned());
    }
    Ok(codes)
}

/// What is restored of a payload, whose footer is right.
fn body(payload: &[u8]) -> Result<&[u8], Refused> {
    let body = payload.len().checked_sub(FOOTER).ok_or(Refused::Footer)?;
    let (signed, checksum) = payload.split_at(body + 2);
    let version = u16::from_le_bytes([payload[body], payload[body + 1]]);
    if version > NEWEST || checksum != crc::crc64(signed).to_le_bytes() {
        return Err(Refused::Footer);
    }
    Ok(&payload[..body])
}

/// The value that a payload of `DUMP` holds.
///
/// # Errors
/// It is none.
pub fn restore(payload: &[u8], limits: &Limits) -> Result<Loaded, Refused> {
    load::value(body(payload)?, limits).ok_or(Refused::Content)
}
