//! The streams that a server opens: its control stream, and others that say nothing to us.

use super::frame::{self, kind, stream_kind};
use crate::codec::Broken;
use crate::record::Failure;

/// The longest frame on the control stream.
const MAX_FRAME: u64 = 64 * 1024;

/// One of the server's streams.
#[derive(Debug, Default)]
pub(super) struct OneWay {
    kind: Kind,
    /// The beginning of a type or of a frame whose rest has not come.
    partial: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Control {
        has_settings: bool,
    },
    /// QPACK's streams, which say nothing without a dynamic table, and reserved ones.
    Ignored,
}

/// A message of the control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// SETTINGS have come: the server speaks HTTP/3.
    Settings,
    /// The server processes no requests from this stream on.
    GoAway(u64),
}

pub(super) fn broken(example: impl Into<String>) -> Broken {
    Broken { failure: Failure::Protocol, example: example.into() }
}

impl OneWay {
    /// Reads a piece of the stream.
    pub(super) fn read(&mut self, input: &[u8], mut said: impl FnMut(Said)) -> Result<(), Broken> {
        if self.kind == Kind::Ignored {
            return Ok(());
        }
        self.partial.extend_from_slice(input);
        if self.kind == Kind::Unknown {
            let Some((kind, length)) = frame::read_number(&self.partial) else {
                return Ok(());
            };
            self.partial.drain(..length);
            self.kind = match kind {
                stream_kind::CONTROL => Kind::Control { has_settings: false },
                stream_kind::PUSH => return Err(broken("a push, which was not allowed")),
                _ => Kind::Ignored,
            };
        }
        if let Kind::Control { mut has_settings } = self.kind {
            while let Some((kind, length, head)) = frame::read_head(&self.partial) {
                if length > MAX_FRAME {
                    return Err(broken(format!("a frame of {length} bytes on the control stream")));
                }
                let end = head + length as usize;
                if self.partial.len() < end {
                    break;
                }
                frame_of_control(kind, &self.partial[head..end], &mut has_settings, &mut said)?;
                self.partial.drain(..end);
            }
            self.kind = Kind::Control { has_settings };
        } else {
            self.partial = Vec::new();
        }
        Ok(())
    }

    /// The stream has ended: the control stream must not (RFC 9114, 6.2.1).
    pub(super) fn end(&self) -> Result<(), Broken> {
        match self.kind {
            Kind::Control { .. } => Err(broken("the server has ended its control stream")),
            Kind::Unknown | Kind::Ignored => Ok(()),
        }
    }
}

fn frame_of_control(
    kind: u64,
    payload: &[u8],
    has_settings: &mut bool,
    said: &mut impl FnMut(Said),
) -> Result<(), Broken> {
    match kind {
        kind::SETTINGS if *has_settings => return Err(broken("SETTINGS twice")),
        kind::SETTINGS => {
            settings(payload)?;
            *has_settings = true;
            said(Said::Settings);
        }
        _ if !*has_settings => return Err(broken("a control stream that does not begin with SETTINGS")),
        kind::GOAWAY => match frame::read_number(payload) {
            Some((stream, length)) if length == payload.len() && stream % 4 == 0 => said(Said::GoAway(stream)),
            _ => return Err(broken("GOAWAY without the number of a request's stream")),
        },
        kind::DATA | kind::HEADERS | kind::PUSH_PROMISE | kind::MAX_PUSH_ID => {
            return Err(broken(format!("a frame of type {kind} on the control stream")));
        }
        kind if frame::is_reserved(kind) => return Err(broken("a frame of HTTP/2 on the control stream")),
        _ => {}
    }
    Ok(())
}

/// Looks at the server's settings: none of them limits requests without a dynamic table.
fn settings(mut payload: &[u8]) -> Result<(), Broken> {
    while !payload.is_empty() {
        let Some((name, _, length)) = frame::read_head(payload) else {
            return Err(broken("SETTINGS that are cut off"));
        };
        if (0x2..=0x5).contains(&name) {
            return Err(broken(format!("setting {name} of HTTP/2")));
        }
        payload = &payload[length..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&[Said], &str>) {
        for size in 1..=bytes.len() {
            let (mut stream, mut said) = (OneWay::default(), Vec::new());
            let mut pieces = bytes.chunks(size);
            let read = pieces.try_for_each(|piece| stream.read(piece, |new| said.push(new)));
            let read = read.as_ref().map(|()| &said[..]).map_err(|broken| broken.example.as_str());
            assert_eq!(read, expected, "in pieces of {size} bytes");
        }
    }

    #[test]
    fn the_control_stream_is_read() {
        check(&[0, 4, 0], Ok(&[Said::Settings]));
        check(&[0, 4, 2, 6, 9, 0x21, 1, 0, 7, 1, 8], Ok(&[Said::Settings, Said::GoAway(8)]));
        check(&[2, 1, 2, 3], Ok(&[]));
        check(&[0x40, 0x21, 4, 0], Ok(&[]));
    }

    #[test]
    fn its_faults_are_found() {
        check(&[1, 0], Err("a push, which was not allowed"));
        check(&[0, 7, 1, 0], Err("a control stream that does not begin with SETTINGS"));
        check(&[0, 4, 0, 4, 0], Err("SETTINGS twice"));
        check(&[0, 4, 0, 7, 1, 1], Err("GOAWAY without the number of a request's stream"));
        check(&[0, 4, 0, 0, 0], Err("a frame of type 0 on the control stream"));
        check(&[0, 4, 0, 8, 0], Err("a frame of HTTP/2 on the control stream"));
        check(&[0, 4, 1, 6], Err("SETTINGS that are cut off"));
        check(&[0, 4, 2, 2, 0], Err("setting 2 of HTTP/2"));
        check(&[0, 0x21, 0x80, 1, 0, 1], Err("a frame of 65537 bytes on the control stream"));
        let mut control = OneWay::default();
        control.read(&[0, 4, 0], |_| ()).unwrap();
        assert_eq!(control.end().unwrap_err().example, "the server has ended its control stream");
    }
}
