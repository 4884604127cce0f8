//! RDB, the format of Redis' snapshots: whole files ([`Writer`], [`Decoder`]), and single values, which `DUMP` and `RESTORE`
//! carry.
//!
//! Written is version 10, that of Redis 7.0, which every later one reads, unless fields of a hash expire: then 12 of Redis 7.4, or 80 of
//! Valkey 9. Values are read from zipmaps to what these added. Input is checked down to the last byte, because it can come from anywhere.

mod check;
mod crc;
mod decoder;
#[cfg(test)]
mod differential;
mod file;
mod load;
mod lzf;
mod module;
mod reader;
mod save;
mod skip;
mod stream;
#[cfg(test)]
mod tests;
mod version;
mod writer;
mod ziplist;
mod zipmap;

pub use check::{Contents, check};
pub use decoder::{Cause, Cut, Decoder, Fault, Item, Record, Step};
pub use file::{Batch, File, Part, ReadError};
pub use load::{Limits, Loaded};
pub use version::Fork;
pub use writer::{Access, Encoded, Records, WriteOptions, Writer};

use crate::keyspace::ValueRef;
use crate::persistence::rdb::version::{NEWEST, VALKEY, VERSION};

/// Files for tests of those who load them.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::differential::damage;
    pub(crate) use super::tests::file as sample;
}

/// Version and checksum behind a payload.
const FOOTER: usize = 2 + 8;

/// The opcodes in front of items other than values.
mod opcode {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const FUNCTION_OF_A_CANDIDATE: u8 = 246;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const EXPIRES_AT_MS: u8 = 252;
    pub(super) const EXPIRES_AT_SECOND: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// The types of values, as the format numbers them.
mod kind {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const SORTED_SET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const SORTED_SET: u8 = 5;
    pub(super) const MODULE: u8 = 6;
    pub(super) const MODULE_2: u8 = 7;
    pub(super) const HASH_ZIPMAP: u8 = 9;
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
    /// In files of Redis, of a candidate of 7.4 as the next.
    pub(super) const HASH_TTL_OF_VALKEY: u8 = 22;
    pub(super) const HASH_LISTPACK_TTL_OF_A_CANDIDATE: u8 = 23;
    pub(super) const HASH_TTL: u8 = 24;
    pub(super) const HASH_LISTPACK_TTL: u8 = 25;
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
pub fn dump(value: ValueRef<'_>, fork: Fork) -> Vec<u8> {
    let mut bytes = vec![save::kind(value, fork)];
    save::value(&mut bytes, value, fork);
    let fields_expire = matches!(value, ValueRef::Hash(hash) if hash.expires());
    sign_as(&mut bytes, fork.version(fields_expire));
    bytes
}

/// How many bytes a value has in a file, without its type.
pub fn saved_len(value: ValueRef<'_>) -> usize {
    let mut len = 0usize;
    save::value(&mut len, value, Fork::default());
    len
}

/// Puts version and checksum behind what is to be restored.
pub fn sign(bytes: &mut Vec<u8>) {
    sign_as(bytes, VERSION);
}

fn sign_as(bytes: &mut Vec<u8>, version: u16) {
    bytes.extend_from_slice(&version.to_le_bytes());
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
        bytes.push(opcode::FUNCTION);
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
    let body = body(payload, true, false).map_err(|_| FunctionsRefused::Footer)?;
    let mut reader = reader::Reader::new(body);
    let mut codes = Vec::new();
    while let Some(opcode) = reader.byte() {
        if opcode != opcode::FUNCTION {
            return Err(FunctionsRefused::Type);
        }
        codes.push(reader.string().ok_or(FunctionsRefused::Content)?.into_owned());
    }
    Ok(codes)
}

/// The body of a payload, if its footer is valid.
fn body(payload: &[u8], checks: bool, relaxed: bool) -> Result<&[u8], Refused> {
    let body = payload.len().checked_sub(FOOTER).ok_or(Refused::Footer)?;
    let (signed, checksum) = payload.split_at(body + 2);
    let version = u16::from_le_bytes([payload[body], payload[body + 1]]);
    if !relaxed && version > NEWEST && version != VALKEY || checks && checksum != crc::crc64(signed).to_le_bytes() {
        return Err(Refused::Footer);
    }
    Ok(&payload[..body])
}

/// The value that a payload of `DUMP` holds; its checksum is looked at if it `checks`, its version unless
/// that is `relaxed`.
///
/// # Errors
/// It is none.
pub fn restore<'a>(payload: &'a [u8], limits: &Limits, checks: bool, relaxed: bool) -> Result<Loaded<'a>, Refused> {
    let body = body(payload, checks, relaxed)?;
    let is_of_candidate = load::is_of_candidate(body.first().copied().unwrap_or(0), payload[body.len()].into());
    let body = Some(body).filter(|_| !is_of_candidate).ok_or(Refused::Content)?;
    load::whole(body, limits).ok_or(Refused::Content)
}
