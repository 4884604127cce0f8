//! The line in front of a chunk of a body of HTTP/1.1 (RFC 9112 section 7.1), as both servers take it.

/// True if chunk extensions may look like this (RFC 9112 section 7.1.1). `text` stands between the chunk's size and the end of its line.
///
/// A server ignores extensions, and must not refuse them. Any other text is refused: another server on the way could see the end of the
/// line elsewhere.
pub fn are_chunk_extensions(mut text: &[u8]) -> bool {
    while !text.is_empty() {
        let Some(extension) = without_spaces(text).strip_prefix(b";").map(without_spaces) else { return false };
        let Some(behind) = behind_token(extension) else { return false };
        text = match without_spaces(behind).strip_prefix(b"=").map(without_spaces) {
            None => behind,
            Some(value) => match behind_quoted(value).or_else(|| behind_token(value)) {
                Some(behind) => behind,
                None => return false,
            },
        };
    }
    true
}

fn without_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[spaces..]
}

/// Returns the bytes behind a token (RFC 9110 section 5.6.2).
fn behind_token(text: &[u8]) -> Option<&[u8]> {
    let is_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let length = text.iter().take_while(is_token).count();
    (length > 0).then(|| &text[length..])
}

/// Returns the bytes behind a quoted string (RFC 9110 section 5.6.4).
fn behind_quoted(text: &[u8]) -> Option<&[u8]> {
    let mut bytes = text.strip_prefix(b"\"")?.iter();
    loop {
        let quoted = match bytes.next()? {
            b'"' => return Some(bytes.as_slice()),
            b'\\' => bytes.next()?,
            byte => byte,
        };
        if *quoted != b'\t' && (*quoted < b' ' || *quoted == 0x7f) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::are_chunk_extensions;

    #[test]
    fn extensions_keep_to_their_grammar() {
        for good in ["", ";a", ";a=b", ";a;b=c", " ; a = b\t;c", ";a=\"b;\\\"\\\\\té\"", ";a=\"\";b"] {
            assert!(are_chunk_extensions(good.as_bytes()), "{good:?}");
        }
        let bad = [
            " ",
            ";",
            ";;",
            ";a;",
            ";a ",
            "a",
            "=a",
            ";=a",
            ";a=",
            ";a=;",
            ";a b",
            ";a=b c",
            ";a=\"b",
            ";a=\"b\\",
            ";a=\"b\"c",
            ";[",
            ";a\r",
            ";a\n;b",
            ";a=\"\n\"",
            ";a=\"\\\r\"",
            ";a\0",
            ";a=\"\x7f\"",
            ";é",
        ];
        for bad in bad {
            assert!(!are_chunk_extensions(bad.as_bytes()), "{bad:?}");
        }
    }
}
