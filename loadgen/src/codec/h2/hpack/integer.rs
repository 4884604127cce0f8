//! Numbers (RFC 7541, 5.1).

/// Appends a number behind the `prefix` low bits of `first` (RFC 7541, 5.1).
pub(in crate::codec) fn append_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads a number from the `prefix` low bits of the first byte on, and gives what is behind it. None if it is cut off, or
/// longer than any length or index can be.
pub(in crate::codec) fn read_integer(input: &[u8], prefix: u32) -> Option<(usize, &[u8])> {
    let (&first, mut rest) = input.split_first()?;
    let most = (1_u32 << prefix) - 1;
    let mut value = u64::from(u32::from(first) & most);
    if value < u64::from(most) {
        return Some((value as usize, rest));
    }
    // Four bytes of 7 bits are far more than the longest block that is accepted.
    for shift in [0, 7, 14, 21] {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        value += u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some((value as usize, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_and_read() {
        #[track_caller]
        fn check(prefix: u32, value: usize, expected: &[u8]) {
            let mut out = Vec::new();
            append_integer(&mut out, 0, prefix, value);
            assert_eq!(out, expected);
            assert_eq!(read_integer(&out, prefix), Some((value, &[][..])));
        }
        // RFC 7541, C.1.
        check(5, 10, &[0b01010]);
        check(5, 1337, &[0b1_1111, 0b1001_1010, 0b0000_1010]);
        check(8, 42, &[42]);
        check(7, 127, &[127, 0]);
        assert_eq!(read_integer(&[], 5), None);
        assert_eq!(read_integer(&[31, 128], 5), None);
        assert_eq!(read_integer(&[31, 255, 255, 255, 255, 255, 1], 5), None);
    }
}
