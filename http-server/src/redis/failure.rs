//! Why a request has no answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a request has no answer. An error that Redis answered is none of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No Redis was named at the start.
    NotConfigured,
    /// There is no connection, and the request was not sent.
    Away(Arc<str>),
    /// The connection ended after the request was sent: Redis may have run it or not.
    Lost(Arc<str>),
    /// Redis did not answer in this time. It may run the request yet.
    Slow(Duration),
    /// Too much waits already; the request was not sent.
    Busy,
    /// Callers hold as many bytes as they may, all together. The request may have run.
    Full,
    /// The answer is longer than this many bytes.
    TooLarge(usize),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConfigured => f.write_str(
                "no Redis is configured: start with --redis redis://HOST:PORT, --redis unix:///PATH, or --redis embedded",
            ),
            Self::Away(why) => write!(f, "Redis is away: {why}; the request was not sent"),
            Self::Lost(why) => write!(f, "the connection to Redis ended before its answer came: {why}; the request may have run"),
            Self::Slow(time) => write!(f, "Redis did not answer within {time:?}; the request may still run"),
            Self::Busy => f.write_str("too many requests wait for Redis already; this one was not sent"),
            Self::Full => f.write_str("what waits for its callers leaves no room for more; the request may have run"),
            Self::TooLarge(limit) => write!(f, "the answer is longer than the limit of {limit} bytes"),
        }
    }
}

impl std::error::Error for Failure {}
