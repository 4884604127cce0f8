//! Cuts the module's output into lines, without being fooled by the bytes of a binary payload.

use super::PAYLOAD_MAX;

/// Room for what precedes the payload of `ERXUDP`: two addresses of 39 characters, two ports, a MAC address and flags.
const HEADER_MAX: usize = 160;
/// The longest line: `ERXUDP` with its payload in hexadecimal.
const LINE_MAX: usize = HEADER_MAX + 2 * PAYLOAD_MAX;

/// Where the next byte belongs.
///
/// ```text
///          "ERXUDP … 0012 "           first byte not hex
/// Text ───────────────────────► Peek ────────────────────► Payload ──► Terminator ──► (line complete)
///  ▲  ▲                          │ hex: the payload is text                │
///  │  └──────────────────────────┘                              not CR: bytes were lost
///  │                 CR or LF                                              ▼
///  └──────────────────────────────────────────────────────────────────── Skip
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a line of text.
    Text,
    /// At the first byte of a received payload of this length, hexadecimal or raw.
    Peek(usize),
    /// At the first byte after an echoed `SKSENDTO` header: some firmware repeats the payload, some ends the line, some does neither.
    PeekEcho(usize),
    /// In a raw payload with this many bytes to come.
    Payload(usize),
    /// At the CR that ends a raw payload.
    Terminator,
    /// In a line that cannot be used, up to its end.
    Skip,
}

/// Collects bytes to lines. One line at a time: the caller takes it, then feeds on.
pub(crate) struct Scanner {
    line: [u8; LINE_MAX],
    len: usize,
    state: State,
    complete: bool,
}

impl Scanner {
    pub(crate) const fn new() -> Self {
        Self { line: [0; LINE_MAX], len: 0, state: State::Text, complete: false }
    }

    /// Takes bytes up to the end of a line and tells how many, and whether a line is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        if self.complete {
            self.restart();
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if !self.push(byte) {
                return (at, true);
            }
            if self.complete {
                return (at + 1, true);
            }
        }
        (bytes.len(), false)
    }

    /// The complete line, without its end; a raw payload is part of it as it came.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line[..self.len]
    }

    /// Forgets a line begun.
    pub(crate) fn restart(&mut self) {
        self.len = 0;
        self.state = State::Text;
        self.complete = false;
    }

    /// Takes one byte; `false` if it belongs to the next line already.
    fn push(&mut self, byte: u8) -> bool {
        match self.state {
            State::Text => self.push_text(byte),
            State::Peek(length) => {
                // ECHONET Lite begins with 0x10 and PANA with 0x00: neither is a hexadecimal digit, so a digit means text.
                self.state =
                    if byte.is_ascii_hexdigit() || byte == b'\r' { State::Text } else { State::Payload(length) };
                return self.push(byte);
            }
            State::PeekEcho(length) => match byte {
                b'\r' | b'\n' => self.push_text(byte),
                // The first byte of an ECHONET Lite frame.
                0x10 => {
                    self.state = State::Payload(length);
                    return self.push(byte);
                }
                _ => {
                    self.complete = true;
                    return false;
                }
            },
            State::Payload(left) => {
                self.append(byte);
                if self.state != State::Skip {
                    self.state = if left > 1 { State::Payload(left - 1) } else { State::Terminator };
                }
            }
            State::Terminator if byte == b'\r' => self.complete = true,
            State::Terminator if byte != b'\n' => self.state = State::Skip,
            State::Terminator | State::Skip => {
                if matches!(byte, b'\r' | b'\n') {
                    self.restart();
                }
            }
        }
        true
    }

    fn push_text(&mut self, byte: u8) {
        match byte {
            // Some answers (ROPT, WOPT) end in a bare CR, so a CR ends a line and a LF at its start is nothing.
            b'\r' | b'\n' => self.complete = self.len > 0,
            _ => {
                self.append(byte);
                if byte == b' ' {
                    self.find_payload();
                }
            }
        }
    }

    /// A line too long for the buffer is none of the module's.
    fn append(&mut self, byte: u8) {
        match self.line.get_mut(self.len) {
            Some(slot) => {
                *slot = byte;
                self.len += 1;
            }
            None => self.state = State::Skip,
        }
    }

    /// After a space: has the line just announced a payload?
    fn find_payload(&mut self) {
        let line = &self.line[..self.len - 1];
        if line.starts_with(b"ERXUDP ") {
            if let Some(length) = announced(line, 7) {
                self.state = State::Peek(length);
            }
        } else if line.starts_with(b"SKSENDTO ")
            && let Some(length) = announced(line, 5)
        {
            self.state = State::PeekEcho(length);
        }
    }
}

