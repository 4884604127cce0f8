//! The ways to HTTP/2 (RFC 9113 section 3; for the upgrade from HTTP/1.1, RFC 7540 section 3.2).

use std::time::Instant;

use crate::config::Config;
use crate::connection::Connection;
use crate::priority::Priority;
use crate::reason::Breach;
use crate::streams::{Local, Stream, StreamId, Waits};

/// The client's connection preface. It identifies HTTP/2 where no protocol was agreed on before.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The name of HTTP/2 over TLS in ALPN.
pub const ALPN: &[u8] = b"h2";

/// An `HTTP2-Settings` field that is none: the request is to be answered as if it had not asked for HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSettings;

impl std::fmt::Display for BadSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HTTP2-Settings is no SETTINGS frame's payload")
    }
}

impl std::error::Error for BadSettings {}

impl Connection {
    /// A connection that begins with an HTTP/1.1 request that has `Upgrade: h2c`, after the 101 was sent to it. `settings` is its
    /// field `HTTP2-Settings`. The request, which has to be complete, is answered on the stream that is given; the client's
    /// preface follows.
    ///
    /// # Errors
    /// When the field is no settings.
    pub fn upgraded(config: &Config, settings: &[u8], now: Instant) -> Result<(Self, StreamId), BadSettings> {
        let mut this = Self::new(config, now);
        let payload = decode_base64url(settings).ok_or(BadSettings)?;
        this.apply_settings(&payload).map_err(|_: Breach| BadSettings)?;
        this.last = 1;
        let id = this.streams.insert(Stream {
            number: 1,
            remote_open: false,
            local: Local::Head,
            waits: Waits::No,
            priority: Priority::default(),
            send_window: i64::from(this.peer.initial_window),
            receive_window: 0,
            unreleased: 0,
            unannounced: 0,
            expected: None,
        });
        Ok((this, id))
    }
}

/// RFC 4648 section 5, without padding.
fn decode_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    // The bits left over are the zeros that fill a character up.
    (count < 6 && bits & ((1 << count) - 1) == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url() {
        fn check(text: &str, expected: Option<&[u8]>) {
            assert_eq!(decode_base64url(text.as_bytes()).as_deref(), expected, "{text}");
        }
        check("", Some(b""));
        check("AAMAAABkAAQAAP__", Some(&[0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 255, 255]));
        check("-_8", Some(&[0xfb, 0xff]));
        for text in ["A", "AB", "AA=", "A+", "AA\n", "-_9"] {
            check(text, None);
        }
    }
}
