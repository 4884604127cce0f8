//! Replies that are looked into as a whole: what a cluster says of itself, not what is measured.

use super::reply::{self, LONGEST_BULK};
use crate::codec::Broken;

/// Replies within replies. A cluster's map needs five.
const DEEPEST: usize = 16;

/// Elements of one reply; room before more have come.
const MOST_ELEMENTS: u64 = 1 << 20;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A status, a string, a number that is no integer.
    Text(Vec<u8>),
    Integer(i64),
    Nil,
    Error(Vec<u8>),
    /// An array, set or push message; a map as its names and values in turns.
    List(Vec<Self>),
}

impl Value {
    /// Reads the first reply of the input. Gives it with its length, or nothing if it is not complete.
    pub(crate) fn parse(input: &[u8]) -> Result<Option<(Self, usize)>, Broken> {
        Self::at_depth(input, 0)
    }

    fn at_depth(input: &[u8], depth: usize) -> Result<Option<(Self, usize)>, Broken> {
        let Some((line, mut at)) = reply::line(input)? else {
            return Ok(None);
        };
        let text = line[1..].to_vec();
        let value = match line[0] {
            b'+' | b',' | b'#' | b'(' => Self::Text(text),
            b'-' => Self::Error(text),
            b'_' => Self::Nil,
            b':' => Self::Integer(integer(&text).ok_or_else(|| reply::unexpected("an integer", line))?),
            b'$' | b'=' | b'!' => {
                let Some(length) = reply::length(line, LONGEST_BULK)? else {
                    return Ok(Some((Self::Nil, at)));
                };
                let Some(bytes) = input[at..].get(..length as usize + 2) else {
                    return Ok(None);
                };
                at += bytes.len();
                let text = bytes[..length as usize].to_vec();
                if line[0] == b'!' { Self::Error(text) } else { Self::Text(text) }
            }
            b'*' | b'~' | b'>' | b'%' => {
                let Some(length) = reply::length(line, MOST_ELEMENTS as i64)? else {
                    return Ok(Some((Self::Nil, at)));
                };
                if depth == DEEPEST {
                    return Err(reply::unexpected("a reply that is less deep", line));
                }
                let mut elements = Vec::new();
                let count = if line[0] == b'%' { 2 * length } else { length };
                for _ in 0..count {
                    let Some((element, read)) = Self::at_depth(&input[at..], depth + 1)? else {
                        return Ok(None);
                    };
                    elements.push(element);
                    at += read;
                }
                Self::List(elements)
            }
            _ => return Err(reply::unexpected("a reply of RESP", line)),
        };
        Ok(Some((value, at)))
    }

    /// Its elements, if it has some.
    pub(crate) fn list(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            Self::Text(_) | Self::Integer(_) | Self::Nil | Self::Error(_) => &[],
        }
    }

    /// Its text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => std::str::from_utf8(text).ok(),
            Self::Integer(_) | Self::Nil | Self::Error(_) | Self::List(_) => None,
        }
    }

    /// Its number.
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            Self::Text(_) | Self::Nil | Self::Error(_) | Self::List(_) => None,
        }
    }

    /// The value behind a name in a map.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.list().chunks_exact(2).find(|pair| pair[0].text() == Some(name)).map(|pair| &pair[1])
    }
}

fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_when_they_are_complete() {
        #[track_caller]
        fn check(input: &str, expected: Value) {
            for cut in 0..input.len() {
                assert_eq!(Value::parse(&input.as_bytes()[..cut]).unwrap(), None, "{cut}");
            }
            let more = format!("{input}+more");
            assert_eq!(Value::parse(more.as_bytes()).unwrap(), Some((expected, input.len())));
        }
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        check("+OK\r\n", text("OK"));
        check("$3\r\nabc\r\n", text("abc"));
        check(":-7\r\n", Value::Integer(-7));
        check("-ERR no\r\n", Value::Error(b"ERR no".to_vec()));
        for nil in ["$-1\r\n", "*-1\r\n", "_\r\n"] {
            check(nil, Value::Nil);
        }
        check("*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n+b\r\n", {
            Value::List(vec![Value::List(vec![Value::Integer(1)]), Value::List(vec![text("a"), text("b")])])
        });
    }

    #[test]
    fn fields_are_found_by_name() {
        let (value, _) = Value::parse(b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n+x\r\n").unwrap().unwrap();
        assert_eq!(value.field("a").and_then(Value::integer), Some(1));
        assert_eq!(value.field("b").and_then(Value::text), Some("x"));
        assert_eq!((value.field("x"), Value::Nil.field("a")), (None, None));
    }

    #[test]
    fn malformed_replies_are_refused() {
        for input in ["?\r\n".to_owned(), ":x\r\n".to_owned(), "*x\r\n".to_owned(), "*1\r\n".repeat(20)] {
            assert!(Value::parse(input.as_bytes()).is_err(), "{input}");
        }
    }
}
