//! The commands, as bytes.

use core::fmt::{self, Write};
use core::net::Ipv6Addr;

/// A command with its arguments.
#[derive(Clone, Copy)]
pub(crate) enum Command<'a> {
    Reset,
    EchoOff,
    Version,
    ReadMode,
    WriteMode(&'a str),
    Password(&'a [u8]),
    Id(&'a [u8]),
    Scan { duration: u8, side: bool },
    Address(u64),
    Channel(u8),
    PanId(u16),
    Join(Ipv6Addr),
    Send { to: Ipv6Addr, side: bool, payload: &'a [u8] },
}

/// The UDP handle that is bound to port 3610 in every module as delivered.
const HANDLE: u8 = 1;
/// SKSENDTO's SEC: encrypt, or fail without a key.
const ENCRYPT: u8 = 1;
/// The side of Route B where a module has two.
const ROUTE_B: &str = " 0";

impl Command<'_> {
    /// Writes the command with its line end to the start of `into` and tells its length; `None` if it does not fit.
    pub(crate) fn write(&self, into: &mut [u8]) -> Option<usize> {
        let mut out = Cursor { into, at: 0 };
        self.write_to(&mut out).ok()?;
        Some(out.at)
    }

    fn write_to(&self, out: &mut Cursor<'_>) -> fmt::Result {
        let side_word = |side| if side { ROUTE_B } else { "" };
        match *self {
            Self::Reset => out.write_str("SKRESET")?,
            Self::EchoOff => out.write_str("SKSREG SFE 0")?,
            Self::Version => out.write_str("SKVER")?,
            // The commands of the module, in contrast to those of the stack, end in a bare CR.
            Self::ReadMode => return out.write_str("ROPT\r"),
            Self::WriteMode(mode) => return write!(out, "WOPT {mode}\r"),
            Self::Password(password) => {
                write!(out, "SKSETPWD {:X} ", password.len())?;
                out.push(password)?;
            }
            Self::Id(id) => {
                out.write_str("SKSETRBID ")?;
                out.push(id)?;
            }
            // Mode 2: active scan with information element, which only the meter that knows the id answers.
            Self::Scan { duration, side } => {
                write!(out, "SKSCAN 2 FFFFFFFF {duration:X}{}", side_word(side))?;
            }
            Self::Address(address) => write!(out, "SKLL64 {address:016X}")?,
            Self::Channel(channel) => write!(out, "SKSREG S2 {channel:02X}")?,
            Self::PanId(id) => write!(out, "SKSREG S3 {id:04X}")?,
            Self::Join(meter) => write!(out, "SKJOIN {}", Full(meter))?,
            Self::Send { to, side, payload } => {
                let (to, port, side) = (Full(to), crate::wire::PORT, side_word(side));
                write!(out, "SKSENDTO {HANDLE} {to} {port:04X} {ENCRYPT}{side} {:04X} ", payload.len())?;
                // The length ends the payload; a line end here would be a command of its own.
                return out.push(payload);
            }
        }
        out.write_str("\r\n")
    }
}

/// An address in the only form that the modules read: eight groups of four digits.
struct Full(Ipv6Addr);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, group) in self.0.segments().into_iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{group:04X}")?;
        }
        Ok(())
    }
}

struct Cursor<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn push(&mut self, bytes: &[u8]) -> fmt::Result {
        let end = self.at + bytes.len();
        self.into.get_mut(self.at..end).ok_or(fmt::Error)?.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }
}

impl Write for Cursor<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::{COMMAND_MAX, PAYLOAD_MAX};

    #[test]
    fn bytes() {
        let meter = "FE80::21D:1290:1234:5678".parse().unwrap();
        let rows: &[(Command<'_>, &[u8])] = &[
            (Command::Reset, b"SKRESET\r\n"),
            (Command::ReadMode, b"ROPT\r"),
            (Command::WriteMode("01"), b"WOPT 01\r"),
            (Command::Password(b"0123456789AB"), b"SKSETPWD C 0123456789AB\r\n"),
            (Command::Id(b"00112233"), b"SKSETRBID 00112233\r\n"),
            (Command::Scan { duration: 6, side: false }, b"SKSCAN 2 FFFFFFFF 6\r\n"),
            (Command::Scan { duration: 10, side: true }, b"SKSCAN 2 FFFFFFFF A 0\r\n"),
            (Command::Address(0x001D_1290_1234_5678), b"SKLL64 001D129012345678\r\n"),
            (Command::Channel(0x21), b"SKSREG S2 21\r\n"),
            (Command::PanId(0x888), b"SKSREG S3 0888\r\n"),
            (Command::Join(meter), b"SKJOIN FE80:0000:0000:0000:021D:1290:1234:5678\r\n"),
            (
                Command::Send { to: meter, side: false, payload: b"\x10\x81\r\n" },
                b"SKSENDTO 1 FE80:0000:0000:0000:021D:1290:1234:5678 0E1A 1 0004 \x10\x81\r\n",
            ),
            (
                Command::Send { to: meter, side: true, payload: b"\x10" },
                b"SKSENDTO 1 FE80:0000:0000:0000:021D:1290:1234:5678 0E1A 1 0 0001 \x10",
            ),
        ];
        for (command, expected) in rows {
            let mut buffer = [0; 128];
            let length = command.write(&mut buffer).unwrap();
            assert_eq!(buffer[..length].escape_ascii().to_string(), expected.escape_ascii().to_string());
            assert_eq!(command.write(&mut buffer[..length - 1]), None);
        }
        let longest = Command::Send { to: meter, side: true, payload: &[0; PAYLOAD_MAX] };
        assert!(longest.write(&mut [0; COMMAND_MAX]).is_some());
    }

    use std::string::ToString;
}
