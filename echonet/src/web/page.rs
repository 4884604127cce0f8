//! The page that shows the home, the one that shows the API, and the document of the API: nothing comes from elsewhere.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{Web, openapi};

/// A file that is part of the program.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset { path: "/", media_type: "text/html; charset=utf-8", text: include_str!("page/index.html") },
    Asset { path: "/api", media_type: "text/html; charset=utf-8", text: include_str!("page/api.html") },
    Asset { path: "/home.js", media_type: "text/javascript; charset=utf-8", text: include_str!("page/home.js") },
    Asset { path: "/api.js", media_type: "text/javascript; charset=utf-8", text: include_str!("page/api.js") },
    Asset { path: "/page.css", media_type: "text/css; charset=utf-8", text: include_str!("page/page.css") },
];

/// Only what comes from here is run or asked, and no other page may frame these.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(super) fn add(router: Router<Web>) -> Router<Web> {
    let document = Bytes::from(openapi::document().to_string());
    let document = move || async move { response("application/json", document.into()) };
    ASSETS.iter().fold(router.route("/openapi.json", get(document)), |router, asset| {
        router.route(asset.path, get(|| async { response(asset.media_type, asset.text.into()) }))
    })
}

fn response(media_type: &'static str, body: Body) -> Response {
    let headers: [(HeaderName, &str); 3] =
        [(CONTENT_TYPE, media_type), (CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache")];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_elsewhere() {
        for asset in ASSETS {
            assert!(!asset.text.contains("http:") && !asset.text.contains("https:"), "{}", asset.path);
            let is_script = asset.path.ends_with(".js");
            assert!(is_script || !asset.text.contains("//"), "{}", asset.path);
            assert!(!asset.text.contains("innerHTML"), "{}: what devices say is text", asset.path);
        }
    }
}
