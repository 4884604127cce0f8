//! **Claim**: a framework's router costs what a hand-written server saves.
//! **Source**: "Go vs Rust vs Bun vs Node", "API load test" (HTTP).
//! **Hypothesis**: axum's router and its boxed future cost some hundred nanoseconds of a request's six microseconds.
//! **Compared**: `GET /` and `GET /{name}` through an axum `Router` (a request and its headers made each time, as a server
//! does) and through a `match` on the path.

use std::hint::black_box;
use std::task::{Context, Poll, Waker};

use crate::settings::settings;
use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::get;
use criterion::{Criterion, Throughput, criterion_group};
use http::{Request, Response, StatusCode};
use tower_service::Service;

const GREETING: &str = "Hello, World!";

fn router() -> Router {
    Router::new()
        .route("/", get(|| async { GREETING }))
        .route("/json", get(|| async { axum::Json(serde_json::json!({ "message": "Hello" })) }))
        .route("/{name}", get(|Path(name): Path<String>| async move { format!("Hello, {name}!") }))
}

fn matched(path: &str) -> Response<Body> {
    let body = match path {
        "/" => Body::from(GREETING),
        "/json" => Body::from(r#"{"message":"Hello"}"#),
        name => Body::from(format!("Hello, {}!", &name[1..])),
    };
    Response::new(body)
}

/// Asks the router, whose handlers never wait.
fn routed(router: &mut Router, path: &'static str) -> Response<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static(path);
    let mut future = std::pin::pin!(router.call(request));
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(response)) => response,
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => panic!("a handler waits"),
    }
}

fn routing(c: &mut Criterion) {
    let mut router = router();
    let mut group = c.benchmark_group("routing");
    group.throughput(Throughput::Elements(1));
    for path in ["/", "/Ferris"] {
        assert_eq!(routed(&mut router, path).status(), StatusCode::OK);
        assert_eq!(matched(path).status(), StatusCode::OK);
        group.bench_function(format!("axum, {path}"), |b| b.iter(|| routed(&mut router, black_box(path))));
        group.bench_function(format!("match, {path}"), |b| b.iter(|| matched(black_box(path))));
    }
    group.finish();
}

criterion_group! { name = group; config = settings(); targets = routing }
