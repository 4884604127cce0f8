//! Compression of the messages that are looked into, those in JSON. All others go to their services as they are.

use std::io::{self, Read, Write as _};

use bytes::Bytes;
use http::HeaderValue;
use tonic::Status;

/// The largest window that a message may ask for: 8 MiB, which RFC 8878 (section 3.1.1.1.2) recommends that
/// decoders support.
const ZSTD_WINDOW_LOG: u32 = 23;

/// zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// How a message is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    /// # Errors
    /// When it is none that is known here.
    pub(super) fn of(name: &HeaderValue) -> Result<Self, Status> {
        match name.as_bytes() {
            b"gzip" => Ok(Self::Gzip),
            b"zstd" => Ok(Self::Zstd),
            other => {
                let other = String::from_utf8_lossy(other);
                Err(Status::unimplemented(format!(
                    "messages are compressed by {other}; known are gzip, zstd and identity"
                )))
            }
        }
    }

    /// # Errors
    /// When the bytes are not compressed like this, or are more than that.
    pub(super) fn unpack(self, bytes: &[u8], most: usize) -> Result<Bytes, Status> {
        let read = match self {
            // All members of it (RFC 1952 section 2.2); bytes behind them are an error.
            Self::Gzip => read(flate2::bufread::MultiGzDecoder::new(bytes), most),
            Self::Zstd => zstd::stream::read::Decoder::with_buffer(bytes).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                read(decoder, most)
            }),
        };
        match read {
            Ok(bytes) if bytes.len() > most => {
                Err(Status::resource_exhausted(format!("a message of more than {most} bytes when it is decompressed")))
            }
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(Status::invalid_argument(format!("a message cannot be decompressed: {error}"))),
        }
    }

    /// # Errors
    /// When the library has no memory.
    pub(super) fn pack(self, bytes: &[u8]) -> Result<Bytes, Status> {
        let packed = match self {
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).and_then(|()| encoder.finish())
            }
            Self::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        };
        packed.map(Bytes::from).map_err(|error| Status::internal(format!("an answer cannot be compressed: {error}")))
    }
}

/// All of it, or a byte more than the most.
fn read(from: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take((most as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn compressed_messages_are_decompressed_up_to_a_limit() {
        for coding in [Coding::Gzip, Coding::Zstd] {
            let plain = b"again and again and again and again".repeat(100);
            let packed = coding.pack(&plain).unwrap();
            assert!(packed.len() < plain.len() / 10, "{coding:?}: {}", packed.len());
            assert_eq!(coding.unpack(&packed, plain.len()).unwrap(), plain, "{coding:?}");
            let code = |bytes: &[u8], most| coding.unpack(bytes, most).unwrap_err().code();
            assert_eq!(code(&packed, plain.len() - 1), Code::ResourceExhausted, "{coding:?}");
            assert_eq!(code(&packed[..packed.len() / 2], plain.len()), Code::InvalidArgument, "{coding:?}");
            assert_eq!(code(b"{}", 2), Code::InvalidArgument, "{coding:?}");
            // A second one behind it belongs to it, and anything else is an error.
            let two = [&packed[..], &coding.pack(b"more").unwrap()].concat();
            assert_eq!(coding.unpack(&two, plain.len() + 4).unwrap(), [&plain[..], b"more"].concat(), "{coding:?}");
            assert_eq!(code(&[&packed[..], b"rubbish"].concat(), plain.len()), Code::InvalidArgument, "{coding:?}");
        }
    }

    /// A frame that wants a window of a gigabyte: one that is as small as this may not have it.
    #[test]
    fn a_window_is_bounded() {
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (30 - 10) << 3, 0x11, 0x00, 0x00, b'{', b'}'];
        assert_eq!(Coding::Zstd.unpack(&frame, 64).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn names() {
        let of = |name: &'static str| Coding::of(&HeaderValue::from_static(name)).map_err(|status| status.code());
        assert_eq!(of("gzip"), Ok(Coding::Gzip));
        assert_eq!(of("zstd"), Ok(Coding::Zstd));
        for other in ["br", "GZIP", ""] {
            assert_eq!(of(other), Err(Code::Unimplemented), "{other}");
        }
    }
}
