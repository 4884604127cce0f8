//! One field of a JSON object, without reading the rest.

use super::filter::Value;

/// The value of a top-level field: a string, number, boolean or null, or an array of these. `None` for anything else, and if the
/// text is no object.
pub(super) fn field(json: &[u8], name: &[u8]) -> Option<Value> {
    let mut reader = Reader { rest: json };
    reader.expect(b'{')?;
    if reader.peek()? == b'}' {
        return None;
    }
    loop {
        let key = reader.string()?;
        reader.expect(b':')?;
        if key == name {
            return reader.value();
        }
        reader.skip()?;
        reader.expect(b',')?;
    }
}

struct Reader<'j> {
    rest: &'j [u8],
}

impl Reader<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.rest = &self.rest[1..])
    }

    fn value(&mut self) -> Option<Value> {
        if self.peek()? != b'[' {
            return self.scalar();
        }
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            return Some(Value::Tuple(items));
        }
        loop {
            items.push(self.scalar()?);
            match self.peek()? {
                b',' => self.expect(b',')?,
                b']' => return Some(Value::Tuple(items)),
                _ => return None,
            }
        }
    }

    fn scalar(&mut self) -> Option<Value> {
        if self.peek()? == b'"' {
            return self.string().map(Value::Text);
        }
        match self.word() {
            b"true" => Some(Value::Number(1.0)),
            b"false" => Some(Value::Number(0.0)),
            b"null" => Some(Value::Null),
            number => std::str::from_utf8(number).ok()?.parse().ok().map(Value::Number),
        }
    }

    /// Bytes up to the next that has a meaning.
    fn word(&mut self) -> &[u8] {
        let ends =
            |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b'[' | b'{' | b'"') || byte.is_ascii_whitespace();
        let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        self.expect(b'"')?;
        let mut text = Vec::new();
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'"' => return Some(text),
                b'\\' => self.escaped(&mut text)?,
                byte => text.push(byte),
            }
        }
    }

    fn escaped(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        let plain = match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let first = self.unit()?;
                let code = if (0xd800..0xdc00).contains(&first) {
                    self.rest = self.rest.strip_prefix(b"\\u")?;
                    0x1_0000 + ((first - 0xd800) << 10) + self.unit()?.checked_sub(0xdc00)?
                } else {
                    first
                };
                text.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            other => other,
        };
        text.push(plain);
        Some(())
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = std::str::from_utf8(self.rest.get(..4)?).ok()?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).ok()
    }

    /// Passes a value. Brackets are counted and not matched, so that depth costs nothing.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.rest = &self.rest[1..];
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.rest = &self.rest[1..];
                }
                b',' | b':' if depth > 0 => self.rest = &self.rest[1..],
                b',' | b':' => return None,
                _ => drop(self.word().len()),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_anything() {
        let json = r#" { "a" : {"year": 1, "x": ["}", {"y": "\""}]}, "e": [], "year": 1984.5, "g": "a\"\u00e9\ud83d\ude00\n",
            "t": true, "n": null, "l": ["x", 2, false], "o": {"a": 1}, "d": [[1]] } "#;
        let text = |text: &str| Some(Value::Text(text.as_bytes().to_vec()));
        let list = Value::Tuple(vec![Value::Text(b"x".to_vec()), Value::Number(2.0), Value::Number(0.0)]);
        for (name, expected) in [
            ("year", Some(Value::Number(1984.5))),
            ("g", text("a\"é😀\n")),
            ("t", Some(Value::Number(1.0))),
            ("n", Some(Value::Null)),
            ("e", Some(Value::Tuple(Vec::new()))),
            ("l", Some(list)),
            ("o", None),
            ("d", None),
            ("x", None),
        ] {
            assert_eq!(field(json.as_bytes(), name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn no_json_has_no_fields() {
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        let broken = [
            "",
            "{",
            "[1]",
            "1",
            "{}",
            "{\"x\"",
            "{\"x\":",
            "{\"x\":}",
            "{\"x\":1e}",
            "{\"x\":\"",
            "{\"x\":\"\\u12",
            &deep,
        ];
        for json in broken {
            assert_eq!(field(json.as_bytes(), b"x"), None, "{}", &json[..json.len().min(20)]);
        }
    }
}
