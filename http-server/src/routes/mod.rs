//! What the server answers by itself: a string, a JSON object, a greeting by name.

mod greeting;

use axum::Router;
use axum::routing::get;

/// `/`, `/json` and `/{name}`. The last takes every path of one segment that no other route has.
pub fn router() -> Router {
    Router::new()
        .route("/", get(greeting::plain))
        .route("/json", get(greeting::json))
        .route("/{name}", get(greeting::by_name))
}
