//! Every number that was tuned: its default elsewhere, ours, and why.
//!
//! These are the defaults of [`Options`](crate::Options), where a deployment can set other values.

use std::time::Duration;

/// Whether the binary's memory may be huge pages. Linux' default: where asked for, and mimalloc asks. The hot data here
/// is small, and huge pages would make the resident size of an idle server several times as large.
pub const HUGE_PAGES: bool = false;

/// Pins each worker of the binary to a core, if there are enough cores, as http-server does. Unpinned, two workers
/// sometimes share a core, and clients of one wait some milliseconds for the other. With pins, p99 of honest clients on
/// two cores is 0.36 ms instead of 0.62 while connections are opened and reset (medians of 15 runs). During rapid
/// resets it is 0.4 ms instead of 1.5 (of three runs, twice). Closed loops take as long either way. Beside a generator
/// on the same cores, a fixed rate of 30,000 a second costs 7 % more CPU time with pins, and a rate of 3,000 still
/// more.
pub const PIN_WORKERS: bool = true;

/// HTTP/2's receive window of a stream. The protocol's default is 64 KiB, tonic's 1 MiB, grpc-go's 64 KiB and adaptive. A
/// window bounds what a client can make us hold for a call whose handler does not read.
pub const STREAM_WINDOW: u32 = 1024 * 1024;

/// HTTP/2's receive window of a connection, over all its streams. tonic 1 MiB. Larger, so that a WINDOW_UPDATE for the
/// connection is due less often than once in some ten thousand small calls.
pub const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Bytes of answers that wait to be written, on a connection. tonic 400 KiB for each stream: with 200 of them that would be
/// 80 MB for a client that does not read.
pub const SEND_BUFFER: usize = 128 * 1024;

/// For the rest of a request that is no call, before that is said: an answer that comes first would leave what is wrong with the
/// rest unsaid.
pub const REFUSAL: Duration = Duration::from_secs(1);

/// The largest frame that clients may send. The protocol's least and tonic's default: 16 KiB. Larger frames would let a
/// message of a megabyte come in fewer pieces, but one frame holds up the other calls of its connection.
pub const MAX_FRAME: u32 = 16 * 1024;

/// Calls at one time on a connection. tonic and hyper 200; grpc-go no limit; the protocol recommends at least 100.
pub const MAX_STREAMS: u32 = 200;

/// Bytes of a request's header fields, uncompressed: 16 MiB, as grpc-go's servers take. tonic takes 16 KiB, grpc-java 8 KiB. Beyond 16 KiB, the
/// block's own bytes have to justify them (see [`http2::Config::max_headers`]): a client has to send what it makes us keep.
pub const MAX_HEADERS: u32 = 16 * 1024 * 1024;

/// Bytes of a head over HTTP/1.1 beyond [`MAX_HEADERS`] that are read, and bytes that are read at any limit: a head that is too large is answered
/// in the words of its protocol. hyper reads 400 KiB.
pub(crate) const HEAD_BEYOND: usize = 64 * 1024;
pub(crate) const MIN_HEAD: usize = 400 * 1024;

/// Bytes of a target over HTTP/1.1: a Connect call by GET has its message there. The longest that the crate http takes.
pub(crate) const MAX_TARGET: usize = 65_534;

/// For the client's preface and first SETTINGS. tonic: no limit; grpc-go 120 s.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Control frames that a client may send in a second, beyond those that its calls and answers justify. Control frames
/// carry neither a call nor its data: PING, SETTINGS, WINDOW_UPDATE, RST_STREAM. Resets (rapid reset, CVE-2023-44487)
/// and refused calls count, too. grpc-go ends connections at two pings too many, which honest clients meet; h2 has no
/// limit. An answer to a PING costs some 0.3 µs, so this is 3 ms of a worker's second.
pub const CONTROL_FRAMES: u32 = 10_000;

/// Calls that may wait for something at one time, on all connections. tonic and grpc-go: no limit. Each holds a task and
/// its buffers, some 10 KiB without its message.
pub const MAX_CALLS: u64 = 100_000;

/// Methods that are counted by name; later ones are counted as `other`. A bound on what clients could make up.
pub const MAX_METHODS: usize = 1000;

/// Without a byte from a client, after which it is asked for an answer (PING). tonic: never; grpc-go 2 h. Without it a client
/// that is gone without a word holds its connection for as long as TCP's own keepalive takes. Clients' load balancers
/// and NAT forget connections after 60 s at the earliest.
pub const KEEPALIVE: Duration = Duration::from_secs(60);

/// For that answer. grpc-go and tonic 20 s.
pub const KEEPALIVE_ANSWER: Duration = Duration::from_secs(20);

/// After a shutdown began, until calls that go on for ever, such as a watch of the server's health, are ended. Long
/// enough for the last news to arrive.
pub const FAREWELL: Duration = Duration::from_millis(100);

/// Bytes of a message that the greeter takes. tonic and grpc-go: 4 MiB.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;
