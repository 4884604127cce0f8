//! Replies: typed values appended to an output buffer, in RESP2 or RESP3.

use std::fmt::Display;
use std::io::Write as _;

use bytes::Bytes;

use crate::protocol::error::restore_bytes;
use crate::protocol::number;

/// Values from this length on are handed to the socket as they are; shorter ones are cheaper to copy
/// (copying 4 KiB costs about what a second buffer in the system call does).
const BLOB_MIN: usize = 16 * 1024;

/// Room that an emptied reply keeps: whole batches fit, the listing of a large collection gives its memory back.
const KEPT_MAX: usize = 512 * 1024;

/// Lines with the numbers of up to three digits, the first byte of which is to be put in, and their lengths.
static SHORT_LINES: [(u64, u8); 1000] = short_lines();

const fn short_lines() -> [(u64, u8); 1000] {
    let mut lines = [(0, 0); 1000];
    let mut number = 0;
    while number < lines.len() {
        let mut bytes = [0; 8];
        let mut len = 1;
        let mut power = if number >= 100 {
            100
        } else if number >= 10 {
            10
        } else {
            1
        };
        while power > 0 {
            bytes[len] = b'0' + (number / power % 10) as u8;
            len += 1;
            power /= 10;
        }
        bytes[len] = b'\r';
        bytes[len + 1] = b'\n';
        lines[number] = (u64::from_le_bytes(bytes), len as u8 + 2);
        number += 1;
    }
    lines
}

/// Replies that wait to be sent, and the protocol they are written in.
#[derive(Debug, Default)]
pub struct Reply {
    buf: Vec<u8>,
    /// Large values and the offset in `buf` before which each belongs.
    blobs: Vec<(usize, Bytes)>,
    resp3: bool,
    shortest: bool,
}

/// The first line, without its end.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let len = bytes.windows(2).position(|end| end == b"\r\n")?;
    Some(&bytes[..len])
}

/// Length of the first of the replies in `len` bytes, with the messages in front of it that nobody has asked for; all of them, if
/// none is whole. `line_at` has the line that begins at a place.
fn len_of_first<'a>(len: usize, line_at: impl Fn(usize) -> Option<&'a [u8]>) -> usize {
    let (mut at, mut left) = (0, 1_u64);
    while left > 0 {
        let Some(head) = line_at(at) else { return len };
        let number = || super::number::parse_i64(&head[1..]).and_then(|number| u64::try_from(number).ok());
        at += head.len() + 2;
        left -= 1;
        match head.first() {
            Some(b'$' | b'=' | b'!') => at += number().map_or(0, |len| len as usize + 2),
            Some(b'*' | b'~') => left += number().unwrap_or(0),
            // A message is followed by the reply.
            Some(b'>') => left += number().unwrap_or(0) + u64::from(left == 0),
            Some(b'%') => left += number().unwrap_or(0) * 2,
            _ => {}
        }
        if at > len {
            return len;
        }
    }
    at
}

/// A position in a [`Reply`], to cut back to or to insert at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    len: usize,
    blobs: usize,
}

impl Reply {
    /// Chooses the protocol of what is written from now on.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// Whether doubles have as few digits as can be, as in Redis since 7.2.
    pub fn set_shortest(&mut self, shortest: bool) {
        self.shortest = shortest;
    }

    /// Whether replies are written in RESP3.
    pub fn is_resp3(&self) -> bool {
        self.resp3
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty() && self.blobs.is_empty()
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.buf.len() + self.blobs.iter().map(|(_, blob)| blob.len()).sum::<usize>()
    }

    /// The end of what has been written.
    pub fn mark(&self) -> Mark {
        Mark { len: self.buf.len(), blobs: self.blobs.len() }
    }

    /// Forgets what was written behind `mark`.
    pub fn truncate(&mut self, mark: Mark) {
        self.buf.truncate(mark.len);
        self.blobs.truncate(mark.blobs);
    }

