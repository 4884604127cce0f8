//! Every number that was tuned: its default elsewhere, ours, and why.
//!
//! What a deployment may want otherwise is in [`Options`](crate::Options); these defaults are its defaults.

use std::time::Duration;

/// Whether the binary's memory may be huge pages. Linux' default: where asked for, and mimalloc asks. What is hot here is
/// small, and huge pages would make the resident size of an idle server several times as large.
pub const HUGE_PAGES: bool = false;

/// HTTP/2's receive window of a stream. The protocol's default is 64 KiB, tonic's 1 MiB, grpc-go's 64 KiB and adaptive. A
/// window bounds what a client can make us hold for a call whose handler does not read.
pub const STREAM_WINDOW: u32 = 1024 * 1024;

/// HTTP/2's receive window of a connection, over all its streams. tonic 1 MiB. Larger, so that a WINDOW_UPDATE for the
/// connection is due less often than once in some ten thousand small calls.
pub const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Bytes of a response that wait in a stream's send buffer. tonic 400 KiB: with 200 streams that would be 80 MB per
/// connection for a client that does not read.
pub const SEND_BUFFER: usize = 128 * 1024;

/// The largest frame that clients may send. The protocol's least and tonic's default: 16 KiB. Larger frames would let a
/// message of a megabyte come in fewer pieces, but one frame holds up the other calls of its connection.
pub const MAX_FRAME: u32 = 16 * 1024;

/// Calls at one time on a connection. tonic and hyper 200; grpc-go no limit; the protocol recommends at least 100.
pub const MAX_STREAMS: u32 = 200;

/// Bytes of a request's header fields, uncompressed. tonic and grpc-java 16 KiB / 8 KiB, grpc-go 16 MiB.
pub const MAX_HEADERS: u32 = 16 * 1024;

/// Resets of streams that the handler has not seen yet, from which on a client is sent away (rapid reset,
/// CVE-2023-44487). h2 20, which a client with a deadline shorter than a stall of the server reaches by itself.
pub const MAX_PENDING_RESETS: usize = 200;

/// Streams that were reset because the client broke the protocol, from which on it is sent away. h2 1,024.
pub const MAX_ERROR_RESETS: usize = 256;

/// For the client's preface and first SETTINGS. tonic: no limit; grpc-go 120 s.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
