//! Every number that was tuned: its default elsewhere, ours, and why.
//!
//! These are the defaults of [`Options`](crate::Options), where a deployment can set other values.

use std::time::Duration;

/// Whether the binary's memory may be huge pages. Linux' default: where asked for, and mimalloc asks. Without them the
/// server is resident in 7 MiB instead of 18 (100 connections), at the same CPU time per request (6 interleaved pairs):
/// what is hot here is small. A large embedded Redis would want them, and should run beside this server.
pub const HUGE_PAGES: bool = false;

/// Whether the binary's workers stay on a core each, if there are as many. The kernel otherwise lets two of them share one
/// for some milliseconds now and then. p99 of `/` at 100 connections of wrk, against may_minihttp, whose threads
/// are bound as well: 0.81 bound, 1.23 not (geometric mean of 16 interleaved pairs); CPU time per request the same.
pub const PIN_WORKERS: bool = true;

/// Bytes that one read may bring. hyper begins with 8 KiB and adapts up to 400 KiB for each connection; here the buffer
/// belongs to the worker, so a large one costs nothing per connection. 64 KiB holds a batch of some 1,000 small
/// pipelined requests, and uploads need few system calls.
pub const READ_BUFFER: usize = 64 * 1024;

/// Output gathered before it is sent although more requests wait. hyper with `pipeline_flush`: none. A bound, so that a
/// pipelining client that does not read cannot make memory grow: beyond, its requests wait.
pub const GATHER_MAX: usize = 64 * 1024;

/// Pieces of a body from here on are sent from where they are instead of being copied behind the head. Copying 32 KiB
/// costs about as much as the bookkeeping of a shared piece and its share of a vectored write.
pub const LARGE_PIECE: usize = 32 * 1024;

/// Bytes of later requests that are read while a handler works, so that a reset is noticed; more stay in the socket.
pub const READ_AHEAD: usize = 64 * 1024;

/// Files from here on are sent by sendfile(2) over plain HTTP/1.1, as nginx does with all: two system calls more, and one copy less. Shorter ones are read
/// at once.
pub const FILE_MIN: u64 = 32 * 1024;

/// Bytes of a file that one turn sends, of which the first and the last are looked for in the system's cache. nginx: as much as the socket takes,
/// up to 2 MiB (`sendfile_max_chunk`).
pub const FILE_PIECE: u64 = 256 * 1024;

/// Requests of one connection that wait for answers of a [`Later`](crate::Later) at a time; further ones of a pipeline wait
/// unread. As deep as benchmarks pipeline, and no client can fill what all share.
pub const MAX_LATER: usize = 128;

/// Batches of pipelined requests that one connection gets answered before others have their turn. tokio's budget alone would
/// allow 64, which can be 60,000 small answers.
pub const TURN_BATCHES: usize = 4;

/// Bytes that one connection may send before others have their turn. tokio's budget alone would allow 128 reads, 8 MiB,
/// and each chunk of them is looked at, however small. Two full reads, some 30 microseconds; a turn that ends costs a
/// fraction of one.
pub const TURN_BYTES: usize = 2 * READ_BUFFER;

/// Bytes from which on a turn was long: the next one waits until others have had theirs, as it would had it all come at once.
pub const LONG_TURN: usize = READ_BUFFER / 2;

/// Bytes of a turn for each byte between the data of a chunked body: a chunk costs ten nanoseconds, however few bytes are in it.
pub const CHUNK_COST: usize = 8;

/// Bodies that came whole with their head and are not larger are copied out of the worker's buffer.
pub const SMALL_BODY: usize = 16 * 1024;

/// Bytes per second below which a request's body is too slow, and a client that takes its response. Apache's `MinRate`: 500; Go and hyper:
/// no limit.
pub const BODY_RATE: u64 = 500;

/// Between requests. Go: no limit; nginx 75 s; Node 5 s, which is known to race with clients that reuse connections.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// For a request's head, from its first byte. hyper 30 s; nginx 60 s; Apache 20-40 s. The head of an honest client comes
/// in one or two packets, so 10 s is generous, and a slow attacker holds a connection no longer.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// For [`BODY_RATE`] × this many bytes of a body. Apache: 20 s.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// For a client to take [`BODY_RATE`] × this many bytes of what it was sent. nginx 60 s; Go: no limit.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// For a client to close after an answer that ends the connection early. nginx 5 s (30 s in all).
/// A client that still receives the answer gets more time.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes read and thrown away in that time. Unread input becomes a reset when a socket closes, and a reset can take the
/// answer with it.
pub const LINGER_BYTES: usize = 4 * 1024 * 1024;

/// Bytes on their way to a client for whose arrival a connection waits before it closes: the client may still send something meanwhile.
pub const LARGE_ANSWER: u64 = 64 * 1024;

/// After a shutdown began, how long idle connections stay open for a request that is already on its way. Others close
/// at once and lose it. Long enough for any round trip on earth.
pub const LAME_DUCK: Duration = Duration::from_millis(300);

/// Bytes of a request's head. hyper ~400 KiB, Go 1 MiB, nginx 32 KiB, Node 16 KiB.
pub const MAX_HEAD: usize = 32 * 1024;

/// Bytes of a request's target. nginx 8 KiB.
pub const MAX_TARGET: usize = 8 * 1024;

