//! Text to packed documents, by RFC 8259: without recursion, however deep the text is.

use std::fmt;

use memchr::memchr2;

use super::build::Builder;
use super::document::Refused;
use super::node::Number;

/// Why a text is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Bytes in front of the place.
    at: usize,
    /// The byte there; `None` at the end.
    found: Option<u8>,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Expected(&'static str),
    Refused(Refused),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Refused(refused) => return write!(f, "{refused}, at byte {} of the JSON text", self.at),
            Cause::Expected(what) => write!(f, "expected {what} at byte {} of the JSON text, found ", self.at)?,
        }
        match self.found {
            None => write!(f, "its end"),
            Some(byte @ b' '..=b'~') => write!(f, "'{}'", char::from(byte)),
            Some(byte) => write!(f, "byte 0x{byte:02x}"),
        }
    }
}

impl std::error::Error for ParseError {}

/// The one value that a text is, packed.
pub(super) fn document(text: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut parser = Parser { text, at: 0, out: Builder::with_capacity(text.len()), unescaped: Vec::new() };
    if let Err(error) = std::str::from_utf8(text) {
        parser.at = error.valid_up_to();
        return Err(parser.expected("UTF-8"));
    }
    parser.values()?;
    Ok(parser.out.packed())
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    out: Builder,
    /// A string whose escapes are taken out.
    unescaped: Vec<u8>,
}

impl<'t> Parser<'t> {
    fn expected(&self, what: &'static str) -> ParseError {
        ParseError { at: self.at, found: self.text.get(self.at).copied(), cause: Cause::Expected(what) }
    }

    fn refused(&self, refused: Refused) -> ParseError {
        ParseError { at: self.at, found: None, cause: Cause::Refused(refused) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Steps over white space, and says what stands behind it.
    fn next_byte(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn values(&mut self) -> Result<(), ParseError> {
        loop {
            // A value is expected here.
            let is_whole = self.begin_value()?;
            if is_whole && self.end_values()? {
                return Ok(());
            }
        }
    }

    /// A value that is no container, an empty one, or the beginning of one up to its first value; whether it is whole.
    fn begin_value(&mut self) -> Result<bool, ParseError> {
        let Some(first) = self.next_byte() else { return Err(self.expected("a value")) };
        match first {
            b'{' => {
                self.out.begin_object().map_err(|refused| self.refused(refused))?;
                self.at += 1;
                if self.next_byte() == Some(b'}') {
                    return self.end().map(|()| true);
                }
                self.name("a string or '}'").map(|()| false)
            }
            b'[' => {
                self.out.begin_array().map_err(|refused| self.refused(refused))?;
                self.at += 1;
                if self.next_byte() == Some(b']') {
                    return self.end().map(|()| true);
                }
                Ok(false)
            }
            b'"' => {
                self.string(|out, text| out.string(text))?;
                Ok(true)
            }
            b'-' | b'0'..=b'9' => self.number().map(|()| true),
            b't' => self.word(b"true", |out| out.boolean(true)),
            b'f' => self.word(b"false", |out| out.boolean(false)),
            b'n' => self.word(b"null", Builder::null),
            _ => Err(self.expected("a value")),
        }
    }

    /// Reads the separators behind a value, up to the next value. Returns true at the end of the document.
    fn end_values(&mut self) -> Result<bool, ParseError> {
        loop {
            let next = self.next_byte();
            match (self.out.is_in_object(), next) {
                (None, None) => return Ok(true),
                (None, Some(_)) => return Err(self.expected("the end of the document")),
                (Some(true), Some(b'}')) | (Some(false), Some(b']')) => self.end()?,
                (Some(true), Some(b',')) => {
                    self.at += 1;
                    return self.name("a string").map(|()| false);
                }
                (Some(false), Some(b',')) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(true), _) => return Err(self.expected("',' or '}'")),
                (Some(false), _) => return Err(self.expected("',' or ']'")),
            }
        }
    }

    fn end(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        self.out.end().map_err(|refused| self.refused(refused))
    }

    /// A member's name, and the colon behind it.
    fn name(&mut self, expected: &'static str) -> Result<(), ParseError> {
        if self.next_byte() != Some(b'"') {
            return Err(self.expected(expected));
        }
        self.string(|out, text| out.name(text))?;
        if self.next_byte() != Some(b':') {
            return Err(self.expected("':'"));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &'static [u8], put: impl FnOnce(&mut Builder)) -> Result<bool, ParseError> {
        let same = self.text[self.at..].iter().zip(word).take_while(|(byte, wanted)| byte == wanted).count();
        self.at += same;
        if same < word.len() {
            return Err(self.expected("true, false or null"));
        }
        put(&mut self.out);
        Ok(true)
    }

    /// A string, of which the quote is seen.
    fn string(&mut self, put: impl FnOnce(&mut Builder, &[u8])) -> Result<(), ParseError> {
        self.at += 1;
        let start = self.at;
        self.unescaped.clear();
        let mut plain = start;
        loop {
            let rest = &self.text[self.at..];
            let Some(len) = memchr2(b'"', b'\\', rest) else {
                self.control(rest)?;
                self.at = self.text.len();
                return Err(self.expected("'\"'"));
            };
            self.control(&rest[..len])?;
            self.at += len;
            if rest[len] == b'"' {
                break;
            }
            self.unescaped.extend_from_slice(&self.text[plain..self.at]);
            self.at += 1;
            self.escape()?;
            plain = self.at;
        }
        let last = &self.text[plain..self.at];
        if plain == start {
            put(&mut self.out, last);
        } else {
            self.unescaped.extend_from_slice(last);
            put(&mut self.out, &self.unescaped);
        }
        self.at += 1;
        Ok(())
    }

    /// Control characters do not stand in strings as they are; `part` begins where the parser is.
    fn control(&mut self, part: &[u8]) -> Result<(), ParseError> {
        match part.iter().position(|&byte| byte < b' ') {
            Some(at) => {
                self.at += at;
                Err(self.expected("a character that is no control character"))
            }
            None => Ok(()),
        }
    }

    /// Reads an escape sequence behind its backslash.
    fn escape(&mut self) -> Result<(), ParseError> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.expected("an escape: one of \"\\/bfnrtu")),
        };
        self.at += 1;
        self.unescaped.push(byte);
        Ok(())
    }

