//! Zipmaps, the compact form of hashes before Redis 2.6; only read.

/// Ends the map.
const END: u8 = 0xff;
/// Says that four bytes with the length follow.
const LONG: u8 = 0xfe;

/// Fields and values in turn.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    // The first byte is the number of fields, as long as that fits.
    let (&counted, mut rest) = bytes.split_first()?;
    let mut entries = Vec::new();
    while *rest.first()? != END {
        let field = len(&mut rest)?;
        entries.push(rest.split_off(..field)?.to_vec());
        let value = len(&mut rest)?;
        // Bytes behind the value that a longer one has left.
        let free = usize::from(*rest.split_off_first()?);
        entries.push(rest.split_off(..value)?.to_vec());
        rest.split_off(..free)?;
    }
    let fits = counted == LONG || usize::from(counted) == entries.len() / 2;
    (rest.len() == 1 && fits).then_some(entries)
}

fn len(rest: &mut &[u8]) -> Option<usize> {
    match *rest.split_off_first()? {
        END => None,
        // As in the genuine server, what fits into one byte stands in one.
        LONG => Some(u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?) as usize)
            .filter(|&len| len >= usize::from(LONG)),
        len => Some(usize::from(len)),
    }
}

#[test]
fn fields_and_values_are_read() {
    // The example in the head of zipmap.c: "foo" => "bar", "hello" => "world".
    let map = b"\x02\x03foo\x03\x00bar\x05hello\x05\x00world\xff";
    assert_eq!(entries(map).unwrap(), [&b"foo"[..], b"bar", b"hello", b"world"]);
    assert_eq!(entries(b"\x01\x01f\x01\x02v..\xff").unwrap(), [b"f", b"v"]);
    for bad in [
        &b""[..],
        b"\x00",
        b"\x01\xff",
        b"\x01\x03foo\x03\x00ba\xff",
        b"\x00\xff\xff",
        b"\x01\x01f\x01\x09v\xff",
        b"\x01\xfe\x01\0\0\0f\x01\0v\xff",
    ] {
        assert_eq!(entries(bad), None, "{bad:?}");
    }
}
