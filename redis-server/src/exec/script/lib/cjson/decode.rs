//! JSON to values, without recursion: the input decides how deep it goes.

use mlua::{Error, Lua, LuaString, Result, Table, Value};

use super::settings::{Settings, null, only_argument};
use crate::exec::script::lib::call::{Call, MAX_DEPTH};
use crate::exec::script::lib::number::parse_prefix;
use crate::exec::script::lib::raise::raise;

/// The value that the argument describes.
pub(super) fn decode(call: &Call<'_>, settings: &Settings) -> Result<Value> {
    only_argument(call)?;
    let text = call.string(1)?;
    let text = text.as_bytes();
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(raise(call.lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut parser = Parser { lua: call.lua, settings, text: &text, at: 0, open: Vec::new() };
    let value = parser.document()?;
    match parser.next()? {
        Found { token: Token::End, .. } => Ok(value),
        found => Err(parser.unexpected("the end", &found)),
    }
}

/// The tokens of the text.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(LuaString),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// None of these, and the reason.
    Invalid(&'static str),
}

struct Found {
    token: Token,
    /// Where it begins; of a string that is invalid, where that shows.
    at: usize,
}

/// A table that is being filled.
struct Open {
    table: Table,
    /// The last position of an array; the key of an object that waits for its value.
    place: Place,
}

enum Place {
    Array(i64),
    Object(LuaString),
}

struct Parser<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    text: &'a [u8],
    at: usize,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Value> {
        let mut found = self.next()?;
        loop {
            let mut value = match found.token {
                Token::String(text) => Value::String(text),
                Token::Number(number) => Value::Number(number),
                Token::Boolean(value) => Value::Boolean(value),
                Token::Null => null(),
                Token::ObjectBegin => match self.begin_object()? {
                    Some(empty) => empty,
                    None => {
                        found = self.next()?;
                        continue;
                    }
                },
                Token::ArrayBegin => {
                    let table = self.begin()?;
                    let first = self.next()?;
                    if matches!(first.token, Token::ArrayEnd) {
                        Value::Table(table)
                    } else {
                        self.open.push(Open { table, place: Place::Array(0) });
                        found = first;
                        continue;
                    }
                }
                _ => return Err(self.unexpected("value", &found)),
            };
            // Puts the value into the innermost table, and that into its own if it ends here.
            loop {
                if self.open.is_empty() {
                    return Ok(value);
                }
                match self.put(value)? {
                    Some(full) => value = full,
                    None => break,
                }
            }
            found = self.next()?;
        }
    }

    /// A new table, if it may lie this deep.
    fn begin(&self) -> Result<Table> {
        let depth = self.open.len() + 1;
        if depth > MAX_DEPTH.min(self.settings.decode_max_depth as usize) {
            let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
            return Err(raise(self.lua, text));
        }
        self.lua.create_table()
    }

    /// The object if it is empty; otherwise its first key has been read.
    fn begin_object(&mut self) -> Result<Option<Value>> {
        let table = self.begin()?;
        let found = self.next()?;
        if matches!(found.token, Token::ObjectEnd) {
            return Ok(Some(Value::Table(table)));
        }
        let key = self.key(found)?;
        self.open.push(Open { table, place: Place::Object(key) });
        Ok(None)
    }

    fn key(&mut self, found: Found) -> Result<LuaString> {
        let Token::String(key) = found.token else {
            return Err(self.unexpected("object key string", &found));
        };
        match self.next()? {
            Found { token: Token::Colon, .. } => Ok(key),
            found => Err(self.unexpected("colon", &found)),
        }
    }

    /// Puts a value into the innermost table and reads what follows it. Returns that table if it ended.
    fn put(&mut self, value: Value) -> Result<Option<Value>> {
        let inner = self.open.last_mut().expect("the caller has seen one");
        let is_array = match &mut inner.place {
            Place::Array(at) => {
                *at += 1;
                inner.table.raw_set(*at, value)?;
                true
            }
            Place::Object(key) => {
                inner.table.raw_set(&*key, value)?;
                false
            }
        };
        let found = self.next()?;
        match found.token {
            Token::ArrayEnd if is_array => {}
            Token::ObjectEnd if !is_array => {}
            Token::Comma if is_array => return Ok(None),
            Token::Comma => {
                let found = self.next()?;
                let next = self.key(found)?;
                self.open.last_mut().expect("it is still there").place = Place::Object(next);
                return Ok(None);
            }
            _ if is_array => return Err(self.unexpected("comma or array end", &found)),
            _ => return Err(self.unexpected("comma or object end", &found)),
        }
        Ok(self.open.pop().map(|full| Value::Table(full.table)))
    }

    fn unexpected(&self, expected: &str, found: &Found) -> Error {
        let name = match &found.token {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Invalid(reason) => reason,
        };
        raise(self.lua, format!("Expected {expected} but found {name} at character {}", found.at + 1))
    }

    /// The byte at this place; zero behind the end, as C strings have it.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> Result<Found> {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let single = match self.byte(at) {
            b'{' => Some(Token::ObjectBegin),
            b'}' => Some(Token::ObjectEnd),
            b'[' => Some(Token::ArrayBegin),
            b']' => Some(Token::ArrayEnd),
            b':' => Some(Token::Colon),
            b',' => Some(Token::Comma),
            0 => return Ok(Found { token: Token::End, at }),
            _ => None,
        };
        if let Some(token) = single {
            self.at += 1;
            return Ok(Found { token, at });
        }
        let rest = &self.text[at..];
        let token = match rest[0] {
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' if self.settings.decode_invalid_numbers == 0 && is_invalid_number(rest) => {
                Token::Invalid("invalid number")
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ if rest.starts_with(b"true") => self.word(4, Token::Boolean(true)),
            _ if rest.starts_with(b"false") => self.word(5, Token::Boolean(false)),
            _ if rest.starts_with(b"null") => self.word(4, Token::Null),
            b'+' | b'i' | b'I' | b'n' | b'N'
                if self.settings.decode_invalid_numbers != 0 && is_invalid_number(rest) =>
            {
                self.number()
            }
            _ => Token::Invalid("invalid token"),
        };
        Ok(Found { token, at })
    }

    fn word(&mut self, len: usize, token: Token) -> Token {
        self.at += len;
        token
    }

    fn number(&mut self) -> Token {
        match parse_prefix(&self.text[self.at..]) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => Token::Invalid("invalid number"),
        }
    }

    fn string(&mut self) -> Result<Found> {
        let at = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let start = self.at;
            let rest = &self.text[start..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
            text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            let invalid = |at, reason| Ok(Found { token: Token::Invalid(reason), at });
            match self.byte(self.at) {
                b'"' => break,
                b'\\' => match self.byte(self.at + 1) {
                    b'u' => match unicode(&self.text[self.at..]) {
                        Some((character, len)) => {
                            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                            self.at += len;
                        }
                        None => return invalid(self.at, "invalid unicode escape code"),
                    },
                    letter => match escape(letter) {
                        Some(byte) => {
                            text.push(byte);
                            self.at += 2;
                        }
                        None => return invalid(self.at, "invalid escape code"),
                    },
                },
                _ => return invalid(self.at, "unexpected end of string"),
            }
        }
        self.at += 1;
        Ok(Found { token: Token::String(self.lua.create_string(text)?), at })
    }
}

