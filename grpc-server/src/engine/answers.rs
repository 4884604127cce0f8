//! Heads and ends of answers, as HTTP/2 has them.

use std::sync::LazyLock;

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, StatusCode, response};
use http2::hpack::{Block, Field};
use http2::shared::{Shared, fields};
use http2::{SendError, StreamId};
use tonic::Status;

/// The usual answer's head.
static HEAD: LazyLock<Block> =
    LazyLock::new(|| Block::new([Field::new(b":status", b"200"), Field::new(b"content-type", GRPC)]));

/// The usual answer's end.
static TRAILERS: LazyLock<Block> = LazyLock::new(|| Block::new([Field::new(b"grpc-status", b"0")]));

const GRPC: &[u8] = b"application/grpc";

pub(super) fn send_head(
    shared: &Shared,
    stream: StreamId,
    head: &response::Parts,
    is_all: bool,
) -> Result<(), SendError> {
    let is_usual = head.status == StatusCode::OK
        && head.headers.len() == 1
        && head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == GRPC);
    if is_usual {
        return shared.sending().send_head_block(stream, &HEAD, is_all);
    }
    shared.sending().send_head(stream, head.status.as_u16(), fields(&head.headers, is_repeated), is_all)
}

pub(super) fn send_trailers(shared: &Shared, stream: StreamId, trailers: &HeaderMap) -> Result<(), SendError> {
    let is_usual =
        trailers.len() == 1 && trailers.get(Status::GRPC_STATUS).is_some_and(|status| status.as_bytes() == b"0");
    if is_usual {
        return shared.sending().send_trailers_block(stream, &TRAILERS);
    }
    shared.sending().send_trailers(stream, fields(trailers, is_repeated))
}

/// Whether services send this field with each answer.
fn is_repeated(name: &HeaderName) -> bool {
    matches!(name.as_str(), "content-type" | "grpc-status" | "grpc-encoding" | "grpc-accept-encoding")
}
