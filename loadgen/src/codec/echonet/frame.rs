//! Frames as they arrive.

use super::request::{Eoj, HEADER};

/// A frame of format 1, whose lists of properties are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) tid: u16,
    pub(super) source: Eoj,
    pub(super) destination: Eoj,
    pub(super) service: u8,
    /// The properties of the only list, or the list of writes of a SetGet.
    pub(super) first: Properties<'a>,
    /// A SetGet's list of reads.
    pub(super) second: Properties<'a>,
}

/// A list of properties, of which each is known to be complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties<'a> {
    count: u8,
    bytes: &'a [u8],
}

/// The head at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head<'a> {
    /// A frame, and how many bytes it has.
    Frame(Frame<'a>, usize),
    /// The beginning of a frame.
    Partial,
    /// No frame that could be an answer: where it would end is unknown.
    Garbage,
}

/// Reads the frame at the beginning of `bytes` (ECHONET Lite 1.14, part 2, 3.2).
pub(super) fn head(bytes: &[u8]) -> Head<'_> {
    let signature = &bytes[..bytes.len().min(2)];
    if !b"\x10\x81".starts_with(signature) {
        return Head::Garbage;
    }
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else { return Head::Partial };
    let [_, _, tid_high, tid_low, s0, s1, s2, d0, d1, d2, service] = *header;
    let Some((first, mut length)) = list(bytes, HEADER) else { return Head::Partial };
    let mut second = Properties::default();
    // SetGet, its answer and its refusal have two lists.
    if service & 0x0f == 0x0e {
        let Some(found) = list(bytes, length) else { return Head::Partial };
        (second, length) = found;
    }
    let (source, destination) = ([s0, s1, s2], [d0, d1, d2]);
    let tid = u16::from_be_bytes([tid_high, tid_low]);
    Head::Frame(Frame { tid, source, destination, service, first, second }, length)
}

/// The list whose count is at `start`, and where it ends.
fn list(bytes: &[u8], start: usize) -> Option<(Properties<'_>, usize)> {
    let count = *bytes.get(start)?;
    let mut end = start + 1;
    for _ in 0..count {
        end += 2 + usize::from(*bytes.get(end + 1)?);
    }
    Some((Properties { count, bytes: bytes.get(start + 1..end)? }, end))
}

impl<'a> Properties<'a> {
    pub(super) fn len(self) -> usize {
        usize::from(self.count)
    }

    /// EPC and EDT of each property.
    pub(super) fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (&[epc, size], tail) = rest.split_first_chunk()?;
            let (edt, tail) = tail.split_at_checked(usize::from(size))?;
            rest = tail;
            Some((epc, edt))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_in_a_stream() {
        #[track_caller]
        fn check(bytes: &[u8], lists: [&[(u8, &[u8])]; 2]) {
            let Head::Frame(frame, length) = head(bytes) else { panic!("no frame") };
            assert_eq!(length, bytes.len());
            assert_eq!(frame.first.iter().collect::<Vec<_>>(), lists[0]);
            assert_eq!(frame.second.iter().collect::<Vec<_>>(), lists[1]);
            assert_eq!(frame.tid, 0x1234);
            for cut in 0..bytes.len() {
                assert_eq!(head(&bytes[..cut]), Head::Partial, "cut at {cut}");
            }
            assert_eq!(head(&[bytes, b"more"].concat()), Head::Frame(frame, length));
        }
        let get = b"\x10\x81\x12\x34\x01\x30\x01\x05\xff\x01\x72\x02\x80\x01\x30\xb0\x00";
        check(get, [&[(0x80, b"\x30"), (0xb0, b"")], &[]]);
        let set_get = b"\x10\x81\x12\x34\x01\x30\x01\x05\xff\x01\x7e\x01\x80\x00\x01\x80\x01\x31";
        check(set_get, [&[(0x80, b"")], &[(0x80, b"\x31")]]);
        let refused = b"\x10\x81\x12\x34\x01\x30\x01\x05\xff\x01\x5e\x00\x00";
        check(refused, [&[], &[]]);
    }

    #[test]
    fn other_bytes_are_garbage_at_once() {
        for bytes in [&b"H"[..], b"\x10\x82\0\0\0\0", b"\x11", b"HTTP/1.1 400 Bad Request\r\n"] {
            assert_eq!(head(bytes), Head::Garbage);
        }
        assert_eq!(head(b""), Head::Partial);
    }
}
