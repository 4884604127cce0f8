//! A router on the engine: from a request to its response, over any protocol.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, ALT_SVC, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use server_runtime::metrics::Histogram;
use tower_service::Service as _;

use super::app::{App, End, Origin};
use super::request_line::RequestLine;
use super::worker::Worker;
use crate::compress;
use crate::proxy;

/// The header that names a request in logs.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Whether the process serves.
const HEALTHY: &str = "/healthz";

/// Whether this server is to be sent requests.
const READY: &str = "/readyz";

/// Characters of a client's request id; longer ones are replaced.
const MAX_REQUEST_ID: usize = 128;

/// A router on one worker.
pub(super) struct Routed {
    pub(super) worker: Rc<Worker>,
    pub(super) router: RefCell<Router>,
    /// Times of the router's answers.
    pub(super) durations: Histogram,
}

impl App for Routed {
    type State = ();
    type Batch = ();

    fn open(self: &Rc<Self>, _: &End<'_>) {}

    fn respond(
        self: Rc<Self>,
        request: Request<Body>,
        origin: Origin,
        line: Rc<RequestLine>,
    ) -> impl Future<Output = Response> + 'static {
        respond(self, request, origin, line)
    }
}

/// The response to a request. Never fails: a handler that panics answers 500.
async fn respond(app: Rc<Routed>, mut request: Request<Body>, origin: Origin, line: Rc<RequestLine>) -> Response {
    let worker = &*app.worker;
    let options = &worker.settings.options;
    let number = worker.count.get() + 1;
    worker.count.set(number);
    let id = request_id(worker, number, &request);
    let client =
        proxy::client(request.headers(), origin.peer.socket_addr(), origin.is_secure, &options.trusted_proxies);
    let entry = (options.access_log > 0 && number.is_multiple_of(options.access_log)).then(|| Entry {
        method: request.method().clone(),
        target: request.uri().to_string(),
        client,
    });
    let encoding = if options.compress { compress::accepted(&request) } else { None };
    let is_head = request.method() == Method::HEAD;

    request.headers_mut().insert(REQUEST_ID, id.clone());
    request.extensions_mut().insert(client);
    if let Some(addr) = origin.peer.socket_addr() {
        request.extensions_mut().insert(ConnectInfo(addr));
    }
    let is_health = options.health && matches!(request.uri().path(), HEALTHY | READY);
    let started = Instant::now();
    let mut response = match on_the_spot(worker, &request) {
        Some(response) => response,
        None => match readiness(worker, &request) {
            Some(is_ready) => told(is_ready.await),
            None => route(&app, request, &line).await,
        },
    };
    if is_health && response.status() == StatusCode::NOT_FOUND {
        // The router has no such route, and so knows no method of it.
        response = (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")]).into_response();
    }
    if let Some(encoding) = encoding {
        response = compress::apply(response, encoding, is_head, Some(&line)).await;
    }
    // Not kept from before: the future would be larger.
    let worker = &*app.worker;
    response.headers_mut().insert(REQUEST_ID, id.clone());
    if let Some(alt_svc) = worker.settings.alt_svc.as_ref().filter(|_| origin.is_secure) {
        response.headers_mut().entry(ALT_SVC).or_insert_with(|| alt_svc.clone());
    }
    let time = started.elapsed();
    app.durations.observe(time.as_secs_f64());
    worker.stats().response(response.status());
    if let Some(entry) = entry {
        entry.write(&response, &id, time);
    }
    response
}

/// The answer to a request that needs no router.
fn on_the_spot(worker: &Worker, request: &Request<Body>) -> Option<Response> {
    let options = &worker.settings.options;
    let path = request.uri().path();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let is_of_server = path == "*" && request.method() == Method::OPTIONS;
        return is_of_server.then(Response::default);
    }
    if options.health
        && let Some((status, text)) = health(path, worker)
    {
        return Some((status, text).into_response());
    }
    if request.uri().query().is_some() {
        return None;
    }
    let found = options.instants.find(path)?;
    let mut body = Vec::new();
    found.put_body(&mut body);
    Some(([(CONTENT_TYPE, found.kind.media_type())], body).into_response())
}