/// Whether this begins like a number that JSON does not have: with a plus, leading zeros, hexadecimal, infinite, none.
fn is_invalid_number(text: &[u8]) -> bool {
    if text.first() == Some(&b'+') {
        return true;
    }
    let body = text.strip_prefix(b"-").unwrap_or(text);
    match body.first() {
        Some(b'0') => matches!(body.get(1), Some(b'x' | b'X' | b'0'..=b'9')),
        Some(0..=b'9') | None => false,
        Some(_) => body.get(..3).is_some_and(|s| s.eq_ignore_ascii_case(b"inf") || s.eq_ignore_ascii_case(b"nan")),
    }
}

fn escape(letter: u8) -> Option<u8> {
    match letter {
        b'"' | b'\\' | b'/' => Some(letter),
        b'b' => Some(0x08),
        b'f' => Some(0x0c),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// The character of `\uXXXX` or of a pair of them, and the length of the escape.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let hex = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 4)?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    };
    let high = hex(2)?;
    if !(0xd800..0xe000).contains(&high) {
        return Some((char::from_u32(high)?, 6));
    }
    let low = (text.get(6..8) == Some(b"\\u")).then(|| hex(8)).flatten()?;
    if high >= 0xdc00 || !(0xdc00..0xe000).contains(&low) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 12))
}
