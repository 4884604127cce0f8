//! HTTP/1.1 as strict as http-server takes it. hyper accepts malformed requests that a proxy in front of it may read
//! differently (RFC 9112 section 11.2). So this module checks the bytes before hyper gets them. It replaces the first
//! wrong byte of a request by a NUL, which hyper answers with status 400.

use server_runtime::are_chunk_extensions;

/// Bytes of a line that are kept: names and values of the fields that matter are shorter, the longest host that DNS knows among them.
const KEPT: usize = 512;

/// Stands instead of a byte that is wrong.
const WRONG: u8 = 0;

/// Follows the requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Strict {
    place: Place,
    /// The beginning of the line that is read.
    line: Vec<u8>,
    /// Whether the last byte was CR.
    is_cr: bool,
    head: Head,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In a request's head, or before it.
    #[default]
    Head,
    /// So many bytes of a body are left.
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    /// The line end behind a chunk's data.
    ChunkEnd,
    Trailers,
    /// Further bytes are not looked at: the connection is no request's any more, or is refused.
    Over,
}

/// The framing that a head announces for its message, and its host.
#[derive(Debug, Default)]
struct Head {
    /// Lines, the first of which is the request line.
    lines: u32,
    /// Whether the version is 1.1.
    is_11: bool,
    hosts: u32,
    length: Option<u64>,
    is_chunked: bool,
}

impl Strict {
    /// Looks at bytes on their way; one that may not stand where it does is changed.
    pub(super) fn look(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let count = match self.place {
                Place::Over => return,
                Place::Body(left) | Place::ChunkData(left) => {
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    self.skip(left - count as u64);
                    count
                }
                Place::Head | Place::ChunkSize | Place::ChunkEnd | Place::Trailers => {
                    if self.byte(bytes[0]).is_err() {
                        (bytes[0], self.place) = (WRONG, Place::Over);
                        return;
                    }
                    1
                }
            };
            bytes = &mut bytes[count..];
        }
    }

    fn skip(&mut self, left: u64) {
        self.place = match self.place {
            Place::Body(_) if left > 0 => Place::Body(left),
            Place::ChunkData(_) if left > 0 => Place::ChunkData(left),
            Place::ChunkData(_) => Place::ChunkEnd,
            _ => Place::Head,
        };
    }

    /// Takes a byte of a line.
    fn byte(&mut self, byte: u8) -> Result<(), Wrong> {
        let was_cr = std::mem::replace(&mut self.is_cr, byte == b'\r');
        match (was_cr, byte) {
            (true, b'\n') => {
                let line = std::mem::take(&mut self.line);
                let taken = self.take(&line);
                self.line = line;
                self.line.clear();
                taken
            }
            // A bare LF, and a bare CR.
            (false, b'\n') | (true, _) => Err(Wrong),
            (false, b'\r') => Ok(()),
            (false, byte) => {
                if self.line.len() < KEPT {
                    self.line.push(byte);
                }
                Ok(())
            }
        }
    }

    /// Takes a whole line.
    fn take(&mut self, line: &[u8]) -> Result<(), Wrong> {
        self.place = match self.place {
            // Empty lines before a request are none of it (RFC 9112 section 2.2).
            Place::Head if line.is_empty() && self.head.lines == 0 => Place::Head,
            Place::Head if line.is_empty() => std::mem::take(&mut self.head).end()?,
            Place::Head => {
                self.head.take(line)?;
                Place::Head
            }
            Place::ChunkSize => match chunk_size(line).ok_or(Wrong)? {
                0 => Place::Trailers,
                size => Place::ChunkData(size),
            },
            Place::ChunkEnd if line.is_empty() => Place::ChunkSize,
            Place::Trailers if line.is_empty() => Place::Head,
            Place::Trailers => Place::Trailers,
            Place::ChunkEnd | Place::Body(_) | Place::ChunkData(_) | Place::Over => return Err(Wrong),
        };
        Ok(())
    }
}

/// A byte may not stand where it does.
#[derive(Debug)]
struct Wrong;

