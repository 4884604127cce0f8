//! The lines that the module sends.

use core::net::Ipv6Addr;

use super::line::hex_number;
use super::{FailCode, Pan};

/// One line, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// `OK`, with what follows it (the value that ROPT asks for).
    Ok(&'a str),
    /// `FAIL ERxx`.
    Fail(FailCode),
    /// `EVER`: the version of the firmware.
    Version(&'a str),
    /// `EVENT`: something happened.
    Event(Notice),
    /// `EPANDESC`: the fields of a found network follow.
    PanBegin,
    /// One of these fields.
    PanField(PanField),
    /// An address alone: the answer of SKLL64.
    Address(Ipv6Addr),
    /// `ERXUDP`: a datagram.
    Datagram(Received<'a>),
    /// A command of ours, echoed.
    Echo,
    /// Anything else: answers to questions never asked, noise on the line.
    Unknown,
}

/// The numbers and parameters of `EVENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The number of the event.
    pub number: u8,
    /// The node that caused it.
    pub sender: Ipv6Addr,
    /// Further detail: the outcome of a transmission.
    pub parameter: Option<u8>,
}

/// A line of an `EPANDESC` block that matters for joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanField {
    /// The radio channel.
    Channel(u8),
    /// The number of the network.
    PanId(u16),
    /// The MAC address of the meter.
    Address(u64),
    /// Link quality, higher is better.
    Quality(u8),
    /// Which network the module found: 0 is Route B.
    Side(u8),
    /// Any other.
    Other,
}

impl PanField {
    /// Fills the field in.
    pub(crate) const fn apply(self, pan: &mut Pan) {
        match self {
            Self::Channel(channel) => pan.channel = channel,
            Self::PanId(id) => pan.id = id,
            Self::Address(address) => pan.address = address,
            Self::Quality(quality) => pan.quality = quality,
            Self::Side(_) | Self::Other => {}
        }
    }
}

/// A datagram as the module reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The sender.
    pub from: Ipv6Addr,
    /// The destination: this module or a group.
    pub to: Ipv6Addr,
    /// The sender's port.
    pub from_port: u16,
    /// The destination's port.
    pub to_port: u16,
    /// Whether it came encrypted with the key of the session.
    pub secured: bool,
    /// The payload, not yet decoded.
    pub payload: Payload<'a>,
}

/// A payload in one of the two forms that WOPT chooses between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// Two digits per byte; all are digits, and their count is even.
    Hex(&'a [u8]),
}

impl<'a> Payload<'a> {
    fn parse(bytes: &'a [u8], length: usize) -> Option<Self> {
        // The scanner decided by the same rule: a raw payload does not begin with a digit.
        let is_hex = bytes.first().is_some_and(u8::is_ascii_hexdigit);
        if is_hex && bytes.len() == 2 * length && bytes.iter().all(u8::is_ascii_hexdigit) {
            Some(Self::Hex(bytes))
        } else if !is_hex && bytes.len() == length {
            Some(Self::Raw(bytes))
        } else {
            None
        }
    }

    /// Writes the bytes to the start of `into` and tells how many; `None` if they do not fit.
    pub fn decode(self, into: &mut [u8]) -> Option<usize> {
        match self {
            Self::Raw(bytes) => {
                into.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(bytes.len())
            }
            Self::Hex(digits) => {
                let length = digits.len() / 2;
                let into = into.get_mut(..length)?;
                for (byte, pair) in into.iter_mut().zip(digits.chunks_exact(2)) {
                    // Two digits: below 256.
                    *byte = hex_number(pair)? as u8;
                }
                Some(length)
            }
        }
    }
}

impl<'a> Message<'a> {
    /// Reads one line without its end. Never fails: a line that it cannot read is [`Message::Unknown`].
    pub fn parse(line: &'a [u8]) -> Self {
        if let Some(rest) = line.strip_prefix(b"ERXUDP ") {
            return parse_datagram(rest).map_or(Self::Unknown, Self::Datagram);
        }
        // Only ERXUDP and our own echoes carry anything but ASCII.
        if line.starts_with(b"SK") || line.starts_with(b"ROPT") || line.starts_with(b"WOPT") {
            return Self::Echo;
        }
        core::str::from_utf8(line).map_or(Self::Unknown, Self::parse_text)
    }