    /// A character by its number, of which the `u` is seen; the second half of a pair must follow the first.
    fn unicode(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        let first = self.hex()?;
        let number = match first {
            0xd800..0xdc00 => {
                if !self.text[self.at..].starts_with(b"\\u") {
                    return Err(self.expected("the second half of a surrogate pair"));
                }
                self.at += 2;
                let second_at = self.at;
                match self.hex()? {
                    second @ 0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => {
                        self.at = second_at;
                        return Err(self.expected("the second half of a surrogate pair"));
                    }
                }
            }
            other => other,
        };
        let Some(character) = char::from_u32(number) else {
            self.at -= 4;
            return Err(self.expected("the first half of a surrogate pair"));
        };
        self.unescaped.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Four hexadecimal digits.
    fn hex(&mut self) -> Result<u32, ParseError> {
        let mut number = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            number = number * 16 + digit.ok_or_else(|| self.expected("a hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(number)
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        let (text, is_integer) = self.number_text()?;
        // Digits, signs, a point and an exponent are ASCII.
        let text = std::str::from_utf8(text).unwrap_or_default();
        let int = if is_integer && text != "-0" { text.parse().ok().map(Number::Int) } else { None };
        let uint = || if is_integer { text.parse().ok().map(Number::Uint) } else { None };
        let double = || text.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Double);
        match int.or_else(uint).or_else(double) {
            Some(number) => self.out.number_of(text.as_bytes(), number),
            None => {
                self.at = start;
                return Err(self.expected("a number that a double holds"));
            }
        }
        Ok(())
    }

    /// The text of a number, and whether it has neither a point nor an exponent.
    fn number_text(&mut self) -> Result<(&'t [u8], bool), ParseError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut is_integer = true;
        if self.peek() == Some(b'.') {
            is_integer = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_integer = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok((&self.text[start..self.at], is_integer))
    }

    fn digits(&mut self) -> Result<(), ParseError> {
        let rest = &self.text[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.expected("a digit")) } else { Ok(()) }
    }
}
