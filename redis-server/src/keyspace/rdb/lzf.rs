//! Expanding what `liblzf` has compressed. Nothing is compressed here: readers take strings as they are, too.

/// The `len` bytes that `bytes` stand for.
pub(super) fn expand(mut bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    while let Some((&control, rest)) = bytes.split_first() {
        bytes = rest;
        if control < 32 {
            // That many bytes, plus one, as they are.
            let (literal, rest) = bytes.split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(literal);
            bytes = rest;
        } else {
            let mut count = usize::from(control >> 5) + 2;
            if count == 9 {
                count += usize::from(*bytes.split_off_first()?);
            }
            let back = usize::from(control & 31) << 8 | usize::from(*bytes.split_off_first()?);
            let from = out.len().checked_sub(back + 1)?;
            // What is repeated may overlap what is being written.
            for at in from..from + count {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[test]
fn runs_and_literals_are_expanded() {
    assert_eq!(expand(&[0, b'a', 0xe0, 1, 0], 11), Some(vec![b'a'; 11]));
    assert_eq!(expand(&[2, b'a', b'b', b'c', 0x20, 2], 6), Some(b"abcabc".to_vec()));
    for bad in [&[5, b'a'][..], &[0x20, 0], &[0, b'a', 0x20, 1], &[0, b'a', 0xe0], &[0, b'a']] {
        assert_eq!(expand(bad, 4), None);
    }
}