/// The payload length that a header ends with: four hexadecimal digits behind a flag of one, at word `earliest` or later.
///
/// The words before differ by module and register (RSSI, side), and all have other lengths.
fn announced(header: &[u8], earliest: usize) -> Option<usize> {
    let mut words = header.split(|&byte| byte == b' ');
    let (last, flag) = (words.next_back()?, words.next_back()?);
    let length = hex_number(last)?;
    let fits = last.len() == 4 && flag.len() == 1 && words.count() + 1 >= earliest;
    (fits && (1..=PAYLOAD_MAX).contains(&length)).then_some(length)
}

/// A number in hexadecimal digits, at most four.
pub(crate) fn hex_number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number * 16 + digit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const HEADER: &str = "ERXUDP FE80::1 FE80::2 0E1A 0E1A 001D129012345678 1 ";

    /// The lines of a stream, whatever the pieces that it comes in.
    fn check(name: &str, stream: &[u8], expected: &[&[u8]]) {
        for piece in 1..=stream.len() {
            let mut scanner = Scanner::new();
            let mut lines: Vec<Vec<u8>> = Vec::new();
            for mut bytes in stream.chunks(piece) {
                while !bytes.is_empty() {
                    let (taken, complete) = scanner.feed(bytes);
                    bytes = &bytes[taken..];
                    if complete {
                        lines.push(scanner.line().to_vec());
                    }
                }
            }
            assert_eq!(lines, expected, "{name}, in pieces of {piece}");
        }
    }

    fn join(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn lines() {
        check("two lines", b"EVENT 25 FE80::1\r\nOK\r\n", &[b"EVENT 25 FE80::1", b"OK"]);
        check("empty lines are nothing", b"\r\n\r\nOK\r\n\n", &[b"OK"]);
        check("a bare CR ends a line", b"OK 01\rOK\r\n", &[b"OK 01", b"OK"]);
        check("a bare LF ends a line", b"OK 01\nOK\n", &[b"OK 01", b"OK"]);
        check("indented", b"EPANDESC\r\n  Channel:21\r\n", &[b"EPANDESC", b"  Channel:21"]);
    }

    #[test]
    fn payloads() {
        let header = HEADER.as_bytes();
        let text = join(&[header, b"0004 1081000A"]);
        check("hexadecimal", &join(&[&text, b"\r\nOK\r\n"]), &[&text, b"OK"]);
        let raw = join(&[header, b"0006 \x10\x81\r\nOK"]);
        check("raw with line ends inside", &join(&[&raw, b"\r\nOK\r\n"]), &[&raw, b"OK"]);
        let raw = join(&[header, b"0 0003 \x10\r\n"]);
        check("raw, with a side", &join(&[&raw, b"\r\n"]), &[&raw]);
        let lost = join(&[header, b"0003 \x10\r\n\r\nOK\r\n"]);
        check("a byte too many drops the line", &join(&[header, b"0003 \x10abc\r\nOK\r\n"]), &[b"OK"]);
        check("complete", &lost, &[&lost[..lost.len() - 6], b"OK"]);
        let short = join(&[header, b"0004 \x10ab\r\nOK\r\n"]);
        check("a lost byte drops the line", &short, &[b"OK"]);
    }

    #[test]
    fn echoes() {
        let header = b"SKSENDTO 1 FE80::1 0E1A 1 0 0004 ";
        check("header alone", &join(&[header, b"\r\nOK\r\n"]), &[header, b"OK"]);
        check(
            "glued",
            &join(&[header, b"EVENT 21 FE80::1 0 00\r\nOK\r\n"]),
            &[header, b"EVENT 21 FE80::1 0 00", b"OK"],
        );
        let full = join(&[header, b"\x10\x81\r\n"]);
        check("with the payload", &join(&[&full, b"\r\nOK\r\n"]), &[&full, b"OK"]);
    }

    #[test]
    fn overlong() {
        let mut stream = [b'x'; LINE_MAX + 10].to_vec();
        stream.extend_from_slice(b"\r\nOK\r\n");
        let mut scanner = Scanner::new();
        let (taken, complete) = scanner.feed(&stream);
        assert_eq!((taken, complete, scanner.line()), (stream.len() - 1, true, &b"OK"[..]));
    }

    #[test]
    fn numbers() {
        for (digits, expected) in
            [("0E1A", Some(3610)), ("0", Some(0)), ("", None), ("00001", None), ("0G", None), ("+1", None)]
        {
            assert_eq!(hex_number(digits.as_bytes()), expected, "{digits}");
        }
    }
}
