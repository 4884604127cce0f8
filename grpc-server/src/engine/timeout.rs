//! `grpc-timeout`: how long a client will wait.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tonic::Status;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The time that a call has by its header: one to eight digits and a unit (gRPC over HTTP/2, "Timeout").
///
/// # Errors
/// When the header says something else: INTERNAL, as grpc-go says.
#[inline]
pub(super) fn of(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(&GRPC_TIMEOUT) else { return Ok(None) };
    let timeout = parse(value.as_bytes()).ok_or_else(|| {
        Status::internal(format!(
            "grpc-timeout is {value:?}; expected one to eight digits and one of H, M, S, m, u and n"
        ))
    })?;
    Ok(Some(timeout))
}

fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count = digits.iter().fold(0, |count, digit| count * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        fn check(text: &str, expected: Option<Duration>) {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
        check("1H", Some(Duration::from_secs(3600)));
        check("2M", Some(Duration::from_secs(120)));
        check("30S", Some(Duration::from_secs(30)));
        check("250m", Some(Duration::from_millis(250)));
        check("99999999u", Some(Duration::from_micros(99_999_999)));
        check("00000001n", Some(Duration::from_nanos(1)));
        check("99999999H", Some(Duration::from_secs(99_999_999 * 3600)));
        for text in ["", "1", "S", "123456789S", "-1S", "+1S", "1s", "1.5S", " 1S", "1S "] {
            check(text, None);
        }
    }
}
