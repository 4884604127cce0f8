//! Replies of both protocols as values: read, shown, put in order.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read};

/// The deepest reply that a command of ours or Redis' gives is far from this.
const MAX_DEPTH: usize = 64;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// `+ - : , # ( =`: the kind and what stands behind it.
    Plain(u8, Vec<u8>),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`, `*-1`, `_`, told apart by the kind.
    Null(u8),
    /// `* ~ > %`: the kind and the elements; of a map, keys and values in turn.
    List(u8, Vec<Self>),
}

impl Reply {
    /// Reads one reply.
    ///
    /// # Errors
    /// When the connection ends, is silent for too long, or sends what is no reply.
    pub fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        Self::read_at(stream, 0)
    }

    fn read_at(stream: &mut impl BufRead, depth: usize) -> io::Result<Self> {
        let malformed = |text: &[u8]| io::Error::other(format!("no reply: {}", text.escape_ascii()));
        let mut line = Vec::new();
        stream.read_until(b'\n', &mut line)?;
        let Some((&kind, text)) = line.strip_suffix(b"\r\n").and_then(|line| line.split_first()) else {
            return Err(if line.is_empty() { io::ErrorKind::UnexpectedEof.into() } else { malformed(&line) });
        };
        let len = || -> io::Result<i64> {
            std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(|| malformed(&line))
        };
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' => Ok(Self::Plain(kind, text.to_vec())),
            b'_' => Ok(Self::Null(kind)),
            b'$' | b'*' if text == b"-1" => Ok(Self::Null(kind)),
            b'$' | b'=' => {
                let len = usize::try_from(len()?).map_err(|_| malformed(&line))?;
                let mut bytes = Vec::new();
                stream.take(len as u64 + 2).read_to_end(&mut bytes)?;
                let body = bytes.strip_suffix(b"\r\n").filter(|body| body.len() == len);
                let body = body.ok_or_else(|| malformed(&bytes))?.to_vec();
                Ok(if kind == b'$' { Self::Bulk(body) } else { Self::Plain(kind, body) })
            }
            b'*' | b'~' | b'>' | b'%' if depth < MAX_DEPTH => {
                let count = len()? * if kind == b'%' { 2 } else { 1 };
                let elements = (0..count).map(|_| Self::read_at(stream, depth + 1));
                Ok(Self::List(kind, elements.collect::<io::Result<_>>()?))
            }
            _ => Err(malformed(&line)),
        }
    }

    /// The elements of a list or map, none of everything else.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::List(_, elements) => elements,
            _ => &[],
        }
    }

    /// Whether this is a simple string with this text.
    pub fn is_status(&self, text: &str) -> bool {
        matches!(self, Self::Plain(b'+', status) if status == text.as_bytes())
    }

    /// Whether this is a bulk string with this text.
    pub fn is_bulk(&self, text: &str) -> bool {
        matches!(self, Self::Bulk(bulk) if bulk == text.as_bytes())
    }

    /// The integer that it is.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Plain(b':', text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// With its elements in an order of their own, `width` at a time; those of maps as pairs.
    pub fn sorted(&self, width: usize) -> Self {
        let Self::List(kind, elements) = self else { return self.clone() };
        let width = if *kind == b'%' { 2 } else { width };
        let mut groups: Vec<&[Self]> = elements.chunks(width.max(1)).collect();
        groups.sort();
        Self::List(*kind, groups.concat())
    }

    /// A few lines, as redis-cli would show it.
    pub fn show(&self) -> String {
        let mut text = String::new();
        self.show_at(&mut text, 4);
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.len() > 40 {
            lines.truncate(40);
            lines.push("    ...");
        }
        lines.join("\n")
    }

    fn show_at(&self, out: &mut String, indent: usize) {
        let pad = " ".repeat(indent);
        let shown = match self {
            Self::Plain(kind, text) => format!("{pad}{}{}\n", char::from(*kind), short(text)),
            Self::Bulk(text) => format!("{pad}\"{}\"\n", short(text)),
            Self::Null(kind) => format!("{pad}(nil {})\n", char::from(*kind)),
            Self::List(kind, elements) => format!("{pad}{}{}\n", char::from(*kind), elements.len()),
        };
        out.push_str(&shown);
        self.elements().iter().for_each(|element| element.show_at(out, indent + 2));
    }
}

/// A text with its first 200 bytes escaped.
pub fn short(text: &[u8]) -> String {
    let mut shown = text[..text.len().min(200)].escape_ascii().to_string();
    if text.len() > 200 {
        let _ = write!(shown, "... ({} bytes)", text.len());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_and_sorted() {
        let check = |bytes: &str, expected: Option<Reply>| {
            assert_eq!(Reply::read(&mut bytes.as_bytes()).ok(), expected, "{bytes:?}");
        };
        let int = |text: &str| Reply::Plain(b':', text.as_bytes().to_vec());
        check("+OK\r\n", Some(Reply::Plain(b'+', b"OK".to_vec())));
        check("$3\r\nab\r\n", None);
        check("$2\r\n\r\n\r\n", Some(Reply::Bulk(b"\r\n".to_vec())));
        check("*-1\r\n", Some(Reply::Null(b'*')));
        check("%1\r\n:1\r\n:2\r\n", Some(Reply::List(b'%', vec![int("1"), int("2")])));
        check("*2\r\n:1\r\n", None);
        check("?\r\n", None);
        let list = Reply::read(&mut &b"*4\r\n:2\r\n:9\r\n:1\r\n:5\r\n"[..]).unwrap();
        assert_eq!(list.sorted(1).elements(), ["1", "2", "5", "9"].map(int));
        assert_eq!(list.sorted(2).elements(), ["1", "5", "2", "9"].map(int));
    }
}
