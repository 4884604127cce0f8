//! The console at `/_/`, which loads nothing from other hosts, and the OpenAPI document.
//!
//! The console is plain HTML, CSS and JavaScript modules of one subject each; `main.js` starts them. It sends commands to
//! `/v1` like any other client, and asks `/v1/allowed` which of them pass the caller's rules.

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};
use xxhash_rust::xxh3::xxh3_128;

use super::Api;
use serve::conditional::tagged;

/// A file that is part of the program.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: &[Asset] = &[
    Asset { path: "/_/", media_type: HTML, text: include_str!("index.html") },
    Asset { path: "/_/page.css", media_type: CSS, text: include_str!("page.css") },
    Asset { path: "/_/openapi.json", media_type: "application/json", text: include_str!("openapi.json") },
    Asset { path: "/_/main.js", media_type: SCRIPT, text: include_str!("main.js") },
    Asset { path: "/_/api.js", media_type: SCRIPT, text: include_str!("api.js") },
    Asset { path: "/_/resp.js", media_type: SCRIPT, text: include_str!("resp.js") },
    Asset { path: "/_/bytes.js", media_type: SCRIPT, text: include_str!("bytes.js") },
    Asset { path: "/_/dom.js", media_type: SCRIPT, text: include_str!("dom.js") },
    Asset { path: "/_/plot.js", media_type: SCRIPT, text: include_str!("plot.js") },
    Asset { path: "/_/render.js", media_type: SCRIPT, text: include_str!("render.js") },
    Asset { path: "/_/docs.js", media_type: SCRIPT, text: include_str!("docs.js") },
    Asset { path: "/_/keys.js", media_type: SCRIPT, text: include_str!("keys.js") },
    Asset { path: "/_/list.js", media_type: SCRIPT, text: include_str!("list.js") },
    Asset { path: "/_/value.js", media_type: SCRIPT, text: include_str!("value.js") },
    Asset { path: "/_/text.js", media_type: SCRIPT, text: include_str!("text.js") },
    Asset { path: "/_/collections.js", media_type: SCRIPT, text: include_str!("collections.js") },
    Asset { path: "/_/documents.js", media_type: SCRIPT, text: include_str!("documents.js") },
    Asset { path: "/_/search.js", media_type: SCRIPT, text: include_str!("search.js") },
    Asset { path: "/_/cli.js", media_type: SCRIPT, text: include_str!("cli.js") },
    Asset { path: "/_/pubsub.js", media_type: SCRIPT, text: include_str!("pubsub.js") },
    Asset { path: "/_/server.js", media_type: SCRIPT, text: include_str!("server.js") },
];

/// Only what comes from here is run or asked, no other page may frame this one, and no text becomes HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

pub(super) fn router() -> Router<Api> {
    let router = Router::new().route("/_", get(|| async { Redirect::permanent("/_/") }));
    ASSETS.iter().fold(router, |router, asset| {
        router.route(asset.path, get(move |headers: HeaderMap| async move { response(asset, &headers) }))
    })
}

fn response(asset: &'static Asset, request: &HeaderMap) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (CONTENT_TYPE, asset.media_type),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let response = (headers, Body::from(asset.text)).into_response();
    tagged(response, xxh3_128(asset.text.as_bytes()), asset.text.len(), request)
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
        let expected = [
            "/get",
            "/v1/{command}",
            "/v1",
            "/v1/transaction",
            "/v1/allowed",
            "/v1/subscribe/{channel}",
            "/v1/psubscribe/{pattern}",
        ];
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