    /// Forgets everything, keeps the buffer unless it has become very large.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.buf.shrink_to(KEPT_MAX);
        self.blobs.clear();
    }

    /// The copied bytes, and the large values with the offset before which each belongs.
    pub fn parts(&self) -> (&[u8], &[(usize, Bytes)]) {
        (&self.buf, &self.blobs)
    }

    /// [`Reply::parts`] to keep.
    pub fn into_parts(self) -> (Vec<u8>, Vec<(usize, Bytes)>) {
        (self.buf, self.blobs)
    }

    /// Everything as one run of bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        let mut from = 0;
        for (at, blob) in &self.blobs {
            out.extend_from_slice(&self.buf[from..*at]);
            out.extend_from_slice(blob);
            from = *at;
        }
        out.extend_from_slice(&self.buf[from..]);
        out
    }

    /// The lengths of the last `count` replies, which have `len` bytes together. Shared blobs are skipped by their length.
    pub(crate) fn last_lens(&self, len: usize, count: usize) -> Vec<usize> {
        let mut at = self.len().saturating_sub(len);
        let next = |_| {
            let first = len_of_first(self.len() - at, |offset| self.line_at(at + offset));
            at += first;
            first
        };
        (0..count).map(next).collect()
    }

    /// The line that begins at a place among all bytes; none within what is shared.
    fn line_at(&self, at: usize) -> Option<&[u8]> {
        let mut shared = 0;
        for (place, blob) in &self.blobs {
            let begin = place + shared;
            if at < begin {
                break;
            }
            if at < begin + blob.len() {
                return None;
            }
            shared += blob.len();
        }
        line(self.buf.get(at - shared..)?)
    }

    /// Appends bytes that are RESP already.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Appends a message that is RESP already, shared, not copied, when it is large.
    pub fn encoded(&mut self, message: &Bytes) {
        if message.len() < BLOB_MIN {
            return self.raw(message);
        }
        self.blobs.push((self.buf.len(), message.clone()));
    }

    /// Takes over what another reply holds.
    pub fn append(&mut self, other: &mut Self) {
        let before = self.buf.len();
        self.buf.extend_from_slice(&other.buf);
        self.blobs.extend(other.blobs.drain(..).map(|(at, blob)| (before + at, blob)));
        other.clear();
    }

    /// `+OK`
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A simple string; `text` has no line end.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// A simple string of any bytes; line ends in it become spaces.
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.one_line(b'+', text);
    }

    /// An error; line ends in its text become spaces, as in the genuine server.
    pub fn error(&mut self, error: &dyn Display) {
        self.buf.push(b'-');
        let from = self.buf.len();
        write!(self.buf, "{error}").expect("a Vec takes any write");
        restore_bytes(&mut self.buf, from);
        self.end_line(from);
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.number_line(b':', value);
    }

    /// A length or count as an integer.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.int(value as i64);
    }

    /// A bulk string.
    pub fn bulk(&mut self, value: &[u8]) {
        self.bulk_inline(value);
    }

    /// [`Reply::bulk`], inlined into its caller: GET.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET passes here")]
    pub fn bulk_inline(&mut self, value: &[u8]) {
        self.number_line(b'$', value.len() as i64);
        if value.len() >= BLOB_MIN {
            // With the end of the line, for which the buffer would be made twice as large, and copied.
            self.buf.reserve(value.len() + 2);
        }
        self.raw(value);
        self.raw(b"\r\n");
    }

    /// A bulk string that is shared, not copied, when it is large.
    pub fn blob(&mut self, value: &Bytes) {
        if value.len() < BLOB_MIN {
            return self.bulk(value);
        }
        self.number_line(b'$', value.len() as i64);
        self.blobs.push((self.buf.len(), value.clone()));
        self.raw(b"\r\n");
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// The null bulk string, or RESP3's null.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The null array, or RESP3's null.
    pub fn null_array(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Head of an array of `len` elements, which follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.number_line(b'*', len as i64);
    }

    /// Head of a map of `len` pairs (RESP2: an array of twice as many elements).
    pub fn map(&mut self, len: usize) {
        if self.resp3 { self.number_line(b'%', len as i64) } else { self.array(len * 2) }
    }

    /// Head of a set (RESP2: an array).
    pub fn set(&mut self, len: usize) {
        self.number_line(if self.resp3 { b'~' } else { b'*' }, len as i64);
    }

    /// Head of an out-of-band message (RESP2: an array).
    pub fn push(&mut self, len: usize) {
        self.number_line(if self.resp3 { b'>' } else { b'*' }, len as i64);
    }

    /// A double (RESP2: a bulk string).
    pub fn double(&mut self, value: f64) {
        let text = self.text_of(value);
        if self.resp3 { self.line(b',', &text) } else { self.bulk(&text) }
    }

    /// A double as a bulk string in any protocol.
    pub fn bulk_double(&mut self, value: f64) {
        let text = self.text_of(value);
        self.bulk(&text);
    }

    fn text_of(&self, value: f64) -> number::FloatText {
        if self.shortest { number::format_shortest(value) } else { number::format_f64(value) }
    }

    /// A double with these digits (RESP2: a bulk string).
    pub fn decimal(&mut self, text: &str) {
        if self.resp3 { self.line(b',', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    /// A boolean (RESP2: 1 or 0).
    pub fn boolean(&mut self, value: bool) {
        if self.resp3 { self.raw(if value { b"#t\r\n" } else { b"#f\r\n" }) } else { self.int(i64::from(value)) }
    }

    /// A big number in decimal digits (RESP2: a bulk string). A script may give any bytes: line ends become spaces.
    pub fn big_number(&mut self, digits: &[u8]) {
        if self.resp3 {
            return self.one_line(b'(', digits);
        }
        self.number_line(b'$', digits.len() as i64);
        let from = self.buf.len();
        self.raw(digits);
        self.end_line(from);
    }

    /// Text with a three-letter format, `txt` or `mkd` (RESP2: a bulk string).
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        if !self.resp3 {
            return self.bulk(text);
        }
        self.number_line(b'=', text.len() as i64 + 4);
        self.raw(&format);
        self.buf.push(b':');
        self.raw(text);
        self.raw(b"\r\n");
    }

    /// Head of an attribute of `len` pairs, which RESP3 clients may ignore; nothing is written in RESP2.
    pub fn attribute(&mut self, len: usize) -> bool {
        if self.resp3 {
            self.number_line(b'|', len as i64);
        }
        self.resp3
    }

    /// Inserts the head of an array whose elements were written since `mark`.
    pub fn array_at(&mut self, mark: Mark, len: usize) {
        self.head_at(mark, b'*', len);
    }

    /// Inserts the head of a set whose members were written since `mark` (RESP2: an array).
    pub fn set_at(&mut self, mark: Mark, len: usize) {
        self.head_at(mark, if self.resp3 { b'~' } else { b'*' }, len);
    }

    /// Inserts the head of a map whose pairs were written since `mark` (RESP2: an array).
    pub fn map_at(&mut self, mark: Mark, pairs: usize) {
        if self.resp3 { self.head_at(mark, b'%', pairs) } else { self.head_at(mark, b'*', pairs * 2) }
    }

    /// Inserts a short bulk string before what was written since `mark`.
    pub fn bulk_at(&mut self, mark: Mark, value: &[u8]) {
        let mut head = itoa::Buffer::new();
        let head = head.format(value.len()).as_bytes();
        self.insert(mark, &[b"$", head, b"\r\n", value, b"\r\n"]);
    }

    fn head_at(&mut self, mark: Mark, kind: u8, len: usize) {
        self.insert(mark, &[&[kind], itoa::Buffer::new().format(len).as_bytes(), b"\r\n"]);
    }

    fn insert(&mut self, mark: Mark, parts: &[&[u8]]) {
        let len = self.buf.len();
        self.buf.splice(mark.len..mark.len, parts.iter().flat_map(|part| part.iter().copied()));
        let inserted = self.buf.len() - len;
        for (at, _) in &mut self.blobs[mark.blobs..] {
            *at += inserted;
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.buf.push(kind);
        self.raw(text);
        self.raw(b"\r\n");
    }

    fn one_line(&mut self, kind: u8, text: &[u8]) {
        self.buf.push(kind);
        let from = self.buf.len();
        self.raw(text);
        self.end_line(from);
    }

    /// Ends what began at offset `from` as one line.
    fn end_line(&mut self, from: usize) {
        for byte in &mut self.buf[from..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.raw(b"\r\n");
    }

    #[inline]
    fn number_line(&mut self, kind: u8, value: i64) {
        // Small counts, lengths and integer replies are by far the commonest.
        let Some(&(line, len)) = usize::try_from(value).ok().and_then(|value| SHORT_LINES.get(value)) else {
            return self.long_number_line(kind, value);
        };
        let end = self.buf.len() + usize::from(len);
        // A copy of constant length is one store.
        self.raw(&(line | u64::from(kind)).to_le_bytes());
        self.buf.truncate(end);
    }

    #[cold]
    fn long_number_line(&mut self, kind: u8, value: i64) {
        self.line(kind, itoa::Buffer::new().format(value).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_len(bytes: &[u8]) -> usize {
        len_of_first(bytes.len(), |at| line(&bytes[at..]))
    }

    fn check(expected2: &str, expected3: &str, write: impl Fn(&mut Reply)) {
        for (resp3, expected) in [(false, expected2), (true, expected3)] {
            let mut reply = Reply::default();
            reply.set_resp3(resp3);
            write(&mut reply);
            assert_eq!(reply.to_vec().escape_ascii().to_string(), expected, "resp3: {resp3}");
        }
    }

    #[test]
    fn every_type_in_both_protocols() {
        check("+OK\\r\\n", "+OK\\r\\n", Reply::ok);
        check("-ERR a b\\r\\n", "-ERR a b\\r\\n", |r| r.error(&"ERR a\nb"));
        check(":-12\\r\\n", ":-12\\r\\n", |r| r.int(-12));
        check("$-1\\r\\n", "_\\r\\n", Reply::null);
        check("*-1\\r\\n", "_\\r\\n", Reply::null_array);
        check("*4\\r\\n", "%2\\r\\n", |r| r.map(2));
        check("*2\\r\\n", "~2\\r\\n", |r| r.set(2));
        check("*3\\r\\n", ">3\\r\\n", |r| r.push(3));
        check(":1\\r\\n", "#t\\r\\n", |r| r.boolean(true));
        check("$1\\r\\n7\\r\\n", "(7\\r\\n", |r| r.big_number(b"7"));
        check("$4\\r\\n1  2\\r\\n", "(1  2\\r\\n", |r| r.big_number(b"1\r\n2"));
        check("$2\\r\\nhi\\r\\n", "=6\\r\\ntxt:hi\\r\\n", |r| r.verbatim(*b"txt", b"hi"));
        check("$2\\r\\n42\\r\\n", "$2\\r\\n42\\r\\n", |r| r.bulk_int(42));
    }

    #[test]
    fn heads_are_inserted_and_blobs_move_with_them() {
        let mut reply = Reply::default();
        reply.ok();
        let mark = reply.mark();
        reply.blob(&Bytes::from(vec![b'x'; BLOB_MIN]));
        reply.array_at(mark, 1);
        reply.bulk_at(mark, b"42");
        let expected = format!("+OK\r\n$2\r\n42\r\n*1\r\n${BLOB_MIN}\r\n{}\r\n", "x".repeat(BLOB_MIN));
        assert_eq!(reply.to_vec(), expected.as_bytes());
        assert_eq!(reply.len(), expected.len());
        reply.truncate(mark);
        assert_eq!(reply.to_vec(), b"+OK\r\n");
    }

    #[test]
    fn the_first_of_several_replies_is_found() {
        let check = |first: &str, rest: &str| {
            assert_eq!(first_len(format!("{first}{rest}").as_bytes()), first.len(), "{first:?}");
        };
        for rest in ["", "+OK\r\n", "*1\r\n:1\r\n"] {
            check("+OK\r\n", rest);
            check("$-1\r\n", rest);
            check("$4\r\n\r\n\r\n\r\n", rest);
            check("*2\r\n*1\r\n$1\r\nx\r\n%1\r\n:1\r\n_\r\n", rest);
            check("*0\r\n", rest);
            check(">2\r\n$1\r\na\r\n*1\r\n:1\r\n=5\r\ntxt:x\r\n", rest);
        }
        assert_eq!(first_len(b""), 0);
        assert_eq!(first_len(b"$9\r\nx"), 5);
    }

    #[test]
    fn lengths_of_the_last_replies_are_known_without_what_is_shared() {
        let mut reply = Reply::default();
        reply.ok();
        let begin = reply.len();
        let large = Bytes::from(vec![b'\n'; BLOB_MIN]);
        reply.blob(&large);
        reply.array(2);
        reply.blob(&large);
        reply.bulk(b"small");
        reply.null();
        reply.blob(&large);
        let one = format!("${BLOB_MIN}\r\n\r\n").len() + BLOB_MIN;
        let expected = [one, 4 + one + "$5\r\nsmall\r\n".len(), 5, one];
        assert_eq!(reply.last_lens(reply.len() - begin, 4), expected);
        assert_eq!(reply.last_lens(one, 1), [one]);
    }
}
