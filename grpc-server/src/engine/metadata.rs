//! Binary metadata: fields whose names end in `-bin` have base64 for values (gRPC over HTTP/2, "Custom-Metadata").

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderValue};
use tonic::Status;

/// With padding and without: both are allowed. Bits that no byte needs are whatever they are, as in other implementations.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The suffix of a field's name whose value is binary.
const BINARY: &str = "-bin";

/// Looks at the binary fields of a request: handlers would find out only where they look.
///
/// # Errors
/// When a value is no base64: INTERNAL, as grpc-go says.
#[inline]
pub(super) fn check(headers: &HeaderMap) -> Result<(), Status> {
    let binary = headers.iter().filter(|(name, _)| name.as_str().ends_with(BINARY));
    for (name, value) in binary {
        if !is_base64(value) {
            return Err(Status::internal(format!("{name} is {value:?}; expected base64")));
        }
    }
    Ok(())
}

/// One value, or several with commas between them.
fn is_base64(value: &HeaderValue) -> bool {
    value.as_bytes().split(|byte| *byte == b',').all(|value| BASE64.decode(value.trim_ascii()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |value: &'static str, is_fine| {
            assert_eq!(is_base64(&HeaderValue::from_static(value)), is_fine, "{value}");
        };
        for right in ["", "AAEC", "AAE=", "AAE", "AA==", "AA", "AB", "+/9=", "AAEC,AAE, AA", ","] {
            check(right, true);
        }
        for wrong in ["!", "A", "AAECA", "AA=A", "=", "_-A=", "AA AA", "AAEC,?"] {
            check(wrong, false);
        }
    }
}
