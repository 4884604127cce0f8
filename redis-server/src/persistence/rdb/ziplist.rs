//! Ziplists, the compact form of collections before Redis 7.0; only read.

use crate::protocol::number::IntText;

/// Bytes and entries in front.
const HEADER: usize = 4 + 4 + 2;
/// Ends the list.
const END: u8 = 0xff;
/// Says that four bytes with the length of the entry before follow.
const LONG: u8 = 0xfe;

/// The entries of a ziplist.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, mut rest) = bytes.split_at_checked(HEADER)?;
    let word = |at: usize| Some(u32::from_le_bytes(header[at..at + 4].try_into().ok()?) as usize);
    let (total, last_at) = (word(0)?, word(4)?);
    let count = u16::from_le_bytes([header[8], header[9]]);
    if total != bytes.len() {
        return None;
    }
    let mut entries = Vec::new();
    let (mut at, mut before) = (HEADER, 0);
    loop {
        let here = bytes.len() - rest.len();
        let said = match *rest.split_off_first()? {
            END => break,
            LONG => u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?) as usize,
            short => usize::from(short),
        };
        if said != before {
            return None;
        }
        entries.push(entry(&mut rest)?);
        (at, before) = (here, bytes.len() - rest.len() - here);
    }
    let counted = count == u16::MAX || usize::from(count) == entries.len();
    (rest.is_empty() && counted && last_at == at).then_some(entries)
}

/// One entry behind the length of the one before.
fn entry(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let first = *rest.split_off_first()?;
    let len = match first >> 6 {
        0 => usize::from(first),
        1 => usize::from(first & 63) << 8 | usize::from(*rest.split_off_first()?),
        2 => u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?) as usize,
        _ => return integer(first, rest).map(|value| IntText::new(value).to_vec()),
    };
    rest.split_off(..len).map(<[u8]>::to_vec)
}

fn integer(first: u8, rest: &mut &[u8]) -> Option<i64> {
    let size = match first {
        0xc0 => 2,
        0xd0 => 4,
        0xe0 => 8,
        0xf0 => 3,
        0xfe => 1,
        0xf1..=0xfd => return Some(i64::from(first & 15) - 1),
        _ => return None,
    };
    let bytes = rest.split_off(..size)?;
    let mut wide = [if bytes[size - 1] & 0x80 == 0 { 0 } else { 0xff }; 8];
    wide[..size].copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide))
}
