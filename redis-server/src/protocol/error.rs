//! Every error that a client can be sent, with the genuine server's texts.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// Bytes of an error's text in which its code ends.
const MAX_CODE: usize = 31;

/// An error reply; its [`Display`](fmt::Display) is the line that is sent, code first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds another type.
    WrongType,
    /// Arguments that do not fit.
    Syntax,
    /// Not a 64-bit integer.
    NotInteger,
    /// A 64-bit integer where one of 32 bits is needed.
    NotInt32,
    /// Not a double.
    NotFloat,
    /// No such key, where one is needed.
    NoSuchKey,
    /// An index outside of the value.
    IndexOutOfRange,
    /// A number that must not be negative, or is too large.
    OutOfRange,
    /// Arity.
    WrongArity(Cow<'static, str>),
    /// `SELECT` and its like got a number that is none of a database.
    DbIndex,
    /// An expiry that does not fit, by command.
    InvalidExpire(&'static str),
    /// A sum that does not fit in 64 bits.
    Overflow,
    /// A sum of floats that is not finite.
    NanOrInfinity,
    /// The client must authenticate first.
    NoAuth,
    /// The memory that data may take is used up.
    OutOfMemory,
    /// Snapshots cannot be written, and nothing is to be changed that might be lost.
    SnapshotsFail,
    /// The data is not there yet.
    Loading,
    /// A node of a cluster says who serves the keys, or why nobody does; complete with its code.
    Elsewhere(String),
    /// Any other, complete with its code.
    Static(&'static str),
    /// Any other that names something, complete with its code.
    Message(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::Syntax => "ERR syntax error",
            Self::NotInteger => "ERR value is not an integer or out of range",
            Self::NotInt32 => "ERR value is out of range, value must between -2147483648 and 2147483647",
            Self::NotFloat => "ERR value is not a valid float",
            Self::NoSuchKey => "ERR no such key",
            Self::IndexOutOfRange => "ERR index out of range",
            Self::OutOfRange => "ERR value is out of range",
            Self::WrongArity(name) => return write!(f, "ERR wrong number of arguments for '{name}' command"),
            Self::DbIndex => "ERR DB index is out of range",
            Self::InvalidExpire(name) => return write!(f, "ERR invalid expire time in '{name}' command"),
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Self::NoAuth => "NOAUTH Authentication required.",
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::SnapshotsFail => {
                "MISCONF Snapshots cannot be written to disk (the log says why), and `stop-writes-on-bgsave-error` is on: nothing can be changed."
            }
            Self::Loading => "LOADING Redis is loading the dataset in memory",
            Self::Static(text) => text,
            Self::Elsewhere(text) | Self::Message(text) => text,
        })
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The redirection of a client to another server.
    pub fn redirect(host: &str, port: u16) -> Self {
        Self::Elsewhere(format!("REDIRECT {host}:{port}"))
    }

    /// Writes depend on how many replicas there are (`min-replicas-to-write`).
    pub const TOO_FEW_REPLICAS: Self = Self::Static("NOREPLICAS Not enough good replicas to write.");

    /// A server that follows another changes nothing of its own accord.
    pub const READ_ONLY: Self = Self::Static("READONLY You can't write against a read only replica.");

    /// A server that follows another has lost it, and `replica-serve-stale-data no` has it show no old data.
    pub const STALE: Self =
        Self::Static("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");

    /// The first word, by which `INFO errorstats` counts; a text without one among its first bytes counts as `ERR`, as in the
    /// genuine server.
    pub fn code(&self) -> String {
        let text = self.to_string();
        let is_space = |byte: &u8| *byte == b' ';
        match text.bytes().take(MAX_CODE).position(|byte| is_space(&byte)) {
            Some(end) => text.get(..end).unwrap_or("ERR").to_owned(),
            None => "ERR".to_owned(),
        }
    }
}

/// Characters of Unicode's last private area: the one for a byte stands for it in an error's text, where the byte is no
/// UTF-8. So texts are strings, and clients still get back the bytes that they sent.
const STAND_INS: RangeInclusive<char> = '\u{10ff00}'..='\u{10ffff}';

/// A client's bytes as part of an error's text, cut to `max` bytes.
pub(crate) fn echo(bytes: &[u8], max: usize) -> Cow<'_, str> {
    shown(&bytes[..bytes.len().min(max)])
}

/// A client's bytes as part of an error's text: up to the first zero byte, where a string of the genuine server's ends.
pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = c_string(bytes);
    let is_stand_in = |c: char| STAND_INS.contains(&c);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(is_stand_in) => return Cow::Borrowed(text),
        _ => {}
    }
    let stand_in = |byte: u8| char::from_u32(*STAND_INS.start() as u32 + u32::from(byte)).expect("the area has 256");
    let mut text = String::with_capacity(4 * bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_stand_in(c) {
                text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(stand_in));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    Cow::Owned(text)
}

/// Bytes up to the first zero byte.
pub(crate) fn c_string(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// Puts the bytes that stand-ins stand for in their places, from offset `from` of an error that is written.
pub(crate) fn restore_bytes(buf: &mut Vec<u8>, from: usize) {
    let Some(first) = memchr::memchr(0xf4, &buf[from..]) else { return };
    let (mut read, mut write) = (from + first, from + first);
    while read < buf.len() {
        // U+10FF00 to U+10FFFF in UTF-8.
        let (byte, len) = match buf[read..] {
            [0xf4, 0x8f, high @ 0xbc..=0xbf, low, ..] => ((high - 0xbc) << 6 | low & 0x3f, 4),
            [byte, ..] => (byte, 1),
            [] => break,
        };
        buf[write] = byte;
        write += 1;
        read += len;
    }
    buf.truncate(write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the genuine server counts them.
    #[test]
    fn codes_are_short() {
        let longest = "ABCDEFGHIJKLMNOPQRSTUVWXYZABCD";
        for (text, code) in [
            ("MY code", "MY"),
            ("ALONE", "ERR"),
            ("", "ERR"),
            (&format!("{longest} x"), longest),
            (&format!("{longest}E x"), "ERR"),
            (&"\u{e9}".repeat(99), "ERR"),
        ] {
            assert_eq!(Error::Message(text.to_owned()).code(), code, "{text}");
        }
    }

    #[test]
    fn any_bytes_come_back() {
        let check = |bytes: &[u8], expected: &[u8]| {
            let mut buf = b"-'".to_vec();
            buf.extend_from_slice(shown(bytes).as_bytes());
            restore_bytes(&mut buf, 1);
            assert_eq!(buf[2..].escape_ascii().to_string(), expected.escape_ascii().to_string());
        };
        let same = |bytes: &[u8]| check(bytes, bytes);
        same(b"plain");
        same("\u{e9}\u{fffd}\u{10ffff}\u{10ff00}\u{10fe00}".as_bytes());
        same(&(1..=255).collect::<Vec<u8>>());
        same(&(1..=255).rev().collect::<Vec<u8>>());
        same(b"\xf4\x8f\xbc\x80\xf4\x8f\xbc");
        check(b"until\0here", b"until");
    }
}
