//! UTF-8 that comes in pieces.

use std::str::from_utf8;

/// Checks pieces of a text. An error is found with the first byte that no further one can mend.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    /// The beginning of a character that the last piece has left incomplete.
    begun: [u8; 4],
    len: usize,
}

impl Utf8 {
    /// Takes a further piece. False if the text is no UTF-8, whatever follows.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> bool {
        while self.len > 0 {
            let Some((&byte, rest)) = piece.split_first() else { return true };
            piece = rest;
            self.begun[self.len] = byte;
            self.len += 1;
            match from_utf8(&self.begun[..self.len]) {
                Ok(_) => self.len = 0,
                Err(error) if error.error_len().is_some() => return false,
                // Four bytes are a character or an error.
                Err(_) => {}
            }
        }
        match from_utf8(piece) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => {
                let begun = &piece[error.valid_up_to()..];
                self.begun[..begun.len()].copy_from_slice(begun);
                self.len = begun.len();
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_judged_like_the_whole() {
        let texts: [&[u8]; 12] = [
            b"",
            b"abc",
            "κόσμε".as_bytes(),
            "\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}".as_bytes(),
            b"\xf4\x90\x80\x80",
            b"\xed\xa0\x80",
            b"\xc0\xaf",
            b"a\xff",
            b"\x80",
            b"\xe2\x82",
            b"\xf0\x9f\x98",
            b"\xe2\x82a",
        ];
        for text in texts {
            for step in 1..=text.len().max(1) {
                let mut utf8 = Utf8::default();
                let is_good = text.chunks(step).all(|piece| utf8.push(piece)) && utf8.len == 0;
                assert_eq!(is_good, from_utf8(text).is_ok(), "{text:x?} in pieces of {step}");
            }
        }
    }

    #[test]
    fn an_error_is_found_at_its_first_byte() {
        for (good, bad) in [(&b"\xf4"[..], b"\x90"), (b"\xed", b"\xa0"), (b"\xe0", b"\x9f"), (b"\xf0", b"\x8f")] {
            let mut utf8 = Utf8::default();
            assert!(utf8.push(good) && !utf8.push(bad), "{good:x?} {bad:x?}");
        }
    }
}
