//! The routes of published comparisons.

use axum::Json;
use axum::extract::Path;
use serde::Serialize;

/// The body of `/`.
pub(super) const PLAIN: &str = "Hello from Rust";

/// `GET /`
pub(super) async fn plain() -> &'static str {
    PLAIN
}

/// The body of `/{name}` before the name.
const VISITOR: &str = "Hello, visitor! You've requested: /";

/// The body of `/json`.
#[derive(Serialize)]
pub(super) struct Message {
    message: &'static str,
}

/// `GET /json`, serialised for every request.
pub(super) async fn json() -> Json<Message> {
    Json(Message { message: PLAIN })
}

/// The same, into a buffer.
pub(super) fn write_json(body: &mut Vec<u8>) {
    serde_json::to_writer(body, &Message { message: PLAIN }).expect("a Vec takes everything");
}

/// `GET /{name}`; the name is percent-decoded and may be any UTF-8.
pub(super) async fn by_name(Path(name): Path<String>) -> String {
    [VISITOR, &name].concat()
}

/// The same, into a buffer.
pub(super) fn write_by_name(name: &str, body: &mut Vec<u8>) {
    body.extend_from_slice(VISITOR.as_bytes());
    body.extend_from_slice(name.as_bytes());
}