/// `/healthz`: the process serves. `/readyz`: and it will go on doing so, if `Options::ready` says so too.
fn health(path: &str, worker: &Worker) -> Option<(StatusCode, &'static str)> {
    match path {
        HEALTHY => Some((StatusCode::OK, "ok\n")),
        READY if worker.is_draining() => Some((StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")),
        READY if worker.settings.options.ready.is_none() => Some((StatusCode::OK, "ready\n")),
        _ => None,
    }
}

/// The check to wait for before `/readyz` is answered.
fn readiness(worker: &Worker, request: &Request<Body>) -> Option<Pin<Box<dyn Future<Output = bool> + Send>>> {
    let options = &worker.settings.options;
    let is_asked = options.health && request.uri().path() == READY;
    let ready =
        options.ready.as_ref().filter(|_| is_asked && matches!(*request.method(), Method::GET | Method::HEAD))?;
    Some(ready.is_ready())
}

fn told(is_ready: bool) -> Response {
    if is_ready { "ready\n".into_response() } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response() }
}

/// The router's answer; a panic ends the request and nothing else, and so does its time's end.
async fn route(app: &Routed, request: Request<Body>, line: &RequestLine) -> Response {
    let call = app.router.borrow_mut().call(request);
    let mut call = pin!(call);
    let result = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
        Ok(Poll::Ready(Ok(response))) => Poll::Ready(Some(response)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(None),
    });
    let result = match app.worker.settings.options.timeouts.handler {
        None => result.await,
        Some(limit) => match tokio::time::timeout(limit, result).await {
            Ok(result) => result,
            Err(_) => {
                app.worker.stats().slow_handlers.add(1);
                tracing::warn!(path = line.path(), "a handler took longer than {limit:?}");
                return (StatusCode::SERVICE_UNAVAILABLE, "the answer took too long\n").into_response();
            }
        },
    };
    result.unwrap_or_else(|| {
        app.worker.stats().panics.add(1);
        tracing::error!(path = line.path(), "a handler panicked");
        (StatusCode::INTERNAL_SERVER_ERROR, "the handler failed\n").into_response()
    })
}

/// The client's id, if it is one that can stand in a log; otherwise one of ours.
fn request_id(worker: &Worker, number: u64, request: &Request<Body>) -> HeaderValue {
    let is_good = |id: &HeaderValue| {
        let id = id.as_bytes();
        (1..=MAX_REQUEST_ID).contains(&id.len())
            && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte))
    };
    if let Some(id) = request.headers().get(REQUEST_ID).filter(|id| is_good(id)) {
        return id.clone();
    }
    let mut text = [0; 16];
    // An odd multiplier is a bijection: no id comes twice.
    let mut id = (worker.seed.wrapping_add(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for digit in &mut text {
        *digit = b"0123456789abcdef"[(id >> 60) as usize];
        id <<= 4;
    }
    HeaderValue::from_bytes(&text).expect("hexadecimal digits are a header value")
}

/// A line of the access log in the making.
struct Entry {
    method: Method,
    target: String,
    client: proxy::Client,
}

impl Entry {
    fn write(&self, response: &Response, id: &HeaderValue, time: std::time::Duration) {
        let bytes = http_body::Body::size_hint(response.body()).exact();
        let addr = self.client.addr.map_or_else(|| "-".to_owned(), |addr| addr.to_string());
        // Escaped: a target may hold anything, and one request is one line.
        tracing::info!(
            target: "access",
            client = addr,
            method = self.method.as_str(),
            target = self.target.escape_default().to_string(),
            status = response.status().as_u16(),
            bytes,
            micros = time.as_micros() as u64,
            id = id.to_str().unwrap_or_default(),
        );
    }
}
