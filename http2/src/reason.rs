//! Why streams and connections end.

use std::fmt;

/// Why a stream or a connection ends (RFC 9113 section 7). Unknown codes are kept as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

impl Reason {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer broke the protocol in a way that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Something of ours went wrong.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// The peer sent more than a window allows, or made one too large.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(4);
    /// A frame came for a half of a stream that was closed.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame had a length that it must not have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// A stream was refused before anything was done for it: the peer may try again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be decoded, so that no later one could be.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The connection that a CONNECT asked for has ended.
    pub const CONNECT_ERROR: Self = Self(10);
    /// The peer makes more work than its requests are worth.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
    /// The connection is not secure enough.
    pub const INADEQUATE_SECURITY: Self = Self(12);
    /// The peer shall use HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(13);

    fn name(self) -> Option<&'static str> {
        const NAMES: &str = "NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED \
                             FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM \
                             INADEQUATE_SECURITY HTTP_1_1_REQUIRED";
        NAMES.split(' ').nth(self.0 as usize)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

/// The connection is over, by the peer's fault. The GOAWAY that says so is in the output: write it, then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The error code for the peer.
    pub reason: Reason,
    /// The peer's fault, for a log.
    pub what: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.what)
    }
}

impl std::error::Error for Error {}

/// A peer's breach of the protocol, by what it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The stream of this number ends.
    Stream(u32, Reason),
    /// The connection ends.
    Connection(Error),
}

impl Breach {
    pub(crate) const fn connection(reason: Reason, what: &'static str) -> Self {
        Self::Connection(Error { reason, what })
    }

    pub(crate) const fn protocol(what: &'static str) -> Self {
        Self::connection(Reason::PROTOCOL_ERROR, what)
    }
}
