//! The routes of published comparisons.

use axum::Json;
use axum::extract::Path;
use serde::Serialize;

/// `GET /`
pub(super) async fn plain() -> &'static str {
    "Hello from Rust"
}

/// What `/json` answers.
#[derive(Serialize)]
pub(super) struct Message {
    message: &'static str,
}

/// `GET /json`, serialised for every request.
pub(super) async fn json() -> Json<Message> {
    Json(Message { message: "Hello from Rust" })
}

/// `GET /{name}`; the name is percent-decoded and may be any UTF-8.
pub(super) async fn by_name(Path(name): Path<String>) -> String {
    format!("Hello, visitor! You've requested: /{name}")
}
