//! The syntax of redis.conf: a line is a list of words; quotes and escapes are those of the genuine server.

use bytes::Bytes;

/// A quote that is not closed, or that is followed by something else than a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnbalancedQuotes;

/// The words of a line.
pub(super) fn split(line: &[u8]) -> Result<Vec<Bytes>, UnbalancedQuotes> {
    let mut words = Vec::new();
    let mut rest = without_space(line);
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word.into());
        rest = without_space(after);
    }
    Ok(words)
}

/// The first word of a text that does not begin with a space, and what follows it.
fn word(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), UnbalancedQuotes> {
    let mut word = Vec::new();
    while let [first, after @ ..] = rest {
        rest = match first {
            space if is_space(*space) => break,
            b'"' => double_quoted(after, &mut word)?,
            b'\'' => single_quoted(after, &mut word)?,
            plain => {
                word.push(*plain);
                after
            }
        };
    }
    Ok((word, rest))
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return closed(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(unescape(*escaped));
                after
            }
            [plain, after @ ..] => {
                word.push(*plain);
                after
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        rest = match rest {
            [b'\'', after @ ..] => return closed(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [plain, after @ ..] => {
                word.push(*plain);
                after
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

/// After a closing quote there is a space or the end.
fn closed(after: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    if after.first().is_none_or(|next| is_space(*next)) { Ok(after) } else { Err(UnbalancedQuotes) }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn without_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte));
    start.map_or(&[], |start| &text[start..])
}

/// The spaces of C's `isspace`, to which a vertical tab belongs.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// The word as it must be written to be read back: quoted where it has to be.
pub(super) fn quote(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
    if !word.is_empty() && word[0] != b'#' && word.iter().all(plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    quote_any(word)
}

/// The word in quotes.
pub(super) fn quote_any(word: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in word {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            other => quoted.push_str(&format!("\\x{other:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&[&str]>) {
        let words = split(line.as_bytes()).ok();
        let expected = expected.map(|words| words.iter().map(|word| Bytes::from(word.to_string())).collect::<Vec<_>>());
        assert_eq!(words, expected, "{line}");
        for word in words.into_iter().flatten() {
            assert_eq!(split(quote(&word).as_bytes()), Ok(vec![word]));
        }
    }

    #[test]
    fn a_line_is_a_list_of_words() {
        check("", Some(&[]));
        check("  port\t 6379 \r", Some(&["port", "6379"]));
        check(r#"save """#, Some(&["save", ""]));
        check(r#"a "b c" 'd e' "\x41\n\"" '\'' '\n'"#, Some(&["a", "b c", "d e", "A\n\"", "'", "\\n"]));
        check(r#"foo"bar" \x"#, Some(&["foobar", "\\x"]));
        check(r##"a #b "#c""##, Some(&["a", "#b", "#c"]));
        check(r#"a "b"#, None);
        check(r#"a "b"c"#, None);
        check(r#"a 'b"#, None);
        check(r#"a "b\"#, None);
    }
    /// Every text of up to five of the bytes that mean something.
    #[test]
    fn any_line_is_read_to_its_end() {
        const BYTES: &[u8] = b" \x0b\"'\\xa";
        let mut lines = vec![Vec::new()];
        for at in 0.. {
            let Some(line) = lines.get(at).cloned() else { break };
            if let Ok(words) = split(&line) {
                let written = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
                assert_eq!(split(written.as_bytes()), Ok(words));
            }
            if line.len() < 5 {
                lines.extend(BYTES.iter().map(|byte| [line.as_slice(), &[*byte]].concat()));
            }
        }
        assert_eq!(lines.len(), (0..=5).map(|length| BYTES.len().pow(length)).sum::<usize>());
    }
}