impl Head {
    fn take(&mut self, line: &[u8]) -> Result<(), Wrong> {
        self.lines = self.lines.saturating_add(1);
        if self.lines == 1 {
            // A line that is longer than what is kept has its version behind that; hyper takes no others than these two.
            self.is_11 = !line.ends_with(b" HTTP/1.0");
            return if names_user(line) { Err(Wrong) } else { Ok(()) };
        }
        // Lines that go on with a space (obs-fold, RFC 9112 section 5.2) have no name, or one that begins with it.
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Err(Wrong) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(Wrong);
        }
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
            if line.len() == KEPT || !value.iter().all(is_of_host) {
                return Err(Wrong);
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let length = decimal(value).ok_or(Wrong)?;
            if self.length.replace(length).is_some() {
                return Err(Wrong);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Wrong);
            }
            self.is_chunked = true;
        }
        Ok(())
    }

    /// The head is whole: returns the place that follows it. A request of HTTP/1.1 has one Host (RFC 9112 section 3.2),
    /// and its body one length.
    fn end(self) -> Result<Place, Wrong> {
        let has_right_hosts = self.hosts == 1 || self.hosts == 0 && !self.is_11;
        match (self.length, self.is_chunked) {
            _ if !has_right_hosts => Err(Wrong),
            (Some(_), true) => Err(Wrong),
            (None, true) if !self.is_11 => Err(Wrong),
            (None, true) => Ok(Place::ChunkSize),
            (None | Some(0), false) => Ok(Place::Head),
            (Some(length), false) => Ok(Place::Body(length)),
        }
    }
}

/// An absolute target in the request line has user information, which is no part of a host (RFC 9110 section 4.2.4).
fn names_user(line: &[u8]) -> bool {
    let target = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let Some(at) = target.windows(3).position(|bytes| bytes == b"://").filter(|_| target[0] != b'/') else {
        return false;
    };
    let authority = target[at + 3..].split(|byte| matches!(byte, b'/' | b'?')).next().unwrap_or_default();
    // One that goes on behind the bytes that are kept is no host either.
    authority.contains(&b'@') || line.len() == KEPT && target.ends_with(authority)
}

/// The characters of names, addresses and ports (RFC 3986 section 3.2.2).
fn is_of_host(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(byte)
}

fn decimal(text: &[u8]) -> Option<u64> {
    let are_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| are_digits)?.parse().ok()
}

/// A chunk's size. hyper bounds its extensions; here a line has an end that is kept.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extensions) = line.split_at(digits);
    if !(1..=15).contains(&digits) || line.len() == KEPT || !are_chunk_extensions(extensions) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends the text in pieces of every size; returns the place of the byte that is wrong.
    fn wrong(text: &str) -> Option<usize> {
        let mut found = Vec::new();
        for size in 1..=text.len() {
            let (mut strict, mut bytes) = (Strict::default(), text.as_bytes().to_vec());
            bytes.chunks_mut(size).for_each(|piece| strict.look(piece));
            found.push(bytes.iter().position(|byte| *byte == WRONG));
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{text:?}: {found:?}");
        found[0]
    }

    #[test]
    fn valid_requests_pass_unchanged() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nhost:a\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET http://a:80/x@y HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
            "GET /x?to=http://u@a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a?u@b HTTP/1.1\r\nHost: a-b.c_d~%41\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na\nbGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n0A;x=\"y\"\r\n0123456789\r\n0;z\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(wrong(text), None, "{text:?}");
        }
    }

    /// The longest host that DNS knows is one; longer ones are not kept, and so are none.
    #[test]
    fn long_hosts() {
        for (length, is_host) in [(253, true), (KEPT, false)] {
            let host = "h".repeat(length);
            let field = format!("GET / HTTP/1.1\r\nHost: {host}:65535\r\n\r\n");
            let target = format!("GET http://{host}:65535/ HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!([wrong(&field), wrong(&target)].map(|place| place.is_none()), [is_host; 2], "{length}");
        }
    }

    #[test]
    fn the_first_invalid_byte_is_marked() {
        // The end of what is right.
        for (right, rest) in [
            ("GET / HTTP/1.1\r\n\r", "\n"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r", "\n"),
            ("GET / HTTP/1.1", "\nHost: a\n\n"),
            ("GET http://user@a/ HTTP/1.1\r", "\nHost: a\r\n\r\n"),
            ("GET HTTPS://u:p@a HTTP/1.1\r", "\nHost: a\r\n\r\n"),
            ("GET / HTTP/1.1\r\nHost: user@a\r", "\n\r\n"),
            ("GET / HTTP/1.1\r\nHost: a b\r", "\n\r\n"),
            ("GET / HTTP/1.1\r\nHost: a", "\n\r\n"),
            ("GET / HTTP/1.1\r\nHost: a\r\n", "\n"),
            ("GET / HTTP/1.1\r\nHost: a\r", "b\r\n\r\n"),
            ("GET / HTTP/1.1\r\nHost : a\r", "\n\r\n"),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r", "\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r", "\n\r\na"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r", "\n\r\na"),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r", "\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r", "\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r", "\n\r\n"),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r", "\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\r", "\nabc\r\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3", "\nabc\r\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r", "\n0\r\n\r\n"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r", "\n0\r\n\r\n"),
        ] {
            assert_eq!(wrong(&format!("{right}{rest}")), Some(right.len()), "{right:?}");
        }
    }
}
