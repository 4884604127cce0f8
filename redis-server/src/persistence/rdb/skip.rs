//! The length of values, found without building them: the thread that cuts a file into records must be faster than those that decode them.
//!
//! The content of a skipped value may be invalid: its decoder reports that. A value that cannot be skipped cannot be decoded either.

use super::reader::Reader;
use super::{kind, module};
use crate::types::StreamId;

/// Bytes of an id in a stream, and of a time or a double.
const RAW_ID: usize = size_of::<StreamId>();
const WIDE: usize = 8;

/// A value of this type.
pub(super) fn value(kind: u8, reader: &mut Reader<'_>) -> Option<()> {
    match kind {
        kind::STRING
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::SET_LISTPACK
        | kind::HASH_ZIPMAP
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::SORTED_SET_ZIPLIST
        | kind::SORTED_SET_LISTPACK => reader.skip_string(),
        kind::LIST | kind::LIST_QUICKLIST | kind::SET => each(reader, |reader| reader.skip_string()),
        kind::HASH => each(reader, |reader| {
            reader.skip_string()?;
            reader.skip_string()
        }),
        kind::HASH_TTL_OF_VALKEY => each(reader, |reader| {
            reader.skip_string()?;
            reader.skip_string()?;
            skip(reader, WIDE)
        }),
        kind::HASH_TTL => {
            skip(reader, WIDE)?;
            each(reader, |reader| {
                reader.len()?;
                reader.skip_string()?;
                reader.skip_string()
            })
        }
        kind::HASH_LISTPACK_TTL => {
            skip(reader, WIDE)?;
            reader.skip_string()
        }
        kind::LIST_QUICKLIST_2 => each(reader, |reader| {
            reader.len()?;
            reader.skip_string()
        }),
        kind::SORTED_SET => each(reader, |reader| {
            reader.skip_string()?;
            skip(reader, WIDE)
        }),
        kind::SORTED_SET_TEXT => each(reader, |reader| {
            reader.skip_string()?;
            match reader.byte()? {
                253.. => Some(()),
                len => skip(reader, len.into()),
            }
        }),
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => stream(kind, reader),
        kind::MODULE_2 => {
            reader.len()?;
            module::skip(reader)
        }
        _ => None,
    }
}

/// As many elements as the length says that stands in front of them.
fn each(reader: &mut Reader<'_>, mut element: impl FnMut(&mut Reader<'_>) -> Option<()>) -> Option<()> {
    (0..reader.len()?).try_for_each(|_| element(reader))
}

fn skip(reader: &mut Reader<'_>, len: usize) -> Option<()> {
    reader.take(len).map(drop)
}

fn lens(reader: &mut Reader<'_>, count: usize) -> Option<()> {
    (0..count).try_for_each(|_| reader.len().map(drop))
}

fn stream(kind: u8, reader: &mut Reader<'_>) -> Option<()> {
    each(reader, |reader| {
        reader.skip_string()?;
        reader.skip_string()
    })?;
    // Entries, and the last id; then the first one, the last that was deleted, and how many were ever added.
    lens(reader, if kind == kind::STREAM { 3 } else { 3 + 5 })?;
    each(reader, |reader| {
        reader.skip_string()?;
        lens(reader, if kind == kind::STREAM { 2 } else { 3 })?;
        each(reader, |reader| {
            skip(reader, RAW_ID + WIDE)?;
            lens(reader, 1)
        })?;
        each(reader, |reader| {
            reader.skip_string()?;
            skip(reader, if kind == kind::STREAM_3 { 2 * WIDE } else { WIDE })?;
            each(reader, |reader| skip(reader, RAW_ID))
        })
    })
}
