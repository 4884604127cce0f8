//! The server's own routes: a string, a JSON object, a greeting by name.

mod files;
mod greeting;

use std::io;
use std::path::Path;

use axum::Router;
use axum::routing::get;
use http::Request;

use files::Files;

use serve::{Instants, Kind};

/// `/`, `/json` and `/{name}`. The last takes every path of one segment that no other route has.
pub fn router() -> Router {
    Router::new()
        .route("/", get(greeting::plain))
        .route("/json", get(greeting::json))
        .route("/{name}", get(greeting::by_name))
}

/// The files of a directory, and `/json`. A range at a time, validators, `index.html` of directories; `FILE.br`, `FILE.zst`
/// and `FILE.gz` are sent for `FILE` to clients that accept them. Names that begin with a dot are not served, `.well-known` apart, and
/// nothing but files is. Links are followed, also out of the directory.
///
/// # Errors
/// When there is no such directory.
pub fn files(root: &Path) -> io::Result<Router> {
    let files = Files::of(root)?;
    let answer = move |request: Request<_>| files.clone().answer(request);
    Ok(Router::new().route("/json", get(greeting::json)).fallback(answer))
}

/// Paths of one segment that are no names: the engine's and those of the Redis routes.
const NO_NAMES: &[&str] = &["_", "get", "healthz", "readyz", "v1"];

/// `/`, `/json` and `/{name}` once more, for clients that send nothing else than these.
pub fn instants() -> Instants {
    Instants::default()
        .with("/", Kind::Text, |body| body.extend_from_slice(greeting::PLAIN.as_bytes()))
        .with("/json", Kind::Json, greeting::write_json)
        .with_names(NO_NAMES, Kind::Text, greeting::write_by_name)
}