/// Header fields of a request. hyper and Apache 100.
pub const MAX_HEADERS: usize = 100;

/// Bytes of a request's body. Go and hyper: no limit; nginx 1 MiB; axum's extractors 2 MiB, which stay in force.
pub const MAX_BODY: u64 = 64 * 1024 * 1024;

/// Requests at one time on an HTTP/2 connection. hyper 200, Go 250, nginx 128.
pub const H2_STREAMS: u32 = 200;

/// HTTP/2's window for a stream and for a connection. The protocol's default is 64 KiB, hyper's 1 MiB for both.
pub const H2_WINDOW: (u32, u32) = (1024 * 1024, 2 * 1024 * 1024);

/// Frames of HTTP/2 in a second that carry nothing: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, resets, empty DATA. hyper
/// answers them for as long as they come. An honest client sends a handful beside its requests, each of which is worth one; the
/// same as in our gRPC server.
pub const CONTROL_FRAMES: u32 = 10_000;

/// Response bytes that HTTP/2 gathers, on a connection. hyper's default is 400 KiB on a stream: with 200 streams that would be 80 MB
/// per connection.
pub const H2_SEND_BUFFER: usize = 128 * 1024;

/// Bytes of a response from which on compressing can gain a packet (1,460 bytes and their head).
pub const COMPRESS_MIN: u64 = 1024;

/// Bytes beyond which a response is sent as it is: it would be held in memory twice.
pub const COMPRESS_MAX: u64 = 8 * 1024 * 1024;

/// Bytes up to which a response is compressed where its connection is served: that takes some 100 microseconds, and a thread of its own for it
/// two switches and as much again.
pub const COMPRESS_HERE: usize = 16 * 1024;

/// brotli: 0-11. 4 is what content networks use for dynamic content; 5 and up cost twice the time for some per cent.
pub const BROTLI_QUALITY: i32 = 4;

/// zstd: 1-22, its own default.
pub const ZSTD_LEVEL: i32 = 3;

/// gzip: 0-9. zlib's default is 6; 4 takes half its time for about 3 % more bytes.
pub const GZIP_LEVEL: u32 = 4;

/// Requests at one time on an HTTP/3 connection; as over HTTP/2. quinn and quic-go 100.
pub const H3_STREAMS: u32 = H2_STREAMS;

/// Requests that a connection begins before others have their turn: each is a task, and takes some 30 µs at once.
pub const H3_TURN_REQUESTS: u32 = 4;

/// Streams beside requests that a client may have open. It needs three (control, QPACK's two); RFC 9114 wants room for more.
pub const H3_ASIDE_STREAMS: u32 = 16;

/// Streams that carry no request, and frames and instructions on them, that a client may begin in a second, beyond one for each request. An
/// honest client sends some ten at its start and two at its end. Browsers change the priority of a request once. QUIC itself replaces the
/// control frames of HTTP/2 ([`CONTROL_FRAMES`]).
pub const H3_ASIDES: u32 = 100;

/// QUIC's window for a stream and for a connection; as over HTTP/2. quinn: 1.2 MiB and no limit.
pub const H3_WINDOW: (u32, u32) = H2_WINDOW;

/// Response bytes that a connection may have on their way, and keeps until they are acknowledged: 80 Mbit/s over 100 ms. quinn: 10 MB.
pub const H3_SEND_WINDOW: u64 = 1024 * 1024;

/// Bytes of a response that are given to QUIC at once, at most. Not more than a client has to take within its time-out
/// ([`BODY_RATE`]).
pub const H3_PIECE: usize = 16 * 1024;

/// Requests that a client may give up within a second of their beginning, on one connection, beyond nine of sixteen:
/// half of all, and a margin for chance. Envoy: 500. Where fewer control frames are allowed in a second
/// ([`CONTROL_FRAMES`]) it is as few, and where those have no limit, none.
pub const H3_RESETS: u32 = 500;

/// Requests given up within their heads, of which h3 remembers each: after so many a connection ends in good order.
pub const H3_ABANDONED: u32 = 5000;

/// Handshakes of QUIC under way, on all workers, beyond which a client has to prove its address first (RFC 9000 section 8.1.2): one
/// round trip more. Each costs who begins it a datagram, from whatever address, and us a signature.
pub const H3_UNPROVEN: usize = 64;

/// Handshakes beyond which nobody gets in until others are done.
pub const H3_HANDSHAKES: usize = 1024;

/// Bytes that are kept of a client whose handshake waits for its worker. quinn: 10 MiB.
pub const H3_HANDSHAKE_BUFFER: u64 = 64 * 1024;

/// Bytes of a WebSocket message from a client. tungstenite, and so axum: the same.
pub const WS_MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Bytes of a WebSocket frame from a client. tungstenite, and so axum: the same.
pub const WS_MAX_FRAME: usize = 16 * 1024 * 1024;

/// Bytes of a turn for each WebSocket message: it costs some 100 nanoseconds, however few bytes are in it.
pub const WS_MESSAGE_COST: usize = 64;

/// Bytes of a WebSocket message from which on it is compressed, where that was agreed on. Shorter ones hardly become shorter.
pub const WS_COMPRESS_MIN: usize = 32;
