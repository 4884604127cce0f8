//! permessage-deflate (RFC 7692): agreement, and messages in both directions.

use std::cell::RefCell;

use flate2::{Compress, Compression as Level, Decompress, FlushCompress, FlushDecompress, Status};

use super::frame::Failure;
use crate::tuning::{GZIP_LEVEL, WS_COMPRESS_MIN};

/// The end of a deflated message, which is not sent (section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The window that all decoders have: 32 KiB.
const MAX_BITS: u8 = 15;

/// How a server compresses. Without a context, all connections of a thread share one compressor and one decompressor. With one, each
/// connection has its own: 300 KiB for the server's and 40 KiB for the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Messages of the server may refer to earlier ones.
    pub server_context: bool,
    /// Messages of the client may refer to earlier ones.
    pub client_context: bool,
}

/// The compression that client and server have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    server_context: bool,
    client_context: bool,
    server_bits: Option<u8>,
}

impl Agreed {
    /// The first offer of a client's `Sec-WebSocket-Extensions` that this server can fulfil.
    pub fn on<'a>(offers: impl IntoIterator<Item = &'a str>, own: Compression) -> Option<Self> {
        offers.into_iter().flat_map(|line| line.split(',')).find_map(|offer| Self::on_offer(offer, own))
    }

    fn on_offer(offer: &str, own: Compression) -> Option<Self> {
        let mut parameters = offer.split(';').map(str::trim);
        if !parameters.next()?.eq_ignore_ascii_case("permessage-deflate") {
            return None;
        }
        let Compression { server_context, client_context } = own;
        let mut agreed = Self { server_context, client_context, server_bits: None };
        let mut seen = Vec::new();
        for parameter in parameters {
            let (name, value) = match parameter.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(value.trim_start().trim_matches('"'))),
                None => (parameter, None),
            };
            let name = name.to_ascii_lowercase();
            match (&*name, value) {
                ("server_no_context_takeover", None) => agreed.server_context = false,
                ("client_no_context_takeover", None) => agreed.client_context = false,
                // zlib has no raw stream with a window of 256 bytes.
                ("server_max_window_bits", Some(bits)) => {
                    agreed.server_bits = Some(window(bits).filter(|bits| *bits > 8)?)
                }
                ("client_max_window_bits", Some(bits)) => _ = window(bits)?,
                ("client_max_window_bits", None) => {}
                _ => return None,
            }
            if seen.contains(&name) {
                return None;
            }
            seen.push(name);
        }
        Some(agreed)
    }

    /// The value of the answer's `Sec-WebSocket-Extensions`.
    pub fn header(&self) -> String {
        let mut header = "permessage-deflate".to_owned();
        if !self.server_context {
            header.push_str("; server_no_context_takeover");
        }
        if !self.client_context {
            header.push_str("; client_no_context_takeover");
        }
        if let Some(bits) = self.server_bits {
            header.push_str(&format!("; server_max_window_bits={bits}"));
        }
        header
    }

    /// For a client's messages.
    pub fn inflater(&self) -> Inflater {
        Inflater { own: self.client_context.then(|| Decompress::new(false)) }
    }

    /// For a server's messages.
    pub fn deflater(&self) -> Deflater {
        let bits = self.server_bits.unwrap_or(MAX_BITS);
        let is_own = self.server_context || bits != MAX_BITS;
        Deflater { own: is_own.then(|| compressor(bits)), keeps_context: self.server_context }
    }
}

fn compressor(bits: u8) -> Compress {
    Compress::new_with_window_bits(Level::new(GZIP_LEVEL), false, bits)
}

/// A window's size, without leading zeros (section 7.1.2).
fn window(bits: &str) -> Option<u8> {
    let is_plain = !bits.starts_with('0') && bits.bytes().all(|byte| byte.is_ascii_digit());
    bits.parse().ok().filter(|bits| is_plain && (8..=MAX_BITS).contains(bits))
}

thread_local! {
    /// For connections without a context of their own.
    static SHARED: RefCell<(Compress, Decompress)> = RefCell::new((compressor(MAX_BITS), Decompress::new(false)));
}

/// Decompresses messages of one client.
#[derive(Debug)]
pub struct Inflater {
    own: Option<Decompress>,
}

impl Inflater {
    /// The message of which these are all frames' payloads.
    ///
    /// # Errors
    /// 1007 if it was not deflated, 1009 if it has more than `max` bytes.
    pub fn inflate(&mut self, deflated: &[u8], max: usize) -> Result<Vec<u8>, Failure> {
        match &mut self.own {
            Some(own) => inflate(own, deflated, max),
            None => SHARED.with_borrow_mut(|(_, shared)| {
                shared.reset(false);
                inflate(shared, deflated, max)
            }),
        }
    }
}

fn inflate(stream: &mut Decompress, deflated: &[u8], max: usize) -> Result<Vec<u8>, Failure> {
    let mut message =
        Vec::with_capacity(deflated.len().saturating_mul(3).clamp(64, 64 * 1024).min(max.saturating_add(1)));
    for mut rest in [deflated, &TAIL] {
        loop {
            if message.len() > max {
                return Err(Failure::size("the decompressed message is larger than allowed"));
            }
            if message.len() == message.capacity() {
                // One byte more than is allowed shows that there are more.
                message.reserve_exact(message.len().max(64).min(max.saturating_add(1) - message.len()));
            }
            let (before, len) = (stream.total_in(), message.len());
            let status = stream.decompress_vec(rest, &mut message, FlushDecompress::Sync).map_err(|_| NOT_DEFLATED)?;
            let used = (stream.total_in() - before) as usize;
            rest = &rest[used..];
            if status == Status::StreamEnd {
                // A last block may come within a message (section 7.2.3.5).
                stream.reset(false);
            } else if used == 0 && message.len() == len && !rest.is_empty() {
                return Err(NOT_DEFLATED);
            }
            if rest.is_empty() && message.len() < message.capacity() {
                break;
            }
        }
    }
    if message.len() > max {
        return Err(Failure::size("the decompressed message is larger than allowed"));
    }
    Ok(message)
}