    fn parse_text(line: &'a str) -> Self {
        if let Some(field) = line.strip_prefix("  ") {
            return parse_pan_field(field).map_or(Self::Unknown, Self::PanField);
        }
        let line = line.trim_end();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "OK" => Self::Ok(rest),
            "FAIL" => FailCode::parse(rest).map_or(Self::Unknown, Self::Fail),
            "EVER" => Self::Version(rest),
            "EVENT" => parse_event(rest).map_or(Self::Unknown, Self::Event),
            "EPANDESC" => Self::PanBegin,
            _ => line.parse().map_or(Self::Unknown, Self::Address),
        }
    }
}

/// `<NUM> <SENDER> [<SIDE>] [<PARAM>]`: where one word follows the sender of event 21 it is the parameter.
fn parse_event(text: &str) -> Option<Notice> {
    let mut words = text.split(' ');
    let number = u8::from_str_radix(words.next()?, 16).ok()?;
    let sender = words.next()?.parse().ok()?;
    let parameter = words.next_back().and_then(|word| u8::from_str_radix(word, 16).ok());
    Some(Notice { number, sender, parameter })
}

/// `Name:value`, as in `Pan ID:8888`.
fn parse_pan_field(text: &str) -> Option<PanField> {
    let (name, value) = text.trim().split_once(':')?;
    let byte = || u8::from_str_radix(value, 16).ok();
    Some(match name {
        "Channel" => PanField::Channel(byte()?),
        "Pan ID" => PanField::PanId(u16::from_str_radix(value, 16).ok()?),
        "Addr" => PanField::Address(u64::from_str_radix(value, 16).ok()?),
        "LQI" => PanField::Quality(byte()?),
        "Side" => PanField::Side(byte()?),
        _ => PanField::Other,
    })
}

