//! The built-in page at `/_/`, which needs nothing from elsewhere, and the OpenAPI document.

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue};

use super::Api;

/// A file that is part of the program.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset { path: "/_/", media_type: "text/html; charset=utf-8", text: include_str!("index.html") },
    Asset { path: "/_/page.js", media_type: "text/javascript; charset=utf-8", text: include_str!("page.js") },
    Asset { path: "/_/page.css", media_type: "text/css; charset=utf-8", text: include_str!("page.css") },
    Asset { path: "/_/openapi.json", media_type: "application/json", text: include_str!("openapi.json") },
];

/// Only what comes from here is run or asked, and no other page may frame this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(super) fn router() -> Router<Api> {
    let router = Router::new().route("/_", get(|| async { Redirect::permanent("/_/") }));
    ASSETS.iter().fold(router, |router, asset| router.route(asset.path, get(|| async { response(asset) })))
}

fn response(asset: &'static Asset) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (CONTENT_TYPE, asset.media_type),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, Body::from(asset.text)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document is JSON, every reference in it leads somewhere, and it names every route that answers.
    #[test]
    fn openapi() {
        let text = ASSETS.iter().find(|asset| asset.path.ends_with("openapi.json")).unwrap().text;
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
        for reference in text.split("\"$ref\": \"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
        let paths: Vec<_> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let expected =
            ["/get", "/v1/{command}", "/v1", "/v1/transaction", "/v1/subscribe/{channel}", "/v1/psubscribe/{pattern}"];
        assert_eq!(paths, expected);
    }

    #[test]
    fn nothing_from_elsewhere() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.ends_with(".json")) {
            assert!(!asset.text.contains("//") || asset.path.ends_with(".js"), "{}", asset.path);
            assert!(!asset.text.contains("http:") && !asset.text.contains("https:"), "{}", asset.path);
        }
    }
}
