//! The configuration of a connection.

use crate::frame::{LEAST_MAX_FRAME, MOST, MOST_MAX_FRAME};

/// Limits of a connection: everything that a peer can make grow, and the work that it can make.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Requests at one time; beyond, they are refused and the peer may try again. 100, the least that RFC 9113 recommends.
    pub max_streams: u32,
    /// Bytes of a request's body that may come before they are [released](crate::Connection::release). 64 KiB, the
    /// protocol's default.
    pub stream_window: u32,
    /// The same for all bodies together; no less than 64 KiB. 1 MiB.
    pub connection_window: u32,
    /// Bytes of a frame's payload, 16 KiB at least: the caller keeps so much of a frame whose end is missing.
    pub max_frame: u32,
    /// Bytes of the table that the peer's header blocks refer to, from 4,096, which is the default, to 65,535.
    pub header_table: u32,
    /// Bytes of a request's fields, as [`Fields::size`](crate::hpack::Fields::size) counts: 16 KiB. The peer is told
    /// (SETTINGS_MAX_HEADER_LIST_SIZE). More than 16 KiB are taken as far as the block's own bytes, times eight, justify them. A
    /// larger head, or larger trailers, are an [`Event::TooLarge`](crate::Event::TooLarge): the request ends, and no other. A block
    /// is read on for that, up to the larger of 256 KiB and twice this limit and a frame; one that is longer still ends the
    /// connection.
    pub max_headers: u32,
    /// Bytes of output, not written yet, from which on bodies wait and nothing more is read. 64 KiB.
    pub max_output: usize,
    /// Frames in a second that neither begin a request nor carry data, beyond what is justified by what is sent to the peer.
    /// 10,000: answering a PING costs less than a microsecond. 0 is no limit.
    pub max_control_frames: u32,
    /// Whether requests may be extended CONNECTs (RFC 8441). Off.
    pub extended_connect: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_streams: 100,
            stream_window: 65_535,
            connection_window: 1024 * 1024,
            max_frame: LEAST_MAX_FRAME,
            header_table: 4096,
            max_headers: 16 * 1024,
            max_output: 64 * 1024,
            max_control_frames: 10_000,
            extended_connect: false,
        }
    }
}

/// Bytes of a header block that are still decoded beyond the limit, so that the header table stays equal to the peer's.
/// This is enough for other servers' largest defaults (nginx 32 KiB, hyper 400 KiB), and at most a few MiB for the
/// clients of a core.
const READ_ON: usize = 256 * 1024;

impl Config {
    /// Bytes of a header block beyond which the connection ends. Encoding makes no block larger than its list.
    pub(crate) fn most_block(&self) -> usize {
        READ_ON.max(self.max_headers as usize * 2 + self.max_frame as usize)
    }

    /// The same, with nothing that the protocol does not allow.
    pub(crate) fn checked(self) -> Self {
        Self {
            stream_window: self.stream_window.min(MOST),
            connection_window: self.connection_window.clamp(65_535, MOST),
            max_frame: self.max_frame.clamp(LEAST_MAX_FRAME, MOST_MAX_FRAME),
            header_table: self.header_table.clamp(4096, 65_535),
            ..self
        }
    }
}