/// `<SENDER> <DEST> <RPORT> <LPORT> <SENDERLLA> [<RSSI>] <SECURED> [<SIDE>] <DATALEN> <DATA>`.
///
/// RSSI (register SA2) has two digits, SECURED and SIDE have one, DATALEN has four: the lengths tell them apart.
fn parse_datagram(mut rest: &[u8]) -> Option<Received<'_>> {
    let mut word = || {
        let end = rest.iter().position(|&byte| byte == b' ')?;
        let (word, tail) = rest.split_at(end);
        rest = &tail[1..];
        Some(word)
    };
    let address = |word: &[u8]| core::str::from_utf8(word).ok()?.parse().ok();
    let from = address(word()?)?;
    let to = address(word()?)?;
    let from_port = hex_number(word()?)? as u16;
    let to_port = hex_number(word()?)? as u16;
    word()?;
    let mut flag = word()?;
    if flag.len() == 2 {
        flag = word()?;
    }
    let secured = match flag {
        b"0" => false,
        b"1" => true,
        _ => return None,
    };
    let mut length = word()?;
    if length.len() == 1 {
        length = word()?;
    }
    let length = hex_number(length)?;
    Some(Received { from, to, from_port, to_port, secured, payload: Payload::parse(rest, length)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const METER: &str = "FE80:0000:0000:0000:021D:1290:1234:5678";

    fn meter() -> Ipv6Addr {
        METER.parse().unwrap()
    }

    #[test]
    fn lines() {
        let event = |number, parameter| Message::Event(Notice { number, sender: meter(), parameter });
        let rows: &[(&str, Message<'_>)] = &[
            ("OK", Message::Ok("")),
            ("OK 01", Message::Ok("01")),
            ("FAIL ER04", Message::Fail(FailCode::UNSUPPORTED)),
            ("FAIL ER10", Message::Fail(FailCode::EXECUTION)),
            ("FAIL", Message::Unknown),
            ("EVER 1.2.10", Message::Version("1.2.10")),
            ("EVENT 25 FE80:0000:0000:0000:021D:1290:1234:5678", event(0x25, None)),
            ("EVENT 25 FE80:0000:0000:0000:021D:1290:1234:5678 0", event(0x25, Some(0))),
            ("EVENT 21 FE80:0000:0000:0000:021D:1290:1234:5678 01", event(0x21, Some(1))),
            ("EVENT 21 FE80:0000:0000:0000:021D:1290:1234:5678 0 02", event(0x21, Some(2))),
            ("EVENT 21 fe80::21d:1290:1234:5678 1", event(0x21, Some(1))),
            ("EVENT", Message::Unknown),
            ("EVENT XX FE80::1", Message::Unknown),
            ("EPANDESC", Message::PanBegin),
            ("  Channel:21", Message::PanField(PanField::Channel(0x21))),
            ("  Channel Page:09", Message::PanField(PanField::Other)),
            ("  Pan ID:8888", Message::PanField(PanField::PanId(0x8888))),
            ("  Addr:001D129012345678", Message::PanField(PanField::Address(0x001D_1290_1234_5678))),
            ("  LQI:E1", Message::PanField(PanField::Quality(0xE1))),
            ("  Side:0", Message::PanField(PanField::Side(0))),
            ("  PairID:AABBCCDD", Message::PanField(PanField::Other)),
            ("  Channel:999", Message::Unknown),
            ("  nothing", Message::Unknown),
            ("FE80:0000:0000:0000:021D:1290:1234:5678", Message::Address(meter())),
            ("SKVER", Message::Echo),
            ("ROPT", Message::Echo),
            ("EINFO FE80::1 001D129012345678 21 8888 FFFE", Message::Unknown),
            ("", Message::Unknown),
        ];
        for (line, expected) in rows {
            assert_eq!(Message::parse(line.as_bytes()), *expected, "{line}");
        }
    }

    #[test]
    fn datagrams() {
        type Row = (&'static str, &'static [u8], Option<(bool, &'static [u8])>);
        let rows: &[Row] = &[
            ("1 0003 ", b"108100", Some((true, b"\x10\x81\x00"))),
            ("1 0003 ", b"\x10\r\n", Some((true, b"\x10\r\n"))),
            ("0 0 0003 ", b"108100", Some((false, b"\x10\x81\x00"))),
            ("E1 1 0003 ", b"108100", Some((true, b"\x10\x81\x00"))),
            ("E1 1 0 0002 ", b"aBcD", Some((true, b"\xAB\xCD"))),
            ("1 0000 ", b"", Some((true, b""))),
            ("1 0003 ", b"1081", None),
            ("1 0004 ", b"1081", None),
            ("1 0003 ", b"10810G", None),
            ("2 0003 ", b"108100", None),
            ("1 ", b"", None),
        ];
        for (flags, payload, expected) in rows {
            let mut line = Vec::from(&b"ERXUDP "[..]);
            line.extend_from_slice(METER.as_bytes());
            line.extend_from_slice(b" FE80::1 0E1A 02CC 001D129012345678 ");
            line.extend_from_slice(flags.as_bytes());
            line.extend_from_slice(payload);
            let message = Message::parse(&line);
            let Some((secured, bytes)) = expected else {
                assert_eq!(message, Message::Unknown, "{flags}");
                continue;
            };
            let Message::Datagram(received) = message else {
                panic!("{flags}: {message:?}");
            };
            let mut buffer = [0; 8];
            let length = received.payload.decode(&mut buffer).unwrap();
            assert_eq!((received.secured, &buffer[..length]), (*secured, *bytes), "{flags}");
            assert_eq!((received.from, received.from_port, received.to_port), (meter(), 3610, 716));
            assert_eq!(received.payload.decode(&mut []).is_some(), bytes.is_empty());
        }
    }
}