const NOT_DEFLATED: Failure = Failure::data("the message was not deflated");

/// Compresses messages to one client.
#[derive(Debug)]
pub struct Deflater {
    own: Option<Compress>,
    keeps_context: bool,
}

impl Deflater {
    /// The payload of a frame for this message. `None` if it is too short to gain by it, and is to be sent as it is.
    pub fn deflate(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        if message.len() < WS_COMPRESS_MIN {
            return None;
        }
        match &mut self.own {
            Some(own) => {
                if !self.keeps_context {
                    own.reset();
                }
                deflate(own, message)
            }
            None => SHARED.with_borrow_mut(|(shared, _)| {
                shared.reset();
                deflate(shared, message)
            }),
        }
    }
}

fn deflate(stream: &mut Compress, mut message: &[u8]) -> Option<Vec<u8>> {
    let mut deflated = Vec::with_capacity(message.len() / 2 + 64);
    loop {
        let before = stream.total_in();
        // An error would be one of the call's order, which there is not.
        stream.compress_vec(message, &mut deflated, FlushCompress::Sync).ok()?;
        message = &message[(stream.total_in() - before) as usize..];
        if message.is_empty() && deflated.len() < deflated.capacity() {
            break;
        }
        deflated.reserve(deflated.len());
    }
    deflated.truncate(deflated.len().saturating_sub(TAIL.len()));
    Some(deflated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreements() {
        fn check(offers: &[&str], own: Compression, expected: Option<&str>) {
            let agreed = Agreed::on(offers.iter().copied(), own).map(|agreed| agreed.header());
            assert_eq!(agreed.as_deref(), expected, "{offers:?}");
        }
        let both = Compression { server_context: true, client_context: true };
        let none = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        check(&[], both, None);
        check(&["x-webkit-deflate-frame"], both, None);
        check(&["permessage-deflate"], both, Some("permessage-deflate"));
        check(&["Permessage-Deflate; client_max_window_bits"], Compression::default(), Some(none));
        check(
            &["permessage-deflate; server_no_context_takeover"],
            both,
            Some("permessage-deflate; server_no_context_takeover"),
        );
        check(
            &["permessage-deflate; client_no_context_takeover; client_max_window_bits=\"10\""],
            both,
            Some("permessage-deflate; client_no_context_takeover"),
        );
        let bits = Some("permessage-deflate; server_max_window_bits=9");
        check(&["permessage-deflate; server_max_window_bits=9"], both, bits);
        // Offers that are wrong, or that zlib cannot fulfil; the next one is taken.
        for wrong in [
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=09",
            "permessage-deflate; server_max_window_bits=9; server_max_window_bits=9",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; unknown",
        ] {
            check(&[wrong], both, None);
            check(&[&format!("{wrong}, permessage-deflate")], both, Some("permessage-deflate"));
            check(&[wrong, "permessage-deflate"], both, Some("permessage-deflate"));
        }
    }

    #[test]
    fn messages_come_back() {
        let texts = ["hello hello hello hello hello hello ".repeat(3), "x".repeat(100_000), "0123456789".repeat(7)];
        for offer in ["permessage-deflate", "permessage-deflate; server_max_window_bits=9"] {
            for context in [false, true] {
                let own = Compression { server_context: context, client_context: context };
                let agreed = Agreed::on([offer], own).unwrap();
                let (mut deflater, mut inflater) = (agreed.deflater(), agreed.inflater());
                for text in texts.iter().cycle().take(9) {
                    let deflated = deflater.deflate(text.as_bytes()).unwrap();
                    assert!(deflated.len() < text.len());
                    assert_eq!(inflater.inflate(&deflated, text.len()).unwrap(), text.as_bytes());
                }
            }
        }
    }

    #[test]
    fn a_bomb_is_bounded() {
        let agreed = Agreed::on(["permessage-deflate"], Compression::default()).unwrap();
        let deflated = agreed.deflater().deflate(&vec![0; 10_000_000]).unwrap();
        assert!(deflated.len() < 50_000);
        for max in [0, 1, 1000, 9_999_999] {
            assert_eq!(agreed.inflater().inflate(&deflated, max).unwrap_err().code, 1009, "{max} bytes");
        }
        assert_eq!(agreed.inflater().inflate(&deflated, 10_000_000).unwrap().len(), 10_000_000);
        assert_eq!(agreed.inflater().inflate(b"\xff\xff\xff", 1000).unwrap_err().code, 1007);
    }

    /// RFC 7692 sections 7.2.3.1 to 7.2.3.6.
    #[test]
    fn examples_of_the_rfc() {
        let own = Compression { server_context: true, client_context: true };
        let mut inflater = Agreed::on(["permessage-deflate"], own).unwrap().inflater();
        let mut check = |deflated: &[u8], expected: &str| {
            assert_eq!(inflater.inflate(deflated, 100).unwrap(), expected.as_bytes(), "{deflated:x?}");
        };
        check(&[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], "Hello");
        check(&[0xf2, 0x00, 0x11, 0x00, 0x00], "Hello");
        check(&[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00], "Hello");
        check(&[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], "Hello");
        check(&[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00], "Hello");
        check(&[0x00], "");
    }
}
