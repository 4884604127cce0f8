//! The content of a reply: a view of its bytes, without a copy.

use super::wire::{length, line};

/// One element of a reply; RESP3's kinds, to which RESP2's are a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element<'a> {
    /// No value.
    Null,
    /// A string of bytes.
    Bytes(&'a [u8]),
    /// A short text, such as `OK`.
    Text(&'a [u8]),
    /// An error: its code and its text.
    Error(&'a [u8]),
    /// An integer.
    Int(i64),
    /// An integer of any size, in digits.
    BigInt(&'a [u8]),
    /// A floating-point number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
    /// So many elements follow.
    Array(usize),
    /// So many pairs of elements follow.
    Map(usize),
}

/// Reads the elements of replies that a scanner has found whole, in the order of their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// The elements of one reply, or of several one after another.
    pub(crate) fn new(replies: &'a [u8]) -> Self {
        Self { rest: replies }
    }

    /// Passes over a whole element, with what is in it.
    pub(crate) fn pass(&mut self) {
        let mut left: usize = 1;
        while left > 0 {
            left -= 1;
            match self.next() {
                Some(Element::Array(elements)) => left += elements,
                Some(Element::Map(pairs)) => left += pairs * 2,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn text(&mut self, len: usize) -> &'a [u8] {
        let (text, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, b""));
        self.rest = rest.get(2..).unwrap_or_default();
        text
    }

    /// The string whose length is in `digits`.
    fn string(&mut self, digits: &[u8]) -> Option<&'a [u8]> {
        let len = length(digits, u64::MAX).ok().flatten()?;
        Some(self.text(usize::try_from(len).ok()?))
    }

    fn skip_attributes(&mut self, digits: &[u8]) {
        for _ in 0..count(digits).unwrap_or(0) * 2 {
            self.pass();
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        loop {
            let line = line(self.rest).ok().flatten()?;
            self.rest = &self.rest[line.len() + 2..];
            let (&kind, value) = line.split_first()?;
            return Some(match kind {
                b'+' => Element::Text(value),
                b'-' => Element::Error(value),
                b':' => ascii(value).parse().map_or(Element::BigInt(value), Element::Int),
                b'(' => Element::BigInt(value),
                b',' => Element::Double(ascii(value).parse().unwrap_or(f64::NAN)),
                b'#' => Element::Bool(value == b"t"),
                b'$' => self.string(value).map_or(Element::Null, Element::Bytes),
                b'!' => self.string(value).map_or(Element::Null, Element::Error),
                // A verbatim string's first four bytes name its format.
                b'=' => {
                    self.string(value).map_or(Element::Null, |text| Element::Bytes(text.get(4..).unwrap_or_default()))
                }
                b'*' | b'~' | b'>' => count(value).map_or(Element::Null, Element::Array),
                b'%' => count(value).map_or(Element::Null, Element::Map),
                b'|' => {
                    self.skip_attributes(value);
                    continue;
                }
                _ => Element::Null,
            });
        }
    }
}

fn count(digits: &[u8]) -> Option<usize> {
    usize::try_from(length(digits, u64::MAX).ok().flatten()?).ok()
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements() {
        fn check(reply: &str, expected: &[Element<'_>]) {
            let read: Vec<_> = Elements::new(reply.as_bytes()).collect();
            assert_eq!(read, expected, "{reply:?}");
            let mut skipping = Elements::new(reply.as_bytes());
            skipping.pass();
            assert_eq!(skipping.rest(), b"", "{reply:?} is one element");
        }
        check("$-1\r\n", &[Element::Null]);
        check("_\r\n", &[Element::Null]);
        check("*-1\r\n", &[Element::Null]);
        check("$3\r\na\r\n\r\n", &[Element::Bytes(b"a\r\n")]);
        check("+OK\r\n", &[Element::Text(b"OK")]);
        check("-ERR no\r\n", &[Element::Error(b"ERR no")]);
        check("!5\r\nERR x\r\n", &[Element::Error(b"ERR x")]);
        check(":-12\r\n", &[Element::Int(-12)]);
        check("(99999999999999999999\r\n", &[Element::BigInt(b"99999999999999999999")]);
        check(",1.5\r\n", &[Element::Double(1.5)]);
        check(",-inf\r\n", &[Element::Double(f64::NEG_INFINITY)]);
        check("#t\r\n", &[Element::Bool(true)]);
        check("=7\r\ntxt:abc\r\n", &[Element::Bytes(b"abc")]);
        check("~1\r\n:1\r\n", &[Element::Array(1), Element::Int(1)]);
        check("%1\r\n+k\r\n*1\r\n:1\r\n", &[Element::Map(1), Element::Text(b"k"), Element::Array(1), Element::Int(1)]);
        check("|1\r\n+a\r\n%1\r\n+b\r\n+c\r\n:7\r\n", &[Element::Int(7)]);
    }

    /// A view of any bytes, even unscanned ones, ends.
    #[test]
    fn cut_short() {
        let reply = b"%1\r\n$1\r\nk\r\n*2\r\n:1\r\n$5\r\nabcde\r\n";
        for cut in 0..reply.len() {
            assert!(Elements::new(&reply[..cut]).count() <= 5, "{cut}");
            Elements::new(&reply[..cut]).pass();
        }
    }
}
